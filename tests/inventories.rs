//! Random inventories of all six kinds, the objects that they list, and a second model of what a prune deletes: it works from the
//! raw objects alone, and shares no code with Taffrail.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fastrand::Rng;
use serde_json::{Value, json};
use taffrail_testkit::objects::definition;

/// The number of kinds of inventories.
const TOOLS: usize = 6;

/// The kinds of objects that are looked at, by `apiVersion`, kind and the name in URLs; widgets come on top.
pub(crate) const KINDS: [(&str, &str, &str); 11] = [
    ("v1", "Namespace", "namespaces"),
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Secret", "secrets"),
    ("v1", "ServiceAccount", "serviceaccounts"),
    ("v1", "Service", "services"),
    ("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("v1", "Event", "events"),
    ("coordination.k8s.io/v1", "Lease", "leases.coordination.k8s.io"),
    ("rbac.authorization.k8s.io/v1", "Role", "roles.rbac.authorization.k8s.io"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles.rbac.authorization.k8s.io"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions.apiextensions.k8s.io"),
];

/// Options on an object that decide about its prune: key and value of an annotation.
const OPTIONS: [(&str, &str); 8] = [
    ("argocd.argoproj.io/sync-options", "Prune=false"),
    ("argocd.argoproj.io/sync-options", "Prune=confirm"),
    ("argocd.argoproj.io/sync-options", "PruneLast=true"),
    ("helm.sh/resource-policy", "keep"),
    ("kustomize.toolkit.fluxcd.io/prune", "disabled"),
    ("client.lifecycle.config.k8s.io/deletion", "detach"),
    ("cli-utils.sigs.k8s.io/on-remove", "keep"),
    ("kustomize.toolkit.fluxcd.io/ssa", "Ignore"),
];

/// A cluster in which pairs are played.
pub(crate) trait Playground {
    /// Creates or changes objects.
    fn write(&self, objects: &[Value]);

    /// Deletes an object, and waits until it is gone.
    fn remove(&self, object: &Value);

    /// Returns all objects of [`KINDS`], and those of the kind with this plural and group, if there is one.
    fn all(&self, widgets: Option<&str>) -> Vec<Value>;

    /// Returns true if Events are served under two groups.
    fn serves_events_twice(&self) -> bool;
}

/// Returns the definitions of the kinds that hold inventories.
pub(crate) fn definitions() -> Vec<Value> {
    let anything = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    [
        ("kpt.dev", "v1alpha1", "ResourceGroup"),
        ("kustomize.toolkit.fluxcd.io", "v1", "Kustomization"),
        ("helm.toolkit.fluxcd.io", "v2", "HelmRelease"),
        ("argoproj.io", "v1alpha1", "Application"),
    ]
    .map(|(group, version, kind)| definition(group, version, kind, anything()))
    .into()
}

/// An inventory before a prune, and the manifests by which it is pruned.
pub(crate) struct Pair {
    /// The namespace of the inventory.
    pub(crate) home: String,
    /// `[KIND/]NAME` of the inventory; `None` for the set `app`.
    pub(crate) inventory: Option<String>,
    /// The declared objects.
    pub(crate) manifests: Vec<Value>,
    /// True if guarded objects are deleted, too.
    pub(crate) allows: bool,
    tool: usize,
    /// True if an inventory of Flux is that of a HelmRelease.
    is_release: bool,
    random: Rng,
    /// The objects that exist, in the order of their creation, with their fate.
    objects: Vec<(Value, Fate)>,
    /// The entries without a live object.
    absent: Vec<Value>,
    widgets: Option<String>,
}

/// The history of an object after the inventory listed it.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    /// It is in the inventory, and was left alone.
    Listed,
    /// It is in the inventory, and was deleted and created again.
    Recreated,
    /// It was never in the inventory.
    Foreign,
}

