//! Apps counted by a value that they share.

use std::borrow::Cow;
use std::collections::BTreeMap;

use taffrail_api::hub::AppGroup;
use taffrail_apps::{Axis, FreshnessState, Source};
use taffrail_status::rollup::Counts;

use super::filter::AppFilter;
use super::pair::{Pair, Place};
use super::view::{FleetView, PairNow};

/// The value by which apps are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// The name of the cluster that holds the objects.
    Cluster,
    /// The name of the cluster that declares the app.
    Home,
    /// The namespace of the declaring object.
    Namespace,
    /// The name of the declaring object.
    Name,
    /// The key, which is the same in all clusters.
    Key,
    /// The delivery.
    Delivery,
    /// The present status.
    Status,
    /// The present sync state.
    Sync,
    /// The axis of the worst problem.
    Problem,
    /// The URL and path of the source.
    Source,
}

impl GroupBy {
    /// All values, with the words for them.
    pub const ALL: [(&'static str, GroupBy); 10] = [
        ("cluster", GroupBy::Cluster),
        ("home", GroupBy::Home),
        ("namespace", GroupBy::Namespace),
        ("name", GroupBy::Name),
        ("key", GroupBy::Key),
        ("delivery", GroupBy::Delivery),
        ("status", GroupBy::Status),
        ("sync", GroupBy::Sync),
        ("problem", GroupBy::Problem),
        ("source", GroupBy::Source),
    ];
}

impl FleetView {
    /// Counts the apps that match by a value; the groups are sorted by it.
    pub(crate) fn groups(&self, filter: &AppFilter, by: GroupBy) -> Vec<AppGroup> {
        let mut groups: BTreeMap<Cow<'_, str>, AppGroup> = BTreeMap::new();
        self.each(filter, |(place, _), pair, _, now| {
            let value = self.value(by, place, pair, now);
            let empty = || AppGroup {
                group: String::new(),
                apps: 0,
                problems: 0,
                counts: Counts::default(),
                worst: None,
                stale: 0,
                lost: 0,
            };
            let group = groups.entry(value).or_insert_with(empty);
            group.apps += 1;
            group.problems += usize::from(now.is_pressing());
            group.counts.add(now.effective);
            match now.observed {
                FreshnessState::Live => {
                    group.worst = Some(group.worst.map_or(now.effective, |worst| worst.min(now.effective)));
                }
                FreshnessState::Stale => group.stale += 1,
                FreshnessState::Lost => group.lost += 1,
            }
        });
        groups.into_iter().map(|(value, group)| AppGroup { group: value.into_owned(), ..group }).collect()
    }

    fn value<'v>(&'v self, by: GroupBy, place: Place, pair: &'v Pair, now: PairNow) -> Cow<'v, str> {
        let name = |place| self.fleet().cluster(place).map_or("", |cluster| self.name(cluster));
        match by {
            GroupBy::Cluster if pair.target.is_none() => pair.declared.body.target.0.as_str().into(),
            GroupBy::Cluster => name(place).into(),
            GroupBy::Home => name(pair.home.cluster).into(),
            GroupBy::Namespace => pair.app.app.namespace.as_str().into(),
            GroupBy::Name => pair.app.app.name.as_str().into(),
            GroupBy::Key => pair.declared.body.key.as_str().into(),
            GroupBy::Delivery => pair.app.app.delivery.as_str().into(),
            GroupBy::Status => now.effective.as_str().into(),
            GroupBy::Sync => now.sync.as_str().into(),
            GroupBy::Problem => {
                let axis = match now.is_dark() {
                    true => Some(Axis::Freshness),
                    false => super::pair::worst_problem(pair).map(|problem| problem.axis),
                };
                match axis {
                    None => "",
                    Some(Axis::Freshness) => "freshness",
                    Some(Axis::Health) => "health",
                    Some(Axis::Sync) => "sync",
                    Some(Axis::Source) => "source",
                }
                .into()
            }
            GroupBy::Source => pair.declared.body.source.as_ref().map(source).unwrap_or_default(),
        }
    }
}

/// Returns the URL of a source, or else its name, with its path.
fn source(source: &Source) -> Cow<'_, str> {
    let place = source.url.as_deref().or(source.name.as_deref()).unwrap_or(&source.kind);
    match &source.path {
        Some(path) => format!("{place} {path}").into(),
        None => place.into(),
    }
}
