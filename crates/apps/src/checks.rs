//! Checks: questions about an app that only metrics answer, such as the rate of its errors.
//!
//! An app names checks in its annotation [`CHECKS_ANNOTATION`], as a YAML map of names and parameters. The queries are written by
//! whoever runs the hub, which evaluates them: whoever writes an app can only name them, and give values. A result is a part of the
//! app's row of its own, and never changes the health.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_object::{Object, yaml};

use crate::problem::{Axis, Problem, ProblemSeverity};
use crate::words::Words;

/// The annotation in which an app names its checks.
pub const CHECKS_ANNOTATION: &str = "taffrail.dev/checks";

/// The maximum length of the annotation, in bytes.
const MAX_ANNOTATION: usize = 16 << 10;

/// The maximum number of checks of an app, and of parameters of a check.
pub const MAX_CHECKS: usize = 16;

/// The maximum length of a name, and of the value of a parameter, in bytes.
const MAX_NAME: usize = 63;
const MAX_VALUE: usize = 253;

/// The maximum length of the message of a result, in bytes.
const MAX_MESSAGE: usize = 512;

/// A check that an app names, with the values of its parameters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredCheck {
    /// The name of the check; [`CHECKS_ANNOTATION`] if the annotation as a whole cannot be read.
    pub name: String,
    /// The values by the names of the parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// The reason why the declaration cannot be used; `None` if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

impl DeclaredCheck {
    fn faulty(name: &str, fault: impl Into<String>) -> DeclaredCheck {
        DeclaredCheck { name: name.to_owned(), parameters: BTreeMap::new(), fault: Some(fault.into()) }
    }

    /// Returns about how many bytes the check takes in a message.
    pub fn size(&self) -> usize {
        let parameters: usize =
            self.parameters.iter().map(|(name, value)| 8 + name.len() + value.len()).sum();
        16 + self.name.len() + parameters + self.fault.as_ref().map_or(0, String::len)
    }
}

/// Returns true if a text can be the name of a check or of a parameter: up to 63 letters, digits, `-`, `_` and `.`.
pub fn is_check_name(text: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(is_fit)
}

/// Returns the checks that a declaring object names in its annotation, sorted by name.
pub fn declared_checks(declaring: &Object<'_>) -> Vec<DeclaredCheck> {
    match declaring.text(&["metadata", "annotations", CHECKS_ANNOTATION]) {
        text if text.trim().is_empty() => Vec::new(),
        text => parse(&text),
    }
}

/// Parses the text of the annotation.
fn parse(text: &str) -> Vec<DeclaredCheck> {
    const FORM: &str = "write a line 'NAME: {PARAMETER: VALUE}' for each check";
    let faulty = |fault: String| vec![DeclaredCheck::faulty(CHECKS_ANNOTATION, fault)];
    if text.len() > MAX_ANNOTATION {
        return faulty(format!("the annotation is longer than {MAX_ANNOTATION} bytes"));
    }
    type Named = BTreeMap<String, Option<BTreeMap<String, String>>>;
    let Ok(named) = yaml::read_strict_without_aliases::<Named>(text) else {
        return faulty(format!("the annotation is not a map of checks: {FORM}"));
    };
    let mut checks: Vec<DeclaredCheck> = named
        .into_iter()
        .map(|(name, parameters)| DeclaredCheck {
            name,
            parameters: parameters.unwrap_or_default(),
            fault: None,
        })
        .collect();
    bound_checks(&mut checks);
    checks
}

/// Limits checks that come from outside to [`MAX_CHECKS`], and puts a fault in the place of one that has a name, a parameter or a
/// value that is not allowed. Returns true if it changed anything.
pub fn bound_checks(checks: &mut Vec<DeclaredCheck>) -> bool {
    let mut is_changed = false;
    for check in checks.iter_mut() {
        let name = &*check.name;
        let is_named = is_check_name(name) || (name == CHECKS_ANNOTATION && check.fault.is_some());
        let fault = match () {
            () if !is_named => "the name of a check has up to 63 letters, digits, '-', '_' and '.'",
            () if check.parameters.len() > MAX_CHECKS => "the check has more than 16 parameters",
            () if !check.parameters.keys().all(|name| is_check_name(name)) => {
                "the name of a parameter has up to 63 letters, digits, '-', '_' and '.'"
            }
            () if !check.parameters.values().all(|value| is_value(value)) => {
                "the value of a parameter has 1 to 253 bytes, and no control characters"
            }
            () if check.fault.as_ref().is_some_and(|fault| fault.len() > MAX_MESSAGE) => {
                "the declaration cannot be used"
            }
            () => continue,
        };
        // What cannot be a name is not repeated.
        let name = if is_named { name.to_owned() } else { CHECKS_ANNOTATION.to_owned() };
        *check = DeclaredCheck::faulty(&name, fault);
        is_changed = true;
    }
    let count = checks.len();
    if count > MAX_CHECKS {
        checks.truncate(MAX_CHECKS - 1);
        let fault =
            format!("the app has {count} checks, of which only the first {} are evaluated", MAX_CHECKS - 1);
        checks.push(DeclaredCheck::faulty(CHECKS_ANNOTATION, fault));
        is_changed = true;
    }
    checks.sort();
    checks.dedup_by(|one, other| one.name == other.name);
    is_changed
}

