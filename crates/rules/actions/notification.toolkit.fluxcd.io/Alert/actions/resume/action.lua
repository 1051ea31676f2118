obj.spec.suspend = nil
return obj
