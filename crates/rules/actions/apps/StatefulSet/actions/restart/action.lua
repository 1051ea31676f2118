-- A new annotation of the template makes new Pods, as `kubectl rollout restart` does it.
local metadata = obj.spec.template.metadata
if metadata == nil then
  metadata = {}
  obj.spec.template.metadata = metadata
end
if metadata.annotations == nil then
  metadata.annotations = {}
end
metadata.annotations["kubectl.kubernetes.io/restartedAt"] = os.date("!%Y-%m-%dT%H:%M:%SZ")
return obj
