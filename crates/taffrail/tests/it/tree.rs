//! `taffrail tree` on dumps.

use serde_json::Value;

use super::{NOW, assert_shown, of_case, str, taffrail};

#[test]
fn an_app_shows_the_apps_that_it_delivers_and_their_objects() {
    let answer = of_case(&["tree", "apps"], "helmrelease-well", &[]);
    assert_shown(
        &answer.stdout,
        str![[r#"
OBJECT                                        STATUS   AGE    MESSAGE
Kustomization flux-system/apps                Ready    19 d
├── HelmRelease shop/podinfo                  Ready    19 d
│   ├── Service shop/podinfo                  Ready    19 d
│   │   └── EndpointSlice podinfo-9sv9h       Ready    19 d
│   ├── ServiceAccount shop/podinfo           Ready    19 d
│   ├── Deployment shop/podinfo               Ready    19 d
│   │   └── ReplicaSet podinfo-ps4p7pkpz      Ready    19 d
│   │       ├── Pod podinfo-ps4p7pkpz-5bd6z   Ready    19 d
│   │       └── Pod podinfo-ps4p7pkpz-xm47t   Ready    19 d
│   └── Ingress shop/podinfo                  Ready    19 d
└── HelmRepository shop/podinfo               Ready    19 d

"#]],
    );
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    let compact = of_case(&["tree", "apps", "--compact"], "helmrelease-well", &[]);
    assert_shown(
        &compact.stdout,
        str![[r#"
OBJECT                           STATUS   AGE    MESSAGE
Kustomization flux-system/apps   Ready    19 d
└── HelmRelease shop/podinfo     Ready    19 d

"#]],
    );
}

#[test]
fn tree_shows_messages_of_unhealthy_nodes() {
    let answer = of_case(&["tree", "web"], "flux-in-motion", &[]);
    let line =
        "    │   └── Pod web-rh4wc9sqk-8vpjn   InProgress   35 s   containers with unready status: [web]\n";
    assert!(answer.stdout.contains(line), "{}", answer.stdout);
}

#[test]
fn programs_get_everything_and_graphviz_a_graph() {
    let json = of_case(&["tree", "apps", "-o", "json"], "helmrelease-well", &[]).json();
    assert_eq!(json["kind"], "TreeList");
    let root = &json["items"][0]["root"];
    assert_eq!((&root["relation"], &root["app"]["name"]), (&"app".into(), &"apps".into()));
    let inner = &root["children"][0];
    assert_eq!(
        (&inner["relation"], &inner["app"]["delivery"]),
        (&"declared".into(), &"flux-helmrelease".into())
    );
    assert_eq!(inner["children"][2]["children"][0]["relation"], "owned");

    let dot = of_case(&["tree", "apps", "--compact", "-o", "dot"], "helmrelease-well", &[]).stdout;
    assert_shown(
        &dot,
        str![[r#"
digraph taffrail {
  rankdir=LR;
  node [shape=box, style=rounded];
  n0 [label="Kustomization flux-system/apps\nReady", color=darkgreen];
  n1 [label="HelmRelease shop/podinfo\nReady", color=darkgreen];
  n0 -> n1;
}

"#]],
    );
}

/// Counts the nodes of a tree.
fn nodes(node: &Value) -> u64 {
    1 + node["children"].as_array().unwrap().iter().map(nodes).sum::<u64>()
}

#[test]
fn objects_of_a_status_are_shown_with_those_above_them() {
    let ask = |options: &[&str]| of_case(&["tree", "web"], "argo-failures", options);
    let answer = ask(&["--status", "!Current"]);
    assert_shown(
        &answer.stdout,
        str![[r#"
OBJECT                                STATUS   AGE     MESSAGE
Application argocd/web                Failed   19 d    back-off 2m40s restarting failed container=web pod=web-rh4wc9sqk-8vpjn_web([UID])
└── Deployment web/web                Failed   19 d    back-off 2m40s restarting failed container=web pod=web-rh4wc9sqk-8vpjn_web([UID])
    └── ReplicaSet web-rh4wc9sqk      Failed   7 min   back-off 2m40s restarting failed container=web pod=web-rh4wc9sqk-8vpjn_web([UID])
        └── Pod web-rh4wc9sqk-8vpjn   Failed   7 min   back-off 2m40s restarting failed container=web pod=web-rh4wc9sqk-8vpjn_web([UID])
… 6 objects with another status are left out

"#]],
    );
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    assert_eq!(ask(&["--status", "failed"]).stdout, answer.stdout);
    let none = ask(&["--status", "Terminating"]);
    assert_shown(
        &none.stdout,
        str![[r#"
OBJECT                   STATUS   AGE    MESSAGE
Application argocd/web   Failed   19 d   back-off 2m40s restarting failed container=web pod=web-rh4wc9sqk-8vpjn_web([UID])
… 9 objects with another status are left out

"#]],
    );
    assert_eq!(ask(&["--status", "Broken"]).code, 2);

    let all = nodes(&ask(&["-o", "json"]).json()["items"][0]["root"]);
    for status in ["!Ready", "Ready", "Terminating"] {
        let tree = ask(&["--status", status, "-o", "json"]).json()["items"][0].clone();
        let (left_out, shown) = (tree["leftOut"].as_u64().unwrap(), nodes(&tree["root"]));
        assert_eq!(left_out + shown, all, "{status}: {tree}");
    }
    assert_eq!(ask(&["-o", "json"]).json()["items"][0].get("leftOut"), None);

    let dot = ask(&["--status", "!Ready", "-o", "dot"]);
    assert_eq!(graph(&dot.stdout).0.len() as u64 + 6, all, "{}", dot.stdout);
    assert_eq!(dot.stderr, "… 6 objects with another status are left out\n");
}

#[test]
fn what_shares_a_line_is_of_the_status_that_was_asked_for() {
    let pod = |number: u32, phase: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{namespace: shop, name: p{number}, labels: \
             {{app.kubernetes.io/instance: shop}}}}\nspec: {{containers: [{{name: a}}]}}\nstatus: {{phase: {phase}}}\n"
        )
    };
    let pods = (0..16).map(|number| pod(number, if number < 8 { "Failed" } else { "Succeeded" }));
    let dump: String = pods.collect();
    let ask = |options: &[&str]| {
        taffrail(
            &[&["tree", "shop", "--from", "-", "--now", NOW, "--status", "!Ready"], options].concat(),
            &dump,
        )
    };
    assert_shown(
        &ask(&[]).stdout,
        str![[r#"
OBJECT            STATUS   AGE   MESSAGE
label shop/shop   Failed         Pod has completed, but not successfully
├── Pod shop/p0   Failed         Pod has completed, but not successfully
├── Pod shop/p1   Failed         Pod has completed, but not successfully
├── Pod shop/p2   Failed         Pod has completed, but not successfully
└── 5 more Pods   Failed         Pod has completed, but not successfully
… 8 objects with another status are left out

"#]],
    );
    assert_eq!(ask(&["--all"]).stdout.lines().count(), 1 + 1 + 8 + 1);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    assert_eq!(of_case(&["tree", "apps", "--compact", "--all"], "helmrelease-well", &[]).code, 2);
    assert_eq!(of_case(&["tree"], "helmrelease-well", &[]).code, 2);
}

/// A word of Graphviz' language.
#[derive(Debug, PartialEq)]
enum Word {
    Id(String),
    Sign(&'static str),
}

/// The words of a text in Graphviz' language, which must be nothing but words.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let sign = ["->", "{", "}", "[", "]", "=", ",", ";"].into_iter().find(|sign| rest.starts_with(sign));
        let length = if let Some(sign) = sign {
            words.push(Word::Sign(sign));
            sign.len()
        } else if let Some(quoted) = rest.strip_prefix('"') {
            let mut escaped = false;
            let end = quoted.find(|character| {
                let is_end = character == '"' && !escaped;
                escaped = character == '\\' && !escaped;
                is_end
            });
            let end = end.unwrap_or_else(|| panic!("a string without end: {rest}"));
            words.push(Word::Id(quoted[..end].to_owned()));
            end + 2
        } else {
            let end = rest.find(|it: char| !it.is_ascii_alphanumeric() && it != '_').unwrap_or(rest.len());
            assert!(end > 0 && !rest.starts_with(|it: char| it.is_ascii_digit()), "no word: {rest}");
            words.push(Word::Id(rest[..end].to_owned()));
            end
        };
        rest = rest[length..].trim_start();
    }
    words
}

/// The labels of the nodes and the number of edges of a graph, which must keep to Graphviz' grammar.
fn graph(text: &str) -> (Vec<String>, usize) {
    let words = words(text);
    let (mut nodes, mut labels, mut edges) = (Vec::new(), Vec::new(), 0);
    let [Word::Id(digraph), Word::Id(_), Word::Sign("{"), inside @ .., Word::Sign("}")] = words.as_slice()
    else {
        panic!("no graph: {text}")
    };
    assert_eq!(digraph, "digraph");
    let (last, statements) = inside.split_last().unwrap();
    assert_eq!(*last, Word::Sign(";"));
    for statement in statements.split(|word| *word == Word::Sign(";")) {
        match statement {
            [Word::Id(_), Word::Sign("="), Word::Id(_)] => {}
            [Word::Id(one), Word::Sign("->"), Word::Id(other)] => {
                assert!(nodes.contains(one) && nodes.contains(other), "an edge to nowhere: {statement:?}");
                edges += 1;
            }
            [Word::Id(name), Word::Sign("["), attributes @ .., Word::Sign("]")] => {
                for attribute in attributes.split(|word| *word == Word::Sign(",")) {
                    let [Word::Id(key), Word::Sign("="), Word::Id(value)] = attribute else {
                        panic!("no attribute: {attribute:?}")
                    };
                    if name != "node" && key == "label" {
                        labels.push(value.clone());
                        nodes.push(name.clone());
                    }
                }
            }
            _ => panic!("no statement: {statement:?}"),
        }
    }
    (labels, edges)
}

#[test]
fn dot_output_is_valid() {
    for (case, app) in [("flux-bad-image", "shop"), ("argo-failures", "web"), ("helmrelease-well", "apps")] {
        let (labels, edges) = graph(&of_case(&["tree", app], case, &["-o", "dot"]).stdout);
        // It is a tree.
        assert_eq!(edges + 1, labels.len(), "{case}");
        assert!(labels.len() > 5, "{case}: {labels:?}");
    }
    // Names come from outside.
    let hostile = r#"
apiVersion: v1
kind: ConfigMap
metadata: {namespace: a, name: "x\"]; bad [label=\"\\", labels: {app.kubernetes.io/instance: "q\"uote"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: a, name: "line\nbreak\u001b[2J", labels: {app.kubernetes.io/instance: "q\"uote"}}
"#;
    let answer = taffrail(&["tree", "q\"uote", "--from", "-", "-o", "dot"], hostile);
    let (labels, edges) = graph(&answer.stdout);
    assert_eq!((labels.len(), edges), (3, 2), "{}", answer.stdout);
    assert!(!answer.stdout.contains('\u{1b}'), "{}", answer.stdout);
}
