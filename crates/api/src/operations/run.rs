//! The run of a plan: its request, its events, and the results.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{OperationPlan, OperationQuestion, PlanAnswer, PlanDigest, PlannedWrite, Target, WriteTrace};
use crate::question::ErrorLevel;

/// The request to run a plan that a hub answered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunRequest {
    /// The identifier of the run, which the client chooses: a second request with it runs nothing, but gets the events
    /// of the first.
    pub id: OperationId,
    /// The question of the plan.
    pub question: OperationQuestion,
    /// The time at which the plan was made, as its answer says.
    pub planned_at: Timestamp,
    /// The digest of the plan that was shown: if the plan is another by now, nothing is written.
    pub digest: PlanDigest,
    /// The number of different apps or objects with a write, which must be confirmed if there are more than ten; `null`
    /// if it is not.
    #[serde(default)]
    pub confirmed: Option<usize>,
    /// True if the servers only check the writes, and store nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// True to wait until the tools have handled the requests and the apps are ready or have failed.
    #[serde(default)]
    pub waits: bool,
    /// The time for the whole run in milliseconds; at most an hour.
    pub timeout_millis: u64,
}

impl RunRequest {
    /// Makes the request to run the plan with which a hub answered `question`, within `time`. All targets of the plan
    /// are confirmed; the run writes and does not wait for the results.
    pub fn new<T: Target>(
        id: OperationId,
        question: OperationQuestion,
        answer: &PlanAnswer<T>,
        time: Duration,
    ) -> RunRequest {
        RunRequest {
            id,
            question,
            planned_at: answer.planned_at,
            digest: answer.digest.clone(),
            confirmed: Some(answer.plan.targets()),
            dry_run: false,
            waits: false,
            timeout_millis: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// The identifier of a run, which the caller chooses. [`OperationEvent::Started`] reports it before the first request
/// is sent, so that it can be stored by then.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct OperationId(String);

impl OperationId {
    /// Makes an identifier from a text of the caller's choice.
    pub fn new(text: impl Into<String>) -> OperationId {
        OperationId(text.into())
    }

    /// Returns the identifier as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Progress of a run. `item` is the index in [`OperationPlan::items`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum OperationEvent {
    /// The run begins; nothing was sent yet.
    Started {
        /// The identifier of the run.
        id: OperationId,
        /// The digest of the plan that is run.
        digest: PlanDigest,
    },
    /// An item with writes begins. To this event alone the caller may answer [`Reply::Skip`].
    Begins {
        /// The index of the item.
        item: usize,
    },
    /// A write is about to be sent for the first time.
    Writing {
        /// The index of the item.
        item: usize,
        /// The write that is sent.
        write: PlannedWrite,
        /// True for the alternative of a write whose field the server does not know.
        is_alternative: bool,
    },
    /// The server accepted a write, or stored a part of one before the rest failed.
    Written {
        /// The index of the item.
        item: usize,
        /// The index of the write in the item.
        write: usize,
        /// True if the server stored it; false for a dry run.
        is_stored: bool,
        /// The name of the created object, which the server may have generated; `null` for a patch, or if it is not
        /// known.
        name: Option<String>,
    },
    /// Items wait for their tools, or for their apps to become ready.
    Waiting {
        /// The items.
        items: Vec<WaitingItem>,
    },
    /// The item has ended.
    Ended {
        /// The index of the item.
        item: usize,
        /// The result of the item.
        outcome: Outcome,
    },
    /// Nothing was sent, and nothing will be. Only a hub tells this, where it did not know it in time for a refusal.
    Refused {
        /// The reason, for people.
        message: String,
        /// The next step for the user; `null` if there is nothing to suggest.
        hint: Option<String>,
    },
    /// The run has ended. Only a hub tells this: without it an answer is not whole.
    Done,
    /// Nothing is new; a hub sends it where nothing else was for a while.
    Alive,
}

impl OperationEvent {
    /// The names of all events, as their member `event` has them.
    pub const NAMES: [&str; 9] =
        ["started", "begins", "writing", "written", "waiting", "ended", "refused", "done", "alive"];

    /// Returns true if all items and writes that the event is about are in `plan`.
    pub fn is_about<T>(&self, plan: &OperationPlan<T>) -> bool {
        let has = |item: usize| item < plan.items.len();
        match self {
            OperationEvent::Begins { item }
            | OperationEvent::Writing { item, .. }
            | OperationEvent::Ended { item, .. } => has(*item),
            OperationEvent::Written { item, write, .. } => {
                plan.items.get(*item).is_some_and(|item| *write < item.writes.len())
            }
            OperationEvent::Waiting { items } => items.iter().all(|waiting| has(waiting.item)),
            OperationEvent::Started { .. }
            | OperationEvent::Refused { .. }
            | OperationEvent::Done
            | OperationEvent::Alive => true,
        }
    }
}

/// An item that waits for its tool, or for its app to become ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaitingItem {
    /// The index of the item.
    pub item: usize,
    /// The state that is waited for, for people.
    pub why: String,
}

/// The caller's answer to an [`OperationEvent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Go on with the run.
    Continue,
    /// Skip the item that begins: it is not written.
    Skip,
    /// End the run without another request. Those under way are given up: whether they were made is not reported.
    Stop,
}

/// The result of an operation for one item of its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "result", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Outcome {
    /// There was nothing to do.
    Unchanged,
    /// The caller answered [`Reply::Skip`].
    Refused,
    /// The server accepted all writes in a dry run.
    Accepted,
    /// All writes were made. If the run waits, the tool has also handled them.
    Done,
    /// The app became ready after the writes.
    Ready {
        /// The message of the app's delivery tool.
        message: String,
        /// True if the app is ready but OutOfSync.
        is_out_of_sync: bool,
        /// The time since the run began.
        #[serde(flatten)]
        after: After,
    },
    /// The app failed after the writes.
    Failed {
        /// The reason for the failure.
        why: String,
        /// The time since the run began.
        #[serde(flatten)]
        after: After,
    },
    /// The tool handled the change, but the app's state is unknown, because the cluster of its objects was not read.
    Unobservable {
        /// The message: the cluster of the objects, and how to include it.
        why: String,
    },
    /// At the deadline the tool had not handled the change, or the app was not ready.
    TimedOut {
        /// The state that was waited for at the deadline, as people read it.
        why: String,
        /// True if the states of the objects that declare the app, and of those that it has, were live at the deadline.
        is_observed: bool,
        /// The time since the run began.
        #[serde(flatten)]
        after: After,
    },
    /// A write failed; writes before it may have been made.
    Error {
        /// The reason.
        error: OperationError,
    },
    /// The hub ended before the item did. Nothing was sent again; what the writes would have left was looked for.
    Interrupted {
        /// The evidence of the writes in the objects.
        trace: WriteTrace,
        /// The findings, for people.
        why: String,
    },
}

