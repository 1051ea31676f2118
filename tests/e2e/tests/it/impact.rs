//! `taffrail impact` beside what an apply of the same commit then does on real API servers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use taffrail_testkit::kube::{ControlPlane, Options};
use taffrail_testkit::objects;

use crate::harness::{built, unavailable};

const NAMESPACE: &str = "shop";

/// The number of branches, unless [`NUMBER`] states another one.
const BRANCHES: usize = 4;

/// The variable with the number of branches: twenty take three minutes.
const NUMBER: &str = "TAFFRAIL_E2E_BRANCHES";

/// A cluster, and whether the app in it prunes.
const APPS: [(&str, bool); 3] = [("kube-1", true), ("kube-2", false), ("kube-3", true)];

/// The manifests of an app, by the names of their files.
type Manifests = BTreeMap<String, Value>;

/// What becomes of objects, by cluster, kind and name.
type Effects = BTreeMap<(String, String, String), String>;

/// A source of numbers that are the same for one seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        // The multiplier and increment of Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}, "data": {"value": value}})
}

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]}}},
    })
}

fn manifests() -> Manifests {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": NAMESPACE},
        "stringData": {"key": "first"}});
    let named = [
        ("settings.yaml", config_map("settings", "first")),
        ("more/other.yaml", config_map("other", "first")),
        ("web.yaml", deployment("web")),
        ("more/worker.yml", deployment("worker")),
        ("service.yaml", service),
        ("key.yaml", secret),
    ];
    named.map(|(file, object)| (file.to_owned(), object)).into()
}

/// Changes some manifests at random; returns a description.
fn change(manifests: &mut Manifests, dice: &mut Dice, branch: usize) -> String {
    let mut told = Vec::new();
    for _ in 0..=dice.below(3) {
        let files: Vec<String> = manifests.keys().cloned().collect();
        let file = &files[dice.below(files.len())];
        let object = manifests.get_mut(file).expect("a manifest");
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let choice = dice.below(6);
        told.push(format!("{file}: {choice}"));
        match (choice, &*kind) {
            (0, _) if files.len() > 3 => drop(manifests.remove(file)),
            (1, _) => {
                let name = format!("new-{branch}-{}", dice.below(100));
                manifests.insert(format!("{name}.yaml"), config_map(&name, "first"));
            }
            (2, _) => object["metadata"]["labels"] = json!({"branch": branch.to_string()}),
            (_, "Deployment") if dice.below(2) == 0 => object["spec"]["replicas"] = json!(dice.below(3)),
            (_, "Deployment") => {
                let image = format!("nginx:1.{}", dice.below(40));
                object["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
            }
            (_, "ConfigMap") => object["data"] = json!({"value": dice.below(3).to_string()}),
            (_, "Secret") => object["stringData"] = json!({"key": dice.below(3).to_string()}),
            (_, "Service") => object["spec"]["ports"][0]["port"] = json!(80 + dice.below(3)),
            _ => {}
        }
    }
    told.join(", ")
}

fn git(repository: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=test", "-c", "user.email=test@example.com"]).args(arguments);
    git.current_dir(repository).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = git.output().expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn commit(repository: &Path, apps: &BTreeMap<&str, Manifests>) {
    let clusters = repository.join("clusters");
    if clusters.exists() {
        fs::remove_dir_all(&clusters).expect("the manifests before");
    }
    for (cluster, manifests) in apps {
        for (file, object) in manifests {
            let path = clusters.join(cluster).join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, format!("{object:#}\n")).expect("a manifest");
        }
    }
    git(repository, &["add", "--all"]);
    git(repository, &["commit", "--quiet", "--allow-empty", "--message", "test"]);
}

/// Plays the controller of Kustomizations: applies, prunes, and writes the inventory.
fn deliver(plane: &ControlPlane, folder: &Path, cluster: &str, prunes: bool, manifests: &Manifests) {
    let labelled: String = manifests
        .values()
        .map(|object| {
            let mut object = object.clone();
            object["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"] = json!("web");
            object["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/namespace"] = json!("flux-system");
            format!("---\n{object}\n")
        })
        .collect();
    let path = folder.join("applied.yaml");
    fs::write(&path, labelled).expect("it can be written");
    let path = path.to_str().expect("it is UTF-8");
    let manager = "--field-manager=kustomize-controller";
    plane
        .kubectl(cluster, &["apply", "--server-side", "--force-conflicts", manager, "-f", path])
        .expect("applied");
    let declared = declared(manifests);
    if prunes {
        for (kind, name) in live(plane, cluster).into_keys().filter(|key| !declared.contains(key)) {
            plane.kubectl(cluster, &["delete", &kind, &name, "-n", NAMESPACE]).expect("it is deleted");
        }
    }
    let entry = |(kind, name): &(String, String)| {
        let group = if kind == "Deployment" { "apps" } else { "" };
        json!({"id": format!("{NAMESPACE}_{name}_{group}_{kind}"), "v": "v1"})
    };
    let status = json!({
        "observedGeneration": 1, "lastAppliedRevision": "main@sha1:1",
        "inventory": {"entries": declared.iter().map(entry).collect::<Vec<_>>()},
        "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "",
            "lastTransitionTime": "2026-03-01T12:00:00Z", "observedGeneration": 1}],
    });
    let app = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "web", "namespace": "flux-system"}, "status": status});
    plane.apply_status(cluster, &app.to_string()).expect("the inventory");
}

fn declared(manifests: &Manifests) -> Vec<(String, String)> {
    manifests.values().map(named).collect()
}

