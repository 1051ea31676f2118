obj.metadata.annotations["strimzi.io/pause-reconciliation"] = nil
return obj
