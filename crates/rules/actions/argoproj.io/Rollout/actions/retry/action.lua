obj.status.abort = false
return obj
