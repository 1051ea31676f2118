//! The search for the problems of an app, on all axes.

use jiff::Timestamp;
use taffrail_status::{Observed, Status};

use crate::app::Resource;
use crate::declaration::{Declaration, Destination};
use crate::delivery::argo::installs;
use crate::delivery::{self, argo, config_sync, controllers, flux, helm, late};
use crate::fleet::Fleet;
use crate::freshness::{Freshness, FreshnessState};
use crate::identity::{AppName, Delivery};
use crate::objects::Objects;
use crate::problem::{
    Axis, CONTROLLER_STOPPED, Problem, ProblemSeverity, RULES_UNREAD, SUSPENDED, UNCONFIRMED, order_problems,
    untried,
};
use crate::scope::Scope;
use crate::sync::{ObjectSync, SyncState, shorten};

/// Returns the problems of an app on all axes, the worst first, one for each axis and state.
///
/// `via` is the app that delivers the objects of `app` in place of its own tool. `halves` are the freshness of the target
/// and of the home: if neither is live, only that of the target is a problem. `worst` is the entry that decides the status, if the app is not well.
pub(crate) fn of(
    (app, via): (&Declaration, Option<&Declaration>),
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
    found.extend(worst.map(health_problem));
    let delivered = delivered((app, via), unsynced, fleet, now);
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
    order_problems(found, unconfirmed_problem(resources))
}

/// Returns the problem that Argo CD calls an app Degraded or Missing although its objects are Current, or it has none;
/// `None` if it does not.
fn by_tool(app: &Declaration, home: &dyn Objects) -> Option<Problem> {
    if app.delivery != Delivery::ArgoApplication {
        return None;
    }
    argo::unwell(&home.get(app.declaring.as_ref()?.as_ref()).present()?, app.objects.is_empty())
}

/// Returns the problem that a cluster is not live, with the freshness `half` of the app's part in it; `None` if it
/// is live.
fn dark(objects: &dyn Objects, half: Freshness) -> Option<Problem> {
    // A row that is live does not depend on the errors of its cluster.
    if half.is_live() {
        return None;
    }
    let is_part = objects.freshness().is_live();
    let why = objects.errors().iter().find(|error| error.scope == Scope::Cluster);
    freshness_problem(objects.name(), half, is_part, why.map(|error| &*error.message))
}

/// Returns the problem that the state of `cluster` is not live; `None` if it is live. `is_part` is true if the
/// cluster answers, and only a part of it is not live; else `why` is the error with which it could not be read.
pub fn freshness_problem(
    cluster: &str,
    freshness: Freshness,
    is_part: bool,
    why: Option<&str>,
) -> Option<Problem> {
    let Freshness { state, observed_at } = freshness;
    let word = match state {
        FreshnessState::Live => return None,
        FreshnessState::Stale => "Stale",
        FreshnessState::Lost => "Lost",
    };
    let why = why.filter(|_| !is_part).map(|why| format!(": {why}")).unwrap_or_default();
    let part = if is_part { "a part of " } else { "" };
    let problem = Problem::new(Axis::Freshness, word, ProblemSeverity::Error).since(observed_at);
    Some(problem.says(format!("{part}cluster {cluster} {}{why}", state.predicate())))
}

/// Returns the notice that objects do not carry the mark of this app, which claims them; `None` if none of `resources`
/// is unconfirmed.
pub fn unconfirmed_problem(resources: &[Resource]) -> Option<Problem> {
    let mut claimed = resources.iter().filter(|resource| resource.unconfirmed);
    let first = claimed.next()?;
    let more = match claimed.count() {
        0 => String::new(),
        1 => ", nor does 1 more of its objects".to_owned(),
        more => format!(", nor do {more} more of its objects"),
    };
    let message = format!(
        "{} {} carries no mark of this app{more}: the claim is unconfirmed",
        first.key.kind,
        first.key.path()
    );
    let problem = Problem::new(Axis::Health, UNCONFIRMED, ProblemSeverity::Notice);
    Some(problem.says(message).about(&*first.key))
}

