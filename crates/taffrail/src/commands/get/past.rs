//! `taffrail get apps --at TIME`: the apps as they were at a past time, by the history of a hub.

use std::collections::BTreeSet;
use std::io;

use jiff::{SignedDuration, Timestamp};
use percent_encoding::utf8_percent_encode;
use taffrail_api::hub::{MissingCluster, PastApp, PastList};
use taffrail_api::text;
use taffrail_apps::{AppQuery, Delivery};
use taffrail_status::Status;

use super::{check, document};
use crate::cli::{GetArguments, ListOutput, PastTime, SortBy, What};
use crate::command_error::{CommandError, Exit, written};
use crate::commands::history::{ESCAPED, PAGE, besides, moment};
use crate::commands::rows::among_clusters;
use crate::hub_url::HubUrl;
use crate::output::answer::Console;
use crate::output::names::NameWriter;
use crate::output::table::{Cell, Table};
use crate::output::{printable, screen, style};
use crate::source::{self, HubBudget};
use crate::{phrase, program};

/// Maximum length in bytes of all pages together.
const MAX_BYTES: usize = 80 << 20;

/// The columns of the table; history keeps nothing for further ones.
const COLUMNS: [&str; 8] = ["CLUSTER", "HOME", "NAMESPACE", "NAME", "DELIVERY", "STATUS", "SYNC", "MESSAGE"];

pub(super) fn run(arguments: &GetArguments, at: &PastTime, console: &Console) -> Result<Exit, CommandError> {
    let Some(url) = &arguments.hub.hub else {
        let error = CommandError::usage("--at needs --hub: only a hub knows what was");
        let command = program::hinted("taffrail hub serve");
        return Err(
            error.hint(format!("name a hub with --hub URL; {command} starts one, and prints its URL"))
        );
    };
    check(arguments)?;
    let columns = check_past(arguments)?;
    let now = Timestamp::now();
    let at = match at {
        PastTime::At(at) if *at > now => {
            return Err(CommandError::usage(format!("--at {at} is in the future")));
        }
        PastTime::At(at) => *at,
        PastTime::Ago(ago) => {
            let ago = SignedDuration::try_from(*ago).unwrap_or(SignedDuration::MAX);
            now.saturating_sub(ago).unwrap_or(Timestamp::MIN)
        }
    };
    let mut list = read(arguments, url, at)?;
    let asked_only_by_name = is_asked_only_by_name(arguments);
    let lacking = |name: &&AppQuery| !list.items.iter().any(|row| is_named(name, row));
    if let Some(name) = arguments.name.iter().find(lacking).filter(|_| asked_only_by_name) {
        // What is missing may be an app of this name.
        let error = match list.coverage.missing.is_empty() {
            true => CommandError::usage(format!("there was no app '{name}' at {}", moment(at))),
            false => CommandError::unreadable(format!(
                "no app '{name}' is recorded for {}, and not everything was",
                moment(at)
            )),
        };
        return Err(error.hint("an app of another time: leave the name out, or see `taffrail history`"));
    }
    sort(&mut list.items, arguments.sort);
    let for_people = !matches!(arguments.output, ListOutput::Json | ListOutput::Yaml);
    if for_people {
        let as_of = moment(list.coverage.as_of);
        console.tell(phrase!("As of {}, by the history of the hub.\n", printable(&as_of)));
    }
    match arguments.output {
        form @ (ListOutput::Json | ListOutput::Yaml) => written(document(form, &list, console))?,
        ListOutput::Name => written(names(&list, console))?,
        ListOutput::Table | ListOutput::Wide => written(table(arguments, &list, columns, console))?,
    }
    Ok(tell(&list, for_people, console))
}

/// Fails for options that select or show what history does not keep. Returns the columns that `--columns` names, or
/// `None`.
fn check_past(arguments: &GetArguments) -> Result<Option<Vec<&'static str>>, CommandError> {
    if arguments.what != What::Apps {
        let complaint =
            CommandError::usage("--at applies to apps: a hub keeps no history of the other lists");
        return Err(complaint.hint(program::typed("taffrail get apps --at TIME --hub URL")));
    }
    let not_kept = |what: &str| {
        CommandError::usage(format!("{what} does not apply with --at: history does not keep it"))
    };
    if arguments.filters.problems.as_ref().is_some_and(|axes| !axes.is_empty()) {
        return Err(not_kept("the axis of --problems").hint("--problems alone stands for any axis"));
    }
    if arguments.sort == Some(SortBy::Since) {
        return Err(not_kept("--sort since").hint("sort by name, status, cluster or delivery"));
    }
    if arguments.columns.is_empty() {
        return Ok(None);
    }
    let chosen = |name: &String| {
        let column = super::column(What::Apps, name).filter(|column| COLUMNS.contains(column));
        column.ok_or_else(|| {
            let all = COLUMNS.map(str::to_lowercase).join(", ");
            not_kept(&format!("column '{name}'")).hint(format!("the columns are {all}"))
        })
    };
    arguments.columns.iter().map(chosen).collect::<Result<_, _>>().map(Some)
}

