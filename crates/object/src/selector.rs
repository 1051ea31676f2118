//! Label selectors: parsed from text, read from objects, matched against labels, and written as text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::json::{Kind, Value};

/// A label selector, with the semantics of Kubernetes' `k8s.io/apimachinery/pkg/labels`.
///
/// The default selects everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSelector {
    /// The requirements in the order of their keys, which all must hold; `None` selects nothing.
    requirements: Option<Vec<Requirement>>,
}

/// One condition on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The key of the label.
    pub key: String,
    /// The relation between the label and the values.
    pub operator: Operator,
    /// The values, sorted, each once: one for a comparison, at least one for a set, none for existence.
    pub values: Vec<String>,
}

/// The relation between a label and the values of a [`Requirement`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `key=value`, `key==value`.
    Equals,
    /// `key!=value`; true of objects without the label.
    NotEquals,
    /// `key in (value,value)`.
    In,
    /// `key notin (value,value)`; true of objects without the label.
    NotIn,
    /// `key`.
    Exists,
    /// `!key`.
    DoesNotExist,
    /// `key>number`.
    GreaterThan,
    /// `key<number`.
    LessThan,
}

/// The error for a text that is not a label selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is not a label selector; write LABEL, !LABEL, LABEL=VALUE, LABEL!=VALUE or LABEL in (VALUE,VALUE)"
)]
pub struct InvalidSelector {
    /// The text as written.
    pub text: String,
    /// The reason, in the words of the API server.
    pub reason: String,
}

impl Default for LabelSelector {
    fn default() -> LabelSelector {
        LabelSelector { requirements: Some(Vec::new()) }
    }
}

impl FromStr for LabelSelector {
    type Err = InvalidSelector;

    /// Parses a selector as `labels.Parse` does. The empty text selects everything.
    fn from_str(text: &str) -> Result<LabelSelector, InvalidSelector> {
        let mut parser = Parser { rest: text, peeked: None };
        match parser.selector() {
            Ok(requirements) => Ok(LabelSelector::all_of(requirements)),
            Err(reason) => Err(InvalidSelector { text: text.to_owned(), reason }),
        }
    }
}

impl LabelSelector {
    /// Returns a selector that selects nothing.
    pub fn nothing() -> LabelSelector {
        LabelSelector { requirements: None }
    }

    fn all_of(mut requirements: Vec<Requirement>) -> LabelSelector {
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        LabelSelector { requirements: Some(requirements) }
    }

    /// Reads a selector as objects write it: `matchLabels` and `matchExpressions`.
    ///
    /// An absent or null selector selects nothing, as does one with a wrong type, an unknown operator, or values where
    /// its operator takes none or the reverse; an empty one everything. Keys and values are not validated.
    pub fn of_object(selector: Option<Value<'_>>) -> LabelSelector {
        let read = |selector: Value<'_>| {
            let mut requirements = equalities(selector.get("matchLabels"))?;
            for expression in list(selector.get("matchExpressions"))? {
                requirements.push(Requirement::of_expression(expression)?);
            }
            Some(LabelSelector::all_of(requirements))
        };
        selector.filter(|it| it.kind() == Kind::Object).and_then(read).unwrap_or_else(LabelSelector::nothing)
    }

    /// Reads a map of labels that must all match, such as `spec.selector` of a Service or `nodeSelector` of a Pod.
    ///
    /// An absent, null or empty map selects everything; a value that is not a map of strings selects nothing.
    pub fn of_labels(labels: Option<Value<'_>>) -> LabelSelector {
        equalities(labels).map_or_else(LabelSelector::nothing, LabelSelector::all_of)
    }

    /// Returns true if the selector matches these labels.
    pub fn matches_map(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches(|key| labels.get(key).map(|value| Cow::Borrowed(value.as_str())))
    }

    /// Returns true if the selector matches an object; `label` returns the value of the object's label with a key.
    #[inline]
    pub fn matches<'v>(&self, label: impl Fn(&str) -> Option<Cow<'v, str>>) -> bool {
        let holds = |requirement: &Requirement| requirement.matches(label(&requirement.key).as_deref());
        self.requirements.as_ref().is_some_and(|all| all.iter().all(holds))
    }

    /// Returns true if the selector matches `labels`, an object's `metadata.labels`.
    #[inline]
    pub fn matches_labels(&self, labels: Option<Value<'_>>) -> bool {
        self.matches(|key| labels?.get(key)?.as_str())
    }

    /// Iterates over the requirements in the order of their keys; a selector that selects nothing has none.
    pub fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.requirements.iter().flatten()
    }

    /// Removes the requirements for which `keep` returns false. A selector that selects nothing still selects
    /// nothing.
    pub fn retain(&mut self, keep: impl FnMut(&Requirement) -> bool) {
        if let Some(all) = &mut self.requirements {
            all.retain(keep);
        }
    }

    /// Returns true if the selector selects every object.
    pub fn is_everything(&self) -> bool {
        self.requirements.as_ref().is_some_and(Vec::is_empty)
    }
}

