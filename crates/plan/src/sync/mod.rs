//! One run of a sync: a machine that says what to do next, and never does it itself.
//!
//! [`fn@step`] takes a [`SyncRun`], what was [observed](Observation) since the last step, and the time; it returns the run as it
//! stands then, the [actions](RunAction) to carry out, and the objects that it [waits for](WaitingFor). The caller saves the run
//! before it carries out any action. So a run may be killed at any moment, and another process continues it:
//!
//! * An apply says the same when it is repeated. A task without an answer is [pending](TaskState::Pending) again after a
//!   [restart](Observation::restarted), and the caller compares the live object before it sends the apply again.
//! * A deletion names the UID: what was created again since stays.
//! * A hook has a name that the run decides, and the caller looks for it before it creates one. A finalizer holds it until its
//!   result is saved; [`RunAction::Release`] removes that.
//!
//! A run goes through the steps of a [`SyncOrder`](crate::order::SyncOrder), and in each step through its batches: the tasks of
//! one batch are sent together, the next batch when all were answered, and the next step when all objects of this one are
//! ready, its hooks ended and its pruned objects gone.

mod run;
mod start;
mod step;

pub use run::{
    Answer, HookTask, Observation, ObservedObject, RunAction, RunEnd, RunPhase, RunPolicy, StepPlace,
    SyncRun, SyncTask, TaskOutcome, TaskState, TaskVerdict, TaskWork, WaitingFor,
};
pub use start::NewRun;
pub use step::{Stepped, step};
