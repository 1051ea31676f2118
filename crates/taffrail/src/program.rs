//! The name under which the program was called, and commands for users to copy.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::OnceLock;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory};
use taffrail_apps::command::quoted;

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

/// The options of this process' command line that choose what is read; set by [`remember`].
static GIVEN: OnceLock<ChosenOptions> = OnceLock::new();

/// The options of a command line that chooses nothing.
static NOTHING: ChosenOptions = ChosenOptions { options: Vec::new() };

/// Stores the options of the command line that choose what is read, for [`typed`] and its like.
pub(crate) fn remember(matches: &ArgMatches) {
    let _ = GIVEN.set(ChosenOptions::of(matches));
}

/// Returns a command of `taffrail`, `kubectl` or `helm` for the user to copy (another one unchanged): with [`name`] in
/// place of `taffrail`, and those of [`OF_INPUT`] that this process was given and the command takes. A command that
/// names contexts itself gets only `--kubeconfig`, `--config` and, unless dumps were read, `--now`; one that names
/// dumps or a hub only `--config`; one of kubectl or helm only `--kubeconfig`.
pub(crate) fn typed(command: &str) -> String {
    GIVEN.get().unwrap_or(&NOTHING).typed(command, None)
}

/// Returns what [`typed`] does between backticks, for a hint.
pub(crate) fn hinted(command: &str) -> String {
    format!("`{}`", typed(command))
}

/// Returns what [`hinted`] does; if the user gave `--context` or `--all-contexts`, a command of kubectl or helm also
/// gets the option that names `cluster` as its context, unless it names one.
pub(crate) fn hinted_for(cluster: &str, command: &str) -> String {
    typed_in(cluster, &format!("`{command}`"))
}

/// Returns the hint `text` with each command between backticks changed as [`hinted_for`] does.
pub(crate) fn typed_in(cluster: &str, text: &str) -> String {
    GIVEN.get().unwrap_or(&NOTHING).typed_in(cluster, text)
}

/// Returns a command that begins with `taffrail`, with [`name`] in its place and without further options, for a shell
/// that finds the clusters without them.
#[cfg(feature = "demo")]
pub(crate) fn named_as_called(command: &str) -> String {
    NOTHING.typed(command, None)
}

/// The options that choose what is read: their ids, and their names.
const OF_INPUT: [(&str, &str); 9] = [
    ("from", "--from"),
    ("context", "--context"),
    ("all_contexts", "--all-contexts"),
    ("kubeconfig", "--kubeconfig"),
    ("now", "--now"),
    ("hub", "--hub"),
    ("hub_token_file", "--hub-token-file"),
    ("hub_ca_file", "--hub-ca-file"),
    ("config", "--config"),
];

/// The options of a command line that choose what is read.
#[derive(Debug)]
struct ChosenOptions {
    /// The id and the name of each option, and its value as the user wrote it; `None` for a flag.
    options: Vec<(&'static str, &'static str, Option<String>)>,
}

impl ChosenOptions {
    /// Takes those of [`OF_INPUT`] that the command line itself gives, not defaults and settings, which are the same
    /// for the next command; none for `demo`. The token in a URL of `--hub` is left out.
    fn of(matches: &ArgMatches) -> ChosenOptions {
        let mut options = Vec::new();
        let mut inner = matches;
        // The demo writes the kubeconfig that it is given, and says how other commands find it.
        if matches.subcommand_name() == Some("demo") {
            return ChosenOptions { options };
        }
        while let Some((_, below)) = inner.subcommand() {
            inner = below;
        }
        for (id, option) in OF_INPUT {
            let is_known = inner.try_contains_id(id).is_ok();
            if !is_known || inner.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            if id == "all_contexts" {
                options.push((id, option, None));
                continue;
            }
            for value in inner.try_get_raw(id).ok().flatten().into_iter().flatten() {
                let value = value.to_string_lossy();
                let value = match id {
                    // The fragment is a secret.
                    "hub" => value.split('#').next().unwrap_or_default().to_owned(),
                    _ => value.into_owned(),
                };
                options.push((id, option, Some(value)));
            }
        }
        ChosenOptions { options }
    }

    fn has(&self, id: &str) -> bool {
        self.options.iter().any(|(own, ..)| *own == id)
    }

