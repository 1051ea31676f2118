//! `taffrail get`: the lists of apps, clusters and objects.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;
use serde::Serialize;
use taffrail_apps::view::{self, text};
use taffrail_apps::{App, AppError, AppList, Scope};
use taffrail_status::Status;

use crate::cli::{GetArguments, ListOutput, What};
use crate::complaint::{Complaint, Exit, written};
use crate::output::table::{Cell, Table};
use crate::output::{screen, style};
use crate::source::{Fleet, asked};

pub(crate) fn run(arguments: &GetArguments) -> Result<Exit, Complaint> {
    let asked = asked(arguments.namespace.as_ref(), &arguments.declared);
    let fleet = Fleet::read(&arguments.source, &asked)?;
    let mut list = fleet.apps(&arguments.declared);
    if let Some(namespace) = &arguments.namespace {
        list.apps.retain(|app| app.app.namespace == *namespace);
    }

    written(answer(arguments, &fleet, &list))?;

    let mut exit = Exit::Yes;
    for complaint in &fleet.complaints {
        complaint.print();
        exit = exit.max(complaint.exit);
    }
    // In a table each error has its line below; answers for programs hold them themselves.
    for complaint in complaints(&list.errors) {
        if matches!(arguments.output, ListOutput::Table | ListOutput::Wide | ListOutput::Name) {
            complaint.print();
        }
        exit = exit.max(complaint.exit);
    }
    if arguments.exit_status && list.apps.iter().any(|app| app.effective() != Status::Current) {
        exit = exit.max(Exit::No);
    }
    Ok(exit)
}

fn answer(arguments: &GetArguments, fleet: &Fleet, list: &AppList) -> io::Result<()> {
    let clusters = || view::ClusterList::new(&fleet.clusters(), list);
    match (arguments.what, arguments.output) {
        (What::Apps, ListOutput::Json | ListOutput::Yaml) => {
            document(arguments.output, &view::AppList::from(list))
        }
        (What::Clusters, ListOutput::Json | ListOutput::Yaml) => document(arguments.output, &clusters()),
        (What::Resources, ListOutput::Json | ListOutput::Yaml) => {
            document(arguments.output, &view::ResourceList::from(list))
        }
        (what, ListOutput::Name) => names(what, list, &clusters()),
        (what, _) => table(arguments, what, fleet, list, &clusters()),
    }
}

fn document(form: ListOutput, list: &impl Serialize) -> io::Result<()> {
    let text = match form {
        ListOutput::Yaml => serde_saphyr::to_string(list).map_err(io::Error::other)?,
        _ => serde_json::to_string_pretty(list)? + "\n",
    };
    io::stdout().write_all(text.as_bytes())
}

fn names(what: What, list: &AppList, clusters: &view::ClusterList) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match what {
        What::Apps => list.apps.iter().try_for_each(|app| {
            let app = &app.app;
            writeln!(out, "{}/{}/{}", app.delivery.as_str(), app.namespace, app.name)
        }),
        What::Clusters => clusters.items.iter().try_for_each(|cluster| writeln!(out, "{}", cluster.name)),
        What::Resources => view::ResourceList::from(list).items.iter().try_for_each(|row| {
            let dot = if row.group.is_empty() { "" } else { "." };
            writeln!(out, "{}{dot}{}/{}", row.kind.to_lowercase(), row.group, row.name)
        }),
    }
}

fn table(
    arguments: &GetArguments,
    what: What,
    fleet: &Fleet,
    list: &AppList,
    clusters: &view::ClusterList,
) -> io::Result<()> {
    let wide = arguments.output == ListOutput::Wide;
    let several = fleet.snapshots.len() > 1;
    let mut columns = match what {
        What::Apps => app_columns(wide),
        What::Clusters => cluster_columns(wide),
        What::Resources => resource_columns(wide),
    };
    if !several && what != What::Clusters {
        columns.retain(|column| *column != "CLUSTER");
    }
    let rows = match what {
        What::Apps => {
            let rows = list.apps.iter().map(|app| app_row(app, fleet.now));
            rows.chain(lost_rows(&list.errors)).collect::<Vec<_>>()
        }
        What::Clusters => clusters.items.iter().map(cluster_row).collect(),
        What::Resources => {
            let rows = view::ResourceList::from(list).items.into_iter().map(|row| resource_row(&row));
            rows.chain(lost_rows(&list.errors)).collect()
        }
    };
    if rows.is_empty() {
        let of_namespace = arguments.namespace.as_ref().map(|name| format!(" declared in namespace {name}"));
        writeln!(io::stderr(), "No {} found{}.", noun(what), of_namespace.unwrap_or_default())?;
        return Ok(());
    }
    let header = if arguments.no_headers { Vec::new() } else { columns.clone() };
    let screen = if wide { None } else { screen() };
    let mut table = Table::new(anstream::stdout().lock(), header, screen).spare(SPARE);
    for mut row in rows {
        let cell = |column: &&str| row.remove(*column).unwrap_or_else(|| Cell::new(""));
        table.row(columns.iter().map(cell).collect())?;
    }
    table.finish()
}

fn noun(what: What) -> &'static str {
    match what {
        What::Apps => "apps",
        What::Clusters => "clusters",
        What::Resources => "objects of apps",
    }
}

/// What a narrow screen lacks first.
const SPARE: &[&str] = &["DELIVERY", "APPLIED", "APP", "VERSION", "SYNC"];

type Row = BTreeMap<&'static str, Cell>;

