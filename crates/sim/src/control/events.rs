//! Events, as the components of a cluster write them.

use serde_json::{Value, json};

use super::create;
use crate::clock::stamp;
use crate::cluster::Inner;

/// What happened.
pub(super) struct Told<'a> {
    pub(super) warning: bool,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    /// Which component says it.
    pub(super) by: &'a str,
}

/// Writes an Event about an object. One that was written already is counted up.
pub(super) fn tell(inner: &Inner, about: &Value, told: &Told<'_>) {
    let metadata = &about["metadata"];
    let (namespace, name) = (super::text(&metadata["namespace"]), super::text(&metadata["name"]));
    let now = stamp(inner.fleet.clock.now());
    // The name says what it is about, so that the same news finds its Event again.
    let uid = super::text(&metadata["uid"]);
    let sum = told.message.bytes().chain(told.reason.bytes()).chain(uid.bytes());
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
            "type": if told.warning { "Warning" } else { "Normal" }, "reason": told.reason, "message": told.message,
            "source": {"component": told.by}, "reportingComponent": told.by, "reportingInstance": "",
            "firstTimestamp": first, "lastTimestamp": now, "eventTime": null, "count": count,
        }),
    );
}
