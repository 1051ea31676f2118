//! `explain`: from the symptom to the cause, and where to look further.

use serde::Serialize;
use taffrail_object::ObjectKey;
use taffrail_status::Status;
use taffrail_status::assess::{Change, Link};

use super::command::{helm, kubectl, resource, taffrail};
use super::text::revision;
use super::{
    API_VERSION, AppName, Doubt, DoubtCategory, ErrorRow, InClusters, LinkRow, ProblemView, Severity,
    TrustReport, UnsyncedView, time,
};
use crate::apps::{App, OUT_OF_REACH, Resource, UNOBSERVED, UNREADABLE};
use crate::belonging::Belonging;
use crate::find::full_name;
use crate::freshness::FreshnessState;
use crate::identity::Delivery;
use crate::problem::{Axis, CONTROLLER_STOPPED, Problem};
use crate::sync::SyncState;
use crate::words::Words;

/// Why an app is as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Which app; absent where the objects were named by whoever asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
    /// The cluster that its objects are in, or several where it is the same.
    #[serde(flatten)]
    pub place: InClusters,
    /// Of an object that was asked for: what controls it, the nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<ObjectKey>,
    /// Of an object that was asked for: the apps that declare it, or what controls it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub belongs_to: Vec<AppName>,
    /// Of an object that was asked for: the apps that list it, or what controls it, and whose marks it does not carry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listed_by: Vec<AppName>,
    /// Of an object that was asked for: the apps that its marks name and that do not declare it, each with why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marked_for: Vec<String>,
    /// The worst declared object; where all is well the object that was asked for, or the one that declares the app.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
    /// The status when it was last observed.
    pub health: &'static str,
    /// What may be said of its status now.
    pub effective: &'static str,
    /// How its sync stands, where that keeps what is well from being new: `Failed` or `Unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<&'static str>,
    /// What there is to look at, the worst first; nothing where the app is well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ProblemView>,
    /// The objects that are not synced by the word of the delivery tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsynced: Vec<UnsyncedView>,
    /// The declared objects of which something is switched off on purpose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flagged: Vec<Flagged>,
    /// Why, in the words of the cause.
    pub message: Words,
    /// From the object to the cause, which is the last; empty where all is well.
    pub chain: Vec<LinkRow>,
    /// What changed shortly before the object turned red, the nearest first, as far as can be known; three at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangeRow>,
    /// Of an object that was asked for: who wrote last what is wanted of it or of what controls it, the newest first;
    /// three at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_changed: Vec<ChangeRow>,
    /// Of an app that was asked for by its name and is green: the signs that this is wrong, as `trust` tells them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt>,
    /// Commands that tell more of the cause.
    pub next: Vec<String>,
}

/// An object of which something is switched off on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Flagged {
    /// Which object.
    pub object: ObjectKey,
    /// What of it: `suspended`, `paused`.
    pub flags: Vec<&'static str>,
}

impl Flagged {
    fn of(resource: &Resource) -> Option<Flagged> {
        let flags = [(resource.flags.suspended, "suspended"), (resource.flags.paused, "paused")];
        let flags: Vec<_> = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).collect();
        (!flags.is_empty()).then(|| Flagged { object: resource.key.clone(), flags })
    }
}

/// Something that changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeRow {
    /// When.
    pub when: String,
    /// What sort of thing: `config`, `created`, `image`, `node`, `quota`, `revision`, `spec`, `template`.
    pub what: &'static str,
    /// Of which object.
    pub object: ObjectKey,
    /// Of an image: the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The names of what differs besides; never what stands there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// What it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Who wrote it, by the name of the field manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl From<&Change> for ChangeRow {
    fn from(change: &Change) -> ChangeRow {
        let Change { when, what, object, container, fields, from, to, by } = change.clone();
        let object = object.clone();
        ChangeRow { when: time(when), what: what.as_str(), object, container, fields, from, to, by }
    }
}

