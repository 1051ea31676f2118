-- https://cert-manager.io/docs/reference/cmctl/#renew
local issuing = false
for _, condition in ipairs((obj.status or {}).conditions or {}) do
  if condition.type == "Issuing" and condition.status == "True" then
    issuing = true
  end
end
return {
  renew = { disabled = issuing, displayName = "Have it issued anew now", iconClass = "fa fa-redo" },
}
