//! The mark of a half, by which its source finds out if the half changed, and how urgent the report of the change is.

use std::hash::{BuildHasher, Hash, Hasher};
use std::time::Duration;

use taffrail_apps::{FreshnessState, Problem, ProblemSeverity, SyncAttempt, SyncState, UpstreamProblem};
use taffrail_status::Status;

use super::half::{DeclaredHalf, HalfBody, HalfId, NotLive, ObservedHalf, Speaker};
use crate::together::{likeness, without_uids};

/// The urgency of a change of a half, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HalfChange {
    /// The half's status, sync state, freshness or the severity of its worst problem got worse (`OutOfSync`, `Failed`
    /// and `Unknown` count alike), or a new half is not Ready, is not live or has a problem; the sync state of a new
    /// one does not count.
    Worse,
    /// The half got better, changed without getting better or worse, or is new and not [`HalfChange::Worse`].
    Other,
    /// Only counts, the times since when problems exist, and numbers, durations, UIDs and generated names in messages
    /// changed.
    Volatile,
}

/// Two hashes and the rank of a half. A source keeps those of each half that it has reported, and compares them with
/// those of the half now to find changes.
///
/// Two halves with equal fingerprints are equal except for the age of their observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HalfMark {
    /// The [fingerprint](super::Half::fingerprint).
    pub fingerprint: u64,
    /// A hash of the half without counts, the times since when problems exist, and the parts of messages that
    /// [`steady`] replaces.
    steady: u64,
    rank: Rank,
}

/// The state of a half by several measures; in each, a lower value is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rank {
    status: Status,
    problem: u8,
    sync: u8,
    freshness: u8,
}

impl Rank {
    /// The rank of a half without any problem.
    const BEST: Rank = Rank { status: Status::Current, problem: 3, sync: 2, freshness: 2 };

    /// The rank with which that of a new half is compared. It is the worst in `sync`, so that a new app that is not
    /// synced yet does not count as worse.
    const NEW: Rank = Rank { sync: 0, ..Rank::BEST };

    fn is_worse_than(self, other: Rank) -> bool {
        self.status < other.status
            || self.problem < other.problem
            || self.sync < other.sync
            || self.freshness < other.freshness
    }
}

impl HalfMark {
    /// Computes the mark of the half `id` with the contents `body`. `key` is secret, so that an author of an app's
    /// texts cannot craft two halves with the same fingerprint.
    pub fn new(id: &HalfId, body: &HalfBody, key: &impl BuildHasher) -> HalfMark {
        let hash = |is_steady: bool| {
            let mut hasher = key.build_hasher();
            // Two apps that look the same have different fingerprints, so that these do not cancel each other out.
            id.hash(&mut hasher);
            match body {
                HalfBody::Declared(body) => hash_declared(body, is_steady, &mut hasher),
                HalfBody::Observed(body) => hash_observed(body, is_steady, &mut hasher),
            }
            hasher.finish()
        };
        HalfMark { fingerprint: hash(false), steady: hash(true), rank: rank(body) }
    }

    /// Returns the change from the half with the mark `old` to the half with this mark; `None` if their fingerprints
    /// are equal. `old` is `None` for a new half.
    pub fn change(&self, old: Option<&HalfMark>) -> Option<HalfChange> {
        if old.is_some_and(|old| old.fingerprint == self.fingerprint) {
            return None;
        }
        Some(match old {
            _ if self.rank.is_worse_than(old.map_or(Rank::NEW, |old| old.rank)) => HalfChange::Worse,
            Some(old) if old.steady == self.steady => HalfChange::Volatile,
            _ => HalfChange::Other,
        })
    }
}

fn rank(body: &HalfBody) -> Rank {
    let (status, problem, sync, not_live) = match body {
        HalfBody::Declared(body) => {
            let status = body.own.as_ref().map_or(Status::Current, |own| own.status);
            let severities = body.problems.iter().chain(body.own.as_ref().map(|own| &own.problem));
            let sync = match body.sync.state {
                SyncState::Synced => 2,
                SyncState::Syncing | SyncState::Suspended => 1,
                SyncState::OutOfSync | SyncState::Failed | SyncState::Unknown => 0,
            };
            (status, severities.map(severity).min(), sync, body.not_live)
        }
        HalfBody::Observed(body) => {
            let told =
                body.worst.as_ref().map(|worst| &worst.problem).into_iter().chain(body.unmarked.as_deref());
            let status = if body.not_live.is_some() { Status::Unknown } else { body.health };
            (status, told.map(severity).min(), Rank::BEST.sync, body.not_live)
        }
    };
    let freshness = match not_live.map(|it| it.state) {
        None | Some(FreshnessState::Live) => 2,
        Some(FreshnessState::Stale) => 1,
        Some(FreshnessState::Lost) => 0,
    };
    Rank { status, problem: problem.unwrap_or(Rank::BEST.problem), sync, freshness }
}

