//! `taffrail rules`, and `--rules` with rules of one's own.

use std::fs;

use serde_json::{Value, json};

use super::{command, run, taffrail};

/// Rules and cases that hold.
const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../rules/tests/library");

pub(super) const LOCK: &str = "
apiVersion: doors.example.com/v1
kind: Lock
metadata: {name: front, namespace: house}
spec: {off: true}
status: {a: 1}
";

const DOOR: &str = "
apiVersion: doors.example.com/v1
kind: Door
metadata: {name: front, namespace: house}
status: {conditions: [{type: Shut, status: 'False', reason: Moving, message: half}]}
";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    folder
}

/// Rules of which a case fails, one cannot be read, and a branch has none.
pub(super) fn broken() -> tempfile::TempDir {
    folder(&[
        (
            "example.com/rules.yaml",
            "group: example.com\nsource: x\nkinds:\n  A: {rules: [{status: Failed, field: spec.a, is: 1}, {status: Current}]}\n",
        ),
        (
            "example.com/cases.yaml",
            "- {kind: A, name: one, object: {apiVersion: example.com/v1, kind: A, spec: {a: 1}, status: {b: 1}}, status: Current}\n\
             - {kind: A, name: two, object: {apiVersion: example.com/v1, kind: A}, status: InProgress, age: 1m}\n\
             - {kind: A, name: three, objekt: {}}\n",
        ),
    ])
}

fn path(folder: &tempfile::TempDir) -> &str {
    folder.path().to_str().unwrap()
}

#[test]
fn user_rules_decide_and_are_named() {
    let status = |rules: &str| {
        let answer = taffrail(&["status", "-f", "-", "--rules", rules, "-o", "json"], LOCK).json();
        let item = &answer["items"][0];
        json!([item["status"], item["rule"], item["suspended"]])
    };
    assert_eq!(status(LIBRARY), json!(["Current", "user/doors.example.com/Lock#1", true]));
    assert_eq!(status("taffrail"), json!(["Current", "fallback", null]));
    assert_eq!(status("kstatus"), json!(["Current", "fallback", null]));
    let wide = taffrail(&["status", "-f", "-", "--rules", LIBRARY, "-o", "wide"], LOCK).stdout;
    assert!(wide.contains("Ready (suspended)") && wide.contains("user/doors.example.com/Lock#1"), "{wide}");
    // What people set once counts for every command.
    let mut command = super::command(&["status", "-f", "-", "-o", "wide"]);
    command.env("TAFFRAIL_RULES", LIBRARY);
    assert!(super::run(command, LOCK.as_bytes()).stdout.contains("user/doors.example.com/Lock#1"));
}

#[test]
fn views_use_user_rules() {
    let labelled =
        DOOR.replace("namespace: house", "namespace: house, labels: {app.kubernetes.io/instance: house}");
    let row = |rules: &str| {
        let answer =
            taffrail(&["get", "resources", "--from", "-", "-o", "json", "--rules", rules], &labelled).json();
        json!([answer["items"][0]["status"], answer["items"][0]["rule"]])
    };
    assert_eq!(row(LIBRARY), json!(["InProgress", "user/doors.example.com/Door#3"]));
    assert_eq!(row("taffrail"), json!(["Current", "fallback"]));
    let explained = taffrail(&["explain", "--from", "-", "-o", "json", "--rules", LIBRARY], &labelled).json();
    let link = &explained["items"][0]["chain"][0];
    assert_eq!((&link["rule"], &link["message"]), (&json!("user/doors.example.com/Door#3"), &json!("half")));
}

#[test]
fn invalid_rule_folders_are_refused() {
    let refused = |rules: &str| {
        let answer = taffrail(&["status", "-f", "-", "--rules", rules], LOCK);
        assert_eq!(answer.code, 2, "{}", answer.stderr);
        answer.stderr
    };
    assert!(refused("kstatsu").contains("the rules must be taffrail, kstatus or a folder with rules"));
    assert!(refused("./nowhere").contains("cannot read ./nowhere"));
    let empty = folder(&[]);
    assert!(refused(path(&empty)).contains("there are no rules in"));
    let wrong = folder(&[(
        "rules.yaml",
        "group: a.b\nsource: x\nkinds: {C: {rules: [{status: Failed, conditon: Ready}]}}",
    )]);
    let said = refused(path(&wrong));
    assert!(said.contains("C#1: the rules or cases file has the key 'conditon' where it is not allowed (did you mean 'condition'?)"), "{said}");
}

