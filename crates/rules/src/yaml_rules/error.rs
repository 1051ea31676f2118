//! Errors in files of rules and cases, with their positions.

use std::fmt;

use taffrail_object::yaml::YamlError;

use super::message::MessageError;
use super::path::PathError;

/// The maximum nesting of tests; a rule whose tests nest deeper is an error of the file.
pub(super) const MAX_TEST_DEPTH: usize = 8;

/// An error in a file of rules or cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFileError {
    /// The name of the file.
    pub file: String,
    /// The kind, if the error is in the rules of one.
    pub kind: Option<String>,
    /// The number of the rule in its kind, or of the case in its file, from 1; `None` if the error is in neither.
    pub rule: Option<usize>,
    /// The error.
    pub problem: Problem,
}

/// The kinds of errors in files of rules or cases.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A text that is not YAML.
    #[error("the rules or cases file is not YAML")]
    Yaml(#[source] YamlError),
    /// A key that is unknown, or not allowed in its place.
    #[error("the rules or cases file has the key '{key}' where it is not allowed")]
    UnknownKey {
        /// The key.
        key: String,
        /// The keys that are known in this place.
        known: Vec<&'static str>,
    },
    /// A required key that is missing.
    #[error("the rules or cases file lacks the required key '{0}'")]
    Missing(&'static str),
    /// A value of the wrong type.
    #[error("in the rules or cases file, '{key}' should be {expected}")]
    WrongType {
        /// The key, or the part of the file.
        key: String,
        /// The expected type, for people.
        expected: &'static str,
    },
    /// A word that is not one of the allowed ones.
    #[error("the key '{key}' of a rule or case cannot be '{word}'; use one of {known}")]
    Word {
        /// The key.
        key: &'static str,
        /// The word.
        word: String,
        /// The allowed words.
        known: &'static str,
    },
    /// A text that is not the path of a field.
    #[error("the value '{text}' of the key '{key}' in a rule is not the path of a field of an object")]
    Path {
        /// The key.
        key: String,
        /// The text.
        text: String,
        /// The reason why the text is not a path.
        #[source]
        why: PathError,
    },
    /// A message template that cannot be parsed.
    #[error("the template in the key '{key}' of a rule is invalid")]
    Message {
        /// The key.
        key: &'static str,
        /// The parser's error.
        #[source]
        why: MessageError,
    },
    /// A text that is not the name of an API group.
    #[error("the rules file is for the group '{0}', which is not an API group")]
    Group(String),
    /// A group or kind with `*` among the kinds whose objects stand for clusters; holds it.
    #[error("the key 'clusters' of a rules file takes whole names of a group and of kinds, not '{0}'")]
    ClusterPattern(String),
    /// Two keys that exclude each other, in one map.
    #[error("a rule has '{0}' and '{1}' in one map, where they exclude each other")]
    Both(&'static str, &'static str),
    /// A map that should contain tests and has none; holds its key.
    #[error("the key '{0}' of a rule contains no test")]
    Nothing(&'static str),
    /// Tests that nest deeper than 8 levels.
    #[error("the tests of a rule nest deeper than {MAX_TEST_DEPTH} levels")]
    TooDeep,
    /// A second set of rules for one kind; the text is the name of the file with the first one, or "the same file".
    #[error("the kind has a second set of rules; the first one is in {0}")]
    Twice(String),
    /// A script that cannot be parsed; the text is the error.
    #[error("{0}")]
    Script(String),
    /// A rule that no object can reach.
    #[error("no object reaches this rule: the rule before it has no tests")]
    Unreachable,
}

impl RuleFileError {
    /// Returns a suggestion for people of how to correct the error; `None` for errors that allow none.
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
                    None => format!("the keys that are known there are {}", known.join(", ")),
                }
            }
            Problem::Both("condition", _) => {
                "put each of the two keys into a map of its own: all: [{condition: …}, {field: …}]".to_owned()
            }
            Problem::Both(..) => {
                "put each of the two keys into a map of its own, in all: [{…}, {…}]".to_owned()
            }
            Problem::Missing("source") => {
                "add a source, for the file or the kind: the address where the meaning of its fields is \
                 documented"
                    .to_owned()
            }
            Problem::Group(_) => "name the API group like cert-manager.io, or *.upbound.io".to_owned(),
            Problem::Path { .. } => {
                "paths are written like status.parents[*].name, [2] or ['key.with/dots']".to_owned()
            }
            _ => return None,
        })
    }
}

impl fmt::Display for RuleFileError {
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

impl std::error::Error for RuleFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.source()
    }
}
