//! Apps counted by a value that they share.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rustc_hash::FxHashMap;
use taffrail_api::hub::AppGroup;
use taffrail_apps::{Axis, FreshnessState, Source};
use taffrail_status::rollup::Counts;

use super::classes::CountedClass;
use super::filter::{AppFilter, InCluster};
use super::names::NameId;
use super::pair::{ListedPair, PairClass, Place, worst_problem};
use super::view::{FleetView, PairNow};

/// The value by which apps are grouped.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// The value of this label of the cluster that holds the objects; empty if the cluster has no such label.
    ClusterLabel(String),
}

impl GroupBy {
    /// All values but [`GroupBy::ClusterLabel`], each with its word in the parameter `group-by`.
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
    pub(crate) fn groups(&self, filter: &AppFilter, by: &GroupBy) -> Vec<AppGroup> {
        let prepared = filter.prepare(self);
        let parts = prepared.in_parts(self, |clusters| {
            let mut tally = Tally::default();
            clusters.for_each(|within| self.tally(by, &within, &mut tally));
            tally
        });
        // Two parts may have one value, and different numbers may stand for one text: two clusters may have one name.
        let mut told: BTreeMap<Cow<'_, str>, AppGroup> = BTreeMap::new();
        for (value, group) in parts.into_iter().flat_map(|Tally(groups)| groups) {
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

    fn tally<'v>(&'v self, by: &GroupBy, within: &InCluster<'_, 'v>, tally: &mut Tally<'v>) {
        let place = within.place;
        let of_class = |(it, now): (&CountedClass, PairNow)| {
            Some((self.class_value(by, place, &it.class, now)?, now, it.pairs))
        };
        let of_classes: Option<Vec<_>> = within.classes().map(of_class).collect();
        match of_classes.filter(|_| within.is_decided) {
            Some(values) => values.into_iter().for_each(|(value, now, pairs)| tally.add(value, now, pairs)),
            None => within.pairs().for_each(|(_, listed, now)| {
                tally.add(self.value(by, place, listed, now), now, 1);
            }),
        }
    }

    /// Returns the value that all pairs of a class share; `None` if they may differ.
    fn class_value(&self, by: &GroupBy, place: Place, class: &PairClass, now: PairNow) -> Option<Value<'_>> {
        match by {
            GroupBy::Cluster => (!class.is_stray).then_some(Value::Cluster(place)),
            GroupBy::ClusterLabel(name) => {
                let cluster = self.fleet().cluster(place).filter(|_| !class.is_stray);
                let value = cluster.and_then(|it| self.labels(it)?.get(name));
                Some(Value::Text(value.map_or("", String::as_str).into()))
            }
            GroupBy::Home => Some(Value::Cluster(class.home.cluster)),
            GroupBy::Delivery => Some(Value::Word(class.delivery.as_str())),
            GroupBy::Status => Some(Value::Word(now.effective.as_str())),
            GroupBy::Sync => Some(Value::Word(now.sync.as_str())),
            GroupBy::Problem => match (now.is_dark(), class.severity) {
                (true, _) => Some(axis_value(Some(Axis::Freshness))),
                (false, None) => Some(axis_value(None)),
                (false, Some(_)) => class.axes.single().map(|axis| axis_value(Some(axis))),
            },
            GroupBy::Namespace | GroupBy::Name | GroupBy::Key | GroupBy::Source => None,
        }
    }

    fn value<'v>(&'v self, by: &GroupBy, place: Place, listed: ListedPair<'v>, now: PairNow) -> Value<'v> {
        let ListedPair { pair, summary, class } = listed;
        if let Some(value) = self.class_value(by, place, class, now) {
            return value;
        }
        let source = || pair.declared.body.source.as_deref().map(source).unwrap_or_default();
        match by {
            GroupBy::Namespace => Value::Name(summary.namespace),
            GroupBy::Name => Value::Name(summary.name),
            GroupBy::Key => Value::Name(summary.key),
            GroupBy::Source => Value::Text(source()),
            GroupBy::Problem => axis_value(worst_problem(pair).map(|problem| problem.axis)),
            // A class has a value for these, except for the cluster if the fleet does not have it.
            GroupBy::Cluster
            | GroupBy::ClusterLabel(_)
            | GroupBy::Home
            | GroupBy::Delivery
            | GroupBy::Status
            | GroupBy::Sync => Value::Text(pair.declared.body.target.0.as_str().into()),
        }
    }
}

/// The groups of the apps that were counted so far, by the value that they share; without its text.
#[derive(Default)]
struct Tally<'v>(FxHashMap<Value<'v>, AppGroup>);

impl<'v> Tally<'v> {
    /// Counts `pairs` apps of a value and a present state.
    fn add(&mut self, value: Value<'v>, now: PairNow, pairs: usize) {
        let empty = || AppGroup {
            group: String::new(),
            apps: 0,
            problems: 0,
            counts: Counts::default(),
            worst: None,
            stale: 0,
            lost: 0,
        };
        let group = self.0.entry(value).or_insert_with(empty);
        group.apps += pairs;
        group.problems += if now.is_pressing() { pairs } else { 0 };
        group.counts.add_many(now.effective, pairs);
        match now.observed {
            FreshnessState::Live => {
                group.worst = Some(group.worst.map_or(now.effective, |worst| worst.min(now.effective)));
            }
            FreshnessState::Stale => group.stale += pairs,
            FreshnessState::Lost => group.lost += pairs,
        }
    }
}

fn axis_value(axis: Option<Axis>) -> Value<'static> {
    Value::Word(match axis {
        None => "",
        Some(Axis::Freshness) => "freshness",
        Some(Axis::Health) => "health",
        Some(Axis::Sync) => "sync",
        Some(Axis::Source) => "source",
        Some(Axis::Check) => "check",
    })
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
