//! The tasks, each in a file of its own.

pub(crate) mod bench;
pub(crate) mod conformance;
pub(crate) mod docs;
pub(crate) mod fuzz;
pub(crate) mod kube;
pub(crate) mod page;
mod protocol;
pub(crate) mod requests;
pub(crate) mod test;
pub(crate) mod tidy;
pub(crate) mod truth;
pub(crate) mod tryout;
pub(crate) mod tui;
