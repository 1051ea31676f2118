//! Writes the standard conditions into an object.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use taffrail_object::{Object, ObjectError};

use crate::rules::{ObjectContext, Rules};
use crate::verdict::ComputeError;

/// The reason why [`augment`] cannot write conditions into an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AugmentError {
    /// The value is not a Kubernetes object.
    #[error("cannot add the condition: {0}")]
    Object(ObjectError),
    /// The status of the object cannot be computed.
    #[error("cannot add the condition: the status of the object cannot be computed")]
    Compute(#[source] ComputeError),
    /// `status` is not an object, or `status.conditions` is not an array; holds the name of that field.
    #[error("cannot add the condition: '{0}' should be an object (status) or an array (status.conditions)")]
    Section(&'static str),
    /// An item of `status.conditions` is not an object.
    #[error("cannot add the condition: an item of the object's status.conditions is not an object")]
    Condition,
    /// A field of a condition is missing or not a string; holds its name.
    #[error(
        "cannot add the condition: the field '{0}' of an item of status.conditions is missing or not a string"
    )]
    Field(&'static str),
}

/// Judges `object` and writes the resulting conditions into its `status.conditions`.
///
/// An existing condition of the same type is updated; its `lastTransitionTime` changes only with its status.
/// Conditions that no longer hold are left alone, as in kstatus.
///
/// # Errors
/// If the object cannot be judged, or its `status` or conditions do not have the expected structure. In the latter case
/// some of the conditions may have been written already.
pub fn augment(object: &mut Value, rules: &dyn Rules, now: Timestamp) -> Result<(), AugmentError> {
    let verdict = {
        let view = Object::new((&*object).into()).map_err(AugmentError::Object)?;
        rules.judge(&view, &ObjectContext::default(), now).map_err(AugmentError::Compute)?
    };
    // The API writes times in whole seconds.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();

    let root = object.as_object_mut().ok_or(AugmentError::Object(ObjectError::NotAnObject))?;
    let status = root.entry("status").or_insert_with(|| Value::Object(Map::new()));
    if status.is_null() {
        *status = Value::Object(Map::new());
    }
    let status = status.as_object_mut().ok_or(AugmentError::Section("status"))?;
    let conditions = status.entry("conditions").or_insert_with(|| Value::Array(Vec::new()));
    let conditions = conditions.as_array_mut().ok_or(AugmentError::Section("status.conditions"))?;

    for wanted in &verdict.conditions {
        let name = wanted.condition.as_str();
        let mut present = false;
        for item in conditions.iter_mut() {
            let condition = item.as_object_mut().ok_or(AugmentError::Condition)?;
            let kind = condition.get("type").and_then(Value::as_str).ok_or(AugmentError::Field("type"))?;
            if kind != name {
                continue;
            }
            let status =
                condition.get("status").and_then(Value::as_str).ok_or(AugmentError::Field("status"))?;
            if status != "True" {
                condition.insert("lastTransitionTime".to_owned(), json!(now));
            }
            condition.insert("status".to_owned(), json!("True"));
            condition.insert("lastUpdateTime".to_owned(), json!(now));
            condition.insert("reason".to_owned(), json!(wanted.reason));
            condition.insert("message".to_owned(), json!(wanted.message));
            present = true;
        }
        if !present {
            conditions.push(json!({
                "type": name,
                "status": "True",
                "reason": wanted.reason,
                "message": wanted.message,
                "lastUpdateTime": now,
                "lastTransitionTime": now,
            }));
        }
    }
    Ok(())
}
