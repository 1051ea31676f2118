//! The interface through which the hub gets answers to views' questions that need reads of clusters.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use taffrail_api::logs::{LogEvent, LogLine, LogsQuestion};
use taffrail_api::question::{QuestionError, ViewAnswer, ViewQuestion};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, timeout_at};

/// The number of events of logs that wait to be sent; the work for further ones waits.
const WAITING_EVENTS: usize = 4;

/// Answers the questions of views (`get apps`, `tree`, `explain`, …) by reading clusters. The binary implements it; the
/// hub calls it for `/api/v1/questions`.
pub trait Ask: Send + Sync {
    /// Returns a future that answers `question` within `patience`. The answer leaves out, and says so, the data that
    /// clusters have not sent by then. Dropping the future ends the work for it.
    fn ask(&self, question: ViewQuestion, patience: Duration) -> Asking<'_>;

    /// Returns a future that finds the logs that `question` asks for, and begins to read them, within `bounds`.
    /// Dropping the future, or what it returns, ends the work for them.
    fn logs(&self, question: LogsQuestion, bounds: LogBounds) -> AskingLogs<'_>;
}

/// The boxed future that [`Ask::ask`] returns.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<ViewAnswer, AskError>> + Send + 'a>>;

/// The boxed future that [`Ask::logs`] returns.
pub type AskingLogs<'a> = Pin<Box<dyn Future<Output = Result<LogAnswer, AskError>> + Send + 'a>>;

/// The bounds of an answer about logs.
#[derive(Debug, Clone, Copy)]
pub struct LogBounds {
    /// The time for finding the logs, and, unless they are followed, also for reading and sending them.
    pub patience: Duration,
    /// Maximum length of the lines of an answer, in bytes; without effect on logs that are followed.
    pub bytes: usize,
}

/// The events of logs that are read or followed in a task of their own, which ends when this is dropped.
#[derive(Debug)]
pub struct LogAnswer {
    events: mpsc::Receiver<LogEvent>,
    task: JoinHandle<()>,
}

impl Drop for LogAnswer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl LogAnswer {
    /// Starts a task that takes the events of logs that are followed, however long they go on. What `events` holds is
    /// free when the answer is dropped.
    ///
    /// Must be called in a Tokio runtime.
    pub fn follow(events: impl Stream<Item = LogEvent> + Send + 'static) -> LogAnswer {
        let (sender, receiver) = mpsc::channel(WAITING_EVENTS);
        let task = tokio::spawn(async move {
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        });
        LogAnswer { events: receiver, task }
    }

    /// Starts a task that takes the events of logs that are read, until `until` and up to `bytes` of lines. What
    /// `events` holds (turns, places, memory) is free by then, even if the receiver takes no events: at most
    /// four and the one that says that the time has passed then wait.
    ///
    /// Must be called in a Tokio runtime.
    pub fn read(
        events: impl Stream<Item = LogEvent> + Send + 'static,
        patience: Duration,
        until: Instant,
        bytes: usize,
    ) -> LogAnswer {
        let (sender, receiver) = mpsc::channel(WAITING_EVENTS + 1);
        let task = tokio::spawn(async move {
            // The last event has a place, however slowly the others are taken. The channel is empty yet.
            let Ok(last) = sender.clone().reserve_owned().await else { return };
            let mut progress = Progress { whole: 0, left: bytes };
            let end = {
                let mut events = std::pin::pin!(events);
                loop {
                    // A timeout polls the events first, which may be ready again and again.
                    if Instant::now() >= until {
                        break progress.too_late(patience);
                    }
                    let Ok(event) = timeout_at(until, events.next()).await else {
                        break progress.too_late(patience);
                    };
                    let Some(event) = event else { return };
                    // That all was passed on needs no wait.
                    if event == LogEvent::Done {
                        break event;
                    }
                    let Some(event) = progress.take(event) else { break progress.full(bytes) };
                    match timeout_at(until, sender.send(event)).await {
                        Ok(Ok(())) => {}
                        Ok(Err(_)) => return,
                        Err(_) => break progress.too_late(patience),
                    }
                }
            };
            last.send(end);
        });
        LogAnswer { events: receiver, task }
    }

    /// Returns a handle that ends the work for the answer.
    pub(crate) fn abort_handle(&self) -> AbortHandle {
        self.task.abort_handle()
    }

    /// Waits for the next event; `None` after the last one.
    pub async fn next(&mut self) -> Option<LogEvent> {
        self.events.recv().await
    }
}

/// The part of an answer that was passed on.
struct Progress {
    /// The number of the first log that is not whole.
    whole: usize,
    /// The number of bytes of lines that may follow.
    left: usize,
}

impl Progress {
    /// Counts an event, and returns it; `None` if it is too long for the answer.
    fn take(&mut self, event: LogEvent) -> Option<LogEvent> {
        match &event {
            LogEvent::Lines { lines, .. } => {
                let cost: usize = lines.iter().map(LogLine::cost).sum();
                self.left = self.left.checked_sub(cost)?;
            }
            LogEvent::Ended { log } | LogEvent::Failed { log, .. } => self.whole = self.whole.max(log + 1),
            _ => {}
        }
        Some(event)
    }

