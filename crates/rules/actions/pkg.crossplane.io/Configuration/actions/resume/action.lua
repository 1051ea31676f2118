obj.metadata.annotations["crossplane.io/paused"] = nil
return obj
