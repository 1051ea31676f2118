//! The removal of fields from an object.

use serde_json::{Map as JsonMap, Value};

use crate::item::element_or_blank;
use crate::path::PathElement;
use crate::schema::{Form, ListType, MapType, Relationship};
use crate::set::FieldSet;
use crate::typed::{Type, check_depth};

impl<'s> Type<'s> {
    /// Returns the object without these fields; null where nothing is left of a list or a map that had items.
    #[must_use]
    pub fn remove(self, value: &Value, fields: &FieldSet) -> Value {
        self.remove_at(value, fields, 0)
    }

    fn remove_at(self, value: &Value, fields: &FieldSet, depth: usize) -> Value {
        let form = check_depth(depth).and_then(|()| self.form(self.forms()?.of(Some(value))));
        match (form, value) {
            (Ok(Form::Scalar(_)), value) => value.clone(),
            (Ok(Form::List(list, relationship)), Value::Array(items))
                if relationship != Some(Relationship::Atomic) =>
            {
                self.remove_items(list, relationship, items, fields, depth)
            }
            (Ok(Form::Map(map, relationship)), Value::Object(all))
                if relationship != Some(Relationship::Atomic) =>
            {
                self.remove_fields(map, all, fields, depth)
            }
            // Nothing is left of what is owned as a whole.
            _ => Value::Null,
        }
    }

    fn remove_items(
        self,
        list: &'s ListType,
        relationship: Option<Relationship>,
        items: &[Value],
        fields: &FieldSet,
        depth: usize,
    ) -> Value {
        let mut left = Vec::new();
        for item in items {
            let element = element_or_blank(self.schema, list, relationship, item);
            if !fields.is_member(&element) {
                left.push(match fields.below(&element) {
                    Some(below) => self.with(&list.element).remove_at(item, below, depth + 1),
                    None => item.clone(),
                });
            }
        }
        if left.is_empty() { Value::Null } else { Value::Array(left) }
    }

    fn remove_fields(
        self,
        map: &'s MapType,
        all: &JsonMap<String, Value>,
        fields: &FieldSet,
        depth: usize,
    ) -> Value {
        let mut left = JsonMap::new();
        for (name, value) in all {
            let element = PathElement::Field(name.clone());
            if fields.is_member(&element) {
                continue;
            }
            let value = match fields.below(&element) {
                Some(below) => self.with(map.of(name)).remove_at(value, below, depth + 1),
                None => value.clone(),
            };
            left.insert(name.clone(), value);
        }
        if left.is_empty() { Value::Null } else { Value::Object(left) }
    }
}
