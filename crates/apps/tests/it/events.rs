//! Warnings about apps.

use serde_json::{Value, json};
use taffrail_api::{EventList, EventRow};
use taffrail_apps::{App, Snapshot, apps};
use taffrail_status::ActiveRules;

use super::dump::{NOW, holding};
use super::tree::{kustomization, object};

fn events(prod: &Snapshot, name: &str) -> Vec<EventRow> {
    let list = apps(&[prod], &ActiveRules::default(), NOW);
    let asked: Vec<&App> = list.apps.iter().filter(|app| app.app.name == name).collect();
    EventList::new(&asked, &list, &[prod], &ActiveRules::default(), NOW, None).items
}

fn event(name: &str, about: (&str, &str, &str), reason: &str, message: &str, more: &Value) -> Value {
    let (api_version, kind, object) = about;
    let mut event = json!({
        "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": reason, "message": message,
        "metadata": {"namespace": "shop", "name": name, "creationTimestamp": "2026-03-01T11:00:00Z"},
        "involvedObject": {"apiVersion": api_version, "kind": kind, "namespace": "shop", "name": object},
    });
    for (key, value) in more.as_object().unwrap() {
        event[key] = value.clone();
    }
    event
}

const POD: (&str, &str, &str) = ("v1", "Pod", "web-1");

fn shop(events: Vec<Value>) -> Snapshot {
    let mut objects = vec![
        kustomization("app", &["shop_web_apps_Deployment".to_owned()]),
        object("apps/v1", "Deployment", "web", None),
        object("v1", "Pod", "web-1", Some("Deployment-web")),
        object("v1", "Pod", "stranger", None),
    ];
    objects.extend(events);
    holding("prod", &objects)
}

#[test]
fn warnings_about_generated_names_are_joined() {
    let at = |last: &str| json!({"firstTimestamp": "2026-03-01T11:00:00Z", "lastTimestamp": format!("2026-03-01T{last}Z")});
    let set = ("apps/v1", "ReplicaSet", "web-7d9f");
    let denied = |pod: &str| format!("Error creating: pods \"{pod}\" is forbidden: exceeded quota: team");
    let crash = |pod: &str| {
        format!(
            "back-off 10s restarting failed container=web pod={pod}_shop(5d1f2e3a-0000-4000-8000-000000000001)"
        )
    };
    let pods = ["web-7d9f-x2k1a", "web-7d9f-x2k2b"];
    let made = |version: &str, kind: &str, name: &str, (maker, by): (&str, &str)| {
        let mut made = object(version, kind, name, Some(&format!("{maker}-{by}")));
        let reference = &mut made["metadata"]["ownerReferences"][0];
        reference["apiVersion"] = json!("apps/v1");
        (reference["kind"], reference["name"]) = (json!(maker), json!(by));
        made
    };
    let mut objects = vec![
        kustomization("app", &["shop_web_apps_Deployment".to_owned()]),
        object("apps/v1", "Deployment", "web", None),
        made("apps/v1", "ReplicaSet", "web-7d9f", ("Deployment", "web")),
        event("a", set, "FailedCreate", &denied("web-7d9f-aaaaa"), &at("11:01:00")),
        event("b", set, "FailedCreate", &denied("web-7d9f-bbbbb"), &at("11:02:00")),
    ];
    let crashing = |pod: &str, last: &str| {
        let warning = event(pod, ("v1", "Pod", pod), "BackOff", &crash(pod), &at(last));
        [made("v1", "Pod", pod, ("ReplicaSet", "web-7d9f")), warning]
    };
    for (pod, last) in pods.into_iter().zip(["11:03:00", "11:04:00"]) {
        objects.extend(crashing(pod, last));
    }
    let prod = holding("prod", &objects);
    let list = apps(&[&prod], &ActiveRules::default(), NOW);
    let asked: Vec<&App> = list.apps.iter().collect();
    let each = EventList::new(&asked, &list, &[&prod], &ActiveRules::default(), NOW, None);
    let told = |list: &EventList| -> Vec<String> {
        let rows = list.items.iter();
        rows.map(|row| format!("{} {} {} of {}", row.reason, row.object.name, row.count, row.objects))
            .collect()
    };
    let of_set = "FailedCreate web-7d9f 2 of 1".to_owned();
    assert_eq!(told(&each)[..2], [of_set.clone(), format!("BackOff {} 1 of 1", pods[0])]);
    let together = each.together();
    assert_eq!(told(&together), [of_set, format!("BackOff {} 2 of 2", pods[1])]);
    assert_eq!(together.items[1].others, pods[..1], "each Pod is named");

    // Of many Pods those with the newest warnings are named.
    for number in 10..40 {
        objects.extend(crashing(&format!("web-7d9f-x3k{number}"), &format!("11:{number}:00")));
    }
    let prod = holding("prod", &objects);
    let list = apps(&[&prod], &ActiveRules::default(), NOW);
    let asked: Vec<&App> = list.apps.iter().collect();
    let together = EventList::new(&asked, &list, &[&prod], &ActiveRules::default(), NOW, None).together();
    let EventRow { object, objects, others, .. } = &together.items[1];
    assert_eq!((&*object.name, *objects, others.len()), ("web-7d9f-x3k39", 32, 20));
    assert_eq!((&*others[0], &*others[19]), ("web-7d9f-x3k38", "web-7d9f-x3k19"));
}

