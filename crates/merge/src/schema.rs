//! Schemas: which values a field may have, and if their items are owned one by one or as a whole.

use std::collections::HashMap;

use serde_json::Value;

/// The types of objects, by their names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    /// The types.
    pub types: HashMap<String, Atom>,
}

/// The forms that a value of a type may have. Without any, no value is valid.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Atom {
    /// The kind of scalars.
    pub scalar: Option<Scalar>,
    /// The form of lists.
    pub list: Option<Box<ListType>>,
    /// The form of maps.
    pub map: Option<Box<MapType>>,
}

/// Kinds of scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// A number.
    Numeric,
    /// A text.
    String,
    /// True or false.
    Boolean,
    /// Any of these.
    Untyped,
}

/// Relations between the items of a list, or the fields of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relationship {
    /// They are owned together.
    Atomic,
    /// Items of a list are owned one by one, and known by their keys or values.
    Associative,
    /// Fields of a map are owned one by one.
    Separable,
}

/// A list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListType {
    /// The type of its items.
    pub element: TypeRef,
    /// The relation of its items; `None` counts as neither atomic nor associative.
    pub relationship: Option<Relationship>,
    /// The fields by which items are known; empty for a set.
    pub keys: Vec<String>,
}

/// A map, or a struct with named fields.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MapType {
    /// The named fields.
    pub fields: HashMap<String, MapField>,
    /// The type of fields without a name in the schema; [`TypeRef::NONE`] if there may be none.
    pub element: TypeRef,
    /// The relation of its fields; `None` counts as separable.
    pub relationship: Option<Relationship>,
}

impl MapType {
    /// Returns the type of the field `name`: its own if the schema names it, else that of all other fields.
    pub(crate) fn of(&self, name: &str) -> &TypeRef {
        self.fields.get(name).map_or(&self.element, |field| &field.of)
    }
}

/// A named field of a map.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MapField {
    /// Its type.
    pub of: TypeRef,
    /// The value that it has where it is left out, if it is a key of a list.
    pub default: Option<Value>,
}

/// A reference to a type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TypeRef {
    /// The name of the type; if there is none, `inlined` counts.
    pub named: Option<String>,
    /// The type itself.
    pub inlined: Option<Box<Atom>>,
    /// The relation of items here, in place of that of the type.
    pub relationship: Option<Relationship>,
}

impl TypeRef {
    /// The reference to no type.
    pub const NONE: &TypeRef = &TypeRef { named: None, inlined: None, relationship: None };

    /// Makes the reference to the type of this name.
    pub fn named(name: &str) -> TypeRef {
        TypeRef { named: Some(name.to_owned()), ..TypeRef::default() }
    }

    pub(crate) fn is_none(&self) -> bool {
        let is_empty = |atom: &Atom| *atom == Atom::default();
        self.named.is_none() && self.inlined.as_deref().is_none_or(is_empty) && self.relationship.is_none()
    }

    /// Returns the name of the type for messages.
    pub(crate) fn text(&self) -> &str {
        self.named.as_deref().unwrap_or("inlined")
    }
}

/// The forms of a type, with the relation of items that holds where it is used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Resolved<'s> {
    pub(crate) scalar: Option<Scalar>,
    pub(crate) list: Option<(&'s ListType, Option<Relationship>)>,
    pub(crate) map: Option<(&'s MapType, Option<Relationship>)>,
}

/// The form of a type by which a value is handled.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form<'s> {
    Map(&'s MapType, Option<Relationship>),
    Scalar(Scalar),
    List(&'s ListType, Option<Relationship>),
}

impl<'s> Resolved<'s> {
    /// Returns the forms that a value of this kind may have; all of them for null, for no value, and for a value of which no
    /// form is known.
    pub(crate) fn of(self, value: Option<&Value>) -> Resolved<'s> {
        match value {
            Some(Value::Number(_) | Value::String(_) | Value::Bool(_)) if self.scalar.is_some() => {
                Resolved { scalar: self.scalar, ..Resolved::default() }
            }
            Some(Value::Array(_)) if self.list.is_some() => {
                Resolved { list: self.list, ..Resolved::default() }
            }
            Some(Value::Object(_)) if self.map.is_some() => Resolved { map: self.map, ..Resolved::default() },
            _ => self,
        }
    }

    /// Returns true if the same forms of one type are left in both.
    pub(crate) fn is_like(&self, other: &Resolved<'_>) -> bool {
        let forms = |it: &Resolved<'_>| (it.scalar.is_some(), it.list.is_some(), it.map.is_some());
        forms(self) == forms(other)
    }

    /// Returns the form that counts; `None` if there is none.
    pub(crate) fn form(self) -> Option<Form<'s>> {
        let map = self.map.map(|(map, relationship)| Form::Map(map, relationship));
        let list = || self.list.map(|(list, relationship)| Form::List(list, relationship));
        map.or_else(|| self.scalar.map(Form::Scalar)).or_else(list)
    }
}

impl Schema {
    /// The name of the type of objects of which no schema is known: maps are owned field by field, lists as a whole.
    pub const DEDUCED: &str = "__untyped_deduced_";

    /// The name of the type of values that are owned as a whole.
    pub const ATOMIC: &str = "__untyped_atomic_";

    /// Makes the schema of objects of which none is known: their type is [`Schema::DEDUCED`].
    pub fn deduced() -> Schema {
        let untyped = |of_map: &str, relationship| Atom {
            scalar: Some(Scalar::Untyped),
            list: Some(Box::new(ListType {
                element: TypeRef::named(Schema::ATOMIC),
                relationship: Some(Relationship::Atomic),
                keys: Vec::new(),
            })),
            map: Some(Box::new(MapType {
                element: TypeRef::named(of_map),
                relationship: Some(relationship),
                ..MapType::default()
            })),
        };
        let types = [
            (Schema::ATOMIC, untyped(Schema::ATOMIC, Relationship::Atomic)),
            (Schema::DEDUCED, untyped(Schema::DEDUCED, Relationship::Separable)),
        ];
        Schema { types: types.map(|(name, atom)| (name.to_owned(), atom)).into() }
    }

    /// Returns the forms of a type; `None` if the schema does not have it, or its relation is overridden and it has neither
    /// maps nor lists.
    pub(crate) fn resolve<'s>(&'s self, at: &'s TypeRef) -> Option<Resolved<'s>> {
        let atom = match &at.named {
            Some(name) => Some(self.types.get(name)?),
            None => at.inlined.as_deref(),
        };
        let mut resolved = atom.map_or_else(Resolved::default, |Atom { scalar, list, map }| Resolved {
            scalar: *scalar,
            list: list.as_deref().map(|list| (list, list.relationship)),
            map: map.as_deref().map(|map| (map, map.relationship)),
        });
        if at.relationship.is_some() {
            match &mut resolved {
                Resolved { map: Some((_, relationship)), .. }
                | Resolved { list: Some((_, relationship)), .. } => *relationship = at.relationship,
                _ => return None,
            }
        }
        Some(resolved)
    }
}
