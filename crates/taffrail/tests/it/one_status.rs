//! One object has one status, whoever asks for it.

use super::served::Served;
use super::{Answer, NOW, golden_app, taffrail};
use serde_json::{Value, json};
use taffrail_testkit::objects::{kustomizations, namespace};

/// A Deployment whose only Pod cannot pull its image, and the ReplicaSet between them.
fn stuck() -> Vec<Value> {
    let owner = |kind: &str, name: &str, uid: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}]);
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web:nope"}]}});
    let selector = json!({"matchLabels": {"app": "web"}});
    vec![
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "uid": "d1", "generation": 1, "creationTimestamp": "2026-03-01T10:00:00Z",
                "labels": {"app.kubernetes.io/instance": "shop"}, "annotations": {"deployment.kubernetes.io/revision": "1"}},
            "spec": {"replicas": 1, "selector": selector, "template": template},
            "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1,
                "conditions": [{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"},
                    {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}]}}),
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "web-1", "namespace": "shop", "uid": "r1", "generation": 1, "labels": {"app": "web", "pod-template-hash": "1"},
                "creationTimestamp": "2026-03-01T10:00:00Z", "annotations": {"deployment.kubernetes.io/revision": "1"},
                "ownerReferences": owner("Deployment", "web", "d1")},
            "spec": {"replicas": 1, "selector": selector, "template": template},
            "status": {"observedGeneration": 1, "replicas": 1}}),
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-1-a", "namespace": "shop", "uid": "p1", "labels": {"app": "web", "pod-template-hash": "1"},
                "creationTimestamp": "2026-03-01T10:00:00Z", "ownerReferences": owner("ReplicaSet", "web-1", "r1")},
            "spec": {"containers": [{"name": "c", "image": "web:nope"}]},
            "status": {"phase": "Pending", "containerStatuses": [{"name": "c", "ready": false, "restartCount": 0, "image": "web:nope",
                "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image web:nope"}}}]}}),
    ]
}

fn served(objects: Vec<Value>) -> Served {
    Served::start_verbatim(&["one"], |_, cluster| {
        cluster.apply(namespace("shop")).unwrap();
        for object in &objects {
            cluster.apply(object.clone()).unwrap();
        }
    })
}

/// The lines of a dump as other tools write it.
fn written(objects: &[Value]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::with_suffix(".jsonl").unwrap();
    let lines: String = objects.iter().map(|object| format!("{object}\n")).collect();
    std::fs::write(file.path(), lines).unwrap();
    file
}

#[test]
fn status_looks_at_evidence_as_other_views_do() {
    let served = served(stuck());
    let dump = written(&stuck());
    let from = dump.path().to_str().unwrap();
    let app = served.ask(&["get", "resources", "-o", "json"]).json();
    assert_eq!(app["items"][0]["status"], "Failed", "{app}");
    for words in [&["deploy/web"][..], &["deploy"], &["deployments.apps"]] {
        let live = [&["status", "-n", "shop", "-o", "json"], words].concat();
        for (answer, place) in [
            (served.ask(&live), "live"),
            (taffrail(&[&["status", "--from", from, "-o", "json"], words].concat(), ""), "dump"),
        ] {
            let item = &answer.json()["items"][0];
            assert_eq!(
                (&item["status"], &item["message"]),
                (&app["items"][0]["status"], &app["items"][0]["message"]),
                "{place} {words:?}"
            );
            assert_eq!(item["conditions"][0]["type"], "Stalled", "{item}");
        }
        let pure = served.ask(&[&live[..], &["--rules", "kstatus"]].concat()).json();
        assert_eq!(pure["items"][0]["status"], "InProgress", "{pure}");
    }
    assert_eq!(served.ask(&["status", "deploy/web", "-n", "shop", "--exit-status"]).code, 1);
}

#[test]
fn manifests_are_judged_by_the_same_rules_each_object_alone() {
    let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "once", "namespace": "shop"}, "status": {"phase": "Failed"}}"#;
    let of = |arguments: &[&str]| {
        let arguments = [&["status", "-f", "-", "-o", "json"], arguments].concat();
        taffrail(&arguments, pod).json()["items"][0]["status"].clone()
    };
    assert_eq!(of(&[]), "Failed");
    assert_eq!(of(&["--rules", "kstatus"]), "Current");
    let augmented = taffrail(&["status", "-f", "-", "-o", "json", "--augment"], pod).json();
    assert!(augmented["items"][0]["status"]["conditions"].to_string().contains("Stalled"), "{augmented}");
    // A Pod of a Deployment is noise to that; which Deployments there are is not known here.
    let pulling = stuck();
    let answer = taffrail(&["status", "-f", "-", "-o", "json"], &pulling[2].to_string()).json();
    assert_eq!(answer["items"][0]["status"], "Failed", "{answer}");
}

#[test]
fn a_kind_that_does_not_exist_is_wrong_usage() {
    let served = served(stuck());
    let dump = written(&stuck());
    let from = dump.path().to_str().unwrap();
    for answer in [served.ask(&["status", "frogs"]), taffrail(&["status", "frogs", "--from", from], "")] {
        assert_eq!((answer.code, &*answer.stdout), (2, ""), "{}", answer.stderr);
        assert!(
            answer.stderr.contains("no kind called 'frogs'") && answer.stderr.contains("hint"),
            "{}",
            answer.stderr
        );
    }
    let near = taffrail(&["status", "deploymnt", "--from", from], "");
    assert!(near.code == 2 && near.stderr.contains("did you mean deployment?"), "{}", near.stderr);
    // What is built in may have been left out.
    let none = taffrail(&["status", "cronjobs", "--from", from, "-o", "name"], "");
    assert_eq!((none.code, &*none.stdout), (0, ""), "{}", none.stderr);
    let short = taffrail(&["status", "rs", "--from", from, "-o", "name"], "");
    assert_eq!(short.stdout, "apps/ReplicaSet/shop/web-1\n", "{}", short.stderr);
}

