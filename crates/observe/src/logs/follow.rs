//! Follows the log of a container through its restarts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use taffrail_api::logs::LogLine;
use taffrail_cluster::{LogRequest, ReadError};
use taffrail_object::json::Value;
use taffrail_object::{Object, Projection};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::task::JoinHandle;

use super::lines::LineSplitter;
use super::pods::pods;
use super::{LogReader, LogTarget, READ_TIMEOUT};

/// Maximum memory of the lines of one log that wait to be taken, in bytes; the oldest are left out.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// Maximum number of lines of one log that wait to be taken; the oldest are left out.
const MAX_WAITING_LINES: usize = 10_000;

/// Pauses between reads of the Pod of a container that does not run: the first and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// The lines that a followed log has gained, and its end if it ended.
#[derive(Debug, Default)]
pub struct LogNews {
    /// Number of lines that are left out before [`LogNews::lines`], because they were not taken in time.
    pub left_out: u64,
    /// The new lines, the oldest first.
    pub lines: Vec<LogLine>,
    /// True if the container ended and its next run is awaited.
    pub waits: bool,
    /// The end of the log: `Ok` if the container or its Pod will not run again, else the failure; `None` if the log
    /// has not ended.
    pub end: Option<Result<(), ReadError>>,
}

impl LogNews {
    fn is_empty(&self) -> bool {
        self.left_out == 0 && self.lines.is_empty() && !self.waits && self.end.is_none()
    }
}

/// A log that is followed until it ends, or this is dropped.
#[derive(Debug)]
pub struct FollowedLog {
    waiting: Arc<Waiting>,
    task: JoinHandle<()>,
    has_ended: bool,
}

impl Drop for FollowedLog {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FollowedLog {
    pub(super) fn start(
        reader: LogReader,
        request: LogRequest,
        target: LogTarget,
        place: OwnedSemaphorePermit,
    ) -> FollowedLog {
        let waiting = Arc::new(Waiting::default());
        let told = waiting.clone();
        let task = tokio::spawn(async move {
            let _place = place;
            let end = Follower { reader, request, target, told: told.clone() }.follow().await;
            told.add(|news| news.end = Some(end));
        });
        FollowedLog { waiting, task, has_ended: false }
    }

    /// Waits for new lines or the end of the log, and returns all that came since the last call; `None` after the end.
    pub async fn next(&mut self) -> Option<LogNews> {
        while !self.has_ended {
            let news = self.waiting.take();
            self.has_ended = news.end.is_some();
            if !news.is_empty() {
                return Some(news);
            }
            // A permit is kept for a change between the look and the wait.
            self.waiting.changed.notified().await;
        }
        None
    }
}

/// The lines, and the end, that were read of a log and not taken yet.
#[derive(Debug, Default)]
struct Waiting {
    backlog: Mutex<Backlog>,
    changed: Notify,
}

/// The log lines that were received and not taken yet.
#[derive(Debug, Default)]
struct Backlog {
    lines: VecDeque<LogLine>,
    bytes: usize,
    news: LogNews,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, change: impl FnOnce(&mut LogNews)) {
        change(&mut self.lock().news);
        self.changed.notify_one();
    }

    fn add_lines(&self, lines: Vec<LogLine>) {
        if lines.is_empty() {
            return;
        }
        let mut backlog = self.lock();
        for line in lines {
            backlog.bytes += line.cost();
            backlog.lines.push_back(line);
            while backlog.bytes > MAX_WAITING_BYTES || backlog.lines.len() > MAX_WAITING_LINES {
                let Some(oldest) = backlog.lines.pop_front() else { break };
                backlog.bytes -= oldest.cost();
                backlog.news.left_out += 1;
            }
        }
        drop(backlog);
        self.changed.notify_one();
    }

    fn take(&self) -> LogNews {
        let mut backlog = self.lock();
        backlog.bytes = 0;
        let lines = std::mem::take(&mut backlog.lines).into();
        LogNews { lines, ..std::mem::take(&mut backlog.news) }
    }
}

/// The task that follows a log.
struct Follower {
    reader: LogReader,
    request: LogRequest,
    target: LogTarget,
    told: Arc<Waiting>,
}

/// The run of a container whose log is read after a server's response ended.
enum NextRun {
    /// The container's next run, from its beginning; holds the number of restarts before it.
    Run(i64),
    /// The same run: the container still runs, and only the server's response ended.
    Same,
    /// None: the container will not run again.
    Nothing,
}

impl Follower {
    async fn follow(mut self) -> Result<(), ReadError> {
        // The previous run has ended, and a run that has ended has no next one that is meant.
        let is_previous = self.request.previous;
        loop {
            let begun = Instant::now();
            self.read().await?;
            if is_previous {
                return Ok(());
            }
            let ended = Instant::now();
            match self.next(ended.duration_since(begun) < PAUSES.0).await? {
                NextRun::Nothing => return Ok(()),
                NextRun::Same => {
                    self.request.tail = None;
                    self.request.since = Some(ended.elapsed());
                }
                NextRun::Run(restarts) => {
                    self.target.restarts = restarts;
                    self.target.is_running = true;
                    (self.request.tail, self.request.since) = (None, None);
                }
            }
        }
    }

