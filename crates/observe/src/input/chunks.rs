//! Cuts a stream into chunks that can be judged independently.

use std::io::{self, Read};
use std::sync::Arc;

/// Number of bytes per read, and approximate size of a chunk.
const READ_SIZE: usize = 64 << 10;

/// Maximum size of a line or YAML document, in bytes; reading the input fails at a longer one, which is not a
/// Kubernetes object.
const MAX_UNIT: usize = 256 << 20;

/// The format of the objects in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputShape {
    /// A JSON object on each line. With `exact`, each line yields exactly one [`Parsed`](super::Parsed), even an empty
    /// one or a list.
    Lines {
        /// True if an empty line is a fault and a list is one object; false to skip empty lines and to replace lists by
        /// their items.
        exact: bool,
    },
    /// JSON values one after the other.
    Json,
    /// YAML documents.
    Yaml,
}

/// A part of a stream: whole lines, whole documents, or all of it.
#[derive(Debug)]
pub struct Chunk {
    /// Name of the source, for messages.
    pub source: Arc<str>,
    /// The number of the chunk's first line in the stream, from 1.
    pub line: u64,
    /// The shape of the whole stream.
    pub shape: InputShape,
    /// The bytes of the chunk.
    pub text: Vec<u8>,
}

/// A reader that cuts a stream into chunks.
pub struct Chunks {
    reader: Box<dyn Read + Send>,
    source: Arc<str>,
    shape: Option<InputShape>,
    line: u64,
    /// Bytes read but not yet returned.
    rest: Vec<u8>,
    ended: bool,
}

impl Chunks {
    /// Starts to read `reader`, which messages call `source`. Without a `shape` the format is guessed from the
    /// first bytes.
    pub fn new(reader: Box<dyn Read + Send>, source: &str, shape: Option<InputShape>) -> Chunks {
        Chunks { reader, source: source.into(), shape, line: 1, rest: Vec::new(), ended: false }
    }

    /// Returns the next chunk, or `None` at the end.
    ///
    /// # Errors
    /// If the stream cannot be read, or a line or YAML document is longer than 256 MiB.
    pub fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
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
                InputShape::Lines { .. } => last_line(&self.rest, searched),
                InputShape::Yaml => last_document(&self.rest, searched),
                InputShape::Json => None,
            };
            if let Some(end) = end {
                return Ok(Some(self.cut(end, shape)));
            }
            if shape != InputShape::Json && self.rest.len() > MAX_UNIT {
                let what = if shape == InputShape::Yaml { "document" } else { "line" };
                let message =
                    format!("the {what} at line {} is longer than {} MiB", self.line, MAX_UNIT >> 20);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            // A separator may span two reads.
            searched = self.rest.len().saturating_sub(8);
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        self.rest.reserve(READ_SIZE);
        let read = (&mut self.reader).take(READ_SIZE as u64).read_to_end(&mut self.rest)?;
        self.ended = read < READ_SIZE;
        Ok(())
    }

    fn cut(&mut self, end: usize, shape: InputShape) -> Chunk {
        let mut rest = Vec::with_capacity(self.rest.len() - end + READ_SIZE);
        rest.extend_from_slice(&self.rest[end..]);
        self.rest.truncate(end);
        let text = std::mem::replace(&mut self.rest, rest);
        let line = self.line;
        self.line += count_lines(&text);
        Chunk { source: self.source.clone(), line, shape, text }
    }
}

/// Counts the line ends in `text`.
pub(super) fn count_lines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// Returns the offset after the last line end in `text[from..]`; `None` if there is none.
fn last_line(text: &[u8], from: usize) -> Option<usize> {
    memchr::memrchr(b'\n', &text[from..]).map(|at| from + at + 1)
}

/// Returns the offset of the last line that starts a YAML document, after the first line of `text[from..]`; `None` if
/// there is none.
fn last_document(text: &[u8], from: usize) -> Option<usize> {
    let tail = &text[from..];
    let mut end = tail.len();
    while let Some(at) = tail[..end].iter().rposition(|&byte| byte == b'\n') {
        // An incomplete separator waits for the next read.
        if tail[at + 1..].starts_with(b"---") && tail.len() > at + 4 {
            return Some(from + at + 1);
        }
        end = at;
    }
    None
}

/// Guesses the shape of a stream from its first bytes; `None` if more are needed.
///
/// It is YAML unless it starts with a brace or bracket. If the first line is a complete JSON value it is JSON lines,
/// otherwise JSON.
fn guess(text: &[u8], ended: bool) -> Option<InputShape> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace());
    match start.map(|start| (start, text[start])) {
        Some((start, b'{' | b'[')) => {
            let tail = &text[start..];
            match tail.iter().position(|&byte| byte == b'\n') {
                Some(end) => {
                    let whole = taffrail_object::json::Parser::new().parse(&tail[..end]).is_ok();
                    Some(if whole { InputShape::Lines { exact: false } } else { InputShape::Json })
                }
                None if ended => Some(InputShape::Json),
                None => None,
            }
        }
        Some(_) => Some(InputShape::Yaml),
        None if ended => Some(InputShape::Yaml),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(text: &str) -> (Option<InputShape>, String) {
        let mut chunks = Chunks::new(Box::new(io::Cursor::new(text.to_owned())), "test", None);
        let mut joined = Vec::new();
        while let Some(chunk) = chunks.next_chunk().unwrap() {
            assert_eq!(chunk.line, 1 + count_lines(&joined));
            joined.extend_from_slice(&chunk.text);
        }
        (chunks.shape, String::from_utf8(joined).unwrap())
    }

    #[test]
    fn the_first_bytes_tell_the_shape() {
        for (text, shape) in [
            ("kind: Pod\n", InputShape::Yaml),
            ("---\nkind: Pod\n", InputShape::Yaml),
            ("", InputShape::Yaml),
            ("{\"kind\":\"Pod\"}\n{", InputShape::Lines { exact: false }),
            ("{\n \"kind\":\"Pod\"}", InputShape::Json),
            ("{\"kind\":\"Pod\"}", InputShape::Json),
        ] {
            assert_eq!(chunks(text), (Some(shape), text.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn long_streams_are_cut_between_documents_and_lines_and_nothing_is_lost() {
        let document = format!("kind: ConfigMap\ndata: {}\n", "x".repeat(1000));
        let yaml = vec![document; 1500].join("---\n");
        assert_eq!(chunks(&yaml), (Some(InputShape::Yaml), yaml.clone()));

        let line = format!("{{\"kind\":\"{}\"}}\n", "x".repeat(READ_SIZE * 2));
        let lines = line.repeat(4);
        assert_eq!(chunks(&lines), (Some(InputShape::Lines { exact: false }), lines.clone()));
    }
}
