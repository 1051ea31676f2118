-- https://strimzi.io/docs/operators/latest/deploying#proc-pausing-reconciliation-str
local annotations = obj.metadata.annotations or {}
local paused = annotations["strimzi.io/pause-reconciliation"] == "true"
return {
  pause = { disabled = paused, displayName = "Have its operator leave it alone", iconClass = "fa fa-pause" },
  resume = { disabled = not paused, displayName = "Have its operator take care of it again", iconClass = "fa fa-play" },
}
