//! The rows of the lists of `get`: their names for other commands, and their cells in tables.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use anstyle::Style;
use jiff::Timestamp;
use serde::Serialize;
use taffrail_api::diff::KeyedRow;
use taffrail_api::{AppRow, ClusterRow, ErrorRow, ManagedAs, NotLiveRow, ResourceRow, RowPart, text};
use taffrail_apps::text::{listed, moment};
use taffrail_apps::{Delivery, NotLiveState, ObjectSyncState, Problem, Scope};
use taffrail_object::ObjectKey;
use taffrail_status::Status;

use crate::output::table::Cell;
use crate::output::{app_style, object_style, style, sync_style};

/// A row with a name by which other commands find its app, cluster or object.
pub(crate) trait NamedRow: KeyedRow {
    /// Returns the name that `-o name` prints, which begins with the cluster if there are `several`. That of a cluster
    /// and of a finding of `trust` is the same in both cases.
    fn name(&self, several: bool) -> String;
}

/// A row of a list of `get`.
pub(super) trait ListRow: NamedRow + Serialize {
    /// Returns the cells of all columns, with ages at the time `now`. In a `short` row of an app the delivery tool is
    /// abbreviated, and of a Ready app without a problem a message that contains the applied revision is omitted.
    fn cells(&self, now: Timestamp, short: bool, namesakes: &Namesakes<'_>) -> Row;

    /// Returns true if an app has a problem that is more than a notice, a cluster is not Ready or has such an app, or
    /// an object is not Ready.
    fn has_problem(&self) -> bool;

    /// Returns the row itself if it is that of an app, to find others of its name; else `None`.
    fn app(&self) -> Option<&AppRow> {
        None
    }

    /// Returns true if the row is that of an app whose home cluster is not its target cluster.
    fn has_other_home(&self) -> bool {
        self.app().is_some_and(|app| app.home != app.cluster)
    }
}

impl NamedRow for AppRow {
    fn name(&self, several: bool) -> String {
        let name = format!("{}/{}/{}", self.delivery, self.namespace, self.name);
        if several { among_clusters(&self.cluster, &self.home, name) } else { name }
    }
}

/// Returns the name of an app of several clusters, from its full name in one: with its cluster, and with its home if
/// another cluster declares it.
pub(super) fn among_clusters(cluster: &str, home: &str, name: String) -> String {
    match home == cluster {
        true => format!("{cluster}/{name}"),
        false => format!("{cluster}/{name}@{home}"),
    }
}

impl ListRow for AppRow {
    fn app(&self) -> Option<&AppRow> {
        Some(self)
    }

    fn has_problem(&self) -> bool {
        self.problem.as_ref().is_some_and(Problem::is_pressing)
    }

    fn cells(&self, now: Timestamp, short: bool, namesakes: &Namesakes<'_>) -> Row {
        let revision = |revision: &Option<String>| match revision {
            Some(revision) => Cell::new(text::revision(revision)),
            None => Cell::new(text::NONE),
        };
        let objects = match self.unobserved.contains(&RowPart::Objects) {
            true => "?".to_owned(),
            false => format!("{}/{}", self.counts.get(Status::Current), self.counts.total()),
        };
        let worst = self.worst.as_ref().map(|worst| {
            let slash = if worst.namespace.is_empty() { "" } else { "/" };
            format!("{} {}{slash}{}", worst.kind, worst.namespace, worst.name)
        });
        let source =
            self.source.as_ref().and_then(|source| source.url.clone().or_else(|| source.name.clone()));
        let since = self.since.map(|since| text::age(now.as_second().saturating_sub(since.as_second())));
        let message = message(self);
        let said = text::revision(&message);
        let applied = self.sync.applied.as_deref().map(text::revision);
        let is_ready = self.effective == Status::Current && self.problem.is_none();
        let repeats = is_ready && applied.is_some_and(|applied| said.contains(&*applied));
        let mut row = BTreeMap::from([
            ("CLUSTER", Cell::new(&self.cluster)),
            ("HOME", Cell::new(if self.home == self.cluster { "" } else { &self.home })),
            ("NAMESPACE", Cell::new(&self.namespace)),
            ("NAME", Cell::new(&self.name)),
            (
                "DELIVERY",
                Cell::new(if short { text::delivery(self.delivery) } else { self.delivery.as_str() }),
            ),
            ("SINCE", Cell::new(since.unwrap_or_default())),
            (STATUS, Cell::styled(self.words(now), app_style(self))),
            ("OBJECTS", Cell::new(objects)),
            // Apps known by labels have no source to differ from.
            (
                "SYNC",
                match self.delivery {
                    Delivery::Label => Cell::new("-"),
                    _ => Cell::styled(self.sync.words(), sync_style(&self.sync)),
                },
            ),
            ("APPLIED", revision(&self.sync.applied)),
            ("WANTED", revision(&self.sync.desired)),
            ("LAST SUCCESS", Cell::new(text::since(self.sync.last_success, now))),
            ("SOURCE", Cell::new(source.unwrap_or_default())),
            ("WORST", Cell::new(worst.unwrap_or_default())),
            ("MESSAGE", if short && (repeats || said.is_empty()) { Cell::blank() } else { Cell::new(said) }),
            (FOLDED, Cell::new(namesakes.short_name(self))),
        ]);
        if !self.checks.is_empty() {
            row.insert(CHECKS, Cell::new(text::checks(&self.checks)));
        }
        row
    }
}

/// The maximum number of objects that a cell names of those that stand for a cluster; it counts the others.
const MAX_MANAGED: usize = 3;

impl NamedRow for ClusterRow {
    fn name(&self, _: bool) -> String {
        self.name.clone()
    }
}

impl ListRow for ClusterRow {
    fn has_problem(&self) -> bool {
        self.status != Status::Current || self.problems > 0
    }

