//! Items of lists, and the path elements by which they are known.

use serde_json::{Map as JsonMap, Value};

use crate::path::PathElement;
use crate::schema::{ListType, Relationship, Schema};

/// Returns the items of a list; `None` for null and for other values.
pub(crate) fn list_of(value: Option<&Value>) -> Option<&Vec<Value>> {
    value.and_then(Value::as_array)
}

/// Returns the fields of a map; `None` for null and for other values.
pub(crate) fn map_of(value: Option<&Value>) -> Option<&JsonMap<String, Value>> {
    value.and_then(Value::as_object)
}

/// Returns the path element of an item of an associative list.
///
/// # Errors
/// If the item has none; the reason, in the words of the API server's library.
pub(crate) fn element_of(
    schema: &Schema,
    list: &ListType,
    relationship: Option<Relationship>,
    item: &Value,
) -> Result<PathElement, String> {
    if relationship != Some(Relationship::Associative) {
        return Err("invalid indexing of non-associative list".to_owned());
    }
    if list.keys.is_empty() {
        return match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null".to_owned())
            }
            scalar => Ok(PathElement::Value(scalar.clone())),
        };
    }
    let fields = match item {
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        Value::Object(fields) => fields,
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut key = Vec::with_capacity(list.keys.len());
    for name in &list.keys {
        let value = match fields.get(name) {
            Some(value) => Some(value),
            None => default_of(schema, list, name)?,
        };
        // An item without a key is another one than any with it.
        key.extend(value.map(|value| (name.clone(), value.clone())));
    }
    if key.is_empty() {
        return Err(format!(
            "associative list with keys has an element that omits all key fields {:?} (and doesn't have default values for any key fields)",
            list.keys
        ));
    }
    key.sort_by(|(name, _), (other, _)| name.cmp(other));
    Ok(PathElement::Key(key))
}

/// Returns the path element of an item, or one that all items share which have none: what is left of an item whose key was
/// removed is still in its list.
pub(crate) fn element_or_blank(
    schema: &Schema,
    list: &ListType,
    relationship: Option<Relationship>,
    item: &Value,
) -> PathElement {
    // No set has null.
    element_of(schema, list, relationship, item).unwrap_or(PathElement::Value(Value::Null))
}

fn default_of<'s>(schema: &'s Schema, list: &'s ListType, name: &str) -> Result<Option<&'s Value>, String> {
    let cannot = |why| Err(format!("couldn't find default value for {name}: {why}"));
    let Some(atom) = schema.resolve(&list.element) else {
        return cannot("invalid elementType for list");
    };
    let Some((map, _)) = atom.map else {
        return cannot("associative list may not have non-map types");
    };
    Ok(map.fields.get(name).and_then(|field| field.default.as_ref()))
}
