-- https://argo-rollouts.readthedocs.io/en/stable/features/specification/
-- https://argo-rollouts.readthedocs.io/en/stable/generated/kubectl-argo-rollouts/kubectl-argo-rollouts/
local status = obj.status or {}
local canary = (obj.spec.strategy or {}).canary
local steps = canary ~= nil and canary.steps or nil

-- True if a version other than the stable one is being rolled out.
local rolling = status.currentPodHash ~= nil and status.currentPodHash ~= status.stableRS
local aborted = status.abort == true
local waiting = obj.spec.paused == true or #(status.pauseConditions or {}) > 0
local left = steps ~= nil and (status.currentStepIndex or 0) < #steps
return {
  restart = { displayName = "Replace its Pods", iconClass = "fa fa-redo" },
  pause = { disabled = obj.spec.paused == true, displayName = "Hold it where it is", iconClass = "fa fa-pause" },
  resume = { disabled = not waiting, displayName = "Go on after a pause", iconClass = "fa fa-play" },
  abort = { disabled = not rolling or aborted, displayName = "Go back to the stable version", iconClass = "fa fa-times" },
  retry = { disabled = not aborted, displayName = "Try again after it was aborted", iconClass = "fa fa-redo" },
  ["promote-full"] = {
    disabled = not rolling,
    displayName = "Go to the new version at once, without pauses and analysis",
    iconClass = "fa fa-fast-forward",
  },
  ["skip-current-step"] = {
    disabled = not (rolling and left),
    displayName = "Go to the next step",
    iconClass = "fa fa-step-forward",
  },
}
