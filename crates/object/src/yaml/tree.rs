//! Reads a YAML document as a tree, as Go's library does for Kubernetes.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle};
use serde_json::{Map, Value};

use super::breaks::{self, Original};
use super::{MAX_REPLAYED, MAX_TREE_DEPTH, YamlError, scalars};
use crate::json::MAX_DEPTH;

/// The content of a YAML document, and a key that it repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The content; null for an empty document.
    pub tree: Value,
    /// The last duplicate key of the top-level mapping; `None` if there is none. Of its values the last counts.
    pub repeated: Option<String>,
}

/// Reads a document as a tree. `replayed` is the [`weight`] of what anchors and aliases added in earlier documents; the
/// weight of this document's is added to it.
pub(super) fn read(text: &str, replayed: &mut usize) -> Result<Document, YamlError> {
    let plain = breaks::plain(text);
    let is_changed = matches!(plain, Cow::Owned(_));
    let told = |mark: &Marker, message: String| {
        let line = if is_changed { Original::new(text).line(mark.index()) } else { mark.line() as u64 };
        YamlError { line: Some(line), message }
    };
    let depth = MAX_DEPTH as usize;
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: depth,
        block_nesting_limit: depth,
    };
    let mut parser = Parser::new_from_str_with_options(&plain, options);
    let mut original = is_changed.then(|| Original::new(text));
    let most = replayed
        .saturating_add(text.len().saturating_mul(MAX_REPLAYED_PER_BYTE))
        .saturating_add(MIN_REPLAY_LIMIT);
    let mut builder = Builder { replayed: *replayed, most: most.min(MAX_REPLAYED), ..Builder::default() };
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| told(error.marker(), super::first_line(&error.info())))?;
        let event = match (event, &mut original) {
            (Event::Scalar(read, style, anchor, tag), Some(original)) => {
                let span = (span.start.index(), span.end.index());
                let exact = original.scalar(style, span, &read).map_or(read, Cow::Owned);
                Event::Scalar(exact, style, anchor, tag)
            }
            (event, _) => event,
        };
        let taken = builder.take(event);
        *replayed = builder.replayed;
        taken.map_err(|message| told(&span.start, message.to_owned()))?;
    }
    Ok(Document { tree: builder.root.unwrap_or_default(), repeated: builder.repeated })
}

/// The maximum [`weight`] that anchors and aliases may add for each byte of text; a document that exceeds it is an
/// error.
const MAX_REPLAYED_PER_BYTE: usize = 16;

/// The [`weight`] that anchors and aliases may always add, however short the text is.
const MIN_REPLAY_LIMIT: usize = 1_000;

#[derive(Default)]
struct Builder {
    documents: usize,
    root: Option<Value>,
    repeated: Option<String>,
    open: Vec<Open>,
    /// The number of open sequences and mappings that nest too deeply; the outermost of them becomes null.
    too_deep: usize,
    anchors: HashMap<usize, Value>,
    /// The [`weight`] that anchors and aliases have added.
    replayed: usize,
    /// The maximum of `replayed`; a document that exceeds it is refused.
    most: usize,
}

/// A sequence or mapping whose end was not read yet.
struct Open {
    anchor: usize,
    has_alias: bool,
    inside: Inside,
}

/// The values read so far of an open sequence or mapping.
enum Inside {
    Items(Vec<Value>),
    Members { members: Map<String, Value>, key: Option<Key>, merged: Vec<Map<String, Value>> },
}

