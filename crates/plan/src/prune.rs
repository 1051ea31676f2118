//! Decides which objects of an inventory are deleted, since the set does not declare them any more.
//!
//! An inventory is what an earlier sync applied: [`InventoryEntry`]. Ours hold UIDs, those of other tools names. The object must
//! bear the tool's mark for that app in any case: who may write an inventory can list objects there that he may not delete.
//! Deleted is always the UID that was just read, never a name: an object that somebody deleted and created again stays.
//!
//! A dangerous deletion is [guarded](Guard), and happens only if the user allows it. A set that declares nothing at all
//! deletes nothing: a source that fails looks like that.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};
use taffrail_object::{InventoryEntry, ObjectKey};

use crate::manifests::{ApplyMode, Removal, SyncOptions};

/// The number of objects from which on the deletion of more than half of an inventory is guarded.
pub const MASS_FROM: usize = 10;

/// The live object of an inventory's entry, and what is known about it.
#[derive(Debug, Clone)]
pub struct LiveEntry<'a> {
    /// Its `metadata`.
    pub metadata: &'a Map<String, Value>,
    /// True if it bears the mark of the tool and app whose inventory it is.
    pub has_mark: bool,
    /// The other inventory that claims it, in words; `None` if there is none.
    pub claimed_by: Option<String>,
    /// The objects in a Namespace, or of the kind of a CustomResourceDefinition, which do not go with this set; `None` if they
    /// are not known.
    pub content: Option<LiveContent>,
}

/// Objects that would be deleted together with another one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LiveContent {
    /// Their number.
    pub count: usize,
    /// True if there are more than were counted.
    pub is_more: bool,
    /// One of them.
    pub example: Option<ObjectKey>,
}

/// The objects that may be deleted, and the consent that there is.
#[derive(Debug, Clone, Copy)]
pub struct PruneInput<'a> {
    /// The entries, each with its live object.
    pub entries: &'a [(InventoryEntry, Option<LiveEntry<'a>>)],
    /// The number of objects that the set declares.
    pub declared: usize,
    /// The number of those that the inventory holds, too.
    pub kept: usize,
    /// The UIDs of the live objects that the set declares, under whatever group or version.
    pub declared_uids: &'a BTreeSet<String>,
    /// True if the whole set is removed. Then the number of objects needs no consent, and what an object states about its
    /// deletion with the app counts, instead of what it states about its prune.
    pub destroys: bool,
    /// True if guarded objects are deleted, too.
    pub allows_guarded: bool,
    /// The objects whose deletion a person confirmed.
    pub confirmed: &'a BTreeSet<ObjectKey>,
}

/// The decision about an entry of an inventory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "decision", rename_all = "camelCase")]
pub enum PruneDecision {
    /// The object with this UID is deleted.
    Delete {
        /// The UID.
        uid: String,
    },
    /// The object is being deleted already.
    Terminating,
    /// There is no such object any more: the entry is dropped.
    Gone,
    /// The object stays, and nobody may delete it by this inventory: the entry is dropped.
    LetGo(LetGoReason),
    /// The object stays for now, and the entry too.
    Keep(KeepReason),
}

/// The reason why an object leaves an inventory without being deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "camelCase")]
pub enum LetGoReason {
    /// The object was deleted and created again by another client.
    #[error("the object was deleted and created again by somebody else")]
    Recreated,
    /// The object has the name of an entry, but not the mark of its app.
    #[error("the object does not bear the mark of this app")]
    NoMark,
    /// The set declares the object under another group or version.
    #[error("the manifests declare the object under another group or version")]
    StillDeclared,
    /// Another inventory claims the object.
    #[error("{by} claims the object")]
    Claimed {
        /// The inventory, in words.
        by: String,
    },
    /// The object says that it stays when it is not declared any more, and belongs to nobody then.
    #[error("{stated_by} keeps the object")]
    Detached {
        /// The annotation.
        stated_by: &'static str,
    },
}

/// The reason why an object stays, and its entry too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "camelCase")]
pub enum KeepReason {
    /// An annotation or label says that the object must not be deleted.
    #[error("{stated_by} forbids to delete the object")]
    Forbidden {
        /// The annotation or label.
        stated_by: &'static str,
    },
    /// A person must confirm the deletion.
    #[error("{stated_by} demands that somebody confirms the deletion")]
    Unconfirmed {
        /// The annotation.
        stated_by: &'static str,
    },
    /// A namespace holds objects that do not go with it.
    #[error("{}", in_namespace(*.count, *.is_more, .example.as_ref()))]
    ForeignContent {
        /// Their number.
        count: usize,
        /// True if there are more than were counted.
        is_more: bool,
        /// One of them.
        example: Option<ObjectKey>,
    },
    /// The API server gave the object no UID, by which it could be deleted.
    #[error("the object has no UID, and a name may be another object's by now")]
    NoUid,
    /// The objects in a namespace are not known.
    #[error("what is in the namespace is not known")]
    UnknownContent,
    /// The deletion is guarded.
    #[error("{0}")]
    Guarded(Guard),
}

/// The reason why a deletion needs a consent of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "guard", rename_all = "camelCase")]
pub enum Guard {
    /// All in a namespace goes with it.
    #[error("all in a namespace goes with it")]
    Namespace,
    /// All objects of a kind go with their definition.
    #[error("all objects of a kind go with their definition")]
    Definition,
    /// The data of a claim may go with it.
    #[error("the data of a volume may go with its claim")]
    VolumeClaim,
    /// More than half of the inventory would go at once.
    #[error("{pruned} of {all} objects would go at once")]
    Mass {
        /// The number of objects that would go.
        pruned: usize,
        /// The number of objects of the inventory that exist.
        all: usize,
    },
    /// The set declares nothing at all.
    #[error("the manifests declare no object at all")]
    NothingDeclared,
}

