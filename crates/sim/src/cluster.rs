//! One simulated cluster, as the program that owns it sees it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use taffrail_object::{ItemKind, yaml};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::error::{ApiError, SimError};
use crate::fault::{Fault, FaultId, Trouble};
use crate::fleet_state::FleetState;
use crate::managed::Writer;
use crate::state::{Inner, User, token};
use crate::target::Part;
use crate::timeline::{self, Timeline};
use crate::write::{Deletion, WriteOptions};
use crate::{control, http};

/// A simulated cluster of a fleet. When the last handle is dropped, its API server stops: port and connections are
/// closed.
#[derive(Debug, Clone)]
pub struct Cluster(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    inner: Arc<Inner>,
    address: SocketAddr,
    server: tokio::task::AbortHandle,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.server.abort();
        // Connections have handles of their own on the state; planned tasks no longer find it.
        self.inner.cut_connections();
    }
}

/// Creates the objects that a new cluster has: namespaces, ClusterRoles, a Service and nodes; none in a verbatim fleet.
fn furnish(inner: &Inner) {
    if inner.fleet.options.verbatim {
        return;
    }
    let created = |object: Value| {
        if let Ok(target) = inner.target_of(&object) {
            // Fails only if the behaviour is switched off, or the object exists already.
            let _ = inner.impose(&target, object, &Writer::named("kube-apiserver"));
        }
    };
    for name in ["kube-system", "default", "kube-public", "kube-node-lease"] {
        created(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }
    for (name, rules) in [
        (
            "cluster-admin",
            json!([
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                {"nonResourceURLs": ["*"], "verbs": ["*"]},
            ]),
        ),
        (
            "view",
            json!([{
                "apiGroups": ["", "apps", "batch", "autoscaling", "policy", "networking.k8s.io", "discovery.k8s.io"],
                "resources": ["*"], "verbs": ["get", "list", "watch"],
            }]),
        ),
    ] {
        created(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name}, "rules": rules,
        }));
    }
    created(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
    }));
    for number in 1..=inner.fleet.options.nodes {
        created(control::node(inner, number));
    }
    inner.fleet.run_due();
}
impl Cluster {
    /// Starts a cluster whose API server answers at `listener`, which has this address.
    pub(crate) fn start(
        fleet: Arc<FleetState>,
        name: &str,
        listener: TcpListener,
        address: SocketAddr,
    ) -> Cluster {
        let inner = Inner::new(fleet, name, control::react);
        furnish(&inner);
        let server = tokio::spawn(http::serve(inner.clone(), listener)).abort_handle();
        Cluster(Arc::new(Handle { inner, address, server }))
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0.inner
    }

    /// Returns the name of the cluster.
    pub fn name(&self) -> &str {
        &self.inner().name
    }

