//! The objects of the fleet before any fault, as YAML to apply.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use taffrail_apps::inventory_id;
use taffrail_object::{ObjectKey, yaml};
use taffrail_sim::{Cluster, SimError};

use super::managers::status_manager;
use super::repository::{Repository, key_of};
use super::template::{Values, hash};
use super::tools::ToolObject;
use super::{App, Declared, Member, WorldError};

/// Objects as YAML text, with the field manager that applies them.
pub(super) struct ManagedTexts {
    text: String,
    /// The field manager that applies the objects.
    manager: &'static str,
    /// The name of the Argo CD app in the objects' tracking annotation; `None` for no annotation.
    tracked_by: Option<String>,
}

/// The objects to apply to each cluster, by the cluster's name.
type Texts = BTreeMap<String, Vec<ManagedTexts>>;

impl ManagedTexts {
    fn new(text: String, manager: &'static str) -> ManagedTexts {
        ManagedTexts { text, manager, tracked_by: None }
    }

    /// Returns the objects on which the simulated controllers of Flux and Argo CD act, such as Kustomizations.
    pub(super) fn told(&self) -> Result<Vec<ToolObject>, SimError> {
        Ok(taffrail_sim::objects(&self.text)?.iter().filter_map(ToolObject::of).collect())
    }

    /// Applies the objects to `cluster`, except for Namespaces that exist there, since these belong to the first app
    /// that created them.
    pub(super) fn apply(&self, cluster: &Cluster) -> Result<(), SimError> {
        for object in self.objects()? {
            let key = key_of(&object);
            if key.kind == "Namespace" && cluster.get("v1", "Namespace", "", &key.name).is_some() {
                continue;
            }
            cluster.apply_by(object, self.manager, status_manager(&key.group, &key.kind))?;
        }
        Ok(())
    }

    /// Adds the objects to the repository, from which the simulated delivery tool applies them again after drift.
    pub(super) fn declare(&self, repository: &Repository) -> Result<(), SimError> {
        self.objects()?.into_iter().for_each(|object| repository.declare(object, self.manager));
        Ok(())
    }

    /// Parses the objects, and adds the tracking annotation of their Argo CD app if they have one.
    fn objects(&self) -> Result<Vec<Value>, SimError> {
        let mut objects = taffrail_sim::objects(&self.text)?;
        if let Some(app) = &self.tracked_by {
            for object in &mut objects {
                let ObjectKey { group, kind, namespace, name } = key_of(object);
                object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] =
                    json!(format!("{app}:{group}/{kind}:{namespace}/{name}"));
            }
        }
        Ok(objects)
    }
}

/// A kind of custom resources in the simulated clusters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CustomKind {
    group: String,
    version: String,
    kind: String,
    plural: String,
    short: Vec<String>,
    columns: Value,
}

/// The way in which an app is delivered: as a Kustomization, HelmRelease, Application, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Kustomization,
    HelmRelease,
    Application,
    ConfigSync,
    Kpt,
    Helm,
    Label,
}

impl Delivery {
    /// Returns the name of the field manager that applies the objects of an app.
    fn manager(self) -> &'static str {
        match self {
            Delivery::Kustomization => "kustomize-controller",
            Delivery::HelmRelease => "helm-controller",
            Delivery::Application => "argocd-controller",
            Delivery::ConfigSync => "configsync",
            Delivery::Kpt => "kpt",
            Delivery::Helm => "helm",
            Delivery::Label => "kubectl-client-side-apply",
        }
    }

    /// Returns the name of the field manager that applies the object that declares an app.
    fn declarer(self) -> &'static str {
        match self {
            Delivery::HelmRelease => "kustomize-controller",
            Delivery::Application | Delivery::ConfigSync => "kubectl",
            own => own.manager(),
        }
    }
}

/// Returns the name of the field manager that applies the objects of the app in `namespace` of a cluster, of several
/// apps the first by way of delivery; `kubectl` if there is none.
pub(super) fn manager_in(declared: &Declared, cluster: &str, namespace: &str) -> &'static str {
    let member = declared.clusters.iter().find(|member| member.name == cluster);
    let found = member.into_iter().flat_map(deliveries).find_map(|(delivery, apps)| {
        let is_here = |name: &String| declared.apps.get(name).is_some_and(|app| app.namespace == namespace);
        apps.iter().any(is_here).then_some(delivery)
    });
    found.map_or("kubectl", Delivery::manager)
}

