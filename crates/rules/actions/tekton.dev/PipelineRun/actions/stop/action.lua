obj.spec.status = "StoppedRunFinally"
return obj
