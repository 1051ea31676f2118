//! The fields of the built-in kinds, with their types and their numbers in Protobuf.
//!
//! The table is written by `bench/peers/clientgo` (`clientgo types`) from the tags of Kubernetes' own types; a test
//! compares it with what that program writes today.

use std::collections::HashMap;
use std::sync::OnceLock;

/// One line for each message; how it reads is said at `writeTypes` in `bench/peers/clientgo/messages.go`.
const MESSAGES: &str = include_str!("data/messages.tsv");

/// A message: an object, or a part of one.
#[derive(Debug)]
pub(crate) struct Message {
    /// Such as `apps.v1.Deployment`.
    pub(crate) name: &'static str,
    pub(crate) fields: Vec<Field>,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) number: u64,
    /// Its name in JSON; empty where its fields belong to the message around it.
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) kind: Kind,
    /// Whether a value counts though it is zero.
    pub(crate) kept: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    List,
    /// Values by name.
    Map,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    Flag,
    /// Which JSON has in base64.
    Bytes,
    Time,
    Duration,
    Quantity,
    /// A number or a text.
    Either,
    /// JSON inside.
    Raw,
    /// Texts in a message of their own.
    Texts,
    Message(&'static str),
}

/// The message of this name.
pub(crate) fn message(name: &str) -> Option<&'static Message> {
    static ALL: OnceLock<HashMap<&'static str, Message>> = OnceLock::new();
    let all =
        ALL.get_or_init(|| MESSAGES.lines().filter_map(parse).map(|found| (found.name, found)).collect());
    all.get(name)
}

/// The message of a kind.
pub(crate) fn of_kind(group: &str, version: &str, kind: &str) -> Option<&'static Message> {
    // Options of deletions are sent in the name of whatever is deleted.
    if kind == "DeleteOptions" {
        return message("meta.v1.DeleteOptions");
    }
    let package = if group.is_empty() { "core" } else { group.split('.').next().unwrap_or_default() };
    message(&format!("{package}.{version}.{kind}"))
}

fn parse(line: &'static str) -> Option<Message> {
    let mut parts = line.split('\t');
    let name = parts.next()?;
    Some(Message { name, fields: parts.map(field).collect::<Option<_>>()? })
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
    Some(Field { number, name, shape, kind, kept })
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

    #[test]
    fn all_kinds_but_those_of_other_modules_are_described() {
        let missing: Vec<String> = crate::kinds::builtin()
            .iter()
            .filter(|resource| of_kind(&resource.group, &resource.versions[0].name, &resource.kind).is_none())
            .map(|resource| resource.full_name().into_owned())
            .collect();
        assert_eq!(
            missing,
            ["apiservices.apiregistration.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"]
        );
    }
}
