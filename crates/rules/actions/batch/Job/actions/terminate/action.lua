-- A Job that has been active for longer than that is terminated as Failed; the controller ignores a suspended one.
obj.spec.activeDeadlineSeconds = 1
if obj.spec.suspend then
  obj.spec.suspend = false
end
return obj
