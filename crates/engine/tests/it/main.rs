//! Syncs of simulated clusters.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../../../tests/inventories.rs"]
mod inventories;
mod prune;
mod world;
