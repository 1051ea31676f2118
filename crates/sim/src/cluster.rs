//! One cluster: its API server, and what its owner can do to it beside what a client can.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fastrand::Rng;
use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_object::{ItemKind, yaml};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::admission::NAME_LETTERS;
use crate::behaviour::Behaviours;
use crate::error::{ApiError, SimError};
use crate::fault::{Fault, FaultId, Faults, Trouble};
use crate::fleet::Shared;
use crate::kinds::{builtin, split_group_version};
use crate::managed::Writer;
use crate::store::{Object, Store};
use crate::timeline::{self, Timeline};
use crate::write::{Deletion, Part, Target, Wanted};
use crate::{control, http};

/// Somebody who may send requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name, as roles are bound to it.
    pub name: String,
    /// The bearer token; nobody can log in with an empty one.
    pub token: String,
    /// The groups. Members of `system:masters` may do everything.
    pub groups: Vec<String>,
}

impl User {
    /// A user with a token and groups.
    pub fn new(name: &str, token: &str, groups: &[&str]) -> User {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        User { name: name.to_owned(), token: token.to_owned(), groups }
    }
}

/// A cluster of a fleet. With its last handle the API server ends: its port is closed and its connections are cut.
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
        // Connections have their own handles on what is inside; what is planned finds nobody.
        self.inner.cut_connections();
    }
}

/// What requests work on.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) fleet: Arc<Shared>,
    pub(crate) does: Behaviours,
    pub(crate) users: RwLock<Vec<User>>,
    pub(crate) faults: Faults,
    /// Changes when all open connections are to be cut.
    pub(crate) cut: watch::Sender<u64>,
    /// Counts what others can see change; renewals of Leases are not counted.
    pub(crate) changes: watch::Sender<u64>,
    /// What controllers will look at, and when.
    pub(crate) pending: Mutex<HashMap<control::Task, Timestamp>>,
    store: Mutex<Store>,
    random: Mutex<Rng>,
    me: Weak<Inner>,
    admin: User,
}

