//! The validating scanner: finds the end of a value, and checks that every byte of it is JSON.

use std::fmt;

use wide::u8x16;

/// The maximum depth of nested objects and arrays, as in Go's decoder; a deeper text is an error.
pub const MAX_DEPTH: u32 = 10_000;

/// The error for a text that is not JSON: its kind and its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct Error {
    /// The offset from the start of the text, in bytes.
    pub offset: usize,
    /// The kind of the error.
    pub kind: ErrorKind,
}

/// The kinds of errors in a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text ends where a value or the rest of one is missing.
    UnexpectedEnd,
    /// A byte that is not allowed in its place.
    UnexpectedByte {
        /// The byte that was found.
        found: u8,
        /// The bytes that are allowed in its place, in words: `':' after a key`.
        expected: &'static str,
    },
    /// A raw control character inside a string.
    ControlCharacter(u8),
    /// A backslash that does not begin an escape.
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
                write!(f, "unescaped control character {} in a JSON string", Shown(*byte))
            }
            ErrorKind::BadEscape => f.write_str("invalid escape in a JSON string"),
            ErrorKind::TooDeep => write!(f, "JSON nested deeper than {MAX_DEPTH} levels"),
            ErrorKind::NumberOutOfRange => f.write_str("number too large for a 64-bit float"),
            ErrorKind::TooLong => f.write_str("JSON text of 4 GiB or more"),
        }
    }
}

/// A byte, displayed in quotes: a printable one as it is, any other as its escape, such as `'\n'` or `'\x00'`.
struct Shown(u8);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            byte if byte.is_ascii_graphic() => write!(f, "'{}'", char::from(byte)),
            byte => write!(f, "'{}'", byte.escape_ascii()),
        }
    }
}

/// The result of a step of the scanner. The error is boxed so that the result fits in registers.
pub(super) type Scan<T = usize> = Result<T, Box<Error>>;

#[cold]
#[inline(never)]
fn error<T>(offset: usize, kind: ErrorKind) -> Scan<T> {
    Err(Box::new(Error { offset, kind }))
}

#[cold]
#[inline(never)]
pub(super) fn unexpected<T>(text: &[u8], offset: usize, expected: &'static str) -> Scan<T> {
    let kind = match text.get(offset) {
        Some(&found) => ErrorKind::UnexpectedByte { found, expected },
        None => ErrorKind::UnexpectedEnd,
    };
    error(offset, kind)
}

