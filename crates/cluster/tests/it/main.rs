//! The crate against servers that answer as told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod connecting;
mod discovering;
mod feeding;
mod kubeconfigs;
mod reading;
mod server;
