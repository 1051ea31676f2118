//! Encodes OpenAPI v2 in Protobuf: the messages of `OpenAPIv2.proto` in github.com/google/gnostic-models that the
//! definitions of kinds need.

use serde_json::{Map, Value};

/// Appends a length-delimited Protobuf field: a text or a message.
fn put(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    varint(out, u64::from(number) << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn message(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

/// Encodes a name and a value as the message `NamedSchema` or `NamedAny`.
fn named(name: &str, value: &[u8]) -> Vec<u8> {
    message(|out| {
        put(out, 1, name.as_bytes());
        put(out, 2, value);
    })
}

/// Encodes an OpenAPI v2 `Document` with these definitions and without paths.
pub(super) fn document(version: &str, definitions: &Map<String, Value>) -> Vec<u8> {
    message(|out| {
        put(out, 1, b"2.0");
        let info = message(|out| {
            put(out, 1, b"Kubernetes");
            put(out, 2, version.as_bytes());
        });
        put(out, 2, &info);
        put(out, 8, &[]);
        let all = message(|out| {
            for (name, definition) in definitions {
                put(out, 1, &named(name, &schema(definition)));
            }
        });
        put(out, 9, &all);
    })
}

fn schema(tree: &Value) -> Vec<u8> {
    let text = |key: &str| tree[key].as_str();
    message(|out| {
        for (number, key) in [(1, "$ref"), (2, "format"), (4, "description")] {
            if let Some(text) = text(key) {
                put(out, number, text.as_bytes());
            }
        }
        for name in tree["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            put(out, 19, name.as_bytes());
        }
        match &tree["additionalProperties"] {
            Value::Bool(allowed) => put(out, 21, &[0x10, u8::from(*allowed)]),
            inner if inner.is_object() => put(out, 21, &message(|out| put(out, 1, &schema(inner)))),
            _ => {}
        }
        if let Some(kind) = text("type") {
            put(out, 22, &message(|out| put(out, 1, kind.as_bytes())));
        }
        if tree["items"].is_object() {
            put(out, 23, &message(|out| put(out, 1, &schema(&tree["items"]))));
        }
        if let Some(properties) = tree["properties"].as_object() {
            let all = message(|out| {
                for (name, property) in properties {
                    put(out, 1, &named(name, &schema(property)));
                }
            });
            put(out, 25, &all);
        }
        for (key, value) in tree.as_object().into_iter().flatten().filter(|(key, _)| key.starts_with("x-")) {
            // JSON is valid YAML.
            let any = message(|out| put(out, 2, value.to_string().as_bytes()));
            put(out, 31, &named(key, &any));
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schema_is_encoded_field_by_field() {
        assert_eq!(
            schema(&json!({"type": "string", "format": "byte"})),
            b"\x12\x04byte\xb2\x01\x08\x0a\x06string"
        );
        let list = schema(&json!({"items": {"$ref": "#/a"}, "x-b": [1]}));
        assert_eq!(list, b"\xba\x01\x07\x0a\x05\x0a\x03#/a\xfa\x01\x0c\x0a\x03x-b\x12\x05\x12\x03[1]");
        let long = "a".repeat(200);
        assert_eq!(schema(&json!({"description": long}))[..3], [0x22, 0xc8, 0x01]);
    }
}
