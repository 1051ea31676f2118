-- https://kubernetes.io/docs/concepts/workloads/controllers/job/
local suspended = obj.spec.suspend == true
local ended = false
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    if condition.status == "True" and (condition.type == "Complete" or condition.type == "Failed") then
      ended = true
    end
  end
end
return {
  suspend = {
    disabled = ended or suspended,
    displayName = "End its Pods, to begin again later",
    iconClass = "fa fa-pause",
  },
  resume = { disabled = ended or not suspended, displayName = "Begin its Pods again", iconClass = "fa fa-play" },
  terminate = { disabled = ended, displayName = "Have it fail now", iconClass = "fa fa-stop" },
}
