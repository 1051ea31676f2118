//! Followed logs that agents answer: of what nobody takes in time, the oldest lines are dropped.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures::{Stream, StreamExt as _};
use taffrail_api::logs::{LogEvent, LogLine};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::index::lock;

/// Maximum length of the lines of followed logs that wait to be taken, in bytes.
const MAX_FOLLOWED: usize = 1 << 20;

/// Maximum number of events of followed logs that wait to be taken; an answer with more ends.
const MAX_EVENTS: usize = 10_000;

/// The events of followed logs that wait to be taken.
#[derive(Default)]
struct Untaken {
    /// Each with the memory that it takes, in bytes.
    events: VecDeque<(LogEvent, usize)>,
    bytes: usize,
    /// The numbers of lines that were dropped, by log.
    dropped: HashMap<usize, u64>,
}

impl Untaken {
    fn cost(event: &LogEvent) -> usize {
        let own = match event {
            LogEvent::Lines { lines, .. } => lines.iter().map(LogLine::cost).sum(),
            // These are few, unless an agent lies.
            other => serde_json::to_vec(other).map_or(0, |text| text.len()),
        };
        own + size_of::<LogEvent>()
    }

    /// Adds an event, and drops the oldest lines beyond the bounds; returns false if there are too many other events.
    fn push(&mut self, event: LogEvent) -> bool {
        let cost = Untaken::cost(&event);
        self.bytes += cost;
        self.events.push_back((event, cost));
        while self.bytes > MAX_FOLLOWED || self.events.len() > MAX_EVENTS {
            let oldest = self.events.iter().position(|(event, _)| matches!(event, LogEvent::Lines { .. }));
            let Some((oldest, cost)) = oldest.and_then(|at| self.events.remove(at)) else { return false };
            self.bytes -= cost;
            if let LogEvent::Lines { log, left_out, lines } = oldest {
                let dropped = self.dropped.entry(log).or_default();
                *dropped = dropped.saturating_add(left_out).saturating_add(lines.len() as u64);
            }
        }
        self.dropped.len() <= MAX_EVENTS
    }

    /// Returns the next event. The first lines after dropped ones tell how many these were.
    fn pop(&mut self) -> Option<LogEvent> {
        let (mut event, cost) = self.events.pop_front()?;
        self.bytes -= cost;
        if let LogEvent::Lines { log, left_out, .. } = &mut event {
            *left_out = left_out.saturating_add(self.dropped.remove(log).unwrap_or_default());
        }
        Some(event)
    }
}

/// The events of followed logs, between the task that takes them from the agent and who reads them.
#[derive(Default)]
struct Follower {
    untaken: Mutex<Untaken>,
    has_ended: AtomicBool,
    changed: Notify,
}

/// Takes the events of followed logs as they come, however slowly the stream is read: of what waits it drops the oldest
/// lines.
pub(super) fn dropping_oldest(
    events: impl Stream<Item = LogEvent> + Send + 'static,
) -> impl Stream<Item = LogEvent> + Send + 'static {
    let follower = Arc::new(Follower::default());
    let taking = Arc::clone(&follower);
    // It ends when the stream is dropped.
    let mut task = JoinSet::new();
    task.spawn(async move {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            if !lock(&taking.untaken).push(event) {
                break;
            }
            taking.changed.notify_one();
        }
        taking.has_ended.store(true, Ordering::Release);
        taking.changed.notify_one();
    });
    futures::stream::unfold((follower, task), async |(follower, task)| {
        loop {
            let has_ended = follower.has_ended.load(Ordering::Acquire);
            let event = lock(&follower.untaken).pop();
            if let Some(event) = event {
                return Some((event, (follower, task)));
            }
            if has_ended {
                return None;
            }
            follower.changed.notified().await;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(log: usize, count: usize) -> LogEvent {
        let line = LogLine { text: "x".repeat(1000), left_out: 0 };
        LogEvent::Lines { log, left_out: 0, lines: vec![line; count] }
    }

    #[test]
    fn lines_that_nobody_takes_in_time_are_dropped_and_counted() {
        let mut untaken = Untaken::default();
        assert!(untaken.push(LogEvent::Chosen { well: 0, left_out: 0 }));
        for log in [0, 1, 0, 1] {
            assert!(untaken.push(lines(log, 400)));
        }
        assert!(untaken.bytes <= MAX_FOLLOWED);
        assert_eq!(untaken.pop(), Some(LogEvent::Chosen { well: 0, left_out: 0 }));
        let told: Vec<(usize, u64)> = std::iter::from_fn(|| untaken.pop())
            .map(|event| match event {
                LogEvent::Lines { log, left_out, .. } => (log, left_out),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(told, [(0, 400), (1, 400)]);
        // Events without lines have a bound, too.
        assert!((0..=MAX_EVENTS).any(|_| !untaken.push(LogEvent::Alive)));
    }
}
