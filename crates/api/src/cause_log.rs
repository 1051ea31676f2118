//! The last lines of the log of a container that is a cause.

use serde::{Deserialize, Serialize};
use taffrail_object::ObjectKey;
use taffrail_status::cut;

/// The last lines of the log of one container: of the one with the worst status in the Pods of the cause of an
/// explanation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CauseLog {
    /// The Pod of the container.
    pub pod: ObjectKey,
    /// The name of the container.
    pub container: String,
    /// True if the lines are of the container's previous run, because that crashed.
    pub previous: bool,
    /// The last lines, the oldest first: at most ten, with 4 KiB of text.
    pub lines: Vec<String>,
    /// True if a line was shortened, or older ones left out, because all would exceed 4 KiB.
    pub cut: bool,
    /// The reason why the log could not be read; left out if it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl CauseLog {
    /// Maximum number of lines of a log in an explanation; of more, only the newest are kept.
    pub const MAX_LINES: usize = 10;
    /// Maximum length of all lines together, in bytes. The newest lines are kept; the first that does not fit is cut,
    /// and those before it are left out.
    pub const MAX_BYTES: usize = 4096;

    /// Makes the log of a container, so far without lines and without an error.
    pub fn new(pod: ObjectKey, container: &str, previous: bool) -> CauseLog {
        CauseLog {
            pod,
            container: container.to_owned(),
            previous,
            lines: Vec::new(),
            cut: false,
            error: None,
        }
    }

    /// Adds the newest of `lines`, at most [`MAX_LINES`](CauseLog::MAX_LINES) lines of
    /// [`MAX_BYTES`](CauseLog::MAX_BYTES) in all. If the oldest of them does not fit, only its begin is kept.
    #[must_use]
    pub fn with_lines(mut self, lines: impl DoubleEndedIterator<Item = String>) -> CauseLog {
        let mut left = CauseLog::MAX_BYTES;
        for line in lines.rev().take(CauseLog::MAX_LINES) {
            if line.len() > left {
                let kept = &line[..line.floor_char_boundary(left)];
                self.lines.extend((!kept.is_empty()).then(|| kept.to_owned()));
                self.cut = true;
                break;
            }
            left -= line.len();
            self.lines.push(line);
        }
        self.lines.reverse();
        self
    }

    /// Sets the reason why the log could not be read; one longer than 4 KiB is cut.
    #[must_use]
    pub fn with_error(self, error: &str) -> CauseLog {
        CauseLog { error: Some(cut(error).into_owned()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: &[&str]) -> CauseLog {
        let pod = ObjectKey::new("", "Pod", "shop", "web");
        CauseLog::new(pod, "web", false).with_lines(lines.iter().map(|line| (*line).to_owned()))
    }

    #[test]
    fn the_newest_lines_are_kept_within_their_bounds() {
        let numbers: Vec<String> = (0..12).map(|number| number.to_string()).collect();
        let all = log(&numbers.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((all.lines.len(), &*all.lines[0], all.cut), (10, "2", false));

        let long = "ö".repeat(3000);
        let cut = log(&["gone", &long, "last"]);
        assert!(cut.cut);
        assert_eq!(cut.lines.len(), 2);
        assert_eq!((cut.lines[0].len(), &*cut.lines[1]), (CauseLog::MAX_BYTES - 4, "last"));
    }
}
