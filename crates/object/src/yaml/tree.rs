//! Reads a YAML document as a tree, as Go's library does for Kubernetes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{Event, Marker, Parser, ScalarStyle};
use serde_json::{Map, Value};

use super::breaks::{self, Original};
use super::{MAX_REPLAYED, MAX_TREE_DEPTH, YamlError, scalars};
use crate::json::MAX_DEPTH;
use crate::lines::{LEVELS, Lines};

/// The content of a YAML document, and a key that it repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The content; null for an empty document.
    pub tree: Value,
    /// The last duplicate key of the top-level mapping; `None` if there is none. Of its values the last counts.
    pub repeated: Option<String>,
}

/// A document that people wrote, with the lines of its values.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// The content; null for an empty document.
    pub tree: Value,
    /// The last duplicate key of the top-level mapping, with its line; `None` if there is none. Of its values the last
    /// counts.
    pub repeated: Option<(String, u64)>,
    /// The lines of the content, from 1.
    pub lines: Lines,
    /// The weight of what aliases added: about one for each value, key and 32 bytes of text.
    pub replayed: usize,
}

/// The error for a document that people wrote: it is not YAML, or exceeds a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WrittenError {
    /// The text is not YAML, or Go's library for Kubernetes refuses it.
    #[error(transparent)]
    Syntax(#[from] YamlError),
    /// Lists and maps nest deeper than the caller allows.
    #[error("at line {line}: the values are nested deeper than {levels} levels")]
    TooDeep {
        /// The line of the list or map that is nested too deeply.
        line: u64,
        /// The number of levels that the caller allows.
        levels: usize,
    },
    /// Aliases expand to too much data.
    #[error("at line {line}: {ALIASES}")]
    Aliases {
        /// The line of the anchor or alias that exceeds the limit.
        line: u64,
    },
    /// The values would take more memory than a document may.
    #[error("at line {line}: the values take more than {} MiB of memory", MAX_TREE_BYTES >> 20)]
    Memory {
        /// The line of the value that exceeds the limit.
        line: u64,
    },
}

/// Returns true for a character of the name of an anchor in YAML 1.1, as Go's library has it.
fn is_of_anchor(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_')
}

const OLD_BREAK: &str =
    "a text has a line break of YAML 1.1 (U+0085, U+2028 or U+2029); write it as an escape in double quotes";

const ALIASES: &str = "the YAML aliases expand to too much data";

/// The estimated memory that the tree of a written document may take, in bytes; one that exceeds it is an error.
const MAX_TREE_BYTES: usize = 2 << 30;

/// Reads a document as a tree, as a server printed it. `replayed` is the [`weight`] of what anchors and aliases added in
/// earlier documents; the weight of this document's is added to it.
pub(super) fn read(text: &str, replayed: &mut usize) -> Result<Document, YamlError> {
    let mut builder = Builder { replayed: *replayed, ..Builder::default() };
    let built = build(text, &mut builder);
    *replayed = builder.replayed;
    built.map_err(|(line, stop)| YamlError { line: Some(line), message: stop.message() })?;
    let repeated = builder.repeated.map(|(key, _)| key);
    Ok(Document { tree: builder.root.unwrap_or_default(), repeated })
}

/// Reads a document as a tree, as Go's library reads what people write; lists and maps may nest up to `levels` levels.
pub(super) fn read_written(text: &str, levels: usize) -> Result<Written, WrittenError> {
    let mut builder = Builder { written: Some(levels), ..Builder::default() };
    build(text, &mut builder).map_err(|(line, stop)| match stop {
        Stop::Syntax(message) => YamlError { line: Some(line), message }.into(),
        Stop::TooDeep => WrittenError::TooDeep { line, levels },
        Stop::Aliases => WrittenError::Aliases { line },
        Stop::Memory => WrittenError::Memory { line },
    })?;
    let Builder { root, repeated, replayed, lines, .. } = builder;
    Ok(Written { tree: root.unwrap_or_default(), repeated, replayed, lines })
}

/// The reason for which a document is not read to its end.
enum Stop {
    Syntax(String),
    TooDeep,
    Aliases,
    Memory,
}

impl Stop {
    fn message(self) -> String {
        match self {
            Stop::Syntax(message) => message,
            Stop::Aliases => ALIASES.to_owned(),
            Stop::TooDeep => "the values are nested too deeply".to_owned(),
            Stop::Memory => "the values take too much memory".to_owned(),
        }
    }
}

