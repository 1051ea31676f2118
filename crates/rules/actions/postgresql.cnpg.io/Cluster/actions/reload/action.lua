if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["cnpg.io/reloadedAt"] = os.date("!%Y-%m-%dT%H:%M:%SZ")
return obj
