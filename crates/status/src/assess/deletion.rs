//! Assesses objects that are being deleted: finds the objects that block the deletion.

use jiff::Timestamp;
use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::assess::assessor::{Assessor, Evaluation, HardCause};
use crate::assess::evidence::defined;
use crate::assess::workloads::is_terminating;
use crate::assess::{extension, pod, storage};
use crate::verdict::Status;

/// The finalizer of a PersistentVolumeClaim while a snapshot of it is taken.
const SNAPSHOT_PROTECTION: &str = "snapshot.storage.kubernetes.io/pvc-as-source-protection";

pub(super) fn examine(case: &Assessor<'_>, object: &Object<'_>, finding: &mut Evaluation) {
    let finalizers = finalizers(object);
    let since = finding.since;
    let complaint = case.complaint_since(object, since);
    if !finalizers.is_empty() {
        let complaint = complaint.map(|text| format!("; {text}")).unwrap_or_default();
        finding.say(
            "Finalizers",
            format!("the deletion waits for finalizers: {}{complaint}", finalizers.join(", ")),
        );
    } else if let Some(text) = complaint {
        finding.fact(text);
    }
    if (object.group(), object.kind()) == ("", "Pod") {
        say_why_it_lives(case, object, finding);
    }
    let protects = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    match (object.group(), object.kind()) {
        ("", "Namespace") => namespace(case, object, finding),
        ("", "Pod") => lost(case, object, finding),
        ("", "PersistentVolumeClaim") if protects("kubernetes.io/pvc-protection") => {
            if let Some(user) = storage::user_in_the_way(case, object) {
                finding.say("InUse", format!("Pod {} still uses the claim", user.name.name));
                finding.held_by(user, "still uses the claim");
            }
        }
        ("", "PersistentVolumeClaim") if protects(SNAPSHOT_PROTECTION) => {
            if let Some((snapshot, complaint)) = storage::snapshot_in_the_way(case, object) {
                let name = &snapshot.name.name;
                finding.say("InUse", format!("VolumeSnapshot {name} is still taken of the claim{complaint}"));
                finding.held_by(snapshot, "is still taken of the claim");
            }
        }
        ("", "PersistentVolume") if protects("kubernetes.io/pv-protection") => {
            let claims = case.references(object);
            if let Some(claim) = case.examine_named(&claims).into_iter().next() {
                finding.say("InUse", format!("claim {} is still bound to the volume", claim.name.name));
                finding.held_by(claim, "is still bound to the volume");
            }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let (group, kind) = defined(object);
            holders(case, finding, case.of_kind(&group, &kind, None));
        }
        (group, _) => {
            let mut objects = case.dependents(object);
            // References from other kinds do not block a deletion.
            if extension::is_custom(group) {
                objects.extend(case.named(&case.references(object)));
            }
            holders(case, finding, objects);
        }
    }
}

fn finalizers(object: &Object<'_>) -> Vec<String> {
    let list = object.at(&["metadata", "finalizers"]).and_then(Value::items);
    list.into_iter().flatten().filter_map(Value::as_str).map(|text| text.into_owned()).collect()
}

/// Appends to the message the kubelet's error that keeps a terminating Pod running, if a Warning event reports one and
/// the message lacks it; the event's reason becomes the Pod's.
fn say_why_it_lives(case: &Assessor<'_>, pod: &Object<'_>, finding: &mut Evaluation) {
    const STUCK: [&str; 4] =
        ["FailedKillPod", "FailedPreStopHook", "ExceededGracePeriod", "KillPodSandboxError"];

    let warnings = case.warnings(pod, finding.since);
    if let Some(event) = warnings.iter().find(|event| STUCK.contains(&&*event.reason))
        && !finding.text.contains(&*event.message)
    {
        let text = format!("{}; {}", finding.text, event.message);
        finding.say(&event.reason, text);
    }
}

/// Sets the reason and the message, and leads the cause chain to the node, if the Pod's node is lost: only the kubelet
/// can confirm that a Pod has ended.
fn lost(case: &Assessor<'_>, object: &Object<'_>, finding: &mut Evaluation) {
    let node = pod::node(case, object);
    if node.as_ref().is_some_and(|node| node.hard == Some(HardCause::NodeLost)) {
        finding.say("NodeLost", "the node of the Pod, which would confirm that the Pod has ended, is lost");
        finding.follow(node);
    }
}

/// Explains why a namespace keeps terminating: by the reason and message of the first of its controller's conditions
/// that is True, and by a terminating object that is still in it, see [`holders`].
fn namespace(case: &Assessor<'_>, object: &Object<'_>, finding: &mut Evaluation) {
    let is_true = |condition: &Value<'_>| condition.get("status").is_some_and(|status| status.is_str("True"));
    let said = [
        "NamespaceDeletionDiscoveryFailure",
        "NamespaceDeletionGroupVersionParsingFailure",
        "NamespaceDeletionContentFailure",
        "NamespaceFinalizersRemaining",
        "NamespaceContentRemaining",
    ];
    if let Some(condition) = said.into_iter().filter_map(|name| object.condition(name)).find(is_true) {
        let text = |key| condition.get(key).and_then(Value::as_str).unwrap_or_default();
        finding.say(&text("reason"), &*text("message"));
    }
    holders(case, finding, case.in_namespace(&object.name()));
}

/// Leads the cause chain to one of the terminating `objects`: first those that have finalizers or wait for others, then
/// the one terminating for longest.
fn holders(case: &Assessor<'_>, finding: &mut Evaluation, objects: Vec<Object<'_>>) {
    let terminating = objects.iter().filter(|object| is_terminating(object));
    let examined = terminating.filter_map(|object| {
        let waits = !finalizers(object).is_empty();
        Some((waits, case.examine(object)?))
    });
    let rank = |(waits, holder): &(bool, Evaluation)| {
        (!*waits && holder.below.is_empty(), holder.since.unwrap_or(Timestamp::MAX), holder.name.clone())
    };
    let terminating = examined.filter(|(_, holder)| holder.status() == Status::Terminating);
    if let Some((_, holder)) = terminating.min_by_key(rank) {
        finding.follow([Evaluation { hard: None, ..holder }]);
    }
}
