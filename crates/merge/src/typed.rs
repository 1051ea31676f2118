//! Types of objects, and the errors of values that are not of their type.

use std::fmt;

use crate::path::PathElement;
use crate::schema::{Form, Resolved, Schema, TypeRef};

/// The maximum number of lists and maps in each other.
pub const MAX_DEPTH: usize = 200;

/// A type of a schema.
#[derive(Debug, Clone, Copy)]
pub struct Type<'s> {
    pub(crate) schema: &'s Schema,
    pub(crate) at: &'s TypeRef,
}

impl<'s> Type<'s> {
    /// Makes the type to which a reference of this schema leads.
    pub fn new(schema: &'s Schema, at: &'s TypeRef) -> Type<'s> {
        Type { schema, at }
    }

    /// Returns the type of a field; `None` if the schema does not have it.
    #[must_use]
    pub fn field(self, name: &str) -> Option<Type<'s>> {
        let (map, _) = self.schema.resolve(self.at)?.map?;
        let of = map.of(name);
        (!of.is_none()).then(|| self.with(of))
    }

    /// Returns the type of the items of a list; `None` if the type has no lists.
    #[must_use]
    pub fn item(self) -> Option<Type<'s>> {
        let (list, _) = self.schema.resolve(self.at)?.list?;
        Some(self.with(&list.element))
    }

    pub(crate) fn with(self, at: &'s TypeRef) -> Type<'s> {
        Type { at, ..self }
    }

    /// Returns the forms of the type.
    pub(crate) fn forms(self) -> Result<Resolved<'s>, Violations> {
        self.schema.resolve(self.at).ok_or_else(|| {
            Violations::one(format!("schema error: no type found matching: {}", self.at.text()))
        })
    }

    /// Returns the form that counts among those that are left.
    pub(crate) fn form(self, forms: Resolved<'s>) -> Result<Form<'s>, Violations> {
        let kind = if self.at.named.is_some() { "named type: " } else { "" };
        forms
            .form()
            .ok_or_else(|| Violations::one(format!("schema error: invalid atom: {kind}{}", self.at.text())))
    }
}

/// A value that is not of its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The path to the value, as text; empty for the object itself.
    pub path: String,
    /// The reason.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.path {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

/// The reasons why an object is not of its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", text(.0))]
pub struct Invalid(pub Vec<Violation>);

fn text(violations: &[Violation]) -> String {
    violations.iter().map(Violation::to_string).collect::<Vec<_>>().join("; ")
}

/// Violations that were found, with their paths from where they were looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Violations(pub(crate) Vec<Violation>);

impl Violations {
    pub(crate) fn one(message: String) -> Violations {
        Violations(vec![Violation { path: String::new(), message }])
    }

    /// Adds those of a value one step away.
    pub(crate) fn extend(&mut self, element: &PathElement, more: Violations) {
        let below = more.0.into_iter();
        self.0.extend(below.map(|it| Violation { path: format!("{element}{}", it.path), ..it }));
    }

    pub(crate) fn append(&mut self, more: Violations) {
        self.0.extend(more.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value if there are none.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Invalid> {
        if self.is_empty() { Ok(value) } else { Err(Invalid(self.0)) }
    }
}

/// Refuses values that are nested too deeply.
pub(crate) fn check_depth(depth: usize) -> Result<(), Violations> {
    if depth < MAX_DEPTH {
        return Ok(());
    }
    Err(Violations::one(format!("lists and maps are nested deeper than {MAX_DEPTH}")))
}