fn in_namespace(count: usize, is_more: bool, example: Option<&ObjectKey>) -> String {
    let named = example.map(|key| format!("{} {}", key.kind, key.name));
    match (count, is_more, named) {
        (1, false, Some(named)) => format!("{named} is in the namespace, and does not go with the app"),
        (1, false, None) => "1 other object is in the namespace".to_owned(),
        (_, _, named) => {
            let least = if is_more { "at least " } else { "" };
            let such = named.map(|named| format!(", such as {named}")).unwrap_or_default();
            format!("{least}{count} other objects are in the namespace{such}")
        }
    }
}

/// Decides for each entry of an inventory, in their order.
pub fn decide(input: &PruneInput<'_>) -> Vec<PruneDecision> {
    let mut decisions: Vec<PruneDecision> =
        input.entries.iter().map(|(entry, live)| of_entry(entry, live.as_ref(), input)).collect();
    let pruned = decisions.iter().filter(|it| matches!(it, PruneDecision::Delete { .. })).count();
    // What a set gains, and what is gone already, makes no deletion smaller.
    let is_there = |it: &&PruneDecision| !matches!(it, PruneDecision::Gone | PruneDecision::LetGo(_));
    let all = input.kept + decisions.iter().filter(is_there).count();
    let guard = match () {
        () if input.destroys => None,
        () if input.declared == 0 => Some(Guard::NothingDeclared),
        () if input.allows_guarded || all < MASS_FROM || pruned * 2 <= all => None,
        () => Some(Guard::Mass { pruned, all }),
    };
    if let Some(guard) = guard {
        for decision in &mut decisions {
            if matches!(decision, PruneDecision::Delete { .. }) {
                *decision = PruneDecision::Keep(KeepReason::Guarded(guard));
            }
        }
    }
    decisions
}

fn of_entry(entry: &InventoryEntry, live: Option<&LiveEntry<'_>>, input: &PruneInput<'_>) -> PruneDecision {
    let Some(live) = live else { return PruneDecision::Gone };
    let text = |key: &str| live.metadata.get(key).and_then(Value::as_str).unwrap_or_default();
    let uid = text("uid").to_owned();
    let let_go = match (&entry.uid, &live.claimed_by) {
        (Some(applied), _) if *applied != uid => Some(LetGoReason::Recreated),
        _ if !uid.is_empty() && input.declared_uids.contains(&uid) => Some(LetGoReason::StillDeclared),
        (_, Some(by)) => Some(LetGoReason::Claimed { by: by.clone() }),
        _ if !live.has_mark => Some(LetGoReason::NoMark),
        _ => None,
    };
    if let Some(reason) = let_go {
        return PruneDecision::LetGo(reason);
    }
    if uid.is_empty() {
        return PruneDecision::Keep(KeepReason::NoUid);
    }
    if !text("deletionTimestamp").is_empty() {
        return PruneDecision::Terminating;
    }
    let options = SyncOptions::of_live(live.metadata);
    let removal = if input.destroys { &options.delete } else { &options.prune };
    if let Some(removal) = removal {
        let stated_by = removal.stated_by;
        match removal.value {
            Removal::Allowed => {}
            Removal::Confirmed if input.confirmed.contains(&entry.key) => {}
            Removal::Confirmed => return PruneDecision::Keep(KeepReason::Unconfirmed { stated_by }),
            Removal::Never if is_detached(stated_by) => {
                return PruneDecision::LetGo(LetGoReason::Detached { stated_by });
            }
            Removal::Never => return PruneDecision::Keep(KeepReason::Forbidden { stated_by }),
        }
    }
    if let Some(mode) = options.apply_mode.filter(|mode| mode.value == ApplyMode::Ignore) {
        return PruneDecision::Keep(KeepReason::Forbidden { stated_by: mode.stated_by });
    }
    match guard(&entry.key, live.content.as_ref()) {
        Err(reason) => PruneDecision::Keep(reason),
        Ok(Some(guard)) if !input.allows_guarded => PruneDecision::Keep(KeepReason::Guarded(guard)),
        Ok(_) => PruneDecision::Delete { uid },
    }
}

/// Returns true if an annotation gives an object away, rather than keep it in its set: kpt's, cli-utils' and Helm's.
fn is_detached(stated_by: &str) -> bool {
    !stated_by.starts_with("argocd.argoproj.io/") && !stated_by.starts_with("kustomize.toolkit.fluxcd.io/")
}

/// Returns the guard of a kind; an error if the object must not be deleted at all.
fn guard(key: &ObjectKey, content: Option<&LiveContent>) -> Result<Option<Guard>, KeepReason> {
    let is_empty = content.is_some_and(|content| content.count == 0);
    match (&*key.group, &*key.kind) {
        ("", "Namespace") => match content {
            None => Err(KeepReason::UnknownContent),
            Some(_) if is_empty => Ok(Some(Guard::Namespace)),
            Some(LiveContent { count, is_more, example }) => {
                Err(KeepReason::ForeignContent { count: *count, is_more: *is_more, example: example.clone() })
            }
        },
        ("apiextensions.k8s.io", "CustomResourceDefinition") if !is_empty => Ok(Some(Guard::Definition)),
        ("", "PersistentVolumeClaim") => Ok(Some(Guard::VolumeClaim)),
        _ => Ok(None),
    }
}