fn severity(problem: &Problem) -> u8 {
    match problem.severity {
        ProblemSeverity::Error => 0,
        ProblemSeverity::Waiting => 1,
        ProblemSeverity::Notice => 2,
    }
}

fn hash_declared<H: Hasher>(half: &DeclaredHalf, is_steady: bool, hasher: &mut H) {
    let DeclaredHalf {
        key,
        target,
        sync,
        suspended,
        source,
        labels,
        message,
        own,
        problems,
        syncs,
        upstreams,
        not_live,
        unobserved,
        checks,
    } = half;
    (key, target, sync, suspended, source, labels, upstreams, checks).hash(hasher);
    hash_text(message, is_steady, hasher);
    hash_speaker(own.as_deref(), is_steady, hasher);
    hash_problems(problems, is_steady, hasher);
    syncs.len().hash(hasher);
    for SyncAttempt { revision, began, ended, result, message } in syncs {
        (revision, began, ended, result).hash(hasher);
        hash_text(message, is_steady, hasher);
    }
    hash_freshness(*not_live, hasher);
    unobserved.hash(hasher);
}

fn hash_observed<H: Hasher>(half: &ObservedHalf, is_steady: bool, hasher: &mut H) {
    let ObservedHalf { health, worst, counts, unconfirmed, unmarked, not_live, unobserved, said } = half;
    (health, unobserved, said).hash(hasher);
    hash_speaker(worst.as_deref(), is_steady, hasher);
    hash_problems(unmarked.as_deref().map_or(&[][..], std::slice::from_ref), is_steady, hasher);
    hash_freshness(*not_live, hasher);
    if !is_steady {
        (counts, unconfirmed).hash(hasher);
    }
}

fn hash_speaker<H: Hasher>(speaker: Option<&Speaker>, is_steady: bool, hasher: &mut H) {
    let Some(Speaker { status, rule, unconfirmed, problem }) = speaker else { return false.hash(hasher) };
    (true, status, rule, unconfirmed).hash(hasher);
    hash_problems(std::slice::from_ref(problem), is_steady, hasher);
}

fn hash_problems<H: Hasher>(problems: &[Problem], is_steady: bool, hasher: &mut H) {
    problems.len().hash(hasher);
    for Problem { axis, state, severity, since, message, object, upstream } in problems {
        (axis, state, severity, object).hash(hasher);
        hash_text(message, is_steady, hasher);
        upstream.is_some().hash(hasher);
        if let Some(upstream) = upstream.as_deref() {
            let UpstreamProblem { app, axis, state, severity, message, object } = upstream;
            (app, axis, state, severity, object).hash(hasher);
            hash_text(message, is_steady, hasher);
        }
        if !is_steady {
            since.hash(hasher);
        }
    }
}

/// Adds a freshness to the hash: its state, and if it has an age, but not the age itself, which changes all the time.
fn hash_freshness<H: Hasher>(not_live: Option<NotLive>, hasher: &mut H) {
    not_live.map(|it| NotLive { age: it.age.map(|_| Duration::ZERO), ..it }).hash(hasher);
}

fn hash_text<H: Hasher>(text: &str, is_steady: bool, hasher: &mut H) {
    match is_steady {
        true => steady(text).hash(hasher),
        false => text.hash(hasher),
    }
}

/// The characters of which Kubernetes makes the random part of a generated name.
const RANDOM: &str = "bcdfghjklmnpqrstvwxz2456789";

/// The number of characters in the random part of a Pod's name.
const POD_SUFFIX: usize = 5;

/// The maximum number of characters in the hash of the Pod template in a ReplicaSet's name; a longer part counts as
/// part of the workload's name.
const TEMPLATE_HASH: usize = 10;

/// Returns a message in which the parts that differ each time are replaced: numbers, durations and UIDs by `#`, and in
/// Pod names what follows the name of the workload by `*`.
fn steady(message: &str) -> String {
    let without = without_uids(message);
    let mut told = String::with_capacity(without.len());
    let is_of_name =
        |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    let mut rest = without.as_str();
    while !rest.is_empty() {
        let (name, after) = rest.split_at(rest.find(|it| !is_of_name(it)).unwrap_or(rest.len()));
        match stem(name) {
            Some(stem) => told.extend([stem, "-*"]),
            None => told.push_str(name),
        }
        let (between, next) = after.split_at(after.find(is_of_name).unwrap_or(after.len()));
        told.push_str(between);
        rest = next;
    }
    likeness(&told)
}

