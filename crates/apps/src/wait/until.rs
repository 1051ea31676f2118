//! What is waited for, as people write it.

use std::fmt;
use std::str::FromStr;

use super::expression::Question;
use super::field::WantedField;
use super::revision::Revision;

/// What is waited for.
#[derive(Debug, Clone, PartialEq)]
pub enum Until {
    /// It is as it was declared to be: status Current; of an app also its sync.
    Current,
    /// It is no longer there. What never was counts as deleted, and so does what was replaced by another of its name.
    Deleted,
    /// It is there.
    Exists,
    /// It has failed.
    Failed,
    /// A condition of its status has a value. Both are compared as kubectl does, whatever their case.
    Condition {
        /// The condition's type.
        name: String,
        /// The value: `True` unless another is named.
        value: String,
    },
    /// A field has a value, or is there.
    JsonPath(WantedField),
    /// An expression in CEL is true of it.
    Cel(Question),
    /// The app has applied a revision, and its objects are well at that.
    Revision(Revision),
}

/// A text that says not what to wait for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUntil {
    /// None of the words.
    #[error(
        "'{0}' is nothing to wait for; write current, deleted, exists, failed, condition=NAME[=VALUE], \
         jsonpath='{{.status.field}}'[=VALUE], cel='EXPRESSION' or revision=REVISION"
    )]
    Unknown(String),
    /// The part behind the word is missing.
    #[error("'{0}=' wants something behind it")]
    Empty(&'static str),
    /// No path.
    #[error("'{path}' is no JSONPath: {why}")]
    JsonPath {
        /// What was written.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// No expression.
    #[error("'{expression}' is no expression in CEL: {why}")]
    Cel {
        /// What was written.
        expression: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Without CEL, which [`Until::read`] knows.
impl FromStr for Until {
    type Err = InvalidUntil;

    fn from_str(text: &str) -> Result<Until, InvalidUntil> {
        Until::read(text, |_| Err("expressions are not read here".to_owned()))
    }
}

impl Until {
    /// What `text` asks for; `cel` makes an expression of its text, or says why that is none.
    ///
    /// # Errors
    /// When that is nothing to wait for.
    pub fn read(
        text: &str,
        cel: impl FnOnce(&str) -> Result<Question, String>,
    ) -> Result<Until, InvalidUntil> {
        let (word, rest) = text.split_once('=').map_or((text, None), |(word, rest)| (word, Some(rest)));
        let word = word.trim().to_ascii_lowercase();
        let behind = |word: &'static str| match rest.map(str::trim) {
            Some(rest) if !rest.is_empty() => Ok(rest),
            _ => Err(InvalidUntil::Empty(word)),
        };
        Ok(match (&*word, rest) {
            ("current" | "ready", None) => Until::Current,
            ("deleted" | "delete", None) => Until::Deleted,
            ("exists" | "create" | "created", None) => Until::Exists,
            ("failed", None) => Until::Failed,
            ("condition", _) => {
                let rest = behind("condition")?;
                let (name, value) = rest.split_once('=').unwrap_or((rest, "True"));
                if name.is_empty() || value.is_empty() {
                    return Err(InvalidUntil::Empty("condition"));
                }
                Until::Condition { name: name.to_owned(), value: value.to_owned() }
            }
            ("jsonpath", _) => Until::JsonPath(behind("jsonpath")?.parse()?),
            ("cel", _) => {
                let expression = behind("cel")?;
                Until::Cel(cel(expression).map_err(|why| InvalidUntil::Cel {
                    expression: expression.chars().take(200).collect(),
                    why,
                })?)
            }
            ("revision", _) => Until::Revision(Revision::new(behind("revision")?)),
            _ => return Err(InvalidUntil::Unknown(text.to_owned())),
        })
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Until::Current => f.write_str("current"),
            Until::Deleted => f.write_str("deleted"),
            Until::Exists => f.write_str("exists"),
            Until::Failed => f.write_str("failed"),
            Until::Condition { name, value } => write!(f, "condition={name}={value}"),
            Until::JsonPath(path) => write!(f, "jsonpath={path}"),
            Until::Cel(question) => write!(f, "cel={}", question.text()),
            Until::Revision(revision) => write!(f, "revision={revision}"),
        }
    }
}

impl Until {
    /// Whether what stands behind an object is part of the answer, and not only of the reason.
    pub(super) fn rests_on_evidence(&self) -> bool {
        matches!(self, Until::Current | Until::Failed | Until::Revision(_))
    }

    /// Whether an object has to be read whole, of whatever kind it is.
    pub fn needs_bodies(&self) -> bool {
        matches!(self, Until::Condition { .. } | Until::JsonPath(_) | Until::Cel(_))
    }
}
