-- https://tekton.dev/docs/pipelines/taskruns/#cancelling-a-taskrun
local ended = obj.status ~= nil and obj.status.completionTime ~= nil
return {
  cancel = { disabled = ended, displayName = "End it at once", iconClass = "fa fa-times-circle" },
}
