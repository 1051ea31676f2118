//! The arguments that name a hub.

use std::path::PathBuf;

use clap::Args;

use super::SourceArguments;
use crate::hub_url::HubUrl;

/// The arguments that name a hub to ask in place of clusters and dumps.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clusters and dumps")]
pub(crate) struct HubSource {
    /// Ask the hub (`taffrail hub serve`) at this URL instead of clusters: https://HOST:7655, or http://127.0.0.1:7655
    /// for one on this machine. The token may follow after #: http://127.0.0.1:7655#TOKEN
    #[arg(long, value_name = "URL", value_parser = HubUrl::parse, conflicts_with_all = [
        "context", "all_contexts", "kubeconfig", "from", "now", "request_timeout",
    ])]
    pub(crate) hub: Option<Box<HubUrl>>,

    #[command(flatten)]
    pub(crate) files: HubFiles,
}

/// The arguments that name the files with which a hub is asked: its token and its certificate authority.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Clusters and dumps")]
pub(crate) struct HubFiles {
    /// Read the token for the hub from this file [default: the token in the URL of --hub, else $TAFFRAIL_HUB_TOKEN]
    #[arg(long, value_name = "FILE", requires = "hub")]
    pub(crate) hub_token_file: Option<PathBuf>,

    /// Accept an https hub only if one of the certificate authorities in this PEM file issued its certificate [default:
    /// those of the system]
    #[arg(long, value_name = "FILE", requires = "hub")]
    pub(crate) hub_ca_file: Option<PathBuf>,
}

/// Makes an argument conflict with `--hub` if a hub takes no value for it, because its rules and labels are its own;
/// returns other arguments unchanged.
pub(crate) fn not_with_hub(argument: clap::Arg) -> clap::Arg {
    match argument.get_id().as_str() {
        "rules" | "pdb" | "app_label" => argument.conflicts_with("hub"),
        _ => argument,
    }
}

impl HubSource {
    /// Returns true if suggested commands must name a context: the answer comes from a hub, or from live clusters that
    /// `--context` (or the setting) or `--all-contexts` chose.
    pub(crate) fn names_contexts(&self, source: &SourceArguments) -> bool {
        // Of a hub's clusters none is that of the current context.
        let is_chosen = source.all_contexts || !source.context.is_empty();
        self.hub.is_some() || source.from.is_empty() && is_chosen
    }
}
