//! Messages of branches: templates with placeholders for fields of the object.

use std::borrow::Cow;
use std::ops::ControlFlow;

use taffrail_object::json::{Kind, Value};

use super::path::{self, Path, PathError, Start};

/// The length of the values inserted for one placeholder, in bytes, beyond which no further one is added; a single
/// value is inserted whole.
const MAX_INSERTED_BYTES: usize = 4096;

/// The five fields of a condition that rules read, in the order of [`ROW`]; `None` for an absent one.
pub(super) type Row<'a> = [Option<Value<'a>>; 5];

pub(super) const ROW: [&str; 5] = ["type", "status", "reason", "message", "observedGeneration"];

/// The conditions and elements that made tests hold, for use in messages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TestMatches<'a> {
    /// The first condition by which a test holds; `None` if no test that holds reads a condition.
    pub(super) condition: Option<Row<'a>>,
    /// The first element of a list by which a test `some` holds; `None` if no such test holds.
    pub(super) element: Option<Value<'a>>,
}

/// The message of a branch of rules, from which that of a verdict is made.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    /// The message of the condition by which a test holds, or its reason.
    Condition,
    /// A field and its value, or that it is not set; but if a test found a condition, only that condition's message, or
    /// its reason.
    Field(Path),
    Template(Box<[Piece]>),
}

/// A part of a template: fixed text, or a field to fill in.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    Text(Box<str>),
    /// A field, and the text to write in its place if it is absent.
    Field(Path, Option<Box<str>>),
    /// A field of the condition, by its index in a [`Row`].
    Condition(usize),
}

/// The reasons why a text is not a message template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// A brace that is opened and not closed.
    #[error("the template has an opening brace without a closing one")]
    Open,
    /// A text in braces that is not a path.
    #[error("the text '{0}' in the braces of the template is not the path of a field")]
    Path(String, #[source] PathError),
    /// A placeholder for a field of the condition, in a rule without a test of one.
    #[error("{{{0}}} stands for the {0} of a condition, but this rule tests no condition")]
    NoCondition(&'static str),
}

impl Message {
    /// Parses the template of a message, such as `broken: {status.why}`. `has_condition` is true if the rule tests a
    /// condition, whose fields the template may then name.
    ///
    /// # Errors
    /// If a brace is not closed, or a text in braces is neither a path nor a field of a condition that the rule tests.
    pub(super) fn read(text: &str, has_condition: bool) -> Result<Message, MessageError> {
        Ok(Message::Template(read(text, has_condition)?))
    }

    /// Gives each placeholder for a field a default: that with which a test replaces the same field if it is absent.
    pub(super) fn assume(&mut self, defaults: &[(&Path, &str)]) {
        let Message::Template(pieces) = self else { return };
        for piece in pieces {
            if let Piece::Field(path, default) = piece
                && let Some((_, assumed)) = defaults.iter().find(|(field, _)| *field == path)
            {
                *default = Some((*assumed).into());
            }
        }
    }

    /// Returns true if the message reads the objects whose owner reference names this object.
    pub(super) fn asks_children(&self) -> bool {
        match self {
            Message::Condition => false,
            Message::Field(path) => path.asks_children(),
            Message::Template(pieces) => ask_children(pieces),
        }
    }

    pub(super) fn say(&self, object: Value<'_>, found: &TestMatches<'_>) -> String {
        match self {
            Message::Template(pieces) => {
                let out = fill(pieces, object, found);
                if out.trim().len() == out.len() { out } else { out.trim().to_owned() }
            }
            Message::Condition => found.condition.map(of_condition).unwrap_or_default(),
            Message::Field(path) => {
                if let Some(row) = found.condition {
                    return of_condition(row);
                }
                let mut out = format!("{path}: ");
                let name = out.len();
                write(path, object, found, &mut out);
                if out.len() == name {
                    out.truncate(name - 2);
                    out.push_str(" is not set");
                }
                out
            }
        }
    }
}

/// Returns true if a placeholder of a template stands for a field of the objects whose owner reference names this
/// object.
pub(super) fn ask_children(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| matches!(piece, Piece::Field(path, _) if path.asks_children()))
}

/// Splits a template into text and placeholders.
///
/// # Errors
/// If a brace is not closed, or a text in braces is neither a path nor a field of a condition that the rule tests.
pub(super) fn read(text: &str, has_condition: bool) -> Result<Box<[Piece]>, MessageError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once('{') {
        let (place, after) = inside.split_once('}').ok_or(MessageError::Open)?;
        if !before.is_empty() {
            pieces.push(Piece::Text(before.into()));
        }
        pieces.push(match ROW[..4].iter().position(|name| *name == place) {
            Some(at) if has_condition => Piece::Condition(at),
            Some(at) => return Err(MessageError::NoCondition(ROW[at])),
            None => {
                let path = Path::read(place).map_err(|why| MessageError::Path(place.to_owned(), why))?;
                Piece::Field(path, None)
            }
        });
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.into()));
    }
    Ok(pieces.into())
}

/// Returns a template's text with its placeholders filled from the object and from the matches of the tests.
pub(super) fn fill(pieces: &[Piece], object: Value<'_>, found: &TestMatches<'_>) -> String {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Field(path, default) => {
                let before = out.len();
                write(path, object, found, &mut out);
                if out.len() == before
                    && let Some(default) = default
                {
                    out.push_str(default);
                }
            }
            Piece::Condition(at) => {
                let value = found.condition.and_then(|row| row[*at]);
                out.push_str(&value.and_then(path::text).unwrap_or_default());
            }
        }
    }
    out
}

fn of_condition(row: Row<'_>) -> String {
    let [_, _, reason, message, _] = row;
    let texts = [message, reason].into_iter().flatten().filter_map(Value::as_str);
    texts.map(Cow::into_owned).find(|text| !text.is_empty()).unwrap_or_default()
}

/// Appends the value at `path` of the object to `out`. A path that begins at an element is read from the list element
/// that made a test hold; without one, nothing is appended. Several values, and the items of lists, are joined with
/// commas; none is added once [`MAX_INSERTED_BYTES`] is exceeded.
fn write(path: &Path, object: Value<'_>, found: &TestMatches<'_>, out: &mut String) {
    let from = if path.start() == Start::Element { found.element } else { Some(object) };
    let Some(from) = from else { return };
    let start = out.len();
    let mut is_first = true;
    let mut add = |value: Value<'_>| {
        let Some(text) = path::text(value) else { return ControlFlow::Continue(()) };
        if !std::mem::take(&mut is_first) {
            out.push_str(", ");
        }
        out.push_str(&text);
        if out.len() - start > MAX_INSERTED_BYTES {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let _ = path.visit(from, &mut |value| match value.kind() {
        Kind::Array => value.items().into_iter().flatten().try_for_each(&mut add),
        _ => add(value),
    });
}
