//! Parses the objects of a chunk.

use std::fmt;

use taffrail_object::json::{self, Parser, Value};
use taffrail_object::{ItemKind, Object, ObjectError, yaml};

use super::chunks::{Chunk, InputShape, count_lines};

/// The reason why a part of the input is not an object.
#[derive(Debug)]
pub enum InputFault {
    Json(json::Error),
    Object(ObjectError),
    Yaml(String),
    /// A list that repeats a field, or has one that lists do not have; holds its name. Text of an item, or of another
    /// list, was taken for the list's own.
    Torn(String),
    /// A list whose end is missing.
    CutList,
    /// Binary input; holds the offset, in the YAML document, of the first byte that is NUL or not UTF-8.
    Binary(usize),
}

/// The explanation of [`InputFault::Torn`] for people.
const TORN: &str =
    "is not a field of a list; it may be part of an item that was cut, so items after it may be missing";

impl fmt::Display for InputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputFault::Json(error) => write!(f, "not JSON: {error}"),
            InputFault::Object(error) => error.fmt(f),
            InputFault::Yaml(message) => write!(f, "not YAML: {message}"),
            InputFault::Torn(member) => write!(f, "the list may be torn: {member:?} {TORN}"),
            InputFault::CutList => f.write_str(
                "the list is cut: its kind is missing, which kubectl prints below the items; the last item is left \
                 out, as it may be incomplete",
            ),
            InputFault::Binary(offset) => write!(f, "not text: byte {offset} of the document is NUL or not UTF-8"),
        }
    }
}

/// An object of the input, or the reason why a part of the input is not one.
pub struct Parsed<'a> {
    /// The number of its first line in the stream, from 1; for an item of a list that of the list.
    pub line: u64,
    /// The object, or its defect.
    pub object: Result<Object<'a>, InputFault>,
    /// True for an item of a list that was parsed to its end.
    pub is_item: bool,
}

impl<'a> Parsed<'a> {
    /// Creates the result for a part of the input that is not an item of a list.
    pub fn single(line: u64, object: Result<Object<'a>, InputFault>) -> Parsed<'a> {
        Parsed { line, object, is_item: false }
    }

    fn item(line: u64, object: Result<Object<'a>, InputFault>) -> Parsed<'a> {
        Parsed { line, object, is_item: true }
    }
}

/// Calls `consume` with each object of a chunk, or its defect, in order; a list or array is replaced by its items,
/// except in a chunk of exact lines.
pub fn each(chunk: &Chunk, parser: &mut Parser, mut consume: impl FnMut(Parsed<'_>)) {
    match chunk.shape {
        InputShape::Lines { exact } => lines(chunk, exact, parser, &mut consume),
        InputShape::Json => values(chunk, parser, &mut consume),
        InputShape::Yaml => documents(chunk, &mut consume),
    }
}

fn lines(chunk: &Chunk, exact: bool, parser: &mut Parser, consume: &mut impl FnMut(Parsed<'_>)) {
    for (line, text) in (chunk.line..).zip(split_lines(&chunk.text)) {
        if !exact && text.trim_ascii().is_empty() {
            continue;
        }
        match parser.parse(text) {
            Ok(document) if exact => {
                let object = Object::new(document.root()).map_err(InputFault::Object);
                consume(Parsed::single(line, object));
            }
            Ok(document) => value(document.root(), line, None, consume),
            Err(error) => consume(Parsed::single(line, Err(InputFault::Json(error)))),
        }
    }
}

/// Splits a text into lines; a final line end begins no further line.
fn split_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) = match memchr::memchr(b'\n', rest) {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => (rest, &rest[rest.len()..]),
        };
        rest = after;
        Some(line)
    })
}

fn values(chunk: &Chunk, parser: &mut Parser, consume: &mut impl FnMut(Parsed<'_>)) {
    let mut rest = chunk.text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&chunk.text);
    let mut line = chunk.line;
    let mut whole = Parser::without_items();
    while !rest.trim_ascii_start().is_empty() {
        match whole.parse_first(rest) {
            Ok((document, after)) => {
                let blank = rest.len() - rest.trim_ascii_start().len();
                value(document.root(), line + count_lines(&rest[..blank]), Some(parser), consume);
                line += count_lines(&rest[..rest.len() - after.len()]);
                rest = after;
            }
            Err(error) => {
                // The start of the next value is unknown.
                let line = line + count_lines(&rest[..error.offset.min(rest.len())]);
                return consume(Parsed::single(line, Err(InputFault::Json(error))));
            }
        }
    }
}

