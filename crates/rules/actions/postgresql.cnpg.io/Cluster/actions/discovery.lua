-- https://cloudnative-pg.io/documentation/current/kubectl-plugin/
-- https://cloudnative-pg.io/documentation/current/declarative_hibernation/
local annotations = obj.metadata.annotations or {}
local hibernated = annotations["cnpg.io/hibernation"] == "on"
local status = obj.status or {}
local single = (status.instances or obj.spec.instances or 1) < 2
return {
  restart = { disabled = hibernated, displayName = "Restart its instances, the primary last", iconClass = "fa fa-redo" },
  reload = { disabled = hibernated, displayName = "Read its configuration anew", iconClass = "fa fa-sync" },
  promote = {
    disabled = hibernated or single,
    displayName = "Make another instance the primary",
    iconClass = "fa fa-angle-double-up",
    params = { { name = "instance", value = status.currentPrimary } },
  },
  suspend = { disabled = hibernated, displayName = "Hibernate: keep the volumes, end the Pods", iconClass = "fa fa-pause" },
  resume = { disabled = not hibernated, displayName = "Wake it up", iconClass = "fa fa-play" },
}