/// Returns the first position at or after `pos` that is not white space.
#[inline(always)]
pub(super) fn whitespace(text: &[u8], pos: usize) -> usize {
    match text.get(pos) {
        // Most JSON is written without white space.
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

/// A stack of open containers; each is an object or an array.
///
/// The innermost 64 levels are bits of one word; deeper nesting, which real objects do not have, spills into a vector.
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
pub(super) fn value(text: &[u8], mut pos: usize, outer: u32) -> Scan {
    let mut open = Open::default();
    loop {
        match text.get(pos) {
            Some(b'"') => pos = string(text, pos)?,
            Some(b'{') => {
                if open.depth + outer >= MAX_DEPTH {
                    return error(pos, ErrorKind::TooDeep);
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
                    return error(pos, ErrorKind::TooDeep);
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
            _ => return unexpected(text, pos, "a value"),
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
                _ => return unexpected(text, pos, after_value(open.in_object())),
            }
        }
    }
}

pub(super) fn after_value(in_object: bool) -> &'static str {
    if in_object { "',' or '}' after a value" } else { "',' or ']' after a value" }
}

/// Validates a key and its colon at `pos`; returns the start of the value.
#[inline(always)]
fn key(text: &[u8], pos: usize) -> Scan {
    if text.get(pos) != Some(&b'"') {
        return unexpected(text, pos, "a key in double quotes");
    }
    let end = string(text, pos)?;
    colon(text, end)
}

/// Validates the colon after a key that ends at `pos`; returns the start of the value.
#[inline(always)]
pub(super) fn colon(text: &[u8], pos: usize) -> Scan {
    if let Some([b':', b'!'..=u8::MAX]) = text.get(pos..).and_then(|rest| rest.first_chunk::<2>()) {
        return Ok(pos + 1);
    }
    let pos = whitespace(text, pos);
    if text.get(pos) != Some(&b':') {
        return unexpected(text, pos, "':' after a key");
    }
    Ok(whitespace(text, pos + 1))
}

/// An object's key as it stands in the text, with its escapes.
pub(super) struct RawKey {
    /// The position after its closing quote.
    pub(super) end: usize,
    /// The key's first eight bytes, zero-padded; `None` if the key contains an escape.
    pub(super) word: Option<u64>,
}

/// Validates the key whose opening quote is at `pos`, and returns it.
#[inline(always)]
pub(super) fn tagged_key(text: &[u8], pos: usize) -> Scan<RawKey> {
    if let Some([b'"', block @ ..]) = text.get(pos..).and_then(|rest| rest.first_chunk::<17>()) {
        let length = plain_bytes(block);
        let word = first_word(block);
        if block.get(length) == Some(&b'"') {
            let kept = if length < 8 { (1 << (8 * length)) - 1 } else { u64::MAX };
            return Ok(RawKey { end: pos + length + 2, word: Some(word & kept) });
        }
        if length >= 16
            && let Some(block) = text.get(pos + 17..).and_then(|rest| rest.first_chunk())
        {
            let more = plain_bytes(block);
            if block.get(more) == Some(&b'"') {
                return Ok(RawKey { end: pos + more + 18, word: Some(word) });
            }
        }
    }
    odd_key(text, pos)
}

/// Validates as [`tagged_key`] a key that is long, contains an escape or stands at the end of the text.
#[inline(never)]
fn odd_key(text: &[u8], pos: usize) -> Scan<RawKey> {
    if text.get(pos) != Some(&b'"') {
        return unexpected(text, pos, "a key in double quotes");
    }
    let end = rest_of_string(text, pos + 1)?;
    let raw = &text[pos + 1..end - 1];
    Ok(RawKey { end, word: (!raw.contains(&b'\\')).then(|| first_word(raw)) })
}

/// Returns the first eight of `bytes` as a number, zero-padded.
#[inline(always)]
pub(super) fn first_word(bytes: &[u8]) -> u64 {
    if let Some(word) = bytes.first_chunk() {
        return u64::from_le_bytes(*word);
    }
    let mut word = 0;
    for &byte in bytes.iter().rev() {
        word = word << 8 | u64::from(byte);
    }
    word
}

/// Returns the position after `byte` at `pos`; an error that says `expected` if another byte is there.
pub(super) fn expect(text: &[u8], pos: usize, byte: u8, expected: &'static str) -> Scan {
    if text.get(pos) == Some(&byte) { Ok(pos + 1) } else { unexpected(text, pos, expected) }
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

/// Returns true if all eight bytes are ASCII and may stand in a JSON string unescaped.
#[inline(always)]
pub(super) fn plain_ascii(word: [u8; 8]) -> bool {
    let word = u64::from_le_bytes(word);
    special(word) | (word & HIGHS) == 0
}

/// Marks bytes as [`special`] does, for sixteen bytes: a marked byte becomes 255, others 0.
#[inline(always)]
fn special_bytes(bytes: u8x16) -> u8x16 {
    let control = bytes.min(u8x16::splat(0x1f)).simd_eq(bytes);
    control | bytes.simd_eq(u8x16::splat(b'"')) | bytes.simd_eq(u8x16::splat(b'\\'))
}

/// Returns the number of bytes at the start of a block that need no escape and do not end the string.
#[inline(always)]
fn plain_bytes(block: &[u8; 16]) -> usize {
    (special_bytes(u8x16::new(*block)).to_bitmask() | 1 << 16).trailing_zeros() as usize
}

/// Returns true if all sixteen bytes are ASCII and may stand in a JSON string unescaped; see [`plain_ascii`].
#[inline(always)]
pub(super) fn plain_ascii_block(block: &[u8; 16]) -> bool {
    let bytes = u8x16::new(*block);
    // Bytes that are not ASCII have their high bit set already.
    (special_bytes(bytes) | bytes).to_bitmask() == 0
}

/// Validates the string whose opening quote is at `pos`; returns the position after its closing quote.
#[inline(always)]
pub(super) fn string(text: &[u8], pos: usize) -> Scan {
    // Most strings are short; only they are worth code inside the caller's loop.
    if let Some([_, block @ ..]) = text.get(pos..).and_then(|rest| rest.first_chunk::<17>()) {
        let length = plain_bytes(block);
        if block.get(length) == Some(&b'"') {
            return Ok(pos + length + 2);
        }
        return rest_of_string(text, pos + 1 + length);
    }
    rest_of_string(text, pos + 1)
}

/// Validates a string from byte `pos` inside it; returns the position after its closing quote.
#[inline(never)]
fn rest_of_string(text: &[u8], mut pos: usize) -> Scan {
    // One if the byte at `pos` is escaped by the one before it.
    let mut carried = 0;
    while let Some(block) = text.get(pos..).and_then(|rest| rest.first_chunk()) {
        let bytes = u8x16::new(*block);
        let specials = special_bytes(bytes).to_bitmask();
        if specials | carried != 0 {
            let first = specials.trailing_zeros() as usize;
            if carried == 0 && block.get(first) == Some(&b'"') {
                return Ok(pos + first + 1);
            }
            let quotes = bytes.simd_eq(u8x16::splat(b'"')).to_bitmask();
            let backslashes = bytes.simd_eq(u8x16::splat(b'\\')).to_bitmask();
            let escaped = escaped(backslashes, carried);
            let ends = specials & !backslashes & !escaped;
            let before_end = ends.wrapping_sub(1) & !ends;
            let mut to_check = escaped & before_end & !quotes & !backslashes & 0xffff;
            if to_check != 0 {
                to_check &= !short_escapes(bytes);
            }
            while to_check != 0 {
                escape(text, pos + to_check.trailing_zeros() as usize - 1)?;
                to_check &= to_check - 1;
            }
            if ends != 0 {
                return end_of_string(text, pos + ends.trailing_zeros() as usize);
            }
            carried = escaped >> 16;
        }
        pos += 16;
    }
    pos -= carried as usize;
    loop {
        match text.get(pos) {
            Some(b'"' | ..0x20) | None => return end_of_string(text, pos),
            Some(b'\\') => pos = escape(text, pos)?,
            Some(_) => pos += 1,
        }
    }
}

/// Returns a bit mask of the bytes that a backslash escapes, with bit 16 for the byte behind the block. `backslashes`
/// marks the backslashes of sixteen bytes; `carried` is one if the first byte is escaped.
#[inline(always)]
fn escaped(backslashes: u32, carried: u32) -> u32 {
    // In a run of backslashes every other one escapes: the borrow of the subtraction passes along the run, and leaves the bits
    // that differ from a pattern that starts as the run does.
    const ODD: u32 = 0xaaaa_aaaa;
    let starts = backslashes & !carried;
    let escapes = (((starts << 1) | ODD) - starts) ^ ODD;
    escapes ^ (backslashes | carried)
}

/// Returns a bit mask of the bytes that are valid behind a backslash on their own: `n`, `b`, `f`, `r`, `t` and `/`.
#[inline(always)]
fn short_escapes(bytes: u8x16) -> u32 {
    let [first, rest @ ..] = *b"nbfrt/";
    let is = |letter| bytes.simd_eq(u8x16::splat(letter));
    rest.into_iter().fold(is(first), |marks, letter| marks | is(letter)).to_bitmask()
}

/// Returns the position after the closing quote at `pos`; an error for a control character or the end of the text.
#[inline(always)]
fn end_of_string(text: &[u8], pos: usize) -> Scan {
    match text.get(pos) {
        Some(b'"') => Ok(pos + 1),
        Some(&byte) => error(pos, ErrorKind::ControlCharacter(byte)),
        None => error(pos, ErrorKind::UnexpectedEnd),
    }
}

/// Validates the escape at `pos`; returns the position after it.
fn escape(text: &[u8], pos: usize) -> Scan {
    match text.get(pos + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(pos + 2),
        Some(b'u') => {
            let digits = text.get(pos + 2..).and_then(|rest| rest.first_chunk::<4>());
            if digits.is_some_and(|digits| digits.iter().fold(true, |all, it| all & it.is_ascii_hexdigit())) {
                return Ok(pos + 6);
            }
            for offset in pos + 2..pos + 6 {
                match text.get(offset) {
                    Some(byte) if byte.is_ascii_hexdigit() => {}
                    Some(_) => return error(offset, ErrorKind::BadEscape),
                    None => return error(offset, ErrorKind::UnexpectedEnd),
                }
            }
            Ok(pos + 6)
        }
        Some(_) => error(pos + 1, ErrorKind::BadEscape),
        None => error(pos + 1, ErrorKind::UnexpectedEnd),
    }
}

fn literal(text: &[u8], pos: usize, word: &'static [u8]) -> Scan {
    for (offset, byte) in (pos..).zip(word) {
        if text.get(offset) != Some(byte) {
            return unexpected(text, offset, "true, false or null");
        }
    }
    Ok(pos + word.len())
}

fn digits(text: &[u8], mut pos: usize) -> Scan {
    if !text.get(pos).is_some_and(u8::is_ascii_digit) {
        return unexpected(text, pos, "a digit");
    }
    while text.get(pos).is_some_and(u8::is_ascii_digit) {
        pos += 1;
    }
    Ok(pos)
}

/// Validates the number at `pos`; returns its end.
#[inline(always)]
pub(super) fn number(text: &[u8], pos: usize) -> Scan {
    // Most numbers are small counts.
    match text.get(pos..).and_then(|rest| rest.first_chunk()) {
        Some([b'0'..=b'9', b',' | b'}', _]) => Ok(pos + 1),
        Some([b'1'..=b'9', b'0'..=b'9', b',' | b'}']) => Ok(pos + 2),
        _ => any_number(text, pos),
    }
}

#[inline(never)]
fn any_number(text: &[u8], start: usize) -> Scan {
    // Without an exponent, a number needs more digits than this to overflow a 64-bit float.
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
        return error(start, ErrorKind::NumberOutOfRange);
    }
    Ok(pos)
}

fn finite(number: &[u8]) -> bool {
    std::str::from_utf8(number).ok().and_then(|text| text.parse::<f64>().ok()).is_some_and(f64::is_finite)
}