    fn cells(&self, now: Timestamp, _: bool, _: &Namesakes<'_>) -> Row {
        let observed = self.freshness.observed_at.map(|at| at.to_string());
        let labels: Vec<String> = self.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut row = BTreeMap::from([
            ("CLUSTER", Cell::new(&self.name)),
            ("ID", Cell::new(self.id.as_deref().unwrap_or_default())),
            ("ALIASES", Cell::new(self.aliases.join(","))),
            ("LABELS", Cell::new(labels.join(","))),
            ("STATUS", Cell::styled(self.words(), cluster_style(self))),
            ("APPS", Cell::new(format!("{}/{}", self.counts.current.min(self.ready()), self.apps))),
            ("VERSION", Cell::new(self.version.as_deref().unwrap_or_default())),
            ("OBSERVED", Cell::new(observed.as_deref().unwrap_or(self.freshness.state.as_str()))),
            ("MESSAGE", Cell::new(text::revision(&self.message))),
        ]);
        row.extend(self.source.as_deref().map(|source| ("SOURCE", Cell::new(source))));
        row.extend(text::nodes(self).map(|nodes| ("NODES", Cell::new(nodes))));
        if !self.managed_as.is_empty() {
            let managed = |it: &ManagedAs| {
                let proof = if it.unproven { ", by its own word alone" } else { "" };
                let ObjectKey { kind, .. } = &it.object;
                format!("{kind} {} of {}: {}{proof}", it.object.path(), it.cluster, it.status.word())
            };
            let shown: Vec<String> = self.managed_as.iter().take(MAX_MANAGED).map(managed).collect();
            let count = self.managed_as.len().saturating_add(self.managed_as_left_out);
            let such = match count > shown.len() {
                true => format!("{count} objects, such as "),
                false => String::new(),
            };
            let managed = format!("{such}{}", shown.join("; "));
            row.insert("MANAGED AS", Cell::new(managed));
        }
        let light = if self.light { "light" } else { "" };
        let Some(reading) = &self.reading else {
            row.extend(self.light.then(|| ("READ", Cell::new(light))));
            return row;
        };
        let comma = if self.light { ", " } else { "" };
        let number = |number: Option<u64>, text: fn(u64) -> String| number.map(text).unwrap_or_default();
        let round_trip = reading.round_trip_micros as f64 / 1000.0;
        let digits = if round_trip < 10.0 { 1 } else { 0 };
        row.extend([
            ("READ", Cell::new(format!("{light}{comma}{}, {}", reading.lists, reading.protocol))),
            ("ROUND TRIP", Cell::new(format!("{round_trip:.digits$} ms"))),
            ("REQUESTS", Cell::new(number(reading.requests, |requests| requests.to_string()))),
            ("RECEIVED", Cell::new(number(reading.bytes, |bytes| format!("{} KB", bytes.div_ceil(1000))))),
        ]);
        // A cluster that is read once has no live scopes.
        if reading.scopes.is_some() {
            row.insert("LIVE SINCE", Cell::new(text::since(reading.live_since, now)));
            row.insert("NOT LIVE", Cell::new(not_live(&reading.not_live)));
        }
        row
    }
}

impl NamedRow for ResourceRow {
    fn name(&self, several: bool) -> String {
        let key = ObjectKey::new(&*self.group, &*self.kind, &*self.namespace, &*self.name);
        if several { format!("{}/{key}", self.cluster) } else { key.to_string() }
    }
}

impl ListRow for ResourceRow {
    fn has_problem(&self) -> bool {
        self.status != Status::Current
    }

