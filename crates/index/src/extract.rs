//! The extract of an object: the fields that evidence reads, kept instead of the body.
//!
//! Of an object whose status no evidence changes, evidence about other objects reads hardly any field: a Pod's phase
//! and node, a ReplicaSet's counts. Many objects share such an extract. For all other objects, the extract has the
//! fields that [`assess`](taffrail_status::assess) reads and no others: no environment, no command line, no data.

use std::collections::HashMap;

use taffrail_object::Object;
use taffrail_object::json::{Kind, Value, write_string};
use taffrail_status::assess::{By, EDGES, reads_spec_written, spec_written};
use taffrail_status::{MAX_MESSAGE, Verdict, cut};

use super::record::Uid;

/// Paths kept of every object whose status evidence may change.
const OF_ANY: &[&str] = &[
    "spec.suspend",
    "spec.paused",
    "status.conditions[].type",
    "status.conditions[].status",
    "status.conditions[].reason",
    "status.conditions[].message",
    "status.conditions[].lastTransitionTime",
    "status.conditions[].observedGeneration",
];

/// Further paths kept of objects whose status evidence may change, by group and kind. `[]` stands for each item of a
/// list, `{}` for `initContainerStatuses` and `containerStatuses`; a path that ends in `!` is kept even if its value is
/// empty.
const OF_KIND: &[(&str, &str, &[&str])] = &[
    (
        "",
        "Pod",
        &[
            "status.phase",
            "status.reason",
            "status.message",
            "spec.volumes[].name",
            "spec.volumes[].ephemeral!",
            "spec.schedulingGates[].name",
            "spec.priority",
            "status.nominatedNodeName",
            "status.{}[].name",
            "status.{}[].ready",
            "status.{}[].restartCount",
            "status.{}[].state.waiting.reason",
            "status.{}[].state.waiting.message",
            "status.{}[].state.running!",
            "status.{}[].state.terminated!",
            "status.{}[].state.terminated.exitCode",
            "status.{}[].state.terminated.reason",
            "status.{}[].state.terminated.message",
            "status.{}[].state.terminated.startedAt",
            "status.{}[].state.terminated.finishedAt",
            "status.{}[].lastState.terminated!",
            "status.{}[].lastState.terminated.exitCode",
            "status.{}[].lastState.terminated.reason",
            "status.{}[].lastState.terminated.message",
            "status.{}[].lastState.terminated.startedAt",
            "status.{}[].lastState.terminated.finishedAt",
        ],
    ),
    ("", "Node", &["spec.taints[].key"]),
    (
        "",
        "Service",
        &["spec.type", "status.loadBalancer.ingress[].ip", "status.loadBalancer.ingress[].hostname"],
    ),
    ("", "PersistentVolumeClaim", &["status.phase"]),
    ("", "PersistentVolume", &["status.phase"]),
    ("storage.k8s.io", "StorageClass", &["volumeBindingMode"]),
    ("snapshot.storage.k8s.io", "VolumeSnapshot", &["status.readyToUse", "status.error.message"]),
    ("storage.k8s.io", "VolumeAttachment", ATTACHMENT),
    ("networking.k8s.io", "Ingress", ADDRESSES),
    ("extensions", "Ingress", ADDRESSES),
    ("certificates.k8s.io", "CertificateSigningRequest", &["status.conditions[].lastUpdateTime"]),
    ("policy", "PodDisruptionBudget", BUDGET),
    ("argoproj.io", "Rollout", ROLLOUT),
    ("apps", "Deployment", DEPLOYMENT),
    ("extensions", "Deployment", DEPLOYMENT),
    ("apps", "ReplicaSet", REPLICA_SET),
    ("extensions", "ReplicaSet", REPLICA_SET),
    (
        "apps",
        "StatefulSet",
        &[
            "spec.replicas",
            "spec.updateStrategy.type",
            "spec.volumeClaimTemplates[].metadata.name",
            "status.replicas",
        ],
    ),
    ("apps", "DaemonSet", DAEMON_SET),
    ("extensions", "DaemonSet", DAEMON_SET),
    (
        "batch",
        "Job",
        &[
            "spec.podReplacementPolicy",
            "spec.completions",
            "spec.parallelism",
            "spec.backoffLimit",
            "spec.template.spec.restartPolicy",
            "status.startTime",
            "status.active",
            "status.succeeded",
            "status.failed",
        ],
    ),
    (
        "batch",
        "CronJob",
        &[
            "spec.successfulJobsHistoryLimit",
            "spec.jobTemplate.spec.ttlSecondsAfterFinished",
            "status.lastScheduleTime",
            "status.lastSuccessfulTime",
            "status.active[].name",
        ],
    ),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        &[
            "spec.group",
            "spec.scope",
            "spec.names.kind",
            "spec.subresources.status!",
            "spec.versions[].name",
            "spec.versions[].subresources.status!",
        ],
    ),
];

