//! The sentences and words of the views, those of the hub's page.

use std::borrow::Cow;

use jiff::Timestamp;
use taffrail_api::hub::{AnswerState, Attention, ClusterCounts};
use taffrail_api::{AppRow, text};
use taffrail_apps::text::{age, moment, span};
use taffrail_apps::{Axis, FreshnessState, ProblemSeverity};
use taffrail_status::Status;

/// Returns `1 app`, `12 apps`.
pub(super) fn count(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(number))
}

/// Returns a number with a comma before each group of three digits.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a state such as `OutOfSync` as words within a sentence.
pub(super) fn spaced(state: &str) -> String {
    let mut text = String::new();
    let mut was_lower = false;
    for character in state.chars() {
        if was_lower && character.is_ascii_uppercase() {
            text.push(' ');
            text.push(character.to_ascii_lowercase());
        } else {
            text.push(character);
        }
        was_lower = character.is_ascii_lowercase();
    }
    text
}

/// Returns the time since `at`, as in tables: `4m`; empty if that is not known.
pub(super) fn age_of(at: Option<Timestamp>, now: Timestamp) -> String {
    at.map(|at| age(now.as_second().saturating_sub(at.as_second()).max(0))).unwrap_or_default()
}

fn long(at: Timestamp, now: Timestamp) -> String {
    span(now.as_second().saturating_sub(at.as_second()))
}

/// Returns a revision as people tell them apart: `main@1f2e3d4c`, shortened as in tables and without the algorithm of its
/// hash.
pub(super) fn short_revision(revision: &str) -> String {
    match text::revision(revision) {
        Cow::Borrowed(whole) => whole.to_owned(),
        Cow::Owned(short) => ["sha1:", "sha256:"].iter().fold(short, |short, name| short.replace(name, "")),
    }
}

/// Returns the last part of a key, by which people call the app.
pub(super) fn key_name(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

pub(super) fn attention(data: &Attention, clusters: Option<&ClusterCounts>, now: Timestamp) -> String {
    let pressing = || data.items.iter().filter(|entry| entry.severity != ProblemSeverity::Notice);
    let causes: Vec<_> = pressing().filter(|entry| entry.axis != Axis::Freshness).collect();
    let silent: Vec<_> = pressing().filter(|entry| entry.axis == Axis::Freshness).collect();
    let mut parts = Vec::new();
    if !causes.is_empty() {
        let number = count(causes.len(), "problem");
        let number = if data.total > data.items.len() { format!("More than {number}") } else { number };
        let verb = if causes.len() == 1 { "affects" } else { "affect" };
        let affected: usize = causes.iter().map(|entry| entry.count).sum();
        parts.push(format!("{number} {verb} {} of {}", grouped(affected), count(data.apps, "app")));
    } else if silent.is_empty() && data.coverage.state == AnswerState::Complete {
        let (apps, clusters) = (count(data.apps, "app"), count(data.coverage.clusters, "cluster"));
        return format!("All {apps} in {clusters} are well.");
    } else {
        parts.push(format!("No problem is known in {}", count(data.apps, "app")));
    }
    let are = |number: usize, state: &str| {
        let verb = if number == 1 { "is" } else { "are" };
        format!("{} {verb} {state}", count(number, "cluster"))
    };
    if let Some(clusters) = clusters {
        if clusters.lost > 0 {
            let since = silent.iter().filter_map(|entry| entry.since).min();
            let since = since.map(|since| format!(" for {}", long(since, now))).unwrap_or_default();
            parts.push(format!("{}{since}", are(clusters.lost, "lost")));
        }
        if clusters.stale > 0 {
            parts.push(are(clusters.stale, "stale"));
        }
    }
    format!("{}.", parts.join("; "))
}

pub(super) fn clusters(counts: &ClusterCounts) -> String {
    let ClusterCounts { live, stale, lost, .. } = *counts;
    let all = live + stale + lost;
    let parts: Vec<String> = [(lost, "lost"), (stale, "stale")]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{} {word}", grouped(number)))
        .collect();
    if parts.is_empty() {
        return format!("All {} are live.", count(all, "cluster"));
    }
    let verb = if live == 1 { "is" } else { "are" };
    format!("{} of {} {verb} live; {}.", grouped(live), count(all, "cluster"), parts.join(", "))
}

/// Returns the sentence that answers how an app is.
pub(super) fn app(row: &AppRow, now: Timestamp) -> String {
    let since = row.since.map(|since| format!(" for {}", long(since, now))).unwrap_or_default();
    let objects = |number| count(number, "object");
    if row.freshness.state != FreshnessState::Live {
        let seen = row.freshness.observed_at.map(|at| format!(" for {}", long(at, now))).unwrap_or_default();
        let (state, was) = (row.freshness.state.as_str(), row.health.word());
        return format!("Cluster {} is {state}{seen}; the app was {was} when it was last seen.", row.cluster);
    }
    if row.health != Status::Current {
        let worst = row.worst.as_ref().map(|worst| format!("{} {}", worst.kind, worst.name));
        let worst = worst.unwrap_or_else(|| "The app".to_owned());
        let bad = row.objects.saturating_sub(row.counts.current);
        let verb = if bad == 1 { "is" } else { "are" };
        let of = match bad {
            0 => String::new(),
            bad => format!("; {} of {} {verb} not ready", grouped(bad), objects(row.objects)),
        };
        return format!("{worst} is {}{since}{of}.", spaced(row.health.word()));
    }
    if let Some(problem) = row.problem.as_ref().filter(|problem| problem.is_pressing()) {
        let axis = format!("{:?}", problem.axis).to_lowercase();
        let state = spaced(&problem.state);
        return format!("All {} are ready, but its {axis} is {state}{since}.", objects(row.objects));
    }
    let at = row.sync.applied.as_deref().map(|revision| format!(" at {}", short_revision(revision)));
    let at = at.unwrap_or_default();
    match (row.suspended, row.objects) {
        (true, number) => format!("All {} are ready{at}; the app is suspended.", objects(number)),
        (false, 1) => format!("Its object is ready{at}."),
        (false, number) => format!("All {} are ready{at}.", objects(number)),
    }
}

/// Returns the time of day of `at` in UTC, with the date if that is another day: `14:02:11`.
pub(super) fn clock(at: Timestamp, now: Timestamp) -> String {
    let day = |at: Timestamp| at.strftime("%Y-%m-%d").to_string();
    match day(at) == day(now) {
        true => at.strftime("%H:%M:%S").to_string(),
        false => moment(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_states_and_revisions_are_short() {
        assert_eq!(count(1204, "app"), "1,204 apps");
        assert_eq!(count(1, "app"), "1 app");
        assert_eq!(grouped(1_000_000), "1,000,000");
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(clock(at("2026-03-01T11:59:20Z"), at("2026-03-01T12:00:00Z")), "11:59:20");
        assert_eq!(clock(at("2026-02-28T11:59:20Z"), at("2026-03-01T12:00:00Z")), "2026-02-28 11:59:20 UTC");
        assert_eq!(spaced("OutOfSync"), "Out of sync");
        assert_eq!(short_revision("main@sha1:1f2e3d4c5b6a79881f2e3d4c5b6a79881f2e3d4c"), "main@1f2e3d4c");
        assert_eq!(short_revision("1f2e3d4c5b6a79881f2e3d4c5b6a79881f2e3d4c"), "1f2e3d4c");
        assert_eq!(short_revision("1.2.3"), "1.2.3");
        let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        assert_eq!(short_revision(&format!("1.2.3@sha256:{digest}")), "1.2.3@9f86d081");
    }
}
