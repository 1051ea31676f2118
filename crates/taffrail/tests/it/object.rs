//! `taffrail object`.

use serde_json::{Value, json};
use taffrail_testkit::objects::{self, namespace};

use super::served::Served;
use super::{Answer, command, taffrail};

fn secret() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "door", "namespace": "shop",
        "annotations": {"kapp.k14s.io/original": "{\"data\":{\"password\":\"aHVudGVyMg==\"}}", "meta.helm.sh/release-name": "door"}},
        "data": {"password": "aHVudGVyMg=="}})
}

fn event(about: &str, kind: &str, message: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Event", "type": kind, "reason": "Told", "message": message, "count": 3,
        "metadata": {"name": format!("{about}.1"), "namespace": "shop"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T01:00:00Z",
        "involvedObject": {"kind": "Deployment", "namespace": "shop", "name": about}})
}

/// Two clusters with the Deployment `shop/web`, of which the first also has a Secret and events.
fn served() -> Served {
    Served::start_with_managers(&["one", "two"], |name, cluster| {
        let mut all = vec![
            namespace("shop"),
            objects::deployment("shop", "web", 2),
            objects::deployment("shop", "other", 1),
        ];
        if name == "one" {
            all.extend([
                secret(),
                event("web", "Normal", "all is well"),
                event("other", "Warning", "not this"),
            ]);
        }
        all.into_iter().for_each(|object| cluster.apply(object).unwrap());
    })
}

/// Answers as JSON: of a Secret, and of an object with events.
pub(super) fn samples() -> [Answer; 2] {
    let served = served();
    ["secret/door", "deploy/other"].map(|name| served.ask(&["object", name, "-n", "shop", "-o", "json"]))
}

#[test]
fn an_object_is_printed_as_its_server_returned_it() {
    let served = served();
    let one = ["--cluster", "one"];
    let answer = served.ask(&[&["object", "deploy/web", "-n", "shop"][..], &one].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let read: Value = serde_saphyr::from_str(&answer.stdout).unwrap();
    assert_eq!(read["metadata"]["name"], "web");
    assert_eq!(read["spec"]["replicas"], 2);
    assert!(read["metadata"].get("managedFields").is_none(), "{}", answer.stdout);
    // Who wrote the fields is printed on request alone.
    let all =
        served.ask(&[&["object", "deploy/web", "-n", "shop", "--show-managed-fields"][..], &one].concat());
    assert!(all.stdout.contains("managedFields:"), "{}", all.stdout);

    // The events are those about this object, of any type.
    let told = served.ask(&[&["object", "apps/Deployment/shop/web", "-o", "json"][..], &one].concat());
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let events = told["items"][0]["events"].as_array().unwrap();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["message"], "all is well");
    assert_eq!(events[0]["count"], 3);
    assert_eq!(events[0]["firstSeen"], "2026-01-01T00:00:00Z");
}

#[test]
fn of_a_secret_only_the_metadata_is_read() {
    let served = served();
    for form in [&[][..], &["-o", "json"], &["--show-managed-fields"]] {
        let line = [&["object", "secret/door", "-n", "shop", "--cluster", "one"][..], form].concat();
        let answer = served.ask(&line);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        assert!(answer.stdout.contains("door"), "{}", answer.stdout);
        assert!(!answer.stdout.contains("aHVudGVyMg"), "{}", answer.stdout);
    }
    let yaml = served.ask(&["object", "secret/door", "-n", "shop", "--cluster", "one"]).stdout;
    assert!(
        yaml.starts_with("# cluster one\n# the metadata alone: Taffrail shows no values of a Secret\n"),
        "{yaml}"
    );
}

#[test]
fn of_a_secret_in_a_dump_only_the_metadata_is_printed() {
    let text = serde_json::to_string(&secret()).unwrap();
    for form in [&[][..], &["-o", "json"], &["--show-managed-fields"]] {
        let answer = taffrail(&[&["object", "secret/door", "--from", "-"][..], form].concat(), &text);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        assert!(answer.stdout.contains("meta.helm.sh/release-name"), "{}", answer.stdout);
        assert!(!answer.stdout.contains("aHVudGVyMg"), "{}", answer.stdout);
    }
}