const BUDGET: &[&str] =
    &["spec.selector", "status.desiredHealthy", "status.currentHealthy", "status.observedGeneration"];
const ATTACHMENT: &[&str] =
    &["status.attached", "status.attachError!", "status.attachError.message", "status.attachError.time"];
const ADDRESSES: &[&str] = &["status.loadBalancer.ingress[].ip", "status.loadBalancer.ingress[].hostname"];
const ROLLOUT: &[&str] = &[
    "status.phase",
    "status.message",
    "status.currentPodHash",
    "status.stableRS",
    "status.canary.stableRS",
    "status.pauseConditions[]",
];
const DEPLOYMENT: &[&str] = &[
    "spec.replicas",
    "spec.strategy.type",
    "spec.template.metadata.labels",
    "status.replicas",
    "status.readyReplicas",
    "status.availableReplicas",
    "status.updatedReplicas",
];
const REPLICA_SET: &[&str] = &["spec.replicas", "status.replicas", "status.availableReplicas"];
const DAEMON_SET: &[&str] = &[
    "spec.updateStrategy.type",
    "spec.updateStrategy.rollingUpdate.maxUnavailable",
    "status.desiredNumberScheduled",
    "status.currentNumberScheduled",
    "status.numberAvailable",
    "status.numberReady",
];

/// Paths kept of objects whose status no evidence changes, by group and kind.
const OF_WELL: &[(&str, &str, &[&str])] = &[
    ("", "Pod", &["spec.nodeName", "status.phase"]),
    ("apps", "ReplicaSet", REPLICA_SET),
    ("extensions", "ReplicaSet", REPLICA_SET),
    // The claims that it makes have no owner; their names tell whose they are.
    ("apps", "StatefulSet", &["spec.volumeClaimTemplates[].metadata.name"]),
    ("batch", "Job", &["spec.suspend", "status.conditions[].type", "status.conditions[].status"]),
];

/// Paths kept for a Pod that is well and belongs to a Job: its restarts count against the Job's limit.
const OF_WELL_POD_OF_JOB: &[&str] = &["spec.nodeName", "status.phase", "status.{}[].restartCount"];

