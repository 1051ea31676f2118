//! What the developer tasks share with the end-to-end tests.

pub mod binary;
pub mod examples;
pub mod kube;
pub mod peers;
pub mod truth;
