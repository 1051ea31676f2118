//! The interface of rules in foreign languages: CEL, kapp's `waitRules`, Lua.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value as Tree;
use taffrail_object::Object;
use taffrail_status::{ObjectContext, Verdict};

use crate::origin::Origin;

/// Rules for objects in a language other than Taffrail's YAML. They are consulted before rules in YAML of the same
/// origin.
pub trait Script: std::fmt::Debug + Send + Sync {
    /// Returns the origin of the rules.
    fn origin(&self) -> Origin;

    /// Lists the kinds, or patterns of kinds, that the rules are for, to show them.
    fn kinds(&self) -> Vec<ScriptKind>;

    /// Judges an object that is not being deleted; `None` if the rules do not decide.
    fn judge(&self, object: &Object<'_>, context: &ObjectContext<'_>, now: Timestamp) -> Option<Verdict>;

    /// Returns true if the rules are for objects of the kind of `object`. If not, they are not run and cost nothing.
    /// The default is true.
    fn is_about(&self, object: &Object<'_>) -> bool {
        let _ = object;
        true
    }

    /// Returns true if verdicts on objects of a kind may depend on the objects that name them as owner. The default is
    /// false.
    fn reads_children(&self, group: &str, kind: &str) -> bool {
        let _ = (group, kind);
        false
    }

    /// Judges as [`Script::judge`], and also returns the CPU time spent and if a limit stopped the rules; by default
    /// zero and false.
    fn judge_at_cost(&self, object: &Object<'_>, context: &ObjectContext<'_>, now: Timestamp) -> Judged {
        Judged { verdict: self.judge(object, context, now), ..Judged::default() }
    }
}

/// The verdict of rules in a foreign language, and its cost.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// The verdict; `None` if the rules do not decide.
    pub verdict: Option<Verdict>,
    /// The CPU time that the rules spent; zero if it is unknown.
    pub took: Duration,
    /// True if the rules were stopped because they exceeded a limit.
    pub was_stopped: bool,
}

/// The maximum length of a message of a script or expression, in bytes; a longer one is truncated and ends in `…`.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// Truncates a message from outside to [`MAX_MESSAGE_BYTES`] and appends `…`; returns a shorter one unchanged.
pub(crate) fn cut(mut message: String) -> String {
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        message.push('…');
        message.shrink_to_fit();
    }
    message
}

/// The field in which rules find the objects whose owner reference names this object.
pub(crate) const CHILDREN: &str = "children";

/// Adds the objects that name `object` as owner to it, as the field `children`, unless it has a field of that name or
/// they are unknown.
pub(crate) fn add_children(object: &mut Tree, context: &ObjectContext<'_>) {
    if let (Some(fields), Some(children)) = (object.as_object_mut(), context.children)
        && !fields.contains_key(CHILDREN)
    {
        fields.insert(CHILDREN.to_owned(), Tree::Array(children()));
    }
}

/// A kind that rules in a foreign language are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptKind {
    /// The group, or a pattern of groups with `*`.
    pub group: String,
    /// The kind, or a pattern of kinds with `*`.
    pub kind: String,
    /// The language: `cel`, `kapp` or `lua`.
    pub language: &'static str,
}

/// Returns the CPU time of this thread, `None` if the system does not report it. Scripts are charged by it. It can only
/// decide that a script is stopped or not run again; it does not influence verdicts otherwise.
#[cfg(unix)]
pub fn computed() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
    Some(Duration::new(seconds, nanoseconds))
}

/// Returns `None`: this system does not report the CPU time of a thread.
#[cfg(not(unix))]
pub fn computed() -> Option<Duration> {
    None
}

/// Returns the CPU time that this thread spent since [`computed`] returned `began`; zero if the system does not report
/// it.
pub(crate) fn computed_since(began: Option<Duration>) -> Duration {
    computed().zip(began).map_or(Duration::ZERO, |(now, began)| now.saturating_sub(began))
}
