//! Integration tests of server-side apply.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets what it does not expect fails")]

mod beside_go;
mod random;
