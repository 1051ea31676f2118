//! `taffrail get`: lists apps, clusters and the objects of apps.

mod past;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write};

use serde::Serialize;
use taffrail_api::filter::Filter;
use taffrail_api::question::{
    AppsElsewhere, AppsView, ClustersView, FleetFacts, ListAnswer, ResourcesView, RowSelection, View,
    ViewQuestion, hides_apps,
};
use taffrail_api::{AppRow, ClusterRow, ErrorRow, List, ListItem, ResourceRow};
use taffrail_apps::command::quoted;
use taffrail_apps::text::listed;
use taffrail_apps::{AppError, Scope, round_robin};
use taffrail_status::Status;

use super::changes::{Printed, Removed};
use super::rows::{
    CHECKS, FOLDED, IMAGES, ListRow, Namesakes, OF_READING, Row, STATUS, app_columns, cluster_columns,
    lost_row, partial_row, resource_columns,
};
use crate::cli::{FilterArguments, GetArguments, ListOutput, SortBy, What};
use crate::command_error::{CommandError, Exit, advise, written};
use crate::output::answer::Console;
use crate::output::table::{Cell, Table};
use crate::output::{printable, screen};
use crate::phrase;
use crate::program;
use crate::reasons;
use crate::source::{self, Place, Source};

/// The lists that `-w` printed last, one for each argument of `get`; only changes since then are printed.
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
    if let Some(at) = &arguments.at {
        return past::run(arguments, at, console);
    }
    check(arguments)?;
    check_orphaned(arguments)?;
    let rows = rows(arguments);
    let PrintedLists { apps, clusters, resources } = printed;
    match arguments.what {
        What::Apps => show(arguments, &AppsView { rows }, apps, source, console),
        What::Clusters => show(arguments, &ClustersView { rows }, clusters, source, console),
        What::Resources => {
            let view = ResourcesView { rows, orphaned: arguments.filters.orphaned };
            show(arguments, &view, resources, source, console)
        }
    }
}

/// Gets the answer of `view` and prints the list (as a table or names only what changed in it since it was printed),
/// then the errors. Returns the exit code; prints nothing and returns [`Exit::Yes`] if no row and no error changed.
fn show<T: ListRow + ListItem, V: View<Answer = ListAnswer<T>> + Clone + Sync + Into<ViewQuestion>>(
    arguments: &GetArguments,
    view: &V,
    printed: &mut Printed<T>,
    source: &mut dyn Source,
    console: &Console,
) -> Result<Exit, CommandError> {
    let command = match arguments.what {
        What::Apps => "get apps",
        What::Clusters => "get clusters",
        What::Resources => "get resources",
    };
    let answer = source::ask(command, view, (&arguments.view, &arguments.hub), source, console)?;
    let ListAnswer { fleet, items, left_out, errors, is_well, missing_namespaces, elsewhere, .. } = answer;
    let list = List::of(items, &errors);
    let unread = Unread::of(&errors, &fleet, &arguments.filters.cluster);
    let shown = Shown { arguments, fleet: &fleet, list: &list, all: &left_out, unread, console };
    if !printed.is_other(&list.items, &list.errors) {
        return Ok(Exit::Yes);
    }
    written(shown.print(printed))?;
    printed.set(list.items, list.errors);
    if let Some(elsewhere) = elsewhere {
        advise(&hint(arguments, &elsewhere), console);
    }

    // Tables print errors below; documents contain them.
    let for_people = matches!(arguments.output, ListOutput::Table | ListOutput::Wide | ListOutput::Name);
    let mut exit = tell(&fleet, &errors, for_people, console);
    let place = match &fleet.only {
        _ if !arguments.view.source.from.is_empty() => Place::Dumps,
        Some(only) => Place::Cluster(only),
        None => Place::Clusters(fleet.clusters),
    };
    missing_namespaces.iter().for_each(|namespace| place.lacks(namespace).print(console));
    if arguments.exit_status && (!is_well || !missing_namespaces.is_empty()) {
        exit = exit.max(Exit::No);
    }
    Ok(exit)
}

