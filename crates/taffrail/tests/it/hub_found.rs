//! Clusters that are found in Secrets of the clusters that a hub follows.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use taffrail_sim::{Cluster, Fleet, User};
use taffrail_testkit::objects::{anything, definition, kustomizations, namespace};

use super::hub::{Hub, ask_until};
use super::{Answer, taffrail};

/// The longest time after which a hub shows that a Secret came, changed or went.
const SHOWN: Duration = Duration::from_secs(15);

const ALL: [&str; 2] = ["--clusters-from", "kubeconfig,argocd,flux,capi"];

fn settings(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": name,
        "labels": {"app.kubernetes.io/instance": name}}})
}

/// Returns the objects that prove that an Argo CD runs in the namespace `argocd`.
fn argo_cd() -> [Value; 4] {
    let rbac = "rbac.authorization.k8s.io";
    [
        namespace("argocd"),
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"namespace": "argocd", "name": "controller", "labels": {"app.kubernetes.io/component": "application-controller"}},
            "spec": {"template": {"spec": {"serviceAccountName": "argocd"}}}}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": "argocd"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "argocd"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "argocd"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "argocd", "name": "argocd"}]}),
    ]
}

fn secret(namespace: &str, name: &str, data: &[(&str, &str)]) -> Value {
    let data: serde_json::Map<String, Value> =
        data.iter().map(|(key, value)| ((*key).to_owned(), STANDARD.encode(value).into())).collect();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": name}, "data": data})
}

/// A cluster Secret of Argo CD.
fn argo_secret(name: &str, server: &str, config: &Value) -> Value {
    let mut secret =
        secret("argocd", name, &[("server", server), ("config", &config.to_string()), ("name", name)]);
    secret["metadata"]["labels"] = json!({"argocd.argoproj.io/secret-type": "cluster"});
    secret
}

/// The cluster Secret of Argo CD for a cluster, with the credentials of a user.
fn argo_secret_of(name: &str, cluster: &Cluster, user: &User) -> Value {
    let kubeconfig: Value = serde_saphyr::from_str(&cluster.kubeconfig_for(user)).unwrap();
    let authority = &kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"];
    let token = &kubeconfig["users"][0]["user"]["token"];
    argo_secret(
        name,
        &cluster.url(),
        &json!({"bearerToken": token, "tlsClientConfig": {"caData": authority}}),
    )
}

fn kustomization(name: &str, secret: &str) -> Value {
    json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "team", "name": name},
        "spec": {"path": "./", "kubeConfig": {"secretRef": {"name": secret}}}})
}

