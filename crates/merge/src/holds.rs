//! Quick answers without a merge: if an object holds all that an apply sets, in the same order.

use serde_json::Value;

use crate::path::PathElement;
use crate::schema::{Form, ListType, Relationship};
use crate::set::FieldSet;
use crate::typed::{Type, check_depth};
use crate::values::equal;

impl Type<'_> {
    /// Returns true if `live` has all values of `wanted`, and lists in the same order, so that a merge of `wanted` leaves it as
    /// it is. False says nothing.
    pub fn holds(self, live: &Value, wanted: &Value) -> bool {
        self.holds_at(live, wanted, 0)
    }

    fn holds_at(self, live: &Value, wanted: &Value, depth: usize) -> bool {
        if check_depth(depth).is_err() {
            return false;
        }
        let Ok(form) = self.forms().and_then(|forms| self.form(forms.of(Some(wanted)))) else { return false };
        match (form, live, wanted) {
            (Form::Map(map, relationship), Value::Object(live), Value::Object(wanted))
                if relationship != Some(Relationship::Atomic) =>
            {
                wanted.iter().all(|(name, wanted)| {
                    live.get(name)
                        .is_some_and(|live| self.with(map.of(name)).holds_at(live, wanted, depth + 1))
                })
            }
            (Form::List(list, Some(Relationship::Associative)), Value::Array(live), Value::Array(wanted))
                if !list.keys.is_empty() && live.len() == wanted.len() =>
            {
                live.iter().zip(wanted).all(|(live, wanted)| {
                    self.has_same_keys(list, live, wanted)
                        && self.with(&list.element).holds_at(live, wanted, depth + 1)
                })
            }
            (_, live, wanted) => !wanted.is_null() && equal(live, wanted),
        }
    }

    fn has_same_keys(self, list: &ListType, live: &Value, wanted: &Value) -> bool {
        list.keys.iter().all(|name| match (live.get(name), wanted.get(name)) {
            (Some(live), None) => self.default_of(list, name).is_some_and(|default| equal(live, default)),
            (live, wanted) => live == wanted,
        })
    }

    fn default_of<'l>(self, list: &'l ListType, name: &str) -> Option<&'l Value>
    where
        Self: 'l,
    {
        let (map, _) = self.schema.resolve(&list.element)?.map?;
        map.fields.get(name)?.default.as_ref()
    }

    /// Returns true if an object has all fields of a set. False says nothing.
    pub fn has_all(self, value: &Value, fields: &FieldSet) -> bool {
        fields.nodes().all(|(element, _, below)| {
            let (found, of) = match (element, value) {
                (PathElement::Field(name), Value::Object(fields)) => (fields.get(name), self.field(name)),
                (PathElement::Key(key), Value::Array(items)) => {
                    let is_meant = |item: &&Value| {
                        key.iter().all(|(name, value)| match item.get(name) {
                            Some(own) => own == value,
                            None => self.has_default(name, value),
                        })
                    };
                    (items.iter().find(is_meant), self.item())
                }
                (PathElement::Value(value), Value::Array(items)) => {
                    (items.iter().find(|item| *item == value), self.item())
                }
                _ => (None, None),
            };
            match (found, of) {
                (Some(_), _) if below.is_empty() => true,
                (Some(found), Some(of)) => of.has_all(found, below),
                _ => false,
            }
        })
    }

    /// Returns true if the items of a list have this default of a key.
    fn has_default(self, name: &str, value: &Value) -> bool {
        let list = self.schema.resolve(self.at).and_then(|forms| forms.list);
        list.is_some_and(|(list, _)| self.default_of(list, name) == Some(value))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{FieldSet, GroupVersionKind, Type, built_in};

    #[test]
    fn an_object_holds_what_a_merge_would_leave() {
        let kind = GroupVersionKind { group: String::new(), version: "v1".into(), kind: "Service".into() };
        let of = built_in().type_of(&kind).unwrap();
        let of = Type::new(&built_in().schema, &of);
        let live = json!({"spec": {"selector": {"a": "b", "c": "d"}, "clusterIP": "10.0.0.1", "ports": [
            {"port": 80, "protocol": "TCP", "targetPort": 80}, {"port": 53, "protocol": "UDP"}]}});
        for (wanted, expected) in [
            (json!({"spec": {"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}}), true),
            (json!({"spec": {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 80}]}}), false),
            (json!({"spec": {"ports": [{"port": 80}]}}), false),
            (json!({"spec": {"ports": [{"port": 80}, {"port": 53}]}}), false),
            (json!({"spec": {"selector": {"a": "b", "c": "d"}}}), true),
            // It is owned as a whole.
            (json!({"spec": {"selector": {"a": "b"}}}), false),
            (json!({"spec": {"clusterIP": null}}), false),
            (json!({"spec": {"type": "ClusterIP"}}), false),
        ] {
            assert_eq!(of.holds(&live, &wanted), expected, "{wanted}");
            if expected {
                assert_eq!(of.merge(&live, &wanted).unwrap(), live, "{wanted}");
            }
        }
        let fields = |fields| FieldSet::from_fields_v1(&fields).unwrap();
        let wanted = json!({"spec": {"ports": [{"port": 80}]}});
        let port = |protocol: &str| format!("k:{{\"port\":80,\"protocol\":\"{protocol}\"}}");
        assert!(of.has_all(&wanted, &fields(json!({"f:spec": {"f:ports": {port("TCP"): {"f:port": {}}}}}))));
        assert!(!of.has_all(&wanted, &fields(json!({"f:spec": {"f:ports": {port("UDP"): {}}}}))));
        assert!(!of.has_all(&wanted, &fields(json!({"f:spec": {"f:type": {}}}))));
    }
}
