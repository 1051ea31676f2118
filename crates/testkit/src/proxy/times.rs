//! Times in JSON that are moved, as a server with a wrong clock states them.

use jiff::{SignedDuration, Timestamp};

/// Returns the JSON text with each string that is a time in UTC (`2026-03-01T12:00:00Z`) moved by `by`; its precision
/// stays.
pub(super) fn moved(json: &str, by: SignedDuration) -> String {
    let parts: Vec<String> = json.split('"').map(|part| moved_time(part, by)).collect();
    parts.join("\"")
}

fn moved_time(text: &str, by: SignedDuration) -> String {
    let is_time =
        (20..=30).contains(&text.len()) && text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T');
    let time = is_time.then(|| text.parse::<Timestamp>().ok()).flatten();
    let Some(later) = time.and_then(|time| time.checked_add(by).ok()) else { return text.to_owned() };
    let digits = text.rsplit_once('.').map_or(0, |(_, rest)| rest.len() - 1);
    match digits {
        0 => later.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        _ => later.strftime(&format!("%Y-%m-%dT%H:%M:%S.%{digits}fZ")).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_move_and_all_else_stays() {
        let text =
            r#"{"a":"2026-03-01T23:30:00Z","b":"2026-03-01T12:00:00.000120Z","c":"at 2026-03-01T12:00:00Z"}"#;
        assert_eq!(
            moved(text, SignedDuration::from_hours(1)),
            r#"{"a":"2026-03-02T00:30:00Z","b":"2026-03-01T13:00:00.000120Z","c":"at 2026-03-01T12:00:00Z"}"#
        );
        assert_eq!(
            moved(r#"{"a":"2026-03-01T00:30:00Z"}"#, SignedDuration::from_hours(-1)),
            r#"{"a":"2026-02-28T23:30:00Z"}"#
        );
    }
}
