//! Assesses PersistentVolumeClaims, by their volumes, storage classes, Pods and snapshots, and VolumeAttachments.

use jiff::Timestamp;
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey};

use crate::assess::assessor::{Assessor, Evaluation, has_ended};
use crate::event::time;
use crate::verdict::Status;

/// The reason of a claim that is not bound until a Pod that uses it is scheduled to a node.
pub(super) const WAITS_FOR_CONSUMER: &str = "WaitForFirstConsumer";

pub(super) fn claim(case: &Assessor<'_>, claim: &Object<'_>, finding: &mut Evaluation) {
    if finding.is_current() || finding.is_stale() {
        return;
    }
    let created = time(claim.at(&["metadata", "creationTimestamp"]));
    let warning = case.warnings(claim, created).into_iter().next();
    if claim.text(&["status", "phase"]) == "Lost" {
        let mut text = format!("the claim has lost its volume {}", claim.text(&["spec", "volumeName"]));
        if let Some(event) = &warning {
            text = event.message.clone().into_owned();
        }
        finding.turn(Status::Failed, "Lost", text, "evidence/claim-lost");
        finding.since = warning.and_then(|event| event.first);
        return;
    }
    if let Some(event) = &warning {
        finding.say(&event.reason, &*event.message);
    }
    let volume = claim.text(&["spec", "volumeName"]);
    if !volume.is_empty() {
        let name = ObjectKey::new("", "PersistentVolume", "", &*volume);
        if let Some(object) = case.get(&name).present() {
            let phase = object.text(&["status", "phase"]);
            finding.fact(format!("PersistentVolume {volume} is in phase {phase}"));
        } else if case.is_missing(&name) {
            finding.lacks(&case.called(&name), &volume);
        } else if !finding.text.contains(&*volume) {
            let text = format!("{}; the claim waits for PersistentVolume {volume}", finding.text);
            finding.say("", text);
        }
        return;
    }
    match class(case, claim) {
        Class::WaitsForConsumer => waits_for_consumer(case, claim, finding, warning.is_some()),
        Class::Missing(name) => finding.lacks(&case.called(&name), &name.name),
        // The controller's event repeats what it read in the class.
        Class::Unknown
            if case.events(claim, created).iter().any(|event| event.reason == WAITS_FOR_CONSUMER) =>
        {
            waits_for_consumer(case, claim, finding, warning.is_some());
        }
        Class::BindsAtOnce | Class::Unknown => {}
    }
}

/// Sets a Current VolumeAttachment InProgress if it reports an attach error and is not attached.
pub(super) fn attachment(attachment: &Object<'_>, finding: &mut Evaluation) {
    let error = attachment.at(&["status", "attachError"]).filter(|error| !error.is_null());
    let is_attached = attachment.at(&["status", "attached"]).and_then(Value::as_bool) == Some(true);
    let Some(error) = error.filter(|_| finding.is_current() && !is_attached) else { return };
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
    let said = if message.trim().is_empty() { "the volume cannot be attached" } else { &message };
    finding.turn(Status::InProgress, "AttachError", said, "evidence/attachment");
    finding.since = time(error.get("time"));
}

/// The way in which the StorageClass of a claim binds volumes, as far as it is known.
enum Class {
    WaitsForConsumer,
    BindsAtOnce,
    Missing(ObjectKey),
    Unknown,
}

fn class(case: &Assessor<'_>, claim: &Object<'_>) -> Class {
    let annotations = claim.at(&["metadata", "annotations"]);
    let old = annotations.and_then(|all| all.get("volume.beta.kubernetes.io/storage-class"));
    let name = old.or_else(|| claim.at(&["spec", "storageClassName"])).and_then(Value::as_str);
    let class = match name.as_deref() {
        // Such a claim is bound to a volume created by hand.
        Some("") => return Class::BindsAtOnce,
        Some(name) => {
            let name = ObjectKey::new("storage.k8s.io", "StorageClass", "", name);
            match case.get(&name).present() {
                Some(class) => class,
                None if case.is_missing(&name) => return Class::Missing(name),
                None => return Class::Unknown,
            }
        }
        None => match default_class(case) {
            Some(class) => class,
            None => return Class::Unknown,
        },
    };
    if class.root().get("volumeBindingMode").is_some_and(|mode| mode.is_str("WaitForFirstConsumer")) {
        Class::WaitsForConsumer
    } else {
        Class::BindsAtOnce
    }
}

