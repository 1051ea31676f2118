-- It is effective only with a reconcile request of the same time.
local now = os.date("!%Y-%m-%dT%H:%M:%SZ")
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["reconcile.fluxcd.io/requestedAt"] = now
obj.metadata.annotations["reconcile.fluxcd.io/forceAt"] = now
return obj
