-- The label makes it one of the CronWorkflow.
local metadata = obj.spec.workflowMetadata or {}
local labels = { ["workflows.argoproj.io/cron-workflow"] = obj.metadata.name }
for key, value in pairs(metadata.labels or {}) do
  labels[key] = value
end

local workflow = {
  apiVersion = "argoproj.io/v1alpha1",
  kind = "Workflow",
  metadata = {
    name = string.sub(obj.metadata.name, 1, 52) .. "-" .. os.date("!%H%M%S"),
    namespace = obj.metadata.namespace,
    labels = labels,
    annotations = metadata.annotations,
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
  spec = obj.spec.workflowSpec,
}
return { { operation = "create", resource = workflow } }
