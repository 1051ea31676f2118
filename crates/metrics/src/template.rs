//! Templates of PromQL queries, whose placeholders stand in label values alone.
//!
//! A template is read by the grammar of PromQL as far as it takes to find each selector of series and each matcher in it. What is not
//! understood is refused. So a value can never leave its quotes, and each selector gets the matchers that the hub adds.

use std::collections::BTreeSet;

/// The maximum length of a template, and of a query that is made of it, in bytes.
const MAX_TEMPLATE: usize = 4 << 10;
const MAX_QUERY: usize = 64 << 10;

/// The beginning of the names of placeholders whose values the hub knows.
const OWN: &str = "app.";

/// The placeholders whose values the hub knows.
pub(crate) const OWN_NAMES: [&str; 3] = ["app.cluster", "app.namespace", "app.name"];

/// The keywords that stand alone between expressions, in lower case.
const KEYWORDS: [&str; 10] =
    ["and", "or", "unless", "atan2", "bool", "offset", "group_left", "group_right", "inf", "nan"];

/// The keywords before a list of labels.
const GROUPINGS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

/// A query with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// A text of the query.
    Text(String),
    /// The place in the braces of a selector at which matchers can be added.
    InBraces,
    /// The place behind the name of a metric without braces.
    BehindName,
    /// The value of a placeholder, within a quoted label value.
    Value { name: String, is_expression: bool },
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// If it is not understood, or a placeholder does not stand in the value of a label matcher `=` or `=~`; returns the reason.
    pub(crate) fn parse(text: &str) -> Result<Template, String> {
        if text.len() > MAX_TEMPLATE {
            return Err(format!("the query is longer than {MAX_TEMPLATE} bytes"));
        }
        let mut reader = Reader { text, at: 0, parts: Vec::new() };
        reader.query()?;
        let is_place = |part: &Part| matches!(part, Part::InBraces | Part::BehindName);
        if !reader.parts.iter().any(is_place) {
            return Err("the query selects no series".to_owned());
        }
        let template = Template { parts: reader.parts };
        let is_unknown = |name: &&str| name.starts_with(OWN) && !OWN_NAMES.contains(name);
        if let Some(name) = template.names().find(is_unknown) {
            let known = OWN_NAMES.join("}, ${");
            return Err(format!("the hub has no value for ${{{name}}}, only for ${{{known}}}"));
        }
        Ok(template)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Value { name, .. } => Some(&**name),
            _ => None,
        })
    }

    /// Returns the names of the placeholders for which an app gives values.
    pub(crate) fn parameters(&self) -> BTreeSet<&str> {
        self.names().filter(|name| !name.starts_with(OWN)).collect()
    }

    /// Makes the query: adds `matchers` to each selector, and puts the values in the places of their names, quoted.
    ///
    /// # Errors
    /// If there is no value for a name, or the query is too long; returns the reason.
    pub(crate) fn query<'v>(
        &self,
        matchers: &str,
        value: impl Fn(&str) -> Option<&'v str>,
    ) -> Result<String, String> {
        let mut query = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => query.push_str(text),
                Part::InBraces => query.extend([matchers, ","]),
                Part::BehindName => query.extend(["{", matchers, "}"]),
                Part::Value { name, is_expression } => {
                    let value =
                        value(name).ok_or_else(|| format!("the check needs the parameter '{name}'"))?;
                    match is_expression {
                        true => push_quoted(&expression_of(value), &mut query),
                        false => push_quoted(value, &mut query),
                    }
                }
            }
            if query.len() > MAX_QUERY {
                return Err(format!("the query is longer than {MAX_QUERY} bytes"));
            }
        }
        Ok(query)
    }
}

/// Returns a label matcher for one of several values.
pub(crate) fn matcher(label: &str, values: &[&str]) -> String {
    let mut matcher = label.to_owned();
    match values {
        [value] => {
            matcher.push_str("=\"");
            push_quoted(value, &mut matcher);
        }
        _ => {
            matcher.push_str("=~\"");
            let any: Vec<String> = values.iter().map(|value| expression_of(value)).collect();
            push_quoted(&any.join("|"), &mut matcher);
        }
    }
    matcher.push('"');
    matcher
}

/// Appends a text as it stands within the double quotes of a string of PromQL, which are those of Go.
fn push_quoted(text: &str, query: &mut String) {
    for character in text.chars() {
        match character {
            '\\' => query.push_str("\\\\"),
            '"' => query.push_str("\\\""),
            '\n' => query.push_str("\\n"),
            it if it.is_control() => query.push_str(&format!("\\U{:08x}", u32::from(it))),
            it => query.push(it),
        }
    }
}

