obj.spec.status = "TaskRunCancelled"
return obj
