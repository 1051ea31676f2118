//! Texts of times and messages, short enough for a line.

use jiff::Timestamp;

/// Returns the time since `at`: `just now` up to 1 s and for a time in the future, `40 s ago`, `12 min ago`, `3 h ago`,
/// `5 d ago`.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    match now.as_second().saturating_sub(at.as_second()) {
        // Clocks of several machines differ.
        ..=1 => "just now".to_owned(),
        seconds => format!("{} ago", span(seconds)),
    }
}

/// Formats a number of seconds in its largest unit: `40 s`, `12 min`, `3 h`, `5 d`.
pub fn span(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{} s", seconds.max(0)),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Formats a number of seconds in its largest unit without a space, as kubectl writes ages: `40s`, `12m`,
/// `3h`, `5d`.
pub fn age(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{}s", seconds.max(0)),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Formats a time for people, in UTC: `2026-03-01 12:00:00 UTC`.
pub fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Joins the first `most` of `names` with commas; the number of the others follows: `a, b and 3 more`.
pub fn listed<T: AsRef<str>>(names: impl IntoIterator<Item = T>, most: usize) -> String {
    let mut names = names.into_iter();
    let first: Vec<T> = names.by_ref().take(most).collect();
    let told = first.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.count() {
        0 => told,
        more => format!("{told} and {more} more"),
    }
}

/// Returns the first line of a message that is not blank, with runs of white space replaced by one space.
pub fn line(message: &str) -> String {
    let first = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    first.split_whitespace().collect::<Vec<_>>().join(" ")
}
