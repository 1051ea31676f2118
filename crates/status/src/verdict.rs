//! A status and why.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::compute::ComputeError;

/// The six statuses of kstatus, worst first: `Failed` is the least of them, `Current` the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

    /// The name used by kstatus and in JSON.
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

    /// The word people see in tables, where `Current` is called `Ready`.
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

/// A word that names no status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no status; one of Failed, NotFound, Unknown, Terminating, InProgress, Current (or Ready)")]
pub struct UnknownStatus(pub String);

impl FromStr for Status {
    type Err = UnknownStatus;

    /// Reads the names of [`Status::as_str`] and [`Status::word`], whatever their case.
    fn from_str(text: &str) -> Result<Status, UnknownStatus> {
        let named = |status: &Status| {
            status.as_str().eq_ignore_ascii_case(text) || status.word().eq_ignore_ascii_case(text)
        };
        Status::ALL.into_iter().find(named).ok_or_else(|| UnknownStatus(text.to_owned()))
    }
}

/// The two standard conditions; both are "abnormal-true": absent when all is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionType {
    /// A controller is working on the latest change.
    Reconciling,
    /// A controller hit an error or makes too little progress.
    Stalled,
}

impl ConditionType {
    /// The `type` of the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            ConditionType::Reconciling => "Reconciling",
            ConditionType::Stalled => "Stalled",
        }
    }
}

/// A standard condition that is true of an object; its `status` is always `"True"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Which of the two.
    pub condition: ConditionType,
    /// One word in CamelCase.
    pub reason: Cow<'static, str>,
    /// For people.
    pub message: Cow<'static, str>,
}

/// What a rule says of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The status.
    pub status: Status,
    /// One line for people.
    pub message: Cow<'static, str>,
    /// The standard conditions that follow from the status: none, or one.
    pub conditions: Vec<Condition>,
    /// Which rule decided, such as `builtin/apps/Deployment`, `generic/ready` or `fallback`.
    pub rule: Cow<'static, str>,
    /// Whether the object rests because somebody wants so; what a rule knows of it, beside what [`assess`](crate::assess)
    /// sees of every kind.
    pub suspended: bool,
}

/// How long a message may be, in bytes: the API machinery allows conditions a little less than eight times as much, and
/// who reads more than a screen of it reads the object.
pub const MAX_MESSAGE: usize = 4096;

/// A text from outside, as long as it may be kept; one that is longer says how much is left out.
pub fn cut<'t>(text: impl Into<Cow<'t, str>>) -> Cow<'t, str> {
    let text = text.into();
    if text.len() <= MAX_MESSAGE {
        return text;
    }
    // Room for what is said about the rest.
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

    /// The same, with no text longer than [`MAX_MESSAGE`].
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

    /// A verdict without conditions.
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

    /// `InProgress` with the condition `Reconciling`.
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

    /// `Failed` with the condition `Stalled`.
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
