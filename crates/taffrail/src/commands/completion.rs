//! `taffrail completion`: prints shell completion scripts.

use std::io::Write;

use clap::{Args, ValueEnum};

use crate::complaint::{Complaint, Exit, written};
use crate::completion;
use crate::output::answer;

/// Print the script that makes a shell complete commands, flags, contexts, namespaces, kinds and apps.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(taffrail completion bash)             now; put it into ~/.bashrc for always
  source <(taffrail completion zsh)              in ~/.zshrc, after compinit
  taffrail completion fish > ~/.config/fish/completions/taffrail.fish
  taffrail completion kubectl | sh               `kubectl taffrail`, and its completion

Namespaces, kinds and apps are asked of the clusters, or of the dumps, that the line names; a cluster that does not
answer within a second has none.

Exit codes: 0 printed; 2 wrong usage.")]
pub(crate) struct CompletionArguments {
    /// Which shell, or kubectl
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    /// Links for a plugin of kubectl
    Kubectl,
}

pub(crate) fn run(arguments: &CompletionArguments) -> Result<Exit, Complaint> {
    let script = match arguments.shell {
        Shell::Bash => completion::script("bash")?,
        Shell::Zsh => completion::script("zsh")?,
        Shell::Fish => completion::script("fish")?,
        Shell::Kubectl => completion::for_kubectl(),
    };
    written(answer::programs().write_all(script.as_bytes()))?;
    Ok(Exit::Yes)
}