    /// Returns `cluster` if `--context` or `--all-contexts` was given, so that it need not be that of the current
    /// context; else `None`.
    fn chosen<'c>(&self, cluster: &'c str) -> Option<&'c str> {
        (self.has("context") || self.has("all_contexts")).then_some(cluster)
    }

    /// Returns what the function [`typed`] does, with these options. If `cluster` is given, a command of kubectl or
    /// helm also gets the option that names it as its context, unless the command names one.
    fn typed(&self, command: &str, cluster: Option<&str>) -> String {
        let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
        let names = |options: &[&str]| options.iter().any(|option| has(rest, option));
        let names_contexts = names(&["--context", "--kube-context", "--all-contexts"]);
        let (mut line, taken) = match program {
            "taffrail" if self.options.is_empty() => return format!("{} {rest}", name()),
            "taffrail" if names(&["--from", "--hub"]) => (format!("{} {rest}", name()), vec!["config"]),
            "taffrail" => (format!("{} {rest}", name()), taken(rest)),
            "kubectl" | "helm" => (command.to_owned(), vec!["kubeconfig"]),
            _ => return command.to_owned(),
        };
        if let Some(cluster) = cluster.filter(|_| program != "taffrail" && !names_contexts) {
            let option = if program == "helm" { "--kube-context" } else { "--context" };
            line.push_str(&format!(" {option} {}", quoted(cluster)));
        }
        for (id, option, value) in self.options.iter().filter(|(id, ..)| taken.contains(id)) {
            // A command that names contexts reads clusters, and those that it names.
            let fits = match *id {
                "kubeconfig" | "config" => true,
                "now" => !names_contexts || !self.has("from"),
                _ => !names_contexts,
            };
            if fits {
                // A value with a dash would be taken for an option.
                let gap = if value.as_ref().is_some_and(|it| it.len() > 1 && it.starts_with('-')) {
                    "="
                } else {
                    " "
                };
                line.push_str(&format!(" {option}"));
                line.extend(value.iter().map(|value| format!("{gap}{}", quoted(value))));
            }
        }
        line
    }

    /// Returns `text` with each command between backticks changed by [`ChosenOptions::typed`], with `cluster` if
    /// [`ChosenOptions::chosen`] returns it.
    fn typed_in(&self, cluster: &str, text: &str) -> String {
        let mut typed = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('`') {
            let Some(end) = end(after) else { break };
            let (command, after) = after.split_at(end);
            typed.push_str(&format!("{before}`{}`", self.typed(command, self.chosen(cluster))));
            rest = after.get(1..).unwrap_or_default();
        }
        typed.push_str(rest);
        typed
    }
}

/// Returns the byte offset of the backtick that ends a command; `None` if there is none outside of the quotes of a
/// name.
fn end(command: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    command.char_indices().find_map(|(at, character)| {
        is_quoted ^= character == '\'' && !is_escaped;
        is_escaped = character == '\\' && !is_quoted && !is_escaped;
        (character == '`' && !is_quoted).then_some(at)
    })
}

/// Returns true if `option` is a word of the command line `command`, outside of quotes.
fn has(command: &str, option: &str) -> bool {
    let plain = command.replace(r"\'", "");
    let outside = plain.split('\'').step_by(2);
    outside.into_iter().any(|part| part.split(' ').any(|word| word == option))
}

/// Returns the ids of those of [`OF_INPUT`] that the subcommand takes with which `command`, a command line without
/// `taffrail`, begins; `config` always.
fn taken(command: &str) -> Vec<&'static str> {
    // Building the definition of all commands takes longer than many lines of a view.
    static CLI: OnceLock<Command> = OnceLock::new();
    let mut inner = CLI.get_or_init(Cli::command);
    for word in command.split(' ') {
        match inner.find_subcommand(word) {
            Some(below) => inner = below,
            None => break,
        }
    }
    // The option for the settings is one of all commands.
    let takes = |id: &str| id == "config" || inner.get_arguments().any(|argument| argument.get_id() == id);
    OF_INPUT.into_iter().map(|(id, _)| id).filter(|id| takes(id)).collect()
}

/// Returns the definition of the command line, with [`name`] in place of `taffrail` in its usage lines and examples.
pub(crate) fn command() -> Command {
    named(Cli::command(), name())
}

/// Returns what [`command`] does, with only the subcommand that this process' command line begins with, if it does.
pub(crate) fn command_typed() -> Command {
    let first = std::env::args_os().nth(1);
    match first.as_deref().and_then(OsStr::to_str).and_then(Cli::command_for) {
        Some(alone) => named(alone, name()),
        None => command(),
    }
}

