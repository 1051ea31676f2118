//! Config Sync's own objects: RootSync and RepoSync.
//!
//! A stuck reconciler reports `Stalled=True`, but keeps `Reconciling=True` before it in the list. Here `Stalled`
//! decides, wherever it stands.

use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::verdict::Verdict;

const RULE: &str = "builtin/configsync.gke.io";

/// Returns the verdict Failed for a RootSync or RepoSync with `Stalled=True`. Returns `None`, so that kstatus' generic
/// rules decide, for any other object, for one that is being deleted, and for one whose newest generation was not
/// observed.
pub(crate) fn judge(object: &Object<'_>) -> Option<Verdict> {
    let is_own = object.group() == "configsync.gke.io" && matches!(object.kind(), "RootSync" | "RepoSync");
    if !is_own || !object.text(&["metadata", "deletionTimestamp"]).is_empty() {
        return None;
    }
    let number = |path: &[&str]| object.at(path).and_then(Value::as_i64);
    let (generation, observed) =
        (number(&["metadata", "generation"]), number(&["status", "observedGeneration"]));
    if generation.is_some() && observed.is_some() && generation != observed {
        return None;
    }
    let stalled = object.condition("Stalled")?;
    let text = |key| stalled.get(key).and_then(Value::as_str).unwrap_or_default().into_owned();
    (text("status") == "True").then(|| Verdict::failed(text("reason"), text("message"), RULE))
}
