-- Only one of the two fields may be set.
if obj.spec.running ~= nil then
  obj.spec.running = false
else
  obj.spec.runStrategy = "Halted"
end
return obj