impl Pair {
    /// Draws a pair whose objects have names that begin with `prefix`.
    pub(crate) fn draw(prefix: &str, number: usize, is_moving: bool, seed: u64) -> Pair {
        let mut random = Rng::with_seed(seed);
        let home = format!("{prefix}-{number}");
        let tool = number % TOOLS;
        let shrinks = random.usize(..8) == 0;
        // Many of a set go at once in a fifth of the pairs.
        let is_mass = random.usize(..5) == 0;
        let count = if is_mass { random.usize(10..18) } else { random.usize(1..14) };
        let mut pair = Pair {
            inventory: None,
            manifests: Vec::new(),
            allows: random.bool(),
            tool,
            is_release: random.bool(),
            objects: vec![(object("v1", "Namespace", "", &home), Fate::Foreign)],
            absent: Vec::new(),
            widgets: None,
            home,
            random,
        };
        let home = pair.home.clone();
        let mut places = vec![home.clone()];
        for at in 0..pair.random.usize(..3) {
            let namespace = format!("{home}-in{at}");
            pair.add(object("v1", "Namespace", "", &namespace), is_mass);
            if pair.absent.iter().any(|it| it["metadata"]["name"] == *namespace) {
                continue;
            }
            match pair.random.usize(..4) {
                0 => {
                    let notes = object("v1", "ConfigMap", &namespace, "notes");
                    pair.objects.push((notes, Fate::Foreign));
                }
                1 => {
                    let lease = object("coordination.k8s.io/v1", "Lease", &namespace, "holder");
                    pair.objects.push((lease, Fate::Foreign));
                }
                _ => {}
            }
            places.push(namespace);
        }
        if pair.random.usize(..3) == 0 {
            let group = format!("{home}.example.com");
            let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            pair.add(definition(&group, "v1", "Widget", anything), is_mass);
            let is_served = pair.objects.iter().any(|(it, _)| it["kind"] == "CustomResourceDefinition");
            pair.widgets = is_served.then(|| format!("widgets.{group}"));
            for at in 0..pair.random.usize(..3) {
                let widget = object(&format!("{group}/v1"), "Widget", &home, &format!("widget{at}"));
                match (is_served, pair.random.bool()) {
                    // Nobody knows objects of a kind that is not served any more.
                    (false, _) => pair.absent.push(widget),
                    (true, true) => pair.add(widget, is_mass),
                    (true, false) => pair.objects.push((widget, Fate::Foreign)),
                }
            }
        }
        for at in 0..count {
            let kinds = if is_moving { 8 } else { 7 };
            let (api_version, kind, _) = KINDS[[1, 1, 2, 3, 4, 5, 8, 6][pair.random.usize(..kinds)]];
            let place = pair.random.choice(&places).cloned().unwrap_or_default();
            let it = object(api_version, kind, &place, &format!("{}{at}", kind.to_lowercase()));
            pair.add(it, is_mass);
        }
        if pair.random.bool() {
            let role = object("rbac.authorization.k8s.io/v1", "ClusterRole", "", &format!("{home}-role"));
            pair.add(role, is_mass);
        }
        // A dependent goes with its owner.
        if let Some((owner, _)) = pair.objects.iter().find(|(it, _)| it["kind"] == "ConfigMap").cloned() {
            let mut dependent = object("v1", "ConfigMap", text(&owner, "/metadata/namespace"), "dependent");
            dependent["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": "",
            }]);
            pair.objects.push((dependent, Fate::Foreign));
        }
        pair.manifests.push(object("v1", "ConfigMap", &home, "new"));
        if shrinks {
            pair.manifests.clear();
        }
        pair
    }

    /// Adds an object that the inventory lists, with a history.
    fn add(&mut self, mut it: Value, is_mass: bool) {
        let random = &mut self.random;
        if random.usize(..10) < if is_mass { 2 } else { 4 } {
            let mut declared = it.clone();
            if declared["kind"] == "Event" {
                // The same object under another group.
                declared["apiVersion"] = json!("events.k8s.io/v1");
            }
            self.manifests.push(declared);
        }
        let drawn = random.usize(..12);
        if drawn == 0 {
            self.absent.push(it);
            return;
        }
        let is_bare = matches!(drawn, 1 | 2);
        if !is_bare {
            self.mark(&mut it);
        }
        let random = &mut self.random;
        if random.usize(..8) == 0 || is_bare && random.bool() {
            mark_as_other(&mut it, self.tool, random);
        }
        if random.usize(..if is_mass { 20 } else { 4 }) == 0 {
            let (key, value) = OPTIONS[random.usize(..OPTIONS.len())];
            annotate(&mut it, key, value);
        }
        // A namespace that is deleted takes the others along.
        let is_whole = it["kind"] == "Namespace" || it["kind"] == "CustomResourceDefinition";
        let fate = if !is_whole && matches!(drawn, 1 | 3) { Fate::Recreated } else { Fate::Listed };
        self.objects.push((it, fate));
    }

    fn mark(&self, it: &mut Value) {
        let home = &self.home;
        match self.tool {
            0 => annotate(it, "taffrail.dev/set", &format!("{home}_app")),
            1 if self.is_helm_release() => {
                label(it, "helm.toolkit.fluxcd.io/name", "app");
                label(it, "helm.toolkit.fluxcd.io/namespace", home);
                annotate(it, "meta.helm.sh/release-name", "app");
                annotate(it, "meta.helm.sh/release-namespace", home);
            }
            1 => {
                label(it, "kustomize.toolkit.fluxcd.io/name", "app");
                label(it, "kustomize.toolkit.fluxcd.io/namespace", home);
            }
            2 | 3 => annotate(it, "config.k8s.io/owning-inventory", &format!("id-of-{home}")),
            4 if self.random.get_seed().is_multiple_of(2) => label(it, "app.kubernetes.io/instance", "app"),
            4 => {
                let id = format!("app:{}", tracked(it));
                annotate(it, "argocd.argoproj.io/tracking-id", &id);
            }
            _ => {
                annotate(it, "meta.helm.sh/release-name", "app");
                annotate(it, "meta.helm.sh/release-namespace", home);
            }
        }
    }

    fn is_helm_release(&self) -> bool {
        self.is_release
    }

    /// Creates all objects and the inventory, and then deletes and creates again what was.
    pub(crate) fn prepare(&mut self, at: &dyn Playground) {
        let (early, late): (Vec<Value>, Vec<Value>) = self
            .objects
            .iter()
            .map(|(it, _)| it.clone())
            .partition(|it| it["kind"] == "Namespace" || it["kind"] == "CustomResourceDefinition");
        at.write(&early);
        let is_dependent = |it: &&Value| it["metadata"].get("ownerReferences").is_some();
        let (dependents, others): (Vec<&Value>, Vec<&Value>) = late.iter().partition(is_dependent);
        at.write(&others.into_iter().cloned().collect::<Vec<_>>());
        let live: BTreeMap<String, Value> =
            at.all(self.widgets.as_deref()).into_iter().map(|it| (id(&it), it)).collect();
        let inventory = self.inventory_object(&live);
        for (it, _) in self.objects.iter().filter(|(_, fate)| *fate == Fate::Recreated) {
            at.remove(it);
            at.write(std::slice::from_ref(it));
        }
        let live: BTreeMap<String, Value> =
            at.all(self.widgets.as_deref()).into_iter().map(|it| (id(&it), it)).collect();
        for dependent in dependents {
            let mut dependent = dependent.clone();
            let owner = &dependent["metadata"]["ownerReferences"][0];
            let place = text(&dependent, "/metadata/namespace");
            let owner = object("v1", "ConfigMap", place, text(owner, "/name"));
            dependent["metadata"]["ownerReferences"][0]["uid"] = live[&id(&owner)]["metadata"]["uid"].clone();
            at.write(&[dependent]);
        }
        at.write(&inventory);
    }

    /// Returns the object that holds the inventory, with what belongs to it.
    fn inventory_object(&mut self, live: &BTreeMap<String, Value>) -> Vec<Value> {
        let listed = self.objects.iter().filter(|(_, fate)| *fate != Fate::Foreign).map(|(it, _)| it.clone());
        let listed: Vec<Value> = listed.chain(self.absent.iter().cloned()).collect();
        let home = self.home.clone();
        let key = |it: &Value| {
            json!({
                "group": group(it), "kind": it["kind"], "name": it["metadata"]["name"],
                "namespace": text(it, "/metadata/namespace"),
            })
        };
        let keys: Vec<Value> = listed.iter().map(key).collect();
        let path = |it: &Value| {
            let (namespace, name) = (text(it, "/metadata/namespace"), text(it, "/metadata/name"));
            format!("{namespace}_{name}_{}_{}", group(it), text(it, "/kind"))
        };
        let id_label = json!({"cli-utils.sigs.k8s.io/inventory-id": format!("id-of-{home}")});
        let (api_version, kind) = match self.tool {
            0 => {
                let mut entries = keys;
                for (entry, it) in entries.iter_mut().zip(&listed) {
                    let uid = live.get(&id(it)).map(|live| live["metadata"]["uid"].clone());
                    // A write whose answer was lost has no UID.
                    if let Some(uid) = uid.filter(|_| self.random.usize(..8) > 0) {
                        entry["uid"] = uid;
                    }
                }
                let summary = json!({
                    "version": 1, "applied": null, "appliedAt": null, "holder": null, "runs": [],
                });
                let mut record = object("v1", "ConfigMap", &home, "taffrail-set-app");
                record["metadata"]["labels"] = json!({"taffrail.dev/record": "set"});
                record["data"] = json!({"set": summary.to_string()});
                record["binaryData"] = json!({
                    "inventory": STANDARD.encode(zipped(&Value::from(entries).to_string())),
                    "results": STANDARD.encode(zipped("[]")),
                });
                return vec![record];
            }
            1 if self.is_helm_release() => ("helm.toolkit.fluxcd.io/v2", "HelmRelease"),
            1 => ("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),
            2 => ("kpt.dev/v1alpha1", "ResourceGroup"),
            3 => ("v1", "ConfigMap"),
            4 => ("argoproj.io/v1alpha1", "Application"),
            _ => ("v1", "Secret"),
        };
        self.inventory = Some(format!("{}/app", kind.to_lowercase()));
        let mut inventory = object(api_version, kind, &home, "app");
        match self.tool {
            1 => {
                let entries = listed.iter().map(|it| json!({"id": path(it), "v": "v1"}));
                inventory["status"] = json!({"inventory": {"entries": entries.collect::<Vec<_>>()}});
            }
            2 => {
                inventory["metadata"]["labels"] = id_label;
                inventory["spec"] = json!({"resources": keys});
            }
            3 => {
                inventory["metadata"]["labels"] = id_label;
                let data = listed.iter().map(|it| (path(it), json!("")));
                inventory["data"] = Value::Object(data.collect());
            }
            4 => {
                inventory["spec"] = json!({"destination": {"server": "https://kubernetes.default.svc"}});
                inventory["status"] = json!({"resources": keys});
                return vec![inventory, object("v1", "ConfigMap", &home, "argocd-cm")];
            }
            _ => {
                let name = "sh.helm.release.v1.app.v1";
                self.inventory = Some(format!("secret/{name}"));
                inventory["metadata"]["name"] = json!(name);
                inventory["metadata"]["labels"] = json!({"owner": "helm", "name": "app", "version": "1"});
                inventory["type"] = json!("helm.sh/release.v1");
                let documents: Vec<String> = listed.iter().map(Value::to_string).collect();
                let release = json!({
                    "name": "app", "namespace": home, "version": 1, "manifest": documents.join("\n---\n"),
                    "info": {"status": "deployed"}, "chart": {"metadata": {"name": "app", "version": "1.0.0"}},
                });
                let packed = STANDARD.encode(zipped(&release.to_string()));
                inventory["data"] = json!({"release": STANDARD.encode(packed)});
            }
        }
        vec![inventory]
    }

    /// Returns the ids of all objects of the pair that exist, with their UIDs.
    pub(crate) fn look(&self, at: &dyn Playground) -> Vec<Value> {
        let is_own = |it: &Value| {
            let place = text(it, "/metadata/namespace").to_owned() + text(it, "/metadata/name");
            let group = format!("{}.example.com", self.home);
            place.ends_with(&group)
                || place
                    .strip_prefix(&*self.home)
                    .is_some_and(|rest| !rest.starts_with(|it: char| it.is_ascii_digit()))
        };
        at.all(self.widgets.as_deref()).into_iter().filter(is_own).collect()
    }

    /// Returns the objects that a prune deletes, as the raw objects tell: with all that goes along.
    pub(crate) fn deleted(&self, live: &[Value]) -> BTreeSet<String> {
        let listed = self.listed(live);
        if self.manifests.is_empty() {
            return BTreeSet::new();
        }
        let declared: BTreeSet<String> = self.manifests.iter().map(id).collect();
        let by_id: BTreeMap<String, &Value> = live.iter().map(|it| (id(it), it)).collect();
        let (mut kept, mut there) = (0, Vec::new());
        for (name, uid) in &listed {
            if declared.contains(name) {
                kept += 1;
                continue;
            }
            let Some(it) = by_id.get(name) else { continue };
            let is_it = match uid {
                Some(uid) => text(it, "/metadata/uid") == uid && self.is_marked(it),
                None => self.is_marked(it),
            };
            // An Event is declared in its new group.
            let is_moved = declared.contains(&name.replacen("/Event/", "events.k8s.io/Event/", 1));
            if is_it && !is_moved && !self.is_claimed(it) && !is_given_away(it) {
                there.push(*it);
            }
        }
        let is_free = |it: &&Value| match option_of(it) {
            Some("Prune=confirm") => self.allows,
            Some("PruneLast=true") | None => true,
            Some(_) => false,
        };
        let candidates: Vec<&Value> = there.iter().copied().filter(is_free).collect();
        let uid = |it: &Value| text(it, "/metadata/uid").to_owned();
        let leaving: BTreeSet<String> = candidates.iter().map(|it| uid(it)).collect();
        let goes = |it: &Value| match text(it, "/kind") {
            "Namespace" => {
                let name = text(it, "/metadata/name");
                let is_in = |other: &&Value| text(other, "/metadata/namespace") == name;
                let is_foreign = |other: &Value| {
                    let kind = text(other, "/kind");
                    let own = (kind, text(other, "/metadata/name"));
                    !leaving.contains(&uid(other))
                        && !matches!(kind, "Event" | "Lease")
                        && other["metadata"].get("ownerReferences").is_none()
                        && !matches!(own, ("ConfigMap", "kube-root-ca.crt") | ("ServiceAccount", "default"))
                };
                self.allows && !live.iter().filter(is_in).any(is_foreign)
            }
            "CustomResourceDefinition" => {
                let is_kept =
                    |other: &Value| group(other) == text(it, "/spec/group") && !leaving.contains(&uid(other));
                self.allows || !live.iter().any(is_kept)
            }
            "PersistentVolumeClaim" => self.allows,
            _ => true,
        };
        let mut gone: BTreeSet<String> = candidates.iter().filter(|it| goes(it)).map(|it| uid(it)).collect();
        let all = kept + there.len();
        if !self.allows && all >= 10 && gone.len() * 2 > all {
            gone.clear();
        }
        // What goes along.
        loop {
            let is_gone = |it: &Value| gone.contains(&uid(it));
            let places = live.iter().filter(|it| is_gone(it));
            let namespaces: BTreeSet<&str> = places
                .clone()
                .filter(|it| it["kind"] == "Namespace")
                .map(|it| text(it, "/metadata/name"))
                .collect();
            let groups: BTreeSet<&str> = places.map(|it| text(it, "/spec/group")).collect();
            let along = live.iter().filter(|it| {
                namespaces.contains(text(it, "/metadata/namespace"))
                    || !group(it).is_empty() && groups.contains(group(it))
                    || gone.contains(text(it, "/metadata/ownerReferences/0/uid"))
            });
            let more: BTreeSet<String> = along.map(uid).chain(gone.iter().cloned()).collect();
            if more.len() == gone.len() {
                return gone;
            }
            gone = more;
        }
    }

    /// Returns the ids in the inventory as it stands in the cluster, with their UIDs.
    fn listed(&self, live: &[Value]) -> Vec<(String, Option<String>)> {
        // Only ConfigMaps and Secrets are among the objects that were looked at; others are as they were drawn.
        let names = self.objects.iter().filter(|(_, fate)| *fate != Fate::Foreign).map(|(it, _)| it);
        let names: Vec<String> = names.chain(&self.absent).map(id).collect();
        if self.tool != 0 {
            return names.into_iter().map(|name| (name, None)).collect();
        }
        let record = live.iter().find(|it| text(it, "/metadata/name") == "taffrail-set-app");
        let packed = record.map(|it| STANDARD.decode(text(it, "/binaryData/inventory")).expect("Base64"));
        let mut entries = String::new();
        let mut reader = flate2::read::GzDecoder::new(packed.as_deref().unwrap_or_default());
        std::io::Read::read_to_string(&mut reader, &mut entries).expect("gzip");
        let entries: Vec<Value> = serde_json::from_str(&entries).expect("JSON");
        let uids = entries.iter().map(|it| it["uid"].as_str().map(str::to_owned));
        names.into_iter().zip(uids).collect()
    }

    fn is_marked(&self, it: &Value) -> bool {
        let marks = marks(it);
        let home = &self.home;
        let own = match self.tool {
            0 => format!("set {home}_app"),
            1 if self.is_helm_release() => format!("helmrelease {home}/app"),
            1 => format!("kustomization {home}/app"),
            2 | 3 => format!("inventory id-of-{home}"),
            4 => "tracking app".to_owned(),
            _ => format!("release {home}/app"),
        };
        let is_labelled = self.tool == 4
            && it.pointer("/metadata/annotations/argocd.argoproj.io~1tracking-id").is_none()
            && text(it, "/metadata/labels/app.kubernetes.io~1instance") == "app";
        marks.contains(&own) || is_labelled
    }

    fn is_claimed(&self, it: &Value) -> bool {
        let home = &self.home;
        let own = [
            format!("set {home}_app"),
            format!("helmrelease {home}/app"),
            format!("kustomization {home}/app"),
            format!("inventory id-of-{home}"),
            "tracking app".to_owned(),
            format!("release {home}/app"),
        ];
        marks(it).iter().any(|mark| !own.contains(mark))
    }

    /// Returns a text about the pair for a failure.
    pub(crate) fn told(&self) -> String {
        let fate = |(it, fate): &(Value, Fate)| {
            let word = match fate {
                Fate::Listed => "listed",
                Fate::Recreated => "recreated",
                Fate::Foreign => "not listed",
            };
            format!("  {word} {} {}", id(it), it["metadata"])
        };
        let objects: Vec<String> = self.objects.iter().map(fate).collect();
        let declared: Vec<String> = self.manifests.iter().map(id).collect();
        format!(
            "inventory {:?} in {}, guarded allowed: {}\n{}\n  declared {declared:?}",
            self.inventory,
            self.home,
            self.allows,
            objects.join("\n")
        )
    }
}

fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    let mut it = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if !namespace.is_empty() {
        it["metadata"]["namespace"] = json!(namespace);
    }
    match kind {
        "ConfigMap" => it["data"] = json!({"a": "b"}),
        "Service" => it["spec"] = json!({"ports": [{"port": 80}], "selector": {"app": name}}),
        "PersistentVolumeClaim" => {
            it["spec"] = json!({
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "none",
            });
        }
        "Role" | "ClusterRole" => it["rules"] = json!([]),
        "Event" => {
            it["involvedObject"] = json!({"kind": "Pod", "namespace": namespace, "name": "web"});
            it["reason"] = json!("Started");
        }
        _ => {}
    }
    it
}

/// Marks an object as one of another app.
fn mark_as_other(it: &mut Value, tool: usize, random: &mut Rng) {
    match random.usize(..5) {
        0 => annotate(it, "taffrail.dev/set", "elsewhere_other"),
        1 => {
            label(it, "kustomize.toolkit.fluxcd.io/name", "other");
            label(it, "kustomize.toolkit.fluxcd.io/namespace", "elsewhere");
        }
        2 if tool != 1 => {
            annotate(it, "meta.helm.sh/release-name", "other");
            annotate(it, "meta.helm.sh/release-namespace", "elsewhere");
        }
        3 => annotate(it, "config.k8s.io/owning-inventory", "id-of-another"),
        _ => {
            let id = format!("other:{}", tracked(it));
            annotate(it, "argocd.argoproj.io/tracking-id", &id);
        }
    }
}

