//! Under which name the program was called.

use std::path::Path;

use clap::{Command, CommandFactory};

use crate::cli::Cli;

/// What people type: `taffrail`, or `kubectl taffrail` where kubectl called it as its plugin.
pub(crate) fn name() -> &'static str {
    let called = std::env::args_os().next();
    let stem = called.as_deref().and_then(|called| Path::new(called).file_stem());
    match stem {
        Some(stem) if stem == "kubectl-taffrail" || stem == "kubectl_complete-taffrail" => "kubectl taffrail",
        _ => "taffrail",
    }
}

/// A command as people type it here, written with `taffrail`.
pub(crate) fn typed(command: &str) -> String {
    match command.strip_prefix("taffrail ") {
        Some(rest) => format!("{} {rest}", name()),
        None => command.to_owned(),
    }
}

/// The command line, whose help says what people type.
pub(crate) fn command() -> Command {
    named(Cli::command(), name())
}

fn named(command: Command, name: &str) -> Command {
    if name == "taffrail" {
        return command;
    }
    rewritten(command.bin_name(name), name)
}

/// The examples, with the name that people type.
fn rewritten(command: Command, name: &str) -> Command {
    let examples = command.get_after_help().map(ToString::to_string);
    let mut command = command;
    if let Some(examples) = examples {
        command = command.after_help(examples.replace("taffrail ", &format!("{name} ")));
    }
    let inner: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    inner.iter().fold(command, |command, inner| command.mut_subcommand(inner, |it| rewritten(it, name)))
}
