obj.spec.stopPolicy = "HoldAndDrain"
return obj
