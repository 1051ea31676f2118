//! Is a value of its type, and which fields does it set?

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::item::{element_of, element_or_blank, list_of, map_of};
use crate::path::{Path, PathElement};
use crate::schema::{Form, ListType, MapType, Relationship, Scalar};
use crate::set::FieldSet;
use crate::typed::{Invalid, Type, Violations, check_depth};

impl<'s> Type<'s> {
    /// Checks that a value is of this type. With `allows_duplicates`, items of associative lists may be there more than once,
    /// as in objects that were stored before their list became one.
    ///
    /// # Errors
    /// [`Invalid`] with all violations.
    pub fn validate(self, value: &Value, allows_duplicates: bool) -> Result<(), Invalid> {
        self.validate_at(value, allows_duplicates, 0).or(())
    }

    fn validate_at(self, value: &Value, allows_duplicates: bool, depth: usize) -> Violations {
        let found = (|| {
            check_depth(depth)?;
            let form = self.form(self.forms()?.of(Some(value)))?;
            Ok(match form {
                Form::Scalar(scalar) => check_scalar(scalar, Some(value), ""),
                Form::List(list, relationship) => {
                    self.validate_list(list, relationship, value, allows_duplicates, depth)
                }
                Form::Map(map, _) => self.validate_map(map, value, allows_duplicates, depth),
            })
        })();
        found.unwrap_or_else(|violations| violations)
    }

    fn validate_list(
        self,
        list: &'s ListType,
        relationship: Option<Relationship>,
        value: &Value,
        allows_duplicates: bool,
        depth: usize,
    ) -> Violations {
        let Value::Array(items) = value else { return unexpected("list", value) };
        let (mut found, mut known) = (Violations::default(), BTreeSet::new());
        for (place, item) in items.iter().enumerate() {
            let element = if relationship == Some(Relationship::Associative) {
                let element = match element_of(self.schema, list, relationship, item) {
                    Ok(element) => element,
                    Err(why) => {
                        found.append(Violations::one(format!("element {place}: {why}")));
                        return found;
                    }
                };
                if !known.insert(element.clone()) && !allows_duplicates {
                    found.append(Violations::one(format!("duplicate entries for key {element}")));
                }
                element
            } else {
                PathElement::Index(i64::try_from(place).unwrap_or(i64::MAX))
            };
            let below = self.with(&list.element).validate_at(item, allows_duplicates, depth + 1);
            found.extend(&element, below);
        }
        found
    }

    fn validate_map(
        self,
        map: &'s MapType,
        value: &Value,
        allows_duplicates: bool,
        depth: usize,
    ) -> Violations {
        let Value::Object(fields) = value else { return unexpected("map", value) };
        let mut found = Violations::default();
        for (name, value) in fields {
            let element = PathElement::Field(name.clone());
            let of = match map.fields.get(name) {
                Some(field) => &field.of,
                None if map.element.is_none() => {
                    found.extend(&element, Violations::one("field not declared in schema".to_owned()));
                    return found;
                }
                None => &map.element,
            };
            found.extend(&element, self.with(of).validate_at(value, allows_duplicates, depth + 1));
        }
        found
    }

    /// Returns the fields that a value sets.
    ///
    /// # Errors
    /// [`Invalid`] if the schema has no type for a part of the value.
    pub fn field_set(self, value: &Value) -> Result<FieldSet, Invalid> {
        let mut set = FieldSet::default();
        self.collect(value, &mut Path::new(), &mut set).or(set)
    }

    fn collect(self, value: &Value, path: &mut Path, set: &mut FieldSet) -> Violations {
        let found = (|| {
            check_depth(path.len())?;
            Ok(match self.form(self.forms()?.of(Some(value)))? {
                Form::Scalar(_)
                | Form::List(_, Some(Relationship::Atomic))
                | Form::Map(_, Some(Relationship::Atomic)) => {
                    set.insert(path);
                    Violations::default()
                }
                Form::List(list, relationship) => self.collect_items(list, relationship, value, path, set),
                Form::Map(map, _) => self.collect_fields(map, value, path, set),
            })
        })();
        found.unwrap_or_else(|violations| violations)
    }

    fn collect_items(
        self,
        list: &'s ListType,
        relationship: Option<Relationship>,
        value: &Value,
        path: &mut Path,
        set: &mut FieldSet,
    ) -> Violations {
        let mut found = Violations::default();
        let items = list_of(Some(value)).into_iter().flatten();
        let elements = items.map(|item| (element_or_blank(self.schema, list, relationship, item), item));
        let elements: Vec<(PathElement, &Value)> = elements.collect();
        let mut times: BTreeMap<&PathElement, usize> = BTreeMap::new();
        elements.iter().for_each(|(element, _)| *times.entry(element).or_default() += 1);
        for (element, item) in &elements {
            path.push(element.clone());
            // What is there more than once is owned as a whole.
            if times.get(element) == Some(&1) {
                found.extend(element, self.with(&list.element).collect(item, path, set));
            }
            set.insert(path);
            path.pop();
        }
        found
    }

    fn collect_fields(
        self,
        map: &'s MapType,
        value: &Value,
        path: &mut Path,
        set: &mut FieldSet,
    ) -> Violations {
        let mut found = Violations::default();
        for (name, value) in map_of(Some(value)).into_iter().flatten() {
            let element = PathElement::Field(name.clone());
            path.push(element.clone());
            found.extend(&element, self.with(map.of(name)).collect(value, path, set));
            let is_empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
            if is_empty || !map.fields.contains_key(name) {
                set.insert(path);
            }
            path.pop();
        }
        found
    }
}

fn unexpected(form: &str, value: &Value) -> Violations {
    match value {
        Value::Null => Violations::default(),
        value => Violations::one(format!("expected {form}, got {value}")),
    }
}

/// Returns the violation if a value is not a scalar of this kind; none for null and for no value.
pub(crate) fn check_scalar(scalar: Scalar, value: Option<&Value>, side: &str) -> Violations {
    let expected = match (scalar, value) {
        (_, None | Some(Value::Null))
        | (Scalar::Numeric | Scalar::Untyped, Some(Value::Number(_)))
        | (Scalar::String | Scalar::Untyped, Some(Value::String(_)))
        | (Scalar::Boolean | Scalar::Untyped, Some(Value::Bool(_))) => return Violations::default(),
        (Scalar::Numeric, _) => "numeric (int or float)",
        (Scalar::String, _) => "string",
        (Scalar::Boolean, _) => "boolean",
        (Scalar::Untyped, _) => "any scalar",
    };
    let value = value.map(Value::to_string).unwrap_or_default();
    Violations::one(format!("{side}expected {expected}, got {value}"))
}
