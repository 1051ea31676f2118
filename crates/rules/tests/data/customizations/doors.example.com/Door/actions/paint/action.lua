local colour = actionParams["colour"]
if colour == nil then
  error("which colour?", 0)
end
obj.spec.colour = colour
return { { operation = "patch", resource = obj } }
