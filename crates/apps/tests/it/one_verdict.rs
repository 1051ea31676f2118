//! One object has one verdict, whichever store holds it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use taffrail_apps::Objects as _;
use taffrail_index::EVENTS_KEPT_FOR;
use taffrail_object::GroupKind;

use super::dump::{NOW, documents};
use super::golden;
use super::verdicts::{Change, Compared, Moment, compare_recording, shipped};

/// Objects of a case, of several with one name the last, and when they are judged.
struct Case {
    label: String,
    now: Timestamp,
    objects: Vec<Value>,
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The cases of `assess`, ours, and incidents.
fn cases_of_objects(folder: &str) -> Vec<Case> {
    let read = |path: &PathBuf| {
        let content = documents(&fs::read_to_string(path).unwrap()).remove(0);
        let label = path.file_name().unwrap().to_string_lossy().into_owned();
        let now = content["now"].as_str().unwrap().parse().unwrap();
        Case { label, now, objects: content["objects"].as_array().unwrap().clone() }
    };
    files(folder).iter().map(read).collect()
}

/// The clusters of the cases of apps.
fn cases_of_apps(folders: Vec<PathBuf>) -> Vec<Case> {
    let clusters = folders.into_iter().flat_map(|case| {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        golden::clusters(&case).into_iter().map(move |cluster| {
            let label = format!("{name}/{}", taffrail_apps::Objects::name(&cluster));
            let objects = cluster
                .all()
                .map(|observed| serde_json::from_slice(observed.object.root().text().unwrap()).unwrap());
            Case { label, now: NOW, objects: objects.collect() }
        })
    });
    clusters.collect()
}

/// Returns true for an event that an API server has forgotten, as an index has; a dump may hold it.
fn is_over(object: &Value, now: Timestamp) -> bool {
    let times = ["/lastTimestamp", "/eventTime", "/series/lastObservedTime", "/deprecatedLastTimestamp"];
    let times = times.iter().filter_map(|path| object.pointer(path)?.as_str()?.parse::<Timestamp>().ok());
    let last = times.max().filter(|_| object["kind"] == "Event");
    last.is_some_and(|last| now.duration_since(last) > EVENTS_KEPT_FOR)
}

fn compare(cases: &[Case]) -> Compared {
    let rules = Arc::new(shipped());
    let mut all = Compared::default();
    for Case { label, now, objects } in cases {
        let objects: Vec<Value> = objects.iter().filter(|object| !is_over(object, *now)).cloned().collect();
        for (is_discovered, seed) in [(false, 1), (false, 2), (true, 3)] {
            let label = format!("{label} ({seed})");
            let taught_kinds = Vec::new();
            let moment = Moment { label, objects: &objects, now: *now, is_discovered, taught_kinds, seed };
            all.add(moment.compare(&rules));
        }
    }
    all
}

#[test]
fn golden_objects_have_one_verdict() {
    compare(&cases_of_objects("../status/tests/golden/assess")).assert_equal("golden objects");
}

#[test]
fn objects_of_our_own_cases_have_one_verdict() {
    compare(&cases_of_objects("../taffrail/tests/cases/assess")).assert_equal("own objects");
}

#[test]
fn objects_of_incidents_have_one_verdict() {
    compare(&cases_of_objects("../taffrail/tests/cases/incidents")).assert_equal("incidents");
}

#[test]
fn objects_of_golden_apps_have_one_verdict() {
    compare(&cases_of_apps(golden::cases())).assert_equal("golden apps");
}

#[test]
fn objects_of_our_own_apps_have_one_verdict() {
    compare(&cases_of_apps(files("../taffrail/tests/cases/apps"))).assert_equal("own apps");
}

/// A cluster in which a Kustomization and an Argo CD say what health means for what they deliver.
fn teaching() -> Vec<Value> {
    let pool = |name: &str, labels: Value, annotations: Value, phase: &str| {
        json!({"apiVersion": "example.com/v1", "kind": "Pool", "status": {"phase": phase, "ready": 1},
            "spec": {"size": 2}, "metadata": {"namespace": "shop", "name": name, "uid": format!("u-{name}"),
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels, "annotations": annotations}})
    };
    let of_flux =
        json!({"kustomize.toolkit.fluxcd.io/name": "pools", "kustomize.toolkit.fluxcd.io/namespace": "shop"});
    let tracking =
        |name: &str| json!({"argocd.argoproj.io/tracking-id": format!("web:example.com/Pool:shop/{name}")});
    let script = "if obj.spec.size > obj.status.ready then return {status = 'Progressing', message = 'one is missing'} end \
                  return {status = 'Healthy'}";
    vec![
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"namespace": "shop", "name": "pools", "generation": 1},
            "spec": {"sourceRef": {"kind": "GitRepository", "name": "fleet"}, "healthCheckExprs": [{
                "apiVersion": "example.com/v1", "kind": "Pool", "current": "status.phase == 'Fine'",
                "failed": "status.phase == 'Broken'"}]},
            "status": {"observedGeneration": 1, "lastAppliedRevision": "main@sha1:1", "lastAttemptedRevision": "main@sha1:1",
                "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "ok",
                    "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                "inventory": {"entries": [{"id": "shop_one_example.com_Pool", "v": "v1"},
                    {"id": "shop_two_example.com_Pool", "v": "v1"}]}}}),
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"namespace": "argocd", "name": "web"},
            "spec": {"destination": {"server": "https://kubernetes.default.svc"}, "source": {"repoURL": "https://git.example.com/web"}},
            "status": {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}, "resources": [
                {"group": "example.com", "kind": "Pool", "namespace": "shop", "name": "three", "version": "v1", "status": "Synced"}]}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "argocd", "name": "argocd-cm",
            "labels": {"app.kubernetes.io/part-of": "argocd"}},
            "data": {"resource.customizations.health.example.com_Pool": script}}),
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"namespace": "argocd", "name": "controller",
            "labels": {"app.kubernetes.io/component": "application-controller"}},
            "spec": {"replicas": 0, "template": {"spec": {"serviceAccountName": "gitops"}}}, "status": {"replicas": 0}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "gitops"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "gitops"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gitops"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "argocd", "name": "gitops"}]}),
        pool("one", of_flux.clone(), json!({}), "Broken"),
        pool("two", of_flux, json!({}), "Fine"),
        pool("three", json!({}), tracking("three"), "Fine"),
        pool("four", json!({}), json!({}), "Broken"),
    ]
}

