//! Tests of the apps crate from the outside.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set up its case fails")]

mod dump;
mod flux;
mod golden;
mod helm;
mod identity;
mod inventory;
mod reads;
mod server;
mod snapshot;
mod view;
