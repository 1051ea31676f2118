-- A new annotation of the template replaces the Pods, as in `kubectl rollout restart`.
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
