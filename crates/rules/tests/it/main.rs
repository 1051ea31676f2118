//! Tests of rules in YAML and in foreign languages.

#![expect(clippy::disallowed_methods, reason = "the library is files")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[macro_use]
#[path = "../../../../tests/cases.rs"]
mod cases;

#[cfg(feature = "lua")]
mod actions;
mod expressions;
#[cfg(feature = "lua")]
mod hostile;
mod incidents;
mod library;
#[cfg(feature = "lua")]
mod lua;
#[cfg(feature = "lua")]
mod object_context;
mod scripts;
mod yaml_rules;
