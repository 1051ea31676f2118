//! The few objects that kubectl sends as Protobuf whatever the server offers: questions about rights, options of
//! deletions, evictions, and what `kubectl create` makes of a few words. Numbers of fields: `generated.proto` in Kubernetes' `k8s.io/api` and `k8s.io/apimachinery`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// How Kubernetes marks its own envelope.
const MAGIC: &[u8] = b"k8s\0";

/// What a field holds.
enum Field {
    Text(&'static str),
    Number(&'static str),
    Flag(&'static str),
    Texts(&'static str),
    /// Texts by name.
    Map(&'static str),
    /// Bytes by name, which JSON has in base64.
    Bytes(&'static str),
    Message(&'static str, &'static [(u64, Field)]),
}

const RESOURCE: &[(u64, Field)] = &[
    (1, Field::Text("namespace")),
    (2, Field::Text("verb")),
    (3, Field::Text("group")),
    (4, Field::Text("version")),
    (5, Field::Text("resource")),
    (6, Field::Text("subresource")),
    (7, Field::Text("name")),
];
const PATH: &[(u64, Field)] = &[(1, Field::Text("path")), (2, Field::Text("verb"))];
const METADATA: &[(u64, Field)] = &[
    (1, Field::Text("name")),
    (2, Field::Text("generateName")),
    (3, Field::Text("namespace")),
    (5, Field::Text("uid")),
    (6, Field::Text("resourceVersion")),
    (11, Field::Map("labels")),
    (12, Field::Map("annotations")),
];
const NAMED: &[(u64, Field)] = &[(1, Field::Message("metadata", METADATA))];
const CONFIG_MAP: &[(u64, Field)] =
    &[(1, Field::Message("metadata", METADATA)), (2, Field::Map("data")), (3, Field::Bytes("binaryData"))];
const SECRET: &[(u64, Field)] =
    &[(1, Field::Message("metadata", METADATA)), (2, Field::Bytes("data")), (3, Field::Text("type"))];
const PRECONDITIONS: &[(u64, Field)] = &[(1, Field::Text("uid")), (2, Field::Text("resourceVersion"))];
const DELETE_OPTIONS: &[(u64, Field)] = &[
    (1, Field::Number("gracePeriodSeconds")),
    (2, Field::Message("preconditions", PRECONDITIONS)),
    (3, Field::Flag("orphanDependents")),
    (4, Field::Text("propagationPolicy")),
    (5, Field::Texts("dryRun")),
];
const SELF_ACCESS: &[(u64, Field)] = &[(
    2,
    Field::Message(
        "spec",
        &[
            (1, Field::Message("resourceAttributes", RESOURCE)),
            (2, Field::Message("nonResourceAttributes", PATH)),
        ],
    ),
)];
const ACCESS: &[(u64, Field)] = &[(
    2,
    Field::Message(
        "spec",
        &[
            (1, Field::Message("resourceAttributes", RESOURCE)),
            (2, Field::Message("nonResourceAttributes", PATH)),
            (3, Field::Text("user")),
            (4, Field::Texts("groups")),
        ],
    ),
)];
const RULES: &[(u64, Field)] = &[(2, Field::Message("spec", &[(1, Field::Text("namespace"))]))];
const EVICTION: &[(u64, Field)] =
    &[(1, Field::Message("metadata", METADATA)), (2, Field::Message("deleteOptions", DELETE_OPTIONS))];

/// The object that a body holds; `None` for what is no such object.
pub(super) fn read(body: &[u8]) -> Option<Value> {
    const TYPE: &[(u64, Field)] = &[(1, Field::Text("apiVersion")), (2, Field::Text("kind"))];
    let envelope = body.strip_prefix(MAGIC)?;
    let mut described = Map::new();
    let mut raw: &[u8] = &[];
    for (number, payload) in fields(envelope)? {
        match (number, payload) {
            (1, Payload::Bytes(bytes)) => described = message(bytes, TYPE)?,
            (2, Payload::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let kind = described.get("kind").and_then(Value::as_str)?;
    let mut object = match kind {
        "SelfSubjectAccessReview" => message(raw, SELF_ACCESS)?,
        "SubjectAccessReview" => message(raw, ACCESS)?,
        "SelfSubjectRulesReview" => message(raw, RULES)?,
        "SelfSubjectReview" => Map::new(),
        "DeleteOptions" => message(raw, DELETE_OPTIONS)?,
        "Eviction" => message(raw, EVICTION)?,
        "Namespace" | "ServiceAccount" => message(raw, NAMED)?,
        "ConfigMap" => message(raw, CONFIG_MAP)?,
        "Secret" => message(raw, SECRET)?,
        _ => return None,
    };
    object.extend(described);
    Some(Value::Object(object))
}

enum Payload<'a> {
    Number(u64),
    Bytes(&'a [u8]),
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
        let payload = match tag & 7 {
            0 => Payload::Number(varint(&mut bytes)?),
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

fn message(bytes: &[u8], known: &[(u64, Field)]) -> Option<Map<String, Value>> {
    let mut object = Map::new();
    for (number, payload) in fields(bytes)? {
        let Some((_, field)) = known.iter().find(|(known, _)| *known == number) else { continue };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match (field, payload) {
            (Field::Text(name), Payload::Bytes(bytes)) => {
                object.insert((*name).to_owned(), json!(text(bytes)));
            }
            (Field::Texts(name), Payload::Bytes(bytes)) => {
                let all = object.entry(*name).or_insert_with(|| json!([]));
                all.as_array_mut()?.push(json!(text(bytes)));
            }
            (Field::Number(name), Payload::Number(value)) => {
                object.insert((*name).to_owned(), json!(value.cast_signed()));
            }
            (Field::Flag(name), Payload::Number(value)) => {
                object.insert((*name).to_owned(), json!(value != 0));
            }
            (Field::Map(name) | Field::Bytes(name), Payload::Bytes(bytes)) => {
                let (mut key, mut value) = (String::new(), Value::String(String::new()));
                for (number, payload) in fields(bytes)? {
                    match (number, payload, field) {
                        (1, Payload::Bytes(bytes), _) => key = text(bytes),
                        (2, Payload::Bytes(bytes), Field::Bytes(_)) => value = json!(STANDARD.encode(bytes)),
                        (2, Payload::Bytes(bytes), _) => value = json!(text(bytes)),
                        _ => {}
                    }
                }
                object.entry(*name).or_insert_with(|| json!({})).as_object_mut()?.insert(key, value);
            }
            (Field::Message(name, known), Payload::Bytes(bytes)) => {
                object.insert((*name).to_owned(), Value::Object(message(bytes, known)?));
            }
            _ => {}
        }
    }
    Some(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn a_question_about_rights_is_read() {
        let attributes = b"\x12\x04list\x2a\x04pods";
        let spec = [&[0x0a, attributes.len() as u8][..], attributes].concat();
        let review = [&[0x12, spec.len() as u8][..], &spec].concat();
        let kind = b"\x12\x17SelfSubjectAccessReview";
        let body =
            [b"k8s\0\x0a", &[kind.len() as u8][..], kind, &[0x12, review.len() as u8], &review].concat();
        let read_back = read(&body).expect("a review");
        assert_eq!(read_back["spec"], json!({"resourceAttributes": {"verb": "list", "resource": "pods"}}));
        for end in 0..body.len() {
            let _ = read(&body[..end]);
        }
        assert_eq!(read(b"{}"), None);
    }
}
