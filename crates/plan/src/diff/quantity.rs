//! Quantities in the form in which API servers write them.
//!
//! Rules: <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>.

use serde_json::Value;

/// The maximum length in bytes of a quantity that is read.
const MAX_LENGTH: usize = 64;

/// The power of ten below which a quantity has no digits.
const NANO: i32 = -9;

/// The form of a quantity: of equal amounts in two forms, the API server keeps each as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Returns a quantity, written as a text or a number, in the canonical form: `0.1` is `100m`, `1024Mi` is `1Gi`. Returns
/// `None` if the value is not a quantity, or has more digits than fit.
pub(super) fn canonical(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let (nanos, form) = parse(text.trim())?;
    if nanos == 0 {
        return Some("0".to_owned());
    }
    match form {
        // Binary suffixes are for whole numbers alone, and not for small ones.
        Form::Binary if nanos.unsigned_abs() >= 1_024 * 1_000_000_000 => Some(binary(nanos)),
        Form::Binary | Form::Decimal => {
            let (amount, power) = thousands(nanos);
            let (suffix, _) = DECIMAL.iter().find(|(_, of_suffix)| *of_suffix == power)?;
            Some(format!("{amount}{suffix}"))
        }
        Form::Exponent => {
            let (amount, power) = thousands(nanos);
            Some(if power == 0 { amount.to_string() } else { format!("{amount}e{power}") })
        }
    }
}

/// Reads a quantity: the amount in billionths, and the form.
fn parse(text: &str) -> Option<(i128, Form)> {
    if text.len() > MAX_LENGTH {
        return None;
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at_checked(end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let digits: i128 = digits.parse().ok()?;
    let power = i32::try_from(fraction.len()).ok()?.checked_neg()?;
    let (power, binary, form) = match suffix.strip_prefix(['e', 'E']).filter(|rest| !rest.is_empty()) {
        Some(exponent) if exponent != "i" => (power.checked_add(exponent.parse().ok()?)?, 0, Form::Exponent),
        _ => match BINARY.iter().skip(1).zip(1_u32..).find(|(name, _)| **name == suffix) {
            Some((_, times)) => (power, times, Form::Binary),
            None => {
                let (_, of_suffix) = DECIMAL.iter().find(|(name, _)| *name == suffix)?;
                (power + of_suffix, 0, Form::Decimal)
            }
        },
    };
    let amount = digits.checked_mul(1_024_i128.checked_pow(binary)?)?;
    let nanos = match power.checked_sub(NANO)? {
        up @ 0.. => amount.checked_mul(10_i128.checked_pow(up.unsigned_abs())?)?,
        // What is below a billionth is rounded up.
        down => match 10_i128.checked_pow(down.unsigned_abs()) {
            Some(divisor) => amount / divisor + i128::from(amount % divisor != 0),
            None => i128::from(amount != 0),
        },
    };
    Some((if text.starts_with('-') { -nanos } else { nanos }, form))
}

/// Returns the amount with the greatest power of thousand that leaves it whole.
fn thousands(nanos: i128) -> (i128, i32) {
    let (mut amount, mut power) = (nanos, NANO);
    while amount % 1_000 == 0 && power < 18 {
        (amount, power) = (amount / 1_000, power + 3);
    }
    (amount, power)
}

fn binary(nanos: i128) -> String {
    let whole = nanos / 1_000_000_000;
    let mut amount = if nanos % 1_000_000_000 > 0 { whole + 1 } else { whole };
    let mut suffixes = BINARY.iter().peekable();
    while amount % 1_024 == 0 && suffixes.len() > 1 {
        amount /= 1_024;
        suffixes.next();
    }
    format!("{amount}{}", suffixes.peek().copied().unwrap_or(&""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_are_written_as_api_servers_do() {
        for (value, expected) in [
            (json!("0.1"), Some("100m")),
            (json!("100m"), Some("100m")),
            (json!(1), Some("1")),
            (json!(0.5), Some("500m")),
            (json!("1000m"), Some("1")),
            (json!("1024Mi"), Some("1Gi")),
            (json!("1.5Gi"), Some("1536Mi")),
            (json!("0.5Ki"), Some("512")),
            (json!("1024"), Some("1024")),
            (json!("1500"), Some("1500")),
            (json!("2000000"), Some("2M")),
            (json!("1e3"), Some("1e3")),
            (json!("1E"), Some("1E")),
            (json!("2Ei"), Some("2Ei")),
            (json!("-1.5"), Some("-1500m")),
            (json!("0"), Some("0")),
            (json!(".5"), Some("500m")),
            (json!("0.0000000001"), Some("1n")),
            (json!("web"), None),
            (json!(""), None),
            (json!("1.2.3"), None),
            (json!("1KiB"), None),
            (json!("1e99"), None),
            (json!("9".repeat(70)), None),
            (json!(true), None),
        ] {
            assert_eq!(canonical(&value).as_deref(), expected, "{value}");
        }
    }
}
