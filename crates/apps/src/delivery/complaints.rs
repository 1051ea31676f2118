//! Errors in the declarations of a namespace. An author there can make any number, so only some are reported
//! one by one.

use std::collections::BTreeMap;

use taffrail_object::{ObjectKey, ObjectKeyRef};

use crate::scope::{Scope, ScopeError};

/// The maximum number of errors reported for the Helm releases of one namespace; one more error counts the others.
const MAX_RELEASE_ERRORS: usize = super::MOST_MALFORMED;

/// The maximum number of errors reported for all apps that one namespace declares; one more error counts the others.
const MAX_APP_ERRORS: usize = 200;

/// The kind of declaration that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Releases,
    Apps,
}

impl Subject {
    fn most(self) -> usize {
        match self {
            Subject::Releases => MAX_RELEASE_ERRORS,
            Subject::Apps => MAX_APP_ERRORS,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Subject::Releases => "Helm releases",
            Subject::Apps => "apps",
        }
    }
}

/// Number of errors by index of the cluster, namespace and subject, each with one of the objects concerned.
#[derive(Debug, Default)]
pub(crate) struct Complaints(BTreeMap<(usize, String, Subject), (usize, ObjectKey)>);

impl Complaints {
    /// Counts `number` errors about the object `key`; returns how many of them may be reported within the
    /// limit.
    pub(super) fn admit(
        &mut self,
        cluster: usize,
        key: ObjectKeyRef<'_>,
        subject: Subject,
        number: usize,
    ) -> usize {
        let place = (cluster, key.namespace.to_owned(), subject);
        let (count, _) = self.0.entry(place).or_insert_with(|| (0, key.to_owned()));
        let left = subject.most().saturating_sub(*count);
        *count = count.saturating_add(number);
        left.min(number)
    }

    /// Returns one error, with the number of errors beyond the limit, for each namespace and subject that exceeded it;
    /// resets the counts.
    pub(super) fn finish(&mut self) -> Vec<(usize, ScopeError)> {
        let more = |((cluster, namespace, subject), (count, key)): (
            (usize, String, Subject),
            (usize, ObjectKey),
        )| {
            let more = count.saturating_sub(subject.most());
            let message =
                format!("{} in namespace {namespace}: {more} more errors are not listed", subject.as_str());
            let error = ScopeError { scope: Scope::Object(key), reason: "Malformed".to_owned(), message };
            (more > 0).then_some((cluster, error))
        };
        std::mem::take(&mut self.0).into_iter().filter_map(more).collect()
    }
}
