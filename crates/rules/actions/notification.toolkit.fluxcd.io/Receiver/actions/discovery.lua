-- https://fluxcd.io/flux/components/notification/receivers/
local suspended = obj.spec.suspend == true
return {
  reconcile = { disabled = suspended, displayName = "Look at it now", iconClass = "fa fa-sync" },
  suspend = { disabled = suspended, displayName = "Leave it alone", iconClass = "fa fa-pause" },
  resume = { disabled = not suspended, displayName = "Take care of it again", iconClass = "fa fa-play" },
}
