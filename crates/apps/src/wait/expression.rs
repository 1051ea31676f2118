//! The interface to expression languages such as CEL.
//!
//! Evaluation takes time and may fail, so it is implemented in another crate.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// An expression that is true or false for an object.
pub trait Expression: fmt::Debug + Send + Sync {
    /// Returns its text, as it was written.
    fn text(&self) -> &str;

    /// Returns true if it uses only apiVersion, kind and metadata, so that the rest need not be read.
    fn asks_for_metadata_only(&self) -> bool;

    /// Evaluates the expression for an object. It must finish in bounded time.
    fn ask(&self, object: &Value) -> Answer;
}

/// The result of an expression for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// True.
    True,
    /// False.
    False,
    /// The object does not have a part that the expression needs yet; which one, for people.
    Missing(String),
    /// The expression cannot be evaluated for this object, now or later; the reason, for people.
    Fault(String),
}

/// An expression that equals every other one with the same text.
#[derive(Debug, Clone)]
pub struct Question(Arc<dyn Expression>);

impl Question {
    /// Wraps an expression.
    pub fn new(expression: Arc<dyn Expression>) -> Question {
        Question(expression)
    }
}

impl std::ops::Deref for Question {
    type Target = dyn Expression;

    fn deref(&self) -> &(dyn Expression + 'static) {
        &*self.0
    }
}

impl PartialEq for Question {
    fn eq(&self, other: &Question) -> bool {
        self.text() == other.text()
    }
}
