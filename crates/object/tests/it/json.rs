//! Tests that JSON is read as Go reads it.

use proptest::prelude::*;
use taffrail_object::json::{ErrorKind, Kind, MAX_DEPTH, OwnedDocument, Parser, Part, write_string};

fn error(text: &[u8]) -> Option<ErrorKind> {
    let owned = OwnedDocument::parse(text).err().map(|error| error.kind);
    let borrowed = Parser::new().parse(text).err().map(|error| error.kind);
    assert_eq!(owned, borrowed);
    borrowed
}

/// Returns the string at `metadata.name`.
fn name(text: &[u8]) -> String {
    let document = OwnedDocument::parse(text).unwrap();
    document.root().at(&["metadata", "name"]).unwrap().as_str().unwrap().into_owned()
}

#[test]
fn every_byte_is_validated() {
    for text in [
        &b""[..],
        b" ",
        b"{",
        b"{}x",
        b"{}{}",
        b"{\"a\"}",
        b"{\"a\":}",
        b"{\"a\":1,}",
        b"{,}",
        b"{a:1}",
        b"{'a':1}",
        b"[1,]",
        b"[1 2]",
        b"[1}",
        b"{\"a\":1]",
        b"tru",
        b"nul",
        b"True",
        b"+1",
        b"01",
        b"1.",
        b".5",
        b"1e",
        b"1e+",
        b"-",
        b"NaN",
        b"\"",
        b"\"\n\"",
        b"\"\x00\"",
        b"\"12345678\x1f\"",
        b"\"\\x\"",
        b"\"\\u12\"",
        b"\"\\u123g\"",
        b"\"\\",
        b"\xef\xbb\xbf{}",
        b"{\"metadata\":{\"managedFields\":[{\"f:x\":{,}}]}}",
        b"{} // comment",
        b"\x0b{}",
    ] {
        assert!(error(text).is_some(), "accepted {:?}", text.escape_ascii().to_string());
    }
    for text in [
        &b"{}"[..],
        b" \t\r\n[ ] ",
        b"null",
        b"-0",
        b"-0.0e-0",
        b"\"\x7f\xff\xfe\"",
        b"\"\\u0000\\ud800\\/\"",
        b"{\"\":{\"\":[]}}",
    ] {
        assert_eq!(error(text), None, "refused {:?}", text.escape_ascii().to_string());
    }
}

#[test]
fn escapes_are_validated_wherever_they_stand() {
    let escapes = ["\\\"", "\\\\", "\\n", "\\/", "\\u00e9", "\\\\\\\""];
    // A string is read sixteen bytes at a time.
    for before in 0..50 {
        for escape in escapes {
            for after in [0, 1, 40] {
                let string = format!("{}{escape}{}", "a".repeat(before), "b".repeat(after));
                let text = format!("{{\"k\":\"{string}\"}}");
                let document = OwnedDocument::parse(text.as_bytes()).unwrap();
                let expected: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!(document.root().to_tree().unwrap(), expected, "{text}");

                let refused =
                    |text: &str| Parser::new().parse(text.as_bytes()).err().map(|it| (it.offset, it.kind));
                let at = string.len() + 1;
                let behind = [
                    ("\\x", 1, ErrorKind::BadEscape),
                    ("\\\n", 1, ErrorKind::BadEscape),
                    ("\\u12\"", 4, ErrorKind::BadEscape),
                    ("\n", 0, ErrorKind::ControlCharacter(b'\n')),
                    ("", 0, ErrorKind::UnexpectedEnd),
                    ("\\", 1, ErrorKind::UnexpectedEnd),
                    ("\\u12", 4, ErrorKind::UnexpectedEnd),
                ];
                for (wrong, offset, kind) in behind {
                    let text = format!("\"{string}{wrong}");
                    assert_eq!(refused(&text), Some((at + offset, kind)), "{text:?}");
                }
            }
        }
    }
}

