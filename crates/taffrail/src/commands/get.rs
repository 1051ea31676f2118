//! `taffrail get`: lists of apps, clusters and objects.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write};

use anstyle::Style;
use jiff::Timestamp;
use serde::Serialize;
use taffrail_api::filter::{self, Filter};
use taffrail_api::{AppRow, ClusterList, ClusterRow, List, NotLiveRow, ResourceList, ResourceRow, text};
use taffrail_apps::command::quoted;
use taffrail_apps::{
    App, AppError, AppList, Axis, Delivery, FreshnessState, ObjectSyncState, Scope, ScopeState, full_name,
};
use taffrail_object::ObjectKey;
use taffrail_object::kinds::names_kind;
use taffrail_observe::{FleetSnapshot, NO_EXTRA};
use taffrail_status::Status;

use super::named;
use crate::cli::{FilterArguments, GetArguments, ListOutput, SortBy, What};
use crate::command_error::{CommandError, Exit, advise, written};
use crate::output::names::Names;
use crate::output::table::{Cell, Table};
use crate::output::{answer, app_style, object_style, printable, screen, style, sync_style};
use crate::phrase;
use crate::program;
use crate::reasons;
use crate::source::{self, Source, asked};

pub(crate) fn run(arguments: &GetArguments, source: &mut dyn Source) -> Result<Exit, CommandError> {
    let mut filter = filter(&arguments.filters);
    // While watching, a row that leaves the list because its state changed is printed once more.
    if source.shows_all() {
        filter = Filter { status: None, problems: false, sync: None, ..filter };
    }
    check(arguments)?;
    let asked = asked(arguments.namespace.as_ref(), &arguments.declared, &arguments.grouping);
    // Objects that the user declares have no row that is kept up to date, and of clusters it is told how they are read.
    if arguments.declared.is_empty() && arguments.what != What::Clusters {
        source.shows_rows();
    }
    let fleet = source.read(&arguments.view, &asked, NO_EXTRA)?;
    named::check_clusters(&filter.clusters, fleet)?;
    let mut list = fleet.apps(&arguments.declared);
    let mut hint = None;
    if let Some(namespace) = &arguments.namespace {
        let is_declared_there = |app: &App| app.app.namespace == *namespace;
        if arguments.name.is_empty() && !list.apps.iter().any(is_declared_there) {
            hint = elsewhere(arguments, namespace, list.clone())?;
        }
        list.apps.retain(is_declared_there);
        let shown: Vec<&App> = list.apps.iter().collect();
        list.errors = named::asked_for(&list, &shown, Some(namespace));
    }
    named::keep("get apps", &arguments.name, arguments.namespace.as_deref(), &mut list)?;
    check_kinds(&filter.kinds, &list)?;
    filter.apps(&mut list, &fleet.clusters());
    match arguments.what {
        What::Apps => filter.by_status(&mut list),
        What::Resources => filter.resources(&mut list, &fleet.clusters()),
        What::Clusters => {}
    }
    if let Some(by) = arguments.sort {
        filter::sort_apps(&mut list.apps, by.into());
    }
    let shown = Shown { arguments, fleet, filter: &filter, list: &list };

    written(shown.answer())?;
    if let Some(hint) = hint {
        advise(&hint);
    }

    // Tables print errors below; documents contain them.
    let for_people = matches!(arguments.output, ListOutput::Table | ListOutput::Wide | ListOutput::Name);
    let mut exit = tell(fleet, &list.errors, for_people);
    if arguments.exit_status && !shown.is_well() {
        exit = exit.max(Exit::No);
    }
    Ok(exit)
}

/// Maximum number of apps that a hint names.
const MAX_NAMED: usize = 3;

