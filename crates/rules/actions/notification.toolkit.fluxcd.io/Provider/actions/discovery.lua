-- https://fluxcd.io/flux/components/notification/providers/
local suspended = obj.spec.suspend == true
return {
  suspend = { disabled = suspended, displayName = "Send nothing more", iconClass = "fa fa-pause" },
  resume = { disabled = not suspended, displayName = "Send again", iconClass = "fa fa-play" },
}