#[test]
fn large_integers_become_floats_and_infinite_numbers_are_refused() {
    assert_eq!(error(b"{\"x\":1e309}"), Some(ErrorKind::NumberOutOfRange));
    assert_eq!(error(b"{\"x\":[-1e999]}"), Some(ErrorKind::NumberOutOfRange));
    assert_eq!(error(format!("1{}", "0".repeat(309)).as_bytes()), Some(ErrorKind::NumberOutOfRange));
    assert_eq!(error(format!("1{}", "0".repeat(308)).as_bytes()), None);
    assert_eq!(error(b"1e-999"), None);
    for (text, kind, number) in [
        ("9223372036854775807", Kind::Integer, Some(i64::MAX)),
        ("9223372036854775808", Kind::Float, None),
        ("-9223372036854775808", Kind::Integer, Some(i64::MIN)),
        ("-0", Kind::Integer, Some(0)),
        ("1.0", Kind::Float, None),
        ("1e0", Kind::Float, None),
    ] {
        let document = OwnedDocument::parse(text.as_bytes()).unwrap();
        assert_eq!((document.root().kind(), document.root().as_i64()), (kind, number), "{text}");
    }
}

#[test]
fn nesting_limit_is_that_of_go() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{\"status\":", "}"), ("[{\"spec\":", "}]")] {
        let levels = open.matches(['[', '{']).count();
        let nested = |depth: usize| {
            let times = depth / levels;
            format!("{}{}{}", open.repeat(times), "1", close.repeat(times))
        };
        let deepest = MAX_DEPTH as usize;
        assert_eq!(error(nested(deepest).as_bytes()), None, "{open}");
        assert_eq!(error(nested(deepest + levels).as_bytes()), Some(ErrorKind::TooDeep), "{open}");
    }
    let mixed = format!("{}{}", "[{\"a\":".repeat(100), "}]".repeat(100));
    assert!(matches!(error(mixed.as_bytes()), Some(ErrorKind::UnexpectedByte { .. })));
}

#[test]
fn too_deep_values_are_not_built_as_trees() {
    let text = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let document = OwnedDocument::parse(text.into_bytes()).unwrap();
    assert!(document.root().to_tree().is_err());
}

