//! Findings: clocks differ, or the observation is old or of an unknown time.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::cluster_context::{CLOCK_TOLERANCE, ClusterContext, Farthest, FutureTimes};
use super::{Finding, FindingCategory, Severity, count};
use crate::freshness::FreshnessState;
use crate::text;

/// The maximum age of the newest time in a dump without a date for which the dump counts as current; for an older one
/// there is a finding.
const MAX_UNDATED_AGE: SignedDuration = SignedDuration::from_mins(10);

pub(super) fn look(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let found = [undated(cluster), server(cluster)].into_iter().flatten();
    found.chain(future(cluster)).chain(stale(cluster)).collect()
}

fn finding(severity: Severity, reason: &'static str) -> Finding {
    Finding::new(FindingCategory::Skewed, severity, reason)
}

/// Returns the finding that a dump without a date is older than [`MAX_UNDATED_AGE`] by the newest time in its objects;
/// `None` otherwise.
fn undated(cluster: &ClusterContext<'_>) -> Option<Finding> {
    let newest = cluster.newest.filter(|_| !cluster.objects.is_dated())?;
    let age = cluster.asked_at.duration_since(newest);
    if age <= MAX_UNDATED_AGE {
        return None;
    }
    let message = format!(
        "the dump does not state when it was written, and the newest time in its objects is {}: every status may be \
         as old as that; Taffrail judges leases and deadlines at that time (--now sets another)",
        text::ago(newest, cluster.asked_at)
    );
    let apps = cluster.apps().map(|(place, _)| place);
    Some(finding(Severity::Medium, "Undated").says(message).since(Some(newest)).of(apps))
}

/// Returns the finding that the clock of the API server differs from the local one by more than [`CLOCK_TOLERANCE`];
/// `None` if it does not, or the difference is not known.
fn server(cluster: &ClusterContext<'_>) -> Option<Finding> {
    let ahead = cluster.objects.clock_ahead()?;
    if ahead.abs() <= CLOCK_TOLERANCE {
        return None;
    }
    let side = if ahead.is_negative() { "behind" } else { "ahead of" };
    let message = format!(
        "the API server's clock is {} {side} that of this machine: ages, deadlines and leases are wrong by that much",
        text::span(ahead.abs().as_secs())
    );
    let apps = cluster.apps().map(|(place, _)| place);
    Some(finding(Severity::Medium, "ServerClock").says(message).of(apps))
}

/// Makes one finding for all times in the future that no tenant can write, and one for each other namespace with such
/// times and selected apps; each names the object with the farthest time.
///
/// Times that a tenant may have written concern only the apps of their namespace.
fn future(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let FutureTimes { sure, of_namespaces } = &cluster.future;
    let all = || cluster.apps().map(|(place, _)| place).collect();
    let sure = sure.as_ref().map(|farthest| ahead(cluster, farthest, all()));
    let of_namespaces = of_namespaces.iter().filter_map(|(namespace, farthest)| {
        let apps: BTreeSet<usize> = cluster.in_namespace(namespace).collect();
        (!apps.is_empty()).then(|| ahead(cluster, farthest, apps))
    });
    sure.into_iter().chain(of_namespaces).collect()
}

fn ahead(cluster: &ClusterContext<'_>, farthest: &Farthest, apps: BTreeSet<usize>) -> Finding {
    let Farthest { at, key, objects } = farthest;
    let far = text::span(at.duration_since(cluster.asked_at).as_secs());
    let others = objects.saturating_sub(1);
    let others = match others {
        0 => String::new(),
        others => format!(" ({} as well)", count(others, "other object", "other objects")),
    };
    let message = format!(
        "the object contains a time {far} in the future{others}: the clock of this machine, or of the one that wrote \
         the time, is wrong, so ages and deadlines are wrong too"
    );
    let found = finding(Severity::Medium, "FutureTime").object(key, None).says(message);
    found.of(apps).next(cluster.describe(key))
}

/// Returns the finding that the cluster was observed some time ago and is not live; `None` for a live one, and for one
/// that was never observed.
fn stale(cluster: &ClusterContext<'_>) -> Option<Finding> {
    let freshness = cluster.objects.freshness();
    let at = freshness.observed_at.filter(|_| freshness.state != FreshnessState::Live)?;
    let message = format!(
        "the cluster was last observed {}: every status is as old as that",
        text::ago(at, cluster.asked_at)
    );
    let apps = cluster.apps().map(|(place, _)| place);
    Some(finding(Severity::Medium, "Stale").says(message).since(Some(at)).of(apps))
}