/// Returns true if `selector`, a `LabelSelector` field of an object, selects `labels`, another object's
/// `metadata.labels`.
///
/// Returns what [`LabelSelector::of_object`] and [`LabelSelector::matches_labels`] return together, without building a
/// selector.
pub fn selects(selector: Option<Value<'_>>, labels: Option<Value<'_>>) -> bool {
    let Some(selector) = selector.filter(|selector| selector.kind() == Kind::Object) else { return false };
    let label = |key: &str| labels.and_then(|labels| labels.get(key)?.as_str());
    let wanted = selector.get("matchLabels");
    for (key, value) in wanted.and_then(Value::members).into_iter().flatten() {
        let value = value.as_str();
        if value.is_some() && label(&key) == value {
            continue;
        }
        // Of duplicate keys the last counts; all keys are read first only if it has another value.
        let last = wanted.and_then(|wanted| wanted.get(&key)?.as_str());
        return last != value && LabelSelector::of_object(Some(selector)).matches_labels(labels);
    }
    if wanted.is_some_and(|wanted| !matches!(wanted.kind(), Kind::Object | Kind::Null)) {
        return false;
    }
    let Some(mut expressions) = list(selector.get("matchExpressions")) else { return false };
    expressions.all(|expression| {
        let Some((key, operator)) = Operator::of_expression(expression) else { return false };
        let Some(values) = list(expression.get("values")) else { return false };
        let own = label(&key);
        let (mut any, mut among) = (false, false);
        for value in values {
            if value.kind() != Kind::String {
                return false;
            }
            any = true;
            among = among || own.as_deref().is_some_and(|own| value.is_str(own));
        }
        operator.takes(any) && operator.holds(own.is_some(), among)
    })
}

/// Iterates over the items of a list: none if it is absent or null. Returns `None` if the value is not a list.
fn list(value: Option<Value<'_>>) -> Option<impl Iterator<Item = Value<'_>>> {
    match value {
        Some(value) if value.is_null() => Some(None.into_iter().flatten()),
        Some(value) => Some(Some(value.items()?).into_iter().flatten()),
        None => Some(None.into_iter().flatten()),
    }
}

/// Returns a requirement `key=value` for each label of a map, the last of duplicate keys, sorted by key; none for an
/// absent or null map, and `None` if it is not a map of strings.
fn equalities(labels: Option<Value<'_>>) -> Option<Vec<Requirement>> {
    let Some(labels) = labels.filter(|labels| !labels.is_null()) else { return Some(Vec::new()) };
    let mut last = BTreeMap::new();
    for (key, value) in labels.members()? {
        last.insert(key.into_owned(), value);
    }
    let read = |(key, value): (String, Value<'_>)| {
        let values = vec![value.as_str()?.into_owned()];
        Some(Requirement { key, operator: Operator::Equals, values })
    };
    last.into_iter().map(read).collect()
}

impl Operator {
    /// Returns the key and operator of an item of `matchExpressions`; `None` if one is missing or not a string, or the
    /// operator is unknown.
    fn of_expression<'a>(expression: Value<'a>) -> Option<(Cow<'a, str>, Operator)> {
        let operator = match &*expression.get("operator")?.as_str()? {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return None,
        };
        Some((expression.get("key")?.as_str()?, operator))
    }

    /// Returns true if a requirement with this operator may have values (`some` is true), or may have none (`some` is
    /// false): `Exists` and `DoesNotExist` have none, all others have some.
    fn takes(self, some: bool) -> bool {
        some != matches!(self, Operator::Exists | Operator::DoesNotExist)
    }

    /// Evaluates the operator on a label: `exists` if the object has it, `is_among` if its value is among the values of
    /// the requirement. `GreaterThan` and `LessThan` return false: [`Requirement::matches`] compares the numbers.
    fn holds(self, exists: bool, is_among: bool) -> bool {
        match self {
            Operator::Equals | Operator::In => is_among,
            Operator::NotEquals | Operator::NotIn => !is_among,
            Operator::Exists => exists,
            Operator::DoesNotExist => !exists,
            Operator::GreaterThan | Operator::LessThan => false,
        }
    }
}

impl Requirement {
    fn of_expression(expression: Value<'_>) -> Option<Requirement> {
        let (key, operator) = Operator::of_expression(expression)?;
        let values = list(expression.get("values"))?.map(|value| Some(value.as_str()?.into_owned()));
        let values: Vec<String> = values.collect::<Option<_>>()?;
        let requirement = Requirement::new(key.into_owned(), operator, values);
        operator.takes(!requirement.values.is_empty()).then_some(requirement)
    }

