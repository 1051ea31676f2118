obj.spec.status = "Cancelled"
return obj
