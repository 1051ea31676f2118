//! The texts of table cells.

use std::borrow::Cow;

use jiff::Timestamp;
use taffrail_apps::{
    App, Axis, Delivery, Freshness, FreshnessState, Problem, SUSPENDED, SyncState, object_words,
};
use taffrail_status::Status;

pub use taffrail_apps::shorten as revision;
pub use taffrail_apps::text::{age, ago, line, span};

/// The text of a cell without a value.
pub const NONE: &str = "-";

/// Returns the health of an app with its worst other problem: `Ready`, `Ready, sync failed`, `Ready
/// (suspended)`, `Failed, unconfirmed` if the worst object carries no mark of the app, `Unknown (was Ready,
/// 12 min ago)`.
pub fn health(app: &App, now: Timestamp) -> String {
    let seen = status(app.health, app.freshness, now);
    let is_ready = app.effective() == Status::Current;
    // A suspension is shown at the end.
    let is_said = |problem: &&Problem| problem.axis == Axis::Sync && problem.state == SUSPENDED;
    let besides = app.problem().filter(|problem| is_ready && !is_said(problem));
    let besides = besides.map(Problem::words).filter(|words| !words.is_empty());
    let besides = besides.map(|words| format!(", {words}")).unwrap_or_default();
    let is_unconfirmed = !is_ready && app.speaker.as_ref().is_some_and(|speaker| speaker.unconfirmed);
    let unconfirmed = if is_unconfirmed { ", unconfirmed" } else { "" };
    let suspended = if app.suspended { " (suspended)" } else { "" };
    format!("{seen}{unconfirmed}{besides}{suspended}")
}

/// Returns the present status, with the last observed one if that is too old: `Ready`, `Unknown (was Ready,
/// 12 min ago)`.
pub fn status(last: Status, freshness: Freshness, now: Timestamp) -> String {
    match (freshness.state, freshness.observed_at) {
        (FreshnessState::Live, _) => last.word().to_owned(),
        (FreshnessState::Stale | FreshnessState::Lost, None) => Status::Unknown.word().to_owned(),
        (FreshnessState::Stale | FreshnessState::Lost, Some(at)) => {
            format!("{} (was {}, {})", Status::Unknown.word(), last.word(), ago(at, now))
        }
    }
}

/// Returns the sync of an app when it was last observed, and what is known of it now: `Synced`, `Unknown (was Synced)`.
pub fn sync(app: &App) -> Cow<'static, str> {
    let (last, now) = (app.sync.state.as_str(), app.effective_sync().as_str());
    match app.home_freshness.observed_at {
        Some(_) if now != last => Cow::Owned(format!("{now} (was {last})")),
        _ => Cow::Borrowed(now),
    }
}

/// Returns the status of an object with the sync state that its delivery tool reports: `Ready, OutOfSync`.
///
/// An object that does not exist cannot be in sync, so OutOfSync is left out for it.
pub fn object_status(status: Status, sync: Option<&str>) -> String {
    match sync.filter(|sync| status != Status::NotFound || *sync != SyncState::OutOfSync.as_str()) {
        Some(sync) => format!("{}, {}", status.word(), object_words(sync)),
        None => status.word().to_owned(),
    }
}

/// Returns the short name of a delivery, for a column of a table.
pub fn delivery(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::FluxKustomization => "ks",
        Delivery::FluxHelmRelease => "hr",
        Delivery::ArgoApplication => "argo",
        other => other.as_str(),
    }
}
