//! Work that takes a while, beside what is asked of other clusters meanwhile.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does work that takes a while: another thread goes on with all else that this one would do meanwhile, so that what one cluster
/// sends keeps no other from being read.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