    fn cells(&self, now: Timestamp, _: bool, _: &Namesakes<'_>) -> Row {
        let (status, sync, app) = (self.status, self.sync, self.app.as_ref());
        let words = self.words(now);
        let no_app = if self.owners_unread.is_empty() { text::NONE } else { Status::Unknown.word() };
        let suspended = if self.suspended { " (suspended)" } else { "" };
        let unconfirmed = if self.unconfirmed { ", unconfirmed" } else { "" };
        BTreeMap::from([
            ("CLUSTER", Cell::new(&self.cluster)),
            ("NAMESPACE", Cell::new(&self.namespace)),
            ("KIND", Cell::new(&self.kind)),
            ("GROUP", Cell::new(&self.group)),
            ("NAME", Cell::new(&self.name)),
            ("STATUS", Cell::styled(format!("{words}{unconfirmed}{suspended}"), object_style(status, sync))),
            ("SYNC", Cell::new(self.sync.map_or(text::NONE, ObjectSyncState::as_str))),
            ("SINCE", Cell::new(text::since(self.since, now))),
            ("DELIVERY", Cell::new(app.map_or(text::NONE, |app| app.delivery.as_str()))),
            (
                "APP",
                Cell::new(app.map_or(no_app.to_owned(), |app| format!("{}/{}", app.namespace, app.name))),
            ),
            ("RULE", Cell::new(&self.rule)),
            (IMAGES, Cell::new(text::images(self))),
            ("MESSAGE", Cell::new(self.told())),
        ])
    }
}

/// Title of the column with the images of an object that `--image` selects.
pub(super) const IMAGES: &str = "IMAGES";

/// Title of the column with the results of an app's checks, which is shown if a row has some.
pub(super) const CHECKS: &str = "CHECKS";

/// Title of the first column that does not identify the row; the columns before it name its app, cluster or object.
pub(super) const STATUS: &str = "STATUS";

/// Title of the column with an app's short name, which replaces the columns DELIVERY, NAMESPACE and NAME on a
/// narrow screen.
pub(super) const FOLDED: &str = "APP";

/// The namespaces of all apps of a list by delivery tool and name, to find apps of one name in several namespaces.
pub(super) struct Namesakes<'l> {
    namespaces: BTreeMap<(Delivery, &'l str), BTreeSet<&'l str>>,
}

impl<'l> Namesakes<'l> {
    pub(super) fn of(rows: &'l [impl ListRow]) -> Namesakes<'l> {
        let mut namespaces: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
        for app in rows.iter().filter_map(ListRow::app) {
            namespaces.entry((app.delivery, &*app.name)).or_default().insert(&*app.namespace);
        }
        Namesakes { namespaces }
    }

    /// Returns the short name of an app: `ks/shop`, or with its namespace if the list has an app of that tool and name
    /// in another namespace.
    fn short_name(&self, app: &AppRow) -> String {
        let delivery = text::delivery(app.delivery);
        let namespaces = self.namespaces.get(&(app.delivery, &*app.name));
        match namespaces.is_some_and(|namespaces| namespaces.len() > 1) {
            true => format!("{delivery}/{}/{}", app.namespace, app.name),
            false => format!("{delivery}/{}", app.name),
        }
    }
}

/// The cells of a row by the title of their column.
pub(super) type Row = BTreeMap<&'static str, Cell>;

pub(super) fn app_columns(wide: bool) -> Vec<&'static str> {
    if wide {
        let of_revisions = ["SYNC", "APPLIED", "WANTED", "LAST SUCCESS"];
        [
            &["CLUSTER", "HOME", "NAMESPACE", "NAME", "DELIVERY", "STATUS", "SINCE", "OBJECTS"],
            &of_revisions[..],
            &["SOURCE", "WORST", CHECKS, "MESSAGE"],
        ]
        .concat()
    } else {
        vec![
            "CLUSTER",
            "HOME",
            "NAMESPACE",
            "NAME",
            "DELIVERY",
            "STATUS",
            "SINCE",
            "SYNC",
            "APPLIED",
            "MESSAGE",
        ]
    }
}

/// Returns the text of an app's MESSAGE cell: the message of its problem, if it is Ready but has one, else its own; if
/// the cluster of its objects is not live, behind words that say so, or only these if it was never observed.
fn message(app: &AppRow) -> Cow<'_, str> {
    let besides = app.problem.as_ref().filter(|_| app.effective == Status::Current);
    let said = besides.map(|problem| &problem.message).filter(|message| !message.is_empty());
    // What is said of an app that was Ready is what its delivery tool says, in the home.
    let is_old = app.health != Status::Current || !app.sync.freshness.is_live();
    text::last_message(said.unwrap_or(&app.message), app.silence(), is_old)
}

