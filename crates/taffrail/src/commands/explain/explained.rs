//! The answer of `explain`, in the form in which it is printed.

use taffrail_api::diff::Comparable;
use taffrail_api::question::ExplainedSubject;
use taffrail_api::{Answer, Explanation, ExplanationList};
use taffrail_apps::AppError;

/// An answer of `explain`.
#[derive(PartialEq)]
pub(crate) enum Explained {
    /// A text.
    Text(Vec<ExplainedSubject>),
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
        let differ = |(told, old): (&ExplainedSubject, &ExplainedSubject)| {
            let others = |told: &ExplainedSubject| (told.others.clone(), told.other_count);
            told.explanation != old.explanation || others(told) != others(old) || told.row.differs(&old.row)
        };
        match (self, old) {
            (Explained::Text(told), Explained::Text(old)) => {
                told.len() != old.len() || told.iter().zip(old).any(differ)
            }
            _ => self != old,
        }
    }
}