/// Returns the notice that Argo CD's health scripts could not be read, so that an object that they call unhealthy
/// goes unnoticed; `None` if they were read.
fn rules_unread(home: &dyn Objects, declaring: &Observed<'_>) -> Option<Problem> {
    let (key, why) = installs::unread_settings(home, &declaring.object)?;
    let message = format!("the Argo CD health scripts in ConfigMap {} were not read: {why}", key.path());
    let problem = Problem::new(Axis::Health, RULES_UNREAD, ProblemSeverity::Notice);
    Some(problem.says(message).about(&key))
}

/// Returns the problem that `worst`, the object that decides the status of its app, is not well.
pub fn health_problem(worst: &Resource) -> Problem {
    let severity = match worst.status {
        Status::InProgress | Status::Terminating => ProblemSeverity::Waiting,
        _ => ProblemSeverity::Error,
    };
    let since = worst.since.or_else(|| worst.chain.iter().find_map(|link| link.since));
    let problem = Problem::new(Axis::Health, worst.status.as_str(), severity);
    problem.since(since).says(worst.message.clone()).about(&*worst.key)
}

/// Returns the problems that the delivery tool, the sources and the controllers of an app report. A problem of a source
/// that is not a notice replaces an unknown sync state, and a stopped controller replaces OutOfSync.
fn delivered(
    (app, via): (&Declaration, Option<&Declaration>),
    unsynced: &[ObjectSync],
    fleet: &Fleet<'_>,
    now: Timestamp,
) -> Vec<Problem> {
    let home = fleet.objects(app.home);
    let declaring = app.declaring.as_ref().and_then(|key| home.get(key.as_ref()).present());
    let mut found = Vec::new();
    // A problem that names the failed object comes before one that names only the app.
    if let (Delivery::ArgoApplication, Some(declaring)) = (app.delivery, &declaring) {
        found.extend(argo::problems(declaring, &app.sync, unsynced, fleet, (app.home, app.cluster()), now));
        // Objects that are not read are not judged by them.
        let is_light = app.cluster().is_some_and(|cluster| fleet.objects(cluster).is_light());
        found.extend(rules_unread(home, declaring).filter(|_| !is_light));
    }
    let trouble = app.trouble.as_deref().unwrap_or_default();
    let about = |problem: Problem| match &app.declaring {
        Some(key) => problem.about(key),
        None => problem,
    };
    let failed_at = || declaring.as_ref().and_then(|observed| failed_at(app.delivery, observed));
    let of_source = || {
        let observed = declaring.as_ref()?;
        delivery::source_error(app.delivery, &observed.object)
    };
    let is_of_source = || of_source().is_some_and(|error| error == trouble);
    match app.sync.state {
        SyncState::Failed if via.is_some_and(|via| via.sync.state == SyncState::Failed) => {
            found.extend(via.map(|via| about(carried(via, trouble, fleet))));
        }
        SyncState::Failed => {
            let axis = if is_of_source() { Axis::Source } else { Axis::Sync };
            let problem = Problem::new(axis, "Failed", ProblemSeverity::Error);
            let since = failed_at().or_else(|| helm::tried_at(app, fleet));
            found.push(about(problem).since(since).says(trouble));
        }
        SyncState::Unknown if app.trouble.is_some() => {
            let (axis, state) =
                if is_of_source() { (Axis::Source, "Failed") } else { (Axis::Sync, "Unknown") };
            let problem = Problem::new(axis, state, ProblemSeverity::Error);
            let since = declaring.as_ref().and_then(|observed| unknown_since(app.delivery, observed));
            let says = if trouble.is_empty() {
                "the sync state is unknown, and the delivery tool does not say why"
            } else {
                trouble
            };
            found.push(about(problem).since(since).says(says));
        }
        _ => {}
    }
    let is_late = syncing(app, declaring.as_ref(), fleet, now);
    found.extend(is_late.map(about));
    if app.suspended {
        let newer = flux::newer(&app.sync).map(|newer| format!("; the source has {}", shorten(newer)));
        let newer = newer.unwrap_or_default();
        let message = format!("the app is suspended: its delivery tool applies no changes by itself{newer}");
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
            let says = "kpt skipped some objects of the app, and nothing applies them again by itself";
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

/// Returns the problem of an app whose objects `via` delivers: that the sync of `via` failed, with the message `trouble`.
fn carried(via: &Declaration, trouble: &str, fleet: &Fleet<'_>) -> Problem {
    let observed = via.declaring.as_ref().and_then(|key| fleet.objects(via.home).get(key.as_ref()).present());
    let source_error =
        observed.as_ref().and_then(|observed| delivery::source_error(via.delivery, &observed.object));
    let axis = if source_error.is_some_and(|error| error == trouble) { Axis::Source } else { Axis::Sync };
    let since = observed.as_ref().and_then(|observed| failed_at(via.delivery, observed));
    let own = Problem::new(axis, "Failed", ProblemSeverity::Error).since(since).says(trouble);
    let own = match &via.declaring {
        Some(key) => own.about(key),
        None => own,
    };
    let name = AppName { delivery: via.delivery, namespace: via.namespace.clone(), name: via.name.clone() };
    let upstream = own.of_upstream(name);
    let message = format!("{}, which delivers the app, failed: {trouble}", via.declaring_name());
    own.says(message).caused_by(upstream)
}

/// Returns the problem that a sync has been in progress for [`MAX_UNTRIED_TIME`](crate::problem::MAX_UNTRIED_TIME) or
/// longer, or since an unknown time; `None` otherwise, and for apps of Porch, labels and Taffrail.
fn syncing(
    app: &Declaration,
    declaring: Option<&Observed<'_>>,
    fleet: &Fleet<'_>,
    now: Timestamp,
) -> Option<Problem> {
    if app.sync.state != SyncState::Syncing {
        return None;
    }
    let home = fleet.objects(app.home);
    let object = declaring.map(|declaring| &declaring.object);
    let (since, says) = match app.delivery {
        Delivery::Helm => {
            let trouble = app.trouble.as_deref().unwrap_or_default();
            (
                helm::tried_at(app, fleet),
                format!("the last Helm operation on the release has not finished: {trouble}"),
            )
        }
        Delivery::ArgoApplication => return argo::syncing(home, object?, now),
        Delivery::ConfigSync => (
            config_sync::syncing_since(object?),
            "the Config Sync reconciler has not finished the sync of the app".to_owned(),
        ),
        Delivery::FluxKustomization | Delivery::FluxHelmRelease => {
            return flux::syncing(home, object?, now);
        }
        Delivery::Kpt => {
            let since = delivery::written(object?, &["status"]);
            (
                since,
                "some objects of the app wait to be applied, and nothing applies them by itself".to_owned(),
            )
        }
        // The app that delivers a package reports it itself, and a label syncs nothing.
        Delivery::Porch | Delivery::Label | Delivery::Taffrail => return None,
    };
    late::problem(home, since, late::MAX_SYNC_TIME, now).map(|problem| problem.says(says))
}

/// Returns the time since when the delivery tool has not known the sync state; `None` if it is not recorded.
fn unknown_since(delivery: Delivery, declaring: &Observed<'_>) -> Option<Timestamp> {
    match delivery {
        Delivery::ArgoApplication => argo::incomparable_since(&declaring.object),
        _ => failed_at(delivery, declaring),
    }
}

fn failed_at(delivery: Delivery, declaring: &Observed<'_>) -> Option<Timestamp> {
    let object = &declaring.object;
    match delivery {
        Delivery::FluxKustomization | Delivery::FluxHelmRelease => flux::failed_at(object),
        Delivery::ArgoApplication => argo::failed_at(object),
        Delivery::ConfigSync => config_sync::failed_at(object),
        _ => None,
    }
}
