-- The controller copies it to each ExternalSecret.
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["external-secrets.io/force-sync"] = os.date("!%Y-%m-%dT%H:%M:%SZ")
return obj
