//! Declarations that are kept from look to look equal those that are read from nothing, while objects change
//! hands between tools, apps move between clusters, and the addresses of clusters change.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use taffrail_apps::{AppError, AppLabels, AppRows, ChangeBatch, Objects, Snapshot, apps_by};
use taffrail_object::{Object, ObjectKey, Projection};
use taffrail_status::ActiveRules;

use crate::dump::{NOW, base64, document, release};
use crate::random::Random;
use crate::rows::difference;

const ADDRESSES: [&str; 2] = ["https://edge.example:6443", "https://other.example:6443"];

/// The number of ConfigMaps that apps deliver.
const MAPS: usize = 6;

/// The apps that may own a ConfigMap.
const APPS: [&str; 10] = ["k0", "k1", "h0", "h1", "a0", "a1", "r0", "s0", "rel", "label"];

/// The facts from which all objects of two clusters are made: the first declares, either may be the target.
struct World {
    random: Random,
    /// For each ConfigMap: the apps that list it, and the one whose mark it carries.
    owners: [Vec<usize>; MAPS],
    marks: [usize; MAPS],
    present: [bool; MAPS],
    /// For each app: true if it exists, if it is suspended, and if its target is the second cluster.
    exists: [bool; APPS.len()],
    suspended: [bool; APPS.len()],
    far: [bool; APPS.len()],
    /// A status that changes nothing that is shown.
    seen: [usize; APPS.len()],
    revision: usize,
    version: i64,
    address: usize,
    /// The number of addresses by which the second cluster is known.
    servers: usize,
    has_label_key: bool,
    is_argo_known: bool,
    has_package: bool,
    is_malformed: bool,
    takes_release: bool,
    snapshots: [Snapshot; 2],
    held: [BTreeMap<ObjectKey, Value>; 2],
    rows: AppRows,
    now: Timestamp,
    told: Vec<String>,
}

fn object(version: &str, kind: &str, namespace: &str, name: &str, rest: Value) -> Value {
    let mut metadata = json!({"name": name, "uid": format!("u-{kind}-{namespace}-{name}"), "generation": 1,
        "creationTimestamp": "2026-03-01T11:00:00Z"});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    let mut object = json!({"apiVersion": version, "kind": kind, "metadata": metadata});
    for (name, value) in rest.as_object().unwrap() {
        object[name] = value.clone();
    }
    object
}

impl World {
    fn new(seed: u64) -> World {
        World {
            random: Random::new(seed),
            owners: Default::default(),
            marks: [APPS.len(); MAPS],
            present: [true; MAPS],
            exists: [true; APPS.len()],
            suspended: [false; APPS.len()],
            far: [false; APPS.len()],
            seen: [0; APPS.len()],
            revision: 0,
            version: 1,
            address: 0,
            servers: 0,
            has_label_key: false,
            is_argo_known: false,
            has_package: false,
            is_malformed: false,
            takes_release: false,
            snapshots: ["hub", "edge"].map(|name| Snapshot::dump(name, NOW)),
            held: Default::default(),
            rows: AppRows::new(AppLabels::default()),
            now: NOW,
            told: Vec::new(),
        }
    }

    fn step(&mut self) {
        let (app, map) = (self.random.below(APPS.len()), self.random.below(MAPS));
        let what = self.random.below(24);
        self.told.push(format!("{what} {} c{map}", APPS[app]));
        match what {
            0..=4 => {
                // The object goes from one app to another, with its mark or without.
                self.owners[map] = vec![app];
                if self.random.below(3) > 0 {
                    self.marks[map] = app;
                }
            }
            5 => self.owners[map].push(app),
            6 => self.marks[map] = app,
            7 => self.present[map] = !self.present[map],
            8 | 9 => self.exists[app] = !self.exists[app],
            10 => self.suspended[app] = !self.suspended[app],
            11 | 12 => self.far[app] = !self.far[app],
            13 | 14 => self.seen[app] += 1,
            15 => self.revision += 1,
            16 => self.version += 1,
            17 => self.address = 1 - self.address,
            18 if self.servers < ADDRESSES.len() && self.random.below(4) == 0 => {
                self.snapshots[1].add_server(ADDRESSES[self.servers]);
                self.servers += 1;
            }
            19 => self.has_label_key = !self.has_label_key,
            20 => self.is_argo_known = !self.is_argo_known,
            21 => self.has_package = !self.has_package,
            22 => self.is_malformed = !self.is_malformed,
            23 => self.takes_release = !self.takes_release,
            _ => self.now += SignedDuration::from_secs(60),
        }
    }

