//! Limits on the cost of judging a cluster, and reports on the objects that were not judged.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_apps::{ObjectSync, Objects, Scope, apps, declared, differing_fields};
use taffrail_object::{Object, ObjectKey};
use taffrail_status::assess::{Options, Patience};
use taffrail_status::{
    ActiveRules, ClusterState as _, ComputeError, MAX_MESSAGE, ObjectContext, Rules, Status, Taffrail,
    Verdict,
};

use super::dump::{NOW, holding};

/// Returns objects of a namespace that are not well, each of which refers to all of them.
fn knots(namespace: &str, count: usize) -> Vec<Value> {
    let references: Vec<_> = (0..count)
        .map(|at| json!({"apiVersion": "example.com/v1", "kind": "Knot", "name": format!("k{at}")}))
        .collect();
    let knot = |at: usize| {
        json!({"apiVersion": "example.com/v1", "kind": "Knot",
            "metadata": {"name": format!("k{at}"), "namespace": namespace, "uid": format!("{namespace}{at}")},
            "spec": {"resourceRefs": references},
            "status": {"conditions": [{"type": "Ready", "status": "False", "message": "waits"}]}})
    };
    (0..count).map(knot).collect()
}

fn settings(namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": namespace}})
}

fn keys(objects: &[Value]) -> Vec<ObjectKey> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let key = |object: &Value| {
        let group = if object["kind"] == "Knot" { "example.com" } else { "" };
        let metadata = &object["metadata"];
        ObjectKey::new(group, text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
    };
    objects.iter().map(key).collect()
}

#[test]
fn unjudged_objects_are_unknown_and_reported() {
    // Each takes its share, and more than there are shares.
    let knots = (0..40).flat_map(|at| knots(&format!("n{at}"), 1));
    let objects: Vec<_> = knots.chain([settings("shop")]).collect();
    let time = AtomicU64::new(0);
    let clock = move || Duration::from_millis(time.fetch_add(1, Ordering::Relaxed));
    let patience = Patience::new(Duration::from_millis(20), "--timeout 5s", clock);
    let options = Options { patience: Some(patience), ..Options::default() };
    let rules = ActiveRules { options: &options, ..ActiveRules::default() };
    let list = declared(&[&holding("prod", &objects)], &keys(&objects), &rules, NOW);
    let [app] = list.apps.as_slice() else { panic!("{:?}", list.apps) };
    assert_eq!(app.health, Status::Unknown);
    assert!(app.message.contains("--timeout 5s"), "{}", app.message);
    // What would be Ready is not.
    let late = app.resources.iter().find(|it| it.key.kind == "ConfigMap").unwrap();
    assert_eq!((late.status, &*late.message), (Status::Unknown, "not judged within --timeout 5s"));
    let of_shop = Scope::Namespace("shop".to_owned());
    let told = list.errors.iter().map(|it| &it.error).find(|error| error.scope == of_shop).unwrap();
    assert_eq!((&*told.reason, &*told.message), ("NotJudged", "1 object was not judged within --timeout 5s"));
}

#[test]
fn endless_references_leave_other_namespaces_judged() {
    let objects: Vec<_> = knots("tenant", 150).into_iter().chain(knots("shop", 5)).collect();
    let list = declared(&[&holding("prod", &objects)], &keys(&objects), &ActiveRules::default(), NOW);
    let unknown = list.apps[0].resources.iter().filter(|it| it.status == Status::Unknown);
    assert!(unknown.clone().count() > 80);
    assert!(unknown.clone().all(|it| it.key.namespace == "tenant" && it.rule == "unjudged"));
    let [error] = list.errors.as_slice() else { panic!("{:?}", list.errors) };
    assert_eq!(error.error.scope, Scope::Namespace("tenant".to_owned()));
    assert!(error.error.message.contains("takes more than 100000 steps"), "{}", error.error.message);
}

