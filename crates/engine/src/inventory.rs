//! Inventories of other tools: read from the cluster, and freed of what is not declared any more.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use taffrail_apps::inventories::{Inventory, InventoryError, InventoryTool};
use taffrail_apps::sets::SetSummary;
use taffrail_apps::{KindCatalog, Snapshot};
use taffrail_cluster::{Cluster, ListRequest, PatchRequest, PatchType, WriteError};
use taffrail_object::{ApiResource, InventoryEntry, ObjectKey, Projection};
use taffrail_observe::{FleetWatcher, InventoryArg};
use taffrail_plan::order::{Dialect, OrderInput, order};
use taffrail_plan::sync::{
    Answer, NewRun, Observation, RunAction, RunEnd, RunPolicy, Stepped, SyncRun, TaskState, step,
};

use crate::compare::{Coming, Comparer, LastApplied, Types};
use crate::error::EngineError;
use crate::options::WriteOptions;
use crate::prune::{Pruning, Undeclared, decide_undeclared};
use crate::request::{ManifestText, PruneConsent, Stop, SyncCaller, SyncEvent, SyncPlan, SyncReport};
use crate::results::results;
use crate::run::{PATIENCE, TICK, declared_set, watched};
use crate::view::View;
use crate::write::Writer;

/// The number of times that an inventory is written which another client was faster with.
const MAX_CONFLICTS: usize = 5;

/// A request to delete what the inventory of another tool lists and the manifests do not declare.
#[derive(Debug, Clone)]
pub struct InventoryPrune {
    /// The inventory.
    pub inventory: InventoryArg,
    /// The namespace of the inventory, and of declared objects without one; `None` for that of the context.
    pub namespace: Option<String>,
    /// The consent to deletions.
    pub consent: PruneConsent,
    /// The tool whose implied order holds.
    pub dialect: Dialect,
    /// The rules about failures and deadlines.
    pub policy: RunPolicy,
}

/// Deletes what an inventory of another tool lists and the manifests do not declare, and takes it from the inventory if that is
/// one of kpt or cli-utils. Flux, Argo CD and Helm write theirs themselves.
///
/// # Errors
/// Returns an error if nothing was deleted. What fails later is the end of the run in the report.
pub async fn prune_inventory(
    watcher: FleetWatcher,
    request: &InventoryPrune,
    files: &[ManifestText],
    stop: &Stop,
    caller: &mut dyn SyncCaller,
) -> Result<SyncReport, EngineError> {
    let mut view = View::connected(watcher, PATIENCE).await?;
    let namespace = request.namespace.clone().unwrap_or_else(|| view.namespace().to_owned());
    let declared = declared_set(&view, &namespace, files)?;
    if declared.objects.is_empty() {
        return Err(EngineError::NothingDeclared);
    }
    let declared: BTreeSet<&ObjectKey> = declared.objects.iter().map(|object| &object.key).collect();
    let inventory = find(&mut view, request, &namespace).await?;
    let (cluster, discovery) = (view.cluster()?, view.discovery()?);
    let pruning = decide_undeclared(
        &cluster,
        discovery,
        &Undeclared {
            inventory: &inventory,
            declared: &declared,
            declared_uids: None,
            destroys: false,
            consent: request.consent,
        },
    )
    .await?;
    let Pruning { pruned, kept, dropped } = pruning;
    let (pruned, uids): (Vec<_>, Vec<String>) = pruned.into_iter().unzip();
    let ordered = order(&OrderInput {
        objects: &[],
        pruned: &pruned,
        dialect: request.dialect,
        annotations: &[],
        destroys: false,
        exists: &|_| false,
    })
    .map_err(EngineError::Order)?;
    let plan = SyncPlan {
        objects: Vec::new(),
        pruned: pruned.iter().map(|it| &it.key).collect(),
        kept: kept.iter().map(|it| (&it.entry.key, &*it.reason)).collect(),
        order: &ordered,
    };
    if !caller.approves(&plan) {
        return Err(EngineError::NotApproved);
    }
    let uids: Vec<(ObjectKey, String)> = pruned.into_iter().map(|it| it.key).zip(uids).collect();
    let started = Timestamp::now();
    let run = SyncRun::new(&NewRun {
        id: &format!("{:016x}", fastrand::u64(..)),
        digest: "",
        revision: "",
        started,
        policy: &request.policy,
        order: &ordered,
        objects: &[],
        pruned: &uids,
        unchanged: &|_| None,
    });
    let run = delete_all(&mut view, run, stop, caller).await?;
    let is_deleted = |key: &ObjectKey| {
        run.tasks.iter().any(|task| task.key == *key && matches!(task.state, TaskState::Ready { .. }))
    };
    let is_gone = |key: &ObjectKey| is_deleted(key) || dropped.contains(key);
    let mut end = run.end().cloned().unwrap_or(RunEnd::Terminated);
    if let Err(error) = take_from_inventory(&view, request, &namespace, &is_gone).await {
        let message = format!("cannot write the inventory: {}", taffrail_cluster::chain(&error));
        end = RunEnd::Failed(message);
    }
    Ok(SyncReport {
        end,
        number: 0,
        objects: results(&run, &kept),
        summary: SetSummary::default(),
        started,
        ended: Timestamp::now(),
    })
}

