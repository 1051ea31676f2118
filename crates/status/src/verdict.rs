//! Statuses and verdicts.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::compute::ComputeError;

/// The six statuses of kstatus, worst first: `Failed` is the least, `Current` the greatest.
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

impl Status {
    /// All statuses, worst first.
    pub const ALL: [Status; 6] = [
        Status::Failed,
        Status::NotFound,
        Status::Unknown,
        Status::Terminating,
        Status::InProgress,
        Status::Current,
    ];

    /// Returns the name used by kstatus and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Failed => "Failed",
            Status::NotFound => "NotFound",
            Status::Unknown => "Unknown",
            Status::Terminating => "Terminating",
            Status::InProgress => "InProgress",
            Status::Current => "Current",
        }
    }

    /// Returns the word in tables, where `Current` is called `Ready`.
    pub fn word(self) -> &'static str {
        match self {
            Status::Current => "Ready",
            other => other.as_str(),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error for a word that is not a status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a status; use one of Failed, NotFound, Unknown, Terminating, InProgress, Current (or Ready)"
)]
pub struct UnknownStatus(pub String);

impl FromStr for Status {
    type Err = UnknownStatus;

    /// Parses the names of [`Status::as_str`] and [`Status::word`] in any case.
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

impl ConditionType {
    /// Returns the `type` of the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            ConditionType::Reconciling => "Reconciling",
            ConditionType::Stalled => "Stalled",
        }
    }
}

/// A standard condition that holds for an object; its `status` is always `"True"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The type of the condition.
    pub condition: ConditionType,
    /// The reason, one word in CamelCase.
    pub reason: Cow<'static, str>,
    /// Message for people.
    pub message: Cow<'static, str>,
}

/// The result of a rule for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The status.
    pub status: Status,
    /// Message for people, on one line.
    pub message: Cow<'static, str>,
    /// The standard condition that follows from the status, if any.
    pub conditions: Vec<Condition>,
    /// The rule that decided, such as `builtin/apps/Deployment`, `generic/ready` or `fallback`.
    pub rule: Cow<'static, str>,
    /// True if the object is switched off on purpose, as far as the rule knows; [`assess`](crate::assess) checks fields
    /// of every kind in addition.
    pub suspended: bool,
}

/// Maximum length of a message in bytes. The API machinery allows conditions almost eight times as much, but longer
/// texts are better read in the object.
pub const MAX_MESSAGE: usize = 4096;

/// Cuts a text to [`MAX_MESSAGE`]; a cut text ends with the number of bytes left out.
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
    /// Returns the verdict as views show it: within bounds, and `Unknown` on an object that is not shaped as its kind is.
    pub fn of(judged: Result<Verdict, ComputeError>) -> Verdict {
        let unreadable = |error: ComputeError| Verdict::new(Status::Unknown, error.to_string(), "unreadable");
        judged.unwrap_or_else(unreadable).bounded()
    }

    /// Returns the verdict with all texts cut to [`MAX_MESSAGE`].
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
