//! The controllers of Flux and Argo CD: they handle requests, apply declared objects that are missing or changed, and
//! clean up after deletions.
//!
//! States written by the story (`faults/`) stay: a controller writes a status only after it has done something, leaves
//! unreachable clusters alone, and, if it is one of Flux, does nothing while it has no ready Pod.

mod argo;
mod flux;

use std::sync::Arc;
use std::time::Duration;

use futures::future::select_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use taffrail_object::ObjectKey;
use taffrail_sim::{Clock, Cluster};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::managers::status_manager;
use super::repository::{Repository, is_ending};

/// Time from a change to the reaction of a controller.
const DELAY: Duration = Duration::from_millis(200);
/// Maximum time between two runs of the controllers, because the fleet's clock may jump.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The identity of an object of Flux or Argo CD, such as a Kustomization or Application, on which a simulated
/// controller acts.
#[derive(Debug, Clone)]
pub(super) struct ToolObject {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
}

impl ToolObject {
    /// Returns the identity of `object` if a controller of Flux or Argo CD acts on its kind, else `None`.
    pub(super) fn of(object: &Value) -> Option<ToolObject> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let api_version = text(&object["apiVersion"]);
        let kind = text(&object["kind"]);
        let is_told = api_version.contains(".toolkit.fluxcd.io/") || kind == "Application";
        let metadata = &object["metadata"];
        is_told.then(|| ToolObject {
            api_version,
            kind,
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
        })
    }

    fn get(&self, cluster: &Cluster) -> Option<Value> {
        cluster.get(&self.api_version, &self.kind, &self.namespace, &self.name)
    }

    /// Changes the object in `cluster` by `change`, with its controller as field manager.
    fn change(&self, cluster: &Cluster, change: impl FnOnce(&mut Value)) {
        let group = self.api_version.split('/').next().unwrap_or_default();
        let manager = status_manager(group, &self.kind);
        let object = json!({
            "apiVersion": self.api_version, "kind": self.kind,
            "metadata": {"namespace": self.namespace, "name": self.name},
        });
        cluster.change_by(&object, manager, manager, change);
    }

    /// Removes a finalizer from the object in `cluster`, which is being deleted; if none is left, it is gone.
    fn release(&self, cluster: &Cluster, finalizer: &str) {
        self.change(cluster, |object| {
            if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
                finalizers.retain(|one| one != finalizer);
            }
        });
    }
}

/// A cluster to which controllers apply objects, with the repository of its declared objects.
#[derive(Debug, Clone)]
pub(super) struct ControlledCluster {
    pub(super) cluster: Cluster,
    pub(super) repository: Arc<Repository>,
}

/// The simulated controllers of Flux and Argo CD in one cluster.
pub(super) struct Controllers {
    home: ControlledCluster,
    /// The clusters to which Argo CD may deliver.
    places: Arc<[ControlledCluster]>,
    clock: Clock,
    flux: Vec<flux::FluxObject>,
    argo: Vec<argo::Application>,
}

impl Controllers {
    /// Creates the controllers in the cluster `home`, which act on the objects `told` and may apply to `places`.
    pub(super) fn new(
        home: ControlledCluster,
        places: Arc<[ControlledCluster]>,
        clock: Clock,
        told: Vec<ToolObject>,
    ) -> Controllers {
        let (argo, flux): (Vec<ToolObject>, Vec<ToolObject>) =
            told.into_iter().partition(|told| told.kind == "Application");
        Controllers {
            home,
            places,
            clock,
            flux: flux.into_iter().map(flux::FluxObject::new).collect(),
            argo: argo.into_iter().map(argo::Application::new).collect(),
        }
    }

    /// Runs each controller once: it does the work that is due. Returns the time of the next work if no change
    /// comes before; `None` if there is none.
    pub(super) fn look(&mut self) -> Option<Timestamp> {
        let now = self.clock.now();
        let (home, places) = (&self.home, &*self.places);
        let flux = self.flux.iter_mut().filter_map(|followed| followed.look(home, now));
        let argo = self.argo.iter_mut().filter_map(|followed| followed.look(home, places, now));
        flux.chain(argo).min()
    }

    /// Returns receivers that are notified when this cluster changes, or one to which its Argo CD delivers.
    fn changes(&self) -> Vec<watch::Receiver<u64>> {
        let is_target = |place: &&ControlledCluster| {
            self.argo.iter().any(|followed| followed.delivers_to(&self.home, place))
        };
        let others = self.places.iter().filter(|place| place.cluster.name() != self.home.cluster.name());
        let all = std::iter::once(&self.home).chain(others.filter(is_target));
        all.map(|place| place.cluster.changes()).collect()
    }

    /// Starts a task in `tasks` that runs the controllers after each change and when work is due, until `tasks` is
    /// dropped.
    pub(super) fn listen(mut self, tasks: &mut JoinSet<()>) {
        if self.flux.is_empty() && self.argo.is_empty() {
            return;
        }
        tasks.spawn(async move {
            let mut changes = self.changes();
            loop {
                changes.iter_mut().for_each(|changes| drop(changes.borrow_and_update()));
                let due = self.look();
                let ahead = due.map(|due| due.duration_since(self.clock.now()));
                let ahead = ahead.and_then(|ahead| Duration::try_from(ahead).ok());
                let wait = if due.is_some() { ahead.unwrap_or_default() } else { MAX_PAUSE };
                let changed = select_all(changes.iter_mut().map(|changes| Box::pin(changes.changed())));
                if let Ok((Err(_), ..)) = tokio::time::timeout(wait.min(MAX_PAUSE), changed).await {
                    return;
                }
                tokio::time::sleep(DELAY).await;
            }
        });
    }
}

/// Applies those of the declared objects `keys` that are missing or changed, up to the first failure; returns their
/// number.
fn apply(
    place: &ControlledCluster,
    keys: impl IntoIterator<Item = ObjectKey>,
    now: Timestamp,
) -> Result<usize, taffrail_sim::SimError> {
    let mut changed = 0;
    for key in keys {
        changed += usize::from(place.repository.apply(&place.cluster, &key, now)?);
    }
    Ok(changed)
}

/// Formats a time for a status field.
fn stamp(at: Timestamp) -> Value {
    json!(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn after(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn has_finalizer(object: &Value, name: &str) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
}