    fn new(key: String, operator: Operator, mut values: Vec<String>) -> Requirement {
        values.sort_unstable();
        values.dedup();
        Requirement { key, operator, values }
    }

    /// Returns true if the requirement holds for an object; `own` is the value of its label with this key, `None`
    /// without it. `>` and `<` never hold for a value that is no integer.
    #[inline]
    pub fn matches(&self, own: Option<&str>) -> bool {
        let is_among = || own.is_some_and(|own| self.values.iter().any(|value| value == own));
        let compared = || {
            let bound: i64 = self.values.first()?.parse().ok()?;
            Some(own?.parse::<i64>().ok()?.cmp(&bound))
        };
        match self.operator {
            Operator::GreaterThan => compared().is_some_and(std::cmp::Ordering::is_gt),
            Operator::LessThan => compared().is_some_and(std::cmp::Ordering::is_lt),
            operator => operator.holds(own.is_some(), is_among()),
        }
    }
}

/// Formats the selector as the API server does, in the order of the keys; empty for a selector of everything, and of
/// nothing.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, requirement) in self.requirements().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Requirement { key, operator, values } = self;
        let values = values.join(",");
        match operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// A word or sign of a selector's text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'t> {
    Word(&'t str),
    Sign(&'static str),
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(text) | Token::Sign(text) => f.write_str(text),
            Token::End => Ok(()),
        }
    }
}

/// The parser of `labels.Parse`, with its error texts.
struct Parser<'t> {
    rest: &'t str,
    peeked: Option<Token<'t>>,
}

impl<'t> Parser<'t> {
    fn lex(&mut self) -> Token<'t> {
        const SIGNS: [&str; 9] = ["!=", "==", "=", "!", "(", ")", ",", "<", ">"];
        const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

