//! Expressions in CEL: Flux' `healthCheckExprs` and `readyExpr`.
//!
//! The interpreter needs a deep stack and cannot be stopped, so the caller runs it, on a thread of its own, behind the
//! trait [`Predicate`]. This module decides which expressions are accepted and how their results become verdicts.

mod budget;
mod flux;
mod program;

use std::time::Duration;

pub(crate) use flux::Checks;
pub use flux::{HealthCheckError, HealthCheckProblem, HealthChecks, ReadyExpr};
pub use program::{
    InvalidExpression, MAX_LENGTH, MAX_OPENINGS, MAX_OPERATORS, Names, Program, REQUIRED_STACK, check_size,
};
pub use taffrail_object::{Predicate, PredicateAnswer};

/// A function that parses an expression, which may use only the given names.
pub type Reader<'r> = &'r dyn Fn(&str, Names) -> Result<Box<dyn Predicate>, InvalidExpression>;

/// A function that parses an expression of a cluster, which may use only the given names, and reports the cost.
pub type ReadExpression = Box<dyn Fn(&str, Names) -> Reading + Send + Sync>;

/// The result and the cost of parsing an expression.
#[derive(Debug)]
pub struct Reading {
    /// The expression, or the reason it is invalid.
    pub expression: Result<Box<dyn Predicate>, InvalidExpression>,
    /// The CPU time spent on other threads than the caller's.
    pub took: Duration,
}