/// A time since a run began, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct After {
    /// The time since the run began, in milliseconds.
    pub after_millis: u64,
}

impl From<Duration> for After {
    fn from(time: Duration) -> After {
        After { after_millis: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) }
    }
}

impl From<After> for Duration {
    fn from(after: After) -> Duration {
        Duration::from_millis(after.after_millis)
    }
}

/// The reason why an operation cannot be planned or written for one target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
#[serde(rename_all = "camelCase")]
pub struct OperationError {
    /// [`ErrorLevel::Usage`] if the operation does not exist for the target, does not fit its state or refuses it, or
    /// if a parameter is unknown; otherwise [`ErrorLevel::Unreadable`].
    pub level: ErrorLevel,
    /// The message: what failed, on which object, and why.
    pub message: String,
    /// The next step for the user; left out if there is nothing to suggest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// True if the cluster did not answer in time. The message says whether a write may have been made.
    #[serde(default)]
    pub is_late: bool,
}

impl OperationError {
    /// Makes the error of an operation that does not fit its target.
    pub fn usage(message: impl Into<String>) -> OperationError {
        OperationError { level: ErrorLevel::Usage, message: message.into(), hint: None, is_late: false }
    }

    /// Makes the error of something that could not be read or written.
    pub fn unreadable(message: impl Into<String>) -> OperationError {
        OperationError { level: ErrorLevel::Unreadable, message: message.into(), hint: None, is_late: false }
    }

    /// Returns the error with this hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> OperationError {
        OperationError { hint: Some(hint.into()), ..self }
    }
}
