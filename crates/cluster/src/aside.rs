//! Runs blocking work on the async runtime without delaying other tasks.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs blocking work on this thread while another thread takes over the other async tasks, so that a large response
/// of one cluster does not delay reading others.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
