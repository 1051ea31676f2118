//! One file a task.

pub(crate) mod kube;
pub(crate) mod tryout;
