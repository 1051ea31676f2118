//! Rows of `explain`: the cause of an app's or object's state, and commands that show more.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use taffrail_apps::{
    App, Axis, CONTROLLER_STOPPED, Delivery, Freshness, FreshnessState, OUT_OF_REACH, ObjectSync,
    ObjectSyncState, Ownership, Problem, Resource, Source, Suspension, SyncState, UNREADABLE, Words,
    command::{helm, kubectl, of_app, of_connection, resource, taffrail},
    full_name,
    trust::{CHANGED_BY_HAND, FindingCategory, Severity},
    verbs::takes_requests,
};
use taffrail_object::ObjectKey;
use taffrail_status::Status;
use taffrail_status::assess::{CauseStep, Change};

use crate::{
    API_VERSION, AppName, AppOfHome, CauseLog, ErrorRow, InClusters, List, ListItem, TrustFinding,
    TrustReport,
};

/// The explanation of why an app or an object is in its state.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The app that is explained; left out if the user named objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
    /// The cluster that declares the app; left out if it is the one that holds the app's objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// The cluster of the app's objects, or the clusters with the same explanation.
    #[serde(flatten)]
    pub place: InClusters,
    /// For a named object: its controllers, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<ObjectKey>,
    /// For a named object: the apps that declare it with a confirmed claim; if there are none, those of the nearest of
    /// its controllers that has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub belongs_to: Vec<OwningApp>,
    /// For a named object: the first app that it declares; left out if it declares none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declares: Option<AppOfHome>,
    /// For a named object: the apps that list it or the nearest of its controllers, but whose marks it does
    /// not carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listed_by: Vec<AppOfHome>,
    /// For a named object: the apps that its marks name but that do not declare it, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marked_for: Vec<String>,
    /// For a named object that neither belongs to a known app nor declares one: the clusters, and the kinds of apps in
    /// clusters, that could not be read and whose apps may declare it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners_unread: Vec<String>,
    /// The object whose status is `health`; if that is Ready, the declaring object or the one that the user named; left
    /// out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
    /// The status of the app or object when it was last observed.
    pub health: Status,
    /// The status of the app or object now: Unknown unless the observation is live.
    pub effective: Status,
    /// The sync state, if `health` is Ready and the sync is `Failed` or `Unknown`; left out otherwise, and for an
    /// `Unknown` that the delivery tool itself reports without a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncState>,
    /// The problems on all axes, the worst first; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// The objects that Argo CD reports as not synced; empty for other tools, which report no single objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsynced: Vec<ObjectSync>,
    /// The declared objects that users suspended or paused, in part or whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flagged: Vec<Flagged>,
    /// The field manager that suspended the app, and the time; left out if it is not suspended, or if managed fields
    /// do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
    /// The message of the object whose status is `health` or, if that is Ready, of the delivery tool.
    pub message: Words,
    /// The cause chain, from the object to the root cause; empty if `health` is Ready.
    pub chain: Vec<Arc<CauseStep>>,
    /// The last changes in the hour before the app or object became unhealthy, at most three, the latest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Change>,
    /// For a named object: the last change of it, or of its top controller, by each field manager, labels and
    /// annotations included, at most five: those without a time first, then the latest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_changed: Vec<Change>,
    /// For a named app that is green: the findings of `trust` of high severity, or about changes by hand, in which the
    /// tool and the objects disagree; without those that a problem of the app tells already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<TrustFinding>,
    /// With `--logs`, the last lines of the container with the worst status in the Pods of the cause, or the reason why
    /// they could not be read; left out if there are no Pods, or the Pods could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<CauseLog>,
    /// Command lines to run next: they show more of the cause or the worst problem, or make the app's tool resume or
    /// sync it.
    pub next: Vec<String>,
}

/// An object that a user suspended or paused on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Flagged {
    /// The object.
    pub object: ObjectKey,
    /// The switches that the user set.
    pub flags: Vec<Flag>,
}

/// An app that declares an object, with the source of the app.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OwningApp {
    /// The name of the app.
    #[serde(flatten)]
    pub app: AppName,
    /// Name of the cluster that holds the app's declaring object.
    pub home: String,
    /// The revision that the app last applied successfully; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<String>,
    /// The Git repository, OCI artifact or chart that the app comes from; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

