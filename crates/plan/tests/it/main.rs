//! Tests of plans from the outside.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets what it does not expect fails")]
#![expect(
    clippy::disallowed_methods,
    reason = "the crate is pure, its tests take a seed from the environment"
)]
#![expect(clippy::print_stdout, reason = "a random test prints its seed")]

mod diff;
mod ignore;
mod manifests;
mod masking;
mod order;
mod prune;
mod random;
mod server;
mod stored;
mod sync;
mod unchanged;