/// Returns, for each way of delivery, the names of the apps that are delivered to a cluster in this way.
fn deliveries(member: &Member) -> [(Delivery, &Vec<String>); 7] {
    [
        (Delivery::Kustomization, &member.flux_kustomization),
        (Delivery::HelmRelease, &member.flux_helmrelease),
        (Delivery::Application, &member.argo_application),
        (Delivery::ConfigSync, &member.config_sync),
        (Delivery::Kpt, &member.kpt),
        (Delivery::Helm, &member.helm),
        (Delivery::Label, &member.label),
    ]
}

/// Returns all objects of all clusters at the start, by cluster; `servers` has the URL of each cluster, `since` is
/// the start of the simulated past.
pub(super) fn all(
    declared: &Declared,
    seed: u64,
    servers: &BTreeMap<String, String>,
    since: Timestamp,
) -> Result<Texts, WorldError> {
    let definitions = definitions()?;
    let mut texts: Texts = BTreeMap::new();
    for member in &declared.clusters {
        let made = ManagedTexts::new(definitions.clone(), "kubectl");
        texts.entry(member.name.clone()).or_default().push(made);
    }
    for member in &declared.clusters {
        for (delivery, apps) in deliveries(member) {
            for name in apps {
                let app = declared.app(name)?;
                let one = One { seed, servers, since, member, name, app, delivery };
                one.write(&mut texts)?;
            }
        }
    }
    Ok(texts)
}

fn definitions() -> Result<String, WorldError> {
    let kinds: Vec<CustomKind> =
        yaml::read(include_str!("kinds.yaml")).map_err(|error| WorldError::Declared(error.to_string()))?;
    let mut texts = Vec::new();
    for CustomKind { group, version, kind, plural, short, columns } in kinds {
        let values = Values::default().with("singular", kind.to_lowercase()).with("kind", kind);
        let values = values.with("group", group).with("version", version).with("plural", plural);
        let values = values.with("short", json!(short)).with("columns", columns);
        texts.push(values.fill(include_str!("templates/crd.yaml"))?);
    }
    Ok(texts.join("\n---\n"))
}

/// Returns a made-up Git revision `branch@sha1:hash`, which depends on all arguments; `turn` is empty at the start, and
/// in a fault a word and the number of the round.
pub(super) fn revision(seed: u64, app: &str, branch: &str, turn: &str) -> String {
    format!("{branch}@sha1:{}", hash(seed, &[app, branch, turn], 40))
}

/// Returns the artifact of a GitRepository at a revision.
pub(super) fn artifact(app: &str, revision: &str, at: &str) -> Value {
    let commit = revision.rsplit(':').next().unwrap_or_default();
    let path = format!("gitrepository/flux-system/{app}/{commit}.tar.gz");
    json!({
        "revision": revision, "path": path, "digest": format!("sha256:{}", hash(0, &[revision], 64)), "size": 18_230,
        "url": format!("http://source-controller.flux-system.svc.cluster.local./{path}"), "lastUpdateTime": at,
    })
}

/// One app in one cluster, with the way in which it is delivered.
struct One<'o> {
    seed: u64,
    servers: &'o BTreeMap<String, String>,
    since: Timestamp,
    member: &'o Member,
    name: &'o str,
    app: &'o App,
    delivery: Delivery,
}