/// A fleet of clusters, of which the first is in a kubeconfig.
struct Stage {
    runtime: tokio::runtime::Runtime,
    fleet: Fleet,
    home: Cluster,
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Stage {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let fleet = runtime.block_on(Fleet::builder().controllers(false).start()).unwrap();
        let home = runtime.block_on(fleet.cluster("home")).unwrap();
        for object in argo_cd() {
            home.apply(object).unwrap();
        }
        home.apply(kustomizations()).unwrap();
        home.apply(definition("cluster.x-k8s.io", "v1beta1", "Cluster", anything())).unwrap();
        home.apply(namespace("team")).unwrap();
        home.apply(namespace("fleet")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let stage = Stage { runtime, fleet, home, folder };
        std::fs::write(stage.kubeconfig(), stage.home.kubeconfig()).unwrap();
        stage
    }

    fn kubeconfig(&self) -> String {
        self.folder.path().join("config").to_str().unwrap().to_owned()
    }

    /// Adds a cluster with one app.
    fn cluster(&self, name: &str) -> Cluster {
        let cluster = self.runtime.block_on(self.fleet.cluster(name)).unwrap();
        cluster.apply(settings(&format!("of-{name}"))).unwrap();
        cluster
    }

    /// Starts a hub, and returns it with the file of its token.
    fn hub(&self, more: &[&str]) -> (Hub, String) {
        let hub = Hub::serving(&self.kubeconfig(), 1, "127.0.0.1:0", &[&ALL[..], more].concat());
        let file = self.folder.path().join("token");
        std::fs::write(&file, hub.token()).unwrap();
        (hub, file.to_str().unwrap().to_owned())
    }
}

/// Asks the hub until an answer is as wanted, and returns it with the time that it took.
fn shown(hub: &(Hub, String), view: &[&str], is_wanted: impl Fn(&Answer) -> bool) -> (Answer, Duration) {
    let began = Instant::now();
    let answer = ask_until(&[view, &["--hub", &hub.0.url(), "--hub-token-file", &hub.1]].concat(), is_wanted);
    (answer, began.elapsed())
}

/// Returns the names of the apps of a cluster, as a hub shows them.
fn apps(hub: &(Hub, String), cluster: &str) -> Vec<String> {
    let asked = ["get", "apps", "-o", "json", "--hub", &hub.0.url(), "--hub-token-file", &hub.1];
    let answer = taffrail(&asked, "");
    let list: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
    let rows = list["items"].as_array().cloned().unwrap_or_default();
    let rows = rows.iter().filter(|row| row["cluster"] == cluster && row["effective"] == "Current");
    rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until the hub shows these apps of a cluster as well, and returns how long it took.
fn until_apps(hub: &(Hub, String), cluster: &str, names: &[&str]) -> Duration {
    let began = Instant::now();
    while apps(hub, cluster) != names {
        assert!(
            began.elapsed() < SHOWN,
            "{cluster}: {:?}\n{:#}",
            apps(hub, cluster),
            hub.0.list("/api/v1/clusters")
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    began.elapsed()
}

/// Returns the names that the HTTP API lists.
fn listed(hub: &Hub) -> Vec<String> {
    let list = hub.list("/api/v1/clusters");
    list["items"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns the changes of the app `of-east` that the hub saw.
fn transitions(hub: &Hub) -> Vec<Value> {
    let list = hub.list("/api/v1/changes");
    list["items"].as_array().unwrap().iter().filter(|item| item["name"] == "of-east").cloned().collect()
}

#[test]
fn clusters_that_secrets_name_are_found_followed_and_let_go_of() {
    let stage = Stage::new();
    let home = &stage.home;
    let [east, west, north, south] = ["east", "west", "north", "south"].map(|name| stage.cluster(name));
    home.apply(argo_secret_of("edge", &east, &east.admin())).unwrap();
    // Argo CD lists its own cluster too.
    home.apply(argo_secret("own", "https://kubernetes.default.svc", &json!({}))).unwrap();
    home.apply(argo_secret_of("itself", home, &home.admin())).unwrap();
    home.apply(secret("team", "west", &[("value", &west.kubeconfig())])).unwrap();
    home.apply(kustomization("apps", "west")).unwrap();
    home.apply(secret("fleet", "north-kubeconfig", &[("value", &north.kubeconfig())])).unwrap();
    home.apply(json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
        "metadata": {"namespace": "fleet", "name": "north"}}))
        .unwrap();
    // Nobody uses these.
    home.apply(secret("team", "south", &[("value", &south.kubeconfig())])).unwrap();
    // What Taffrail does not do for the author of a Secret.
    let program = json!({"execProviderConfig": {"command": "touch"}});
    home.apply(argo_secret("program", "https://10.0.0.1:6443", &program)).unwrap();
    home.apply(argo_secret("plain", "http://10.0.0.1:6443", &json!({}))).unwrap();
    home.apply(argo_secret("metadata", "https://169.254.169.254", &json!({}))).unwrap();

    let hub = stage.hub(&[]);
    let view = ["get", "clusters"];
    let (answer, _) = shown(&hub, &view, |answer| {
        answer.stdout.matches("v1.36.3").count() == 4 && !answer.stderr.contains("not connected")
    });
    snapbox::assert_data_eq!(
        answer.stdout,
        "\
CLUSTER                STATUS       APPS   VERSION   MESSAGE
home                   Ready        0/0    v1.36.3   no apps were found in the cluster
home/argocd/edge       Ready        1/1    v1.36.3   -
home/argocd/metadata   Unknown      0/0    -         Secret argocd/metadata: the server in the Secret has the address of a cloud's metadata service (name the server in the Secret by an address that other machines reach, or add the cluster to your own kubeconfig)
home/argocd/plain      Unknown      0/0    -         Secret argocd/plain: the server in the Secret is not an https URL (write the server in the Secret as https://HOST:PORT)
home/argocd/program    Unknown      0/0    -         Secret argocd/program: the field execProviderConfig runs a program for credentials, and a Secret must not run programs here (put a token or a client certificate into the Secret, or add the cluster to your own kubeconfig)
home/fleet/north       Ready        1/1    v1.36.3   -
home/team/west         InProgress   1/2    v1.36.3   waiting to be reconciled
"
    );
    until_apps(&hub, "home/argocd/edge", &["of-east"]);
    until_apps(&hub, "home/team/west", &["of-west"]);
    until_apps(&hub, "home/fleet/north", &["of-north"]);
    // One is asked for what the hub does not follow.
    let (answer, _) = shown(&hub, &["status", "configmap/of-west", "-n", "default"], |_| true);
    let is_read =
        |line: &str| line.starts_with("home/team/west ") && line.contains("Resource is always ready");
    assert!(answer.stdout.lines().any(is_read), "{}{}", answer.stdout, answer.stderr);

    // One is added.
    home.apply(kustomization("more", "south")).unwrap();
    let added = until_apps(&hub, "home/team/south", &["of-south"]);
    // Its Secret names another address.
    home.apply(argo_secret_of("edge", &north, &north.admin())).unwrap();
    let moved = until_apps(&hub, "home/argocd/edge", &["of-north"]);
    home.apply(argo_secret_of("edge", &east, &east.admin())).unwrap();
    until_apps(&hub, "home/argocd/edge", &["of-east"]);
    // Its token is replaced, and the one before is refused from then on: its rows stay.
    let first = transitions(&hub.0);
    for _ in 0..2 {
        home.apply(argo_secret_of("edge", &east, &east.add_user("taffrail", &["system:masters"]))).unwrap();
    }
    east.apply(settings("later")).unwrap();
    until_apps(&hub, "home/argocd/edge", &["later", "of-east"]);
    assert_eq!(transitions(&hub.0), first);
    assert!(east.delete("v1", "ConfigMap", "default", "later"));
    until_apps(&hub, "home/argocd/edge", &["of-east"]);
    // Its token is replaced by that of a user who may read nothing, and by one who may.
    home.apply(argo_secret_of("edge", &east, &east.add_user("nobody", &[]))).unwrap();
    let rotated = until_apps(&hub, "home/argocd/edge", &[]);
    home.apply(argo_secret_of("edge", &east, &east.admin())).unwrap();
    until_apps(&hub, "home/argocd/edge", &["of-east"]);
    // One goes with its Secret, and one with the object that names its Secret.
    assert!(home.delete("v1", "Secret", "argocd", "edge"));
    assert!(home.delete("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "team", "more"));
    let gone = |answer: &Answer| !answer.stdout.contains("argocd/edge") && !answer.stdout.contains("south");
    let (_, removed) = shown(&hub, &view, gone);
    assert!(removed < SHOWN);
    let began = Instant::now();
    while listed(&hub.0).iter().any(|name| name == "home/argocd/edge" || name == "home/team/south") {
        assert!(began.elapsed() < SHOWN, "{:?}", listed(&hub.0));
        std::thread::sleep(Duration::from_millis(100));
    }
    println!(
        "added {added:.1?}, at another address {moved:.1?}, other credentials {rotated:.1?}, removed {removed:.1?}"
    );
    assert_eq!(apps(&hub, "home/team/west"), ["of-west"]);
}

#[test]
fn a_found_cluster_that_answers_with_a_known_uid_changes_no_row_of_the_first() {
    let stage = Stage::new();
    let first = stage.cluster("first");
    let kubeconfig = Cluster::kubeconfig_of(&[stage.home.clone(), first.clone()]);
    std::fs::write(stage.kubeconfig(), kubeconfig).unwrap();
    // A cluster of another operator that claims to be the first, with an app of the same name.
    let other = stage.runtime.block_on(Fleet::builder().controllers(false).start()).unwrap();
    let forged = stage.runtime.block_on(other.cluster("first")).unwrap();
    forged.apply(settings("of-first")).unwrap();
    forged.apply(settings("more")).unwrap();
    // It is known before the first answers.
    let silence = first.trouble(taffrail_sim::Trouble::Unreachable);
    stage.home.apply(argo_secret_of("forged", &forged, &forged.admin())).unwrap();
    // Another one that takes the address of the first.
    stage.home.apply(argo_secret("address", &first.url(), &json!({"bearerToken": "x"}))).unwrap();

    let hub = Hub::serving(&stage.kubeconfig(), 2, "127.0.0.1:0", &ALL);
    let file = stage.folder.path().join("token");
    std::fs::write(&file, hub.token()).unwrap();
    let hub = (hub, file.to_str().unwrap().to_owned());
    until_apps(&hub, "home/argocd/forged", &["more", "of-first"]);
    first.heal(silence);
    until_apps(&hub, "first", &["of-first"]);
    let (answer, _) =
        shown(&hub, &["get", "clusters"], |answer| answer.stdout.matches("v1.36.3").count() == 3);
    snapbox::assert_data_eq!(
        answer.stdout,
        "\
CLUSTER              STATUS   APPS   VERSION   MESSAGE
home                 Ready    0/0    v1.36.3   no apps were found in the cluster
first                Ready    1/1    v1.36.3   -
home/argocd/forged   Ready    2/2    v1.36.3   the cluster reports the identity of first without proof: one of them may be a copy of the other, or restored from it; if they are one cluster, leave one of the contexts out
"
    );
    // Each has its rows and its identity in the store of the hub, too; the first is listed before it answers, without
    // apps.
    let began = Instant::now();
    let ids = || -> Vec<String> {
        let list = hub.0.list("/api/v1/clusters");
        let rows = list["items"].as_array().unwrap().iter();
        rows.map(|row| format!("{} {}", row["name"].as_str().unwrap(), row["apps"])).collect()
    };
    while ids() != ["home 0", "home/argocd/forged 2", "first 1"] {
        assert!(began.elapsed() < SHOWN, "{:?}", ids());
        std::thread::sleep(Duration::from_millis(100));
    }
    // One that comes while the first is known, and goes again, changes no row of the first either.
    let of_first = || {
        let mut rows = hub.0.list("/api/v1/apps?cluster=first")["items"].clone();
        for row in rows.as_array_mut().unwrap() {
            // The time of the last observation moves on.
            for freshness in ["/freshness", "/sync/freshness"] {
                row.pointer_mut(freshness).unwrap()["observedAt"].take();
            }
        }
        let changes = hub.0.list("/api/v1/changes?cluster=first")["items"].clone();
        (rows, changes)
    };
    let before = of_first();
    assert_eq!(before.0[0]["name"], "of-first", "{before:?}");
    forged.apply(settings("even-more")).unwrap();
    assert!(forged.delete("v1", "ConfigMap", "default", "of-first"));
    until_apps(&hub, "home/argocd/forged", &["even-more", "more"]);
    assert!(stage.home.delete("v1", "Secret", "argocd", "forged"));
    let began = Instant::now();
    while listed(&hub.0).len() > 2 {
        assert!(began.elapsed() < SHOWN, "{:?}", listed(&hub.0));
        std::thread::sleep(Duration::from_millis(100));
    }
    stage.home.apply(argo_secret_of("forged", &forged, &forged.admin())).unwrap();
    until_apps(&hub, "home/argocd/forged", &["even-more", "more"]);
    assert_eq!(of_first(), before);
}

#[test]
fn secrets_that_may_not_be_listed_are_read_by_name_again_and_again() {
    let stage = Stage::new();
    let [west, south] = ["west", "south"].map(|name| stage.cluster(name));
    let rbac = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": "few"}, "rules": [
        {"apiGroups": ["*"], "resources": ["kustomizations", "namespaces", "configmaps"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
    let binding = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "few"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "few"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "reader"}]});
    for object in [role, binding, kustomization("apps", "west"), kustomization("none", "missing")] {
        stage.home.apply(object).unwrap();
    }
    stage.home.apply(secret("team", "west", &[("value", &west.kubeconfig())])).unwrap();
    let reader = stage.home.add_user("reader", &[]);
    std::fs::write(stage.kubeconfig(), stage.home.kubeconfig_for(&reader)).unwrap();
    let hub = stage.hub(&[]);
    until_apps(&hub, "home/team/west", &["of-west"]);
    let (answer, _) = shown(&hub, &["get", "clusters"], |_| true);
    let told: Vec<&str> = answer.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert!(told.len() == 1 && told[0].contains("/Secret"), "{}", answer.stderr);
    assert!(!answer.stdout.contains("home/team/missing"), "{}", answer.stdout);
    stage.home.apply(secret("team", "west", &[("value", &south.kubeconfig())])).unwrap();
    until_apps(&hub, "home/team/west", &["of-south"]);
}

#[test]
fn a_hub_that_was_restarted_shows_found_clusters_at_once_and_forgets_those_that_are_gone() {
    let stage = Stage::new();
    // They run until the end.
    let clusters = ["east", "west"].map(|name| stage.cluster(name));
    for cluster in &clusters {
        stage.home.apply(argo_secret_of(cluster.name(), cluster, &cluster.admin())).unwrap();
    }
    let data = stage.folder.path().join("data");
    let data = ["--data", data.to_str().unwrap()];
    let hub = stage.hub(&data);
    until_apps(&hub, "home/argocd/east", &["of-east"]);
    until_apps(&hub, "home/argocd/west", &["of-west"]);
    hub.0.until_saved();
    drop(hub);
    assert!(stage.home.delete("v1", "Secret", "argocd", "west"));
    let silence = stage.home.trouble(taffrail_sim::Trouble::Unreachable);
    let hub = stage.hub(&data);
    // They are those of the run before until the home was read.
    let mut before = listed(&hub.0);
    before.sort();
    assert_eq!(before, ["home", "home/argocd/east", "home/argocd/west"]);
    stage.home.heal(silence);
    let began = Instant::now();
    while listed(&hub.0).contains(&"home/argocd/west".to_owned()) {
        assert!(began.elapsed() < SHOWN, "{:?}", listed(&hub.0));
        std::thread::sleep(Duration::from_millis(100));
    }
    until_apps(&hub, "home/argocd/east", &["of-east"]);
}

#[test]
fn of_very_many_secrets_1000_are_followed_and_the_others_told() {
    let stage = Stage::new();
    let program = json!({"execProviderConfig": {"command": "touch"}});
    let secrets = (0..1_001).map(|at| argo_secret(&format!("c{at:04}"), "https://10.0.0.1:6443", &program));
    stage.home.seed(secrets).unwrap();
    let hub = stage.hub(&[]);
    let all = |answer: &Answer| answer.stdout.matches("home/argocd/c").count() == 1_000;
    let (answer, _) = shown(&hub, &["get", "clusters"], all);
    assert!(!answer.stdout.contains("c1000"));
    // Whoever writes so many casts no doubt on the cluster that holds them.
    let home = answer.stdout.lines().find(|line| line.starts_with("home "));
    snapbox::assert_data_eq!(
        home.unwrap_or_default(),
        "home                Ready     0/0    v1.36.3   no apps were found in the cluster"
    );
    let told = answer.stderr.lines().find(|line| line.starts_with("error: home:"));
    snapbox::assert_data_eq!(
        told.unwrap_or_default(),
        "error: home: of the Secrets in namespace argocd that name clusters, 1 are left out: the clusters of 1000 Secrets are followed, of each namespace in turn"
    );
}

#[test]
fn clusters_are_selected_and_counted_by_the_labels_of_their_secrets() {
    let stage = Stage::new();
    let home = &stage.home;
    let [east, west, north] = ["east", "west", "north"].map(|name| stage.cluster(name));
    let labelled = |region: &str| {
        let mut secret = argo_secret_of("edge", &east, &east.admin());
        secret["metadata"]["labels"]["region"] = region.into();
        home.apply(secret).unwrap();
    };
    labelled("eu");
    let mut of_flux = secret("team", "west", &[("value", &west.kubeconfig())]);
    of_flux["metadata"]["labels"] = json!({"region": "us"});
    home.apply(of_flux).unwrap();
    home.apply(kustomization("apps", "west")).unwrap();
    let machine = |region: &str| {
        home.apply(json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
            "metadata": {"namespace": "fleet", "name": "north", "labels": {"region": region}}}))
            .unwrap();
    };
    home.apply(secret("fleet", "north-kubeconfig", &[("value", &north.kubeconfig())])).unwrap();
    machine("eu");

    let hub = stage.hub(&[]);
    // In the view of the command, and in that of the HTTP API.
    let names_of = |list: &Value, field: &str| -> Vec<String> {
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items.iter().filter_map(|row| Some(row[field].as_str()?.to_owned())).collect()
    };
    let until = |selector: &str, expected: &[&str]| {
        let view = ["get", "clusters", "-o", "json", "--cluster-selector", selector];
        let parsed = |answer: &Answer| serde_json::from_str::<Value>(&answer.stdout).unwrap_or_default();
        let (answer, _) = shown(&hub, &view, |answer| names_of(&parsed(answer), "name") == expected);
        assert_eq!(names_of(&parsed(&answer), "name"), expected, "{selector}: {}", answer.stdout);
        let path = format!("/api/v1/clusters?sort=name&cluster-selector={selector}");
        let began = Instant::now();
        while names_of(&hub.0.list(&path), "name") != expected {
            assert!(began.elapsed() < SHOWN, "{selector}: {:#}", hub.0.list(&path));
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    until("region=eu", &["home/argocd/edge", "home/fleet/north"]);
    until("region=us", &["home/team/west"]);
    until("!region", &["home"]);
    until_apps(&hub, "home/argocd/edge", &["of-east"]);
    until_apps(&hub, "home/fleet/north", &["of-north"]);
    until_apps(&hub, "home/team/west", &["of-west"]);
    let (answer, _) =
        shown(&hub, &["get", "apps", "-o", "name", "--cluster-selector", "region=eu"], |_| true);
    assert_eq!(
        answer.stdout,
        "home/argocd/edge/label/default/of-east\nhome/fleet/north/label/default/of-north\n"
    );
    // Where the Kustomization delivers to is known once its Secret was read.
    let began = Instant::now();
    loop {
        let groups = hub.0.list("/api/v1/apps?group-by=cluster-label:region");
        let items = groups["items"].as_array().unwrap().iter();
        let counted: Vec<String> = items.map(|it| format!("{} {}", it["group"], it["apps"])).collect();
        if counted == ["\"eu\" 2", "\"us\" 2"] {
            break;
        }
        assert!(began.elapsed() < SHOWN, "{groups:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let asked = hub.0.list("/api/v1/apps?cluster-selector=region%3Deu");
    // Clusters stand in the order in which they were found, which depends on who answered first.
    let mut names = names_of(&asked, "name");
    names.sort_unstable();
    assert_eq!(names, ["of-east", "of-north"]);
    let labels = hub.0.list("/api/v1/clusters?cluster=home/argocd/edge");
    assert_eq!(labels["items"][0]["labels"], json!({"region": "eu"}), "{labels:#}");

    // Labels change without a new connection; none of the credentials did.
    let before = transitions(&hub.0);
    labelled("ap");
    machine("ap");
    until("region=ap", &["home/argocd/edge", "home/fleet/north"]);
    until("region=eu", &[]);
    assert_eq!(transitions(&hub.0), before);

    // One that cannot be used any more stays where it is asked for, and says why.
    let mut broken = argo_secret("edge", &east.url(), &json!("nothing"));
    broken["metadata"]["labels"]["region"] = "ap".into();
    home.apply(broken).unwrap();
    let lost = |answer: &Answer| answer.stdout.contains("is not the JSON of a cluster");
    let (answer, _) = shown(&hub, &["get", "clusters", "--cluster-selector", "region=ap"], lost);
    assert!(
        answer.stdout.lines().any(|line| line.starts_with("home/argocd/edge   Unknown")),
        "{}",
        answer.stdout
    );
    until("region=ap", &["home/argocd/edge", "home/fleet/north"]);
}
