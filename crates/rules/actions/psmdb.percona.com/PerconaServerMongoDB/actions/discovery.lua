-- https://docs.percona.com/percona-operator-for-mongodb/pause.html
local paused = obj.spec.pause == true
return {
  pause = { disabled = paused, displayName = "End its Pods, keep its data", iconClass = "fa fa-pause" },
  resume = { disabled = not paused, displayName = "Begin its Pods again", iconClass = "fa fa-play" },
}
