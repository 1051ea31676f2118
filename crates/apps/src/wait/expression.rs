//! The border to languages in which people ask about an object: evaluating takes time and may go wrong, so it is done
//! elsewhere.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// An expression that is true or false of an object.
pub trait Expression: fmt::Debug + Send + Sync {
    /// Its text, as it was written.
    fn text(&self) -> &str;

    /// Whether it asks for nothing but apiVersion, kind and metadata, so that the rest need not be known.
    fn asks_for_metadata_only(&self) -> bool;

    /// What it says of an object. It must answer in bounded time.
    fn ask(&self, object: &Value) -> Answer;
}

/// What an expression says of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// The object has not yet what it asks for; what that is, for people.
    Missing(String),
    /// It has no answer for this object, and will not have one later; why, for people.
    Fault(String),
}

/// An expression, which is the same as another with the same text.
#[derive(Debug, Clone)]
pub struct Question(Arc<dyn Expression>);

impl Question {
    /// Asks by an expression.
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