impl ChangeRow {
    /// What changed, in words that follow the name of the object: `image of container web: web:1 → web:2`.
    pub fn words(&self) -> String {
        // The one field that a manager wrote, with what it is now.
        let is_only = self.to.is_some() && self.from.is_none() && self.fields.len() == 1;
        let what = match (self.what, &self.container) {
            ("image", Some(container)) => &*format!("image of container {container}"),
            ("template", _) => "how its Pods are made",
            ("config", _) => "contents",
            ("node", _) => "lost",
            ("quota", _) => "used up",
            ("spec", _) if is_only => self.fields.first().map_or("spec", String::as_str),
            (what, _) => what,
        };
        let shown = |text: &Option<String>| text.as_deref().map(|text| revision(text).into_owned());
        let values = match (shown(&self.from), shown(&self.to)) {
            (Some(from), Some(to)) if from == to => Some(to),
            (Some(from), to) => Some(format!("{from} → {}", to.as_deref().unwrap_or("nothing"))),
            (None, to) => to,
        };
        let fields = self.fields.iter().filter(|_| !(is_only && self.what == "spec"));
        let more = values.into_iter().chain(fields.cloned()).collect::<Vec<_>>().join(", ");
        let by = self.by.as_ref().map(|by| format!(", by {by}")).unwrap_or_default();
        let colon = if more.is_empty() { "" } else { ": " };
        format!("{what}{by}{colon}{more}")
    }
}

impl Explanation {
    /// Explains an app. Where `context` is given, it goes into the commands.
    pub fn new(app: &App, context: Option<&str>) -> Explanation {
        let speaker = app.speaker.as_ref();
        let chain = speaker.map(|speaker| &*speaker.chain).unwrap_or_default();
        let sync = trouble(app);
        let next = match chain.last() {
            Some(cause) => next(app, cause, context),
            None => {
                app.problem().and_then(|problem| next_of_problem(app, problem, context)).into_iter().collect()
            }
        };
        Explanation {
            app: (app.app.delivery != Delivery::Taffrail).then(|| AppName::from(&app.app)),
            place: InClusters::one(&app.app.target),
            owners: Vec::new(),
            belongs_to: Vec::new(),
            listed_by: Vec::new(),
            marked_for: Vec::new(),
            object: speaker.map(|speaker| &speaker.key).or(app.declaring.as_ref()).cloned(),
            health: app.health.as_str(),
            effective: app.effective().as_str(),
            sync: sync.map(SyncState::as_str),
            problems: app.problems.iter().map(ProblemView::from).collect(),
            unsynced: app.unsynced.iter().map(UnsyncedView::from).collect(),
            flagged: app.resources.iter().filter_map(Flagged::of).collect(),
            message: app.message.clone(),
            chain: chain.iter().cloned().map(LinkRow).collect(),
            changed: Vec::new(),
            last_changed: Vec::new(),
            doubts: Vec::new(),
            next,
        }
    }

    /// The same, with what changed before.
    #[must_use]
    pub fn after(self, changed: &[Change]) -> Explanation {
        Explanation { changed: changed.iter().map(ChangeRow::from).collect(), ..self }
    }

    /// The same, with what in a report about this app alone is a sign that its green is wrong. What its problems say is said
    /// already, and what only leases or other clusters could tell was not read.
    #[must_use]
    pub fn doubted(self, report: TrustReport) -> Explanation {
        let is_said = |doubt: &Doubt| {
            self.problems.iter().any(|problem| problem.message.lines().next() == Some(&*doubt.message))
        };
        let is_sign = |doubt: &Doubt| {
            doubt.severity == Severity::High
                && doubt.category == DoubtCategory::Disagreeing
                && doubt.green > 0
                && !is_said(doubt)
        };
        let doubts = report.items.into_iter().filter(is_sign).collect();
        Explanation { doubts, ..self }
    }

    /// The same, with who wrote last what is wanted of the object.
    #[must_use]
    pub fn written(self, last: &[Change]) -> Explanation {
        Explanation { last_changed: last.iter().map(ChangeRow::from).collect(), ..self }
    }
}