/// Returns true if no other option than names of apps selects the rows.
fn is_asked_only_by_name(arguments: &GetArguments) -> bool {
    let filters = &arguments.filters;
    filters.status.is_none()
        && filters.problems.is_none()
        && filters.sync.is_none()
        && filters.delivery.is_empty()
        && filters.cluster.is_empty()
        && filters.cluster_selector.is_none()
        && arguments.namespace.is_none()
}

/// Returns the query of the path of the apps at a time, without a cursor.
fn query(arguments: &GetArguments, at: Timestamp) -> String {
    let filters = &arguments.filters;
    let mut all = vec![("at", at.to_string()), ("limit", PAGE.to_string())];
    let mut add = |name, value: Option<String>| all.extend(value.map(|value| (name, value)));
    add("status", filters.status.as_ref().map(ToString::to_string));
    add("sync", filters.sync.as_ref().map(ToString::to_string));
    add("problems", filters.problems.as_ref().map(|_| String::new()));
    add("namespace", arguments.namespace.clone());
    filters.delivery.iter().for_each(|it| add("delivery", Some(it.to_string())));
    filters.cluster.iter().for_each(|it| add("cluster", Some(it.clone())));
    add("cluster-selector", filters.cluster_selector.as_ref().map(ToString::to_string));
    for name in &arguments.name {
        let full = name.full_name();
        add(
            "name",
            Some(full.map_or_else(
                || name.to_string(),
                |(delivery, namespace, name)| format!("{delivery}/{namespace}/{name}"),
            )),
        );
    }
    let pairs = all.iter().map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, ESCAPED)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Reads all pages of the apps at a time.
fn read(arguments: &GetArguments, url: &HubUrl, at: Timestamp) -> Result<PastList<PastApp>, CommandError> {
    let mut budget = HubBudget::new(arguments.view.source.timeout, MAX_BYTES);
    let query = query(arguments, at);
    let mut list: Option<PastList<PastApp>> = None;
    loop {
        let cursor = list.as_ref().and_then(|list| list.extent.next.as_deref());
        let cursor = cursor.map(|cursor| format!("&cursor={}", utf8_percent_encode(cursor, ESCAPED)));
        let path = format!("/api/v1/apps?{query}{}", cursor.unwrap_or_default());
        let page: PastList<PastApp> = source::get(url, &arguments.hub.files, &path, &mut budget)?;
        if page.items.is_empty() && page.extent.next.is_some() {
            // Else a hub could send pages without end.
            return Err(CommandError::unreadable("the hub sent an empty page that is not the last one"));
        }
        let is_last = page.extent.next.is_none();
        match &mut list {
            None => list = Some(page),
            Some(list) => {
                list.items.extend(page.items);
                list.extent.next = page.extent.next;
            }
        }
        if let Some(list) = list.as_mut().filter(|_| is_last) {
            let names = &arguments.name;
            // The hub does not take the cluster of a name.
            list.items.retain(|row| names.is_empty() || names.iter().any(|name| is_named(name, row)));
            list.extent.total = list.items.len();
            break;
        }
    }
    list.ok_or_else(|| CommandError::unreadable("the hub sent no page"))
}

/// Returns true if a name that the user gave is that of the app of a row.
fn is_named(query: &AppQuery, row: &PastApp) -> bool {
    let is_of = |wanted: Option<&str>, cluster: &str| wanted.is_none_or(|wanted| wanted == cluster);
    match query.full_name() {
        Some((delivery, namespace, name)) => {
            (delivery, namespace, name) == (row.delivery, &*row.namespace, &*row.name)
                && is_of(query.cluster(), &row.cluster)
                && is_of(query.home(), &row.home)
        }
        None => {
            let text = query.to_string();
            text == row.name
                || text
                    .split_once('/')
                    .is_some_and(|(namespace, name)| (namespace, name) == (&*row.namespace, &*row.name))
        }
    }
}

/// Sorts the rows; those that are equal by `by`, or all without it, by the name of the cluster: the hub answers in the
/// order in which it first heard of the clusters, which differs from start to start.
fn sort(rows: &mut [PastApp], by: Option<SortBy>) {
    rows.sort_by(|one, other| one.cluster.cmp(&other.cluster));
    match by {
        None | Some(SortBy::Since | SortBy::Cluster) => {}
        Some(SortBy::Name) => {
            rows.sort_by(|one, other| (&one.name, &one.namespace).cmp(&(&other.name, &other.namespace)));
        }
        Some(SortBy::Status) => {
            rows.sort_by_key(|row| (row.state.effective, row.state.problem.is_none()));
        }
        Some(SortBy::Delivery) => rows.sort_by_key(|row| row.delivery),
    }
}

