//! `taffrail trust`: lists the reasons to doubt a green status.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use taffrail_api::question::{FleetFacts, TrustAnswer, TrustView};
use taffrail_api::{AppOfHome, TrustFinding, TrustReport, text};
use taffrail_apps::text::moment;
use taffrail_apps::trust::{CheckedCluster, Severity};

use super::changes::Printed;
use super::rows::NamedRow;
use super::{changes, get, named};
use crate::cli::{ListOutput, TrustArguments, TrustOutput};
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::output::table::{Cell, Table};
use crate::output::{indented, printable, screen};
use crate::program;
use crate::say;
use crate::source::{self, Source};

/// The answer that was printed last: the report, and for `-o name` also its findings, of which only changes are
/// printed.
#[derive(Default)]
pub(crate) struct PrintedReport {
    whole: Option<TrustReport>,
    findings: Printed<TrustFinding>,
}

pub(crate) fn run(
    arguments: &TrustArguments,
    printed: &mut PrintedReport,
    source: &mut dyn Source,
    console: &Console,
) -> Result<Exit, CommandError> {
    let view = TrustView {
        name: arguments.name.clone(),
        apps: named::selection(&arguments.which),
        categories: arguments.category.clone(),
        // Comparing with an earlier run needs one line per finding and cluster.
        per_cluster: arguments.per_cluster || arguments.output == TrustOutput::Name,
        contexts: arguments.hub.names_contexts(&arguments.view.source),
    };
    let answer = source::ask("trust", &view, (&arguments.view, &arguments.hub), source, console)?;
    let TrustAnswer { fleet, items, checked, errors } = answer;
    // Only documents contain failures.
    let told = match arguments.output {
        TrustOutput::Json | TrustOutput::Yaml => &*errors,
        TrustOutput::Table | TrustOutput::Wide | TrustOutput::Name => &[],
    };
    let report = TrustReport::of(items, checked, told);

    let PrintedReport { whole, findings } = printed;
    let Some(report) = changes::news(whole, report) else { return Ok(Exit::Yes) };
    written(match arguments.output {
        TrustOutput::Json => get::document(ListOutput::Json, report, console),
        TrustOutput::Yaml => get::document(ListOutput::Yaml, report, console),
        TrustOutput::Name => findings.names(&report.items, &[], true, console),
        TrustOutput::Wide => table(arguments, &report.items, &fleet, console),
        TrustOutput::Table => people(arguments, report, &fleet, console),
    })?;
    if arguments.output == TrustOutput::Name {
        findings.set(report.items.clone(), Vec::new());
    }
    // Unreadable scopes are findings here.
    let mut exit = get::tell(&fleet, &errors, false, console);
    let is_doubtful = |doubt: &TrustFinding| doubt.severity != Severity::Low && doubt.green > 0;
    if arguments.exit_status && report.items.iter().any(is_doubtful) {
        exit = exit.max(Exit::No);
    }
    Ok(exit)
}

impl NamedRow for TrustFinding {
    fn name(&self, _: bool) -> String {
        let TrustFinding { category, reason, place, scope, .. } = self;
        format!("{}/{reason}/{}/{scope}", category.as_str(), place.first())
    }
}

fn colour(severity: Severity) -> Style {
    match severity {
        Severity::High => AnsiColor::Red.on_default(),
        Severity::Medium => AnsiColor::Yellow.on_default(),
        Severity::Low => Style::new(),
    }
}

/// Returns the age of a finding at the time `now` in seconds; `None` if it is not known since when the finding is true.
fn age(doubt: &TrustFinding, now: Timestamp) -> Option<i64> {
    Some(now.as_second().saturating_sub(doubt.since?.as_second()))
}

/// Returns the subject of a finding: an object or a kind in kubectl's spelling, or the scope.
fn subject(doubt: &TrustFinding) -> String {
    match doubt.objects.as_slice() {
        [only] if each(doubt, doubt.object_count) == 1 => {
            format!("{} {}", only.key.kind, only.key.path())
        }
        _ => match doubt.scope.split_once('/') {
            // A kind of the core group has an empty group.
            Some(("", kind)) if !kind.contains('/') => kind.to_owned(),
            Some((group, kind)) if !kind.contains('/') && !group.contains(' ') => format!("{kind}.{group}"),
            _ => doubt.scope.clone(),
        },
    }
}

