//! The fields of the built-in kinds, with their types and their numbers in Protobuf.
//!
//! `bench/peers/clientgo` (`clientgo types`) writes the table from the tags of Kubernetes' own types; a test of the
//! simulator compares it with that program's current output.

use std::collections::HashMap;
use std::sync::OnceLock;

/// One line for each message; `writeTypes` in `bench/peers/clientgo/messages.go` describes the format.
const MESSAGES: &str = include_str!("messages.tsv");

/// The description of a Protobuf message: its name and its fields. A message is an object, or a part of one.
#[derive(Debug)]
pub struct Message {
    /// The name, such as `apps.v1.Deployment`.
    pub name: &'static str,
    /// The fields, in the order of Kubernetes' own types.
    pub fields: Vec<Field>,
    /// For each field number, the index of the field in `fields`, or [`NO_FIELD`].
    places: Vec<u8>,
}

/// The description of one field of a message: its names in Protobuf and JSON, and its type.
#[derive(Debug)]
pub struct Field {
    /// The number in Protobuf.
    pub number: u64,
    /// The name in JSON; empty if the value's fields are inlined into the message around it.
    pub name: &'static str,
    /// One value, a list of values, or a map from texts to values.
    pub shape: Shape,
    /// The type of each of the field's values.
    pub kind: Kind,
    /// True if JSON includes the field even if its value is zero.
    pub kept: bool,
    inside: OnceLock<Option<&'static Message>>,
}

/// The way in which a field holds its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One value or none.
    One,
    /// A list of values.
    List,
    /// A map from texts to values.
    Map,
}

/// The type of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// An integer.
    Number,
    /// A boolean.
    Flag,
    /// Bytes, base64 in JSON.
    Bytes,
    /// A point in time.
    Time,
    /// A duration, in JSON a text such as `90s`.
    Duration,
    /// An amount, written as a text.
    Quantity,
    /// An `IntOrString`: an integer or a string.
    Either,
    /// Raw JSON text.
    Raw,
    /// A message whose only field is a list of strings.
    Texts,
    /// The message with this name.
    Message(&'static str),
}

/// The value in `places` for numbers without a field.
const NO_FIELD: u8 = u8::MAX;

impl Message {
    /// Returns the field with a number, and its index in `fields`; `None` if the message has no such field.
    pub(super) fn field(&self, number: u64) -> Option<(usize, &Field)> {
        let place = usize::from(*self.places.get(usize::try_from(number).ok()?)?);
        Some((place, self.fields.get(place)?))
    }
}

impl Field {
    /// Returns the description of the message in this field; `None` if the field holds no message, or the table lacks
    /// it.
    pub(super) fn inside(&self) -> Option<&'static Message> {
        *self.inside.get_or_init(|| match self.kind {
            Kind::Message(name) => message(name),
            _ => None,
        })
    }
}

/// Returns the description of the message with this name, such as `apps.v1.Deployment`; `None` if the table lacks it.
pub fn message(name: &str) -> Option<&'static Message> {
    static ALL: OnceLock<HashMap<&'static str, Message>> = OnceLock::new();
    let all =
        ALL.get_or_init(|| MESSAGES.lines().filter_map(parse).map(|found| (found.name, found)).collect());
    all.get(name)
}

/// Returns the description of the message of a kind in a group and version; `None` if the table lacks it. Of the group
/// only the part before the first dot counts, and for `DeleteOptions` no part.
pub fn of_kind(group: &str, version: &str, kind: &str) -> Option<&'static Message> {
    match kind {
        // Clients send the options of a deletion in the group of the deleted object.
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
    fn message_table_is_complete() {
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