fn names(list: &PastList<PastApp>, console: &Console) -> io::Result<()> {
    let mut out = NameWriter::new(console);
    for PastApp { cluster, home, delivery, namespace, name, .. } in &list.items {
        let name = format!("{delivery}/{namespace}/{name}");
        let is_among_clusters = list.coverage.clusters > 1;
        out.write(&if is_among_clusters { among_clusters(cluster, home, name) } else { name })?;
    }
    out.finish()
}

/// Returns the clusters of which a list has no row, because nothing is recorded of them.
fn unseen(list: &PastList<PastApp>) -> Vec<&MissingCluster> {
    let seen: BTreeSet<&str> = list.items.iter().map(|row| &*row.cluster).collect();
    let missing = list.coverage.missing.iter().filter(|it| it.reason == "NotRecorded");
    missing.filter(|it| !seen.contains(&*it.cluster)).collect()
}

fn table(
    arguments: &GetArguments,
    list: &PastList<PastApp>,
    chosen: Option<Vec<&'static str>>,
    console: &Console,
) -> io::Result<()> {
    let status = arguments.filters.status.as_ref();
    let are_unseen_shown = status.is_none_or(|status| status.admits(Status::Unknown));
    let unseen = if are_unseen_shown { unseen(list) } else { Vec::new() };
    if list.items.is_empty() && unseen.is_empty() {
        let but = if list.coverage.missing.is_empty() { "" } else { ", but not everything is recorded" };
        console.tell(phrase!("No apps found{}.\n", printable(but)));
        return Ok(());
    }
    let columns = chosen.unwrap_or_else(|| {
        let mut columns = COLUMNS.to_vec();
        if list.items.iter().all(|row| row.home == row.cluster) {
            columns.retain(|column| *column != "HOME");
        }
        columns
    });
    let table = Table::new(console.people(), columns.clone(), screen()).without_header(arguments.no_headers);
    let is_wide = arguments.output == ListOutput::Wide;
    let mut table = table.spare(&["HOME", "SYNC", "DELIVERY"]).whole(is_wide);
    for row in &list.items {
        table.row(columns.iter().map(|column| cell(row, column)).collect())?;
    }
    for missing in unseen {
        let cell = |column: &&str| match *column {
            "CLUSTER" => Cell::new(&missing.cluster),
            "STATUS" => Cell::styled(Status::Unknown.word(), style(Status::Unknown)),
            "MESSAGE" => Cell::new(&missing.message),
            _ => Cell::new(""),
        };
        table.row(columns.iter().map(cell).collect())?;
    }
    table.finish()
}

fn cell(row: &PastApp, column: &str) -> Cell {
    let state = &row.state;
    // What is Ready with a problem is not well.
    let shown = match state.effective {
        Status::Current if state.problem.is_some() => Status::InProgress,
        other => other,
    };
    match column {
        "CLUSTER" => Cell::new(&row.cluster),
        "HOME" => Cell::new(if row.home == row.cluster { "" } else { &row.home }),
        "NAMESPACE" => Cell::new(&row.namespace),
        "NAME" => Cell::new(&row.name),
        "DELIVERY" => Cell::new(text::delivery(row.delivery)),
        "STATUS" => Cell::styled(state.effective.word(), style(shown)),
        "SYNC" if row.delivery == Delivery::Label => Cell::new("-"),
        "SYNC" => Cell::new(state.sync.as_str()),
        // The status says already that it is one.
        "MESSAGE" if state.problem.as_deref() == Some(state.effective.word()) => Cell::new(""),
        "MESSAGE" => Cell::new(besides(state)),
        _ => Cell::new(""),
    }
}

/// Prints which clusters the list does not cover, unless it is a document, which tells it. Returns the exit code.
fn tell(list: &PastList<PastApp>, for_people: bool, console: &Console) -> Exit {
    let coverage = &list.coverage;
    let mut exit = Exit::Yes;
    for missing in &coverage.missing {
        let complaint = CommandError::unreadable(format!("{}: {}", missing.cluster, missing.message));
        exit = exit.max(complaint.exit);
        if for_people {
            complaint.print(console);
        }
    }
    if coverage.missing_omitted > 0 && for_people {
        let more = format!("{} more clusters are not covered either", coverage.missing_omitted);
        CommandError::unreadable(more).print(console);
    }
    exit
}
