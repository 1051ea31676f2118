obj.status.currentStepIndex = (obj.status.currentStepIndex or 0) + 1
return obj
