-- https://external-secrets.io/latest/api/pushsecret/
return {
  refresh = { displayName = "Look at the store now", iconClass = "fa fa-sync" },
}
