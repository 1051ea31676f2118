//! The command line, with one module for each of its subcommands.

#[cfg(feature = "lua")]
pub(crate) mod actions;
#[cfg(not(feature = "lua"))]
#[path = "actions/unsupported.rs"]
pub(crate) mod actions;
#[cfg(feature = "agent")]
pub(crate) mod agent;
pub(crate) mod app;
mod changes;
pub(crate) mod completion;
pub(crate) mod config;
#[cfg(feature = "demo")]
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod dump;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod get;
mod guard;
pub(crate) mod history;
#[cfg(feature = "hub")]
pub(crate) mod hub;
pub(crate) mod impact;
pub(crate) mod logs;
pub(crate) mod named;
pub(crate) mod object;
pub(crate) mod overview;
mod rows;
pub(crate) mod rules;
pub(crate) mod set_history;
pub(crate) mod status;
pub(crate) mod sync;
pub(crate) mod tree;
pub(crate) mod trust;
#[cfg(feature = "tui")]
pub(crate) mod tui;
#[cfg(feature = "hub")]
pub(crate) mod ui;
pub(crate) mod verbs;
pub(crate) mod wait;
pub(crate) mod watch;
mod writes;
#[cfg(any(feature = "agent", feature = "hub"))]
mod zero_ages;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use taffrail_status::Trust;

use crate::cli::{
    AppArguments, Color, EventsArguments, ExplainArguments, GetArguments, TreeArguments, TrustArguments,
};
use actions::{ActionArguments, ActionsArguments};
#[cfg(feature = "agent")]
use agent::AgentArguments;
use completion::CompletionArguments;
use config::ConfigArguments;
#[cfg(feature = "demo")]
use demo::DemoArguments;
use diff::DiffArguments;
use dump::DumpArguments;
use history::HistoryArguments;
#[cfg(feature = "hub")]
use hub::HubArguments;
use impact::ImpactArguments;
use logs::LogsArguments;
use object::ObjectArguments;
use overview::OverviewArguments;
use rules::RulesArguments;
use status::{StatusArguments, StatusOutput};
use sync::{DestroyArguments, PruneArguments, RollbackArguments, RunArguments, SyncArguments};
#[cfg(feature = "tui")]
use tui::TuiArguments;
#[cfg(feature = "hub")]
use ui::UiArguments;
use verbs::{ReconcileArguments, ResumeArguments, SuspendArguments};
use wait::WaitArguments;

/// Show the health of Flux and Argo CD apps in every cluster, and the cause where one is not ready
#[derive(Debug, Parser)]
#[command(
    name = Cli::NAME,
    version,
    max_term_width = Cli::WIDTH,
    after_help = "\
Examples:
  taffrail get apps                              the apps of the current context and their health
  taffrail get apps --all-contexts               of all contexts of the kubeconfig
  taffrail explain shop                          why is it not ready?
  taffrail get apps --from dumps/                read dump files instead of clusters
  taffrail reconcile shop                        reconcile it now, and wait until it is ready
  taffrail COMMAND --help                        more examples

Exit codes: 0 answered; 1 something has a problem (with --exit-status), or a condition was not met; 2 wrong usage; 3 some
data could not be read (the rest is still shown); 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) global: GlobalArguments,
}

#[derive(Debug, Args)]
pub(crate) struct GlobalArguments {
    /// Read this settings file; variables such as $TAFFRAIL_TIMEOUT still win over it [default: $TAFFRAIL_CONFIG, else
    /// taffrail/config.yaml in $XDG_CONFIG_HOME, else in ~/.config]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,

    /// Print colours; auto: if the output is a terminal, unless NO_COLOR or CLICOLOR_FORCE is set, which turn them off
    /// or on
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto, help_heading = "Global options")]
    pub(crate) color: Color,

    /// Print answers that are longer than the screen directly, not through the pager (the setting pager, else $PAGER,
    /// else less)
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) no_pager: bool,
}

/// Declares [`Command`] and a function that defines one of its subcommands without the others.
macro_rules! commands {
    ($($(#[$condition:meta])* $name:ident($arguments:ty),)*) => {
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[$condition])* $name($arguments),)*
        }

        impl Command {
            /// Adds to `root` the definition of the subcommand `name`; returns `None` if there is none of that name.
            fn define(root: clap::Command, name: &str) -> Option<clap::Command> {
                if !name.bytes().all(|byte| byte.is_ascii_lowercase()) {
                    return None;
                }
                $(
                    $(#[$condition])*
                    if name.eq_ignore_ascii_case(stringify!($name)) {
                        let command = <$arguments as Args>::augment_args(clap::Command::new(name.to_owned()));
                        return Some(root.subcommand(command));
                    }
                )*
                None
            }
        }
    };
}

