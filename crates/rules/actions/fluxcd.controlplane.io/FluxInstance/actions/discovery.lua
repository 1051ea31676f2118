-- https://fluxoperator.dev/docs/crd/fluxinstance/
local annotations = obj.metadata.annotations or {}
local suspended = annotations["fluxcd.controlplane.io/reconcile"] == "disabled"
return {
  reconcile = { disabled = suspended, displayName = "Look at it now", iconClass = "fa fa-sync" },
  suspend = { disabled = suspended, displayName = "Leave it alone", iconClass = "fa fa-pause" },
  resume = { disabled = not suspended, displayName = "Take care of it again", iconClass = "fa fa-play" },
}
