-- https://external-secrets.io/latest/api/clusterexternalsecret/
return {
  refresh = { displayName = "Look at the store now, for all namespaces", iconClass = "fa fa-sync" },
}
