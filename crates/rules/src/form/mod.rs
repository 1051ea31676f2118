//! Rules in YAML: what of an object's conditions and fields means which status.
//!
//! A file has the rules of one API group, or of all groups that end alike (`*.example.com`). Each kind has branches; the first
//! whose tests all hold decides. [`Layer`](crate::Layer) reads such files.

mod cases;
mod error;
mod message;
mod path;
mod pattern;
mod read;
mod test;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashMap;
use taffrail_object::Object;
use taffrail_object::json::Value;
use taffrail_status::{Condition, ConditionType, FIRST_STATUS_RULE, Status, Verdict};

pub use cases::{Case, Cases, read_cases};
pub use error::{FormError, Problem};
pub use message::MessageError;
pub use path::PathError;
pub(crate) use read::read;

use message::Message;
use path::Path;
use pattern::Pattern;
use test::{Elements, Found, Scope, Test};

/// The rules of a file: those of one API group, or of all groups that end alike.
#[derive(Debug, Clone, Default)]
pub struct GroupRules {
    /// The group, or `*.` and how the groups end.
    pub(crate) group: Box<str>,
    /// By kind; `*` are those of all others.
    pub(crate) kinds: FxHashMap<Box<str>, Arc<KindRules>>,
    /// The names among them that are patterns, the longest first.
    patterns: Vec<(Pattern, Box<str>)>,
}

/// The rules of a kind.
#[derive(Debug)]
pub struct KindRules {
    /// Where the meaning of its fields is documented.
    source: Box<str>,
    observed: Option<Path>,
    conditions: Path,
    /// Where the conditions of elements of lists are.
    elements: Elements,
    unseen: Option<SignedDuration>,
    branches: Box<[Branch]>,
    /// Whether a branch is about the objects that name this one as their owner.
    asks_children: bool,
}

/// A branch: a status, and when it is that.
#[derive(Debug)]
struct Branch {
    status: Status,
    suspended: bool,
    tests: Box<[Test]>,
    message: Message,
    /// The field whose value may say in one word why.
    reason: Option<Path>,
}

/// What rules of this form say of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// A branch decided; its number, from 1.
    Branch(usize, Verdict),
    /// It was not looked at since it changed, or not at all.
    Early(Verdict),
    /// Nothing: whoever comes next shall say.
    Undecided,
}

impl GroupRules {
    /// The rules of a kind, under the name they stand there.
    pub(crate) fn kind(&self, kind: &str) -> Option<(&str, &Arc<KindRules>)> {
        let alike = || self.patterns.iter().find(|(pattern, _)| pattern.matches(kind));
        let found = self
            .kinds
            .get_key_value(kind)
            .or_else(|| self.kinds.get_key_value(&alike()?.1))
            .or_else(|| self.kinds.get_key_value("*"))?;
        Some((found.0, found.1))
    }

    /// Adds rules for a kind; those it had before are given back.
    pub(crate) fn add(&mut self, kind: &str, rules: Arc<KindRules>) -> Option<Arc<KindRules>> {
        let before = self.kinds.insert(kind.into(), rules);
        if before.is_none() && kind != "*" && kind.contains('*') {
            self.patterns.push((Pattern::read(kind), kind.into()));
            self.patterns.sort_by_key(|(_, name)| std::cmp::Reverse(name.len()));
        }
        before
    }
}

