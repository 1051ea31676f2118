//! Converts unquoted YAML scalars as Go's library does: `0x1f` and `010` are numbers, `yes` is true. Values that JSON
//! cannot express stay strings: `.inf`, `1e999`, a date.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use granit_parser::{ScalarStyle, Tag};
use serde_json::{Number, Value};

const STANDARD_TAGS: &str = "tag:yaml.org,2002:";

/// Converts a scalar to a JSON value. Without a tag, an unquoted text may be null, a boolean or a number, and others
/// are strings; with a tag the text is converted to its type, or stays a string if it does not have that type.
pub(super) fn value(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let Some(tag) = tag else {
        return if style == ScalarStyle::Plain { plain(text) } else { text.into() };
    };
    let name = tag.suffix_in_namespace(STANDARD_TAGS);
    let is_such: fn(&Value) -> bool = match name.as_deref() {
        Some("null") => Value::is_null,
        Some("bool") => Value::is_boolean,
        Some("int" | "float") => Value::is_number,
        Some("binary") => return bytes(text).unwrap_or_else(|| text.into()),
        _ => return text.into(),
    };
    Some(plain(text)).filter(is_such).unwrap_or_else(|| text.into())
}

fn bytes(text: &str) -> Option<Value> {
    let packed: String = text.split_ascii_whitespace().collect();
    let bytes = BASE64.decode(packed).ok()?;
    Some(String::from_utf8_lossy(&bytes).into())
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => true.into(),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => false.into(),
        _ if text.starts_with('.') => float(text).unwrap_or_else(|| text.into()),
        _ if text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-')) => {
            let digits = text.replace('_', "");
            integer(&digits).or_else(|| float(&digits)).unwrap_or_else(|| text.into())
        }
        _ => text.into(),
    }
}

fn integer(text: &str) -> Option<Value> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let has_sign = unsigned.len() < text.len();
    let (base, digits) = match unsigned.get(..2) {
        Some("0x" | "0X") => (16, &unsigned[2..]),
        Some("0o" | "0O") => (8, &unsigned[2..]),
        Some("0b" | "0B") => (2, &unsigned[2..]),
        Some(_) if unsigned.starts_with('0') => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    // The standard library would accept a second sign.
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return None;
    }
    let size = i128::from_str_radix(digits, base).ok()?;
    let number = if text.starts_with('-') { -size } else { size };
    match i64::try_from(number) {
        Ok(number) => Some(number.into()),
        Err(_) if has_sign => None,
        Err(_) => u64::try_from(number).ok().map(Value::from),
    }
}

fn float(text: &str) -> Option<Value> {
    /// The bound below which each whole number is exact, and Go prints it without a fraction.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

    let is_number =
        text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    let number = text.parse::<f64>().ok().filter(|number| is_number && number.is_finite())?;
    if number.fract() == 0.0 && number.abs() < MAX_EXACT {
        return Some((number as i64).into());
    }
    Number::from_f64(number).map(Value::Number)
}
