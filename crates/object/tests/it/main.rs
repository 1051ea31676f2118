//! Tests of objects from the outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its case fails")]
#![expect(clippy::disallowed_methods, reason = "the printed lists are files")]

mod index;
mod items;
mod json;
mod kinds;
mod printed;
mod selector;
mod yaml;
