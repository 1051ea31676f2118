local shut = obj.spec.open ~= true
return {
  open = { disabled = not shut, iconClass = "fa fa-door-open" },
  paint = { displayName = "Paint", params = { { name = "colour", default = "red" } } },
  count = {},
  duplicate = {},
}