impl Inner {
    fn new(fleet: Arc<Shared>, name: &str) -> Arc<Inner> {
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
            me: me.clone(),
            admin,
            fleet,
        })
    }

    /// The objects. Never held across an await.
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn weak(&self) -> &Weak<Inner> {
        &self.me
    }

    pub(crate) fn admin(&self) -> &User {
        &self.admin
    }

    pub(crate) fn random(&self) -> MutexGuard<'_, Rng> {
        self.random.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many letters as generated names end with.
    pub(crate) fn letters(&self, count: usize) -> String {
        let mut random = self.random();
        (0..count).map(|_| char::from(NAME_LETTERS[random.usize(..NAME_LETTERS.len())])).collect()
    }

    /// A uid that no other object has.
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

    /// What follows from a change.
    pub(crate) fn changed(&self, target: &Target, object: &Arc<Object>, gone: bool) {
        if !target.resource.is("coordination.k8s.io", "leases") {
            self.noticed();
        }
        control::react(self, target, object, gone);
    }

    /// Counts a change that somebody outside can notice.
    fn noticed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Sets a fault. Faults of connections hit those that are open, too.
    pub(crate) fn fault(&self, fault: Fault) -> FaultId {
        let id = self.faults.add(fault);
        if self.faults.connection().is_some() {
            self.cut_connections();
        }
        self.noticed();
        id
    }

    /// Takes the newest fault with this trouble away.
    pub(crate) fn heal_trouble(&self, trouble: &Trouble) {
        if self.faults.remove_newest(trouble) {
            self.noticed();
        }
    }

    /// Takes a fault away.
    pub(crate) fn heal(&self, fault: FaultId) {
        self.faults.remove(fault);
        self.noticed();
    }

    /// Where an object belongs, by what it says of itself.
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

    /// The target of an object of a built-in kind.
    pub(crate) fn target(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Target> {
        let store = self.store();
        let (shelf, resource) = store.find(group, plural)?;
        let version = resource.versions.first()?.name.clone();
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Some(Target { shelf, resource: resource.clone(), version, namespace, name })
    }

    /// An object as a tree.
    pub(crate) fn tree(&self, target: &Target) -> Option<Value> {
        let object = self.store().get(target.shelf, &target.key()).cloned()?;
        Some(object.tree(&target.api_version(), &target.resource.kind))
    }

    /// What every cluster begins with.
    fn furnish(&self) {
        if self.fleet.options.verbatim {
            return;
        }
        let created = |object: Value| {
            if let Ok(target) = self.target_of(&object) {
                // What is refused here was switched off, or is there already.
                let _ = self.impose(&target, object, &Writer::named("kube-apiserver"));
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
        for number in 1..=self.fleet.options.nodes {
            created(control::node(self, number));
        }
        self.fleet.run_due();
    }
}

fn token(random: &mut Rng) -> String {
    format!("{:016x}{:016x}", random.u64(..), random.u64(..))
}

impl Cluster {
    pub(crate) async fn start(fleet: Arc<Shared>, name: &str) -> Result<Cluster, SimError> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(SimError::Listen)?;
        let address = listener.local_addr().map_err(SimError::Listen)?;
        let inner = Inner::new(fleet, name);
        inner.furnish();
        let server = tokio::spawn(http::serve(inner.clone(), listener)).abort_handle();
        Ok(Cluster(Arc::new(Handle { inner, address, server })))
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0.inner
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner().name
    }

    /// The address of its API server, `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("https://{}", self.0.address)
    }

    /// The administrator.
    pub fn admin(&self) -> User {
        self.inner().admin.clone()
    }

    /// The newest resourceVersion.
    pub fn resource_version(&self) -> u64 {
        self.inner().store().version()
    }

    /// How many objects it holds.
    pub fn object_count(&self) -> usize {
        let store = self.inner().store();
        store.resources().map(|(shelf, _)| store.count(shelf)).sum()
    }

    /// Adds somebody who may log in; roles of the cluster say what they may do.
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

    /// A kubeconfig for the administrator, whose one context has the cluster's name.
    pub fn kubeconfig(&self) -> String {
        Cluster::kubeconfig_of(std::slice::from_ref(self))
    }

    /// A kubeconfig for somebody else.
    pub fn kubeconfig_for(&self, user: &User) -> String {
        kubeconfig(&[(self, user.clone())])
    }

    /// A kubeconfig with a context for each cluster, for their administrators. The first is the current one.
    pub fn kubeconfig_of(clusters: &[Cluster]) -> String {
        let all: Vec<_> = clusters.iter().map(|cluster| (cluster, cluster.admin())).collect();
        kubeconfig(&all)
    }

    /// Creates or replaces an object, its status included. Neither admission nor schemas are asked, and what the object
    /// does not say of its metadata is filled in; what follows from it follows.
    ///
    /// # Errors
    /// When its kind or its namespace is unknown, or it has no name.
    pub fn apply(&self, object: Value) -> Result<(), SimError> {
        self.apply_by(object, "kubectl", "")
    }

    /// As [`apply`](Cluster::apply), by a field manager with this name; another one writes the status where it has a name.
    ///
    /// # Errors
    /// As [`apply`](Cluster::apply).
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

    /// Changes an object as it is now, so that nobody writes it in between, by field managers as in
    /// [`apply_by`](Cluster::apply_by). An object that is being deleted goes when its last finalizer does; one that is
    /// gone is left alone. `change` must not call this cluster.
    pub fn change_by(&self, object: &Value, manager: &str, of_status: &str, change: impl FnOnce(&mut Value)) {
        let by = Writer { name: manager.to_owned(), status: of_status.to_owned(), subresource: "" };
        let Ok(target) = self.inner().target_of(object) else { return };
        let is_ending = |object: &Value| object["metadata"].get("deletionTimestamp").is_some();
        if self.inner().tree(&target).as_ref().is_some_and(is_ending) {
            let wanted = Wanted { writer: by, ..Wanted::default() };
            // One that has gone meanwhile needs no change.
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

    /// Applies all objects of a text, lists among them item by item.
    ///
    /// # Errors
    /// When the text is no YAML, or an object is refused: those before it stay.
    pub fn apply_yaml(&self, text: &str) -> Result<(), SimError> {
        for object in objects(text)? {
            self.apply(object)?;
        }
        Ok(())
    }

    /// Applies objects, and forgets that they were ever not there: as a server that starts over a full store.
    /// Much cheaper than that they come one by one when there are many.
    ///
    /// # Errors
    /// As [`apply`](Cluster::apply).
    pub fn seed(&self, objects: impl IntoIterator<Item = Value>) -> Result<(), SimError> {
        let done = objects.into_iter().try_for_each(|object| self.apply(object));
        self.inner().store().forget();
        done
    }

    /// An object as it is now.
    pub fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let metadata = json!({"namespace": namespace, "name": name});
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        self.inner().tree(&self.inner().target_of(&object).ok()?)
    }

    /// Deletes an object as a client without wishes of its own does; gives whether there was one.
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

    /// Plays a timeline from now on and another one each time that `every` has passed, for ever: the first is `next(0)`.
    pub fn play_again(&self, every: Duration, next: impl Fn(u64) -> Timeline + Send + Sync + 'static) {
        timeline::play_again(self.inner(), every.max(Duration::from_millis(1)), 0, Arc::new(next));
        self.inner().fleet.run_due();
    }

    /// From now on, kubelets and the controllers of the control plane renew their Leases, as often as the real ones. It
    /// is the only thing in a cluster that happens without a change.
    pub fn keep_leases(&self) {
        control::keep_leases(self.inner());
    }

    /// Tells when anything has changed: objects, but for Leases that were renewed, and whether the cluster is in reach.
    /// What comes is a number that grows.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner().changes.subscribe()
    }

    /// Sets a fault. Faults of connections hit those that are open, too.
    pub fn fault(&self, fault: Fault) -> FaultId {
        self.inner().fault(fault)
    }

    /// Returns whether the API server takes connections: no fault of connections is set.
    pub fn is_reachable(&self) -> bool {
        self.inner().faults.connection().is_none()
    }

    /// Sets a fault that hits every request.
    pub fn trouble(&self, trouble: Trouble) -> FaultId {
        self.fault(Fault::new(trouble))
    }

    /// Takes a fault away.
    pub fn heal(&self, fault: FaultId) {
        self.inner().heal(fault);
    }

    /// Takes all faults away.
    pub fn heal_all(&self) {
        self.inner().faults.clear();
        self.inner().noticed();
    }

    /// Closes all open connections; new ones are taken.
    pub fn cut_connections(&self) {
        self.inner().cut_connections();
    }

    /// Forgets all changes: watches that come back later than now are told `410 Gone`.
    pub fn compact(&self) {
        self.inner().store().forget();
    }

    /// Goes back to the state before the last `changes` changes, and to its resourceVersion, as a restored backup does.
    /// The connections are cut.
    ///
    /// # Errors
    /// When fewer changes are known; then all of them have been taken back.
    pub fn restore(&self, changes: usize) -> Result<(), SimError> {
        let undone = self.inner().store().undo(changes);
        self.inner().cut_connections();
        if undone == changes { Ok(()) } else { Err(SimError::TooFarBack { wanted: changes, kept: undone }) }
    }
}

