//! Scripts by group and kind, in the layouts of folders and of `argocd-cm`.

use std::collections::BTreeMap;

use serde::Deserialize;
use taffrail_object::{Glob, yaml};

use super::error::{LuaError, LuaProblem};
use super::machine::Code;

/// A compiled script, or the reason it cannot be parsed.
pub(super) type Read = Result<Code, LuaError>;

/// Scripts by group and kind.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    /// The scripts by `group/Kind`, or by the kind alone if it has no group.
    kinds: BTreeMap<String, OfKind>,
    /// The patterns of kind names that have a health script, each with its key in `kinds`, in the order in which they
    /// are consulted.
    patterns: Vec<(Glob, String)>,
}

/// The scripts of one kind.
#[derive(Debug, Default)]
pub(super) struct OfKind {
    pub(super) health: Option<Read>,
    pub(super) actions: Option<Actions>,
}

/// The action scripts of one kind.
#[derive(Debug, Default)]
pub(super) struct Actions {
    pub(super) discovery: Option<Read>,
    pub(super) named: BTreeMap<String, Read>,
    /// True if the actions of the built-in scripts are added to these.
    pub(super) merges: bool,
}

impl Scripts {
    pub(super) fn of_folder<'t>(files: impl IntoIterator<Item = (&'t str, &'t str)>) -> Scripts {
        let mut kinds: BTreeMap<String, OfKind> = BTreeMap::new();
        for (path, text) in files {
            let Some((kind, file)) = place(path) else { continue };
            // Some file systems do not allow `*` in names.
            let of_kind = kinds.entry(kind.replace('_', "*")).or_default();
            let code = Code::read(path, text);
            match file {
                File::Health => of_kind.health = Some(code),
                File::Discovery => of_kind.actions.get_or_insert_default().discovery = Some(code),
                File::Action(name) => {
                    drop(of_kind.actions.get_or_insert_default().named.insert(name.to_owned(), code));
                }
            }
        }
        // Argo CD consults them by name. Their wildcards do not match a slash.
        let names = kinds.iter().filter(|(name, of_kind)| name.contains('*') && of_kind.health.is_some());
        let patterns = names.map(|(name, _)| (Glob::read(name, Some('/')), name.clone())).collect();
        Scripts { kinds, patterns }
    }

    pub(super) fn of_config_map(data: &BTreeMap<String, String>, errors: &mut Vec<LuaError>) -> Scripts {
        let mut kinds: BTreeMap<String, OfKind> = BTreeMap::new();
        if let Some(text) = data.get(CUSTOMIZATIONS) {
            old(text, &mut kinds, errors);
        }
        for (key, text) in data {
            let Some(rest) = key.strip_prefix(CUSTOMIZATIONS).and_then(|rest| rest.strip_prefix('.')) else {
                continue;
            };
            let Some((sort, name)) = rest.split_once('.') else { continue };
            if !matches!(sort, "health" | "actions") {
                continue;
            }
            if name.len() > MAX_NAME_BYTES {
                errors.push(too_long(name));
                continue;
            }
            let Some(name) = kind_of(name) else {
                let problem =
                    LuaProblem::Key("the key should end with a group and a kind, such as example.com_Widget");
                errors.push(LuaError { script: key.clone(), line: None, problem });
                continue;
            };
            let of_kind = kinds.entry(name).or_default();
            match sort {
                "health" => of_kind.health = (!text.is_empty()).then(|| Code::read(key, text)),
                _ => of_kind.actions = actions(key, text, errors),
            }
        }
        let names = kinds.iter().filter(|(_, of_kind)| of_kind.health.is_some());
        let mut patterns: Vec<_> = names
            .filter(|(name, _)| name.contains(['*', '?', '[', '{', '\\']))
            .map(|(name, _)| (Glob::read(name, None), name.clone()))
            .collect();
        // If several match, Argo CD takes a random one; here the longest wins.
        patterns.sort_by_key(|(_, name)| std::cmp::Reverse(name.len()));
        Scripts { kinds, patterns }
    }

    /// Returns the scripts under exactly this name, `group/Kind` or `Kind`; `None` if there are none.
    pub(super) fn named(&self, name: &str) -> Option<&OfKind> {
        self.kinds.get(name)
    }

    /// Returns the health script for a kind (`group/Kind` or `Kind`) and the name it is filed under: its own script
    /// before those with wildcards; `None` if there is none.
    pub(super) fn health(&self, kind: &str) -> Option<(&str, &Read)> {
        let under = |name: &str| {
            let (name, of_kind) = self.kinds.get_key_value(name)?;
            Some((name.as_str(), of_kind.health.as_ref()?))
        };
        let alike = || self.patterns.iter().find(|(pattern, _)| pattern.matches(kind));
        under(kind).or_else(|| under(&alike()?.1))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &OfKind)> {
        self.kinds.iter().map(|(name, of_kind)| (name.as_str(), of_kind))
    }
}

