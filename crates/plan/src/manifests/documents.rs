//! The documents of a file, separated and read as kubectl's decoder does (`YAMLOrJSONDecoder` of apimachinery): a text
//! that begins with `{` is JSON objects one after another, and YAML from the first that is not JSON; YAML documents are
//! separated by lines of `---`.

use serde_json::Value;
use taffrail_object::Lines;
use taffrail_object::json::{self, Parser};
use taffrail_object::yaml::{self, WrittenError};

use super::errors::ManifestErrorKind;
use super::{MAX_FILE_BYTES, MAX_NESTING, ManifestFile};

/// The maximum weight (see [`yaml::Written`]) that the aliases of a whole set may add; a set that exceeds it is an error.
const MAX_REPLAYED: usize = 10_000_000;

/// The estimated memory that the tree of a JSON document may take, in bytes; the YAML reader has the same limit.
const MAX_TREE_BYTES: usize = 2 << 30;

/// A document that holds a value other than null.
pub(super) struct Document {
    pub(super) tree: Value,
    pub(super) lines: Lines,
    /// The number of lines of the file before those that `lines` counts.
    pub(super) before: u64,
    /// A key that stands twice at the top, with its line in the file.
    pub(super) repeated: Option<(String, u64)>,
}

/// The error of a document, with its line in the file.
pub(super) type Failed = (u64, ManifestErrorKind);

/// An iterator over the documents of a file.
pub(super) struct Documents<'t, 's> {
    rest: &'t [u8],
    /// The line at which `rest` begins, from 1.
    line: u64,
    format: Format,
    /// The error of the separator that was passed last.
    separator: Option<Failed>,
    /// The weight of the aliases of all documents of the set.
    replayed: &'s mut usize,
}

/// The format of the rest of a file.
enum Format {
    TooLarge,
    /// JSON if it begins with `{`.
    Unknown,
    /// YAML, with the reason for which a text that begins with `{` is not JSON.
    Yaml(Option<Failed>),
    Over,
}

impl<'t, 's> Documents<'t, 's> {
    pub(super) fn of(file: &ManifestFile<'t>, replayed: &'s mut usize) -> Documents<'t, 's> {
        let format = if file.content.len() > MAX_FILE_BYTES { Format::TooLarge } else { Format::Unknown };
        Documents { rest: file.content, line: 1, format, separator: None, replayed }
    }

    fn skip(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, &[]));
        self.line += newlines(passed);
        self.rest = rest;
    }

    /// Reads the JSON object at the start of the text.
    fn json(&mut self) -> Result<Result<Document, Failed>, Failed> {
        let mut parser = Parser::without_items();
        let (text, line) = (self.rest, self.line);
        let (document, rest) = parser.parse_first(text).map_err(|error| {
            let before = text.get(..error.offset).unwrap_or_default();
            let kind = match error.kind {
                json::ErrorKind::TooDeep => ManifestErrorKind::TooDeep,
                kind => ManifestErrorKind::Json(kind.to_string()),
            };
            (line + newlines(before), kind)
        })?;
        self.skip(text.len() - rest.len());
        let root = document.root();
        if tree_bytes(root.text().unwrap_or_default()) > MAX_TREE_BYTES {
            return Ok(Err((line, ManifestErrorKind::TooManyValues)));
        }
        // A scalar is a level of a tree as well.
        let tree = root.to_tree_within(MAX_NESTING as u32 + 1);
        let read = tree.map_err(|_| (line, ManifestErrorKind::TooDeep));
        let lines = Lines::of_json(root, text, line);
        Ok(read.map(|tree| Document { tree, lines, before: 0, repeated: None }))
    }

    /// Takes the lines up to the next separator and passes that; returns them with the number of the first.
    fn piece(&mut self) -> (&'t [u8], u64) {
        let (text, first) = (self.rest, self.line);
        let mut at = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if let Some(after) = line.strip_prefix(b"---") {
                self.skip(at);
                if !matches!(after.trim_ascii_start().first(), None | Some(b'#')) {
                    self.separator = Some((self.line, ManifestErrorKind::Separator));
                }
                self.skip(line.len());
                return (text.get(..at).unwrap_or(text), first);
            }
            at += line.len();
        }
        self.rest = &[];
        (text, first)
    }

    fn yaml(&mut self, piece: &[u8], first: u64) -> Result<Document, Failed> {
        let before = first - 1;
        let text = std::str::from_utf8(piece).map_err(|error| {
            let valid = piece.get(..error.valid_up_to()).unwrap_or_default();
            (first + newlines(valid), ManifestErrorKind::NotUtf8)
        })?;
        let written = yaml::read_written(text, MAX_NESTING).map_err(|error| match error {
            WrittenError::Syntax(error) => {
                (before + error.line.unwrap_or(1), ManifestErrorKind::Yaml(error.message))
            }
            WrittenError::TooDeep { line, .. } => (before + line, ManifestErrorKind::TooDeep),
            WrittenError::Aliases { line } => (before + line, ManifestErrorKind::Aliases),
            WrittenError::Memory { line } => (before + line, ManifestErrorKind::TooManyValues),
            other => (first, ManifestErrorKind::Yaml(other.to_string())),
        })?;
        *self.replayed = self.replayed.saturating_add(written.replayed);
        if *self.replayed > MAX_REPLAYED {
            return Err((first, ManifestErrorKind::Aliases));
        }
        let repeated = written.repeated.map(|(key, line)| (key, before + line));
        Ok(Document { tree: written.tree, lines: written.lines, before, repeated })
    }
}

impl Iterator for Documents<'_, '_> {
    type Item = Result<Document, Failed>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(separator) = self.separator.take() {
            return Some(Err(separator));
        }
        loop {
            let failed = match std::mem::replace(&mut self.format, Format::Unknown) {
                Format::Over => {
                    self.format = Format::Over;
                    return None;
                }
                Format::TooLarge => {
                    self.format = Format::Over;
                    return Some(Err((1, ManifestErrorKind::FileTooLarge)));
                }
                Format::Unknown => {
                    let start = self.rest.trim_ascii_start();
                    if start.first() != Some(&b'{') {
                        // A byte order mark is no part of YAML's content.
                        self.rest = self.rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(self.rest);
                        self.format = Format::Yaml(None);
                        continue;
                    }
                    self.skip(self.rest.len() - start.len());
                    match self.json() {
                        Ok(read) => return Some(read),
                        Err(failed) => self.format = Format::Yaml(Some(failed)),
                    }
                    continue;
                }
                Format::Yaml(failed) => failed,
            };
            let (piece, first) = self.piece();
            self.format = if self.rest.is_empty() { Format::Over } else { Format::Yaml(None) };
            if piece.trim_ascii().is_empty() && failed.is_none() && self.separator.is_none() {
                continue;
            }
            let read = self.yaml(piece, first).map_err(|own| failed.unwrap_or(own));
            match read {
                Ok(document) if document.tree.is_null() => {
                    if let Some(separator) = self.separator.take() {
                        return Some(Err(separator));
                    }
                }
                read => return Some(read),
            }
        }
    }
}

fn newlines(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Estimates the memory that the tree of a JSON text takes, in bytes: the nodes of its maps, its values and its text.
fn tree_bytes(text: &[u8]) -> usize {
    let (mut size, mut is_string, mut is_escaped) = (text.len(), false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_string = !is_string,
            b'{' if !is_string => size = size.saturating_add(640),
            b'[' | b',' if !is_string => size = size.saturating_add(64),
            _ => {}
        }
    }
    size
}
