//! Values of Secrets, which no output of `diff` and `impact` may hold: each form of output is searched for them.

use std::fs;

use serde_json::{Value, json};
use taffrail_sim::{Fault, Trouble};
use taffrail_testkit::objects::{self, kustomizations};
use taffrail_testkit::server::{Reply, Server, core_discovery};

use super::bad_clusters::kubeconfig;
use super::impact::{self, Repository};
use super::served::Served;
use super::{Answer, taffrail};

/// The values of the live Secret and of the manifest, and their forms in `data`.
const CANARIES: [&str; 4] =
    ["canary-live-51c7", "Y2FuYXJ5LWxpdmUtNTFjNw==", "canary-wanted-9be2", "Y2FuYXJ5LXdhbnRlZC05YmUy"];

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn secret(rest: &Value) -> Value {
    let mut object =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": "key"}});
    object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    object
}

/// The live Secret, with its value wherever tools leave it.
fn live() -> Value {
    let mut live = secret(&json!({"type": "Opaque", "data": {"pw": CANARIES[1], "old": CANARIES[1]}}));
    let copy = live.to_string();
    live["metadata"]["annotations"] =
        json!({LAST_APPLIED: copy, "kapp.k14s.io/original": copy, "note": CANARIES[0]});
    live
}

/// Manifests of the Secret: right ones, and wrong ones that other programs quote.
fn manifests() -> Vec<String> {
    let [_, _, wanted, data] = CANARIES;
    let right = secret(&json!({"type": "Opaque", "stringData": {"pw": wanted}, "data": {"new": data}}));
    let mut annotated = secret(&json!({"data": {"pw": data}}));
    annotated["metadata"]["annotations"] = json!({"note": wanted, LAST_APPLIED: "{"});
    let other = |rest: Value| secret(&rest).to_string();
    vec![
        right.to_string(),
        annotated.to_string(),
        other(json!({"data": {"pw": wanted}})),
        other(json!({"data": wanted})),
        other(json!({"stringData": {"pw": {"a": wanted}}})),
        other(json!({"dta": {"pw": wanted}})),
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: key, namespace: shop}}\nstringData: {{pw: *{wanted}}}\n"
        ),
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: key, namespace: shop}}\nstringData:\n\tpw: {wanted}\n"
        ),
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{namespace: shop}}\nstringData: {{pw: {wanted}}}\n"
        ),
        format!(
            "apiVersion: v1\nkind: Sceret\nmetadata: {{name: key, namespace: shop}}\nstringData: {{pw: {wanted}}}\n"
        ),
    ]
}

/// Asserts that an answer holds no value of the Secret, and that it tells something.
#[track_caller]
fn assert_hidden(answer: &Answer) {
    let all = format!("{}{}", answer.stdout, answer.stderr);
    assert!(!all.is_empty());
    assert_eq!(CANARIES.iter().find(|canary| all.contains(*canary)), None, "{all}");
}

const RULES: &str = "\
ignoreDifferences:
- {group: '*', kind: '*', jqPathExpressions: ['.data | error', '.data.pw | tonumber', '.data.pw | error(.)']}
- {group: '', kind: Secret, jsonPointers: [/data/old]}
";

/// Runs `diff` in each form of its output.
fn diff_each(arguments: &[&str], manifests: &str, rules: &str) {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, ignoring) = (place("secret.yaml"), place("rules.yaml"));
    fs::write(&file, manifests).unwrap();
    fs::write(&ignoring, rules).unwrap();
    for form in
        [&["-o", "text"][..], &["-o", "json"], &["--all-fields"], &["--ignore-rules", &ignoring], &["-vv"]]
    {
        assert_hidden(&taffrail(&[&["diff", "-f", &file], form, arguments].concat(), ""));
    }
}