#[test]
fn rules_are_listed_and_shown_as_they_are_written() {
    let list = |arguments: &[&str]| taffrail(&[&["rules", "list"], arguments].concat(), "");
    let names = list(&["--rules", LIBRARY, "doors.example", "-o", "name"]).stdout;
    assert_eq!(
        names,
        "Door.doors.example.com\nHinge.doors.example.com\nKey.doors.example.com\nLock.doors.example.com\n"
    );
    let items = list(&["--rules", LIBRARY, "hinge", "-o", "json"]).json();
    assert_eq!(
        items["items"],
        json!([{"group": "doors.example.com", "kind": "Hinge", "origin": "user", "branches": 3,
            "source": "https://example.com/doors#small"}])
    );
    let built_in = list(&["poddisruptionbudget", "-o", "json"]).json();
    assert_eq!(built_in["items"][0]["origin"], "builtin");
    let table = list(&["--rules", LIBRARY, "lamp"]).stdout;
    assert!(table.starts_with("GROUP") && table.contains("lamps.example.com"), "{table}");
    assert!(list(&["nothing-of-that-name"]).stderr.contains("No rules match these names."));

    let show = |kind: &str| taffrail(&["rules", "show", kind, "--rules", LIBRARY], "");
    let lock = show("locks.doors.example.com").stdout;
    assert!(
        lock.starts_with("# user/doors.example.com/Lock, after https://example.com/doors\n  Lock:\n"),
        "{lock}"
    );
    assert!(lock.contains("suspended: true, field: spec.off"), "{lock}");
    // Another kind of that name is shown as well.
    assert!(show("lock").stdout.starts_with(&lock), "{lock}");
    assert!(show("Bolt.large.parts.example.com").stdout.contains("*.parts.example.com/*"));
    for word in ["deployments", "deploy", "Deployment.apps", "deployments.v1.apps"] {
        assert!(show(word).stdout.contains("builtin/apps/Deployment"), "{word}");
    }
    let unknown = show("lokc");
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("did you mean Lock?"), "{}", unknown.stderr);
}

#[test]
fn rules_why_shows_the_deciding_rule() {
    let why = |input: &str, arguments: &[&str]| {
        taffrail(&[&["rules", "why", "-f", "-", "--rules", LIBRARY], arguments].concat(), input)
    };
    let told = why(DOOR, &[]).stdout;
    assert_eq!(
        told,
        "Door house/front is InProgress, by user/doors.example.com/Door#3\n  half\n\n\
         \x20 user/doors.example.com/Door, after https://example.com/doors\n\
         \x20   #1  Failed                does not hold\n\
         \x20   #2  Ready                 does not hold\n\
         \x20   #3  InProgress            holds and decides\n\
         \x20   #4  InProgress            holds, but comes later\n\n"
    );
    let item = why(LOCK, &["-o", "json"]).json()["items"][0].clone();
    assert_eq!(item["rule"], "user/doors.example.com/Lock#1");
    let decides: Vec<&Value> =
        item["asked"][0]["branches"].as_array().unwrap().iter().map(|branch| &branch["decides"]).collect();
    assert_eq!(decides, [&json!(true), &json!(false)]);
    let secret = why("kind: Secret\napiVersion: v1\nmetadata: {name: a}\n", &[]).stdout;
    assert!(
        secret.contains("Only the built-in rules apply to this kind.")
            && secret.contains("the built-in rule"),
        "{secret}"
    );
    let dump = DOOR.replace("half", "nearly");
    let of_dump =
        taffrail(&["rules", "why", "door/front", "-n", "house", "--from", "-", "--rules", LIBRARY], &dump);
    assert!(of_dump.stdout.contains("nearly"), "{}{}", of_dump.stdout, of_dump.stderr);
}

