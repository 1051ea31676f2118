-- Only one of the two fields may be set.
if obj.spec.running ~= nil then
  obj.spec.running = true
else
  obj.spec.runStrategy = "Always"
end
return obj
