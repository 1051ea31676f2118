//! Masks of values that must not be shown: of equal values the masks are equal, of different ones they differ in length, and
//! nothing else is left of them.

use std::collections::{BTreeSet, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map as JsonMap, Value, json};
use taffrail_object::{LAST_APPLIED, may_show_annotation};

use super::fields::{is_too_deep, map_at, text_at};

/// The length of the mask of the first value of a key.
const FIRST: usize = 8;

/// The length by which the mask of each further value of a key is longer.
const FURTHER: usize = 4;

/// The maximum length in bytes of a message of which nothing is cut off.
const MAX_MESSAGE: usize = 4_096;

/// The length in bytes from which on a value is masked in a message though it stands within a word.
const MIN_PART: usize = 4;

/// The fields of a Secret that are shown, besides metadata.
const SHOWN: [&str; 4] = ["apiVersion", "kind", "type", "immutable"];

/// The metadata of a Secret that is shown, besides annotations.
const SHOWN_METADATA: [&str; 13] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "uid",
];

/// Returns true if an object is a Secret. One without an `apiVersion` counts as such.
pub(super) fn is_secret(object: &Value) -> bool {
    text_at(object, "/kind") == "Secret" && !text_at(object, "/apiVersion").contains('/')
}

/// Masks the values of all sides of one object, such as the wanted and the live one: those of Secrets, and those of
/// `annotations`. If one side is a Secret, all are. Of `stringData` and `data`, equal values have equal masks.
///
/// In the copy that `kubectl apply` left, values are masked alike; a malformed copy is masked as a whole.
pub fn mask_together(sides: &mut [&mut Value], annotations: &BTreeSet<String>) {
    let is_secret = sides.iter().any(|side| is_secret(side));
    let mut masks = Masks { values: HashMap::new(), annotations };
    sides.iter_mut().for_each(|side| masks.mask(side, is_secret));
}

/// The masks of one object's values.
struct Masks<'a> {
    /// The values that were met, by the place and the key.
    values: HashMap<(&'static str, String), Vec<String>>,
    annotations: &'a BTreeSet<String>,
}

impl Masks<'_> {
    fn mask_of(&mut self, place: &'static str, key: &str, value: String) -> Value {
        let values = self.values.entry((place, key.to_owned())).or_default();
        let number = values.iter().position(|known| *known == value).unwrap_or_else(|| {
            values.push(value);
            values.len() - 1
        });
        json!("+".repeat(FIRST + FURTHER * number))
    }

    fn mask(&mut self, object: &mut Value, is_secret: bool) {
        if is_secret && !object.is_object() {
            *object = self.mask_of("object", "", object.to_string());
        }
        let Some(fields) = object.as_object_mut() else { return };
        for (name, value) in fields.iter_mut().filter(|_| is_secret) {
            match (&**name, value) {
                ("metadata", Value::Object(_)) => {}
                ("data", Value::Object(data)) => self.data(data, |value| value.to_string()),
                ("stringData", Value::Object(data)) => self.data(data, |value| match value.as_str() {
                    Some(text) => json!(BASE64.encode(text)).to_string(),
                    None => value.to_string(),
                }),
                (name, Value::String(_) | Value::Bool(_)) if SHOWN.contains(&name) => {}
                (name, value) => *value = self.mask_of("object", name, value.to_string()),
            }
        }
        if let Some(metadata) = map_at(object, "/metadata") {
            for (name, value) in metadata.iter_mut() {
                match value {
                    Value::Object(annotations) if name == "annotations" => {
                        self.annotations(annotations, is_secret);
                    }
                    value if is_secret && !SHOWN_METADATA.contains(&&**name) => {
                        *value = self.mask_of("metadata", name, value.to_string());
                    }
                    _ => {}
                }
            }
        }
    }

    fn data(&mut self, data: &mut JsonMap<String, Value>, value_of: impl Fn(&Value) -> String) {
        for (key, value) in data {
            *value = self.mask_of("data", key, value_of(value));
        }
    }

    fn annotations(&mut self, annotations: &mut JsonMap<String, Value>, is_secret: bool) {
        for (name, value) in annotations {
            if self.annotations.contains(name) {
                *value = self.mask_of("annotations", name, value.to_string());
            } else if name == LAST_APPLIED {
                *value = self.copy(value, is_secret);
            } else if is_secret && !may_show_annotation(name) {
                *value = self.mask_of("annotations", name, value.to_string());
            }
        }
    }

    /// Masks the copy of an object.
    fn copy(&mut self, text: &Value, is_in_secret: bool) -> Value {
        let copy: Option<Value> = text.as_str().and_then(|text| serde_json::from_str(text).ok());
        let Some(mut copy) = copy.filter(|copy| copy.is_object() && !is_too_deep(copy)) else {
            return self.mask_of("annotations", LAST_APPLIED, text.to_string());
        };
        // A copy does not hold a copy.
        map_at(&mut copy, "/metadata/annotations").and_then(|annotations| annotations.remove(LAST_APPLIED));
        let is_secret = is_in_secret || is_secret(&copy);
        self.mask(&mut copy, is_secret);
        json!(copy.to_string())
    }
}