/// Returns a hint at apps that have objects in the namespace, for a namespace in which no app is declared. Returns
/// `None` if there are none, or if the output is for programs.
fn elsewhere(
    arguments: &GetArguments,
    namespace: &String,
    read: AppList,
) -> Result<Option<String>, CommandError> {
    let is_for_people = matches!(arguments.output, ListOutput::Table | ListOutput::Wide);
    if !is_for_people || arguments.view.watch || arguments.what == What::Clusters {
        return Ok(None);
    }
    let mut list = read;
    if arguments.view.source.from.is_empty() {
        // Live reads covered only the declarations in that namespace.
        let asked = asked(None, &arguments.declared, &arguments.grouping);
        list = source::read(&arguments.view, &asked)?.apps(&arguments.declared);
    }
    let filter = Filter { namespaces: vec![namespace.clone()], ..Filter::default() };
    filter.apps(&mut list, &[]);
    let names: BTreeSet<String> = list.apps.iter().map(|app| full_name(&app.app)).collect();
    let mut named: Vec<&str> = names.iter().take(MAX_NAMED).map(String::as_str).collect();
    if names.len() > MAX_NAMED {
        named.push("…");
    }
    let have = match list.apps.len() {
        0 => return Ok(None),
        1 => "1 app has".to_owned(),
        count => format!("{count} apps have"),
    };
    let what = if arguments.what == What::Apps { "apps" } else { "resources" };
    let command = format!("{} get {what} --in-namespace {}", program::name(), quoted(namespace));
    Ok(Some(format!(
        "{have} objects in namespace {namespace} ({}): '{command}' lists them",
        named.join(", ")
    )))
}

/// Prints the errors below the table and returns the exit code. JSON and YAML contain the errors of clusters, so
/// these are printed only if `for_people`.
pub(super) fn tell(fleet: &FleetSnapshot, errors: &[AppError], for_people: bool) -> Exit {
    let mut exit = Exit::Yes;
    for complaint in fleet.problems.iter().map(CommandError::from) {
        complaint.print();
        exit = exit.max(complaint.exit);
    }
    for complaint in complaints(errors) {
        if for_people {
            complaint.print();
        }
        exit = exit.max(complaint.exit);
    }
    exit
}

fn filter(arguments: &FilterArguments) -> Filter {
    Filter {
        status: arguments.status.clone(),
        problems: arguments.problems,
        sync: arguments.sync.clone(),
        deliveries: arguments.delivery.clone(),
        suspended: arguments.suspended,
        labels: arguments.selector.clone(),
        clusters: arguments.cluster.clone(),
        kinds: arguments.kind.clone(),
        images: arguments.image.clone(),
        namespaces: arguments.in_namespace.clone(),
    }
}

/// Checks combinations of options that clap cannot express.
fn check(arguments: &GetArguments) -> Result<(), CommandError> {
    let GetArguments { what, filters, .. } = arguments;
    if *what != What::Resources {
        let of_objects = [("--kind", &filters.kind), ("--image", &filters.image)];
        if let Some((option, _)) = of_objects.iter().find(|(_, values)| !values.is_empty()) {
            let complaint = CommandError::usage(format!("{option} applies to objects, not {}", noun(*what)));
            return Err(complaint.hint(format!("{} get resources {option} …", program::name())));
        }
    }
    if *what != What::Apps {
        let of_apps = [("--problems", filters.problems), ("--sync", filters.sync.is_some())];
        if let Some((option, _)) = of_apps.iter().find(|(_, is_set)| *is_set) {
            let complaint = CommandError::usage(format!("{option} applies to apps, not {}", noun(*what)));
            return Err(complaint.hint(format!("{} get apps {option} …", program::name())));
        }
    }
    if *what == What::Clusters && !filters.in_namespace.is_empty() {
        let complaint = CommandError::usage("--in-namespace applies to apps and objects, not clusters");
        return Err(complaint.hint(format!("{} get apps --in-namespace …", program::name())));
    }
    if *what == What::Clusters && !arguments.name.is_empty() {
        let complaint = CommandError::usage("clusters cannot be selected by names of apps");
        return Err(complaint.hint(format!("{} get clusters --cluster NAME", program::name())));
    }
    if *what == What::Clusters && matches!(arguments.sort, Some(SortBy::Since | SortBy::Delivery)) {
        return Err(CommandError::usage("clusters can be sorted by name or status"));
    }
    chosen_columns(arguments).map(drop)
}

/// Checks that some app has an object of each kind in `wanted`; a kind without objects may be misspelled.
fn check_kinds(wanted: &[String], list: &AppList) -> Result<(), CommandError> {
    let keys = || list.apps.iter().flat_map(|app| &app.resources).map(|resource| &resource.key);
    let missing = |wanted: &&String| !keys().any(|key| names_kind(wanted, &key.group, &key.kind));
    match wanted.iter().find(missing) {
        // The unread part may contain that kind.
        Some(wrong) if list.errors.is_empty() => {
            let kinds: BTreeSet<&str> = keys().map(|key| key.kind.as_str()).collect();
            let kinds: Vec<&str> = kinds.into_iter().collect();
            let complaint = CommandError::usage(format!("no app declares an object of kind '{wrong}'"));
            Err(complaint.hint(format!("there are: {}", kinds.join(", "))))
        }
        _ => Ok(()),
    }
}

