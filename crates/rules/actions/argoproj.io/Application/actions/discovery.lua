-- https://argo-cd.readthedocs.io/en/stable/user-guide/annotations-and-labels/
return {
  refresh = { displayName = "Compare it now", iconClass = "fa fa-sync" },
  ["hard-refresh"] = { displayName = "Render its manifests anew, and compare", iconClass = "fa fa-sync-alt" },
}
