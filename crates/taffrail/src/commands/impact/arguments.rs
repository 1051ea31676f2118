//! Arguments of `taffrail impact`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::commands::wait::ClusterArguments;

/// Show what a change of this Git repository does to the objects of clusters
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail impact main..HEAD                  what does this branch change?
  taffrail impact main...HEAD --all-contexts  its merge, in all clusters
  taffrail impact main...HEAD --branch main   only for apps that follow main
  taffrail impact HEAD~3.. --path deploy/web
  taffrail impact main...HEAD -o markdown > comment.md    for a pull request

Run it in a folder of the repository; the program git reads the commits.
Taffrail looks for the apps of the clusters that are delivered from this
repository, as its remotes are called, and from a folder with changes. The
manifests of the newer commit are compared with the live objects, as
'taffrail diff' does, and nothing is written. If no app of any cluster is
delivered from the repository, the changed manifests are compared with each
cluster.

Exit codes: 0 told; 2 wrong usage; 3 something could not be told.")]
pub(crate) struct ImpactArguments {
    /// The commits: BASE..HEAD, or BASE...HEAD for a merge of HEAD into BASE; a side that is left out is the commit that is
    /// checked out
    #[arg(value_name = "BASE..HEAD")]
    pub(crate) range: String,

    /// Look only for apps that a change of this file or folder concerns, meant from the working folder; may be given more
    /// than once
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) path: Vec<String>,

    /// Leave out apps that follow another branch, or a tag or commit, than this branch, into which the change goes
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,

    /// Compare objects without a namespace in this one, if no app is delivered from the repository [default: that of the
    /// context]
    #[arg(long, value_name = "NAME")]
    pub(crate) default_namespace: Option<String>,

    /// Ignore fields by the rules in this YAML file, as 'taffrail diff' does
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ignore_rules: Option<PathBuf>,

    /// Mask the values of this annotation, as those of Secrets; may be given more than once
    #[arg(long, value_name = "KEY")]
    pub(crate) mask_annotation: Vec<String>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = ImpactOutput::Text)]
    pub(crate) output: ImpactOutput,

    #[command(flatten)]
    pub(crate) clusters: ClusterArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImpactOutput {
    /// For people
    Text,
    Json,
    /// For a comment on a pull request
    Markdown,
}