#[test]
fn repeated_warnings_are_joined_with_their_count() {
    let at = |first: &str, last: &str, count: i64| json!({"firstTimestamp": format!("2026-03-01T{first}Z"), "lastTimestamp": format!("2026-03-01T{last}Z"), "count": count});
    let prod = shop(vec![
        event("a", POD, "BackOff", "back-off 10s restarting web", &at("11:10:00", "11:20:00", 3)),
        event("b", POD, "BackOff", "back-off 5m0s restarting web", &at("11:05:00", "11:40:00", 4)),
        event("c", POD, "BackOff", "back-off 10s restarting sidecar", &at("11:30:00", "11:30:00", 1)),
    ]);
    let rows = events(&prod, "app");
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row.count, row.message.as_str(), row.first_seen.unwrap(), row.last_seen.unwrap()))
        .collect();
    let at = |time: &str| format!("2026-03-01T{time}Z").parse().unwrap();
    assert_eq!(
        told,
        [
            (1, "back-off 10s restarting sidecar", at("11:30:00"), at("11:30:00")),
            (7, "back-off 5m0s restarting web", at("11:05:00"), at("11:40:00")),
        ]
    );
}

#[test]
fn only_warnings_about_the_app_are_listed() {
    let plain = json!({});
    let prod = shop(vec![
        event("pod", POD, "BackOff", "of a dependent", &plain),
        event("deployment", ("apps/v1", "Deployment", "web"), "Failed", "of a declared object", &plain),
        event(
            "declaring",
            ("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "app"),
            "Failed",
            "of itself",
            &plain,
        ),
        event(
            "source",
            ("source.toolkit.fluxcd.io/v1", "GitRepository", "fleet"),
            "Failed",
            "of its source",
            &plain,
        ),
        event("other", ("v1", "Pod", "stranger"), "BackOff", "of another", &plain),
        event("group", ("example.com/v1", "Deployment", "web"), "BackOff", "of another kind", &plain),
        event("normal", POD, "Pulled", "no warning", &json!({"type": "Normal"})),
        event("broken", ("v1", "Pod", ""), "BackOff", "of nothing", &plain),
    ]);
    let mut told: Vec<String> = events(&prod, "app").into_iter().map(|row| row.message).collect();
    told.sort();
    assert_eq!(told, ["of a declared object", "of a dependent", "of its source", "of itself"]);
}

#[test]
fn both_forms_of_an_event_are_read_and_one_event_in_both_counts_once() {
    let regarding = json!({"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web-1"});
    let new = |name: &str, note: &str| {
        json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "type": "Warning", "reason": "BackOff", "note": note,
            "metadata": {"namespace": "shop", "name": name}, "regarding": regarding,
            "eventTime": "2026-03-01T11:00:00.000000Z",
            "series": {"count": 12, "lastObservedTime": "2026-03-01T11:59:00.000000Z"},
        })
    };
    let prod = shop(vec![
        event("same", POD, "BackOff", "one event", &json!({"count": 2})),
        new("same", "one event"),
        new("own", "another event"),
    ]);
    let told: Vec<_> = events(&prod, "app").into_iter().map(|row| (row.message, row.count)).collect();
    assert_eq!(told, [("one event".to_owned(), 2), ("another event".to_owned(), 12)]);
}

#[test]
fn events_in_another_namespace_than_their_object_are_ignored() {
    let own = event("a", POD, "BackOff", "own words", &json!({}));
    let mut forged = event("b", POD, "Forged", "words of a stranger", &json!({}));
    forged["metadata"]["namespace"] = json!("tenant");
    let reasons: Vec<_> = events(&shop(vec![own, forged]), "app").into_iter().map(|row| row.reason).collect();
    assert_eq!(reasons, ["BackOff"]);
}

#[test]
fn events_about_the_same_name_elsewhere_are_not_visited() {
    let event = |namespace: &str, about: &str, at: usize| {
        json!({"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "Failed", "message": "x",
            "metadata": {"namespace": namespace, "name": format!("e{at}")},
            "involvedObject": {"kind": about, "namespace": if about == "Node" { "" } else { namespace }, "name": "db-0"}})
    };
    let events: Vec<Value> = (0..50)
        .map(|at| event("aaa", "Pod", at))
        .chain([event("shop", "Pod", 50), event("default", "Node", 51)])
        .collect();
    let cluster = holding("prod", &events);
    let count = |kind: &str, namespace: &str| cluster.events_about(kind, namespace, "db-0").count();
    assert_eq!([count("Pod", "shop"), count("Pod", "web"), count("Node", "")], [1, 0, 1]);
}

/// An app that lists an object which does not carry its mark may come first in the order of rows.
#[test]
fn warnings_belong_to_the_app_that_an_object_confirms() {
    let mut web = object("apps/v1", "Deployment", "web", None);
    web["metadata"]["labels"] =
        json!({"kustomize.toolkit.fluxcd.io/name": "app", "kustomize.toolkit.fluxcd.io/namespace": "shop"});
    let mut objects = vec![web, object("v1", "Pod", "web-1", Some("Deployment-web"))];
    let source = ("source.toolkit.fluxcd.io/v1", "GitRepository", "fleet");
    for namespace in ["aaa", "shop"] {
        let mut lists = kustomization("app", &["shop_web_apps_Deployment".to_owned()]);
        lists["metadata"]["namespace"] = json!(namespace);
        lists["spec"]["sourceRef"] = json!({"kind": "GitRepository", "namespace": "shop", "name": source.2});
        objects.push(lists);
    }
    objects.push(event("a", POD, "BackOff", "of a Pod", &json!({})));
    objects.push(event("b", source, "Failed", "of a source", &json!({})));
    let told = events(&holding("prod", &objects), "app");
    let told: Vec<_> = told.iter().map(|row| (&*row.message, &*row.app.namespace)).collect();
    assert_eq!(told, [("of a Pod", "shop"), ("of a source", "shop")]);
}
