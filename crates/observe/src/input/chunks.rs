//! A stream cut into pieces that can be judged on their own.

use std::io::{self, Read};
use std::sync::Arc;

/// How much is read at once, and about how large a piece is.
const PIECE: usize = 64 << 10;

/// The longest line or YAML document that is read; one that is longer is no Kubernetes object.
const LONGEST: usize = 256 << 20;

/// What a text consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A JSON object on each line. `exact`: each line gets exactly one answer, also an empty one or a
    /// list.
    Lines { exact: bool },
    /// JSON values one after the other.
    Json,
    /// YAML documents.
    Yaml,
}

/// A piece of a stream: whole lines, whole documents, or all of it.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Where it comes from, for messages.
    pub(crate) source: Arc<str>,
    /// The number of its first line, from 1.
    pub(crate) line: u64,
    pub(crate) shape: Shape,
    pub(crate) text: Vec<u8>,
}

/// Cuts a stream into chunks.
pub(crate) struct Chunks {
    reader: Box<dyn Read + Send>,
    source: Arc<str>,
    shape: Option<Shape>,
    line: u64,
    /// Read, but not handed out yet.
    rest: Vec<u8>,
    ended: bool,
}

impl Chunks {
    /// Reads `reader`; without a `shape` its first bytes tell.
    pub(crate) fn new(reader: Box<dyn Read + Send>, source: &str, shape: Option<Shape>) -> Chunks {
        Chunks { reader, source: source.into(), shape, line: 1, rest: Vec::new(), ended: false }
    }

    /// The next chunk, `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Chunk>> {
        let mut searched = 0;
        loop {
            self.fill()?;
            let shape = match self.shape {
                Some(shape) => shape,
                None => match guess(&self.rest, self.ended) {
                    Some(shape) => *self.shape.insert(shape),
                    None => continue,
                },
            };
            if self.ended {
                return Ok((!self.rest.is_empty()).then(|| self.cut(self.rest.len(), shape)));
            }
            let end = match shape {
                Shape::Lines { .. } => last_line(&self.rest, searched),
                Shape::Yaml => last_document(&self.rest, searched),
                Shape::Json => None,
            };
            if let Some(end) = end {
                return Ok(Some(self.cut(end, shape)));
            }
            if shape != Shape::Json && self.rest.len() > LONGEST {
                let what = if shape == Shape::Yaml { "document" } else { "line" };
                let message =
                    format!("the {what} at line {} is longer than {} MiB", self.line, LONGEST >> 20);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            // A separator may lie across the border of two reads.
            searched = self.rest.len().saturating_sub(8);
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        self.rest.reserve(PIECE);
        let read = (&mut self.reader).take(PIECE as u64).read_to_end(&mut self.rest)?;
        self.ended = read < PIECE;
        Ok(())
    }

    fn cut(&mut self, end: usize, shape: Shape) -> Chunk {
        let mut rest = Vec::with_capacity(self.rest.len() - end + PIECE);
        rest.extend_from_slice(&self.rest[end..]);
        self.rest.truncate(end);
        let text = std::mem::replace(&mut self.rest, rest);
        let line = self.line;
        self.line += count_lines(&text);
        Chunk { source: self.source.clone(), line, shape, text }
    }
}

/// The number of line ends in `text`.
pub(super) fn count_lines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// The position after the last line end at or after `from`.
fn last_line(text: &[u8], from: usize) -> Option<usize> {
    memchr::memrchr(b'\n', &text[from..]).map(|at| from + at + 1)
}

/// The position of the last line at or after `from` that starts a YAML document.
fn last_document(text: &[u8], from: usize) -> Option<usize> {
    let tail = &text[from..];
    let mut end = tail.len();
    while let Some(at) = tail[..end].iter().rposition(|&byte| byte == b'\n') {
        // What may still become a separator is left for the next read.
        if tail[at + 1..].starts_with(b"---") && tail.len() > at + 4 {
            return Some(from + at + 1);
        }
        end = at;
    }
    None
}

/// Tells from its first bytes what a stream consists of; `None` asks for more of it.
///
/// YAML unless it starts with a brace or bracket. A first line that is one whole JSON value means
/// lines; anything else JSON.
fn guess(text: &[u8], ended: bool) -> Option<Shape> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace());
    match start.map(|start| (start, text[start])) {
        Some((start, b'{' | b'[')) => {
            let tail = &text[start..];
            match tail.iter().position(|&byte| byte == b'\n') {
                Some(end) => {
                    let whole = taffrail_object::json::Parser::new().parse(&tail[..end]).is_ok();
                    Some(if whole { Shape::Lines { exact: false } } else { Shape::Json })
                }
                None if ended => Some(Shape::Json),
                None => None,
            }
        }
        Some(_) => Some(Shape::Yaml),
        None if ended => Some(Shape::Yaml),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(text: &str) -> (Option<Shape>, String) {
        let mut chunks = Chunks::new(Box::new(io::Cursor::new(text.to_owned())), "test", None);
        let mut joined = Vec::new();
        while let Some(chunk) = chunks.next().unwrap() {
            assert_eq!(chunk.line, 1 + count_lines(&joined));
            joined.extend_from_slice(&chunk.text);
        }
        (chunks.shape, String::from_utf8(joined).unwrap())
    }

    #[test]
    fn the_first_bytes_tell_the_shape() {
        for (text, shape) in [
            ("kind: Pod\n", Shape::Yaml),
            ("---\nkind: Pod\n", Shape::Yaml),
            ("", Shape::Yaml),
            ("{\"kind\":\"Pod\"}\n{", Shape::Lines { exact: false }),
            ("{\n \"kind\":\"Pod\"}", Shape::Json),
            ("{\"kind\":\"Pod\"}", Shape::Json),
        ] {
            assert_eq!(chunks(text), (Some(shape), text.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn long_streams_are_cut_between_documents_and_lines_and_nothing_is_lost() {
        let document = format!("kind: ConfigMap\ndata: {}\n", "x".repeat(1000));
        let yaml = vec![document; 1500].join("---\n");
        assert_eq!(chunks(&yaml), (Some(Shape::Yaml), yaml.clone()));

        let line = format!("{{\"kind\":\"{}\"}}\n", "x".repeat(PIECE * 2));
        let lines = line.repeat(4);
        assert_eq!(chunks(&lines), (Some(Shape::Lines { exact: false }), lines.clone()));
    }
}
