obj.spec.shutdown = "Terminate"
return obj
