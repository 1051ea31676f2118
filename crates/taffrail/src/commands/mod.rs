//! The subcommands, one module each.

#[cfg(feature = "lua")]
pub(crate) mod actions;
#[cfg(not(feature = "lua"))]
#[path = "actions/unsupported.rs"]
pub(crate) mod actions;
pub(crate) mod app;
pub(crate) mod completion;
pub(crate) mod config;
#[cfg(feature = "demo")]
pub(crate) mod demo;
pub(crate) mod dump;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod get;
mod guard;
mod named;
pub(crate) mod rules;
pub(crate) mod status;
pub(crate) mod tree;
pub(crate) mod trust;
pub(crate) mod verbs;
pub(crate) mod wait;
pub(crate) mod watch;
mod writes;
