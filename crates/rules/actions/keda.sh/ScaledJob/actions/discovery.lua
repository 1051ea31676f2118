-- https://keda.sh/docs/latest/concepts/scaling-jobs/#pause-autoscaling
local annotations = obj.metadata.annotations or {}
local paused = annotations["autoscaling.keda.sh/paused"] == "true"
return {
  pause = { disabled = paused, displayName = "Stop scaling", iconClass = "fa fa-pause" },
  resume = { disabled = not paused, displayName = "Scale again", iconClass = "fa fa-play" },
}
