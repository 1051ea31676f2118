//! The comparison of two objects, field by field.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map as JsonMap, Value};

use crate::item::{element_of, list_of, map_of};
use crate::path::{Path, PathElement};
use crate::schema::{Form, ListType, MapType, Relationship};
use crate::set::FieldSet;
use crate::typed::{Invalid, Type, Violations, check_depth};
use crate::validate::check_scalar;
use crate::values::equal;

/// The fields in which two objects differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Those that only the first one has.
    pub removed: FieldSet,
    /// Those with different values.
    pub modified: FieldSet,
    /// Those that only the second one has.
    pub added: FieldSet,
}

impl Comparison {
    /// Returns true if the objects do not differ.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Returns the comparison without these fields and those below them.
    #[must_use]
    pub fn without(&self, fields: &FieldSet) -> Comparison {
        Comparison {
            removed: self.removed.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            added: self.added.recursive_difference(fields),
        }
    }
}

/// A comparison under way.
struct Walk<'w> {
    path: &'w mut Path,
    result: &'w mut Comparison,
}

impl<'s> Type<'s> {
    /// Compares two objects.
    ///
    /// # Errors
    /// [`Invalid`] if a value is of another form than the type on both sides.
    pub fn compare(self, before: &Value, after: &Value) -> Result<Comparison, Invalid> {
        let (mut path, mut result) = (Path::new(), Comparison::default());
        let mut walk = Walk { path: &mut path, result: &mut result };
        self.compare_at(Some(before), Some(after), &mut walk).or(result)
    }

    fn compare_at(self, before: Option<&Value>, after: Option<&Value>, walk: &mut Walk<'_>) -> Violations {
        let forms = match check_depth(walk.path.len()).and_then(|()| self.forms()) {
            Ok(forms) => forms,
            Err(violations) => return violations,
        };
        let (of_before, of_after) = (forms.of(before), forms.of(after));
        let mut found = Violations::default();
        if after.is_some() && before.is_some() && !of_before.is_like(&of_after) {
            found = match self.form(of_before) {
                Ok(form) => self.compare_form(form, before, after, walk).1,
                Err(violations) => violations,
            };
        }
        let form = self.form(if after.is_some() { of_after } else { of_before });
        let (is_leaf, more) = match form {
            Ok(form) => self.compare_form(form, before, after, walk),
            Err(violations) => (false, violations),
        };
        found.append(more);
        if !is_leaf {
            match (before, after) {
                (None, _) => walk.result.added.insert(walk.path),
                (_, None) => walk.result.removed.insert(walk.path),
                _ => {}
            }
        }
        found
    }

    /// Compares values by one form; returns true if they were compared as a whole.
    fn compare_form(
        self,
        form: Form<'s>,
        before: Option<&Value>,
        after: Option<&Value>,
        walk: &mut Walk<'_>,
    ) -> (bool, Violations) {
        let is_whole = match form {
            Form::Scalar(scalar) => {
                let mut found = check_scalar(scalar, before, "lhs: ");
                let of_after = check_scalar(scalar, after, "rhs: ");
                if !found.is_empty() && !of_after.is_empty() {
                    found.append(of_after);
                    return (false, found);
                }
                true
            }
            Form::List(_, relationship) => {
                let mut lists = [list_of(before), list_of(after)].into_iter().flatten();
                relationship == Some(Relationship::Atomic) || lists.all(Vec::is_empty)
            }
            Form::Map(_, relationship) => {
                let mut maps = [map_of(before), map_of(after)].into_iter().flatten();
                relationship == Some(Relationship::Atomic) || maps.all(JsonMap::is_empty)
            }
        };
        if is_whole {
            match (before, after) {
                (None, _) => walk.result.added.insert(walk.path),
                (_, None) => walk.result.removed.insert(walk.path),
                (Some(before), Some(after)) if !equal(before, after) => {
                    walk.result.modified.insert(walk.path);
                }
                _ => {}
            }
            return (true, Violations::default());
        }
        let found = match form {
            Form::Scalar(_) => Violations::default(),
            Form::List(list, relationship) => {
                self.compare_items(list, relationship, (list_of(before), list_of(after)), walk)
            }
            Form::Map(map, _) => self.compare_fields(map, map_of(before), map_of(after), walk),
        };
        (false, found)
    }

    fn compare_fields(
        self,
        map: &'s MapType,
        before: Option<&JsonMap<String, Value>>,
        after: Option<&JsonMap<String, Value>>,
        walk: &mut Walk<'_>,
    ) -> Violations {
        let mut found = Violations::default();
        let names: BTreeSet<&String> = before.into_iter().chain(after).flat_map(JsonMap::keys).collect();
        for name in names {
            let (before, after) = (before.and_then(|it| it.get(name)), after.and_then(|it| it.get(name)));
            found.append(self.compare_below(
                map.of(name),
                PathElement::Field(name.clone()),
                before,
                after,
                walk,
            ));
        }
        found
    }

    fn compare_items(
        self,
        list: &'s ListType,
        relationship: Option<Relationship>,
        (before, after): (Option<&Vec<Value>>, Option<&Vec<Value>>),
        walk: &mut Walk<'_>,
    ) -> Violations {
        let mut found = Violations::default();
        let mut items: BTreeMap<PathElement, [Vec<&Value>; 2]> = BTreeMap::new();
        for (side, list_of_side) in [before, after].into_iter().enumerate() {
            for (place, item) in list_of_side.into_iter().flatten().enumerate() {
                match element_of(self.schema, list, relationship, item) {
                    Ok(element) => {
                        let sides = items.entry(element).or_default();
                        sides.iter_mut().skip(side).take(1).for_each(|values| values.push(item));
                    }
                    Err(why) => found.append(Violations::one(format!("element {place}: {why}"))),
                }
            }
        }
        for (element, [before, after]) in items {
            let mut insert = |into: fn(&mut Comparison) -> &mut FieldSet| {
                walk.path.push(element.clone());
                into(walk.result).insert(walk.path);
                walk.path.pop();
            };
            match (before.as_slice(), after.as_slice()) {
                (before @ ([] | [_]), after @ ([] | [_])) => {
                    let (before, after) = (before.first().copied(), after.first().copied());
                    found.append(self.compare_below(&list.element, element, before, after, walk));
                }
                // What is there more than once is compared as a whole.
                (before @ [_, _, ..], after @ [_, _, ..]) => {
                    let is_equal = before.len() == after.len()
                        && before.iter().zip(after).all(|(before, after)| equal(before, after));
                    if !is_equal {
                        insert(|result| &mut result.modified);
                    }
                }
                ([_, _, ..], after) => {
                    insert(|result| &mut result.removed);
                    if let [after] = after {
                        let of = &list.element;
                        found.append(self.compare_below(of, element, None, Some(after), walk));
                    }
                }
                (before, _) => {
                    insert(|result| &mut result.added);
                    if let [before] = before {
                        let of = &list.element;
                        found.append(self.compare_below(of, element, Some(before), None, walk));
                    }
                }
            }
        }
        found
    }

    fn compare_below(
        self,
        of: &'s crate::schema::TypeRef,
        element: PathElement,
        before: Option<&Value>,
        after: Option<&Value>,
        walk: &mut Walk<'_>,
    ) -> Violations {
        walk.path.push(element);
        let more = self.with(of).compare_at(before, after, walk);
        let mut found = Violations::default();
        if let Some(element) = walk.path.pop() {
            found.extend(&element, more);
        }
        found
    }
}