impl Explanation {
    /// The same of an object that was asked for by its name, well or not, with whose it is.
    #[must_use]
    pub fn with(self, object: &ObjectKey, belonging: &Belonging<'_>) -> Explanation {
        Explanation {
            object: self.object.or_else(|| Some(object.clone())),
            owners: belonging.owners.to_vec(),
            belongs_to: belonging.apps.iter().map(|app| AppName::from(&app.app)).collect(),
            listed_by: belonging.listed.iter().map(|app| AppName::from(&app.app)).collect(),
            marked_for: belonging.marked.clone(),
            ..self
        }
    }
}

/// The answer about one app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `Explanation`.
    pub kind: &'static str,
    /// What is said of it.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// What could not be read, cannot be right, or is claimed twice.
    pub errors: Vec<ErrorRow>,
}

/// The answer about several apps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationList {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `ExplanationList`.
    pub kind: &'static str,
    /// What is said of each.
    pub items: Vec<Explanation>,
    /// What could not be read, cannot be right, or is claimed twice.
    pub errors: Vec<ErrorRow>,
}

impl Answer {
    /// The answer about one app.
    pub fn new(explanation: Explanation, errors: Vec<ErrorRow>) -> Answer {
        Answer { api_version: API_VERSION, kind: "Explanation", explanation, errors }
    }
}

impl ExplanationList {
    /// The answer about several apps.
    pub fn new(items: Vec<Explanation>, errors: Vec<ErrorRow>) -> ExplanationList {
        ExplanationList { api_version: API_VERSION, kind: "ExplanationList", items, errors }
    }
}

/// The state of a sync of which the tool complains, or which its home does not tell now, while the objects are well.
fn trouble(app: &App) -> Option<SyncState> {
    match app.effective_sync() {
        _ if app.health != Status::Current => None,
        SyncState::Unknown if app.sync.state != SyncState::Unknown => Some(SyncState::Unknown),
        SyncState::Failed => Some(SyncState::Failed),
        SyncState::Unknown if !app.said.is_empty() => Some(SyncState::Unknown),
        _ => None,
    }
}

/// The command that tells more of a problem of an app that is Ready.
fn next_of_problem(app: &App, problem: &Problem, context: Option<&str>) -> Option<String> {
    match &problem.object {
        // An object that could not be synced may not be there.
        Some(key) if problem.axis == Axis::Source || problem.state == CONTROLLER_STOPPED => {
            let kind = resource(&key.group, &key.kind);
            let verb = if problem.state == "NotFound" { "get" } else { "describe" };
            kubectl(&[verb, &kind, &key.name], &key.namespace, context)
        }
        _ => delivered_by(app, context),
    }
}

/// The command that tells more of what delivers an app.
fn delivered_by(app: &App, context: Option<&str>) -> Option<String> {
    if let Some(key) = &app.declaring {
        let kind = resource(&key.group, &key.kind);
        return kubectl(&["describe", &kind, &key.name], &key.namespace, context);
    }
    let is_helm = app.app.delivery == Delivery::Helm;
    is_helm.then(|| helm(&["history", &app.app.name], &app.app.namespace, context)).flatten()
}

/// The name of the release whose storage has this name: `sh.helm.release.v1.shop.v3`.
fn release(storage: &str) -> Option<&str> {
    Some(storage.strip_prefix("sh.helm.release.v1.")?.rsplit_once(".v")?.0)
}

/// The commands that tell more of a cause.
fn next(app: &App, cause: &Link, context: Option<&str>) -> Vec<String> {
    match (cause.status, &*cause.reason) {
        (Status::Unknown, OUT_OF_REACH) => {
            taffrail(&["explain", &full_name(&app.app), "--all-contexts"], "", None).into_iter().collect()
        }
        // Who cannot be asked cannot say what one may do either.
        (Status::Unknown, UNOBSERVED) if app.freshness.state == FreshnessState::Lost => {
            kubectl(&["get", "--raw", "/readyz"], "", context).into_iter().collect()
        }
        _ => next_of(cause, context),
    }
}