/// Returns the columns selected with `--columns`, or `None` without that option.
fn chosen_columns(arguments: &GetArguments) -> Result<Option<Vec<&'static str>>, CommandError> {
    if arguments.columns.is_empty() {
        return Ok(None);
    }
    if !matches!(arguments.output, ListOutput::Table | ListOutput::Wide) {
        return Err(CommandError::usage(
            "--columns applies to tables; other output formats contain all fields",
        ));
    }
    let chosen = |name: &String| {
        column(arguments.what, name).ok_or_else(|| {
            let complaint = CommandError::usage(format!("{} have no column '{name}'", noun(arguments.what)));
            complaint.hint(format!("there are: {}", column_names(arguments.what).join(", ")))
        })
    };
    arguments.columns.iter().map(chosen).collect::<Result<_, _>>().map(Some)
}

/// Returns the title of the column `name`, given in any case and with `-` or `_` for spaces.
pub(crate) fn column(what: What, name: &str) -> Option<&'static str> {
    let plain = name.trim().to_uppercase().replace(['-', '_'], " ");
    all_columns(what).into_iter().find(|column| *column == plain)
}

/// Returns the names of all columns, in the form that `--columns` takes.
pub(crate) fn column_names(what: What) -> Vec<String> {
    all_columns(what).iter().map(|name| name.to_lowercase().replace(' ', "-")).collect()
}

fn all_columns(what: What) -> Vec<&'static str> {
    let [narrow, mut all] = [false, true].map(|wide| columns(what, wide));
    let more: Vec<&'static str> = narrow.into_iter().filter(|column| !all.contains(column)).collect();
    all.extend(more);
    all
}

fn columns(what: What, wide: bool) -> Vec<&'static str> {
    match what {
        What::Apps => app_columns(wide),
        What::Clusters => cluster_columns(wide),
        What::Resources => resource_columns(wide),
    }
}

/// The list to print, and the options for printing it.
struct Shown<'s> {
    arguments: &'s GetArguments,
    fleet: &'s FleetSnapshot,
    filter: &'s Filter,
    list: &'s AppList,
}