/// The key of a member in an open mapping.
enum Key {
    Text(String),
    /// `<<`, which merges the mapping of an alias; servers print it as an ordinary key.
    Merge,
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), &'static str> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err("a second document begins in a text of one document");
                }
            }
            Event::SequenceStart(_, anchor, _) => self.begin(anchor, Inside::Items(Vec::new())),
            Event::MappingStart(_, anchor, _) => {
                let inside = Inside::Members { members: Map::new(), key: None, merged: Vec::new() };
                self.begin(anchor, inside);
            }
            Event::SequenceEnd | Event::MappingEnd => return self.end(),
            _ if self.too_deep > 0 => {}
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalars::value(&text, style, tag.as_deref());
                self.name(anchor, &value)?;
                if let Some(key) = self.awaited_key() {
                    let is_merge = &*text == "<<" && style == ScalarStyle::Plain;
                    // A key is a text: `010` stays `010`, and only base64 is decoded.
                    let text = match value {
                        Value::String(text) => text,
                        _ => text.into_owned(),
                    };
                    *key = Some(if is_merge { Key::Merge } else { Key::Text(text) });
                    return Ok(());
                }
                return self.put(value, false);
            }
            Event::Alias(anchor) => {
                let Some(value) = self.anchors.get(&anchor) else {
                    return Err("a YAML alias has no anchor before it");
                };
                let mut value = value.clone();
                charge(&mut self.replayed, self.most, &value)?;
                super::cut(&mut value, MAX_TREE_DEPTH.saturating_sub(self.open.len()));
                if let (Some(key), Value::String(text)) = (self.awaited_key(), &value) {
                    *key = Some(Key::Text(text.clone()));
                    return Ok(());
                }
                return self.put(value, true);
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, anchor: usize, inside: Inside) {
        if self.too_deep > 0 || self.open.len() >= MAX_TREE_DEPTH {
            self.too_deep += 1;
        } else {
            self.open.push(Open { anchor, has_alias: false, inside });
        }
    }

    fn end(&mut self) -> Result<(), &'static str> {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return if self.too_deep == 0 { self.put(Value::Null, false) } else { Ok(()) };
        }
        let Some(Open { anchor, has_alias, inside }) = self.open.pop() else { return Ok(()) };
        let (value, has_alias) = match inside {
            Inside::Items(items) => (Value::Array(items), has_alias),
            Inside::Members { mut members, merged, .. } => {
                for (key, value) in merged.into_iter().flatten() {
                    members.entry(key).or_insert(value);
                }
                (Value::Object(members), false)
            }
        };
        self.name(anchor, &value)?;
        self.put(value, has_alias)
    }

    /// Stores a copy of a value under its anchor, for its aliases; returns an error if the anchored values grow too
    /// large.
    fn name(&mut self, anchor: usize, value: &Value) -> Result<(), &'static str> {
        if anchor > 0 {
            charge(&mut self.replayed, self.most, value)?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(())
    }

    /// Returns the slot for the next key; `None` if the innermost open value is not a mapping, or already has a key
    /// that waits for its value.
    fn awaited_key(&mut self) -> Option<&mut Option<Key>> {
        match &mut self.open.last_mut()?.inside {
            Inside::Members { key, .. } if key.is_none() => Some(key),
            _ => None,
        }
    }

    /// Adds a value to the innermost open sequence or mapping, or makes it the root; `is_alias` is true for an alias,
    /// or a sequence with an alias among its items. Returns an error if a mapping has no key for the value.
    fn put(&mut self, value: Value, is_alias: bool) -> Result<(), &'static str> {
        let is_outermost = self.open.len() == 1;
        let Some(open) = self.open.last_mut() else {
            self.root = Some(value);
            return Ok(());
        };
        match &mut open.inside {
            Inside::Items(items) => {
                open.has_alias |= is_alias;
                items.push(value);
            }
            Inside::Members { members, key, merged } => match (key.take(), value) {
                (None, _) => return Err("a YAML key is not a string"),
                (Some(Key::Merge), Value::Object(all)) if is_alias => merged.push(all),
                (Some(Key::Merge), Value::Array(all)) if is_alias && all.iter().all(Value::is_object) => {
                    merged.extend(all.into_iter().filter_map(|one| match one {
                        Value::Object(one) => Some(one),
                        _ => None,
                    }));
                }
                (Some(key), value) => {
                    let key = match key {
                        Key::Text(text) => text,
                        Key::Merge => "<<".to_owned(),
                    };
                    if is_outermost && members.contains_key(&key) {
                        self.repeated = Some(key.clone());
                    }
                    members.insert(key, value);
                }
            },
        }
        Ok(())
    }
}

fn charge(replayed: &mut usize, most: usize, value: &Value) -> Result<(), &'static str> {
    *replayed = replayed.saturating_add(weight(value));
    if *replayed > most { Err("the YAML aliases expand to too much data") } else { Ok(()) }
}

/// Estimates the size of a value in memory, for the limit on aliases: one for each value and key, and one for each 32
/// bytes of text.
fn weight(value: &Value) -> usize {
    let of_text = |text: &str| 1 + text.len() / 32;
    match value {
        Value::String(text) => of_text(text),
        Value::Array(items) => items.iter().map(weight).fold(1, usize::saturating_add),
        Value::Object(members) => {
            let weights = members.iter().map(|(key, value)| of_text(key).saturating_add(weight(value)));
            weights.fold(1, usize::saturating_add)
        }
        _ => 1,
    }
}
