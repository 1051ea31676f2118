-- https://github.com/mariadb-operator/mariadb-operator/blob/main/docs/suspend.md
local suspended = obj.spec.suspend == true
return {
  suspend = { disabled = suspended, displayName = "Have its operator leave it alone", iconClass = "fa fa-pause" },
  resume = { disabled = not suspended, displayName = "Have its operator take care of it again", iconClass = "fa fa-play" },
}