#[test]
fn rules_why_shows_the_verdict_of_views() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example/eu-1.yaml");
    let ask = |arguments: &[&str]| {
        taffrail(&[arguments, &["deploy/web", "-n", "shop", "--from", example]].concat(), "").stdout
    };
    let shown = ask(&["status", "-o", "jsonl"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let told = ask(&["rules", "why"]);
    assert_eq!(shown["status"], "Failed", "{shown}");
    assert!(told.starts_with("Deployment shop/web is InProgress, by builtin/apps/Deployment\n"), "{told}");
    let line = format!("  Views show Failed: {}\n", shown["message"].as_str().unwrap());
    assert!(told.contains(&line), "{told}");
    let as_kstatus = ask(&["rules", "why", "--rules", "kstatus"]);
    assert!(!as_kstatus.contains("Views show"), "{as_kstatus}");
}

#[test]
fn rule_cases_run_and_are_counted() {
    let test =
        |folder: &str, arguments: &[&str]| taffrail(&[&["rules", "test", folder], arguments].concat(), "");
    let well = test(LIBRARY, &[]);
    assert_eq!((well.stdout.as_str(), well.code), ("15 passed, 0 failed\n", 0), "{}", well.stderr);
    let broken = broken();
    let failing = test(path(&broken), &[]);
    assert_eq!(failing.code, 1);
    let lines: Vec<&str> = failing.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(
        lines[0].ends_with("case 3: the rules or cases file has the key 'objekt' where it is not allowed (did you mean 'object'?)"),
        "{lines:?}"
    );
    assert!(
        lines[1].ends_with("A, one: the verdict is Failed, not Current (by user/example.com/A#1)"),
        "{lines:?}"
    );
    assert_eq!(lines[2], "1 passed, 2 failed");
    let json = test(path(&broken), &["-o", "json"]);
    assert_eq!((json.code, &json.json()["failed"]), (1, &json!(2)));
    assert_eq!(test("nowhere", &[]).code, 3);
    let without = folder(&[("rules.yaml", "group: a.b\nsource: x\nkinds: {C: {rules: [{status: Failed}]}}")]);
    assert_eq!(test(path(&without), &[]).code, 3);

    let lint = |folder: &str| taffrail(&["rules", "lint", folder], "");
    assert_eq!((lint(LIBRARY).stdout.as_str(), lint(LIBRARY).code), ("no findings\n", 0));
    let untidy = lint(path(&broken));
    assert_eq!(untidy.code, 1);
    assert!(untidy.stdout.contains("example.com/A#2: no test case reaches this rule"), "{}", untidy.stdout);
    assert!(untidy.stdout.ends_with("3 findings\n"), "{}", untidy.stdout);
}

/// A folder may hold what Flux and kapp have, as it is.
#[test]
fn flux_and_kapp_are_understood() {
    let flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\nspec:\n  healthCheckExprs:\n  - {apiVersion: doors.example.com/v1, kind: Lock, current: 'spec.off == true', failed: 'has(status.b)'}\n";
    let kapp = "apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\nwaitRules:\n- conditionMatchers: [{type: Shut, status: 'False', failure: true}]\n  resourceMatchers: [{apiVersionKindMatcher: {apiVersion: doors.example.com/v1, kind: Door}}]\n";
    let own = folder(&[("flux.yaml", flux), ("kapp.yaml", kapp)]);
    let rule = |input: &str| {
        let answer = taffrail(&["status", "-f", "-", "--rules", path(&own), "-o", "json"], input).json();
        (answer["items"][0]["status"].clone(), answer["items"][0]["rule"].clone())
    };
    assert_eq!(rule(LOCK), (json!("Current"), json!("user/cel/doors.example.com/Lock#current")));
    assert_eq!(rule(DOOR), (json!("Failed"), json!("user/kapp/waitRules[0].conditionMatchers[0]")));
    // Where the folder itself is does not matter.
    let cases = folder(&[("testdata/kapp.yaml", kapp)]);
    let inner = format!("{}/testdata", path(&cases));
    let answer = taffrail(&["status", "-f", "-", "--rules", &inner, "-o", "json"], DOOR).json();
    assert_eq!(answer["items"][0]["status"], "Failed");
    let wrong = folder(&[("flux.yaml", &flux.replace("spec.off == true", "spec.off =="))]);
    let refused = taffrail(&["status", "-f", "-", "--rules", path(&wrong)], LOCK);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains(
            "healthCheckExprs[0]: the expression in the field 'current' of a health check cannot be parsed"
        ),
        "{}",
        refused.stderr
    );
}

