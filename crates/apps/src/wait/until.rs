//! The conditions to wait for, parsed from the text of `--for`.

use std::fmt;
use std::str::FromStr;

use super::expression::Question;
use super::field::{InvalidField, WantedField};
use super::revision::Revision;

/// A condition to wait for.
#[derive(Debug, Clone, PartialEq)]
pub enum Until {
    /// The status is Current (Ready); the sync of an app must also not have failed, be running or be outstanding, and
    /// the app must have no problem but notices.
    Current,
    /// The object or app does not exist, or the object was replaced by another of the same name.
    Deleted,
    /// The object or app exists.
    Exists,
    /// The object or app has failed, or a Job or Pod has ended without success.
    Failed,
    /// A status condition has this value; both are compared without regard to case, as kubectl does.
    Condition {
        /// The condition's type.
        name: String,
        /// The value of the condition: `True` unless another one is given.
        value: String,
    },
    /// A field has a value, or exists.
    JsonPath(WantedField),
    /// A CEL expression is true for the object.
    Cel(Question),
    /// The app has applied the revision, and its objects are well.
    Revision(Revision),
}

/// The reason why a text is not a condition to wait for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUntil {
    /// The text does not begin with the name of a condition, or gives a value to one that takes none.
    #[error(
        "'{0}' is not something to wait for; write current, deleted, exists, failed, condition=NAME[=VALUE], \
         jsonpath='{{.status.field}}'[=VALUE], cel='EXPRESSION' or revision=REVISION"
    )]
    Unknown(String),
    /// No value follows this word and its `=`.
    #[error("'{0}=' needs a value after the '='")]
    Empty(&'static str),
    /// The text after `jsonpath=` is not a JSONPath, or lacks the value after its `=`.
    #[error(transparent)]
    JsonPath(#[from] InvalidField),
    /// The expression is not valid CEL.
    #[error("'{expression}' is not an expression in CEL: {why}")]
    Cel {
        /// The expression as written, cut to 200 characters.
        expression: String,
        /// The compiler's error.
        why: String,
    },
}

/// Parses all conditions but CEL, for which [`Until::read`] needs a compiler.
impl FromStr for Until {
    type Err = InvalidUntil;

    fn from_str(text: &str) -> Result<Until, InvalidUntil> {
        Until::read(text, |_| Err("this call parses no CEL expressions".to_owned()))
    }
}

impl Until {
    /// Parses `text`; `cel` compiles an expression or returns the reason why it cannot.
    ///
    /// # Errors
    /// When the text is not a condition to wait for, or its JSONPath or expression is not valid.
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
    /// Returns true if evidence about an object, such as its Pods and events, can decide whether the
    /// condition is met.
    pub(super) fn rests_on_evidence(&self) -> bool {
        matches!(self, Until::Current | Until::Failed | Until::Revision(_))
    }

    /// Returns true if objects must be read whole, even those of kinds for which metadata usually suffices.
    pub fn needs_bodies(&self) -> bool {
        matches!(self, Until::Condition { .. } | Until::JsonPath(_) | Until::Cel(_))
    }
}
