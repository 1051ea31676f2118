//! Reads the settings from the file and the environment, with the origin of each value.
//!
//! A setting is parsed like the value of its flag and becomes the flag's default, so the flag wins. The environment
//! wins over the file.

mod file;

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, ValueEnum};

use crate::cli::What;
use crate::command_error::CommandError;
use crate::commands::get;
use crate::program;

/// The definition of a setting, with the flag, if any, of which it sets the default.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The setting's name in the file, such as `output.apps`.
    pub(crate) key: &'static str,
    pub(crate) about: &'static str,
    flag: Option<&'static str>,
    of: Of,
    is_list: bool,
}

/// The commands of whose flag a setting sets the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Every command that has the flag.
    All,
    /// The command of this name.
    Command(&'static str),
    /// `get` with this list, such as `apps`.
    List(&'static str),
}

const fn one(key: &'static str, flag: &'static str, of: Of, about: &'static str) -> Setting {
    Setting { key, about, flag: Some(flag), of, is_list: false }
}

const fn list(key: &'static str, flag: &'static str, of: Of, about: &'static str) -> Setting {
    Setting { key, about, flag: Some(flag), of, is_list: true }
}

/// All settings, in the order in which they are shown.
pub(crate) const SETTINGS: &[Setting] = &[
    list(
        "context",
        "context",
        Of::All,
        "The contexts of the kubeconfig to read when no --context is given: names, @FLEET, or patterns like prod-*",
    ),
    one(
        "timeout",
        "timeout",
        Of::All,
        "Time limit of a command that only reads, or, if request-timeout is not set, of each cluster; of reconcile, suspend, resume and dump that of each request",
    ),
    one(
        "request-timeout",
        "request_timeout",
        Of::All,
        "Time limit of each request to a cluster; a longer one fails; 0 for no limit",
    ),
    list(
        "app-label",
        "app_label",
        Of::All,
        "Labels whose value names the app of an object that no tool declares; the first one that the object has counts",
    ),
    one(
        "rules",
        "rules",
        Of::All,
        "Rules that judge objects: taffrail, kstatus, or a folder with rules that are tried before Taffrail's",
    ),
    Setting {
        key: "argocd",
        about: "Namespaces of the Argo CDs whose Lua scripts Taffrail trusts: NAMESPACE in every cluster, or CLUSTER/NAMESPACE in one",
        flag: None,
        of: Of::All,
        is_list: true,
    },
    Setting {
        key: "trusted-homes",
        about: "Clusters (context names, @FLEET) whose rules may also improve the status of objects in other clusters; rules of other clusters can only make it worse",
        flag: None,
        of: Of::All,
        is_list: true,
    },
    one(
        "pdb",
        "pdb",
        Of::All,
        "Effect of a PodDisruptionBudget on the status of the Deployment whose Pods it protects",
    ),
    one("color", "color", Of::All, "Print colours: auto (on a terminal), always or never"),
    Setting {
        key: "pager",
        about: "Program that shows answers longer than the screen; `never` prints them directly [default: $PAGER, or less]",
        flag: None,
        of: Of::All,
        is_list: false,
    },
    one("output.apps", "output", Of::List("apps"), "Output format of `taffrail get apps`"),
    one("output.clusters", "output", Of::List("clusters"), "Output format of `taffrail get clusters`"),
    one("output.resources", "output", Of::List("resources"), "Output format of `taffrail get resources`"),
    one("output.app", "output", Of::Command("app"), "Output format of `taffrail app`"),
    one("output.tree", "output", Of::Command("tree"), "Output format of `taffrail tree`"),
    one("output.object", "output", Of::Command("object"), "Output format of `taffrail object`"),
    one("output.events", "output", Of::Command("events"), "Output format of `taffrail events`"),
    one("output.explain", "output", Of::Command("explain"), "Output format of `taffrail explain`"),
    one("output.trust", "output", Of::Command("trust"), "Output format of `taffrail trust`"),
    one("output.status", "output", Of::Command("status"), "Output format of `taffrail status`"),
    list(
        "columns.apps",
        "columns",
        Of::List("apps"),
        "Columns of the table of `taffrail get apps`, in this order",
    ),
    list(
        "columns.clusters",
        "columns",
        Of::List("clusters"),
        "Columns of the table of `taffrail get clusters`, in this order",
    ),
    list(
        "columns.resources",
        "columns",
        Of::List("resources"),
        "Columns of the table of `taffrail get resources`, in this order",
    ),
];

/// The character that marks the name of a fleet among contexts, as in `@prod`.
const FLEET: char = '@';

impl Setting {
    /// Returns the name of the setting's environment variable: `TAFFRAIL_OUTPUT_APPS` for `output.apps`.
    pub(crate) fn variable(&self) -> String {
        format!("TAFFRAIL_{}", self.key.to_uppercase().replace(['.', '-'], "_"))
    }

    /// Returns the flag whose default the setting sets, of the first command that has it; `None` if the setting sets no
    /// flag, or this build has no such command.
    fn argument<'c>(&self, root: &'c Command) -> Option<&'c Arg> {
        let find = |command: &'c Command| {
            command.get_arguments().find(|argument| Some(argument.get_id().as_str()) == self.flag)
        };
        let has = |command: &&Command| match self.of {
            Of::All => true,
            Of::Command(name) => command.get_name() == name,
            Of::List(_) => command.get_name() == "get",
        };
        find(root).or_else(|| root.get_subcommands().filter(has).find_map(find))
    }

    /// Returns the error message for a value that the setting's flag does not accept; `None` if it does, or if the
    /// setting has no flag.
    fn fault(&self, root: &Command, value: &str) -> Option<String> {
        let argument = self.argument(root)?;
        let possible: Vec<_> = argument.get_possible_values();
        if !possible.is_empty() {
            let names: Vec<&str> = possible.iter().map(clap::builder::PossibleValue::get_name).collect();
            return (!names.contains(&value)).then(|| {
                let nearest = nearest(value, names.iter().copied());
                let meant = nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
                format!("'{value}' is not one of {}{meant}", names.join(", "))
            });
        }
        let alone = Arg::new("value").long("value").value_parser(argument.get_value_parser().clone());
        let parsed = Command::new("value").no_binary_name(true).arg(alone);
        let error = parsed.try_get_matches_from([format!("--value={value}")]).err()?;
        let why = std::error::Error::source(&error).map(|why| format!(": {why}")).unwrap_or_default();
        Some(format!("'{value}' is not a valid value of the setting{why}"))
    }
}

