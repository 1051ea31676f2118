//! Tests of YAML, as Go reads it and by the strict rules of Taffrail's own files.

use serde_json::{Value, json};
use taffrail_object::yaml::{self, YamlError};

#[test]
fn strict_yaml_refuses_texts_that_go_accepts() {
    let text = "a: 1\na: 010\nb: yes\nc: off\n";
    let expected = json!({"a": 8, "b": true, "c": false});
    for read in [yaml::read(text), yaml::read_first(text), yaml::read_without_aliases(text)] {
        assert_eq!(read, Ok(expected.clone()));
    }
    assert_eq!(yaml::read_all(text), Ok(vec![expected]));
    let error = yaml::read_strict::<Value>(text).unwrap_err();
    assert_eq!(error.line, Some(2));
    assert!(error.to_string().starts_with("at line 2: "), "{error}");
    assert_eq!(yaml::read_strict(&text[5..]), Ok(json!({"a": 10.0, "b": "yes", "c": "off"})));
}

#[test]
fn first_document_with_unindented_quoted_text_is_read() {
    let text = "# cases\n---\na: 'one\ntwo'\n--- # more\nb: [\n";
    assert_eq!(yaml::read_first(&text.replace(" # more", "")), Ok(json!({"a": "one two"})));
    assert!(yaml::read::<Value>(text).is_err());
    assert_eq!(yaml::read_all("a: 1\n---\n---\nb: 2\n"), Ok(vec![json!({"a": 1}), json!({"b": 2})]));
}

#[test]
fn alias_bombs_are_refused() {
    let again = |times: usize| {
        let ones = vec!["1"; 100].join(", ");
        // The other limits grow with the text.
        let long = "x".repeat(100_000);
        format!("# {long}\na: &a [{ones}]\nb: [{}]\n", vec!["*a"; times].join(", "))
    };
    let read = |text: &str| -> [Result<Value, YamlError>; 3] {
        [yaml::read_without_aliases(text), yaml::read_with_few_aliases(text), yaml::read(text)]
    };
    assert_eq!(read(&again(0)).map(|read| read.is_ok()), [true, true, true]);
    assert_eq!(read(&again(5)).map(|read| read.is_ok()), [false, true, true]);
    assert_eq!(read(&again(90)).map(|read| read.is_ok()), [false, false, true]);
}

#[test]
fn too_deep_yaml_is_refused() {
    let deep = |levels: usize| format!("{}x", "- ".repeat(levels));
    for (levels, is_read) in [(90, true), (120, false), (100_000, false)] {
        let text = deep(levels);
        assert_eq!(yaml::read::<Value>(&text).is_ok(), is_read, "{levels}");
        assert_eq!(yaml::read_strict::<Value>(&text).is_ok(), is_read, "{levels}");
        assert_eq!(yaml::read_all::<Value>(&text).is_ok(), is_read, "{levels}");
    }
}
