-- It may be paused by its spec, or have reached a pause step.
if obj.spec.paused then
  obj.spec.paused = false
end
if obj.status ~= nil then
  obj.status.pauseConditions = nil
end
return obj