/// Returns the apps that an object names.
fn marks(it: &Value) -> BTreeSet<String> {
    let [labels, annotations] = ["labels", "annotations"].map(|key| it["metadata"][key].clone());
    let word = |place: &Value, key: &str| place[key].as_str().map(str::to_owned);
    let mut marks = BTreeSet::new();
    marks.extend(word(&annotations, "taffrail.dev/set").map(|it| format!("set {it}")));
    marks.extend(word(&annotations, "config.k8s.io/owning-inventory").map(|it| format!("inventory {it}")));
    for (word_of, namespace, name) in [
        ("kustomization", "kustomize.toolkit.fluxcd.io/namespace", "kustomize.toolkit.fluxcd.io/name"),
        ("helmrelease", "helm.toolkit.fluxcd.io/namespace", "helm.toolkit.fluxcd.io/name"),
    ] {
        let both = word(&labels, namespace).zip(word(&labels, name));
        marks.extend(both.map(|(namespace, name)| format!("{word_of} {namespace}/{name}")));
    }
    let release = word(&annotations, "meta.helm.sh/release-namespace")
        .zip(word(&annotations, "meta.helm.sh/release-name"));
    marks.extend(release.map(|(namespace, name)| format!("release {namespace}/{name}")));
    let tracking = word(&annotations, "argocd.argoproj.io/tracking-id");
    let app = tracking.and_then(|id| Some(id.strip_suffix(&format!(":{}", tracked(it)))?.to_owned()));
    marks.extend(app.map(|app| format!("tracking {app}")));
    marks
}

