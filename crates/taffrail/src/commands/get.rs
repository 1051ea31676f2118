//! `taffrail get`: lists of apps, clusters and objects.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write};

use serde::Serialize;
use taffrail_api::filter::{self, Filter};
use taffrail_api::{AppRow, ClusterList, ClusterRow, List, ResourceList, ResourceRow};
use taffrail_apps::command::quoted;
use taffrail_apps::{
    App, AppError, AppList, Freshness, Objects, ReadQuery, Scope, Snapshot, full_name, round_robin,
};
use taffrail_object::kinds::names_kind;
use taffrail_observe::{FleetSnapshot, NO_EXTRA};
use taffrail_status::Status;

use super::changes::{Printed, Removed};
use super::named;
use super::rows::{
    FOLDED, ListRow, Namesakes, OF_READING, Row, STATUS, app_columns, cluster_columns, lost_row,
    resource_columns,
};
use crate::cli::{FilterArguments, GetArguments, ListOutput, SortBy, What};
use crate::command_error::{CommandError, Exit, advise, written};
use crate::output::answer::Console;
use crate::output::table::{Cell, Table};
use crate::output::{printable, screen};
use crate::phrase;
use crate::program;
use crate::reasons;
use crate::source::{self, Source, asked};

/// The lists that `-w` printed last; it prints only their changes.
#[derive(Default)]
pub(crate) struct PrintedLists {
    apps: Printed<AppRow>,
    clusters: Printed<ClusterRow>,
    resources: Printed<ResourceRow>,
}

pub(crate) fn run(
    arguments: &GetArguments,
    printed: &mut PrintedLists,
    source: &mut dyn Source,
    console: &Console,
) -> Result<Exit, CommandError> {
    let filter = filter(&arguments.filters);
    check(arguments)?;
    let orphaned_in = orphaned_in(arguments)?;
    let asked = match &orphaned_in {
        None => asked(arguments.namespace.as_ref(), &arguments.declared, &arguments.grouping),
        // The apps of any namespace may declare objects in these.
        Some(namespaces) => ReadQuery {
            everything_in: namespaces.clone(),
            ..asked(None, &arguments.declared, &arguments.grouping)
        },
    };
    // Objects that the user declares have no row that is kept up to date, and of clusters it is told how they are read.
    if arguments.declared.is_empty() && arguments.what != What::Clusters {
        source.shows_rows();
    }
    let fleet = source.read(&arguments.view, &asked, NO_EXTRA)?;
    named::check_clusters(&filter.clusters, fleet)?;
    let mut list = fleet.apps(&arguments.declared);
    let mut hint = None;
    if let Some(namespaces) = &orphaned_in {
        list = fleet.orphans(&list, namespaces);
    } else if let Some(namespace) = &arguments.namespace {
        let is_declared_there = |app: &App| app.app.namespace == *namespace;
        if arguments.name.is_empty() && !list.apps.iter().any(is_declared_there) {
            hint = elsewhere(arguments, namespace, list.clone(), console)?;
        }
        list.apps.retain(is_declared_there);
        let shown: Vec<&App> = list.apps.iter().collect();
        list.errors = named::asked_for(&list, &shown, Some(namespace));
    }
    let is_empty = list.apps.iter().all(|app| app.resources.is_empty());
    let missing = match is_empty && !arguments.view.watch {
        true => {
            let read: Vec<&Snapshot> = fleet.snapshots.iter().collect();
            let namespaces = orphaned_in.iter().flatten().chain(&arguments.namespace);
            let namespaces: BTreeSet<&String> = namespaces.collect();
            source::missing_namespaces(namespaces.into_iter(), &read, &arguments.view.source)?
        }
        false => Vec::new(),
    };
    named::keep("get apps", &arguments.name, arguments.namespace.as_deref(), &mut list)?;
    if orphaned_in.is_none() {
        check_kinds(&filter.kinds, &list)?;
    }
    // A row that leaves the list because its state changed is printed once more.
    let stateless = Filter { status: None, problems: None, sync: None, ..filter.clone() };
    let mut all = (stateless != filter && arguments.view.watch).then(|| list.clone());
    for (filter, list) in all.iter_mut().map(|all| (&stateless, all)).chain([(&filter, &mut list)]) {
        filter.apps(list, &fleet.clusters());
        match arguments.what {
            What::Apps => filter.by_status(list),
            What::Resources => filter.resources(list, &fleet.clusters()),
            What::Clusters => {}
        }
        if let Some(by) = arguments.sort {
            filter::sort_apps(&mut list.apps, by.into());
        }
    }
    let shown = Shown { arguments, fleet, filter: &filter, list: &list, console };
    let all = all.as_ref().map(|list| Shown { filter: &stateless, list, ..shown });

    let answered = shown.answer(all, printed);
    if let Ok(false) = answered {
        return Ok(Exit::Yes);
    }
    written(answered.map(drop))?;
    if let Some(hint) = hint {
        advise(&hint, console);
    }

    // Tables print errors below; documents contain them.
    let for_people = matches!(arguments.output, ListOutput::Table | ListOutput::Wide | ListOutput::Name);
    let mut exit = tell(fleet, &list.errors, for_people, console);
    missing.iter().for_each(|missing| missing.print(console));
    if arguments.exit_status && (!shown.is_well() || !missing.is_empty()) {
        exit = exit.max(Exit::No);
    }
    Ok(exit)
}

