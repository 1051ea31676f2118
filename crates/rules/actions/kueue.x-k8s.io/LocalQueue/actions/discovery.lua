-- https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta1/
local policy = obj.spec.stopPolicy or "None"
return {
  hold = { disabled = policy == "Hold", displayName = "Admit nothing more", iconClass = "fa fa-pause" },
  drain = {
    disabled = policy == "HoldAndDrain",
    displayName = "Admit nothing more, and evict what runs",
    iconClass = "fa fa-stop-circle",
  },
  resume = { disabled = policy == "None", displayName = "Admit again", iconClass = "fa fa-play" },
}
