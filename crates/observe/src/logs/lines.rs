//! Lines of a log that arrives in parts.

use std::collections::VecDeque;

use taffrail_api::logs::LogLine;

use super::MAX_LINE_BYTES;

/// Splits a log that arrives in parts into lines.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    begun: Vec<u8>,
    left_out: u64,
}

impl LineSplitter {
    /// Passes the lines that end in `part` to `out`, until that returns false; keeps the text after the last line end
    /// for the next call.
    pub(super) fn push(&mut self, part: &[u8], mut out: impl FnMut(LogLine) -> bool) {
        let mut rest = part;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.extend(&rest[..end]);
            if !out(self.take()) {
                return;
            }
            rest = &rest[end + 1..];
        }
        self.extend(rest);
    }

    /// Returns the text after the last line end as a line; `None` if it is empty.
    pub(super) fn finish(&mut self) -> Option<LogLine> {
        (!self.begun.is_empty()).then(|| self.take())
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

/// The last lines of a log that is read, within a limit of memory.
#[derive(Debug)]
pub(super) struct LastLines {
    lines: VecDeque<LogLine>,
    /// The number of lines to keep, counted from the end.
    most: usize,
    /// The memory that the kept lines take, in bytes.
    pub(super) cost: usize,
    limit: usize,
    /// True if a line was refused, because the limit was reached.
    pub(super) is_full: bool,
}

impl LastLines {
    /// Makes a buffer that keeps the last `most` lines, all if it is `None`, and at most `limit` bytes of memory.
    pub(super) fn new(most: Option<u64>, limit: usize) -> LastLines {
        let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        LastLines { lines: VecDeque::new(), most, cost: 0, limit, is_full: false }
    }

    /// Adds a line, and drops the oldest one beyond the number to keep. Returns false, and drops the line, if it would
    /// exceed the limit.
    pub(super) fn push(&mut self, line: LogLine) -> bool {
        if self.lines.len() >= self.most {
            match self.lines.pop_front() {
                Some(oldest) => self.cost -= oldest.cost(),
                None => return true,
            }
        }
        self.is_full |= self.cost + line.cost() > self.limit;
        if !self.is_full {
            self.cost += line.cost();
            self.lines.push_back(line);
        }
        !self.is_full
    }

    /// Returns the lines, the oldest first.
    pub(super) fn into_lines(self) -> Vec<LogLine> {
        self.lines.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(parts: &[&[u8]]) -> Vec<LogLine> {
        let (mut lines, mut out) = (LineSplitter::default(), Vec::new());
        let mut keep = |line| {
            out.push(line);
            true
        };
        parts.iter().for_each(|part| lines.push(part, &mut keep));
        out.extend(lines.finish());
        out
    }

    #[test]
    fn the_last_lines_are_kept_within_their_memory() {
        let line = |text: &str| LogLine { text: text.to_owned(), left_out: 0 };
        let mut last = LastLines::new(Some(2), 1 << 20);
        for number in 0..10_000 {
            assert!(last.push(line(&number.to_string())));
            assert!(last.lines.len() <= 2 && last.cost <= 2 * (4 + size_of::<LogLine>()));
        }
        assert_eq!(last.into_lines(), [line("9998"), line("9999")]);
        let mut none = LastLines::new(Some(0), 1 << 20);
        assert!(none.push(line("x")) && none.into_lines().is_empty());
        // An empty line takes memory, too.
        let mut empty = LastLines::new(None, 100 * size_of::<LogLine>());
        let kept = (0..1000).take_while(|_| empty.push(line(""))).count();
        assert_eq!((kept, empty.is_full), (100, true));
        assert_eq!(empty.into_lines().len(), 100);
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
