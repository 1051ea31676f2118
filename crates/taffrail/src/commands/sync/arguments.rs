//! Arguments of `taffrail sync`, `prune`, `destroy` and `rollback`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use taffrail_observe::InventoryArg;
use taffrail_plan::order::Dialect;

use crate::cli::{TextOutput, duration};
use crate::commands::wait::ClusterArguments;

/// Apply manifests as a set, in order, with hooks and waves, and wait until they are ready
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail sync --set shop -n shop -f deploy/             apply, and wait until all is ready
  taffrail sync --set shop -n shop -f deploy/ --prune     and delete what is not declared any more
  taffrail sync --set shop -n shop -f deploy/ --dry-run   show what would be done
  kustomize build . | taffrail sync --set shop -n shop -f -
  taffrail sync --set shop -n shop -f deploy/ --order flux --take-over kustomize-controller

The set remembers in its namespace what it applied: taffrail prune, destroy,
history and rollback work on it, and taffrail get apps shows it. A sync that
was interrupted continues when it is run again with the same manifests.

Waves, hooks and dependencies are those of the annotations of Argo CD and Helm
(--order argo), Flux, kpt or kapp. Fields of other managers are not taken
unless --force-conflicts or --take-over says so.

Exit codes: 0 all was applied and is ready; 1 something failed; 2 wrong usage,
or not confirmed; 3 a manifest is wrong, or something could not be read.")]
pub(crate) struct SyncArguments {
    /// Read manifests from this file, from all YAML and JSON files directly in this folder, or with - from stdin; may be
    /// given more than once
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) files: Vec<PathBuf>,

    /// Read the folders below the folders of -f, too
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,

    /// Name the revision of the manifests, such as a Git commit, in the history of the set
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) revision: String,

    /// Delete the objects of the set that the manifests do not declare any more
    #[arg(long)]
    pub(crate) prune: bool,

    /// Create the namespace of -n if it does not exist
    #[arg(long)]
    pub(crate) create_namespace: bool,

    #[command(flatten)]
    pub(crate) writing: WritingArguments,

    #[command(flatten)]
    pub(crate) running: RunArguments,
}

/// Delete the objects of a set, or of the inventory of another tool, that the manifests do not declare any more, and apply
/// nothing
#[derive(Debug, Args)]
#[command(mut_arg("set", |set| set.required(false).required_unless_present("inventory").conflicts_with("inventory")))]
#[command(after_help = "\
Examples:
  taffrail prune --set shop -n shop -f deploy/ --dry-run
  taffrail prune --set shop -n shop -f deploy/ --yes
  taffrail prune --set shop -n shop               by the manifests of its last run
  taffrail prune --inventory shop -n shop -f deploy/              of kpt
  taffrail prune --inventory kustomization/shop -n flux-system -f deploy/

Exit codes: 0 all is deleted; 1 something failed; 2 wrong usage, or not
confirmed; 3 a manifest is wrong, or something could not be read.")]
pub(crate) struct PruneArguments {
    /// Read manifests from this file, from all YAML and JSON files directly in this folder, or with - from stdin; may be
    /// given more than once [default: the manifests that the set kept of its last run]
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub(crate) files: Vec<PathBuf>,

    /// Read the folders below the folders of -f, too
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,

    /// Delete by the inventory of another tool instead of a set: [KIND/]NAME of a ResourceGroup, of a ConfigMap of
    /// cli-utils, of a Kustomization or HelmRelease of Flux, of an Application of Argo CD, or of the Secret or ConfigMap
    /// of a Helm release; without KIND a ResourceGroup, or a ConfigMap where the cluster has no ResourceGroups. Only
    /// objects with the mark of that app are deleted
    #[arg(long, value_name = "NAME", requires = "files")]
    pub(crate) inventory: Option<InventoryArg>,

    #[command(flatten)]
    pub(crate) running: RunArguments,
}

