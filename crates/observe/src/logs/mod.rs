//! Logs of containers: which to read, and reads within bounds.
//!
//! [`pods_of_object`] and [`pods_of_app`] find the Pods that a user means, [`choose`] the containers among them whose
//! logs say most, and a [`LogReader`] reads these or follows them.
//!
//! * At most [`MAX_READS`] reads of a cluster run at the same time, each has [`READ_TIMEOUT`] and [`MAX_LOG_BYTES`].
//! * At most [`MAX_FOLLOWED`] logs of a cluster are followed. Each ends with the [`FollowedLog`]; if that is not emptied,
//!   the oldest lines are left out and counted.
//! * A line is cut at [`MAX_LINE_BYTES`]. Its text is as the container wrote it: printing it safely is the caller's task.

mod choice;
mod follow;
mod lines;
mod pods;

use std::sync::Arc;
use std::time::Duration;

use taffrail_cluster::{Cluster, LogRequest, ReadError};
use tokio::sync::Semaphore;

pub use choice::{LogChoice, LogTarget, LogTargets, choose};
pub use follow::{FollowedLog, LogNews};
pub use lines::LogLine;
pub use pods::{PodsOf, PodsRequest, pods_of_app, pods_of_object};

use lines::LineSplitter;

/// Maximum number of logs of one cluster that are read at the same time; further reads wait.
pub const MAX_READS: usize = 32;
/// Maximum number of logs of one cluster that are followed at the same time; further ones are not followed.
pub const MAX_FOLLOWED: usize = 8;
/// Time limit for reading a log that is not followed; then the lines read so far are returned with the failure.
pub const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a log that is not followed, in bytes; what comes after is not read.
pub const MAX_LOG_BYTES: usize = 16 << 20;
/// Maximum length of a line in bytes; the rest of it is counted and dropped.
pub const MAX_LINE_BYTES: usize = 16 << 10;

/// Reads and follows the logs of one cluster. Clones share the limits on how many logs are read and followed at
/// once.
#[derive(Debug, Clone)]
pub struct LogReader {
    cluster: Cluster,
    reads: Arc<Semaphore>,
    followed: Arc<Semaphore>,
}

/// A log that was read.
#[derive(Debug)]
pub struct ContainerLog {
    /// The lines, the oldest first.
    pub lines: Vec<LogLine>,
    /// True if the log is longer than [`MAX_LOG_BYTES`]; the newest lines are then missing.
    pub is_cut: bool,
    /// The failure after which no more of the log was read; `None` if there was none.
    pub failure: Option<ReadError>,
}

impl LogReader {
    /// Makes a reader of the logs of `cluster`.
    pub fn new(cluster: &Cluster) -> LogReader {
        LogReader {
            cluster: cluster.clone(),
            reads: Arc::new(Semaphore::new(MAX_READS)),
            followed: Arc::new(Semaphore::new(MAX_FOLLOWED)),
        }
    }

    /// Reads a log to its present end, or to [`MAX_LOG_BYTES`]. What was read before a failure is returned with it.
    ///
    /// # Errors
    /// Fails as [`Cluster::log`] does.
    pub async fn read(&self, request: &LogRequest) -> Result<ContainerLog, ReadError> {
        // The semaphore is never closed.
        let _place = self.reads.acquire().await;
        // A clone of its own gives back what it is charged for when the log was read.
        let cluster = self.cluster.with_timeout(READ_TIMEOUT);
        let mut stream = cluster.log(&LogRequest { follow: false, ..request.clone() }).await?;
        let mut lines = LineSplitter::default();
        let mut log = ContainerLog { lines: Vec::new(), is_cut: false, failure: None };
        let mut left = MAX_LOG_BYTES;
        while !log.is_cut && log.failure.is_none() {
            let part = match stream.next().await {
                Ok(Some(part)) => part,
                Ok(None) => break,
                Err(error) => {
                    log.failure = Some(error);
                    break;
                }
            };
            let kept = &part[..part.len().min(left)];
            (log.is_cut, left) = (kept.len() < part.len(), left - kept.len());
            log.failure = cluster.charge("read a log", kept.len() as u64).err();
            lines.push(kept, &mut log.lines);
        }
        lines.finish(&mut log.lines);
        Ok(log)
    }

    /// Begins to follow the log of a container, in its next runs too. Returns `None` if [`MAX_FOLLOWED`] logs of the
    /// cluster are followed already.
    ///
    /// Must be called in a Tokio runtime.
    pub fn follow(&self, request: &LogRequest, target: &LogTarget) -> Option<FollowedLog> {
        let place = self.followed.clone().try_acquire_owned().ok()?;
        let request = LogRequest { follow: true, ..request.clone() };
        Some(FollowedLog::start(self.clone(), request, target.clone(), place))
    }
}
