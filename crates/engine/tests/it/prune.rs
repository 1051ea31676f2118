//! Prunes of simulated clusters by inventories of all six kinds.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use taffrail_apps::sets::{SetName, SetVerb};
use taffrail_engine::{
    EngineError, HolderTimes, InventoryPrune, ManifestText, Manifests, PruneConsent, Stop, SyncReport,
    prune_inventory, sync,
};
use taffrail_plan::order::Dialect;
use taffrail_sim::{Cluster, Fault, Fleet, Trouble};

use crate::inventories::{self, Pair, Playground, definitions};
use crate::world::{Approves, policy, request, watcher};

/// The number of pairs that are drawn.
const PAIRS: usize = 24;

/// The variables with the seed of an earlier run, and with another number of pairs.
const SEED: &str = "TAFFRAIL_INVENTORIES_SEED";
const NUMBER: &str = "TAFFRAIL_INVENTORIES";

struct Sim(Cluster);

impl Playground for Sim {
    fn write(&self, objects: &[Value]) {
        for object in objects {
            self.0.apply(object.clone()).unwrap_or_else(|error| panic!("{error}: {object}"));
        }
    }

    fn remove(&self, object: &Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let [kind, namespace, name] = ["/kind", "/metadata/namespace", "/metadata/name"].map(text);
        assert!(self.0.delete(text("/apiVersion"), kind, namespace, name), "{object}");
    }

    fn all(&self, widgets: Option<&str>) -> Vec<Value> {
        let of_kind = |(api_version, kind, _): &(&str, &str, &str)| self.0.list(api_version, kind);
        let mut all: Vec<Value> = inventories::KINDS.iter().flat_map(of_kind).collect();
        if let Some((_, group)) = widgets.and_then(|widgets| widgets.split_once('.')) {
            all.extend(self.0.list(&format!("{group}/v1"), "Widget"));
        }
        all
    }

    fn serves_events_twice(&self) -> bool {
        false
    }
}

async fn prune(cluster: &Cluster, pair: &Pair) -> Result<SyncReport, EngineError> {
    let content = Value::from(pair.manifests.clone());
    let documents: Vec<String> = content.as_array().unwrap().iter().map(Value::to_string).collect();
    let files = [ManifestText { path: "app.yaml".to_owned(), content: documents.join("\n---\n") }];
    let consent = PruneConsent { allows_guarded: pair.allows };
    let watcher = watcher(cluster).await;
    let mut caller = Approves::default();
    match &pair.inventory {
        Some(inventory) => {
            let asked = InventoryPrune {
                inventory: inventory.parse().unwrap(),
                namespace: Some(pair.home.clone()),
                consent,
                dialect: Dialect::Argo,
                policy: policy(),
            };
            prune_inventory(watcher, &asked, &files, &Stop::default(), &mut caller).await
        }
        None => {
            let set = SetName::new(&pair.home, "app").unwrap();
            let asked = request(set, SetVerb::Prune, Some(consent));
            sync(watcher, &asked, Manifests::Given(&files), &Stop::default(), &mut caller).await
        }
    }
}

