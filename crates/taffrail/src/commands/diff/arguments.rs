//! Arguments of `taffrail diff`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use taffrail_plan::diff::{ArgoIgnoreRule, FluxIgnoreRule};

use crate::cli::TextOutput;
use crate::commands::wait::ClusterArguments;

/// Show what an apply of manifests would change in clusters, and whose the fields are
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail diff -f deploy/                     what would change?
  taffrail diff -f deploy/ --all-contexts      in all clusters
  kustomize build . | taffrail diff -f -
  taffrail diff -f deploy/ --ignore-rules ignore.yaml
  taffrail diff -f app.yaml --field-manager kustomize-controller
  taffrail diff -f deploy/ --from eu-1.jsonl   in a cluster that was dumped

Taffrail asks each API server by a dry run of a server-side apply, and writes
nothing. Where there is none (no right, a webhook without dry runs, a dump), it
merges by the same rules itself, and says so.

+ is added, - removed, ~ changed. A field of another manager is a conflict.
Values of Secrets are masked: equal ones look alike.

Exit codes: 0 no differences; 1 differences; 2 wrong usage; 3 a manifest is
wrong, or something could not be compared.")]
pub(crate) struct DiffArguments {
    /// Read manifests from this file, from all YAML and JSON files directly in this folder, or with - from stdin; may be
    /// given more than once
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) files: Vec<PathBuf>,

    /// Read the folders below the folders of -f, too
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,

    /// Compare objects without a namespace in this one [default: that of the context]
    #[arg(long, value_name = "NAME")]
    pub(crate) default_namespace: Option<String>,

    /// Apply as this field manager, as in metadata.managedFields: kubectl, kustomize-controller, argocd-controller
    #[arg(long, value_name = "NAME", default_value = taffrail_cluster::FIELD_MANAGER)]
    pub(crate) field_manager: String,

    /// Ignore fields by the rules in this YAML file: ignoreDifferences, as in an Application of Argo CD, and ignore, as
    /// in a Kustomization of Flux
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ignore_rules: Option<PathBuf>,

    /// Mask the values of this annotation, as those of Secrets; may be given more than once
    #[arg(long, value_name = "KEY")]
    pub(crate) mask_annotation: Vec<String>,

    /// Show also what defaults and webhooks add where no manifest has a value
    #[arg(long)]
    pub(crate) all_fields: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = TextOutput::Text)]
    pub(crate) output: TextOutput,

    /// Compare with the objects of dumps instead of asking clusters, by Taffrail's own merge: each file is one cluster,
    /// and a folder stands for all YAML, JSON and JSONL files directly in it; may be given more than once
    #[arg(
        long,
        value_name = "FILE|DIR",
        value_hint = ValueHint::AnyPath,
        help_heading = "Clusters",
        conflicts_with_all = ["context", "all_contexts", "kubeconfig"]
    )]
    pub(crate) from: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) clusters: ClusterArguments,
}

/// A file of rules that ignore fields.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct WrittenRules {
    /// The option of that name in Argo CD's `resource.compareoptions`.
    pub(super) ignore_aggregated_roles: bool,
    pub(super) ignore_differences: Vec<ArgoIgnoreRule>,
    pub(super) ignore: Vec<FluxIgnoreRule>,
}
