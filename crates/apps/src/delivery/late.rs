//! Syncs that take too long.

use jiff::{SignedDuration, Timestamp};

use crate::noting::elapsed;
use crate::objects::Objects;
use crate::problem::{Axis, MAX_UNTRIED_TIME, Problem, ProblemSeverity};
use crate::sync::SyncState;

/// The time after which a sync in progress is an error, one hour, unless a Flux app sets a longer timeout or a source a
/// longer interval.
pub(crate) const MAX_SYNC_TIME: SignedDuration = SignedDuration::from_hours(1);

/// Returns the severity of an operation that has run since `since`: `Waiting` once it has run for `first`, `Error` once
/// it has run for `last` (or `first`, if that is longer), `None` before.
///
/// Without a start time, the operation counts as waiting: it may have begun a moment or months ago.
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

/// Returns the sentence `what`, with a tool's `message` after a colon unless that is empty.
pub(super) fn because(what: &str, message: &str) -> String {
    if message.is_empty() { what.to_owned() } else { format!("{what}: {message}") }
}

/// Returns the problem of a sync that has been in progress since `since` for [`MAX_UNTRIED_TIME`] or longer, or since
/// an unknown time; `None` before. It becomes an error after `last`.
pub(crate) fn problem(
    objects: &dyn Objects,
    since: Option<Timestamp>,
    last: SignedDuration,
    now: Timestamp,
) -> Option<Problem> {
    let severity = severity(objects, since, MAX_UNTRIED_TIME, last, now)?;
    Some(Problem::new(Axis::Sync, SyncState::Syncing.as_str(), severity).since(since))
}