/// Returns an error if `--orphaned` is given without `--from`, `-n` or `--in-namespace`.
fn check_orphaned(arguments: &GetArguments) -> Result<(), CommandError> {
    let has_namespace = arguments.namespace.is_some() || !arguments.filters.in_namespace.is_empty();
    if !arguments.filters.orphaned || has_namespace || !arguments.view.source.from.is_empty() {
        return Ok(());
    }
    let complaint =
        CommandError::usage("--orphaned reads every kind of a live cluster, and so needs a namespace");
    let [one, dump] =
        ["taffrail get resources --orphaned -n NAMESPACE", "taffrail dump -o FILE"].map(program::hinted);
    Err(complaint
        .hint(format!("{one}; or write a dump of the cluster ({dump}), and read the dump with --from FILE")))
}

/// Returns the hint that names apps with objects in the namespace of `-n`, in which no app is declared, and the command
/// that lists them.
fn hint(arguments: &GetArguments, elsewhere: &AppsElsewhere) -> String {
    let mut named: Vec<&str> = elsewhere.names.iter().map(String::as_str).collect();
    if elsewhere.has_more {
        named.push("…");
    }
    let have = match elsewhere.apps {
        1 => "1 app has".to_owned(),
        count => format!("{count} apps have"),
    };
    let what = if arguments.what == What::Apps { "apps" } else { "resources" };
    let namespace = arguments.namespace.as_deref().unwrap_or_default();
    let command = program::hinted(&format!("taffrail get {what} --in-namespace {}", quoted(namespace)));
    let named = named.join(", ");
    format!(
        "{have} objects in namespace {namespace} without being declared there ({named}): {command} lists them"
    )
}

/// Prints the problems with contexts and, if `for_people`, the errors of clusters, which JSON and YAML contain. Returns
/// the exit code of the worst of both.
pub(super) fn tell(fleet: &FleetFacts, errors: &[AppError], for_people: bool, console: &Console) -> Exit {
    let mut exit = Exit::Yes;
    for complaint in fleet.problems.iter().map(CommandError::from) {
        complaint.print(console);
        exit = exit.max(complaint.exit);
    }
    for complaint in complaints(errors, &fleet.unobserved) {
        if for_people {
            complaint.print(console);
        }
        exit = exit.max(complaint.exit);
    }
    exit
}

/// Returns the arguments that select and sort rows, as parameters of a view.
fn rows(arguments: &GetArguments) -> RowSelection {
    let is_for_people = matches!(arguments.output, ListOutput::Table | ListOutput::Wide);
    RowSelection {
        names: arguments.name.clone(),
        upstream_of: arguments.upstream_of.clone(),
        downstream_of: arguments.downstream_of.clone(),
        namespace: arguments.namespace.clone(),
        filter: filter(&arguments.filters),
        sort: arguments.sort.map(Into::into),
        follow: arguments.view.watch,
        elsewhere: is_for_people,
        declared: arguments.declared.clone(),
        app_labels: arguments.grouping.labels(),
    }
}

fn filter(arguments: &FilterArguments) -> Filter {
    Filter {
        status: arguments.status.clone(),
        problems: arguments.problems.as_ref().map(|axes| axes.iter().map(|axis| (*axis).into()).collect()),
        sync: arguments.sync.clone(),
        checks: arguments.check.clone(),
        deliveries: arguments.delivery.clone(),
        suspended: arguments.suspended,
        labels: arguments.selector.clone(),
        clusters: arguments.cluster.clone(),
        cluster_labels: arguments.cluster_selector.clone(),
        kinds: arguments.kind.clone(),
        images: arguments.image.clone(),
        namespaces: arguments.in_namespace.clone(),
    }
}

