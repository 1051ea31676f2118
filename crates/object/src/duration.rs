//! Durations as Go writes and reads them: `1h30m`, `10m0s`, `500ms`.

use jiff::SignedDuration;

/// Parses a duration as Go's `time.ParseDuration` does: an optional sign, then numbers with a unit (`h`, `m`, `s`,
/// `ms`, `us`, `ns`) in any order, each with an optional fraction; or `0`. Returns `None` for any other text, and if
/// the sum is out of range.
///
/// A fraction needs a digit before and behind its point, and has nine digits at most.
pub fn parse(text: &str) -> Option<SignedDuration> {
    parse_units(text, false)
}

/// Parses a duration as [`parse`] does, with `d` for days of 24 hours; `None` if the text is not one.
pub fn parse_with_days(text: &str) -> Option<SignedDuration> {
    parse_units(text, true)
}

/// Parses a duration; `d` counts as 24 hours if `has_days` is true and is refused otherwise. Each number is parsed with
/// jiff, which by itself requires the units in order, knows more of them (`weeks`, `P1D`, `1:30:00`) and accepts white
/// space and commas between them.
fn parse_units(text: &str, has_days: bool) -> Option<SignedDuration> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Some(SignedDuration::ZERO);
    }
    let is_of_number = |character: char| character.is_ascii_digit() || character == '.';
    let mut sum = SignedDuration::ZERO;
    let mut rest = unsigned;
    while let Some(unit) = rest.find(|character| !is_of_number(character)) {
        let end = rest[unit..].find(is_of_number).map_or(rest.len(), |length| unit + length);
        let (number, part) = (&rest[..unit], &rest[..end]);
        let part = match &rest[unit..end] {
            "h" | "m" | "s" | "ms" | "us" | "µs" | "ns" => part.parse().ok()?,
            // The second of two code points that look the same.
            "μs" => format!("{number}us").parse().ok()?,
            "d" if has_days => format!("{number}h").parse::<SignedDuration>().ok()?.checked_mul(24)?,
            _ => return None,
        };
        sum = sum.checked_add(part)?;
        rest = &rest[end..];
    }
    let is_whole = rest.is_empty() && !unsigned.is_empty();
    let sum = if text.starts_with('-') { sum.checked_neg()? } else { sum };
    is_whole.then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_as_in_go() {
        for (text, milliseconds) in [
            ("10m0s", 600_000),
            ("1h", 3_600_000),
            ("1h30m", 5_400_000),
            ("90s", 90_000),
            ("1500ms", 1_500),
            ("1.5h", 5_400_000),
            ("1.5h30m", 7_200_000),
            ("30m1h", 5_400_000),
            ("1h0m0.5s", 3_600_500),
            ("2000us", 2),
            ("2000µs", 2),
            ("2000μs", 2),
            ("2000000ns", 2),
            ("-1m30s", -90_000),
            ("+5s", 5_000),
            ("0", 0),
            ("0s", 0),
        ] {
            assert_eq!(parse(text).map(|read| read.as_millis()), Some(milliseconds), "{text}");
        }
    }

    #[test]
    fn durations_that_go_refuses_are_refused() {
        for wrong in [
            "",
            "10",
            "m",
            "-",
            "1d",
            "1w",
            "2 weeks",
            "P1D",
            "PT5M",
            "1:30:00",
            "ten minutes",
            "1h-3m",
            "1e400h",
            "1h 3m",
            "1h, 3m",
            "1 h",
            "1hour",
            "1m ago",
            "1..2s",
            "--1s",
            "99999999999999999999h",
            "9000000000000000h9000000000000000h",
            " 1s",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn days_are_parsed_only_on_request() {
        assert_eq!(parse_with_days("1d12h"), Some(SignedDuration::from_hours(36)));
        assert_eq!(parse_with_days("1.5d"), Some(SignedDuration::from_hours(36)));
        assert_eq!(parse_with_days("9000000000000000d"), None);
    }
}
