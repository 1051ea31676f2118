//! Expressions in conditions to wait for.

use std::sync::Arc;

use serde_json::Value;
use taffrail_object::{Predicate, PredicateAnswer};

/// A predicate about an object, such as a CEL expression; equal to every other with the same text.
#[derive(Debug, Clone)]
pub struct Question(Arc<dyn Predicate>);

impl Question {
    /// Wraps an expression about `object`.
    pub fn new(expression: Arc<dyn Predicate>) -> Question {
        Question(expression)
    }

    /// Returns the text of the expression, as it was written.
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// Returns true if the expression reads only `apiVersion`, `kind` and `metadata`, so that metadata-only
    /// reads suffice.
    pub(super) fn asks_for_metadata_only(&self) -> bool {
        self.0.asks_for_metadata_only()
    }

    /// Evaluates the expression with `object` as its variable.
    pub(super) fn ask(&self, object: &Value) -> PredicateAnswer {
        self.0.evaluate(&[("object", object)])
    }
}

impl PartialEq for Question {
    fn eq(&self, other: &Question) -> bool {
        self.text() == other.text()
    }
}
