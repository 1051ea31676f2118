//! `taffrail overview`: what needs attention in a fleet, and what changed lately.

mod frame;
mod lines;
mod news;

use std::io::Write;

use clap::{Args, ValueEnum};
#[cfg(not(feature = "demo"))]
use frame::{Size, broken, command_for, dim, frame, title};
#[cfg(feature = "demo")]
pub(in crate::commands) use frame::{Size, broken, command_for, dim, frame, title};
pub(in crate::commands) use lines::Lines;
#[cfg(all(test, feature = "demo"))]
pub(in crate::commands) use news::Concern;
pub(in crate::commands) use news::News;
#[cfg(all(test, feature = "demo"))]
pub(in crate::commands) use news::{ClusterNews, Kind, Tally};
use taffrail_api::question::{FleetFacts, OverviewAnswer, OverviewView};
use taffrail_api::{AppRow, FleetOverview};
use unicode_width::UnicodeWidthStr;

use super::watch::{self, Form};
use super::{changes, get};
use crate::cli::{GroupingArguments, HubSource, ListOutput, ViewArguments, not_with_hub};
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::output::printable;
use crate::output::screen;
use crate::program;
use crate::source::{self, Once, Source};

/// The title of the overview.
const NAME: &str = "Taffrail";
/// The number of columns of an overview without a terminal, and the maximum number of rows of one that is printed once,
/// which ends with its content.
const PRINTED: (usize, usize) = (120, 200);

/// Show what needs attention, each cause once, and what changed lately; on a terminal live, elsewhere once.
#[derive(Debug, Args)]
#[command(
    mut_args(not_with_hub),
    after_help = "\
Examples:
  taffrail overview                              of the current context, until Ctrl-C
  taffrail overview --all-contexts               of all contexts
  taffrail overview --all-contexts --once        print it once, as it does without a terminal
  taffrail overview -w | tee log                 the problems, and then a line for each change
  taffrail overview --all-contexts -o json       for programs; with -w a line for each change
  taffrail overview --from dumps/                of dump files
  taffrail overview --hub http://127.0.0.1:7655  of the clusters that a hub follows

An app that needs attention is not ready, or has a problem with its sync or source; a cluster that does not answer needs
it, too. Equal problems of one app in several clusters, or of several apps in one cluster, are one line. What changed is
told since the command was started. With -o json or yaml a cause is one entry for all apps and clusters, and what changed
lately are the apps whose present problem began in the last 24 hours.

Exit codes: 0 answered; 1 with --exit-status when something needs attention; 2 wrong usage; 3 some data could not be read
(the rest is still shown); 130 interrupted."
)]
pub(crate) struct OverviewArguments {
    /// Show only apps declared in this namespace [default: all]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Option<String>,

    /// Show the apps of all namespaces, which is the default
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    /// Show only these clusters and the apps with objects in them: names as in the CLUSTER column, separated by commas
    /// [default: all that are read]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cluster: Vec<String>,

    /// Print the overview once, also on a terminal; by default it is redrawn there until Ctrl-C
    #[arg(long, conflicts_with = "watch")]
    pub(crate) once: bool,

    /// Output format; json and yaml are printed once unless -w is given
    #[arg(short, long, value_enum, default_value_t = OverviewOutput::Text)]
    pub(crate) output: OverviewOutput,

    /// Exit with 1 when an app has a problem of health, sync, source or freshness; a notice (suspended, OutOfSync
    /// without automatic sync) does not count
    #[arg(long)]
    pub(crate) exit_status: bool,

    #[command(flatten)]
    pub(crate) grouping: GroupingArguments,

    #[command(flatten)]
    pub(crate) view: ViewArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
}

/// The output formats of `overview`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverviewOutput {
    /// For people
    Text,
    Json,
    Yaml,
}

impl OverviewArguments {
    /// Returns true if the overview is shown until it is interrupted: with `-w`, and as text on a terminal without
    /// `--once`, `--from` and `--now`.
    pub(crate) fn is_live(&self) -> bool {
        let is_once = self.once || !self.view.source.from.is_empty() || self.view.source.now.is_some();
        self.view.watch || !is_once && self.output == OverviewOutput::Text && screen::is_capable()
    }
}

pub(crate) fn run(arguments: &OverviewArguments, console: &Console) -> Result<Exit, CommandError> {
    let form = match arguments.output {
        OverviewOutput::Text => None,
        OverviewOutput::Json => Some((Form::Json, ListOutput::Json)),
        OverviewOutput::Yaml => Some((Form::Yaml, ListOutput::Yaml)),
    };
    if let Some((form, output)) = form {
        return watch::view(&arguments.view, form, console, |source, printed, console| {
            document(arguments, output, printed, source, console)
        });
    }
    let mut news = News::new(&[]);
    if !arguments.is_live() {
        return answer(arguments, &mut news, Shown::Once, &mut Once::new(console), console);
    }
    let is_screen = screen::is_capable();
    watch::follow(Form::Lines, console, |source, lines: &mut Lines, console| {
        let shown = if is_screen { Shown::Frame } else { Shown::Lines(lines) };
        answer(arguments, &mut news, shown, source, console)
    })
}

