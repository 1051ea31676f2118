//! Finds the kinds that a word of the command line names, without a server.

use std::collections::BTreeSet;

use taffrail_apps::{Objects, Snapshot};
use taffrail_object::GroupKind;
use taffrail_object::kinds::{listable, names_kind};
use taffrail_status::ClusterState as _;

use crate::command_error::CommandError;

/// Maximum number of kinds up to which a hint names all of them; with more it names none but similar ones.
const MAX_NAMED: usize = 12;

/// Returns the kinds that `word` names among those of a dump: of its objects, its CustomResourceDefinitions and its
/// recorded discovery. If none of these matches, returns the built-in kinds that it names.
pub(super) fn called(snapshot: &Snapshot, word: &str) -> Vec<GroupKind> {
    let mut kinds: BTreeSet<GroupKind> = snapshot.all().map(|observed| observed.key.group_kind()).collect();
    kinds.extend(
        snapshot
            .kinds()
            .into_iter()
            .flat_map(|catalog| catalog.iter().map(|served| GroupKind::new(&*served.group, &*served.kind))),
    );
    let definitions = snapshot.of_kind("apiextensions.k8s.io", "CustomResourceDefinition", None);
    kinds.extend(definitions.map(|observed| {
        let field = |path: &[&str]| observed.object.text(path).into_owned();
        GroupKind::new(field(&["spec", "group"]), field(&["spec", "names", "kind"]))
    }));
    let is_meant = |kind: &GroupKind| names_kind(word, &kind.group, &kind.kind);
    let found: Vec<GroupKind> = kinds.into_iter().filter(is_meant).collect();
    match found.is_empty() {
        true => listable().map(|(group, kind)| GroupKind::new(group, kind)).filter(is_meant).collect(),
        false => found,
    }
}

/// Returns the error for a word that names no kind. Its hint names up to three similar kinds of `known`; or all of
/// these if they are at most [`MAX_NAMED`]; or how kinds are written.
pub(in crate::commands) fn unknown(word: &str, known: impl IntoIterator<Item = String>) -> CommandError {
    let known: BTreeSet<String> = known.into_iter().map(|kind| kind.to_lowercase()).collect();
    let complaint = CommandError::usage(format!("there is no kind called '{word}'"));
    let near = known.iter().filter(|kind| strsim::jaro_winkler(kind, &word.to_lowercase()) > 0.85);
    let near: Vec<&str> = near.map(String::as_str).take(3).collect();
    if !near.is_empty() {
        return complaint.hint(format!("did you mean {}?", near.join(", ")));
    }
    if known.is_empty() || known.len() > MAX_NAMED {
        return complaint
            .hint("kinds are written as kubectl takes them: deploy, deployments.apps, Certificate");
    }
    let named: Vec<&str> = known.iter().map(String::as_str).collect();
    complaint.hint(format!("the known kinds are {}", named.join(", ")))
}