/// The place where the value of a setting comes from: the default, a line of the file, or an environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File { file: PathBuf, line: u64 },
    Environment(String),
}

impl Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { file, line } => write!(f, "{}:{line}", file.display()),
            Origin::Environment(variable) => write!(f, "${variable}"),
        }
    }
}

/// A setting with its value and origin.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) key: String,
    /// The description of the setting, for users.
    pub(crate) about: &'static str,
    /// The value, or the items of a list; empty if nothing sets it and it has no default.
    pub(crate) values: Vec<String>,
    pub(crate) is_list: bool,
    pub(crate) origin: Origin,
}

/// All settings with their values, and the file that was read.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// The settings file that was read; `None` if there is none.
    pub(crate) file: Option<PathBuf>,
    /// The settings in the order of [`SETTINGS`], then the fleets in that of the file.
    pub(crate) values: Vec<Value>,
}

impl Config {
    /// Reads the settings from one file (`explicit`, else that which `TAFFRAIL_CONFIG` names, else the default file if
    /// it exists), and then from the environment, which wins. `root` is the command whose flags check the values, used
    /// only if there are any; `home` is the home directory. The pager is that of the setting, else `$PAGER`, else
    /// `less`; other defaults are left out, see [`Config::with_defaults`]. Fails if the file cannot be read, and for an
    /// unknown setting or an invalid value.
    pub(crate) fn load(
        root: impl Deref<Target = Command>,
        explicit: Option<&Path>,
        environment: impl Fn(&str) -> Option<OsString>,
        home: Option<PathBuf>,
    ) -> Result<Config, CommandError> {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        let named = explicit.map(Path::to_owned).or_else(|| set("TAFFRAIL_CONFIG").map(PathBuf::from));
        let usual = || file::usual_place(set("XDG_CONFIG_HOME"), home).filter(|file| file.exists());
        let file = named.or_else(usual);
        let entries = file.as_deref().map(file::read).transpose()?.unwrap_or_default();

        let mut values: Vec<Value> = SETTINGS.iter().map(unset).collect();
        let mut fleets = Vec::new();
        for entry in entries {
            // Entries exist only if a file was read.
            let place = file.clone().unwrap_or_default();
            let origin = Origin::File { file: place, line: entry.line };
            let wrong = |what: String| CommandError::usage(format!("settings file {origin}: {what}"));
            if let Some(name) = entry.key.strip_prefix("fleets.") {
                if name.contains('.') {
                    return Err(wrong(format!(
                        "'{}' is not a fleet: a fleet is a list of contexts",
                        entry.key
                    )));
                }
                let about = "The contexts that this fleet stands for, as @NAME where contexts are expected";
                fleets.push(Value { key: entry.key, about, values: entry.values, is_list: true, origin });
                continue;
            }
            let Some(at) = SETTINGS.iter().position(|setting| setting.key == entry.key) else {
                let complaint = wrong(format!("there is no setting '{}'", entry.key));
                return Err(complaint.hint(known(&entry.key)));
            };
            check(&root, &SETTINGS[at], &entry.values)
                .map_err(|what| wrong(format!("setting '{}': {what}", entry.key)))?;
            values[at] = Value { origin: origin.clone(), values: entry.values, ..values[at].clone() };
        }
        for (value, setting) in values.iter_mut().zip(SETTINGS) {
            let variable = setting.variable();
            let Some(text) = set(&variable) else { continue };
            let wrong = |what: &str| CommandError::usage(format!("${variable}: {what}"));
            let text =
                text.into_string().map_err(|_| wrong("the value of the variable is not UTF-8 text"))?;
            value.values = if setting.is_list {
                text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
            } else {
                vec![text]
            };
            check(&root, setting, &value.values).map_err(|what| wrong(&what))?;
            value.origin = Origin::Environment(variable);
        }
        // $PAGER counts as a setting.
        for value in values.iter_mut().filter(|value| value.key == "pager" && value.origin == Origin::Default)
        {
            let pager = set("PAGER").and_then(|pager| pager.into_string().ok());
            let is_set = pager.is_some();
            value.values = vec![pager.unwrap_or_else(|| "less".to_owned())];
            if is_set {
                value.origin = Origin::Environment("PAGER".to_owned());
            }
        }
        values.extend(fleets);
        Ok(Config { file, values })
    }