/// Prints how long both take with `--nocapture`; nothing depends on it.
#[test]
fn objects_of_a_namespace_are_found_without_a_full_scan() {
    const NAMESPACES: usize = 500;
    let object = |at: usize| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("c{at}"), "namespace": format!("n{}", at % NAMESPACES)}})
    };
    let objects: Vec<_> = (0..NAMESPACES * 10).map(object).collect();
    let cluster = holding("prod", &objects);
    let (mut found, mut scanned) = (Duration::ZERO, Duration::ZERO);
    for at in 0..NAMESPACES {
        let namespace = format!("n{at}");
        let began = Instant::now();
        let mut names: Vec<_> =
            cluster.in_namespace(&namespace).map(|it| it.object.name().into_owned()).collect();
        found += began.elapsed();
        names.sort_unstable();
        if at % 50 != 0 {
            assert_eq!(names.len(), 10);
            continue;
        }
        let began = Instant::now();
        let there = cluster.all().filter(|it| it.key.namespace == namespace);
        let mut all: Vec<_> = there.map(|it| it.object.name().into_owned()).collect();
        scanned += began.elapsed() * 50;
        all.sort_unstable();
        assert_eq!(names, all);
    }
    println!("{} objects in {NAMESPACES} namespaces: {found:?}, by scans {scanned:?}", objects.len());
}

#[test]
fn messages_of_delivery_tools_are_cut() {
    let long = "ä".repeat(100_000);
    let kustomization = |ready: &str| {
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"namespace": "flux", "name": format!("r{ready}").to_lowercase(), "generation": 1},
            "status": {"observedGeneration": 1, "conditions": [
                {"type": "Ready", "status": ready, "reason": "ReconciliationFailed", "message": long, "observedGeneration": 1}]}})
    };
    let application = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": "argocd", "name": "shop"},
        "status": {"sync": {"status": "OutOfSync", "revision": "1"},
            "resources": [{"kind": "ConfigMap", "version": "v1", "namespace": "shop", "name": "c", "status": "OutOfSync"}],
            "operationState": {"phase": "Failed", "message": long, "syncResult": {"revision": "1", "resources": [
                {"kind": "ConfigMap", "version": "v1", "namespace": "shop", "name": "c", "status": "SyncFailed", "message": long}]}}}});
    let cluster = holding("prod", &[kustomization("True"), kustomization("False"), application]);
    let list = apps(&[&cluster], &ActiveRules::default(), NOW);
    assert_eq!(list.apps.len(), 3);
    for app in &list.apps {
        let problems = app.problems.iter().map(|it| &*it.message);
        let objects = app.resources.iter().map(|it| &*it.message);
        let unsynced = app.unsynced.iter().map(|it| &*it.message);
        let all = problems.chain(objects).chain(unsynced).chain([&*app.message, &*app.delivery_message]);
        for text in all {
            assert!(text.len() <= MAX_MESSAGE, "{} bytes of {}", text.len(), app.app.name);
        }
    }
    assert!(list.apps.iter().any(|app| app.message.contains("more bytes")));
}

/// A Kustomization that lists objects, with a script of its own.
fn lists(namespace: &str, name: &str, ids: &[String]) -> Value {
    let entries: Vec<_> = ids.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
    json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": namespace, "name": name, "generation": 1},
        "spec": {"sourceRef": {"kind": "GitRepository", "name": "fleet"},
            "healthCheckExprs": [{"apiVersion": "example.org/v1", "kind": "X", "current": "true"}]},
        "status": {"observedGeneration": 1, "inventory": {"entries": entries},
            "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "Applied"}]}})
}

/// Returns an object that the Kustomization `flux-system/shop` delivers.
fn delivered(mut object: Value) -> Value {
    object["metadata"]["labels"] = json!({
        "kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"});
    object
}

/// Returns the row of the Kustomization `flux-system/shop`.
fn of_shop(objects: &[Value]) -> (Status, String) {
    let snapshot = holding("cluster", objects);
    let list = apps(&[&snapshot as &dyn Objects], &ActiveRules::default(), NOW);
    let row = list.apps.into_iter().find(|row| row.app.namespace == "flux-system").unwrap();
    (row.health, row.message.to_string())
}

#[test]
fn judging_foreign_objects_is_charged_to_the_listing_namespace() {
    let mut objects: Vec<Value> = knots("shop", 20).into_iter().map(delivered).collect();
    let ids: Vec<String> = (0..20).map(|at| format!("shop_k{at}_example.com_Knot")).collect();
    objects.push(lists("flux-system", "shop", &ids));
    let before = of_shop(&objects);
    assert_eq!(before.0, Status::InProgress);
    objects.extend((0..200).map(|at| lists("aaa", &format!("t{at}"), &ids)));
    assert_eq!(of_shop(&objects), before);
}

/// Rules with a script of the user's own for configuration: each run takes 3 ms.
#[derive(Debug, Default)]
struct Scripted {
    runs: AtomicUsize,
}

impl Rules for Scripted {
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        let status = match object.kind() {
            "Widget" => Status::Current,
            "Job" => Status::Failed,
            _ => return Taffrail.judge(object, context, now),
        };
        let run = || {
            self.runs.fetch_add(1, Ordering::Relaxed);
            (Some(Verdict::new(status, "by the script", "user/lua")), Duration::from_millis(3), false)
        };
        Ok(context.costs.unwrap().run(0, object, context.claimant, run).unwrap())
    }
}