impl Shown<'_> {
    fn clusters(&self) -> ClusterList {
        let mut clusters = ClusterList::new(&self.fleet.clusters(), self.list);
        clusters.items.retain(|row| self.filter.admits_row(row));
        if let Some(by) = self.arguments.sort {
            filter::sort_clusters(&mut clusters.items, by.into());
        }
        clusters
    }

    fn resources(&self) -> ResourceList {
        let mut resources = ResourceList::from(self.list);
        if let Some(by) = self.arguments.sort {
            filter::sort_resources(&mut resources.items, by.into());
        }
        resources
    }

    /// Returns true if no row has a problem.
    fn is_well(&self) -> bool {
        let Filter { status, kinds, images, namespaces, .. } = self.filter;
        let are_chosen =
            status.is_some() || !kinds.is_empty() || !images.is_empty() || !namespaces.is_empty();
        match self.arguments.what {
            What::Clusters => {
                self.clusters().items.iter().all(|row| row.status == Status::Current && row.problems == 0)
            }
            // A filter for objects excludes what their app says.
            What::Resources if are_chosen => {
                self.resources().items.iter().all(|row| row.status == Status::Current)
            }
            What::Apps | What::Resources => self.list.apps.iter().all(|app| app.pressing().is_none()),
        }
    }

    fn answer(&self) -> io::Result<()> {
        let form = self.arguments.output;
        match (self.arguments.what, form) {
            (What::Apps, ListOutput::Json | ListOutput::Yaml) => {
                document(form, &List::<AppRow>::from(self.list))
            }
            (What::Clusters, ListOutput::Json | ListOutput::Yaml) => document(form, &self.clusters()),
            (What::Resources, ListOutput::Json | ListOutput::Yaml) => document(form, &self.resources()),
            (_, ListOutput::Name) => self.names(),
            (_, ListOutput::Table | ListOutput::Wide) => self.table(),
        }
    }

    fn names(&self) -> io::Result<()> {
        match self.arguments.what {
            // With one cluster the name is left out.
            What::Apps if self.fleet.snapshots.len() > 1 => Names::all(
                self.list.apps.iter().map(|it| format!("{}/{}", it.app.target, full_name(&it.app))),
            ),
            What::Apps => Names::all(self.list.apps.iter().map(|app| full_name(&app.app))),
            What::Clusters => Names::all(self.clusters().items.iter().map(|cluster| &cluster.name)),
            What::Resources => {
                let several = self.fleet.snapshots.len() > 1;
                Names::all(self.resources().items.iter().map(|row| {
                    let key = ObjectKey::new(&*row.group, &*row.kind, &*row.namespace, &*row.name);
                    if several { format!("{}/{key}", row.cluster) } else { key.to_string() }
                }))
            }
        }
    }

    fn table(&self) -> io::Result<()> {
        let Shown { arguments, fleet, filter, list } = self;
        let wide = arguments.output == ListOutput::Wide;
        let chosen = chosen_columns(arguments).ok().flatten();
        let is_chosen = chosen.is_some();
        let columns = chosen.unwrap_or_else(|| {
            let mut columns = columns(arguments.what, wide);
            // The home cluster is shown only if it differs from an app's target cluster.
            if !list.apps.iter().any(|app| app.app.home != app.app.target) {
                columns.retain(|column| *column != "HOME");
            }
            if fleet.snapshots.len() <= 1 && arguments.what != What::Clusters {
                columns.retain(|column| *column != "CLUSTER");
            }
            columns
        });
        let lost = |rows: Vec<Row>| {
            let shown = filter.status.as_ref().is_none_or(|status| status.admits(Status::Unknown));
            rows.into_iter().chain(lost_rows(&list.errors).filter(|_| shown)).collect()
        };
        let rows: Vec<Row> = match arguments.what {
            What::Apps => {
                let namesakes = Namesakes::of(&list.apps);
                let row = |app| {
                    let mut row = app_row(app, fleet.aged, !wide && !is_chosen);
                    row.insert(FOLDED, Cell::new(namesakes.short_name(app)));
                    row
                };
                lost(list.apps.iter().map(row).collect())
            }
            What::Clusters => self.clusters().items.iter().map(|row| cluster_row(row, fleet.aged)).collect(),
            What::Resources => {
                lost(self.resources().items.iter().map(|row| resource_row(row, fleet.aged)).collect())
            }
        };
        if rows.is_empty() {
            let place = arguments.namespace.as_ref().map(|name| format!(" declared in namespace {name}"));
            let place = place.unwrap_or_default();
            let (noun, place) = (noun(arguments.what), printable(&place));
            answer::tell(match **filter == Filter::default() {
                true => phrase!("No {} found{}.\n", noun, place),
                false => phrase!("No {}{} match these filters.\n", noun, place),
            });
            return Ok(());
        }
        let is_said = |column: &&str| {
            is_chosen || !OF_READING.contains(column) || rows.iter().any(|row| row.contains_key(*column))
        };
        let mut columns: Vec<_> = columns.into_iter().filter(is_said).collect();
        if !is_chosen && arguments.what == What::Apps {
            let at = columns.iter().position(|column| *column == "STATUS").unwrap_or_default();
            columns.insert(at, FOLDED);
        }
        let screen = screen();
        let table =
            Table::new(answer::people(), columns.clone(), screen).without_header(arguments.no_headers);
        let mut table = match (is_chosen, arguments.what) {
            (true, _) => table,
            (false, What::Apps) => table
                .spare(SPARE_OF_APPS)
                .folding(FOLDED, &["NAMESPACE", "NAME", "DELIVERY"])
                .room(screen.map_or(MAX_APP_MESSAGE, |screen| (screen / 5).min(MAX_APP_MESSAGE))),
            (false, What::Clusters) => table.spare(SPARE_OF_CLUSTERS).room(CLUSTER_MESSAGE),
            (false, What::Resources) => table.spare(SPARE_OF_RESOURCES),
        }
        .whole(wide);
        for row in rows {
            let cell = |column: &&str| row.get(*column).cloned().unwrap_or_else(|| Cell::new(""));
            table.row(columns.iter().map(cell).collect())?;
        }
        table.finish()
    }
}

