//! Reads the items of a YAML list one by one, so that a faulty item does not affect the others.

use serde_json::Value;

use super::breaks::is_break;
use super::tree::{self, Document};

/// The maximum number of faulty items that [`Items::faulty`] holds; further ones are only counted.
const MAX_LISTED_FAULTS: usize = 20;

/// The maximum length of an item's kind, namespace or name in a message, in characters; the rest is cut off.
const MAX_NAME_CHARS: usize = 100;

/// A faulty item of a list: its text is not valid YAML.
#[derive(Debug)]
pub struct FaultyItem {
    /// The line of the fault in the text, from 0.
    pub line: u64,
    /// The item's name, if readable, and the error.
    pub message: String,
}

/// The result of reading a list: its readable items, and the faults of the others.
#[derive(Debug)]
pub struct Items {
    /// The list, with its readable items only.
    pub list: Document,
    /// The first faulty items, at most `MAX_LISTED_FAULTS`.
    pub faulty: Vec<FaultyItem>,
    /// The number of faulty items beyond those in `faulty`.
    pub more: usize,
    /// True if the last item was readable.
    pub has_last: bool,
}

/// Reads the items of a list in block style, as kubectl prints it. Returns `None` for any other document, and for a
/// list with faults outside of its items.
pub fn read_items(text: &str) -> Option<Items> {
    let (head, pieces) = split(text)?;
    let mut list = tree::read(&head, &mut 0).ok()?;
    let mut items = Vec::new();
    let mut faulty = Vec::new();
    let mut more = 0;
    let mut has_last = false;
    // The limit on aliases holds for all items together.
    let mut replayed = 0;
    for piece in &pieces {
        let read = tree::read(piece.text, &mut replayed);
        has_last = read.is_ok();
        match read.map(|read| read.tree) {
            Ok(Value::Array(read)) => items.extend(read),
            Ok(_) => {}
            Err(_) if faulty.len() == MAX_LISTED_FAULTS => more += 1,
            Err(error) => {
                let line = piece.line + error.line.map_or(0, |line| line.saturating_sub(1));
                faulty
                    .push(FaultyItem { line, message: format!("{}: {}", named(piece.text), error.message) });
            }
        }
    }
    *list.tree.as_object_mut()?.get_mut("items")? = Value::Array(items);
    Some(Items { list, faulty, more, has_last })
}

/// A part of a YAML text, with the number of its first line.
struct Piece<'t> {
    line: u64,
    text: &'t str,
}

/// Splits a list into the text around the items, which becomes a list without items, and the text of each item; `None`
/// if there are no items.
fn split(text: &str) -> Option<(String, Vec<Piece<'_>>)> {
    let mut head = String::new();
    let mut pieces: Vec<(u64, usize, usize)> = Vec::new();
    // The indentation of the items, known after the first one; and true behind the last one.
    let (mut is_inside, mut indent, mut is_over) = (false, None, false);
    let (mut at, mut line) = (0, 0);
    let mut before = '\n';
    for row in text.split_inclusive(is_break) {
        let start = at;
        at += row.len();
        let number = line;
        line += u64::from(row.ends_with('\n'));
        // Go's library does not indent a space or the closing quote behind a line break of YAML 1.1 in a quoted text.
        let follows_old = !matches!(before, '\n' | '\r');
        before = row.chars().next_back().unwrap_or(before);
        let content = row.trim_end();
        let depth = content.len() - content.trim_start_matches(' ').len();
        let rest = &content[depth..];
        let is_item = rest == "-" || rest.starts_with("- ");
        let is_silent = rest.is_empty() || rest.starts_with('#');
        if is_inside && !is_over {
            let begins =
                is_item && indent.is_none_or(|indent| indent == depth) && (depth == 0 || !follows_old);
            let is_of_list = depth == 0 && rest.starts_with(|first: char| first.is_ascii_alphabetic());
            let goes_on = indent.is_some_and(|indent| depth > indent)
                || (follows_old && !is_of_list && indent.is_some());
            if begins {
                indent = Some(depth);
                pieces.push((number, start, at));
                continue;
            } else if goes_on || is_silent {
                if let Some((.., end)) = pieces.last_mut() {
                    *end = at;
                }
                continue;
            }
            is_over = true;
        }
        if content == "items:" && !is_inside {
            is_inside = true;
            head.push_str("items: []\n");
        } else {
            head.push_str(row);
        }
    }
    let piece = |(line, start, end): (u64, usize, usize)| Some(Piece { line, text: text.get(start..end)? });
    let pieces: Vec<Piece<'_>> = pieces.into_iter().filter_map(piece).collect();
    (!pieces.is_empty()).then_some((head, pieces))
}

