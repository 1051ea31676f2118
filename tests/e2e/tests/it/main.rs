//! The `taffrail` binary against a real Kubernetes control plane.
//!
//! Everything below `taffrail` is real except the kubelets, which kwok simulates: Kubernetes' own controllers write the
//! status of a Deployment. One control plane of two clusters serves all tests, so each keeps to namespaces of its own.
//! It ends with the test process.
//!
//! Each scenario is two tests. `real` plays it on the control plane, and is skipped if that cannot be started;
//! `replayed` plays its recording on `taffrail-sim`, everywhere. See [`stage`].
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, with what it saw")]

#[macro_use]
mod stage;

mod access;
mod actions;
mod agents;
mod apps;
mod behaviours;
mod broken;
mod clusters;
mod conditions;
mod diff;
mod harness;
mod helm;
mod impact;
#[path = "../../../inventories.rs"]
mod inventories;
mod merges;
mod noisy;
mod operations;
mod protobuf;
mod prune;
mod recording;
mod replay;
mod rollout;
mod status;
mod timeline;
mod trust;
