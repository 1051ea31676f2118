//! The order and the equality of JSON values, as the API server's library has them: 1 and 1.0 are equal.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Returns true if two values are equal: numbers by their value, lists in order, maps in any order.
pub fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        // Without an order of the fields.
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| equal(left, right)))
        }
        (left, right) => compare(left, right) == Ordering::Equal,
    }
}

/// Compares two values: numbers come before texts, these before true and false, lists, maps, and null.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let items = left.iter().zip(right).map(|(left, right)| compare(left, right));
            first_difference(items).then(left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let (names, others) = (sorted_names(left), sorted_names(right));
            let fields = names.iter().zip(&others).map(|(&name, &other)| {
                name.cmp(other).then_with(|| match (left.get(name), right.get(other)) {
                    (Some(left), Some(right)) => compare(left, right),
                    _ => Ordering::Equal,
                })
            });
            first_difference(fields).then(names.len().cmp(&others.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

fn sorted_names(map: &serde_json::Map<String, Value>) -> Vec<&String> {
    let mut names: Vec<&String> = map.keys().collect();
    names.sort_unstable();
    names
}

fn first_difference(mut items: impl Iterator<Item = Ordering>) -> Ordering {
    items.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Compares integers as such if both are, else as floating-point numbers, as Go has them.
fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => {
            let float = |number: &Number| number.as_f64().unwrap_or_default();
            float(left).partial_cmp(&float(right)).unwrap_or(Ordering::Equal)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_in_the_order_of_the_library() {
        let sorted = [
            json!(-1),
            json!(1.5),
            json!(2),
            json!("a"),
            json!("b"),
            json!(false),
            json!(true),
            json!([]),
            json!([1]),
            json!([1, 2]),
            json!([2]),
            json!({}),
            json!({"a": 1}),
            json!({"a": 1, "b": 1}),
            json!({"a": 2}),
            json!({"b": 0}),
            json!(null),
        ];
        for (number, value) in sorted.iter().enumerate() {
            for (other_number, other) in sorted.iter().enumerate() {
                assert_eq!(compare(value, other), number.cmp(&other_number), "{value} {other}");
            }
        }
        assert!(equal(&json!({"a": 1, "b": [2.0]}), &json!({"b": [2], "a": 1.0})));
    }
}