/// A Kustomization with health checks, and what it delivers.
const DELIVERED: &str = "
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: house, namespace: flux-system, generation: 1}
spec:
  sourceRef: {kind: GitRepository, name: house}
  healthCheckExprs:
  - {apiVersion: doors.example.com/v1, kind: Lock, current: 'spec.off == false', failed: 'status.a > 1'}
status:
  observedGeneration: 1
  lastAppliedRevision: main@sha1:1111111111111111111111111111111111111111
  conditions: [{type: Ready, status: 'True', reason: ReconciliationSucceeded, message: applied}]
  inventory: {entries: [{id: house_front_doors.example.com_Lock, v: v1}, {id: house_back_doors.example.com_Lock, v: v1}]}
---
apiVersion: doors.example.com/v1
kind: Lock
metadata: {name: front, namespace: house}
spec: {off: true}
status: {a: 2}
---
apiVersion: doors.example.com/v1
kind: Lock
metadata:
  name: back
  namespace: house
  labels: {kustomize.toolkit.fluxcd.io/namespace: flux-system, kustomize.toolkit.fluxcd.io/name: house}
spec: {off: false}
status: {a: 1}
";

#[test]
fn the_app_that_delivers_an_object_says_what_its_health_means() {
    let rows = |rules: &[&str]| {
        let arguments = [&["get", "resources", "--from", "-", "-o", "json"], rules].concat();
        let answer = taffrail(&arguments, DELIVERED).json();
        let items = answer["items"].as_array().unwrap().iter().filter(|item| item["kind"] == "Lock");
        let row = |item: &Value| json!([item["name"], item["status"], item["rule"]]);
        let mut rows: Vec<Value> = items.map(row).collect();
        rows.sort_by_key(|row| row[0].to_string());
        json!(rows)
    };
    let rule = |which: &str| format!("cluster/cel/doors.example.com/Lock#{which}");
    assert_eq!(rows(&[]), json!([["back", "Current", rule("current")], ["front", "Failed", rule("failed")]]));
    let kstatus = rows(&["--rules", "kstatus"]);
    let plain = [["back", "Current", "fallback"], ["front", "Current", "fallback"]];
    assert_eq!(kstatus, json!(plain));
    // One's own rules come first.
    let own = rows(&["--rules", LIBRARY]);
    let front = own.as_array().unwrap().iter().find(|row| row[0] == "front").unwrap();
    assert_eq!(*front, json!(["front", "Current", "user/doors.example.com/Lock#1"]));
}

