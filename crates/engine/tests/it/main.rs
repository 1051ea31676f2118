//! Syncs of simulated clusters.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "a test of many points prints their number")]

mod harness;
mod kept_manifests;
mod killed;
mod record;
mod record_sizes;
mod stores;
