-- A door is as its conditions say; those about an older generation say nothing.
local health = { status = "Progressing", message = "Waiting to be shut" }
if obj.spec ~= nil and obj.spec.paused then
  return { status = "Suspended", message = "Paused by " .. (obj.spec.by or "nobody") }
end
if obj.status == nil or obj.status.conditions == nil then
  return health
end
for _, condition in ipairs(obj.status.conditions) do
  if condition.observedGeneration ~= nil and condition.observedGeneration ~= obj.metadata.generation then
    goto continue
  end
  if condition.type == "Shut" and condition.status == "True" then
    health.status, health.message = "Healthy", "Shut"
  elseif condition.type == "Shut" and condition.reason == "Jammed" then
    health = { status = "Degraded", message = condition.message }
  end
  ::continue::
end
return health
