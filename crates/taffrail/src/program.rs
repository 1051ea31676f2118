//! The name under which the program was called.

use std::path::Path;

use clap::{Command, CommandFactory};

use crate::commands::Cli;

/// Returns the name that the user types: `taffrail`, or `kubectl taffrail` if kubectl called it as a plugin.
pub(crate) fn name() -> &'static str {
    let called = std::env::args_os().next();
    let stem = called.as_deref().and_then(|called| Path::new(called).file_stem());
    match stem {
        Some(stem) if stem == "kubectl-taffrail" || stem == "kubectl_complete-taffrail" => "kubectl taffrail",
        _ => "taffrail",
    }
}

/// Replaces `taffrail` at the start of a command by [`name`].
pub(crate) fn typed(command: &str) -> String {
    match command.strip_prefix("taffrail ") {
        Some(rest) => format!("{} {rest}", name()),
        None => command.to_owned(),
    }
}

/// Returns the clap command with [`name`] in its help.
pub(crate) fn command() -> Command {
    named(Cli::command(), name())
}

fn named(command: Command, name: &str) -> Command {
    if name == "taffrail" {
        return command;
    }
    rewritten(command.bin_name(name), name)
}

/// Replaces `taffrail` by `name` in the examples of a command and its subcommands.
fn rewritten(command: Command, name: &str) -> Command {
    let examples = command.get_after_help().map(ToString::to_string);
    let mut command = command;
    if let Some(examples) = examples {
        command = command.after_help(examples.replace("taffrail ", &format!("{name} ")));
    }
    let inner: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    inner.iter().fold(command, |command, inner| command.mut_subcommand(inner, |it| rewritten(it, name)))
}
