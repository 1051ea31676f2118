-- https://cloudnative-pg.io/documentation/current/backup/#scheduled-backups
local suspended = obj.spec.suspend == true
return {
  suspend = { disabled = suspended, displayName = "Begin no more backups", iconClass = "fa fa-pause" },
  resume = { disabled = not suspended, displayName = "Keep to its schedule again", iconClass = "fa fa-play" },
}
