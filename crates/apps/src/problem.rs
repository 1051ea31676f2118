//! The problems of an app: what is wrong, on which axis, and how bad it is.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taffrail_object::{ObjectKey, ObjectKeyRef};
use taffrail_status::{MAX_MESSAGE, cut};

use crate::identity::AppName;
use crate::words::Words;

/// Ten minutes: the time for which a tool may leave the desired revision untried, or a sync may run, before that is a
/// problem or, where it is one at once, an error.
pub(crate) const MAX_UNTRIED_TIME: SignedDuration = SignedDuration::from_mins(10);

/// The axis of a problem: health, sync, source, freshness or check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// The cluster that declares the app, or the one with its objects, is not live.
    Freshness,
    /// The objects of the app or its declaring object are not well, or that is uncertain: a claim is unconfirmed, or
    /// Argo CD's health scripts were not read.
    Health,
    /// The delivery tool has not applied the desired revision to the cluster, or may not: it is suspended, stopped or
    /// failed.
    Sync,
    /// The source of the app does not exist, cannot be fetched or verified, is suspended or being deleted, or its
    /// controller is stopped.
    Source,
    /// A check of the app by metrics is false, or has no data.
    Check,
}

/// The severity of a problem, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProblemSeverity {
    /// Something failed, is missing, is late, or its state cannot be known.
    Error,
    /// Something is in progress or is tried again, and may end by itself.
    Waiting,
    /// Something that may be meant, such as a suspension, or an unconfirmed claim; `--exit-status` ignores it.
    Notice,
}

/// A reason why an app is not well.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The axis.
    pub axis: Axis,
    /// The state on that axis, in CamelCase: `Failed`, `OutOfSync`, `FetchFailed`, `Lost`; on the axis check, the name of the
    /// check.
    pub state: String,
    /// The severity of the problem.
    pub severity: ProblemSeverity,
    /// The time at which it began, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The reason, for people.
    pub message: Words,
    /// The object that shows the problem; left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
    /// The problem of the app upstream that is the cause of this one; left out if no such app is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Box<UpstreamProblem>>,
}

/// The problem of an app upstream, because of which an app downstream is not well.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UpstreamProblem {
    /// The app upstream.
    pub app: AppName,
    /// The axis of its problem.
    pub axis: Axis,
    /// The state on that axis, as in the problem of the app upstream.
    pub state: String,
    /// The severity of its problem.
    pub severity: ProblemSeverity,
    /// The message of its problem.
    pub message: Words,
    /// The object that shows its problem; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
}

/// The parts of a problem by which problems with one cause are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProblemCause<'p> {
    /// The severity.
    pub severity: ProblemSeverity,
    /// The axis.
    pub axis: Axis,
    /// The state on that axis.
    pub state: &'p str,
    /// The message.
    pub message: &'p str,
    /// The object that shows the problem; `None` if there is none.
    pub object: Option<&'p ObjectKey>,
}

impl Problem {
    pub(crate) fn new(axis: Axis, state: impl Into<String>, severity: ProblemSeverity) -> Problem {
        Problem {
            axis,
            state: state.into(),
            severity,
            since: None,
            message: Words::default(),
            object: None,
            upstream: None,
        }
    }

    pub(crate) fn says(self, message: impl Into<Words>) -> Problem {
        let message = message.into();
        let message = if message.len() > MAX_MESSAGE { cut(&*message).into() } else { message };
        Problem { message, ..self }
    }

    pub(crate) fn since(self, since: Option<Timestamp>) -> Problem {
        Problem { since, ..self }
    }