fn app_columns(wide: bool) -> Vec<&'static str> {
    if wide {
        let of_revisions = ["SYNC", "APPLIED", "WANTED", "LAST SUCCESS"];
        [
            &["CLUSTER", "NAMESPACE", "NAME", "DELIVERY", "STATUS", "OBJECTS"],
            &of_revisions[..],
            &["SOURCE", "WORST", "MESSAGE"],
        ]
        .concat()
    } else {
        vec!["CLUSTER", "NAMESPACE", "NAME", "DELIVERY", "STATUS", "SYNC", "APPLIED", "MESSAGE"]
    }
}

fn app_row(app: &App, now: Timestamp) -> Row {
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
    let last = app.sync.last_success.map(|at| text::ago(at, now));
    BTreeMap::from([
        ("CLUSTER", Cell::new(&app.app.target)),
        ("NAMESPACE", Cell::new(&app.app.namespace)),
        ("NAME", Cell::new(&app.app.name)),
        ("DELIVERY", Cell::new(app.app.delivery.as_str())),
        ("STATUS", Cell::styled(text::health(app, now), style(app.effective()))),
        ("OBJECTS", Cell::new(format!("{ready}/{}", app.counts.total()))),
        ("SYNC", Cell::new(app.sync.state.as_str())),
        ("APPLIED", revision(&app.sync.applied)),
        ("WANTED", revision(&app.sync.desired)),
        ("LAST SUCCESS", Cell::new(last.unwrap_or_default())),
        ("SOURCE", Cell::new(source.unwrap_or_default())),
        ("WORST", Cell::new(worst.unwrap_or_default())),
        ("MESSAGE", Cell::new(text::revision(&app.message))),
    ])
}

/// A row for each cluster that did not answer: what is missing must not look as if it were not there.
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

fn cluster_columns(wide: bool) -> Vec<&'static str> {
    if wide {
        vec!["CLUSTER", "ID", "ALIASES", "STATUS", "APPS", "VERSION", "OBSERVED", "MESSAGE"]
    } else {
        vec!["CLUSTER", "STATUS", "APPS", "VERSION", "MESSAGE"]
    }
}

fn cluster_row(cluster: &view::ClusterRow) -> Row {
    let status: Status = cluster.status.parse().unwrap_or(Status::Unknown);
    BTreeMap::from([
        ("CLUSTER", Cell::new(&cluster.name)),
        ("ID", Cell::new(cluster.id.as_deref().unwrap_or_default())),
        ("ALIASES", Cell::new(cluster.aliases.join(","))),
        ("STATUS", Cell::styled(status.word(), style(status))),
        ("APPS", Cell::new(format!("{}/{}", cluster.counts.current, cluster.apps))),
        ("VERSION", Cell::new(cluster.version.as_deref().unwrap_or_default())),
        ("OBSERVED", Cell::new(cluster.freshness.observed_at.as_deref().unwrap_or(cluster.freshness.state))),
        ("MESSAGE", Cell::new(text::revision(&cluster.message))),
    ])
}

fn resource_columns(wide: bool) -> Vec<&'static str> {
    if wide {
        vec!["CLUSTER", "NAMESPACE", "KIND", "GROUP", "NAME", "STATUS", "DELIVERY", "APP", "RULE", "MESSAGE"]
    } else {
        vec!["CLUSTER", "NAMESPACE", "KIND", "NAME", "STATUS", "APP", "MESSAGE"]
    }
}

fn resource_row(row: &view::ResourceRow) -> Row {
    let status: Status = row.status.parse().unwrap_or(Status::Unknown);
    BTreeMap::from([
        ("CLUSTER", Cell::new(&row.cluster)),
        ("NAMESPACE", Cell::new(&row.namespace)),
        ("KIND", Cell::new(&row.kind)),
        ("GROUP", Cell::new(&row.group)),
        ("NAME", Cell::new(&row.name)),
        ("STATUS", Cell::styled(status.word(), style(status))),
        ("DELIVERY", Cell::new(row.app.delivery)),
        ("APP", Cell::new(format!("{}/{}", row.app.namespace, row.app.name))),
        ("RULE", Cell::new(&row.rule)),
        ("MESSAGE", Cell::new(&row.message)),
    ])
}

/// What is told below the table: kinds that failed for the same reason share a line.
pub(super) fn complaints(errors: &[AppError]) -> Vec<Complaint> {
    let mut kinds: BTreeMap<(&str, &str), (Vec<String>, &str)> = BTreeMap::new();
    let mut complaints = Vec::new();
    for AppError { cluster, error } in errors {
        match &error.scope {
            Scope::Kind { .. } => {
                let entry = kinds.entry((cluster, &error.reason)).or_insert((Vec::new(), &error.message));
                entry.0.push(error.scope.to_string());
            }
            _ => complaints.push(complaint(cluster, &error.reason, &error.message)),
        }
    }
    for ((cluster, reason), (scopes, message)) in kinds {
        let message = match scopes.as_slice() {
            [_] => message.to_owned(),
            _ => format!("{} kinds could not be read ({reason}): {}", scopes.len(), scopes.join(", ")),
        };
        complaints.push(complaint(cluster, reason, &message));
    }
    complaints
}

fn complaint(cluster: &str, reason: &str, message: &str) -> Complaint {
    let complaint = Complaint::unreadable(format!("{cluster}: {message}"));
    match reason {
        // These were read well enough; that they are wrong is no failure to read.
        "Malformed" | "Overlap" => complaint.harmless(),
        "Forbidden" => complaint.hint("objects of kinds that may not be listed are shown as Unknown"),
        _ => complaint,
    }
}
