//! Tests that the generated parts of `docs/` match the definitions.
//!
//! `cargo xtask docs` writes them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory};

use crate::cli::Cli;
use crate::{config, reasons};

/// Environment variable: if set, the tests write the files.
const VARIABLE: &str = "WRITE_DOCS";

/// The command that updates the files.
const HOW: &str = "cargo xtask docs";

/// Compares the files below `docs/` with their expected text, or writes them.
///
/// Man pages in `folder` that are not in `files` belong to no command and are removed.
fn check(folder: &str, files: &BTreeMap<String, String>) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let is_writing = std::env::var_os(VARIABLE).is_some();
    let folder: PathBuf = docs.join(folder);
    if is_writing {
        fs::create_dir_all(&folder).unwrap();
    }
    for (name, text) in files {
        let file = folder.join(name);
        if is_writing {
            fs::write(&file, text).unwrap();
        }
        let found = fs::read_to_string(&file).unwrap_or_default();
        assert!(found == *text, "{} is out of date: {HOW}", file.display());
    }
    for file in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_name().unwrap().to_str().unwrap();
        let is_generated = file.extension().is_some_and(|extension| extension == "1");
        if is_generated && !files.contains_key(name) {
            assert!(is_writing, "{} has no command: {HOW}", file.display());
            fs::remove_file(&file).unwrap();
        }
    }
}

fn root() -> Command {
    let mut root = Cli::command();
    root.build();
    root
}

/// Returns a command and all commands below it, except `help`.
fn all(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().filter(|it| it.get_name() != "help" && !it.is_hide_set());
    std::iter::once(command).chain(below.flat_map(all)).collect()
}

#[test]
fn man_pages_are_up_to_date() {
    // Pages name the others beside them; `help` has none.
    let root = Cli::command().disable_help_subcommand(true);
    let folder = tempfile::tempdir().unwrap();
    clap_mangen::generate_to(root, folder.path()).unwrap();
    let page = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
    };
    let pages: BTreeMap<String, String> = fs::read_dir(folder.path()).unwrap().map(page).collect();
    assert!(pages.contains_key("taffrail-get.1"), "{:?}", pages.keys());
    check("man", &pages);
}

#[test]
fn the_reference_of_commands_is_up_to_date() {
    let mut text = format!(
        "# Commands\n\nWritten by `{HOW}` from the definitions that `--help` shows; the same as man pages: [man/](man).\n\n"
    );
    let root = root();
    for command in all(&root) {
        let name = command.get_bin_name().unwrap_or("taffrail");
        writeln!(text, "* [`{name}`](#{}): {}", name.replace(' ', "-"), about(command)).unwrap();
    }
    text.push_str("* [Settings](#settings)\n");
    for command in all(&root) {
        reference(command, &mut text);
    }
    text.push_str("\n## Settings\n\n");
    text.push_str("Once for all commands, in `~/.config/taffrail/config.yaml` or in the environment: [config.md](config.md).\n\n");
    text.push_str("| setting | variable | |\n|---|---|---|\n");
    for setting in config::SETTINGS {
        writeln!(text, "| `{}` | `{}` | {} |", setting.key, setting.variable(), setting.about).unwrap();
    }
    text.push_str("| `fleets.NAME` | | The contexts that `@NAME` stands for |\n");
    check("", &BTreeMap::from([("cli.md".to_owned(), text)]));
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn reference(command: &Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or("taffrail");
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string().replace("Usage: ", "");
    write!(text, "\n## {name}\n\n{}\n\n```\n{usage}\n```\n", about.trim()).unwrap();
    let shown = |argument: &&Arg| {
        !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
    };
    let mut headings: Vec<Option<&str>> = Vec::new();
    for argument in command.get_arguments().filter(shown) {
        if !headings.contains(&argument.get_help_heading()) {
            headings.push(argument.get_help_heading());
        }
    }
    headings.sort_by_key(|heading| (heading.is_some(), *heading == Some("Everywhere")));
    for heading in headings {
        // Said once, of all commands.
        if heading == Some("Everywhere") && name != "taffrail" {
            continue;
        }
        writeln!(text, "\n| {} | |\n|---|---|", heading.unwrap_or("Arguments and options")).unwrap();
        for argument in command.get_arguments().filter(shown).filter(|it| it.get_help_heading() == heading) {
            writeln!(text, "| `{}` | {} |", words(argument), meaning(argument)).unwrap();
        }
    }
    if let Some(more) = command.get_after_help() {
        write!(text, "\n```text\n{}\n```\n", more.to_string().trim_end()).unwrap();
    }
}

/// Returns the syntax of an argument.
fn words(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let value = names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ");
    let has_value = argument.get_action().takes_values();
    if argument.is_positional() {
        return value.replace('|', "\\|");
    }
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let flags = [short, long].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let text = if has_value { format!("{flags} {value}") } else { flags };
    text.replace('|', "\\|")
}

fn meaning(argument: &Arg) -> String {
    let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let possible = argument.get_possible_values();
    let has_value = argument.get_action().takes_values();
    if has_value && !possible.is_empty() {
        let values =
            possible.iter().filter(|value| !value.is_hide_set()).map(|value| match value.get_help() {
                Some(help) => format!("`{}` ({help})", value.get_name()),
                None => format!("`{}`", value.get_name()),
            });
        write!(text, ": {}", values.collect::<Vec<_>>().join(", ")).unwrap();
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|it| it.to_string_lossy().into_owned()).collect();
    if has_value && !defaults.is_empty() {
        write!(text, " [default: {}]", defaults.join(" ")).unwrap();
    }
    text.replace('|', "\\|")
}

#[test]
fn the_table_of_errors_is_up_to_date() {
    let mut text = format!(
        "# Errors\n\nWhat could not be read is told on stderr with a hint, and in answers for programs as \
         `errors[].reason`. Written by `{HOW}`.\n\n| reason | what it means | what to do |\n|---|---|---|\n"
    );
    for (reason, meaning, hint) in reasons::table() {
        writeln!(text, "| `{reason}` | {meaning} | {hint} |").unwrap();
    }
    text.push_str(
        "\n## Exit codes\n\n| code | |\n|---|---|\n\
         | 0 | Answered. |\n\
         | 1 | The answer is no: with `--exit-status`, when something is not ready. |\n\
         | 2 | The command line, or something that is set, makes no sense. |\n\
         | 3 | Something that was asked for could not be read; the rest is shown. |\n\
         | 130 | Interrupted. |\n",
    );
    check("", &BTreeMap::from([("errors.md".to_owned(), text)]));
}

#[test]
fn every_command_has_examples_and_exit_codes() {
    let root = root();
    for command in all(&root) {
        let more = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for part in ["Examples:", "Exit codes:"] {
            assert!(more.contains(part), "{} has no {part}", command.get_name());
        }
    }
}