/// Steps a run that only deletes until it ends. Nothing of it is saved: whoever repeats it deletes the same objects by their UIDs.
async fn delete_all(
    view: &mut View,
    mut run: SyncRun,
    stop: &Stop,
    caller: &mut dyn SyncCaller,
) -> Result<SyncRun, EngineError> {
    let mut answers: Vec<(usize, Answer)> = Vec::new();
    let (options, types, last) = (WriteOptions::default(), Types::built_in(), LastApplied::default());
    let coming = Coming::of(&[]);
    loop {
        let observation = Observation {
            answers: &answers,
            object: &|key| view.observed(key),
            terminates: stop.is_set(),
            is_superseded: false,
            restarted: false,
        };
        let now = Timestamp::now();
        let Stepped { run: next, actions, waiting_for, due } = step(run, &observation, now);
        run = next;
        caller.take(&SyncEvent::Stepped { run: &run, waiting_for: &waiting_for });
        if run.end().is_some() {
            return Ok(run);
        }
        let (cluster, discovery) = (view.cluster()?, view.discovery()?);
        let comparer = Comparer {
            cluster: &cluster,
            discovery,
            options: &options,
            types: &types,
            coming: &coming,
            last: &last,
        };
        let writer = Writer {
            cluster: &cluster,
            discovery,
            options: &options,
            comparer: &comparer,
            run: &run.id,
            mark: None,
        };
        let deletions = actions.iter().filter_map(|action| match action {
            RunAction::Delete { uid, .. } => Some((action.task(), uid, run.tasks.get(action.task())?)),
            _ => None,
        });
        answers = futures::future::join_all(deletions.map(|(at, uid, task)| {
            let writer = &writer;
            async move { (at, writer.delete(&task.key, uid, None).await) }
        }))
        .await;
        let rest = match due {
            _ if !answers.is_empty() => Duration::ZERO,
            Some(due) => Duration::try_from(due.duration_since(now)).unwrap_or_default().min(TICK),
            None => TICK,
        };
        view.look(&watched(&run), rest).await?;
    }
}

/// Finds the object that holds an inventory, and reads it.
async fn find(view: &mut View, request: &InventoryPrune, namespace: &str) -> Result<Inventory, EngineError> {
    let kinds = view.kinds();
    let (cluster, discovery) = (view.cluster()?, view.discovery()?);
    let Some((resource, key)) = request.inventory.find(discovery, namespace) else {
        let kind = request.inventory.kind.as_deref().unwrap_or_default();
        return Err(EngineError::NotFound(format!("the cluster has no kind called {kind}")));
    };
    let inventory = read_inventory(&cluster, kinds, &resource, &key).await?;
    if inventory.tool == InventoryTool::Taffrail {
        return Err(EngineError::IsSet(Box::new(key)));
    }
    Ok(inventory)
}

