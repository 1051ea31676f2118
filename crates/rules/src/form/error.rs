//! What is wrong with a file of rules, and where.

use std::fmt;

use taffrail_object::yaml::YamlError;

use super::message::MessageError;
use super::path::PathError;

/// Something wrong with a file of rules or cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormError {
    /// Which file.
    pub file: String,
    /// Which kind, where it is of one.
    pub kind: Option<String>,
    /// Which rule of the kind, or which case, from 1.
    pub rule: Option<usize>,
    /// What.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No YAML.
    #[error("it is no YAML")]
    Yaml(#[source] YamlError),
    /// A key that means nothing there.
    #[error("there is no key '{key}' here")]
    UnknownKey {
        /// The key.
        key: String,
        /// The keys there are.
        known: Vec<&'static str>,
    },
    /// A key that must be there is not.
    #[error("'{0}' is missing")]
    Missing(&'static str),
    /// A value of another type than it has to be.
    #[error("'{key}' should be {expected}")]
    WrongType {
        /// Where.
        key: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A word that is none of those that may stand there.
    #[error("'{key}' cannot be '{word}'; one of {known}")]
    Word {
        /// Where.
        key: &'static str,
        /// What stands there.
        word: String,
        /// What may.
        known: &'static str,
    },
    /// No path.
    #[error("'{key}' is '{text}', which is no path")]
    Path {
        /// Where.
        key: String,
        /// What stands there.
        text: String,
        /// Why.
        #[source]
        why: PathError,
    },
    /// No message.
    #[error("'{key}' cannot be read")]
    Message {
        /// Where.
        key: &'static str,
        /// Why.
        #[source]
        why: MessageError,
    },
    /// No name of an API group.
    #[error("'{0}' is no API group")]
    Group(String),
    /// Two keys that cannot stand beside each other.
    #[error("'{0}' and '{1}' cannot stand in one map")]
    Both(&'static str, &'static str),
    /// A map that tests nothing.
    #[error("nothing is tested by {0}")]
    Nothing(&'static str),
    /// Tests in tests in tests.
    #[error("tests stand in each other too deeply")]
    TooDeep,
    /// A kind has rules twice.
    #[error("it has rules twice, also in {0}")]
    Twice(String),
    /// A script that cannot be read.
    #[error("{0}")]
    Script(String),
    /// No object can reach the rule.
    #[error("no object comes so far: the rule before has no tests")]
    Unreachable,
}

impl FormError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match &self.problem {
            Problem::UnknownKey { key, known } => {
                let near = known
                    .iter()
                    .map(|other| (strsim::damerau_levenshtein(key, other), *other))
                    .min()
                    .filter(|(distance, other)| *distance <= 2.min(other.len() / 2));
                match near {
                    Some((_, near)) => format!("did you mean '{near}'?"),
                    None => format!("there may be {}", known.join(", ")),
                }
            }
            Problem::Both("condition", _) => {
                "put each into a map of its own: all: [{condition: …}, {field: …}]".to_owned()
            }
            Problem::Both(..) => "put each into a map of its own, in all: [{…}, {…}]".to_owned(),
            Problem::Missing("source") => {
                "say where the meaning of its fields is documented, for the file or for the kind".to_owned()
            }
            Problem::Group(_) => "it is a name such as cert-manager.io, or *.upbound.io".to_owned(),
            Problem::Path { .. } => {
                "paths are written like status.parents[*].name, [2] or ['key.with/dots']".to_owned()
            }
            _ => return None,
        })
    }
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match (&self.kind, self.rule) {
            (Some(kind), Some(rule)) => write!(f, ": {kind}#{rule}")?,
            (Some(kind), None) => write!(f, ": {kind}")?,
            (None, Some(rule)) => write!(f, ": case {rule}")?,
            (None, None) => {}
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for FormError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.source()
    }
}