/// Kinds whose full extract is kept even if the object is well, because evidence about other objects reads it.
const ALWAYS_ASKED: &[(&str, &str)] = &[
    ("", "PersistentVolume"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("storage.k8s.io", "StorageClass"),
    ("snapshot.storage.k8s.io", "VolumeSnapshot"),
    ("policy", "PodDisruptionBudget"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];

/// Annotations that evidence reads, which are kept in the extract.
const ANNOTATIONS: &[&str] = &[
    "deployment.kubernetes.io/revision",
    "rollout.argoproj.io/revision",
    "volume.beta.kubernetes.io/storage-class",
    "volume.kubernetes.io/selected-node",
    "storageclass.kubernetes.io/is-default-class",
    "batch.kubernetes.io/cronjob-scheduled-timestamp",
    "autoscaling.alpha.kubernetes.io/conditions",
];

/// Maximum number of distinct members under one member that the paths may select; with more, debug builds panic and
/// release builds leave out the last ones.
const MEMBERS: usize = 24;

/// The members of a JSON value that an extract keeps, as a tree; one without members keeps the whole value.
#[derive(Debug, Default)]
struct SelectedMembers {
    members: Vec<(String, SelectedMembers)>,
    /// True if the value is a list, to each of whose items `members` apply.
    each: bool,
    /// True if the member is kept even if nothing in it is selected.
    counts: bool,
}

impl SelectedMembers {
    fn of<'p>(paths: impl IntoIterator<Item = &'p str>) -> SelectedMembers {
        let mut wanted = SelectedMembers::default();
        for path in paths {
            match path.split_once("{}") {
                Some((before, after)) => {
                    for list in ["initContainerStatuses", "containerStatuses"] {
                        wanted.add(&format!("{before}{list}{after}"));
                    }
                }
                None => wanted.add(path),
            }
        }
        wanted
    }

    fn add(&mut self, path: &str) {
        let (path, counts) = path.strip_suffix('!').map_or((path, false), |path| (path, true));
        let mut slot = self;
        for step in path.split('.') {
            let (key, each) = step.strip_suffix("[]").map_or((step, false), |key| (key, true));
            let at = match slot.members.iter().position(|(own, _)| own == key) {
                Some(at) => at,
                None => {
                    debug_assert!(slot.members.len() < MEMBERS, "{path} is one too many");
                    slot.members.push((key.to_owned(), SelectedMembers::default()));
                    slot.members.len() - 1
                }
            };
            let Some((_, inner)) = slot.members.get_mut(at) else { return };
            inner.each |= each;
            slot = inner;
        }
        slot.counts |= counts;
    }

    /// Writes the selected parts of `value` to `out`. Returns false and writes nothing if there are none.
    fn write(&self, value: Value<'_>, out: &mut Vec<u8>) -> bool {
        if value.is_null() {
            return false;
        }
        if !self.each {
            return self.write_one(value, out);
        }
        let Some(items) = value.items() else { return false };
        let start = out.len();
        out.push(b'[');
        for item in items {
            let end = out.len();
            if end > start + 1 {
                out.push(b',');
            }
            if !self.write_one(item, out) {
                out.truncate(end);
            }
        }
        out.push(b']');
        let is_empty = out.len() == start + 2;
        if is_empty {
            out.truncate(start);
        }
        !is_empty
    }

    fn write_one(&self, value: Value<'_>, out: &mut Vec<u8>) -> bool {
        if self.members.is_empty() && !(self.counts && value.kind() == Kind::Object) {
            write_leaf(value, out);
            return true;
        }
        if value.kind() != Kind::Object {
            return false;
        }
        let start = out.len();
        out.push(b'{');
        self.write_members(value, out, start + 1);
        out.push(b'}');
        let is_empty = out.len() == start + 2;
        if is_empty && !self.counts {
            out.truncate(start);
        }
        !is_empty || self.counts
    }

    /// Writes the selected members of `value` to `out`, each after a comma unless `out` is `start` bytes long.
    fn write_members(&self, value: Value<'_>, out: &mut Vec<u8>, start: usize) {
        // All in one pass: to look for each is to scan the text as often.
        let mut found = [None; MEMBERS];
        for (key, member) in value.members().into_iter().flatten() {
            let at = self.members.iter().position(|(own, _)| *own == key);
            if let Some(slot) = at.and_then(|at| found.get_mut(at)) {
                *slot = Some(member);
            }
        }
        for ((key, wanted), member) in self.members.iter().zip(found) {
            let Some(member) = member else { continue };
            let before = out.len();
            if before > start {
                out.push(b',');
            }
            write_string(key, out);
            out.push(b':');
            if !wanted.write(member, out) {
                out.truncate(before);
            }
        }
    }
}

/// Writes a value unchanged, except that a string longer than [`MAX_MESSAGE`] bytes is truncated.
fn write_leaf(value: Value<'_>, out: &mut Vec<u8>) {
    let is_long = value.text().is_none_or(|text| text.len() > MAX_MESSAGE);
    match value.as_str().filter(|text| is_long && text.len() > MAX_MESSAGE) {
        Some(text) => write_string(&cut(text), out),
        None => value.write(out),
    }
}

/// The paths to keep of an object: for each kind, in full and for objects whose status no evidence changes.
#[derive(Debug)]
pub(super) struct Extractor {
    full: HashMap<(&'static str, &'static str), SelectedMembers>,
    of_any: SelectedMembers,
    well: HashMap<(&'static str, &'static str), SelectedMembers>,
    well_pod_of_job: SelectedMembers,
}

/// The fields of an object that evidence reads, encoded.
#[derive(Debug, Default)]
pub(super) struct Extract {
    /// The encoded extract, as [`ExtractParts::encode`] returns it.
    pub(super) bytes: Vec<u8>,
    /// True if no evidence changes the status of the object.
    pub(super) is_plain: bool,
}

/// Facts about an object that decide which of its fields the extract keeps.
pub(super) struct ObjectFacts<'k> {
    pub(super) verdict: &'k Verdict,
    pub(super) is_deleting: bool,
    pub(super) is_metadata: bool,
    /// True if the object is younger than [`FIRST_STATUS`](super::new_record::FIRST_STATUS), so its controller may
    /// not have written a status yet.
    pub(super) is_new: bool,
    pub(super) has_odd_uid: bool,
    pub(super) has_odd_creation: bool,
    pub(super) is_of_job: bool,
    /// True if the object's verdict may depend on the objects that it owns.
    pub(super) reads_children: bool,
}

