obj.spec.count = tonumber(actionParams.count) or error("no number: " .. actionParams.count)
return obj
