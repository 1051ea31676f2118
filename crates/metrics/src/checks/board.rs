//! The last word of each server about each check, and the result that follows from all of them.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use taffrail_apps::{CheckAnswer, CheckResult, MetricValue, Words};

/// The word of one server about a check.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Told {
    /// A value, with the answer that follows from it, and the reason if that is false.
    Value { value: MetricValue, is_true: bool, reason: String },
    /// No value; with the reason.
    Nothing(String),
    /// The server could not tell; with the reason.
    Failed(String),
}

/// The last word of one server, and its moment.
#[derive(Debug)]
struct Entry {
    told: Told,
    at: Duration,
    /// True if the server told a value before it failed.
    had_value: bool,
}

/// The last word of each server about each check of type `K`.
#[derive(Debug)]
pub(super) struct Board<K>(HashMap<K, BTreeMap<usize, Entry>>);

impl<K> Default for Board<K> {
    fn default() -> Board<K> {
        Board(HashMap::new())
    }
}

impl<K: Eq + Hash> Board<K> {
    /// Drops all checks but those for which `is_wanted` returns true.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(&K) -> bool) {
        self.0.retain(|check, _| is_wanted(check));
    }

    /// Takes what a server told of a check at the moment `at`, and returns the result of the check, with the time for which it
    /// counts; a value counts for `window`.
    ///
    /// False wins, whoever tells it. A server that told a value before and now fails leaves no data, because it may have become
    /// false; one that never told a value does not matter.
    pub(super) fn take(
        &mut self,
        check: K,
        name: &str,
        (server, told): (usize, Told),
        at: Duration,
        window: Duration,
    ) -> (CheckResult, Duration) {
        let entries = self.0.entry(check).or_default();
        let before = entries.get(&server);
        let had_value = match &told {
            Told::Value { .. } => true,
            Told::Nothing(_) => false,
            Told::Failed(_) => before.is_some_and(|before| before.had_value),
        };
        entries.insert(server, Entry { told, at, had_value });
        let left = |entry: &Entry| window.saturating_sub(at.saturating_sub(entry.at));
        let result = |answer, value, message: &str, left| {
            let message = Words::from(message);
            (CheckResult { result: answer, value, message, ..CheckResult::no_data(name, "") }, left)
        };
        let live = || entries.values().filter(|entry| !left(entry).is_zero());
        let values = || {
            live().filter_map(|entry| match &entry.told {
                Told::Value { value, is_true, reason } => Some((entry, *value, *is_true, reason)),
                _ => None,
            })
        };
        if let Some((entry, value, _, reason)) = values().find(|(_, _, is_true, _)| !is_true) {
            return result(CheckAnswer::False, Some(value), reason, left(entry));
        }
        let lost = entries.values().find_map(|entry| match &entry.told {
            Told::Failed(reason) if entry.had_value => Some(&**reason),
            Told::Value { .. } if left(entry).is_zero() => Some("the last value of a server is too old"),
            _ => None,
        });
        if let Some(reason) = lost {
            return result(CheckAnswer::NoData, None, reason, window);
        }
        if let Some((_, value, ..)) = values().next() {
            let shortest = values().map(|(entry, ..)| left(entry)).min().unwrap_or(window);
            return result(CheckAnswer::True, Some(value), "", shortest);
        }
        let why = live().filter_map(|entry| match &entry.told {
            Told::Failed(reason) => Some((false, reason)),
            Told::Nothing(reason) => Some((true, reason)),
            Told::Value { .. } => None,
        });
        let why = why.min_by_key(|(is_empty, _)| *is_empty).map_or("", |(_, reason)| reason);
        result(CheckAnswer::NoData, None, why, window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn false_wins_and_a_server_that_failed_is_no_true() {
        let mut board: Board<u8> = Board::default();
        let second = Duration::from_secs;
        let value = |number: f64, is_true| Told::Value {
            value: MetricValue::new(number).unwrap(),
            is_true,
            reason: if is_true { String::new() } else { "too high".to_owned() },
        };
        let mut take = |server, told, at| {
            let (result, left) = board.take(1, "a", (server, told), second(at), second(180));
            (result.result.as_str(), result.message.to_string(), left.as_secs())
        };
        let nothing = || Told::Nothing("no series".to_owned());
        let failed = || Told::Failed("unreachable".to_owned());
        assert_eq!(take(0, nothing(), 0), ("nodata", "no series".to_owned(), 180));
        assert_eq!(take(1, value(0.1, true), 10), ("true", String::new(), 180));
        assert_eq!(take(0, failed(), 20), ("true", String::new(), 170), "it never told a value");
        assert_eq!(take(1, failed(), 70), ("nodata", "unreachable".to_owned(), 180));
        assert_eq!(take(0, value(0.1, true), 80), ("nodata", "unreachable".to_owned(), 180));
        assert_eq!(take(1, value(0.2, true), 90), ("true", String::new(), 170));
        assert_eq!(take(0, value(9.0, false), 100), ("false", "too high".to_owned(), 180));
        assert_eq!(take(1, value(0.2, true), 150), ("false", "too high".to_owned(), 130));
        assert_eq!(
            take(1, value(0.2, true), 290),
            ("nodata", "the last value of a server is too old".to_owned(), 180)
        );
        assert_eq!(take(0, nothing(), 300), ("true", String::new(), 170));
    }
}
