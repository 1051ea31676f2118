-- https://cluster-api.sigs.k8s.io/clusterctl/commands/alpha-rollout
local annotations = obj.metadata.annotations or {}
local paused = annotations["cluster.x-k8s.io/paused"] == "true"
return {
  pause = { disabled = paused, displayName = "Hold its rollout", iconClass = "fa fa-pause" },
  resume = { disabled = not paused, displayName = "Go on with its rollout", iconClass = "fa fa-play" },
}