/// Returns the regular expression that matches a text alone.
fn expression_of(text: &str) -> String {
    let mut expression = String::with_capacity(text.len());
    for character in text.chars() {
        if "\\.+*?()|[]{}^$".contains(character) {
            expression.push('\\');
        }
        expression.push(character);
    }
    expression
}

/// The position in the text of a template.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    parts: Vec<Part>,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Returns the longest beginning of the rest whose characters all are `is_fit`, and moves behind it.
    fn take(&mut self, is_fit: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let taken = rest.get(..rest.find(|it| !is_fit(it)).unwrap_or(rest.len())).unwrap_or_default();
        self.at += taken.len();
        taken
    }

    /// Moves behind the next character, which is `expected`.
    fn expect(&mut self, expected: char, after: &str) -> Result<(), String> {
        match self.peek() == Some(expected) {
            true => self.at += expected.len_utf8(),
            false => return Err(self.fault(&format!("'{expected}' is missing after {after}"))),
        }
        Ok(())
    }

    /// Moves behind white space and comments.
    fn skip(&mut self) {
        loop {
            self.take(|it| " \t\r\n".contains(it));
            match self.peek() {
                Some('#') => drop(self.take(|it| it != '\n')),
                _ => return,
            }
        }
    }

    fn fault(&self, why: &str) -> String {
        let near: String = self.rest().chars().take(20).collect();
        match near.is_empty() {
            true => format!("{why}, at the end"),
            false => format!("{why}, at '{near}'"),
        }
    }

    fn push(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Text(last)) => last.push_str(text),
            _ => self.parts.push(Part::Text(text.to_owned())),
        }
    }

    fn query(&mut self) -> Result<(), String> {
        loop {
            let before = self.at;
            self.skip();
            if self.at > before {
                self.push(" ");
            }
            let Some(next) = self.peek() else { return Ok(()) };
            match next {
                '"' | '\'' | '`' => self.string()?,
                '{' => self.braces()?,
                '[' => self.range()?,
                '0'..='9' | '.' => {
                    let number = self.take(|it| it.is_ascii_alphanumeric() || it == '.' || it == '_');
                    self.push(number);
                }
                it if is_name_start(it) => self.word()?,
                '(' | ')' | ',' | '+' | '-' | '*' | '/' | '%' | '^' | '=' | '!' | '<' | '>' | '@' => {
                    self.at += 1;
                    self.push(&next.to_string());
                }
                '$' => return Err(self.fault(MISPLACED)),
                _ => return Err(self.fault("this is not PromQL")),
            }
        }
    }

    /// Reads a name outside of braces: of a metric, of a function, or a keyword.
    fn word(&mut self) -> Result<(), String> {
        let word = self.take(is_name_part);
        self.push(word);
        let lower = word.to_ascii_lowercase();
        let end = self.at;
        self.skip();
        match self.peek() {
            Some('(') if GROUPINGS.contains(&&*lower) => self.labels(),
            Some('(' | '{') => Ok(()),
            next => {
                let mut after = Reader { text: self.text, at: self.at, parts: Vec::new() };
                let is_grouped = next.is_some_and(is_name_start)
                    && ["by", "without"].contains(&&*after.take(is_name_part).to_ascii_lowercase());
                if !KEYWORDS.contains(&&*lower) && !is_grouped {
                    self.parts.push(Part::BehindName);
                }
                if self.at > end {
                    self.push(" ");
                }
                Ok(())
            }
        }
    }

    /// Reads a list of labels in parentheses.
    fn labels(&mut self) -> Result<(), String> {
        self.expect('(', "the keyword")?;
        let labels = self.take(|it| is_name_part(it) || ", \t\r\n".contains(it));
        self.expect(')', "a list of labels")?;
        self.push(&format!("({labels})"));
        Ok(())
    }

    /// Reads a range in brackets.
    fn range(&mut self) -> Result<(), String> {
        self.expect('[', "an expression")?;
        let range = self.take(|it| it.is_ascii_alphanumeric() || ": \t\r\n".contains(it));
        self.expect(']', "a range")?;
        self.push(&format!("[{range}]"));
        Ok(())
    }

    /// Reads a string outside of braces, which has no placeholder.
    fn string(&mut self) -> Result<(), String> {
        let begin = self.at;
        let Some(quote) = self.peek() else { return Ok(()) };
        self.expect(quote, "an expression")?;
        while let Some(next) = self.peek().filter(|next| *next != quote) {
            self.at += next.len_utf8();
            if next == '\\' && quote != '`' {
                self.at += self.peek().map_or(0, char::len_utf8);
            }
        }
        self.expect(quote, "a string")?;
        let string = self.text.get(begin..self.at).unwrap_or_default();
        if string.contains("${") {
            self.at = begin;
            return Err(self.fault(MISPLACED));
        }
        self.push(string);
        Ok(())
    }

    /// Reads the matchers of a selector. Only a list of matchers is understood: other servers know `or` between them, behind which
    /// the matchers that are added would not count.
    fn braces(&mut self) -> Result<(), String> {
        self.expect('{', "an expression")?;
        self.push("{");
        self.parts.push(Part::InBraces);
        loop {
            self.skip();
            match self.peek() {
                Some('}') => break,
                Some('"' | '\'' | '`') => self.string()?,
                Some(it) if is_name_start(it) => {
                    let label = self.take(is_name_part);
                    self.push(label);
                }
                _ => return Err(self.fault("'}' is missing after the matchers")),
            }
            self.skip();
            let operator = self.take(|it| "=!~".contains(it));
            match operator {
                // The name of a metric in quotes.
                "" => {}
                "=" | "=~" => {
                    self.push(operator);
                    self.skip();
                    self.value(operator == "=~")?;
                }
                "!=" | "!~" => {
                    self.push(operator);
                    self.skip();
                    match self.peek() {
                        Some('"' | '\'' | '`') => self.string()?,
                        _ => return Err(self.fault("a quoted value is missing")),
                    }
                }
                _ => return Err(self.fault("this is not an operator of a matcher")),
            }
            self.skip();
            match self.peek() {
                Some(',') => {
                    self.at += 1;
                    self.push(",");
                }
                Some('}') => break,
                _ => return Err(self.fault("',' or '}' is missing after a matcher")),
            }
        }
        self.expect('}', "the matchers")?;
        self.push("}");
        Ok(())
    }

    /// Reads the quoted value of a matcher, with placeholders.
    fn value(&mut self, is_expression: bool) -> Result<(), String> {
        match self.peek() {
            Some('"') => {}
            Some('\'' | '`') => return self.string(),
            _ => return Err(self.fault("a quoted value is missing")),
        }
        let begin = self.at;
        let end = {
            let mut whole = Reader { text: self.text, at: self.at, parts: Vec::new() };
            match whole.string() {
                Ok(()) => return self.string(),
                // It has a placeholder, or no end.
                Err(_) => self.rest().char_indices().skip(1),
            }
        };
        // A backslash could take the beginning of a value into an escape, or into a class of an expression.
        let (mut text, mut is_closed) = (String::from("\""), false);
        let mut skipped = 0;
        for (offset, character) in end {
            if offset < skipped {
                continue;
            }
            match character {
                '"' => {
                    text.push('"');
                    self.at = begin + offset + 1;
                    is_closed = true;
                    break;
                }
                '\\' | '\n' => {
                    return Err(self.fault("a value with a placeholder must not have '\\' or a line end"));
                }
                '[' if is_expression => {
                    return Err(self.fault("an expression with a placeholder must not have '['"));
                }
                '$' => {
                    let rest = self.text.get(begin + offset..).unwrap_or_default();
                    let Some(name) = rest.strip_prefix("${") else {
                        text.push('$');
                        continue;
                    };
                    let name = name.split_once('}').map(|(name, _)| name);
                    let is_fit = |name: &&str| {
                        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
                        !name.is_empty() && name.len() <= 63 && name.bytes().all(is_fit)
                    };
                    let Some(name) = name.filter(is_fit) else {
                        return Err(self.fault("the name of a placeholder is missing, or not a name"));
                    };
                    self.push(&std::mem::take(&mut text));
                    self.parts.push(Part::Value { name: name.to_owned(), is_expression });
                    skipped = offset + name.len() + 3;
                }
                other => text.push(other),
            }
        }
        if !is_closed {
            return Err(self.fault("'\"' is missing after a value"));
        }
        self.push(&text);
        Ok(())
    }
}

