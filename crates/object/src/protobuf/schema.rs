//! The fields of the built-in kinds, with their types and their numbers in Protobuf.
//!
//! The table is written by `bench/peers/clientgo` (`clientgo types`) from the tags of Kubernetes' own types; a test
//! of the simulation compares it with what that program writes today.

use std::collections::HashMap;
use std::sync::OnceLock;

/// One line for each message; how it reads is said at `writeTypes` in `bench/peers/clientgo/messages.go`.
const MESSAGES: &str = include_str!("messages.tsv");

/// A message: an object, or a part of one.
#[derive(Debug)]
pub struct Message {
    /// Such as `apps.v1.Deployment`.
    pub name: &'static str,
    /// Its fields, in the order of Kubernetes' own types.
    pub fields: Vec<Field>,
    /// Where in `fields` the field of a number is.
    places: Vec<u8>,
}

/// A field of a message.
#[derive(Debug)]
pub struct Field {
    /// Its number in Protobuf.
    pub number: u64,
    /// Its name in JSON; empty where its fields belong to the message around it.
    pub name: &'static str,
    /// How many values it has.
    pub shape: Shape,
    /// What each of them is.
    pub kind: Kind,
    /// Whether a value counts though it is zero.
    pub kept: bool,
    inside: OnceLock<Option<&'static Message>>,
}

/// How many values a field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One or none.
    One,
    /// Any number of them.
    List,
    /// Values by name.
    Map,
}

/// What the value of a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// An integer.
    Number,
    /// True or false.
    Flag,
    /// Which JSON has in base64.
    Bytes,
    /// A point in time.
    Time,
    /// A duration, written as Go writes it.
    Duration,
    /// An amount, written as a text.
    Quantity,
    /// A number or a text.
    Either,
    /// JSON inside.
    Raw,
    /// Texts in a message of their own.
    Texts,
    /// The message of this name.
    Message(&'static str),
}

/// No field has the number.
const NO_FIELD: u8 = u8::MAX;

impl Message {
    /// The field of a number, and its place among the fields.
    pub(super) fn field(&self, number: u64) -> Option<(usize, &Field)> {
        let place = usize::from(*self.places.get(usize::try_from(number).ok()?)?);
        Some((place, self.fields.get(place)?))
    }
}

impl Field {
    /// The message that it holds.
    pub(super) fn inside(&self) -> Option<&'static Message> {
        *self.inside.get_or_init(|| match self.kind {
            Kind::Message(name) => message(name),
            _ => None,
        })
    }
}

/// The message of this name.
pub fn message(name: &str) -> Option<&'static Message> {
    static ALL: OnceLock<HashMap<&'static str, Message>> = OnceLock::new();
    let all =
        ALL.get_or_init(|| MESSAGES.lines().filter_map(parse).map(|found| (found.name, found)).collect());
    all.get(name)
}

/// The message of a kind.
pub fn of_kind(group: &str, version: &str, kind: &str) -> Option<&'static Message> {
    match kind {
        // Options of deletions are sent in the name of whatever is deleted.
        "DeleteOptions" => return message("meta.v1.DeleteOptions"),
        "Status" if group.is_empty() => return message("meta.v1.Status"),
        _ => {}
    }
    let package = if group.is_empty() { "core" } else { group.split('.').next().unwrap_or_default() };
    message(&format!("{package}.{version}.{kind}"))
}

fn parse(line: &'static str) -> Option<Message> {
    let mut parts = line.split('\t');
    let name = parts.next()?;
    let fields = parts.map(field).collect::<Option<Vec<Field>>>()?;
    let mut places = Vec::new();
    for (place, field) in fields.iter().enumerate() {
        let number = usize::try_from(field.number).ok().filter(|number| *number < 1_024)?;
        if places.len() <= number {
            places.resize(number + 1, NO_FIELD);
        }
        places[number] = u8::try_from(place).ok().filter(|place| *place < NO_FIELD)?;
    }
    Some(Message { name, fields, places })
}

fn field(text: &'static str) -> Option<Field> {
    let mut parts = text.splitn(3, ':');
    let (number, name, kind) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
    let (kind, kept) = kind.strip_suffix('!').map_or((kind, false), |kind| (kind, true));
    let (shape, kind) = if let Some(kind) = kind.strip_prefix("[]") {
        (Shape::List, kind)
    } else if let Some(kind) = kind.strip_prefix("{}") {
        (Shape::Map, kind)
    } else {
        (Shape::One, kind)
    };
    let kind = match kind {
        "text" => Kind::Text,
        "number" => Kind::Number,
        "bool" => Kind::Flag,
        "bytes" => Kind::Bytes,
        "time" => Kind::Time,
        "duration" => Kind::Duration,
        "quantity" => Kind::Quantity,
        "either" => Kind::Either,
        "raw" => Kind::Raw,
        "items.text" => Kind::Texts,
        name => Kind::Message(name),
    };
    Some(Field { number, name, shape, kind, kept, inside: OnceLock::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_and_every_name_is_known() {
        for line in MESSAGES.lines() {
            let found = parse(line).unwrap_or_else(|| panic!("{line}"));
            for field in &found.fields {
                if let Kind::Message(name) = field.kind {
                    assert!(message(name).is_some(), "{}.{} is a {name}", found.name, field.name);
                }
            }
        }
    }
}