#[test]
fn events_about_an_object_of_the_cluster_are_read_too() {
    let served = Served::start(&["one"], |_, cluster| {
        cluster.apply(namespace("default")).unwrap();
        cluster.apply(namespace("shop")).unwrap();
        let mut event = event("shop", "Warning", "the namespace is stuck");
        event["metadata"]["namespace"] = json!("default");
        event["involvedObject"] = json!({"kind": "Namespace", "name": "shop"});
        cluster.apply(event).unwrap();
    });
    let told = served.ask(&["object", "ns/shop", "-o", "json"]);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(told["items"][0]["events"][0]["message"], "the namespace is stuck", "{told}");
}

#[test]
fn an_object_is_printed_of_each_cluster_that_has_it() {
    let served = served();
    let both = served.ask(&["object", "deploy/web", "-n", "shop"]);
    let documents: Vec<&str> = both.stdout.split("---\n").collect();
    assert_eq!(documents.len(), 2, "{}", both.stdout);
    assert!(documents[0].starts_with("# cluster one\n"), "{}", both.stdout);
    assert!(documents[1].starts_with("# cluster two\n"), "{}", both.stdout);
    let second = served.ask(&["object", "two/apps/Deployment/shop/web", "-o", "json"]);
    let second: Value = serde_json::from_str(&second.stdout).unwrap();
    assert_eq!(second["items"].as_array().unwrap().len(), 1);
    assert_eq!(second["items"][0]["cluster"], "two");
}

#[test]
fn an_object_is_found_in_all_namespaces_on_request() {
    let served = Served::start(&["one"], |_, cluster| {
        for name in ["default", "shop", "zoo"] {
            cluster.apply(namespace(name)).unwrap();
            cluster.apply(objects::deployment(name, "web", 1)).unwrap();
            cluster.apply(objects::deployment(name, "other", 1)).unwrap();
        }
    });
    let namespaces = |answer: Answer| -> Vec<String> {
        let json: Value = serde_json::from_str(&answer.stdout).unwrap();
        let items = json["items"].as_array().unwrap();
        items.iter().map(|item| item["object"]["namespace"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        namespaces(served.ask(&["object", "deploy/web", "-A", "-o", "json"])),
        ["default", "shop", "zoo"]
    );
    assert_eq!(namespaces(served.ask(&["object", "deploy/web", "-o", "json"])), ["default"]);
}

#[test]
fn an_object_that_is_not_there_is_an_error() {
    let served = served();
    for (name, said) in [
        ("deploy/none", "error: there is no deploy 'none'\n"),
        ("gibbet/none", "error: there is no kind called 'gibbet'\n"),
        (
            "web",
            "error: invalid value 'web' for '<OBJECT>': write KIND/NAME or [CLUSTER/]group/Kind/namespace/name\n",
        ),
    ] {
        let answer = served.ask(&["object", name, "-n", "shop", "--cluster", "one"]);
        assert_eq!(answer.code, 2, "{}", answer.stderr);
        assert!(answer.stderr.starts_with(said), "{}", answer.stderr);
        assert_eq!(answer.stdout, "");
    }
}

#[test]
fn an_object_of_a_dump_is_found_in_any_namespace() {
    let served = served();
    let file = served.folder.path().join("one.json").to_str().unwrap().to_owned();
    let dumped = taffrail(&["dump", "-o", &file, "--context", "one", "--kubeconfig", &served.kubeconfig], "");
    assert_eq!(dumped.code, 0, "{}", dumped.stderr);
    let answer = taffrail(&["object", "deploy/web", "--from", &file], "");
    assert!(answer.stdout.starts_with("apiVersion: apps/v1\nkind: Deployment\n"), "{}", answer.stdout);
    let none = command(&["object", "deploy/none", "--from", &file]).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
}
