//! Errors that apps declared in one cluster cause in another one: they are those of the home.

use serde_json::{Value, json};
use taffrail_api::TrustReport;
use taffrail_apps::trust::TrustShape;
use taffrail_apps::{
    Answer, AppLabels, AppList, AppRows, Delivery, Objects, Read, Snapshot, Target, UNREADABLE, apps,
};
use taffrail_object::Projection;
use taffrail_status::assess::Options;
use taffrail_status::{ActiveRules, Status, Trust};

use super::dump::{NOW, base64, document, holding, release, storage};
use super::problem::application;

const SERVER: &str = "https://prod.example.com:6443";

/// A HelmRelease whose release `name` is in the namespace `shop` of the cluster `prod`, and the Secret with its address.
fn delivering_to_prod(name: &str) -> [Value; 2] {
    let config = format!(
        "current-context: a\ncontexts: [{{name: a, context: {{cluster: b}}}}]\n\
         clusters: [{{name: b, cluster: {{server: '{SERVER}'}}}}]\n"
    );
    let history = json!([{"name": name, "namespace": "shop", "status": "deployed", "version": 1, "chartVersion": "1.0.0"}]);
    [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "apps", "name": "prod"},
            "data": {"value": base64(&config)}}),
        json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"namespace": "apps", "name": "web", "generation": 1},
            "spec": {"releaseName": name, "targetNamespace": "shop", "storageNamespace": "shop",
                "kubeConfig": {"secretRef": {"name": "prod"}}},
            "status": {"history": history, "storageNamespace": "shop"}}),
    ]
}

fn prod(objects: &[Value]) -> Snapshot {
    let mut prod = holding("prod", objects);
    prod.add_server(SERVER);
    prod
}

/// Returns the errors, each with its cluster and scope.
fn told(list: &AppList) -> Vec<String> {
    let error = |it: &taffrail_apps::AppError| {
        format!("{}: {}: {}: {}", it.cluster, it.error.scope, it.error.reason, it.error.message)
    };
    list.errors.iter().map(error).collect()
}

fn list(clusters: &[&dyn Objects], homes: &[&str]) -> AppList {
    let trust = Trust { argocd: Vec::new(), homes: homes.iter().map(|home| (*home).to_owned()).collect() };
    let options = Options { trust, ..Options::default() };
    apps(clusters, &ActiveRules { options: &options, ..ActiveRules::default() }, NOW)
}

#[test]
fn errors_of_releases_that_another_home_names_are_the_homes() {
    let dev = holding("dev", &delivering_to_prod("made-up"));
    let prod = prod(&[]);
    let why = "Helm release shop/sh.helm.release.v1.made-up.v1 cannot be read: the Secret that stores the release does not exist";
    let of_home = format!(
        "dev: helm.toolkit.fluxcd.io/HelmRelease/apps/web: Unreadable: HelmRelease apps/web: in cluster prod, {why}"
    );
    assert_eq!(told(&list(&[&dev, &prod], &[])), [of_home]);
    let of_target = format!("prod: /Secret/shop/sh.helm.release.v1.made-up.v1: Unreadable: {why}");
    assert_eq!(told(&list(&[&dev, &prod], &["dev"])), [of_target]);
}

#[test]
fn errors_of_releases_in_a_cluster_are_its_own_too() {
    let malformed = release("shop", "web", 1, "deployed", "kind: ConfigMap\n");
    let damaged = storage("shop", "web", 1, &json!({"release": "!"}));
    for (stored, reason) in [(malformed, "Malformed"), (damaged, "Unreadable")] {
        let dev = holding("dev", &delivering_to_prod("web"));
        let errors = told(&list(&[&dev, &prod(&[stored])], &[]));
        let [of_home, of_target] = errors.as_slice() else { panic!("{errors:?}") };
        assert!(of_home.contains(reason) && of_home.contains("in cluster prod, Helm release"), "{of_home}");
        assert!(of_home.starts_with("dev: helm.toolkit.fluxcd.io/HelmRelease/apps/web: "), "{of_home}");
        assert!(of_target.starts_with("prod: /Secret/shop/sh.helm.release.v1.web.v1: "), "{of_target}");
    }
}

/// A release that cannot be parsed has one reason, whatever cluster stores it.
#[test]
fn a_damaged_release_in_the_target_cluster_is_unreadable() {
    let dev = holding("dev", &delivering_to_prod("web"));
    let prod = prod(&[storage("shop", "web", 1, &json!({"release": "!"}))]);
    let list = list(&[&dev, &prod], &[]);
    let app = list.apps.iter().find(|app| app.app.delivery == Delivery::FluxHelmRelease).unwrap();
    let speaker = app.speaker.as_ref().unwrap();
    assert_eq!((&*speaker.chain[0].object.kind, &*speaker.chain[0].reason), ("Secret", UNREADABLE));
}

/// The read of the kinds `Widget` in the cluster `prod`, of which the apps of the cluster `dev` have an object.
fn widgets() -> Read {
    Read {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
        namespace: Some("shop".to_owned()),
        target: Target::List { labels: None, fields: None },
        projection: Projection::Full,
    }
}

/// An app with a Widget in the namespace `shop` of the cluster at an address.
fn with_widget(server: &str) -> Value {
    let widget =
        json!({"group": "example.com", "version": "v1", "kind": "Widget", "namespace": "shop", "name": "a"});
    let mut app = application(json!({"sync": {"status": "Synced"}, "resources": [widget]}));
    app["spec"]["destination"] = json!({"server": server});
    app
}

