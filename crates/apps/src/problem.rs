//! The problems of a row: what is wrong, on which axis, and how bad it is.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taffrail_object::{ObjectKey, ObjectKeyRef};
use taffrail_status::{MAX_MESSAGE, Observed, Status, cut};

use crate::apps::{App, Resource};
use crate::delivery::{self, Declaration, Destination, argo, config_sync, controllers, flux, helm, late};
use crate::fleet::Fleet;
use crate::freshness::{Freshness, FreshnessState};
use crate::identity::Delivery;
use crate::objects::{Objects, Scope, ScopeError};
use crate::sync::{ObjectSync, SyncState, shorten};
use crate::teachers;
use crate::words::Words;

/// The time that a tool may leave a wanted revision untried before that is a problem.
pub(crate) const MAX_UNTRIED_TIME: SignedDuration = SignedDuration::from_mins(10);

/// The axis on which a row is not well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// The home or the target cluster is not live.
    Freshness,
    /// The objects, or the declaring object.
    Health,
    /// The way of the wanted revision into the cluster.
    Sync,
    /// The way of the wanted revision to the delivery tool.
    Source,
}

/// The severity of a problem, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProblemSeverity {
    /// Something failed, or cannot be known.
    Error,
    /// Something is in progress.
    Waiting,
    /// Something was chosen on purpose, such as a suspension.
    Notice,
}

/// The reason why a row is not well.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The axis.
    pub axis: Axis,
    /// The state on that axis, in CamelCase: `Failed`, `OutOfSync`, `FetchFailed`, `Lost`.
    pub state: String,
    /// Its severity.
    pub severity: ProblemSeverity,
    /// The time at which it began, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The reason, for people.
    pub message: Words,
    /// The object that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
}

impl Problem {
    pub(crate) fn new(axis: Axis, state: impl Into<String>, severity: ProblemSeverity) -> Problem {
        Problem { axis, state: state.into(), severity, since: None, message: Words::default(), object: None }
    }

    pub(crate) fn says(self, message: impl Into<Words>) -> Problem {
        let message = message.into();
        let message = if message.len() > MAX_MESSAGE { cut(&*message).into() } else { message };
        Problem { message, ..self }
    }

    pub(crate) fn since(self, since: Option<Timestamp>) -> Problem {
        Problem { since, ..self }
    }

    pub(crate) fn about<'k>(self, key: impl Into<ObjectKeyRef<'k>>) -> Problem {
        Problem { object: Some(key.into().to_owned()), ..self }
    }

    /// Returns true for a problem that counts for `--exit-status`, for `explain` without a name and in
    /// counts: all but notices.
    pub fn is_pressing(&self) -> bool {
        self.severity != ProblemSeverity::Notice
    }

    /// Returns true if the status of the app does not show the problem already: on every axis but health, and
    /// for notices and what Argo CD reports about health.
    pub fn is_beside_health(&self) -> bool {
        self.axis != Axis::Health
            || self.severity == ProblemSeverity::Notice
            || TOOL_SAYS.contains(&&*self.state)
    }

    /// Returns the text that is shown after the status of a Ready app: `sync failed`, `source not found`.
    pub fn words(&self) -> String {
        match (self.axis, &*self.state) {
            (Axis::Health, "Unconfirmed") => "unconfirmed".to_owned(),
            (Axis::Health, state) if TOOL_SAYS.contains(&state) => format!("{state} by Argo CD"),
            (Axis::Health, RULES_UNREAD) => "rules unread".to_owned(),
            (Axis::Health, _) => String::new(),
            (Axis::Freshness, state) => format!("home {}", spaced(state)),
            (Axis::Sync, "OutOfSync") => "OutOfSync".to_owned(),
            (Axis::Sync, CONTROLLER_STOPPED) => "delivery stopped".to_owned(),
            (Axis::Sync, SUSPENDED) => "suspended".to_owned(),
            (Axis::Sync, "Syncing") => "still syncing".to_owned(),
            (Axis::Source, "NotFound" | "NotFetched" | "Terminating" | SUSPENDED) => {
                format!("source {}", spaced(&self.state))
            }
            (Axis::Source, CONTROLLER_STOPPED) => "source not fetched".to_owned(),
            (Axis::Source, _) => "source failed".to_owned(),
            (Axis::Sync, state) => format!("sync {}", spaced(state)),
        }
    }
}

