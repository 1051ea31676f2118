//! `taffrail diff` on clusters whose other writers a test plays.

use std::time::Duration;

use serde_json::json;
use taffrail_cluster::{ApiResource, Cluster, Deadline, Kubeconfig, PatchRequest, PatchType};
use taffrail_sim::{Fault, Trouble};
use taffrail_testkit::objects;

use super::Answer;
use super::served::Served;

const MANIFESTS: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {colour: blue, mood: wild, size: large}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'nginx:1.28'}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coming, namespace: later}
---
apiVersion: v1
kind: Namespace
metadata: {name: later}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: shop, annotations: {argocd.argoproj.io/hook: PreSync}}
";

const IGNORED: &str = "\
ignoreDifferences:
- {group: '', kind: ConfigMap, jsonPointers: [/data/size]}
";

/// A cluster in which others wrote what the manifests declare, and a webhook changes what is written.
fn served() -> Served {
    let served = Served::start_with_managers(&["eu"], |_, cluster| {
        cluster.apply(objects::namespace("shop")).unwrap();
        let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "settings"},
            "data": {"colour": "red", "mood": "calm", "size": "small"}});
        cluster.apply_by(settings, "kustomize-controller", "").unwrap();
        let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "web"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "nginx:1.28"}]}}}});
        cluster.apply_by(web, "helm", "").unwrap();
        let webhook = Trouble::MutatingWebhook(json!({"data": {"mood": "calm"}}));
        cluster.fault(Fault::new(webhook).resource("configmaps"));
    });
    std::fs::write(served.folder.path().join("web.yaml"), MANIFESTS).unwrap();
    std::fs::write(served.folder.path().join("ignore.yaml"), IGNORED).unwrap();
    served.runtime.block_on(scale(&served.kubeconfig, 5));
    served
}

/// Scales the Deployment by its subresource, as `kubectl scale` does.
async fn scale(kubeconfig: &str, replicas: u32) {
    let config = Kubeconfig::load(Some(kubeconfig.as_ref()), None, None).unwrap();
    let cluster =
        Cluster::connect(&config.current().unwrap(), Deadline::after(Duration::from_secs(60))).await.unwrap();
    let resource = ApiResource {
        group: "apps".to_owned(),
        version: "v1".to_owned(),
        kind: "Deployment".to_owned(),
        plural: "deployments".to_owned(),
        namespaced: true,
    };
    let body = json!({"spec": {"replicas": replicas}}).to_string();
    let request = PatchRequest {
        resource: &resource,
        namespace: Some("shop"),
        name: "web",
        subresource: Some("scale"),
        patch_type: PatchType::Merge,
        body: body.as_bytes(),
        dry_run: false,
    };
    // It answers a Scale, which is not the Deployment.
    drop(cluster.patch(&request).await);
}

fn diff(served: &Served, more: &[&str]) -> Answer {
    let path = |name: &str| served.folder.path().join(name).to_str().unwrap().to_owned();
    let (manifests, rules) = (path("web.yaml"), path("ignore.yaml"));
    let asked = ["diff", "-f", &manifests, "--ignore-rules", &rules, "--field-manager", "flux"];
    super::taffrail(&served.all(&[&asked[..], more].concat()), "")
}

/// The answers of `diff` that have all of its fields.
pub(super) fn samples() -> Vec<Answer> {
    let served = served();
    let many = |value: &str| {
        let data: serde_json::Map<_, _> =
            (0..10_001).map(|key| (format!("key-{key}"), json!(value))).collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "many"}, "data": data})
    };
    served.clusters[0].apply(many("old")).unwrap();
    let manifests = format!("{MANIFESTS}---\n{}\n", many("new"));
    let unknown_kind = format!("{MANIFESTS}---\napiVersion: v1\nkind: Sevrice\nmetadata: {{name: web}}\n");
    let refused = MANIFESTS.replace("app: web", "app: other");
    let answer = |text: String| {
        std::fs::write(served.folder.path().join("web.yaml"), text).unwrap();
        diff(&served, &["-o", "json"])
    };
    [manifests, unknown_kind, refused].map(answer).into()
}