/// The role of a script's file, by its name and folder.
pub(super) enum File<'t> {
    Health,
    Discovery,
    Action(&'t str),
}

/// Splits the path of a script into the folder of its kind (`group/Kind`, with `_` for `*`) and the role of the file;
/// `None` if it is not a script's path.
pub(super) fn place(path: &str) -> Option<(&str, File<'_>)> {
    let (folder, file) = path.rsplit_once('/')?;
    let of_actions = |path: &'_ str| path.strip_suffix("/actions").map(str::len);
    Some(match file {
        "health.lua" => (folder, File::Health),
        "discovery.lua" => (folder.get(..of_actions(folder)?)?, File::Discovery),
        "action.lua" => {
            let (actions, name) = folder.rsplit_once('/')?;
            (actions.get(..of_actions(actions)?)?, File::Action(name))
        }
        _ => return None,
    })
}

const CUSTOMIZATIONS: &str = "resource.customizations";

/// The maximum length, in bytes, of the group and kind in a key of `argocd-cm`, because verdicts contain them; longer
/// ones are refused.
const MAX_NAME_BYTES: usize = 253;

fn too_long(name: &str) -> LuaError {
    let begin = name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default();
    let problem = LuaProblem::Key("the group and kind in the key are longer than 253 bytes");
    LuaError { script: format!("{CUSTOMIZATIONS}: {begin}…"), line: None, problem }
}

/// Converts `group_Kind` or `Kind` to `group/Kind` or `Kind`, and `all` to `*/*`; `None` for another form.
fn kind_of(name: &str) -> Option<String> {
    let mut parts = name.split('_');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("all"), None, None) => Some("*/*".to_owned()),
        (Some(kind), None, None) if !kind.is_empty() => Some(kind.to_owned()),
        (Some(group), Some(kind), None) => Some(format!("{group}/{kind}")),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Old {
    #[serde(default, rename = "health.lua")]
    health: Option<String>,
    #[serde(default)]
    actions: Option<String>,
}

/// Reads the older key of `argocd-cm`, which holds all customizations in one YAML; adds the scripts to `kinds` and the
/// faults to `errors`.
fn old(text: &str, kinds: &mut BTreeMap<String, OfKind>, errors: &mut Vec<LuaError>) {
    let fault = |script: String, why| LuaError { script, line: None, problem: LuaProblem::Yaml(why) };
    let all = match yaml::read_first::<BTreeMap<String, serde_json::Value>>(text) {
        Ok(all) => all,
        Err(why) => return errors.push(fault(CUSTOMIZATIONS.to_owned(), why)),
    };
    for (name, tree) in all {
        if name.len() > MAX_NAME_BYTES {
            errors.push(too_long(&name));
            continue;
        }
        let key = format!("{CUSTOMIZATIONS}: {name}");
        match serde_json::from_value::<Option<Old>>(tree) {
            Ok(None) => {}
            Ok(Some(old)) => {
                let of_kind = kinds.entry(name).or_default();
                let health = old.health.filter(|text| !text.is_empty());
                of_kind.health = health.map(|text| Code::read(&format!("{key} health.lua"), &text));
                of_kind.actions =
                    old.actions.and_then(|text| actions(&format!("{key} actions"), &text, errors));
            }
            Err(why) => errors.push(fault(key, yaml::YamlError { line: None, message: why.to_string() })),
        }
    }
}

#[derive(Deserialize)]
struct Definitions {
    #[serde(default, rename = "discovery.lua")]
    discovery: Option<String>,
    #[serde(default)]
    definitions: Option<Vec<Definition>>,
    #[serde(default, rename = "mergeBuiltinActions")]
    merges: bool,
}

#[derive(Deserialize)]
struct Definition {
    name: String,
    #[serde(default, rename = "action.lua")]
    action: String,
}

fn actions(key: &str, text: &str, errors: &mut Vec<LuaError>) -> Option<Actions> {
    if text.is_empty() {
        return None;
    }
    let read = match yaml::read_first::<Option<Definitions>>(text) {
        Ok(read) => read?,
        Err(why) => {
            errors.push(LuaError { script: key.to_owned(), line: None, problem: LuaProblem::Yaml(why) });
            return None;
        }
    };
    let mut actions = Actions { merges: read.merges, ..Actions::default() };
    actions.discovery = read.discovery.map(|text| Code::read(&format!("{key}: discovery.lua"), &text));
    for Definition { name, action } in read.definitions.into_iter().flatten() {
        let code = Code::read(&format!("{key}: {name}"), &action);
        // The first action of a name wins.
        actions.named.entry(name).or_insert(code);
    }
    Some(actions)
}
