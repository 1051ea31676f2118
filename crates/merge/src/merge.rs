//! The merge of what a manager wants into a live object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map as JsonMap, Value};

use crate::item::{element_of, list_of, map_of};
use crate::path::PathElement;
use crate::schema::{Form, ListType, MapType, Relationship};
use crate::typed::{Invalid, Type, Violations, check_depth};
use crate::validate::check_scalar;

/// The value of an item that is in a list more than once: it is not merged.
const NULL: &Value = &Value::Null;

/// The result of a merge at one place: the value, if there is one, and what is not of its type.
type Merged = (Option<Value>, Violations);

impl<'s> Type<'s> {
    /// Returns the live object with everything that `config` sets.
    ///
    /// # Errors
    /// [`Invalid`] if a value is of another form than the type, or items of `config` are there more than once.
    pub fn merge(self, live: &Value, config: &Value) -> Result<Value, Invalid> {
        let (value, found) = self.merge_at(Some(live), Some(config), 0);
        found.or(value.unwrap_or_default())
    }

    fn merge_at(self, left: Option<&Value>, right: Option<&Value>, depth: usize) -> Merged {
        let merged = (|| {
            check_depth(depth)?;
            let forms = self.forms()?;
            let (of_left, of_right) = (forms.of(left), forms.of(right));
            if right.is_none() {
                return Ok(self.merge_form(self.form(of_left)?, left, right, depth));
            }
            let mut found = Violations::default();
            if left.is_some() && !of_left.is_like(&of_right) {
                // The value takes another form: of the old one only violations count.
                found = match self.form(of_left) {
                    Ok(form) => self.merge_form(form, left, right, depth).1,
                    Err(violations) => violations,
                };
            }
            let (value, more) = match self.form(of_right) {
                Ok(form) => self.merge_form(form, left, right, depth),
                Err(violations) => (None, violations),
            };
            found.append(more);
            Ok((value, found))
        })();
        merged.unwrap_or_else(|violations| (None, violations))
    }

    fn merge_form(self, form: Form<'s>, left: Option<&Value>, right: Option<&Value>, depth: usize) -> Merged {
        let leaf = || (right.or(left).cloned(), Violations::default());
        match form {
            Form::Scalar(scalar) => {
                let mut found = check_scalar(scalar, left, "lhs: ");
                let of_right = check_scalar(scalar, right, "rhs: ");
                if found.is_empty() || of_right.is_empty() {
                    return leaf();
                }
                found.append(of_right);
                (None, found)
            }
            Form::List(list, relationship) => {
                let (left, right) = (list_of(left), list_of(right));
                // Whether a list is empty or null must not be lost.
                let is_empty = [left, right].into_iter().flatten().all(Vec::is_empty);
                match relationship == Some(Relationship::Atomic) || is_empty {
                    true => leaf(),
                    false => self.merge_items(list, relationship, left, right, depth),
                }
            }
            Form::Map(map, relationship) => {
                let (left, right) = (map_of(left), map_of(right));
                let is_empty = [left, right].into_iter().flatten().all(JsonMap::is_empty);
                match relationship == Some(Relationship::Atomic) || is_empty {
                    true => leaf(),
                    false => self.merge_fields(map, left, right, depth),
                }
            }
        }
    }

    fn merge_fields(
        self,
        map: &'s MapType,
        left: Option<&JsonMap<String, Value>>,
        right: Option<&JsonMap<String, Value>>,
        depth: usize,
    ) -> Merged {
        let (mut merged, mut found) = (JsonMap::new(), Violations::default());
        let names: BTreeSet<&String> = left.into_iter().chain(right).flat_map(JsonMap::keys).collect();
        for name in names {
            let (left, right) = (left.and_then(|it| it.get(name)), right.and_then(|it| it.get(name)));
            let (value, more) = self.with(map.of(name)).merge_at(left, right, depth + 1);
            found.extend(&PathElement::Field(name.clone()), more);
            if let Some(value) = value {
                merged.insert(name.clone(), value);
            }
        }
        ((!merged.is_empty()).then_some(Value::Object(merged)), found)
    }

