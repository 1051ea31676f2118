//! Arguments of `taffrail reconcile`, `suspend` and `resume`.

use std::time::Duration;

use clap::{ArgAction, Args};
use taffrail_apps::AppQuery;
use taffrail_apps::verbs::{Reconcile, Verb};
use taffrail_object::LabelSelector;

use crate::cli::{
    DryRun, HubSource, NameArguments, SourceArguments, TextOutput, label_selector, not_with_hub,
};

/// Reconcile an app now, and wait until it is ready: Flux applies it (with --with-source after a fetch), Argo CD
/// compares it (with --sync also applies it).
#[derive(Debug, Args)]
#[command(
    mut_args(with_times),
    after_help = "\
Examples:
  taffrail reconcile shop                        and wait until it is ready or has failed
  taffrail reconcile shop --with-source          Flux: fetch its source first
  taffrail reconcile hr/web/cache --force        Flux: upgrade the release even if nothing changed
  taffrail reconcile argo/api --sync             Argo CD: sync, not only compare
  taffrail reconcile shop --dry-run=server       show the change, validated by the server
  taffrail reconcile -l team=web --yes           all apps whose declaring object has a label

Written fields: for Flux the annotation reconcile.fluxcd.io/requestedAt (with --force and --reset also forceAt and
resetAt); for Argo CD the annotation argocd.argoproj.io/refresh, with --sync the field operation.

With --hub the hub writes, which needs a token that allows to act, and goes on if this command ends.

Exit codes: 0 done, and ready; 1 handled, but failed or not ready within --timeout; 2 wrong usage, not confirmed, or not
supported by the app's tool; 3 something could not be read or written."
)]
pub(crate) struct ReconcileArguments {
    /// Flux: fetch the app's source first, then reconcile the app; a suspended source is an error. A source in another
    /// namespace than the app needs a confirmation, or --yes
    #[arg(long)]
    pub(crate) with_source: bool,

    /// Flux HelmRelease: install or upgrade the release once, even if nothing changed
    #[arg(long)]
    pub(crate) force: bool,

    /// Flux HelmRelease: set the count of failed attempts back to zero, so that Flux tries again
    #[arg(long)]
    pub(crate) reset: bool,

    /// Argo CD: compare with manifests that it renders again, not with those in its cache (a hard refresh)
    #[arg(long)]
    pub(crate) hard: bool,

    /// Argo CD: apply the desired revision (sync), even if automatic sync is off; by default it only compares
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

/// Suspend an app: Flux stops reconciling it, Argo CD stops syncing it automatically.
#[derive(Debug, Args)]
#[command(
    mut_args(suspending),
    after_help = "\
Examples:
  taffrail suspend shop                          in every cluster that has it
  taffrail suspend shop --cluster eu-1
  taffrail suspend shop --dry-run=client         show the change, send nothing

Written fields: for Flux spec.suspend; for Argo CD spec.syncPolicy.automated.enabled, or, in versions without that
field, the policy is moved to the annotation taffrail.dev/suspended-automated. If a tool delivers the object itself, it
may revert the change; a warning says so.

With --hub the hub writes, which needs a token that allows to act, and goes on if this command ends.

Exit codes: 0 done; 2 wrong usage, not confirmed, or not supported by the app's tool; 3 something could not be read or
written."
)]
pub(crate) struct SuspendArguments {
    #[command(flatten)]
    pub(crate) acting: ActingArguments,
}

/// Resume a suspended app: its tool reconciles it now; then wait until it is ready.
#[derive(Debug, Args)]
#[command(
    mut_args(with_times),
    after_help = "\
Examples:
  taffrail resume shop
  taffrail resume shop --wait=false              do not wait until it is ready
  taffrail resume --all -n team-a --yes

Written fields: those of `taffrail suspend` are reverted, and a reconciliation is requested.

With --hub the hub writes, which needs a token that allows to act, and goes on if this command ends.

Exit codes: 0 done, and ready; 1 handled, but failed or not ready within --timeout; 2 wrong usage, not confirmed, or not
supported by the app's tool; 3 something could not be read or written."
)]
pub(crate) struct ResumeArguments {
    #[command(flatten)]
    pub(crate) acting: ActingArguments,
}

/// The default of `--request-timeout` of these commands.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Sets defaults and help texts of `--timeout` and `--request-timeout` for commands that wait, and the conflicts of
/// `--hub`; returns other arguments unchanged.
fn with_times(argument: clap::Arg) -> clap::Arg {
    match argument.get_id().as_str() {
        "timeout" => argument
            .default_value("5m")
            .help("Limit the time of the command as a whole, such as 5m or 90s: reading, writing, and waiting until the app is ready. If it is not by then, the exit code is 1"),
        "request_timeout" => argument.default_value("5s").help(
            "Limit the time of each request to a cluster, such as 5s; a longer one fails; 0 for no limit. In this release also the time that each cluster may take to answer first",
        ),
        _ => not_with_hub(argument),
    }
}

/// Changes an argument of `suspend` as [`with_times`] does, with a help text without waiting; hides `--wait`, since
/// suspending does not wait.
fn suspending(argument: clap::Arg) -> clap::Arg {
    match argument.get_id().as_str() {
        "timeout" => with_times(argument)
            .help("Limit the time of the command as a whole, such as 5m or 90s: reading and writing"),
        "wait" => argument.hide(true),
        _ => with_times(argument),
    }
}

/// The apps to act on, and the options for it.
#[derive(Debug, Args)]
pub(crate) struct ActingArguments {
    /// The apps to act on, each in every cluster that has it: NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME
    #[arg(value_name = "APP", required_unless_present_any = ["selector", "all"], conflicts_with_all = ["selector", "all"])]
    pub(crate) name: Vec<AppQuery>,

    /// Act on all Flux and Argo CD apps whose declaring object (such as the Kustomization) matches this label selector,
    /// as kubectl takes it: team=web,tier!=db
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = label_selector)]
    pub(crate) selector: Option<LabelSelector>,

    /// Act on all Flux and Argo CD apps; with -n or --cluster on those of that namespace and these clusters
    #[arg(long, conflicts_with = "selector")]
    pub(crate) all: bool,

    /// Do not ask for confirmation, which is needed to write to several clusters, to several apps of --all or -l, or to
    /// sources in another namespace than the app. Such a command exits with 2, and writes nothing, if it is not
    /// confirmed, or if there is neither a terminal nor --yes
    #[arg(short, long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) which: NameArguments,

    /// Show the change without writing it; --dry-run alone stands for --dry-run=client
    #[arg(
        long, value_enum, value_name = "BY", num_args = 0..=1, require_equals = true, default_value_t = DryRun::None,
        default_missing_value = "client"
    )]
    pub(crate) dry_run: DryRun,

    /// Output format: text prints each change when it is written, and its result; json one document at the end
    #[arg(short, long, value_enum, default_value_t = TextOutput::Text)]
    pub(crate) output: TextOutput,

    /// After writing, wait until the tool has handled the request and the app is ready or has failed, for --timeout at
    /// most; --wait=false does not wait, and then the exit code does not tell whether the app becomes ready
    #[arg(
        long, value_name = "TRUTH", action = ArgAction::Set, default_value_t = true, default_missing_value = "true",
        num_args = 0..=1, require_equals = true
    )]
    pub(crate) wait: bool,

    #[command(flatten)]
    pub(crate) source: SourceArguments,

    #[command(flatten)]
    pub(crate) hub: HubSource,
}
