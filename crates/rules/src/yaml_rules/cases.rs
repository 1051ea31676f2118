//! Test cases for rules: objects with the verdicts that the rules must return.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value as Tree, json};
use taffrail_object::{Object, yaml};
use taffrail_status::{ObjectContext, Rules, Status, Verdict};

use super::error::{Problem, RuleFileError};
use super::read::span;
use crate::set::RuleSet;

/// The time at which cases are judged, and from which `age` is counted back.
const NOW: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// The age of an object unless its case states another.
const DEFAULT_AGE: SignedDuration = SignedDuration::from_hours(1);

const KEYS: [&str; 8] = ["kind", "name", "object", "children", "status", "message", "suspended", "age"];

/// A test case: an object, and the verdict that the rules must return for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The kind of the object.
    pub kind: String,
    /// The name of the case: the behaviour that it shows.
    pub name: String,
    /// The object.
    pub object: Tree,
    /// The objects whose owner reference names this object.
    pub children: Vec<Tree>,
    /// The expected status.
    pub status: Status,
    /// A text that the message must contain; `None` if any message is right.
    pub message: Option<String>,
    /// True if the verdict must mark the object as suspended; false if it must not.
    pub suspended: bool,
    /// The age of the object, unless that has a creation time of its own.
    pub age: SignedDuration,
}

/// The cases of a file, and the errors in it.
pub type Cases = (Vec<Case>, Vec<RuleFileError>);

/// Reads a file of cases, which is a list or empty; returns the readable cases and the errors.
pub fn read_cases(file: &str, text: &str) -> Cases {
    let (mut cases, mut errors) = (Vec::new(), Vec::new());
    let fault = |rule, problem| RuleFileError { file: file.to_owned(), kind: None, rule, problem };
    let list = match yaml::read_strict::<Tree>(text) {
        Ok(Tree::Array(list)) => list,
        Ok(Tree::Null) => Vec::new(),
        Ok(_) => {
            let problem = Problem::WrongType { key: "the top level".to_owned(), expected: "a list of cases" };
            return (cases, vec![fault(None, problem)]);
        }
        Err(error) => return (cases, vec![fault(None, Problem::Yaml(error))]),
    };
    for (number, tree) in (1..).zip(list) {
        let read = match tree {
            Tree::Object(tree) => case(tree),
            _ => Err(Problem::WrongType { key: "a case".to_owned(), expected: "a map" }),
        };
        match read {
            Ok(case) => cases.push(case),
            Err(problem) => errors.push(fault(Some(number), problem)),
        }
    }
    (cases, errors)
}

fn case(mut tree: Map<String, Tree>) -> Result<Case, Problem> {
    if let Some(key) = tree.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(Problem::UnknownKey { key: key.clone(), known: KEYS.to_vec() });
    }
    let text = |key: &'static str| match tree.get(key) {
        Some(Tree::String(text)) => Ok(Some(text.clone())),
        None => Ok(None),
        Some(_) => Err(Problem::WrongType { key: key.to_owned(), expected: "a text" }),
    };
    let must = |key: &'static str| text(key)?.ok_or(Problem::Missing(key));
    let status = must("status")?;
    let status = status.parse().map_err(|_| Problem::Word {
        key: "status",
        word: status,
        known: "Current, InProgress, Failed, Unknown, Terminating",
    })?;
    let suspended = match tree.get("suspended") {
        None => false,
        Some(Tree::Bool(truth)) => *truth,
        Some(_) => {
            return Err(Problem::WrongType { key: "suspended".to_owned(), expected: "true or false" });
        }
    };
    let age = match text("age")? {
        None => DEFAULT_AGE,
        Some(text) => span(&text).ok_or_else(|| Problem::WrongType {
            key: "age".to_owned(),
            expected: "a span of time such as 30s, 5m or 1h",
        })?,
    };
    let (kind, name, message) = (must("kind")?, must("name")?, text("message")?);
    let children = match tree.remove("children") {
        None => Vec::new(),
        Some(Tree::Array(children)) => children,
        Some(_) => {
            return Err(Problem::WrongType { key: "children".to_owned(), expected: "a list of objects" });
        }
    };
    let object = tree.remove("object").ok_or(Problem::Missing("object"))?;
    Ok(Case { kind, name, object, children, status, message, suspended, age })
}

impl Case {
    /// Judges the object of the case by the rules, at a fixed time at which the object has the age of the case, unless
    /// it has a creation time of its own.
    ///
    /// # Errors
    /// If it is not a valid object, or of another kind than the case: the reason, for people.
    pub fn judge(&self, rules: &RuleSet) -> Result<Verdict, String> {
        let mut tree = self.object.clone();
        if let Some(object) = tree.as_object_mut() {
            let metadata = object.entry("metadata").or_insert_with(|| json!({}));
            if let (Some(metadata), Ok(created)) = (metadata.as_object_mut(), NOW.checked_sub(self.age)) {
                metadata.entry("creationTimestamp").or_insert_with(|| json!(created.to_string()));
            }
        }
        let object = Object::new((&tree).into()).map_err(|error| error.to_string())?;
        if object.kind() != self.kind {
            return Err(format!("the object of the case has the kind {}, not {}", object.kind(), self.kind));
        }
        let children = || self.children.clone();
        let context = ObjectContext { children: Some(&children), ..ObjectContext::default() };
        rules.judge(&object, &context, NOW).map_err(|error| error.to_string())
    }

    /// Describes how a verdict differs from the expected one; `None` if status, suspension and the required part of the
    /// message agree.
    pub fn differs(&self, verdict: &Verdict) -> Option<String> {
        let told = |status: Status, suspended: bool, message: &str| {
            let suspended = if suspended { " (suspended)" } else { "" };
            let message = if message.is_empty() { String::new() } else { format!(", \"{message}\"") };
            format!("{status}{suspended}{message}")
        };
        let message = self.message.as_deref();
        let holds = verdict.status == self.status
            && verdict.suspended == self.suspended
            && message.is_none_or(|part| verdict.message.contains(part));
        let shown = if message.is_some() { &*verdict.message } else { "" };
        let wanted = told(self.status, self.suspended, message.unwrap_or_default());
        let found = told(verdict.status, verdict.suspended, shown);
        (!holds).then(|| format!("the verdict is {found}, not {wanted} (by {})", verdict.rule))
    }
}