/// Prints the answer as JSON or YAML.
pub(super) fn document(form: ListOutput, list: &impl Serialize) -> io::Result<()> {
    // The text may be many times as long as the list in memory.
    let mut out = BufWriter::new(answer::programs());
    match form {
        ListOutput::Yaml => serde_saphyr::to_io_writer(&mut out, list).map_err(|error| match error {
            serde_saphyr::ser::Error::IO { error } => error,
            error => io::Error::other(error),
        })?,
        _ => {
            serde_json::to_writer_pretty(&mut out, list)?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()
}

fn noun(what: What) -> &'static str {
    match what {
        What::Apps => "apps",
        What::Clusters => "clusters",
        What::Resources => "objects of apps",
    }
}

/// The column with the short name of an app, shown where the separate columns for its parts do not fit.
const FOLDED: &str = "APP";

/// The columns that a narrow screen leaves out, in this order. The applied revision is worth more than three columns
/// for a name. SYNC goes late but before SINCE: STATUS states a sync problem.
const SPARE_OF_APPS: &[&str] =
    &["LAST SUCCESS", "SOURCE", "WANTED", "WORST", "OBJECTS", FOLDED, "APPLIED", "HOME", "SYNC", "SINCE"];
const SPARE_OF_CLUSTERS: &[&str] = &[
    "ID",
    "ALIASES",
    "RECEIVED",
    "REQUESTS",
    "READ",
    "ROUND TRIP",
    "OBSERVED",
    "VERSION",
    "LIVE SINCE",
    "NOT LIVE",
];
const SPARE_OF_RESOURCES: &[&str] = &["RULE", "GROUP", "SYNC", "DELIVERY", "APP", "SINCE"];

/// Maximum number of columns kept for messages of apps; a fifth of the screen if that is less.
const MAX_APP_MESSAGE: usize = 30;
/// Columns kept for messages of clusters, whose rows are short.
const CLUSTER_MESSAGE: usize = 60;

/// The apps of a list grouped by delivery tool and name, to find those that share a name.
struct Namesakes<'l> {
    namespaces: BTreeMap<(Delivery, &'l str), BTreeSet<&'l str>>,
}

impl<'l> Namesakes<'l> {
    fn of(apps: &'l [App]) -> Namesakes<'l> {
        let mut namespaces: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
        for App { app, .. } in apps {
            namespaces.entry((app.delivery, &*app.name)).or_default().insert(&*app.namespace);
        }
        Namesakes { namespaces }
    }

    /// Returns the shortest unique name of an app: `ks/shop`, or with its namespace if another app has that name.
    fn short_name(&self, App { app, .. }: &App) -> String {
        let delivery = text::delivery(app.delivery);
        let namespaces = self.namespaces.get(&(app.delivery, &*app.name));
        match namespaces.is_some_and(|namespaces| namespaces.len() > 1) {
            true => format!("{delivery}/{}/{}", app.namespace, app.name),
            false => format!("{delivery}/{}", app.name),
        }
    }
}

type Row = BTreeMap<&'static str, Cell>;

fn app_columns(wide: bool) -> Vec<&'static str> {
    if wide {
        let of_revisions = ["SYNC", "APPLIED", "WANTED", "LAST SUCCESS"];
        [
            &["CLUSTER", "HOME", "NAMESPACE", "NAME", "DELIVERY", "STATUS", "SINCE", "OBJECTS"],
            &of_revisions[..],
            &["SOURCE", "WORST", "MESSAGE"],
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

/// Builds the row of an app. A short row abbreviates the delivery tool and omits a message that only repeats the
/// revision.
fn app_row(app: &App, now: Timestamp, short: bool) -> Row {
    let revision = |revision: &Option<String>| match revision {
        Some(revision) => Cell::new(text::revision(revision)),
        None => Cell::new(text::NONE),
    };
    let ready = app.counts.get(Status::Current);
    let worst = app.worst.as_ref().map(|worst| {
        let slash = if worst.namespace.is_empty() { "" } else { "/" };
        format!("{} {}{slash}{}", worst.kind, worst.namespace, worst.name)
    });
    let source = app.source.as_ref().and_then(|source| source.url.clone().or_else(|| source.name.clone()));
    let since = app.problem().and_then(|problem| problem.since);
    let since = since.map(|since| text::age(now.as_second().saturating_sub(since.as_second())));
    let said = text::revision(message(app));
    let applied = app.sync.applied.as_deref().map(text::revision);
    let is_ready = app.effective() == Status::Current && app.is_well();
    let repeats = is_ready && applied.is_some_and(|applied| said.contains(&*applied));
    BTreeMap::from([
        ("CLUSTER", Cell::new(&app.app.target)),
        ("HOME", Cell::new(if app.app.home == app.app.target { "" } else { &app.app.home })),
        ("NAMESPACE", Cell::new(&app.app.namespace)),
        ("NAME", Cell::new(&app.app.name)),
        (
            "DELIVERY",
            Cell::new(if short { text::delivery(app.app.delivery) } else { app.app.delivery.as_str() }),
        ),
        ("SINCE", Cell::new(since.unwrap_or_default())),
        ("STATUS", Cell::styled(text::health(app, now), app_style(app))),
        ("OBJECTS", Cell::new(format!("{ready}/{}", app.counts.total()))),
        // Apps known by labels have no source to differ from.
        (
            "SYNC",
            match app.app.delivery {
                Delivery::Label => Cell::new("-"),
                _ => Cell::styled(text::sync(app), sync_style(app)),
            },
        ),
        ("APPLIED", revision(&app.sync.applied)),
        ("WANTED", revision(&app.sync.desired)),
        ("LAST SUCCESS", Cell::new(text::since(app.sync.last_success, now))),
        ("SOURCE", Cell::new(source.unwrap_or_default())),
        ("WORST", Cell::new(worst.unwrap_or_default())),
        ("MESSAGE", if short && (repeats || said.is_empty()) { Cell::blank() } else { Cell::new(said) }),
    ])
}

/// Returns the text of the MESSAGE column: the problem of an app that is Ready but has one, the cluster's error for an
/// app in a cluster that was never read, otherwise the app's message.
fn message(app: &App) -> &str {
    let is_lost = app.freshness.state != FreshnessState::Live && app.freshness.observed_at.is_none();
    if let Some(problem) = app.problem().filter(|problem| is_lost && problem.axis == Axis::Freshness) {
        return problem.message.strip_prefix("cluster ").unwrap_or(&problem.message);
    }
    let besides = app.problem().filter(|_| app.effective() == Status::Current);
    let said = besides.map(|problem| &problem.message).filter(|message| !message.is_empty());
    said.unwrap_or(&app.message)
}

/// Builds a row for each cluster that did not answer, so that its apps do not look deleted.
fn lost_rows(errors: &[AppError]) -> impl Iterator<Item = Row> {
    let lost = errors.iter().filter(|error| error.error.scope == Scope::Cluster);
    lost.map(|error| {
        BTreeMap::from([
            ("CLUSTER", Cell::new(&error.cluster)),
            ("STATUS", Cell::styled(Status::Unknown.word(), style(Status::Unknown))),
            ("MESSAGE", Cell::new(format!("{}: {}", error.error.reason, error.error.message))),
        ])
    })
}

fn cluster_style(cluster: &ClusterRow) -> Style {
    let status = cluster.status;
    if status == Status::Current && cluster.problems > 0 { style(Status::Failed) } else { style(status) }
}

/// Columns about the reading of a live cluster; they are empty for dumps.
const OF_READING: [&str; 6] = ["READ", "ROUND TRIP", "REQUESTS", "RECEIVED", "LIVE SINCE", "NOT LIVE"];

fn cluster_columns(wide: bool) -> Vec<&'static str> {
    if wide {
        [
            &["CLUSTER", "ID", "ALIASES", "STATUS", "APPS", "VERSION", "OBSERVED"],
            &OF_READING[..],
            &["MESSAGE"],
        ]
        .concat()
    } else {
        vec!["CLUSTER", "STATUS", "APPS", "VERSION", "MESSAGE"]
    }
}

fn cluster_row(cluster: &ClusterRow, now: Timestamp) -> Row {
    let observed = cluster.freshness.observed_at.map(|at| at.to_string());
    let mut row = BTreeMap::from([
        ("CLUSTER", Cell::new(&cluster.name)),
        ("ID", Cell::new(cluster.id.as_deref().unwrap_or_default())),
        ("ALIASES", Cell::new(cluster.aliases.join(","))),
        ("STATUS", Cell::styled(cluster.words(), cluster_style(cluster))),
        ("APPS", Cell::new(format!("{}/{}", cluster.counts.current.min(cluster.ready()), cluster.apps))),
        ("VERSION", Cell::new(cluster.version.as_deref().unwrap_or_default())),
        ("OBSERVED", Cell::new(observed.as_deref().unwrap_or(cluster.freshness.state.as_str()))),
        ("MESSAGE", Cell::new(text::revision(&cluster.message))),
    ]);
    let Some(reading) = &cluster.reading else { return row };
    let number = |number: Option<u64>, text: fn(u64) -> String| number.map(text).unwrap_or_default();
    let round_trip = reading.round_trip_micros as f64 / 1000.0;
    let digits = if round_trip < 10.0 { 1 } else { 0 };
    row.extend([
        ("READ", Cell::new(format!("{}, {}", reading.lists, reading.protocol))),
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

/// Summarises the scopes that are not live, grouped by state. Kinds that the server does not serve are left out.
fn not_live(scopes: &[NotLiveRow]) -> String {
    const NAMED: usize = 2;
    let mut states: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for scope in scopes.iter().filter(|scope| scope.state != ScopeState::Absent) {
        states.entry(scope.state.as_str()).or_default().push(&scope.scope);
    }
    let told = states.into_iter().map(|(state, scopes)| {
        let named = scopes.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        match scopes.len().saturating_sub(NAMED) {
            0 => format!("{state}: {named}"),
            more => format!("{state}: {named} and {more} more"),
        }
    });
    told.collect::<Vec<_>>().join("; ")
}

fn resource_columns(wide: bool) -> Vec<&'static str> {
    if wide {
        let of_app = ["STATUS", "SINCE", "SYNC", "DELIVERY", "APP", "RULE", "MESSAGE"];
        [&["CLUSTER", "NAMESPACE", "KIND", "GROUP", "NAME"], &of_app[..]].concat()
    } else {
        vec!["CLUSTER", "NAMESPACE", "KIND", "NAME", "STATUS", "APP", "MESSAGE"]
    }
}

fn resource_row(row: &ResourceRow, now: Timestamp) -> Row {
    let (status, sync) = (row.status, row.sync);
    let suspended = if row.suspended { " (suspended)" } else { "" };
    let unconfirmed = if row.unconfirmed { ", unconfirmed" } else { "" };
    let words = text::object_status(status, sync);
    // For a Ready object whose sync failed, the tool's sync message is shown.
    let is_unsynced = status == Status::Current && !row.sync_message.is_empty();
    let message = if is_unsynced { &*row.sync_message } else { &*row.message };
    BTreeMap::from([
        ("CLUSTER", Cell::new(&row.cluster)),
        ("NAMESPACE", Cell::new(&row.namespace)),
        ("KIND", Cell::new(&row.kind)),
        ("GROUP", Cell::new(&row.group)),
        ("NAME", Cell::new(&row.name)),
        ("STATUS", Cell::styled(format!("{words}{unconfirmed}{suspended}"), object_style(status, sync))),
        ("SYNC", Cell::new(row.sync.map_or(text::NONE, ObjectSyncState::as_str))),
        ("SINCE", Cell::new(text::since(row.since, now))),
        ("DELIVERY", Cell::new(row.app.delivery.as_str())),
        ("APP", Cell::new(format!("{}/{}", row.app.namespace, row.app.name))),
        ("RULE", Cell::new(&row.rule)),
        ("MESSAGE", Cell::new(message)),
    ])
}

/// Maximum number of unreadable kinds that one line names.
const MAX_KINDS: usize = 10;

/// Maximum number of error lines of one cluster; its answers are not trusted to be few.
const MAX_LINES: usize = 50;

/// Returns the errors to print below the table; kinds that failed for the same reason share a line.
pub(super) fn complaints(errors: &[AppError]) -> Vec<CommandError> {
    let mut kinds: BTreeMap<(&str, &str), (Vec<String>, &str)> = BTreeMap::new();
    let mut complaints = Vec::new();
    for AppError { cluster, error } in errors {
        match &error.scope {
            Scope::Kind { .. } => {
                let entry = kinds.entry((cluster, &error.reason)).or_insert((Vec::new(), &error.message));
                entry.0.push(error.scope.to_string());
            }
            _ => complaints.push((cluster.as_str(), complaint(cluster, &error.reason, &error.message))),
        }
    }
    for ((cluster, reason), (scopes, message)) in kinds {
        let message = match scopes.as_slice() {
            [_] => message.to_owned(),
            all => {
                let named = all.get(..MAX_KINDS).unwrap_or(all).join(", ");
                let more = all.len().saturating_sub(MAX_KINDS);
                let more =
                    if more > 0 { format!(" and {more} more (-o json names all)") } else { String::new() };
                format!("{} kinds could not be read ({reason}): {named}{more}", all.len())
            }
        };
        complaints.push((cluster, complaint(cluster, reason, &message)));
    }
    told_once(bounded(complaints))
}

/// Limits the errors of each cluster to [`MAX_LINES`]; drops the least severe, and adds a line with their number.
fn bounded(mut complaints: Vec<(&str, CommandError)>) -> Vec<CommandError> {
    complaints.sort_by_key(|(_, complaint)| std::cmp::Reverse(complaint.exit));
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    let mut more: BTreeMap<&str, (usize, Exit)> = BTreeMap::new();
    let mut kept = Vec::new();
    for (cluster, complaint) in complaints {
        let count = lines.entry(cluster).or_default();
        *count += 1;
        if *count <= MAX_LINES {
            kept.push(complaint);
            continue;
        }
        let (count, exit) = more.entry(cluster).or_insert((0, Exit::Yes));
        *count += 1;
        *exit = (*exit).max(complaint.exit);
    }
    let more = more.into_iter().map(|(cluster, (count, exit))| {
        let told = CommandError::unreadable(format!("{cluster}: {count} more like these"));
        let told = told.hint("-o json names all");
        if exit == Exit::Yes { told.harmless() } else { told }
    });
    kept.extend(more);
    kept
}

/// Removes each hint from all errors but the last that has it.
fn told_once(mut complaints: Vec<CommandError>) -> Vec<CommandError> {
    let mut told = BTreeSet::new();
    for complaint in complaints.iter_mut().rev() {
        complaint.hint.take_if(|hint| !told.insert(hint.clone()));
    }
    complaints
}

fn complaint(cluster: &str, reason: &str, message: &str) -> CommandError {
    let complaint = CommandError::unreadable(format!("{cluster}: {message}"));
    let complaint = complaint.maybe_hint(reasons::hint(reason).map(str::to_owned));
    match reason {
        // These objects were read; that they are wrong is not a failure to read.
        "Malformed" | "Overlap" => complaint.harmless(),
        _ => complaint,
    }
}

#[cfg(test)]
mod tests {
    use taffrail_apps::ScopeError;
    use taffrail_object::GroupKind;

    use super::*;

    fn error(scope: Scope, reason: &str) -> AppError {
        let message = format!("{scope} cannot be read");
        AppError {
            cluster: "evil".to_owned(),
            error: ScopeError { scope, reason: reason.to_owned(), message },
        }
    }

    #[test]
    fn errors_of_a_cluster_are_bounded() {
        let kind = |at: usize| Scope::Kind { kind: GroupKind::new("x", format!("K{at}")), namespace: None };
        let one_reason: Vec<_> = (0..700).map(|at| error(kind(at), "Forbidden")).collect();
        let [told] = &complaints(&one_reason)[..] else { panic!("one line") };
        let text = told.text().to_string();
        assert!(text.contains("700 kinds could not be read (Forbidden): "), "{text}");
        assert!(text.contains(" and 690 more (-o json names all)") && text.len() < 400, "{text}");

        let overlap = |at: usize| error(Scope::Namespace(format!("n{at}")), "Overlap");
        let mut all: Vec<_> = (0..200).map(overlap).collect();
        all.extend((0..5).map(|at| error(kind(at), &format!("Reason{at}"))));
        let told = complaints(&all);
        assert_eq!(told.len(), MAX_LINES + 1);
        assert_eq!(
            told.iter().filter(|it| it.exit != Exit::Yes).count(),
            5,
            "errors are told before warnings"
        );
        let last = told.last().unwrap();
        assert!(last.exit == Exit::Yes && last.text().to_string().contains("evil: 155 more like these"));
    }
}