impl Extractor {
    pub(super) fn new() -> Extractor {
        let edges = |from: (&str, &str)| {
            let own = EDGES.iter().filter(move |edge| edge.from == ("", "") || edge.from == from);
            own.flat_map(|edge| match edge.by {
                By::Field { at, name } | By::ClusterField { at, name } => {
                    vec![format!("{at}.{name}"), format!("{at}.optional")]
                }
                By::Reference { at } => {
                    let members = ["apiVersion", "group", "apiGroup", "kind", "namespace", "name"];
                    members.iter().map(|member| format!("{at}.{member}")).collect()
                }
                By::Path { at } => vec![at.to_owned()],
                By::Owner | By::Label { .. } | By::Selector => Vec::new(),
            })
            .collect::<Vec<_>>()
        };
        let full = |from: (&'static str, &'static str), own: &[&'static str]| {
            let edges = edges(from);
            let all = OF_ANY.iter().copied().chain(own.iter().copied());
            SelectedMembers::of(all.chain(edges.iter().map(String::as_str)))
        };
        let named = OF_KIND.iter().map(|&(group, kind, _)| (group, kind));
        let from_edges = EDGES.iter().map(|edge| edge.from).filter(|from| *from != ("", ""));
        let own = |from| OF_KIND.iter().find(|(group, kind, _)| (*group, *kind) == from);
        let all = named.chain(from_edges);
        Extractor {
            full: all.map(|from| (from, full(from, own(from).map_or(&[], |(.., own)| own)))).collect(),
            of_any: full(("", ""), &[]),
            well: OF_WELL
                .iter()
                .map(|(group, kind, own)| ((*group, *kind), SelectedMembers::of(own.iter().copied())))
                .collect(),
            well_pod_of_job: SelectedMembers::of(OF_WELL_POD_OF_JOB.iter().copied()),
        }
    }

    /// Selects and encodes the fields of `object` that evidence reads.
    pub(super) fn extract(&self, object: &Object<'_>, known: &ObjectFacts<'_>) -> Extract {
        let key = (object.group(), object.kind());
        let is_plain = is_plain(object, known);
        // Of one that only its workload could make worse nothing more is asked.
        let is_told = !is_plain && !is_silent(object, known);
        let is_full = (is_told || ALWAYS_ASKED.contains(&key)) && key != ("", "Secret");
        let mut parts = ExtractParts::default();
        self.write_metadata(object, known, is_plain, &mut parts.metadata);
        if key == ("discovery.k8s.io", "EndpointSlice") && is_plain {
            if let Some(targets) = targets(object) {
                parts.targets = targets;
            } else {
                self.write_content(object, known, true, &mut parts.content);
            }
        } else {
            self.write_content(object, known, is_full, &mut parts.content);
        }
        Extract { bytes: parts.encode(), is_plain }
    }

