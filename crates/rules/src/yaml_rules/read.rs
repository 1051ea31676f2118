//! Reads files of rules. All errors of a file are reported at once.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Map, Value as Tree};
use taffrail_object::{duration, yaml};
use taffrail_status::Status;

use super::clusters::ClusterFields;
use super::error::{MAX_TEST_DEPTH, Problem, RuleFileError};
use super::message::{self, Message};
use super::path::{self, Path};
use super::pattern::Pattern;
use super::test::{
    Bound, BoundOperator, Check, ComparedTexts, ConditionTest, Elements, FieldTest, Other, Scalar, Test,
    number,
};
use super::{Branch, GroupRules, KindRules};

/// The age up to which an object without a status is in progress, unless the rules of its kind state another in
/// `unseen`.
const FIRST_STATUS_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

const STATUSES: &str = "Current, InProgress, Failed, Unknown";
const CONDITION_STATUSES: &str = "\"True\", \"False\", \"Unknown\"";

/// The keys that begin a test.
const HEADS: [&str; 8] = ["condition", "field", "all", "any", "none", "each", "some", "count"];

/// The keys that may stand beside `condition`.
const OF_CONDITION: [&str; 4] = ["is", "reason", "text", "observed"];

/// The keys that may stand beside `field`.
const OF_FIELD: [&str; 12] = [
    "is",
    "like",
    "not",
    "exists",
    "atLeast",
    "atMost",
    "above",
    "below",
    "default",
    "otherDefault",
    "matches",
    "contains",
];
const BOUNDS: [(&str, BoundOperator); 4] = [
    ("atLeast", BoundOperator::AtLeast),
    ("atMost", BoundOperator::AtMost),
    ("above", BoundOperator::Above),
    ("below", BoundOperator::Below),
];

/// Reads a file of rules for one group; returns the valid rules and the errors of the others.
pub(crate) fn read(file: &str, text: &str) -> (GroupRules, Vec<RuleFileError>) {
    let mut reader = Reader { file, kind: None, rule: None, errors: Vec::new() };
    let mut rules = GroupRules::default();
    match yaml::read_strict::<Tree>(text) {
        Ok(Tree::Object(tree)) => reader.group(&tree, &mut rules),
        Ok(_) => reader.wrong_type("the top level", "a map"),
        Err(error) => reader.tell(Problem::Yaml(error)),
    }
    (rules, reader.errors)
}

/// A reader of one rule file, which collects its errors.
struct Reader<'f> {
    file: &'f str,
    kind: Option<String>,
    rule: Option<usize>,
    errors: Vec<RuleFileError>,
}

/// A YAML map in a file of rules.
type Keys = Map<String, Tree>;

