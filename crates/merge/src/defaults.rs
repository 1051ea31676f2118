//! Defaults that schemas state, as the API server adds them to custom resources.

use serde_json::Value;

use crate::schema::Form;
use crate::typed::{Type, check_depth};

impl Type<'_> {
    /// Adds the defaults of the schema where an object lacks the field.
    pub fn add_defaults(self, value: &mut Value) {
        self.add_defaults_at(value, 0);
    }

    fn add_defaults_at(self, value: &mut Value, depth: usize) {
        if check_depth(depth).is_err() {
            return;
        }
        let form = self.forms().and_then(|forms| self.form(forms.of(Some(value))));
        match (form, value) {
            (Ok(Form::Map(map, _)), Value::Object(fields)) => {
                for (name, field) in &map.fields {
                    if let Some(default) = &field.default
                        && !fields.contains_key(name)
                    {
                        fields.insert(name.clone(), default.clone());
                    }
                }
                for (name, value) in fields {
                    self.with(map.of(name)).add_defaults_at(value, depth + 1);
                }
            }
            (Ok(Form::List(list, _)), Value::Array(items)) => {
                for item in items {
                    self.with(&list.element).add_defaults_at(item, depth + 1);
                }
            }
            _ => {}
        }
    }
}
