//! `taffrail tree` on dumps.

use super::of_case;

#[test]
fn an_app_shows_the_apps_that_it_delivers_and_their_objects() {
    let answer = of_case(&["tree", "apps"], "helmrelease-well", &[]);
    assert_eq!(
        answer.stdout,
        "\
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
"
    );
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    let compact = of_case(&["tree", "apps", "--compact"], "helmrelease-well", &[]);
    assert_eq!(
        compact.stdout,
        "\
OBJECT                           STATUS   AGE    MESSAGE
Kustomization flux-system/apps   Ready    19 d
└── HelmRelease shop/podinfo     Ready    19 d
"
    );
}

#[test]
fn what_is_not_well_says_why() {
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
    assert_eq!(
        dot,
        "digraph taffrail {
  rankdir=LR;
  node [shape=box, style=rounded];
  n0 [label=\"Kustomization flux-system/apps\\nReady\", color=darkgreen];
  n1 [label=\"HelmRelease shop/podinfo\\nReady\", color=darkgreen];
  n0 -> n1;
}
"
    );
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    assert_eq!(of_case(&["tree", "apps", "--compact", "--all"], "helmrelease-well", &[]).code, 2);
    assert_eq!(of_case(&["tree"], "helmrelease-well", &[]).code, 2);
}