const MISPLACED: &str =
    "a placeholder stands only in the quoted value of a matcher, such as service=\"${service}\"";

fn is_name_start(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_' || character == ':'
}

fn is_name_part(character: char) -> bool {
    is_name_start(character) || character.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(template: &str, value: &str) -> String {
        let template = Template::parse(template).unwrap();
        template.query("cluster=\"eu\"", |_| Some(value)).unwrap()
    }

    #[test]
    fn each_selector_gets_the_matcher_of_the_cluster() {
        for (template, query) in [
            ("up", r#"up {cluster="eu"}"#),
            ("up{}", r#"up {cluster="eu",}"#),
            (r#"{__name__=~".+"}"#, r#"{cluster="eu",__name__=~".+"}"#),
            ("max(up) by (job) > bool 0", r#"max (up {cluster="eu"}) by (job) > bool 0"#),
            (
                "SUM BY (job, pod) (a) / on (job) group_left b",
                r#"SUM BY (job, pod) (a {cluster="eu"}) / on (job) group_left b {cluster="eu"}"#,
            ),
            ("a:b:rate5m[5m:1m] offset 1h", r#"a:b:rate5m {cluster="eu"}[5m:1m] offset 1h"#),
            (
                "rate(a{b='c'}[5m] @ end()) and b # or {a=\"b\"}",
                r#"rate (a {cluster="eu",b='c'}[5m] @ end ()) and b {cluster="eu"} "#,
            ),
            (
                r#"label_replace(a, "x", "$1", "y", "(.*)") or vector(0)"#,
                r#"label_replace (a {cluster="eu"}, "x", "$1", "y", "(.*)") or vector (0)"#,
            ),
            (
                "histogram_quantile(0.99, sum(rate(b_bucket[5m])) by (le)) > 1e-3",
                r#"histogram_quantile (0.99, sum (rate (b_bucket {cluster="eu"}[5m])) by (le)) > 1e-3"#,
            ),
        ] {
            let made = made(template, "");
            let plain = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(plain(&made), plain(query), "{template}");
        }
    }

    #[test]
    fn values_stay_in_their_quotes() {
        for value in [
            r#"x"} or up{a=""#,
            r#"\"} or up{a=\""#,
            r"x\",
            "x\ny",
            "${service}",
            r#"","b"="#,
            "x\u{0}y\u{7f}",
            "ü}\"",
        ] {
            let query = made(r#"a{s="${s}",t="-${t}-"}"#, value);
            // The strings of the query, as Prometheus' lexer finds them.
            let mut strings = Vec::new();
            let (mut inside, mut escaped, mut outside) = (None::<String>, false, String::new());
            for character in query.chars() {
                match (&mut inside, character) {
                    (None, '"') => inside = Some(String::new()),
                    (None, other) => outside.push(other),
                    (Some(text), it) if escaped => {
                        text.push(if it == 'n' { '\n' } else { it });
                        escaped = false;
                    }
                    (Some(_), '\\') => escaped = true,
                    (Some(_), '"') => strings.extend(inside.take()),
                    (Some(text), other) => text.push(other),
                }
            }
            assert_eq!(outside, "a{cluster=,s=,t=}", "{query}");
            let shown = |text: &str| text.replace('\u{0}', "U00000000").replace('\u{7f}', "U0000007f");
            assert_eq!(strings, ["eu", &shown(value), &shown(&format!("-{value}-"))], "{query}");
        }
    }

    #[test]
    fn values_in_expressions_match_themselves_alone() {
        assert_eq!(
            made(r#"a{p=~"${p}-[0-9]+"}"#.replace("[0-9]+", ".*").as_str(), ".*|x"),
            r#"a{cluster="eu",p=~"\\.\\*\\|x-.*"}"#
        );
        assert_eq!(matcher("c", &["eu"]), r#"c="eu""#);
        assert_eq!(matcher("c", &["e.u", "a\"b"]), r#"c=~"e\\.u|a\"b""#);
    }

    #[test]
    fn misplaced_placeholders_and_other_grammars_are_refused() {
        let fault = |text: &str| Template::parse(text).unwrap_err();
        for text in [
            "up > ${x}",
            "${x}",
            "up{${x}=\"a\"}",
            "up{a=${x}}",
            "rate(up[${x}])",
            "sum(up) by (${x})",
            "label_replace(up, \"${x}\", \"\", \"\", \"\")",
            "up{a!=\"${x}\"}",
            "up{a!~\"${x}\"}",
            "up{a='${x}'}",
            "up{a=`${x}`}",
            "up{\"${x}\"}",
        ] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
        assert!(fault("up > ${x}").contains("stands only in the quoted value"), "{}", fault("up > ${x}"));
        for text in [
            "up{a=\"b\" or c=\"d\"}",
            "up{a=\"\\${x}\"}",
            "up{a=\"\\x2${x}\"}",
            "up{a=~\"[${x}]\"}",
            "up{a=~\"\\\\${x}\"}",
            "up{a=\"${x}",
            "up{a=\"${}\"}",
            "up{a=\"${x y}\"}",
            "up{a=\"${app.secret}\"}",
            "up{a",
            "up{a=\"b\"",
            "up[5m",
            "up; down",
            "vector(1)",
            "1 > 0",
            "",
        ] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
        let template = Template::parse(r#"a{n="${app.namespace}",s="${s}"}"#).unwrap();
        assert_eq!(template.parameters(), BTreeSet::from(["s"]));
        let missing = template.query("", |name| (name != "s").then_some("x")).unwrap_err();
        assert_eq!(missing, "the check needs the parameter 's'");
        let long = "x".repeat(200);
        let many = format!("a{{{}}}", "b=\"${s}\",".repeat(400));
        assert!(Template::parse(&many).unwrap().query("", |_| Some(&long)).is_err());
    }
}
