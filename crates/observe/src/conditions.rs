//! Writes the conditions of a cluster into an object that stands for it in a management cluster.

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_api::conditions::{ClusterCondition, ConditionsWritten};
use taffrail_cluster::{ApplyRequest, Cluster, Discovery, ReadError, WriteError, chain};
use taffrail_object::json::{self, OwnedDocument};
use taffrail_object::{ApiResource, Object, ObjectKey, Projection};

use crate::error::is_refusal;

/// The field manager of the conditions that a hub writes, as in `metadata.managedFields`.
pub const CONDITIONS_FIELD_MANAGER: &str = "taffrail-hub";

/// Writes `conditions` into the status of an object, and nothing else of it, unless it has conditions of these types with
/// the same statuses and reasons. `now` is the time of a transition.
///
/// The write is a server-side apply without force, so that a list of conditions with one owner for each of its items
/// keeps those of others. A dry run before it shows if the list has: a list with one owner for all would become the hub's.
pub async fn write_conditions(
    cluster: &Cluster,
    discovery: &Discovery,
    object: &ObjectKey,
    conditions: &[ClusterCondition],
    now: Timestamp,
) -> ConditionsWritten {
    let Some(served) = discovery.kind(&object.group, &object.kind) else {
        return ConditionsWritten::Refused(format!("the server has no kind called {}", object.kind));
    };
    let target = Target { cluster, resource: &served.preferred(), object };
    target.write(conditions, now).await.unwrap_or_else(|failed| failed)
}

struct Target<'a> {
    cluster: &'a Cluster,
    resource: &'a ApiResource,
    object: &'a ObjectKey,
}

impl Target<'_> {
    async fn write(
        &self,
        conditions: &[ClusterCondition],
        now: Timestamp,
    ) -> Result<ConditionsWritten, ConditionsWritten> {
        let Target { cluster, resource, object } = self;
        let namespace = Some(&*object.namespace);
        let found =
            cluster.get(resource, namespace, &object.name, Projection::Full).await.map_err(of_read)?;
        let Some(found) = found.as_ref().and_then(parsed) else { return Ok(ConditionsWritten::Outdated) };
        if conditions.iter().all(|condition| has(&found, condition)) {
            return Ok(ConditionsWritten::Done);
        }
        let body = self.body(&found, conditions, now).to_string();
        let tried = self.apply(&body, true).await?;
        if !owns_only(&tried, conditions) {
            let reason = "its conditions are not a list whose items have owners of their own";
            return Ok(ConditionsWritten::Unsuited(reason.to_owned()));
        }
        let stored = self.apply(&body, false).await?;
        let is_kept = parsed(&stored).is_some_and(|it| conditions.iter().all(|each| has(&it, each)));
        match is_kept {
            true => Ok(ConditionsWritten::Done),
            false => Ok(ConditionsWritten::Unsuited("the API server stored other conditions".to_owned())),
        }
    }

    /// Returns what is applied to the object as it was `found`.
    fn body(&self, found: &Object<'_>, conditions: &[ClusterCondition], now: Timestamp) -> Value {
        let Target { resource, object, .. } = self;
        let conditions: Vec<Value> = conditions.iter().map(|it| to_value(it, found, now)).collect();
        let mut body = json!({
            "apiVersion": resource.api_version(),
            "kind": resource.kind,
            // No later object of the name is written.
            "metadata": { "name": object.name, "uid": found.text(&["metadata", "uid"]) },
            "status": { "conditions": conditions },
        });
        if resource.namespaced {
            body["metadata"]["namespace"] = json!(object.namespace);
        }
        body
    }

    async fn apply(&self, body: &str, dry_run: bool) -> Result<OwnedDocument, ConditionsWritten> {
        let request = ApplyRequest {
            resource: self.resource,
            namespace: Some(&self.object.namespace),
            name: &self.object.name,
            subresource: Some("status"),
            body: body.as_bytes(),
            manager: CONDITIONS_FIELD_MANAGER,
            force: false,
            dry_run,
            allow_secret: false,
        };
        self.cluster.apply(&request).await.map_err(of_write)
    }
}

fn of_read(error: ReadError) -> ConditionsWritten {
    match is_refusal(&error) {
        true => ConditionsWritten::Refused(chain(&error)),
        false => ConditionsWritten::Unanswered(chain(&error)),
    }
}

fn of_write(error: WriteError) -> ConditionsWritten {
    match error {
        WriteError::Conflict { .. } => ConditionsWritten::Outdated,
        // Others own the whole list, or conditions of these types.
        WriteError::FieldConflict { message, .. } => ConditionsWritten::Unsuited(message),
        WriteError::Uncertain(_) => ConditionsWritten::Unanswered(chain(&error)),
        WriteError::Refused(error) => of_read(error),
        error => ConditionsWritten::Refused(chain(&error)),
    }
}

fn parsed(document: &OwnedDocument) -> Option<Object<'_>> {
    Object::new(document.root()).ok()
}

/// Returns true if an object has a condition with the type, status and reason of `condition`.
fn has(object: &Object<'_>, condition: &ClusterCondition) -> bool {
    let found = object.condition(condition.condition_type);
    let is = |field: &str, text: &str| found.and_then(|it| it.get(field)).is_some_and(|it| it.is_str(text));
    is("status", condition.status.as_str()) && is("reason", condition.reason)
}

/// Returns a condition as the API conventions have it. Its time of transition is that of the object's own one while the
/// status stays.
fn to_value(condition: &ClusterCondition, object: &Object<'_>, now: Timestamp) -> Value {
    let status = condition.status.as_str();
    let before = object.condition(condition.condition_type);
    let before = before.filter(|it| it.get("status").is_some_and(|it| it.is_str(status)));
    let since = before.and_then(|it| it.get("lastTransitionTime")?.as_str());
    let since = since.filter(|since| since.parse::<Timestamp>().is_ok());
    // Kubernetes writes times in seconds.
    let since =
        since.map_or_else(|| now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), |since| since.into_owned());
    json!({
        "type": condition.condition_type, "status": status, "reason": condition.reason,
        "message": condition.message, "lastTransitionTime": since,
    })
}

/// Returns true if the hub owns nothing of the status of an object but `conditions`, each as an item.
fn owns_only(tried: &OwnedDocument, conditions: &[ClusterCondition]) -> bool {
    let Some(object) = parsed(tried) else { return false };
    let is_own = |entry: &json::Value<'_>| {
        let is = |field: &str, text: &str| entry.get(field).is_some_and(|it| it.is_str(text));
        is("manager", CONDITIONS_FIELD_MANAGER) && is("operation", "Apply")
    };
    let Some(entry) = object.managed_fields().find(is_own) else { return false };
    let items = only(only(entry.get("fieldsV1"), "f:status"), "f:conditions");
    let Some(items) = items.and_then(json::Value::members) else { return false };
    let types: Vec<String> =
        conditions.iter().map(|it| format!("k:{}", json!({ "type": it.condition_type }))).collect();
    let mut owned = 0;
    let is_ours = items.into_iter().all(|(key, _)| {
        owned += 1;
        types.iter().any(|own| *key == **own)
    });
    is_ours && owned == types.len()
}

/// Returns the only member of an object, if its key is `key`.
fn only<'a>(of: Option<json::Value<'a>>, key: &str) -> Option<json::Value<'a>> {
    let mut members = of?.members()?;
    let (found, value) = members.next()?;
    (*found == *key && members.next().is_none()).then_some(value)
}
