//! The `taffrail` binary against a real Kubernetes control plane.
//!
//! Everything below `taffrail` is real but the kubelets, which kwok plays: what a Deployment's status says is what
//! Kubernetes' own controllers wrote. One control plane of two clusters serves all tests, so each keeps to namespaces of
//! its own. It ends with the test process.
//!
//! Each scenario is two tests. `real` plays it there, and is skipped where there can be no control plane; `replayed` plays what
//! was recorded of it on `taffrail-sim`, everywhere. See [`stage`].
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, with what it saw")]

#[macro_use]
mod stage;

mod access;
mod actions;
mod apps;
mod broken;
mod clusters;
mod harness;
mod helm;
mod noisy;
mod protobuf;
mod recording;
mod replay;
mod rollout;
mod status;
mod timeline;
mod trust;
