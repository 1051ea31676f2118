//! What the developer tasks share with the end-to-end tests.

pub mod kube;
