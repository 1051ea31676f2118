-- https://cluster-api.sigs.k8s.io/reference/api/labels-and-annotations
local annotations = obj.metadata.annotations or {}
local paused = annotations["cluster.x-k8s.io/paused"] == "true"
return {
  pause = { disabled = paused, displayName = "Have its controller leave it alone", iconClass = "fa fa-pause" },
  resume = { disabled = not paused, displayName = "Have its controller take care of it again", iconClass = "fa fa-play" },
}