impl From<&App> for OwningApp {
    fn from(app: &App) -> OwningApp {
        let (home, applied) = (app.app.home.clone(), app.sync.applied.clone());
        OwningApp { app: AppName::from(&app.app), home, applied, source: app.source.clone() }
    }
}

/// A switch by which a user stops an object, in part or whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Flag {
    /// Nothing is started or reconciled, as by `spec.suspend`.
    Suspended,
    /// Changes are not rolled out, as by `spec.paused`.
    Paused,
}

impl Flag {
    /// Returns `suspended` or `paused`, as JSON and tables show the switch.
    pub fn as_str(self) -> &'static str {
        match self {
            Flag::Suspended => "suspended",
            Flag::Paused => "paused",
        }
    }
}

impl Flagged {
    fn of(resource: &Resource) -> Option<Flagged> {
        let flags = [(resource.flags.suspended, Flag::Suspended), (resource.flags.paused, Flag::Paused)];
        let flags: Vec<_> = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).collect();
        (!flags.is_empty()).then(|| Flagged { object: (*resource.key).clone(), flags })
    }
}

impl Explanation {
    /// Makes the explanation of an app, without what other methods set: the belonging of a named object, changes,
    /// doubts, suspension and logs. With a `context`, its commands name that context.
    pub fn new(app: &App, context: Option<&str>) -> Explanation {
        let speaker = app.speaker.as_ref();
        let chain = speaker.map(|speaker| &*speaker.chain).unwrap_or_default();
        let sync = trouble(app);
        let next = next(app, chain.last().map(|cause| &**cause), context);
        Explanation {
            app: (app.app.delivery != Delivery::Taffrail).then(|| AppName::from(&app.app)),
            home: app.app.other_home().map(str::to_owned),
            place: InClusters::one(&app.app.target),
            owners: Vec::new(),
            belongs_to: Vec::new(),
            declares: None,
            listed_by: Vec::new(),
            marked_for: Vec::new(),
            owners_unread: Vec::new(),
            object: speaker.map(|speaker| &*speaker.key).or(app.declaring.as_ref()).cloned(),
            health: app.health,
            effective: app.effective(),
            sync,
            problems: app.problems.to_vec(),
            unsynced: app.unsynced.clone(),
            flagged: app.resources.iter().filter_map(Flagged::of).collect(),
            message: app.message.clone(),
            chain: chain.to_vec(),
            changed: Vec::new(),
            last_changed: Vec::new(),
            doubts: Vec::new(),
            suspension: None,
            logs: None,
            next,
        }
    }

    /// Adds to the next steps the command that makes the app's tool sync it: for a suspended app `taffrail resume`,
    /// before the other steps unless there is a cause; otherwise `taffrail reconcile`, for Argo CD with `--sync`, if a
    /// sync can end that the app is OutOfSync. Adds nothing if Taffrail cannot send requests to that tool, or if the
    /// app's home is lost. If `must_name`, the command has `--context` with the app's home and target cluster.
    #[must_use]
    pub fn remedied(mut self, app: &App, must_name: bool) -> Explanation {
        if !takes_requests(app.app.delivery) || app.home_freshness.state == FreshnessState::Lost {
            return self;
        }
        if app.suspended {
            let command = of_app(&["resume"], &app.app, must_name);
            // The cause of a failure comes before the remedy of something else.
            let at = if self.chain.is_empty() { 0 } else { self.next.len() };
            self.next.splice(at..at, command);
        } else if is_syncable(app) {
            let words: &[&str] = match app.app.delivery {
                Delivery::ArgoApplication => &["reconcile", "--sync"],
                _ => &["reconcile"],
            };
            // A sync may revert what users changed, so they look first.
            self.next.extend(of_app(words, &app.app, must_name));
        }
        self
    }

    /// Sets who suspended the app and when; pass `None` if neither the field manager nor the time is known, or if the
    /// app is not suspended.
    #[must_use]
    pub fn suspended(self, suspension: Option<Suspension>) -> Explanation {
        Explanation { suspension, ..self }
    }

