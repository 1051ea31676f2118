//! The words of the command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Is what was declared running, in every cluster, and what stands in the way where it is not?
#[derive(Debug, Parser)]
#[command(name = "taffrail", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Status(StatusArguments),
}

/// Show the status of objects from files, stdin or a cluster.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kubectl get deploy -A -o json | taffrail status -f -
  taffrail status -f manifests/ -R -o wide
  taffrail status -f pods.jsonl --input jsonl -o jsonl --rules kstatus

Exit codes: 0 answered; 1 with --exit-status when something is not ready; 2 wrong usage; 3 when an
input could not be read or judged (the rest is still shown).")]
pub(crate) struct StatusArguments {
    /// File, folder or - for stdin; may be given more than once
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Read the folders inside folders too
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,

    /// Form of the input
    #[arg(long, value_enum, default_value_t = InputFormat::Auto)]
    pub(crate) input: InputFormat,

    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t = StatusOutput::Table)]
    pub(crate) output: StatusOutput,

    /// Whose rules decide: Taffrail's, or kstatus' to the letter
    #[arg(long, value_enum, default_value_t = RuleSet::Taffrail)]
    pub(crate) rules: RuleSet,

    /// Which kstatus, where the two differ
    #[arg(long, value_enum, default_value_t = KstatusFork::Flux)]
    pub(crate) kstatus_fork: KstatusFork,

    /// Print the objects themselves with the standard conditions added (json, jsonl or yaml)
    #[arg(long)]
    pub(crate) augment: bool,

    /// Exit with 1 when something is not ready
    #[arg(long)]
    pub(crate) exit_status: bool,

    /// Take this for the current time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub(crate) now: Option<jiff::Timestamp>,

    /// How many threads judge objects [default: one per processor]
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// Look at the first bytes
    Auto,
    /// YAML documents
    Yaml,
    /// JSON values one after the other
    Json,
    /// One JSON object a line; each line gets one answer
    Jsonl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusOutput {
    Table,
    Wide,
    Json,
    Jsonl,
    Yaml,
    Name,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuleSet {
    Taffrail,
    Kstatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KstatusFork {
    /// github.com/fluxcd/cli-utils
    Flux,
    /// sigs.k8s.io/cli-utils
    KubernetesSigs,
}