/// Returns an error for options that do not apply to the list or to the output format, and for an unknown column.
fn check(arguments: &GetArguments) -> Result<(), CommandError> {
    let GetArguments { what, filters, .. } = arguments;
    let other = |list: &str, option: &str| program::typed(&format!("taffrail get {list} {option} …"));
    if filters.cluster_selector.is_some() && !arguments.view.source.from.is_empty() {
        let complaint =
            CommandError::usage("--cluster-selector does not apply with --from: dumps have no labels");
        return Err(complaint.hint("--cluster selects dumps by their names"));
    }
    if *what != What::Resources {
        let of_objects = [("--kind", &filters.kind), ("--image", &filters.image)];
        if let Some((option, _)) = of_objects.iter().find(|(_, values)| !values.is_empty()) {
            let complaint = CommandError::usage(format!("{option} applies to objects, not {}", noun(*what)));
            return Err(complaint.hint(other("resources", option)));
        }
    }
    if *what != What::Resources && filters.orphaned {
        let complaint = CommandError::usage(format!("--orphaned applies to objects, not {}", noun(*what)));
        return Err(complaint.hint(other("resources", "--orphaned")));
    }
    if *what != What::Apps {
        let of_apps = [
            ("--problems", filters.problems.is_some()),
            ("--sync", filters.sync.is_some()),
            ("--check", !filters.check.is_empty()),
        ];
        if let Some((option, _)) = of_apps.iter().find(|(_, is_set)| *is_set) {
            let complaint = CommandError::usage(format!("{option} applies to apps, not {}", noun(*what)));
            return Err(complaint.hint(other("apps", option)));
        }
    }
    if *what == What::Clusters && !filters.in_namespace.is_empty() {
        let complaint =
            CommandError::usage("`get clusters` takes no --in-namespace, which selects apps and objects");
        return Err(complaint.hint(other("apps", "--in-namespace")));
    }
    if *what == What::Clusters && !arguments.name.is_empty() {
        let complaint = CommandError::usage("`get clusters` takes no names of apps");
        return Err(complaint.hint(program::typed("taffrail get clusters --cluster NAME")));
    }
    if *what == What::Clusters && matches!(arguments.sort, Some(SortBy::Since | SortBy::Delivery)) {
        return Err(CommandError::usage("clusters can be sorted only by name, cluster or status"));
    }
    chosen_columns(arguments).map(drop)
}

/// Returns the titles of the columns that `--columns` names; `None` without that option. Fails for an unknown column,
/// and if the output is not a table.
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
            complaint.hint(format!("the columns are {}", column_names(arguments.what).join(", ")))
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

/// Returns the names of a list's columns as `--columns` takes them: in lower case, with `-` for spaces.
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

/// A list to print, with the options and the destination.
struct Shown<'s, T> {
    arguments: &'s GetArguments,
    fleet: &'s FleetFacts,
    list: &'s List<T>,
    /// The rows of the list, and those that only filters on their state leave out; empty without `-w` and such filters.
    all: &'s [T],
    /// The clusters of the list that could not be read, and if parts could not.
    unread: Unread<'s>,
    console: &'s Console,
}

/// Maximum number of unread clusters that one line names; the others are counted.
const MAX_UNREAD: usize = 5;

/// The clusters and parts of clusters that could not be read for an answer, so that what is missing there may exist.
pub(super) struct Unread<'e> {
    /// The names of the clusters that could not be read at all, or are not live.
    clusters: BTreeSet<&'e str>,
    /// True if any cluster, selected or not, or a kind in one, or a dump or a part of it, could not be read.
    has_parts: bool,
}

impl<'e> Unread<'e> {
    /// Returns what is unread by `errors`, and which clusters are not live by the facts of the fleet. Names only the
    /// clusters `asked`, unless that is empty.
    pub(super) fn of(errors: &'e [AppError], fleet: &'e FleetFacts, asked: &[String]) -> Unread<'e> {
        let failed = errors.iter().filter(|error| error.error.scope == Scope::Cluster);
        let mut clusters: BTreeSet<&str> = failed.map(|error| &*error.cluster).collect();
        clusters.extend(fleet.last_observed.keys().map(String::as_str));
        clusters.retain(|name| asked.is_empty() || asked.iter().any(|it| it == name));
        Unread { clusters, has_parts: errors.iter().any(hides_apps) }
    }

    /// Returns true if everything was read.
    pub(super) fn is_empty(&self) -> bool {
        self.clusters.is_empty() && !self.has_parts
    }

    /// Returns the sentence `found` (`No apps found`), extended by what could not be read.
    pub(super) fn ends(&self, found: &str) -> String {
        let Unread { clusters, has_parts } = self;
        if clusters.is_empty() {
            let but = if *has_parts { ", but not everything could be read" } else { "" };
            return format!("{found}{but}.");
        }
        let named = listed(clusters, MAX_UNREAD);
        let plural = if clusters.len() == 1 { "" } else { "s" };
        format!("{found}, but cluster{plural} {named} could not be read: its objects are unknown.")
    }
}

