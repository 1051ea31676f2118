obj.spec.stopPolicy = "None"
return obj
