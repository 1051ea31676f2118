//! The interface of expression languages such as CEL. The evaluators are in other crates: evaluation takes time and
//! may fail.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// An expression that is true or false for its variables, evaluated in bounded time.
pub trait Predicate: fmt::Debug + Send + Sync {
    /// Returns the text of the expression, as it was written.
    fn text(&self) -> &str;

    /// Returns true if the expression reads only `apiVersion`, `kind` and `metadata` of its variable `object`, so that
    /// the rest of the object need not be read from the cluster. The default is false.
    fn asks_for_metadata_only(&self) -> bool {
        false
    }

    /// Evaluates the expression with these variables, given by name.
    fn evaluate(&self, variables: &[(&str, &Value)]) -> PredicateAnswer;

    /// Evaluates as [`Predicate::evaluate`]; also returns the CPU time known to be spent on threads other than the
    /// caller's, which the default takes for zero.
    fn evaluate_at_cost(&self, variables: &[(&str, &Value)]) -> (PredicateAnswer, Duration) {
        (self.evaluate(variables), Duration::ZERO)
    }
}

/// The result of evaluating a [`Predicate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PredicateAnswer {
    /// The expression is true.
    True,
    /// The expression is false.
    False,
    /// A field or item that the expression reads does not exist yet, or has no usable type yet; the text says which, or
    /// how it fails.
    Missing(String),
    /// The expression fails, and would fail on later states of the object too; the text is the reason.
    Fault(String),
}