    /// Reads the log and passes on its lines, until the server ends the response.
    async fn read(&self) -> Result<(), ReadError> {
        let mut stream = self.reader.cluster.log(&self.request).await?;
        let mut lines = LineSplitter::default();
        loop {
            let mut new = Vec::new();
            match stream.next().await {
                Ok(Some(part)) => lines.push(&part, |line| {
                    new.push(line);
                    true
                }),
                end => {
                    new.extend(lines.finish());
                    self.told.add_lines(new);
                    return end.map(drop);
                }
            }
            self.told.add_lines(new);
        }
    }

    /// Reads the Pod again and again until the container runs, or will not run again, and returns which. Pauses before
    /// the first read if `is_quick`, because the response had ended at once.
    async fn next(&self, is_quick: bool) -> Result<NextRun, ReadError> {
        let pods = pods();
        let LogTarget { namespace, pod, container, restarts, is_running, .. } = &self.target;
        let (mut pause, mut waits) = (PAUSES.0, false);
        if is_quick {
            tokio::time::sleep(pause).await;
        }
        loop {
            // The semaphore is never closed.
            let place = self.reader.places.reads.acquire().await;
            let cluster = self.reader.cluster.with_timeout(READ_TIMEOUT);
            let found = cluster.get(&pods, Some(namespace), pod, Projection::Full).await?;
            drop(place);
            let Some(document) = found else { return Ok(NextRun::Nothing) };
            let Ok(object) = Object::new(document.root()) else { return Ok(NextRun::Nothing) };
            if matches!(&*object.text(&["status", "phase"]), "Succeeded" | "Failed") {
                return Ok(NextRun::Nothing);
            }
            match state(&object, container) {
                None => return Ok(NextRun::Nothing),
                Some(ContainerRun::Runs(again)) if again != *restarts || !is_running => {
                    return Ok(NextRun::Run(again));
                }
                Some(ContainerRun::Runs(_)) => return Ok(NextRun::Same),
                Some(ContainerRun::IsDone) => return Ok(NextRun::Nothing),
                // A run that was too short to be seen.
                Some(ContainerRun::Waits(again)) if again > *restarts => return Ok(NextRun::Run(again)),
                Some(ContainerRun::Waits(_)) if !waits => {
                    waits = true;
                    self.told.add(|news| news.waits = true);
                }
                Some(ContainerRun::Waits(_)) => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}

/// The state of a container as its Pod's status states it.
enum ContainerRun {
    /// The container runs; the number is that of its restarts.
    Runs(i64),
    /// The container is an init container that has done its work, or an ephemeral one that has ended.
    IsDone,
    /// The container does not run at present; the number is that of its restarts.
    Waits(i64),
}

/// Returns the state of a container; `None` if the Pod's status has no such container.
fn state(pod: &Object<'_>, container: &str) -> Option<ContainerRun> {
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        let mut statuses = pod.at(&["status", list]).and_then(Value::items).into_iter().flatten();
        let is_it = |status: &Value<'_>| status.get("name").is_some_and(|name| name.is_str(container));
        let Some(status) = statuses.find(is_it) else { continue };
        let of = |kind: &str| status.get("state")?.get(kind).filter(|it| !it.is_null());
        let restarts = status.get("restartCount").and_then(Value::as_i64).unwrap_or_default();
        if of("running").is_some() {
            return Some(ContainerRun::Runs(restarts));
        }
        let code = of("terminated").and_then(|end| end.get("exitCode")?.as_i64());
        let is_done = match list {
            "containerStatuses" => false,
            "initContainerStatuses" => code == Some(0),
            _ => code.is_some(),
        };
        return Some(if is_done { ContainerRun::IsDone } else { ContainerRun::Waits(restarts) });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: usize) -> LogLine {
        LogLine { text: number.to_string(), left_out: 0 }
    }

    #[test]
    fn the_oldest_lines_are_left_out_and_counted() {
        let waiting = Waiting::default();
        waiting.add_lines((0..MAX_WAITING_LINES + 3).map(line).collect());
        let news = waiting.take();
        assert_eq!((news.left_out, news.lines.len()), (3, MAX_WAITING_LINES));
        assert_eq!(news.lines[0], line(3));
        assert!(waiting.take().is_empty());

        // Each line takes more memory than its text.
        let text = "x".repeat(MAX_WAITING_BYTES / 4 - size_of::<LogLine>());
        let long = LogLine { text, left_out: 0 };
        waiting.add_lines(vec![long; 6]);
        let news = waiting.take();
        assert_eq!((news.left_out, news.lines.len()), (2, 4));
        waiting.add_lines(vec![line(1)]);
        assert_eq!(waiting.take().left_out, 0);
    }
}
