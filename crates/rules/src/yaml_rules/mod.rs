//! Rules in YAML: a status for an object by its conditions and fields.
//!
//! A file has the rules of one API group, or of all groups with the same ending (`*.example.com`). Each kind has
//! branches; the first one whose tests all hold decides. A file may also name kinds whose objects stand for clusters.
//! [`Layer`](crate::Layer) reads such files.

mod cases;
mod clusters;
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
use taffrail_status::assess::{Costs, elapsed};
use taffrail_status::{Condition, ConditionType, FIRST_STATUS_RULE, Status, Verdict};

pub use cases::{Case, Cases, read_cases};
pub(crate) use clusters::ClusterFields;
pub use error::{Problem, RuleFileError};
pub use message::MessageError;
pub use path::PathError;
pub(crate) use read::read;

use message::{Message, TestMatches};
use path::Path;
use pattern::Pattern;
use test::{Elements, Scope, Test};

/// The rules of one file: for one API group, or for all groups with the same ending.
#[derive(Debug, Clone, Default)]
pub struct GroupRules {
    /// The group, or `*.` and the ending of the groups.
    pub(crate) group: Box<str>,
    /// The rules by kind; `*` are those for all other kinds.
    pub(crate) kinds: FxHashMap<Box<str>, Arc<KindRules>>,
    /// The kinds that are patterns, the longest first.
    patterns: Vec<(Pattern, Box<str>)>,
    /// The kinds whose objects stand for clusters.
    pub(crate) clusters: FxHashMap<Box<str>, ClusterFields>,
}

/// The rules for one kind.
#[derive(Debug)]
pub struct KindRules {
    /// The URL of the documentation of the kind's fields.
    source: Box<str>,
    observed: Option<Path>,
    conditions: Path,
    /// The path to the conditions inside elements of lists.
    elements: Elements,
    unseen: Option<SignedDuration>,
    branches: Box<[Branch]>,
    /// True if a path of the rules leads to the objects whose owner reference names this object.
    asks_children: bool,
}

/// A branch: a status, and the tests that must hold for it.
#[derive(Debug)]
struct Branch {
    status: Status,
    suspended: bool,
    tests: Box<[Test]>,
    message: Message,
    /// The field whose value becomes the reason if no test found a condition with a reason.
    reason: Option<Path>,
}

/// The result of judging an object by rules in YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// A branch decided; its number, from 1, and its verdict.
    Branch(usize, Verdict),
    /// The controller has not seen the object's newest generation, or has not written a status yet.
    Early(Verdict),
    /// No branch holds; the rules of the next origin decide.
    Undecided,
}

impl GroupRules {
    /// Returns the rules for a kind, and the name under which they are filed: the kind, a pattern, or `*`. `None` if
    /// there are none.
    pub(crate) fn kind(&self, kind: &str) -> Option<(&str, &Arc<KindRules>)> {
        let alike = || self.patterns.iter().find(|(pattern, _)| pattern.matches(kind));
        let found = self
            .kinds
            .get_key_value(kind)
            .or_else(|| self.kinds.get_key_value(&alike()?.1))
            .or_else(|| self.kinds.get_key_value("*"))?;
        Some((found.0, found.1))
    }

