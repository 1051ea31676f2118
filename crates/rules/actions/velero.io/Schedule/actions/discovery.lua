-- https://velero.io/docs/main/api-types/schedule/
local paused = obj.spec.paused == true
return {
  pause = { disabled = paused, displayName = "Begin no more backups", iconClass = "fa fa-pause" },
  resume = { disabled = not paused, displayName = "Keep to its schedule again", iconClass = "fa fa-play" },
}