commands! {
    Explain(ExplainArguments),
    Get(Box<GetArguments>),
    App(AppArguments),
    Tree(TreeArguments),
    Object(ObjectArguments),
    Events(EventsArguments),
    History(HistoryArguments),
    Logs(LogsArguments),
    Overview(OverviewArguments),
    #[cfg(feature = "hub")]
    Ui(UiArguments),
    #[cfg(feature = "tui")]
    Tui(TuiArguments),
    Trust(TrustArguments),
    Status(StatusArguments),
    Diff(DiffArguments),
    Impact(ImpactArguments),
    Sync(SyncArguments),
    Prune(PruneArguments),
    Rollback(RollbackArguments),
    Destroy(DestroyArguments),
    Wait(WaitArguments),
    Reconcile(ReconcileArguments),
    Suspend(SuspendArguments),
    Resume(ResumeArguments),
    Actions(ActionsArguments),
    Action(ActionArguments),
    Dump(DumpArguments),
    Rules(RulesArguments),
    #[cfg(feature = "hub")]
    Hub(HubArguments),
    #[cfg(feature = "agent")]
    Agent(AgentArguments),
    Config(ConfigArguments),
    Completion(CompletionArguments),
    #[cfg(feature = "demo")]
    Demo(DemoArguments),
}

impl Cli {
    /// Returns the definition of the command line with the subcommand `name` only, which parses and documents its
    /// arguments as [`CommandFactory::command`](clap::CommandFactory::command) does; `None` if there is none of that
    /// name. Defining all subcommands takes as long as judging hundreds of objects.
    pub(crate) fn command_for(name: &str) -> Option<clap::Command> {
        let root = clap::Command::new(Cli::NAME).max_term_width(Cli::WIDTH);
        Command::define(GlobalArguments::augment_args(root), name)
    }

    const NAME: &str = "taffrail";
    /// Maximum width of the help texts, in columns.
    const WIDTH: usize = 100;
}

impl Command {
    /// Returns the values of `--context`, and the trust that the settings state, of a command that has these; `None`
    /// for other commands, and for `demo`.
    pub(crate) fn clusters_mut(&mut self) -> Option<(&mut Vec<String>, &mut Trust)> {
        let source = match self {
            Command::Explain(arguments) => &mut arguments.view.source,
            Command::Get(arguments) => &mut arguments.view.source,
            Command::App(arguments) => &mut arguments.view.source,
            Command::Tree(arguments) => &mut arguments.view.source,
            Command::Object(arguments) => &mut arguments.view.source,
            Command::Events(arguments) => &mut arguments.view.source,
            Command::Trust(arguments) => &mut arguments.view.source,
            Command::Logs(arguments) => &mut arguments.source,
            Command::Overview(arguments) => &mut arguments.view.source,
            Command::Status(arguments) => &mut arguments.source,
            Command::Wait(WaitArguments { clusters, .. })
            | Command::Diff(DiffArguments { clusters, .. })
            | Command::Impact(ImpactArguments { clusters, .. })
            | Command::Sync(SyncArguments { running: RunArguments { clusters, .. }, .. })
            | Command::Prune(PruneArguments { running: RunArguments { clusters, .. }, .. })
            | Command::Rollback(RollbackArguments { running: RunArguments { clusters, .. }, .. })
            | Command::Destroy(DestroyArguments { running: RunArguments { clusters, .. } })
            | Command::History(HistoryArguments { clusters, .. })
            | Command::Dump(DumpArguments { clusters, .. }) => {
                return Some((&mut clusters.context, &mut clusters.trust));
            }
            Command::Reconcile(arguments) => &mut arguments.acting.source,
            Command::Suspend(arguments) => &mut arguments.acting.source,
            Command::Resume(arguments) => &mut arguments.acting.source,
            Command::Actions(arguments) => &mut arguments.which.source,
            Command::Action(arguments) => &mut arguments.which.source,
            Command::Rules(arguments) => return arguments.clusters_mut(),
            #[cfg(feature = "hub")]
            Command::Hub(arguments) => {
                let clusters = arguments.clusters_mut()?;
                return Some((&mut clusters.context, &mut clusters.trust));
            }
            #[cfg(feature = "agent")]
            Command::Agent(arguments) => {
                let clusters = arguments.clusters_mut();
                return Some((&mut clusters.context, &mut clusters.trust));
            }
            #[cfg(feature = "hub")]
            Command::Ui(UiArguments { clusters, .. }) => {
                return Some((&mut clusters.context, &mut clusters.trust));
            }
            #[cfg(feature = "tui")]
            Command::Tui(TuiArguments { clusters, .. }) => {
                return Some((&mut clusters.context, &mut clusters.trust));
            }
            Command::Config(_) | Command::Completion(_) => return None,
            #[cfg(feature = "demo")]
            Command::Demo(_) => return None,
        };
        Some((&mut source.context, &mut source.trust))
    }

