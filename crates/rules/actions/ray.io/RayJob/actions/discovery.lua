-- https://ray-project.github.io/kuberay/reference/api/
local suspended = obj.spec.suspend == true
return {
  suspend = { disabled = suspended, displayName = "End its Pods, to begin again later", iconClass = "fa fa-pause" },
  resume = { disabled = not suspended, displayName = "Begin its Pods again", iconClass = "fa fa-play" },
}