impl Reader<'_> {
    fn tell(&mut self, problem: Problem) {
        let (file, kind) = (self.file.to_owned(), self.kind.clone());
        self.errors.push(RuleFileError { file, kind, rule: self.rule, problem });
    }

    fn wrong_type(&mut self, key: &str, expected: &'static str) {
        self.tell(Problem::WrongType { key: key.to_owned(), expected });
    }

    fn known(&mut self, keys: &Keys, known: &[&[&'static str]]) {
        for key in keys.keys() {
            if !known.iter().any(|known| known.contains(&key.as_str())) {
                self.tell(Problem::UnknownKey { key: key.clone(), known: known.concat() });
            }
        }
    }

    fn text<'t>(&mut self, keys: &'t Keys, key: &'static str) -> Option<&'t str> {
        let value = keys.get(key)?;
        let text = value.as_str().filter(|text| !text.is_empty());
        if text.is_none() {
            self.wrong_type(key, "a text");
        }
        text
    }

    fn group(&mut self, tree: &Keys, rules: &mut GroupRules) {
        self.known(tree, &[&["group", "source", "kinds", "clusters"]]);
        match self.text(tree, "group") {
            Some(group) if is_group(group) => rules.group = group.into(),
            Some(group) => self.tell(Problem::Group(group.to_owned())),
            None if tree.contains_key("group") => {}
            None => self.tell(Problem::Missing("group")),
        }
        let source = self.text(tree, "source");
        let has_clusters = tree.contains_key("clusters");
        if let Some(clusters) = tree.get("clusters") {
            self.clusters(clusters, source, rules);
        }
        let kinds = match tree.get("kinds") {
            Some(Tree::Object(kinds)) => kinds,
            None if has_clusters => return,
            Some(_) => return self.wrong_type("kinds", "a map"),
            None => return self.tell(Problem::Missing("kinds")),
        };
        for (names, tree) in kinds {
            self.kind = Some(names.clone());
            let Tree::Object(tree) = tree else {
                self.wrong_type(names, "a map");
                continue;
            };
            let Some(read) = self.kind(tree, source).map(Arc::new) else { continue };
            for name in names.split(',').map(str::trim) {
                if rules.add(name, read.clone()).is_some() {
                    self.kind = Some(name.to_owned());
                    self.tell(Problem::Twice("the same file".to_owned()));
                }
            }
        }
        self.kind = None;
    }

    /// Reads the kinds whose objects stand for clusters, the value of `clusters`.
    fn clusters(&mut self, tree: &Tree, source: Option<&str>, rules: &mut GroupRules) {
        let Tree::Object(kinds) = tree else { return self.wrong_type("clusters", "a map") };
        for (names, tree) in kinds {
            self.kind = Some(names.clone());
            let wrong = [&*rules.group, names.as_str()].into_iter().find(|name| name.contains('*'));
            if let Some(wrong) = wrong {
                self.tell(Problem::ClusterPattern(wrong.to_owned()));
                continue;
            }
            let Tree::Object(tree) = tree else {
                self.wrong_type(names, "a map");
                continue;
            };
            let Some(fields) = self.cluster_fields(tree, source) else { continue };
            for name in names.split(',').map(str::trim) {
                if rules.clusters.insert(name.into(), fields.clone()).is_some() {
                    self.tell(Problem::Twice("the same file".to_owned()));
                }
            }
        }
        self.kind = None;
    }

    fn cluster_fields(&mut self, tree: &Keys, source: Option<&str>) -> Option<ClusterFields> {
        self.known(tree, &[&["source", "id", "address", "name"]]);
        if self.text(tree, "source").or(source).is_none() {
            self.tell(Problem::Missing("source"));
        }
        let mut paths = |key: &'static str, default: &[&str]| -> Option<Box<[Path]>> {
            let Some(value) = tree.get(key) else {
                return default.iter().map(|text| self.path(key, text)).collect();
            };
            let mut read = Vec::new();
            for text in listed(value) {
                let Some(text) = text.as_str() else {
                    self.wrong_type(key, "the path of a field or a list of paths");
                    return None;
                };
                read.push(self.path(key, text)?);
            }
            Some(read.into())
        };
        let (ids, addresses) = (paths("id", &[])?, paths("address", &[])?);
        Some(ClusterFields { ids, addresses, names: paths("name", &["metadata.name"])? })
    }

    fn kind(&mut self, tree: &Keys, source: Option<&str>) -> Option<KindRules> {
        self.known(tree, &[&["source", "observed", "conditions", "unseen", "rules"]]);
        let source = self.text(tree, "source").or(source);
        if source.is_none() {
            self.tell(Problem::Missing("source"));
        }
        let observed = match self.text(tree, "observed") {
            Some("none") => None,
            text => Some(self.path("observed", text.unwrap_or("status.observedGeneration"))?),
        };
        let conditions = self.text(tree, "conditions").unwrap_or("status.conditions");
        let conditions = self.path("conditions", conditions)?;
        let elements = Elements(self.path("conditions", "conditions")?);
        let unseen = match self.text(tree, "unseen") {
            Some("none") => None,
            Some(text) => Some(self.span("unseen", text)?),
            None => Some(FIRST_STATUS_TIMEOUT),
        };
        let branches = match tree.get("rules") {
            Some(Tree::Array(branches)) if !branches.is_empty() => branches,
            Some(_) => {
                self.wrong_type("rules", "a list of rules");
                return None;
            }
            None => {
                self.tell(Problem::Missing("rules"));
                return None;
            }
        };
        let mut read = Vec::with_capacity(branches.len());
        for (number, tree) in (1..).zip(branches) {
            self.rule = Some(number);
            match tree {
                Tree::Object(tree) => read.extend(self.branch(tree)),
                _ => self.wrong_type("a rule", "a map"),
            }
        }
        let branches: Box<[Branch]> = read.into();
        let source = source.unwrap_or_default().into();
        let asks_children = observed.iter().chain([&conditions]).any(Path::asks_children)
            || branches.iter().any(Branch::asks_children);
        let rules = KindRules { source, observed, conditions, elements, unseen, branches, asks_children };
        self.rule = rules.unreachable();
        if self.rule.is_some() {
            self.tell(Problem::Unreachable);
        }
        self.rule = None;
        Some(rules)
    }

    fn branch(&mut self, tree: &Keys) -> Option<Branch> {
        const OWN: [&str; 3] = ["status", "suspended", "message"];

        let status = match self.text(tree, "status") {
            Some("Current") => Status::Current,
            Some("InProgress") => Status::InProgress,
            Some("Failed") => Status::Failed,
            Some("Unknown") => Status::Unknown,
            Some(word) => {
                self.tell(Problem::Word { key: "status", word: word.to_owned(), known: STATUSES });
                return None;
            }
            None if tree.contains_key("status") => return None,
            None => {
                self.tell(Problem::Missing("status"));
                return None;
            }
        };
        let suspended = self.truth(tree, "suspended").unwrap_or(false);
        let tests = self.tests(tree, &OWN, 0)?;
        let field = tree.get("field").and_then(Tree::as_str).and_then(|text| Path::read(text).ok());
        let mut message = match self.text(tree, "message") {
            Some(text) => match Message::read(text, tests.iter().any(asks_condition)) {
                Ok(message) => message,
                Err(why) => {
                    self.tell(Problem::Message { key: "message", why });
                    return None;
                }
            },
            None => field.clone().map_or(Message::Condition, Message::Field),
        };
        let defaults: Vec<_> = tests.iter().filter_map(assumes).collect();
        message.assume(&defaults);
        Some(Branch { status, suspended, tests: tests.into(), message, reason: field })
    }

    /// Reads the tests of a map, all of which must hold; `own` are the map's other known keys. Returns `None` and
    /// records the error if one is invalid.
    fn tests(&mut self, tree: &Keys, own: &[&'static str], depth: usize) -> Option<Vec<Test>> {
        if depth > MAX_TEST_DEPTH {
            self.tell(Problem::TooDeep);
            return None;
        }
        let has = |key: &str| tree.contains_key(key);
        let mut known = vec![own, &HEADS[..]];
        if has("condition") {
            known.push(&OF_CONDITION);
        }
        if has("field") {
            known.push(&OF_FIELD);
        }
        if has("each") || has("some") {
            known.push(&["that"]);
        }
        self.known(tree, &known);
        for (one, other) in [("condition", "field"), ("each", "some")] {
            if has(one) && has(other) {
                self.tell(Problem::Both(one, other));
                return None;
            }
        }
        let mut tests = Vec::new();
        if has("condition") {
            tests.push(Test::Condition(self.condition(tree)?));
        }
        if has("field") {
            tests.push(Test::Field(self.field(tree)?));
        }
        if let Some(all) = tree.get("all") {
            tests.push(Test::All(self.several("all", all, depth)?.concat().into()));
        }
        for (key, make) in [("any", Test::Any as fn(_) -> _), ("none", Test::None as fn(_) -> _)] {
            if let Some(list) = tree.get(key) {
                tests.push(make(self.several(key, list, depth)?.into_iter().map(Into::into).collect()));
            }
        }
        for (key, make) in [("each", Test::Each as fn(_, _) -> _), ("some", Test::Some as fn(_, _) -> _)] {
            if has(key) {
                let path = self.path_at(tree, key)?;
                tests.push(make(path, self.that(tree, depth)?.into()));
            }
        }
        match tree.get("count") {
            Some(Tree::Object(count)) => tests.push(self.count(count, depth)?),
            Some(_) => self.wrong_type("count", "a map"),
            None => {}
        }
        Some(tests)
    }

    /// Reads a list of maps of tests, the value of `key`. Returns `None` and records the error if one is invalid.
    fn several(&mut self, key: &'static str, list: &Tree, depth: usize) -> Option<Vec<Vec<Test>>> {
        let Some(list) = list.as_array().filter(|list| !list.is_empty()) else {
            self.wrong_type(key, "a list of tests");
            return None;
        };
        list.iter().map(|tree| self.map_of_tests(key, tree, depth)).collect()
    }

    fn map_of_tests(&mut self, key: &'static str, tree: &Tree, depth: usize) -> Option<Vec<Test>> {
        let Some(tree) = tree.as_object() else {
            self.wrong_type(key, "made of maps of tests");
            return None;
        };
        let tests = self.tests(tree, &[], depth + 1)?;
        if tests.is_empty() {
            self.tell(Problem::Nothing(key));
            return None;
        }
        Some(tests)
    }

    fn that(&mut self, tree: &Keys, depth: usize) -> Option<Vec<Test>> {
        match tree.get("that") {
            Some(list @ Tree::Array(_)) => Some(self.several("that", list, depth)?.concat()),
            Some(tree) => self.map_of_tests("that", tree, depth),
            None => {
                self.tell(Problem::Missing("that"));
                None
            }
        }
    }

    fn condition(&mut self, tree: &Keys) -> Option<ConditionTest> {
        let mut is = Vec::new();
        for word in tree.get("is").into_iter().flat_map(listed) {
            is.push(match word {
                // Some people do not quote what YAML takes for a boolean.
                Tree::Bool(true) => "True".into(),
                Tree::Bool(false) => "False".into(),
                Tree::String(word) if matches!(word.as_str(), "True" | "False" | "Unknown") => {
                    word.as_str().into()
                }
                other => {
                    let word = other.to_string();
                    self.tell(Problem::Word { key: "is", word, known: CONDITION_STATUSES });
                    return None;
                }
            });
        }
        Some(ConditionTest {
            name: self.text(tree, "condition")?.into(),
            is: is.into(),
            reason: self.patterns(tree, "reason")?,
            text: self.patterns(tree, "text")?,
            observed: self.truth(tree, "observed").unwrap_or(false),
        })
    }

    fn field(&mut self, tree: &Keys) -> Option<FieldTest> {
        let path = self.path_at(tree, "field")?;
        let default = self.scalar(tree, "default")?;
        let other_default = self.scalar(tree, "otherDefault")?;
        let mut checks = Vec::new();
        for (key, make) in [("is", Check::Is as fn(_) -> _), ("not", Check::Not as fn(_) -> _)] {
            if tree.contains_key(key) {
                checks.push(make(self.words(tree, key)?));
            }
        }
        checks.extend(self.patterns(tree, "like")?.map(Check::Like));
        if tree.contains_key("exists") {
            checks.push(Check::Exists(self.truth(tree, "exists")?));
        }
        checks.extend(self.scalar(tree, "contains")?.map(Check::Contains));
        if tree.contains_key("matches") {
            checks.push(Check::Matches(self.path_at(tree, "matches")?, other_default.clone()));
        }
        checks.extend(self.bounds(tree, other_default.as_ref())?.into_iter().map(Check::Bound));
        if checks.is_empty() {
            self.tell(Problem::Nothing("field"));
            return None;
        }
        Some(FieldTest { path, default, checks: checks.into() })
    }

    fn count(&mut self, tree: &Keys, depth: usize) -> Option<Test> {
        self.known(tree, &[&["in", "that", "is", "otherDefault"], &BOUNDS.map(|(key, _)| key)]);
        if !tree.contains_key("in") {
            self.tell(Problem::Missing("in"));
            return None;
        }
        let path = self.path_at(tree, "in")?;
        let that = if tree.contains_key("that") { self.that(tree, depth)? } else { Vec::new() };
        let other_default = self.scalar(tree, "otherDefault")?;
        let mut bounds = self.bounds(tree, other_default.as_ref())?;
        if let Some(value) = tree.get("is") {
            bounds.push(self.bound("is", BoundOperator::Equal, value, other_default.as_ref())?);
        }
        if bounds.is_empty() {
            self.tell(Problem::Nothing("count"));
            return None;
        }
        Some(Test::Count(path, that.into(), bounds.into()))
    }

    fn bounds(&mut self, tree: &Keys, other_default: Option<&Scalar>) -> Option<Vec<Bound>> {
        let mut bounds = Vec::new();
        for (key, how) in BOUNDS {
            if let Some(value) = tree.get(key) {
                bounds.push(self.bound(key, how, value, other_default)?);
            }
        }
        Some(bounds)
    }

    fn bound(
        &mut self,
        key: &'static str,
        how: BoundOperator,
        value: &Tree,
        default: Option<&Scalar>,
    ) -> Option<Bound> {
        let other = match value {
            Tree::Number(value) => Other::Number(value.as_f64()?),
            Tree::String(text) => match number(text) {
                Some(number) => Other::Number(number),
                None => Other::Field(self.path(key, text)?, default.cloned()),
            },
            _ => {
                self.wrong_type(key, "a number or the path of a field");
                return None;
            }
        };
        Some(Bound { how, other })
    }

    fn words(&mut self, tree: &Keys, key: &'static str) -> Option<ComparedTexts> {
        let (mut plain, mut made) = (Vec::new(), Vec::new());
        for word in tree.get(key).into_iter().flat_map(listed) {
            let Some(word) = path::text(word.into()) else {
                self.wrong_type(key, "a scalar or a list of scalars");
                return None;
            };
            if !word.contains('{') {
                plain.push(word.into());
                continue;
            }
            match message::read(&word, false) {
                Ok(pieces) => made.push(pieces),
                Err(why) => {
                    self.tell(Problem::Message { key, why });
                    return None;
                }
            }
        }
        Some(ComparedTexts { plain: plain.into(), made: made.into() })
    }

    /// Reads a pattern or a list of patterns; `Some(None)` if the key is absent, `None`, with the error recorded, if it
    /// is invalid.
    fn patterns(&mut self, tree: &Keys, key: &'static str) -> Option<Option<Box<[Pattern]>>> {
        let Some(value) = tree.get(key) else { return Some(None) };
        let mut patterns = Vec::new();
        for pattern in listed(value) {
            let Some(text) = path::text(pattern.into()) else {
                self.wrong_type(key, "a pattern or a list of patterns");
                return None;
            };
            patterns.push(Pattern::read(&text));
        }
        Some(Some(patterns.into()))
    }

    /// Reads a scalar as text; `Some(None)` if the key is absent, `None`, with the error recorded, if it is invalid.
    fn scalar(&mut self, tree: &Keys, key: &'static str) -> Option<Option<Scalar>> {
        let Some(value) = tree.get(key) else { return Some(None) };
        let text = path::text(value.into());
        if text.is_none() {
            self.wrong_type(key, "a scalar");
        }
        Some(Some(text?.into()))
    }

    fn truth(&mut self, tree: &Keys, key: &'static str) -> Option<bool> {
        let value = tree.get(key)?.as_bool();
        if value.is_none() {
            self.wrong_type(key, "true or false");
        }
        value
    }

    fn path_at(&mut self, tree: &Keys, key: &'static str) -> Option<Path> {
        let text = self.text(tree, key)?;
        self.path(key, text)
    }

    fn path(&mut self, key: &str, text: &str) -> Option<Path> {
        match Path::read(text) {
            Ok(path) => Some(path),
            Err(why) => {
                self.tell(Problem::Path { key: key.to_owned(), text: text.to_owned(), why });
                None
            }
        }
    }

    fn span(&mut self, key: &'static str, text: &str) -> Option<SignedDuration> {
        let read = span(text);
        if read.is_none() {
            self.wrong_type(key, "a span of time such as 30s, 5m or 1h, or none");
        }
        read
    }
}

/// Iterates over a list, or over a single value as a list of one.
fn listed(tree: &Tree) -> std::slice::Iter<'_, Tree> {
    match tree {
        Tree::Array(list) => list.iter(),
        one => std::slice::from_ref(one).iter(),
    }
}

/// Parses a span of time such as `30s`, `5m`, `1h` or `2d`; `None` if it is invalid or negative.
pub(super) fn span(text: &str) -> Option<SignedDuration> {
    duration::parse_with_days(text).filter(|span| !span.is_negative())
}

/// Returns true if the test may find a condition, whose reason and message the rule's message can then contain.
fn asks_condition(test: &Test) -> bool {
    match test {
        Test::Condition(_) => true,
        Test::All(tests) | Test::Each(_, tests) | Test::Some(_, tests) => tests.iter().any(asks_condition),
        Test::Any(any) => any.iter().flatten().any(asks_condition),
        Test::Field(_) | Test::None(_) | Test::Count(..) => false,
    }
}

/// Returns the field of a test and its default for an absent field; `None` if the test has no default.
fn assumes(test: &Test) -> Option<(&Path, &str)> {
    match test {
        Test::Field(FieldTest { path, default, .. }) => Some((path, default.as_deref()?)),
        _ => None,
    }
}

fn is_group(group: &str) -> bool {
    let name = group.strip_prefix("*.").unwrap_or(group);
    let is_label = |label: &str| {
        !label.is_empty()
            && label.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-')
    };
    name.split('.').all(is_label)
}
