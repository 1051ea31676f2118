//! Strings: from their escaped form in a text to what they mean, and back.

use std::borrow::Cow;

/// Decodes the inside of a valid JSON string (without its quotes) as Go does: escapes resolved, lone
/// surrogates and each byte of invalid UTF-8 replaced by U+FFFD.
pub(super) fn unescape(raw: &[u8]) -> Cow<'_, str> {
    if !raw.contains(&b'\\')
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

/// Appends bytes as UTF-8 with one U+FFFD for each byte that is not part of a valid sequence.
fn push_lossy(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for _ in chunk.invalid() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Resolves the escape at the start of `rest` (a validated one); returns what follows it.
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

/// The four hex digits of a `\u` escape at the start of `rest`.
fn code_unit(rest: &[u8]) -> Option<u32> {
    let digits = rest.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Appends `text` to `out` as a JSON string with its quotes.
///
/// Only what JSON requires is escaped (no `<`, `>` and `&`), plus U+2028 and U+2029, as Go's encoder does.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";

    out.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escaped: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x08 => b"\\b",
            0x0c => b"\\f",
            0..0x20 => &[b'\\', b'u', b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]],
            // The third byte of U+2028 and U+2029.
            0xa8 | 0xa9 if at >= 2 && bytes[at - 2..at] == [0xe2, 0x80] => {
                out.extend_from_slice(&bytes[start..at - 2]);
                start = at + 1;
                out.extend_from_slice(if byte == 0xa8 { b"\\u2028" } else { b"\\u2029" });
                continue;
            }
            _ => continue,
        };
        out.extend_from_slice(&bytes[start..at]);
        out.extend_from_slice(escaped);
        start = at + 1;
    }
    out.extend_from_slice(&bytes[start..]);
    out.push(b'"');
}