    /// Adds to each setting that nothing sets the default of its flag, of the first command of `root` that has it.
    pub(crate) fn with_defaults(mut self, root: &Command) -> Config {
        for (value, setting) in self.values.iter_mut().zip(SETTINGS) {
            if let Some(argument) = setting.argument(root).filter(|_| value.origin == Origin::Default) {
                let defaults = argument.get_default_values().iter();
                value.values = defaults.map(|default| default.to_string_lossy().into_owned()).collect();
            }
        }
        self
    }

    /// Returns the value of the setting `key`, of a list the first one; `None` if nothing sets it, or the list is
    /// empty.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let value = self.values.iter().find(|value| value.key == key)?;
        value.values.first().map(String::as_str)
    }

    /// Returns all values of the setting `key`; empty if nothing sets it.
    pub(crate) fn list(&self, key: &str) -> &[String] {
        self.values.iter().find(|value| value.key == key).map_or(&[], |value| &value.values)
    }

    /// Returns the flags whose defaults the file or the environment sets for the subcommand `command`, each with its
    /// setting's value. `word` is the first argument of the subcommand, such as the list of `get`. The subcommand need
    /// not have a flag of a setting that concerns all.
    fn flags<'c>(
        &'c self,
        command: &'c str,
        word: Option<&'c str>,
    ) -> impl Iterator<Item = (&'static str, &'c Value)> {
        self.values.iter().zip(SETTINGS).filter_map(move |(value, setting)| {
            let is_concerned = match setting.of {
                Of::All => true,
                Of::Command(name) => name == command,
                Of::List(name) => command == "get" && word == Some(name),
            };
            Some((setting.flag.filter(|_| is_concerned && value.origin != Origin::Default)?, value))
        })
    }

    /// Returns true if [`Config::apply`] may change a default for the subcommand `command`, whose first argument is
    /// `word`: if the file or the environment sets a setting of it, or of all commands.
    pub(crate) fn concerns(&self, command: &str, word: Option<&str>) -> bool {
        self.flags(command, word).next().is_some()
    }

    /// Returns `root` with the settings that the file or the environment sets as defaults of its own flags and of those
    /// of its subcommand `command`; `timeout` becomes that of `--request-timeout` for `reconcile`, `suspend`, `resume`
    /// and `dump`. `word` is the first argument of the subcommand, such as the list of `get`.
    pub(crate) fn apply(&self, mut root: Command, command: &str, word: Option<&str>) -> Command {
        for (flag, value) in self.flags(command, word) {
            // These commands know other times to answer; in this release the setting is theirs for each cluster.
            let flag = match (flag, command) {
                ("timeout", "reconcile" | "suspend" | "resume" | "dump") => "request_timeout",
                _ => flag,
            };
            let has = |command: &Command| command.get_arguments().any(|it| it.get_id().as_str() == flag);
            let set = |command: Command| {
                command.mut_arg(flag, |argument| argument.default_values(value.values.iter().cloned()))
            };
            if has(&root) {
                root = set(root);
            } else if root.find_subcommand(command).is_some_and(has) {
                root = root.mut_subcommand(command, set);
            }
        }
        root
    }

    /// Returns the name of each fleet, with `@` before it, and its contexts.
    pub(crate) fn fleets(&self) -> impl Iterator<Item = (String, &[String])> {
        self.values.iter().filter_map(|value| {
            Some((format!("{FLEET}{}", value.key.strip_prefix("fleets.")?), value.values.as_slice()))
        })
    }

    /// Returns `names` with each `@FLEET` replaced by the contexts of that fleet. Fails for an unknown fleet.
    pub(crate) fn contexts(&self, names: &[String]) -> Result<Vec<String>, CommandError> {
        let mut contexts = Vec::new();
        for name in names {
            if !name.starts_with(FLEET) {
                contexts.push(name.clone());
                continue;
            }
            let Some((_, members)) = self.fleets().find(|(fleet, _)| fleet == name) else {
                let complaint = CommandError::usage(format!("the settings define no fleet '{name}'"));
                let known: Vec<String> = self.fleets().map(|(fleet, _)| fleet).collect();
                let hint = match known.as_slice() {
                    [] => {
                        let command = program::hinted("taffrail config --help");
                        format!("the settings define no fleet; {command} shows how to define one")
                    }
                    known => format!("the settings define {}", known.join(", ")),
                };
                return Err(complaint.hint(hint));
            };
            contexts.extend(members.iter().cloned());
        }
        Ok(contexts)
    }
}

