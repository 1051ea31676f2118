//! The `taffrail` command-line program.
//!
//! * `commands` has a file or folder for each command; `cli` has their arguments, and `config` the settings, which
//!   become the defaults of flags.
//! * `source` passes the arguments to `taffrail_observe`; `runtime` is the Tokio runtime for clusters and hubs.
//! * `output` prints: `table` and `text` for people, `answer` to stdout, a pager or memory, `screen` redraws a frame in
//!   place.
//! * `cel` runs the expressions of users and clusters.
//! * `commands/demo` declares a fleet in YAML (`world/fleet.yaml`, `world/templates`) and faults in it (`world/faults`,
//!   timelines of five minutes that repeat). `taffrail_sim` plays it beside controllers of Flux and Argo CD
//!   (`world/tools`) that apply what is declared. The demo reads the fleet as any other command does: over HTTP, with
//!   the kubeconfig that it wrote. Its hub also has clusters of agents and of metrics.

mod cel;
mod cli;
mod command_error;
mod commands;
mod completion;
mod config;
#[cfg(any(feature = "agent", feature = "hub"))]
mod data_folder;
mod deprecated;
#[cfg(test)]
mod docs;
mod hub_url;
mod interrupt;
mod jq_worker;
mod output;
mod program;
mod reasons;
mod rule_source;
mod runtime;
mod source;
mod traces;

use std::cell::LazyCell;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use taffrail_apps::verbs::Verb;
use taffrail_status::Trust;

use crate::cli::ListOutput;
use crate::command_error::{CommandError, Exit};
use crate::commands::{Cli, Command, watch};
use crate::config::Config;
use crate::output::answer::Console;

/// The allocator of the process. Views of thousands of objects consist of small strings, and take half as long again
/// with glibc's.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    if jq_worker::is_this() {
        return jq_worker::work();
    }
    if completion::answer(program::command) {
        return ExitCode::SUCCESS;
    }
    let console = Console::process();
    let exit = run(&console).unwrap_or_else(|complaint| {
        complaint.print(&console);
        complaint.exit
    });
    console.finish();
    // Exec plugins still running would outlive the process.
    taffrail_cluster::Plugins::process().end();
    exit.into()
}

/// The highest limit of open files that [`open_many_files`] sets, enough for thousands of clusters. Not higher: some
/// child programs examine every descriptor that may be open.
const MAX_OPEN_FILES: u64 = 65_536;

/// Raises the soft limit of open files to [`MAX_OPEN_FILES`], or to the hard limit if that is lower; never lowers it. A
/// fleet takes a connection for each cluster, and the usual limit of 1,024 exists for programs that use `select`.
fn open_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(MAX_OPEN_FILES, |maximum| maximum.min(MAX_OPEN_FILES));
    if limit.current.is_some_and(|current| current < most) {
        // If this fails the old limit holds.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit });
    }
}

/// Starts the threads of the allocator that return free memory to the kernel while the process rests. A command that
/// looks once ends before they would, and starts faster without them.
fn return_memory_in_background() {
    // Without them the process only keeps more memory.
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
}

