obj.spec.job.state = "suspended"
return obj
