//! Parses one kubeconfig file into plain data.

use std::fmt::{self, Debug, Formatter};
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;
use taffrail_object::yaml::{self, YamlError};

use super::error::KubeconfigError;
use crate::error::one_line;

/// An entry of the lists `contexts`, `clusters` or `users`, its body still unparsed.
#[derive(Clone)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) file: Arc<Path>,
    /// The line of the entry, from 1.
    pub(super) line: u64,
    pub(super) body: Value,
    /// True if the file has another entry of this name, so that the name is ambiguous.
    pub(super) twice: bool,
}

// The bodies of users contain credentials.
impl Debug for Named {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Named").field("name", &self.name).field("file", &self.file).finish_non_exhaustive()
    }
}

/// The parts of a kubeconfig file that are used.
#[derive(Default)]
pub(super) struct FileText {
    pub(super) contexts: Vec<Spanned<Value>>,
    pub(super) clusters: Vec<Spanned<Value>>,
    pub(super) users: Vec<Spanned<Value>>,
    pub(super) current: Option<String>,
}

/// A kubeconfig file whose lists are not parsed yet.
#[derive(Deserialize)]
struct RawFile {
    contexts: Option<Vec<Spanned<Value>>>,
    clusters: Option<Vec<Spanned<Value>>>,
    users: Option<Vec<Spanned<Value>>>,
    #[serde(rename = "current-context")]
    current: Option<Value>,
}

impl FileText {
    /// Reads a kubeconfig file; returns `None` if it does not exist.
    pub(super) fn read(file: &Path) -> Result<Option<FileText>, KubeconfigError> {
        let bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(KubeconfigError::Unreadable { file: file.to_owned(), source }),
        };
        FileText::parse(file, &bytes, yaml::read_all).map(Some)
    }

    /// Parses a kubeconfig of one document whose author is not trusted; `file` is its name for errors. Refuses aliases,
    /// which could repeat a long text very often.
    pub(super) fn parse_without_aliases(file: &Path, bytes: &[u8]) -> Result<FileText, KubeconfigError> {
        FileText::parse(file, bytes, |text| yaml::read_without_aliases(text).map(|only| vec![only]))
    }

    /// Parses the content of a kubeconfig file, whose documents `read` returns; only the first of them counts.
    fn parse(
        file: &Path,
        bytes: &[u8],
        read: impl Fn(&str) -> Result<Vec<RawFile>, YamlError>,
    ) -> Result<FileText, KubeconfigError> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => text.trim_start_matches('\u{feff}'),
            _ => return Err(KubeconfigError::NotText(file.to_owned())),
        };
        if text.trim().is_empty() {
            return Err(KubeconfigError::Empty(file.to_owned()));
        }
        let documents = read(text).map_err(|error| KubeconfigError::Malformed {
            file: file.to_owned(),
            line: error.line.unwrap_or(1),
            what: one_line(&without_values(&error.message), 200),
        })?;
        // kubectl reads only the first document of a file.
        let Some(raw) = documents.into_iter().next() else {
            return Err(KubeconfigError::Empty(file.to_owned()));
        };
        Ok(FileText {
            contexts: raw.contexts.unwrap_or_default(),
            clusters: raw.clusters.unwrap_or_default(),
            users: raw.users.unwrap_or_default(),
            current: raw
                .current
                .and_then(|name| name.as_str().filter(|name| !name.is_empty()).map(str::to_owned)),
        })
    }
}

/// Returns the entries of a file's list of each `what` (`context`, `cluster` or `user`): of each name the first, marked
/// if there are others. An entry without a name is left out and reported in `problems`.
pub(super) fn named(
    file: &Arc<Path>,
    list: Vec<Spanned<Value>>,
    what: &str,
    problems: &mut Vec<KubeconfigError>,
) -> Vec<Named> {
    let mut entries: Vec<Named> = Vec::with_capacity(list.len());
    for mut item in list {
        let line = item.referenced.line().max(1);
        let name = match item.value.get("name") {
            Some(Value::String(name)) => name.clone(),
            other => {
                let what = match other {
                    None | Some(Value::Null) => format!("a {what} without a name"),
                    Some(_) => format!("a {what} whose name is not text: put it in quotes"),
                };
                problems.push(KubeconfigError::Malformed { file: file.to_path_buf(), line, what });
                continue;
            }
        };
        if let Some(known) = entries.iter_mut().find(|known| known.name == name) {
            known.twice = true;
            continue;
        }
        let body = match item.value.get_mut(what).map(Value::take) {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(body) => body,
        };
        entries.push(Named { name, file: file.clone(), line, body, twice: false });
    }
    entries
}

/// Replaces by `…` each text in double quotes in a decoder's message, and in messages about an invalid type or value
/// also each text in backticks: in a kubeconfig they may be credentials.
pub(super) fn without_values(message: &str) -> String {
    let hide_ticks = message.contains("invalid type") || message.contains("invalid value");
    let mut text = String::new();
    let mut inside: Option<char> = None;
    for c in message.chars() {
        match inside {
            Some(quote) if c == quote => inside = None,
            Some(_) => {}
            None if c == '"' || (c == '`' && hide_ticks) => {
                inside = Some(c);
                text.push('…');
            }
            None => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_quote_values() {
        assert_eq!(
            without_values("invalid type: string \"s3cret\", expected struct X"),
            "invalid type: string …, expected struct X"
        );
        assert_eq!(
            without_values("invalid type: integer `42`, expected a string"),
            "invalid type: integer …, expected a string"
        );
        assert_eq!(without_values("missing field `command`"), "missing field `command`");
    }
}
