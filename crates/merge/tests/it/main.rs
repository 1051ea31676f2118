//! Integration tests of server-side apply.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets what it does not expect fails")]
#![expect(clippy::disallowed_methods, reason = "the crate is pure, its tests run a peer")]

mod beside_go;
mod built_in;
mod document;
mod own_suite;
mod random;