/// The states that Argo CD reports for the health of apps whose objects are well, or that list none.
const TOOL_SAYS: [&str; 2] = ["Degraded", "Missing"];

/// The state of a sync or source whose controller has stopped.
pub const CONTROLLER_STOPPED: &str = "ControllerStopped";

/// The state of an app or source whose tool was told to leave it alone.
pub const SUSPENDED: &str = "Suspended";

/// Splits a CamelCase word into lower-case words.
fn spaced(state: &str) -> String {
    let mut words = String::with_capacity(state.len() + 4);
    for (at, character) in state.chars().enumerate() {
        if at > 0 && character.is_uppercase() {
            words.push(' ');
        }
        words.extend(character.to_lowercase());
    }
    words
}

impl App {
    /// Returns true if the app has no problems.
    pub fn is_well(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the worst problem; `None` if the app is well.
    pub fn problem(&self) -> Option<&Problem> {
        self.problems.first()
    }

    /// Returns the sync states that the delivery tool reports for objects that are not synced, by object.
    pub fn syncs(&self) -> HashMap<&ObjectKey, &ObjectSync> {
        // If a tool reports several states of an object, the first one counts.
        self.unsynced.iter().rev().map(|own| (&own.key, own)).collect()
    }

    /// Returns the problem that counts for `--exit-status` and in counts: the worst one, unless it is a
    /// notice.
    pub fn pressing(&self) -> Option<&Problem> {
        self.problem().filter(|problem| problem.is_pressing())
    }
}

/// Returns the problems of an app, the worst first, each axis and state once.
///
/// `worst` is the object that decides the status where the app is not well.
pub(crate) fn of(
    app: &Declaration,
    halves: [Freshness; 2],
    worst: Option<&Resource>,
    resources: &[Resource],
    unsynced: &[ObjectSync],
    fleet: &Fleet<'_>,
    now: Timestamp,
) -> Vec<Problem> {
    let mut found = Vec::new();
    let home = fleet.objects(app.home);
    let target = app.cluster().map_or(home, |cluster| fleet.objects(cluster));
    let dark = [target, home].into_iter().zip(halves).filter_map(|(objects, half)| dark(objects, half));
    found.extend(dark.take(1));
    found.extend(worst.map(health));
    let delivered = delivered(app, unsynced, fleet, now);
    // For objects out of reach the only known time is that at which their tool lost sight of them.
    let unknown = delivered.iter().find(|it| it.axis == Axis::Sync && it.state == "Unknown");
    if let (Destination::OutOfReach(_), Some(unknown)) = (&app.destination, unknown) {
        let timeless = found.iter_mut().filter(|it| it.axis == Axis::Health && it.state == "Unknown");
        timeless.for_each(|it| it.since = it.since.or(unknown.since));
    }
    if worst.is_none() && !delivered.iter().any(|it| it.severity == ProblemSeverity::Error) {
        found.extend(by_tool(app, home));
    }
    found.extend(delivered);
    found.sort_by_key(|problem| (problem.severity, problem.axis));
    found.extend(unconfirmed(resources));
    let mut told: Vec<(Axis, String)> = Vec::new();
    found.retain(|problem| {
        let own = (problem.axis, problem.state.clone());
        let is_new = !told.contains(&own);
        told.push(own);
        is_new
    });
    found
}

/// Returns the problem that Argo CD reports for the health of an app whose own status is Current.
fn by_tool(app: &Declaration, home: &dyn Objects) -> Option<Problem> {
    if app.delivery != Delivery::ArgoApplication {
        return None;
    }
    argo::unwell(&home.get(app.declaring.as_ref()?.as_ref()).present()?, app.objects.is_empty())
}

/// Returns the problem of a cluster that is not live.
fn dark(objects: &dyn Objects, half: Freshness) -> Option<Problem> {
    let Freshness { state, observed_at } = half;
    let word = match state {
        FreshnessState::Live => return None,
        FreshnessState::Stale => "Stale",
        FreshnessState::Lost => "Lost",
    };
    let is_part = objects.freshness().is_live();
    let why = objects.errors().iter().find(|error| error.scope == Scope::Cluster && !is_part);
    let why = why.map(|error| format!(": {}", error.message)).unwrap_or_default();
    let part = if is_part { "a part of " } else { "" };
    let problem = Problem::new(Axis::Freshness, word, ProblemSeverity::Error).since(observed_at);
    Some(problem.says(format!("{part}cluster {} {}{why}", objects.name(), state.predicate())))
}

/// The reasons of failures in which a cluster sent no answer.
const SILENT: [&str; 6] =
    ["ConnectionFailed", "ConnectionLost", "ConnectionRefused", "NameNotResolved", "ProxyFailed", "Timeout"];

/// Returns the sentence about a cluster that could not be read: it begins with "does not answer" if no answer
/// came.
pub fn silence(error: &ScopeError) -> String {
    let silent = if SILENT.contains(&&*error.reason) { "does not answer: " } else { "" };
    format!("{silent}{}", error.message)
}

/// Returns the notice about objects that do not carry the mark of the app that claims them.
fn unconfirmed(resources: &[Resource]) -> Option<Problem> {
    let mut claimed = resources.iter().filter(|resource| resource.unconfirmed);
    let first = claimed.next()?;
    let more = match claimed.count() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let message = format!(
        "{} {} carries no mark of this app{more}: the claim is unconfirmed",
        first.key.kind,
        first.key.path()
    );
    let problem = Problem::new(Axis::Health, "Unconfirmed", ProblemSeverity::Notice);
    Some(problem.says(message).about(&first.key))
}

/// The state of an app that is judged without its tool's scripts, because they could not be read.
pub(crate) const RULES_UNREAD: &str = "RulesUnread";

/// Returns the notice that Argo CD's health scripts could not be read: an object that they call unhealthy
/// goes unnoticed.
fn rules_unread(home: &dyn Objects, declaring: &Observed<'_>) -> Option<Problem> {
    let (key, why) = teachers::unread_settings(home, &declaring.object)?;
    let message =
        format!("what Argo CD's scripts in ConfigMap {} say of its health is not known: {why}", key.path());
    let problem = Problem::new(Axis::Health, RULES_UNREAD, ProblemSeverity::Notice);
    Some(problem.says(message).about(&key))
}

fn health(worst: &Resource) -> Problem {
    let severity = match worst.status {
        Status::InProgress | Status::Terminating => ProblemSeverity::Waiting,
        _ => ProblemSeverity::Error,
    };
    let since = worst.since.or_else(|| worst.chain.iter().find_map(|link| link.since));
    let problem = Problem::new(Axis::Health, worst.status.as_str(), severity);
    problem.since(since).says(worst.message.clone()).about(&worst.key)
}

/// Returns the problems that the delivery tool, its sources and its controllers report.
fn delivered(app: &Declaration, unsynced: &[ObjectSync], fleet: &Fleet<'_>, now: Timestamp) -> Vec<Problem> {
    let home = fleet.objects(app.home);
    let declaring = app.declaring.as_ref().and_then(|key| home.get(key.as_ref()).present());
    let mut found = Vec::new();
    // A problem that names the failed object comes before one that names only the app.
    if let (Delivery::ArgoApplication, Some(declaring)) = (app.delivery, &declaring) {
        found.extend(argo::problems(declaring, &app.sync, unsynced, fleet, (app.home, app.cluster()), now));
        found.extend(rules_unread(home, declaring));
    }
    let trouble = app.trouble.as_deref().unwrap_or_default();
    let about = |problem: Problem| match &app.declaring {
        Some(key) => problem.about(key),
        None => problem,
    };
    let failed_at = || declaring.as_ref().and_then(|observed| failed_at(app.delivery, observed));
    match app.sync.state {
        SyncState::Failed => {
            let problem = Problem::new(Axis::Sync, "Failed", ProblemSeverity::Error);
            let since = failed_at().or_else(|| helm::tried_at(app, fleet));
            found.push(about(problem).since(since).says(trouble));
        }
        SyncState::Unknown if app.trouble.is_some() => {
            let problem = Problem::new(Axis::Sync, "Unknown", ProblemSeverity::Error);
            let since = declaring.as_ref().and_then(|observed| unknown_since(app.delivery, observed));
            let says = if trouble.is_empty() { "its delivery tool does not say why" } else { trouble };
            found.push(about(problem).since(since).says(says));
        }
        _ => {}
    }
    let is_late = late::problem(app, declaring.as_ref(), fleet, now);
    found.extend(is_late.map(about));
    if app.suspended {
        let message = match flux::newer(&app.sync) {
            Some(newer) => {
                format!("its delivery tool was told to leave it alone; the source has {}", shorten(newer))
            }
            None => "its delivery tool was told to leave it alone".to_owned(),
        };
        let since = declaring.as_ref().and_then(|observed| delivery::suspended_at(app.delivery, observed));
        let problem = Problem::new(Axis::Sync, SUSPENDED, ProblemSeverity::Notice);
        found.push(about(problem).since(since).says(message));
    }
    let Some(declaring) = declaring else {
        if app.delivery == Delivery::Kpt && app.sync.state == SyncState::OutOfSync {
            found.push(about(untried(ProblemSeverity::Notice, None)));
        }
        return found;
    };
    match app.delivery {
        Delivery::FluxKustomization | Delivery::FluxHelmRelease => {
            found.extend(flux::problems(fleet, app.home, &declaring, &app.sync, now));
        }
        Delivery::ConfigSync => found.extend(config_sync::problem(home, &declaring, &app.sync, now)),
        // Nothing applies a package again by itself.
        Delivery::Kpt if app.sync.state == SyncState::OutOfSync => {
            let says = "some of its objects were skipped, and nothing applies them again by itself";
            found.push(about(untried(ProblemSeverity::Notice, None)).says(says));
        }
        _ => {}
    }
    if !app.suspended {
        found.extend(controllers::problem(home, app, &declaring, &fleet.stops));
    }
    // A problem of a source is the reason why the sync is not known.
    if found.iter().any(|it| it.axis == Axis::Source && it.is_pressing()) {
        found.retain(|it| it.axis != Axis::Sync || it.state != "Unknown");
    }
    // A stopped controller will not apply the outstanding revision.
    let is_stopped = found.iter().any(|it| it.axis == Axis::Sync && it.state == CONTROLLER_STOPPED);
    if is_stopped {
        found.retain(|it| it.state != "OutOfSync");
    }
    found
}

/// Returns the problem of a revision that is wanted but not applied.
pub(crate) fn untried(severity: ProblemSeverity, since: Option<Timestamp>) -> Problem {
    Problem::new(Axis::Sync, "OutOfSync", severity).since(since)
}

/// Returns the time since when a tool has not known the state of a sync.
fn unknown_since(delivery: Delivery, declaring: &Observed<'_>) -> Option<Timestamp> {
    match delivery {
        Delivery::ArgoApplication => argo::incomparable_since(&declaring.object),
        _ => failed_at(delivery, declaring),
    }
}

fn failed_at(delivery: Delivery, declaring: &Observed<'_>) -> Option<Timestamp> {
    let object = &declaring.object;
    match delivery {
        Delivery::FluxKustomization | Delivery::FluxHelmRelease => {
            let ready = object.condition("Ready")?;
            // A condition that is True changed when all was well.
            let is_true = ready.get("status").is_some_and(|status| status.is_str("True"));
            delivery::time(ready.get("lastTransitionTime")).filter(|_| !is_true)
        }
        Delivery::ArgoApplication => argo::failed_at(object),
        Delivery::ConfigSync => config_sync::failed_at(object),
        _ => None,
    }
}
