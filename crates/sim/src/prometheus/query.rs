//! Queries: the part of PromQL that reads series, without functions of them but `timestamp()`; and the text format of
//! metrics, which writes labels in the same way.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};

/// The name of the label that holds the name of a metric.
pub(super) const NAME: &str = "__name__";

/// The maximum size of a compiled regular expression, in bytes; a larger one is refused.
const MAX_EXPRESSION: usize = 1 << 20;

/// The labels of a series or of a target, by name.
pub(super) type Labels = BTreeMap<String, String>;

/// The reason why a text cannot be read as a query or as metrics.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryFault {
    /// The query is empty.
    #[error("the query is empty")]
    Empty,
    /// The text is not understood from some place on.
    #[error("only time(), selectors and timestamp(SELECTOR) are understood, and not: {0}")]
    Unknown(String),
    /// A regular expression in a matcher cannot be used.
    #[error("a regular expression cannot be used: {0}")]
    Expression(#[from] regex::Error),
    /// A line is not one of the text format of metrics.
    #[error("line {0} of the metrics is not NAME{{LABELS}} VALUE [MILLISECONDS]")]
    Line(usize),
}

/// A query that is answered.
pub(super) enum Query {
    /// The time of the evaluation.
    Time,
    /// The values of series.
    Values(Selector),
    /// The times of the samples of series.
    Times(Selector),
}

/// The matchers that a series must fulfil, each for the label of its name.
pub(super) struct Selector(Vec<(String, Matcher)>);

enum Matcher {
    Equal(String),
    Unequal(String),
    Like(Regex),
    Unlike(Regex),
}

impl Query {
    pub(super) fn parse(text: &str) -> Result<Query, QueryFault> {
        let text = text.trim();
        if text.is_empty() {
            return Err(QueryFault::Empty);
        }
        if text == "time()" {
            return Ok(Query::Time);
        }
        let unknown = || QueryFault::Unknown(text.chars().take(200).collect());
        let of_times = text.strip_prefix("timestamp(").and_then(|rest| rest.strip_suffix(')'));
        let mut reader = Reader(of_times.unwrap_or(text));
        let selector = reader.selector()?.filter(|_| reader.is_at_end()).ok_or_else(unknown)?;
        Ok(match of_times {
            Some(_) => Query::Times(selector),
            None => Query::Values(selector),
        })
    }
}

impl Selector {
    pub(super) fn selects(&self, labels: &Labels) -> bool {
        // A label that a series does not have is an empty one.
        self.0.iter().all(|(name, matcher)| matcher.is_met(labels.get(name).map_or("", String::as_str)))
    }
}

impl Matcher {
    /// Makes the matcher of an operator and a value; `None` for an unknown operator.
    fn new(operator: &str, value: String) -> Result<Option<Matcher>, QueryFault> {
        let expression = || RegexBuilder::new(&format!("^(?s:{value})$")).size_limit(MAX_EXPRESSION).build();
        Ok(Some(match operator {
            "=~" => Matcher::Like(expression()?),
            "!~" => Matcher::Unlike(expression()?),
            "=" => Matcher::Equal(value),
            "!=" => Matcher::Unequal(value),
            _ => return Ok(None),
        }))
    }

    fn is_met(&self, text: &str) -> bool {
        match self {
            Matcher::Equal(value) => text == value,
            Matcher::Unequal(value) => text != value,
            Matcher::Like(expression) => expression.is_match(text),
            Matcher::Unlike(expression) => !expression.is_match(text),
        }
    }
}

/// The rest of a text that is being read.
struct Reader<'t>(&'t str);

impl<'t> Reader<'t> {
    fn is_at_end(&self) -> bool {
        self.0.trim_start().is_empty()
    }

    /// Reads `sign` after spaces; returns false if something else follows.
    fn takes(&mut self, sign: &str) -> bool {
        let Some(rest) = self.0.trim_start().strip_prefix(sign) else { return false };
        self.0 = rest;
        true
    }

