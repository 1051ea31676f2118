obj.metadata.annotations["cluster.x-k8s.io/paused"] = nil
return obj