    /// Replaces the list of objects that are not synced by `unsynced`, in which each has the fields in which it
    /// differs.
    #[must_use]
    pub fn differing(self, unsynced: Vec<ObjectSync>) -> Explanation {
        Explanation { unsynced, ..self }
    }

    /// Sets `changed` as the last changes before the app became unhealthy.
    #[must_use]
    pub fn after(self, changed: &[Change]) -> Explanation {
        Explanation { changed: changed.to_vec(), ..self }
    }

    /// Sets as doubts those findings of `report` that contradict the green status, in which the tool and the objects
    /// disagree about a green app: those of high severity, and objects that were changed by hand. `report` must be
    /// about this app alone.
    ///
    /// Leaves out findings whose message is the first line of that of a problem of the app. Findings that need Leases
    /// or other clusters are missing, because those were not read.
    #[must_use]
    pub fn doubted(self, report: TrustReport) -> Explanation {
        let is_said = |finding: &TrustFinding| {
            self.problems.iter().any(|problem| problem.message.lines().next() == Some(&*finding.message))
        };
        let is_sign = |finding: &TrustFinding| {
            (finding.severity == Severity::High || finding.reason == CHANGED_BY_HAND)
                && finding.category == FindingCategory::Disagreeing
                && finding.green > 0
                && !is_said(finding)
        };
        let doubts = report.items.into_iter().filter(is_sign).collect();
        Explanation { doubts, ..self }
    }

    /// Sets `last` as the last changes of the object that the user named, by field manager.
    #[must_use]
    pub fn written(self, last: &[Change]) -> Explanation {
        Explanation { last_changed: last.to_vec(), ..self }
    }
}

impl Explanation {
    /// Adds to the explanation that the user named `object`: the apps and controllers of the object, from
    /// `belonging`. `object` becomes the explained object only if the explanation has none.
    #[must_use]
    pub fn with(self, object: &ObjectKey, belonging: &Ownership<'_>) -> Explanation {
        Explanation {
            object: self.object.or_else(|| Some(object.clone())),
            owners: belonging.owners.to_vec(),
            belongs_to: belonging.apps.iter().map(|app| OwningApp::from(*app)).collect(),
            declares: belonging.declares.map(|app| AppOfHome::from(&app.app)),
            listed_by: belonging.listed.iter().map(|app| AppOfHome::from(&app.app)).collect(),
            marked_for: belonging.marked.clone(),
            owners_unread: belonging.unread.clone(),
            ..self
        }
    }
}

/// The answer of `explain` about one app or object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Always [`API_VERSION`].
    pub api_version: Cow<'static, str>,
    /// Always `Explanation`.
    pub kind: Cow<'static, str>,
    /// The explanation of the app or object.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded.
    pub errors: Vec<ErrorRow>,
}

/// The answer of `explain` about several apps or objects.
pub type ExplanationList = List<Explanation>;

impl ListItem for Explanation {
    const LIST: &'static str = "ExplanationList";
}

impl Answer {
    /// Makes the answer about one app or object.
    pub fn new(explanation: Explanation, errors: Vec<ErrorRow>) -> Answer {
        Answer { api_version: API_VERSION.into(), kind: "Explanation".into(), explanation, errors }
    }
}

/// Returns the present sync state of an app whose health is Ready, if it is `Failed` or `Unknown`; `None` otherwise,
/// and for an `Unknown` that the delivery tool itself reports without a message.
fn trouble(app: &App) -> Option<SyncState> {
    match app.effective_sync() {
        _ if app.health != Status::Current => None,
        SyncState::Unknown if app.sync.state != SyncState::Unknown => Some(SyncState::Unknown),
        SyncState::Failed => Some(SyncState::Failed),
        SyncState::Unknown if !app.delivery_message.is_empty() => Some(SyncState::Unknown),
        _ => None,
    }
}

/// Returns true if a sync can end that the app is OutOfSync: if it is so now and has that as a problem, its controller
/// runs, no source has a problem but notices, and not all unsynced objects only have to be pruned.
fn is_syncable(app: &App) -> bool {
    let has = |axis, state| app.problems.iter().any(|it| it.axis == axis && it.state == state);
    let is_prevented = has(Axis::Sync, CONTROLLER_STOPPED)
        || app.problems.iter().any(|it| it.axis == Axis::Source && it.is_pressing());
    // A sync leaves objects that its policy does not prune.
    let leaves_all = !app.unsynced.is_empty()
        && app.unsynced.iter().all(|own| own.state == ObjectSyncState::RequiresPruning);
    app.effective_sync() == SyncState::OutOfSync
        && has(Axis::Sync, SyncState::OutOfSync.as_str())
        && !is_prevented
        && !leaves_all
}

