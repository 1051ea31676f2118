//! Tasks that are aborted when their handle is dropped.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::task::{JoinError, JoinHandle};

/// A task that runs on its own and is aborted when this handle is dropped.
pub(super) struct OwnedTask<T>(JoinHandle<T>);

/// Starts `work` as a task of its own.
pub(super) fn start<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> OwnedTask<T> {
    OwnedTask(tokio::spawn(work))
}

impl<T> Future for OwnedTask<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for OwnedTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
