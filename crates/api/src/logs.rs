//! Logs of containers as they go over a wire: the question of `logs`, and the events that answer it.

use serde::{Deserialize, Serialize};
use taffrail_apps::AppError;
use taffrail_status::Status;

use crate::question::FleetProblem;

/// The number of bytes that a line counts beside its text, for its place in an event.
const LINE_OVERHEAD: usize = 32;

/// The question of `logs`: the app or object whose containers' logs are read, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct LogsQuestion {
    /// The name of an app (`NAME`, `NAMESPACE/NAME` or `[CLUSTER/]DELIVERY/NAMESPACE/NAME`) or object (`KIND/NAME` or
    /// `[CLUSTER/]group/Kind/namespace/name`).
    pub what: String,
    /// The namespace of the object, or in which the app is declared; `null` for any, and for an object named by kind
    /// and name for that of the context.
    pub namespace: Option<String>,
    /// True to look for an object named by kind and name in all namespaces.
    pub all_namespaces: bool,
    /// The names of the clusters whose logs are read; empty for all.
    pub clusters: Vec<String>,
    /// True to follow the logs, until the client closes the connection.
    pub follow: bool,
    /// True to read the logs of the containers' previous runs.
    pub previous: bool,
    /// The name of the containers; `null` to choose by status.
    pub container: Option<String>,
    /// True to read logs of all Pods, also if some of them fail.
    pub all_pods: bool,
    /// The number of lines from the end of each log, `-1` for all; `null` for 10 of each of several logs without
    /// `sinceMillis`, and all of a single one.
    pub tail: Option<i64>,
    /// The greatest age of a line in milliseconds; `null` for any.
    pub since_millis: Option<u64>,
    /// True if each line begins with its time (RFC 3339).
    pub timestamps: bool,
}

/// A line of a log, without its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LogLine {
    /// The text as the container wrote it, without a carriage return at its end; bytes that are not UTF-8 are replaced
    /// by U+FFFD. It may contain control characters.
    pub text: String,
    /// Number of bytes at its end that are left out, because the line is longer than 16 KiB; left out if there are
    /// none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

impl LogLine {
    /// Returns the memory that the line takes, in bytes.
    pub fn cost(&self) -> usize {
        self.text.len() + size_of::<LogLine>()
    }

