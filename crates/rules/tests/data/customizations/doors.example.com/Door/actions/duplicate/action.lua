local copy = { apiVersion = obj.apiVersion, kind = "Door", metadata = { namespace = obj.metadata.namespace }, spec = obj.spec }
copy.metadata.name = obj.metadata.name .. "-2"
return { { operation = "create", resource = copy } }
