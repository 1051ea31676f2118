-- https://argo-workflows.readthedocs.io/en/latest/workflow-templates/
return {
  ["create-workflow"] = { displayName = "Run it now", iconClass = "fa fa-play-circle" },
}
