//! Tests of objects from the outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its case fails")]

mod index;
mod json;
mod kinds;
mod selector;
