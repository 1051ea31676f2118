if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["strimzi.io/pause-reconciliation"] = "true"
return obj
