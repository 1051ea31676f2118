//! `taffrail history --set`: the record of a set, written by `taffrail sync` and by hostile hands.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use snapbox::str;
use taffrail_testkit::objects::namespace;

use super::served::Served;
use super::{Answer, assert_shown};

const FLAGS: &[&str] = &["--timeout", "60s", "--request-timeout", "0"];

fn config_map(name: &str, colour: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: shop}}\ndata: {{colour: {colour}}}\n"
    )
}

/// A cluster of which `sync` wrote the set `web` twice, the second time with a failure.
struct Sets {
    served: Served,
}

impl Sets {
    fn start(names: &[&str]) -> Sets {
        let served = Served::start(names, |_, cluster| cluster.apply(namespace("shop")).unwrap());
        let sets = Sets { served: served.asked_with(FLAGS) };
        let first = sets.sync(&[config_map("a", "red"), config_map("b", "red")], &["--revision", "v1"]);
        assert_eq!(first.code, 0, "{}{}", first.stdout, first.stderr);
        sets
    }

    fn sync(&self, manifests: &[String], more: &[&str]) -> Answer {
        let path = self.served.folder.path().join("all.yaml");
        std::fs::write(&path, manifests.join("---\n")).unwrap();
        let asked = ["sync", "--set", "web", "-n", "shop", "-f", path.to_str().unwrap(), "--yes"];
        super::taffrail(&self.served.all(&[&asked[..], more].concat()), "")
    }

    fn history(&self, more: &[&str]) -> Answer {
        self.served.ask(&[&["history", "--set", "web", "-n", "shop"], more].concat())
    }

