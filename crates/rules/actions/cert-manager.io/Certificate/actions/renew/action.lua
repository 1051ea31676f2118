-- This condition makes cert-manager issue a certificate, as in `cmctl renew`.
if obj.status == nil then
  obj.status = {}
end
local conditions = {}
for _, condition in ipairs(obj.status.conditions or {}) do
  if condition.type ~= "Issuing" then
    table.insert(conditions, condition)
  end
end
table.insert(conditions, {
  type = "Issuing",
  status = "True",
  reason = "ManuallyTriggered",
  message = "Certificate re-issuance manually triggered",
  lastTransitionTime = os.date("!%Y-%m-%dT%H:%M:%SZ"),
  observedGeneration = obj.metadata.generation,
})
obj.status.conditions = conditions
return obj
