//! Assesses an object with evidence: the objects behind it, and events.
//!
//! [`Rules`](crate::Rules) judge an object alone. [`assess`] starts there and adds evidence: objects that the object
//! owns (by controller owner reference), objects that it names (see [`EDGES`]), and events. Evidence changes a status
//! only in these cases:
//!
//! * an object in progress, whose controller has observed its newest generation, has failed if there is a *hard cause*
//!   behind it: an image that cannot be pulled, a container that crashes, a Pod that fits no node, a refusal by quota or
//!   admission, …;
//! * a few kinds are worse than they report: a bare Pod that failed, a LoadBalancer without an address, a custom
//!   resource without rules whose own workload fails, …;
//! * a few are better: a claim that waits for its first consumer, a suspended Job, a paused Deployment.
//!
//! The [`Assessment`] of an object that is not well contains the chain from it to the deepest object that is not well,
//! and that object's own message.

mod admission;
mod assessor;
mod autoscaling;
mod batch;
mod changes;
mod deletion;
mod disruption;
mod edges;
mod evidence;
mod extension;
mod flux;
mod network;
mod node;
mod pod;
mod refusals;
mod rollout;
mod since;
mod storage;
mod workloads;

use std::borrow::Cow;
use std::sync::Arc;

use assessor::{Assessor, Evaluation};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey};

use crate::cluster_state::Presence;
use crate::rollup::{AsSubject, Subject};
use crate::rules::ActiveRules;
use crate::verdict::{Status, Verdict};

pub use crate::costs::{Costs, ExcessSteps, Patience, UNJUDGED, Unjudged, elapsed};
pub use crate::event::{Event, Regarding};
pub use crate::options::{Budgets, Options};
pub use batch::unproven_run;
pub use changes::{Change, ChangeKind, History, last_changes, nearest};
pub use edges::{By, EDGES, Edge, Reference, references};
pub use evidence::{Dump, Evidence, claims, defined, evidence_projection, is_evidence, owners};
pub use extension::may_own_workload;
pub use since::{reads_spec_written, spec_written};

/// The ways in which an object may be switched off on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// True if `spec.suspend` is set, or the rules of its kind say that it is suspended.
    pub suspended: bool,
    /// True if `spec.paused` is set.
    pub paused: bool,
}

impl Flags {
    fn of(object: &Object<'_>) -> Flags {
        let is_set = |key| object.at(&["spec", key]).and_then(Value::as_bool) == Some(true);
        Flags { suspended: is_set("suspend"), paused: is_set("paused") }
    }
}

/// A step of a cause chain: one object on the way from a symptom to its cause.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CauseStep {
    /// The object.
    pub object: ObjectKey,
    /// The object's status; `Current` for an object that is well, but blocks another.
    pub status: Status,
    /// The reason of the status, one word in CamelCase; may be empty.
    pub reason: String,
    /// The object's own message.
    pub message: String,
    /// The time since when the object is not well; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The rule that decided the status.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// Further facts about the object: containers, events, missing objects, a budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
}

/// The status of an object judged with evidence: verdict, start time and cause chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// The object.
    pub object: ObjectKey,
    /// The object's verdict, with the object's own message.
    pub verdict: Verdict,
    /// The time since when the object is not well: as it reports itself, else that of the first object behind it that
    /// is not well, else the start of its rollout, else its creation; `None` if it is Current or the time is unknown.
    pub since: Option<Timestamp>,
    /// The ways in which the object is switched off on purpose.
    pub flags: Flags,
    /// The chain from the object to the deepest one that is not well, or to one that is well and blocks it; empty if
    /// the object is Current.
    pub chain: Vec<Arc<CauseStep>>,
    /// The cause's own message; preceded by the object's message where that names what it waits for, unless one
    /// contains the other.
    pub message: String,
}

impl AsSubject for Assessment {
    fn subject(&self) -> Subject<'_> {
        Subject { status: self.verdict.status, since: self.since, key: self.object.as_ref() }
    }
}

impl Assessment {
    fn of_nothing(object: &ObjectKey, verdict: Verdict, reason: &str) -> Assessment {
        let message = verdict.message.clone().into_owned();
        let link = CauseStep {
            object: object.clone(),
            status: verdict.status,
            reason: reason.to_owned(),
            message: message.clone(),
            since: None,
            rule: verdict.rule.clone().into_owned(),
            facts: Vec::new(),
        };
        let (object, flags, chain) = (object.clone(), Flags::default(), vec![Arc::new(link)]);
        Assessment { object, verdict, since: None, flags, chain, message }
    }
}