fn named(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Returns the labelled objects of a cluster, each with what may change of it.
fn live(plane: &ControlPlane, cluster: &str) -> BTreeMap<(String, String), Value> {
    let selector = "kustomize.toolkit.fluxcd.io/name=web";
    let kinds = "configmaps,secrets,services,deployments";
    let list = plane.kubectl(cluster, &["get", kinds, "-n", NAMESPACE, "-l", selector, "-o", "json"]);
    let list: Value = serde_json::from_str(&list.expect("the objects")).expect("JSON");
    let items = list["items"].as_array().expect("a list").iter();
    let kept = |object: &Value| {
        json!([object["metadata"]["uid"], object["metadata"]["labels"], object["spec"], object["data"]])
    };
    items.map(|object| (named(object), kept(object))).collect()
}

/// Returns what became of the objects of a cluster whose manifests `declared` before and after. An object that was left
/// earlier is in no inventory any more.
fn became(
    cluster: &str,
    [before, after]: [&BTreeMap<(String, String), Value>; 2],
    declared: [&[(String, String)]; 2],
) -> Effects {
    let mut effects = Effects::new();
    for key in before.keys().chain(after.keys()) {
        let effect = match (before.get(key), after.get(key)) {
            (None, Some(_)) => "create",
            (Some(_), None) => "delete",
            (Some(_), Some(_)) if !declared[1].contains(key) => match declared[0].contains(key) {
                true => "leave",
                false => continue,
            },
            (Some(one), Some(other)) if one == other => continue,
            (Some(one), Some(other)) if one[2]["template"] != other[2]["template"] => "restart",
            _ => "change",
        };
        let (kind, name) = key.clone();
        effects.insert((cluster.to_owned(), kind, name), effect.to_owned());
    }
    effects
}

fn impact(plane: &ControlPlane, repository: &Path) -> (Effects, Output) {
    let output = Command::new(built())
        .args(["impact", "HEAD~1..HEAD", "--all-contexts", "-o", "json"])
        .current_dir(repository)
        .env("KUBECONFIG", plane.kubeconfig())
        .env("TAFFRAIL_TIMEOUT", "60s")
        .output()
        .expect("the program runs");
    let list: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)));
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rows = list["items"].as_array().expect("rows").iter().filter(|row| row["effect"] != "unchanged");
    let effects = rows.map(|row| {
        let object = &row["object"];
        ((word(&row["cluster"]), word(&object["kind"]), word(&object["name"])), word(&row["effect"]))
    });
    (effects.collect(), output)
}

#[test]
fn impact_names_exactly_what_an_apply_of_the_commit_then_changes() {
    if unavailable() {
        return;
    }
    let name = format!("e2e-impact-{}", std::process::id());
    let options = Options { name, clusters: 3, bare: 3, nodes: 0, ..Options::default() };
    let plane = ControlPlane::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
    let folder = tempfile::tempdir().expect("a folder");
    let repository = folder.path().join("repository");
    fs::create_dir(&repository).expect("a folder");
    git(&repository, &["init", "--quiet", "--initial-branch=main"]);
    git(&repository, &["remote", "add", "origin", "git@git.example.com:example/fleet.git"]);
    let mut apps: BTreeMap<&str, Manifests> =
        APPS.iter().map(|(cluster, _)| (*cluster, manifests())).collect();
    commit(&repository, &apps);
    for (cluster, prunes) in APPS {
        let source = json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": "fleet", "namespace": "flux-system"},
            "spec": {"interval": "10m", "url": "https://git.example.com/example/fleet"}});
        let app = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "web", "namespace": "flux-system"},
            "spec": {"interval": "10m", "path": format!("./clusters/{cluster}"), "prune": prunes,
                "sourceRef": {"kind": "GitRepository", "name": "fleet"}}});
        let all = [objects::namespace(NAMESPACE), objects::namespace("flux-system"), source, app];
        let all: String = all.iter().map(|object| format!("---\n{object}\n")).collect();
        plane.apply(cluster, &all).expect("the app");
        deliver(&plane, folder.path(), cluster, prunes, &apps[cluster]);
    }
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    println!("seed {seed}");
    let mut dice = Dice(seed);
    let mut seen = BTreeMap::<String, usize>::new();
    let branches = std::env::var(NUMBER).map_or(BRANCHES, |number| number.parse().expect("a number"));
    for branch in 0..branches {
        let mut told = Vec::new();
        let earlier = apps.clone();
        for (cluster, manifests) in &mut apps {
            // The folders of some clusters do not change.
            if dice.below(4) > 0 {
                told.push(format!("{cluster}: {}", change(manifests, &mut dice, branch)));
            }
        }
        commit(&repository, &apps);
        let (expected, output) = impact(&plane, &repository);
        let context = format!("seed {seed}, branch {branch}, {told:?}\n{}", text(&output.stderr));
        let mut became_all = Effects::new();
        for (cluster, prunes) in APPS {
            let before = live(&plane, cluster);
            deliver(&plane, folder.path(), cluster, prunes, &apps[cluster]);
            let after = live(&plane, cluster);
            let names = [declared(&earlier[cluster]), declared(&apps[cluster])];
            became_all.extend(became(cluster, [&before, &after], [&names[0], &names[1]]));
        }
        assert_eq!(expected, became_all, "{context}");
        assert_eq!(output.status.code(), Some(0), "{context}");
        for effect in became_all.into_values() {
            *seen.entry(effect).or_default() += 1;
        }
    }
    println!("{branches} branches: {seen:?}");
    assert!(!seen.is_empty(), "nothing happened");
}
