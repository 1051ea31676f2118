//! The problems of a fleet, grouped by cause: same severity, axis, state and similar message.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use taffrail_api::hub::{Attention, AttentionEntry};
use taffrail_api::{API_VERSION, likeness};
use taffrail_apps::{Axis, FreshnessState, Problem, ProblemSeverity};
use taffrail_object::ObjectKey;

use super::filter::AppFilter;
use super::pair::{Pair, Place, worst_problem};
use super::view::{FleetView, PairNow};

/// The greatest number of apps, and of clusters, that an entry lists by name; it only counts further ones.
const MAX_NAMED: usize = 5;

/// The key by which problems are grouped: those with equal parts count as one cause.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Cause {
    severity: ProblemSeverity,
    axis: Axis,
    state: String,
    message: String,
}

/// The problems that share one cause.
struct CauseGroup<'v> {
    cause: Cause,
    message: String,
    /// The object that all these problems name; `None` if they name different ones or none.
    object: Option<&'v ObjectKey>,
    since: Option<i64>,
    count: usize,
    keys: Vec<&'v str>,
    all_keys: HashSet<&'v str>,
    clusters: Vec<Place>,
    all_clusters: HashSet<Place>,
}

impl FleetView {
    /// Returns the worst problem of each app that matches `filter`, grouped by cause: at most `limit` causes, the most
    /// severe first, then the one of most apps. An app with a half that is not live counts for that alone.
    pub(crate) fn attention(&self, filter: &AppFilter, limit: usize) -> Attention {
        let mut groups: Vec<CauseGroup<'_>> = Vec::new();
        let mut of_cause: HashMap<Cause, usize> = HashMap::new();
        // Most messages were met before, and their likeness need not be found again.
        let mut of_text: HashMap<(ProblemSeverity, Axis, &str, &str, Option<Place>), usize> = HashMap::new();
        let mut of_dark: HashMap<(Place, FreshnessState), usize> = HashMap::new();
        let (mut apps, mut problems) = (0, 0);
        self.each(filter, |(place, _), pair, summary, now| {
            apps += 1;
            problems += usize::from(now.is_pressing());
            let mut of = |cause: Cause, message: &str, object| {
                *of_cause.entry(cause.clone()).or_insert_with(|| {
                    groups.push(CauseGroup::new(cause, message.to_owned(), object));
                    groups.len() - 1
                })
            };
            let (group, cluster, object) = if now.is_dark() {
                let dark = self.dark(place, pair, now);
                let group = *of_dark.entry((dark.0, dark.1)).or_insert_with(|| {
                    let (cause, message) = self.silence(dark.0, dark.1);
                    of(cause, &message, None)
                });
                (group, dark.0, None)
            } else {
                if summary.class.severity.is_none() {
                    return;
                }
                let Some(problem) = worst_problem(pair) else { return };
                let Problem { severity, axis, state, message, object, .. } = problem;
                let name = self.fleet().cluster(place).map_or("", |cluster| self.name(cluster));
                // A message that does not name its cluster says the same in each.
                let own = Some(place).filter(|_| message.contains(name));
                let text = (*severity, *axis, &**state, &**message, own);
                let group = *of_text.entry(text).or_insert_with(|| {
                    let message = likeness(&without(message, name));
                    let cause = Cause { severity: *severity, axis: *axis, state: state.clone(), message };
                    of(cause, &problem.message, object.as_ref())
                });
                (group, place, object.as_ref())
            };
            let since = self.since_shown(pair, summary.since, now);
            if let Some(group) = groups.get_mut(group) {
                group.add(&pair.declared.body.key, cluster, object, since);
            }
        });
        groups.sort_by_key(|group| (group.cause.severity, std::cmp::Reverse(group.count)));
        let total = groups.len();
        let entry = |group: CauseGroup<'_>| {
            let name = |place: &Place| self.fleet().cluster(*place).map_or("", |it| self.name(it)).to_owned();
            AttentionEntry {
                severity: group.cause.severity,
                axis: group.cause.axis,
                state: group.cause.state,
                message: group.message,
                object: group.object.cloned(),
                since: group.since.and_then(|since| Timestamp::from_microsecond(since).ok()),
                count: group.count,
                keys: group.keys.into_iter().map(str::to_owned).collect(),
                key_count: group.all_keys.len(),
                clusters: group.clusters.iter().map(name).collect(),
                cluster_count: group.all_clusters.len(),
            }
        };
        Attention {
            api_version: API_VERSION.into(),
            kind: Attention::KIND.into(),
            items: groups.into_iter().take(limit).map(entry).collect(),
            total,
            apps,
            problems,
            coverage: self.coverage(filter),
        }
    }

    /// Returns the cluster because of which a pair is not live, and its freshness: that at `place`, which shows the
    /// pair, if its objects are not live, else the pair's home.
    fn dark(&self, place: Place, pair: &Pair, now: PairNow) -> (Place, FreshnessState) {
        match now.observed {
            FreshnessState::Live => (pair.home.cluster, now.declared),
            observed => (place, observed),
        }
    }

    /// Returns the cause that all apps of a cluster that is not live share, and the message, both without the cluster's
    /// name.
    fn silence(&self, place: Place, state: FreshnessState) -> (Cause, String) {
        let cluster = self.fleet().cluster(place);
        let source = cluster.and_then(|cluster| self.speaker(cluster));
        let is_part = source.is_some_and(|source| self.freshness(source).is_live());
        let lost = source.and_then(|source| source.facts.lost.as_ref()).filter(|_| !is_part);
        let name = source.map_or("", |source| &source.facts.name);
        let why = lost.map(|lost| format!(": {}", without(&lost.message, name))).unwrap_or_default();
        let part = if is_part { "a part of the cluster" } else { "the cluster" };
        let message = format!("{part} {}{why}", state.predicate());
        let word = if state == FreshnessState::Lost { "Lost" } else { "Stale" };
        let alike = likeness(&message);
        let (severity, axis) = (ProblemSeverity::Error, Axis::Freshness);
        (Cause { severity, axis, state: word.to_owned(), message: alike }, message)
    }

    /// Returns the Unix time in microseconds since which a pair is not well: `since`, or, if it is not live, the time
    /// at which it was observed last; `None` if that time is unknown.
    fn since_shown(&self, pair: &Pair, since: Option<i64>, now: PairNow) -> Option<i64> {
        if !now.is_dark() {
            return since;
        }
        self.dark_at(pair, now).map(|at| at.as_microsecond())
    }
}

impl<'v> CauseGroup<'v> {
    fn new(cause: Cause, message: String, object: Option<&'v ObjectKey>) -> CauseGroup<'v> {
        CauseGroup {
            cause,
            message,
            object,
            since: None,
            count: 0,
            keys: Vec::new(),
            all_keys: HashSet::new(),
            clusters: Vec::new(),
            all_clusters: HashSet::new(),
        }
    }

    fn add(&mut self, key: &'v str, cluster: Place, object: Option<&'v ObjectKey>, since: Option<i64>) {
        self.count += 1;
        if self.object != object {
            self.object = None;
        }
        self.since = [self.since, since].into_iter().flatten().min();
        if self.all_keys.insert(key) && self.keys.len() < MAX_NAMED {
            self.keys.push(key);
        }
        if self.all_clusters.insert(cluster) && self.clusters.len() < MAX_NAMED {
            self.clusters.push(cluster);
        }
    }
}

/// Returns a message with `…` in place of its cluster's name; unchanged if the name has fewer than 3 bytes.
fn without(message: &str, name: &str) -> String {
    // A short name may be a part of other words.
    match name.len() {
        ..3 => message.to_owned(),
        _ => message.replace(name, "…"),
    }
}
