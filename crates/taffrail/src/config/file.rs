//! Reads the settings file into flat entries with line numbers.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use taffrail_object::yaml;

use crate::command_error::CommandError;

/// A setting as the file sets it, such as `output.apps: wide`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileSetting {
    /// The keys from the top level of the file to the setting, joined by dots.
    pub(super) key: String,
    /// The setting's value, or the items of its list.
    pub(super) values: Vec<String>,
    /// The line of the setting's key, from 1.
    pub(super) line: u64,
}

/// Returns the default path of the settings file, below `xdg` (the value of `$XDG_CONFIG_HOME`) if that is an absolute
/// path, else below `.config` in `home`; `None` if neither is known.
pub(super) fn usual_place(xdg: Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    let folder = xdg.map(PathBuf::from).filter(|folder| folder.is_absolute());
    Some(folder.or_else(|| Some(home?.join(".config")))?.join("taffrail").join("config.yaml"))
}

/// Reads the entries of the settings file `file`, in its order. Fails if it cannot be read or parsed, or gives a
/// setting twice, without a value, or with a list of anything but words.
pub(super) fn read(file: &Path) -> Result<Vec<FileSetting>, CommandError> {
    let unreadable = || CommandError::usage(format!("cannot read the settings file {}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| unreadable().with_source(&error))?;
    entries(&text).map_err(|(line, what)| {
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        CommandError::usage(format!("settings file {}{line}: {what}", file.display()))
    })
}

/// An error in the file: its line, from 1, if known, and the message.
type Fault = (Option<u64>, String);

fn entries(text: &str) -> Result<Vec<FileSetting>, Fault> {
    // A file of comments sets nothing.
    let is_empty = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(is_empty) {
        return Ok(Vec::new());
    }
    let root: Spanned<YamlNode> = yaml::read(text).map_err(|error| (error.line, error.message))?;
    let YamlNode::Map(map) = root.value else {
        return Err((
            Some(root.referenced.line().max(1)),
            "the file must consist of settings, each as KEY: VALUE".to_owned(),
        ));
    };
    let mut entries = Vec::new();
    flatten("", map, &mut entries)?;
    Ok(entries)
}

fn flatten(
    above: &str,
    map: Vec<(Spanned<String>, Spanned<YamlNode>)>,
    entries: &mut Vec<FileSetting>,
) -> Result<(), Fault> {
    for (key, node) in map {
        let line = key.referenced.line();
        let dot = if above.is_empty() { "" } else { "." };
        let key = format!("{above}{dot}{}", key.value);
        if entries.iter().any(|entry| entry.key == key || entry.key.starts_with(&format!("{key}."))) {
            return Err((Some(line), format!("the setting '{key}' is set twice")));
        }
        let values = match node.value {
            YamlNode::Map(map) => {
                flatten(&key, map, entries)?;
                continue;
            }
            YamlNode::Nothing => return Err((Some(line), format!("the setting '{key}' has no value"))),
            YamlNode::Scalar(text) => vec![text],
            YamlNode::List(items) => {
                let mut values = Vec::with_capacity(items.len());
                for item in items {
                    match item.value {
                        YamlNode::Scalar(text) => values.push(text),
                        _ => {
                            let line = item.referenced.line().max(line);
                            return Err((
                                Some(line),
                                format!("the items of the list '{key}' must be single words"),
                            ));
                        }
                    }
                }
                values
            }
        };
        entries.push(FileSetting { key, values, line });
    }
    Ok(())
}

/// A YAML node; numbers and booleans are kept as text.
#[derive(Debug)]
enum YamlNode {
    Nothing,
    Scalar(String),
    List(Vec<Spanned<YamlNode>>),
    Map(Vec<(Spanned<String>, Spanned<YamlNode>)>),
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<YamlNode, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = YamlNode;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value, a list of values, or KEY: VALUE")
            }

            fn visit_unit<E>(self) -> Result<YamlNode, E> {
                Ok(YamlNode::Nothing)
            }

            fn visit_none<E>(self) -> Result<YamlNode, E> {
                Ok(YamlNode::Nothing)
            }

            fn visit_bool<E>(self, value: bool) -> Result<YamlNode, E> {
                Ok(YamlNode::Scalar(value.to_string()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<YamlNode, E> {
                Ok(YamlNode::Scalar(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<YamlNode, E> {
                Ok(YamlNode::Scalar(value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<YamlNode, E> {
                Ok(YamlNode::Scalar(value.to_string()))
            }

            fn visit_str<E>(self, value: &str) -> Result<YamlNode, E> {
                Ok(YamlNode::Scalar(value.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<YamlNode, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(YamlNode::List(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlNode, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(YamlNode::Map(entries))
            }
        }

        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_line() {
        let text = "\
# what I always want
timeout: 10s
context: [a, b]

output:
  apps: wide
fleets:
  prod:
    - eu
    - us
pager: false
";
        let found: Vec<String> = entries(text)
            .unwrap()
            .iter()
            .map(|entry| format!("{}:{}={}", entry.line, entry.key, entry.values.join(",")))
            .collect();
        assert_eq!(
            found,
            ["2:timeout=10s", "3:context=a,b", "6:output.apps=wide", "8:fleets.prod=eu,us", "11:pager=false"]
        );
        assert_eq!(entries("# nothing yet\n\n").unwrap(), []);
    }

    #[test]
    fn unknown_settings_are_reported_with_their_line() {
        let line = |text: &str| entries(text).unwrap_err().0;
        assert_eq!(line("timeout: 5s\n\ntimeout: 6s\n"), Some(3));
        assert_eq!(line("timeout: 5s\ncontext:\n"), Some(2));
        assert_eq!(line("context:\n- a\n- {b: c}\n"), Some(3));
        assert_eq!(line("just words\n"), Some(1));
        assert!(line("timeout: [\n").is_some());
    }

    #[test]
    fn default_path_follows_xdg() {
        let place = |xdg: Option<&str>| {
            usual_place(xdg.map(OsString::from), Some("/me".into())).unwrap().display().to_string()
        };
        assert_eq!(place(None), "/me/.config/taffrail/config.yaml");
        assert_eq!(place(Some("/etc/xdg")), "/etc/xdg/taffrail/config.yaml");
        // The specification says to pass over what is not absolute.
        assert_eq!(place(Some("here")), "/me/.config/taffrail/config.yaml");
        assert_eq!(usual_place(None, None), None);
    }
}