    /// Lists the ConfigMaps that an app names.
    fn listed(&self, app: usize) -> Vec<usize> {
        (0..MAPS).filter(|map| self.owners[*map].contains(&app)).collect()
    }

    fn manifest(&self, app: usize) -> String {
        let map = |map: usize| {
            format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{map}, namespace: shop}}\n")
        };
        self.listed(app).into_iter().map(map).collect()
    }

    /// Makes the objects of both clusters.
    fn objects(&self) -> [Vec<Value>; 2] {
        let mut all: [Vec<Value>; 2] = Default::default();
        let address = ADDRESSES[self.address];
        let revision = format!("main@sha1:{}", self.revision);
        for cluster in &mut all {
            for map in (0..MAPS).filter(|map| self.present[*map]) {
                let mut own = object("v1", "ConfigMap", "shop", &format!("c{map}"), json!({}));
                let (labels, annotations) = self.marks_of(map);
                own["metadata"]["labels"] = labels;
                own["metadata"]["annotations"] = annotations;
                cluster.push(own);
            }
        }
        let condition = json!([{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "Applied",
            "lastTransitionTime": "2026-03-01T11:00:00Z"}]);
        let mut put = |cluster: usize, object: Value| all[cluster].push(object);
        let flux = "flux-system";
        put(
            0,
            object(
                "source.toolkit.fluxcd.io/v1",
                "GitRepository",
                flux,
                "src",
                json!({
            "spec": {"url": "https://git.example/r.git", "interval": "1m", "ref": {"branch": "main"}},
            "status": {"artifact": {"revision": revision}, "conditions": condition}}),
            ),
        );
        let config = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: a, cluster: {{server: \"{address}\"}}}}]\ncontexts: [{{name: a, context: {{cluster: a}}}}]\n"
        );
        for namespace in [flux, "apps"] {
            put(0, object("v1", "Secret", namespace, "edge", json!({"data": {"value": base64(&config)}})));
        }
        let mut known = object(
            "v1",
            "Secret",
            "argocd",
            "edge",
            json!({"data": {"name": base64("edge"), "server": base64(address)}}),
        );
        known["metadata"]["labels"] = json!({"argocd.argoproj.io/secret-type": "cluster"});
        put(0, known);
        let label = if self.has_label_key { "example.com/app" } else { "app.kubernetes.io/instance" };
        let mut settings = object(
            "v1",
            "ConfigMap",
            "argocd",
            "argocd-cm",
            json!({"data": {"application.instanceLabelKey": label}}),
        );
        settings["metadata"]["labels"] = json!({"app.kubernetes.io/part-of": "argocd"});
        put(0, settings);
        if self.is_argo_known {
            let mut controller = object(
                "apps/v1",
                "StatefulSet",
                "argocd",
                "controller",
                json!({"spec": {"template": {"spec": {"serviceAccountName": "argocd"}}}}),
            );
            controller["metadata"]["labels"] =
                json!({"app.kubernetes.io/component": "application-controller"});
            put(0, controller);
            let rbac = "rbac.authorization.k8s.io/v1";
            put(
                0,
                object(
                    rbac,
                    "ClusterRole",
                    "",
                    "argocd",
                    json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
                ),
            );
            put(
                0,
                object(
                    rbac,
                    "ClusterRoleBinding",
                    "",
                    "argocd",
                    json!({
                "subjects": [{"kind": "ServiceAccount", "namespace": "argocd", "name": "argocd"}],
                "roleRef": {"kind": "ClusterRole", "name": "argocd"}}),
                ),
            );
        }
        if self.has_package {
            put(
                0,
                object(
                    "config.porch.kpt.dev/v1alpha1",
                    "Repository",
                    flux,
                    "r",
                    json!({
                "spec": {"deployment": true, "git": {"repo": "https://git.example/r.git", "branch": "main"}}}),
                ),
            );
            put(
                0,
                object(
                    "porch.kpt.dev/v1alpha1",
                    "PackageRevision",
                    flux,
                    "p",
                    json!({
                "spec": {"repository": "r", "packageName": "x", "revision": 1, "lifecycle": "Published"},
                "status": {"selfLock": {"git": {"directory": "x", "commit": "1"}}}}),
                ),
            );
        }
        for (app, name) in APPS.iter().enumerate().filter(|(app, _)| self.exists[*app]) {
            let listed = self.listed(app);
            let kube_config = self.far[app].then(|| json!({"secretRef": {"name": "edge"}}));
            let suspend = self.suspended[app];
            let mut ids: Vec<Value> = listed
                .iter()
                .map(|map| json!({"id": format!("shop_c{map}__ConfigMap"), "v": "v1"}))
                .collect();
            let named: Vec<Value> = listed
                .iter()
                .map(|map| {
                    json!({"group": "", "kind": "ConfigMap", "namespace": "shop",
                "name": format!("c{map}"), "version": "v1", "status": "Synced"})
                })
                .collect();
            if self.is_malformed && app == 0 {
                ids.push(json!({"id": "nothing", "v": "v1"}));
            }
            let seen = self.seen[app].to_string();
            match &name[..1] {
                "k" => put(
                    0,
                    object(
                        "kustomize.toolkit.fluxcd.io/v1",
                        "Kustomization",
                        flux,
                        name,
                        json!({
                    "spec": {"interval": "10m", "path": "./x", "suspend": suspend, "kubeConfig": kube_config,
                        "sourceRef": {"kind": "GitRepository", "name": "src"}},
                    "status": {"observedGeneration": 1, "lastAppliedRevision": "main@sha1:1", "lastHandledReconcileAt": seen,
                        "lastAttemptedRevision": "main@sha1:1", "inventory": {"entries": ids}, "conditions": condition}}),
                    ),
                ),
                "h" => {
                    let takes = self.takes_release && app == 2;
                    let mut own = object(
                        "helm.toolkit.fluxcd.io/v2",
                        "HelmRelease",
                        "apps",
                        name,
                        json!({
                        "spec": {"suspend": suspend, "kubeConfig": kube_config, "targetNamespace": "shop",
                            "chartRef": {"kind": "OCIRepository", "name": "chart"}},
                        "status": {"observedGeneration": 1, "lastHandledReconcileAt": seen, "conditions": condition}}),
                    );
                    if takes {
                        own["spec"]["storageNamespace"] = json!("shop");
                        own["spec"]["releaseName"] = json!("rel");
                    }
                    match app {
                        2 => own["status"]["inventory"] = json!({"entries": ids}),
                        _ => {
                            let stored =
                                release("apps", "shop-h1", self.version, "deployed", &self.manifest(app));
                            put(usize::from(self.far[app]), stored);
                        }
                    }
                    put(0, own);
                }
                "a" => put(
                    0,
                    object(
                        "argoproj.io/v1alpha1",
                        "Application",
                        "argocd",
                        name,
                        json!({
                    "spec": {"destination": match self.far[app] {
                        true => json!({"name": "edge"}),
                        false => json!({"server": "https://kubernetes.default.svc"}),
                    }},
                    "status": {"sync": {"status": "Synced", "revision": revision}, "health": {"status": "Healthy"},
                        "reconciledAt": seen, "resources": named}}),
                    ),
                ),
                "r" if name == &"r0" => put(
                    usize::from(self.far[app]),
                    object(
                        "kpt.dev/v1alpha1",
                        "ResourceGroup",
                        "shop",
                        name,
                        json!({"spec": {"resources": named}, "status": {"seen": seen}}),
                    ),
                ),
                "s" => {
                    let home = usize::from(self.far[app]);
                    let config = "config-management-system";
                    put(
                        home,
                        object(
                            "configsync.gke.io/v1beta1",
                            "RootSync",
                            config,
                            name,
                            json!({
                        "spec": {"git": {"repo": "https://git.example/r.git", "dir": "x", "branch": "main"}},
                        "status": {"lastSyncedCommit": "1", "seen": seen, "source": {"commit": "1"}, "sync": {"commit": "1"}}}),
                        ),
                    );
                    put(
                        home,
                        object(
                            "kpt.dev/v1alpha1",
                            "ResourceGroup",
                            config,
                            name,
                            json!({"spec": {"resources": named}}),
                        ),
                    );
                }
                "r" => {
                    let status = if suspend { "failed" } else { "deployed" };
                    let stored = release("shop", "rel", self.version, status, &self.manifest(app));
                    put(usize::from(self.far[app]), stored);
                }
                _ => {}
            }
        }
        all
    }

    /// Makes the labels and annotations of a ConfigMap.
    fn marks_of(&self, map: usize) -> (Value, Value) {
        let app = self.marks[map];
        let name = APPS.get(app).copied().unwrap_or_default();
        let flux = |tool: &str, namespace: &str| {
            json!({format!("{tool}.toolkit.fluxcd.io/name"): name, format!("{tool}.toolkit.fluxcd.io/namespace"): namespace,
                "app.kubernetes.io/instance": "web"})
        };
        let web = json!({"app.kubernetes.io/instance": "web"});
        match app {
            0 | 1 => (flux("kustomize", "flux-system"), json!({})),
            2 | 3 => (flux("helm", "apps"), json!({})),
            4 => (json!({"app.kubernetes.io/instance": name, "example.com/app": name}), json!({})),
            5 => (web, json!({"argocd.argoproj.io/tracking-id": format!("{name}:/ConfigMap:shop/c{map}")})),
            7 => (web, json!({"configsync.gke.io/manager": format!(":root_{name}")})),
            8 => (web, json!({"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": "shop"})),
            _ => (web, json!({})),
        }
    }

    /// Tells the snapshots which objects differ, and looks at them.
    fn look(&mut self) -> (usize, usize) {
        let objects = self.objects();
        for ((snapshot, held), objects) in self.snapshots.iter_mut().zip(&mut self.held).zip(objects) {
            let objects: BTreeMap<ObjectKey, Value> = objects
                .into_iter()
                .map(|object| (ObjectKey::of(&Object::new((&object).into()).unwrap()), object))
                .collect();
            held.keys().filter(|key| !objects.contains_key(*key)).for_each(|key| snapshot.remove(key));
            for (key, object) in &objects {
                if held.get(key) != Some(object) {
                    snapshot.insert(document(object), Projection::Full).unwrap();
                }
            }
            *held = objects;
        }
        let changes = self.snapshots.each_mut().map(Snapshot::take_changes);
        let clusters: [&dyn Objects; 2] = [&self.snapshots[0], &self.snapshots[1]];
        let looked = self.rows.look(&clusters, &changes, &ActiveRules::default(), self.now);
        let whole = apps_by(&AppLabels::default(), &clusters, &ActiveRules::default(), self.now);
        if let Some(difference) = difference(self.rows.list(), &whole) {
            panic!("{:?}: {difference}", self.told);
        }
        self.told.clear();
        if looked.is_whole {
            return (0, 0);
        }
        let parts = self.held.iter().flat_map(BTreeMap::keys);
        let kinds = ["Kustomization", "HelmRelease", "Application", "RootSync", "ResourceGroup"];
        (looked.declared, parts.filter(|key| kinds.contains(&&*key.kind)).count() + 4)
    }
}

