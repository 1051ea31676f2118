//! Label and field selectors.

use taffrail_object::LabelSelector;
use taffrail_object::json::{Parser, Value as Lazy};
use taffrail_object::selector::Operator;

use crate::behaviour::{Behaviour, Behaviours};
use crate::error::{Answered, ApiError};
use crate::kinds::Resource;
use crate::store::Object;

/// A parsed label and field selector.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector {
    labels: LabelSelector,
    fields: Vec<Field>,
}

#[derive(Debug, Clone)]
struct Field {
    path: String,
    value: String,
    equal: bool,
}

impl Selector {
    /// Parses the query parameters `labelSelector` and `fieldSelector`; fails if one is invalid or unsupported.
    pub(crate) fn parse(
        labels: &str,
        fields: &str,
        resource: &Resource,
        version: &str,
        does: &Behaviours,
    ) -> Answered<Selector> {
        let labels = match labels.parse::<LabelSelector>() {
            Ok(labels) => labels,
            Err(invalid) if does.on(Behaviour::RefuseBadLabelSelector) => {
                return Err(ApiError::bad_request(invalid.reason));
            }
            Err(_) => LabelSelector::default(),
        };
        let fields = parse_fields(fields)?;
        let selectable =
            resource.version(version).map(|version| version.selectable.as_slice()).unwrap_or_default();
        for field in &fields {
            let known = match field.path.as_str() {
                "metadata.name" => true,
                "metadata.namespace" => resource.namespaced || !resource.custom,
                path => selectable.iter().any(|known| known == path),
            };
            if !known && does.on(Behaviour::RefuseUnknownField) {
                return Err(ApiError::bad_request(format!("field label not supported: {}", field.path)));
            }
        }
        let mut selector = Selector { labels, fields };
        if !does.on(Behaviour::LabelSelectors) {
            selector.labels = LabelSelector::default();
        }
        if !does.on(Behaviour::FieldSelectors) {
            selector.fields.clear();
        }
        selector.labels.retain(|requirement| match requirement.operator {
            Operator::NotEquals | Operator::NotIn => does.on(Behaviour::LabelsNotEqual),
            Operator::DoesNotExist => does.on(Behaviour::LabelsMissing),
            Operator::In if requirement.values.len() > 1 => does.on(Behaviour::LabelsInSet),
            Operator::Exists => does.on(Behaviour::LabelsExist),
            _ => true,
        });
        selector.fields.retain(|field| field.equal || does.on(Behaviour::FieldsNotEqual));
        Ok(selector)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_everything() && self.fields.is_empty()
    }

    /// Returns the only name that an object can have to match; `None` if any name may match.
    pub(crate) fn name(&self) -> Option<&str> {
        let named = |field: &&Field| field.equal && field.path == "metadata.name";
        self.fields.iter().find(named).map(|field| field.value.as_str())
    }

    /// Returns true if an object meets all parts of this selector; one without parts selects all.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        if self.is_empty() {
            return true;
        }
        let mut parser = Parser::new();
        let Ok(head) = parser.parse(object.head()) else { return false };
        let head = head.root();
        if !self.labels.matches_labels(head.get("labels")) {
            return false;
        }
        if self.fields.is_empty() {
            return true;
        }
        let mut parser = Parser::new();
        let Ok(tail) = parser.parse(object.tail()) else { return false };
        self.fields.iter().all(|field| {
            let found = match field.path.strip_prefix("metadata.") {
                Some(key) => head.get(key).map(text).unwrap_or_default(),
                None => field_text(tail.root(), &field.path),
            };
            (found == field.value) == field.equal
        })
    }
}

/// Returns the text of the field at `path`, as field selectors compare it: for an absent field the default (`0`,
/// `false`) or an empty text.
fn field_text(root: Lazy<'_>, path: &str) -> String {
    match path {
        "status.successful" => return root.at(&["status", "succeeded"]).map_or("0".to_owned(), text),
        "source" => {
            let component = root.at(&["source", "component"]).map(text).filter(|text| !text.is_empty());
            return component.or_else(|| root.get("reportingComponent").map(text)).unwrap_or_default();
        }
        _ => {}
    }
    let keys: Vec<&str> = path.split('.').filter(|key| !key.is_empty()).collect();
    match root.at(&keys).map(text) {
        Some(text) => text,
        None if matches!(path, "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
        None if path == "status.replicas" => "0".to_owned(),
        None => String::new(),
    }
}

fn text(value: Lazy<'_>) -> String {
    match value.as_str() {
        Some(text) => text.into_owned(),
        None => value.text().map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default(),
    }
}

fn parse_fields(text: &str) -> Answered<Vec<Field>> {
    let mut fields = Vec::new();
    for term in text.split(',').filter(|term| !term.is_empty()) {
        let parts = ["!=", "==", "="].iter().find_map(|sign| Some((term.split_once(sign)?, *sign != "!=")));
        let Some(((path, value), equal)) = parts else {
            return Err(ApiError::bad_request(format!(
                "invalid selector: '{text}'; can't understand '{term}'"
            )));
        };
        fields.push(Field { path: path.to_owned(), value: value.to_owned(), equal });
    }
    Ok(fields)
}

/// Returns true if the labels of an object match `selector`.
pub(crate) fn is_selected(object: &serde_json::Value, selector: &LabelSelector) -> bool {
    selector.matches_labels(object.pointer("/metadata/labels").map(Into::into))
}

/// Formats a selector in an object, either `matchLabels` and `matchExpressions` or a plain map of labels, as a label
/// selector in text.
pub(crate) fn text_of(selector: &serde_json::Value) -> String {
    let is_map = selector.get("matchLabels").is_none() && selector.get("matchExpressions").is_none();
    let read = if is_map { LabelSelector::of_labels } else { LabelSelector::of_object };
    read(Some(selector.into())).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_of_both_forms_are_formatted() {
        assert_eq!(text_of(&json!({"matchLabels": {"b": "1", "a": "2"}})), "a=2,b=1");
        assert_eq!(text_of(&json!({"app": "web"})), "app=web", "of a ReplicationController");
        assert_eq!(text_of(&json!({})), "");
    }
}
