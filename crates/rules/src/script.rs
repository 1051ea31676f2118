//! Rules in somebody else's form.

use jiff::Timestamp;
use serde_json::Value as Tree;
use taffrail_status::{Object, Surroundings, Verdict};

use crate::layer::Origin;

/// Rules in somebody else's form: they are asked before those of our own form that are of the same origin.
pub trait Script: std::fmt::Debug + Send + Sync {
    /// Whose they are.
    fn origin(&self) -> Origin;

    /// The kinds they are for.
    fn kinds(&self) -> Vec<ScriptKind>;

    /// What they say of an object that is not being deleted; `None`: nothing.
    fn judge(&self, object: &Object<'_>, surroundings: &Surroundings<'_>, now: Timestamp) -> Option<Verdict>;
}

/// By what name rules speak of the objects that name this one as their owner.
pub(crate) const CHILDREN: &str = "children";

/// Puts the children beside what the object says itself, unless it has a field of that name.
pub(crate) fn add_children(object: &mut Tree, surroundings: &Surroundings<'_>) {
    if let (Some(fields), Some(children)) = (object.as_object_mut(), surroundings.children)
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