#[test]
fn user_scripts_on_foreign_objects_are_charged_to_the_listing_namespace() {
    let widget = |at: usize| {
        delivered(json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": format!("w{at}"), "namespace": "shop"}}))
    };
    let mut objects: Vec<Value> = (0..100).map(widget).collect();
    let ids: Vec<String> = (0..100).map(|at| format!("shop_w{at}_example.com_Widget")).collect();
    // Those of namespace aaa are judged first.
    objects.extend((0..100).map(|at| lists("aaa", &format!("t{at}"), &ids)));
    objects.push(lists("flux-system", "shop", &ids));
    let rules = Scripted::default();
    let snapshot = holding("cluster", &objects);
    let list = apps(&[&snapshot as &dyn Objects], &ActiveRules::new(&rules), NOW);
    let row = list.apps.iter().find(|row| row.app.namespace == "flux-system").unwrap();
    assert_eq!(row.health, Status::Current, "{}", row.message);
    // Each is judged at most once for who lists it, and once for whose it is.
    let runs = rules.runs.load(Ordering::Relaxed);
    assert!(runs <= 300, "{runs} runs");
}

#[test]
fn an_object_unjudged_for_its_lister_is_judged_for_its_owner() {
    let owner = delivered(json!({"apiVersion": "example.com/v1", "kind": "Hub",
        "metadata": {"name": "hub", "namespace": "shop", "uid": "u-hub", "generation": 1},
        "status": {"size": 1}}));
    let by = json!([{"apiVersion": "example.com/v1", "kind": "Hub", "name": "hub", "uid": "u-hub", "controller": true}]);
    let job = |name: &str, owners: Value| {
        json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": owners}})
    };
    let mut objects =
        vec![owner, job("run", by), lists("flux-system", "shop", &["shop_hub_example.com_Hub".to_owned()])];
    let rows = |objects: &[Value]| {
        let snapshot = holding("cluster", objects);
        let list = apps(&[&snapshot as &dyn Objects], &ActiveRules::new(&Scripted::default()), NOW);
        let row = list.apps.into_iter().find(|row| row.app.namespace == "flux-system").unwrap();
        (row.health, row.message.to_string())
    };
    let before = rows(&objects);
    assert_eq!(before.0, Status::Failed);
    objects.extend((0..400).map(|at| job(&format!("j{at}"), json!([]))));
    let ids: Vec<String> = (0..400).map(|at| format!("shop_j{at}_batch_Job")).collect();
    objects.push(lists("aaa", "a", &ids));
    objects.push(lists("aaa", "b", &["shop_hub_example.com_Hub".to_owned()]));
    assert_eq!(rows(&objects), before);
}

#[test]
fn foreign_owner_references_are_charged_to_the_referring_namespace() {
    let owner = |namespace: &str| {
        delivered(json!({"apiVersion": "example.com/v1", "kind": "Tenancy",
            "metadata": {"name": "own", "namespace": namespace, "uid": "u1", "generation": 1},
            "status": {"conditions": [{"type": "Ready", "status": "False", "message": "waits"}]}}))
    };
    let naming = |at: usize| {
        let owner = json!([{"apiVersion": "example.com/v1", "kind": "Tenancy", "name": "own", "uid": "u1", "controller": true}]);
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("c{at}"), "namespace": "aaa", "ownerReferences": owner}})
    };
    for (namespace, id) in [("", "_own_example.com_Tenancy"), ("shop", "shop_own_example.com_Tenancy")] {
        let mut objects = vec![owner(namespace), lists("flux-system", "shop", &[id.to_owned()])];
        let before = of_shop(&objects);
        assert_eq!(before.0, Status::InProgress);
        objects.extend((0..1_000).map(naming));
        objects.extend((0..200).map(|at| lists("aaa", &format!("t{at}"), &[id.to_owned()])));
        assert_eq!(of_shop(&objects), before, "{namespace}");
    }
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An Application that reports ConfigMaps of its namespace as OutOfSync, and was synced to the wanted revision.
fn application(namespace: &str, name: &str, objects: &[String]) -> Value {
    let differing = |name: &String| json!({"kind": "ConfigMap", "version": "v1", "namespace": namespace, "name": name, "status": "OutOfSync"});
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"destination": {"server": "https://kubernetes.default.svc"}},
        "status": {"sync": {"status": "OutOfSync", "revision": "c2"}, "health": {"status": "Healthy"},
            "resources": objects.iter().map(differing).collect::<Vec<_>>(),
            "history": [{"revision": "c2", "deployedAt": "2026-03-01T10:00:00Z"}],
            "operationState": {"phase": "Succeeded", "finishedAt": "2026-03-01T10:00:00Z", "syncResult": {"revision": "c2"}}}})
}

