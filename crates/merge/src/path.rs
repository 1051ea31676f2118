//! Paths to fields of an object.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use crate::values::compare;

/// One step from a value to one that it holds.
#[derive(Debug, Clone)]
pub enum PathElement {
    /// The field of a map with this name.
    Field(String),
    /// The item of a list of maps whose key fields have these values; sorted by name.
    Key(Vec<(String, Value)>),
    /// The item of a set that equals this value.
    Value(Value),
    /// The item of a list at this place.
    Index(i64),
}

/// The way from an object to one of its fields.
pub type Path = Vec<PathElement>;

impl PathElement {
    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (PathElement::Field(name), PathElement::Field(other)) => name.cmp(other),
            (PathElement::Key(fields), PathElement::Key(others)) => {
                let mut pairs = fields.iter().zip(others);
                let differs = pairs.find_map(|((name, value), (other, other_value))| {
                    let order = name.cmp(other).then_with(|| compare(value, other_value));
                    order.is_ne().then_some(order)
                });
                differs.unwrap_or(Ordering::Equal).then(fields.len().cmp(&others.len()))
            }
            (PathElement::Value(value), PathElement::Value(other)) => compare(value, other),
            (PathElement::Index(place), PathElement::Index(other)) => place.cmp(other),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// Formats as messages of the API server do: `.name`, `[name="web"]`, `[="value"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                f.write_str("[")?;
                for (number, (name, value)) in fields.iter().enumerate() {
                    let comma = if number == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
            PathElement::Value(value) => write!(f, "[={value}]"),
            PathElement::Index(place) => write!(f, "[{place}]"),
        }
    }
}

/// Formats a path as messages of the API server do: `.spec.containers[name="web"].image`.
#[derive(Debug, Clone, Copy)]
pub struct PathText<'p>(pub &'p [PathElement]);

impl fmt::Display for PathText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}