    pub(crate) fn about<'k>(self, key: impl Into<ObjectKeyRef<'k>>) -> Problem {
        Problem { object: Some(key.into().to_owned()), ..self }
    }

    /// Names the problem of an app upstream as the cause of this one.
    pub(crate) fn caused_by(self, upstream: UpstreamProblem) -> Problem {
        Problem { upstream: Some(Box::new(upstream)), ..self }
    }

    /// Returns this problem as that of `app`, which is the cause of a problem of an app downstream.
    pub(crate) fn of_upstream(&self, app: AppName) -> UpstreamProblem {
        let Problem { axis, state, severity, message, object, .. } = self.clone();
        UpstreamProblem { app, axis, state, severity, message, object }
    }

    /// Returns the cause by which the problem is grouped: that of the app upstream if one is the cause, else the problem
    /// itself.
    pub fn cause(&self) -> ProblemCause<'_> {
        match self.upstream.as_deref() {
            Some(UpstreamProblem { app: _, axis, state, severity, message, object }) => {
                ProblemCause { severity: *severity, axis: *axis, state, message, object: object.as_ref() }
            }
            None => ProblemCause {
                severity: self.severity,
                axis: self.axis,
                state: &self.state,
                message: &self.message,
                object: self.object.as_ref(),
            },
        }
    }

    /// Returns true if the problem is more than a notice, so that it counts for `--exit-status` and in `explain`.
    pub fn is_pressing(&self) -> bool {
        self.severity != ProblemSeverity::Notice
    }

    /// Returns true if the status of the app does not show the problem: it is on another axis than health, a
    /// notice, or only reported by Argo CD.
    pub fn is_beside_health(&self) -> bool {
        self.axis != Axis::Health
            || self.severity == ProblemSeverity::Notice
            || TOOL_SAYS.contains(&&*self.state)
    }

    /// Returns the text that is shown after the status of a Ready app: `sync failed`, `source not found`. Empty for a
    /// problem that the status itself shows.
    pub fn words(&self) -> String {
        match (self.axis, &*self.state) {
            (Axis::Health, UNCONFIRMED) => "unconfirmed".to_owned(),
            (Axis::Health, state) if TOOL_SAYS.contains(&state) => format!("{state} by Argo CD"),
            (Axis::Health, RULES_UNREAD) => "rules unread".to_owned(),
            (Axis::Health, _) => String::new(),
            (Axis::Freshness, state) => format!("home {}", spaced(state)),
            (Axis::Sync, "OutOfSync") => "OutOfSync".to_owned(),
            (Axis::Sync, CONTROLLER_STOPPED) => "delivery stopped".to_owned(),
            (Axis::Sync, SUSPENDED) => "suspended".to_owned(),
            (Axis::Sync, "Syncing") => "still syncing".to_owned(),
            (Axis::Source, "NotFound" | "NotFetched" | "Terminating" | SUSPENDED) => {
                format!("source {}", spaced(&self.state))
            }
            (Axis::Source, CONTROLLER_STOPPED) => "source not fetched".to_owned(),
            (Axis::Source, _) => "source failed".to_owned(),
            (Axis::Sync, state) => format!("sync {}", spaced(state)),
            (Axis::Check, name) if self.is_pressing() => format!("check {name} false"),
            (Axis::Check, name) => format!("check {name} without data"),
        }
    }
}

/// The states of a problem in which Argo CD calls an app unhealthy although its objects are well, or it has none.
const TOOL_SAYS: [&str; 2] = ["Degraded", "Missing"];

/// The state of a problem with sync or source: the controller is not running.
pub const CONTROLLER_STOPPED: &str = "ControllerStopped";

/// The state of a problem: objects carry no mark of the app that claims them.
pub(crate) const UNCONFIRMED: &str = "Unconfirmed";

/// The state of a problem: Argo CD's health scripts could not be read, so the app was judged without them.
pub(crate) const RULES_UNREAD: &str = "RulesUnread";

/// The state of a problem: the app or its source is suspended.
pub const SUSPENDED: &str = "Suspended";

/// Splits a CamelCase word into lower-case words, such as `SyncFailed` into `sync failed`.
fn spaced(state: &str) -> String {
    let mut words = String::with_capacity(state.len() + 4);
    for (at, character) in state.chars().enumerate() {
        if at > 0 && character.is_uppercase() {
            words.push(' ');
        }
        words.extend(character.to_lowercase());
    }
    words
}

/// Makes the problem with the state `OutOfSync`: the desired revision is not applied.
pub(crate) fn untried(severity: ProblemSeverity, since: Option<Timestamp>) -> Problem {
    Problem::new(Axis::Sync, "OutOfSync", severity).since(since)
}

/// Returns the problems `found` of an app, the worst first, then `unmarked`, the notice that objects carry no mark of
/// the app; one for each axis and state.
pub fn order_problems(mut found: Vec<Problem>, unmarked: Option<Problem>) -> Vec<Problem> {
    found.sort_by_key(|problem| (problem.severity, problem.axis));
    found.extend(unmarked);
    let mut told: Vec<(Axis, String)> = Vec::new();
    found.retain(|problem| {
        let own = (problem.axis, problem.state.clone());
        let is_new = !told.contains(&own);
        told.push(own);
        is_new
    });
    found
}
