//! Agents and a hub, joined by TLS on this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod enrolment;
mod faults;
mod hub;
mod metrics;
mod proxies;
mod questions;
mod reporting;
mod rights;
mod spool;