    /// Merges the items of two lists. Items of both are in the order of the right list; those that only the left one has keep
    /// their place before the shared item that follows them there.
    fn merge_items(
        self,
        list: &'s ListType,
        relationship: Option<Relationship>,
        left: Option<&Vec<Value>>,
        right: Option<&Vec<Value>>,
        depth: usize,
    ) -> Merged {
        let left = left.map(Vec::as_slice).unwrap_or_default();
        let right = right.map(Vec::as_slice).unwrap_or_default();
        let of_right = Items::of(self, list, relationship, right, false);
        let of_left = Items::of(self, list, relationship, left, true);
        let mut found = of_right.found.clone();
        found.append(of_left.found.clone());
        if !found.is_empty() {
            return (None, found);
        }
        // What is wrong in an item stops no merge in the API server's library, which forgets it.
        let merge = |left: Option<&Value>, right: Option<&Value>| {
            self.with(&list.element).merge_at(left, right, depth + 1).0
        };
        let mut shared = of_right.elements.iter().filter(|element| of_left.known.contains_key(element));
        let mut next_shared = shared.next();
        let (mut taken, mut out) = (BTreeSet::new(), Vec::new());
        let (mut at_left, mut at_right) = (0, 0);
        while at_left < left.len() || at_right < right.len() {
            let (element, other) = (of_left.elements.get(at_left), of_right.elements.get(at_right));
            if let (Some(element), Some(other)) = (element, other) {
                if element == other {
                    taken.insert(element);
                    out.extend(merge(of_left.value(element), of_right.value(element)));
                    (at_left, at_right) = (at_left + 1, at_right + 1);
                    next_shared = shared.next();
                    continue;
                }
                if of_right.known.contains_key(element) && next_shared.is_some_and(|next| next != element) {
                    // It has its place where the right list has it.
                    at_left += 1;
                    continue;
                }
            }
            if let Some(element) = element {
                if !of_right.known.contains_key(element) {
                    out.extend(merge(left.get(at_left), None));
                    at_left += 1;
                    continue;
                }
                if taken.contains(element) {
                    at_left += 1;
                }
            }
            if let Some(other) = other {
                taken.insert(other);
                out.extend(merge(of_left.value(other), of_right.value(other)));
                at_right += 1;
                if next_shared == Some(other) {
                    next_shared = shared.next();
                }
            }
        }
        ((!out.is_empty()).then_some(Value::Array(out)), Violations::default())
    }
}

/// The items of a list by their path elements.
struct Items<'v> {
    elements: Vec<PathElement>,
    known: BTreeMap<PathElement, &'v Value>,
    found: Violations,
}

impl<'v> Items<'v> {
    fn of(
        of: Type<'_>,
        list: &ListType,
        relationship: Option<Relationship>,
        items: &'v [Value],
        allows_duplicates: bool,
    ) -> Items<'v> {
        let mut all = Items { elements: Vec::new(), known: BTreeMap::new(), found: Violations::default() };
        for (place, item) in items.iter().enumerate() {
            let element = match element_of(of.schema, list, relationship, item) {
                Ok(element) => element,
                Err(why) => {
                    all.found.append(Violations::one(format!("element {place}: {why}")));
                    continue;
                }
            };
            let is_known = all.known.contains_key(&element);
            if is_known && !allows_duplicates {
                all.found.append(Violations::one(format!("duplicate entries for key {element}")));
                continue;
            }
            all.known.insert(element.clone(), if is_known { NULL } else { item });
            all.elements.push(element);
        }
        all
    }

    fn value(&self, element: &PathElement) -> Option<&'v Value> {
        self.known.get(element).copied()
    }
}
