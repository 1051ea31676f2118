//! The validating scanner: finds where a value ends, and that every byte of it is JSON.

use std::fmt;

/// How deep objects and arrays may nest; the limit of Go's decoder.
pub const MAX_DEPTH: u32 = 10_000;

/// Why a text is not JSON, and at which byte.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct Error {
    /// Offset from the start of the text, in bytes.
    pub offset: usize,
    /// What is wrong there.
    pub kind: ErrorKind,
}

/// What is wrong with a text that is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text ends inside a value.
    UnexpectedEnd,
    /// A byte that cannot stand where it does.
    UnexpectedByte {
        /// The byte found.
        found: u8,
        /// What could have stood there.
        expected: &'static str,
    },
    /// A raw control character inside a string.
    ControlCharacter(u8),
    /// A backslash followed by something that is no escape.
    BadEscape,
    /// More than [`MAX_DEPTH`] nested objects and arrays.
    TooDeep,
    /// A number too large for a 64-bit float.
    NumberOutOfRange,
    /// A text of 4 GiB or more.
    TooLong,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::UnexpectedEnd => f.write_str("unexpected end of JSON"),
            ErrorKind::UnexpectedByte { found, expected } => {
                let found = Shown(*found);
                write!(f, "unexpected {found}, expected {expected}")
            }
            ErrorKind::ControlCharacter(byte) => {
                write!(f, "raw control character {} in a string", Shown(*byte))
            }
            ErrorKind::BadEscape => f.write_str("invalid escape in a string"),
            ErrorKind::TooDeep => write!(f, "nested deeper than {MAX_DEPTH} levels"),
            ErrorKind::NumberOutOfRange => f.write_str("number out of range"),
            ErrorKind::TooLong => f.write_str("text of 4 GiB or more"),
        }
    }
}

/// A byte in quotes, as people write it.
struct Shown(u8);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            byte if byte.is_ascii_graphic() => write!(f, "'{}'", char::from(byte)),
            byte => write!(f, "'{}'", byte.escape_ascii()),
        }
    }
}

#[cold]
fn unexpected(text: &[u8], offset: usize, expected: &'static str) -> Error {
    let kind = match text.get(offset) {
        Some(&found) => ErrorKind::UnexpectedByte { found, expected },
        None => ErrorKind::UnexpectedEnd,
    };
    Error { offset, kind }
}

/// The first position at or after `pos` that is not white space.
#[inline(always)]
pub(super) fn whitespace(text: &[u8], pos: usize) -> usize {
    match text.get(pos) {
        // Most JSON is written without.
        Some(byte) if *byte > b' ' => pos,
        _ => skip_whitespace(text, pos),
    }
}

fn skip_whitespace(text: &[u8], mut pos: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = text.get(pos) {
        pos += 1;
    }
    pos
}

/// Whether an object or an array is being read, for as many levels as are open.
///
/// The innermost 64 levels are bits of one word; deeper nesting, which real objects do not have,
/// spills into a vector.
#[derive(Default)]
struct Open {
    bits: u64,
    depth: u32,
    spilled: Vec<u64>,
}

impl Open {
    #[inline(always)]
    fn push(&mut self, object: bool) {
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.spilled.push(self.bits);
        }
        self.bits = (self.bits << 1) | u64::from(object);
        self.depth += 1;
    }

    #[inline(always)]
    fn pop(&mut self) {
        self.depth -= 1;
        self.bits >>= 1;
        if self.depth != 0
            && self.depth.is_multiple_of(64)
            && let Some(bits) = self.spilled.pop()
        {
            self.bits = bits;
        }
    }

    #[inline(always)]
    fn in_object(&self) -> bool {
        self.bits & 1 == 1
    }
}