#[test]
fn diff_shows_no_value_of_a_secret() {
    let served = Served::start_with_managers(&["eu"], |_, cluster| {
        cluster.apply(objects::namespace("shop")).unwrap();
        cluster.apply_by(live(), "kubectl-client-side-apply", "").unwrap();
    });
    let cluster = served.all(&[]);
    for manifests in manifests() {
        diff_each(&cluster, &manifests, RULES);
    }
    // A merge without the server, and dumps: one that leaves the values out, and one of kubectl's that has them.
    let webhook = served.clusters[0].fault(Fault::new(Trouble::WebhookWithoutDryRun));
    diff_each(&cluster, &manifests()[0], RULES);
    served.clusters[0].heal(webhook);
    let dump = taffrail(&served.all(&["dump"]), "");
    assert_hidden(&dump);
    let place = |name: &str| served.folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(place("dump.jsonl"), &dump.stdout).unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [live()]});
    fs::write(place("kubectl.yaml"), list.to_string()).unwrap();
    for from in ["dump.jsonl", "kubectl.yaml"] {
        for manifests in manifests() {
            diff_each(&["--from", &place(from)], &manifests, RULES);
        }
    }
}

#[test]
fn errors_of_servers_that_quote_a_secret_are_not_shown() {
    let [old, old_data, new, new_data] = CANARIES;
    let quotes = format!("{new} {new_data} {old} {old_data}");
    let invalid = format!(
        "Secret \"key\" is invalid: data[pw]: Invalid value: \"{new}\": {new_data} and {old} ({old_data})"
    );
    let typed = format!(
        "failed to create typed patch object (shop/key; /v1, Kind=Secret): .data.pw: expected string, got {{\"a\":\"{new}\"}}"
    );
    for (code, reason, message) in [
        (422, "Invalid", invalid.clone()),
        (400, "BadRequest", format!("admission webhook \"w\" denied the request: {quotes}")),
        (403, "Forbidden", format!("secrets \"key\" is forbidden: policy 'p' denied request: {quotes}")),
        (
            403,
            "Forbidden",
            format!("secrets \"key\" is forbidden: User \"{new}\" cannot patch resource \"secrets\""),
        ),
        (404, "NotFound", quotes.clone()),
        (409, "Conflict", quotes.clone()),
        (500, "", typed),
        (500, "InternalError", format!("failed calling webhook \"w\": {quotes}")),
        (503, "ServiceUnavailable", quotes.clone()),
        (200, "", quotes.clone()),
    ] {
        let server = Server::start(move |request| {
            let found = core_discovery(request, &[("secrets", "Secret")]);
            found.unwrap_or_else(|| match (request.method.as_str(), request.path.as_str()) {
                ("PATCH", _) => Reply::status(code, reason, &message),
                ("GET", "/api/v1/namespaces/shop/secrets/key") => Reply::json(200, live().to_string()),
                _ => Reply::status(404, "NotFound", "not found"),
            })
        });
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        fs::write(&config, kubeconfig(&[("eu", &server.url())])).unwrap();
        diff_each(&["--kubeconfig", config.to_str().unwrap(), "--timeout", "20s"], &manifests()[0], RULES);
    }
}

#[test]
fn impact_shows_no_value_of_a_secret() {
    let served = Served::start_with_managers(&["eu"], |_, cluster| {
        for object in [kustomizations(), objects::namespace("shop"), objects::namespace("flux-system")] {
            cluster.apply(object).unwrap();
        }
        cluster.apply_by(live(), "kustomize-controller", "").unwrap();
    });
    for manifests in manifests() {
        let repository = Repository::new();
        let before = secret(&json!({"data": {"pw": CANARIES[1]}})).to_string();
        repository.commit(&[
            ("key.yaml", Some(&*before)),
            ("more.yaml", Some(&before.replace("\"key\"", "\"more\""))),
        ]);
        repository.git(&["checkout", "--quiet", "-b", "change"]);
        repository.commit(&[("key.yaml", Some(&*manifests)), ("more.yaml", None)]);
        fs::write(repository.path().join("rules.yaml"), RULES).unwrap();
        let ask = |more: &[&str]| {
            for form in ["text", "json", "markdown"] {
                let range = [&["main..change", "-o", form], more].concat();
                assert_hidden(&impact::impact(&served, &repository, &range));
            }
        };
        ask(&[]);
        ask(&["--ignore-rules", "rules.yaml"]);
        let quoting = Trouble::ServerError(format!("failed calling webhook: {}", CANARIES.join(" ")));
        let fault = served.clusters[0].fault(Fault::new(quoting).verb("patch"));
        ask(&[]);
        served.clusters[0].heal(fault);
    }
}