#[test]
fn kept_declarations_equal_those_read_from_nothing() {
    let (mut read, mut all) = (0, 0);
    for seed in 0..12 {
        let mut world = World::new(seed);
        world.look();
        for _ in 0..150 {
            for _ in 0..=world.random.below(3) {
                world.step();
            }
            let (own, of) = world.look();
            read += own;
            all += of;
        }
    }
    println!("{read} of {all} declarations were read again");
    assert!(read * 3 < all, "{read} of {all} declarations were read again");
}

/// An alias of a cluster makes its address known, and takes its rows away.
#[test]
fn a_cluster_that_turns_out_to_be_an_alias_is_followed() {
    let mut world = World::new(1);
    world.far = [true; APPS.len()];
    world.owners = std::array::from_fn(|map| vec![map]);
    world.look();
    let look = |world: &mut World, alias: &Snapshot, changes: ChangeBatch| {
        let clusters: [&dyn Objects; 3] = [&world.snapshots[0], &world.snapshots[1], alias];
        let changes = [ChangeBatch::default(), ChangeBatch::default(), changes];
        let looked = world.rows.look(&clusters, &changes, &ActiveRules::default(), NOW);
        let whole = apps_by(&AppLabels::default(), &clusters, &ActiveRules::default(), NOW);
        assert_eq!(difference(world.rows.list(), &whole), None);
        (looked.is_whole, whole.apps.len())
    };
    let system = object("v1", "Namespace", "", "kube-system", json!({}));
    let mut alias = Snapshot::dump("copy", NOW);
    alias.add_server(ADDRESSES[0]);
    world.snapshots[1].insert(document(&system), Projection::Full).unwrap();
    let changes = alias.take_changes();
    let (is_whole, apart) = look(&mut world, &alias, changes);
    assert!(is_whole);
    alias.insert(document(&system), Projection::Full).unwrap();
    world.snapshots[1].add_server(ADDRESSES[0]);
    let changes = alias.take_changes();
    let (is_whole, together) = look(&mut world, &alias, changes);
    assert!(is_whole && together == apart, "{apart} {together}");
}

