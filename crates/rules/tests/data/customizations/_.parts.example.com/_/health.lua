if obj.status ~= nil and obj.status.fits then
  return { status = "Healthy", message = obj.kind .. " fits" }
end
return { status = "Missing" }