/// Returns the results of checks that no hub evaluates.
pub(crate) fn not_evaluated(declared: &[DeclaredCheck]) -> Vec<CheckResult> {
    const NO_HUB: &str = "only a hub evaluates checks: taffrail hub serve --metrics-from FILE";
    let reason =
        |check: &DeclaredCheck| check.fault.as_deref().map_or_else(|| Words::from(NO_HUB), Words::from);
    declared.iter().map(|check| CheckResult::no_data(&check.name, reason(check))).collect()
}

fn is_value(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_VALUE && !text.chars().any(char::is_control)
}

/// The answer of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CheckAnswer {
    /// The value is beyond the bound.
    False,
    /// There is no value, or none that counts: an error, no series, several, or an old one.
    NoData,
    /// The value is within the bounds.
    True,
}

impl CheckAnswer {
    /// All answers, the worst first.
    pub const ALL: [CheckAnswer; 3] = [CheckAnswer::False, CheckAnswer::NoData, CheckAnswer::True];

    /// Returns the word for it: `true`, `false` or `nodata`.
    pub fn as_str(self) -> &'static str {
        match self {
            CheckAnswer::False => "false",
            CheckAnswer::NoData => "nodata",
            CheckAnswer::True => "true",
        }
    }
}

impl fmt::Display for CheckAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The value of a metric, a finite number. Equal if all bits are.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct MetricValue(f64);

impl MetricValue {
    /// Makes a value; `None` of a number that is not finite.
    pub fn new(number: f64) -> Option<MetricValue> {
        number.is_finite().then_some(MetricValue(number))
    }

    /// Returns the number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for MetricValue {
    fn eq(&self, other: &MetricValue) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for MetricValue {}

impl Hash for MetricValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// Formats with four significant digits, as `0.03125` and `1250`.
impl fmt::Display for MetricValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.0;
        let digits = match number.abs() {
            0.0 | 1000.0.. => 0,
            size => usize::try_from(3 - (size.log10().floor() as i32).max(-12)).unwrap_or_default(),
        };
        let text = format!("{number:.digits$}");
        match text.contains('.') {
            true => f.write_str(text.trim_end_matches('0').trim_end_matches('.')),
            false => f.write_str(&text),
        }
    }
}

/// The result of a check of an app in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    /// The name of the check; that of the annotation if this cannot be read.
    pub name: String,
    /// The answer: `true`, `false`, or `nodata`.
    pub result: CheckAnswer,
    /// The value of the query; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<MetricValue>,
    /// The time of the value; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Timestamp>,
    /// The time since which the result is as it is; left out if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The reason for `false` or `nodata`; left out of `true`.
    #[serde(default, skip_serializing_if = "Words::is_empty")]
    pub message: Words,
}

impl CheckResult {
    /// Makes the result of a check without data, for this reason.
    pub fn no_data(name: &str, reason: impl Into<Words>) -> CheckResult {
        CheckResult {
            name: name.to_owned(),
            result: CheckAnswer::NoData,
            value: None,
            observed_at: None,
            since: None,
            message: reason.into(),
        }
    }

    /// Makes the problem of an app with this result: an error if it is false, a notice if there is no data, else `None`.
    pub fn problem(&self) -> Option<Problem> {
        let (severity, message) = match self.result {
            CheckAnswer::True => return None,
            CheckAnswer::False => (ProblemSeverity::Error, format!("{}: {}", self.name, &*self.message)),
            CheckAnswer::NoData => {
                (ProblemSeverity::Notice, format!("{}: no data: {}", self.name, &*self.message))
            }
        };
        Some(Problem::new(Axis::Check, &*self.name, severity).since(self.since).says(message))
    }
}

/// A condition on the checks of an app, written `NAME` or `NAME=RESULT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CheckFilter {
    name: String,
    answer: Option<CheckAnswer>,
}

/// The error of parsing a [`CheckFilter`]; holds the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a condition on a check; write NAME, NAME=false, NAME=nodata or NAME=true")]
pub struct InvalidCheckFilter(pub String);

impl CheckFilter {
    /// Returns true if one of the results meets the condition.
    pub fn admits(&self, results: &[CheckResult]) -> bool {
        let is_wanted = |result: &CheckResult| self.answer.is_none_or(|answer| result.result == answer);
        results.iter().any(|result| result.name == self.name && is_wanted(result))
    }
}

impl FromStr for CheckFilter {
    type Err = InvalidCheckFilter;

