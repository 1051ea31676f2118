-- The operator switches over when the target is another instance than the primary.
local instance = actionParams["instance"]
if instance == nil or instance == "" then
  error("instance must be told: the name of an instance, or its number", 0)
end
if tonumber(instance) ~= nil then
  instance = obj.metadata.name .. "-" .. instance
end
local status = obj.status or {}
local known = false
for _, name in ipairs(status.instanceNames or {}) do
  known = known or name == instance
end
if not known then
  error("there is no instance " .. instance, 0)
end
if status.targetPrimary == instance then
  error(instance .. " is the primary already", 0)
end
status.targetPrimary = instance
status.targetPrimaryTimestamp = os.date("!%Y-%m-%dT%H:%M:%SZ")
status.phase = "Switchover in progress"
status.phaseReason = "Switching over to " .. instance
obj.status = status
return obj
