//! Decides what a run prunes.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use serde_json::{Map, Value};
use taffrail_apps::sets::{SET_MARK, SetVerb};
use taffrail_cluster::{Cluster, Discovery, ReadError, chain};
use taffrail_object::{InventoryEntry, ObjectKey, Projection};
use taffrail_plan::manifests::DeclaredObject;
use taffrail_plan::order::PrunedObject;
use taffrail_plan::prune::{LiveEntry, PruneDecision, PruneInput, decide};

use crate::compare::Comparison;
use crate::error::EngineError;
use crate::request::SyncRequest;
use crate::results::KeptEntry;

/// Maximum number of objects that are read from one API server at one time.
const AT_ONCE: usize = 16;

/// What a run does with the entries of the inventory that are not declared any more.
#[derive(Debug, Default)]
pub(crate) struct Pruning {
    /// The objects to delete, each with its UID.
    pub(crate) pruned: Vec<(PrunedObject, String)>,
    /// The entries that stay in the inventory, with the reason.
    pub(crate) kept: Vec<KeptEntry>,
    /// The entries that leave the inventory though nothing is deleted.
    pub(crate) dropped: BTreeSet<ObjectKey>,
}

/// Decides for each entry of the inventory that the manifests do not declare.
///
/// # Errors
/// Returns an error if the API server does not answer.
pub(crate) async fn plan_prune(
    cluster: &Cluster,
    discovery: &Discovery,
    inventory: &[InventoryEntry],
    request: &SyncRequest,
    declared: &BTreeSet<&ObjectKey>,
    compared: &[Comparison],
) -> Result<Pruning, EngineError> {
    let none = BTreeSet::new();
    let declared = if request.verb == SetVerb::Destroy { &none } else { declared };
    let entries: Vec<InventoryEntry> =
        inventory.iter().filter(|entry| !declared.contains(&entry.key)).cloned().collect();
    let mut pruning = Pruning::default();
    let Some(consent) = &request.prune else {
        let stays = |entry: InventoryEntry| KeptEntry {
            entry,
            reason: "it is not declared any more; --prune deletes it".to_owned(),
        };
        pruning.kept = entries.into_iter().map(stays).collect();
        return Ok(pruning);
    };
    let mark = request.set.to_string();
    let live = live_entries(cluster, discovery, &entries, &mark).await?;
    let facts: Vec<(InventoryEntry, Option<LiveEntry<'_>>)> = entries
        .iter()
        .zip(&live)
        .map(|(entry, live)| (entry.clone(), live.as_ref().map(LiveFacts::entry)))
        .collect();
    let declared_uids = compared.iter().filter_map(Comparison::live_uid).map(str::to_owned).collect();
    let confirmed = match consent.allows_guarded {
        true => entries.iter().map(|entry| entry.key.clone()).collect(),
        false => BTreeSet::new(),
    };
    let decisions = decide(&PruneInput {
        entries: &facts,
        declared: declared.len(),
        kept: inventory.len() - entries.len(),
        declared_uids: &declared_uids,
        destroys: request.verb == SetVerb::Destroy,
        allows_guarded: consent.allows_guarded,
        confirmed: &confirmed,
    });
    for ((entry, facts), decision) in entries.iter().zip(&live).zip(decisions) {
        match decision {
            // One that is being deleted is waited for.
            PruneDecision::Delete { .. } | PruneDecision::Terminating => {
                if let Some(facts) = facts {
                    pruning
                        .pruned
                        .push((PrunedObject::of_live(entry.key.clone(), &facts.object), facts.uid()));
                }
            }
            PruneDecision::Gone | PruneDecision::LetGo(_) => drop(pruning.dropped.insert(entry.key.clone())),
            PruneDecision::Keep(reason) => {
                pruning.kept.push(KeptEntry { entry: entry.clone(), reason: reason.to_string() });
            }
        }
    }
    Ok(pruning)
}

/// The live object of an entry.
struct LiveFacts {
    /// The object; only a CustomResourceDefinition has more than metadata.
    object: Value,
    metadata: Map<String, Value>,
    has_mark: bool,
    claimed_by: Option<String>,
    content: Option<usize>,
}

impl LiveFacts {
    fn entry(&self) -> LiveEntry<'_> {
        let LiveFacts { metadata, has_mark, claimed_by, content, .. } = self;
        LiveEntry { metadata, has_mark: *has_mark, claimed_by: claimed_by.clone(), content: *content }
    }

    fn uid(&self) -> String {
        self.metadata.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

/// Reads the live objects of entries; `None` for one that does not exist.
async fn live_entries(
    cluster: &Cluster,
    discovery: &Discovery,
    entries: &[InventoryEntry],
    mark: &str,
) -> Result<Vec<Option<LiveFacts>>, EngineError> {
    let asked = entries.iter().map(|entry| async move {
        let key = &entry.key;
        let Some(kind) = discovery.kind(&key.group, &key.kind) else { return Ok(None) };
        let resource = kind.preferred();
        let namespace = Some(&*key.namespace).filter(|_| resource.namespaced);
        // What a definition defines is in its spec.
        let projection = match key.kind == "CustomResourceDefinition" {
            true => Projection::Full,
            false => Projection::Metadata,
        };
        let found = cluster.get(&resource, namespace, &key.name, projection).await;
        let found = found.map_err(|error| unreadable(cluster, &error))?;
        let Some(object) = found.and_then(|found| found.root().to_tree().ok()) else { return Ok(None) };
        let Some(metadata) = object.get("metadata").and_then(Value::as_object).cloned() else {
            return Ok(None);
        };
        let set = metadata.get("annotations").and_then(|it| it.get(SET_MARK)).and_then(Value::as_str);
        let claimed_by = set.filter(|set| *set != mark).map(|set| format!("the set {set}"));
        let has_mark = set == Some(mark);
        Ok(Some(LiveFacts { object, has_mark, claimed_by, content: None, metadata }))
    });
    futures::stream::iter(asked).buffered(AT_ONCE).collect::<Vec<_>>().await.into_iter().collect()
}

/// Returns the objects outside of the set, on which objects state to depend, that exist.
///
/// # Errors
/// Returns an error if the API server does not answer.
pub(crate) async fn existing_outside(
    cluster: &Cluster,
    discovery: &Discovery,
    objects: &[DeclaredObject],
) -> Result<BTreeSet<ObjectKey>, EngineError> {
    let declared: BTreeSet<&ObjectKey> = objects.iter().map(|object| &object.key).collect();
    let stated = objects.iter().filter_map(|object| object.options.depends_on.as_ref());
    let outside: BTreeSet<&ObjectKey> =
        stated.flat_map(|it| &it.value).filter(|key| !declared.contains(key)).collect();
    let mut found = BTreeSet::new();
    for key in outside {
        let Some(kind) = discovery.kind(&key.group, &key.kind) else { continue };
        let resource = kind.preferred();
        let namespace = Some(&*key.namespace).filter(|_| resource.namespaced);
        let live = cluster.get(&resource, namespace, &key.name, Projection::Metadata).await;
        if live.map_err(|error| unreadable(cluster, &error))?.is_some() {
            found.insert(key.clone());
        }
    }
    Ok(found)
}

fn unreadable(cluster: &Cluster, error: &ReadError) -> EngineError {
    EngineError::Unreachable {
        cluster: cluster.context().to_owned(),
        reason: error.reason().as_str().to_owned(),
        message: chain(error),
    }
}
