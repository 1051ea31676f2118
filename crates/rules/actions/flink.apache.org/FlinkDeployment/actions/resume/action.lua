obj.spec.job.state = "running"
return obj