#[test]
fn diff_tells_fields_owners_and_what_is_not_compared() {
    let served = served();
    let answer = diff(&served, &[]);
    let shown = answer.stdout.replace(served.folder.path().to_str().unwrap(), "deploy");
    // The age of the write differs from run to run.
    let without_age = |line: &str| match line.split_once("(conflict: kustomize-controller, ") {
        Some((start, _)) => format!("{start}(conflict: kustomize-controller, AGE)\n"),
        None => format!("{line}\n"),
    };
    let shown: String = shown.lines().map(without_age).collect();
    let expected = "\
~ ConfigMap shop/settings changes (deploy/web.yaml:1)
  ~ data.colour: \"red\" -> \"blue\"  (conflict: kustomize-controller, AGE)
    ignored by ignoreDifferences[0]: data.size
    the server stores another value than the manifest has: data.mood
~ Deployment shop/web changes (deploy/web.yaml:6)
  ~ spec.replicas: 5 -> 3  (conflict: taffrail by scale)
+ ConfigMap later/coming is created (deploy/web.yaml:16)
    Namespace later comes first
+ Namespace later is created (deploy/web.yaml:20)
";
    assert_eq!(shown, expected, "{}", answer.stderr);
    assert_eq!(
        answer.stderr,
        "2 to create, 2 to change, 2 fields in conflict\n\
         warning: 1 hook or object that is never applied is not compared\n"
    );
    assert_eq!(answer.code, 1);
}

#[test]
fn diff_masks_the_annotations_that_it_is_told_to() {
    let served = served();
    let annotated = MANIFESTS.replace(
        "{name: settings, namespace: shop}",
        "{name: settings, namespace: shop, annotations: {example.com/token: hunter2, note: plain}}",
    );
    std::fs::write(served.folder.path().join("web.yaml"), annotated).unwrap();
    assert!(diff(&served, &[]).stdout.contains("hunter2"));
    for output in ["text", "json"] {
        let answer = diff(&served, &["--mask-annotation", "example.com/token", "-o", output]);
        assert!(
            answer.stdout.contains("plain") && answer.stdout.contains("example.com/token"),
            "{}",
            answer.stdout
        );
        assert!(!format!("{}{}", answer.stdout, answer.stderr).contains("hunter2"), "{}", answer.stdout);
    }
}

#[test]
fn diff_merges_where_a_webhook_takes_no_part_in_dry_runs() {
    let served = served();
    served.clusters[0].fault(Fault::new(Trouble::WebhookWithoutDryRun).resource("deployments.apps"));
    let answer = diff(&served, &[]);
    let merged =
        "    merged without the server: a webhook takes no part in dry runs\n  ~ spec.replicas: 5 -> 3";
    assert!(answer.stdout.contains(merged), "{}", answer.stdout);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
}

#[test]
fn diff_names_the_line_of_each_wrong_manifest_and_asks_for_none() {
    let served = served();
    let wrong = MANIFESTS.replace("kind: Deployment", "kind: Deplyoment").replace("PreSync", "PreSnyc");
    std::fs::write(served.folder.path().join("web.yaml"), wrong).unwrap();
    let answer = diff(&served, &[]);
    let told = answer.stderr.replace(served.folder.path().to_str().unwrap(), "deploy");
    assert!(told.contains("error: deploy/web.yaml:6: ") && told.contains("Deployment of apps/v1"), "{told}");
    assert!(told.contains("error: deploy/web.yaml:26: ") && told.contains("PreSync"), "{told}");
    assert_eq!((answer.code, &*answer.stdout), (3, ""), "{told}");
}

#[test]
fn diff_tells_of_an_unchanged_object_that_no_server_was_asked_for_it() {
    let served = served();
    served.clusters[0].fault(Fault::new(Trouble::WebhookWithoutDryRun).resource("configmaps"));
    let same =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {colour: red}\n";
    std::fs::write(served.folder.path().join("web.yaml"), same).unwrap();
    let answer = diff(&served, &[]);
    let shown = answer.stdout.replace(served.folder.path().to_str().unwrap(), "deploy");
    let expected = "\
= ConfigMap shop/settings is unchanged (deploy/web.yaml:1)
    merged without the server: a webhook takes no part in dry runs
";
    assert_eq!((answer.code, &*shown), (0, expected), "{}", answer.stderr);
}

#[test]
fn diff_of_no_manifests_is_no_success() {
    let served = served();
    std::fs::write(served.folder.path().join("web.yaml"), "# nothing\n").unwrap();
    let answer = diff(&served, &[]);
    assert!(answer.stderr.contains("there are no objects in the manifests"), "{}", answer.stderr);
    assert_eq!((answer.code, &*answer.stdout), (3, ""));
}

