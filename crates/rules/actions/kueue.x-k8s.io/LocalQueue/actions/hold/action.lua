obj.spec.stopPolicy = "Hold"
return obj
