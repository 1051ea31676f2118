//! The answer of `explain`, in the form in which it is printed.

use taffrail_api::diff::Comparable;
use taffrail_api::{Answer, AppRow, Explanation, ExplanationList};
use taffrail_apps::{AppError, Words};
use taffrail_object::ObjectKey;
use taffrail_status::Status;

/// The row of an app and its objects that are not ready beside the worst, and the explanation.
pub(super) type Told = ((AppRow, Vec<(ObjectKey, Status, Words)>), Explanation);

/// An answer of `explain`.
#[derive(PartialEq)]
pub(crate) enum Explained {
    /// A text.
    Text(Vec<Told>),
    /// A document about one app or object.
    One(Box<Answer>),
    /// A document about several.
    Several(ExplanationList),
}

impl Explained {
    /// Makes a document: one without a list if there is a single explanation and `is_single`.
    pub(super) fn document(mut all: Vec<Explanation>, errors: &[AppError], is_single: bool) -> Explained {
        match all.pop() {
            Some(only) if all.is_empty() && is_single => {
                Explained::One(Box::new(Answer::new(only, errors.iter().map(Into::into).collect())))
            }
            last => {
                all.extend(last);
                Explained::Several(ExplanationList::of(all, errors))
            }
        }
    }
}

impl Comparable for Explained {
    fn differs(&self, old: &Explained) -> bool {
        let differ = |(((row, others), told), ((old_row, old_others), old)): (&Told, &Told)| {
            told != old || others != old_others || row.differs(old_row)
        };
        match (self, old) {
            (Explained::Text(told), Explained::Text(old)) => {
                told.len() != old.len() || told.iter().zip(old).any(differ)
            }
            _ => self != old,
        }
    }
}