/// An Application, what it delivers, and scripts beside it: one makes an object worse, one another better.
const SCRIPTED: &str = r#"
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: house, namespace: gitops}
spec: {destination: {server: https://kubernetes.default.svc}}
status:
  sync: {status: Synced, revision: 3f1c9a7be1d84a0c5e7d2b96f80a41c2d7e5b613}
  resources:
  - {group: doors.example.com, version: v1, kind: Lock, namespace: house, name: front}
  - {group: doors.example.com, version: v1, kind: Bell, namespace: house, name: front}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: gitops}
data:
  resource.customizations.health.doors.example.com_Lock: "return {status = 'Degraded', message = 'picked'}"
  resource.customizations.health.doors.example.com_Bell: "return {status = 'Healthy'}"
---
apiVersion: doors.example.com/v1
kind: Lock
metadata: {name: front, namespace: house}
---
apiVersion: doors.example.com/v1
kind: Bell
metadata: {name: front, namespace: house}
status: {conditions: [{type: Ready, status: 'False', reason: Broken, message: no power}]}
"#;

#[test]
fn scripts_of_an_unknown_argo_cd_only_worsen() {
    let rows = |more: &str, argocd: &str| {
        let mut asked = command(&["get", "resources", "--from", "-", "-o", "json"]);
        asked.env("TAFFRAIL_ARGOCD", argocd);
        let answer = run(asked, format!("{SCRIPTED}{more}").as_bytes()).json();
        let items = answer["items"].as_array().unwrap().clone();
        let of = |kind: &str| {
            let item = items.iter().find(|item| item["kind"] == kind).unwrap();
            let is_of_cluster = item["rule"].as_str().unwrap().starts_with("cluster/");
            format!(
                "{} {}",
                item["status"].as_str().unwrap(),
                if is_of_cluster { "by it" } else { "by others" }
            )
        };
        [of("Lock"), of("Bell")]
    };
    let others = rows("", "elsewhere");
    assert!(others.iter().all(|said| said.ends_with("by others")), "{others:?}");
    let known = ["Failed by it", "Current by it"];
    assert_eq!(rows("", "gitops"), known);
    let seen = "---
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: gitops, labels: {app.kubernetes.io/component: application-controller}}
spec: {template: {spec: {serviceAccountName: gitops}}}
";
    assert_eq!(rows(seen, ""), [known[0], &others[1]]);
    let bound = "---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gitops}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gitops}
subjects: [{kind: ServiceAccount, namespace: gitops, name: gitops}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gitops}
rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]
";
    assert_eq!(rows(&format!("{seen}{bound}"), ""), known);
}

#[test]
fn rules_why_names_the_setting_that_trusts_an_argo_cd() {
    let lock = LOCK.replace(
        "namespace: house",
        "namespace: house, annotations: {argocd.argoproj.io/tracking-id: 'house:doors.example.com/Lock:house/front'}",
    );
    let answer = taffrail(&["rules", "why", "-f", "-"], &lock);
    assert!(answer.stdout.contains("the setting argocd: [NAMESPACE]"), "{}", answer.stdout);
    assert!(answer.stdout.contains("a ClusterRole that may write everything"), "{}", answer.stdout);
    assert!(!taffrail(&["rules", "why", "-f", "-"], LOCK).stdout.contains("the setting"));
}

/// Two Kustomizations, of which one waits until the other is of its own version.
const WAITS: &str = "
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system, generation: 1, labels: {version: '2'}}
spec:
  sourceRef: {kind: GitRepository, name: house}
  dependsOn: [{name: infra, readyExpr: 'dep.metadata.labels.version == self.metadata.labels.version'}]
status:
  observedGeneration: 1
  conditions:
  - {type: Reconciling, status: 'True', reason: ProgressingWithRetry, message: waits}
  - {type: Ready, status: 'False', reason: DependencyNotReady, message: dependency 'flux-system/infra' is not ready, observedGeneration: 1}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: infra, namespace: flux-system, generation: 1, labels: {version: '1'}}
spec: {sourceRef: {kind: GitRepository, name: house}}
status:
  observedGeneration: 1
  lastAppliedRevision: main@sha1:1111111111111111111111111111111111111111
  conditions: [{type: Ready, status: 'True', reason: ReconciliationSucceeded, message: applied}]
  inventory: {entries: []}
";

#[test]
fn unmet_dependency_shows_its_expression() {
    let answer = taffrail(&["explain", "apps", "--from", "-"], WAITS);
    let told = "readyExpr is not true of Kustomization flux-system/infra: dep.metadata.labels.version == \
        self.metadata.labels.version";
    assert!(answer.stdout.contains(told), "{}{}", answer.stdout, answer.stderr);
}

