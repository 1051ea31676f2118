//! Reads and follows the logs that were found, as events.

use futures::stream::{self, BoxStream, Stream, StreamExt};
use taffrail_api::logs::LogEvent;
use taffrail_cluster::{ReadError, chain};
use taffrail_observe::logs::{ContainerLog, LogNews, MAX_LOG_BYTES, ReadLimits};
use tokio::time::Instant;

use super::find::FoundLog;

/// Maximum number of logs that are read at the same time; further ones wait. Each is kept until those before it are
/// taken.
const MAX_AHEAD: usize = 8;

/// The bounds of reading several logs, and of the events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadBounds {
    /// The moment by which all logs must be read; `None` to limit only the time of each log.
    pub(crate) until: Option<Instant>,
    /// Maximum size in bytes of the logs that are kept at one time; `None` to limit only the size of each log.
    pub(crate) kept: Option<usize>,
    /// Maximum length of an event of lines, in bytes, unless it has one line.
    pub(crate) event: usize,
}

impl ReadBounds {
    /// The bounds of a command that reads the logs itself.
    pub(crate) const OF_COMMAND: ReadBounds = ReadBounds { until: None, kept: None, event: usize::MAX };
}

fn failed(log: usize, error: &ReadError) -> LogEvent {
    LogEvent::Failed { log, reason: error.reason().as_str().to_owned(), message: chain(error) }
}

/// Reads the logs one after the other.
pub(crate) fn read(logs: Vec<FoundLog>, bounds: ReadBounds) -> impl Stream<Item = LogEvent> + Send + 'static {
    let ahead = logs.len().clamp(1, MAX_AHEAD);
    let bytes = bounds.kept.map_or(MAX_LOG_BYTES, |kept| (kept / ahead).min(MAX_LOG_BYTES));
    let read = move |(place, log): (usize, FoundLog)| async move {
        let limits = ReadLimits::from_now();
        let until = bounds.until.map_or(limits.until, |until| until.min(limits.until));
        (place, log.reader.read(&log.request, ReadLimits { until, bytes }).await)
    };
    let reads = stream::iter(logs.into_iter().enumerate().map(read)).buffered(MAX_AHEAD);
    let events = move |(log, answer): (usize, Result<ContainerLog, ReadError>)| {
        let (lines, cut, failure) = match answer {
            Ok(ContainerLog { lines, is_cut, failure }) => (lines, is_cut, failure),
            Err(error) => (Vec::new(), false, Some(error)),
        };
        let cut = cut.then_some(LogEvent::Cut { log, bytes });
        let end = failure.map_or(LogEvent::Ended { log }, |error| failed(log, &error));
        stream::iter(LogEvent::lines(log, 0, lines, bounds.event).chain(cut).chain([end]))
    };
    reads.flat_map(events).chain(stream::iter([LogEvent::Done]))
}

/// Follows the logs until all have ended.
///
/// Must be called in a Tokio runtime.
pub(crate) fn follow(
    logs: Vec<FoundLog>,
    bounds: ReadBounds,
) -> impl Stream<Item = LogEvent> + Send + 'static {
    let mut containers = 0;
    let mut followed: Vec<BoxStream<'static, (usize, LogNews)>> = Vec::new();
    for (place, log) in logs.iter().enumerate() {
        match log.reader.follow(&log.request, &log.target) {
            Some(follows) => {
                let news = stream::unfold(follows, move |mut follows| async move {
                    let news = follows.next().await?;
                    Some(((place, news), follows))
                });
                followed.push(news.boxed());
            }
            None => containers += 1,
        }
    }
    let unfollowed = (containers > 0).then_some(LogEvent::Unfollowed { containers });
    let events = move |(log, LogNews { left_out, lines, waits, end }): (usize, LogNews)| {
        let waits = waits.then_some(LogEvent::Waits { log });
        let end = end.map(|end| match end {
            Ok(()) => LogEvent::Ended { log },
            Err(error) => failed(log, &error),
        });
        stream::iter(LogEvent::lines(log, left_out, lines, bounds.event).chain(waits).chain(end))
    };
    let followed = stream::select_all(followed).flat_map(events);
    stream::iter(unfollowed).chain(followed).chain(stream::iter([LogEvent::Done]))
}