impl From<&str> for Stop {
    fn from(message: &str) -> Stop {
        Stop::Syntax(message.to_owned())
    }
}

/// Gives all events of a text to the builder; an error has its line, from 1.
fn build(text: &str, builder: &mut Builder) -> Result<(), (u64, Stop)> {
    let plain = breaks::plain(text);
    let is_changed = matches!(plain, Cow::Owned(_));
    let mut place = is_changed.then(|| Original::new(text));
    let line_of = |mark: &Marker| match is_changed {
        true => Original::new(text).line(mark.index()),
        false => mark.line() as u64,
    };
    let depth = MAX_DEPTH as usize;
    let options = granit_parser::options! {
        emit_comments: false,
        emit_anchor_events: builder.written.is_some(),
        flow_nesting_limit: depth,
        block_nesting_limit: depth,
    };
    let mut parser = Parser::new_from_str_with_options(&plain, options);
    let mut original = is_changed.then(|| Original::new(text));
    let most = builder
        .replayed
        .saturating_add(text.len().saturating_mul(MAX_REPLAYED_PER_BYTE))
        .saturating_add(MIN_REPLAY_LIMIT);
    builder.most = most.min(MAX_REPLAYED);
    while let Some(next) = parser.next_event() {
        let (event, span) =
            next.map_err(|error| (line_of(error.marker()), Stop::Syntax(super::first_line(&error.info()))))?;
        if builder.written.is_some()
            && let Some(reason) = differs_in_flow(&event, span.byte_range(), &plain)
        {
            return Err((line_of(&span.start), reason.into()));
        }
        let event = match (event, &mut original) {
            (Event::Scalar(read, style, anchor, tag), Some(original)) => {
                let chars = (span.start.index(), span.end.index());
                if builder.written.is_some() && original.is_ambiguous(style, chars) {
                    return Err((line_of(&span.start), OLD_BREAK.into()));
                }
                let exact = original.scalar(style, chars, &read).map_or(read, Cow::Owned);
                Event::Scalar(exact, style, anchor, tag)
            }
            (event, _) => event,
        };
        builder.line = match &mut place {
            Some(place) => place.line_at(span.start.index()),
            None => span.start.line() as u64,
        };
        builder.take(event).map_err(|stop| (line_of(&span.start), stop))?;
    }
    Ok(())
}

