//! The commands, a file each.

pub(crate) mod explain;
pub(crate) mod get;
pub(crate) mod status;
