//! The log that is followed while the view of an app or object shows it.

use super::words::count;

/// The state of the log that a view shows.
#[derive(Debug, Default)]
pub(super) struct LogState {
    /// The number of lines that came since the cursor left the last one.
    pub(super) new_lines: usize,
    /// The end of the log, or the reason why it is no longer followed; `None` while it is.
    pub(super) end: Option<Result<(), String>>,
}

/// The app or object whose log is followed.
#[derive(Debug)]
pub(super) struct Followed {
    /// The number by which its lines are known.
    pub(super) number: u64,
    /// The number of the view that shows it.
    pub(super) view: u64,
    /// The full name, as commands take it.
    pub(super) name: String,
    /// True if the log is to be followed again from its beginning.
    pub(super) is_stale: bool,
}

impl LogState {
    /// Returns the note about the log: the lines that came, unless the cursor is at the end, or its end.
    pub(super) fn note(&self, is_at_end: bool) -> Option<String> {
        let came = match self.new_lines {
            0 => None,
            _ if is_at_end => None,
            lines => Some(format!("{} (G shows the last)", count(lines, "new line"))),
        };
        let ended = self.end.as_ref().map(|end| match end {
            Ok(()) => "the log has ended (r reads it again)".to_owned(),
            Err(_) => "the log is not followed (r tries again)".to_owned(),
        });
        let both: Vec<String> = came.into_iter().chain(ended).collect();
        (!both.is_empty()).then(|| both.join(" · "))
    }
}
