//! `taffrail diff` beside a real API server.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Answer, CLUSTER, plane, run};

/// The value of a Secret, which no answer may hold.
const CANARY: &str = "canary-8d20-of-the-manifest";

fn manifests(image: &str, replicas: u64, password: &str) -> String {
    format!(
        "\
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: e2e-diff}}
data: {{colour: blue}}
---
apiVersion: v1
kind: Secret
metadata: {{name: database, namespace: e2e-diff}}
stringData: {{password: {password}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: e2e-diff}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
      - {{name: web, image: \"{image}\"}}
"
    )
}

const COMING: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: e2e-diff-later}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: e2e-diff-later}
data: {colour: green}
";

const REFUSED: &str = "\
apiVersion: v1
kind: Service
metadata: {name: web, namespace: e2e-diff}
spec: {ports: [{port: 70000}]}
";

fn diff(kubeconfig: &Path, folder: &Path, more: &[&str]) -> Answer {
    let folder = folder.to_str().expect("it is UTF-8");
    let answer = run(kubeconfig.as_os_str(), &[&["diff", "--context", CLUSTER, "-f", folder], more].concat());
    assert!(!format!("{answer}").contains(CANARY), "{answer}");
    answer
}

/// Returns the rows of a diff as JSON, each as kind, name, result and method.
fn rows(answer: &Answer) -> (Vec<String>, Value) {
    let list: Value =
        serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error} in\n{answer}"));
    let items = list["items"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let told = items.iter().map(|row| {
        let object = &row["object"];
        let (kind, name) = (text(&object["kind"]), text(&object["name"]));
        format!("{kind} {name}: {} by {}", text(&row["result"]), text(&row["diff"]))
    });
    (told.collect(), list)
}

#[test]
fn a_diff_names_what_an_apply_changes_and_whose_it_is() {
    let Some(plane) = plane() else { return };
    plane.create_namespace(CLUSTER, "e2e-diff").expect("a namespace");
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it can be written");
    let apply = |text: &str| {
        let path = folder.path().join("applied");
        fs::write(&path, text).expect("it can be written");
        let path = path.to_str().expect("it is UTF-8");
        let apply = ["apply", "--server-side", "--force-conflicts", "--field-manager=taffrail", "-f", path];
        plane.kubectl(CLUSTER, &apply).expect("it is applied");
    };
    apply(&manifests("nginx:1.27", 2, "before"));
    plane
        .kubectl(CLUSTER, &["scale", "deployment/web", "-n", "e2e-diff", "--replicas=5"])
        .expect("it scales");
    let wanted = manifests("nginx:1.28", 3, CANARY);
    write("web.yaml", &wanted);
    write("later.yaml", COMING);

    let answer = diff(plane.kubeconfig(), folder.path(), &["-o", "json"]);
    let (told, list) = rows(&answer);
    assert_eq!(
        told,
        [
            "Namespace e2e-diff-later: create by server",
            "ConfigMap settings: create by created-later",
            "ConfigMap settings: unchanged by server",
            "Secret database: change by server",
            "Deployment web: change by server",
        ],
        "{answer}"
    );
    assert_eq!(answer.code, 1, "{answer}");
    let fields = |row: usize| list["items"][row]["fields"].as_array().cloned().unwrap_or_default();
    let web = fields(4);
    let of = |path: &str| web.iter().find(|field| field["path"] == path).cloned().unwrap_or_default();
    let replicas = of("spec.replicas");
    assert_eq!((&replicas["live"], &replicas["wanted"]), (&json!(5), &json!(3)), "{answer}");
    assert_eq!(
        (&replicas["class"], &replicas["owners"][0]["manager"]),
        (&json!("conflict"), &json!("kubectl"))
    );
    let image = of("spec.template.spec.containers[name=web].image");
    assert_eq!((&image["live"], &image["wanted"]), (&json!("nginx:1.27"), &json!("nginx:1.28")));
    assert_eq!(image["class"], "change");
    assert_eq!(web.len(), 2, "no default is a difference: {answer}");
    assert_eq!(fields(3)[0]["path"], "data.password", "{answer}");

    let answer = diff(plane.kubeconfig(), folder.path(), &[]);
    assert_eq!(answer.code, 1, "{answer}");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (later, web) = (file("later.yaml"), file("web.yaml"));
    let shown = answer.stdout.replace(&later, "later.yaml").replace(&web, "web.yaml");
    let lines: Vec<&str> = shown.lines().collect();
    let expected = [
        "+ Namespace e2e-diff-later is created (later.yaml:1)",
        "+ ConfigMap e2e-diff-later/settings is created (later.yaml:5)",
        "    Namespace e2e-diff-later comes first",
        "~ Secret e2e-diff/database changes (web.yaml:6)",
        "  ~ data.password: \"++++++++++++\" -> \"++++++++\"",
        "~ Deployment e2e-diff/web changes (web.yaml:11)",
    ];
    assert_eq!(lines[..expected.len()], expected, "{answer}");
    assert!(
        lines[expected.len()].starts_with("  ~ spec.replicas: 5 -> 3  (conflict: kubectl by scale"),
        "{answer}"
    );
    assert_eq!(
        lines[expected.len() + 1..],
        ["  ~ spec.template.spec.containers[name=web].image: \"nginx:1.27\" -> \"nginx:1.28\""],
        "{answer}"
    );

    // What the server refuses fails, and so does a kind that it does not have, at its line; the others are compared.
    write("web.yaml", &format!("{wanted}---\n{REFUSED}"));
    let answer = diff(plane.kubeconfig(), folder.path(), &[]);
    assert!(answer.stdout.contains("! Service e2e-diff/web is refused") && answer.code == 3, "{answer}");
    write("web.yaml", &wanted.replace("kind: ConfigMap", "kind: ConfigMaps"));
    let answer = diff(plane.kubeconfig(), folder.path(), &[]);
    assert!(answer.stderr.contains("web.yaml:1: ") && answer.stderr.contains("ConfigMap of v1"), "{answer}");
    assert!(answer.stdout.contains("~ Deployment e2e-diff/web changes") && answer.code == 3, "{answer}");

    // Applied, no difference is left.
    write("web.yaml", &wanted);
    fs::remove_file(folder.path().join("later.yaml")).expect("it is there");
    apply(&wanted);
    let answer = diff(plane.kubeconfig(), folder.path(), &[]);
    assert_eq!((answer.code, &*answer.stdout), (0, ""), "{answer}");
    assert_eq!(answer.stderr, "3 unchanged\n", "{answer}");
}
