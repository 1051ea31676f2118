-- https://nightlies.apache.org/flink/flink-kubernetes-operator-docs-main/docs/custom-resource/job-management/
local job = obj.spec.job
local suspended = job ~= nil and job.state == "suspended"
return {
  restart = { disabled = suspended, displayName = "Restart its cluster", iconClass = "fa fa-redo" },
  suspend = { disabled = job == nil or suspended, displayName = "Stop its job, to go on later", iconClass = "fa fa-pause" },
  resume = { disabled = not suspended, displayName = "Go on with its job", iconClass = "fa fa-play" },
}
