-- https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/
return {
  restart = { displayName = "Replace its Pods, node after node", iconClass = "fa fa-redo" },
}