/// Returns the reason why Go's library reads something else of an unquoted scalar in a flow list or map; `None` if it does not.
/// By YAML 1.1 a colon ends a scalar only before a blank, and a tag may have a comma.
fn differs_in_flow(event: &Event<'_>, span: Option<Range<usize>>, text: &str) -> Option<&'static str> {
    let Event::Scalar(scalar, ScalarStyle::Plain, _, tag) = event else { return None };
    let rest = text.get(span?.end..)?;
    let is_of_flow = |letter: Option<char>| matches!(letter, Some(',' | '[' | ']' | '{' | '}'));
    if tag.is_some() && scalar.is_empty() && is_of_flow(rest.chars().next()) {
        return Some("a tag in a flow list or map has no value");
    }
    let rest = rest.trim_start().strip_prefix(':')?;
    is_of_flow(rest.chars().next()).then_some(
        "a colon stands before a comma or bracket; write a space behind it for a key, or quotes around a text",
    )
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
    repeated: Option<(String, u64)>,
    /// For a document that people wrote: the number of levels up to which it may nest.
    written: Option<usize>,
    /// The line of the event that is taken.
    line: u64,
    /// The lines of a written document.
    lines: Lines,
    /// The estimated size in memory of a written document.
    memory: usize,
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
    /// The line on which it begins.
    line: u64,
    /// The lines of the items of a sequence.
    lines: Vec<Lines>,
    /// The lines of the members of a mapping.
    keyed_lines: HashMap<String, Lines>,
    /// The line of the key that waits for its value.
    key_line: u64,
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
    fn take(&mut self, event: Event<'_>) -> Result<(), Stop> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err("a second document begins in a text of one document".into());
                }
            }
            Event::SequenceStart(_, anchor, _) => return self.begin(anchor, Inside::Items(Vec::new())),
            Event::MappingStart(_, anchor, _) => {
                let inside = Inside::Members { members: Map::new(), key: None, merged: Vec::new() };
                return self.begin(anchor, inside);
            }
            Event::SequenceEnd | Event::MappingEnd => return self.end(),
            _ if self.too_deep > 0 => {}
            Event::Anchor(_, name) if !name.chars().all(is_of_anchor) => {
                // Go's library ends the name there, and reads the rest as content.
                return Err("the name of an anchor has a character other than A-Z, a-z, 0-9, - and _".into());
            }
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalars::value(&text, style, tag.as_deref());
                if self.written.is_some() && !scalars::has_type_of_tag(&text, style, tag.as_deref()) {
                    return Err("a value does not have the type of its tag".into());
                }
                self.name(anchor, &value)?;
                self.remember(TREE_VALUE_BYTES + text.len())?;
                let number = self.written.and_then(|_| scalars::beyond_json(&text, style, tag.as_deref()));
                if self.awaits_key() {
                    let is_merge = match self.written {
                        Some(_) => scalars::is_merge_key(&text, style, tag.as_deref()),
                        None => &*text == "<<" && style == ScalarStyle::Plain,
                    };
                    let text = match value {
                        Value::String(text) => number.map_or(text, str::to_owned),
                        _ if self.written.is_some() => scalars::key(&value, &text)?,
                        // A server prints a key that looks like a number in quotes, or as it is: `010` stays `010`.
                        _ => text.into_owned(),
                    };
                    self.set_key(if is_merge { Key::Merge } else { Key::Text(text) });
                    return Ok(());
                }
                if self.written.is_some()
                    && self.open.is_empty()
                    && matches!(style, ScalarStyle::Literal | ScalarStyle::Folded)
                {
                    // Go's library ends it at the first line that is not indented, and the parser does not.
                    return Err("the document is a block of text".into());
                }
                if number.is_some() {
                    return Err("JSON has neither infinity nor NaN".into());
                }
                return self.put(value, false, Lines::of_scalar(self.line));
            }
            Event::Alias(anchor) => {
                let Some(value) = self.anchors.get(&anchor) else {
                    return Err("a YAML alias has no anchor before it".into());
                };
                let mut value = value.clone();
                charge(&mut self.replayed, self.most, &value)?;
                match self.written {
                    Some(levels) if is_deeper(&value, levels.saturating_sub(self.open.len())) => {
                        return Err(Stop::TooDeep);
                    }
                    Some(_) => {}
                    None => super::cut(&mut value, MAX_TREE_DEPTH.saturating_sub(self.open.len())),
                }
                if let (true, Value::String(text)) = (self.awaits_key(), &value) {
                    self.set_key(Key::Text(text.clone()));
                    return Ok(());
                }
                return self.put(value, true, Lines::of_scalar(self.line));
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, anchor: usize, inside: Inside) -> Result<(), Stop> {
        if self.written.is_some_and(|levels| self.open.len() >= levels) {
            return Err(Stop::TooDeep);
        }
        if self.too_deep > 0 || (self.written.is_none() && self.open.len() >= MAX_TREE_DEPTH) {
            self.too_deep += 1;
            return Ok(());
        }
        self.remember(match inside {
            Inside::Items(_) => TREE_VALUE_BYTES,
            Inside::Members { .. } => TREE_MAP_BYTES,
        })?;
        self.open.push(Open {
            anchor,
            has_alias: false,
            inside,
            line: self.line,
            lines: Vec::new(),
            keyed_lines: HashMap::new(),
            key_line: self.line,
        });
        Ok(())
    }

    /// Adds to the estimated size of a written document; returns an error if that is too large.
    fn remember(&mut self, bytes: usize) -> Result<(), Stop> {
        if self.written.is_some() {
            self.memory = self.memory.saturating_add(bytes);
        }
        if self.memory > MAX_TREE_BYTES { Err(Stop::Memory) } else { Ok(()) }
    }

    fn end(&mut self) -> Result<(), Stop> {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            let lines = Lines::of_scalar(self.line);
            return if self.too_deep == 0 { self.put(Value::Null, false, lines) } else { Ok(()) };
        }
        let Some(open) = self.open.pop() else { return Ok(()) };
        let (value, has_alias, lines) = match open.inside {
            Inside::Items(items) => {
                (Value::Array(items), open.has_alias, Lines::of_items(open.line, open.lines))
            }
            Inside::Members { mut members, merged, .. } => {
                for (key, value) in merged.into_iter().flatten() {
                    members.entry(key).or_insert(value);
                }
                (Value::Object(members), false, Lines::of_members(open.line, open.keyed_lines))
            }
        };
        self.name(open.anchor, &value)?;
        self.put(value, has_alias, lines)
    }

    /// Stores a copy of a value under its anchor, for its aliases; returns an error if the anchored values grow too
    /// large.
    fn name(&mut self, anchor: usize, value: &Value) -> Result<(), Stop> {
        if anchor > 0 {
            charge(&mut self.replayed, self.most, value)?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(())
    }

    /// Returns true if the next value is a key: the innermost open value is a mapping, and no key waits for its value.
    fn awaits_key(&self) -> bool {
        self.open.last().is_some_and(|open| matches!(&open.inside, Inside::Members { key: None, .. }))
    }

    /// Sets the key that waits for its value in the innermost open mapping.
    fn set_key(&mut self, text: Key) {
        if let Some(open) = self.open.last_mut()
            && let Inside::Members { key, .. } = &mut open.inside
        {
            *key = Some(text);
            open.key_line = self.line;
        }
    }

    /// Adds a value to the innermost open sequence or mapping, or makes it the root; `is_alias` is true for an alias,
    /// or a sequence with an alias among its items. Returns an error if a mapping has no key for the value.
    fn put(&mut self, value: Value, is_alias: bool, mut lines: Lines) -> Result<(), Stop> {
        let is_outermost = self.open.len() == 1;
        let has_lines = self.written.is_some() && self.open.len() <= LEVELS;
        let Some(open) = self.open.last_mut() else {
            self.root = Some(value);
            self.lines = lines;
            return Ok(());
        };
        match &mut open.inside {
            Inside::Items(items) => {
                open.has_alias |= is_alias;
                items.push(value);
                if has_lines {
                    open.lines.push(lines);
                }
            }
            Inside::Members { members, key, merged } => match (key.take(), value) {
                (None, _) => return Err("a YAML key is not a string".into()),
                (Some(Key::Merge), value) if self.written.is_some() => {
                    for (key, value) in merged_by_go(value)? {
                        if has_lines {
                            open.keyed_lines.insert(key.clone(), Lines::of_scalar(open.key_line));
                        }
                        members.insert(key, value);
                    }
                }
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
                        self.repeated = Some((key.clone(), open.key_line));
                    }
                    if has_lines {
                        lines.set_line(open.key_line);
                        open.keyed_lines.insert(key.clone(), lines);
                    }
                    members.insert(key, value);
                }
            },
        }
        Ok(())
    }
}

