-- Any change of its annotations triggers a reconciliation.
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["force-sync"] = os.date("!%Y-%m-%dT%H:%M:%SZ")
return obj
