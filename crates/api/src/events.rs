//! Rows of `events`: the warnings about the objects of apps.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_apps::{self as apps, App, FluxSources, Objects, controllers, members};
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey};
use taffrail_status::ActiveRules;
use taffrail_status::Presence;
use taffrail_status::assess::Event;

use crate::together::{earlier, grouped, grouped_in_one, later, likeness, without_uids};
use crate::tree::{Forest, TreeOptions, Walked};
use crate::{AppName, InClusters, List, ListItem};

/// The answer of `events`.
pub type EventList = List<EventRow>;

impl ListItem for EventRow {
    const LIST: &'static str = "EventList";
}

/// An event of type Warning, or several equal ones, with the number of occurrences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventRow {
    /// The cluster of the object, or the clusters with the same warning.
    #[serde(flatten)]
    pub place: InClusters,
    /// The app that the object belongs to.
    pub app: AppName,
    /// The object that the event is about.
    pub object: ObjectKey,
    /// The reason in one CamelCase word.
    pub reason: String,
    /// The message, for people; of several equal warnings that of the newest.
    pub message: String,
    /// Number of times that the event occurred.
    pub count: i64,
    /// The time of the first occurrence; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<Timestamp>,
    /// The time of the last occurrence; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Timestamp>,
    /// Name of the workload after which the Pod, or the object that is gone, was named; left out for others, and if it
    /// is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
    /// True if none of the objects that the row is about exists any more; their app is that of the workload after which
    /// they were named.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_gone: bool,
    /// Number of objects that the row is about; left out for one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub objects: usize,
    /// Names of further objects that the row is about, without that of `object`: at most 20, those with the newest
    /// warnings first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}

/// The maximum number of [`EventRow::others`]; [`EventRow::objects`] counts the rest too.
const MAX_OTHERS: usize = 20;

impl EventList {
    /// Makes the list of warnings, the newest last, about the declaring objects of `asked`, which are apps of `list`,
    /// their Flux sources, their declared objects and the dependents of these, those that are gone included; `list`
    /// holds the apps of `clusters`. Leaves out events that last occurred before `oldest`, and with `oldest` those
    /// without a time; an event that the cluster keeps with a count is one, so that its earlier occurrences count too.
    pub fn new(
        asked: &[&App],
        list: &apps::AppList,
        clusters: &[&dyn Objects],
        rules: &ActiveRules<'_>,
        now: Timestamp,
        oldest: Option<Timestamp>,
    ) -> EventList {
        let forest = Forest::new(list, clusters, rules, now, TreeOptions::default());
        let mut owners: HashMap<(&str, ObjectKey), &App> = HashMap::new();
        let mut walked = Walked::default();
        // What belongs to an app only if it belongs to no other.
        let mut borrowed = Vec::new();
        // A cache of the sources of each cluster.
        let mut known: HashMap<&str, FluxSources> = HashMap::new();
        for app in asked {
            let home = forest.cluster(&app.app.home);
            let declaring = app.declaring.as_ref().and_then(|key| match home?.get(key.as_ref()) {
                Presence::Present(observed) => Some(observed),
                Presence::Absent | Presence::Unobserved(_) => None,
            });
            if let Some((home, declaring)) = home.zip(declaring) {
                let known = known.entry(&*app.app.home).or_default();
                for source in known.of(home, &declaring) {
                    match source.namespace == declaring.key.namespace {
                        true => drop(owners.entry((&*app.app.home, source)).or_insert(*app)),
                        false => borrowed.push(((&*app.app.home, source), *app)),
                    }
                }
            }
            // An object that declares an app belongs to that app first, whatever delivers it.
            if let Some(declaring) = &app.declaring {
                owners.insert((&*app.app.home, declaring.clone()), *app);
            }
            // If several apps list an object, the first keeps it and its dependents.
            for place in forest.objects(app, false, &mut walked) {
                owners.entry(place).or_insert(*app);
            }
        }
        // An app may list any object, so one that an object confirms comes before one that it does not.
        for app in asked {
            borrowed.extend(forest.objects(app, true, &mut walked).into_iter().map(|place| (place, *app)));
        }
        for (place, app) in borrowed {
            owners.entry(place).or_insert(app);
        }

        let mut warnings: BTreeMap<WarningKey<'_>, Warning> = BTreeMap::new();
        for member in members(clusters) {
            let cluster = member.objects.name();
            let mut seen = HashSet::new();
            for (group, about) in [("", "involvedObject"), ("events.k8s.io", "regarding")] {
                for observed in member.objects.of_kind(group, "Event", None) {
                    // The same event is served in both groups.
                    let event = &observed.object;
                    if event.text(&["type"]) != "Warning"
                        || Event::read(event).is_none()
                        || !seen.insert((observed.key.namespace, observed.key.name))
                    {
                        continue;
                    }
                    let Some(object) = event.at(&[about]).and_then(subject) else { continue };
                    let owner = |key: &ObjectKey| owners.get(&(cluster, key.clone())).copied();
                    let is_gone = || matches!(member.objects.get(object.as_ref()), Presence::Absent);
                    let (app, made_by) = match owner(&object) {
                        Some(app) => (app, None),
                        None if is_gone() => {
                            let mut makers = makers(&object).into_iter();
                            let found = makers.find_map(|maker| Some((owner(&maker)?, maker)));
                            let Some((app, maker)) = found else { continue };
                            (app, Some(named_after(member.objects, &maker).unwrap_or(maker.name)))
                        }
                        None => continue,
                    };
                    let given = EventFields::of(event);
                    if oldest.is_some_and(|oldest| given.last.is_none_or(|last| last < oldest)) {
                        continue;
                    }
                    let message = nameless(&given.message, &object.name);
                    let place = (cluster, object, event.text(&["reason"]).into_owned(), message);
                    let warning = warnings.entry(place).or_insert_with(|| Warning {
                        app: AppName::from(&app.app),
                        gone_of: made_by,
                        message: given.message.clone(),
                        count: 0,
                        first: given.first,
                        last: given.last,
                    });
                    warning.add(given);
                }
            }
        }
        let mut rows: Vec<EventRow> = warnings.into_iter().map(row).collect();
        for row in &mut rows {
            let objects = forest.cluster(row.place.first());
            row.made_by = row.made_by.take().or_else(|| maker(objects?, &row.object));
        }
        rows.sort_by_key(|row| row.last_seen);
        List::of(rows, &list.errors)
    }

