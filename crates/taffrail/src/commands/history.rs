//! `taffrail history`: the changes of an app's state and its syncs, as a hub recorded them. `set_history` tells of sets.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use taffrail_api::filter::Filter;
use taffrail_api::hub::{AppHistory, HistoryRow, PairState};
use taffrail_api::operations::OperationRecord;
use taffrail_api::question::{AppsView, ListAnswer, QuestionError, RowSelection};
use taffrail_api::{AppRow, ErrorRow, List, text};
use taffrail_apps::{AppQuery, Delivery, FindError, SyncResult};
use taffrail_status::Status;

use super::rows::NamedRow as _;
use super::wait::ClusterArguments;
use super::{get, named};
use crate::cli::{self, HubFiles, ListOutput, TableOutput};
use crate::command_error::{CommandError, Exit, written};
use crate::commands::verbs::outcome;
use crate::hub_url::HubUrl;
use crate::output::answer::Console;
use crate::output::table::{Cell, Table};
use crate::output::{printable, screen, style};
use crate::source::{self, HubBudget};
use crate::{phrase, program};

/// Maximum number of entries of one page; a hub sends no more.
pub(super) const PAGE: usize = 500;
/// Maximum length in bytes of all pages together.
const MAX_BYTES: usize = 32 << 20;
/// Maximum number of clusters whose histories are read; the others are counted.
const MAX_CLUSTERS: usize = 50;
/// The characters of the names of clusters, apps and cursors that stand for themselves in a URL.
pub(super) const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Show what happened to an app: the changes of its state, its syncs, and the operations of users, the latest first. Only a hub keeps history
/// of apps; a set has its own in the cluster.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail history shop --hub http://127.0.0.1:7655
  taffrail history shop --hub http://127.0.0.1:7655 --cluster eu-1 --since 24h
  taffrail history eu-1/flux-kustomization/flux-system/shop --hub http://127.0.0.1:7655      also of an app that is gone
  taffrail history shop --hub http://127.0.0.1:7655 --limit 1000 -o json
  taffrail history --set shop -n team-a                      the last runs of a set, as `taffrail sync` noted them
  taffrail history --set shop -n team-a --run 7              the objects of one run

FROM and TO are status and sync state before and after a change; gone stands for an app that is not in the cluster. The
row of a sync has instead its revision and result, that of an operation by a hub (reconcile, suspend, resume) its result,
and who asked for it. Times are in UTC: of changes those at which the hub
learned of them, or an agent if it could not tell the hub at once.

Exit codes: 0 answered; 2 wrong usage, no such app, or several; 3 a history, or a part of the fleet, could not be read
(the rest is still shown).")]
pub(crate) struct HistoryArguments {
    /// The app: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME, in every cluster that has it; it is an error
    /// if different apps have the name. One that is gone needs its full name, with the cluster
    #[arg(required_unless_present = "set")]
    pub(crate) name: Option<AppQuery>,

    /// Show the last runs of this set instead, from its record in the cluster: number, command, result, revision, who
    /// started it, and how many objects it changed
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "hub", "cluster", "since", "all_namespaces"])]
    pub(crate) set: Option<String>,

    /// With --set: list the objects of the run with this number
    #[arg(long, value_name = "NUMBER", requires = "set")]
    pub(crate) run: Option<u64>,

    /// Take only apps declared in this namespace [default: all namespaces]; with --set: the namespace of the set
    /// [default: that of the context]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// Take apps declared in any namespace, which is the default
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Show only what happened in these clusters: names as in the CLUSTER column, separated by commas [default: all
    /// that have the app]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cluster: Vec<String>,

    /// Show only what happened within this time before now, such as 90m or 24h [default: as far back as the hub keeps
    /// history]
    #[arg(long, value_name = "TIME", value_parser = cli::duration)]
    pub(crate) since: Option<Duration>,

    /// Show at most this many entries of each cluster, the latest
    #[arg(
        long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000)
    )]
    pub(crate) limit: u16,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = TableOutput::Table)]
    pub(crate) output: TableOutput,

    /// Omit the header row of the table
    #[arg(long)]
    pub(crate) no_headers: bool,

    /// Limit the time of the command, such as 30s or 2m. A history that was not read by then is missing, and the exit
    /// code is 3
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = cli::duration)]
    pub(crate) timeout: Duration,

    /// Ask the hub (`taffrail hub serve`) at this URL: https://HOST:7655, or http://127.0.0.1:7655 for one on this
    /// machine. The token may follow after #: http://127.0.0.1:7655#TOKEN
    #[arg(long, value_name = "URL", value_parser = HubUrl::parse, help_heading = "Clusters and dumps")]
    pub(crate) hub: Option<Box<HubUrl>>,

    #[command(flatten)]
    pub(crate) files: HubFiles,

    /// The clusters of --set.
    #[command(flatten)]
    pub(crate) clusters: ClusterArguments,
}

