//! Tests of the crate against servers with scripted answers, and against simulated API servers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod applying;
mod bounds;
mod connecting;
mod contexts;
mod credentials;
mod discovering;
mod faults;
mod found;
mod kubeconfigs;
mod logging;
mod reading;
mod request_timeout;
mod schemas;
mod watching;
mod writing;
