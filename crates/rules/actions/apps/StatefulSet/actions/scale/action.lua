local replicas = tonumber(actionParams["replicas"])
if replicas == nil or replicas < 0 or replicas ~= math.floor(replicas) then
  error("replicas must be a whole number, 0 or more", 0)
end
obj.spec.replicas = replicas
return obj
