//! Tests of the simulated API servers, as their clients see them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod api;
mod client_go;
mod conformance;
mod fleet;
mod go_suites;
mod kubectl;
mod troubles;
