-- https://external-secrets.io/latest/api/externalsecret/
return {
  refresh = { displayName = "Look at the store now", iconClass = "fa fa-sync" },
}