/// Returns the command that shows more about `problem` of an app without a cause: `kubectl describe` (`get` if it does
/// not exist) of its object if it is a problem of a source or of a stopped controller, else the command of
/// [`delivered_by`]. `None` if there is none; with a `context` the command names it.
fn next_of_problem(app: &App, problem: &Problem, context: Option<&str>) -> Option<String> {
    match &problem.object {
        // An object that could not be synced may not exist.
        Some(key) if problem.axis == Axis::Source || problem.state == CONTROLLER_STOPPED => {
            let kind = resource(&key.group, &key.kind);
            let verb = if problem.state == "NotFound" { "get" } else { "describe" };
            kubectl(&[verb, &kind, &key.name], &key.namespace, context)
        }
        _ => delivered_by(app, context),
    }
}

/// Returns the command that describes the declaring object of an app or, without one, shows the history of its Helm
/// release; `None` if there is neither, or a name could be taken for an option. With a `context` the command names it.
fn delivered_by(app: &App, context: Option<&str>) -> Option<String> {
    if let Some(key) = &app.declaring {
        let kind = resource(&key.group, &key.kind);
        return kubectl(&["describe", &kind, &key.name], &key.namespace, context);
    }
    let is_helm = app.app.delivery == Delivery::Helm;
    is_helm.then(|| helm(&["history", &app.app.name], &app.app.namespace, context)).flatten()
}

/// Returns the Helm release of a storage object by its name, such as `sh.helm.release.v1.shop.v3`; `None` for
/// other names.
fn release(storage: &str) -> Option<&str> {
    Some(storage.strip_prefix("sh.helm.release.v1.")?.rsplit_once(".v")?.0)
}

/// Returns the commands that show more about the state of an app. If its target is lost, about that connection, and
/// also about its worst problem if another cluster, which is not lost, declares it; if its home is lost and the worst
/// object is none of its declared ones, about that connection; else about `cause`, the last step of its cause chain, or
/// without one about its worst problem. With a `context` they name it.
fn next(app: &App, cause: Option<&CauseStep>, context: Option<&str>) -> Vec<String> {
    let lost = |cluster: &str, freshness: Freshness| {
        let is_lost = freshness.state == FreshnessState::Lost;
        is_lost.then(|| of_connection(cluster, freshness, context)).flatten()
    };
    let target = lost(&app.app.target, app.freshness);
    let home = lost(&app.app.home, app.home_freshness);
    let declared = app.problem().and_then(|problem| next_of_problem(app, problem, context));
    let is_elsewhere = app.app.other_home().is_some();
    match (cause, target, home) {
        (Some(cause), None, _) if (cause.status, &*cause.reason) == (Status::Unknown, OUT_OF_REACH) => {
            taffrail(&["explain", &full_name(&app.app), "--all-contexts"], "", None).into_iter().collect()
        }
        // Of a cluster that does not answer, commands tell nothing.
        (_, Some(target), None) if is_elsewhere && app.freshness.observed_at.is_some() => {
            [Some(target), declared].into_iter().flatten().collect()
        }
        (_, Some(target), _) => vec![target],
        (None, None, Some(home)) => vec![home],
        (None, None, None) => declared.into_iter().collect(),
        (Some(cause), None, home) => {
            let is_there = app.resources.iter().any(|own| Some(&*own.key) == app.worst.as_ref());
            match home.filter(|_| !is_there) {
                Some(home) => vec![home],
                None => next_of(cause, context),
            }
        }
    }
}

fn next_of(cause: &CauseStep, context: Option<&str>) -> Vec<String> {
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
    use super::*;

    fn commands(object: ObjectKey, status: Status, reason: &str, fact: &str) -> String {
        let cause = CauseStep {
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
    fn logs_command_names_the_container_that_ended() {
        let cause = CauseStep {
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
    fn next_commands_fit_the_cause() {
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
