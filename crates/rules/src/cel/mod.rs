//! Expressions in CEL: Flux' `healthCheckExprs` and `readyExpr`.
//!
//! The interpreter needs a deep stack and cannot be stopped, so the caller runs it, on a thread of its own, behind
//! the trait [`Ask`]. This module decides which expressions are accepted and how their answers become verdicts.

mod budget;
mod flux;
mod program;

use std::time::Duration;

pub(crate) use flux::Checks;
pub use flux::{HealthCheckError, HealthCheckProblem, HealthChecks, ReadyExpr};
pub use program::{
    Answer, InvalidExpression, MAX_LENGTH, MAX_OPENINGS, MAX_OPERATORS, Names, Program, REQUIRED_STACK,
    check_size,
};

/// An expression that the caller's evaluator answers in bounded time.
pub trait Ask: std::fmt::Debug + Send + Sync {
    /// Returns the text of the expression, as it was written.
    fn written(&self) -> &str;

    /// Evaluates the expression with these variables, given by name.
    fn answer(&self, variables: &[(&str, &serde_json::Value)]) -> Answer;

    /// Evaluates as [`Ask::answer`], and returns the CPU time spent on other threads than the caller's, as far as
    /// it is known.
    fn answer_at_cost(&self, variables: &[(&str, &serde_json::Value)]) -> (Answer, Duration) {
        (self.answer(variables), Duration::ZERO)
    }
}

/// A function that parses expressions.
pub type Reader<'r> = &'r dyn Fn(&str, Names) -> Result<Box<dyn Ask>, InvalidExpression>;

/// A function that parses expressions of clusters and reports the cost of each.
pub type ReadExpression = Box<dyn Fn(&str, Names) -> Reading + Send + Sync>;

/// The result and the cost of parsing an expression.
#[derive(Debug)]
pub struct Reading {
    /// The expression, or the reason it is invalid.
    pub expression: Result<Box<dyn Ask>, InvalidExpression>,
    /// The CPU time spent on other threads than the caller's.
    pub took: Duration,
}
