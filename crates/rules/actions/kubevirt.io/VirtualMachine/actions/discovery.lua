-- https://kubevirt.io/user-guide/compute/run_strategies/
local strategy = obj.spec.runStrategy
local off = strategy == "Halted" or (strategy == nil and obj.spec.running ~= true)
return {
  start = { disabled = not off, displayName = "Start it", iconClass = "fa fa-play" },
  stop = { disabled = off, displayName = "Shut it down", iconClass = "fa fa-stop" },
}
