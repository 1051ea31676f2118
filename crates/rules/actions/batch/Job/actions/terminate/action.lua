-- A Job that has been active for longer than that is ended and called Failed; one that rests would not be looked at.
obj.spec.activeDeadlineSeconds = 1
if obj.spec.suspend then
  obj.spec.suspend = false
end
return obj
