//! Label and field selectors.

use std::borrow::Cow;

use taffrail_object::json::{Parser, Value as Lazy};

use crate::behaviour::{Behaviour, Behaviours};
use crate::error::{Answered, ApiError};
use crate::kinds::Resource;
use crate::store::Object;

/// Which objects are meant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<Field>,
}

#[derive(Debug, Clone)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Missing,
    Greater(i64),
    Less(i64),
}

#[derive(Debug, Clone)]
struct Field {
    path: String,
    value: String,
    equal: bool,
}

impl Selector {
    /// Reads the two query parameters.
    pub(crate) fn parse(
        labels: &str,
        fields: &str,
        resource: &Resource,
        version: &str,
        does: &Behaviours,
    ) -> Answered<Selector> {
        let labels = match parse_labels(labels) {
            Ok(labels) => labels,
            Err(why) if does.on(Behaviour::RefuseBadLabelSelector) => {
                return Err(ApiError::bad_request(format!("unable to parse requirement: {why}")));
            }
            Err(_) => Vec::new(),
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
            selector.labels.clear();
        }
        if !does.on(Behaviour::FieldSelectors) {
            selector.fields.clear();
        }
        selector.labels.retain(|requirement| match requirement.test {
            Test::NotIn(_) => does.on(Behaviour::LabelsNotEqual),
            Test::Missing => does.on(Behaviour::LabelsMissing),
            Test::In(ref values) if values.len() > 1 => does.on(Behaviour::LabelsInSet),
            Test::Exists => does.on(Behaviour::LabelsExist),
            _ => true,
        });
        selector.fields.retain(|field| field.equal || does.on(Behaviour::FieldsNotEqual));
        Ok(selector)
    }

    /// A selector by labels alone, as objects write it: `matchLabels` and `matchExpressions`.
    pub(crate) fn of_object(selector: &serde_json::Value) -> Selector {
        let mut labels = Vec::new();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            labels.push(Requirement { key: key.clone(), test: Test::In(vec![text(value)]) });
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let values = expression["values"].as_array().into_iter().flatten().map(text).collect();
            let test = match expression["operator"].as_str() {
                Some("In") => Test::In(values),
                Some("NotIn") => Test::NotIn(values),
                Some("DoesNotExist") => Test::Missing,
                _ => Test::Exists,
            };
            labels.push(Requirement { key: text(&expression["key"]), test });
        }
        Selector { labels, fields: Vec::new() }
    }

    /// The text of an object's selector, as the scale subresource shows it.
    pub(crate) fn text_of(selector: &serde_json::Value) -> String {
        let terms = Selector::of_object(selector).labels.into_iter().map(|requirement| {
            let key = requirement.key;
            match requirement.test {
                Test::In(values) if values.len() == 1 => format!("{key}={}", values.concat()),
                Test::In(values) => format!("{key} in ({})", values.join(",")),
                Test::NotIn(values) => format!("{key} notin ({})", values.join(",")),
                Test::Missing => format!("!{key}"),
                _ => key,
            }
        });
        terms.collect::<Vec<_>>().join(",")
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The one name that can match, where the selector tells it.
    pub(crate) fn name(&self) -> Option<&str> {
        let named = |field: &&Field| field.equal && field.path == "metadata.name";
        self.fields.iter().find(named).map(|field| field.value.as_str())
    }

    /// Whether an object is meant.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        if self.is_empty() {
            return true;
        }
        let mut parser = Parser::new();
        let Ok(head) = parser.parse(object.head()) else { return false };
        let head = head.root();
        let labels = head.get("labels");
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Lazy::as_str);
        if !self.labels.iter().all(|requirement| requirement.test.holds(label(&requirement.key))) {
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

    /// Whether these labels are meant, as far as labels go.
    pub(crate) fn matches_labels(&self, labels: &serde_json::Value) -> bool {
        self.labels
            .iter()
            .all(|requirement| requirement.test.holds(labels[&requirement.key].as_str().map(Cow::Borrowed)))
    }
}

/// The value of a field that objects can be selected by.
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