    /// Returns the URL of the API server, `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("https://{}", self.0.address)
    }

    /// Returns the user who may do everything in the cluster.
    pub fn admin(&self) -> User {
        self.inner().admin().clone()
    }

    /// Returns the resourceVersion of the newest change of any object in the cluster.
    pub fn resource_version(&self) -> u64 {
        self.inner().store().version()
    }

    /// Returns the number of stored objects.
    pub fn object_count(&self) -> usize {
        let store = self.inner().store();
        store.resources().map(|(shelf, _)| store.count(shelf)).sum()
    }

    /// Adds a user with a new random token, in `groups` and `system:authenticated`, and returns it; replaces a user of
    /// the same name. The roles in the cluster decide what the user may do.
    pub fn add_user(&self, name: &str, groups: &[&str]) -> User {
        let token = token(&mut self.inner().random());
        let mut all = groups.to_vec();
        all.push("system:authenticated");
        let user = User::new(name, &token, &all);
        let mut users = self.inner().users.write().unwrap_or_else(PoisonError::into_inner);
        users.retain(|known| known.name != name);
        users.push(user.clone());
        user
    }

    /// Returns a kubeconfig for the administrator as YAML; its only context has the cluster's name.
    pub fn kubeconfig(&self) -> String {
        Cluster::kubeconfig_of(std::slice::from_ref(self))
    }

    /// Returns a kubeconfig for a user as YAML; its only context has the cluster's name.
    pub fn kubeconfig_for(&self, user: &User) -> String {
        kubeconfig(&[(self, user.clone(), &BTreeMap::new())])
    }

    /// Returns a kubeconfig as YAML with a context for the administrator of each cluster; the first is the current
    /// one.
    pub fn kubeconfig_of(clusters: &[Cluster]) -> String {
        let none = BTreeMap::new();
        let all: Vec<_> = clusters.iter().map(|cluster| (cluster, &none)).collect();
        Cluster::labelled_kubeconfig(&all)
    }

    /// Returns a kubeconfig as [`Cluster::kubeconfig_of`] does, in which each context has the labels of its cluster in
    /// its extension `taffrail.dev/labels`.
    pub fn labelled_kubeconfig(clusters: &[(&Cluster, &BTreeMap<String, String>)]) -> String {
        let all: Vec<_> =
            clusters.iter().map(|(cluster, labels)| (*cluster, cluster.admin(), *labels)).collect();
        kubeconfig(&all)
    }

    /// Creates or replaces an object with its status, as a controller could; if it has no status, the stored one stays.
    /// Admission and schemas are skipped, and missing metadata are filled in; controllers react to it.
    ///
    /// # Errors
    /// If its kind is unknown, the namespace of a new object is missing or being deleted, or it has no name or
    /// malformed parts.
    pub fn apply(&self, object: Value) -> Result<(), SimError> {
        self.apply_by(object, "kubectl", "")
    }

    /// Applies an object like [`apply`](Cluster::apply), under the field manager `manager`. If `of_status` is not
    /// empty, that is the manager of the status.
    ///
    /// # Errors
    /// The errors of [`apply`](Cluster::apply).
    pub fn apply_by(&self, object: Value, manager: &str, of_status: &str) -> Result<(), SimError> {
        let by = Writer { name: manager.to_owned(), status: of_status.to_owned(), subresource: "" };
        let refused = |error: ApiError| SimError::Refused {
            object: named(&object),
            message: error.message,
            code: error.code,
        };
        let target = self.inner().target_of(&object).map_err(refused)?;
        self.inner().impose(&target, object.clone(), &by).map_err(refused)?;
        self.inner().fleet.run_due();
        Ok(())
    }

    /// Changes the current state of an object atomically, under field managers as in [`apply_by`](Cluster::apply_by).
    /// An object that is being deleted is removed with its last finalizer; a missing object is ignored. `change` must
    /// not call this cluster.
    pub fn change_by(&self, object: &Value, manager: &str, of_status: &str, change: impl FnOnce(&mut Value)) {
        let by = Writer { name: manager.to_owned(), status: of_status.to_owned(), subresource: "" };
        let Ok(target) = self.inner().target_of(object) else { return };
        let is_ending = |object: &Value| object["metadata"].get("deletionTimestamp").is_some();
        if self.inner().tree(&target).as_ref().is_some_and(is_ending) {
            let wanted = WriteOptions { writer: by, ..WriteOptions::default() };
            // An object that was removed meanwhile needs no change.
            let _ = self.inner().update(&target, Part::Main, &wanted, |mut object| {
                change(&mut object);
                Ok(object)
            });
        } else {
            let changed = |mut object: Value| {
                change(&mut object);
                Some(object)
            };
            self.inner().impose_change(&target, &by, changed, |_| ());
        }
        self.inner().fleet.run_due();
    }

    /// Applies all objects in a YAML text, also those in lists.
    ///
    /// # Errors
    /// If the text is not YAML, or an object is refused; the objects before it stay applied.
    pub fn apply_yaml(&self, text: &str) -> Result<(), SimError> {
        for object in objects(text)? {
            self.apply(object)?;
        }
        Ok(())
    }

    /// Applies objects as [`apply`](Cluster::apply) does, and then drops the history of changes, like a server that
    /// starts with a full store.
    ///
    /// # Errors
    /// As in [`apply`](Cluster::apply).
    pub fn seed(&self, objects: impl IntoIterator<Item = Value>) -> Result<(), SimError> {
        let done = objects.into_iter().try_for_each(|object| self.apply(object));
        self.inner().store().forget();
        done
    }

    /// Returns the current state of an object; `None` if it does not exist, or if its kind is unknown.
    pub fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let metadata = json!({"namespace": namespace, "name": name});
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        self.inner().tree(&self.inner().target_of(&object).ok()?)
    }

    /// Returns the current states of all objects of a kind, by namespace and name; empty if the kind is unknown.
    pub fn list(&self, api_version: &str, kind: &str) -> Vec<Value> {
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {}});
        let Ok(target) = self.inner().target_of(&object) else { return Vec::new() };
        let store = self.inner().store();
        let objects = store.range(target.shelf, "", None);
        objects.map(|(_, object)| object.tree(&target.api_version(), &target.resource.kind)).collect()
    }

    /// Deletes an object with the default options. Returns true if the deletion was accepted, even if finalizers delay
    /// it; false if the object does not exist or may not be deleted.
    pub fn delete(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> bool {
        let metadata = json!({"namespace": namespace, "name": name});
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        let target = self.inner().target_of(&object);
        let deleted = target.and_then(|target| self.inner().delete(&target, &Deletion::default()));
        self.inner().fleet.run_due();
        deleted.is_ok()
    }

    /// Plays a timeline from now on.
    pub fn play(&self, timeline: &Timeline) {
        timeline.plan(self.inner());
        self.inner().fleet.run_due();
    }

    /// Plays a timeline now and another one each time that `every` has passed, forever: the first is `next(0)`.
    pub fn play_again(&self, every: Duration, next: impl Fn(u64) -> Timeline + Send + Sync + 'static) {
        timeline::play_again(self.inner(), every.max(Duration::from_millis(1)), 0, Arc::new(next));
        self.inner().fleet.run_due();
    }

    /// Makes kubelets and the controllers of the control plane renew their Leases from now on, every 10 s of the
    /// fleet's time. Nothing else happens in a cluster without a change.
    pub fn keep_leases(&self) {
        control::keep_leases(self.inner());
    }

    /// Subscribes to a counter that grows with each change of an object, except of Leases, and with each fault that is
    /// set or removed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner().changes.subscribe()
    }

    /// Sets a fault and returns its id. A fault of connections also closes the open ones.
    pub fn fault(&self, fault: Fault) -> FaultId {
        self.inner().fault(fault)
    }

    /// Returns true unless a fault of connections is set: [`Trouble::ExpiredCertificate`], [`Trouble::Unreachable`] or
    /// [`Trouble::Blackhole`].
    pub fn is_reachable(&self) -> bool {
        self.inner().faults.connection().is_none()
    }

    /// Sets the fault `trouble` for every request, and returns its id.
    pub fn trouble(&self, trouble: Trouble) -> FaultId {
        self.fault(Fault::new(trouble))
    }

    /// Removes the fault with this id; does nothing if it was removed already.
    pub fn heal(&self, fault: FaultId) {
        self.inner().heal(fault);
    }

    /// Removes all faults.
    pub fn heal_all(&self) {
        self.inner().faults.clear();
        self.inner().noticed();
    }

    /// Closes all open connections; clients can connect again.
    pub fn cut_connections(&self) {
        self.inner().cut_connections();
    }

    /// Drops the history of changes: watches that resume from an earlier version get `410 Gone`.
    pub fn compact(&self) {
        self.inner().store().forget();
    }

    /// Reverts the last `changes` changes including the resourceVersion, as if a backup were restored, and closes
    /// the connections.
    ///
    /// # Errors
    /// If the history has fewer changes; then all of them are reverted.
    pub fn restore(&self, changes: usize) -> Result<(), SimError> {
        let undone = self.inner().store().undo(changes);
        self.inner().cut_connections();
        if undone == changes { Ok(()) } else { Err(SimError::TooFarBack { wanted: changes, kept: undone }) }
    }
}