    /// Joins equal warnings: those in several clusters about the same object of the same app, and those about several
    /// Pods of one workload, or objects of it that are gone. A joined one keeps the message of the newest.
    #[must_use]
    pub fn together(self) -> EventList {
        let like = |row: &EventRow| (row.place.first().to_owned(), row.likeness());
        // First those within one cluster, which would have a row each otherwise.
        let of_each = grouped_in_one(self.items, like);
        let of_each = of_each.into_iter().filter_map(EventRow::together).collect();
        let groups = grouped(of_each, like);
        let mut items: Vec<EventRow> = groups.into_iter().filter_map(EventRow::together).collect();
        items.sort_by_key(|row| row.last_seen);
        EventList { items, ..self }
    }
}

fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_one(number: &usize) -> bool {
    *number == 1
}

/// App, object, reason and message of equal warnings, without what differs among Pods of one workload.
pub(super) type EventLikeness = (AppName, ObjectKey, String, String);

impl EventRow {
    /// Returns the parts that equal warnings have in common.
    pub(super) fn likeness(&self) -> EventLikeness {
        let EventRow { app, object, reason, message, made_by, .. } = self.clone();
        let message = nameless(&message.replace(&*object.name, "*"), "*");
        let name = made_by.map_or(object.name, |made_by| format!("{made_by}-*"));
        (app, ObjectKey { name, ..object }, reason, message)
    }

    fn together(rows: Vec<EventRow>) -> Option<EventRow> {
        let mut names: Vec<String> = rows.iter().map(|row| row.place.first().to_owned()).collect();
        names.sort();
        names.dedup();
        let all = rows.iter().rev().flat_map(|row| std::iter::once(&row.object.name).chain(&row.others));
        let mut seen = HashSet::new();
        let named: Vec<String> = all.filter(|name| seen.insert(*name)).cloned().collect();
        // The newest comes last, and its message is shown.
        let told = rows.into_iter().reduce(|one, other| EventRow {
            count: one.count.saturating_add(other.count),
            first_seen: earlier(one.first_seen, other.first_seen),
            last_seen: later(one.last_seen, other.last_seen),
            objects: one.objects.saturating_add(other.objects),
            is_gone: one.is_gone && other.is_gone,
            ..other
        })?;
        let others = named.into_iter().filter(|name| *name != told.object.name).take(MAX_OTHERS).collect();
        Some(EventRow { place: InClusters::new(names), others, ..told })
    }
}

/// Returns a message about the object `name`, to compare it with others: words that begin with that name and a hyphen
/// are replaced by `*`, and UIDs, numbers and durations by `#`.
fn nameless(message: &str, name: &str) -> String {
    let made_of = |word: &str| {
        let bare =
            word.trim_matches(|character: char| !character.is_ascii_alphanumeric() && character != '*');
        bare.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
    };
    let words = message.split_whitespace().map(|word| if made_of(word) { "*" } else { word });
    likeness(&without_uids(&words.collect::<Vec<_>>().join(" ")))
}

