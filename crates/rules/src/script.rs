//! Rules in somebody else's form.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value as Tree;
use taffrail_object::Object;
use taffrail_status::{ObjectContext, Verdict};

use crate::layer::Origin;

/// Rules in somebody else's form: they are asked before those of our own form that are of the same origin.
pub trait Script: std::fmt::Debug + Send + Sync {
    /// Whose they are.
    fn origin(&self) -> Origin;

    /// The kinds they are for.
    fn kinds(&self) -> Vec<ScriptKind>;

    /// What they say of an object that is not being deleted; `None`: nothing.
    fn judge(&self, object: &Object<'_>, context: &ObjectContext<'_>, now: Timestamp) -> Option<Verdict>;

    /// Whether they are for objects of this kind. What is for no kind is not asked and costs nothing.
    fn is_about(&self, object: &Object<'_>) -> bool {
        let _ = object;
        true
    }

    /// Returns true if what they say of a kind may depend on the children of its objects.
    fn reads_children(&self, group: &str, kind: &str) -> bool {
        let _ = (group, kind);
        false
    }

    /// As [`Script::judge`], with what it has cost.
    fn judge_at_cost(&self, object: &Object<'_>, context: &ObjectContext<'_>, now: Timestamp) -> Judged {
        Judged { verdict: self.judge(object, context, now), ..Judged::default() }
    }
}

/// What rules in somebody else's form say of an object, and what it has cost.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// What they say; `None`: nothing.
    pub verdict: Option<Verdict>,
    /// So long it has computed, as far as that is known.
    pub took: Duration,
    /// Whether they were stopped because they used more than they may.
    pub was_stopped: bool,
}

/// A message from outside is kept so long, in bytes.
const LONGEST_MESSAGE: usize = 4 << 10;

/// A message from outside, cut where it is too long to be kept for each of many objects.
pub(crate) fn cut(mut message: String) -> String {
    if message.len() > LONGEST_MESSAGE {
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
        message.push('…');
        message.shrink_to_fit();
    }
    message
}

/// By what name rules speak of the objects that name this one as their owner.
pub(crate) const CHILDREN: &str = "children";

/// Puts the children beside what the object says itself, unless it has a field of that name.
pub(crate) fn add_children(object: &mut Tree, context: &ObjectContext<'_>) {
    if let (Some(fields), Some(children)) = (object.as_object_mut(), context.children)
        && !fields.contains_key(CHILDREN)
    {
        fields.insert(CHILDREN.to_owned(), Tree::Array(children()));
    }
}

/// A kind for which there are rules in somebody else's form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptKind {
    /// The group, as a pattern.
    pub group: String,
    /// The kind, as a pattern.
    pub kind: String,
    /// In which language: `cel`, `kapp`, `lua`.
    pub language: &'static str,
}

/// What this thread has computed so far, where the system tells. Scripts are charged by it; no verdict depends on it but that a
/// script was stopped or not asked any more.
#[cfg(unix)]
pub fn computed() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
    Some(Duration::new(seconds, nanoseconds))
}

/// What this thread has computed so far: the system does not tell.
#[cfg(not(unix))]
pub fn computed() -> Option<Duration> {
    None
}

/// How long this thread has computed since it had computed so much.
pub(crate) fn computed_since(began: Option<Duration>) -> Duration {
    computed().zip(began).map_or(Duration::ZERO, |(now, began)| now.saturating_sub(began))
}
