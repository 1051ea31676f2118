//! The limit on the number of apps of one cluster.

use serde_json::{Value, json};
use taffrail_apps::{
    AppLabels, AppList, AppRows, ChangeBatch, Delivery, Objects as _, Scope, Snapshot, apps, apps_by,
};
use taffrail_object::{ObjectKey, Projection};
use taffrail_status::ActiveRules;

use super::dump::{NOW, document, holding};

const MAX_APPS: usize = 20_000;

/// A ConfigMap whose label names an app of its own.
fn labelled(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name, "labels": {"app.kubernetes.io/part-of": name}}})
}

/// A Kustomization that lists one ConfigMap of its namespace.
fn kustomization(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": namespace, "name": name}, "spec": {"suspend": true},
        "status": {"inventory": {"entries": [{"id": format!("{namespace}_{name}__ConfigMap"), "v": "v1"}]}}})
}

fn number(list: &AppList, namespace: &str) -> usize {
    list.apps.iter().filter(|app| app.app.namespace == namespace).count()
}

/// Returns the messages about apps that were left out, each with its namespace.
fn told(list: &AppList) -> Vec<(&str, &str)> {
    let over = list.errors.iter().map(|it| &it.error).filter(|error| error.reason == "OverLimit");
    over.map(|error| match &error.scope {
        Scope::Namespace(namespace) => (&**namespace, &*error.message),
        scope => panic!("{scope}: {}", error.message),
    })
    .collect()
}

fn check_kept_up_to_date(rows: &mut AppRows, cluster: &mut Snapshot) -> (usize, bool) {
    let changes: [ChangeBatch; 1] = [cluster.take_changes()];
    let looked = rows.look(&[&*cluster], &changes, &ActiveRules::default(), NOW);
    let whole = apps_by(&AppLabels::default(), &[&*cluster], &ActiveRules::default(), NOW);
    assert!(*rows.list() == whole, "{} rows, {}", rows.list().apps.len(), whole.apps.len());
    (rows.list().apps.len(), looked.is_whole)
}

#[test]
fn apps_beyond_the_limit_are_left_out_and_reported() {
    let mut objects: Vec<Value> =
        (0..MAX_APPS + 100).map(|at| labelled("aaa", &format!("a{at:06}"))).collect();
    // What the namespace declares comes before its label groups.
    objects.extend([kustomization("aaa", "last"), labelled("aaa", "last")]);
    let others = ["shop", "web"].iter().flat_map(|namespace| {
        let all = ["one", "two"].iter().flat_map(|name| [labelled(namespace, name)]);
        all.collect::<Vec<_>>()
    });
    objects.extend(others);
    let mut cluster = holding("prod", &objects);
    let list = apps(&[&cluster], &ActiveRules::default(), NOW);
    assert_eq!(list.apps.len(), MAX_APPS);
    assert_eq!((number(&list, "shop"), number(&list, "web")), (2, 2), "they have few apps");
    assert!(list.apps.iter().any(|app| app.app.delivery == Delivery::FluxKustomization));
    let message = "namespace aaa has 20101 apps, of which 105 are left out: at most 20000 apps of a cluster are \
                   shown, and the namespaces with the most apps lose theirs first";
    assert_eq!(told(&list), [("aaa", message)]);
    // Nothing is known of who declares an object there.
    let orphan =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "x"}});
    cluster.insert(document(&orphan), Projection::Full).unwrap();
    let orphans = list.orphans(&cluster, &Default::default()).objects;
    let keys: Vec<&ObjectKey> = orphans.iter().map(|orphan| &orphan.key).collect();
    assert_eq!(keys, [&ObjectKey::new("", "ConfigMap", "shop", "x")]);

    let mut rows = AppRows::new(AppLabels::default());
    assert_eq!(check_kept_up_to_date(&mut rows, &mut cluster), (MAX_APPS, true));
    // One that comes takes the place of another, and one that goes leaves it its place.
    let extra = labelled("shop", "three");
    cluster.insert(document(&extra), Projection::Full).unwrap();
    cluster.insert(document(&kustomization("aaa", "b")), Projection::Full).unwrap();
    assert_eq!(check_kept_up_to_date(&mut rows, &mut cluster), (MAX_APPS, false));
    cluster.remove(&ObjectKey::new("", "ConfigMap", "aaa", "a000000"));
    assert_eq!(check_kept_up_to_date(&mut rows, &mut cluster), (MAX_APPS, false));
    for at in 1..200 {
        cluster.remove(&ObjectKey::new("", "ConfigMap", "aaa", format!("a{at:06}")));
    }
    let (number, is_whole) = check_kept_up_to_date(&mut rows, &mut cluster);
    assert!(number < MAX_APPS && !is_whole, "{number}");
    assert_eq!(told(rows.list()), []);
    assert_eq!(cluster.name(), "prod");
}

/// A tool's app that is left out may declare any object of its namespace.
#[test]
fn objects_of_apps_left_out_are_in_no_label_group() {
    let declaring = (0..MAX_APPS + 10).map(|at| kustomization("aaa", &format!("k{at:06}")));
    let last = format!("k{:06}", MAX_APPS + 9);
    let objects: Vec<Value> = declaring.chain([labelled("aaa", &last), labelled("shop", "one")]).collect();
    let mut cluster = holding("prod", &objects);
    let list = apps(&[&cluster], &ActiveRules::default(), NOW);
    assert_eq!((list.apps.len(), number(&list, "shop")), (MAX_APPS, 1));
    assert!(list.apps.iter().all(|app| app.app.namespace == "shop" || app.app.delivery != Delivery::Label));
    let [("aaa", message)] = told(&list)[..] else { panic!("{:?}", told(&list)) };
    assert!(message.contains("has 20011 apps, of which 12 are left out"), "{message}");
    assert_eq!(list.orphans(&cluster, &Default::default()).objects, []);
    let mut rows = AppRows::new(AppLabels::default());
    check_kept_up_to_date(&mut rows, &mut cluster);
    cluster.remove(&ObjectKey::new("kustomize.toolkit.fluxcd.io", "Kustomization", "aaa", "k000000"));
    assert_eq!(check_kept_up_to_date(&mut rows, &mut cluster), (MAX_APPS, false));
}

#[test]
fn helm_releases_beyond_the_limit_are_left_out() {
    let stored = |namespace: &str, at: usize, status: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace,
            "name": format!("sh.helm.release.v1.r{at:06}.v1"), "labels": {"owner": "helm", "status": status}}})
    };
    let mut objects: Vec<Value> = (0..MAX_APPS).map(|at| stored("aaa", at, "deployed")).collect();
    objects.extend([stored("shop", 0, "deployed"), stored("shop", 1, "deployed")]);
    let cluster = holding("prod", &objects);
    let list = apps(&[&cluster], &ActiveRules::default(), NOW);
    assert_eq!((list.apps.len(), number(&list, "shop")), (MAX_APPS, 2));
    let over = told(&list).into_iter().find(|(namespace, _)| *namespace == "aaa");
    assert!(over.is_some_and(|(_, message)| message.contains("of which 2 are left out")), "{over:?}");
}
