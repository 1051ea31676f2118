//! The problems of a fleet, grouped by cause.

use jiff::Timestamp;
use taffrail_api::API_VERSION;
use taffrail_api::causes::{CauseGroups, Silence};
use taffrail_api::hub::Attention;
use taffrail_apps::FreshnessState;

use super::filter::{AppFilter, InCluster};
use super::pair::{ListedPair, Pair, PairClass, Place, worst_problem};
use super::view::{FleetView, PairNow};

/// The problems of a part of a fleet.
#[derive(Default)]
struct Part<'v> {
    groups: CauseGroups<'v, Place>,
    /// The number of apps that match.
    apps: usize,
    /// The number of them with a problem that is more than a notice.
    problems: usize,
}

impl<'v> Part<'v> {
    /// Adds the problems of the part that follows.
    fn append(&mut self, other: Part<'v>) {
        self.groups.append(other.groups);
        self.apps += other.apps;
        self.problems += other.problems;
    }
}

impl FleetView {
    /// Returns the worst problem of each app that matches `filter`, grouped by cause: at most `limit` causes, the most
    /// severe first, then the one of most apps. An app with a half that is not live counts for that alone.
    pub(crate) fn attention(&self, filter: &AppFilter, limit: usize) -> Attention {
        let name = |place| self.fleet().cluster(place).map_or("", |cluster| self.name(cluster));
        let prepared = filter.prepare(self);
        let parts = prepared.in_parts(self, |clusters| {
            let mut part = Part::default();
            clusters.for_each(|within| self.look(&within, &mut part));
            part
        });
        let mut parts = parts.into_iter();
        let mut all = parts.next().unwrap_or_default();
        parts.for_each(|part| all.append(part));
        let Part { groups, apps, problems } = all;
        let (total, items) = groups.entries(limit, name);
        Attention {
            api_version: API_VERSION.into(),
            kind: Attention::KIND.into(),
            items,
            total,
            apps,
            problems,
            coverage: self.coverage(filter),
        }
    }

    /// Adds the problems of the matching apps of a cluster to `part`.
    fn look<'v>(&'v self, within: &InCluster<'_, 'v>, part: &mut Part<'v>) {
        // Most pairs are well: where their classes decide, they are counted without being looked at.
        if within.is_decided {
            for (counted, now) in within.classes() {
                part.apps += counted.pairs;
                part.problems += if now.is_pressing() { counted.pairs } else { 0 };
            }
        }
        let is_told = |class: &PairClass, now: PairNow| now.is_dark() || class.severity.is_some();
        for (_, listed, now) in within.pairs_of(|class, now| !within.is_decided || is_told(class, now)) {
            if !within.is_decided {
                part.apps += 1;
                part.problems += usize::from(now.is_pressing());
            }
            self.take(within.place, listed, now, &mut part.groups);
        }
    }

    /// Adds the worst problem of a pair to its group.
    fn take<'v>(
        &'v self,
        place: Place,
        ListedPair { pair, summary, class }: ListedPair<'v>,
        now: PairNow,
        groups: &mut CauseGroups<'v, Place>,
    ) {
        let key = &pair.declared.body.key;
        if now.is_dark() {
            let (dark, state) = self.dark(place, pair, now);
            let group = groups.silence(dark, state, || self.silence(dark));
            groups.add(group, key, dark, None, self.dark_at(pair, now));
        } else if class.severity.is_some()
            && let Some(problem) = worst_problem(pair)
        {
            let name = self.fleet().cluster(place).map_or("", |cluster| self.name(cluster));
            let group = groups.problem(problem, place, name);
            let since = summary.since().and_then(|since| Timestamp::from_microsecond(since).ok());
            groups.add(group, key, place, problem.cause().object, since);
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

    /// Returns what is known of a cluster that is not live.
    fn silence(&self, place: Place) -> Silence<'_> {
        let source = self.fleet().cluster(place).and_then(|cluster| self.speaker(cluster));
        let is_part = source.is_some_and(|source| self.freshness(source).is_live());
        let lost = source.and_then(|source| source.told.facts.lost.as_ref()).filter(|_| !is_part);
        Silence {
            name: source.map_or("", |source| &source.told.facts.name),
            is_part,
            message: lost.map_or("", |lost| &lost.message),
        }
    }
}
