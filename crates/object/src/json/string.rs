//! Strings: decodes them from their escaped form in a JSON text, and encodes them.

use std::borrow::Cow;

use super::scan::{plain_ascii, plain_ascii_block};

/// Returns true if `raw`, the inside of a JSON string without its quotes, equals `text` once unescaped.
#[inline]
pub(super) fn means(raw: &[u8], text: &str) -> bool {
    let text = text.as_bytes();
    if raw.len() <= text.len() {
        return raw == text;
    }
    // Escapes only ever lengthen a text, and the first one is where the two differ.
    let differ = raw.iter().zip(text).position(|(one, other)| one != other).unwrap_or(text.len());
    raw[differ] == b'\\' && unescape(raw).as_bytes() == text
}

/// Decodes the inside of a valid JSON string (without its quotes) as Go does: escapes resolved, lone
/// surrogates and each byte of invalid UTF-8 replaced by U+FFFD.
pub(super) fn unescape(raw: &[u8]) -> Cow<'_, str> {
    if (is_plain_ascii(raw) || memchr::memchr(b'\\', raw).is_none())
        && let Ok(text) = std::str::from_utf8(raw)
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(&first) = rest.first() {
        if first == b'\\' {
            rest = unescape_one(rest, &mut out);
            continue;
        }
        let run = rest.iter().position(|&byte| byte == b'\\').unwrap_or(rest.len());
        push_lossy(&rest[..run], &mut out);
        rest = &rest[run..];
    }
    Cow::Owned(out)
}

/// Appends `bytes` to `out` as UTF-8, with U+FFFD for each byte that is not part of a valid sequence.
fn push_lossy(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for _ in chunk.invalid() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Appends to `out` the character of the valid escape at the start of `rest`; returns the text after the escape.
fn unescape_one<'a>(rest: &'a [u8], out: &mut String) -> &'a [u8] {
    let (character, length) = match rest.get(1) {
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(b'n') => ('\n', 2),
        Some(b'r') => ('\r', 2),
        Some(b't') => ('\t', 2),
        Some(b'u') => match code_unit(rest) {
            Some(high @ 0xD800..0xDC00) => match rest.get(6..).and_then(code_unit) {
                Some(low @ 0xDC00..0xE000) => {
                    let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                    (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
                }
                _ => (char::REPLACEMENT_CHARACTER, 6),
            },
            unit => (unit.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
        },
        Some(&other) => (char::from(other), 2),
        None => (char::REPLACEMENT_CHARACTER, 1),
    };
    out.push(character);
    rest.get(length..).unwrap_or_default()
}

/// Parses the four hex digits of a `\\u` escape at the start of `rest`; `None` if no such escape is there.
fn code_unit(rest: &[u8]) -> Option<u32> {
    let digits = rest.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The escape of each byte: 0 for a byte that stands for itself, else the second character of its escape (`u` for
/// `\\u00..`), or 0xe2 for a byte that may start U+2028 or U+2029.
const ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    let mut control = 0;
    while control < 0x20 {
        escapes[control] = b'u';
        control += 1;
    }
    escapes[0x08] = b'b';
    escapes[b'\t' as usize] = b't';
    escapes[b'\n' as usize] = b'n';
    escapes[0x0c] = b'f';
    escapes[b'\r' as usize] = b'r';
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes[0xe2] = 0xe2;
    escapes
};

/// Returns true if a text is ASCII and may stand in a JSON string unescaped.
#[inline]
pub(super) fn is_plain_ascii(bytes: &[u8]) -> bool {
    // The last block or word may overlap the one before.
    if let Some(last) = bytes.last_chunk() {
        return bytes.as_chunks().0.iter().all(plain_ascii_block) && plain_ascii_block(last);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return plain_ascii(*first) && plain_ascii(*last);
    }
    if let (Some([a, b, c, d]), Some([e, f, g, h])) = (bytes.first_chunk(), bytes.last_chunk()) {
        return plain_ascii([*a, *b, *c, *d, *e, *f, *g, *h]);
    }
    bytes.iter().all(|&byte| ESCAPES[usize::from(byte)] == 0 && byte.is_ascii())
}

/// Appends `text` to `out` as a JSON string with its quotes.
///
/// Only what JSON requires is escaped (no `<`, `>` and `&`), plus U+2028 and U+2029, as Go's encoder does.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    write_escaped(text, out);
    out.push(b'"');
}

/// Appends `text` to `out`, escaped as [`write_string`] does, without quotes.
pub fn write_escaped(text: &str, out: &mut Vec<u8>) {
    if is_plain_ascii(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
    } else {
        escape(text.as_bytes(), out);
    }
}

fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";

    let mut start = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escape = ESCAPES[usize::from(byte)];
        if escape == 0 {
            continue;
        }
        let mut width = 1;
        let mut coded = [b'\\', b'u', b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
        let escaped: &[u8] = match escape {
            b'u' => &coded,
            0xe2 => match bytes.get(at + 1..at + 3) {
                Some([0x80, last @ (0xa8 | 0xa9)]) => {
                    width = 3;
                    coded = *b"\\u2028";
                    coded[5] += last & 1;
                    &coded
                }
                _ => continue,
            },
            escape => {
                coded[1] = escape;
                &coded[..2]
            }
        };
        out.extend_from_slice(&bytes[start..at]);
        out.extend_from_slice(escaped);
        start = at + width;
    }
    out.extend_from_slice(&bytes[start..]);
}
