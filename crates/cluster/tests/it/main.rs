//! The crate against servers that answer as told, and its index without any.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[macro_use]
#[path = "../../../../tests/cases.rs"]
mod cases;

mod bounds;
mod connecting;
mod contexts;
mod credentials;
mod discovering;
mod faults;
mod feeding;
mod index;
mod index_bounds;
mod index_evidence;
mod index_live;
mod index_saved;
mod index_scopes;
mod index_tree;
mod kubeconfigs;
mod living;
mod reading;
mod writing;
