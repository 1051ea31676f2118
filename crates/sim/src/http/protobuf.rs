//! Bodies in Protobuf, which typed clients of today send unless they are told not to. They become the JSON that the
//! same object would have been; answers are JSON, which those clients accept as well.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::kinds::split_group_version;
use crate::messages::{self, Field, Kind, Message, Shape};

/// How Kubernetes marks its own envelope.
const MAGIC: &[u8] = b"k8s\0";

/// How deep messages may be in one another: deeper than any object is, and nothing to a stack.
const DEEPEST: usize = 64;

/// Why a body cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is no Protobuf, or not that of the kind it names.
    Malformed,
    /// Its kind is not in the table.
    UnknownKind,
}

/// The object that a body holds.
pub(super) fn read(body: &[u8]) -> Result<Value, Unreadable> {
    let (api_version, kind, raw) = unpack(body).ok_or(Unreadable::Malformed)?;
    let (group, version) = split_group_version(&api_version);
    let known = messages::of_kind(group, version, &kind).ok_or(Unreadable::UnknownKind)?;
    let mut object = Map::new();
    message(raw, known, &mut object, DEEPEST).ok_or(Unreadable::Malformed)?;
    object.insert("apiVersion".to_owned(), json!(api_version));
    object.insert("kind".to_owned(), json!(kind));
    Ok(Value::Object(object))
}

/// What is in the envelope: the version, the kind, and the object.
fn unpack(body: &[u8]) -> Option<(String, String, &[u8])> {
    let envelope = body.strip_prefix(MAGIC)?;
    let (mut api_version, mut kind) = (String::new(), String::new());
    let mut raw: &[u8] = &[];
    for (number, payload) in fields(envelope)? {
        match (number, payload) {
            (1, Payload::Bytes(described)) => {
                for (number, payload) in fields(described)? {
                    match (number, payload) {
                        (1, Payload::Bytes(bytes)) => api_version = text(bytes),
                        (2, Payload::Bytes(bytes)) => kind = text(bytes),
                        _ => {}
                    }
                }
            }
            (2, Payload::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    Some((api_version, kind, raw))
}

enum Payload<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of a type that no field here has.
    Other,
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Payload<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let mut take = |length: usize| {
            let (value, rest) = bytes.split_at_checked(length)?;
            bytes = rest;
            Some(value)
        };
        let payload = match tag & 7 {
            0 => Payload::Number(varint(&mut bytes)?),
            1 => take(8).map(|_| Payload::Other)?,
            5 => take(4).map(|_| Payload::Other)?,
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Payload::Bytes(value)
            }
            _ => return None,
        };
        found.push((tag >> 3, payload));
    }
    Some(found)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads a message into an object. Fields that are not known are left out, as every reader of Protobuf does.
fn message(bytes: &[u8], known: &Message, object: &mut Map<String, Value>, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    for (number, payload) in fields(bytes)? {
        let Some(field) = known.fields.iter().find(|field| field.number == number) else { continue };
        if let (true, Kind::Message(name), Payload::Bytes(bytes)) =
            (field.name.is_empty(), field.kind, &payload)
        {
            message(bytes, messages::message(name)?, object, depth)?;
            continue;
        }
        match field.shape {
            Shape::One => {
                let read = value(field.kind, &payload, depth)?;
                if field.kept || !is_zero(&read) {
                    object.insert(field.name.to_owned(), read);
                }
            }
            Shape::List => {
                let read = value(field.kind, &payload, depth)?;
                let all = object.entry(field.name).or_insert_with(|| json!([]));
                all.as_array_mut()?.push(read);
            }
            Shape::Map => {
                let Payload::Bytes(bytes) = payload else { continue };
                let (key, read) = entry(bytes, field, depth)?;
                let all = object.entry(field.name).or_insert_with(|| json!({}));
                all.as_object_mut()?.insert(key, read);
            }
        }
    }
    Some(())
}

fn entry(bytes: &[u8], field: &Field, depth: usize) -> Option<(String, Value)> {
    let mut key = String::new();
    let mut read = value(field.kind, &Payload::Bytes(&[]), depth)?;
    for (number, payload) in fields(bytes)? {
        match (number, &payload) {
            (1, Payload::Bytes(bytes)) => key = text(bytes),
            (2, payload) => read = value(field.kind, payload, depth)?,
            _ => {}
        }
    }
    Some((key, read))
}

/// What JSON leaves out of a field that need not be there.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
    }
}

