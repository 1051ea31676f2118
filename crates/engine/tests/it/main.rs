//! Syncs of simulated clusters.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod harness;
#[path = "../../../../tests/inventories.rs"]
mod inventories;
mod kept_manifests;
mod killed;
mod prune;
mod record;
mod record_sizes;
mod stores;
mod world;
mod write;
