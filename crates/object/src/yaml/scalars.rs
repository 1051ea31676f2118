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

/// Returns the key that Go's library makes of an unquoted scalar: `010` is the key `8`, and `yes` is `true`.
///
/// # Errors
/// If the scalar is null or a number that Go's library refuses as a key; or a number whose text as a key would surprise,
/// because Go writes it with an exponent.
pub(super) fn key(value: &Value, text: &str) -> Result<String, &'static str> {
    let is_written_as_float = || {
        let is_based = ["0x", "0X", "0o", "0O", "0b", "0B"].iter().any(|start| text.contains(start));
        text.contains('.') || (!is_based && text.contains(['e', 'E']))
    };
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(is_true) => Ok(is_true.to_string()),
        Value::Number(number) if number.is_i64() && !is_written_as_float() => Ok(number.to_string()),
        Value::Number(number) => {
            // As Go does, with the digits of a float of 32 bits.
            let short = number.as_f64().filter(|_| is_written_as_float()).map(|float| float as f32);
            let short = short.map(|float| if text.starts_with('-') { -float.abs() } else { float });
            let plain = short.filter(|it| *it == 0.0 || (1e-4..1e6).contains(&it.abs()));
            plain.map(|it| it.to_string()).ok_or("a YAML key is a large or tiny number; quote it")
        }
        _ => Err("a YAML key is null; quote it"),
    }
}

/// Returns the key that Go's library makes of a scalar that means infinity or no number, which as a value JSON cannot
/// express; `None` for other scalars.
pub(super) fn beyond_json(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Option<&'static str> {
    let may_be_number = match tag {
        Some(tag) => tag.suffix_in_namespace(STANDARD_TAGS).as_deref() == Some("float"),
        None => style == ScalarStyle::Plain,
    };
    match text {
        _ if !may_be_number => None,
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(".inf"),
        "-.inf" | "-.Inf" | "-.INF" => Some("-.inf"),
        ".nan" | ".NaN" | ".NAN" => Some(".nan"),
        _ => None,
    }
}

/// Returns true for a key that merges its value to Go's library: `<<` without quotes, or with a tag that says so.
pub(super) fn is_merge_key(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> bool {
    let merges = match tag {
        None => style == ScalarStyle::Plain,
        Some(tag) => {
            tag.suffix_in_namespace(STANDARD_TAGS).as_deref() == Some("merge") || tag.to_string() == "!"
        }
    };
    merges && text == "<<"
}

/// Returns false for a scalar that Go's library refuses because it does not have the type of its tag.
pub(super) fn has_type_of_tag(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> bool {
    let Some(name) = tag.and_then(|tag| tag.suffix_in_namespace(STANDARD_TAGS)) else { return true };
    let value = plain(text);
    match &*name {
        "null" => value.is_null(),
        "bool" => value.is_boolean(),
        "int" => value.is_number() && integer(&text.replace('_', "")).is_some(),
        "float" => value.is_number() || beyond_json(text, style, tag).is_some(),
        "binary" => bytes(text).is_some(),
        _ => true,
    }
}

fn bytes(text: &str) -> Option<Value> {
    let packed: String = text.split_ascii_whitespace().collect();
    let bytes = BASE64.decode(packed).ok()?;
    // Go replaces each invalid byte, where `from_utf8_lossy` replaces each invalid sequence.
    let chunks = bytes.utf8_chunks();
    let text: String =
        chunks.map(|chunk| chunk.valid().to_owned() + &"\u{fffd}".repeat(chunk.invalid().len())).collect();
    Some(text.into())
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
