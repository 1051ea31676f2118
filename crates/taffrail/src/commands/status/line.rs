//! Writes the line of JSON about one object.

use taffrail_object::Object;
use taffrail_object::json::{Value, write_escaped};
use taffrail_status::Verdict;

/// Appends the JSON line of an object and its verdict; for an input that is not an object, `object` is `None` and
/// the error is written.
///
/// Written by hand: this is most of the work on small objects.
pub(super) fn write_line(object: Option<&Object<'_>>, verdict: Result<&Verdict, &str>, out: &mut Vec<u8>) {
    match object {
        Some(object) => {
            text(r#"{"group":""#, object.group(), out);
            text(r#"","version":""#, object.version(), out);
            text(r#"","kind":""#, object.kind(), out);
            let [namespace, name] = object.full_name();
            field(r#"","namespace":""#, namespace, out);
            field(r#"","name":""#, name, out);
        }
        None => raw(r#"{"group":"","version":"","kind":"","namespace":"","name":""#, "", out),
    }
    let verdict = match verdict {
        Ok(verdict) => verdict,
        Err(error) => {
            text(r#"","status":"Unknown","message":"","conditions":[],"error":""#, error, out);
            return out.extend_from_slice(b"\"}\n");
        }
    };
    raw(r#"","status":""#, verdict.status.as_str(), out);
    text(r#"","message":""#, &verdict.message, out);
    raw(r#"","conditions":["#, "", out);
    for (at, condition) in verdict.conditions.iter().enumerate() {
        let before = if at == 0 { r#"{"type":""# } else { r#",{"type":""# };
        raw(before, condition.condition.as_str(), out);
        text(r#"","status":"True","reason":""#, &condition.reason, out);
        text(r#"","message":""#, &condition.message, out);
        raw(r#""}"#, "", out);
    }
    text(r#"],"rule":""#, &verdict.rule, out);
    out.extend_from_slice(if verdict.suspended { b"\",\"suspended\":true}\n" } else { b"\"}\n" });
}

/// Appends `before`, then `text` as a JSON string. Inlined, so that copying a literal is a few instructions and no
/// call.
#[inline(always)]
fn text(before: &str, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(before.as_bytes());
    write_escaped(text, out);
}

#[inline(always)]
fn raw(before: &str, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(before.as_bytes());
    out.extend_from_slice(text.as_bytes());
}

#[inline(always)]
fn field(before: &str, value: Option<Value<'_>>, out: &mut Vec<u8>) {
    out.extend_from_slice(before.as_bytes());
    if let Some(value) = value {
        value.write_escaped(out);
    }
}