#[test]
fn a_dump_is_compared_without_asking_anybody() {
    let served = served();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": "key"},
        "data": {"key": "Y2FuYXJ5"}});
    served.clusters[0].apply(secret).unwrap();
    let dump = super::taffrail(&served.all(&["dump"]), "");
    assert_eq!(dump.code, 0, "{}", dump.stderr);
    let place = |name: &str| served.folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(place("eu.jsonl"), &dump.stdout).unwrap();
    // Nothing is asked: the cluster is gone.
    served.runtime.block_on(async { served.clusters[0].trouble(Trouble::Unreachable) });
    let compare = |manifests: &str, dump: &str| {
        let (manifests, dump) = (place(manifests), place(dump));
        super::taffrail(&["diff", "-f", &manifests, "--field-manager", "flux", "--from", &dump], "")
    };
    let answer = compare("web.yaml", "eu.jsonl");
    let shown = answer.stdout.replace(served.folder.path().to_str().unwrap(), "deploy");
    let ages = regex::Regex::new("(conflict: kustomize-controller), [^)]*").unwrap();
    let expected = "\
~ ConfigMap shop/settings changes (deploy/web.yaml:1)
  ~ data.colour: \"red\" -> \"blue\"  (conflict: kustomize-controller)
  ~ data.mood: \"calm\" -> \"wild\"  (conflict: kustomize-controller)
  ~ data.size: \"small\" -> \"large\"  (conflict: kustomize-controller)
~ Deployment shop/web changes (deploy/web.yaml:6)
  ~ spec.replicas: 5 -> 3  (conflict: taffrail by scale)
+ ConfigMap later/coming is created (deploy/web.yaml:16)
+ Namespace later is created (deploy/web.yaml:20)
";
    assert_eq!(ages.replace_all(&shown, "$1"), expected, "{}", answer.stderr);
    assert_eq!(answer.code, 1);
    // The dump has no values of Secrets, so nothing is said of them.
    let manifest =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: shop}\nstringData: {key: other}\n";
    std::fs::write(place("secret.yaml"), manifest).unwrap();
    let answer = compare("secret.yaml", "eu.jsonl");
    assert_eq!((answer.code, answer.stdout.as_str()), (3, ""));
    assert!(
        answer.stderr.contains("Secret shop/key: the dump does not hold the values of this object"),
        "{}",
        answer.stderr
    );
    let both = super::taffrail(&["diff", "-f", &place("web.yaml"), "--from", "x", "--context", "eu"], "");
    assert_eq!(both.code, 2, "{}", both.stderr);
}

#[test]
fn jq_expressions_of_rules_run_in_a_process_that_a_bound_ends() {
    let served = served();
    let place = |name: &str| served.folder.path().join(name).to_str().unwrap().to_owned();
    let rules = |expressions: &[&str]| {
        let rules = json!({"ignoreDifferences": [
            {"group": "*", "kind": "ConfigMap", "jqPathExpressions": expressions}]});
        std::fs::write(place("ignore.yaml"), rules.to_string()).unwrap();
        diff(&served, &["-o", "json"])
    };
    let row = |answer: &Answer, name: &str| {
        let list: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
        let items = list["items"].as_array().unwrap();
        items.iter().find(|row| row["object"]["name"] == name).cloned().unwrap()
    };
    let ignoring = rules(&[".data | to_entries", ".data.colour", ".data[\"size\"], .spec.missing[].a"]);
    let settings = row(&ignoring, "settings");
    // An expression that fails on an object ignores nothing there.
    assert_eq!(
        settings["ignored"],
        json!([{"path": "data.colour", "rule": "ignoreDifferences[0]"}]),
        "{settings:#}"
    );
    assert_eq!(settings["fields"][0]["path"], "data.size", "{settings:#}");
    assert_eq!(row(&ignoring, "web")["result"], "change");
    for (expression, told) in [
        (".data | until(false; .)", "the expression took too long"),
        (".data | select([limit(100000000; repeat(1))] | length > 0)", "the expression "),
        (".data | nothing", "the expression cannot be compiled: jq has no nothing"),
    ] {
        let answer = rules(&[expression]);
        let settings = row(&answer, "settings");
        assert_eq!((answer.code, &settings["result"]), (3, &json!("unknown")), "{settings:#}");
        let note = settings["notes"][0].as_str().unwrap();
        assert!(note.contains(told), "{note}");
        // Other objects are compared all the same.
        assert_eq!(row(&answer, "web")["result"], "change");
    }
}
