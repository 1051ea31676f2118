//! Rules in somebody else's form.

use jiff::Timestamp;
use taffrail_status::{Object, Verdict};

use crate::layer::Origin;

/// Rules in somebody else's form: they are asked before those of our own form that are of the same origin.
pub trait Script: std::fmt::Debug + Send + Sync {
    /// Whose they are.
    fn origin(&self) -> Origin;

    /// The kinds they are for.
    fn kinds(&self) -> Vec<ScriptKind>;

    /// What they say of an object that is not being deleted; `None`: nothing.
    fn judge(&self, object: &Object<'_>, now: Timestamp) -> Option<Verdict>;
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