impl<T: ListRow> Shown<'_, T> {
    /// Prints the list in the output format; of tables and names only what changed since it was printed.
    fn print(&self, printed: &mut Printed<T>) -> io::Result<()> {
        match self.arguments.output {
            form @ (ListOutput::Json | ListOutput::Yaml) => document(form, self.list, self.console),
            // With one cluster the name is left out.
            ListOutput::Name => {
                printed.names(&self.list.items, self.all, self.fleet.clusters > 1, self.console)
            }
            ListOutput::Table | ListOutput::Wide => self.table(printed),
        }
    }

    fn table(&self, printed: &mut Printed<T>) -> io::Result<()> {
        let Shown { arguments, fleet, list, all, unread, console } = self;
        let wide = arguments.output == ListOutput::Wide;
        let chosen = chosen_columns(arguments).ok().flatten();
        let is_chosen = chosen.is_some();
        let mut columns = chosen.unwrap_or_else(|| {
            let mut columns = columns(arguments.what, wide);
            // The home cluster is shown only if it differs from an app's target cluster.
            if !list.items.iter().any(ListRow::has_other_home) {
                columns.retain(|column| *column != "HOME");
            }
            if fleet.clusters <= 1 && arguments.what != What::Clusters {
                columns.retain(|column| *column != "CLUSTER");
            }
            if arguments.filters.image.is_empty() {
                columns.retain(|column| *column != IMAGES);
            }
            if arguments.filters.orphaned {
                columns.retain(|column| !["APP", "DELIVERY", "SYNC"].contains(column));
            }
            columns
        });
        let namesakes = Namesakes::of(&list.items);
        let row = |row: &T| row.cells(fleet.now, !wide && !is_chosen, &namesakes);
        let are_lost_shown = arguments.what != What::Clusters
            && arguments.filters.status.as_ref().is_none_or(|status| status.admits(Status::Unknown));
        // The apps of a cluster that was observed have rows, which say since when it is not live.
        let is_unknown = |error: &&ErrorRow| fleet.unobserved.contains(&error.cluster);
        let lost = list.errors.iter().filter(|_| are_lost_shown).filter(is_unknown);
        let lost: Vec<Row> = lost.filter_map(lost_row).collect();
        // Only what its apps declare was known of such a cluster.
        let reads_more = arguments.filters.orphaned || !arguments.filters.image.is_empty();
        let is_partial = |name: &String| are_lost_shown && reads_more && unread.clusters.contains(&**name);
        let partial = fleet.last_observed.iter().filter(|(name, _)| is_partial(name));
        let partial: Vec<Row> = partial.map(|(name, at)| partial_row(name, *at)).collect();
        let of_clusters = lost.iter().chain(&partial);
        let rows: Vec<Row> = list.items.iter().map(row).chain(of_clusters.cloned()).collect();
        if rows.is_empty() {
            let (noun, placed) = match arguments.filters.orphaned {
                true => ("orphaned objects", "in"),
                false => (noun(arguments.what), "declared in"),
            };
            let place = arguments.namespace.as_ref().map(|name| format!(" {placed} namespace {name}"));
            let place = place.unwrap_or_default();
            let found = match filter(&arguments.filters) == Filter::default() {
                true => format!("No {noun} found{place}"),
                false => format!("No {noun}{place} match these filters"),
            };
            console.tell(phrase!("{}\n", printable(&unread.ends(&found))));
            let FilterArguments { image, kind, orphaned, .. } = &arguments.filters;
            if !image.is_empty() && kind.is_empty() && !orphaned {
                let command = program::hinted("taffrail get resources --orphaned --image IMAGE -n NAMESPACE");
                let hint =
                    format!("an object of no app is found by its Pods; {command} finds one without Pods");
                advise(&hint, console);
            }
            // What is gone is printed below the old header.
            columns.clone_from(&printed.columns);
        } else {
            columns.retain(|column| {
                let is_spare = OF_READING.contains(column) || *column == CHECKS;
                is_chosen || !is_spare || rows.iter().any(|row| row.contains_key(*column))
            });
            if !is_chosen && arguments.what == What::Apps {
                let at = columns.iter().position(|column| *column == STATUS).unwrap_or_default();
                columns.insert(at, FOLDED);
            }
        }
        let of_clusters = lost.iter().chain(&partial).map(|_| true);
        let problems = list.items.iter().map(ListRow::has_problem).chain(of_clusters);
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
            lost.iter().chain(&partial).try_for_each(|row| table.measure(cells(row)))?;
        }
        printed.fill(&mut table, &list.items, is_known, |item| cells(&row(item)))?;
        let before: Vec<Row> = printed.errors().iter().filter_map(lost_row).collect();
        let was_printed = |row: &&Row| is_known && (before.contains(row) || printed.partial.contains(row));
        let mut new = lost.iter().chain(&partial).filter(|row| !was_printed(row));
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
        printed.partial = partial;
        table.finish()
    }
}