/// Returns the name of the workload at the beginning of the Pod name `name`, without the hash of a ReplicaSet; `None`
/// if `name` does not look like a Pod's.
fn stem(name: &str) -> Option<&str> {
    let is_random = |part: &str| !part.is_empty() && part.chars().all(|character| RANDOM.contains(character));
    let (stem, suffix) = name.rsplit_once('-')?;
    if suffix.len() != POD_SUFFIX || !is_random(suffix) || stem.is_empty() {
        return None;
    }
    match stem.rsplit_once('-') {
        Some((above, hash)) if hash.len() <= TEMPLATE_HASH && is_random(hash) && !above.is_empty() => {
            Some(above)
        }
        _ => Some(stem),
    }
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use taffrail_apps::{Axis, ClusterId, Delivery};
    use taffrail_object::ObjectKey;

    use super::super::{AppId, HalfSide};
    use super::*;
    use crate::AppName;

    fn id(name: &str) -> HalfId {
        let app = AppName { delivery: Delivery::Label, namespace: "shop".to_owned(), name: name.to_owned() };
        HalfId { app: AppId { home: ClusterId("eu".to_owned()), app }, side: HalfSide::Observed }
    }

    fn observed(health: Status, message: &str, count: usize) -> ObservedHalf {
        let problem = Problem {
            axis: Axis::Health,
            state: health.to_string(),
            severity: ProblemSeverity::Error,
            since: None,
            message: message.into(),
            object: Some(ObjectKey::new("apps", "Deployment", "shop", "web")),
            upstream: None,
        };
        let speaker = Speaker { status: health, rule: String::new(), unconfirmed: false, problem };
        ObservedHalf {
            worst: (health != Status::Current).then(|| Box::new(speaker)),
            ..ObservedHalf::new(health, std::iter::repeat_n(Status::Current, count).collect())
        }
    }

    fn mark(key: &RandomState, half: &ObservedHalf) -> HalfMark {
        HalfMark::new(&id("web"), &HalfBody::Observed(Box::new(half.clone())), key)
    }

    #[test]
    fn urgency_of_a_change_is_that_of_its_worst_part() {
        let key = RandomState::new();
        let change = |old: &ObservedHalf, new: &ObservedHalf| mark(&key, new).change(Some(&mark(&key, old)));
        let well = observed(Status::Current, "", 3);
        let failed = observed(Status::Failed, "no such image", 3);
        assert_eq!(change(&well, &well), None);
        assert_eq!(change(&well, &failed), Some(HalfChange::Worse));
        assert_eq!(change(&failed, &well), Some(HalfChange::Other));
        assert_eq!(change(&failed, &observed(Status::Failed, "no such tag", 3)), Some(HalfChange::Other));
        assert_eq!(change(&well, &observed(Status::Current, "", 4)), Some(HalfChange::Volatile));
        let stale = NotLive { state: FreshnessState::Stale, age: Some(Duration::from_secs(30)) };
        let dark = ObservedHalf { not_live: Some(stale), ..well.clone() };
        assert_eq!(change(&well, &dark), Some(HalfChange::Worse));
        assert_eq!(change(&dark, &well), Some(HalfChange::Other));
        let older = NotLive { age: Some(Duration::from_secs(90)), ..stale };
        assert_eq!(change(&dark, &ObservedHalf { not_live: Some(older), ..well.clone() }), None);
        assert_eq!(mark(&key, &failed).change(None), Some(HalfChange::Worse));
        assert_eq!(mark(&key, &well).change(None), Some(HalfChange::Other));
    }

    #[test]
    fn times_and_generated_names_in_messages_are_volatile() {
        let key = RandomState::new();
        let message = |time: &str, pod: &str, uid: char| {
            let uid = uid.to_string();
            let uid = [8, 4, 4, 4, 12].map(|length| uid.repeat(length)).join("-");
            format!("back-off {time} restarting failed container=web pod={pod}_shop({uid})")
        };
        let change = |old: &str, new: &str| {
            let [old, new] = [old, new].map(|text| mark(&key, &observed(Status::Failed, text, 1)));
            new.change(Some(&old))
        };
        let first = message("2m40s", "web-7d9fbc6c4-x2kkz", 'a');
        assert_eq!(change(&first, &message("5m0s", "web-7d9fbc6c4-bb2kz", 'b')), Some(HalfChange::Volatile));
        assert_eq!(change(&first, &message("5m0s", "web-6c5fbc6c4-bb2kz", 'b')), Some(HalfChange::Volatile));
        assert_eq!(change(&first, &message("2m40s", "api-7d9fbc6c4-x2kkz", 'a')), Some(HalfChange::Other));
        assert_eq!(steady("pod api-x2kkz is gone, api-proxy is not"), "pod api-* is gone, api-proxy is not");
    }

    #[test]
    fn equal_halves_of_two_apps_have_different_fingerprints() {
        let key = RandomState::new();
        let body = HalfBody::Observed(Box::new(observed(Status::Current, "", 1)));
        let [one, other] = ["web", "api"].map(|name| HalfMark::new(&id(name), &body, &key));
        assert_ne!(one.fingerprint, other.fingerprint);
        let of_another_source = HalfMark::new(&id("web"), &body, &RandomState::new());
        assert_ne!(one.fingerprint, of_another_source.fingerprint);
    }
}
