//! The documents of a file, separated and read as kubectl's decoder does (`YAMLOrJSONDecoder` of apimachinery): a text
//! that begins with `{` is JSON values one after another. If the first or the second is not JSON, it and all that follows
//! is YAML. YAML documents are separated by lines of `---`.

use std::borrow::Cow;

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
    /// JSON, of which so many values were read.
    Json(usize),
    /// YAML, with the reason for which a text that begins with `{` is not JSON.
    Yaml(Option<Failed>),
    Over,
}

impl<'t, 's> Documents<'t, 's> {
    pub(super) fn of(file: &ManifestFile<'t>, replayed: &'s mut usize) -> Documents<'t, 's> {
        let format = if file.content.len() > MAX_FILE_BYTES { Format::TooLarge } else { Format::Unknown };
        Documents { rest: file.content, line: 1, format, separator: None, replayed }
    }

    /// Returns the documents of a text that is YAML even if it begins with `{`.
    #[cfg(test)]
    pub(super) fn of_yaml(file: &ManifestFile<'t>, replayed: &'s mut usize) -> Documents<'t, 's> {
        Documents { format: Format::Yaml(None), ..Documents::of(file, replayed) }
    }

    fn skip(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, &[]));
        self.line += newlines(passed);
        self.rest = rest;
    }

    /// Reads the JSON value at the start of the text, and passes it. The outer error is that of a text which may be YAML.
    fn json(&mut self) -> Result<Result<Document, Failed>, Failed> {
        let mut parser = Parser::without_items();
        let (text, line) = (self.rest, self.line);
        let (document, rest) = match parser.parse_first(text) {
            Ok(read) => read,
            Err(error) => {
                let line = line + newlines(text.get(..error.offset).unwrap_or_default());
                return match error.kind {
                    json::ErrorKind::TooDeep => Err((line, ManifestErrorKind::TooDeep)),
                    // It is JSON, also to kubectl, which then refuses the number. To YAML, it is a text.
                    kind @ json::ErrorKind::NumberOutOfRange => {
                        self.rest = &[];
                        Ok(Err((line, ManifestErrorKind::Json(kind.to_string()))))
                    }
                    kind => Err((line, ManifestErrorKind::Json(kind.to_string()))),
                };
            }
        };
        let root = document.root();
        // Kubectl separates what follows by its own rules for white space.
        let after = text.len() - rest.len();
        let blank =
            text.get(..after).unwrap_or(text).iter().rev().take_while(|byte| byte.is_ascii_whitespace());
        self.skip(after - blank.count());
        if tree_bytes(root.text().unwrap_or_default()) > MAX_TREE_BYTES {
            return Ok(Err((line, ManifestErrorKind::TooManyValues)));
        }
        // A scalar is a level of a tree as well.
        let tree = root.to_tree_within(MAX_NESTING as u32 + 1);
        let read = tree.map_err(|_| (line, ManifestErrorKind::TooDeep));
        let lines = Lines::of_json(root, text, line);
        Ok(read.map(|tree| Document { tree, lines, before: 0, repeated: None }))
    }

    /// Takes the lines up to the next separator and passes that; returns them with the number of the first. A separator
    /// before all other lines is one of them.
    fn piece(&mut self) -> (&'t [u8], u64) {
        let (text, first) = (self.rest, self.line);
        let mut at = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if let Some(after) = line.strip_prefix(b"---") {
                // White space is that of Unicode, as kubectl has it.
                let is_separator =
                    matches!(String::from_utf8_lossy(after).trim_start().chars().next(), None | Some('#'));
                if is_separator && at == 0 {
                    at += line.len();
                    continue;
                }
                self.skip(at);
                if !is_separator {
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

    /// Passes the white space before what is not JSON, up to its first line break, as kubectl does; false if it reads no
    /// further, because fewer than four bytes are left.
    fn skip_blank_line(&mut self) -> bool {
        let mut passed = 0;
        let is_readable = loop {
            let rest = self.rest.get(passed..).unwrap_or_default();
            match rest.first() {
                _ if rest.len() < 4 => break false,
                Some(b'\n') => {
                    passed += 1;
                    break true;
                }
                Some(b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c') => passed += 1,
                _ => break true,
            }
        };
        self.skip(passed);
        is_readable
    }

    fn yaml(&mut self, piece: &[u8], first: u64) -> Result<Document, Failed> {
        let before = first - 1;
        let piece = &*lines_of_go(piece);
        let text = std::str::from_utf8(piece).map_err(|error| {
            let valid = piece.get(..error.valid_up_to()).unwrap_or_default();
            (first + newlines(valid), ManifestErrorKind::NotUtf8)
        })?;
        if let Some(line) = text.split('\n').position(|line| line.starts_with('\u{feff}')) {
            // Kubectl loses the first letters of the lines after it.
            let message = "a line begins with a byte order mark".to_owned();
            return Err((first + line as u64, ManifestErrorKind::Yaml(message)));
        }
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
                    let is_json = self.rest.trim_ascii_start().first() == Some(&b'{');
                    self.format = if is_json { Format::Json(0) } else { Format::Yaml(None) };
                    continue;
                }
                Format::Json(count) => {
                    let (rest, line) = (self.rest, self.line);
                    let start = rest.trim_ascii_start();
                    if start.is_empty() {
                        self.format = Format::Over;
                        continue;
                    }
                    self.skip(rest.len() - start.len());
                    let failed = match self.json() {
                        Ok(read) => {
                            self.format = Format::Json(count + 1);
                            match read {
                                Ok(document) if document.tree.is_null() => continue,
                                read => return Some(read),
                            }
                        }
                        Err(failed) => failed,
                    };
                    (self.rest, self.line) = (rest, line);
                    // After two values, kubectl takes the text for JSON.
                    if count > 1 || !self.skip_blank_line() {
                        self.format = Format::Over;
                        return Some(Err(failed));
                    }
                    self.format = Format::Yaml(Some(failed));
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

/// Returns the lines of a document as kubectl hands them to its YAML library: each ends with a line feed alone, and a byte
/// order mark before them is no part of the content.
fn lines_of_go(piece: &[u8]) -> Cow<'_, [u8]> {
    let piece = piece.strip_prefix(b"\xef\xbb\xbf").unwrap_or(piece);
    if piece.ends_with(b"\n") && !piece.windows(2).any(|pair| pair == b"\r\n") {
        return Cow::Borrowed(piece);
    }
    let mut lines = Vec::with_capacity(piece.len() + 1);
    for line in piece.split_inclusive(|byte| *byte == b'\n') {
        lines.extend(line.strip_suffix(b"\n").map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line)));
        lines.push(b'\n');
    }
    Cow::Owned(lines)
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