/// Returns the objects of the app `namespace`/`name` that are not synced, with the fields that differ, when those of all
/// apps are asked for.
fn differing(objects: &[Value], namespace: &str, name: &str) -> Vec<ObjectSync> {
    let snapshot = holding("prod", objects);
    let clusters: [&dyn Objects; 1] = [&snapshot];
    let list = apps(&clusters, &ActiveRules::default(), NOW);
    let place = list.apps.iter().position(|row| (&*row.app.namespace, &*row.app.name) == (namespace, name));
    differing_fields(list.apps.iter(), &clusters).swap_remove(place.unwrap())
}

/// The text of a ConfigMap whose fields are nested too deeply for a tree of values.
fn written_deeply(depth: usize, key: &str) -> String {
    let fields = format!("{}{{}}{}", format!("{{\"{key}\":").repeat(depth), "}".repeat(depth));
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"c","namespace":"aaa","managedFields":[{{"manager":"kubectl","operation":"Update","time":"2026-03-01T11:00:00Z","fieldsV1":{fields}}}]}}}}"#
    )
}

#[test]
fn nested_field_names_end_the_search_for_differing_fields() {
    for (key, path) in [("f:", "[][]"), ("f:a", "a.a"), ("k:{}", "[][]")] {
        let mut snapshot = holding("prod", &[application("aaa", "t", &["c".to_owned()])]);
        let text = written_deeply(9_900, key);
        super::dump::insert_text(&mut snapshot, &text);
        let clusters: [&dyn Objects; 1] = [&snapshot];
        let list = apps(&clusters, &ActiveRules::default(), NOW);
        let found = differing_fields(list.apps.iter(), &clusters);
        let [differs] = found[0][0].differs.as_slice() else { panic!("{found:?}") };
        assert_eq!((differs.fields.len(), differs.by.as_deref()), (1, Some("kubectl")));
        assert!(differs.fields[0].starts_with(path), "{}", differs.fields[0]);
        assert!(differs.fields[0].len() <= 300, "{}", differs.fields[0].len());
    }
}

