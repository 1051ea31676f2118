-- A Job by hand is one of the CronJob: it is owned by it, and marked as `kubectl create job --from` marks it.
local template = obj.spec.jobTemplate
local metadata = template.metadata
if metadata == nil then
  metadata = {}
end
local annotations = { ["cronjob.kubernetes.io/instantiate"] = "manual" }
for key, value in pairs(metadata.annotations or {}) do
  annotations[key] = value
end

local job = {
  apiVersion = "batch/v1",
  kind = "Job",
  metadata = {
    -- Names of Jobs stand in labels of their Pods, which have no room for more.
    name = string.sub(obj.metadata.name, 1, 52) .. "-" .. os.date("!%H%M%S"),
    namespace = obj.metadata.namespace,
    labels = metadata.labels,
    annotations = annotations,
    ownerReferences = {
      {
        apiVersion = obj.apiVersion,
        kind = obj.kind,
        name = obj.metadata.name,
        uid = obj.metadata.uid,
        controller = true,
      },
    },
  },
  spec = template.spec,
}
return { { operation = "create", resource = job } }
