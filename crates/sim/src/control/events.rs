//! Events, as the components of a cluster write them.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{create, soon};
use crate::clock::stamp;
use crate::state::Inner;
use crate::task::Task;

/// The time for which kube-apiserver keeps an Event after its last change (`--event-ttl`).
const EVENT_TTL: Duration = Duration::from_secs(3600);

/// Writes a Normal Event about the object `about`, from the component `by`. If an Event about this object with the same
/// reason and message exists, increases its count instead.
pub(super) fn tell(inner: &Inner, about: &Value, by: &str, reason: &str, message: &str) {
    record(inner, about, false, by, reason, message);
}

/// Writes a Warning Event about the object `about`, from the component `by`, like [`tell`].
pub(super) fn warn(inner: &Inner, about: &Value, by: &str, reason: &str, message: &str) {
    record(inner, about, true, by, reason, message);
}

pub(super) fn record(inner: &Inner, about: &Value, warning: bool, by: &str, reason: &str, message: &str) {
    let metadata = &about["metadata"];
    let (namespace, name) = (super::text(&metadata["namespace"]), super::text(&metadata["name"]));
    let now = stamp(inner.fleet.clock.now());
    // The name is derived from the content, so that the same news finds its Event.
    let uid = super::text(&metadata["uid"]);
    let sum = message.bytes().chain(reason.bytes()).chain(uid.bytes());
    let sum = sum
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let event = format!("{name}.{sum:016x}");
    let known = inner.target("", "events", &namespace, &event).and_then(|target| inner.tree(&target));
    let count = known.as_ref().and_then(|event| event["count"].as_i64()).unwrap_or_default() + 1;
    let first = known.map_or_else(|| json!(now), |event| event["firstTimestamp"].clone());
    create(
        inner,
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": event, "namespace": namespace},
            "involvedObject": {
                "apiVersion": about["apiVersion"], "kind": about["kind"], "name": name, "namespace": namespace,
                "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
            },
            "type": if warning { "Warning" } else { "Normal" }, "reason": reason, "message": message,
            "source": {"component": by}, "reportingComponent": by, "reportingInstance": "",
            "firstTimestamp": first, "lastTimestamp": now, "eventTime": null, "count": count,
        }),
    );
    soon(inner, Task::Event(namespace, event), EVENT_TTL);
}

/// Removes an Event that has not changed for [`EVENT_TTL`]; if it has, plans this for later.
pub(super) fn expire(inner: &Arc<Inner>, namespace: &str, name: &str) {
    let Some(target) = inner.target("", "events", namespace, name) else { return };
    let Some(event) = inner.tree(&target) else { return };
    let last = event["lastTimestamp"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let age = last.map(|last| inner.fleet.clock.now().duration_since(last));
    let age = age.and_then(|age| Duration::try_from(age).ok()).unwrap_or(EVENT_TTL);
    match EVENT_TTL.saturating_sub(age) {
        Duration::ZERO => inner.remove(&target),
        left => soon(inner, Task::Event(namespace.to_owned(), name.to_owned()), left),
    }
}
