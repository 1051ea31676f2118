-- https://argo-workflows.readthedocs.io/en/latest/cron-workflows/
local suspended = obj.spec.suspend == true
return {
  ["create-workflow"] = { displayName = "Run it now, once", iconClass = "fa fa-play-circle" },
  suspend = { disabled = suspended, displayName = "Begin no more Workflows", iconClass = "fa fa-pause" },
  resume = { disabled = not suspended, displayName = "Keep to its schedules again", iconClass = "fa fa-play" },
}