fn run(console: &Console) -> Result<Exit, CommandError> {
    open_many_files();
    let (cli, config) = read(console)?;
    output::colour(cli.global.color);
    if cli.command.watches() {
        return_memory_in_background();
    }
    // The demo handles interrupts itself, since it has more to clean up.
    #[cfg(feature = "demo")]
    let is_demo = matches!(cli.command, Command::Demo(_));
    #[cfg(not(feature = "demo"))]
    let is_demo = false;
    if !is_demo {
        interrupt::watch(console.clone());
    }
    if !cli.global.no_pager
        && cli.command.is_paged()
        && !cli.command.watches()
        && let Some(pager) = config.get("pager")
    {
        console.page_with(pager);
    }
    match &cli.command {
        Command::Explain(of) => watch::view(&of.view, of.form(), console, |from, printed, console| {
            commands::explain::run(of, printed, from, console)
        }),
        Command::Get(of) => watch::view(&of.view, of.form(), console, |from, printed, console| {
            commands::get::run(of, printed, from, console)
        }),
        Command::App(of) => watch::view(&of.view, of.form(), console, |from, printed, console| {
            commands::app::run(of, printed, from, console)
        }),
        Command::Tree(of) => watch::view(&of.view, of.form(), console, |from, printed, console| {
            commands::tree::run(of, printed, from, console)
        }),
        Command::Object(of) => watch::view(&of.view, of.form(), console, |from, printed, console| {
            commands::object::run(of, printed, from, console)
        }),
        Command::Events(of) => watch::view(&of.view, of.form(), console, |from, printed, console| {
            commands::events::run(of, printed, from, console)
        }),
        Command::Trust(of) => watch::view(&of.view, of.form(), console, |from, printed, console| {
            commands::trust::run(of, printed, from, console)
        }),
        Command::Overview(arguments) => commands::overview::run(arguments, console),
        Command::History(arguments) => match &arguments.set {
            Some(set) => commands::set_history::run(arguments, set, console),
            None => commands::history::run(arguments, console),
        },
        Command::Logs(arguments) => commands::logs::run(arguments, console),
        Command::Status(arguments) => commands::status::run(arguments, console),
        Command::Wait(arguments) => commands::wait::run(arguments, console),
        Command::Reconcile(of) => commands::verbs::run(of.verb(), &of.acting, console),
        Command::Suspend(of) => commands::verbs::run(Verb::Suspend, &of.acting, console),
        Command::Resume(of) => commands::verbs::run(Verb::Resume, &of.acting, console),
        Command::Actions(arguments) => commands::actions::list(arguments, console),
        Command::Action(arguments) => commands::actions::run(arguments, console),
        Command::Diff(arguments) => commands::diff::run(arguments, console),
        Command::Impact(arguments) => commands::impact::run(arguments, console),
        Command::Sync(arguments) => commands::sync::run(arguments, console),
        Command::Prune(arguments) => commands::sync::prune(arguments, console),
        Command::Rollback(arguments) => commands::sync::rollback(arguments, console),
        Command::Destroy(arguments) => commands::sync::destroy(arguments, console),
        Command::Dump(arguments) => commands::dump::run(arguments, console),
        Command::Rules(arguments) => commands::rules::run(arguments, console),
        #[cfg(feature = "hub")]
        Command::Hub(arguments) => commands::hub::run(arguments, console),
        #[cfg(feature = "agent")]
        Command::Agent(arguments) => commands::agent::run(arguments, console),
        #[cfg(feature = "hub")]
        Command::Ui(arguments) => commands::ui::run(arguments, console),
        #[cfg(feature = "tui")]
        Command::Tui(arguments) => commands::tui::run(arguments, console),
        Command::Config(arguments) => commands::config::run(arguments, config, console),
        Command::Completion(arguments) => commands::completion::run(arguments, console),
        #[cfg(feature = "demo")]
        Command::Demo(arguments) => commands::demo::run(arguments, console),
    }
}

/// Parses the command line and reads the settings (for `completion` none), and returns both. It parses a second time,
/// with the settings as defaults of the flags, if a setting concerns the command. Ends the process if the command line
/// is invalid or asks for help. Also warns about deprecated flags, and starts to print traces if `-vv` asks for them.
fn read(console: &Console) -> Result<(Cli, Config), CommandError> {
    // Freeing the definition takes as long as parsing.
    let mut root = ManuallyDrop::new(program::command_typed());
    let matches = root.try_get_matches_from_mut(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let file = matches.get_one::<PathBuf>("config");
    // A script that sets up completion must not depend on settings.
    let config = match matches.subcommand_name() {
        Some("completion") => Config::default(),
        _ => Config::load(
            LazyCell::new(program::command),
            file.map(PathBuf::as_path),
            |name| std::env::var_os(name),
            std::env::home_dir(),
        )?,
    };
    let (command, word) = match matches.subcommand() {
        Some((command, inner)) => {
            let word = inner.try_get_raw("what").ok().flatten().and_then(|mut words| words.next());
            (command, word.and_then(|word| word.to_str()).map(cli::What::plural))
        }
        None => ("", None),
    };
    let matches = if config.concerns(command, word) {
        config.apply(program::command_typed(), command, word).get_matches()
    } else {
        matches
    };
    // Clap has already reported any other error.
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    program::remember(&matches);
    settle(&mut cli, &matches, &config)?;
    if let Some(warning) = deprecated::warning(&matches) {
        warning.print(console);
    }
    traces::print(&matches, cli.command.watches() && !matches!(cli.command, Command::Wait(_)), console);
    Ok((cli, config))
}

/// Completes `cli` by settings that clap's defaults cannot express: replaces fleets by their contexts, sets the trust
/// from `argocd` and `trusted-homes`, and drops the columns of `get` that come from the settings if the output is
/// neither `table` nor `wide`, or of a past time. Fails if a fleet is not in the settings.
fn settle(cli: &mut Cli, matches: &ArgMatches, config: &Config) -> Result<(), CommandError> {
    if let Command::Get(arguments) = &mut cli.command {
        let inner = matches.subcommand_matches("get");
        let set = inner.and_then(|inner| inner.value_source("columns"));
        // Columns set for tables of the present do not apply to other output forms, nor to what history keeps.
        let is_table = matches!(arguments.output, ListOutput::Table | ListOutput::Wide);
        if set == Some(ValueSource::DefaultValue) && (!is_table || arguments.at.is_some()) {
            arguments.columns.clear();
        }
    }
    let homes = config.contexts(config.list("trusted-homes"))?;
    let settled = Trust { argocd: config.list("argocd").to_vec(), homes };
    #[cfg(feature = "demo")]
    if let Command::Demo(arguments) = &mut cli.command {
        arguments.trust = settled.clone();
    }
    if let Some((contexts, trust)) = cli.command.clusters_mut() {
        *contexts = config.contexts(contexts)?;
        *trust = settled;
    }
    Ok(())
}