/// Parses the objects in all documents of a YAML text. A list is replaced by its items, which get `apiVersion` and
/// `kind` from it if they have none.
///
/// # Errors
/// If the text is not YAML.
pub fn objects(text: &str) -> Result<Vec<Value>, SimError> {
    let mut objects = Vec::new();
    for document in yaml::read_all::<Value>(text).map_err(SimError::Yaml)? {
        let word = |key: &str| document[key].as_str().unwrap_or_default().into();
        match (document["items"].as_array(), ItemKind::of_list(word("apiVersion"), word("kind"))) {
            (Some(items), Some(kind)) => objects.extend(items.iter().map(|item| {
                let object = kind.object(item.into()).ok();
                object.and_then(|object| object.to_tree().ok()).unwrap_or_else(|| item.clone())
            })),
            _ if document.is_null() => {}
            _ => objects.push(document),
        }
    }
    Ok(objects)
}

/// Formats kind, namespace and name of an object: `Deployment shop/web`, or `Node one` for one without a namespace.
fn named(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let (kind, namespace, name) =
        (text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]));
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

fn kubeconfig(all: &[(&Cluster, User, &BTreeMap<String, String>)]) -> String {
    let mut text = String::from("apiVersion: v1\nkind: Config\n");
    let quoted = |text: &str| json!(text).to_string();
    let current =
        all.first().map(|(cluster, ..)| quoted(cluster.name())).unwrap_or_else(|| "\"\"".to_owned());
    // Writing into a string cannot fail.
    let _ = writeln!(text, "current-context: {current}\nclusters:");
    for (cluster, ..) in all {
        let authority = STANDARD.encode(&cluster.inner().fleet.tls.authority);
        let _ = writeln!(
            text,
            "- name: {}\n  cluster:\n    server: {}\n    certificate-authority-data: {authority}",
            quoted(cluster.name()),
            cluster.url()
        );
    }
    text.push_str("users:\n");
    for (cluster, user, _) in all {
        let name = quoted(&format!("{}-{}", user.name, cluster.name()));
        let _ = writeln!(text, "- name: {name}\n  user:\n    token: {}", quoted(&user.token));
    }
    text.push_str("contexts:\n");
    for (cluster, user, labels) in all {
        let (name, user) = (quoted(cluster.name()), quoted(&format!("{}-{}", user.name, cluster.name())));
        let _ = writeln!(text, "- name: {name}\n  context:\n    cluster: {name}\n    user: {user}");
        if !labels.is_empty() {
            let labels = json!(labels);
            let _ =
                writeln!(text, "    extensions:\n    - name: taffrail.dev/labels\n      extension: {labels}");
        }
    }
    text
}