impl One<'_> {
    fn write(&self, texts: &mut Texts) -> Result<(), WorldError> {
        let here = texts.entry(self.member.name.clone()).or_default();
        let tracked_by = (self.delivery == Delivery::Application).then(|| self.application_name());
        let made =
            |text| ManagedTexts { text, manager: self.delivery.manager(), tracked_by: tracked_by.clone() };
        here.push(self.own_namespace()?);
        for (workload, replicas) in &self.app.workloads {
            let has_volume = self.app.volume.as_ref() == Some(workload);
            let (mut mounts, mut volumes) = (json!([]), json!([]));
            if has_volume {
                mounts = json!([{"name": "data", "mountPath": "/data"}]);
                volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": workload}}]);
            }
            let image = if self.app.image.ends_with('/') {
                format!("{}{workload}:{}", self.app.image, self.app.version)
            } else {
                format!("{}:{}", self.app.image, self.app.version)
            };
            let values =
                self.values().with("workload", workload).with("replicas", replicas).with("image", image);
            let values = values.with("mounts", mounts).with("volumes", volumes);
            if has_volume {
                here.push(made(values.fill(include_str!("templates/volume.yaml"))?));
            }
            here.push(made(values.fill(include_str!("templates/workload.yaml"))?));
        }
        if let Some(quota) = self.app.quota {
            let values = self.values().with("quota", quota);
            here.push(made(values.fill(include_str!("templates/quota.yaml"))?));
        }
        self.declare(texts)
    }

    /// Adds to `texts` the objects that declare the app: Kustomization or Application, its source, and the like.
    fn declare(&self, texts: &mut Texts) -> Result<(), WorldError> {
        let own = &self.member.name;
        let home = match self.delivery {
            Delivery::Application => self.member.from.as_ref().unwrap_or(own),
            _ => own,
        };
        let manager = self.delivery.declarer();
        let mut add =
            |text: String| texts.entry(home.clone()).or_default().push(ManagedTexts::new(text, manager));
        match self.delivery {
            Delivery::Label => {}
            Delivery::Kustomization => {
                let revision = revision(self.seed, self.name, &self.member.branch, "");
                let at = self.since.to_string();
                let values = self.values().with("artifact", artifact(self.name, &revision, &at));
                let values = values.with("revision", revision).with("inventory", self.inventory());
                add(self.namespace("flux-system")?);
                add(values.fill(include_str!("templates/flux-kustomization.yaml"))?);
            }
            Delivery::HelmRelease => {
                let values = self.chart().with("inventory", self.inventory());
                add(values.fill(include_str!("templates/flux-helmrelease.yaml"))?);
            }
            Delivery::Helm => {
                let values = self.values().with("release", self.release());
                add(values.fill(include_str!("templates/helm.yaml"))?);
            }
            Delivery::Kpt => add(self.resource_group(&self.app.namespace)?),
            Delivery::ConfigSync => {
                let is_root = self.name == "root-sync";
                let (kind, home) = if is_root {
                    ("RootSync", SYNC_NAMESPACE)
                } else {
                    ("RepoSync", self.app.namespace.as_str())
                };
                let reconciler = if is_root {
                    "root-reconciler".to_owned()
                } else {
                    format!("ns-reconciler-{home}-{}-{}", self.name, self.name.len())
                };
                let values = self.values().with("kind", kind).with("home", home).with("sync", self.name);
                let values = values.with("reconciler", reconciler).with("commit", self.commit());
                add(self.namespace(SYNC_NAMESPACE)?);
                add(values.fill(include_str!("templates/config-sync.yaml"))?);
                add(self.resource_group(home)?);
            }
            Delivery::Application => {
                add(self.namespace("argocd")?);
                texts.entry(home.clone()).or_default().extend(self.application()?);
            }
        }
        Ok(())
    }

    fn values(&self) -> Values<'_> {
        let Member { name, region, branch, .. } = self.member;
        Values::default()
            .with("cluster", name)
            .with("region", region)
            .with("branch", branch)
            .with("app", self.name)
            .with("namespace", &self.app.namespace)
            .with("labels", self.labels())
            .with("annotations", self.annotations())
            .with("since", self.since.strftime("%Y-%m-%dT%H:%M:%SZ"))
            .with("version", &self.app.version)
            .with("selfHeal", self.app.self_heal)
    }

    fn namespace(&self, name: &str) -> Result<String, WorldError> {
        let values = Values::default().with("namespace", name).with("labels", "{}").with("annotations", "{}");
        Ok(values.fill(include_str!("templates/namespace.yaml"))?)
    }

    /// Returns the Namespace of the app, with the marks of the delivery tool if the app declares it.
    fn own_namespace(&self) -> Result<ManagedTexts, WorldError> {
        if !self.objects().iter().any(|key| key.kind == "Namespace") {
            return Ok(ManagedTexts::new(self.namespace(&self.app.namespace)?, "kubectl"));
        }
        let text = self.values().fill(include_str!("templates/namespace.yaml"))?;
        Ok(ManagedTexts::new(text, self.delivery.manager()))
    }

    fn commit(&self) -> String {
        hash(self.seed, &[self.name, "main"], 40)
    }

    /// Returns the labels that the tool sets on the objects it applies.
    fn labels(&self) -> Value {
        match self.delivery {
            Delivery::Kustomization => json!({
                "kustomize.toolkit.fluxcd.io/name": self.name, "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
            }),
            Delivery::HelmRelease => json!({
                "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": self.name,
                "helm.toolkit.fluxcd.io/name": self.name, "helm.toolkit.fluxcd.io/namespace": self.app.namespace,
            }),
            Delivery::Helm => json!({
                "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": self.name,
            }),
            Delivery::ConfigSync => json!({"app.kubernetes.io/managed-by": "configmanagement.gke.io"}),
            Delivery::Label => json!({"app.kubernetes.io/instance": self.name}),
            Delivery::Application | Delivery::Kpt => json!({}),
        }
    }

    fn annotations(&self) -> Value {
        match self.delivery {
            Delivery::HelmRelease | Delivery::Helm => json!({
                "meta.helm.sh/release-name": self.name, "meta.helm.sh/release-namespace": self.app.namespace,
            }),
            Delivery::ConfigSync => json!({
                "configmanagement.gke.io/managed": "enabled",
                "config.k8s.io/owning-inventory": format!(
                    "{}_{}", if self.name == "root-sync" { SYNC_NAMESPACE } else { &self.app.namespace }, self.name
                ),
                "configsync.gke.io/manager": if self.name == "root-sync" { ":root".to_owned() } else { format!("{}_{}", self.app.namespace, self.name) },
            }),
            Delivery::Kpt => {
                json!({"config.k8s.io/owning-inventory": format!("{}_{}", self.app.namespace, self.name)})
            }
            Delivery::Kustomization | Delivery::Application | Delivery::Label => json!({}),
        }
    }

    /// Returns the keys of the app's objects, as an inventory lists them.
    fn objects(&self) -> Vec<ObjectKey> {
        let namespace = self.app.namespace.as_str();
        let of = |group: &str, kind: &str, name: &str| ObjectKey::new(group, kind, namespace, name);
        let mut objects = Vec::new();
        if matches!(self.delivery, Delivery::Kustomization | Delivery::ConfigSync) && self.name != "tills" {
            objects.push(ObjectKey::new("", "Namespace", "", namespace));
        }
        for workload in self.app.workloads.keys() {
            objects.extend([of("", "ConfigMap", workload), of("", "Service", workload)]);
            objects.push(of("apps", "Deployment", workload));
        }
        objects.extend(self.app.volume.iter().map(|name| of("", "PersistentVolumeClaim", name)));
        objects.extend(self.app.quota.map(|_| of("", "ResourceQuota", "team")));
        objects
    }

    fn inventory(&self) -> Value {
        let entry = |key: &ObjectKey| json!({"id": inventory_id::format(key), "v": "v1"});
        self.objects().iter().map(entry).collect()
    }

    fn chart(&self) -> Values<'_> {
        let chart = self.app.chart.clone().unwrap_or_default();
        let version = self.app.chart_version.clone().unwrap_or_default();
        let digest = hash(self.seed, &[&chart, &version], 64);
        self.values().with("chart", chart).with("chartVersion", version).with("digest", digest)
    }

    /// Returns the release as Helm stores it: JSON (uncompressed, which Helm accepts) in base64, and again in base64 as
    /// in every Secret.
    fn release(&self) -> String {
        let manifest: Vec<String> = self
            .objects()
            .iter()
            .map(|key| {
                let version =
                    if key.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", key.group) };
                json!({
                    "apiVersion": version, "kind": key.kind,
                    "metadata": {"name": key.name, "namespace": key.namespace},
                })
                .to_string()
            })
            .collect();
        let at = self.since.to_string();
        let release = json!({
            "name": self.name, "namespace": self.app.namespace, "version": 1,
            "info": {
                "status": "deployed", "description": "Install complete", "first_deployed": at, "last_deployed": at,
                "deleted": "",
            },
            "chart": {"metadata": {
                "name": self.app.chart, "version": self.app.chart_version, "appVersion": self.app.version, "apiVersion": "v2",
            }},
            "config": {}, "manifest": manifest.join("\n---\n"),
        });
        BASE64.encode(BASE64.encode(release.to_string()))
    }

    fn resource_group(&self, home: &str) -> Result<String, WorldError> {
        let name = |key: &ObjectKey| json!({"group": key.group, "kind": key.kind, "namespace": key.namespace, "name": key.name});
        let resources: Value = self.objects().iter().map(name).collect();
        let status = |key: &ObjectKey| {
            let mut status = name(key);
            let said = [
                ("strategy", "Apply"),
                ("actuation", "Succeeded"),
                ("reconcile", "Succeeded"),
                ("status", "Current"),
            ];
            said.iter().for_each(|(field, value)| status[*field] = json!(value));
            status["sourceHash"] = json!(&self.commit()[..7]);
            status
        };
        let statuses: Value = self.objects().iter().map(status).collect();
        let values = self.values().with("home", home).with("sync", self.name);
        let values = values.with("resources", resources).with("statuses", statuses);
        Ok(values.fill(include_str!("templates/resource-group.yaml"))?)
    }

    /// Returns the Application; if it delivers to another cluster, before it the Secret of that cluster and the
    /// ApplicationSet that creates the Application.
    fn application(&self) -> Result<Vec<ManagedTexts>, WorldError> {
        let is_own = self.member.from.is_none();
        let server = match self.servers.get(&self.member.name) {
            Some(server) if !is_own => server.as_str(),
            _ => "https://kubernetes.default.svc",
        };
        let mut owners = json!([]);
        let mut texts = Vec::new();
        if !is_own {
            // The set is the same text for each cluster, and so is its uid, which derives from its name.
            let uid = uuid(&hash(self.seed, &["applicationset", self.name], 32));
            owners = json!([{
                "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": self.name, "uid": uid,
                "controller": true, "blockOwnerDeletion": true,
            }]);
            let pack = |text: &str| BASE64.encode(text);
            let values = self.values().with("open", "{{").with("close", "}}").with("uid", uid);
            let values =
                values.with("packedName", pack(&self.member.name)).with("packedServer", pack(server));
            texts.push(ManagedTexts::new(
                values.fill(include_str!("templates/argo-cluster.yaml"))?,
                "argocd-server",
            ));
            let text = values.fill(include_str!("templates/argo-applicationset.yaml"))?;
            texts.push(ManagedTexts {
                text,
                manager: "argocd-controller",
                tracked_by: Some("fleet".to_owned()),
            });
        }
        let resource = |key: &ObjectKey| {
            let mut resource = json!({
                "version": "v1", "kind": key.kind, "namespace": key.namespace, "name": key.name, "status": "Synced",
            });
            if !key.group.is_empty() {
                resource["group"] = json!(key.group);
            }
            if matches!(&*key.kind, "Deployment" | "Service") {
                resource["health"] = json!({"status": "Healthy"});
            }
            resource
        };
        let mut resources: Vec<Value> = self.objects().iter().map(resource).collect();
        if let Some("fleet") = self.app.path.as_deref() {
            // An app of apps.
            for name in ["argo-cd", "dashboards"] {
                resources.push(json!({
                    "group": "argoproj.io", "version": "v1alpha1", "kind": "Application", "namespace": "argocd", "name": name,
                    "status": "Synced",
                }));
            }
            for name in ["catalog", "gateway", "orders"] {
                resources.push(json!({
                    "group": "argoproj.io", "version": "v1alpha1", "kind": "ApplicationSet", "namespace": "argocd", "name": name,
                    "status": "Synced",
                }));
            }
        }
        let path = self.app.path.as_deref().unwrap_or(&self.member.name);
        let values = self
            .values()
            .with("application", self.application_name())
            .with("owners", owners)
            .with("path", path);
        let values =
            values.with("server", server).with("commit", self.commit()).with("now", Timestamp::now());
        let values = values.with("resources", json!(resources));
        let text = values.fill(include_str!("templates/argo-application.yaml"))?;
        texts.push(match self.name {
            "fleet" => ManagedTexts::new(text, "kubectl"),
            _ if is_own => {
                ManagedTexts { text, manager: "argocd-controller", tracked_by: Some("fleet".to_owned()) }
            }
            _ => ManagedTexts::new(text, "argocd-applicationset-controller"),
        });
        Ok(texts)
    }

    /// Returns the name of the app's Application: `APP`, or `APP-CLUSTER` if another cluster's Argo CD delivers it.
    fn application_name(&self) -> String {
        match self.member.from {
            None => self.name.to_owned(),
            Some(_) => format!("{}-{}", self.name, self.member.name),
        }
    }
}

const SYNC_NAMESPACE: &str = "config-management-system";

/// Formats 32 hexadecimal digits as a UID of version 4, with dashes; two of them are replaced by version and variant.
fn uuid(digits: &str) -> String {
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}
