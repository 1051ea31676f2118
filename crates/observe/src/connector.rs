//! Connects to clusters, and runs a function for each of them at the same time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::join_all;
use taffrail_cluster::Cluster;
use tokio::task::{JoinError, JoinHandle};

use crate::error::{Failure, ObserveError};
use crate::members::Member;
use crate::timing::TimeLimits;

/// A cluster to connect to, and the time limits for its answers.
#[derive(Debug)]
pub struct ClusterConnector {
    /// The context of the cluster.
    pub member: Member,
    /// The time for all requests to the cluster, counted from each [`ClusterConnector::connect`], and for each of them.
    pub limits: TimeLimits,
}

impl ClusterConnector {
    /// Connects to the cluster; the deadline begins now.
    ///
    /// # Errors
    ///
    /// Fails when the context cannot be used, and when the server cannot be connected to.
    pub async fn connect(&self) -> Result<Cluster, Failure> {
        let context = self.member.context.as_ref().map_err(Clone::clone)?;
        let connected = Cluster::connect(context, self.limits.deadline()).await;
        connected.map_err(|error| Failure::new(error.reason(), &error, error.hint()))
    }
}

/// Runs a function for each cluster, all at the same time, each in a task of its own; the results come in the
/// order of the members.
///
/// # Errors
///
/// Fails when one of the tasks panics.
pub async fn for_each_cluster<T, F>(
    members: Vec<Member>,
    limits: TimeLimits,
    work: impl Fn(ClusterConnector) -> F,
) -> Result<Vec<T>, ObserveError>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let spawn = |member| Task::spawn(work(ClusterConnector { member, limits }));
    let tasks: Vec<_> = members.into_iter().map(spawn).collect();
    all(tasks).await
}

/// Waits for all tasks and returns their results in order; fails if one panicked.
pub(crate) async fn all<T>(tasks: Vec<Task<T>>) -> Result<Vec<T>, ObserveError> {
    Ok(join_all(tasks).await.into_iter().collect::<Result<_, _>>()?)
}

/// A task that is aborted when this handle is dropped.
pub(crate) struct Task<T>(JoinHandle<T>);

impl<T: Send + 'static> Task<T> {
    pub(crate) fn spawn(work: impl Future<Output = T> + Send + 'static) -> Task<T> {
        Task(tokio::spawn(work))
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
