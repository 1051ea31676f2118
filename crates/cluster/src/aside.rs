//! Blocking work on the async runtime.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs blocking work while another thread takes over the other tasks of this one, so that a large answer of one
/// cluster does not delay reading others.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