/// The history of an app in one cluster to read.
struct Wanted {
    cluster: String,
    /// The cluster that declares the app; `None` if the name did not give it.
    home: Option<String>,
    delivery: Delivery,
    namespace: String,
    name: String,
}

impl Wanted {
    fn of_row(row: &AppRow) -> Wanted {
        let AppRow { cluster, home, delivery, namespace, name, .. } = row.clone();
        Wanted { cluster, home: Some(home), delivery, namespace, name }
    }

    /// Returns what a full name with a cluster names, whether or not there is such an app; `None` for another name.
    fn of_full_name(query: &AppQuery) -> Option<Wanted> {
        let (delivery, namespace, name) = query.full_name()?;
        Some(Wanted {
            cluster: query.cluster()?.to_owned(),
            home: query.home().map(str::to_owned),
            delivery,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Returns the path of a page of at most `limit` entries, from the time `from` on.
    fn path(&self, from: Option<Timestamp>, limit: usize, cursor: Option<&str>) -> String {
        let escaped = |text| utf8_percent_encode(text, ESCAPED);
        let Wanted { cluster, home, delivery, namespace, name } = self;
        let namespace = if namespace.is_empty() { "-" } else { namespace };
        let mut path = format!(
            "/api/v1/history/{}/{delivery}/{}/{}?limit={limit}",
            escaped(cluster),
            escaped(namespace),
            escaped(name)
        );
        let from = from.map(|from| from.to_string());
        let more = [("home", home.as_deref()), ("from", from.as_deref()), ("cursor", cursor)];
        for (parameter, value) in more.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            path.extend(["&", parameter, "="].into_iter().chain(escaped(value)));
        }
        path
    }
}

pub(crate) fn run(arguments: &HistoryArguments, console: &Console) -> Result<Exit, CommandError> {
    let Some(name) = &arguments.name else {
        return Err(CommandError::usage("the name of an app is missing"));
    };
    let Some(url) = &arguments.hub else {
        let error = CommandError::usage("only a hub keeps history: --hub is missing");
        let command = program::hinted("taffrail hub serve");
        return Err(
            error.hint(format!("name a hub with --hub URL; {command} starts one, and prints its URL"))
        );
    };
    let mut budget = HubBudget::new(arguments.timeout, MAX_BYTES);
    let (mut wanted, answer) = find(arguments, name, url)?;
    let left_out = wanted.len().saturating_sub(MAX_CLUSTERS);
    wanted.truncate(MAX_CLUSTERS);
    let from = arguments.since.map(|since| {
        let since = SignedDuration::try_from(since).unwrap_or(SignedDuration::MAX);
        Timestamp::now().saturating_sub(since).unwrap_or(Timestamp::MIN)
    });
    let is_known = answer.is_some();
    let (mut histories, mut failures) = (Vec::new(), Vec::new());
    for app in &wanted {
        let (history, failure) = read(arguments, url, app, from, &mut budget);
        if let Some(error) = failure {
            if !is_known {
                return Err(error);
            }
            // The hub has the app, so it is the history that is missing.
            let hint = error.hint.clone();
            failures.push((app.cluster.clone(), CommandError::unreadable(error).maybe_hint(hint)));
        }
        histories.extend(history);
    }
    let (fleet, errors) = answer.map(|answer| (answer.fleet, answer.errors)).unzip();
    let errors = errors.unwrap_or_default();
    let for_people = arguments.output == TableOutput::Table;
    if for_people {
        written(table(arguments, name, &histories, console))?;
    } else {
        let form = if arguments.output == TableOutput::Yaml { ListOutput::Yaml } else { ListOutput::Json };
        let failed = failures.iter().map(|(cluster, error)| ErrorRow {
            cluster: cluster.clone(),
            scope: "cluster".to_owned(),
            reason: "Unreadable".to_owned(),
            message: error.to_string(),
        });
        let errors: Vec<ErrorRow> = errors.iter().map(ErrorRow::from).chain(failed).collect();
        written(get::document(form, &List::of(histories, errors), console))?;
    }
    let mut exit = fleet.map_or(Exit::Yes, |fleet| get::tell(&fleet, &errors, for_people, console));
    for (cluster, error) in &failures {
        if for_people {
            error.print_about(&format!("{cluster}: "), console);
        }
        exit = exit.max(error.exit);
    }
    if left_out > 0 {
        let what = format!("the histories of the app in {left_out} more clusters are left out");
        CommandError::unreadable(what).harmless().hint("choose clusters with --cluster").print(console);
    }
    Ok(exit)
}

/// Returns the histories to read, and the hub's answer about the app; no answer for an app that the hub does not know
/// now, but whose full name with the cluster was given. Fails if no app or several apps have the name.
fn find(
    arguments: &HistoryArguments,
    name: &AppQuery,
    url: &HubUrl,
) -> Result<(Vec<Wanted>, Option<ListAnswer<AppRow>>), CommandError> {
    let HistoryArguments { namespace, cluster, files, timeout, .. } = arguments;
    let view = AppsView {
        rows: RowSelection {
            names: vec![name.clone()],
            namespace: namespace.clone(),
            filter: Filter { clusters: cluster.clone(), ..Filter::default() },
            ..RowSelection::default()
        },
    };
    let refused = |error: &QuestionError| named::refused_by_hub("history", error);
    let answer: ListAnswer<AppRow> = match source::question_hub(url, files, &view.into(), *timeout)? {
        Ok(answer) => answer,
        Err(error @ QuestionError::NoSingleApp { error: FindError::NotFound { .. }, .. }) => {
            return match Wanted::of_full_name(name) {
                Some(gone) => Ok((vec![gone], None)),
                None => Err(refused(&error)
                    .hint("an app that is gone needs its full name: CLUSTER/DELIVERY/NAMESPACE/NAME")),
            };
        }
        Err(error) => return Err(refused(&error)),
    };
    let mut keys: BTreeSet<&str> = answer.items.iter().map(|row| &*row.key).collect();
    if keys.len() > 1 {
        let candidates: BTreeSet<String> = answer.items.iter().map(|row| row.name(false)).collect();
        let candidates = candidates.into_iter().collect();
        let error = FindError::Ambiguous { text: name.to_string(), candidates };
        return Err(refused(&QuestionError::NoSingleApp { error, hidden_by: None }));
    }
    match keys.pop_first() {
        None => Err(CommandError::usage(format!("app '{name}' is not in the selected clusters"))),
        Some(_) => Ok((answer.items.iter().map(Wanted::of_row).collect(), Some(answer))),
    }
}

/// Reads the latest entries of a history, page by page, at most as many as were asked for. Returns what was read, and
/// the failure after which no more was read.
fn read(
    arguments: &HistoryArguments,
    url: &HubUrl,
    app: &Wanted,
    from: Option<Timestamp>,
    budget: &mut HubBudget,
) -> (Option<AppHistory>, Option<CommandError>) {
    let mut history: Option<AppHistory> = None;
    loop {
        let (known, cursor) = history.as_ref().map_or((0, None), |it| (it.items.len(), it.next.clone()));
        let limit = usize::from(arguments.limit).saturating_sub(known).min(PAGE);
        if limit == 0 || history.is_some() && cursor.is_none() {
            return (history, None);
        }
        let path = app.path(from, limit, cursor.as_deref());
        let page: AppHistory = match source::get(url, &arguments.files, &path, budget) {
            Ok(page) => page,
            Err(error) => return (history, Some(error)),
        };
        let fault = if page.items.len() > limit {
            Some("the hub sent more entries than it was asked for")
        } else if page.items.is_empty() && page.next.is_some() {
            // Else a hub could send pages without end.
            Some("the hub sent an empty page that is not the last one")
        } else {
            None
        };
        if let Some(fault) = fault {
            return (history, Some(CommandError::unreadable(fault)));
        }
        match &mut history {
            Some(history) => {
                history.items.extend(page.items);
                history.next = page.next;
            }
            None => history = Some(page),
        }
    }
}

/// Prints the entries of all clusters in one table, the latest first, and tells of what it leaves out.
fn table(
    arguments: &HistoryArguments,
    name: &AppQuery,
    histories: &[AppHistory],
    console: &Console,
) -> io::Result<()> {
    let mut rows: Vec<(&str, Delivery, &HistoryRow)> = Vec::new();
    for AppHistory { cluster, delivery, items, .. } in histories {
        rows.extend(items.iter().map(|row| (cluster.as_str(), *delivery, row)));
    }
    rows.sort_by_key(|(_, _, row)| Reverse(row.at()));
    let is_cut = histories.iter().any(|history| history.next.is_some());
    let since = histories.iter().filter_map(|history| history.history_since).min();
    if rows.is_empty() {
        if !histories.is_empty() {
            let since = since.map(|since| format!("; history begins at {}", moment(since)));
            let about = name.to_string();
            console.tell(phrase!(
                "Nothing is recorded of '{}'{}.\n",
                printable(&about),
                printable(&since.unwrap_or_default())
            ));
        }
        return Ok(());
    }
    let mut columns = vec!["TIME", "CLUSTER", "FROM", "TO", "REVISION", "RESULT", "TOOK", "MESSAGE"];
    if histories.len() < 2 {
        columns.retain(|column| *column != "CLUSTER");
    }
    let table = Table::new(console.people(), columns.clone(), screen()).without_header(arguments.no_headers);
    let mut table = table.spare(&["TOOK", "CLUSTER"]);
    for (cluster, delivery, row) in rows {
        table.row(columns.iter().map(|column| cell(cluster, delivery, row, column)).collect())?;
    }
    table.finish()?;
    if is_cut {
        let most = arguments.limit.to_string();
        console.tell(phrase!("Older entries than the latest {} are left out (--limit).\n", printable(&most)));
    }
    Ok(())
}

fn cell(cluster: &str, delivery: Delivery, row: &HistoryRow, column: &str) -> Cell {
    let state = |state: &Option<PairState>, absent: &str| match state {
        Some(state) => Cell::styled(words(delivery, state), style(state.effective)),
        None => Cell::new(absent),
    };
    match (column, row) {
        ("TIME", row) => Cell::new(moment(row.at())),
        ("CLUSTER", _) => Cell::new(cluster),
        ("FROM", HistoryRow::Transition { before, .. }) => state(before, ""),
        ("TO", HistoryRow::Transition { after, .. }) => state(after, "gone"),
        ("MESSAGE", HistoryRow::Transition { after, .. }) => {
            Cell::new(after.as_ref().map(besides).unwrap_or_default())
        }
        ("REVISION", HistoryRow::Sync { revision, .. }) => Cell::new(text::revision(revision)),
        ("RESULT", HistoryRow::Sync { result, .. }) => match result {
            SyncResult::Running => Cell::styled("Running", style(Status::InProgress)),
            SyncResult::Succeeded => Cell::styled("Succeeded", style(Status::Current)),
            SyncResult::Failed => Cell::styled("Failed", style(Status::Failed)),
        },
        ("TOOK", HistoryRow::Sync { at, ended: Some(ended), .. }) => {
            Cell::new(text::age(ended.as_second().saturating_sub(at.as_second())))
        }
        ("MESSAGE", HistoryRow::Sync { message, .. }) => Cell::new(text::revision(&text::line(message))),
        ("RESULT", HistoryRow::Operation { operation }) => {
            let (word, status, _) = outcome_of(operation);
            Cell::styled(word, style(status))
        }
        ("TOOK", HistoryRow::Operation { operation }) => {
            let ended = operation.ended.unwrap_or(operation.began);
            Cell::new(text::age(ended.as_second().saturating_sub(operation.began.as_second())))
        }
        ("MESSAGE", HistoryRow::Operation { operation }) => Cell::new(text::line(&told(operation))),
        _ => Cell::new(""),
    }
}

fn outcome_of(operation: &OperationRecord) -> (&'static str, Status, &str) {
    outcome::words(operation.items.first().and_then(|item| item.outcome.as_ref()))
}

/// Returns what an operation on an app was, who asked for it, and what its result says.
fn told(record: &OperationRecord) -> String {
    let OperationRecord { operation, by, dry_run, .. } = record;
    let dry = if *dry_run { " (dry run)" } else { "" };
    let by = by.as_ref().map_or_else(|| "the user of the hub".to_owned(), |name| format!("token {name}"));
    let (_, _, why) = outcome_of(record);
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    format!("{operation} by {by}{dry}{why}")
}

/// Returns status and sync state in one word, such as `Ready/Synced`; of an app that only labels make, which no tool
/// syncs, the status alone.
fn words(delivery: Delivery, state: &PairState) -> String {
    match delivery {
        Delivery::Label => state.effective.word().to_owned(),
        _ => format!("{}/{}", state.effective.word(), state.sync),
    }
}

/// Returns what a state says besides status and sync state: its problem, and the last health if that is not what views
/// showed.
pub(super) fn besides(state: &PairState) -> String {
    let was = (state.health != state.effective).then(|| format!("was {}", state.health.word()));
    let parts: Vec<&str> = state.problem.as_deref().into_iter().chain(was.as_deref()).collect();
    parts.join("; ")
}

/// Formats a time to the second, without spaces.
pub(super) fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_escape_names_and_hold_the_whole_question() {
        let query: AppQuery = "a/b?c@x/ks-1/flux-kustomization/ns/shop@home 1".parse().unwrap();
        let wanted = Wanted::of_full_name(&query).unwrap();
        assert_eq!(
            wanted.path(Some(Timestamp::UNIX_EPOCH), 7, Some("a&b")),
            "/api/v1/history/a%2Fb%3Fc%40x%2Fks-1/flux-kustomization/ns/shop?limit=7&home=home%201\
             &from=1970-01-01T00%3A00%3A00Z&cursor=a%26b"
        );
        let own = Wanted { namespace: String::new(), home: None, ..wanted };
        assert!(
            own.path(None, 1, None).ends_with("/flux-kustomization/-/shop?limit=1"),
            "{}",
            own.path(None, 1, None)
        );
        assert!(Wanted::of_full_name(&"flux-kustomization/ns/shop".parse().unwrap()).is_none());
    }
}
