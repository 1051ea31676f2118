//! The crate against servers that answer as told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod bounds;
mod connecting;
mod contexts;
mod credentials;
mod discovering;
mod faults;
mod kubeconfigs;
mod logging;
mod reading;
mod request_timeout;
mod watching;
mod writing;