/// Returns the cells of a line that says that a row is gone: those before cell number `status`, and there `Gone`. If
/// another app still has a row of the same name (`is_still_named`), the line also names the app; `None` if the table
/// has no column for it after the status.
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

/// Prints the answer as YAML if `form` is that, else as JSON.
pub(super) fn document(form: ListOutput, list: &impl Serialize, console: &Console) -> io::Result<()> {
    // The text may be many times as long as the list in memory.
    let mut out = BufWriter::new(console.programs());
    match form {
        ListOutput::Yaml => yaml(&mut out, list)?,
        _ => {
            serde_json::to_writer_pretty(&mut out, list)?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()
}

/// Writes a value as a YAML document.
pub(super) fn yaml(out: &mut impl io::Write, value: &impl Serialize) -> io::Result<()> {
    serde_saphyr::to_io_writer(out, value).map_err(|error| match error {
        serde_saphyr::ser::Error::IO { error } => error,
        error => io::Error::other(error),
    })
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
    "LABELS",
    "RECEIVED",
    "REQUESTS",
    "READ",
    "ROUND TRIP",
    "OBSERVED",
    "VERSION",
    "NODES",
    "LIVE SINCE",
    "NOT LIVE",
    "SOURCE",
];
const SPARE_OF_RESOURCES: &[&str] = &["RULE", "GROUP", "SYNC", "DELIVERY", "APP", "SINCE"];

/// Number of screen columns kept for the messages of apps; a fifth of the screen if that is less.
const MAX_APP_MESSAGE: usize = 30;
/// Number of screen columns kept for the messages of clusters; the other columns of their table are short.
const CLUSTER_MESSAGE: usize = 60;

/// Maximum number of unreadable kinds that one line names; the others are counted.
const MAX_KINDS: usize = 10;

/// Maximum number of errors of one cluster that are printed, since a cluster can make any number of them; the others
/// are counted.
const MAX_LINES: usize = 50;

/// The end of the error about a cluster that was never observed: what that means for the answer.
pub(super) const NOTHING_KNOWN: &str =
    "nothing is known of what it holds, nor since when, and what it alone declares is not listed";

/// Returns the errors to print below the table, warnings last: for each cluster at most [`MAX_LINES`], and the number
/// of the others. Kinds of a cluster that failed for the same reason share an error, and the last of several errors
/// with the same hint has it. The error about a cluster in `unobserved` says that nothing is known of it.
pub(super) fn complaints(errors: &[AppError], unobserved: &BTreeSet<String>) -> Vec<CommandError> {
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
            Scope::Cluster if unobserved.contains(cluster) => &format!("{}; {NOTHING_KNOWN}", error.message),
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
        let told = CommandError::unreadable(format!("{cluster}: {count} more errors are not shown"));
        let told = told.hint("-o json lists all errors");
        if exit == Exit::Yes { told.harmless() } else { told }
    });
    told.extend(more);
    told
}

/// Returns the errors without repeated hints: of several with the same hint, only the last keeps it.
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
    if is_of_what_was_read(reason) { complaint.harmless() } else { complaint }
}

/// Returns true if an error with this reason is about objects that were read: that they are wrong is not a failure to
/// read.
pub(super) fn is_of_what_was_read(reason: &str) -> bool {
    matches!(reason, "Malformed" | "Overlap")
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
            last.exit == Exit::Yes && last.text().to_string().contains("evil: 155 more errors are not shown")
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
