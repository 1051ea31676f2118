//! The Tokio runtime in which clusters are read and written, and hubs run and are asked.

use std::future::Future;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use crate::command_error::CommandError;

/// The runtime, started at its first use. It ends with the process, because resolving a name holds a thread that cannot
/// be interrupted.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// Runs `work` on the runtime and waits for its result.
///
/// # Errors
/// Fails if the threads of the runtime cannot be started.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, CommandError> {
    let runtime = runtime().map_err(|error| {
        CommandError::unreadable("Taffrail cannot start the threads that read clusters").with_source(&error)
    })?;
    Ok(runtime.block_on(work))
}

/// Starts `work` on the runtime, and does not wait for it. Returns the handle by which it is ended early; drops the work
/// and returns `None` if the runtime cannot be started.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
    Some(runtime().ok()?.spawn(work).abort_handle())
}

fn runtime() -> std::io::Result<&'static Runtime> {
    match RUNTIME.get() {
        Some(runtime) => Ok(runtime),
        None => start().map(|started| RUNTIME.get_or_init(|| started)),
    }
}

/// Creates a runtime with two to four threads, at least two even on one processor, so that no cluster waits until
/// another one was read.
fn start() -> std::io::Result<Runtime> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread().worker_threads(threads.clamp(2, 4)).enable_all().build()
}