    /// Returns true if the command may run until it is interrupted or a condition is met, and redraws or adds to its
    /// output meanwhile: with `-w` or `-f`, and for `wait`, `demo`, `hub`, `agent`, `ui`,
    /// `tui` and a live `overview`.
    pub(crate) fn watches(&self) -> bool {
        match self {
            Command::Explain(ExplainArguments { view, .. })
            | Command::App(AppArguments { view, .. })
            | Command::Tree(TreeArguments { view, .. })
            | Command::Object(ObjectArguments { view, .. })
            | Command::Events(EventsArguments { view, .. })
            | Command::Trust(TrustArguments { view, .. }) => view.watch,
            Command::Get(get) => get.view.watch,
            Command::Status(status) => status.watch,
            Command::Logs(logs) => logs.follow,
            Command::Overview(overview) => overview.is_live(),
            Command::Wait(_)
            | Command::Sync(_)
            | Command::Prune(_)
            | Command::Rollback(_)
            | Command::Destroy(_) => true,
            #[cfg(feature = "demo")]
            Command::Demo(_) => true,
            #[cfg(feature = "hub")]
            Command::Hub(_) | Command::Ui(_) => true,
            #[cfg(feature = "agent")]
            Command::Agent(arguments) => arguments.reports(),
            #[cfg(feature = "tui")]
            Command::Tui(_) => true,
            Command::Reconcile(_)
            | Command::Suspend(_)
            | Command::Resume(_)
            | Command::Actions(_)
            | Command::Action(_)
            | Command::Diff(_)
            | Command::Impact(_)
            | Command::Dump(_)
            | Command::Rules(_)
            | Command::History(_)
            | Command::Config(_)
            | Command::Completion(_) => false,
        }
    }

    /// Returns true if a pager may show the output of the command when it does not watch. False for commands that print
    /// progress or write, for `completion`, and for `status` with `-o jsonl` or `-o name`.
    pub(crate) fn is_paged(&self) -> bool {
        match self {
            // These print progress while they run.
            Command::Completion(_)
            | Command::Dump(_)
            | Command::Wait(_)
            | Command::Sync(_)
            | Command::Prune(_)
            | Command::Rollback(_)
            | Command::Destroy(_)
            | Command::Reconcile(_)
            | Command::Suspend(_)
            | Command::Resume(_)
            | Command::Action(_) => false,
            #[cfg(feature = "demo")]
            Command::Demo(_) => false,
            #[cfg(feature = "hub")]
            Command::Hub(_) | Command::Ui(_) => false,
            #[cfg(feature = "agent")]
            Command::Agent(_) => false,
            #[cfg(feature = "tui")]
            Command::Tui(_) => false,
            Command::Status(arguments) => {
                !matches!(arguments.output, StatusOutput::Jsonl | StatusOutput::Name)
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory, FromArgMatches};

    use super::Cli;

    #[test]
    fn a_subcommand_defined_alone_parses_and_documents_the_same() {
        let whole = Cli::command();
        let mut names: Vec<&str> = whole.get_subcommands().map(Command::get_name).collect();
        names.sort_unstable();
        assert!(names.contains(&"get"), "{names:?}");
        for name in names {
            for rest in [
                &["--help"][..],
                &["-h"],
                &["--no-such-option"],
                &["--color", "x"],
                &["a", "b", "c", "d"],
                &[],
            ] {
                let line: Vec<&str> = ["taffrail", name].iter().chain(rest).copied().collect();
                let told = |root: Command| match root.try_get_matches_from(&line) {
                    Ok(matches) => format!("{:#?}", Cli::from_arg_matches(&matches).unwrap()),
                    Err(error) => error.to_string(),
                };
                let alone = Cli::command_for(name).unwrap_or_else(|| panic!("{name}"));
                assert_eq!(told(alone), told(Cli::command()), "{line:?}");
            }
        }
        assert!(Cli::command_for("help").is_none());
        assert!(Cli::command_for("Get").is_none());
    }

    #[test]
    fn every_namespace_flag_has_all_namespaces() {
        fn missing(command: &Command, lacking: &mut Vec<String>) {
            let has = |long, short| {
                command.get_arguments().any(|it| it.get_long() == Some(long) && it.get_short() == Some(short))
            };
            // A set has one namespace.
            let is_of_set = command.get_arguments().any(|it| it.get_long() == Some("set"));
            if has("namespace", 'n') && !has("all-namespaces", 'A') && !is_of_set {
                lacking.push(command.get_name().to_owned());
            }
            command.get_subcommands().for_each(|below| missing(below, lacking));
        }
        let mut lacking = Vec::new();
        missing(&Cli::command(), &mut lacking);
        assert_eq!(lacking, [""; 0]);
    }
}