/// The objects of a text, lists taken apart.
///
/// # Errors
/// When the text is no YAML.
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

/// `Deployment shop/web`.
fn named(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let (kind, namespace, name) =
        (text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]));
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

fn kubeconfig(all: &[(&Cluster, User)]) -> String {
    let mut text = String::from("apiVersion: v1\nkind: Config\n");
    let quoted = |text: &str| json!(text).to_string();
    let current = all.first().map(|(cluster, _)| quoted(cluster.name())).unwrap_or_else(|| "\"\"".to_owned());
    // Writing into a string does not fail.
    let _ = writeln!(text, "current-context: {current}\nclusters:");
    for (cluster, _) in all {
        let authority = STANDARD.encode(&cluster.inner().fleet.tls.authority);
        let _ = writeln!(
            text,
            "- name: {}\n  cluster:\n    server: {}\n    certificate-authority-data: {authority}",
            quoted(cluster.name()),
            cluster.url()
        );
    }
    text.push_str("users:\n");
    for (cluster, user) in all {
        let name = quoted(&format!("{}-{}", user.name, cluster.name()));
        let _ = writeln!(text, "- name: {name}\n  user:\n    token: {}", quoted(&user.token));
    }
    text.push_str("contexts:\n");
    for (cluster, user) in all {
        let (name, user) = (quoted(cluster.name()), quoted(&format!("{}-{}", user.name, cluster.name())));
        let _ = writeln!(text, "- name: {name}\n  context:\n    cluster: {name}\n    user: {user}");
    }
    text
}
