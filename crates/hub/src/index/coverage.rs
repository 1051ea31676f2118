//! The clusters that an answer covers, and those that it misses or shows with old data.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use taffrail_api::ErrorRow;
use taffrail_api::hub::{AnswerState, Coverage, MissingCluster};
use taffrail_api::report::{LOST, LostCluster};
use taffrail_apps::{ClusterId, Freshness, FreshnessState};

use super::filter::AppFilter;
use super::published::PublishedCluster;
use super::view::FleetView;
use crate::clock::HubTime;

/// The greatest number of missing clusters that an answer names; it only counts further ones.
const MAX_MISSING: usize = 100;

/// The greatest number of errors that an answer contains; it only counts further ones.
const MAX_ERRORS: usize = 500;

/// A reason why the rows of a cluster are incomplete or old.
pub(super) enum Gap<'c> {
    /// Its apps have never all been read, and its source says why.
    Unreachable(&'c LostCluster),
    /// Its apps have never all been read.
    NotRead,
    /// It is not live.
    Silent(Freshness),
    /// Its source says why it sees no apps.
    Unreadable(&'c str),
    /// The hub refused so many reports about its apps.
    TooManyApps(usize),
}

impl FleetView {
    /// Returns the number of clusters that `filter` admits, expected ones included, and the first 100 that are not
    /// wholly read and live, with reasons; also the names of `filter` that no cluster has, which do not count. The
    /// state is the worst of theirs.
    pub(crate) fn coverage(&self, filter: &AppFilter) -> Coverage {
        let mut coverage = Coverage {
            state: AnswerState::Complete,
            as_of: self.moment().now,
            clusters: 0,
            missing: Vec::new(),
            missing_omitted: 0,
        };
        let admitted = filter.places(self);
        let unheard = &self.fleet().unheard;
        // Of a new stream the name of its cluster comes with the first report: until then it is one of those expected.
        let is_named = |cluster: &PublishedCluster| unheard.0.is_empty() || !self.name(cluster).is_empty();
        coverage.clusters = match &admitted {
            None if unheard.0.is_empty() => self.fleet().places.len(),
            None => self.fleet().all().filter(|(_, cluster)| is_named(cluster)).count(),
            Some(places) => {
                let shown = places.iter().filter_map(|place| self.fleet().cluster(*place));
                shown.filter(|cluster| is_named(cluster)).count()
            }
        };
        for place in self.with_gaps(admitted.as_deref()) {
            let cluster = self.fleet().cluster(place).filter(|cluster| is_named(cluster));
            if let Some(missing) = cluster.and_then(|cluster| self.missing(cluster)) {
                add(&mut coverage, missing);
            }
        }
        // The labels of a cluster that was never reported are not known.
        let is_admitted = |name: &String| filter.clusters.is_empty() || filter.clusters.contains(name);
        for (name, since) in unheard.0.iter().filter(|(name, _)| is_admitted(name)) {
            coverage.clusters += 1;
            let silent = "no source has reported the cluster since it was added";
            add(&mut coverage, self.not_read(name, *since, false, silent));
        }
        for name in &filter.clusters {
            if unheard.has(name) || self.called(name).next().is_some() {
                continue;
            }
            let (state, reason) = (AnswerState::Partial, "UnknownCluster".into());
            let message = format!("the hub knows no cluster '{name}'");
            add(&mut coverage, MissingCluster { cluster: name.clone(), state, reason, message, since: None });
        }
        coverage
    }

    /// Returns the coverage of an answer for the past time `at` about the clusters that `filter` admits. `seen` has
    /// those of which history has an app then, and how much is known of their apps.
    ///
    /// History keeps apps, not clusters: of another cluster that the hub knows now it does not tell whether it had no
    /// apps or was not observed. Such a cluster is missing, unless it is observed now and has no apps either.
    pub(crate) fn past_coverage(
        &self,
        filter: &AppFilter,
        seen: &BTreeMap<ClusterId, AnswerState>,
        at: Timestamp,
    ) -> Coverage {
        let (state, clusters) = (AnswerState::Complete, seen.len());
        let mut coverage = Coverage { state, as_of: at, clusters, missing: Vec::new(), missing_omitted: 0 };
        let named = |id: &ClusterId| {
            let cluster = self.fleet().places.get(id).and_then(|place| self.fleet().cluster(*place));
            let name = cluster.map(|cluster| self.name(cluster)).filter(|name| !name.is_empty());
            name.unwrap_or(&id.0).to_owned()
        };
        for (id, state) in seen {
            let (reason, message) = match state {
                AnswerState::Complete => continue,
                AnswerState::Stale => ("Silent", "the cluster was not observed then"),
                _ => ("NotRecorded", "not all that the hub learned of the cluster then was recorded"),
            };
            add(&mut coverage, past(named(id), *state, reason, message));
        }
        let none = "no app of the cluster is recorded for then: it had none, or was not observed";
        let unseen = self.admitted(filter).filter(|(_, cluster)| !seen.contains_key(&cluster.id));
        for (_, cluster) in unseen {
            if cluster.pairs.pairs.len() == 0 && self.gap(cluster).is_none() {
                continue;
            }
            coverage.clusters += 1;
            add(&mut coverage, past(named(&cluster.id), AnswerState::Partial, "NotRecorded", none));
        }
        for name in &filter.clusters {
            if self.called(name).next().is_none() && !seen.contains_key(&ClusterId(name.clone())) {
                add(&mut coverage, past(name.clone(), AnswerState::Partial, "NotRecorded", none));
            }
        }
        coverage
    }

    /// Makes the entry of a cluster whose apps have never all been read since it was added at the moment `since`:
    /// loading at first, or partial with the message `silent` once it has been silent for longer than [`LOST`] and is not live.
    fn not_read(&self, cluster: &str, since: Duration, is_live: bool, silent: &str) -> MissingCluster {
        let moment = self.moment();
        let waited = moment.at.saturating_sub(since);
        let (state, reason, message) = match waited <= LOST || is_live {
            true => (AnswerState::Loading, "NotRead", "the apps of the cluster have not been read yet"),
            false => (AnswerState::Partial, "Silent", silent),
        };
        let (cluster, message, since) = (cluster.to_owned(), message.to_owned(), ago(moment, waited));
        MissingCluster { cluster, state, reason: reason.into(), message, since }
    }

    /// Returns the first reason why a cluster's rows are incomplete or old; `None` if they are complete and live.
    pub(super) fn gap<'c>(&self, cluster: &'c PublishedCluster) -> Option<Gap<'c>> {
        let Some(source) = self.speaker(cluster) else { return Some(Gap::NotRead) };
        let (facts, freshness) = (&source.told.facts, self.freshness(source));
        if freshness.observed_at.is_none() || !source.told.is_whole {
            return Some(facts.lost.as_ref().map_or(Gap::NotRead, Gap::Unreachable));
        }
        if freshness.state != FreshnessState::Live {
            return Some(Gap::Silent(freshness));
        }
        let blind = facts.blind.as_deref().map(Gap::Unreadable);
        blind.or_else(|| (source.told.refused > 0).then_some(Gap::TooManyApps(source.told.refused)))
    }

    /// Makes the entry of a cluster whose rows are incomplete or old, with the first reason; `None` if they are
    /// complete and live.
    fn missing(&self, cluster: &PublishedCluster) -> Option<MissingCluster> {
        let gap = self.gap(cluster)?;
        let source = self.speaker(cluster);
        let name = source.map(|source| &*source.told.facts.name).filter(|name| !name.is_empty());
        let shown = name.unwrap_or(&cluster.id.0);
        let missing = |state, reason: &'static str, message: String, since| {
            Some(MissingCluster { cluster: shown.to_owned(), state, reason: reason.into(), message, since })
        };
        match gap {
            Gap::Unreachable(lost) => {
                let moment = self.moment();
                let opened = ago(moment, moment.at.saturating_sub(cluster.opened));
                missing(AnswerState::Partial, "Unreachable", lost.silence.clone(), opened)
            }
            Gap::NotRead => {
                let silent = match name {
                    Some(_) => "no source has reported all apps of the cluster since it was added",
                    None => "no source has reported the cluster since it was added",
                };
                let is_live = source.is_some_and(|source| self.freshness(source).is_live());
                Some(self.not_read(shown, cluster.opened, is_live, silent))
            }
            Gap::Silent(freshness) => {
                let lost = source.and_then(|source| source.told.facts.lost.as_ref());
                let message =
                    lost.map_or_else(|| freshness.state.predicate().to_owned(), |it| it.message.clone());
                missing(AnswerState::Stale, "Silent", message, freshness.observed_at)
            }
            Gap::Unreadable(blind) => missing(AnswerState::Partial, "Unreadable", blind.to_owned(), None),
            Gap::TooManyApps(refused) => {
                let message = format!(
                    "the hub refused {refused} reports about apps of the cluster: there are too many, or their names \
                     are too long"
                );
                missing(AnswerState::Partial, "TooManyApps", message, None)
            }
        }
    }

    /// Returns up to 500 errors of the clusters that `filter` admits, and the number of those left out.
    pub(crate) fn errors_of(&self, filter: &AppFilter) -> (Vec<ErrorRow>, usize) {
        let mut errors = Vec::new();
        let mut omitted = 0;
        let admitted = filter.places(self);
        for cluster in self.with_errors(admitted.as_deref()).filter_map(|place| self.fleet().cluster(place)) {
            let count: usize = cluster.sources.iter().map(|source| source.errors.len()).sum();
            let taken = (MAX_ERRORS - errors.len()).min(count);
            errors.extend(self.errors(cluster).take(taken).cloned());
            omitted += count - taken;
        }
        (errors, omitted)
    }
}

/// Adds a cluster to those that an answer misses, and to its state.
fn add(coverage: &mut Coverage, missing: MissingCluster) {
    coverage.state = coverage.state.max(missing.state);
    match coverage.missing.len() < MAX_MISSING {
        true => coverage.missing.push(missing),
        false => coverage.missing_omitted += 1,
    }
}

/// Makes the entry of a cluster that an answer for a past time misses.
fn past(cluster: String, state: AnswerState, reason: &'static str, message: &str) -> MissingCluster {
    MissingCluster { cluster, state, reason: reason.into(), message: message.to_owned(), since: None }
}

/// Returns the wall-clock time that lies `passed` before `moment`; `None` if it is out of range.
fn ago(moment: HubTime, passed: Duration) -> Option<Timestamp> {
    moment.now.checked_sub(SignedDuration::try_from(passed).ok()?).ok()
}
