-- https://argo-workflows.readthedocs.io/en/latest/fields/#workflowspec
local phase = obj.status ~= nil and obj.status.phase or nil
local ended = phase == "Succeeded" or phase == "Failed" or phase == "Error"
local suspended = obj.spec.suspend == true
return {
  suspend = { disabled = ended or suspended, displayName = "Begin no more steps", iconClass = "fa fa-pause" },
  resume = { disabled = ended or not suspended, displayName = "Go on with its steps", iconClass = "fa fa-play" },
  stop = {
    disabled = ended or obj.spec.shutdown ~= nil,
    displayName = "End it, and run what it does on exit",
    iconClass = "fa fa-stop-circle",
  },
  terminate = {
    disabled = ended or obj.spec.shutdown == "Terminate",
    displayName = "End it at once",
    iconClass = "fa fa-times-circle",
  },
}