/// Returns the option of [`OPTIONS`] that an object has.
fn option_of(it: &Value) -> Option<&'static str> {
    let stated = |(key, value): &&(&str, &'static str)| it["metadata"]["annotations"][*key] == *value;
    OPTIONS.iter().find(stated).map(|(_, value)| *value)
}

fn is_given_away(it: &Value) -> bool {
    matches!(option_of(it), Some("keep" | "detach"))
}

fn tracked(it: &Value) -> String {
    let (namespace, name) = (text(it, "/metadata/namespace"), text(it, "/metadata/name"));
    format!("{}/{}:{namespace}/{name}", group(it), text(it, "/kind"))
}

/// Returns group, kind, namespace and name of an object as one text.
pub(crate) fn id(it: &Value) -> String {
    let (namespace, name) = (text(it, "/metadata/namespace"), text(it, "/metadata/name"));
    format!("{}/{}/{namespace}/{name}", group(it), text(it, "/kind"))
}

fn group(it: &Value) -> &str {
    text(it, "/apiVersion").split_once('/').map_or("", |(group, _)| group)
}

fn text<'v>(it: &'v Value, pointer: &str) -> &'v str {
    it.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn annotate(it: &mut Value, key: &str, value: &str) {
    it["metadata"]["annotations"][key] = json!(value);
}

fn label(it: &mut Value, key: &str, value: &str) {
    it["metadata"]["labels"][key] = json!(value);
}

fn zipped(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}
