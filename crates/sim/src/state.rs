//! The state of one simulated cluster.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use fastrand::Rng;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

use crate::admission::NAME_LETTERS;
use crate::behaviour::Behaviours;
use crate::error::ApiError;
use crate::fault::{Fault, FaultId, Faults, Trouble};
use crate::fleet_state::FleetState;
use crate::kinds::{builtin, split_group_version};
use crate::store::{Object, Store};
use crate::target::Target;
use crate::task::Task;

/// A user of a simulated cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name of the user, to which roles are bound.
    pub name: String,
    /// The bearer token of the user; empty if the user cannot log in.
    pub token: String,
    /// The groups. Members of `system:masters` may do everything.
    pub groups: Vec<String>,
}

impl User {
    /// Creates a user with a token and groups.
    pub fn new(name: &str, token: &str, groups: &[&str]) -> User {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        User { name: name.to_owned(), token: token.to_owned(), groups }
    }
}

/// A function that plans the reactions of controllers to a change of an object; the flag is true if the object is
/// gone.
pub(crate) type Reaction = fn(&Inner, &Target, &Arc<Object>, bool);

/// The state of a simulated cluster, shared by its tasks.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) fleet: Arc<FleetState>,
    pub(crate) does: Behaviours,
    pub(crate) users: RwLock<Vec<User>>,
    pub(crate) faults: Faults,
    /// A counter; when it changes, all open connections are closed.
    pub(crate) cut: watch::Sender<u64>,
    /// A counter of the changes of objects other than Leases, and of the faults that are set and removed.
    pub(crate) changes: watch::Sender<u64>,
    /// The planned tasks of controllers, with the times at which they are due.
    pub(crate) pending: Mutex<HashMap<Task, Timestamp>>,
    store: Mutex<Store>,
    random: Mutex<Rng>,
    react: Reaction,
    me: Weak<Inner>,
    admin: User,
}

impl Inner {
    pub(crate) fn new(fleet: Arc<FleetState>, name: &str, react: Reaction) -> Arc<Inner> {
        let mut hasher = DefaultHasher::new();
        (fleet.options.seed, name).hash(&mut hasher);
        let mut random = Rng::with_seed(hasher.finish());
        let admin = User::new("admin", &token(&mut random), &["system:masters", "system:authenticated"]);
        Arc::new_cyclic(|me| Inner {
            name: name.to_owned(),
            does: fleet.behaviours(),
            users: RwLock::new(vec![admin.clone()]),
            faults: Faults::default(),
            cut: watch::channel(0).0,
            changes: watch::channel(0).0,
            pending: Mutex::default(),
            store: Mutex::new(Store::new(builtin(), fleet.options.window)),
            random: Mutex::new(random),
            react,
            me: me.clone(),
            admin,
            fleet,
        })
    }

    /// Locks the objects. The guard must not be held across an await.
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans `task` to run at the time `due`, unless the cluster is gone by then.
    pub(crate) fn plan(&self, due: Timestamp, task: impl FnOnce(&Arc<Inner>) + Send + 'static) {
        let cluster = self.me.clone();
        self.fleet.plan(due, move || {
            if let Some(cluster) = cluster.upgrade() {
                task(&cluster);
            }
        });
    }

    pub(crate) fn admin(&self) -> &User {
        &self.admin
    }

    pub(crate) fn random(&self) -> MutexGuard<'_, Rng> {
        self.random.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `count` random letters and digits for the end of a generated name.
    pub(crate) fn letters(&self, count: usize) -> String {
        let mut random = self.random();
        (0..count).map(|_| char::from(NAME_LETTERS[random.usize(..NAME_LETTERS.len())])).collect()
    }

    /// Returns a random uid.
    pub(crate) fn uid(&self) -> String {
        let value = self.random().u128(..);
        let (high, low) = ((value >> 64) as u64, value as u64);
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            (low >> 48 & 0x3fff) | 0x8000,
            low & 0xffff_ffff_ffff
        )
    }

    pub(crate) fn cut_connections(&self) {
        self.cut.send_modify(|cut| *cut += 1);
    }

    /// Lets controllers react to a change of an object, and counts it for [`Cluster::changes`](crate::Cluster::changes)
    /// unless the object is a Lease. `gone` is true if the object was removed.
    pub(crate) fn changed(&self, target: &Target, object: &Arc<Object>, gone: bool) {
        if !target.resource.is("coordination.k8s.io", "leases") {
            self.noticed();
        }
        (self.react)(self, target, object, gone);
    }

    /// Adds one to the counter of [`Cluster::changes`](crate::Cluster::changes).
    pub(crate) fn noticed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Sets a fault and returns its id. A fault of connections also closes the open ones.
    pub(crate) fn fault(&self, fault: Fault) -> FaultId {
        let is_of_connections = fault.is_of_connections();
        let id = self.faults.add(fault);
        if is_of_connections {
            self.cut_connections();
        }
        self.noticed();
        id
    }

    /// Removes the fault with this trouble that was set last.
    pub(crate) fn heal_trouble(&self, trouble: &Trouble) {
        if self.faults.remove_newest(trouble) {
            self.noticed();
        }
    }

    /// Removes the fault with this id.
    pub(crate) fn heal(&self, fault: FaultId) {
        self.faults.remove(fault);
        self.noticed();
    }

    /// Returns the storage location of an object, by its `apiVersion`, kind and metadata; a namespaced object without a
    /// namespace is in `default`.
    ///
    /// # Errors
    /// If the cluster does not serve its kind.
    pub(crate) fn target_of(&self, object: &Value) -> Result<Target, ApiError> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let (group, version) = split_group_version(&api_version);
        let store = self.store();
        let found = store.find_kind(group, &kind).filter(|(_, resource)| resource.version(version).is_some());
        let Some((shelf, resource)) = found else {
            return Err(ApiError::bad_request(format!(
                "no matches for kind {kind:?} in version {api_version:?}"
            )));
        };
        let namespace = match (resource.namespaced, text(&object["metadata"]["namespace"])) {
            (false, _) => String::new(),
            (true, namespace) if namespace.is_empty() => "default".to_owned(),
            (true, namespace) => namespace,
        };
        let name = text(&object["metadata"]["name"]);
        Ok(Target { shelf, resource: resource.clone(), version: version.into(), namespace, name })
    }

    /// Returns the storage location of an object by its resource, in the preferred version; `None` if the store has no
    /// such resource.
    pub(crate) fn target(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Target> {
        let store = self.store();
        let (shelf, resource) = store.find(group, plural)?;
        let version = resource.versions.first()?.name.clone();
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Some(Target { shelf, resource: resource.clone(), version, namespace, name })
    }

    /// Returns a stored object as a JSON tree; `None` if it does not exist.
    pub(crate) fn tree(&self, target: &Target) -> Option<Value> {
        let object = self.store().get(target.shelf, &target.key()).cloned()?;
        Some(object.tree(&target.api_version(), &target.resource.kind))
    }
}

pub(crate) fn token(random: &mut Rng) -> String {
    format!("{:016x}{:016x}", random.u64(..), random.u64(..))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fleet::Fleet;

    #[tokio::test]
    async fn fault_of_requests_closes_no_connections() {
        let fleet = Fleet::builder().start().await.unwrap();
        let cluster = fleet.cluster("one").await.unwrap();
        let mut cut = cluster.inner().cut.subscribe();
        cluster.trouble(Trouble::Blackhole);
        assert!(cut.has_changed().unwrap());
        cut.mark_unchanged();
        cluster.trouble(Trouble::Latency(Duration::ZERO));
        assert!(!cut.has_changed().unwrap());
    }
}