/// Masks what messages about an object quote of it, such as those of an API server that refuses it.
pub(super) struct Redactor {
    is_secret: bool,
    /// The values that must not be shown, longest first.
    values: Vec<String>,
    /// The words that a message about a Secret may quote.
    shown: BTreeSet<String>,
}

impl Redactor {
    pub(super) fn new(sides: &[&Value], annotations: &BTreeSet<String>) -> Redactor {
        let is_secret = sides.iter().any(|side| is_secret(side));
        let (mut values, mut shown) = (BTreeSet::new(), BTreeSet::from(["Secret".to_owned()]));
        for side in sides {
            let texts =
                |pointer: &str| side.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
            let masked = texts("/metadata/annotations")
                .filter(|(name, _)| annotations.contains(*name) || *name == LAST_APPLIED);
            values.extend(masked.map(|(_, value)| plain(value)));
            if is_secret {
                shown
                    .extend(["/metadata/name", "/metadata/namespace"].map(|at| text_at(side, at).to_owned()));
                for (_, value) in
                    texts("/data").chain(texts("/stringData")).chain(texts("/metadata/annotations"))
                {
                    let value = plain(value);
                    values.extend(BASE64.decode(&value).ok().and_then(|value| String::from_utf8(value).ok()));
                    values.insert(BASE64.encode(&value));
                    values.insert(value);
                }
            }
        }
        let mut values: Vec<String> = values.into_iter().filter(|value| !value.is_empty()).collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Redactor { is_secret, values, shown }
    }

    /// Returns a message without the values. Of one about a Secret, all that is quoted is masked, too, unless it is the name
    /// of the Secret, and so is a value without quotes to the end of the message.
    pub(super) fn redact(&self, message: &str) -> String {
        let end = message.floor_char_boundary(MAX_MESSAGE);
        let is_cut = end < message.len();
        let message = message.get(..end).unwrap_or_default();
        let mask = "+".repeat(FIRST);
        let mut message =
            if self.is_secret { self.without_quoted(message, &mask) } else { message.to_owned() };
        for value in self.values.iter().filter(|value| value.len() <= MAX_MESSAGE) {
            if value.len() >= MIN_PART {
                message = message.replace(&**value, &mask);
            } else {
                message = without_word(&message, value, &mask);
            }
        }
        // A value may be cut off at the end.
        match is_cut && !self.values.is_empty() {
            true => mask,
            false => message,
        }
    }