fn uids(live: &[Value]) -> BTreeSet<String> {
    live.iter().map(|it| it["metadata"]["uid"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prune_deletes_what_a_second_model_says() {
    let number = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().unwrap());
    let seed = number(SEED).unwrap_or_else(|| fastrand::u64(..));
    let count = number(NUMBER).map_or(PAIRS, |it| usize::try_from(it).unwrap());
    println!("{SEED}={seed} {NUMBER}={count}");
    let mut random = fastrand::Rng::with_seed(seed);
    let fleet = Fleet::builder().start().await.unwrap();
    let sim = Sim(fleet.cluster("one").await.unwrap());
    sim.write(&definitions());
    let (mut deleted_in_all, mut kept_in_all, mut wrong) = (0, 0, Vec::new());
    for at in 0..count {
        let mut pair = Pair::draw("pair", at, sim.serves_events_twice(), random.u64(..));
        pair.prepare(&sim);
        let before = pair.look(&sim);
        let expected = pair.deleted(&before);
        let outcome = prune(&sim.0, &pair).await;
        let is_refused = matches!(outcome, Err(EngineError::NothingDeclared));
        let is_right = if pair.manifests.is_empty() { is_refused } else { outcome.is_ok() };
        assert!(is_right, "pair {at}: {outcome:?}\n{}", pair.told());
        // What goes along goes a little later.
        let mut gone = BTreeSet::new();
        for _ in 0..100 {
            let after = uids(&pair.look(&sim));
            gone = uids(&before).difference(&after).cloned().collect();
            if gone == expected {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        deleted_in_all += gone.len();
        kept_in_all += before.len() - gone.len();
        if gone != expected {
            let name = |uid: &String| {
                let found = before.iter().find(|it| it["metadata"]["uid"] == **uid);
                found.map(inventories::id).unwrap_or_default()
            };
            let [more, less] = [gone.difference(&expected), expected.difference(&gone)]
                .map(|uids| uids.map(name).collect::<Vec<_>>());
            wrong.push(format!(
                "pair {at}: deleted though they should stay {more:?}, kept {less:?}\n{:?}\n{}",
                outcome.map(|report| report.objects),
                pair.told()
            ));
        }
    }
    println!("{count} pairs: {deleted_in_all} objects deleted, {kept_in_all} kept, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "seed {seed}\n{}", wrong.join("\n\n"));
    assert!(deleted_in_all * 10 > count && kept_in_all * 10 > count, "the pairs are to differ");
}

const SHOP: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {colour: blue}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: none
  resources: {requests: {storage: 1Gi}}
";

/// Syncs the shop as the set `shop` of `home`, and waits for nothing.
async fn sync_shop(cluster: &Cluster, home: &str) {
    let set = SetName::new(home, "shop").unwrap();
    let mut asked = request(set, SetVerb::Sync, None);
    asked.policy.waits_at_end = false;
    let files = [ManifestText { path: "shop.yaml".to_owned(), content: SHOP.to_owned() }];
    let watcher = watcher(cluster).await;
    let (stop, mut caller) = (Stop::default(), Approves::default());
    let report = sync(watcher, &asked, Manifests::Given(&files), &stop, &mut caller).await.unwrap();
    assert_eq!(report.end, taffrail_plan::sync::RunEnd::Succeeded);
}

/// Destroys the set `shop` of `home`; returns what stays, with the reasons.
async fn destroy_shop(cluster: &Cluster, home: &str, allows_guarded: bool) -> Vec<String> {
    let set = SetName::new(home, "shop").unwrap();
    let mut asked = request(set, SetVerb::Destroy, Some(PruneConsent { allows_guarded }));
    // The record is written while its namespace is being deleted, too.
    asked.holder = HolderTimes { heartbeat: Duration::from_millis(1), ..HolderTimes::default() };
    let watcher = watcher(cluster).await;
    let mut caller = Approves::default();
    let report = sync(watcher, &asked, Manifests::Last, &Stop::default(), &mut caller).await.unwrap();
    assert_eq!(report.end, taffrail_plan::sync::RunEnd::Succeeded);
    caller.kept
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_goes_with_its_set_once_it_is_empty() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    sync_shop(&cluster, "default").await;
    let is_there = |kind: &str, name: &str| cluster.get("v1", kind, "shop", name).is_some();
    cluster
        .apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes", "namespace": "shop"},
        }))
        .unwrap();
    let kept = destroy_shop(&cluster, "default", false).await;
    let guarded = "PersistentVolumeClaim shop/data: the data of a volume may go with its claim";
    assert_eq!(
        kept,
        ["Namespace shop: ConfigMap notes is in the namespace, and does not go with the app", guarded,]
    );
    assert!(!is_there("ConfigMap", "settings") && is_there("PersistentVolumeClaim", "data"));
    let kept = destroy_shop(&cluster, "default", true).await;
    assert_eq!(kept, ["Namespace shop: ConfigMap notes is in the namespace, and does not go with the app"]);
    assert!(cluster.get("v1", "Namespace", "", "shop").is_some() && is_there("ConfigMap", "notes"));
    cluster.delete("v1", "ConfigMap", "shop", "notes");
    assert_eq!(destroy_shop(&cluster, "default", true).await, [""; 0]);
    assert!(cluster.get("v1", "Namespace", "", "shop").is_none());
    assert!(cluster.get("v1", "ConfigMap", "default", "taffrail-set-shop").is_none(), "the record is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_with_the_record_of_its_set_goes_with_it() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    cluster.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).unwrap();
    sync_shop(&cluster, "shop").await;
    assert_eq!(destroy_shop(&cluster, "shop", true).await, [""; 0]);
    assert!(cluster.get("v1", "Namespace", "", "shop").is_none());
}

/// Creates the ConfigMap of cli-utils `app` in the namespace `shop`, which lists these objects, and the objects, marked.
fn list_objects(cluster: &Cluster, objects: &[Value]) {
    let id = |it: &Value| {
        let text = |pointer: &str| it.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let group = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        (format!("{namespace}_{name}_{group}_{}", text("/kind")), json!(""))
    };
    for object in objects {
        let mut object = object.clone();
        object["metadata"]["annotations"]["config.k8s.io/owning-inventory"] = json!("id-1");
        cluster.apply(object).unwrap();
    }
    cluster
        .apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "app", "namespace": "shop", "labels": {"cli-utils.sigs.k8s.io/inventory-id": "id-1"},
            },
            "data": Value::Object(objects.iter().map(id).collect()),
        }))
        .unwrap();
}

