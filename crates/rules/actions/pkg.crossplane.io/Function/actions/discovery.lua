-- https://docs.crossplane.io/latest/packages/
local annotations = obj.metadata.annotations or {}
local paused = annotations["crossplane.io/paused"] == "true"
return {
  pause = { disabled = paused, displayName = "Have Crossplane leave it alone", iconClass = "fa fa-pause" },
  resume = { disabled = not paused, displayName = "Have Crossplane take care of it again", iconClass = "fa fa-play" },
}