/// Returns the name of the topmost controller of a Pod with which the Pod's name begins, such as its Deployment; `None`
/// for other kinds, and if there is none.
fn maker(objects: &dyn Objects, pod: &ObjectKey) -> Option<String> {
    let is_pod = (&*pod.group, &*pod.kind) == ("", "Pod");
    is_pod.then(|| named_after(objects, pod)).flatten()
}

/// Returns the name of the topmost controller of an object with which the name of the object begins; `None` if there is
/// none.
fn named_after(objects: &dyn Objects, object: &ObjectKey) -> Option<String> {
    let is_made_of = |name: &str| object.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    let makers = controllers(objects, object).into_iter().map(|it| it.name);
    makers.take_while(|name| is_made_of(name)).last()
}

/// Returns the keys of the objects that may have made a Pod, ReplicaSet or Job that is gone; empty for other kinds.
///
/// A controller names what it makes after the maker, with a hyphen and a suffix. So the name without one suffix is that
/// of the maker, and for a Pod the name without two is that of its Deployment or CronJob. Whoever may create events in
/// a namespace may name an object that never existed; the makers that follow from it are all in that namespace.
fn makers(gone: &ObjectKey) -> Vec<ObjectKey> {
    let shorter = |name: &str, count: usize| {
        let rest = name.rsplitn(count + 1, '-').nth(count)?;
        (!rest.is_empty()).then(|| rest.to_owned())
    };
    let made_of = |(group, kind, suffixes): (&str, &str, usize)| {
        Some(ObjectKey::new(group, kind, &*gone.namespace, shorter(&gone.name, suffixes)?))
    };
    let all: &[(&str, &str, usize)] = match (&*gone.group, &*gone.kind) {
        ("", "Pod") => &[
            ("apps", "ReplicaSet", 1),
            ("apps", "StatefulSet", 1),
            ("apps", "DaemonSet", 1),
            ("batch", "Job", 1),
            ("apps", "Deployment", 2),
            ("batch", "CronJob", 2),
        ],
        ("apps", "ReplicaSet") => &[("apps", "Deployment", 1)],
        ("batch", "Job") => &[("batch", "CronJob", 1)],
        _ => &[],
    };
    all.iter().copied().filter_map(made_of).collect()
}

/// The parts in which warnings must be equal to share a row: cluster, object, reason, and the message as [`nameless`]
/// returns it.
type WarningKey<'a> = (&'a str, ObjectKey, String, String);

/// The equal Warning events about one object, joined to one.
struct Warning {
    app: AppName,
    /// Name of the workload whose object this was, if the object is gone.
    gone_of: Option<String>,
    message: String,
    count: i64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Warning {
    fn add(&mut self, given: EventFields) {
        self.count = self.count.saturating_add(given.count);
        self.first = match (self.first, given.first) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        if given.last >= self.last {
            (self.last, self.message) = (given.last, given.message);
        }
    }
}

/// The fields of an event, read from either of its API groups.
struct EventFields {
    message: String,
    count: i64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl EventFields {
    fn of(event: &Object<'_>) -> EventFields {
        let message = event.text(&["message"]);
        let message = if message.is_empty() { event.text(&["note"]) } else { message };
        let when = |paths: &[&[&str]]| paths.iter().find_map(|path| event.text(path).parse().ok());
        let count = |path: &[&str]| event.at(path).and_then(Value::as_i64);
        let counts = [&["series", "count"][..], &["count"], &["deprecatedCount"]];
        EventFields {
            message: message.into_owned(),
            count: counts.into_iter().find_map(count).unwrap_or(1).max(1),
            first: when(&[
                &["firstTimestamp"],
                &["deprecatedFirstTimestamp"],
                &["eventTime"],
                &["metadata", "creationTimestamp"],
            ]),
            last: when(&[
                &["series", "lastObservedTime"],
                &["lastTimestamp"],
                &["deprecatedLastTimestamp"],
                &["eventTime"],
                &["metadata", "creationTimestamp"],
            ]),
        }
    }
}

/// Returns the object that an event's `reference` names; `None` if it names none.
fn subject(reference: Value<'_>) -> Option<ObjectKey> {
    let field = |key| reference.get(key).and_then(Value::as_str).unwrap_or_default();
    let version = field("apiVersion");
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let key = ObjectKey::new(group, field("kind"), field("namespace"), field("name"));
    (!key.kind.is_empty() && !key.name.is_empty()).then_some(key)
}

fn row((place, warning): (WarningKey<'_>, Warning)) -> EventRow {
    let (cluster, object, reason, _) = place;
    EventRow {
        place: InClusters::one(cluster),
        app: warning.app,
        object: object.clone(),
        reason,
        message: warning.message,
        count: warning.count,
        first_seen: warning.first,
        last_seen: warning.last,
        is_gone: warning.gone_of.is_some(),
        made_by: warning.gone_of,
        objects: 1,
        others: Vec::new(),
    }
}