/// Returns the cells of a row about a cluster that could not be read at all, so that its apps do not look deleted;
/// `None` if `error` is about a part of a cluster.
pub(super) fn lost_row(error: &ErrorRow) -> Option<Row> {
    let is_lost = error.scope == Scope::Cluster.to_string();
    is_lost.then(|| {
        BTreeMap::from([
            ("CLUSTER", Cell::new(&error.cluster)),
            (STATUS, Cell::styled(Status::Unknown.word(), style(Status::Unknown))),
            ("MESSAGE", Cell::new(format!("nothing is known of it: {}: {}", error.reason, error.message))),
        ])
    })
}

/// Returns the cells of a row about a cluster that is not live and was last observed at `at`: of such a cluster only
/// what its apps declare is known, as it was then.
pub(super) fn partial_row(cluster: &str, at: Timestamp) -> Row {
    let at = moment(at);
    BTreeMap::from([
        ("CLUSTER", Cell::new(cluster)),
        (STATUS, Cell::styled(Status::Unknown.word(), style(Status::Unknown))),
        ("MESSAGE", Cell::new(format!("last seen {at}: what it holds now is not known"))),
    ])
}

fn cluster_style(cluster: &ClusterRow) -> Style {
    let status = cluster.status;
    if status == Status::Current && cluster.problems > 0 { style(Status::Failed) } else { style(status) }
}

/// Columns about the cluster itself and how it is known, which are shown if a row has them: its nodes, the objects that
/// stand for it in management clusters, its source at a hub, and the reading of a live cluster.
pub(super) const OF_READING: [&str; 9] =
    ["NODES", "MANAGED AS", "SOURCE", "READ", "ROUND TRIP", "REQUESTS", "RECEIVED", "LIVE SINCE", "NOT LIVE"];

pub(super) fn cluster_columns(wide: bool) -> Vec<&'static str> {
    if wide {
        [
            &["CLUSTER", "ID", "ALIASES", "LABELS", "STATUS", "APPS", "VERSION", "OBSERVED"],
            &OF_READING[..],
            &["MESSAGE"],
        ]
        .concat()
    } else {
        vec!["CLUSTER", "STATUS", "APPS", "VERSION", "MESSAGE"]
    }
}

/// Returns the text of the NOT LIVE cell: for each state two scopes and the number of the others. Leaves out kinds that
/// the server does not serve.
fn not_live(scopes: &[NotLiveRow]) -> String {
    const NAMED: usize = 2;
    // Several reads of one scope, by labels or names, are one scope to a reader.
    let mut states: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for scope in scopes.iter().filter(|scope| scope.state != NotLiveState::Absent) {
        states.entry(scope.state.as_str()).or_default().insert(&scope.scope);
    }
    let told = states.into_iter().map(|(state, scopes)| format!("{state}: {}", listed(scopes, NAMED)));
    told.collect::<Vec<_>>().join("; ")
}

pub(super) fn resource_columns(wide: bool) -> Vec<&'static str> {
    if wide {
        let of_app = ["STATUS", "SINCE", "SYNC", "DELIVERY", "APP", "RULE", IMAGES, "MESSAGE"];
        [&["CLUSTER", "NAMESPACE", "KIND", "GROUP", "NAME"], &of_app[..]].concat()
    } else {
        vec!["CLUSTER", "NAMESPACE", "KIND", "NAME", "STATUS", "APP", IMAGES, "MESSAGE"]
    }
}
