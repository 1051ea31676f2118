//! Arguments of `taffrail status`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use taffrail_api::question::StatusView;
use taffrail_observe::input::InputShape;

use crate::cli::{HubFiles, SourceArguments, TextOutput};
use crate::commands::watch::Form;
use crate::hub_url::HubUrl;
use crate::rule_source::RuleSource;

/// Show the status of objects in files, stdin or clusters.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail status deploy/web svc/web -n shop     two objects in the cluster
  taffrail status deploy,sts -A -l team=blue     all Deployments and StatefulSets with a label
  kubectl get deploy -A -o json | taffrail status -f -
  taffrail status -f manifests/ -R -o wide
  taffrail status deploy/web -n shop --hub http://127.0.0.1:7655
  taffrail status -f pods.jsonl --input jsonl -o jsonl --rules kstatus

Exit codes: 0 answered; 1 with --exit-status when something is not ready; 2 wrong usage; 3 some data could not be
read or judged (the rest is still shown).")]
pub(crate) struct StatusArguments {
    /// Objects in the clusters: KIND/NAME …, KIND NAME …, KIND,… for all objects of these kinds, or
    /// [CLUSTER/]group/Kind/namespace/name …, as printed by `get resources -o name`
    #[arg(value_name = "KIND/NAME", conflicts_with = "files")]
    pub(crate) objects: Vec<String>,

    /// Judge the objects in this file, in the YAML, JSON and JSONL files directly in this folder (see -R), or in stdin
    /// (-), instead of objects in clusters; may be given more than once
    #[arg(short, long = "filename", value_name = "FILE", conflicts_with_all = ["from", "context", "all_contexts"])]
    pub(crate) files: Vec<PathBuf>,

    /// With kinds, without names and --from: judge only their objects that match this label selector, such as
    /// team=blue,tier!=db
    #[arg(short = 'l', long, value_name = "LABELS", requires = "objects")]
    pub(crate) selector: Option<String>,

    /// Look for namespaced objects in this namespace [default: that of the context; in dumps any]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces", requires = "objects")]
    pub(crate) namespace: Option<String>,

    /// Judge the objects of a kind in all namespaces; an object given by name needs -n instead
    #[arg(short = 'A', long, requires = "objects")]
    pub(crate) all_namespaces: bool,

    /// With -f DIR: read also the files in its subfolders, at all depths
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,

    /// With -f: read the input in this format
    #[arg(long, value_enum, default_value_t = InputFormat::Auto)]
    pub(crate) input: InputFormat,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = StatusOutput::Table)]
    pub(crate) output: StatusOutput,

    /// Judge objects by these rules: taffrail for Taffrail's own, kstatus for those of kstatus alone, or a folder with
    /// rules that are tried before Taffrail's
    #[arg(long, value_name = "taffrail|kstatus|DIR", default_value = "taffrail", value_parser = RuleSource::read, value_hint = ValueHint::DirPath)]
    pub(crate) rules: RuleSource,

    /// With --rules kstatus: judge as this variant of kstatus does where the two variants differ [default: flux]
    #[arg(long, value_enum)]
    pub(crate) kstatus_fork: Option<KstatusFork>,

    /// Print the objects themselves instead of their statuses, with the condition Reconciling (if an object is
    /// InProgress) or Stalled (if it is Failed) set to True in status.conditions; needs -o json, jsonl or yaml
    #[arg(long)]
    pub(crate) augment: bool,

    /// Exit with 1 when the status of an object that is shown is not Ready, or the namespace of -n does not exist
    #[arg(long)]
    pub(crate) exit_status: bool,

    /// Show the statuses, then update them as the clusters change, until Ctrl-C: redrawn on a terminal, elsewhere as
    /// added lines
    #[arg(short, long, requires = "objects", conflicts_with_all = ["files", "from", "now", "exit_status"])]
    pub(crate) watch: bool,

    /// With -f: compute the statuses of objects in this many threads [default: one per processor]
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(crate) source: SourceArguments,

    /// Ask the hub (`taffrail hub serve`) at this URL instead of clusters: https://HOST:7655, or http://127.0.0.1:7655
    /// for one on this machine. The token may follow after #: http://127.0.0.1:7655#TOKEN
    #[arg(
        long, value_name = "URL", value_parser = HubUrl::parse, help_heading = "Clusters and dumps",
        conflicts_with_all = [
            "files", "recursive", "rules", "kstatus_fork", "augment", "watch", "context", "all_contexts",
            "kubeconfig", "from", "now", "request_timeout",
        ]
    )]
    pub(crate) hub: Option<Box<HubUrl>>,

    #[command(flatten)]
    pub(crate) hub_files: HubFiles,

    /// The output format of `rules why`, which prints the evaluated rules instead of the statuses; `None` for `status`.
    /// Not an option.
    #[arg(skip)]
    pub(crate) why: Option<TextOutput>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// Detect the format from the first bytes
    Auto,
    /// YAML documents, separated by ---
    Yaml,
    /// JSON values, one after the other
    Json,
    /// One JSON object per line; with -o jsonl each line of input gets exactly one line of output
    Jsonl,
}

impl InputFormat {
    /// Returns the format for the parser; `None` for [`InputFormat::Auto`].
    pub(super) fn shape(self) -> Option<InputShape> {
        match self {
            InputFormat::Auto => None,
            InputFormat::Yaml => Some(InputShape::Yaml),
            InputFormat::Json => Some(InputShape::Json),
            InputFormat::Jsonl => Some(InputShape::Lines { exact: true }),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusOutput {
    /// For people, as wide as the terminal
    Table,
    /// A table with all columns; those that do not fit the terminal stand below their row
    Wide,
    /// One JSON document
    Json,
    /// A line of JSON for each object
    Jsonl,
    Yaml,
    /// The full name of each object
    Name,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KstatusFork {
    /// github.com/fluxcd/cli-utils
    Flux,
    /// sigs.k8s.io/cli-utils
    KubernetesSigs,
}

impl StatusArguments {
    /// Returns the arguments that name objects, as parameters of a view.
    pub(super) fn view(&self) -> StatusView {
        StatusView {
            objects: self.objects.clone(),
            namespace: self.namespace.clone(),
            all_namespaces: self.all_namespaces,
            selector: self.selector.clone(),
        }
    }

    /// Returns the layout in which `-w` adds answers to the output.
    pub(crate) fn form(&self) -> Form {
        match self.output {
            StatusOutput::Table | StatusOutput::Wide | StatusOutput::Name | StatusOutput::Jsonl => {
                Form::Lines
            }
            StatusOutput::Json => Form::Json,
            StatusOutput::Yaml => Form::Yaml,
        }
    }
}