fn next_of(cause: &Link, context: Option<&str>) -> Vec<String> {
    let kind = resource(&cause.object.group, &cause.object.kind);
    let name = &*cause.object.name;
    let command = |words: &[&str]| kubectl(words, &cause.object.namespace, context);
    match cause.status {
        Status::Unknown if cause.reason == UNREADABLE => {
            if let Some(release) = release(name) {
                return helm(&["history", release], &cause.object.namespace, context).into_iter().collect();
            }
        }
        Status::NotFound => return command(&["get", &kind]).into_iter().collect(),
        Status::Unknown if cause.rule.is_empty() => {
            return command(&["auth", "can-i", "get", &kind]).into_iter().collect();
        }
        _ => {}
    }
    let mut commands = vec![command(&["describe", &kind, name])];
    if cause.object.group.is_empty() && cause.object.kind == "Pod" {
        let said = cause.facts.iter().chain([&cause.message]);
        let ended =
            said.filter_map(|said| said.strip_prefix("container ")?.split_once(" ended with ")).next();
        match (&*cause.reason, ended) {
            ("CrashLoopBackOff" | "OOMKilled", Some((container, _))) => {
                commands.push(command(&["logs", name, "-c", container, "--previous"]));
            }
            ("CrashLoopBackOff" | "OOMKilled", None) => commands.push(command(&["logs", name, "--previous"])),
            (_, Some((container, _))) => commands.push(command(&["logs", name, "-c", container])),
            ("Unhealthy" | "ContainersNotReady", None) => {
                commands.push(command(&["logs", name, "--all-containers", "--tail=50"]));
            }
            _ => {}
        }
    }
    commands.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use taffrail_object::ObjectKey;

    use super::*;

    fn commands(object: ObjectKey, status: Status, reason: &str, fact: &str) -> String {
        let cause = Link {
            object,
            status,
            reason: reason.to_owned(),
            message: String::new(),
            since: None,
            rule: "test".to_owned(),
            facts: vec![fact.to_owned()],
        };
        next_of(&cause, Some("it's prod")).join("; ").replace(r" --context 'it'\''s prod'", "")
    }

    #[test]
    fn the_container_that_ended_is_named_by_a_fact_or_by_the_message() {
        let cause = Link {
            object: ObjectKey::new("", "Pod", "shop", "import-1"),
            status: Status::Failed,
            reason: "Error".to_owned(),
            message: "container import ended with exit code 1 (Error)".to_owned(),
            since: None,
            rule: "test".to_owned(),
            facts: Vec::new(),
        };
        let commands = next_of(&cause, None);
        assert_eq!(commands.last().map(String::as_str), Some("kubectl logs import-1 -c import -n shop"));
    }

    #[test]
    fn commands_fit_the_cause() {
        let pod = || ObjectKey::new("", "Pod", "shop", "web-1");
        let ended = "container app ended with exit code 1 (Error)";
        for (object, status, reason, fact, expected) in [
            (pod(), Status::Failed, "ImagePullBackOff", "", "kubectl describe pod web-1 -n shop"),
            (
                pod(),
                Status::Failed,
                "CrashLoopBackOff",
                ended,
                "kubectl describe pod web-1 -n shop; kubectl logs web-1 -c app --previous -n shop",
            ),
            (
                pod(),
                Status::InProgress,
                "Unhealthy",
                "",
                "kubectl describe pod web-1 -n shop; kubectl logs web-1 --all-containers --tail=50 -n shop",
            ),
            (
                ObjectKey::new("apps", "Deployment", "shop", "web"),
                Status::NotFound,
                "NotFound",
                "",
                "kubectl get deployment.apps -n shop",
            ),
            (
                ObjectKey::new("", "Node", "", "one"),
                Status::Failed,
                "NodeLost",
                "",
                "kubectl describe node one",
            ),
            (
                ObjectKey::new("", "Pod", "shop", "a; rm -rf ~"),
                Status::Failed,
                "",
                "",
                "kubectl describe pod 'a; rm -rf ~' -n shop",
            ),
        ] {
            assert_eq!(commands(object, status, reason, fact), expected);
        }
    }
}
