//! Clock skew, and times of observation that are not known.

use jiff::SignedDuration;

use super::ground::{Ground, TOLERANCE};
use super::{FindingCategory, NewFinding, Severity, count};
use crate::freshness::FreshnessState;
use crate::view::text;

/// The maximum age of a dump that can still be taken as current.
const OLD: SignedDuration = SignedDuration::from_mins(10);

pub(super) fn look(ground: &Ground<'_>) -> Vec<NewFinding> {
    let found = [undated(ground), server(ground), future(ground), stale(ground)];
    found.into_iter().flatten().collect()
}

fn finding(severity: Severity, reason: &'static str) -> NewFinding {
    NewFinding::new(FindingCategory::Skewed, severity, reason)
}

/// Finds a dump without a date that is judged as if it were current.
fn undated(ground: &Ground<'_>) -> Option<NewFinding> {
    let newest = ground.newest.filter(|_| !ground.objects.is_dated())?;
    let age = ground.asked_at.duration_since(newest);
    if age <= OLD {
        return None;
    }
    let message = format!(
        "nobody says when the dump was made, and the newest time in it is {}: all of it may be as old as that; silence is \
         judged as of then (--now sets the time)",
        text::ago(newest, ground.asked_at)
    );
    let apps = ground.apps().map(|(place, _)| place);
    Some(finding(Severity::Medium, "Undated").says(message).since(Some(newest)).of(apps))
}

/// Finds an API server whose clock differs from the reader's.
fn server(ground: &Ground<'_>) -> Option<NewFinding> {
    let ahead = ground.objects.clock_ahead()?;
    if ahead.abs() <= TOLERANCE {
        return None;
    }
    let side = if ahead.is_negative() { "behind" } else { "ahead of" };
    let message = format!(
        "the API server's clock is {} {side} that of this machine: ages, deadlines and leases are judged wrongly by that \
         much",
        text::span(ahead.abs().as_secs())
    );
    let apps = ground.apps().map(|(place, _)| place);
    Some(finding(Severity::Medium, "ServerClock").says(message).of(apps))
}

/// Finds objects with times in the future.
fn future(ground: &Ground<'_>) -> Option<NewFinding> {
    let (at, key, objects) = ground.future.as_ref()?;
    let far = text::span(at.duration_since(ground.asked_at).as_secs());
    let others = objects.saturating_sub(1);
    let others = match others {
        0 => String::new(),
        others => format!(" ({} as well)", count(others, "other object", "other objects")),
    };
    let message = format!(
        "names a time that is {far} ahead of now{others}: a clock is wrong, there or here, and ages and deadlines with it"
    );
    let apps = ground.apps().map(|(place, _)| place);
    Some(
        finding(Severity::Medium, "FutureTime")
            .object(key, None)
            .says(message)
            .of(apps)
            .next(ground.describe(key)),
    )
}

/// Finds a cluster that was seen some time ago and is no longer watched.
fn stale(ground: &Ground<'_>) -> Option<NewFinding> {
    let freshness = ground.objects.freshness();
    let at = freshness.observed_at.filter(|_| freshness.state != FreshnessState::Live)?;
    let message = format!("was last seen {}: what is shown is of then", text::ago(at, ground.asked_at));
    let apps = ground.apps().map(|(place, _)| place);
    Some(finding(Severity::Medium, "Stale").says(message).since(Some(at)).of(apps))
}
