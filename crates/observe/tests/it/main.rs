//! Clusters that are read and followed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod group_statuses;
mod light;
mod living;
mod logs;
mod operations;
mod parses;
mod reporting;
mod rules;
