//! Roll-up: the object that decides the status of an app, and counts by status.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_object::ObjectKeyRef;

use crate::verdict::Status;

/// The sort key of an object in a roll-up: status, time and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The object's status.
    pub status: Status,
    /// The time since when the object is not well, if known.
    pub since: Option<Timestamp>,
    /// The object's key.
    pub key: ObjectKeyRef<'a>,
}

impl Subject<'_> {
    /// Orders by severity, with the object that decides a roll-up as the least: worse status first; then not well for
    /// longer (unknown time last); then group, kind, namespace, name.
    pub fn speaks_before(&self, other: &Subject<'_>) -> Ordering {
        let since = |subject: &Subject<'_>| subject.since.unwrap_or(Timestamp::MAX);
        self.status
            .cmp(&other.status)
            .then_with(|| since(self).cmp(&since(other)))
            .then_with(|| self.key.cmp(&other.key))
    }
}

/// A value that a roll-up can order by its status, the time since which it is not well, and its key.
pub trait AsSubject {
    /// Returns the sort key of this value in a roll-up.
    fn subject(&self) -> Subject<'_>;
}

impl AsSubject for Subject<'_> {
    fn subject(&self) -> Subject<'_> {
        *self
    }
}

/// Returns the object with the worst status, among equals the one not well for longest, then the one with the least
/// key; `None` if there are no objects.
///
/// The status of the returned object is that of the whole. The order of the input does not matter, and worsening one
/// object never improves the result.
///
/// ```
/// use taffrail_object::ObjectKeyRef;
/// use taffrail_status::{Status, rollup::{Subject, worst}};
///
/// let object = |status, name| {
///     Subject { status, since: None, key: ObjectKeyRef::new("apps", "Deployment", "shop", name) }
/// };
/// let all = [object(Status::Current, "web"), object(Status::Failed, "cart"), object(Status::NotFound, "db")];
/// assert_eq!(worst(&all).map(|subject| subject.key.name), Some("cart"));
/// ```
pub fn worst<'s, S: AsSubject>(subjects: impl IntoIterator<Item = &'s S>) -> Option<&'s S> {
    subjects.into_iter().min_by(|one, other| one.subject().speaks_before(&other.subject()))
}

/// Returns the object that decides the status of an app: the worst of `declared`, unless an object of `beside` is
/// worse. `beside` are further objects in their order of precedence: a list that cannot be read, then the declaring
/// object; each decides only if it is worse than all before it. `None` if there are no objects.
pub fn worst_of_app<'s, S: AsSubject>(
    declared: impl IntoIterator<Item = &'s S>,
    beside: impl IntoIterator<Item = &'s S>,
) -> Option<&'s S> {
    beside.into_iter().fold(worst(declared), |worst, other| match worst {
        Some(worst) if worst.subject().status <= other.subject().status => Some(worst),
        _ => Some(other),
    })
}

/// The number of objects with each status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Counts {
    /// The number of objects whose actual state is the desired one.
    pub current: usize,
    /// The number of objects whose actual state is approaching the desired one.
    pub in_progress: usize,
    /// The number of objects with an error, or without progress within the deadline.
    pub failed: usize,
    /// The number of objects that are being deleted.
    pub terminating: usize,
    /// The number of objects that do not exist.
    pub not_found: usize,
    /// The number of objects whose status is not known.
    pub unknown: usize,
}

impl Counts {
    /// Returns the number of objects with `status`.
    pub fn get(mut self, status: Status) -> usize {
        *self.of(status)
    }

    /// Returns the number of all objects.
    pub fn total(self) -> usize {
        Status::ALL.into_iter().map(|status| self.get(status)).sum()
    }

    /// Counts one more object with `status`.
    pub fn add(&mut self, status: Status) {
        *self.of(status) += 1;
    }

    /// Counts `count` more objects with `status`.
    pub fn add_many(&mut self, status: Status, count: usize) {
        *self.of(status) += count;
    }

    fn of(&mut self, status: Status) -> &mut usize {
        match status {
            Status::Current => &mut self.current,
            Status::InProgress => &mut self.in_progress,
            Status::Failed => &mut self.failed,
            Status::Terminating => &mut self.terminating,
            Status::NotFound => &mut self.not_found,
            Status::Unknown => &mut self.unknown,
        }
    }
}

impl FromIterator<Status> for Counts {
    fn from_iter<I: IntoIterator<Item = Status>>(statuses: I) -> Counts {
        let mut counts = Counts::default();
        statuses.into_iter().for_each(|status| counts.add(status));
        counts
    }
}

/// Computes the roll-up of kstatus: the status of a wait until all objects have the status `desired`.
///
/// Without objects it is `desired`. If one is Failed it is Failed, else if one is Unknown it is Unknown; if all are
/// `desired` it is `desired`, otherwise InProgress.
pub fn aggregate(statuses: &[Status], desired: Status) -> Status {
    if statuses.contains(&Status::Failed) {
        Status::Failed
    } else if statuses.contains(&Status::Unknown) {
        Status::Unknown
    } else if statuses.iter().all(|&status| status == desired) {
        desired
    } else {
        Status::InProgress
    }
}
