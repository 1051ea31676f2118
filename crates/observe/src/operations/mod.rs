//! Operations: changes that a user asks for, planned, shown and then written to clusters.
//!
//! This module is the only one that writes what users ask for. A plan ([`plan_verb`], `plan_action`) sends nothing: it lists
//! each write with its diff and warnings, and [`OperationPlan::digest`] identifies all of them. A run
//! ([`VerbPlan::run`], `ActionPlan::run`) takes the digest of the plan that the user confirmed, so that what is written
//! is what was shown, and reports its progress as [`OperationEvent`]s. If another client changes an object meanwhile,
//! its write is planned again: the same patch is sent, and another one is an error of that object.

#[cfg(feature = "lua")]
mod actions;
#[cfg(feature = "lua")]
mod located;
mod rights;
mod send;
mod verbs;

use std::fmt;

use taffrail_api::operations::{OperationError, OperationId};
use taffrail_cluster::{Reason, WriteError, add_causes};

#[cfg(doc)]
use taffrail_api::operations::{OperationEvent, OperationPlan};

#[cfg(feature = "lua")]
pub use actions::{ActionPlan, ActionRequest, ActionScripts, ActionSettings, Offer, plan_action};
#[cfg(feature = "lua")]
pub use located::{LocateRequest, Located, LocatedObject, LocatedScripts, locate, locate_in_dump};
pub use verbs::{VerbPlan, VerbSettings, plan_verb};

/// Maximum number of times that an action sends a write, and that a verb repeats one, because other clients change
/// the object at the same time; the next conflict is an error.
const MAX_TRIES: usize = 5;

/// Makes the identifier of a run from 128 random bits.
pub fn random_id() -> OperationId {
    OperationId::new(format!("{:032x}", fastrand::u128(..)))
}

/// Appends `source` and its causes to the message of `error`.
fn with_source(mut error: OperationError, source: &dyn std::error::Error) -> OperationError {
    add_causes(&mut error.message, Some(source));
    error
}

/// Makes the error for a failed write; `what` says what was tried, such as `cannot patch …`.
fn of_write(what: impl Into<String>, error: &WriteError) -> OperationError {
    let is_late = error.reason() == Reason::Timeout;
    let failed = with_source(OperationError::unreadable(what), error).hint(error.hint());
    OperationError { is_late, ..failed }
}

/// Makes the error for a write of which the server did not store the fields `fields`.
fn dropped(name: &str, fields: &[String]) -> OperationError {
    let what = format!("{name}: the server did not keep {}", fields.join(", "));
    OperationError::unreadable(what).hint("a webhook of the cluster may have reverted these fields")
}

/// Makes the error for an object that another client changed, so that the planned write no longer fits; `conflict`
/// describes the change.
fn changed(name: impl fmt::Display, conflict: &str) -> OperationError {
    let what = format!("{name} was changed meanwhile, so the planned change may not fit: {conflict}");
    OperationError::unreadable(what).hint("check the object, and try again if the change is still needed")
}
