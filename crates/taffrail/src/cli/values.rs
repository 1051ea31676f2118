//! Values of options that several commands share, and their parsers.

use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;
use taffrail_apps::trust::FindingCategory;
use taffrail_object::selector::InvalidSelector;
use taffrail_object::{LabelSelector, duration};

/// Parses a label selector. Fails for a blank text, so that an unset shell variable does not select every app.
pub(crate) fn label_selector(text: &str) -> Result<LabelSelector, InvalidSelector> {
    let selector: LabelSelector = text.parse()?;
    if selector.is_everything() {
        return Err(InvalidSelector { text: text.to_owned(), reason: "it is empty".to_owned() });
    }
    Ok(selector)
}

/// Parses a duration greater than zero: numbers with the units `ms`, `s`, `m`, `h`, or a plain number of seconds. The
/// error is a message for the user.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let unit = text.trim_start_matches(|character: char| character.is_ascii_digit() || character == '.');
    let read = match unit {
        "" => duration::parse(&format!("{text}s")),
        _ => duration::parse(text),
    };
    match read.map(Duration::try_from) {
        Some(Ok(duration)) if !duration.is_zero() => Ok(duration),
        Some(_) => Err("a time must be greater than zero".to_owned()),
        None if matches!(unit, "" | "ms" | "s" | "m" | "h") => {
            Err("a time must be a number and a unit, such as 30s".to_owned())
        }
        None => Err("the time has an unknown unit; use ms, s, m or h".to_owned()),
    }
}

/// A past time, as `--at` takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PastTime {
    At(Timestamp),
    /// A time that lies this long before now.
    Ago(Duration),
}

impl PastTime {
    /// Parses a time in RFC 3339 or a duration. The error is a message for the user.
    pub(crate) fn parse(text: &str) -> Result<PastTime, String> {
        // A date has dashes; of what has none only a duration can be meant.
        match text.parse() {
            Ok(at) => Ok(PastTime::At(at)),
            Err(_) if text.contains('-') => {
                Err("a time must be in RFC 3339, such as 2026-03-01T12:00:00Z, or how long ago, such as 90m"
                    .to_owned())
            }
            Err(_) => duration(text).map(PastTime::Ago),
        }
    }
}

/// Returns the parser of `--category`, with a help text for each category of findings.
pub(super) fn categories() -> impl TypedValueParser<Value = FindingCategory> {
    let value = |category: FindingCategory| {
        PossibleValue::new(category.as_str()).help(match category {
            FindingCategory::Disagreeing => "The delivery tool reports another status than its objects have, or two other reports contradict each other",
            FindingCategory::Silent => "A controller or node stopped reporting, so that its last status may be old",
            FindingCategory::Unread => "A kind in a namespace, or a whole cluster, could not be read",
            FindingCategory::Skewed => "Two clocks differ, or it is not known when the objects were read",
            FindingCategory::Suspended => {
                "A user suspended an app or source, or excluded an object from its tool or controller"
            }
            FindingCategory::Fallback => "No rule knows the kind of an object, so its Ready is only the default",
        })
    };
    PossibleValuesParser::new(FindingCategory::ALL.map(value)).try_map(|word| {
        let mut all = FindingCategory::ALL.into_iter();
        all.find(|category| category.as_str() == word).ok_or("there is no such category of findings")
    })
}

/// Parses a duration like [`duration()`]; returns [`Duration::MAX`], no limit, for zeros alone or with one unit, such
/// as `0` and `0s`.
pub(crate) fn duration_or_none(text: &str) -> Result<Duration, String> {
    let is_zero =
        text.trim_end_matches(['m', 's', 'h']).bytes().all(|digit| digit == b'0') && text.starts_with('0');
    if is_zero { Ok(Duration::MAX) } else { duration(text) }
}

/// The values of `--dry-run` of a command that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// Write the change to the cluster
    None,
    /// Send the change as a server-side dry run: the API server checks it and writes nothing
    Server,
    /// Print the change, and send no write to the API server
    Client,
}

impl DryRun {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            DryRun::None => "none",
            DryRun::Server => "server",
            DryRun::Client => "client",
        }
    }
}

/// The output of a command that prints text for people or one document for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextOutput {
    /// For people
    Text,
    Json,
}

/// The output of a command that prints a table for people or one document for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableOutput {
    /// For people
    Table,
    Json,
    Yaml,
}

#[cfg(test)]
mod tests {
    use super::{Duration, duration, duration_or_none, label_selector};

    #[test]
    fn an_empty_label_selector_is_refused() {
        for empty in ["", " "] {
            assert!(label_selector(empty).unwrap_err().to_string().contains("write LABEL"), "{empty:?}");
        }
        assert_eq!(label_selector("a").map(|it| it.to_string()).as_deref(), Ok("a"));
    }

    #[test]
    fn a_request_timeout_of_zero_is_no_limit() {
        for zero in ["0", "0s", "0ms", "00m"] {
            assert_eq!(duration_or_none(zero), Ok(Duration::MAX), "{zero}");
        }
        assert_eq!(duration_or_none("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration_or_none("0x").unwrap_err(), "the time has an unknown unit; use ms, s, m or h");
        assert!(duration_or_none("s").is_err() && duration_or_none("").is_err());
    }

    #[test]
    fn durations_parse_with_units_or_in_seconds() {
        for (text, milliseconds) in
            [("5", 5_000), ("1.5s", 1_500), ("500ms", 500), ("1m30s", 90_000), ("2h", 7_200_000)]
        {
            assert_eq!(duration(text).map(|read| read.as_millis()), Ok(milliseconds), "{text}");
        }
        for (text, wrong) in [
            ("", "a time must be a number and a unit, such as 30s"),
            ("ms", "a time must be a number and a unit, such as 30s"),
            ("1..2s", "a time must be a number and a unit, such as 30s"),
            ("20x", "the time has an unknown unit; use ms, s, m or h"),
            ("1d", "the time has an unknown unit; use ms, s, m or h"),
            ("0s", "a time must be greater than zero"),
        ] {
            assert_eq!(duration(text), Err(wrong.to_owned()), "{text}");
        }
    }
}
