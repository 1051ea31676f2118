if obj.spec.paused then
  obj.spec.paused = false
end
obj.status.promoteFull = true
return obj
