-- Somebody may have paused it by its spec, and it may have come to a pause by itself.
if obj.spec.paused then
  obj.spec.paused = false
end
if obj.status ~= nil then
  obj.status.pauseConditions = nil
end
return obj
