//! Converts Kubernetes' Protobuf, which API servers send on request and typed clients write, to JSON.
//!
//! The result is the JSON of the same object, so everything else reads one form. Empty fields that JSON omits are
//! omitted here. Protobuf does not carry the type of an object within an object: the template of a claim has no
//! `apiVersion` and no `kind`.

pub mod schema;

use std::borrow::Cow;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use schema::{Field, Kind, Message, Shape};

use crate::json::{Parser, write_string};

/// The first bytes of Kubernetes' Protobuf envelope.
const MAGIC: &[u8] = b"k8s\0";

/// The maximum nesting of messages; a body that nests deeper counts as malformed. No object has as many levels, and the
/// stack suffices for them.
const MAX_MESSAGE_DEPTH: usize = 64;

/// The reasons why a Protobuf body cannot be converted to JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtobufError {
    /// A body that is not Protobuf, or does not match the kind it names.
    #[error("the bytes are not Protobuf of Kubernetes, or not an object of the kind that they name")]
    Malformed,
    /// A kind that is not in the table of messages.
    #[error("Taffrail cannot decode Protobuf of {api_version} {kind}: it does not know the fields")]
    UnknownKind {
        /// The `apiVersion`, such as `apps/v1`.
        api_version: String,
        /// The kind.
        kind: String,
    },
}

/// The part of an object that is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The whole object.
    Whole,
    /// The object without `metadata.managedFields`, which are about half of it and rarely read.
    Unmanaged,
}

/// Appends the object in `body` to `out`, as JSON.
///
/// # Errors
/// If `body` is malformed or of an unknown kind; `out` then keeps incomplete text behind its former end.
pub fn write_json(body: &[u8], extent: Extent, out: &mut Vec<u8>) -> Result<(), ProtobufError> {
    let envelope = Envelope::read(body).ok_or(ProtobufError::Malformed)?;
    let (group, version) = envelope.api_version.split_once('/').unwrap_or(("", &envelope.api_version));
    let known =
        schema::of_kind(group, version, &envelope.kind).ok_or_else(|| ProtobufError::UnknownKind {
            api_version: envelope.api_version.clone().into_owned(),
            kind: envelope.kind.clone().into_owned(),
        })?;
    out.extend_from_slice(b"{\"apiVersion\":");
    write_string(&envelope.api_version, out);
    out.extend_from_slice(b",\"kind\":");
    write_string(&envelope.kind, out);
    let mut writer = Writer { out, extent, depth: MAX_MESSAGE_DEPTH };
    writer.members(envelope.raw, known, &mut false).ok_or(ProtobufError::Malformed)?;
    out.push(b'}');
    Ok(())
}

/// Appends the watch event in `frame` to `out`, as a JSON object without a line end. Raw JSON inside it keeps its line
/// breaks.
///
/// # Errors
/// As in [`write_json`].
pub fn write_event(frame: &[u8], extent: Extent, out: &mut Vec<u8>) -> Result<(), ProtobufError> {
    let (mut name, mut object): (&[u8], &[u8]) = (&[], &[]);
    let mut read = || {
        for field in Fields(frame) {
            match field? {
                (1, Payload::Bytes(bytes)) => name = bytes,
                (2, Payload::Bytes(bytes)) => object = first(bytes, 1)?.unwrap_or_default(),
                _ => {}
            }
        }
        Some(())
    };
    read().ok_or(ProtobufError::Malformed)?;
    out.extend_from_slice(b"{\"type\":");
    write_string(&text(name), out);
    out.extend_from_slice(b",\"object\":");
    write_json(object, extent, out)?;
    out.push(b'}');
    Ok(())
}

/// The envelope of an object: `apiVersion`, kind, and the bytes of the object.
struct Envelope<'a> {
    api_version: Cow<'a, str>,
    kind: Cow<'a, str>,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(body: &'a [u8]) -> Option<Envelope<'a>> {
        let mut envelope = Envelope { api_version: "".into(), kind: "".into(), raw: &[] };
        for field in Fields(body.strip_prefix(MAGIC)?) {
            match field? {
                (1, Payload::Bytes(described)) => {
                    for field in Fields(described) {
                        match field? {
                            (1, Payload::Bytes(bytes)) => envelope.api_version = text(bytes),
                            (2, Payload::Bytes(bytes)) => envelope.kind = text(bytes),
                            _ => {}
                        }
                    }
                }
                (2, Payload::Bytes(bytes)) => envelope.raw = bytes,
                // API servers never compress.
                (3, Payload::Bytes(encoding)) if !encoding.is_empty() => return None,
                _ => {}
            }
        }
        Some(envelope)
    }
}