fn value(kind: Kind, payload: &Payload<'_>, depth: usize) -> Option<Value> {
    Some(match (kind, payload) {
        (Kind::Number, Payload::Number(number)) => json!(number.cast_signed()),
        (Kind::Flag, Payload::Number(number)) => json!(*number != 0),
        (Kind::Text, Payload::Bytes(bytes)) => json!(text(bytes)),
        (Kind::Bytes, Payload::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (Kind::Raw, Payload::Bytes(bytes)) => {
            let inside = fields(bytes)?.into_iter().find_map(|(number, payload)| match payload {
                Payload::Bytes(bytes) if number == 1 => Some(bytes),
                _ => None,
            });
            inside.map_or(Some(Value::Null), |bytes| serde_json::from_slice(bytes).ok())?
        }
        (Kind::Quantity, Payload::Bytes(bytes)) => {
            let written = fields(bytes)?.into_iter().find_map(|(_, payload)| match payload {
                Payload::Bytes(bytes) => Some(text(bytes)),
                _ => None,
            });
            json!(written.unwrap_or_else(|| "0".to_owned()))
        }
        (Kind::Texts, Payload::Bytes(bytes)) => {
            let all = fields(bytes)?.into_iter().filter_map(|(_, payload)| match payload {
                Payload::Bytes(bytes) => Some(text(bytes)),
                _ => None,
            });
            json!(all.collect::<Vec<_>>())
        }
        (Kind::Either, Payload::Bytes(bytes)) => either(bytes)?,
        (Kind::Time, Payload::Bytes(bytes)) => time(bytes)?,
        (Kind::Duration, Payload::Bytes(bytes)) => {
            let nanoseconds = numbers(bytes)?.into_iter().find(|(number, _)| *number == 1);
            duration(nanoseconds.map_or(0, |(_, value)| value))
        }
        (Kind::Message(name), Payload::Bytes(bytes)) => {
            let mut object = Map::new();
            message(bytes, messages::message(name)?, &mut object, depth)?;
            Value::Object(object)
        }
        // A field of another type than it has.
        _ => return None,
    })
}

fn numbers(bytes: &[u8]) -> Option<Vec<(u64, i64)>> {
    let all = fields(bytes)?.into_iter().filter_map(|(number, payload)| match payload {
        Payload::Number(value) => Some((number, value.cast_signed())),
        _ => None,
    });
    Some(all.collect())
}

/// `IntOrString`: which of the two, the number, the text.
fn either(bytes: &[u8]) -> Option<Value> {
    let (mut is_text, mut number, mut written) = (false, 0, String::new());
    for (at, payload) in fields(bytes)? {
        match (at, payload) {
            (1, Payload::Number(kind)) => is_text = kind == 1,
            (2, Payload::Number(value)) => number = value.cast_signed(),
            (3, Payload::Bytes(bytes)) => written = text(bytes),
            _ => {}
        }
    }
    Some(if is_text { json!(written) } else { json!(number) })
}

/// Seconds and nanoseconds; none at all is no time. What is finer than a second is written as `MicroTime` is.
fn time(bytes: &[u8]) -> Option<Value> {
    let parts = numbers(bytes)?;
    if parts.is_empty() {
        return Some(Value::Null);
    }
    let part = |wanted: u64| {
        parts.iter().find(|(number, _)| *number == wanted).map(|(_, value)| *value).unwrap_or_default()
    };
    let time = Timestamp::new(part(1), i32::try_from(part(2)).ok()?).ok()?;
    Some(match part(2) {
        0 => json!(crate::clock::stamp(time)),
        _ => json!(time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()),
    })
}

/// A duration as Go writes it; whole seconds are all that Kubernetes has.
fn duration(nanoseconds: i64) -> Value {
    let seconds = nanoseconds / 1_000_000_000;
    match nanoseconds % 1_000_000_000 {
        0 => json!(format!("{seconds}s")),
        _ => json!(format!("{nanoseconds}ns")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Unreadable, read};

    fn part(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).expect("short")][..], bytes].concat()
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let described = [part(1, api_version.as_bytes()), part(2, kind.as_bytes())].concat();
        [b"k8s\0".to_vec(), part(1, &described), part(2, raw)].concat()
    }

    #[test]
    fn a_question_about_rights_is_read() {
        let attributes = [part(2, b"list"), part(5, b"pods")].concat();
        let review = part(2, &part(1, &attributes));
        let body = body("authorization.k8s.io/v1", "SelfSubjectAccessReview", &review);
        let read_back = read(&body).expect("a review");
        assert_eq!(read_back["spec"], json!({"resourceAttributes": {"verb": "list", "resource": "pods"}}));
        for end in 0..body.len() {
            let _ = read(&body[..end]);
        }
        assert_eq!(read(b"{}"), Err(Unreadable::Malformed));
    }

    #[test]
    fn what_is_zero_is_left_out_unless_it_counts() {
        // No name, no creation time, no replicas, and a spec whose template is empty.
        let metadata = [part(1, b""), part(3, b"shop"), part(8, b"")].concat();
        let spec = [vec![0x08, 0x00], part(3, b"")].concat();
        let raw = [part(1, &metadata), part(2, &spec), part(3, b"")].concat();
        let read_back = read(&body("apps/v1", "Deployment", &raw)).expect("a Deployment");
        assert_eq!(
            read_back,
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop"}, "spec": {"replicas": 0},
            })
        );
    }

    #[test]
    fn special_types_are_what_json_has_for_them() {
        let port = [part(4, &[0x08, 0x01, 0x1a, 4, b'h', b't', b't', b'p']), vec![0x18, 80]].concat();
        let other = part(4, &[0x08, 0x00, 0x10, 0x90, 0x3f]);
        let raw = part(2, &[part(1, &port), part(1, &other)].concat());
        let read_back = read(&body("v1", "Service", &raw)).expect("a Service");
        let wanted = json!([{"port": 80, "targetPort": "http"}, {"targetPort": 8080}]);
        assert_eq!(read_back["spec"]["ports"], wanted);
        let lease = part(2, &part(4, &[0x08, 0x80, 0xe2, 0xcf, 0xaa, 0x06, 0x10, 0xc0, 0xc4, 0x07]));
        let read_back = read(&body("coordination.k8s.io/v1", "Lease", &lease)).expect("a Lease");
        assert_eq!(read_back["spec"]["renewTime"], "2023-11-14T22:13:20.000123Z");
        assert_eq!(read(&body("v1", "NoSuchKind", &lease)), Err(Unreadable::UnknownKind));
    }

    #[test]
    fn depth_has_a_bound() {
        // No built-in kind but a schema nests in itself; a wrong length does it, too.
        let mut raw = part(1, b"a");
        for _ in 0..8 {
            raw = part(2, &raw);
        }
        let _ = read(&body("v1", "Pod", &raw));
    }
}
