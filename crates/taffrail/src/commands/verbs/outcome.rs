//! The words for results of operations, as lists of them have them.

use taffrail_api::operations::{Outcome, WriteTrace};
use taffrail_status::Status;

/// Returns the word for the result of an operation on one app, the status whose colour it has, and what it says further.
pub(crate) fn words(outcome: Option<&Outcome>) -> (&'static str, Status, &str) {
    match outcome {
        None => ("Running", Status::InProgress, ""),
        Some(Outcome::Unchanged) => ("Unchanged", Status::Current, ""),
        Some(Outcome::Refused) => ("Refused", Status::Unknown, ""),
        Some(Outcome::Accepted) => ("Accepted", Status::Current, ""),
        Some(Outcome::Done) => ("Done", Status::Current, ""),
        Some(Outcome::Ready { is_out_of_sync: false, .. }) => ("Ready", Status::Current, ""),
        Some(Outcome::Ready { .. }) => ("Ready", Status::Current, "but OutOfSync"),
        Some(Outcome::Failed { why, .. }) => ("Failed", Status::Failed, why),
        Some(Outcome::Unobservable { why }) => ("Unobservable", Status::Unknown, why),
        Some(Outcome::TimedOut { why, .. }) => ("Timeout", Status::InProgress, why),
        Some(Outcome::Error { error }) => ("Error", Status::Failed, &error.message),
        Some(Outcome::Interrupted { trace: WriteTrace::Made, why }) => {
            ("Interrupted", Status::InProgress, why)
        }
        Some(Outcome::Interrupted { why, .. }) => ("Interrupted", Status::Unknown, why),
    }
}
