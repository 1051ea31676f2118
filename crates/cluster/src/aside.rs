//! Runs blocking work in async tasks; a multi-threaded runtime goes on with its other tasks meanwhile.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs `work` on this thread and returns its result. In a multi-threaded tokio runtime another thread takes over the
/// other async tasks meanwhile, so that a large response of one cluster does not delay reading others; elsewhere they
/// wait.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Size of JSON texts in bytes from which work on them is blocking work, because that takes long.
const LARGE: usize = 256 << 10;

/// Runs `work` on JSON texts of `bytes` bytes in all: like [`aside`] if they are large, at once otherwise, because
/// handing the other tasks to another thread costs more than they would wait.
pub fn aside_if_large<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes < LARGE { work() } else { aside(work) }
}
