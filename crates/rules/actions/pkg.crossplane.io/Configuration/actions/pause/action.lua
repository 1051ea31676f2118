if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["crossplane.io/paused"] = "true"
return obj
