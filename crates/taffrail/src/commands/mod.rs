//! The commands, a file each.

pub(crate) mod get;
pub(crate) mod status;
