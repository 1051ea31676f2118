//! Syncs that take long: one in progress becomes a problem once it takes longer than usual.

use jiff::{SignedDuration, Timestamp};
use taffrail_object::Object;
use taffrail_object::json::Value;
use taffrail_status::Observed;

use super::{Condition, Declaration, argo, config_sync, helm, span, text, written};
use crate::fleet::Fleet;
use crate::identity::Delivery;
use crate::objects::Objects;
use crate::problem::{Axis, MAX_UNTRIED_TIME, Problem, ProblemSeverity};
use crate::questions::elapsed;
use crate::sync::SyncState;

/// The time that a sync may take before waiting longer makes no sense.
pub(super) const MAX_SYNC_TIME: SignedDuration = SignedDuration::from_hours(1);

/// Returns the severity of an operation that has been running since `since`: waiting after `first`, an error
/// after `last`, `None` before.
///
/// Without a time it may have begun a moment or months ago, and counts as waiting.
pub(super) fn severity(
    objects: &dyn Objects,
    since: Option<Timestamp>,
    first: SignedDuration,
    last: SignedDuration,
    now: Timestamp,
) -> Option<ProblemSeverity> {
    let is_younger = |since, limit| elapsed(objects, since, limit, now) < limit;
    match since {
        None => Some(ProblemSeverity::Waiting),
        Some(since) if is_younger(since, first) => None,
        Some(since) if is_younger(since, last.max(first)) => Some(ProblemSeverity::Waiting),
        Some(_) => Some(ProblemSeverity::Error),
    }
}

/// Returns the problem of an app that its tool has been syncing for long.
pub(crate) fn problem(
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
            (helm::tried_at(app, fleet), format!("Helm began an operation and has not ended it: {trouble}"))
        }
        Delivery::ArgoApplication => return problem_of_argo(home, object?, now),
        Delivery::ConfigSync => {
            (config_sync::syncing_since(object?), "its reconciler has not come to an end".to_owned())
        }
        Delivery::FluxKustomization | Delivery::FluxHelmRelease => {
            return problem_of_flux(home, object?, now);
        }
        Delivery::Kpt => {
            let since = written(object?, &["status"]);
            (since, "some of its objects wait to be applied, and nothing applies them by itself".to_owned())
        }
        // The app that delivers a package reports it itself, and a label syncs nothing.
        Delivery::Porch | Delivery::Label | Delivery::Taffrail => return None,
    };
    of(home, since, MAX_SYNC_TIME, now).map(|problem| problem.says(says))
}

fn of(
    objects: &dyn Objects,
    since: Option<Timestamp>,
    last: SignedDuration,
    now: Timestamp,
) -> Option<Problem> {
    let severity = severity(objects, since, MAX_UNTRIED_TIME, last, now)?;
    Some(Problem::new(Axis::Sync, SyncState::Syncing.as_str(), severity).since(since))
}

/// Returns the problem of an Application whose operation has been running, or waiting to run, for long.
pub(super) fn problem_of_argo(home: &dyn Objects, object: &Object<'_>, now: Timestamp) -> Option<Problem> {
    let says = match argo::runs(object) {
        true => {
            let message = text(object.root(), &["status", "operationState", "message"]).unwrap_or_default();
            format!("its operation has not ended: {message}")
        }
        false => "an operation was asked for, and Argo CD has not begun it".to_owned(),
    };
    of(home, argo::begun(object), MAX_SYNC_TIME, now).map(|problem| problem.says(says))
}

/// Returns the problem of an app of Flux that has been reconciled for long; a longer timeout in its spec is
/// respected.
fn problem_of_flux(home: &dyn Objects, object: &Object<'_>, now: Timestamp) -> Option<Problem> {
    let timeout = object.at(&["spec", "timeout"]).and_then(Value::as_str);
    let timeout = timeout.and_then(|timeout| span(&timeout)).unwrap_or(MAX_SYNC_TIME);
    let ready = Condition::find(object, "Ready").filter(|ready| !ready.is("True"));
    let condition =
        ready.or_else(|| Condition::find(object, "Reconciling").filter(|condition| condition.is("True")))?;
    let problem = of(home, condition.since(), MAX_SYNC_TIME.max(timeout), now)?;
    Some(problem.says(format!("it has been reconciled for long: {}", condition.text("message"))))
}
