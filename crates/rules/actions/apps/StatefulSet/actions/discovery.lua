-- https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/
local replicas = obj.spec.replicas
if replicas == nil then
  replicas = 1
end
return {
  restart = { displayName = "Replace its Pods, one after the other", iconClass = "fa fa-redo" },
  scale = {
    displayName = "Set how many Pods it has",
    iconClass = "fa fa-expand-alt",
    params = { { name = "replicas", type = "number", value = tostring(replicas) } },
  },
}