fn named(command: Command, name: &str) -> Command {
    if name == "taffrail" {
        return command;
    }
    rewritten(command.bin_name(name), name)
}

/// Returns a command with `taffrail` replaced by `name` in its examples and those of its subcommands.
fn rewritten(command: Command, name: &str) -> Command {
    let examples = command.get_after_help().map(ToString::to_string);
    let mut command = command;
    if let Some(examples) = examples {
        command = command.after_help(examples.replace("taffrail ", &format!("{name} ")));
    }
    let inner: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    inner.iter().fold(command, |command, inner| command.mut_subcommand(inner, |it| rewritten(it, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> ChosenOptions {
        ChosenOptions::of(&Cli::command().get_matches_from(line.split(' ')))
    }

    #[test]
    fn commands_read_what_the_caller_read() {
        let dumps = given("taffrail get apps --from a --from it's --now 2026-03-01T12:00:00Z --timeout 9s");
        let told = |command: &str| dumps.typed(command, None);
        assert_eq!(
            told("taffrail app shop -n web"),
            r"taffrail app shop -n web --from a --from 'it'\''s' --now 2026-03-01T12:00:00Z"
        );
        // What takes no dumps, or names contexts, reads none.
        assert_eq!(told("taffrail wait app/shop"), "taffrail wait app/shop");
        assert_eq!(told("taffrail explain shop --all-contexts"), "taffrail explain shop --all-contexts");
        assert_eq!(told("kubectl describe pod web -n shop"), "kubectl describe pod web -n shop");

        let clusters =
            given("taffrail tree shop --context a,b --context prod-* --kubeconfig k/c --config s.yaml");
        let told = |command: &str| clusters.typed(command, None);
        let place = "--context a,b --context 'prod-*' --kubeconfig k/c --config s.yaml";
        assert_eq!(told("taffrail get apps -o name"), format!("taffrail get apps -o name {place}"));
        assert_eq!(
            told("taffrail explain 'a --context b' --context a"),
            "taffrail explain 'a --context b' --context a --kubeconfig k/c --config s.yaml"
        );
        assert_eq!(
            told("taffrail explain 'a --context b'"),
            format!("taffrail explain 'a --context b' {place}")
        );
        assert_eq!(told("helm history web -n shop"), "helm history web -n shop --kubeconfig k/c");
        assert_eq!(told("taffrail config view"), "taffrail config view --config s.yaml");
        let odd = given("taffrail get apps --kubeconfig=-k").typed("taffrail get apps", None);
        assert_eq!(odd, "taffrail get apps --kubeconfig=-k");
        let all = given("taffrail rules why deploy/web --all-contexts");
        assert_eq!(
            all.typed("taffrail rules why deploy/web", None),
            "taffrail rules why deploy/web --all-contexts"
        );

        let hub = given("taffrail trust --hub http://127.0.0.1:7655/#secret --hub-token-file t");
        let told = |command: &str| hub.typed(command, None);
        assert_eq!(
            told("taffrail app shop"),
            "taffrail app shop --hub http://127.0.0.1:7655/ --hub-token-file t"
        );
        assert_eq!(told("taffrail explain shop --context one"), "taffrail explain shop --context one");
        let dump = given("taffrail dump --context one --kubeconfig k -o d");
        assert_eq!(dump.typed("taffrail get apps --from d", None), "taffrail get apps --from d");
        let demo = given("taffrail demo --kubeconfig k");
        assert_eq!(demo.typed("taffrail get apps", None), "taffrail get apps");
        assert_eq!(given("taffrail get apps").typed("taffrail app shop", None), "taffrail app shop");
    }

    #[test]
    fn commands_in_a_text_are_completed_too() {
        let text = "run `helm upgrade web CHART -n shop`, `kubectl get 'a`b'` or `taffrail app shop`; it`s";
        let told = given("taffrail suspend shop --context one,two --kubeconfig k").typed_in("one", text);
        assert_eq!(
            told,
            "run `helm upgrade web CHART -n shop --kube-context one --kubeconfig k`, `kubectl get 'a`b' --context one \
             --kubeconfig k` or `taffrail app shop --context one,two --kubeconfig k`; it`s"
        );
        assert_eq!(given("taffrail suspend shop").typed_in("one", text), text);
    }
}