    fn too_late(&self, patience: Duration) -> LogEvent {
        let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        LogEvent::TooLate { log: self.whole, millis }
    }

    fn full(&self, bytes: usize) -> LogEvent {
        LogEvent::Full { log: self.whole, bytes }
    }
}

/// The reason why [`Ask::ask`] returned no answer, [`Ask::logs`] no events, or [`Operate`](crate::Operate) no plan.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The question names something that the fleet does not have, or an app by a name that several apps have.
    #[error(transparent)]
    Question(#[from] QuestionError),
    /// The question has parameters with which a hub cannot answer it; holds the reason.
    #[error("the hub cannot answer this question of a view: {0}")]
    Invalid(String),
    /// The turn of the question at a cluster, which is read for a limited number of questions at one time, did not come
    /// in time; holds the name of the cluster.
    #[error("the hub already reads cluster {0} for as many questions as it may at one time")]
    Busy(String),
    /// The clusters did not answer in time.
    #[error("the clusters did not answer in time")]
    Late,
    /// The agent that reports a cluster, of which the hub knows no other way to it, is not connected; holds the name of
    /// the cluster.
    #[error(
        "an agent reports cluster {0}, and it is not connected: the hub knows only what it reported last"
    )]
    Unconnected(String),
    /// The agent that reports a cluster did not answer as it should.
    #[error("the agent of cluster {cluster} gave no answer: {why}")]
    OfAgent {
        /// The name of the cluster.
        cluster: String,
        /// The reason.
        why: String,
    },
    /// The task that reads the clusters has ended, or failed.
    #[error("cannot answer the question: the hub no longer reads its clusters")]
    Ended,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::stream;
    use tokio::sync::Semaphore;

    use super::*;

    fn lines(log: usize, length: usize) -> LogEvent {
        LogEvent::Lines { log, left_out: 0, lines: vec![LogLine { text: "x".repeat(length), left_out: 0 }] }
    }

    /// Returns the last event of an answer, and the number of those before it.
    async fn end(mut answer: LogAnswer) -> (usize, Option<LogEvent>) {
        let (mut count, mut last) = (0, None);
        while let Some(event) = answer.next().await {
            count += usize::from(last.is_some());
            last = Some(event);
        }
        (count, last)
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_no_events_holds_nothing_after_the_deadline() {
        let turns = Arc::new(Semaphore::new(1));
        let turn = Arc::clone(&turns).acquire_owned().await.unwrap();
        let endless = stream::unfold(turn, |turn| async { Some((lines(0, 1000), turn)) });
        let patience = Duration::from_secs(10);
        let until = Instant::now() + patience;
        let answer = LogAnswer::read(endless, patience, until, usize::MAX);
        tokio::time::sleep(patience - Duration::from_millis(1)).await;
        assert_eq!(turns.available_permits(), 0);
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert_eq!(turns.available_permits(), 1, "the turn is free");
        // What waits is bounded, and says that it is not all.
        let (count, last) = end(answer).await;
        assert_eq!((count, last), (WAITING_EVENTS, Some(LogEvent::TooLate { log: 0, millis: 10_000 })));
    }

    #[tokio::test]
    async fn events_that_are_always_ready_end_at_the_deadline() {
        let events = [LogEvent::Ended { log: 0 }, LogEvent::Ended { log: 1 }];
        let events = stream::iter(events).chain(stream::repeat_with(|| lines(2, 10)));
        let patience = Duration::from_millis(50);
        let answer = LogAnswer::read(events, patience, Instant::now() + patience, usize::MAX);
        let (_, last) = tokio::time::timeout(Duration::from_secs(60), end(answer)).await.unwrap();
        assert_eq!(last, Some(LogEvent::TooLate { log: 2, millis: 50 }));
    }

    #[tokio::test]
    async fn an_answer_has_a_greatest_length_of_which_empty_lines_take_a_part() {
        let patience = Duration::from_secs(60);
        let until = Instant::now() + patience;
        let empty = stream::repeat_with(|| lines(0, 0));
        let (count, last) = end(LogAnswer::read(empty, patience, until, 3200)).await;
        assert_eq!((count, last), (100, Some(LogEvent::Full { log: 0, bytes: 3200 })));
        let whole = stream::iter([lines(0, 10), LogEvent::Ended { log: 0 }, LogEvent::Done]);
        let (count, last) = end(LogAnswer::read(whole, patience, until, 3200)).await;
        assert_eq!((count, last), (2, Some(LogEvent::Done)));
    }

    #[tokio::test]
    async fn dropping_an_answer_ends_its_work() {
        let turns = Arc::new(Semaphore::new(2));
        let turn = || Arc::clone(&turns).try_acquire_owned().unwrap();
        let pending = |turn| stream::once(async move { (std::future::pending::<()>().await, turn) });
        let followed = LogAnswer::follow(pending(turn()).map(|_| LogEvent::Done));
        let until = Instant::now() + Duration::from_secs(600);
        let read = LogAnswer::read(pending(turn()).map(|_| LogEvent::Done), Duration::ZERO, until, 1);
        assert_eq!(turns.available_permits(), 0);
        drop((followed, read));
        let both = tokio::time::timeout(Duration::from_secs(60), turns.acquire_many(2)).await;
        assert!(both.is_ok());
    }
}
