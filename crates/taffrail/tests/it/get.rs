//! `taffrail get` on dumps.

use std::fs;

use super::{NOW, assert_shown, golden_app, of_case, str, taffrail};

fn get(what: &str, name: &str, arguments: &[&str]) -> super::Answer {
    of_case(&["get", what], name, arguments)
}

#[test]
fn apps_of_a_dump() {
    let answer = get("apps", "flux-in-motion", &[]);
    assert_shown(
        &answer.stdout,
        str![[r#"
NAMESPACE     NAME     DELIVERY   STATUS              SINCE   SYNC        APPLIED              MESSAGE
flux-system   config   ks         Ready, OutOfSync    40m     OutOfSync   main@sha1:0e260ed7   the source has main@sha1:cd484da3, and the controller of the app has not applied it
flux-system   db       ks         Ready (suspended)   -       Suspended   main@sha1:0e260ed7   the app is suspended: its delivery tool applies no changes by itself; the source has main@sha1:cd484da3
flux-system   web      ks         InProgress          35s     Syncing     main@sha1:0e260ed7   containers with unready status: [web]
web           cache    hr         InProgress          20s     Syncing     20.0.3               Running 'upgrade' action with timeout of 5m0s

"#]],
    );
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
}

#[test]
fn namespaces_filter_by_where_an_app_is_declared() {
    let names =
        |arguments: &[&str]| get("apps", "flux-in-motion", &[&["-o", "name"], arguments].concat()).stdout;
    assert_eq!(names(&["-n", "web"]), "flux-helmrelease/web/cache\n");
    assert_eq!(names(&["-A"]).lines().count(), 4);
    let none = get("apps", "flux-in-motion", &["-n", "nobody"]);
    assert_eq!((none.stdout.as_str(), none.code), ("", 0));
    let told = "No apps found declared in namespace nobody.\n\
                warning: the dumps have no namespace 'nobody', and no object in it\n";
    assert_eq!(none.stderr, told);
}

#[test]
fn empty_namespace_hints_at_apps_with_objects_there() {
    let ask = |what: &str, words: &[&str]| get(what, "sixty-apps", words);
    let inside = ask("apps", &["--in-namespace", "ns-5", "-o", "json"]).json();
    let inside = inside["items"].as_array().unwrap();
    assert!(!inside.is_empty());
    let objects = ask("resources", &["--in-namespace", "ns-5", "-o", "json"]).json();
    let objects = objects["items"].as_array().unwrap();
    assert!(objects.iter().all(|it| it["namespace"] == "ns-5"), "{objects:?}");
    let owners: std::collections::BTreeSet<&str> =
        objects.iter().filter_map(|it| it["app"]["name"].as_str()).collect();
    let names = inside.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(owners, names);

    let dump = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example/eu-1.yaml");
    for what in ["apps", "resources"] {
        let none = taffrail(&["get", what, "--from", dump, "-n", "shop"], "");
        assert_eq!((none.stdout.as_str(), none.code), ("", 0));
        let said = "1 app has objects in namespace shop without being declared there (flux-kustomization/flux-system/shop)";
        assert!(none.stderr.contains(said), "{}", none.stderr);
        let command = format!("`taffrail get {what} --in-namespace shop --from {dump}` lists them");
        assert!(none.stderr.contains(&command), "{}", none.stderr);
    }
    let wrong = ask("clusters", &["--in-namespace", "ns-5"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
}

#[test]
fn a_dump_without_objects_is_not_green() {
    let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    let clusters =
        taffrail(&["get", "clusters", "--from", file.path().to_str().unwrap(), "-o", "json"], "").json();
    assert_eq!(clusters["items"][0]["status"], "Unknown");
    assert_eq!(clusters["items"][0]["message"], "the dump holds no objects");
}

#[test]
fn clusters_and_resources_of_a_dump() {
    let clusters = get("clusters", "flux-in-motion", &["-o", "json"]).json();
    assert_eq!(clusters["kind"], "ClusterList");
    assert_eq!(
        (&clusters["items"][0]["status"], &clusters["items"][0]["apps"]),
        (&"InProgress".into(), &4.into())
    );
    let resources = get("resources", "flux-in-motion", &["-n", "web", "-o", "json"]).json();
    assert_eq!(resources["kind"], "ResourceList");
    assert_eq!(resources["items"].as_array().unwrap().len(), 2);
}

#[test]
fn defects_of_a_dump_are_reported_and_the_rest_is_shown() {
    let answer = get("apps", "helm-secret-damaged", &[]);
    assert!(answer.stderr.contains("sh.helm.release.v1.cart.v2"), "{}", answer.stderr);
    assert!(answer.stdout.contains("fine"), "{}", answer.stdout);
    assert_eq!(get("apps", "flux-in-motion", &["--exit-status"]).code, 1);
    assert_eq!(get("apps", "flux-kustomization-well", &["--exit-status"]).code, 0);
}

#[test]
fn unreadable_part_of_a_dump_is_never_green() {
    let from = golden_app("flux-kustomization-well");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prod.yaml");
    // Half of the Deployment is lost.
    let dump = fs::read_to_string(from).unwrap().replacen("    spec:\n      containers:", "    spec: [\n", 2);
    fs::write(&file, dump).unwrap();
    let answer = taffrail(&["get", "apps", "--from", file.to_str().unwrap(), "--now", NOW, "-o", "json"], "");
    assert_eq!(answer.code, 3);
    let json = answer.json();
    let shop = json["items"].as_array().unwrap().iter().find(|app| app["name"] == "shop").unwrap().clone();
    assert_eq!(shop["health"], "Unknown", "{shop}");
    assert!(json["errors"][0]["message"].as_str().unwrap().contains("prod.yaml:"), "{json}");
}

#[test]
fn missing_dumps_are_reported() {
    let answer = taffrail(&["get", "apps", "--from", "nowhere.yaml"], "");
    assert_eq!(answer.code, 3);
    assert!(answer.stdout.contains("nowhere"), "a row says why: {}", answer.stdout);
    assert!(answer.stderr.contains("cannot read nowhere.yaml: No such file"), "{}", answer.stderr);
}

/// Runs a command as on a screen with so many columns.
fn on_screen(columns: usize, arguments: &[&str]) -> String {
    let mut asked = super::command(arguments);
    asked.env("COLUMNS", columns.to_string());
    let answer = super::run(asked, b"");
    assert!(answer.code < 2, "{}", answer.stderr);
    answer.stdout
}

const EXAMPLE: [&str; 4] =
    ["--from", concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example"), "--now", NOW];

#[test]
fn apps_on_a_screen_of_80_columns() {
    assert_shown(
        &on_screen(80, &[&["get", "apps"], &EXAMPLE[..]].concat()),
        str![[r#"
CLUSTER  APP           STATUS                SINCE  SYNC       MESSAGE
eu-1     ks/docs       Ready                 -      Synced
eu-1     ks/shop       Failed                7m     Synced     Back-off pulling…
lab      argo/api      Ready, sync failed    40m    Failed     Deployment api/a…
lab      argo/docs     Ready, source failed  40m    Unknown    Failed to load t…
lab      argo/metrics  NotFound              -      Failed     ServiceMonitor m…
lab      argo/web      Failed                7m     Synced     back-off 2m40s r…
us-1     ks/config     Ready, OutOfSync      40m    OutOfSync  the source has m…
us-1     ks/db         Ready (suspended)     -      Suspended  the app is suspe…
us-1     ks/web        InProgress            35s    Syncing    containers with …
us-1     hr/cache      InProgress            20s    Syncing    Running 'upgrade…

"#]],
    );
}

#[test]
fn apps_on_screens_of_120_and_200_columns() {
    let lines = |columns| {
        let text = on_screen(columns, &[&["get", "apps"], &EXAMPLE[..]].concat());
        text.lines().take(3).map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    assert_shown(
        &lines(120),
        str![[r#"
CLUSTER   APP            STATUS                 SINCE   SYNC        APPLIED              MESSAGE
eu-1      ks/docs        Ready                  -       Synced      main@sha1:28e01ce0
eu-1      ks/shop        Failed                 7m      Synced      main@sha1:28e01ce0   Back-off pulling image "ghcr.i…
"#]],
    );
    assert_shown(
        &lines(200),
        str![[r#"
CLUSTER   NAMESPACE     NAME      DELIVERY   STATUS                 SINCE   SYNC        APPLIED              MESSAGE
eu-1      flux-system   docs      ks         Ready                  -       Synced      main@sha1:28e01ce0
eu-1      flux-system   shop      ks         Failed                 7m      Synced      main@sha1:28e01ce0   Back-off pulling image "ghcr.io/acme/web:1.5.0-rc": ErrImagePull: rpc error: code = NotFou…
"#]],
    );
}

#[test]
fn names_on_a_narrow_screen_lead_to_their_apps() {
    let config_map = |namespace: &str, name: &str| {
        format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {namespace}\n  labels: \
             {{app.kubernetes.io/instance: {name}}}\n"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prod.yaml");
    let long = "a-namespace-with-a-name-that-is-as-long-as-some-are-in-the-wild";
    let dump = config_map("shop", "web") + &config_map("docs", "web") + &config_map(long, "cache");
    fs::write(&file, dump).unwrap();
    let from = ["--from", file.to_str().unwrap()];
    let text = on_screen(80, &[&["get", "apps"], &from[..]].concat());
    let names: Vec<&str> =
        text.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().next()).collect();
    assert_eq!(names, ["label/cache", "label/docs/web", "label/shop/web"], "{text}");
    for name in names {
        let answer = taffrail(&[&["get", "apps", name, "-o", "name"], &from[..]].concat(), "");
        assert_eq!((answer.code, answer.stdout.lines().count()), (0, 1), "{name}: {}", answer.stderr);
    }
}

#[test]
fn the_message_of_a_cluster_has_the_room_of_its_version() {
    let served = super::served::Served::start(&["one"], |_, cluster| {
        let namespace = taffrail_testkit::objects::namespace("shop");
        cluster.apply(namespace).unwrap();
    });
    let screen = |columns| {
        on_screen(columns, &served.all(&["get", "clusters", "--timeout", "60s", "--request-timeout", "0"]))
    };
    assert!(screen(80).contains("VERSION"), "there is room: {}", screen(80));
    let deployment = serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app.kubernetes.io/instance": "web"}},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "conditions": [
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "it is refused ".repeat(20)}]}});
    served.clusters[0].apply(deployment).unwrap();
    let narrow = screen(80);
    assert!(!narrow.contains("VERSION") && narrow.contains("MESSAGE"), "{narrow}");
    assert!(screen(120).contains("VERSION"), "{}", screen(120));
}

#[test]
fn wide_rows_are_complete_on_a_narrow_screen() {
    let text = on_screen(80, &[&["get", "apps", "-o", "wide"], &EXAMPLE[..]].concat());
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("CLUSTER  APP           STATUS"), "{text}");
    let at = lines.iter().position(|line| line.contains("ks/shop")).unwrap();
    let row = lines[at..].iter().skip(1).take_while(|line| line.starts_with(' ')).copied();
    let below: Vec<&str> = row.collect();
    let below = below.join(" ").split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "OBJECTS 6/7",
        "APPLIED main@sha1:28e01ce0",
        "SOURCE https://git.example.com/acme/fleet",
        "WORST Deployment shop/web",
        "failed to pull and unpack image \"ghcr.io/acme/web:1.5.0-rc\": not found",
    ] {
        assert!(below.contains(part), "{part}: {text}");
    }
    let piped = taffrail(&[&["get", "apps", "-o", "wide"], &EXAMPLE[..]].concat(), "").stdout;
    assert_eq!(piped.lines().count(), 11, "programs get a line a row: {piped}");
    assert!(piped.starts_with("CLUSTER   NAMESPACE     NAME "), "{piped}");
}

/// The clusters of a dump of a management cluster and of the cluster that it manages.
pub(crate) fn managed(command: &[&str]) -> super::Answer {
    let folder = tempfile::tempdir().unwrap();
    let hub = "\
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {namespace: fleet, name: edge, generation: 1}
spec: {controlPlaneEndpoint: {host: 10.0.0.7, port: 6443}}
status: {conditions: [{type: Ready, status: 'False', severity: Error, reason: NoMachine, message: no machine}]}
---
apiVersion: infra.nephio.org/v1alpha1
kind: WorkloadCluster
metadata: {namespace: fleet, name: edge}
spec: {clusterName: edge}
";
    // Whoever may write into one namespace can name any cluster.
    let claim = |number: usize| {
        format!(
            "---\napiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\n\
             metadata: {{namespace: a-tenant, name: w-{number}}}\nspec: {{clusterName: edge}}\n"
        )
    };
    let hub = format!("{hub}{}", (0..10).map(claim).collect::<String>());
    let edge = "\
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: web, labels: {app.kubernetes.io/instance: web}}
---
apiVersion: v1
kind: Node
metadata: {name: n-1}
status: {conditions: [{type: Ready, status: 'True', reason: KubeletReady}]}
---
apiVersion: v1
kind: Node
metadata: {name: n-2}
status:
  conditions:
  - {type: Ready, status: Unknown, reason: NodeStatusUnknown, message: no word of it, lastTransitionTime: '2026-03-01T10:00:00Z'}
---
apiVersion: v1
kind: Node
metadata: {name: n-3}
status: {conditions: [{type: Ready, status: 'False', reason: KubeletNotReady, lastTransitionTime: '2026-03-01T11:00:00Z'}]}
";
    std::fs::write(folder.path().join("hub.yaml"), hub).unwrap();
    std::fs::write(folder.path().join("edge.yaml"), edge).unwrap();
    let from = ["--from", folder.path().to_str().unwrap(), "--now", super::NOW];
    taffrail(&[command, &from].concat(), "")
}

#[test]
fn cluster_shows_its_nodes_which_change_nothing_else() {
    let json = managed(&["get", "clusters", "-o", "json"]).json();
    let row = |name: &str| json["items"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
    let (nodes, status) = (&row("edge")["nodes"], &row("edge")["status"]);
    assert_eq!((&nodes["ready"], &nodes["total"], status.as_str()), (&1.into(), &3.into(), Some("Current")));
    assert_eq!(nodes["unready"]["name"], "n-2", "it has not been ready for longest: {nodes}");
    // A dump without nodes may just not have them.
    assert!(row("hub").get("nodes").is_none() && row("hub").get("nodesUnobserved").is_none());
    let wide = managed(&["get", "clusters", "-o", "wide"]).stdout;
    assert!(wide.contains("1/3, n-2 NodeStatusUnknown"), "{wide}");
    let overview = managed(&["overview", "-o", "json"]).json();
    let totals = serde_json::json!({"clusters": 1, "ready": 1, "total": 3});
    assert_eq!(overview["nodes"], totals);
}

#[test]
fn cluster_is_listed_with_the_objects_that_stand_for_it() {
    let json = managed(&["get", "clusters", "-o", "json"]).json();
    let edge = json["items"].as_array().unwrap().iter().find(|row| row["name"] == "edge").unwrap();
    assert_eq!(edge["status"], "Current");
    let managed_as: Vec<String> = (edge["managedAs"].as_array().unwrap().iter())
        .map(|it| format!("{} {} {}", it["object"]["kind"], it["cluster"], it["unproven"]))
        .collect();
    assert!(managed_as.contains(&"\"WorkloadCluster\" \"hub\" true".to_owned()), "{managed_as:?}");
    assert_eq!((managed_as.len(), &edge["managedAsLeftOut"]), (10, &2.into()));
    let wide = managed(&["get", "clusters", "-o", "wide"]).stdout;
    assert!(wide.lines().next().unwrap().contains("MANAGED AS"), "{wide}");
    assert!(wide.contains("12 objects, such as "), "{wide}");
    assert!(wide.contains("Cluster fleet/edge of hub: Failed"), "{wide}");
    assert!(wide.contains(", by its own word alone"), "{wide}");
}
