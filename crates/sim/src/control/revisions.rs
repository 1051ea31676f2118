//! ControllerRevisions: the stored templates of a StatefulSet or a DaemonSet, for rollbacks.

use serde_json::{Value, json};

use super::rollout::hash_of;
use super::{change, controller, create, owned, text};
use crate::state::Inner;

/// The ControllerRevisions of one StatefulSet or DaemonSet.
pub(super) struct Revisions {
    /// All revisions, the oldest first.
    pub(super) all: Vec<Value>,
    /// The ControllerRevision that stores the current template of the workload.
    pub(super) newest: Value,
}

/// Returns the Pod template that a revision stores.
pub(super) fn template(revision: &Value) -> Value {
    let mut template = revision["data"]["spec"]["template"].clone();
    if let Some(members) = template.as_object_mut() {
        members.remove("$patch");
    }
    template
}

fn number(revision: &Value) -> i64 {
    revision["revision"].as_i64().unwrap_or_default()
}

fn sorted(inner: &Inner, set: &Value) -> Vec<Value> {
    let (namespace, uid) = (text(&set["metadata"]["namespace"]), text(&set["metadata"]["uid"]));
    let mut all = owned(inner, "apps", "controllerrevisions", &namespace, &uid);
    all.sort_by_key(number);
    all
}

/// Stores the current template of a set as its newest revision, and removes the oldest revisions beyond the limit,
/// except those named in `used`. Returns the revisions; `None` if the template could not be stored.
pub(super) fn keep(inner: &Inner, set: &Value, used: &[String]) -> Option<Revisions> {
    let all = sorted(inner, set);
    let now = &set["spec"]["template"];
    let last = all.last().map(number).unwrap_or_default();
    match all.iter().find(|revision| template(revision) == *now) {
        Some(known) if number(known) == last => {}
        Some(known) => {
            let target = inner.target_of(known).ok()?;
            change(inner, &target, |revision| {
                if let Some(members) = revision.as_object_mut() {
                    members.insert("revision".to_owned(), json!(last + 1));
                }
            });
        }
        None => {
            let hash = hash_of(now);
            let mut template = now.clone();
            template.as_object_mut()?.insert("$patch".to_owned(), json!("replace"));
            let labels = &now["metadata"]["labels"];
            let mut labels = if labels.is_object() { labels.clone() } else { json!({}) };
            let label = if set["kind"] == "DaemonSet" {
                "controller-revision-hash"
            } else {
                "controller.kubernetes.io/hash"
            };
            labels.as_object_mut()?.insert(label.to_owned(), json!(hash));
            let metadata = &set["metadata"];
            create(
                inner,
                json!({
                    "apiVersion": "apps/v1", "kind": "ControllerRevision",
                    "metadata": {
                        "name": format!("{}-{hash}", text(&metadata["name"])), "namespace": metadata["namespace"], "labels": labels,
                        "ownerReferences": controller("apps/v1", &text(&set["kind"]), set),
                    },
                    "data": {"spec": {"template": template}}, "revision": last + 1,
                }),
            );
        }
    }
    let mut all = sorted(inner, set);
    let newest = all.last()?.clone();
    let limit = set["spec"]["revisionHistoryLimit"].as_u64().unwrap_or(10);
    let spare = all.len().saturating_sub(1).saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    let is_used = |revision: &Value| {
        revision["metadata"]["name"] == newest["metadata"]["name"]
            || used.iter().any(|name| revision["metadata"]["name"] == **name)
    };
    let old: Vec<String> = all
        .iter()
        .filter(|revision| !is_used(revision))
        .take(spare)
        .map(|one| text(&one["metadata"]["name"]))
        .collect();
    for name in &old {
        let namespace = text(&set["metadata"]["namespace"]);
        if let Some(target) = inner.target("apps", "controllerrevisions", &namespace, name) {
            inner.remove(&target);
        }
    }
    all.retain(|revision| !old.iter().any(|name| revision["metadata"]["name"] == **name));
    Some(Revisions { all, newest })
}