/// The limit of errors in a namespace is the same for kept declarations: those with errors are read again.
#[test]
fn errors_beyond_the_limit_of_a_namespace_are_counted_as_in_a_single_look() {
    let app = |at: usize, bad: usize| {
        let entries: Vec<Value> = (0..bad).map(|_| json!({"id": "nothing", "v": "v1"})).collect();
        let status = json!({"inventory": {"entries": entries}});
        let name = format!("k{at}");
        object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "team", &name, json!({"status": status}))
    };
    let mut cluster = Snapshot::dump("prod", NOW);
    let mut rows = AppRows::new(AppLabels::default());
    let mut is_reached = Vec::new();
    for (at, bad) in [(0, 49), (1, 49), (2, 49), (3, 49), (4, 49), (5, 0), (1, 0), (5, 9), (0, 1), (1, 49)] {
        cluster.insert(document(&app(at, bad)), Projection::Full).unwrap();
        let changes = [cluster.take_changes()];
        rows.look(&[&cluster], &changes, &ActiveRules::default(), NOW);
        let whole = apps_by(&AppLabels::default(), &[&cluster], &ActiveRules::default(), NOW);
        assert_eq!(difference(rows.list(), &whole), None, "{at} {bad}");
        let is_rest = |error: &AppError| error.error.message.contains("more errors are not listed");
        is_reached.push(whole.errors.iter().any(is_rest));
    }
    assert!(is_reached.contains(&true) && is_reached.ends_with(&[false, true]), "{is_reached:?}");
}