/// Returns the namespaces in which `--orphaned` looks, empty for all in dumps; `None` without that option.
fn orphaned_in(arguments: &GetArguments) -> Result<Option<BTreeSet<String>>, CommandError> {
    if !arguments.filters.orphaned {
        return Ok(None);
    }
    let named = arguments.filters.in_namespace.iter().chain(&arguments.namespace);
    let namespaces: BTreeSet<String> = named.cloned().collect();
    if namespaces.is_empty() && arguments.view.source.from.is_empty() {
        let complaint =
            CommandError::usage("--orphaned reads every kind of a live cluster, and so needs a namespace");
        let name = program::name();
        return Err(complaint.hint(format!(
            "{name} get resources --orphaned -n NAMESPACE; or write a dump of the cluster ({name} dump -o FILE), and read the dump with --from FILE"
        )));
    }
    Ok(Some(namespaces))
}

/// Maximum number of apps that a hint names.
const MAX_NAMED: usize = 3;

/// Returns a hint at apps that have objects in the namespace, for a namespace in which no app is declared. Returns
/// `None` if there are none, or if the output is for programs.
fn elsewhere(
    arguments: &GetArguments,
    namespace: &String,
    read: AppList,
    console: &Console,
) -> Result<Option<String>, CommandError> {
    let is_for_people = matches!(arguments.output, ListOutput::Table | ListOutput::Wide);
    if !is_for_people || arguments.view.watch || arguments.what == What::Clusters {
        return Ok(None);
    }
    let mut list = read;
    if arguments.view.source.from.is_empty() {
        // Live reads covered only the declarations in that namespace.
        let asked = asked(None, &arguments.declared, &arguments.grouping);
        list = source::read(&arguments.view, &asked, console)?.apps(&arguments.declared);
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

/// Prints the errors of clusters and returns the exit code; problems with contexts were printed before.
pub(super) fn tell_errors(errors: &[AppError], fleet: &FleetSnapshot, console: &Console) -> Exit {
    let mut exit = Exit::Yes;
    for complaint in complaints(errors, &unobserved(fleet)) {
        complaint.print(console);
        exit = exit.max(complaint.exit);
    }
    exit
}

/// Prints the errors below the table and returns the exit code. JSON and YAML contain the errors of clusters, so
/// these are printed only if `for_people`.
pub(super) fn tell(fleet: &FleetSnapshot, errors: &[AppError], for_people: bool, console: &Console) -> Exit {
    let mut exit = Exit::Yes;
    for complaint in fleet.problems.iter().map(CommandError::from) {
        complaint.print(console);
        exit = exit.max(complaint.exit);
    }
    for complaint in complaints(errors, &unobserved(fleet)) {
        if for_people {
            complaint.print(console);
        }
        exit = exit.max(complaint.exit);
    }
    exit
}

fn filter(arguments: &FilterArguments) -> Filter {
    Filter {
        status: arguments.status.clone(),
        problems: arguments.problems.as_ref().map(|axes| axes.iter().map(|axis| (*axis).into()).collect()),
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
    if *what != What::Resources && filters.orphaned {
        let complaint = CommandError::usage(format!("--orphaned applies to objects, not {}", noun(*what)));
        return Err(complaint.hint(format!("{} get resources --orphaned …", program::name())));
    }
    if *what != What::Apps {
        let of_apps = [("--problems", filters.problems.is_some()), ("--sync", filters.sync.is_some())];
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

/// Returns the title of the column `name`, given in any case and with `-` or `_` for spaces; `None` if there is no such
/// column.
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
#[derive(Clone, Copy)]
struct Shown<'s> {
    arguments: &'s GetArguments,
    fleet: &'s FleetSnapshot,
    filter: &'s Filter,
    list: &'s AppList,
    console: &'s Console,
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
        let mut resources = match self.arguments.filters.orphaned {
            true => ResourceList::of_orphans(self.list),
            false => ResourceList::from(self.list),
        };
        if let Some(by) = self.arguments.sort {
            filter::sort_resources(&mut resources.items, by.into());
        }
        resources
    }

    /// Returns true if no row has a problem, so that `--exit-status` returns 0. If a filter selects objects, only
    /// their own status counts, not that of their apps.
    fn is_well(&self) -> bool {
        let Filter { status, kinds, images, namespaces, .. } = self.filter;
        let are_chosen =
            status.is_some() || !kinds.is_empty() || !images.is_empty() || !namespaces.is_empty();
        let are_chosen = are_chosen || self.arguments.filters.orphaned;
        match self.arguments.what {
            What::Clusters => {
                self.clusters().items.iter().all(|row| row.status == Status::Current && row.problems == 0)
            }
            // A filter for objects excludes what their app says.
            What::Resources if are_chosen => {
                self.resources().items.iter().all(|row| row.status == Status::Current)
            }
            What::Apps | What::Resources => !self.list.apps.iter().any(|app| self.filter.is_pressing(app)),
        }
    }

    /// Prints the list, or what changed in it since it was printed; `all` is the list without the filters that depend on
    /// state. Returns false if nothing changed.
    fn answer(&self, all: Option<Shown<'_>>, printed: &mut PrintedLists) -> io::Result<bool> {
        let PrintedLists { apps, clusters, resources } = printed;
        match self.arguments.what {
            What::Apps => self.changes(all, |it| it.list.into(), apps),
            What::Clusters => self.changes(all, |it| it.clusters(), clusters),
            What::Resources => self.changes(all, |it| it.resources(), resources),
        }
    }

    fn changes<T: ListRow>(
        &self,
        all: Option<Shown<'_>>,
        list: fn(&Shown<'_>) -> List<T>,
        printed: &mut Printed<T>,
    ) -> io::Result<bool> {
        let all = || all.as_ref().map(|all| list(all).items).unwrap_or_default();
        let list = list(self);
        if !printed.is_other(&list.items, &list.errors) {
            return Ok(false);
        }
        match self.arguments.output {
            form @ (ListOutput::Json | ListOutput::Yaml) => document(form, &list, self.console),
            // With one cluster the name is left out.
            ListOutput::Name => {
                printed.names(&list.items, &all, self.fleet.snapshots.len() > 1, self.console)
            }
            ListOutput::Table | ListOutput::Wide => self.table(&list, &all, printed),
        }?;
        printed.set(list.items, list.errors);
        Ok(true)
    }

    fn table<T: ListRow>(
        &self,
        list: &List<T>,
        all: &dyn Fn() -> Vec<T>,
        printed: &mut Printed<T>,
    ) -> io::Result<()> {
        let Shown { arguments, fleet, filter, console, .. } = self;
        let wide = arguments.output == ListOutput::Wide;
        let chosen = chosen_columns(arguments).ok().flatten();
        let is_chosen = chosen.is_some();
        let mut columns = chosen.unwrap_or_else(|| {
            let mut columns = columns(arguments.what, wide);
            // The home cluster is shown only if it differs from an app's target cluster.
            if !self.list.apps.iter().any(|app| app.app.home != app.app.target) {
                columns.retain(|column| *column != "HOME");
            }
            if fleet.snapshots.len() <= 1 && arguments.what != What::Clusters {
                columns.retain(|column| *column != "CLUSTER");
            }
            if arguments.filters.orphaned {
                columns.retain(|column| !["APP", "DELIVERY", "SYNC"].contains(column));
            }
            columns
        });
        let namesakes = Namesakes::of(&self.list.apps);
        let row = |row: &T| row.cells(fleet.now, !wide && !is_chosen, &namesakes);
        let are_lost_shown = arguments.what != What::Clusters
            && filter.status.as_ref().is_none_or(|status| status.admits(Status::Unknown));
        let lost: Vec<Row> = list.errors.iter().filter(|_| are_lost_shown).filter_map(lost_row).collect();
        let rows: Vec<Row> = list.items.iter().map(row).chain(lost.iter().cloned()).collect();
        if rows.is_empty() {
            let (noun, placed) = match arguments.filters.orphaned {
                true => ("orphaned objects", "in"),
                false => (noun(arguments.what), "declared in"),
            };
            let place = arguments.namespace.as_ref().map(|name| format!(" {placed} namespace {name}"));
            let place = place.unwrap_or_default();
            let place = printable(&place);
            console.tell(match **filter == Filter::default() {
                true => phrase!("No {} found{}.\n", noun, place),
                false => phrase!("No {}{} match these filters.\n", noun, place),
            });
            // What is gone is printed below the old header.
            columns.clone_from(&printed.columns);
        } else {
            columns.retain(|column| {
                is_chosen || !OF_READING.contains(column) || rows.iter().any(|row| row.contains_key(*column))
            });
            if !is_chosen && arguments.what == What::Apps {
                let at = columns.iter().position(|column| *column == STATUS).unwrap_or_default();
                columns.insert(at, FOLDED);
            }
        }
        let problems = list.items.iter().map(ListRow::has_problem).chain(lost.iter().map(|_| true));
        console.note_problems(problems.collect());
        let is_known = !rows.is_empty() && columns == printed.columns;
        let screen = screen();
        let table = Table::new(console.people(), columns.clone(), screen)
            .without_header(arguments.no_headers || is_known || rows.is_empty());
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
        let cells = |row: &Row| -> Vec<Cell> {
            columns.iter().map(|column| row.get(*column).cloned().unwrap_or_else(|| Cell::new(""))).collect()
        };
        if is_known {
            lost.iter().try_for_each(|row| table.measure(cells(row)))?;
        }
        printed.fill(&mut table, &list.items, is_known, |item| cells(&row(item)))?;
        let before: Vec<Row> = printed.errors().iter().filter_map(lost_row).collect();
        let mut new = lost.iter().filter(|row| !is_known || !before.contains(row));
        new.try_for_each(|row| table.row(cells(row)))?;
        // A row without the columns before its status, or without a status, would not say what became of what.
        let status = columns.iter().position(|column| *column == STATUS).filter(|at| *at > 0);
        for Removed { old, now, is_still_named } in
            status.map(|_| printed.removed(&list.items, all)).unwrap_or_default()
        {
            let row = cells(&row(now.as_ref().unwrap_or(old)));
            let row = match status.filter(|_| now.is_none()) {
                Some(at) => gone(row, &columns, at, is_still_named),
                None => Some(row),
            };
            row.map_or(Ok(()), |row| table.row(row))?;
        }
        printed.columns = if rows.is_empty() { Vec::new() } else { columns };
        table.finish()
    }
}

/// Returns the cells that tell that a row is gone: those before its status, and `Gone` in place of that, which is cell
/// `status`. If another app still has a row of the same name, the row also names its app; `None` if no column can.
fn gone(row: Vec<Cell>, columns: &[&str], status: usize, is_still_named: bool) -> Option<Vec<Cell>> {
    let of_app = |column: &str| is_still_named && ["DELIVERY", "APP"].contains(&column);
    let last = match is_still_named {
        true => columns.iter().rposition(|column| *column == "APP").filter(|last| *last > status)?,
        false => status,
    };
    let cells = row.into_iter().zip(columns).take(last + 1).enumerate();
    let cells = cells.map(|(at, (cell, column))| match at {
        _ if at < status || of_app(column) => cell,
        _ if at == status => Cell::new("Gone"),
        _ => Cell::blank(),
    });
    Some(cells.collect())
}

/// Prints the answer as JSON or YAML.
pub(super) fn document(form: ListOutput, list: &impl Serialize, console: &Console) -> io::Result<()> {
    // The text may be many times as long as the list in memory.
    let mut out = BufWriter::new(console.programs());
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
/// Minimum width of messages in the table of clusters, in columns. Its other columns are short.
const CLUSTER_MESSAGE: usize = 60;

/// Maximum number of unreadable kinds that one line names.
const MAX_KINDS: usize = 10;

/// Maximum number of error lines of one cluster; its answers are not trusted to be few.
const MAX_LINES: usize = 50;

/// Returns the names of the clusters that were never observed. A single look keeps nothing of earlier ones, so it does
/// not know what they hold.
pub(super) fn unobserved(fleet: &FleetSnapshot) -> BTreeSet<&str> {
    let never = |cluster: &&Snapshot| cluster.freshness() == Freshness::never();
    fleet.snapshots.iter().filter(never).map(Objects::name).collect()
}

/// What follows from the failure to read a cluster that was never observed.
pub(super) const NOTHING_KNOWN: &str =
    "nothing is known of what it holds, nor since when, and what it alone declares is not listed";

/// Returns the errors to print below the table, at most [`MAX_LINES`] of a cluster. Kinds that failed for the same
/// reason share a line. The errors of the clusters `unobserved` say what that means.
pub(super) fn complaints(errors: &[AppError], unobserved: &BTreeSet<&str>) -> Vec<CommandError> {
    let mut kinds: BTreeMap<(&str, &str), (Vec<String>, &str)> = BTreeMap::new();
    let mut complaints = Vec::new();
    for AppError { cluster, error } in errors {
        let namespace = match &error.scope {
            Scope::Kind { .. } => {
                let entry = kinds.entry((cluster, &error.reason)).or_insert((Vec::new(), &error.message));
                entry.0.push(error.scope.to_string());
                continue;
            }
            Scope::Namespace(namespace) => namespace,
            Scope::Object(key) => &*key.namespace,
            Scope::Cluster | Scope::Group(_) | Scope::Input(_) => "",
        };
        let message = match &error.scope {
            Scope::Cluster if unobserved.contains(&**cluster) => {
                &format!("{}; {NOTHING_KNOWN}", error.message)
            }
            _ => &error.message,
        };
        complaints.push((cluster.as_str(), namespace, complaint(cluster, &error.reason, message)));
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
        complaints.push((cluster, "", complaint(cluster, reason, &message)));
    }
    told_once(bounded(complaints))
}

/// Limits the errors of each cluster to [`MAX_LINES`], and adds a line with the number of the others. The most severe
/// are kept, and of equal ones those of each namespace in turn: an author in one namespace can make any number.
fn bounded(complaints: Vec<(&str, &str, CommandError)>) -> Vec<CommandError> {
    let mut all: Vec<(usize, (&str, &str, CommandError))> = complaints.into_iter().enumerate().collect();
    all.sort_by_key(|(_, (_, _, complaint))| std::cmp::Reverse(complaint.exit));
    let levels = all.chunk_by_mut(|(_, (.., one)), (_, (.., other))| one.exit == other.exit);
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    let mut kept: BTreeSet<usize> = BTreeSet::new();
    for level in levels {
        let placed = level
            .iter()
            .map(|(place, (cluster, namespace, _))| (format!("{cluster}/{namespace}"), *place, *cluster));
        for (_, place, cluster) in round_robin(placed.collect(), |(author, ..)| author) {
            let count = lines.entry(cluster).or_default();
            *count += 1;
            if *count <= MAX_LINES {
                kept.insert(place);
            }
        }
    }
    let mut more: BTreeMap<&str, (usize, Exit)> = BTreeMap::new();
    let mut told = Vec::new();
    for (place, (cluster, _, complaint)) in all {
        if kept.contains(&place) {
            told.push(complaint);
            continue;
        }
        let (count, exit) = more.entry(cluster).or_insert((0, Exit::Yes));
        *count += 1;
        *exit = (*exit).max(complaint.exit);
    }
    let more = more.into_iter().map(|(cluster, (count, exit))| {
        let told = CommandError::unreadable(format!("{cluster}: {count} more errors of this kind"));
        let told = told.hint("-o json names all");
        if exit == Exit::Yes { told.harmless() } else { told }
    });
    told.extend(more);
    told
}

/// Removes repeated hints: of several errors with the same hint, only the last keeps it.
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
    use taffrail_object::{GroupKind, ObjectKey};

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
        let [told] = &complaints(&one_reason, &BTreeSet::new())[..] else { panic!("one line") };
        let text = told.text().to_string();
        assert!(text.contains("700 kinds could not be read (Forbidden): "), "{text}");
        assert!(text.contains(" and 690 more (-o json names all)") && text.len() < 400, "{text}");

        let overlap = |at: usize| error(Scope::Namespace(format!("n{at}")), "Overlap");
        let mut all: Vec<_> = (0..200).map(overlap).collect();
        all.extend((0..5).map(|at| error(kind(at), &format!("Reason{at}"))));
        let told = complaints(&all, &BTreeSet::new());
        assert_eq!(told.len(), MAX_LINES + 1);
        assert_eq!(
            told.iter().filter(|it| it.exit != Exit::Yes).count(),
            5,
            "errors are told before warnings"
        );
        let last = told.last().unwrap();
        assert!(
            last.exit == Exit::Yes && last.text().to_string().contains("evil: 155 more errors of this kind")
        );
    }

    #[test]
    fn errors_of_one_namespace_displace_none_of_another() {
        let object = |namespace: &str, at: usize| {
            let name = format!("k{at}");
            error(Scope::Object(ObjectKey::new("", "ConfigMap", namespace, name)), "Malformed")
        };
        let mut all: Vec<_> = (0..200).map(|at| object("tenant", at)).collect();
        all.push(object("web", 0));
        let told = complaints(&all, &BTreeSet::new());
        let texts: Vec<String> = told.iter().map(|it| it.text().to_string()).collect();
        assert_eq!(texts.len(), MAX_LINES + 1);
        assert!(texts.iter().any(|text| text.contains("web/k0")), "{texts:?}");
    }
}