#[test]
fn a_deeply_nested_status_is_not_blank() {
    let row = |status: &str| {
        let text = format!(
            r#"{{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{{"name":"t","namespace":"aaa"}},"spec":{{"destination":{{"server":"https://kubernetes.default.svc"}}}},"status":{status}}}"#
        );
        let mut snapshot = holding("prod", &[]);
        super::dump::insert_text(&mut snapshot, &text);
        let list = apps(&[&snapshot], &ActiveRules::default(), NOW);
        (list.apps[0].health, list.apps[0].message.clone())
    };
    let nested =
        |depth: usize, value: &str| format!("{}{value}{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let blank = row("{}");
    assert_eq!(row(&nested(2, "{}")), blank);
    let said = row(&nested(2, "\"b\""));
    assert_ne!(said, blank);
    // Nothing writes so many levels of nothing.
    assert_eq!(row(&nested(9_900, "{}")), said);
}

/// A ConfigMap of namespace `aaa` with what was last applied of it.
fn applied(name: &str, declared: &Value, live: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "aaa", "name": name,
            "annotations": {LAST_APPLIED: json!({"data": declared}).to_string()}},
        "data": live})
}

#[test]
fn the_comparison_with_what_was_applied_is_bounded() {
    let items = |letter: &str, count: usize| -> Value {
        (0..count).map(|at| json!({"name": format!("{letter}{at}")})).collect()
    };
    let members = |letter: &str, count: usize| -> Value {
        (0..count).map(|at| (format!("{letter}{at}"), json!(1))).collect::<serde_json::Map<_, _>>().into()
    };
    let incomplete = |declared: Value, live: Value| {
        let objects = [application("aaa", "t", &["c".to_owned()]), applied("c", &declared, &live)];
        let [own] = differing(&objects, "aaa", "t").try_into().unwrap();
        (own.incomplete, own.differs.first().map_or(0, |differs| differs.fields.len() + differs.more))
    };
    // Each value of either is looked at once.
    assert_eq!(incomplete(items("d", 10_000), items("l", 60_000)), (false, 10_000));
    assert_eq!(incomplete(members("d", 10_000), members("l", 60_000)), (false, 10_000));
    assert_eq!(incomplete(items("d", 10_000), items("l", 95_000)), (true, 0));
    assert_eq!(incomplete(members("d", 10_000), members("l", 95_000)), (true, 0));
    // Names that repeat would have one live item compared again and again.
    let repeated: Value = (0..5_000).map(|_| json!({"name": "l0"})).collect();
    assert_eq!(incomplete(repeated, items("l", 60_000)), (false, 1));
}

#[test]
fn an_object_of_many_apps_is_compared_once() {
    let mut objects: Vec<Value> =
        (0..30).map(|at| application("aaa", &format!("t{at:02}"), &["c".to_owned()])).collect();
    // 30 times this is more than a namespace may have compared.
    let live: serde_json::Map<_, _> = (0..90_000).map(|at| (format!("l{at}"), json!(1))).collect();
    objects.push(applied("c", &json!({"d": 1}), &live.into()));
    let [own] = differing(&objects, "aaa", "t29").try_into().unwrap();
    assert_eq!((own.incomplete, own.differs[0].fields.as_slice()), (false, &["data.d".to_owned()][..]));
}

#[test]
fn comparisons_for_one_namespace_take_none_from_others() {
    let names: Vec<String> = (0..20).map(|at| format!("c{at}")).collect();
    let mut objects: Vec<Value> =
        (0..30).map(|at| application("aaa", &format!("t{at:02}"), &names)).collect();
    objects.extend(names.iter().map(|name| applied(name, &json!({"a": "1"}), &json!({"a": "2"}))));
    objects.push({
        let mut own = applied("c", &json!({"a": "1"}), &json!({"a": "2"}));
        own["metadata"]["namespace"] = json!("shop");
        own
    });
    objects.push(application("shop", "web", &["c".to_owned()]));
    let [own] = differing(&objects, "shop", "web").try_into().unwrap();
    assert_eq!((own.incomplete, own.differs.len()), (false, 1));
    // What is not compared says so.
    let last = differing(&objects, "aaa", "t29");
    assert!(last.iter().all(|own| own.incomplete && own.differs.is_empty()), "{last:?}");
    let first = differing(&objects, "aaa", "t00");
    assert!(first.iter().all(|own| !own.incomplete && own.differs.len() == 1), "{first:?}");
    // Neither do objects beyond the number of an app.
    let names: Vec<String> = (0..21).map(|at| format!("c{at}")).collect();
    let more = differing(&[application("aaa", "t", &names)], "aaa", "t");
    assert_eq!(more.iter().filter(|own| own.incomplete).count(), 1);
}
