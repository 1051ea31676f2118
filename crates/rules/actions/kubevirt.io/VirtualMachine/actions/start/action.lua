-- Only one of the two fields may be there.
if obj.spec.running ~= nil then
  obj.spec.running = true
else
  obj.spec.runStrategy = "Always"
end
return obj