/// Judges an object at the time `now`, and refines the verdict by evidence. Returns it with the time since when the
/// object is not well, and the chain of objects down to the cause.
///
/// ```
/// use taffrail_status::assess::{Dump, assess};
/// use taffrail_status::{ActiveRules, Object, Status};
///
/// let pod = serde_json::json!({
///     "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"},
///     "status": {"phase": "Pending", "containerStatuses": [
///         {"name": "app", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}}
///     ]}
/// });
/// let pod = Object::new((&pod).into())?;
/// let now = jiff::Timestamp::UNIX_EPOCH;
/// let assessment = assess(&pod, &Dump::new([pod.clone()]), &ActiveRules::default(), now);
/// assert_eq!(assessment.verdict.status, Status::Failed);
/// assert_eq!(assessment.message, "Back-off pulling image");
/// # Ok::<(), taffrail_status::ObjectError>(())
/// ```
pub fn assess<'e>(
    object: &Object<'_>,
    evidence: impl Into<Evidence<'e>>,
    rules: &ActiveRules<'_>,
    now: Timestamp,
) -> Assessment {
    assess_for(None, object, evidence.into(), rules, now)
}

/// Assesses an object like [`assess`]. `claimant` is the namespace charged for the cost because its apps list the
/// object without the object's agreement; `None` charges the object's own. If a limit of the charged namespace in
/// [`Costs`], or [`Options::patience`], is exceeded, the returned status is Unknown.
pub fn assess_for(
    claimant: Option<&str>,
    object: &Object<'_>,
    evidence: Evidence<'_>,
    rules: &ActiveRules<'_>,
    now: Timestamp,
) -> Assessment {
    let case = Assessor::new(evidence, rules, now).of(object, claimant);
    let finding = case.examine(object);
    if let Some(why) = case.bill.over() {
        let verdict = Verdict::new(Status::Unknown, why, UNJUDGED);
        return Assessment::of_nothing(&ObjectKey::of(object), verdict, "NotJudged");
    }
    finding.unwrap_or_else(|| case.own_evaluation(object)).into_assessment(Flags::of(object))
}

/// Assesses a dependent like [`assess`], except that a Pod in the phase Failed is Failed, for display beside its owner.
///
/// To its owner such a Pod may be irrelevant, and [`assess`] calls it Current because the phase is final; in a list its
/// failure must show.
pub fn assess_dependent<'e>(
    object: &Object<'_>,
    evidence: impl Into<Evidence<'e>>,
    rules: &ActiveRules<'_>,
    now: Timestamp,
) -> Assessment {
    let evidence = evidence.into();
    let assessment = assess(object, evidence, rules, now);
    let is_pod = (object.group(), object.kind()) == ("", "Pod");
    if is_pod && assessment.verdict.status == Status::Current && pod::is_in_phase(object, "Failed") {
        return pod::failed(&Assessor::new(evidence, rules, now), object).into_assessment(Flags::of(object));
    }
    assessment
}

/// Assesses the object with a key: returns NotFound if it is absent, Unknown if it was not read, or only its metadata
/// where that does not suffice.
pub fn assess_named<'e>(
    name: &ObjectKey,
    evidence: impl Into<Evidence<'e>>,
    rules: &ActiveRules<'_>,
    now: Timestamp,
) -> Assessment {
    let evidence = evidence.into();
    match evidence.get(name.as_ref()) {
        Presence::Present(object) => assess(&object, evidence, rules, now),
        Presence::Absent => {
            let verdict = Verdict::new(Status::NotFound, "Resource not found", "absent");
            Assessment::of_nothing(name, verdict, "NotFound")
        }
        Presence::Unobserved(why) => {
            let verdict = Verdict::new(Status::Unknown, Cow::Owned(why.into_owned()), "unobserved");
            Assessment::of_nothing(name, verdict, "Unobserved")
        }
    }
}

/// Refines `finding` by evidence: calls the rules for deletions if the object is terminating, else those of its kind.
fn examine(case: &Assessor<'_>, object: &Object<'_>, finding: &mut Evaluation) {
    if finding.status() == Status::Terminating {
        return deletion::examine(case, object, finding);
    }
    match (object.group(), object.kind()) {
        ("", "Pod") => pod::examine(case, object, finding),
        ("", "Node") => node::examine(object, finding),
        ("", "Service") => network::service(case, object, finding),
        ("", "PersistentVolumeClaim") => storage::claim(case, object, finding),
        ("storage.k8s.io", "VolumeAttachment") => storage::attachment(object, finding),
        ("networking.k8s.io" | "extensions", "Ingress") => network::ingress(case, object, finding),
        ("policy", "PodDisruptionBudget") => disruption::budget(object, finding),
        ("certificates.k8s.io", "CertificateSigningRequest") => admission::signing_request(object, finding),
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding",
        ) => admission::binding(case, object, finding),
        ("argoproj.io", "Rollout") => rollout::examine(case, object, finding),
        ("apps" | "extensions", "Deployment") => workloads::deployment(case, object, finding),
        ("apps" | "extensions", "ReplicaSet") => workloads::replica_set(case, object, finding),
        ("apps", "StatefulSet") => workloads::stateful_set(case, object, finding),
        ("apps" | "extensions", "DaemonSet") => workloads::daemon_set(case, object, finding),
        ("batch", "Job") => batch::job(case, object, finding),
        ("batch", "CronJob") => batch::cron_job(case, object, finding),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::examine(case, object, finding),
        ("apiregistration.k8s.io", "APIService") => network::api_service(case, object, finding),
        (group, _) if flux::is_flux(group) => flux::examine(case, object, finding),
        _ => extension::examine(case, object, finding),
    }
}