/// Prunes by the inventory `app` of the namespace `shop`, with the declared ConfigMap `kept`; returns what stays.
async fn prune_by(cluster: &Cluster, inventory: &str) -> (Result<SyncReport, EngineError>, Vec<String>) {
    let content = "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: shop}}".to_owned();
    let files = [ManifestText { path: "app.yaml".to_owned(), content }];
    let asked = InventoryPrune {
        inventory: inventory.parse().unwrap(),
        namespace: Some("shop".to_owned()),
        consent: PruneConsent { allows_guarded: true },
        dialect: Dialect::Argo,
        policy: policy(),
    };
    let mut caller = Approves::default();
    let report = prune_inventory(watcher(cluster).await, &asked, &files, &Stop::default(), &mut caller).await;
    (report, caller.kept)
}

async fn shop() -> (Fleet, Cluster) {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    cluster.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).unwrap();
    (fleet, cluster)
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inventory_lists_what_stays_after_a_prune() {
    let (_fleet, cluster) = shop().await;
    let mut detached = map("detached");
    detached["metadata"]["annotations"] = json!({"cli-utils.sigs.k8s.io/on-remove": "keep"});
    let mut protected = map("protected");
    protected["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-options": "Prune=false"});
    // Ten ConfigMaps of one namespace are read by one list.
    let more: Vec<Value> = (0..10).map(|at| map(&format!("old{at}"))).collect();
    list_objects(&cluster, &[vec![map("kept"), detached, protected], more].concat());
    cluster.delete("v1", "ConfigMap", "shop", "old9");
    let (report, kept) = prune_by(&cluster, "configmap/app").await;
    let report = report.unwrap();
    assert_eq!(report.end, taffrail_plan::sync::RunEnd::Succeeded);
    assert_eq!(
        kept,
        ["ConfigMap shop/protected: argocd.argoproj.io/sync-options forbids to delete the object"]
    );
    let there: Vec<String> = cluster
        .list("v1", "ConfigMap")
        .iter()
        .filter(|it| it["metadata"]["namespace"] == "shop")
        .map(|it| it["metadata"]["name"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(there, ["app", "detached", "kept", "kube-root-ca.crt", "protected"]);
    // What was let go is not in the inventory any more.
    let inventory = cluster.get("v1", "ConfigMap", "shop", "app").unwrap();
    assert_eq!(inventory["data"], json!({"shop_kept__ConfigMap": "", "shop_protected__ConfigMap": ""}));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_known_stays() {
    let (_fleet, cluster) = shop().await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "old", "namespace": "shop"}, "rules": [],
    });
    let inside = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "inside"}});
    list_objects(&cluster, &[map("kept"), role, inside]);
    let is_there = |api_version: &str, kind: &str, namespace: &str, name: &str| {
        cluster.get(api_version, kind, namespace, name).is_some()
    };
    let rbac = "rbac.authorization.k8s.io/v1";

    // A kind that discovery does not tell of may be served.
    let fault = cluster.fault(Fault::new(Trouble::Garbage).verb("get").path("/apis"));
    let (report, kept) = prune_by(&cluster, "configmap/app").await;
    report.unwrap();
    assert!(
        kept[0]
            .starts_with("Role shop/old: the kinds of all groups but the core group could not be discovered")
            && kept[1] == "Namespace inside: what is in the namespace is not known",
        "{kept:?}"
    );
    assert!(is_there(rbac, "Role", "shop", "old") && is_there("v1", "Namespace", "", "inside"));
    cluster.heal(fault);

    // A list that is refused may hold anything.
    let broken = Trouble::ServerError("broken".to_owned());
    let fault = cluster.fault(Fault::new(broken).verb("list").resource("services"));
    let (report, kept) = prune_by(&cluster, "configmap/app").await;
    report.unwrap();
    assert_eq!(kept, ["Namespace inside: what is in the namespace is not known"]);
    assert!(!is_there(rbac, "Role", "shop", "old") && is_there("v1", "Namespace", "", "inside"));
    cluster.heal(fault);

    let (report, kept) = prune_by(&cluster, "configmap/app").await;
    report.unwrap();
    assert_eq!((kept, is_there("v1", "Namespace", "", "inside")), (Vec::new(), false));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_usable_inventories_are_pruned_by() {
    let (_fleet, cluster) = shop().await;
    for definition in definitions() {
        cluster.apply(definition).unwrap();
    }
    let of = |api_version: &str, kind: &str, name: &str, rest: Value| {
        let mut it = json!({"apiVersion": api_version, "kind": kind});
        it["metadata"] = json!({"name": name, "namespace": "shop", "labels": {"owner": "helm"}});
        for (key, value) in rest.as_object().unwrap() {
            it[key] = value.clone();
        }
        cluster.apply(it).unwrap();
    };
    of("v1", "ConfigMap", "plain", json!({}));
    of("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "new", json!({}));
    let there = json!({"spec": {"kubeConfig": {"secretRef": {"name": "there"}}}});
    of("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "there", there);
    let there = json!({"spec": {"destination": {"server": "https://10.0.0.1"}}});
    of("argoproj.io/v1alpha1", "Application", "there", there);
    for version in ["v9", "v10"] {
        let name = format!("sh.helm.release.v1.web.{version}");
        of("v1", "Secret", &name, json!({"type": "helm.sh/release.v1", "data": {"release": "bm9uZQ=="}}));
    }
    cluster
        .apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "taffrail-set-web", "namespace": "shop", "labels": {"taffrail.dev/record": "set"},
            },
            // gzip of an empty list
            "binaryData": {"inventory": "H4sIAAAAAAAC/4uOBQApu0wNAgAAAA=="},
        }))
        .unwrap();
    for (inventory, told) in [
        ("configmap/none", "ConfigMap shop/none does not exist"),
        ("configmap/plain", "ConfigMap shop/plain is not an inventory"),
        ("kustomization/new", "Kustomization shop/new has no inventory yet"),
        ("kustomization/there", "Kustomization shop/there delivers to another cluster"),
        ("application/there", "Application shop/there delivers to another cluster"),
        (
            "secret/sh.helm.release.v1.web.v9",
            "Secret shop/sh.helm.release.v1.web.v9 is not the newest version of the release: that is \
             sh.helm.release.v1.web.v10",
        ),
        (
            "secret/sh.helm.release.v1.web.v10",
            "the inventory of Secret shop/sh.helm.release.v1.web.v10 cannot be used",
        ),
        ("configmap/taffrail-set-web", "ConfigMap shop/taffrail-set-web is the record of a set"),
        ("gadget/web", "the cluster has no kind called gadget"),
    ] {
        let (report, _) = prune_by(&cluster, inventory).await;
        let error = report.unwrap_err();
        assert!(
            taffrail_cluster::chain(&error).contains(told),
            "{inventory}: {}",
            taffrail_cluster::chain(&error)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_goes_with_its_definition_fails_nothing() {
    let (_fleet, cluster) = shop().await;
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = taffrail_testkit::objects::definition("example.com", "v1", "Widget", anything);
    cluster.apply(definition.clone()).unwrap();
    let last = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {
            "name": "web", "namespace": "shop",
            "annotations": {"argocd.argoproj.io/sync-options": "PruneLast=true"},
        },
    });
    let mut map = map("old");
    map["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-options": "PruneLast=true"});
    list_objects(&cluster, &[definition, last, map]);
    let (report, kept) = prune_by(&cluster, "configmap/app").await;
    let report = report.unwrap();
    assert_eq!((report.end, kept), (taffrail_plan::sync::RunEnd::Succeeded, Vec::new()));
    assert!(cluster.get("v1", "ConfigMap", "shop", "old").is_none());
}
