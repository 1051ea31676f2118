//! The rows of `object`: objects as their API servers returned them, with their events.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use taffrail_apps::Freshness;
use taffrail_object::{ObjectKey, may_show_annotation};
use taffrail_status::Status;
use taffrail_status::assess::Event;

use crate::{List, ListItem};

/// The answer of `object`, with a row for each cluster and namespace that has the object.
pub type ObjectList = List<ObjectRow>;

impl ListItem for ObjectRow {
    const LIST: &'static str = "ObjectList";
}

/// An object in one cluster, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ObjectRow {
    /// Name of the cluster that holds the object.
    pub cluster: String,
    /// The name of the object.
    pub object: ObjectKey,
    /// The status of the object when it was last observed.
    pub health: Status,
    /// The status now: `health` if the observation is live, else Unknown.
    pub effective: Status,
    /// Always equal to `effective`.
    pub status: Status,
    /// The freshness of the observation of the object.
    pub freshness: Freshness,
    /// The message of the status, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The events about the object that occurred last, at most 100; the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<ObjectEvent>,
    /// True if `body` has the metadata alone: that of a Secret, whose values are never shown, or of an object of which
    /// no more is known while its cluster does not answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_metadata: bool,
    /// The object as the API server returned it.
    pub body: Value,
}

impl ObjectRow {
    /// Returns the part of a Secret that contains none of its values.
    pub(crate) fn without_values(secret: Value) -> Value {
        let Value::Object(mut secret) = secret else { return Value::Null };
        secret.retain(|key, _| matches!(&**key, "apiVersion" | "kind" | "metadata" | "type"));
        if let Some(metadata) = secret.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            match metadata.get_mut("annotations") {
                Some(Value::Object(annotations)) => annotations.retain(|name, _| may_show_annotation(name)),
                _ => drop(metadata.remove("annotations")),
            }
        }
        Value::Object(secret)
    }

    /// Removes `metadata.managedFields` from the body.
    pub fn hide_managed_fields(&mut self) {
        if let Some(metadata) = self.body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }
}

/// An event about an object, of any type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ObjectEvent {
    /// True for an event of type Warning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_warning: bool,
    /// The reason in one CamelCase word.
    pub reason: String,
    /// The message, for people.
    pub message: String,
    /// Number of times that the event occurred.
    pub count: i64,
    /// The time of the first occurrence; left out if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<Timestamp>,
    /// The time of the last occurrence; left out if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Timestamp>,
}

impl From<&Event<'_>> for ObjectEvent {
    fn from(event: &Event<'_>) -> ObjectEvent {
        ObjectEvent {
            is_warning: event.warning,
            reason: event.reason.to_string(),
            message: event.message.to_string(),
            count: event.count,
            first_seen: event.first,
            last_seen: event.last,
        }
    }
}
