//! The form `FieldsV1` of a set of fields, as `metadata.managedFields` holds it.

use serde_json::{Map as JsonMap, Value};

use crate::path::PathElement;
use crate::set::FieldSet;

/// The name that marks a field which is in the set, and above others that are.
const SELF: &str = ".";

/// A set of fields that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A part of it is no map.
    #[error("the fields below '{0}' are not a map")]
    NotAMap(String),
    /// A name is no path element.
    #[error("'{0}' is not the name of a field, a key, a value or a place")]
    Malformed(String),
    /// Fields are nested too deeply.
    #[error("fields are nested deeper than {}", crate::MAX_DEPTH)]
    TooDeep,
}

impl FieldSet {
    /// Reads the form `FieldsV1`. Leaves out elements of a kind that a later version may have, as the API server does.
    ///
    /// # Errors
    /// [`FieldsError`] if it is malformed.
    pub fn from_fields_v1(fields: &Value) -> Result<FieldSet, FieldsError> {
        Ok(read(fields, "", 0)?.0)
    }

    /// Returns the form `FieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(self.write(false))
    }

    fn write(&self, is_member: bool) -> JsonMap<String, Value> {
        let mut fields = JsonMap::new();
        if is_member && !self.is_empty() {
            fields.insert(SELF.to_owned(), Value::Object(JsonMap::new()));
        }
        for (element, is_member, below) in self.nodes() {
            fields.insert(name_of(element), Value::Object(below.write(is_member)));
        }
        fields
    }
}

/// Reads fields; returns them, and true if the one above them is in the set, too.
fn read(fields: &Value, name: &str, depth: usize) -> Result<(FieldSet, bool), FieldsError> {
    if depth > crate::MAX_DEPTH {
        return Err(FieldsError::TooDeep);
    }
    let empty = JsonMap::new();
    let fields = match fields {
        Value::Object(fields) => fields,
        Value::Null => &empty,
        _ => return Err(FieldsError::NotAMap(name.to_owned())),
    };
    let (mut set, mut is_member) = (FieldSet::default(), false);
    for (name, below) in fields {
        if name == SELF {
            is_member = true;
        } else if let Some(element) = element_of(name)? {
            let (below, is_member) = read(below, name, depth + 1)?;
            set.add(element, is_member, below);
        }
    }
    let is_member = is_member || set.is_empty();
    Ok((set, is_member))
}

/// Returns the path element of a name; `None` for one of a kind that is not known.
fn element_of(name: &str) -> Result<Option<PathElement>, FieldsError> {
    let malformed = || FieldsError::Malformed(name.to_owned());
    let Some((kind, rest)) = name.split_once(':').filter(|(kind, _)| kind.len() == 1) else {
        return Err(malformed());
    };
    let json = || serde_json::from_str::<Value>(rest).map_err(|_| malformed());
    Ok(Some(match kind {
        "f" => PathElement::Field(rest.to_owned()),
        "v" => PathElement::Value(json()?),
        "i" => PathElement::Index(rest.parse().map_err(|_| malformed())?),
        "k" => match json()? {
            Value::Object(fields) => {
                let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
                fields.sort_by(|(name, _), (other, _)| name.cmp(other));
                PathElement::Key(fields)
            }
            _ => return Err(malformed()),
        },
        _ => return Ok(None),
    }))
}

fn name_of(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => format!("f:{name}"),
        PathElement::Key(fields) => {
            let fields: JsonMap<String, Value> = fields.iter().cloned().collect();
            format!("k:{}", Value::Object(fields))
        }
        PathElement::Value(value) => format!("v:{value}"),
        PathElement::Index(place) => format!("i:{place}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_read_and_written_alike() {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:finalizers": {".": {}, "v:\"a:b\"": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}, "f:ports": {
                "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}},
                "f:list": {"i:3": {}}},
        });
        let set = FieldSet::from_fields_v1(&fields).unwrap();
        assert_eq!(set.to_fields_v1(), fields);
        let paths: Vec<String> = set.paths().iter().map(|path| crate::PathText(path).to_string()).collect();
        assert_eq!(
            paths,
            [
                ".metadata.finalizers",
                r#".metadata.finalizers[="a:b"]"#,
                ".metadata.labels",
                ".metadata.labels.app",
                r#".spec.containers[name="web"]"#,
                r#".spec.containers[name="web"].image"#,
                r#".spec.containers[name="web"].ports[containerPort=80,protocol="TCP"]"#,
                r#".spec.containers[name="web"].ports[containerPort=80,protocol="TCP"].containerPort"#,
                ".spec.list[3]",
            ]
        );
    }

    #[test]
    fn malformed_fields_are_refused_and_unknown_ones_left_out() {
        let read = |fields: Value| FieldSet::from_fields_v1(&fields);
        assert_eq!(read(json!({"x:later": {"f:a": {}}})), Ok(FieldSet::default()));
        assert_eq!(read(json!({"f:a": null})).map(|set| set.len()), Ok(1));
        assert_eq!(read(json!({"f:a": 1})), Err(FieldsError::NotAMap("f:a".to_owned())));
        for name in ["", "f", "name", "ff:a", "v:{", "i:one", "k:[]", "k:{} {}"] {
            assert_eq!(read(json!({name: {}})), Err(FieldsError::Malformed(name.to_owned())));
        }
        let mut deep = json!({});
        (0..=crate::MAX_DEPTH).for_each(|_| deep = json!({"f:a": deep.take()}));
        assert_eq!(read(deep), Err(FieldsError::TooDeep));
    }
}
