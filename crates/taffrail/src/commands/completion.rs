//! `taffrail completion`: prints shell completion scripts.

use std::io::Write;

use clap::{Args, ValueEnum};

use crate::command_error::{CommandError, Exit, written};
use crate::completion;
use crate::output::answer::Console;

/// Print a shell completion script for commands, flags, contexts, namespaces, kinds and apps.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(taffrail completion bash)             now; add it to ~/.bashrc to keep it
  source <(taffrail completion zsh)              in ~/.zshrc, after compinit
  taffrail completion fish > ~/.config/fish/completions/taffrail.fish
  taffrail completion kubectl | sh               `kubectl taffrail`, and its completion

Namespaces, kinds and apps are read from the clusters or dumps that the command line names; a cluster that does not
answer within a second contributes none.

Exit codes: 0 printed; 2 wrong usage.")]
pub(crate) struct CompletionArguments {
    /// Print the completion script for this shell; kubectl prints a script that makes `kubectl taffrail` work
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    /// A script for sh that links taffrail as a kubectl plugin, with its completion
    Kubectl,
}

pub(crate) fn run(arguments: &CompletionArguments, console: &Console) -> Result<Exit, CommandError> {
    let script = match arguments.shell {
        Shell::Bash => completion::script("bash")?,
        Shell::Zsh => completion::script("zsh")?,
        Shell::Fish => completion::script("fish")?,
        Shell::Kubectl => completion::for_kubectl(),
    };
    written(console.programs().write_all(script.as_bytes()))?;
    Ok(Exit::Yes)
}