/// The value of a field in the Protobuf encoding, by its wire type.
enum Payload<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A payload of another wire type.
    Other,
}

/// An iterator over the fields of a message, in order; yields `None` for a damaged field and ends there.
#[derive(Clone)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (value, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(value)
    }

    fn field(&mut self) -> Option<(u64, Payload<'a>)> {
        let tag = self.varint()?;
        let payload = match tag & 7 {
            0 => Payload::Number(self.varint()?),
            1 => self.take(8).map(|_| Payload::Other)?,
            5 => self.take(4).map(|_| Payload::Other)?,
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Payload::Bytes(self.take(length)?)
            }
            _ => return None,
        };
        Some((tag >> 3, payload))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, Payload<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Returns the bytes of the first field of bytes with the number `wanted`: the inner `None` if there is no such field,
/// the outer `None` if the message is damaged before it.
fn first(message: &[u8], wanted: u64) -> Option<Option<&[u8]>> {
    for field in Fields(message) {
        if let (number, Payload::Bytes(bytes)) = field?
            && number == wanted
        {
            return Some(Some(bytes));
        }
    }
    Some(None)
}

/// Returns the integers in the fields numbered 0 to 3, indexed by field number, of a repeated field the last; `None`
/// for a damaged message.
fn numbers(message: &[u8]) -> Option<[Option<i64>; 4]> {
    let mut all = [None; 4];
    for field in Fields(message) {
        if let (number, Payload::Number(value)) = field?
            && let Some(place) = usize::try_from(number).ok().and_then(|number| all.get_mut(number))
        {
            *place = Some(value.cast_signed());
        }
    }
    Some(all)
}

/// Returns true if `json`, a value that was written as JSON, is null or the zero of its type: `false`, `0`, `""`, `[]`
/// or `{}`. Go omits those from optional fields.
fn is_omitted(json: &[u8]) -> bool {
    matches!(json, b"null" | b"false" | b"0" | b"\"\"" | b"[]" | b"{}")
}

/// A writer that converts one Protobuf body to JSON.
struct Writer<'w> {
    out: &'w mut Vec<u8>,
    extent: Extent,
    /// The number of further levels of messages that are accepted.
    depth: usize,
}