        let text = self.rest.trim_start_matches(SPACES);
        let (token, length) = match SIGNS.into_iter().find(|sign| text.starts_with(sign)) {
            Some(sign) => (Token::Sign(sign), sign.len()),
            None => {
                let ends = |one: char| SPACES.contains(&one) || "!=(),<>\0".contains(one);
                let length = text.find(ends).unwrap_or(text.len());
                (if length == 0 { Token::End } else { Token::Word(&text[..length]) }, length)
            }
        };
        // Go's lexer takes a zero byte for the end, but only once for each token.
        self.rest = text[length..].strip_prefix('\0').filter(|_| length > 0).unwrap_or(&text[length..]);
        token
    }

    fn peek(&mut self) -> Token<'t> {
        let token = match self.peeked {
            Some(token) => token,
            None => self.lex(),
        };
        self.peeked = Some(token);
        token
    }

    fn next(&mut self) -> Token<'t> {
        let token = self.peek();
        self.peeked = None;
        token
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::Word(_) | Token::Sign("!") => {}
                Token::End => return Ok(requirements),
                other => return Err(expected(other, "!, identifier, or 'end of string'")),
            }
            let requirement = self.requirement();
            requirements.push(requirement.map_err(|why| format!("unable to parse requirement: {why}"))?);
            match self.next() {
                Token::End => return Ok(requirements),
                Token::Sign(",") => match self.peek() {
                    Token::Word(_) | Token::Sign("!") => {}
                    other => return Err(expected(other, "identifier after ','")),
                },
                other => return Err(expected(other, "',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let is_negated = self.peek() == Token::Sign("!");
        if is_negated {
            self.next();
        }
        let key = self.word()?;
        if let Some(why) = invalid_key(key) {
            return Err(format!("<nil>: Invalid value: {key:?}: {why}"));
        }
        let key = key.to_owned();
        if is_negated {
            return Ok(Requirement::new(key, Operator::DoesNotExist, Vec::new()));
        }
        if matches!(self.peek(), Token::End | Token::Sign(",")) {
            return Ok(Requirement::new(key, Operator::Exists, Vec::new()));
        }
        let operator = match self.next() {
            Token::Word("in") => Operator::In,
            Token::Word("notin") => Operator::NotIn,
            Token::Sign("=" | "==") => Operator::Equals,
            Token::Sign("!=") => Operator::NotEquals,
            Token::Sign(">") => Operator::GreaterThan,
            Token::Sign("<") => Operator::LessThan,
            other => return Err(expected(other, "in, notin, =, ==, !=, gt, lt")),
        };
        let values = match operator {
            Operator::In | Operator::NotIn => self.set()?,
            // An empty value ends with the requirement.
            _ if matches!(self.peek(), Token::End | Token::Sign(",")) => vec![""],
            _ => vec![self.word()?],
        };
        let requirement = Requirement::new(key, operator, values.into_iter().map(str::to_owned).collect());
        match requirement.refused().as_slice() {
            [] => Ok(requirement),
            [why] => Err(why.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    fn word(&mut self) -> Result<&'t str, String> {
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(expected(other, "identifier")),
        }
    }

    /// Reads the values between parentheses, separated by commas; nothing beside a comma, or between the parentheses,
    /// is an empty value. Returns the API server's error text for other signs.
    fn set(&mut self) -> Result<Vec<&'t str>, String> {
        match self.next() {
            Token::Sign("(") => {}
            other => return Err(format!("found '{other}' expected: '('")),
        }
        let mut values = Vec::new();
        match self.peek() {
            Token::Word(_) | Token::Sign(",") => {}
            Token::Sign(")") => {
                self.next();
                return Ok(vec![""]);
            }
            other => return Err(expected(other, "',', ')' or identifier")),
        }
        loop {
            match self.next() {
                Token::Word(value) => {
                    values.push(value);
                    match self.peek() {
                        Token::Sign("," | ")") => {}
                        other => return Err(expected(other, "',' or ')'")),
                    }
                }
                Token::Sign(",") => {
                    if values.is_empty() || matches!(self.peek(), Token::Sign("," | ")")) {
                        values.push("");
                    }
                }
                Token::Sign(")") => return Ok(values),
                other => return Err(expected(other, "',', or identifier")),
            }
        }
    }
}

fn expected(found: Token<'_>, wanted: &str) -> String {
    format!("found '{found}', expected: {wanted}")
}

impl Requirement {
    /// Lists the reasons why the values of a requirement are invalid, in the words of `labels.NewRequirement`; empty if
    /// they are valid.
    fn refused(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let is_compared = matches!(self.operator, Operator::GreaterThan | Operator::LessThan);
        for (number, value) in self.values.iter().enumerate().filter(|_| is_compared) {
            if value.parse::<i64>().is_err() {
                reasons.push(format!(
                    "values[{number}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
                ));
            }
        }
        for (number, value) in self.values.iter().enumerate() {
            if let Some(why) = invalid_value(value) {
                reasons.push(format!("values[{number}][{}]: Invalid value: {value:?}: {why}", self.key));
            }
        }
        reasons
    }
}

/// The maximum length of a label's name and of its value, in bytes; a longer one is invalid.
const MAX_NAME_BYTES: usize = 63;

/// The maximum length of the prefix of a label's key, in bytes; a longer one is invalid.
const MAX_PREFIX_BYTES: usize = 253;

/// The maximum number of labels that are kept of an app or a cluster, because whoever labels it is not trusted.
pub const MAX_LABELS: usize = 64;

/// Checks a label as the API server does; returns the reason, in its words, why the key or the value is invalid, `None`
/// if both are valid.
pub fn invalid_label(key: &str, value: &str) -> Option<String> {
    invalid_key(key).or_else(|| invalid_value(value))
}

/// Returns the reason a text is not a valid key of a label; `None` if it is.
fn invalid_key(key: &str) -> Option<String> {
    const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                        character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const PREFIX: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                          must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                          '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

    let (prefix, name) = match key.split_once('/') {
        Some((_, name)) if name.contains('/') => {
            return Some(format!(
                "a valid label key {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
        }
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let mut reasons = Vec::new();
    if prefix == Some("") {
        reasons.push("prefix part must be non-empty".to_owned());
    } else if let Some(prefix) = prefix {
        if prefix.len() > MAX_PREFIX_BYTES {
            reasons.push(format!("prefix part must be no more than {MAX_PREFIX_BYTES} bytes"));
        }
        let is_small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if !prefix.split('.').all(|label| is_enclosed(label, is_small, |byte| is_small(byte) || byte == b'-'))
        {
            reasons.push(format!("prefix part {PREFIX}"));
        }
    }
    if name.is_empty() {
        reasons.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_NAME_BYTES {
        reasons.push(format!("name part must be no more than {MAX_NAME_BYTES} bytes"));
    }
    if !is_name(name) {
        reasons.push(format!("name part {NAME}"));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Returns the reason a text is not a valid value of a label; `None` if it is.
fn invalid_value(value: &str) -> Option<String> {
    let mut reasons = Vec::new();
    if value.len() > MAX_NAME_BYTES {
        reasons.push(format!("must be no more than {MAX_NAME_BYTES} bytes"));
    }
    if !value.is_empty() && !is_name(value) {
        reasons.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and \
             end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    is_enclosed(text, |byte| byte.is_ascii_alphanumeric(), is_inner)
}

/// Returns true if the first and the last byte satisfy `is_end`, and all bytes `is_inner`.
fn is_enclosed(text: &str, is_end: impl Fn(u8) -> bool, is_inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| is_end(*byte))
        && bytes.last().is_some_and(|byte| is_end(*byte))
        && bytes.iter().all(|byte| is_inner(*byte))
}