    /// Changes the ConfigMap of the record by hand.
    fn edit(&self, change: impl FnOnce(&mut Value)) {
        let cluster = &self.served.clusters[0];
        let mut record = cluster.get("v1", "ConfigMap", "shop", "taffrail-set-web").unwrap();
        change(&mut record);
        record["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        cluster.apply(record).unwrap();
    }

    fn edit_summary(&self, change: impl FnOnce(&mut Value)) {
        self.edit(|record| {
            let mut summary = serde_json::from_str(record["data"]["set"].as_str().unwrap()).unwrap();
            change(&mut summary);
            record["data"]["set"] = json!(summary.to_string());
        });
    }

    fn edit_results(&self, results: &Value) {
        self.edit(|record| {
            let packed = taffrail_apps::sets::pack(results);
            record["binaryData"]["results"] = json!(STANDARD.encode(packed));
        });
    }
}

/// The answers that have all fields of a set's history.
pub(super) fn samples() -> Vec<Answer> {
    let sets = Sets::start(&["eu"]);
    sets.edit_summary(|summary| {
        summary["holder"] = json!({"process": "1", "actor": "bob@ci", "beat": 7});
    });
    vec![sets.history(&["-o", "json"]), sets.history(&["--run", "1", "-o", "json"])]
}

#[test]
fn runs_of_a_set_are_listed_and_one_with_its_objects() {
    let sets = Sets::start(&["eu"]);
    let second =
        sets.sync(&[config_map("a", "blue"), config_map("c", "red")], &["--revision", "v2", "--prune"]);
    assert_eq!(second.code, 0, "{}{}", second.stdout, second.stderr);
    // Who runs the test, and when.
    sets.edit_summary(|summary| {
        for run in summary["runs"].as_array_mut().unwrap() {
            run["actor"] = json!("ann@laptop");
            run["started"] = json!("2001-01-01T00:00:00Z");
        }
    });
    let answer = sets.history(&[]);
    assert_eq!((answer.code, &*answer.stderr), (0, ""));
    let header = answer.stdout.lines().next().unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(header, ["RUN", "WHEN", "VERB", "RESULT", "REVISION", "BY", "OBJECTS", "MESSAGE"]);
    let tail =
        |line: &str| line.split_once(" ago ").unwrap().1.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = answer.stdout.lines().skip(1).map(tail).collect();
    assert_eq!(
        lines,
        [
            "sync Succeeded v2 ann@laptop 1 changed, 1 created, 1 pruned -",
            "sync Succeeded v1 ann@laptop 2 created -",
        ]
        .map(|line| line.to_owned())
    );

    let answer = sets.history(&["--run", "2"]);
    assert_eq!((answer.code, &*answer.stderr), (0, ""));
    assert_shown(
        &answer.stdout,
        str![[r#"
run 2 of the set shop/web: sync of v2 by ann@laptop, Succeeded
RESULT    KIND        NAMESPACE   NAME   MESSAGE
Created   ConfigMap   shop        c      -
Changed   ConfigMap   shop        a      -
Pruned    ConfigMap   shop        b      -

"#]],
    );

    assert_eq!(sets.history(&["--limit", "1", "--no-headers"]).stdout.lines().count(), 1);
    let json = sets.history(&["-o", "json", "--limit", "1"]).json();
    assert_eq!(json["items"][0]["runs"].as_array().unwrap().len(), 1);
    let json = sets.history(&["-o", "json"]).json();
    let set = &json["items"][0];
    assert_eq!((&json["kind"], &set["objects"]), (&json!("SetHistoryList"), &json!(2)));
    assert_eq!((&set["applied"], &set["runs"][0]["number"]), (&json!("v2"), &json!(2)));
    assert_eq!(set["runs"][1]["counts"], json!([{"result": "Created", "objects": 2}]));
    assert_eq!(set["runs"][0]["isKept"], json!(true));
    let yaml = sets.history(&["-o", "yaml"]);
    assert!(yaml.stdout.contains("kind: SetHistoryList"), "{}", yaml.stdout);
}

#[test]
fn several_clusters_are_told_apart_and_one_without_the_set_is_no_error() {
    let sets = Sets::start(&["eu", "us"]);
    sets.served.clusters[1].delete("v1", "ConfigMap", "shop", "taffrail-set-web");
    let answer = sets.history(&[]);
    assert_eq!((answer.code, &*answer.stderr), (0, ""));
    assert!(answer.stdout.starts_with("CLUSTER"), "{}", answer.stdout);
    assert_eq!(answer.stdout.lines().count(), 2, "{}", answer.stdout);

    sets.served.clusters[0].delete("v1", "ConfigMap", "shop", "taffrail-set-web");
    let answer = sets.history(&[]);
    assert_eq!((answer.code, &*answer.stdout), (2, ""));
    assert_shown(
        &answer.stderr,
        str![[r#"
error: there is no set web in namespace shop of eu, namespace shop of us
 hint: `taffrail get apps --delivery taffrail` lists the sets; -n names the namespace of one

"#]],
    );
}

#[test]
fn wrong_questions_are_told() {
    let sets = Sets::start(&["eu"]);
    let answer = sets.history(&["--run", "9"]);
    assert_eq!((answer.code, &*answer.stdout), (2, ""));
    assert_shown(
        &answer.stderr,
        str![[r#"
error: the set web has no run 9 in its record
 hint: the record has the last ten runs; leave --run out to list them

"#]],
    );
    let answer = sets.served.ask(&["history", "--set", "We_b"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("'We_b' is not a valid name of a set"), "{}", answer.stderr);
    for wrong in [&["history"][..], &["history", "web", "--set", "web"], &["history", "web", "--run", "1"]] {
        let answer = super::taffrail(wrong, "");
        assert_eq!((answer.code, &*answer.stdout), (2, ""), "{wrong:?}");
    }
}

#[test]
fn record_that_cannot_be_used_is_an_error_with_a_way_on() {
    type Change = fn(&mut Value);
    let changes: [(Change, &str, &str); 3] = [
        (
            |it| it["data"]["set"] = json!("{\"version\":9}"),
            "a newer Taffrail wrote the record",
            "update Taffrail",
        ),
        (|it| it["data"]["set"] = json!("{}"), "is not as Taffrail wrote it", "restore the ConfigMap"),
        (|it| it["metadata"]["labels"] = json!({}), "is not the record of a set", "choose another name"),
    ];
    for (change, message, hint) in changes {
        let sets = Sets::start(&["eu"]);
        sets.edit(change);
        for form in ["table", "json"] {
            let answer = sets.history(&["-o", form]);
            assert_eq!(answer.code, 3, "{}", answer.stderr);
            assert!(answer.stderr.contains(message) && answer.stderr.contains(hint), "{}", answer.stderr);
        }
        let json = sets.history(&["-o", "json"]).json();
        assert_eq!(json["errors"][0]["reason"], "Malformed");
        assert_eq!(json["items"], json!([]));
    }
}

#[test]
fn sync_without_a_right_on_secrets_goes_on_and_says_that_no_rollback_can_return_to_it() {
    let served = Served::start(&["eu"], |_, cluster| cluster.apply(namespace("shop")).unwrap());
    let cluster = &served.clusters[0];
    let user = cluster.add_user("ann", &[]);
    const RBAC: &str = "rbac.authorization.k8s.io";
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"],
        "verbs": ["get", "list", "watch", "create", "patch", "delete"]}]);
    let metadata = json!({"name": "ann", "namespace": "shop"});
    cluster
        .apply(
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": metadata, "rules": rules}),
        )
        .unwrap();
    cluster
        .apply(json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "ann"},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "ann"}]}))
        .unwrap();
    std::fs::write(&served.kubeconfig, cluster.kubeconfig_for(&user)).unwrap();
    let sets = Sets { served: served.asked_with(FLAGS) };
    let answer = sets.sync(&[config_map("a", "red")], &[]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    for text in
        ["warning: the manifests cannot be kept for a rollback", "syncs work without it", "on Secrets"]
    {
        assert!(answer.stderr.contains(text), "{}", answer.stderr);
    }
    let run = &sets.history(&["-o", "json"]).json()["items"][0]["runs"][0];
    assert_eq!((&run["result"], &run["isKept"]), (&json!("Succeeded"), &json!(false)));
}

#[test]
fn sync_into_a_namespace_that_does_not_exist_is_told_or_creates_it() {
    let served = Served::start(&["eu"], |_, _| {});
    let sets = Sets { served: served.asked_with(FLAGS) };
    let answer = sets.sync(&[config_map("a", "red")], &[]);
    assert_eq!(answer.code, 3, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stderr.contains("the namespace shop of the set does not exist"), "{}", answer.stderr);
    assert!(answer.stderr.contains("kubectl create namespace"), "{}", answer.stderr);
    let answer = sets.sync(&[config_map("a", "red")], &["--create-namespace"]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    // A dry run of a new set leaves nothing behind.
    let cluster = &sets.served.clusters[0];
    let path = sets.served.folder.path().join("all.yaml");
    let asked = ["sync", "--set", "new", "-n", "shop", "-f", path.to_str().unwrap(), "--dry-run"];
    let answer = super::taffrail(&sets.served.all(&asked), "");
    assert!(answer.code < 2, "{}{}", answer.stdout, answer.stderr);
    assert_eq!(cluster.get("v1", "ConfigMap", "shop", "taffrail-set-new"), None);
}

#[test]
fn hostile_texts_of_a_record_do_not_reach_the_terminal() {
    let sets = Sets::start(&["eu"]);
    let hostile = "\u{1b}]0;pwned\u{7}\u{1b}[31m\r\nnext\u{202e}\u{9b}1m";
    sets.edit_summary(|summary| {
        summary["holder"] = json!({"process": hostile, "actor": hostile, "beat": 7});
        summary["applied"] = json!(hostile);
        let run = &mut summary["runs"][0];
        for field in ["revision", "actor", "message", "digest"] {
            run[field] = json!(hostile);
        }
        run["counts"] = json!({ hostile: 3 });
    });
    let object = json!({"group": "", "kind": hostile, "namespace": hostile, "name": hostile});
    sets.edit_results(
        &json!([{"number": 1, "objects": [{"object": object, "result": "Failed", "message": hostile}]}]),
    );
    for more in [&[][..], &["--run", "1"], &["--run", "1", "--no-headers"]] {
        let answer = sets.history(more);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        for text in [&answer.stdout, &answer.stderr] {
            let is_hostile =
                |char: char| (char.is_control() && char != '\n') || ('\u{202a}'..='\u{202e}').contains(&char);
            assert!(!text.contains(is_hostile), "{text:?}");
        }
        assert!(answer.stdout.contains("pwned"), "{}", answer.stdout);
        // No text makes a line of its own.
        let first = |line: &str| line.starts_with("next");
        assert!(!answer.stdout.lines().any(first), "{}", answer.stdout);
    }
    for form in ["json", "yaml"] {
        let answer = sets.history(&["--run", "1", "-o", form]);
        assert!(!answer.stdout.contains(['\u{1b}', '\u{7}']), "{:?}", answer.stdout);
    }
}