fn table(
    arguments: &TrustArguments,
    doubts: &[TrustFinding],
    fleet: &FleetFacts,
    console: &Console,
) -> io::Result<()> {
    let mut columns = vec![
        "SEVERITY", "CATEGORY", "REASON", "CLUSTER", "ABOUT", "GREEN", "APPS", "SINCE", "MESSAGE", "NEXT",
    ];
    if fleet.clusters <= 1 {
        columns.retain(|column| *column != "CLUSTER");
    }
    let table = Table::new(console.people(), columns.clone(), screen()).without_header(arguments.no_headers);
    let mut table = table.spare(&["NEXT", "CATEGORY", "APPS", "GREEN", "SINCE"]).whole(true);
    for doubt in doubts {
        let cell = |column: &&str| match *column {
            "SEVERITY" => Cell::styled(doubt.severity.as_str(), colour(doubt.severity)),
            "CATEGORY" => Cell::new(doubt.category.as_str()),
            "REASON" => Cell::new(&doubt.reason),
            "CLUSTER" => Cell::new(doubt.place.words()),
            "ABOUT" => Cell::new(subject(doubt)),
            "GREEN" => Cell::new(doubt.green.to_string()),
            "APPS" => Cell::new(doubt.app_count.to_string()),
            "SINCE" => Cell::new(age(doubt, fleet.now).map(text::age).unwrap_or_default()),
            "MESSAGE" => Cell::new(&doubt.message),
            _ => Cell::new(commands(doubt).join("; ")),
        };
        table.row(columns.iter().map(cell).collect())?;
    }
    table.finish()
}

fn people(
    arguments: &TrustArguments,
    report: &TrustReport,
    fleet: &FleetFacts,
    console: &Console,
) -> io::Result<()> {
    let bold = Style::new().bold();
    let mut out = console.people();
    let several = fleet.clusters > 1;
    let is_idle = |doubt: &&TrustFinding| doubt.app_count > 0 && doubt.green == 0;
    let of = |severity| move |doubt: &&TrustFinding| doubt.severity == severity && !is_idle(doubt);
    let sections: [(&str, Vec<&TrustFinding>); 4] = [
        ("Signs that a green status is wrong", report.items.iter().filter(of(Severity::High)).collect()),
        ("Nothing proves that green is right", report.items.iter().filter(of(Severity::Medium)).collect()),
        ("Green covers less than it seems to", report.items.iter().filter(of(Severity::Low)).collect()),
        ("About apps that are not green", report.items.iter().filter(is_idle).collect()),
    ];
    for (title, doubts) in sections.into_iter().filter(|(_, doubts)| !doubts.is_empty()) {
        say!(out, "{}{}{:#}", bold, title, bold)?;
        doubts.into_iter().try_for_each(|doubt| one(&mut out, doubt, several, fleet.now))?;
        say!(out)?;
    }
    if report.items.is_empty() {
        let scope = if arguments.category.is_empty() { "" } else { " in the selected categories" };
        match report.checked.iter().all(|cluster| cluster.apps == 0) {
            true => say!(out, "No apps found: there is no green status to doubt.\n")?,
            false => say!(out, "Found no reason to doubt a green status{}.\n", scope)?,
        }
    }
    checked(&mut out, &report.checked, several)?;
    out.flush()
}

/// Returns the commands that show more about a finding, with the options of this process that choose what is read.
fn commands(doubt: &TrustFinding) -> Vec<String> {
    doubt.next.iter().map(|command| program::typed(command)).collect()
}

/// The indentation of the lines below the first line of a finding.
const INDENT: &str = "    ";

fn one(out: &mut impl Write, doubt: &TrustFinding, several: bool, now: Timestamp) -> io::Result<()> {
    let bold = Style::new().bold();
    let style = colour(doubt.severity);
    let place = if several { format!("{}: ", doubt.place.words()) } else { String::new() };
    let since = age(doubt, now).map(|age| format!(", for {}", text::span(age))).unwrap_or_default();
    let subject = printable(&subject(doubt)).into_owned();
    let category = doubt.category.as_str();
    say!(
        out,
        "  {}{:<11}{:#} {}{}{}{:#}{}",
        style,
        category,
        style,
        printable(&place),
        bold,
        subject,
        bold,
        printable(&since),
    )?;
    let mut lines = vec![match doubt.place.are_several() {
        true => format!("in each of {} clusters: {}", doubt.place.count(), doubt.message),
        false => doubt.message.clone(),
    }];
    if each(doubt, doubt.object_count) > 1 {
        let names = doubt.objects.iter().map(|object| object.key.path());
        lines.push(listed(names.collect(), each(doubt, doubt.object_count)));
    }
    lines.extend(hanging(doubt));
    for line in lines {
        indented(out, INDENT, &line)?;
    }
    // Commands stay on one line so that they can be copied.
    commands(doubt).iter().try_for_each(|command| say!(out, "{}> {}", INDENT, printable(command)))?;
    match doubt.next_of_first {
        true => indented(
            out,
            INDENT,
            &format!(
                "  these commands are for {}; --per-cluster shows those for each cluster",
                doubt.place.first()
            ),
        ),
        false => Ok(()),
    }
}

