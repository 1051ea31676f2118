-- A manual Job belongs to the CronJob: it has its owner reference, and the annotation of `kubectl create job --from`.
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
    -- The name of a Job is a label of its Pods, whose length is limited.
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
