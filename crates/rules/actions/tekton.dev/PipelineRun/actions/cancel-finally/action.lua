obj.spec.status = "CancelledRunFinally"
return obj