/// The form in which the overview is shown.
enum Shown<'l> {
    Once,
    /// A frame as high as the terminal.
    Frame,
    Lines(&'l mut Lines),
}

/// Asks the clusters, dumps or the hub.
fn asked(
    arguments: &OverviewArguments,
    source: &mut dyn Source,
    console: &Console,
) -> Result<OverviewAnswer, CommandError> {
    let view = OverviewView {
        namespace: arguments.namespace.clone(),
        clusters: arguments.cluster.clone(),
        app_labels: arguments.grouping.labels(),
    };
    source::ask("explain", &view, (&arguments.view, &arguments.hub), source, console)
}

/// Prints the overview for programs, unless it is the one that was printed last.
fn document(
    arguments: &OverviewArguments,
    output: ListOutput,
    printed: &mut Option<FleetOverview>,
    source: &mut dyn Source,
    console: &Console,
) -> Result<Exit, CommandError> {
    let answer = asked(arguments, source, console)?;
    let Some(told) = changes::news(printed, FleetOverview::from(&answer)) else { return Ok(Exit::Yes) };
    written(get::document(output, told, console))?;
    let exit = get::tell(&answer.fleet, &answer.errors, false, console);
    Ok(exit.max(attended(arguments, &answer.apps)))
}

/// Returns [`Exit::No`] with `--exit-status` if an app needs attention.
fn attended(arguments: &OverviewArguments, apps: &[AppRow]) -> Exit {
    let needs_attention = arguments.exit_status && apps.iter().any(news::is_pressing);
    if needs_attention { Exit::No } else { Exit::Yes }
}

fn answer(
    arguments: &OverviewArguments,
    news: &mut News,
    shown: Shown<'_>,
    source: &mut dyn Source,
    console: &Console,
) -> Result<Exit, CommandError> {
    let answer = asked(arguments, source, console)?;
    news.look(&answer);
    let OverviewAnswer { fleet, apps, errors, .. } = answer;
    let exit = match shown {
        Shown::Once => {
            let columns = crate::output::screen();
            let (is_cut, columns) = (columns.is_some(), columns.unwrap_or(PRINTED.0));
            let size = Size { columns, rows: PRINTED.1, is_cut };
            let lines = frame(NAME, news, fleet.now, size, Vec::new());
            // What changed is not known yet.
            let end = lines.iter().position(|line| *line == title("Changed lately")).unwrap_or(lines.len());
            let lines = lines.get(..end).unwrap_or_default();
            let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
            let text: String = lines.iter().take(end).map(|line| format!("{line}\n")).collect();
            written(console.people().write_all(text.as_bytes()))?;
            get::tell(&fleet, &errors, true, console)
        }
        Shown::Frame => {
            let size = Size::screen(screen::dimensions());
            let foot = foot(news, &fleet, errors.len(), size.columns);
            let lines = frame(NAME, news, fleet.now, size, foot);
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            written(console.people().write_all(text.as_bytes()))?;
            Exit::Yes
        }
        Shown::Lines(lines) => {
            written(lines.show(NAME, news, &[], console))?;
            get::tell(&fleet, &errors, true, console)
        }
    };
    Ok(exit.max(attended(arguments, &apps)))
}

/// Returns the lines at the bottom of the screen: the number of scopes that could not be read, if any, the command for
/// the first problem (for all apps if there is none), and that Ctrl-C ends.
fn foot(news: &News, fleet: &FleetFacts, errors: usize, columns: usize) -> Vec<String> {
    let command = command_for(news.concerns.first(), "", fleet.clusters > 1);
    let mut foot = Vec::new();
    if errors > 0 {
        let scopes = if errors == 1 { "scope" } else { "scopes" };
        let command = program::typed("taffrail get clusters -o wide");
        foot.push(format!("{errors} {scopes} could not be read: {}", printable(&command)));
    }
    let command = printable(&program::typed(&command)).into_owned();
    let end = "Ctrl-C ends";
    if command.width() + 3 + end.len() <= columns {
        foot.push(dim(&format!("{command}   {end}")));
    } else {
        // A command is copied, so it is never cut.
        foot.extend(broken(&command, columns).iter().map(|line| dim(line)));
        foot.push(dim(end));
    }
    foot
}
