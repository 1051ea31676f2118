//! Operations: the writes that a user asks for, as they are shown before they are sent, and the progress of their run.
//!
//! An operation is planned first: an [`OperationPlan`] lists each write with its diff and warnings, and its
//! [digest](OperationPlan::digest) identifies all of them. A run takes the digest of the plan that the user confirmed,
//! so that what is written is what was shown, and reports its progress as [`OperationEvent`]s.
//!
//! * `question` has the questions: a verb for apps, or an action on an object.
//! * `plan` has what is shown before anything is sent, `run` what a run tells, and `record` what a hub keeps of it.

mod plan;
mod question;
mod record;
mod run;

pub use plan::{
    ActionTarget, OperationPlan, OperationTarget, PlanAnswer, PlanDigest, PlannedChange, PlannedItem,
    PlannedWrite, RefusedItem, Target, called,
};
pub use question::{ActionQuestion, OperationQuestion, VerbQuestion};
pub use record::{OperationRecord, RecordedItem, RecordedWrite, UncertainWrite, WriteState, WriteTrace};
pub use run::{After, OperationError, OperationEvent, OperationId, Outcome, Reply, RunRequest, WaitingItem};

/// Maximum number of apps of an operation that needs no confirmation of their number.
pub const MOST_UNCOUNTED: usize = 10;