fn documents(chunk: &Chunk, consume: &mut impl FnMut(Parsed<'_>)) {
    let mut start = 0;
    let mut line = chunk.line;
    while start < chunk.text.len() {
        let end = next_document(&chunk.text, start);
        document(&chunk.text[start..end], line, consume);
        line += count_lines(&chunk.text[start..end]);
        start = end;
    }
}

/// Returns the start of the document after the one at `start`: the next line that begins with `---`; the length of
/// `text` if there is none.
fn next_document(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(end) = text[at..].iter().position(|&byte| byte == b'\n') {
        at += end + 1;
        if text[at..].starts_with(b"---") {
            return at;
        }
    }
    text.len()
}

fn document(text: &[u8], line: u64, consume: &mut impl FnMut(Parsed<'_>)) {
    let text = match std::str::from_utf8(text) {
        Ok(text) if !text.contains('\0') => text,
        Ok(text) => {
            let fault = InputFault::Binary(text.find('\0').unwrap_or_default());
            return consume(Parsed::single(line, Err(fault)));
        }
        Err(error) => {
            let fault = InputFault::Binary(error.valid_up_to());
            return consume(Parsed::single(line, Err(fault)));
        }
    };
    let is_blank = |row: &str| {
        let row = row.trim_start_matches('\u{feff}').trim();
        // Directives precede the line that begins their document, which is the next document here.
        row.is_empty() || row.starts_with(['#', '%']) || row == "---" || row == "..."
    };
    let Some(blank) = text.lines().position(|row| !is_blank(row)) else { return };
    let (read, mut faulty, more, has_last) = match yaml::read_tree(text) {
        Ok(read) => (read, Vec::new(), 0, true),
        Err(error) => match yaml::read_items(text) {
            Some(yaml::Items { list, faulty, more, has_last }) => (list, faulty, more, has_last),
            None => {
                let line = line + error.line.map_or(blank as u64, |line| line.saturating_sub(1));
                return consume(Parsed::single(line, Err(InputFault::Yaml(error.message))));
            }
        },
    };
    let first = line + blank as u64;
    match &read.tree {
        serde_json::Value::Null => {}
        tree if is_cut_list(tree) => {
            let items = Value::from(tree).get("items").and_then(Value::items).into_iter().flatten();
            let items: Vec<Value<'_>> = items.collect();
            for item in items.iter().rev().skip(usize::from(has_last)).rev() {
                consume(Parsed::single(first, Object::new(*item).map_err(InputFault::Object)));
            }
            consume(Parsed::single(first, Err(InputFault::CutList)));
            if !has_last && more == 0 {
                // The cut explains the error in the last item.
                faulty.pop();
            }
        }
        tree => {
            value(Value::from(tree), first, None, consume);
            if let Some(member) = torn(&read) {
                consume(Parsed::single(first, Err(InputFault::Torn(member))));
            }
        }
    }
    for fault in faulty {
        consume(Parsed::single(line + fault.line, Err(InputFault::Yaml(fault.message))));
    }
    if more > 0 {
        consume(Parsed::single(
            first,
            Err(InputFault::Yaml(format!(
                "{more} more items of the list cannot be parsed; only the first errors are shown"
            ))),
        ));
    }
}

/// Returns a repeated field of a list, or else its first field that lists do not have; `None` if there is neither, or
/// if the document is not a list.
fn torn(read: &yaml::Document) -> Option<String> {
    let is_list = Object::new(Value::from(&read.tree)).is_ok_and(|object| object.items().is_some());
    let members = read.tree.as_object().filter(|_| is_list)?;
    let strange = |key: &&String| !["apiVersion", "kind", "metadata", "items"].contains(&key.as_str());
    let found = read.repeated.as_ref().or_else(|| members.keys().find(strange))?;
    Some(found.chars().take(MAX_KEY).collect())
}

/// Maximum length of a key in a message, in characters; the rest is cut off.
const MAX_KEY: usize = 100;

/// Returns true if a document is the beginning of a list whose end is missing: kubectl prints `kind` last.
fn is_cut_list(tree: &serde_json::Value) -> bool {
    tree.get("apiVersion").is_some_and(serde_json::Value::is_string)
        && tree.get("items").is_some_and(serde_json::Value::is_array)
        && tree.get("kind").is_none()
}

/// Calls `consume` with each item if `root` is an array or a list of Kubernetes, else with `root`: with the object, or
/// with the error if the value is not one. `of_items` indexes the items, one after the other; `None` if they need no
/// index of their own.
fn value(
    root: Value<'_>,
    line: u64,
    mut of_items: Option<&mut Parser>,
    consume: &mut impl FnMut(Parsed<'_>),
) {
    if let Some(items) = root.items() {
        for item in items {
            let object = indexed(item, of_items.as_deref_mut());
            consume(Parsed::item(
                line,
                object.and_then(|item| Object::new(item).map_err(InputFault::Object)),
            ));
        }
        return;
    }
    let object = match Object::new(root) {
        Ok(object) => object,
        Err(error) => return consume(Parsed::single(line, Err(InputFault::Object(error)))),
    };
    let kind = ItemKind::of_list(object.api_version().into(), object.kind().into());
    match kind.zip(root.get("items").and_then(Value::items)) {
        Some((kind, items)) => {
            for item in items {
                let object = indexed(item, of_items.as_deref_mut());
                consume(Parsed::item(
                    line,
                    object.and_then(|item| kind.object(item).map_err(InputFault::Object)),
                ));
            }
        }
        None => consume(Parsed::single(line, Ok(object))),
    }
}

/// Returns an item of a list or array with an index of its own, by `parser` if that is given; unchanged without it.
fn indexed<'v>(item: Value<'v>, parser: Option<&'v mut Parser>) -> Result<Value<'v>, InputFault> {
    match parser.zip(item.text()) {
        Some((parser, text)) => parser.parse(text).map(|document| document.root()).map_err(InputFault::Json),
        None => Ok(item),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value as Tree;

    const LISTS: &str = include_str!("../../../object/tests/printed/lists.jsonl");

    /// Returns the parsed objects of a text, and the faults.
    fn read(text: &str, shape: InputShape) -> (Vec<Tree>, Vec<String>) {
        let chunk = Chunk { source: "test".into(), line: 1, shape, text: text.as_bytes().to_vec() };
        let (mut objects, mut faults) = (Vec::new(), Vec::new());
        each(&chunk, &mut Parser::new(), |parsed| match parsed.object {
            Ok(object) => objects.push(object.to_tree().unwrap()),
            Err(fault) => faults.push(fault.to_string()),
        });
        (objects, faults)
    }

    fn honest(objects: Vec<Tree>) -> Vec<Tree> {
        objects.into_iter().filter(|object| object["metadata"]["namespace"] == "honest").collect()
    }

    #[test]
    fn a_dump_of_hostile_objects_in_yaml_holds_what_it_holds_in_json() {
        let (expected, faults) = read(LISTS, InputShape::Lines { exact: false });
        assert_eq!((faults.len(), expected.len() > 1000), (0, true));
        let printed = include_str!("../../../object/tests/printed/lists-2.yaml");
        assert!(read(printed, InputShape::Yaml) == (expected.clone(), Vec::new()));
        // What this library prints it cannot always read itself.
        let printed = include_str!("../../../object/tests/printed/lists-3.yaml");
        let (objects, faults) = read(printed, InputShape::Yaml);
        assert!(
            faults.iter().all(|fault| fault.contains("item ConfigMap tenant/t")
                || fault.contains("item HelmRelease tenant/t")),
            "{faults:?}"
        );
        // Where such an item ends in a break of YAML 1.1, the next may be words of it.
        let lost: Vec<Tree> = honest(expected).into_iter().filter(|it| !objects.contains(it)).collect();
        assert!(lost.len() < 5, "{lost:?}");
        assert!(
            lost.iter().all(|it| it["metadata"]["name"].as_str().unwrap().starts_with("after-")),
            "{lost:?}"
        );
    }

    #[test]
    fn invalid_yaml_item_leaves_others_readable() {
        let (expected, _) = read(LISTS, InputShape::Lines { exact: false });
        let printed = include_str!("../../../object/tests/printed/lists-2.yaml");
        let faulty = printed
            .replace("\nitems:\n", "\nitems:\n- kind: Pod\n  metadata:\n    name: x\n  spec: 'a\n")
            .replace("\nkind: List", "\n- {a: [\nkind: List");
        let (objects, faults) = read(&faulty, InputShape::Yaml);
        assert!(objects == expected);
        assert_eq!(faults.len(), 2 * LISTS.lines().count());
        assert!(faults[0].starts_with("not YAML: item Pod x: "), "{}", faults[0]);
    }

    #[test]
    fn foreign_fields_in_lists_are_reported() {
        let item = "- {kind: Secret, metadata: {name: a}}\n";
        for member in ["q: x", "items: []", "kind: List"] {
            let (_, faults) =
                read(&format!("apiVersion: v1\nitems:\n{item}kind: List\n{member}\n"), InputShape::Yaml);
            assert_eq!(faults.len(), 1, "{member}");
            assert!(faults[0].contains("items after it may be missing"), "{faults:?}");
        }
    }

    #[test]
    fn handwritten_yaml_is_read_as_in_go() {
        let text = "\u{feff}%YAML 1.1\n---\nkind: A\nbase: &b {x: 1, y: 2}\nall:\n  <<: *b\n  x: 5\nboth: {<<: [*b, {z: 3}]}\nown: {<<: {a: 1}}\r\n\
             flag: [yes, Off, y, ~]\nnumbers: [0x1F, 010, 0o17, 0b11, 1_000, +5, 1e3, 1.5, 08]\n\
             texts: [.inf, -.INF, .nan, 1e999, 2001-01-01, 1:30, !foo 5, !!str 5, '5', 1.2.3]\nbytes: !!binary aGk=\nforced: [!!int '5', !!bool x]\n\
             key: 1\nkey: 2\n010: a\n...\n";
        let (objects, faults) = read(text, InputShape::Yaml);
        assert_eq!(faults, Vec::<String>::new());
        let expected = serde_json::json!({"apiVersion": "", "kind": "A", "base": {"x": 1, "y": 2}, "all": {"x": 5, "y": 2},
            "both": {"x": 1, "y": 2, "z": 3}, "own": {"<<": {"a": 1}}, "flag": [true, false, true, null],
            "numbers": [31, 8, 15, 3, 1000, 5, 1000, 1.5, 8],
            "texts": [".inf", "-.INF", ".nan", "1e999", "2001-01-01", "1:30", "5", "5", "5", "1.2.3"],
            "bytes": "hi", "forced": [5, "x"], "key": 2, "010": "a"});
        assert_eq!(objects, [expected]);
    }
}