impl KindRules {
    /// Where the meaning of the fields is documented: an address.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The statuses of the branches in their order, and whether that is for something suspended.
    pub fn branches(&self) -> impl ExactSizeIterator<Item = (Status, bool)> + '_ {
        self.branches.iter().map(|branch| (branch.status, branch.suspended))
    }

    /// Whether the tests of each branch hold, each asked for itself.
    pub fn holding(&self, object: &Object<'_>) -> Vec<bool> {
        let scope = self.scope(object);
        let holds =
            |branch: &Branch| test::hold(&branch.tests, &scope, &self.elements, &mut Found::default());
        self.branches.iter().map(holds).collect()
    }

    fn scope<'s, 'a>(&'s self, object: &Object<'a>) -> Scope<'s, 'a> {
        let root = object.root();
        Scope::new(root, root, &self.conditions, generation(object))
    }

    /// How long an object without status is in progress; `None` where nobody writes one.
    pub fn unseen(&self) -> Option<SignedDuration> {
        self.unseen
    }

    pub(crate) fn asks_children(&self) -> bool {
        self.asks_children
    }

    /// The number of the first branch that no object can reach, from 1.
    pub(crate) fn unreachable(&self) -> Option<usize> {
        let last = self.branches.iter().position(|branch| branch.tests.is_empty())?;
        (last + 1 < self.branches.len()).then_some(last + 2)
    }

    /// What they say of an object that is not being deleted; the rule of a branch's verdict is empty.
    pub(crate) fn judge(&self, object: &Object<'_>, now: Timestamp) -> Ruling {
        let root = object.root();
        if let Some(unseen) = self.unseen
            && let Some(verdict) = first_status(object, now, unseen)
        {
            return Ruling::Early(verdict);
        }
        if let Some(generation) = generation(object)
            && let Some(observed) =
                self.observed.as_ref().and_then(|path| path.first(root)).and_then(Value::as_i64)
            && generation != observed
        {
            return Ruling::Early(not_observed(object.kind(), generation, observed));
        }
        let scope = self.scope(object);
        for (number, branch) in (1..).zip(&self.branches) {
            let mut found = Found::default();
            if test::hold(&branch.tests, &scope, &self.elements, &mut found) {
                return Ruling::Branch(number, branch.verdict(root, &found));
            }
        }
        Ruling::Undecided
    }
}

impl Branch {
    fn verdict(&self, object: Value<'_>, found: &Found<'_>) -> Verdict {
        let message = self.message.say(object, found);
        let reason = || self.reason(object, found);
        let has_condition = matches!(self.status, Status::InProgress | Status::Failed);
        let reason = has_condition.then(reason).flatten();
        Verdict { suspended: self.suspended, ..verdict(self.status, message, reason, String::new()) }
    }

    /// One word: the condition's reason, or the value of a field that is one.
    fn reason(&self, object: Value<'_>, found: &Found<'_>) -> Option<String> {
        let of_condition = found.condition.and_then(|[_, _, reason, ..]| reason);
        let value = of_condition.or_else(|| self.reason.as_ref()?.first(object))?;
        let text = value.as_str()?;
        let is_word = text.starts_with(|first: char| first.is_ascii_uppercase())
            && text.chars().all(|character| character.is_ascii_alphanumeric());
        is_word.then(|| text.into_owned())
    }
}

/// The verdict on an object that is so young that its controller may not have written a status yet, and has not.
pub(crate) fn first_status(object: &Object<'_>, now: Timestamp, patience: SignedDuration) -> Option<Verdict> {
    if has_status(object) || age(object, now)? >= patience {
        return None;
    }
    let message = "no controller has written a status yet".to_owned();
    let (reason, rule) = ("NoStatus".to_owned(), FIRST_STATUS_RULE.to_owned());
    Some(verdict(Status::InProgress, message, Some(reason), rule))
}

pub(crate) fn has_status(object: &Object<'_>) -> bool {
    object.root().get("status").is_some_and(path::is_something)
}

fn generation(object: &Object<'_>) -> Option<i64> {
    object.metadata()?.get("generation")?.as_i64()
}

fn age(object: &Object<'_>, now: Timestamp) -> Option<SignedDuration> {
    let created = object.metadata()?.get("creationTimestamp")?.as_str()?;
    Some(now.duration_since(created.parse().ok()?))
}

/// The verdict on an object whose controller has not seen its newest generation, in the words of kstatus.
pub(crate) fn not_observed(kind: &str, generation: i64, observed: i64) -> Verdict {
    let message = format!("{kind} generation is {generation}, but latest observed generation is {observed}");
    let (reason, rule) = ("LatestGenerationNotObserved".to_owned(), "generic/generation".to_owned());
    verdict(Status::InProgress, message, Some(reason), rule)
}

/// A verdict with the standard condition that follows from its status; its reason is the status where there is no better.
pub(crate) fn verdict(status: Status, message: String, reason: Option<String>, rule: String) -> Verdict {
    let condition = match status {
        Status::InProgress => ConditionType::Reconciling,
        Status::Failed => ConditionType::Stalled,
        _ => return Verdict::new(status, message, rule),
    };
    let reason = reason.filter(|reason| !reason.is_empty()).map_or(status.as_str().into(), Into::into);
    let condition = Condition { condition, reason, message: message.clone().into() };
    Verdict { conditions: vec![condition], ..Verdict::new(status, message, rule) }
}
