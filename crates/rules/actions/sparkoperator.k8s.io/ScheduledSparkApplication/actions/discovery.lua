-- https://www.kubeflow.org/docs/components/spark-operator/user-guide/running-sparkapplication-on-schedule/
local suspended = obj.spec.suspend == true
return {
  suspend = { disabled = suspended, displayName = "Begin no more applications", iconClass = "fa fa-pause" },
  resume = { disabled = not suspended, displayName = "Keep to its schedule again", iconClass = "fa fa-play" },
}
