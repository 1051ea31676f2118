//! Logs of containers: which to read, and reads within bounds.
//!
//! [`pods_of_object`] and [`pods_of_app`] find the Pods that a user means, [`choose`] the containers among them whose
//! logs say most, and a [`LogReader`] reads these or follows them.
//!
//! * At most [`MAX_READS`] reads of a cluster run at the same time, each within its [`ReadLimits`].
//! * At most [`MAX_FOLLOWED`] logs of a cluster are followed. Each ends with the [`FollowedLog`]; if that is not emptied,
//!   the oldest lines are left out and counted.
//! * Readers that share their [`LogPlaces`] share these numbers.
//! * A line is cut at [`MAX_LINE_BYTES`]. Its text is as the container wrote it: printing it safely is the caller's task.

mod choice;
mod follow;
mod lines;
mod pods;

use std::sync::Arc;
use std::time::Duration;

use taffrail_api::logs::LogLine;
use taffrail_cluster::{Cluster, LogRequest, Phase, ReadError, TimeLimit};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

pub use choice::{LogChoice, LogTarget, LogTargets, choose};
pub use follow::{FollowedLog, LogNews};
pub use pods::{PodsOf, PodsRequest, pods_of_app, pods_of_object};

use lines::{LastLines, LineSplitter};

/// Maximum number of logs of one cluster that are read at the same time; further reads wait.
pub const MAX_READS: usize = 32;
/// Maximum number of logs of one cluster that are followed at the same time; further ones are not followed.
pub const MAX_FOLLOWED: usize = 8;
/// Time limit for reading a log that is not followed, unless the [`ReadLimits`] set another one.
pub const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a log that is not followed, in bytes, unless the [`ReadLimits`] set another one.
pub const MAX_LOG_BYTES: usize = 16 << 20;
/// Maximum length of a line in bytes; the rest of it is counted and dropped.
pub const MAX_LINE_BYTES: usize = 16 << 10;

/// The bounds of reading one log that is not followed.
#[derive(Debug, Clone, Copy)]
pub struct ReadLimits {
    /// The moment at which the read ends, the wait for its place included; the lines read so far are then returned with
    /// the failure.
    pub until: Instant,
    /// Maximum size in bytes: of what is read, and of the memory that the kept lines take. What comes after is not
    /// read.
    pub bytes: usize,
}

impl ReadLimits {
    /// Returns the bounds of a read that begins now: [`READ_TIMEOUT`] and [`MAX_LOG_BYTES`].
    pub fn from_now() -> ReadLimits {
        ReadLimits { until: Instant::now() + READ_TIMEOUT, bytes: MAX_LOG_BYTES }
    }
}

/// The places for logs of one cluster that are read or followed at the same time. Clones share them.
#[derive(Debug, Clone)]
pub struct LogPlaces {
    reads: Arc<Semaphore>,
    followed: Arc<Semaphore>,
}

impl Default for LogPlaces {
    fn default() -> LogPlaces {
        LogPlaces {
            reads: Arc::new(Semaphore::new(MAX_READS)),
            followed: Arc::new(Semaphore::new(MAX_FOLLOWED)),
        }
    }
}

impl LogPlaces {
    /// Returns true if another clone of these exists.
    pub fn are_shared(&self) -> bool {
        Arc::strong_count(&self.reads) > 1
    }
}

/// Reads and follows the logs of one cluster. Clones share the limits on how many logs are read and followed at
/// once.
#[derive(Debug, Clone)]
pub struct LogReader {
    cluster: Cluster,
    places: LogPlaces,
}

/// A log that was read.
#[derive(Debug)]
pub struct ContainerLog {
    /// The lines, the oldest first.
    pub lines: Vec<LogLine>,
    /// True if the log is longer than [`ReadLimits::bytes`]; the newest lines are then missing.
    pub is_cut: bool,
    /// The failure after which no more of the log was read; `None` if there was none.
    pub failure: Option<ReadError>,
}

impl LogReader {
    /// Makes a reader of the logs of `cluster`.
    pub fn new(cluster: &Cluster) -> LogReader {
        LogReader::sharing(cluster, LogPlaces::default())
    }

    /// Makes a reader of the logs of `cluster` that shares its places with other readers of the cluster.
    pub fn sharing(cluster: &Cluster, places: LogPlaces) -> LogReader {
        LogReader { cluster: cluster.clone(), places }
    }

    /// Reads a log to its present end, or to its limits; keeps only the last lines if the request has a number of them,
    /// also if the server sends more. What was read before a failure is returned with it.
    ///
    /// # Errors
    /// Fails as [`Cluster::log`] does, and if the read got no place in time.
    pub async fn read(&self, request: &LogRequest, limits: ReadLimits) -> Result<ContainerLog, ReadError> {
        let begun = Instant::now();
        let place = timeout_at(limits.until, self.places.reads.acquire()).await;
        // The semaphore is never closed.
        let _place = place.map_err(|_| ReadError::Timeout {
            what: request.what(),
            phase: Phase::Queue,
            after: TimeLimit::All(begun.elapsed()),
        })?;
        // A clone of its own gives back what it is charged for when the log was read.
        let cluster = self.cluster.with_timeout(limits.until.saturating_duration_since(Instant::now()));
        let mut stream = cluster.log(&LogRequest { follow: false, ..request.clone() }).await?;
        let mut splitter = LineSplitter::default();
        let mut last = LastLines::new(request.tail, limits.bytes);
        let (mut is_cut, mut failure) = (false, None);
        let (mut left, mut charged) = (limits.bytes, 0);
        while !is_cut && failure.is_none() {
            let part = match stream.next().await {
                Ok(Some(part)) => part,
                Ok(None) => break,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            };
            let kept = &part[..part.len().min(left)];
            left -= kept.len();
            splitter.push(kept, |line| last.push(line));
            is_cut = kept.len() < part.len() || last.is_full;
            let more = last.cost.saturating_sub(charged);
            charged += more;
            failure = cluster.charge("read a log", more as u64).err();
        }
        if let Some(line) = splitter.finish()
            && !last.is_full
        {
            is_cut |= !last.push(line);
        }
        Ok(ContainerLog { lines: last.into_lines(), is_cut, failure })
    }

    /// Begins to follow the log of a container, in its next runs too. Returns `None` if [`MAX_FOLLOWED`] logs of the
    /// cluster are followed already.
    ///
    /// Must be called in a Tokio runtime.
    pub fn follow(&self, request: &LogRequest, target: &LogTarget) -> Option<FollowedLog> {
        let place = self.places.followed.clone().try_acquire_owned().ok()?;
        let request = LogRequest { follow: true, ..request.clone() };
        Some(FollowedLog::start(self.clone(), request, target.clone(), place))
    }
}
