-- https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
local suspended = obj.spec.suspend == true
return {
  ["create-job"] = { displayName = "Run it now, once", iconClass = "fa fa-play-circle" },
  suspend = { disabled = suspended, displayName = "Begin no more Jobs", iconClass = "fa fa-pause" },
  resume = { disabled = not suspended, displayName = "Keep to its schedule again", iconClass = "fa fa-play" },
}
