//! Fields that were owned before the schema changed: where a list or a map has become atomic, it is owned as a whole.

use crate::path::{Path, PathElement};
use crate::schema::{Form, MapType, Relationship, Scalar, Schema, TypeRef};
use crate::set::FieldSet;
use crate::typed::{Invalid, Type, Violations, check_depth};

/// What changes in a set of fields.
#[derive(Debug, Default)]
struct Changes {
    /// Fields to remove with all below them.
    remove: FieldSet,
    add: FieldSet,
}

impl<'s> Type<'s> {
    /// Returns the fields as they are owned by the present schema.
    ///
    /// # Errors
    /// [`Invalid`] if the schema has no type for one of the fields.
    pub(crate) fn reconcile(self, fields: &FieldSet) -> Result<FieldSet, Invalid> {
        let mut changes = Changes::default();
        let found = self.reconcile_at(Some(fields), false, &mut Path::new(), &mut changes);
        found.or(fields.recursive_difference(&changes.remove).union(&changes.add))
    }

    /// Looks at the fields below `path`. `is_whole` is true if the field there is owned, and nothing below it.
    fn reconcile_at(
        self,
        fields: Option<&FieldSet>,
        is_whole: bool,
        path: &mut Path,
        changes: &mut Changes,
    ) -> Violations {
        let form = check_depth(path.len()).and_then(|()| self.form(self.forms()?));
        let form = match form {
            Ok(form) => form,
            Err(violations) => return violations,
        };
        let has_fields = fields.is_some_and(|fields| !fields.is_empty());
        let becomes_whole = match form {
            Form::Scalar(_) => return Violations::default(),
            // A map of which the schema says nothing cannot have changed.
            Form::Map(map, _) if is_deduced(map) => return Violations::default(),
            Form::List(_, relationship) => !is_whole && relationship == Some(Relationship::Atomic),
            Form::Map(_, relationship) => !is_whole && relationship == Some(Relationship::Atomic),
        };
        if becomes_whole {
            if has_fields || matches!(form, Form::List(..)) {
                changes.remove.insert(path);
                changes.add.insert(path);
            }
            return Violations::default();
        }
        // What is owned as a whole stays so.
        if matches!(form, Form::Map(_, Some(Relationship::Atomic))) {
            return Violations::default();
        }
        let mut found = Violations::default();
        for (element, is_member, below) in fields.into_iter().flat_map(FieldSet::nodes) {
            let of = match form {
                Form::List(list, _) => &list.element,
                Form::Map(map, _) => match below_map(map, element) {
                    Some(of) => of,
                    None => continue,
                },
                Form::Scalar(_) => continue,
            };
            path.push(element.clone());
            let below = Some(below).filter(|below| !below.is_empty());
            let is_whole = is_member && below.is_none();
            let more = self.with(of).reconcile_at(below, is_whole, path, changes);
            found.extend(element, more);
            path.pop();
        }
        found
    }
}

/// Returns the type of a field of a map; `None` if the schema does not have it.
fn below_map<'s>(map: &'s MapType, element: &PathElement) -> Option<&'s TypeRef> {
    let of = match element {
        PathElement::Field(name) => map.of(name),
        _ => &map.element,
    };
    (!of.is_none()).then_some(of)
}

/// Returns true for a map of which the schema names no field, and that may hold anything.
fn is_deduced(map: &MapType) -> bool {
    let is_untyped = match (&map.element.named, &map.element.inlined) {
        (Some(name), _) => name == Schema::DEDUCED,
        (None, inlined) => inlined.as_deref().is_some_and(|atom| atom.scalar == Some(Scalar::Untyped)),
    };
    is_untyped && map.fields.is_empty()
}
