if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["fluxcd.controlplane.io/reconcile"] = "enabled"
return obj
