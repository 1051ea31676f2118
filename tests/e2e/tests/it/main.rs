//! The `taffrail` binary against a real Kubernetes control plane.
//!
//! Everything below `taffrail` is real but the kubelets, which kwok plays: what a Deployment's status says is what
//! Kubernetes' own controllers wrote. One control plane of two clusters serves all tests, so each keeps to namespaces of
//! its own. It ends with the test process.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, with what it saw")]

mod access;
mod apps;
mod broken;
mod clusters;
mod harness;
mod helm;
mod noisy;
mod rollout;
mod status;
mod trust;