/// Returns words for an item in a message, `item Pod shop/web` or `item Node n1`, read from its lines without parsing
/// them; `an item Pod` if its name is not found, `an item` if its kind is not found.
fn named(text: &str) -> String {
    let Some(indent) = text.find('-').map(|at| at + 2) else { return "an item".to_owned() };
    let value = |row: &str, key: &str| {
        let value = row.strip_prefix(key)?.strip_prefix(": ")?.trim().trim_matches(['"', '\'']);
        Some(value.chars().take(MAX_NAME_CHARS).collect::<String>())
    };
    let (mut kind, mut namespace, mut name) = (None, None, None);
    // The indentation of the metadata's fields, while they are read.
    let mut metadata = None;
    for row in text.split(is_break).filter_map(|row| row.get(indent..)) {
        let depth = row.len() - row.trim_start_matches(' ').len();
        let field = row[depth..].trim_end();
        if field.is_empty() {
            continue;
        } else if depth == 0 {
            kind = kind.or_else(|| value(field, "kind"));
            metadata = (field == "metadata:").then_some(None);
        } else if let Some(inside) = &mut metadata
            && *inside.get_or_insert(depth) == depth
        {
            namespace = namespace.or_else(|| value(field, "namespace"));
            name = name.or_else(|| value(field, "name"));
        }
    }
    match (kind, namespace, name) {
        (Some(kind), Some(namespace), Some(name)) => format!("item {kind} {namespace}/{name}"),
        (Some(kind), None, Some(name)) => format!("item {kind} {name}"),
        (Some(kind), ..) => format!("an item {kind}"),
        _ => "an item".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_tree;
    use super::*;

    #[test]
    fn faulty_item_is_named_and_the_others_are_read() {
        for indent in ["", "  ", "    "] {
            let item = |name: &str, more: &str| {
                let text = format!(
                    "- apiVersion: v1\n  data:\n    a: |\n      - x\n\u{2028}\u{2028}      q:\n  kind: ConfigMap\n  metadata:\n    name: {name}\n    namespace: a\n{more}"
                );
                text.split_inclusive(is_break)
                    .map(|row| if row.len() > 3 { format!("{indent}{row}") } else { row.to_owned() })
                    .collect::<String>()
            };
            let list = |bad: &str| {
                format!(
                    "apiVersion: v1\nitems:\n{}{}{}kind: List\nmetadata: {{}}\n",
                    item("a", ""),
                    item("b", bad),
                    item("c", "\n# end\n")
                )
            };
            assert!(read_tree(&list("")).is_ok());
            for bad in [
                "  zzz: |4\n     b\n    a\n",
                "  zzz: 'x\n",
                "  zzz: \"\\q\"\n",
                "  x: *a\n",
                "  ? {a: b}\n  : x\n",
                "  q: r: s\n",
            ] {
                let text = list(bad);
                assert!(read_tree(&text).is_err(), "{text}");
                let Some(read) = read_items(&text) else { panic!("{text}") };
                let names: Vec<_> = read.list.tree["items"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|item| &item["metadata"]["name"])
                    .collect();
                assert_eq!(names, ["a", "c"], "{text}");
                assert_eq!((read.faulty.len(), read.more, read.has_last), (1, 0, true));
                assert!(
                    read.faulty[0].message.starts_with("item ConfigMap a/b: "),
                    "{}",
                    read.faulty[0].message
                );
                assert_eq!(read.list.tree["kind"], "List");
            }
        }
    }

    #[test]
    fn alias_limit_holds_for_all_items_together() {
        let ones = vec!["1"; 1000].join(", ");
        let again = vec!["*a"; 40].join(", ");
        let item = format!("- kind: ConfigMap\n  x: &a [{ones}]\n  y: [{again}]\n");
        let list = format!("apiVersion: v1\nitems:\n{}kind: List\n", item.repeat(60));
        assert!(read_tree(&list).is_err());
        let read = read_items(&list).unwrap();
        let count = read.list.tree["items"].as_array().unwrap().len();
        assert_eq!((count, read.faulty.len(), read.more), (24, 20, 16));
    }
}
