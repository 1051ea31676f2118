//! Expressions in CEL: Flux' `healthCheckExprs` and `readyExpr`.
//!
//! The interpreter needs a deep stack and cannot be stopped, so it is the caller who runs it, on a thread of its own: through
//! [`Ask`]. Here is what the answers mean.

mod budget;
mod flux;
mod program;

use std::time::Duration;

pub(crate) use flux::Checks;
pub use flux::{HealthCheckError, HealthCheckProblem, HealthChecks, ReadyExpr};
pub use program::{
    Answer, InvalidExpression, LONGEST, Names, OPENINGS, OPERATORS, Program, STACK, check_size,
};

/// An expression that somebody evaluates, in bounded time.
pub trait Ask: std::fmt::Debug + Send + Sync {
    /// Its text, as it was written.
    fn written(&self) -> &str;

    /// What it says of these, by the names by which it speaks of them.
    fn answer(&self, variables: &[(&str, &serde_json::Value)]) -> Answer;

    /// As [`Ask::answer`], with the time that it has computed on other threads than that of the caller, as far as that is known.
    fn answer_at_cost(&self, variables: &[(&str, &serde_json::Value)]) -> (Answer, Duration) {
        (self.answer(variables), Duration::ZERO)
    }
}

/// Who reads expressions.
pub type Reader<'r> = &'r dyn Fn(&str, Names) -> Result<Box<dyn Ask>, InvalidExpression>;

/// A reader of expressions of clusters, which tells what that has cost.
pub type ReadExpression = Box<dyn Fn(&str, Names) -> Reading + Send + Sync>;

/// What came of reading an expression.
#[derive(Debug)]
pub struct Reading {
    /// The expression.
    pub expression: Result<Box<dyn Ask>, InvalidExpression>,
    /// So long it has computed on other threads than that of the caller.
    pub took: Duration,
}
