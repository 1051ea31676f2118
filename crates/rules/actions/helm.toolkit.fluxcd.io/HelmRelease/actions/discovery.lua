-- https://fluxcd.io/flux/components/helm/helmreleases/
local suspended = obj.spec.suspend == true
return {
  reconcile = { disabled = suspended, displayName = "Compare and apply it now", iconClass = "fa fa-sync" },
  force = { disabled = suspended, displayName = "Upgrade it now, although nothing changed", iconClass = "fa fa-bolt" },
  reset = { disabled = suspended, displayName = "Forget how often it failed, and try again", iconClass = "fa fa-undo" },
  suspend = { disabled = suspended, displayName = "Leave it alone", iconClass = "fa fa-pause" },
  resume = { disabled = not suspended, displayName = "Take care of it again", iconClass = "fa fa-play" },
}