/// Validates the value that starts at `pos`, inside `outer` open containers; returns its end.
pub(super) fn value(text: &[u8], mut pos: usize, outer: u32) -> Result<usize, Error> {
    let mut open = Open::default();
    loop {
        match text.get(pos) {
            Some(b'"') => pos = string(text, pos)?,
            Some(b'{') => {
                if open.depth + outer >= MAX_DEPTH {
                    return Err(Error { offset: pos, kind: ErrorKind::TooDeep });
                }
                pos = whitespace(text, pos + 1);
                if text.get(pos) == Some(&b'}') {
                    pos += 1;
                } else {
                    pos = key(text, pos)?;
                    open.push(true);
                    continue;
                }
            }
            Some(b'[') => {
                if open.depth + outer >= MAX_DEPTH {
                    return Err(Error { offset: pos, kind: ErrorKind::TooDeep });
                }
                pos = whitespace(text, pos + 1);
                if text.get(pos) == Some(&b']') {
                    pos += 1;
                } else {
                    open.push(false);
                    continue;
                }
            }
            Some(b'-' | b'0'..=b'9') => pos = number(text, pos)?,
            Some(b't') => pos = literal(text, pos, b"true")?,
            Some(b'f') => pos = literal(text, pos, b"false")?,
            Some(b'n') => pos = literal(text, pos, b"null")?,
            _ => return Err(unexpected(text, pos, "a value")),
        }
        loop {
            if open.depth == 0 {
                return Ok(pos);
            }
            match text.get(pos) {
                Some(b',') => {
                    pos = whitespace(text, pos + 1);
                    if open.in_object() {
                        pos = key(text, pos)?;
                    }
                    break;
                }
                Some(b'}') if open.in_object() => {
                    open.pop();
                    pos += 1;
                }
                Some(b']') if !open.in_object() => {
                    open.pop();
                    pos += 1;
                }
                Some(b' ' | b'\t' | b'\n' | b'\r') => pos += 1,
                _ => return Err(unexpected(text, pos, after_value(open.in_object()))),
            }
        }
    }
}

pub(super) fn after_value(in_object: bool) -> &'static str {
    if in_object { "',' or '}' after a value" } else { "',' or ']' after a value" }
}

/// Validates a key and its colon at `pos`; returns the start of the value.
#[inline(always)]
fn key(text: &[u8], pos: usize) -> Result<usize, Error> {
    if text.get(pos) != Some(&b'"') {
        return Err(unexpected(text, pos, "a key in double quotes"));
    }
    let end = string(text, pos)?;
    colon(text, end)
}

/// Validates the colon after a key that ends at `pos`; returns the start of the value.
#[inline(always)]
pub(super) fn colon(text: &[u8], pos: usize) -> Result<usize, Error> {
    let pos = whitespace(text, pos);
    if text.get(pos) != Some(&b':') {
        return Err(unexpected(text, pos, "':' after a key"));
    }
    Ok(whitespace(text, pos + 1))
}

/// Validates the key whose opening quote is at `pos`; returns the position after its closing quote, and
/// its first eight bytes, zero-padded, unless there is an escape among them.
#[inline(always)]
pub(super) fn tagged_key(text: &[u8], pos: usize) -> Result<(usize, Option<u64>), Error> {
    if text.get(pos) != Some(&b'"') {
        return Err(unexpected(text, pos, "a key in double quotes"));
    }
    let Some(word) = text.get(pos + 1..).and_then(|rest| rest.first_chunk::<8>()) else {
        return Ok((string(text, pos)?, None));
    };
    let word = u64::from_le_bytes(*word);
    let marks = special(word);
    if marks == 0 {
        return Ok((string(text, pos + 8)?, Some(word)));
    }
    let bits = marks.trailing_zeros() & !7;
    if (word >> bits) as u8 == b'"' {
        return Ok((pos + 2 + (bits / 8) as usize, Some(word & ((1 << bits) - 1))));
    }
    Ok((string(text, pos)?, None))
}

/// Requires `byte` at `pos`.
pub(super) fn expect(text: &[u8], pos: usize, byte: u8, expected: &'static str) -> Result<usize, Error> {
    if text.get(pos) == Some(&byte) { Ok(pos + 1) } else { Err(unexpected(text, pos, expected)) }
}

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);

/// Marks, in the high bit of each byte, the bytes that end a run of plain string characters: quote,
/// backslash and control characters. Only the lowest mark is exact: borrows run upwards.
#[inline(always)]
fn special(word: u64) -> u64 {
    // Flipping the bit 2 maps control characters to themselves and the quote to the number after them.
    let quote_or_control = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (quote_or_control | backslash) & !word & HIGHS
}

