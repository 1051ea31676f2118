//! Tests of YAML, as Go reads it and by the strict rules of Taffrail's own files.

use serde_json::{Value, json};
use taffrail_object::yaml::{self, WrittenError, YamlError};

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

#[test]
fn written_document_knows_its_lines() {
    let text = "# first\nitems:\n- metadata:\n    annotations:\n      a: x\n      b: &b {c: y}\n\n- {<<: *b}\nkind: A\nkind: B\n";
    let written = yaml::read_written(text, 10).unwrap();
    let item =
        |position: usize| written.lines.member("items").and_then(|items| items.item(position)).unwrap();
    assert_eq!(item(0).nearest(&["metadata", "annotations", "b"]), 6);
    // Values below the fifth level have the line of the deepest known one.
    assert_eq!(item(0).nearest(&["metadata", "annotations", "b", "c"]), 6);
    assert_eq!((item(1).line(), item(1).nearest(&["c"]), item(1).nearest(&["d"])), (8, 8, 8));
    assert_eq!((written.lines.line(), written.repeated), (2, Some(("kind".to_owned(), 10))));
    // U+0085 is no line end in an editor.
    let old = yaml::read_written("a: |\n  x\u{85}  y\nb: 1\n", 10).unwrap();
    assert_eq!((old.lines.nearest(&["b"]), &old.tree["a"]), (3, &json!("x\ny\n")));
}

#[test]
fn json_value_knows_its_lines() {
    let text = b"{\"a\": 1,\n\"items\": [\n{\"b\":\n2}, 3,\n{}]}";
    let mut parser = taffrail_object::json::Parser::new();
    let document = parser.parse(text).unwrap();
    let lines = taffrail_object::Lines::of_json(document.root(), text, 11);
    let items = lines.member("items").unwrap();
    let at = |position: usize| items.item(position).map(|item| item.line());
    assert_eq!((lines.line(), items.line(), at(0), at(2)), (11, 12, Some(13), Some(15)));
    assert_eq!(items.item(0).unwrap().nearest(&["b"]), 14);
}

#[test]
fn limits_of_a_written_document_are_errors_with_their_line() {
    assert!(yaml::read_written("a: [[1]]\n", 3).is_ok());
    let deep = |text: &str| yaml::read_written(text, 3).unwrap_err();
    assert_eq!(deep("a:\n- 1\n- [[2]]\n"), WrittenError::TooDeep { line: 3, levels: 3 });
    // By an alias as well.
    assert_eq!(deep("a: &a [[1]]\nb:\n- *a\n"), WrittenError::TooDeep { line: 3, levels: 3 });
    let bomb = format!("a: &a [{}]\nb: [*a,\n  {}]\n", "x,".repeat(400), "*a, ".repeat(60));
    assert_eq!(deep(&bomb), WrittenError::Aliases { line: 3 });
    let ambiguous = deep("a: 1\nb: \"x\u{2028}  y\"\n").to_string();
    assert!(ambiguous.starts_with("at line 2: a text has a line break of YAML 1.1"), "{ambiguous}");
}
