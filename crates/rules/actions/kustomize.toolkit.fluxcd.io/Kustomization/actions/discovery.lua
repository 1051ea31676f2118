-- https://fluxcd.io/flux/components/kustomize/kustomizations/
local suspended = obj.spec.suspend == true
return {
  reconcile = { disabled = suspended, displayName = "Build and apply it now", iconClass = "fa fa-sync" },
  suspend = { disabled = suspended, displayName = "Leave it alone", iconClass = "fa fa-pause" },
  resume = { disabled = not suspended, displayName = "Take care of it again", iconClass = "fa fa-play" },
}