impl Writer<'_> {
    /// Writes the fields of a message as members of the JSON object being written. Skips unknown fields, as every
    /// reader of Protobuf does; returns `None` for a damaged message, one that nests too deeply, and one with a list or
    /// map in two parts.
    fn members(&mut self, bytes: &[u8], known: &Message, is_first: &mut bool) -> Option<()> {
        self.depth = self.depth.checked_sub(1)?;
        let mut fields = Fields(bytes);
        // A bit for each list and map that was written.
        let mut written = 0_u128;
        while let Some(next) = fields.next() {
            let (number, payload) = next?;
            let Some((place, field)) = known.field(number) else { continue };
            if field.name == "managedFields" && self.extent == Extent::Unmanaged {
                continue;
            }
            if field.name.is_empty() {
                if let (Some(inside), Payload::Bytes(bytes)) = (field.inside(), &payload) {
                    self.members(bytes, inside, is_first)?;
                }
                continue;
            }
            let (start, was_first) = (self.out.len(), *is_first);
            if !std::mem::take(is_first) {
                self.out.push(b',');
            }
            self.out.push(b'"');
            // Names of fields need no escapes.
            self.out.extend_from_slice(field.name.as_bytes());
            self.out.extend_from_slice(b"\":");
            if field.shape == Shape::One {
                let value = self.out.len();
                self.value(field, &payload)?;
                if !field.kept && self.out.get(value..).is_some_and(is_omitted) {
                    self.out.truncate(start);
                    *is_first = was_first;
                }
                continue;
            }
            // Writers put all elements one after the other; two lists of the same name would hide one.
            let bit = 1_u128.checked_shl(u32::try_from(place).ok()?)?;
            if written & bit != 0 {
                return None;
            }
            written |= bit;
            let (open, close) = if field.shape == Shape::List { (b'[', b']') } else { (b'{', b'}') };
            self.out.push(open);
            self.element(field, &payload)?;
            loop {
                let mut ahead = fields.clone();
                match ahead.next() {
                    Some(Some((own, payload))) if own == number => {
                        fields = ahead;
                        self.out.push(b',');
                        self.element(field, &payload)?;
                    }
                    _ => break,
                }
            }
            self.out.push(close);
        }
        self.depth += 1;
        Some(())
    }

    /// Writes an item of a list, or the key and value of a map's entry; returns `None` if it is damaged.
    fn element(&mut self, field: &Field, payload: &Payload<'_>) -> Option<()> {
        if field.shape == Shape::List {
            return self.value(field, payload);
        }
        let Payload::Bytes(entry) = payload else { return None };
        let (mut key, mut value): (&[u8], _) = (&[], Payload::Bytes(&[]));
        for part in Fields(entry) {
            match part? {
                (1, Payload::Bytes(bytes)) => key = bytes,
                (2, payload) => value = payload,
                _ => {}
            }
        }
        write_string(&text(key), self.out);
        self.out.push(b':');
        self.value(field, &value)
    }

    fn value(&mut self, field: &Field, payload: &Payload<'_>) -> Option<()> {
        match (field.kind, payload) {
            (Kind::Number, Payload::Number(number)) => self.number(number.cast_signed()),
            (Kind::Flag, Payload::Number(number)) => {
                self.out.extend_from_slice(if *number == 0 { b"false" } else { b"true" });
            }
            (Kind::Text, Payload::Bytes(bytes)) => write_string(&text(bytes), self.out),
            (Kind::Bytes, Payload::Bytes(bytes)) => write_string(&STANDARD.encode(bytes), self.out),
            (Kind::Raw, Payload::Bytes(bytes)) => match first(bytes, 1)? {
                // Raw JSON must be one complete value, so that it cannot close the object around it.
                Some(raw) => {
                    Parser::new().parse(raw).ok()?;
                    self.out.extend_from_slice(raw);
                }
                None => self.out.extend_from_slice(b"null"),
            },
            (Kind::Quantity, Payload::Bytes(bytes)) => match first(bytes, 1)? {
                Some(written) => write_string(&text(written), self.out),
                None => self.out.extend_from_slice(b"\"0\""),
            },
            (Kind::Texts, Payload::Bytes(bytes)) => {
                self.out.push(b'[');
                let mut is_first = true;
                for part in Fields(bytes) {
                    if let (_, Payload::Bytes(bytes)) = part? {
                        if !std::mem::take(&mut is_first) {
                            self.out.push(b',');
                        }
                        write_string(&text(bytes), self.out);
                    }
                }
                self.out.push(b']');
            }
            (Kind::Either, Payload::Bytes(bytes)) => {
                // The type (number or text), the number, the text.
                let [_, which, number, _] = numbers(bytes)?;
                match which {
                    Some(1) => write_string(&text(first(bytes, 3)?.unwrap_or_default()), self.out),
                    _ => self.number(number.unwrap_or_default()),
                }
            }
            (Kind::Time, Payload::Bytes(bytes)) => self.time(bytes)?,
            (Kind::Duration, Payload::Bytes(bytes)) => {
                let [_, nanoseconds, ..] = numbers(bytes)?;
                self.duration(nanoseconds.unwrap_or_default());
            }
            (Kind::Message(_), Payload::Bytes(bytes)) => {
                self.out.push(b'{');
                self.members(bytes, field.inside()?, &mut true)?;
                self.out.push(b'}');
            }
            // A payload of another type than the field's.
            _ => return None,
        }
        Some(())
    }

    fn number(&mut self, number: i64) {
        // Writing to a vector cannot fail.
        let _ = write!(self.out, "{number}");
    }

    /// Writes a time from seconds and nanoseconds, or null if both are absent; returns `None` if the message is damaged
    /// or the time out of range. A time with a fraction of a second is written as a `MicroTime`.
    fn time(&mut self, bytes: &[u8]) -> Option<()> {
        let [_, seconds, nanoseconds, _] = numbers(bytes)?;
        if seconds.is_none() && nanoseconds.is_none() {
            self.out.extend_from_slice(b"null");
            return Some(());
        }
        let nanoseconds = i32::try_from(nanoseconds.unwrap_or_default()).ok()?;
        let time = Timestamp::new(seconds.unwrap_or_default(), nanoseconds).ok()?;
        let _ = match nanoseconds {
            0 => write!(self.out, "\"{time}\""),
            _ => write!(self.out, "\"{}\"", time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ")),
        };
        Some(())
    }

    /// Writes a duration in seconds, such as `90s`, where Go writes `1m30s`; in nanoseconds if they are not whole
    /// seconds, which Kubernetes does not have.
    fn duration(&mut self, nanoseconds: i64) {
        let seconds = nanoseconds / 1_000_000_000;
        let _ = match nanoseconds % 1_000_000_000 {
            0 => write!(self.out, "\"{seconds}s\""),
            _ => write!(self.out, "\"{nanoseconds}ns\""),
        };
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use serde_json::Value;

    use super::{Extent, ProtobufError, write_event, write_json};

    fn read(body: &[u8]) -> Result<Value, ProtobufError> {
        let mut text = Vec::new();
        write_json(body, Extent::Whole, &mut text)?;
        Ok(serde_json::from_slice(&text).expect("JSON"))
    }

    fn part(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).expect("short")][..], bytes].concat()
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let described = [part(1, api_version.as_bytes()), part(2, kind.as_bytes())].concat();
        [b"k8s\0".to_vec(), part(1, &described), part(2, raw)].concat()
    }

    #[test]
    fn access_review_is_converted() {
        let attributes = [part(2, b"list"), part(5, b"pods")].concat();
        let review = part(2, &part(1, &attributes));
        let body = body("authorization.k8s.io/v1", "SelfSubjectAccessReview", &review);
        let read_back = read(&body).expect("a review");
        assert_eq!(read_back["spec"], json!({"resourceAttributes": {"verb": "list", "resource": "pods"}}));
        for end in 0..body.len() {
            let _ = read(&body[..end]);
        }
        assert_eq!(read(b"{}"), Err(ProtobufError::Malformed));
    }

    #[test]
    fn zero_fields_are_omitted_unless_required() {
        // No name, no creation time, no replicas, and a spec with an empty template.
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
    fn special_types_are_converted_as_in_json() {
        let port = [part(4, &[0x08, 0x01, 0x1a, 4, b'h', b't', b't', b'p']), vec![0x18, 80]].concat();
        let other = part(4, &[0x08, 0x00, 0x10, 0x90, 0x3f]);
        let raw = part(2, &[part(1, &port), part(1, &other)].concat());
        let read_back = read(&body("v1", "Service", &raw)).expect("a Service");
        let wanted = json!([{"port": 80, "targetPort": "http"}, {"targetPort": 8080}]);
        assert_eq!(read_back["spec"]["ports"], wanted);
        let lease = part(2, &part(4, &[0x08, 0x80, 0xe2, 0xcf, 0xaa, 0x06, 0x10, 0xc0, 0xc4, 0x07]));
        let read_back = read(&body("coordination.k8s.io/v1", "Lease", &lease)).expect("a Lease");
        assert_eq!(read_back["spec"]["renewTime"], "2023-11-14T22:13:20.000123Z");
        let unknown = read(&body("v1", "NoSuchKind", &lease)).expect_err("no such kind").to_string();
        assert_eq!(unknown, "Taffrail cannot decode Protobuf of v1 NoSuchKind: it does not know the fields");
    }

    #[test]
    fn too_deep_messages_are_refused() {
        // Among the built-in kinds only a schema nests in itself, but so does a message with a wrong length.
        let mut raw = part(1, b"a");
        for _ in 0..8 {
            raw = part(2, &raw);
        }
        let _ = read(&body("v1", "Pod", &raw));
    }

    #[test]
    fn watch_event_becomes_a_line_of_json() {
        let metadata = [part(1, b"web-0"), vec![0x8a, 0x01, 4, 0x0a, 2, b'm', b'e']].concat();
        let pod = body("v1", "Pod", &part(1, &metadata));
        let frame = [part(1, b"MODIFIED"), part(2, &part(1, &pod))].concat();
        let mut line = Vec::new();
        write_event(&frame, Extent::Unmanaged, &mut line).expect("an event");
        let line = String::from_utf8(line).expect("text");
        assert_eq!(
            line,
            r#"{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0"}}}"#
        );
        for end in 0..frame.len() {
            let _ = write_event(&frame[..end], Extent::Whole, &mut Vec::new());
        }
    }

    #[test]
    fn partial_object_metadata_is_converted() {
        let object = body("meta.k8s.io/v1", "PartialObjectMetadata", &part(1, &part(1, b"settings")));
        let wanted = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "settings"},
        });
        assert_eq!(read(&object), Ok(wanted));
    }

    #[test]
    fn embedded_json_cannot_close_the_object() {
        // The data of a ControllerRevision is JSON in bytes.
        let revision = |data: &[u8]| body("apps/v1", "ControllerRevision", &part(2, &part(1, data)));
        assert_eq!(read(&revision(b"{\"a\":1}")).expect("a revision")["data"], json!({"a": 1}));
        assert_eq!(read(&revision(b"{},\"kind\":\"Secret\"")), Err(ProtobufError::Malformed));
    }

    #[test]
    fn list_in_two_parts_is_refused() {
        let metadata = [part(14, b"one"), part(1, b"web"), part(14, b"two")].concat();
        assert_eq!(read(&body("v1", "Pod", &part(1, &metadata))), Err(ProtobufError::Malformed));
    }
}