/// Returns the default StorageClass: the newest, if several are marked as default; `None` if none is.
fn default_class<'e>(case: &Assessor<'e>) -> Option<Object<'e>> {
    let classes = case.of_kind("storage.k8s.io", "StorageClass", None).into_iter();
    let is_default = |class: &Object<'_>| {
        let annotations = class.at(&["metadata", "annotations"]);
        annotations
            .and_then(|all| all.get("storageclass.kubernetes.io/is-default-class"))
            .is_some_and(|value| value.is_str("true"))
    };
    let created = |class: &Object<'_>| time(class.at(&["metadata", "creationTimestamp"]));
    classes.filter(is_default).max_by_key(created)
}

fn waits_for_consumer(case: &Assessor<'_>, claim: &Object<'_>, finding: &mut Evaluation, is_failing: bool) {
    let namespace = claim.namespace();
    let was_used = !claim.text(&["metadata", "annotations", "volume.kubernetes.io/selected-node"]).is_empty();
    if !was_used && !case.has_user(&namespace, &claim.name()) {
        if case.evidence.state().knows_users(&namespace) {
            let text = "the claim waits for the first Pod that uses it; there is none";
            finding.turn(Status::Current, "", text, "evidence/first-consumer");
        } else {
            finding.fact("the Pods that may use the claim were not observed");
        }
    } else if !is_failing && !was_used {
        finding.say(WAITS_FOR_CONSUMER, "the claim waits for a Pod that uses it to have a node");
        let users = case.users(&namespace, &claim.name());
        let waits = |user: &&Object<'_>| !has_ended(user) && user.text(&["spec", "nodeName"]).is_empty();
        let waiting = users.iter().filter(waits);
        // Neither provisioning nor the Pod's scheduling problem is a hard cause for the claim.
        let hard = finding.hard;
        let pods = waiting.filter_map(|user| case.examine(user)).map(|pod| Evaluation { hard: None, ..pod });
        finding.follow(pods.collect::<Vec<_>>());
        finding.hard = hard;
    }
}

/// Returns the evaluation of the worst Pod, of those with a node, whose use of the claim keeps the claim from being
/// deleted; `None` if there is none.
pub(super) fn user_in_the_way(case: &Assessor<'_>, claim: &Object<'_>) -> Option<Evaluation> {
    let users = case.users(&claim.namespace(), &claim.name()).into_iter();
    // The protection of claims considers only Pods with a node.
    let users = users.filter(|user| !user.text(&["spec", "nodeName"]).is_empty());
    let examined = users.filter_map(|user| case.examine(&user));
    examined.min_by_key(|user| (user.status(), user.since.unwrap_or(Timestamp::MAX), user.name.clone()))
}

/// Returns the evaluation of the oldest snapshot that is being taken of a claim, and the snapshot's error as `:
/// message` or an empty text; `None` if none is being taken.
pub(super) fn snapshot_in_the_way(case: &Assessor<'_>, claim: &Object<'_>) -> Option<(Evaluation, String)> {
    let snapshots = case.of_kind("snapshot.storage.k8s.io", "VolumeSnapshot", Some(&claim.namespace()));
    let is_taken = |snapshot: &&Object<'_>| {
        snapshot.text(&["spec", "source", "persistentVolumeClaimName"]) == claim.name()
            && snapshot.at(&["status", "readyToUse"]).and_then(Value::as_bool) != Some(true)
    };
    let complaint = |snapshot: &Object<'_>| match &*snapshot.text(&["status", "error", "message"]) {
        "" => String::new(),
        said => format!(": {said}"),
    };
    let created = |snapshot: &Object<'_>| time(snapshot.at(&["metadata", "creationTimestamp"]));
    let snapshot = snapshots.iter().filter(is_taken).min_by_key(|snapshot| created(snapshot))?;
    Some((case.examine(snapshot)?, complaint(snapshot)))
}
