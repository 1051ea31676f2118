//! `taffrail config`: prints the settings and their origins.

use std::io::{self, Write};

use clap::{Args, Subcommand, ValueEnum};
use taffrail_api::{SettingList, SettingOrigin, SettingRow};

use crate::command_error::{CommandError, Exit, written};
use crate::config::{Config, Origin};
use crate::emit;
use crate::output::answer::Console;
use crate::output::screen;
use crate::output::table::{Cell, Table};
use crate::program;

/// Show the settings, which are the defaults of the commands' flags.
///
/// Settings come from a file, ~/.config/taffrail/config.yaml, and from the environment. A flag wins over the
/// environment, the environment over the file, the file over the default.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail config view                           all settings and their values
  taffrail config view --show-origin             with the file and line, or the variable, of each
  taffrail config view -o yaml                   as a settings file

A file:
  context: [\"@prod\"]             # used without --context
  timeout: 10s
  fleets:
    prod: [eu-1, us-1, \"edge-*\"] # taffrail get apps --context @prod
  output:
    apps: wide
  columns:
    resources: [cluster, kind, name, status, message]

Each setting except the fleets has a variable: TAFFRAIL_TIMEOUT=10s, TAFFRAIL_OUTPUT_APPS=wide. TAFFRAIL_CONFIG and
--config name another file. An unknown setting is an error.

Exit codes: 0 shown; 2 a setting is invalid.")]
pub(crate) struct ConfigArguments {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    View(ViewArguments),
}

/// Show all settings and their values.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail config view --show-origin
  TAFFRAIL_TIMEOUT=10s taffrail config view --show-origin
  taffrail config view -o yaml > ~/.config/taffrail/config.yaml

Exit codes: 0 shown; 2 a setting is invalid.")]
pub(crate) struct ViewArguments {
    /// Show also the origin of each value: file and line, environment variable, or default; JSON always contains it
    #[arg(long)]
    show_origin: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = ViewOutput::Table)]
    output: ViewOutput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ViewOutput {
    /// For people
    Table,
    /// Each setting with its value and origin
    Json,
    /// As a settings file
    Yaml,
}

pub(crate) fn run(
    arguments: &ConfigArguments,
    config: Config,
    console: &Console,
) -> Result<Exit, CommandError> {
    let ConfigCommand::View(arguments) = &arguments.command;
    let config = &config.with_defaults(&program::command());
    written(match arguments.output {
        ViewOutput::Table => table(arguments, config, console),
        ViewOutput::Yaml => yaml(arguments, config, console),
        ViewOutput::Json => json(config, console),
    })?;
    Ok(Exit::Yes)
}

fn table(arguments: &ViewArguments, config: &Config, console: &Console) -> io::Result<()> {
    let mut header = vec!["SETTING", "VALUE"];
    if arguments.show_origin {
        header.push("ORIGIN");
    }
    let mut table = Table::new(console.people(), header, screen());
    for value in &config.values {
        let mut row = vec![Cell::new(&value.key), Cell::new(value.values.join(","))];
        if arguments.show_origin {
            row.push(Cell::new(value.origin.to_string()));
        }
        table.row(row)?;
    }
    table.finish()
}

/// Prints the settings that have a value, in the form of the settings file.
fn yaml(arguments: &ViewArguments, config: &Config, console: &Console) -> io::Result<()> {
    let mut out = console.programs();
    let mut group = "";
    for value in config.values.iter().filter(|value| !value.values.is_empty()) {
        let (above, key) = value.key.split_once('.').unwrap_or(("", &value.key));
        if above != group {
            emit!(out, "{above}:")?;
            group = above;
        }
        let indent = if above.is_empty() { "" } else { "  " };
        // JSON is YAML; words that need no quotes are nicer without.
        let quoted =
            |text: &String| match text.chars().all(|it| it.is_ascii_alphanumeric() || "-_./".contains(it)) {
                true => text.clone(),
                false => serde_json::Value::from(text.as_str()).to_string(),
            };
        let words: Vec<String> = value.values.iter().map(quoted).collect();
        let words = if value.is_list { format!("[{}]", words.join(", ")) } else { words.join("") };
        let origin = if arguments.show_origin { format!(" # {}", value.origin) } else { String::new() };
        emit!(out, "{indent}{}: {words}{origin}", quoted(&key.to_owned()))?;
    }
    out.flush()
}

fn json(config: &Config, console: &Console) -> io::Result<()> {
    let items = config.values.iter().map(|value| SettingRow {
        key: value.key.clone(),
        about: value.about.into(),
        values: value.values.clone(),
        origin: match &value.origin {
            Origin::Default => SettingOrigin::Default,
            Origin::File { file, line } => {
                SettingOrigin::File { file: file.display().to_string(), line: *line }
            }
            Origin::Environment(variable) => SettingOrigin::Environment { variable: variable.clone() },
        },
    });
    let file = config.file.as_ref().map(|file| file.display().to_string());
    super::get::document(crate::cli::ListOutput::Json, &SettingList::new(file, items.collect()), console)
}