    /// Adds rules for a kind; returns the rules that it had before, if any.
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
    /// Returns the URL of the documentation of the kind's fields.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Lists the branches in their order, each with its status, and true if its verdict marks the object as suspended.
    pub fn branches(&self) -> impl ExactSizeIterator<Item = (Status, bool)> + '_ {
        self.branches.iter().map(|branch| (branch.status, branch.suspended))
    }

    /// Returns a value for each branch in their order: true if its tests hold, whatever the branches before it decide.
    pub fn holding(&self, object: &Object<'_>) -> Vec<bool> {
        let scope = self.scope(object);
        let holds =
            |branch: &Branch| test::hold(&branch.tests, &scope, &self.elements, &mut TestMatches::default());
        self.branches.iter().map(holds).collect()
    }

    fn scope<'s, 'a>(&'s self, object: &Object<'a>) -> Scope<'s, 'a> {
        let root = object.root();
        Scope::new(root, root, &self.conditions, generation(object))
    }

    /// Returns the age up to which an object without a status is in progress: the kind's `unseen`, or 5 minutes. `None`
    /// if the file says `unseen: none`, as the controller never writes a status.
    pub fn unseen(&self) -> Option<SignedDuration> {
        self.unseen
    }

    pub(crate) fn asks_children(&self) -> bool {
        self.asks_children
    }

    /// Returns the number, from 1, of the branch behind the first one without tests, which no object can reach; `None`
    /// if all can be reached.
    pub(crate) fn unreachable(&self) -> Option<usize> {
        let last = self.branches.iter().position(|branch| branch.tests.is_empty())?;
        (last + 1 < self.branches.len()).then_some(last + 2)
    }

    /// Judges an object that is not being deleted: by its lack of a status, then by the generation that its controller
    /// has observed, then by the first branch whose tests hold. A verdict of a branch has an empty rule name, which the
    /// caller sets.
    pub(crate) fn judge(&self, object: &Object<'_>, now: Timestamp, costs: Option<&Costs>) -> Ruling {
        let root = object.root();
        if let Some(unseen) = self.unseen
            && let Some(verdict) = first_status(object, now, unseen, costs)
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
            let mut found = TestMatches::default();
            if test::hold(&branch.tests, &scope, &self.elements, &mut found) {
                return Ruling::Branch(number, branch.verdict(root, &found));
            }
        }
        Ruling::Undecided
    }
}

impl Branch {
    fn asks_children(&self) -> bool {
        self.tests.iter().any(|test| test.asks_children(false)) || self.message.asks_children()
    }

    fn verdict(&self, object: Value<'_>, found: &TestMatches<'_>) -> Verdict {
        let message = self.message.say(object, found);
        let reason = || self.reason(object, found);
        let has_condition = matches!(self.status, Status::InProgress | Status::Failed);
        let reason = has_condition.then(reason).flatten();
        Verdict { suspended: self.suspended, ..verdict(self.status, message, reason, String::new()) }
    }

    /// Returns the reason for a verdict: that of the found condition, or, if it has none, the value of a field; `None`
    /// if it is not one word of letters and digits that begins with a capital.
    fn reason(&self, object: Value<'_>, found: &TestMatches<'_>) -> Option<String> {
        let of_condition = found.condition.and_then(|[_, _, reason, ..]| reason);
        let value = of_condition.or_else(|| self.reason.as_ref()?.first(object))?;
        let text = value.as_str()?;
        let is_word = text.starts_with(|first: char| first.is_ascii_uppercase())
            && text.chars().all(|character| character.is_ascii_alphanumeric());
        is_word.then(|| text.into_owned())
    }
}

/// Returns the verdict InProgress for an object without a status that is younger than `patience`, as its controller may
/// still write one. `None` if it has a status, is older, or has no creation time. Records in `costs` the time at which
/// it becomes that old.
pub(crate) fn first_status(
    object: &Object<'_>,
    now: Timestamp,
    patience: SignedDuration,
    costs: Option<&Costs>,
) -> Option<Verdict> {
    if has_status(object) || elapsed(created(object)?, patience, now, costs) >= patience {
        return None;
    }
    let message = "no controller has written the object's status yet".to_owned();
    let (reason, rule) = ("NoStatus".to_owned(), FIRST_STATUS_RULE.to_owned());
    Some(verdict(Status::InProgress, message, Some(reason), rule))
}

pub(crate) fn has_status(object: &Object<'_>) -> bool {
    object.root().get("status").is_some_and(path::is_something)
}

fn generation(object: &Object<'_>) -> Option<i64> {
    object.metadata()?.get("generation")?.as_i64()
}

fn created(object: &Object<'_>) -> Option<Timestamp> {
    object.metadata()?.get("creationTimestamp")?.as_str()?.parse().ok()
}

/// Returns kstatus' verdict for an object whose controller has not seen its newest generation.
pub(crate) fn not_observed(kind: &str, generation: i64, observed: i64) -> Verdict {
    let message = format!("{kind} generation is {generation}, but latest observed generation is {observed}");
    let (reason, rule) = ("LatestGenerationNotObserved".to_owned(), "generic/generation".to_owned());
    verdict(Status::InProgress, message, Some(reason), rule)
}

/// Builds a verdict with kstatus' condition for its status: Reconciling for InProgress, Stalled for Failed, none for
/// others. The condition's reason is `reason`, or the status if that is `None` or empty.
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