#[test]
fn last_of_duplicate_keys_wins_at_every_level() {
    let text = br#"{"metadata":{"name":"no"},"m\u0065tadata":{"name":"no","name":"yes"}}"#;
    assert_eq!(name(text), "yes");
    // The last one replaces the others; they are not merged.
    let document =
        OwnedDocument::parse(&br#"{"metadata":{"name":"a","uid":"b"},"metadata":{"name":"c"}}"#[..]).unwrap();
    assert!(document.root().at(&["metadata", "uid"]).is_none());
    let document =
        OwnedDocument::parse(&br#"{"status":{"c":[{"x":{"y":1,"y":2}}]},"Status":3}"#[..]).unwrap();
    let item = document.root().at(&["status", "c"]).unwrap().items().unwrap().next().unwrap();
    assert_eq!(item.at(&["x", "y"]).unwrap().as_i64(), Some(2));
}

#[test]
fn invalid_strings_are_repaired_as_in_go() {
    for (raw, meant) in [
        (&br#"a\u00e9\n\/\"\\b"#[..], "aé\n/\"\\b"),
        (br"\ud83d\ude00", "😀"),
        (br"\ud83d", "\u{fffd}"),
        (br"\ude00\ud83d", "\u{fffd}\u{fffd}"),
        (br"\ud83d\u0041", "\u{fffd}A"),
        (br"\ud83dx", "\u{fffd}x"),
        (br"\ud83d\n", "\u{fffd}\n"),
        // One replacement for each byte, not for each broken sequence.
        (b"\xe2\x82x", "\u{fffd}\u{fffd}x"),
        (b"\xf0\x9f\x98", "\u{fffd}\u{fffd}\u{fffd}"),
        (b"\xff\\n\xc3\xa9\xed\xa0\x80", "\u{fffd}\né\u{fffd}\u{fffd}\u{fffd}"),
    ] {
        let text = [&br#"{"metadata":{"name":""#[..], raw, br#""}}"#].concat();
        assert_eq!(name(&text), meant, "{}", raw.escape_ascii());
    }
}

#[test]
fn texts_of_several_values_are_read_one_by_one() {
    let mut parser = Parser::new();
    let (first, rest) = parser.parse_first(b" {\"a\":1}\n [2] x").unwrap();
    assert_eq!(first.root().get("a").unwrap().as_i64(), Some(1));
    assert_eq!(rest, b"[2] x");
    let mut parser = Parser::new();
    let error = parser.parse(b"{} []").unwrap_err();
    assert_eq!(error.offset, 3);
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let keys =
        prop_oneof![Just("metadata".to_owned()), Just("spec".to_owned()), Just("status".to_owned()), ".*"];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        ".*".prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::vec((keys.clone(), inner), 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn parsing_reverses_serialising(tree in json(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&tree) } else { serde_json::to_string(&tree) };
        let document = OwnedDocument::parse(text.unwrap().into_bytes()).unwrap();
        prop_assert_eq!(document.root().to_tree().unwrap(), tree);
    }

    #[test]
    fn accepted_texts_are_valid_json(tree in json(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut text = serde_json::to_vec(&tree).unwrap();
        let at = at.index(text.len());
        if cut { text.truncate(at) } else { text[at] = byte }
        let accepted = error(&text).is_none();
        // serde_json refuses lone surrogates and invalid UTF-8, which Go repairs, and nothing else.
        if let Ok(valid) = std::str::from_utf8(&text) && !valid.contains("\\u") {
            prop_assert_eq!(accepted, serde_json::from_str::<serde_json::Value>(valid).is_ok(), "{}", valid);
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(text in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b'{'), Just(b'\\')], 0..200)) {
        if let Ok(document) = OwnedDocument::parse(text) {
            let _ = document.root().to_tree();
        }
    }

    #[test]
    fn written_strings_parse_to_themselves(text in ".*") {
        let mut out = Vec::new();
        write_string(&text, &mut out);
        prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }
}

/// Lists the parts of an envelope: items with their names, other items, and members.
fn travelling(text: &str) -> (Vec<String>, Option<String>) {
    let mut parts = Vec::new();
    let visited = Parser::new().envelope(text.as_bytes(), |part| {
        parts.push(match part {
            Part::Items => return,
            Part::Object(document) => {
                let name = document.root().at(&["metadata", "name"]).and_then(|name| name.as_str());
                format!("object {}", name.unwrap_or_default())
            }
            Part::Other(value) => format!("other {}", String::from_utf8_lossy(value.text().unwrap())),
            Part::Member(key, value) => {
                let text = String::from_utf8_lossy(value.text().unwrap());
                format!("{}={text}", String::from_utf8_lossy(key))
            }
        });
    });
    (parts, visited.err().map(|error| error.to_string()))
}

#[test]
fn lists_and_events_are_read_object_by_object() {
    let list = r#" {"kind":"PodList","items":[ {"metadata":{"name":"a"}},7 , {"metadata":{"name":"b"}} ],"metadata":{"resourceVersion":"5"}} "#;
    let parts =
        ["kind=\"PodList\"", "object a", "other 7", "object b", "metadata={\"resourceVersion\":\"5\"}"];
    assert_eq!(travelling(list), (parts.map(str::to_owned).to_vec(), None));

    let event = r#"{"type":"ADDED","\u006fbject":{"metadata":{"name":"a"}}}"#;
    assert_eq!(travelling(event).0, ["type=\"ADDED\"", "object a"]);

    assert_eq!(travelling(r#"{"items":null}"#), (vec!["items=null".to_owned()], None));
    assert_eq!(travelling("{}"), (vec![], None));
    // The parts before the damage are kept, and the error has its position.
    let (parts, error) = travelling(r#"{"items":[{"metadata":{"name":"a"}},{"metadata":{"name" "b"}}]}"#);
    assert_eq!(parts, ["object a"]);
    assert_eq!(error.unwrap(), "unexpected '\"', expected ':' after a key at byte 56");
    for text in ["", "[]", "{", r#"{"items":["#, r#"{"items":[]"#, "{} {}", r#"{"object":{}"#] {
        assert!(travelling(text).1.is_some(), "{text}");
    }
}