    fn from_str(text: &str) -> Result<CheckFilter, InvalidCheckFilter> {
        let invalid = || InvalidCheckFilter(text.to_owned());
        let (name, answer) = match text.split_once('=') {
            None => (text, None),
            Some((name, word)) => {
                let found = CheckAnswer::ALL.into_iter().find(|answer| answer.as_str() == word);
                (name, Some(found.ok_or_else(invalid)?))
            }
        };
        match is_check_name(name) || name == CHECKS_ANNOTATION {
            true => Ok(CheckFilter { name: name.to_owned(), answer }),
            false => Err(invalid()),
        }
    }
}

impl TryFrom<String> for CheckFilter {
    type Error = InvalidCheckFilter;

    fn try_from(text: String) -> Result<CheckFilter, InvalidCheckFilter> {
        text.parse()
    }
}

impl From<CheckFilter> for String {
    fn from(filter: CheckFilter) -> String {
        filter.to_string()
    }
}

/// Formats in the form that [`CheckFilter::from_str`] parses.
impl fmt::Display for CheckFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.answer.map_or(Ok(()), |answer| write!(f, "={answer}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let line = |check: DeclaredCheck| match check.fault {
            Some(fault) => format!("{}: {fault}", check.name),
            None => format!("{} {:?}", check.name, check.parameters),
        };
        parse(text).into_iter().map(line).collect()
    }

    #[test]
    fn checks_are_a_map_of_names_and_parameters() {
        let text = "error-rate: {service: web, port: 8080, version: 1.10}\nlatency:\nup: {}\n";
        let all =
            [r#"error-rate {"port": "8080", "service": "web", "version": "1.10"}"#, "latency {}", "up {}"];
        assert_eq!(told(text), all);
        assert_eq!(told(r#"{"error-rate": {"service": "web"}}"#), [r#"error-rate {"service": "web"}"#]);
    }

    #[test]
    fn faulty_declarations_are_shown_and_not_evaluated() {
        let form =
            "the annotation is not a map of checks: write a line 'NAME: {PARAMETER: VALUE}' for each check";
        for text in ["error-rate", "[error-rate]", "a: {b: [1]}", "a: &x {b: c}\nd: *x", "a: {}\na: {}", "{"]
        {
            assert_eq!(told(text), [format!("taffrail.dev/checks: {form}")], "{text}");
        }
        let one = |text: &str| told(text).concat();
        assert!(one(&"a".repeat(20_000)).contains("longer than 16384 bytes"));
        assert!(one("'a\\u001b': {}").starts_with("taffrail.dev/checks: the name of a check"));
        assert!(one("a: {'b\"}': c}").starts_with("a: the name of a parameter"));
        assert!(one("a: {b: ''}").starts_with("a: the value of a parameter"));
        assert!(one("a: {b: \"x\\ny\"}").starts_with("a: the value of a parameter"));
        assert!(one(&format!("a: {{b: {}}}", "x".repeat(254))).starts_with("a: the value of a parameter"));
        let many: String = (0..17).map(|number| format!("check-{number:02}:\n")).collect();
        let many = told(&many);
        assert_eq!(many.len(), MAX_CHECKS);
        assert!(many[15].starts_with("taffrail.dev/checks: the app has 17 checks"), "{many:?}");
        let wide: String = (0..17).map(|number| format!("p{number}: x, ")).collect();
        assert_eq!(one(&format!("a: {{{wide}}}")), "a: the check has more than 16 parameters");
    }

    #[test]
    fn values_have_four_digits() {
        let shown = |number: f64| MetricValue::new(number).unwrap().to_string();
        let numbers = [0.0, 0.031_249, 0.5, -12.344_6, 999.96, 1250.4, 0.000_000_123_46];
        let texts = ["0", "0.03125", "0.5", "-12.34", "1000", "1250", "0.0000001235"];
        assert_eq!(numbers.map(shown), texts);
        assert_eq!(MetricValue::new(f64::NAN), None);
        assert_eq!(shown(1e300).len(), 301);
    }

    #[test]
    fn filters_name_a_check_and_a_result() {
        let result = |name: &str, result| CheckResult { result, ..CheckResult::no_data(name, "") };
        let results = [result("a", CheckAnswer::False), result("b", CheckAnswer::NoData)];
        let admits = |text: &str| text.parse::<CheckFilter>().unwrap().admits(&results);
        assert_eq!(["a", "a=false", "b=nodata"].map(admits), [true; 3]);
        assert_eq!(["a=true", "b=false", "c"].map(admits), [false; 3]);
        for text in ["a=red", "", "=false", "a b"] {
            assert_eq!(text.parse::<CheckFilter>(), Err(InvalidCheckFilter(text.to_owned())));
        }
        assert_eq!("a=false".parse::<CheckFilter>().unwrap().to_string(), "a=false");
    }
}
