//! kapp's statements about the order of changes: the groups that an object's change belongs to, and rules about groups.

use std::fmt;

use taffrail_object::{GroupKind, ObjectKey, names};

use super::errors::ManifestErrorKind;
use super::near::shown;

/// The annotation that puts an object's change into a group.
pub(crate) const CHANGE_GROUP: &str = "kapp.k14s.io/change-group";

/// The annotation that states a rule about an object's change.
pub(crate) const CHANGE_RULE: &str = "kapp.k14s.io/change-rule";

/// The placeholders in names of groups.
pub(super) const PLACEHOLDERS: [&str; 6] =
    ["{api-group}", "{kind}", "{name}", "{namespace}", "{crd-group}", "{crd-kind}"];

/// The name of a group of changes, such as `apps.example.com/migrations-{namespace}`; its placeholders stand for parts of the
/// object that states it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeGroup(pub(super) String);

/// A rule about the change of an object: it comes before or after the changes of a group.
///
/// Formats as kapp reads it: `upsert after upserting apps.example.com/migrations`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRule {
    /// The change of the object to which the rule applies.
    pub action: ChangeAction,
    /// True if it comes before the changes of the group, false if it comes after them.
    pub is_before: bool,
    /// The changes of the group that count.
    pub target: ChangeAction,
    /// The group.
    pub group: ChangeGroup,
}

/// The sort of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeAction {
    /// The object is applied.
    Upsert,
    /// The object is deleted.
    Delete,
}

/// The reason why the name of a group does not name one on an object, as a clause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidGroup {
    /// A placeholder is unknown.
    #[error("{0} is not a placeholder")]
    Placeholder(String),
    /// A placeholder stands for nothing on this object.
    #[error("{0} is empty here")]
    Empty(&'static str),
    /// The name is not a qualified name of Kubernetes.
    #[error("it is not a qualified name")]
    Name,
}

impl InvalidGroup {
    /// Returns the error about a group that an annotation names.
    pub(super) fn of(&self, annotation: &'static str, group: &ChangeGroup) -> ManifestErrorKind {
        let group = shown(&group.0).into_owned();
        ManifestErrorKind::InvalidGroup { annotation, group, reason: self.to_string() }
    }
}

impl ChangeGroup {
    /// Returns the name without placeholders, on an object with this key that defines this kind.
    pub(crate) fn on(&self, key: &ObjectKey, defines: Option<&GroupKind>) -> Result<String, InvalidGroup> {
        let mut name = String::new();
        let mut rest = &*self.0;
        while let Some((before, inside)) = rest.split_once('{') {
            // An empty pair of braces is text, as in kapp, and the name is invalid by that.
            let Some((placeholder, after)) = inside.split_once('}').filter(|(inside, _)| !inside.is_empty())
            else {
                return Err(InvalidGroup::Name);
            };
            name.push_str(before);
            let known = PLACEHOLDERS.into_iter().find(|known| known[1..known.len() - 1] == *placeholder);
            let known = known.ok_or_else(|| InvalidGroup::Placeholder(format!("{{{placeholder}}}")))?;
            let value = match known {
                "{api-group}" => &key.group,
                "{kind}" => &key.kind,
                "{name}" => &key.name,
                "{namespace}" => &key.namespace,
                "{crd-group}" => defines.map_or("", |it| &it.group),
                _ => defines.map_or("", |it| &it.kind),
            };
            if value.is_empty() {
                return Err(InvalidGroup::Empty(known));
            }
            name.push_str(value);
            rest = after;
        }
        name.push_str(rest);
        if is_qualified(&name) { Ok(name) } else { Err(InvalidGroup::Name) }
    }
}

impl fmt::Display for ChangeGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ChangeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |action| match action {
            ChangeAction::Upsert => ("upsert", "upserting"),
            ChangeAction::Delete => ("delete", "deleting"),
        };
        let when = if self.is_before { "before" } else { "after" };
        write!(f, "{} {when} {} {}", words(self.action).0, words(self.target).1, self.group)
    }
}

/// Returns true for a name with or without a prefix, as keys of labels are, but of any length.
fn is_qualified(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let ends = [name.bytes().next(), name.bytes().next_back()];
    prefix.is_none_or(names::is_subdomain)
        && ends.iter().all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