/// Returns the share of one cluster in `number`, which is a sum over all clusters of a joined finding.
fn each(doubt: &TrustFinding, number: usize) -> usize {
    number / doubt.place.count().max(1)
}

/// Returns the line that names the apps that a finding concerns; `None` if it concerns none.
fn hanging(doubt: &TrustFinding) -> Option<String> {
    if doubt.app_count == 0 {
        return None;
    }
    let names = doubt.apps.iter().map(|AppOfHome { app, home }| {
        let slash = if app.namespace.is_empty() { "" } else { "/" };
        let home = home.as_ref().map(|home| format!(" of {home}")).unwrap_or_default();
        format!("{}{slash}{}{home}", app.namespace, app.name)
    });
    let names: Vec<String> = names.collect();
    let names = match (doubt.place.are_several(), doubt.apps_differ) {
        (false, _) => listed(names, doubt.app_count),
        (true, false) => format!("{} in each", listed(names, each(doubt, doubt.app_count))),
        // --per-cluster lists the apps of each cluster.
        (true, true) => {
            let more = if names.len() > MAX_NAMED { ", …" } else { "" };
            let names = names.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("{names}{more} (not the same in each)")
        }
    };
    Some(match (doubt.green, doubt.app_count) {
        (1, 1) => format!("Green app: {names}"),
        (0, 1) => format!("App: {names}, which is not green"),
        (0, _) => format!("Apps: {names}; none of them is green"),
        (green, count) if green == count => format!("{count} green apps: {names}"),
        (green, count) => format!("{count} apps, {green} of them green: {names}"),
    })
}

/// Maximum number of names of apps or clusters on a line; the others are counted, or stand for `…`.
const MAX_NAMED: usize = 5;

fn listed(mut names: Vec<String>, all: usize) -> String {
    names.truncate(MAX_NAMED);
    let more = all.saturating_sub(names.len());
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

/// Maximum number of clusters that have a summary line each; with more, one line sums up all of them.
const MAX_CLUSTERS: usize = 10;

fn checked(out: &mut impl Write, checked: &[CheckedCluster], several: bool) -> io::Result<()> {
    let count =
        |number: usize, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
    let words = |of: &dyn Fn(fn(&CheckedCluster) -> usize) -> usize| {
        format!(
            "{} ({} green), {}, {} and {}",
            count(of(|it| it.apps), "app", "apps"),
            of(|it| it.green),
            count(of(|it| it.objects), "object", "objects"),
            count(of(|it| it.pods), "Pod", "Pods"),
            count(of(|it| it.leases), "lease", "leases"),
        )
    };
    let mut lines: Vec<String> = if checked.len() > MAX_CLUSTERS {
        let all = words(&|field| checked.iter().map(field).sum());
        vec![format!("Checked {} clusters: {all}.", checked.len())]
    } else {
        let line = |it: &CheckedCluster| {
            let place = if several { format!(" {}", it.cluster) } else { String::new() };
            let at = format!(" as of {}", moment(it.as_of));
            format!("Checked{place}{at}: {}.", words(&|field| field(it)))
        };
        checked.iter().map(line).collect()
    };
    let without: Vec<String> =
        checked.iter().filter(|it| it.leases == 0).map(|it| it.cluster.clone()).collect();
    if !without.is_empty() {
        let all = without.len();
        let place = if several { format!(" of {}", listed(without, all)) } else { String::new() };
        lines.push(format!("No leases{place} were read: dead nodes and controllers would go unnoticed."));
    }
    // The clusters in which the same controllers have none.
    let mut unleased: BTreeMap<&[String], Vec<String>> = BTreeMap::new();
    for cluster in checked.iter().filter(|it| !it.without_lease.is_empty()) {
        unleased.entry(&cluster.without_lease).or_default().push(cluster.cluster.clone());
    }
    for (controllers, clusters) in unleased {
        let all = clusters.len();
        let place = if several { format!(" in {}", listed(clusters, all)) } else { String::new() };
        let controllers = controllers.join(", ");
        lines.push(format!(
            "No lease{place} of {controllers}: Taffrail sees if their workloads run, but not if they hang."
        ));
    }
    for line in lines {
        indented(out, "", &line)?;
    }
    Ok(())
}
