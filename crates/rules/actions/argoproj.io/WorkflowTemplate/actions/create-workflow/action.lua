local workflow = {
  apiVersion = "argoproj.io/v1alpha1",
  kind = "Workflow",
  metadata = {
    name = string.sub(obj.metadata.name, 1, 52) .. "-" .. os.date("!%H%M%S"),
    namespace = obj.metadata.namespace,
    labels = { ["workflows.argoproj.io/workflow-template"] = obj.metadata.name },
  },
  spec = { workflowTemplateRef = { name = obj.metadata.name } },
}
return { { operation = "create", resource = workflow } }