    /// Reads characters that fulfil `is_part`, after spaces; there may be none.
    fn word(&mut self, is_part: fn(char) -> bool) -> &'t str {
        let text = self.0.trim_start();
        let end = text.find(|it| !is_part(it)).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.0 = rest;
        word
    }

    fn name(&mut self) -> &'t str {
        // Prometheus knows such names, too, but wants those with letters beyond ASCII in quotes.
        self.word(|it| it.is_alphanumeric() || matches!(it, '_' | ':'))
    }

    /// Reads a text in double quotes, with the escapes `\\`, `\"` and `\n`; another backslash stands for itself. `None` if
    /// there is none.
    fn quoted(&mut self) -> Option<String> {
        if !self.takes("\"") {
            return None;
        }
        let mut text = String::new();
        let mut letters = self.0.char_indices();
        while let Some((place, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.0 = self.0.get(place + 1..)?;
                    return Some(text);
                }
                '\\' => match letters.next()?.1 {
                    'n' => text.push('\n'),
                    escaped @ ('\\' | '"') => text.push(escaped),
                    plain => text.extend(['\\', plain]),
                },
                plain => text.push(plain),
            }
        }
        None
    }

    /// Reads a list in braces of names, operators and quoted values; an empty one if no brace follows, `None` if it is
    /// malformed.
    fn list(&mut self) -> Option<Vec<(String, &'t str, String)>> {
        let mut list = Vec::new();
        if !self.takes("{") {
            return Some(list);
        }
        while !self.takes("}") {
            let name = self.name();
            let operator = self.word(|it| matches!(it, '=' | '!' | '~'));
            if name.is_empty() {
                return None;
            }
            list.push((name.to_owned(), operator, self.quoted()?));
            if !self.takes(",") {
                return self.takes("}").then_some(list);
            }
        }
        Some(list)
    }

    /// Reads a selector; `None` if there is none, or one without any matcher.
    fn selector(&mut self) -> Result<Option<Selector>, QueryFault> {
        let mut matchers = Vec::new();
        let name = self.name();
        if !name.is_empty() {
            matchers.push((NAME.to_owned(), Matcher::Equal(name.to_owned())));
        }
        let Some(list) = self.list() else { return Ok(None) };
        for (label, operator, value) in list {
            let Some(matcher) = Matcher::new(operator, value)? else { return Ok(None) };
            matchers.push((label, matcher));
        }
        Ok((!matchers.is_empty()).then_some(Selector(matchers)))
    }

    /// Reads labels in braces, each with `=`; `None` if they are malformed.
    fn labels(&mut self) -> Option<Labels> {
        let list = self.list()?;
        let is_plain = list.iter().all(|(_, operator, _)| *operator == "=");
        is_plain.then(|| list.into_iter().map(|(name, _, value)| (name, value)).collect())
    }
}

/// Parses labels as `a="b",c="d"`.
pub(super) fn labels(text: &str) -> Result<Labels, QueryFault> {
    let in_braces = format!("{{{text}}}");
    let mut reader = Reader(&in_braces);
    let labels = reader.labels().filter(|_| reader.is_at_end());
    labels.ok_or_else(|| QueryFault::Unknown(text.chars().take(200).collect()))
}

/// A line of the text format of metrics: a series with its name among the labels, its value, and the time of the sample in
/// milliseconds if the line has one.
pub(super) type Line = (Labels, f64, Option<f64>);

/// Parses metrics in the text format, without comments and empty lines.
pub(super) fn lines(text: &str) -> Result<Vec<Line>, QueryFault> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, text)| line(text).ok_or(QueryFault::Line(number))).collect()
}

fn line(text: &str) -> Option<Line> {
    let mut reader = Reader(text);
    let name = reader.name();
    let mut labels = reader.labels()?;
    labels.insert(NAME.to_owned(), name.to_owned());
    let mut numbers = reader.0.split_whitespace();
    let value = numbers.next()?.parse().ok()?;
    let at = numbers.next().map(str::parse).transpose().ok()?;
    (!name.is_empty() && numbers.next().is_none()).then_some((labels, value, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(query: &str, labels: &str) -> bool {
        match Query::parse(query) {
            Ok(Query::Values(selector) | Query::Times(selector)) => {
                selector.selects(&super::labels(labels).unwrap())
            }
            Ok(Query::Time) => false,
            Err(error) => panic!("{query}: {error}"),
        }
    }

    #[test]
    fn selectors_match_names_and_labels() {
        const SERIES: &str = r#"__name__="up",job="argo\"cd",kind="HelmRelease""#;
        for query in [
            "up",
            "up{}",
            r#"timestamp(up{kind=~"Kustomization|HelmRelease"})"#,
            r#" { __name__ =~ "u.", job="argo\"cd" , }"#,
            r#"up{absent="",kind!="Kustomization",job!~"flux.*"}"#,
        ] {
            assert!(selects(query, SERIES), "{query}");
        }
        for query in ["down", r#"up{kind=~"Helm"}"#, r#"up{absent!=""}"#, r#"{job!~"argo.*"}"#] {
            assert!(!selects(query, SERIES), "{query}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for query in [
            "",
            "{}",
            "up[5m]",
            "sum(up)",
            "up offset 5m",
            "timestamp(up",
            r#"up{kind="a"#,
            r#"up{kind"a"}"#,
            r#"up{kind=="a"}"#,
            r#"up{="a"}"#,
            r#"up{kind=~"("}"#,
            r#"up{kind=~"((a{100}){100}){100}"}"#,
        ] {
            assert!(Query::parse(query).is_err(), "{query}");
        }
    }

    #[test]
    fn metrics_are_read_line_by_line() {
        let read = lines("# HELP up\n\nup 1\n a_total{b=\"c} d\",e=\"\\\\\"} NaN 1500\n").unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0], (labels("__name__=\"up\"").unwrap(), 1.0, None));
        let (labels, value, at) = &read[1];
        assert_eq!((&*labels["b"], &*labels["e"], value.is_nan(), *at), ("c} d", "\\", true, Some(1500.0)));
        for text in ["up", "up one", "{a=\"b\"} 1", "up{a=\"b\"", "up{a=~\"b\"} 1", "up 1 2 3"] {
            assert!(matches!(lines(&format!("a 1\n{text}")), Err(QueryFault::Line(2))), "{text}");
        }
    }
}
