//! Compares the objects of the manifests with those of a dump, without asking anybody.

use serde_json::Value;
use taffrail_apps::{Objects as _, Snapshot};
use taffrail_engine::Types;
use taffrail_object::{GroupKind, ObjectKey, Projection};
use taffrail_plan::diff::{DryRun, NoDryRun};
use taffrail_plan::manifests::KindScope;
use taffrail_status::{ClusterState as _, Presence};

use super::question::{ClusterDiff, Question};

/// The namespace of objects without one: a dump has no context.
const NAMESPACE: &str = "default";

/// Compares all objects of the manifests with those of a dump. An object that the dump does not tell of is an error.
pub(super) fn compare(snapshot: &Snapshot, question: &Question) -> ClusterDiff {
    let mut answer = ClusterDiff::new(snapshot.name().to_owned());
    for error in snapshot.errors() {
        answer.fail(error.scope.to_string(), error.reason.clone(), error.message.clone());
    }
    let scope_of = |kind: &GroupKind| scope_in(snapshot, kind);
    let Some(set) = answer.read(question, NAMESPACE, &scope_of) else { return answer };
    let types = Types::built_in();
    for object in &set.objects {
        let live = match live(snapshot, &object.key) {
            Ok(live) => live,
            Err(why) => {
                let scope = format!("{} {}", object.key.kind, object.key.path());
                answer.fail(scope, "NotObserved".to_owned(), why);
                continue;
            }
        };
        let row =
            question.row(&answer.cluster, object, live.as_ref(), &DryRun::NotRun(NoDryRun::Offline), &types);
        answer.rows.push(row);
    }
    answer
}

/// Returns the scope of a kind in the cluster of a dump; `None` if the cluster does not have the kind.
fn scope_in(snapshot: &Snapshot, kind: &GroupKind) -> Option<KindScope> {
    let GroupKind { group, kind } = kind;
    // A misspelt Secret must not count as a kind that nobody knows, whose values are shown.
    if !snapshot.has_kind(group, kind) {
        return None;
    }
    let is_namespaced = snapshot.is_namespaced(group, kind)?;
    Some(if is_namespaced { KindScope::Namespaced } else { KindScope::Cluster })
}

/// Returns the object of a dump; `None` if the cluster did not have it.
///
/// # Errors
/// The reason why it is not known, for people.
fn live(snapshot: &Snapshot, key: &ObjectKey) -> Result<Option<Value>, String> {
    match snapshot.get(key.as_ref()) {
        Presence::Present(found) if found.projection == Projection::Full => {
            // What is nested too deeply is Null, which no comparison takes for equal.
            Ok(Some(found.object.root().to_tree().unwrap_or(Value::Null)))
        }
        Presence::Present(_) => Err("the dump does not hold the values of this object".to_owned()),
        Presence::Absent => Ok(None),
        Presence::Unobserved(why) => Err(why.into_owned()),
    }
}