    /// Returns about as many bytes as the line takes in the JSON of an event, but never fewer.
    pub fn wire_cost(&self) -> usize {
        let escaped = |byte: u8| match byte {
            ..0x20 => 6,
            b'"' | b'\\' => 2,
            _ => 1,
        };
        self.text.bytes().map(escaped).sum::<usize>() + LINE_OVERHEAD
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The container of a log, as an answer to [`LogsQuestion`] names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LogSubject {
    /// The name of the cluster.
    pub cluster: String,
    /// The namespace of the Pod.
    pub namespace: String,
    /// The name of the Pod.
    pub pod: String,
    /// The name of the container.
    pub container: String,
    /// The status of the container.
    pub status: Status,
}

/// An event of the answer to a [`LogsQuestion`]. First come those about what was found, up to `chosen`; then those
/// about the logs, of which `log` is the number, in the order of the `subjects`, from 0. The answer is whole if the
/// last one is `done`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum LogEvent {
    /// A failure that belongs to no cluster.
    Problem(FleetProblem),
    /// A note about what was left out of the search.
    Note {
        /// The note, for people.
        text: String,
    },
    /// A failure to read apps.
    Error {
        /// The failure.
        error: AppError,
        /// True if nothing was ever observed of its cluster.
        is_unobserved: bool,
    },
    /// A cluster whose Pods could not be read.
    Unread {
        /// The name of the cluster.
        cluster: String,
        /// The reason in one CamelCase word, such as `Forbidden`.
        reason: String,
        /// The reason, for people.
        message: String,
    },
    /// The next logs that are read; there may be several such events.
    Logs {
        /// Their containers.
        subjects: Vec<LogSubject>,
    },
    /// The search has ended, and its results were sent.
    Chosen {
        /// Number of Pods that are left out because their status is better than that of others.
        well: usize,
        /// Number of containers that are left out because there are too many.
        left_out: usize,
    },
    /// Further containers are not followed, because their clusters have too many followed ones.
    Unfollowed {
        /// Number of these containers.
        containers: usize,
    },
    /// The next lines of a log, the oldest first.
    Lines {
        /// The number of the log.
        log: usize,
        /// Number of lines before these that are left out, because they were not sent in time.
        left_out: u64,
        /// The lines.
        lines: Vec<LogLine>,
    },
    /// A followed container has ended, and its next run is awaited.
    Waits {
        /// The number of the log.
        log: usize,
    },
    /// The log is longer than the limit: newer lines are left out.
    Cut {
        /// The number of the log.
        log: usize,
        /// The limit, in bytes.
        bytes: usize,
    },
    /// A log, or the rest of it, could not be read.
    Failed {
        /// The number of the log.
        log: usize,
        /// The reason in one CamelCase word, such as `Forbidden`.
        reason: String,
        /// The reason, for people.
        message: String,
    },
    /// A followed log has ended for good.
    Ended {
        /// The number of the log.
        log: usize,
    },
    /// The time for the answer has passed: this log is not whole, and of those after it nothing was sent.
    TooLate {
        /// The number of the log.
        log: usize,
        /// The time for the whole answer, in milliseconds.
        millis: u64,
    },
    /// The answer has reached its greatest length: the rest of this log, and those after it, are left out.
    Full {
        /// The number of the log.
        log: usize,
        /// The greatest length of an answer, in bytes.
        bytes: usize,
    },
    /// Nothing is new; sent where nothing else was for a while.
    Alive,
    /// The token or session with which the logs were asked for is not valid any more. The answer ends here.
    Refused {
        /// The reason, for people.
        message: String,
    },
    /// The answer is whole.
    Done,
}

impl LogEvent {
    /// Splits lines into events of about `most` bytes at most, or of one line if that is longer; `left_out` goes into
    /// the first.
    pub fn lines(
        log: usize,
        left_out: u64,
        lines: Vec<LogLine>,
        most: usize,
    ) -> impl Iterator<Item = LogEvent> {
        let mut rest = lines.into_iter().peekable();
        let mut left_out = Some(left_out);
        std::iter::from_fn(move || {
            let skipped = left_out.take();
            if rest.peek().is_none() && skipped.is_none_or(|skipped| skipped == 0) {
                return None;
            }
            let (mut part, mut cost) = (Vec::new(), 0);
            while let Some(line) = rest.next_if(|line| part.is_empty() || cost + line.wire_cost() <= most) {
                cost += line.wire_cost();
                part.push(line);
            }
            Some(LogEvent::Lines { log, left_out: skipped.unwrap_or_default(), lines: part })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> LogLine {
        LogLine { text: text.to_owned(), left_out: 0 }
    }

    #[test]
    fn lines_are_split_into_events_of_bounded_length() {
        let all: Vec<LogLine> = (0..1000).map(|number| line(&"\u{1b}\"".repeat(number % 50))).collect();
        let events: Vec<LogEvent> = LogEvent::lines(3, 7, all.clone(), 4096).collect();
        let mut whole = Vec::new();
        for (place, event) in events.into_iter().enumerate() {
            assert!(serde_json::to_vec(&event).unwrap().len() < 4096 + 100);
            let LogEvent::Lines { log, left_out, lines } = event else { panic!("no lines") };
            assert_eq!((log, left_out), (3, if place == 0 { 7 } else { 0 }));
            whole.extend(lines);
        }
        assert_eq!(whole, all);
        // Also lines without text take room, and one that is too long comes alone.
        assert_eq!(LogEvent::lines(0, 0, vec![line(""); 1000], 3200).count(), 10);
        assert_eq!(LogEvent::lines(0, 0, vec![line(&"x".repeat(9000)), line("y")], 100).count(), 2);
        assert_eq!(LogEvent::lines(0, 0, Vec::new(), 100).count(), 0);
        assert_eq!(LogEvent::lines(0, 2, Vec::new(), 100).count(), 1);
    }

    #[test]
    fn what_a_line_is_said_to_take_is_never_less_than_its_json() {
        for text in ["", "plain", "\u{0}\u{1f}\t\\\"", "ö€\u{1f600}", "\u{7f}\u{2028}"] {
            let line = LogLine { text: text.to_owned(), left_out: 0 };
            let json = serde_json::to_string(&line).unwrap();
            assert!(json.len() < line.wire_cost(), "{json}");
        }
    }
}
