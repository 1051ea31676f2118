//! Decides what a run prunes.

use std::collections::BTreeSet;

use taffrail_apps::inventories::Inventory;
use taffrail_apps::sets::SetVerb;
use taffrail_cluster::{Cluster, Discovery};
use taffrail_object::{InventoryEntry, ObjectKey, Projection};
use taffrail_plan::manifests::DeclaredObject;
use taffrail_plan::order::PrunedObject;
use taffrail_plan::prune::{LiveEntry, PruneDecision, PruneInput, decide};

use crate::compare::Comparison;
use crate::error::EngineError;
use crate::live::{LiveFacts, Looked, add_content, look_up_all, uids};
use crate::request::{PruneConsent, SyncRequest};
use crate::results::KeptEntry;

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
    let inventory = Inventory::of_set(&request.set, inventory.to_vec());
    let Some(consent) = request.prune else {
        let entries = inventory.entries.into_iter().filter(|entry| !declared.contains(&entry.key));
        let stays = |entry: InventoryEntry| KeptEntry {
            entry,
            reason: "it is not declared any more; --prune deletes it".to_owned(),
        };
        return Ok(Pruning { kept: entries.map(stays).collect(), ..Pruning::default() });
    };
    // A prune applies nothing, so nothing was compared.
    let compared = (request.verb != SetVerb::Prune)
        .then(|| compared.iter().filter_map(Comparison::live_uid).map(str::to_owned).collect());
    let undeclared = Undeclared {
        inventory: &inventory,
        declared,
        declared_uids: compared,
        destroys: request.verb == SetVerb::Destroy,
        consent,
    };
    decide_undeclared(cluster, discovery, &undeclared).await
}

/// An inventory, and the objects that are declared.
pub(crate) struct Undeclared<'a> {
    /// The inventory.
    pub(crate) inventory: &'a Inventory,
    /// The declared objects.
    pub(crate) declared: &'a BTreeSet<&'a ObjectKey>,
    /// The UIDs of their live objects; `None` to look them up.
    pub(crate) declared_uids: Option<BTreeSet<String>>,
    /// True if the whole set is removed.
    pub(crate) destroys: bool,
    /// The consent of the user.
    pub(crate) consent: PruneConsent,
}

/// Decides for each entry of an inventory that is not declared.
///
/// # Errors
/// Returns an error if the API server does not answer.
pub(crate) async fn decide_undeclared(
    cluster: &Cluster,
    discovery: &Discovery,
    undeclared: &Undeclared<'_>,
) -> Result<Pruning, EngineError> {
    let Undeclared { inventory, declared, destroys, consent, .. } = undeclared;
    let all = inventory.entries.len();
    let entries: Vec<InventoryEntry> =
        inventory.entries.iter().filter(|entry| !declared.contains(&entry.key)).cloned().collect();
    let kept = all - entries.len();
    let declared_uids = match &undeclared.declared_uids {
        Some(uids) => uids.clone(),
        None => uids_of_namesakes(cluster, discovery, &entries, declared).await?,
    };
    let mut pruning = Pruning::default();
    let mut facts: Vec<(InventoryEntry, Option<LiveFacts>)> = Vec::new();
    let looked = look_up_all(cluster, discovery, inventory, &entries).await?;
    for (entry, looked) in entries.into_iter().zip(looked) {
        match looked {
            Looked::Known(live) => facts.push((entry, live)),
            Looked::Unknown(reason) => pruning.kept.push(KeptEntry { entry, reason }),
        }
    }
    let confirmed = match consent.allows_guarded {
        true => facts.iter().map(|(entry, _)| entry.key.clone()).collect(),
        false => BTreeSet::new(),
    };
    let decide_by = |facts: &[(InventoryEntry, Option<LiveFacts>)], allows_guarded: bool| {
        let entries: Vec<(InventoryEntry, Option<LiveEntry<'_>>)> =
            facts.iter().map(|(entry, live)| (entry.clone(), live.as_ref().map(LiveFacts::entry))).collect();
        decide(&PruneInput {
            entries: &entries,
            declared: declared.len(),
            kept,
            declared_uids: &declared_uids,
            destroys: *destroys,
            allows_guarded,
            confirmed: &confirmed,
        })
    };
    // What is in a namespace goes with it if the run deletes it anyway. Nothing guarded is deleted without a consent, and a
    // namespace neither, so that here all guards may count as lifted.
    let lifted = decide_by(&facts, true);
    let leaving = lifted.iter().zip(&facts).filter_map(|(decision, (_, live))| match decision {
        PruneDecision::Delete { .. } | PruneDecision::Terminating => Some(live.as_ref()?.uid()),
        _ => None,
    });
    let leaving: BTreeSet<String> = leaving.collect();
    let present = facts.iter_mut().filter_map(|(entry, live)| Some((&*entry, live.as_mut()?)));
    add_content(cluster, discovery, inventory, &leaving, present).await;
    let decisions = decide_by(&facts, consent.allows_guarded);
    for ((entry, live), decision) in facts.into_iter().zip(decisions) {
        match decision {
            // One that is being deleted is waited for.
            PruneDecision::Delete { .. } | PruneDecision::Terminating => {
                if let Some(live) = live {
                    pruning.pruned.push((PrunedObject::of_live(entry.key.clone(), &live.object), live.uid()));
                }
            }
            PruneDecision::Gone | PruneDecision::LetGo(_) => drop(pruning.dropped.insert(entry.key)),
            PruneDecision::Keep(reason) => {
                pruning.kept.push(KeptEntry { entry, reason: reason.to_string() });
            }
        }
    }
    Ok(pruning)
}

/// Returns the UIDs of declared objects that have the name of an entry: the entry may be the same object under another group.
async fn uids_of_namesakes(
    cluster: &Cluster,
    discovery: &Discovery,
    entries: &[InventoryEntry],
    declared: &BTreeSet<&ObjectKey>,
) -> Result<BTreeSet<String>, EngineError> {
    let names: BTreeSet<(&str, &str)> =
        entries.iter().map(|it| (&*it.key.namespace, &*it.key.name)).collect();
    let namesakes: Vec<&ObjectKey> =
        declared.iter().copied().filter(|key| names.contains(&(&*key.namespace, &*key.name))).collect();
    uids(cluster, discovery, &namesakes).await.map_err(|error| EngineError::unreadable(cluster, &error))
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
        if live.map_err(|error| EngineError::unreadable(cluster, &error))?.is_some() {
            found.insert(key.clone());
        }
    }
    Ok(found)
}
