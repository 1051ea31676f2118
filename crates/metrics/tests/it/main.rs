//! Tests of metrics as a source.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod checks;
mod config;
mod disturbances;
mod families;
mod prometheus;
mod real;
mod stage;