/// Delete all objects of a set in reverse order, and the set itself
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail destroy --set shop -n shop --dry-run
  taffrail destroy --set shop -n shop --yes

Exit codes: 0 all is deleted; 1 something failed; 2 wrong usage, or not
confirmed; 3 something could not be read.")]
pub(crate) struct DestroyArguments {
    #[command(flatten)]
    pub(crate) running: RunArguments,
}

/// Apply the manifests of an earlier run of a set again
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail history --set shop -n shop             the runs of the set, with their numbers
  taffrail rollback --set shop -n shop            to the good run before the last good one
  taffrail rollback --set shop -n shop --to 12

A set keeps the manifests of its last three good runs.

Exit codes: 0 all was applied and is ready; 1 something failed; 2 wrong usage,
or not confirmed; 3 no such run, or something could not be read.")]
pub(crate) struct RollbackArguments {
    /// Return to the run with this number [default: the good run before the last good one]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) to: Option<u64>,

    /// Delete the objects of the set that those manifests do not declare
    #[arg(long)]
    pub(crate) prune: bool,

    #[command(flatten)]
    pub(crate) writing: WritingArguments,

    #[command(flatten)]
    pub(crate) running: RunArguments,
}

/// The options about fields of others, and about objects that cannot change in place.
#[derive(Debug, Clone, Args)]
pub(crate) struct WritingArguments {
    /// Take the fields of all other managers
    #[arg(long)]
    pub(crate) force_conflicts: bool,

    /// Take the fields of this manager, as in metadata.managedFields: kustomize-controller, argocd-controller; may be given
    /// more than once
    #[arg(long, value_name = "MANAGER")]
    pub(crate) take_over: Vec<String>,

    /// Delete objects that cannot be changed in place, and create them again
    #[arg(long)]
    pub(crate) force: bool,

    /// Order the objects, wait and read annotations as this tool does
    #[arg(long, value_enum, value_name = "TOOL", default_value_t = OrderOf::Argo)]
    pub(crate) order: OrderOf,

    /// Read the annotations about the order of these tools, too, separated by commas
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    pub(crate) annotations: Vec<OrderOf>,
}

/// The options of each run of a set.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The name of the set
    #[arg(long, value_name = "NAME", required = true)]
    pub(crate) set: Option<String>,

    /// The namespace of the set and of objects without one [default: that of the context]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Delete guarded objects, too: Namespaces, CustomResourceDefinitions with objects, PersistentVolumeClaims, more than
    /// half of a set at once, and objects that demand a confirmation
    #[arg(long)]
    pub(crate) allow_prune: bool,

    /// Do not ask before deletions
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Show what would be done, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Wait until the objects of the last wave are ready, too
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) wait: bool,

    /// Limit the time of the run, such as 10m; what is not ready then has failed
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = duration)]
    pub(crate) timeout: Duration,

    /// Limit the time of each wave, such as 5m [default: no limit but --timeout]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) wave_timeout: Option<Duration>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = TextOutput::Text)]
    pub(crate) output: TextOutput,

    #[command(flatten)]
    pub(crate) clusters: ClusterArguments,
}

impl Default for WritingArguments {
    fn default() -> WritingArguments {
        WritingArguments {
            force_conflicts: false,
            take_over: Vec::new(),
            force: false,
            order: OrderOf::Argo,
            annotations: Vec::new(),
        }
    }
}

/// A tool whose order users know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderOf {
    /// Phases, waves and hooks of Argo CD, with the hooks of Helm
    Argo,
    /// The stages of Flux
    Flux,
    /// depends-on, as kpt reads it
    Kpt,
    /// Change groups and rules of kapp
    Kapp,
}

impl OrderOf {
    pub(crate) fn dialect(self) -> Dialect {
        match self {
            OrderOf::Argo => Dialect::Argo,
            OrderOf::Flux => Dialect::Flux,
            OrderOf::Kpt => Dialect::Kpt,
            OrderOf::Kapp => Dialect::Kapp,
        }
    }
}
