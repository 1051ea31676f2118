-- https://kubernetes.io/docs/concepts/workloads/controllers/deployment/
local paused = obj.spec.paused == true
local replicas = obj.spec.replicas
if replicas == nil then
  replicas = 1
end
return {
  restart = {
    disabled = paused,
    displayName = "Replace its Pods, as its strategy says",
    iconClass = "fa fa-redo",
  },
  pause = { disabled = paused, displayName = "Hold its rollout", iconClass = "fa fa-pause" },
  resume = { disabled = not paused, displayName = "Go on with its rollout", iconClass = "fa fa-play" },
  scale = {
    displayName = "Set how many Pods it has",
    iconClass = "fa fa-expand-alt",
    params = { { name = "replicas", type = "number", value = tostring(replicas) } },
  },
}
