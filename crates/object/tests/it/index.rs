//! Tests that the index of a document matches its text, and that the scanner checks every byte.

use proptest::prelude::*;
use taffrail_object::json::{Error, ErrorKind, OwnedDocument, Parser};

fn error(text: &str) -> Option<Error> {
    Parser::new().parse(text.as_bytes()).err()
}

#[test]
fn every_byte_of_a_string_is_validated() {
    for length in 0..70 {
        for at in 0..length {
            for special in ["\"", "\\", "\n", "\u{1f}", " ", "!", "#", "[", "]", "\u{7f}", "é", "\\n", "\\\""]
            {
                let inside = format!("{}{special}{}", "x".repeat(at), "y".repeat(length - at - 1));
                // In the middle of a long text, at its very end, and as a key.
                let padding = " ".repeat(40);
                for text in [
                    format!("\"{inside}\"{padding}"),
                    format!("\"{inside}\""),
                    format!("{{\"{inside}\":1}}{padding}"),
                    format!("{{\"{inside}\":1}}"),
                    format!("{{\"spec\":{{\"{inside}\":\"{inside}\"}}}}"),
                ] {
                    let valid = serde_json::from_str::<serde_json::Value>(&text);
                    match OwnedDocument::parse(text.as_bytes()) {
                        Ok(document) => assert_eq!(document.root().to_tree().unwrap(), valid.unwrap()),
                        Err(error) => assert!(valid.is_err(), "{text}: {error}"),
                    }
                }
            }
        }
    }
}

#[test]
fn similar_keys_are_distinguished() {
    for length in 1..40 {
        let key = &"abcdefghijklmnopqrstuvwxyzabcdefghijklmnop"[..length];
        let escape = |at: usize| format!("{}\\u{:04x}{}", &key[..at], key.as_bytes()[at], &key[at + 1..]);
        let found = |members: String| {
            let text = format!("{{\"spec\":{{{members}}}, \"x\":[{{{members}}}]}}");
            let document = OwnedDocument::parse(text.into_bytes()).unwrap();
            let spec = document.root().get("spec").unwrap();
            let item = document.root().get("x").unwrap().items().unwrap().next().unwrap();
            let [indexed, read] = [spec, item].map(|value| value.get(key).and_then(|value| value.as_i64()));
            assert_eq!(indexed, read, "{members}");
            indexed
        };
        for at in 0..length {
            let other = format!("{}_{}", &key[..at], &key[at + 1..]);
            assert_eq!(found(format!("\"{other}\":1")), None);
            assert_eq!(found(format!("\"{}\":1", &key[..at])), None);
            assert_eq!(found(format!("\"{key}\":1,\"{}\":2,\"{other}\":3", escape(at))), Some(2));
            assert_eq!(found(format!("\"{}\":2,\"{key}\":1", escape(at))), Some(1));
        }
        assert_eq!(found(format!("\"{key}x\":1,\"{key}\\u0000\":2,\"\\u0000{key}\":3")), None);
    }
    // Zero bytes, which pad short tags, can be part of a key if they are escaped.
    let document = OwnedDocument::parse(&br#"{"a\u0000":1,"\u0000":2,"":3}"#[..]).unwrap();
    let get = |key| document.root().get(key).and_then(|value| value.as_i64());
    assert_eq!([get("a\0"), get("a"), get("\0"), get("")], [Some(1), None, Some(2), Some(3)]);
    assert_eq!(get("\0\0\0\0\0\0"), None);
}

#[test]
fn conditions_are_indexed_like_any_array() {
    for (text, types) in [
        (r#"{"status":{"conditions":[]}}"#, vec![]),
        (
            r#"{"status":{"conditions":[ {"type":"A"} , {} , 3 , "s" , null , [1] , {"type":"B","type":"C"} ]}}"#,
            vec!["A", "C"],
        ),
        (r#"{"status":{"conditions":[{"type":"no"}],"conditions":[{"t\u0079pe":"A"}]}}"#, vec!["A"]),
        (r#"{"st\u0061tus":{"condition\u0073":[{"type":"A"}],"conditional":[{"type":"no"}]}}"#, vec!["A"]),
        (r#"{"status":{"conditions":[{"type":"A","type ":"no","x":{"type":"no"}}]}}"#, vec!["A"]),
        (r#"{"status":{"conditions":{"type":"no"}}}"#, vec![]),
    ] {
        let document = OwnedDocument::parse(text.as_bytes()).unwrap();
        let list = document.root().at(&["status", "conditions"]).unwrap();
        let found = list.items().into_iter().flatten().filter_map(|item| item.get("type")?.as_str());
        assert_eq!(found.collect::<Vec<_>>(), types, "{text}");
        let tree: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(document.root().to_tree().unwrap(), tree);
        // An array has no members, whatever the names of its items.
        if list.items().is_some() {
            assert!(list.get("").is_none() && list.get("type").is_none() && list.members().is_none());
        }
    }
}

#[test]
fn short_and_long_numbers_are_validated() {
    for number in
        ["0", "9", "00", "01", "10", "99", "-1", "-", "1-", "1.", "1x", "0x", "1 ", "123456789", "+1", "1e5"]
    {
        for (before, after) in
            [("", ""), ("{\"a\":", "}"), ("{\"a\":", ",\"b\":1}"), ("{\"a\":", " }"), ("[", "]")]
        {
            let text = format!("{before}{number}{after}");
            let valid = serde_json::from_str::<serde_json::Value>(&text);
            assert_eq!(error(&text).is_none(), valid.is_ok(), "{text}");
            if let Ok(tree) = valid {
                let document = OwnedDocument::parse(text.as_bytes()).unwrap();
                assert_eq!(document.root().to_tree().unwrap(), tree);
            }
        }
    }
}

const OBJECT: &str = r#"{"apiVersion": "apps/v1","kind":"Deployment","metadata":{"name":"a","generation":12 ,"labels":{"a\nb":"é"}},
"spec":{"replicas":3},"status":{"observedGeneration":12,"conditions":[{"type":"Available","status":"True"},{"message":"somewhat longer than that","n":[1,{}]}],"replicas":0}}"#;

proptest! {
    // Different code scans the parts with and without an index.
    #[test]
    fn errors_are_equal_with_and_without_an_index(at in 0..OBJECT.len(), byte in any::<u8>(), insert in any::<bool>()) {
        let mut text = OBJECT.as_bytes().to_vec();
        if insert { text.insert(at, byte) } else { text[at] = byte }
        let indexed = Parser::new().parse_first(&text).err();
        let inner = [b"[", &text[..], b"]"].concat();
        let plain = Parser::new().parse_first(&inner).err();
        // The bracket completes a text that ends too early.
        let ended = indexed.as_ref().is_some_and(|error| error.kind == ErrorKind::UnexpectedEnd);
        let trailing = indexed.is_none() && plain.is_some();
        if !ended && !trailing {
            prop_assert_eq!(indexed.map(|error| (error.offset + 1, error.kind)), plain.map(|error| (error.offset, error.kind)));
        }
    }
}
