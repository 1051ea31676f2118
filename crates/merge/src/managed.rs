//! The managers of an object as `metadata.managedFields` holds them.

use jiff::Timestamp;
use serde_json::{Map as JsonMap, Value, json};

use crate::fields_v1::FieldsError;
use crate::set::FieldSet;
use crate::update::{ManagedFields, Managers};

/// The maximum number of entries of one object that are read; the API server keeps at most ten of updates, and one of each
/// applier.
const MAX_ENTRIES: usize = 1_000;

/// An entry of `metadata.managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedEntry {
    /// The name of the manager.
    pub manager: String,
    /// True if it applied the fields, false if it updated the object.
    pub is_applied: bool,
    /// The `apiVersion` at which it wrote them.
    pub version: String,
    /// The subresource by which it wrote them, such as `status`; empty for the object itself.
    pub subresource: String,
    /// The time at which its fields changed last, by the clock of the API server.
    pub time: Option<Timestamp>,
    /// The fields.
    pub fields: FieldSet,
}

/// Entries of managers that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManagersError {
    /// They are no list of maps.
    #[error("metadata.managedFields is not a list of managers")]
    Malformed,
    /// There are too many.
    #[error("metadata.managedFields has more than {MAX_ENTRIES} managers")]
    TooMany,
    /// The fields of one cannot be read.
    #[error("the fields of the manager '{manager}' cannot be read")]
    Fields {
        /// The name of the manager.
        manager: String,
        /// The reason.
        source: FieldsError,
    },
}

impl ManagedEntry {
    /// Reads the managers of an object; none if nobody is known to own a field.
    ///
    /// # Errors
    /// [`ManagersError`] if they are malformed.
    pub fn read_all(object: &Value) -> Result<Vec<ManagedEntry>, ManagersError> {
        let entries = match object.pointer("/metadata/managedFields") {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(ManagersError::Malformed),
        };
        if entries.len() > MAX_ENTRIES {
            return Err(ManagersError::TooMany);
        }
        entries.iter().map(ManagedEntry::read).collect()
    }

    fn read(entry: &Value) -> Result<ManagedEntry, ManagersError> {
        let entry = entry.as_object().ok_or(ManagersError::Malformed)?;
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let manager = text("manager");
        let fields = match entry.get("fieldsV1") {
            None => FieldSet::default(),
            Some(fields) => FieldSet::from_fields_v1(fields)
                .map_err(|source| ManagersError::Fields { manager: manager.clone(), source })?,
        };
        Ok(ManagedEntry {
            is_applied: text("operation") == "Apply",
            version: text("apiVersion"),
            subresource: text("subresource"),
            time: text("time").parse().ok(),
            manager,
            fields,
        })
    }

    /// Returns the identifier under which the API server keeps the fields: an applier is one whatever the `apiVersion` is, and
    /// each subresource counts for itself.
    pub fn id(&self) -> String {
        let ManagedEntry { manager, is_applied, version, subresource, .. } = self;
        let version = if *is_applied { "" } else { version };
        json!([manager, if *is_applied { "Apply" } else { "Update" }, version, subresource]).to_string()
    }

    /// Returns the entry as `metadata.managedFields` has it.
    pub fn to_value(&self) -> Value {
        let ManagedEntry { manager, is_applied, version, subresource, time, fields } = self;
        let mut entry = JsonMap::new();
        entry.insert("manager".to_owned(), json!(manager));
        entry.insert("operation".to_owned(), json!(if *is_applied { "Apply" } else { "Update" }));
        entry.insert("apiVersion".to_owned(), json!(version));
        // As the API server writes times.
        let time = time.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        entry.extend(time.map(|time| ("time".to_owned(), json!(time))));
        entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
        entry.insert("fieldsV1".to_owned(), fields.to_fields_v1());
        if !subresource.is_empty() {
            entry.insert("subresource".to_owned(), json!(subresource));
        }
        Value::Object(entry)
    }

    /// Returns the managers by their identifiers.
    pub fn managers(entries: &[ManagedEntry]) -> Managers {
        let managers = entries.iter().map(|entry| {
            let ManagedEntry { is_applied, version, fields, .. } = entry.clone();
            (entry.id(), ManagedFields { fields, version, is_applied })
        });
        managers.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        json!({"metadata": {"name": "web", "managedFields": [
            {"manager": "kustomize-controller", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-03-01T12:00:00Z",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "apps/v1",
             "time": "2026-03-01T12:01:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:replicas": {}}},
             "subresource": "status"},
        ]}})
    }

    #[test]
    fn managers_are_read_and_written_alike() {
        let object = object();
        let entries = ManagedEntry::read_all(&object).unwrap();
        let written: Vec<Value> = entries.iter().map(ManagedEntry::to_value).collect();
        assert_eq!(json!(written), object["metadata"]["managedFields"]);
        let managers = ManagedEntry::managers(&entries);
        let ids: Vec<&String> = managers.keys().collect();
        assert_eq!(
            ids,
            [
                r#"["kube-controller-manager","Update","apps/v1","status"]"#,
                r#"["kustomize-controller","Apply","",""]"#
            ]
        );
        assert_eq!(ManagedEntry::read_all(&json!({})), Ok(Vec::new()));
    }

    #[test]
    fn malformed_managers_are_refused() {
        let read =
            |managers: Value| ManagedEntry::read_all(&json!({"metadata": {"managedFields": managers}}));
        assert_eq!(read(json!("none")), Err(ManagersError::Malformed));
        assert_eq!(read(json!([1])), Err(ManagersError::Malformed));
        assert_eq!(read(json!(vec![json!({}); MAX_ENTRIES + 1])), Err(ManagersError::TooMany));
        let refused = read(json!([{"manager": "ann", "fieldsV1": {"spec": {}}}])).unwrap_err();
        assert_eq!(refused.to_string(), "the fields of the manager 'ann' cannot be read");
    }
}