    fn without_quoted(&self, message: &str, mask: &str) -> String {
        let mut masked = String::with_capacity(message.len());
        let mut rest = message;
        while let Some(at) = rest.find(['"', '`', '\'']) {
            let (before, from) = rest.split_at(at);
            let mut characters = from.char_indices();
            let quote = characters.next().map(|(_, quote)| quote);
            let mut is_escaped = false;
            let end = characters.find_map(|(at, character)| {
                let is_end = !is_escaped && Some(character) == quote;
                is_escaped = !is_escaped && character == '\\' && quote != Some('`');
                is_end.then_some(at)
            });
            let (before, has_value) = without_value(before);
            masked.push_str(before);
            if has_value {
                masked.push_str(mask);
                return masked;
            }
            let Some((quoted, behind)) = end.and_then(|end| from.split_at_checked(end + 1)) else {
                masked.push_str(mask);
                return masked;
            };
            let inside = quoted.get(1..quoted.len() - 1).unwrap_or_default();
            if self.shown.contains(inside) {
                masked.push_str(quoted);
            } else {
                masked.push_str(mask);
            }
            rest = behind;
        }
        let (before, has_value) = without_value(rest);
        masked.push_str(before);
        if has_value {
            masked.push_str(mask);
        }
        masked
    }
}

/// Cuts a text off before a value that stands in it without quotes; returns true if there is one.
fn without_value(text: &str) -> (&str, bool) {
    let markers =
        ["value: ", "got "].into_iter().filter_map(|marker| Some(text.find(marker)? + marker.len()));
    match markers.min().and_then(|end| text.split_at_checked(end)) {
        Some((before, value)) if !value.is_empty() => (before, true),
        _ => (text, false),
    }
}

/// Returns a value as a text that a message may quote.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Masks a short value where it is a word of its own.
fn without_word(text: &str, word: &str, mask: &str) -> String {
    let is_word = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
    let (mut masked, mut last) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices(word) {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let behind = text.get(at + word.len()..).and_then(|behind| behind.chars().next());
        if !is_word(before) && !is_word(behind) {
            masked.push_str(text.get(last..at).unwrap_or_default());
            masked.push_str(mask);
            last = at + word.len();
        }
    }
    masked.push_str(text.get(last..).unwrap_or_default());
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_secrets_lose_all_values() {
        let secret =
            json!({"kind": "Secret", "metadata": {"name": "db"}, "data": {"pw": "czNjcjN0", "pin": "NDI="}});
        let redactor = Redactor::new(&[&secret], &BTreeSet::new());
        for (message, expected) in [
            (
                r#"Secret "db" is invalid: data[pw]: Invalid value: "s3cr3t": too short"#,
                r#"Secret "db" is invalid: data[pw]: Invalid value: ++++++++: too short"#,
            ),
            (r#"Secret "db": a \"quoted s3cr3t"#, r#"Secret "db": a \++++++++"#),
            ("data.pw: Invalid value: {a: s3cr3t, b}", "data.pw: Invalid value: ++++++++"),
            (
                "no s3cr3t and no czNjcjN0 and no 42 but 421",
                "no ++++++++ and no ++++++++ and no ++++++++ but 421",
            ),
            ("Invalid value: 5 and \"x\" more", "Invalid value: ++++++++"),
            (r#".data.pw: expected string, got {"a":5}"#, ".data.pw: expected string, got ++++++++"),
            (r#"it said "a\"s3cr3t\"b" then"#, "it said ++++++++ then"),
        ] {
            assert_eq!(redactor.redact(message), expected);
        }
        let long = format!("{} s3cr3t", "x".repeat(MAX_MESSAGE));
        assert_eq!(redactor.redact(&long), "++++++++");
    }

    #[test]
    fn messages_about_other_objects_lose_chosen_annotations() {
        let object = json!({"kind": "Pod", "metadata": {"annotations": {"token": "abcd", "note": "here"}}});
        let redactor = Redactor::new(&[&object], &BTreeSet::from(["token".to_owned()]));
        assert_eq!(redactor.redact("'abcd' is not right here"), "'++++++++' is not right here");
    }
}