#[test]
fn an_object_that_is_not_there_is_not_found() {
    let served = served(stuck());
    let dump = written(&stuck());
    let from = dump.path().to_str().unwrap();
    let ask =
        |arguments: &[&str]| taffrail(&[&["status", "--from", from, "-o", "json"], arguments].concat(), "");
    let item = |answer: Answer| answer.json()["items"][0].clone();
    assert_eq!(item(ask(&["deploy/nope"]))["status"], "NotFound");
    assert!(!item(ask(&["deploy/nope"]))["message"].to_string().contains("left out"));
    let other = item(ask(&["cronjob/nope"]));
    assert!(
        other["status"] == "NotFound" && other["message"].to_string().contains("the kind may be left out"),
        "{other}"
    );
    assert_eq!(ask(&["deploy/nope"]).code, 0);
    assert_eq!(ask(&["deploy/nope", "--exit-status"]).code, 1);
    assert_eq!(served.ask(&["status", "deploy/nope", "-n", "shop", "--exit-status"]).code, 1);
}

#[test]
fn a_declared_object_of_a_kind_that_a_dump_lacks_says_so() {
    let dump = written(&stuck());
    let from = dump.path().to_str().unwrap();
    let list = taffrail(
        &["get", "resources", "--from", from, "-o", "json", "--declared", "batch/CronJob/shop/nightly"],
        "",
    )
    .json();
    let row = &list["items"][0];
    assert!(
        row["status"] == "NotFound" && row["message"].to_string().contains("the kind may be left out"),
        "{list}"
    );
}

#[test]
fn empty_dump_is_not_reported_as_healthy() {
    for (suffix, text) in
        [(".yaml", ""), (".json", "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": []}\n")]
    {
        let file = tempfile::NamedTempFile::with_suffix(suffix).unwrap();
        std::fs::write(file.path(), text).unwrap();
        let from = file.path().to_str().unwrap();
        for view in [&["get", "apps"][..], &["explain"], &["status", "deploy"], &["trust"]] {
            let answer = taffrail(&[view, &["--from", from]].concat(), "");
            assert_eq!(answer.code, 3, "{view:?} {}", answer.stderr);
            let told = answer.stderr + &answer.stdout;
            assert!(told.contains("the dump holds no objects"), "{view:?} {told}");
        }
    }
}

#[test]
fn cluster_without_apps_is_not_reported_as_healthy() {
    let namespace = namespace("x");
    let dump = written(&[namespace]);
    let from = dump.path().to_str().unwrap();
    for view in ["explain", "get apps"] {
        let words: Vec<&str> = view.split(' ').collect();
        let answer = taffrail(&[&words[..], &["--from", from]].concat(), "");
        assert_eq!((answer.code, &*answer.stdout), (0, ""), "{view}");
        assert!(answer.stderr.starts_with("No apps found"), "{view}: {}", answer.stderr);
    }
}

#[test]
fn a_yaml_dump_that_was_cut_is_told() {
    let from = golden_app("flux-kustomization-well");
    let whole = std::fs::read_to_string(from).unwrap();
    let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    let path = file.path().to_str().unwrap();
    let ask = || taffrail(&["get", "apps", "--from", path, "--now", NOW, "-o", "json"], "");
    std::fs::write(path, &whole).unwrap();
    assert_eq!(ask().code, 0);
    // In the middle of a word of the last document.
    let end = whole.trim_end().len() - 2;
    std::fs::write(path, &whole[..end]).unwrap();
    let answer = ask();
    assert_eq!(answer.code, 3, "{}", answer.stdout);
    let list = answer.json();
    assert!(list["errors"].to_string().contains("Unreadable"), "{list}");
}

#[test]
fn an_object_that_no_app_declares_is_explained_by_what_stands_behind_it() {
    // Its kind is listed for the app of another namespace, and only there is anything not ready.
    let lone = stuck().into_iter().map(|mut object| {
        object["metadata"]["namespace"] = json!("t1");
        object["metadata"]["labels"].as_object_mut().unwrap().remove("app.kubernetes.io/instance");
        object
    });
    let app = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "api", "namespace": "shop", "uid": "d2", "generation": 1},
        "spec": {"replicas": 0}, "status": {"observedGeneration": 1}});
    let declares = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "shop", "namespace": "shop", "generation": 1},
        "status": {"inventory": {"entries": [{"id": "shop_api_apps_Deployment", "v": "v1"}, {"id": "other_x_apps_Deployment", "v": "v1"}]}}});
    let served = served([vec![namespace("t1"), kustomizations(), app, declares], lone.collect()].concat());
    let status = served.ask(&["status", "deploy/web", "-n", "t1", "-o", "json"]).json()["items"][0].clone();
    assert_eq!(status["status"], "Failed", "{status}");
    for arguments in [&["-n", "t1"][..], &[]] {
        let asked = [&["explain", "deploy/web", "-o", "json"], arguments].concat();
        let told = served.ask(&asked).json();
        assert_eq!((&told["health"], &told["message"]), (&status["status"], &status["message"]), "{told}");
        assert_eq!(told["chain"].as_array().and_then(|chain| chain.last()).unwrap()["object"]["kind"], "Pod");
    }
}
