//! Arguments of `taffrail reconcile`, `suspend` and `resume`.

use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use taffrail_apps::AppQuery;
use taffrail_apps::verbs::{Reconcile, Verb};
use taffrail_object::LabelSelector;

use crate::cli::{NameArguments, SourceArguments, duration, label_selector};

/// Have an app's tool look at it now: fetch, compare and apply; then follow until it is ready.
#[derive(Debug, Args)]
#[command(
    mut_arg("timeout", request_timeout),
    after_help = "\
Examples:
  taffrail reconcile shop                        and wait until it is ready, or has failed
  taffrail reconcile shop --with-source          Flux: fetch its source first
  taffrail reconcile hr/web/cache --force        Flux: upgrade the release although nothing changed
  taffrail reconcile argo/api --sync             Argo CD: sync, not only compare
  taffrail reconcile shop --dry-run=server       what would be written, checked by the server
  taffrail reconcile -l team=web --yes           all apps whose declaring object has a label

What is written: for Flux the annotation reconcile.fluxcd.io/requestedAt (with --force and --reset also forceAt and
resetAt); for Argo CD the annotation argocd.argoproj.io/refresh, with --sync the field operation.

Exit codes: 0 done, and ready; 1 handled, but failed or not ready within --timeout; 2 wrong usage, or nothing that
the app's tool can do; 3 something could not be read or written."
)]
pub(crate) struct ReconcileArguments {
    /// Flux: first fetch what it is made from; for a source in another namespace than the app that names it there is a question, and
    /// where there is no terminal it takes --yes
    #[arg(long)]
    pub(crate) with_source: bool,

    /// Flux HelmRelease: install or upgrade once, although nothing changed
    #[arg(long)]
    pub(crate) force: bool,

    /// Flux HelmRelease: forget how often it failed
    #[arg(long)]
    pub(crate) reset: bool,

    /// Argo CD: render the manifests anew instead of taking those that it remembers
    #[arg(long)]
    pub(crate) hard: bool,

    /// Argo CD: sync, also an app that is not synced by itself
    #[arg(long)]
    pub(crate) sync: bool,

    #[command(flatten)]
    pub(crate) acting: ActingArguments,
}

impl ReconcileArguments {
    pub(crate) fn verb(&self) -> Verb {
        let ReconcileArguments { with_source, force, reset, hard, sync, .. } = *self;
        Verb::Reconcile(Reconcile { with_source, force, reset, hard, sync })
    }
}

/// Have an app's tool leave it alone.
#[derive(Debug, Args)]
#[command(
    mut_args(suspending),
    after_help = "\
Examples:
  taffrail suspend shop                          in every cluster that it is in
  taffrail suspend shop --cluster eu-1
  taffrail suspend shop --dry-run=client         what would be written, asking nobody

What is written: for Flux spec.suspend; for Argo CD spec.syncPolicy.automated.enabled, and where it is older than that
field the policy is taken away and kept in the annotation taffrail.dev/suspended-automated. Who declares the object
may set it back: that is told.

Exit codes: 0 done; 2 wrong usage, or nothing that the app's tool can do; 3 something could not be read or written."
)]
pub(crate) struct SuspendArguments {
    #[command(flatten)]
    pub(crate) acting: ActingArguments,
}

/// Have an app's tool take care of it again, now; then follow until it is ready.
#[derive(Debug, Args)]
#[command(
    mut_arg("timeout", request_timeout),
    after_help = "\
Examples:
  taffrail resume shop
  taffrail resume shop --wait=false              do not wait until it is ready
  taffrail resume --all -n team-a --yes

What is written: what `taffrail suspend` writes is taken back, and a reconciliation is requested.

Exit codes: 0 done, and ready; 1 handled, but failed or not ready within --timeout; 2 wrong usage, or nothing that
the app's tool can do; 3 something could not be read or written."
)]
pub(crate) struct ResumeArguments {
    #[command(flatten)]
    pub(crate) acting: ActingArguments,
}

/// Renames the shared `--timeout` to `--request-timeout`; these commands use `--timeout` for the wait.
fn request_timeout(argument: clap::Arg) -> clap::Arg {
    argument.long("request-timeout")
}

/// Applies [`request_timeout`] and hides `--wait` and `--timeout`, since suspending does not wait.
fn suspending(argument: clap::Arg) -> clap::Arg {
    match argument.get_id().as_str() {
        "timeout" => request_timeout(argument),
        "wait" | "deadline" => argument.hide(true),
        _ => argument,
    }
}

/// The apps to act on, and the options for it.
#[derive(Debug, Args)]
pub(crate) struct ActingArguments {
    /// The apps: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME
    #[arg(value_name = "APP", required_unless_present_any = ["selector", "all"], conflicts_with_all = ["selector", "all"])]
    pub(crate) name: Vec<AppQuery>,

    /// All apps whose declaring object has these labels
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = label_selector)]
    pub(crate) selector: Option<LabelSelector>,

    /// All apps that there are, or those of the namespace and the clusters
    #[arg(long, conflicts_with = "selector")]
    pub(crate) all: bool,

    /// Do it, without a question, although several clusters are meant, apps that were not named, or sources in other namespaces
    #[arg(short, long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) which: NameArguments,

    /// Only show what would be written; without a value as --dry-run=client
    #[arg(
        long, value_enum, value_name = "BY", num_args = 0..=1, require_equals = true, default_value_t = DryRun::None,
        default_missing_value = "client"
    )]
    pub(crate) dry_run: DryRun,

    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t = ActingOutput::Text)]
    pub(crate) output: ActingOutput,

    /// Wait until the tool has handled it and the app is ready or has failed; --wait=false does not
    #[arg(
        long, value_name = "TRUTH", action = ArgAction::Set, default_value_t = true, default_missing_value = "true",
        num_args = 0..=1, require_equals = true
    )]
    pub(crate) wait: bool,

    /// How long to wait for that, such as 5m or 90s
    #[arg(id = "deadline", long = "timeout", value_name = "TIME", default_value = "5m", value_parser = duration)]
    pub(crate) deadline: Duration,

    #[command(flatten)]
    pub(crate) source: SourceArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ActingOutput {
    /// What is written as it is written, and what comes of it
    Text,
    /// One document when all is done
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// Write it
    None,
    /// The server says whether it would take it
    Server,
    /// Nobody is asked
    Client,
}

impl DryRun {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            DryRun::None => "none",
            DryRun::Server => "server",
            DryRun::Client => "client",
        }
    }
}
