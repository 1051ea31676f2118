//! Lines of a log that arrives in parts.

use super::MAX_LINE_BYTES;

/// A line of a log, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The text as the container wrote it, without a carriage return at its end; bytes that are not UTF-8 are replaced
    /// by U+FFFD.
    pub text: String,
    /// Number of bytes at its end that are left out, because the line is longer than [`MAX_LINE_BYTES`].
    pub left_out: u64,
}

/// Splits a log that arrives in parts into lines.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    begun: Vec<u8>,
    left_out: u64,
}

impl LineSplitter {
    /// Adds the lines that end in `part` to `out`; keeps the text after the last line end for the next call.
    pub(super) fn push(&mut self, part: &[u8], out: &mut Vec<LogLine>) {
        let mut rest = part;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.extend(&rest[..end]);
            out.push(self.take());
            rest = &rest[end + 1..];
        }
        self.extend(rest);
    }

    /// Adds the text after the last line end to `out` as a line, unless it is empty.
    pub(super) fn finish(&mut self, out: &mut Vec<LogLine>) {
        if !self.begun.is_empty() {
            out.push(self.take());
        }
    }

    fn extend(&mut self, part: &[u8]) {
        let kept = part.len().min(MAX_LINE_BYTES - self.begun.len());
        self.begun.extend_from_slice(&part[..kept]);
        self.left_out += (part.len() - kept) as u64;
    }

    fn take(&mut self) -> LogLine {
        let mut left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            // No character is cut in two.
            let cut = match std::str::from_utf8(&self.begun) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => self.begun.len(),
            };
            left_out += (self.begun.len() - cut) as u64;
            self.begun.truncate(cut);
        }
        let text = String::from_utf8_lossy(&self.begun);
        // Lines of Windows programs.
        let text = text.strip_suffix('\r').unwrap_or(&text).to_owned();
        self.begun.clear();
        LogLine { text, left_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(parts: &[&[u8]]) -> Vec<LogLine> {
        let (mut lines, mut out) = (LineSplitter::default(), Vec::new());
        parts.iter().for_each(|part| lines.push(part, &mut out));
        lines.finish(&mut out);
        out
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let text = "one\r\n\nzwei ö\nlast".as_bytes();
        let whole = lines(&[text]);
        assert_eq!(whole.iter().map(|line| &*line.text).collect::<Vec<_>>(), ["one", "", "zwei ö", "last"]);
        for size in 1..8 {
            assert_eq!(lines(&text.chunks(size).collect::<Vec<_>>()), whole, "{size}");
        }
        assert_eq!(lines(&[]), []);
        assert_eq!(lines(&[b"\xff\n"])[0].text, "\u{fffd}");
    }

    #[test]
    fn long_lines_are_cut_and_counted() {
        let long = "ö".repeat(MAX_LINE_BYTES);
        let text = format!("a{long}\nb\n");
        let found = lines(&text.as_bytes().chunks(1000).collect::<Vec<_>>());
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].text.len(), MAX_LINE_BYTES - 1);
        assert_eq!(found[0].left_out as usize, 1 + long.len() - found[0].text.len());
        assert_eq!(found[1], LogLine { text: "b".to_owned(), left_out: 0 });
    }
}
