local os = require("os")
obj.spec.open = true
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["doors.example.com/opened"] = os.date("!%Y-%m-%dT%XZ")
return obj