/// Reads an inventory with what belongs to it: settings of Argo CD, other versions of a release.
///
/// # Errors
/// Returns an error if the API server does not let it be read, or if it is not a usable inventory.
async fn read_inventory(
    cluster: &Cluster,
    kinds: Option<KindCatalog>,
    resource: &ApiResource,
    key: &ObjectKey,
) -> Result<Inventory, EngineError> {
    let mut snapshot = Snapshot::dump(cluster.context(), Timestamp::now());
    if let Some(kinds) = kinds {
        snapshot.set_kinds(kinds);
    }
    let namespace = Some(&*key.namespace).filter(|_| resource.namespaced);
    let read = |error| EngineError::unreadable(cluster, &error);
    let document = cluster.get(resource, namespace, &key.name, Projection::Full).await.map_err(read)?;
    let Some(document) = document else { return Err(InventoryError::Absent(key.clone()).into()) };
    // What is not an object is not an inventory, and is told so below.
    let _ = snapshot.insert(document, Projection::Full);
    if key.group == "argoproj.io" {
        let settings = core("ConfigMap", "configmaps");
        let found = cluster.get(&settings, namespace, "argocd-cm", Projection::Full).await.map_err(read)?;
        if let Some(found) = found {
            let _ = snapshot.insert(found, Projection::Full);
        }
    }
    if key.group.is_empty() && key.name.starts_with("sh.helm.release.") {
        for resource in [core("Secret", "secrets"), core("ConfigMap", "configmaps")] {
            let request = ListRequest {
                namespace,
                projection: Projection::Metadata,
                label_selector: Some("owner=helm"),
                ..ListRequest::all(&resource)
            };
            for document in cluster.list(&request).await.map_err(read)?.objects {
                let _ = snapshot.insert(document, Projection::Metadata);
            }
        }
    }
    Ok(Inventory::read(&snapshot, key)?)
}

fn core(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
    }
}

/// Takes what is gone from the inventory as it is now, unless its tool alone writes it.
async fn take_from_inventory(
    view: &View,
    request: &InventoryPrune,
    namespace: &str,
    is_gone: &dyn Fn(&ObjectKey) -> bool,
) -> Result<(), EngineError> {
    let (cluster, discovery) = (view.cluster()?, view.discovery()?);
    let Some((resource, key)) = request.inventory.find(discovery, namespace) else { return Ok(()) };
    for _ in 0..MAX_CONFLICTS {
        let place = Some(&*key.namespace).filter(|_| resource.namespaced);
        let read = |error| EngineError::unreadable(&cluster, &error);
        let document = cluster.get(&resource, place, &key.name, Projection::Full).await.map_err(read)?;
        let Some(document) = document else { return Ok(()) };
        let version = document.root().at(&["metadata", "resourceVersion"]).and_then(|it| it.as_str());
        let version = version.map(|version| version.into_owned());
        let mut snapshot = Snapshot::dump(cluster.context(), Timestamp::now());
        let _ = snapshot.insert(document, Projection::Full);
        let Ok(inventory) = Inventory::read(&snapshot, &key) else { return Ok(()) };
        if !inventory.entries.iter().any(|InventoryEntry { key, .. }| is_gone(key)) {
            return Ok(());
        }
        let Some(mut patch) = inventory.patch(&|key| !is_gone(key)) else { return Ok(()) };
        patch["metadata"] = serde_json::json!({ "resourceVersion": version });
        let body = Value::to_string(&patch);
        let written = cluster
            .patch(&PatchRequest {
                resource: &resource,
                namespace: place,
                name: &key.name,
                subresource: None,
                patch_type: PatchType::Merge,
                body: body.as_bytes(),
                dry_run: false,
            })
            .await;
        match written {
            Ok(_) | Err(WriteError::NotFound { .. }) => return Ok(()),
            Err(WriteError::Conflict { .. } | WriteError::Uncertain(_)) => continue,
            Err(error) => {
                return Err(InventoryError::Damaged { key, cause: error.into() }.into());
            }
        }
    }
    Ok(())
}
