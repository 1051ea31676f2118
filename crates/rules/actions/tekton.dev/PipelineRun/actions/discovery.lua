-- https://tekton.dev/docs/pipelines/pipelineruns/#cancelling-a-pipelinerun
local ended = obj.status ~= nil and obj.status.completionTime ~= nil
return {
  cancel = { disabled = ended, displayName = "End it at once", iconClass = "fa fa-times-circle" },
  ["cancel-finally"] = {
    disabled = ended,
    displayName = "End its tasks, and run what comes finally",
    iconClass = "fa fa-times",
  },
  stop = {
    disabled = ended,
    displayName = "Let its tasks end, begin no more, and run what comes finally",
    iconClass = "fa fa-stop-circle",
  },
}
