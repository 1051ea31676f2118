//! Syncs of simulated clusters.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod kept_manifests;
mod record;
mod record_sizes;
mod stores;