/// Whether a JSON string may hold these eight bytes as they are, and all of them are ASCII.
#[inline(always)]
pub(super) fn plain_ascii(word: [u8; 8]) -> bool {
    let word = u64::from_le_bytes(word);
    special(word) | (word & HIGHS) == 0
}

/// The position of the first byte at or after `pos` that ends a run of plain string characters, or
/// one of the last few bytes of the text.
#[inline(always)]
fn plain(text: &[u8], mut pos: usize) -> usize {
    while let Some(word) = text.get(pos..).and_then(|rest| rest.first_chunk::<8>()) {
        let marks = special(u64::from_le_bytes(*word));
        if marks != 0 {
            return pos + (marks.trailing_zeros() / 8) as usize;
        }
        pos += 8;
    }
    pos
}

/// Validates the string whose opening quote is at `pos`; returns the position after its closing quote.
#[inline(always)]
pub(super) fn string(text: &[u8], pos: usize) -> Result<usize, Error> {
    let mut pos = pos + 1;
    loop {
        pos = plain(text, pos);
        match text.get(pos) {
            Some(b'"') => return Ok(pos + 1),
            Some(b'\\') => pos = escape(text, pos)?,
            Some(&byte) if byte < 0x20 => {
                return Err(Error { offset: pos, kind: ErrorKind::ControlCharacter(byte) });
            }
            Some(_) => pos += 1,
            None => return Err(Error { offset: pos, kind: ErrorKind::UnexpectedEnd }),
        }
    }
}

/// Validates the escape at `pos`; returns the position after it.
fn escape(text: &[u8], pos: usize) -> Result<usize, Error> {
    match text.get(pos + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(pos + 2),
        Some(b'u') => {
            for offset in pos + 2..pos + 6 {
                match text.get(offset) {
                    Some(byte) if byte.is_ascii_hexdigit() => {}
                    Some(_) => return Err(Error { offset, kind: ErrorKind::BadEscape }),
                    None => return Err(Error { offset, kind: ErrorKind::UnexpectedEnd }),
                }
            }
            Ok(pos + 6)
        }
        Some(_) => Err(Error { offset: pos + 1, kind: ErrorKind::BadEscape }),
        None => Err(Error { offset: pos + 1, kind: ErrorKind::UnexpectedEnd }),
    }
}

fn literal(text: &[u8], pos: usize, word: &'static [u8]) -> Result<usize, Error> {
    for (offset, byte) in (pos..).zip(word) {
        if text.get(offset) != Some(byte) {
            return Err(unexpected(text, offset, "true, false or null"));
        }
    }
    Ok(pos + word.len())
}

fn digits(text: &[u8], mut pos: usize) -> Result<usize, Error> {
    if !text.get(pos).is_some_and(u8::is_ascii_digit) {
        return Err(unexpected(text, pos, "a digit"));
    }
    while text.get(pos).is_some_and(u8::is_ascii_digit) {
        pos += 1;
    }
    Ok(pos)
}

/// Validates the number at `pos`; returns its end.
pub(super) fn number(text: &[u8], start: usize) -> Result<usize, Error> {
    // Without an exponent a number needs more digits than this to overflow a 64-bit float.
    const SURELY_FINITE: usize = 300;

    let mut pos = start;
    if text.get(pos) == Some(&b'-') {
        pos += 1;
    }
    pos = if text.get(pos) == Some(&b'0') { pos + 1 } else { digits(text, pos)? };
    if text.get(pos) == Some(&b'.') {
        pos = digits(text, pos + 1)?;
    }
    let exponent = matches!(text.get(pos), Some(b'e' | b'E'));
    if exponent {
        pos += 1;
        if let Some(b'+' | b'-') = text.get(pos) {
            pos += 1;
        }
        pos = digits(text, pos)?;
    }
    if (exponent || pos - start > SURELY_FINITE) && !finite(&text[start..pos]) {
        return Err(Error { offset: start, kind: ErrorKind::NumberOutOfRange });
    }
    Ok(pos)
}

fn finite(number: &[u8]) -> bool {
    std::str::from_utf8(number).ok().and_then(|text| text.parse::<f64>().ok()).is_some_and(f64::is_finite)
}
