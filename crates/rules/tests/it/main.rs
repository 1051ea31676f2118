//! Rules of our own form.

#![expect(clippy::disallowed_methods, reason = "the library is files")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod form;
mod library;
mod scripts;
mod surroundings;