#[test]
fn rules_look_at_the_children_of_an_object() {
    let rules = "group: doors.example.com\nsource: x\nkinds:\n  Lock:\n    rules:\n    - {status: Failed, some: 'children[*]', that: [{condition: Shut, is: 'False'}], message: '{@.metadata.name} is open'}\n    - {status: Current}\n";
    let own = folder(&[("rules.yaml", rules)]);
    let owned = DOOR.replace(
        "namespace: house",
        "namespace: house, ownerReferences: [{apiVersion: doors.example.com/v1, kind: Lock, name: front, uid: l1}]",
    );
    let lock = LOCK.replace(
        "namespace: house",
        "namespace: house, uid: l1, labels: {app.kubernetes.io/instance: house}",
    );
    let dump = format!("{lock}---{owned}");
    let answer =
        taffrail(&["get", "resources", "--from", "-", "-o", "json", "--rules", path(&own)], &dump).json();
    let item = answer["items"].as_array().unwrap().iter().find(|item| item["kind"] == "Lock").unwrap();
    assert_eq!((&item["status"], &item["message"]), (&json!("Failed"), &json!("front is open")), "{answer}");
}

#[test]
fn argo_cds_scripts_decide_and_are_tried_beside_rules() {
    const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../rules/tests/data/customizations");

    let status = |rules: &str, input: &str| {
        let item =
            &taffrail(&["status", "-f", "-", "--rules", rules, "-o", "json"], input).json()["items"][0];
        json!([item["status"], item["rule"], item["message"]])
    };
    let jammed = DOOR.replace("reason: Moving, message: half", "reason: Jammed, message: a foot");
    assert_eq!(
        status(SCRIPTS, &jammed),
        json!(["Failed", "user/lua/doors.example.com/Door#Degraded", "a foot"])
    );
    let trial = taffrail(&["rules", "test", SCRIPTS], "");
    assert_eq!((trial.code, trial.stdout.as_str()), (0, "14 passed, 0 failed\n"), "{}", trial.stderr);

    // In one folder with rules in YAML; a script that cannot be read is told, and breaks its own kind only.
    let both = folder(&[
        (
            "example.com/rules.yaml",
            "group: example.com\nsource: x\nkinds:\n  A: {rules: [{status: Current, field: a, is: 1}]}\n",
        ),
        (
            "example.com/cases.yaml",
            "- {kind: A, name: one, object: {apiVersion: example.com/v1, kind: A, a: 1}, status: Current}\n",
        ),
        ("example.com/B/health.lua", "return {status = 'Healthy', message = 'b'}"),
        (
            "example.com/B/health_test.yaml",
            "tests: [{inputPath: testdata/b.yaml, healthStatus: {status: Healthy, message: c}}]",
        ),
        // It is a case, and no configuration.
        ("example.com/B/testdata/b.yaml", "{apiVersion: example.com/v1, kind: B}"),
        (
            "example.com/B/testdata/config.yaml",
            "{apiVersion: kapp.k14s.io/v1alpha1, kind: Config, waitRules: [{ytt: x}]}",
        ),
        ("example.com/C/health.lua", "return {"),
    ]);
    let trial = taffrail(&["rules", "test", path(&both)], "");
    let lines: Vec<&str> = trial.stdout.lines().collect();
    assert_eq!((trial.code, lines.len(), lines[2]), (1, 3, "1 passed, 2 failed"), "{}", trial.stdout);
    assert!(lines[0].contains("example.com/C/health.lua: line 1: "), "{}", trial.stdout);
    assert!(
        lines[1].ends_with(
            "health_test.yaml: example.com/B, testdata/b.yaml: the script returns Healthy, \"b\", not Healthy, \"c\""
        ),
        "{}",
        trial.stdout
    );
    let report = taffrail(&["rules", "test", path(&both), "-o", "json"], "").json();
    assert_eq!(
        json!([report["passed"], report["failed"], report["items"][1]["kind"]]),
        json!([1, 2, "example.com/B"])
    );
    let object =
        |kind: &str| format!("apiVersion: example.com/v1\nkind: {kind}\nmetadata: {{name: a}}\na: 1\n");
    assert_eq!(status(path(&both), &object("A"))[1], "user/example.com/A#1");
    assert_eq!(status(path(&both), &object("B"))[1], "user/lua/example.com/B#Healthy");
    assert_eq!(status(path(&both), &object("C"))[0], "Unknown");
    let listed =
        taffrail(&["rules", "list", "b.example.com", "--rules", path(&both), "-o", "json"], "").json();
    assert_eq!(listed["items"][0]["source"], "lua");
}