    fn write_content(&self, object: &Object<'_>, known: &ObjectFacts<'_>, is_full: bool, out: &mut Vec<u8>) {
        let key = (object.group(), object.kind());
        if is_full {
            self.full.get(&key).unwrap_or(&self.of_any).write_members(object.root(), out, 0);
        } else if key == ("", "Pod") && known.is_of_job {
            self.well_pod_of_job.write_members(object.root(), out, 0);
        } else if let Some(wanted) = self.well.get(&key) {
            wanted.write_members(object.root(), out, 0);
        } else {
            let set = ["suspend", "paused"]
                .into_iter()
                .filter(|key| object.at(&["spec", key]).and_then(Value::as_bool) == Some(true));
            let set: Vec<_> = set.map(|key| format!("\"{key}\":true")).collect();
            if !set.is_empty() {
                out.extend_from_slice(format!("\"spec\":{{{}}}", set.join(",")).as_bytes());
            }
        }
        // That there is a status may matter although nothing of it does.
        let says_nothing = known.verdict.rule == "fallback" && object.group().contains('.');
        let is_unsaid = !out.windows(9).any(|text| text == b"\"status\":");
        if says_nothing && is_unsaid && (known.is_metadata || !has_no_status(object)) {
            if !out.is_empty() {
                out.push(b',');
            }
            out.extend_from_slice(br#""status":{"-":0}"#);
        }
    }

    /// Writes the members of `metadata` that evidence reads and the record does not contain.
    fn write_metadata(
        &self,
        object: &Object<'_>,
        known: &ObjectFacts<'_>,
        is_plain: bool,
        out: &mut Vec<u8>,
    ) {
        let mut copy = |key: &str| {
            let Some(value) = object.at(&["metadata", key]).filter(|value| !value.is_null()) else { return };
            if !out.is_empty() {
                out.push(b',');
            }
            write_string(key, out);
            out.push(b':');
            value.write(out);
        };
        if known.has_odd_uid {
            copy("uid");
        }
        if known.has_odd_creation {
            copy("creationTimestamp");
        }
        if known.is_deleting {
            ["finalizers", "deletionTimestamp", "deletionGracePeriodSeconds"].into_iter().for_each(copy);
        }
        if !is_plain
            && reads_spec_written(object, known.verdict)
            && let Some(when) = spec_written(object)
        {
            let before = if out.is_empty() { "" } else { "," };
            let entry = format!(r#"{{"time":"{when}","fieldsV1":{{"f:spec":{{}}}}}}"#);
            out.extend_from_slice(format!(r#"{before}"managedFields":[{entry}]"#).as_bytes());
        }
        let Some(annotations) = object.at(&["metadata", "annotations"]) else { return };
        let mut kept: Vec<_> = Vec::new();
        for (key, value) in annotations.members().into_iter().flatten() {
            if let Some(own) = ANNOTATIONS.iter().find(|own| **own == key) {
                kept.retain(|(other, _)| other != own);
                kept.push((*own, value));
            }
        }
        for (at, (key, value)) in kept.iter().enumerate() {
            let before = match (at, out.is_empty()) {
                (0, true) => &b"\"annotations\":{"[..],
                (0, false) => b",\"annotations\":{",
                _ => b",",
            };
            out.extend_from_slice(before);
            write_string(key, out);
            out.push(b':');
            value.write(out);
        }
        if !kept.is_empty() {
            out.push(b'}');
        }
    }
}

fn has_no_status(object: &Object<'_>) -> bool {
    object.at(&["status"]).is_none_or(|status| match status.kind() {
        Kind::Null => true,
        Kind::Object => status.members().is_none_or(|mut members| members.next().is_none()),
        _ => false,
    })
}

/// Returns true if no evidence can change the status of the object; always false if it is not Current, is being
/// deleted, or its verdict depends on objects that it owns. Of Current objects, `assess` follows only those for which
/// this returns false.
fn is_plain(object: &Object<'_>, known: &ObjectFacts<'_>) -> bool {
    if known.verdict.status != taffrail_status::Status::Current || known.is_deleting || known.reads_children {
        return false;
    }
    let is_text = |path: &[&str], text: &str| object.at(path).is_some_and(|value| value.is_str(text));
    match (object.group(), object.kind()) {
        ("", "Pod") => !is_text(&["status", "phase"], "Failed"),
        ("", "Service") => !is_text(&["spec", "type"], "LoadBalancer"),
        ("apps" | "extensions", "StatefulSet" | "DaemonSet") => {
            !is_text(&["spec", "updateStrategy", "type"], "OnDelete")
        }
        ("batch", "Job") => object.condition_is("Complete", "True") && !object.condition_is("Failed", "True"),
        ("batch", "CronJob") => false,
        ("autoscaling", "HorizontalPodAutoscaler") => {
            let annotation = "autoscaling.alpha.kubernetes.io/conditions";
            object.at(&["metadata", "annotations", annotation]).is_none()
                && !["AbleToScale", "ScalingActive"]
                    .into_iter()
                    .any(|name| object.condition_is(name, "False"))
        }
        ("apiregistration.k8s.io", "APIService") => !object.condition_is("Available", "False"),
        ("networking.k8s.io" | "extensions", "Ingress") => has_address(object),
        ("policy", "PodDisruptionBudget") => !object
            .condition("DisruptionAllowed")
            .is_some_and(|it| it.get("reason").is_some_and(|reason| reason.is_str("SyncFailed"))),
        ("storage.k8s.io", "VolumeAttachment") => {
            object.at(&["status", "attachError"]).is_none_or(Value::is_null)
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            !["Denied", "Failed"].into_iter().any(|name| object.condition(name).is_some())
        }
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding",
        ) => false,
        ("argoproj.io", "Rollout") => {
            let has_pauses = object
                .at(&["status", "pauseConditions"])
                .and_then(Value::items)
                .is_some_and(|mut pauses| pauses.next().is_some());
            let is_paused = object.at(&["spec", "paused"]).and_then(Value::as_bool) == Some(true);
            !is_silent(object, known) && !has_pauses && !is_paused && !is_text(&["status", "phase"], "Paused")
        }
        (group, _) => {
            let may_lack = known.verdict.rule == "fallback" && group.contains('.') && known.is_new;
            let lacks = may_lack && !known.is_metadata && has_no_status(object);
            !lacks && !is_silent(object, known)
        }
    }
}

/// Returns true for an object that is Current only because no rule applies, but that may own a workload, which may
/// have failed; false if only its metadata was read.
fn is_silent(object: &Object<'_>, known: &ObjectFacts<'_>) -> bool {
    known.verdict.rule == "fallback"
        && known.verdict.status == taffrail_status::Status::Current
        && !known.is_metadata
        && taffrail_status::assess::may_own_workload(object)
}

fn has_address(ingress: &Object<'_>) -> bool {
    let is_said = |value: Option<Value<'_>>| value.is_some_and(|text| !text.is_str("") && !text.is_null());
    let addresses = ingress.at(&["status", "loadBalancer", "ingress"]).and_then(Value::items);
    addresses.into_iter().flatten().any(|it| is_said(it.get("ip")) || is_said(it.get("hostname")))
}

/// Returns the UIDs of the Pods behind an EndpointSlice; `None` if a target is not a Pod or its UID is not a UUID.
fn targets(slice: &Object<'_>) -> Option<Vec<Uid>> {
    let mut targets = Vec::new();
    for endpoint in slice.at(&["endpoints"]).and_then(Value::items).into_iter().flatten() {
        let Some(target) = endpoint.get("targetRef").filter(|target| !target.is_null()) else { continue };
        let text = target.get("uid").and_then(Value::as_str)?;
        let uid = Uid::of_uuid(&text)?;
        if !target.get("kind")?.is_str("Pod") {
            return None;
        }
        targets.push(uid);
    }
    Some(targets)
}

/// The decoded parts of an extract.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ExtractParts {
    /// The members of `metadata` as JSON, without the braces around them.
    pub(super) metadata: Vec<u8>,
    /// The other members of the object as JSON, without the braces around them.
    pub(super) content: Vec<u8>,
    /// The UIDs of the Pods behind an EndpointSlice.
    pub(super) targets: Vec<Uid>,
}

impl ExtractParts {
    /// Encodes the parts to bytes; empty parts give no bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let ExtractParts { metadata, content, targets } = self;
        if metadata.is_empty() && content.is_empty() && targets.is_empty() {
            return Vec::new();
        }
        let lengths = [metadata, content].map(|part| (part.len() as u32).to_le_bytes());
        let targets = targets.iter().flat_map(|uid| uid.bits().to_le_bytes());
        let bytes = lengths.into_iter().flatten().chain(metadata.iter().chain(content).copied());
        bytes.chain(targets).collect()
    }

    /// Decodes `bytes` into metadata, content and targets, as in [`ExtractParts`]; `None` if they are damaged.
    pub(super) fn split(bytes: &[u8]) -> Option<(&[u8], &[u8], impl Iterator<Item = Uid> + '_)> {
        let (metadata, rest) = bytes.split_first_chunk::<4>()?;
        let (content, rest) = rest.split_first_chunk::<4>()?;
        let length = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) as usize;
        let (metadata, rest) = rest.split_at_checked(length(metadata))?;
        let (content, rest) = rest.split_at_checked(length(content))?;
        let targets = rest.as_chunks::<16>().0.iter();
        Some((metadata, content, targets.map(|bits| Uid::of_bits(u128::from_le_bytes(*bits)))))
    }
}
