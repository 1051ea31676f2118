obj.metadata.annotations["autoscaling.keda.sh/paused"] = nil
return obj
