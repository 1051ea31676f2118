//! The six statuses, and verdicts: a status with its message, condition and rule.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use taffrail_object::json::Kind;
use taffrail_object::words;

/// The six statuses of kstatus, ordered from worst (`Failed`, the least) to best (`Current`, the greatest).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Status {
    /// Reconciling hit an error or made too little progress.
    Failed,
    /// The object does not exist.
    NotFound,
    /// The status could not be determined.
    Unknown,
    /// The object is being deleted.
    Terminating,
    /// The actual state has not reached the desired one yet.
    InProgress,
    /// The actual state is the desired one.
    Current,
}

words! { Status { Failed, NotFound, Unknown, Terminating, InProgress, Current } }

impl Status {
    /// Returns the word that tables show: `Ready` for `Current`, else the name.
    pub fn word(self) -> &'static str {
        match self {
            Status::Current => "Ready",
            other => other.as_str(),
        }
    }
}

/// The error for a word that is not a status; holds the word.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a status; use one of Failed, NotFound, Unknown, Terminating, InProgress, Current (or Ready)"
)]
pub struct UnknownStatus(pub String);

impl FromStr for Status {
    type Err = UnknownStatus;

    /// Parses the name of a status, or `Ready` for Current, in upper or lower case.
    fn from_str(text: &str) -> Result<Status, UnknownStatus> {
        let named = |status: &Status| {
            status.as_str().eq_ignore_ascii_case(text) || status.word().eq_ignore_ascii_case(text)
        };
        Status::ALL.into_iter().find(named).ok_or_else(|| UnknownStatus(text.to_owned()))
    }
}

/// The two standard conditions; both are "abnormal-true": absent if all is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionType {
    /// A controller is working on the latest change.
    Reconciling,
    /// A controller hit an error or makes too little progress.
    Stalled,
}

words! { ConditionType { Reconciling, Stalled } }

/// A standard condition that Taffrail computes from the status of an object, whatever conditions the object itself
/// has. Its `status` is always `"True"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The type of the condition.
    pub condition: ConditionType,
    /// The reason, one word in CamelCase.
    pub reason: Cow<'static, str>,
    /// Message for people.
    pub message: Cow<'static, str>,
}

/// The error for an object that does not have the structure of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ComputeError {
    /// A field has the wrong type.
    WrongType {
        /// Keys from the root to the field.
        path: &'static [&'static str],
        /// The expected type.
        expected: &'static str,
        /// The actual type.
        found: Kind,
    },
    /// A condition, or one of its fields, has the wrong type.
    BadCondition {
        /// The field, or `None` for the condition itself.
        field: Option<&'static str>,
        /// The actual type.
        found: Kind,
    },
    /// A container status does not have the structure of one.
    BadContainerStatus,
    /// A Pod is in the given phase, which is unknown.
    UnknownPhase(String),
}

impl fmt::Display for ComputeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ComputeError::WrongType { path, expected, found } => {
                f.write_str("field ")?;
                for key in *path {
                    write!(f, ".{key}")?;
                }
                write!(f, " should be {expected}, but is {}", name_of(*found))
            }
            ComputeError::BadCondition { field: None, found } => {
                write!(f, "an item of .status.conditions should be an object, but is {}", name_of(*found))
            }
            ComputeError::BadCondition { field: Some(field), found } => {
                write!(f, "field .{field} of a condition should be a string, but is {}", name_of(*found))
            }
            ComputeError::BadContainerStatus => f.write_str(
                "an item of .status.containerStatuses does not have the structure of a container status",
            ),
            ComputeError::UnknownPhase(phase) => write!(f, "unknown phase {phase}"),
        }
    }
}

impl std::error::Error for ComputeError {}

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Integer => "a whole number",
        Kind::Float => "a number",
        Kind::String => "a string",
        Kind::Array => "an array",
        Kind::Object => "an object",
    }
}

/// The result of judging an object by rules: its status, a message, the standard condition that follows, the name of
/// the rule that decided, and true if that rule found the object suspended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The status of the object.
    pub status: Status,
    /// Message for people: the rule's own, or that of the object's condition that decided.
    pub message: Cow<'static, str>,
    /// The standard condition that follows from the status, if any.
    pub conditions: Vec<Condition>,
    /// The rule that decided, such as `builtin/apps/Deployment`, `generic/ready` or `fallback`.
    pub rule: Cow<'static, str>,
    /// True if the rule found that the object is switched off on purpose; [`assess`](crate::assess) also checks
    /// fields that any kind may have.
    pub suspended: bool,
}

/// Maximum length of a message in bytes; [`cut`] truncates a longer one. The API machinery allows conditions almost
/// eight times as much, but longer texts are better read in the object.
pub const MAX_MESSAGE: usize = 4096;

/// Truncates a text to [`MAX_MESSAGE`] bytes; a truncated text ends with the number of bytes left out.
pub fn cut<'t>(text: impl Into<Cow<'t, str>>) -> Cow<'t, str> {
    let text = text.into();
    if text.len() <= MAX_MESSAGE {
        return text;
    }
    // Leaves room for the note about the rest.
    let end = text.floor_char_boundary(MAX_MESSAGE - 40);
    let kept = text.get(..end).unwrap_or_default();
    Cow::Owned(format!("{kept}… ({} more bytes)", text.len() - end))
}

impl Verdict {
    /// Returns the verdict as views show it: with texts truncated, and `Unknown` in place of an error.
    pub fn of(judged: Result<Verdict, ComputeError>) -> Verdict {
        let unreadable = |error: ComputeError| {
            let message = format!("the object's status cannot be computed: {error}");
            Verdict::new(Status::Unknown, message, "unreadable")
        };
        judged.unwrap_or_else(unreadable).bounded()
    }

    /// Returns the verdict with its message, and the reasons and messages of its conditions, truncated to
    /// [`MAX_MESSAGE`] bytes each.
    pub fn bounded(mut self) -> Verdict {
        let is_long = |text: &str| text.len() > MAX_MESSAGE;
        if is_long(&self.message) {
            self.message = cut(self.message);
        }
        for condition in &mut self.conditions {
            for text in [&mut condition.reason, &mut condition.message] {
                if is_long(text) {
                    *text = cut(std::mem::take(text));
                }
            }
        }
        self
    }

    /// Creates a verdict without conditions.
    pub fn new(
        status: Status,
        message: impl Into<Cow<'static, str>>,
        rule: impl Into<Cow<'static, str>>,
    ) -> Verdict {
        Verdict {
            status,
            message: message.into(),
            conditions: Vec::new(),
            rule: rule.into(),
            suspended: false,
        }
    }

    pub(crate) fn current(message: impl Into<Cow<'static, str>>, rule: &'static str) -> Verdict {
        Verdict::new(Status::Current, message, rule)
    }

    /// Creates an `InProgress` verdict with the condition `Reconciling`.
    pub(crate) fn in_progress(
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
        rule: &'static str,
    ) -> Verdict {
        let message = message.into();
        let condition = Condition {
            condition: ConditionType::Reconciling,
            reason: reason.into(),
            message: message.clone(),
        };
        Verdict { conditions: vec![condition], ..Verdict::new(Status::InProgress, message, rule) }
    }

    /// Creates a `Failed` verdict with the condition `Stalled`.
    pub(crate) fn failed(
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
        rule: &'static str,
    ) -> Verdict {
        let message = message.into();
        let condition =
            Condition { condition: ConditionType::Stalled, reason: reason.into(), message: message.clone() };
        Verdict { conditions: vec![condition], ..Verdict::new(Status::Failed, message, rule) }
    }
}