impl Test {
    fn holds(&self, value: Option<Cow<'_, str>>) -> bool {
        let number = || value.as_deref().and_then(|value| value.parse::<i64>().ok());
        match self {
            Test::In(values) => {
                value.as_deref().is_some_and(|value| values.iter().any(|known| known == value))
            }
            Test::NotIn(values) => {
                value.as_deref().is_none_or(|value| values.iter().all(|known| known != value))
            }
            Test::Exists => value.is_some(),
            Test::Missing => value.is_none(),
            Test::Greater(bound) => number().is_some_and(|number| number > *bound),
            Test::Less(bound) => number().is_some_and(|number| number < *bound),
        }
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

/// The words and signs of a label selector.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Sign(&'static str),
    End,
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = rest.trim_start();
            continue;
        }
        let sign =
            ["!=", "==", "=", "!", "(", ")", ",", "<", ">"].into_iter().find(|sign| rest.starts_with(sign));
        match sign {
            Some(sign) => {
                tokens.push(Token::Sign(sign));
                rest = &rest[sign.len()..];
            }
            None => {
                let end = rest
                    .find(|character: char| character.is_whitespace() || "!=(),<>".contains(character))
                    .unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..end].to_owned()));
                rest = &rest[end..];
            }
        }
    }
    tokens.push(Token::End);
    tokens
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, String> {
    let tokens = tokens(text);
    let mut at = 0;
    let mut requirements = Vec::new();
    let mut next = || {
        let token = tokens.get(at).cloned().unwrap_or(Token::End);
        at += 1;
        token
    };
    let mut token = next();
    if token == Token::End {
        return Ok(requirements);
    }
    loop {
        let (key, missing) = match token {
            Token::Word(key) => (key, false),
            Token::Sign("!") => (word(next())?, true),
            other => return Err(expected(&other, "!, identifier, or 'end of string'")),
        };
        let mut following = next();
        let test = if missing {
            Test::Missing
        } else {
            match following.clone() {
                Token::Sign(",") | Token::End => Test::Exists,
                Token::Sign(sign @ ("=" | "==" | "!=")) => {
                    let value = match next() {
                        Token::Word(value) => {
                            following = next();
                            value
                        }
                        // An empty value ends where the requirement does.
                        end @ (Token::Sign(",") | Token::End) => {
                            following = end;
                            String::new()
                        }
                        other => return Err(expected(&other, "identifier")),
                    };
                    if sign == "!=" { Test::NotIn(vec![value]) } else { Test::In(vec![value]) }
                }
                Token::Sign(sign @ ("<" | ">")) => {
                    let bound = word(next())?;
                    let bound = bound.parse().map_err(|_| {
                        format!("for 'Gt', 'Lt' operators, the value must be an integer: {bound}")
                    })?;
                    following = next();
                    if sign == ">" { Test::Greater(bound) } else { Test::Less(bound) }
                }
                Token::Word(operator) if operator == "in" || operator == "notin" => {
                    let values = set(&mut next)?;
                    following = next();
                    if operator == "in" { Test::In(values) } else { Test::NotIn(values) }
                }
                other => {
                    return Err(expected(&other, "in, notin, =, ==, !=, gt, lt"));
                }
            }
        };
        requirements.push(Requirement { key, test });
        match following {
            Token::End => return Ok(requirements),
            Token::Sign(",") => token = next(),
            other => return Err(expected(&other, "',' or 'end of string'")),
        }
    }
}

fn set(next: &mut impl FnMut() -> Token) -> Result<Vec<String>, String> {
    match next() {
        Token::Sign("(") => {}
        other => return Err(expected(&other, "'('")),
    }
    let mut values = Vec::new();
    loop {
        match next() {
            Token::Word(value) => values.push(value),
            Token::Sign(")") => return Ok(values),
            Token::Sign(",") => {}
            other => return Err(expected(&other, "',', or ')'")),
        }
    }
}

fn word(token: Token) -> Result<String, String> {
    match token {
        Token::Word(word) => Ok(word),
        other => Err(expected(&other, "identifier")),
    }
}

fn expected(found: &Token, wanted: &str) -> String {
    let found = match found {
        Token::Word(word) => word.as_str(),
        Token::Sign(sign) => sign,
        Token::End => "",
    };
    format!("found '{found}', expected: {wanted}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(selector: &str, labels: serde_json::Value) -> bool {
        let labels_only = Selector { labels: parse_labels(selector).expect(selector), fields: Vec::new() };
        labels_only.matches_labels(&labels)
    }

    #[test]
    fn label_selectors_hold_as_the_server_says() {
        let labels = || serde_json::json!({"app": "web", "tier": "front", "n": "5"});
        for yes in [
            "",
            "app=web",
            "app==web,tier",
            "app!=db",
            "none!=x",
            "app in (web,db)",
            "app notin (db)",
            "!none",
            "n>4",
            "n<6",
            "app in ( web )",
        ] {
            assert!(holds(yes, labels()), "{yes}");
        }
        for no in ["app=db", "none", "!app", "app notin (web, db)", "n>5", "none in (a)"] {
            assert!(!holds(no, labels()), "{no}");
        }
        for bad in ["a===b", "a in b", "=", "a in (b", "(a)", "a b"] {
            assert!(parse_labels(bad).is_err(), "{bad}");
        }
    }
}
