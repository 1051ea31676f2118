-- https://cluster-api.sigs.k8s.io/reference/api/crd-relationships
local paused = obj.spec.paused == true
return {
  pause = { disabled = paused, displayName = "Have its controllers leave it and its Machines alone", iconClass = "fa fa-pause" },
  resume = { disabled = not paused, displayName = "Have its controllers take care of it again", iconClass = "fa fa-play" },
}