fn unset(setting: &Setting) -> Value {
    Value {
        key: setting.key.to_owned(),
        about: setting.about,
        values: Vec::new(),
        is_list: setting.is_list,
        origin: Origin::Default,
    }
}

fn check(root: &Command, setting: &Setting, values: &[String]) -> Result<(), String> {
    if !setting.is_list && values.len() != 1 {
        return Err("the setting takes one value, not a list".to_owned());
    }
    if let Of::List(what) = setting.of
        && setting.flag == Some("columns")
    {
        let what = What::from_str(what, false)?;
        let unknown = values.iter().find(|value| get::column(what, value).is_none());
        let names = || get::column_names(what).join(", ");
        return unknown.map_or(Ok(()), |name| {
            Err(format!("there is no column '{name}'; the columns are: {}", names()))
        });
    }
    values.iter().try_for_each(|value| setting.fault(root, value).map_or(Ok(()), Err))
}

/// Returns a hint for the unknown setting `key`: the settings below it if it is a group, the most similar one, or the
/// command that lists all.
fn known(key: &str) -> String {
    let inside: Vec<&str> = SETTINGS
        .iter()
        .map(|setting| setting.key)
        .filter(|known| known.strip_prefix(key).is_some_and(|rest| rest.starts_with('.')))
        .collect();
    if !inside.is_empty() {
        return format!("'{key}' is a group: set one of the settings in it: {}", inside.join(", "));
    }
    let keys = SETTINGS.iter().map(|setting| setting.key).chain(["fleets"]);
    match nearest(key, keys) {
        Some(key) => format!("did you mean {key}?"),
        None => format!("{} lists all settings", program::hinted("taffrail config view")),
    }
}

/// Returns the word in `words` that is most similar to `wrong`, in any case; `None` if none is similar enough.
fn nearest<'w>(wrong: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    const SIMILAR: f64 = 0.7;

    let rated = words.map(|word| (strsim::jaro(&wrong.to_lowercase(), word), word));
    rated
        .filter(|(rate, _)| *rate > SIMILAR)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, word)| word)
}
