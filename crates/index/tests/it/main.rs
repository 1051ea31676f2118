//! Tests of the index from the outside.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the golden cases are files")]

#[macro_use]
#[path = "../../../../tests/cases.rs"]
mod cases;

mod bounds;
mod context;
mod evidence;
mod live;
mod saved;
mod scopes;
mod tree;
mod world;