/// Returns the members that the value of the key `<<` adds, in the order in which Go's library sets them: those that
/// come later replace earlier ones, also members that stand before the key.
fn merged_by_go(value: Value) -> Result<Vec<(String, Value)>, Stop> {
    let maps = match value {
        Value::Object(map) => vec![map],
        Value::Array(items) => {
            let maps = items.into_iter().rev().map(|item| match item {
                Value::Object(map) => Some(map),
                _ => None,
            });
            maps.collect::<Option<Vec<_>>>().ok_or(MERGED)?
        }
        _ => return Err(MERGED.into()),
    };
    Ok(maps.into_iter().flatten().collect())
}

const MERGED: &str = "the YAML key << merges a map or a list of maps, and this is neither";

fn charge(replayed: &mut usize, most: usize, value: &Value) -> Result<(), Stop> {
    *replayed = replayed.saturating_add(weight(value));
    if *replayed > most { Err(Stop::Aliases) } else { Ok(()) }
}

/// Returns true if lists and maps in a value nest deeper than `levels`.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let inner = |value: &Value| levels.checked_sub(1).is_none_or(|inner| is_deeper(value, inner));
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(inner),
        Value::Object(members) => levels == 0 || members.values().any(inner),
        _ => false,
    }
}

/// The estimated size in memory of a value in a tree, without its text, in bytes.
const TREE_VALUE_BYTES: usize = 64;

/// The estimated size in memory of a small map in a tree, in bytes: the size of a node of the standard library's map.
const TREE_MAP_BYTES: usize = 640;

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
