//! Real control planes, fixtures and peers for tests and benches; a dev-dependency only.

pub mod binary;
pub mod examples;
pub mod kube;
pub mod peers;
pub mod truth;
