//! Apps counted by a value that they share.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rustc_hash::FxHashMap;
use taffrail_api::hub::AppGroup;
use taffrail_apps::{Axis, FreshnessState, Source};
use taffrail_status::rollup::Counts;

use super::filter::AppFilter;
use super::names::NameId;
use super::pair::{Pair, Place, Summary, worst_problem};
use super::view::{FleetView, PairNow};

/// The value by which apps are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// The name of the cluster that holds the objects; its identity if the fleet does not have it.
    Cluster,
    /// The name of the cluster that declares the app.
    Home,
    /// The namespace of the declaring object.
    Namespace,
    /// The name of the declaring object.
    Name,
    /// The key, which is the same in all clusters.
    Key,
    /// The kind of delivery, such as `helm` or `flux-kustomization`.
    Delivery,
    /// The present (effective) status.
    Status,
    /// The present sync state.
    Sync,
    /// The axis of the app's worst problem: freshness if a half is not live; empty without a problem.
    Problem,
    /// The URL of the source (else its name, or else its kind) and its path; empty without a source.
    Source,
}

impl GroupBy {
    /// All values, each with its word in the parameter `group-by`.
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
    /// Groups the apps that match `filter` by the value `by`, and returns the counts of each group, sorted by the text
    /// of that value.
    pub(crate) fn groups(&self, filter: &AppFilter, by: GroupBy) -> Vec<AppGroup> {
        let mut groups: FxHashMap<Value<'_>, AppGroup> = FxHashMap::default();
        self.each(filter, |(place, _), pair, summary, now| {
            let value = self.value(by, place, pair, summary, now);
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
        // Different numbers may stand for one text: two clusters may have one name.
        let mut told: BTreeMap<Cow<'_, str>, AppGroup> = BTreeMap::new();
        for (value, group) in groups {
            let text = match value {
                Value::Name(id) => self.fleet().names.text(id).into(),
                Value::Cluster(place) => self.fleet().cluster(place).map_or("", |it| self.name(it)).into(),
                Value::Word(word) => word.into(),
                Value::Text(text) => text,
            };
            match told.entry(text) {
                Entry::Vacant(entry) => {
                    let name = entry.key().clone().into_owned();
                    entry.insert(AppGroup { group: name, ..group });
                }
                Entry::Occupied(mut entry) => entry.get_mut().add(&group),
            }
        }
        told.into_values().collect()
    }

    fn value<'v>(
        &self,
        by: GroupBy,
        place: Place,
        pair: &'v Pair,
        summary: &Summary,
        now: PairNow,
    ) -> Value<'v> {
        match by {
            GroupBy::Cluster if summary.is_stray => Value::Text(pair.declared.body.target.0.as_str().into()),
            GroupBy::Cluster => Value::Cluster(place),
            GroupBy::Home => Value::Cluster(summary.home.cluster),
            GroupBy::Namespace => Value::Name(summary.namespace),
            GroupBy::Name => Value::Name(summary.name),
            GroupBy::Key => Value::Name(summary.key),
            GroupBy::Delivery => Value::Word(summary.delivery.as_str()),
            GroupBy::Status => Value::Word(now.effective.as_str()),
            GroupBy::Sync => Value::Word(now.sync.as_str()),
            GroupBy::Problem => {
                let axis = match (now.is_dark(), summary.severity) {
                    (true, _) => Some(Axis::Freshness),
                    (false, None) => None,
                    (false, Some(_)) => worst_problem(pair).map(|problem| problem.axis),
                };
                Value::Word(match axis {
                    None => "",
                    Some(Axis::Freshness) => "freshness",
                    Some(Axis::Health) => "health",
                    Some(Axis::Sync) => "sync",
                    Some(Axis::Source) => "source",
                })
            }
            GroupBy::Source => {
                Value::Text(pair.declared.body.source.as_deref().map(source).unwrap_or_default())
            }
        }
    }
}

/// The value that the apps of a group share.
#[derive(PartialEq, Eq, Hash)]
enum Value<'v> {
    Name(NameId),
    Cluster(Place),
    Word(&'static str),
    Text(Cow<'v, str>),
}

/// Returns the URL of a source, or its name if it has no URL, or else its kind; followed by its path, if it has one.
fn source(source: &Source) -> Cow<'_, str> {
    let place = source.url.as_deref().or(source.name.as_deref()).unwrap_or(&source.kind);
    match &source.path {
        Some(path) => format!("{place} {path}").into(),
        None => place.into(),
    }
}