#[test]
fn kinds_that_only_another_home_names_are_errors_of_the_home() {
    let dev = holding("dev", &[with_widget(SERVER)]);
    let refused = |objects: &[Value], homes: &[&str]| {
        let mut prod = Snapshot::live("prod", NOW);
        prod.add_server(SERVER);
        objects.iter().for_each(|object| prod.insert(document(object), Projection::Full).unwrap());
        prod.set_homes(&widgets(), homes.iter().map(|home| (*home).to_owned()));
        prod.answer(&widgets(), Answer::Forbidden { message: "widgets is forbidden".to_owned() });
        prod
    };
    let of_target = "prod: example.com/Widget in shop: Forbidden: widgets is forbidden";
    let of_home = "dev: example.com/Widget in shop in prod: Forbidden: cannot read objects of \
                   example.com/Widget in shop in prod, which apps of this cluster name: widgets is forbidden";
    let prod = refused(&[], &["dev"]);
    let found = list(&[&dev, &prod], &[]);
    assert_eq!(told(&found), [of_home]);
    let [row] = found.apps.as_slice() else { panic!("{found:?}") };
    assert_eq!(row.health, Status::Unknown);
    assert_eq!(told(&list(&[&dev, &prod], &["dev"])), [of_target], "the user trusts the home");
    assert_eq!(told(&list(&[&dev, &refused(&[], &[])], &[])), [of_target], "the cluster needs it itself");
    // One of its own apps came to name it, too.
    let own = with_widget("https://kubernetes.default.svc");
    assert_eq!(told(&list(&[&dev, &refused(&[own], &["dev"])], &[]))[0], of_target);
    assert_eq!(told(&list(&[&refused(&[], &["gone"])], &[])), [of_target], "nobody else can tell of it");
}

#[test]
fn errors_of_another_home_are_kept_up_to_date() {
    let dev = holding("dev", &[with_widget(SERVER)]);
    let mut clusters = [dev, prod(&[])];
    let mut rows = AppRows::new(AppLabels::default());
    let mut check = |clusters: &mut [Snapshot; 2], expected: &str| {
        let changes = [clusters[0].take_changes(), clusters[1].take_changes()];
        let all: [&dyn Objects; 2] = [&clusters[0], &clusters[1]];
        rows.look(&all, &changes, &ActiveRules::default(), NOW);
        assert_eq!(told(rows.list()), told(&apps(&all, &ActiveRules::default(), NOW)));
        assert!(told(rows.list()).iter().map(|it| &it[..4]).eq(expected.split_whitespace()), "{expected}");
    };
    check(&mut clusters, "");
    clusters[1].answer(&widgets(), Answer::Forbidden { message: "widgets is forbidden".to_owned() });
    check(&mut clusters, "prod");
    clusters[1].set_homes(&widgets(), ["dev".to_owned()]);
    check(&mut clusters, "dev:");
    clusters[1].set_homes(&widgets(), []);
    check(&mut clusters, "prod");
}

#[test]
fn the_worst_app_of_a_cluster_is_named_with_its_home() {
    let dev = holding("dev", &[with_widget(SERVER)]);
    let clusters: [&dyn Objects; 2] = [&dev, &prod(&[])];
    let rows =
        serde_json::to_value(taffrail_api::ClusterList::new(&clusters, &list(&clusters, &[]))).unwrap();
    let worst = json!({"delivery": "argo-application", "namespace": "argocd", "name": "shop"});
    let row = &rows["items"][1];
    assert_eq!([&row["name"], &row["worst"], &row["worstHome"]], [&json!("prod"), &worst, &json!("dev")]);
    let own = holding("dev", &[with_widget("https://kubernetes.default.svc")]);
    let rows = serde_json::to_value(taffrail_api::ClusterList::new(&[&own], &list(&[&own], &[]))).unwrap();
    assert_eq!([&rows["items"][0]["worst"], &rows["items"][0]["worstHome"]], [&worst, &Value::Null]);
}

/// Apps of one name that two clusters declare are told apart in the finding about an object that both claim.
#[test]
fn an_overlap_names_the_home_of_an_app_that_another_cluster_declares() {
    let [secret, of_dev] = delivering_to_prod("web");
    let own = |from: &Value| {
        let mut own = from.clone();
        own["kind"] = json!("Kustomization");
        own["apiVersion"] = json!("kustomize.toolkit.fluxcd.io/v1");
        own["spec"] = json!({"sourceRef": {"kind": "GitRepository", "name": "fleet"}});
        own["status"] = json!({"inventory": {"entries": [{"id": "shop_a__ConfigMap", "v": "v1"}]}});
        own
    };
    let mut foreign = own(&of_dev);
    foreign["spec"]["kubeConfig"] = json!({"secretRef": {"name": "prod"}});
    let dev = holding("dev", &[secret, foreign]);
    let marked = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "a",
        "labels": {"kustomize.toolkit.fluxcd.io/namespace": "apps", "kustomize.toolkit.fluxcd.io/name": "web"}}});
    let prod = prod(&[own(&of_dev), marked]);
    let clusters: [&dyn Objects; 2] = [&dev, &prod];
    let list = list(&clusters, &[]);
    let all: Vec<_> = list.apps.iter().collect();
    let report = TrustReport::new(&all, &list, &clusters, NOW, TrustShape::default());
    let found = report.items.iter().find(|found| found.reason == "Overlap").unwrap();
    let both = "flux-kustomization apps/web and by flux-kustomization apps/web of dev";
    assert_eq!(
        &*found.message,
        format!("the object is claimed by {both}: Ready is true only of the version that was applied last")
    );
}
