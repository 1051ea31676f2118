//! The problems of a fleet, grouped by cause.

use jiff::Timestamp;
use taffrail_api::API_VERSION;
use taffrail_api::causes::{CauseGroups, Silence};
use taffrail_api::hub::Attention;
use taffrail_apps::FreshnessState;

use super::filter::AppFilter;
use super::pair::{ListedPair, Pair, PairClass, Place, worst_problem};
use super::view::{FleetView, PairNow};

impl FleetView {
    /// Returns the worst problem of each app that matches `filter`, grouped by cause: at most `limit` causes, the most
    /// severe first, then the one of most apps. An app with a half that is not live counts for that alone.
    pub(crate) fn attention<'v>(&'v self, filter: &AppFilter, limit: usize) -> Attention {
        let mut groups: CauseGroups<'_, Place> = CauseGroups::default();
        let (mut apps, mut problems) = (0, 0);
        let name = |place| self.fleet().cluster(place).map_or("", |cluster| self.name(cluster));
        let mut take = |place, ListedPair { pair, summary, class }: ListedPair<'v>, now: PairNow| {
            let key = &pair.declared.body.key;
            if now.is_dark() {
                let (dark, state) = self.dark(place, pair, now);
                let group = groups.silence(dark, state, || self.silence(dark));
                groups.add(group, key, dark, None, self.dark_at(pair, now));
            } else if class.severity.is_some()
                && let Some(problem) = worst_problem(pair)
            {
                let group = groups.problem(problem, place, name(place));
                let since = summary.since().and_then(|since| Timestamp::from_microsecond(since).ok());
                groups.add(group, key, place, problem.object.as_ref(), since);
            }
        };
        let prepared = filter.prepare(self);
        for within in prepared.clusters(self) {
            // Most pairs are well: where their classes decide, they are counted without being looked at.
            if within.is_decided {
                for (counted, now) in within.classes() {
                    apps += counted.pairs;
                    problems += if now.is_pressing() { counted.pairs } else { 0 };
                }
            }
            let is_told = |class: &PairClass, now: PairNow| now.is_dark() || class.severity.is_some();
            for (_, listed, now) in within.pairs_of(|class, now| !within.is_decided || is_told(class, now)) {
                if !within.is_decided {
                    apps += 1;
                    problems += usize::from(now.is_pressing());
                }
                take(within.place, listed, now);
            }
        }
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
