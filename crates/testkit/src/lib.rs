//! Real control planes, fixtures and peers for tests and benches; a dev-dependency only.

#[cfg(feature = "agents")]
pub mod agents;
pub mod behaviours;
pub mod binary;
pub mod examples;
mod exchange;
pub mod fake_hub;
pub mod go_modules;
pub mod hub;
pub mod kube;
mod kubeconfig;
pub mod objects;
pub mod peers;
pub mod prometheus;
#[cfg(feature = "server")]
pub mod proxy;
pub mod running;
#[cfg(feature = "server")]
pub mod server;
pub mod suites;
pub mod terminal;
pub mod truth;

pub use exchange::exchange;
pub use kubeconfig::kubeconfig;