#[test]
fn objects_of_apps_that_teach_have_one_verdict() {
    let (rules, objects) = (Arc::new(shipped()), teaching());
    let mut all = Compared::default();
    for seed in 0..20 {
        let taught_kinds = vec![GroupKind::new("example.com", "Pool")];
        let (label, now) = (format!("teaching {seed}"), NOW);
        let moment =
            Moment { label, objects: &objects, now, is_discovered: seed % 2 == 0, taught_kinds, seed };
        all.add(moment.compare(&rules));
    }
    assert_eq!(all.taught, 20 * 3, "each object of the two apps is judged by the rules of its app");
    all.assert_equal("apps that teach");
}

#[test]
fn taught_rules_need_the_bodies_of_their_kinds() {
    let (rules, objects) = (Arc::new(shipped()), teaching());
    let moment = Moment {
        label: "without bodies".to_owned(),
        objects: &objects,
        now: NOW,
        is_discovered: false,
        taught_kinds: Vec::new(),
        seed: 1,
    };
    assert!(!moment.compare(&rules).differences.is_empty(), "an extract is judged by the default rules");
}

/// The most moments of a recording at which all is compared.
const MOMENTS: usize = 5;

/// The events in the clusters of a recording, and the moments of the looks at them.
fn recorded(text: &str) -> (Vec<(String, Vec<Change>)>, Vec<Timestamp>) {
    let (mut clusters, mut moments) = (Vec::new(), Vec::new());
    let (mut begin, mut section) = (None, "");
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("=== ") {
            section = title;
            if let Some(cluster) = title.strip_prefix("cluster ") {
                clusters.push((cluster.to_owned(), Vec::new()));
            }
        } else if section == "begin" {
            let head: Value = serde_json::from_str(line).unwrap();
            begin = Some(head["begin"].as_str().unwrap().parse::<Timestamp>().unwrap());
        } else if let (Some(step), Some((_, changes)), Some(begin)) =
            (line.strip_prefix("- "), clusters.last_mut(), begin)
        {
            let step: Value = serde_json::from_str(step).unwrap();
            let after: f64 = step["at"].as_str().unwrap().trim_end_matches('s').parse().unwrap();
            let at = begin + SignedDuration::from_micros((after * 1e6) as i64);
            changes.push(Change { at, step });
        } else if section == "script"
            && let Ok(scene) = serde_json::from_str::<Value>(line)
            && let Some(now) = scene["look"]["now"].as_str()
        {
            moments.push(now.parse().unwrap());
        }
    }
    moments.sort();
    moments.dedup();
    let each = moments.len().div_ceil(MOMENTS).max(1);
    let last = moments.last().copied();
    let mut moments: Vec<Timestamp> = moments.into_iter().step_by(each).collect();
    moments.extend(last);
    moments.dedup();
    (clusters, moments)
}

#[test]
fn objects_of_recorded_clusters_have_one_verdict() {
    let rules = Arc::new(shipped());
    let folder = "../../tests/e2e/timelines";
    let base =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join("base.timeline")).unwrap();
    let base: Vec<Value> = base.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (mut all, mut recordings) = (Compared::default(), 0);
    for file in files(folder).into_iter().filter(|file| !file.ends_with("base.timeline")) {
        let (clusters, moments) = recorded(&fs::read_to_string(&file).unwrap());
        for (name, changes) in clusters.iter().filter(|_| !moments.is_empty()) {
            recordings += 1;
            let label = format!("{} {name}", file.file_stem().unwrap().to_string_lossy());
            all.add(compare_recording(&label, &rules, &base, changes, &moments));
        }
    }
    assert!(recordings >= 25, "only {recordings} recorded clusters");
    all.assert_equal(&format!("{recordings} recorded clusters"));
}
