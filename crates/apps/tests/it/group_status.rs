//! The status of a ResourceGroup that an agent writes, and that Taffrail never takes for the tool's.

use serde_json::{Value, json};
use taffrail_apps::{
    App, GroupStatusOwner, GroupStatusTooLarge, Scope, Snapshot, SyncState, group_status, group_status_owner,
    has_group_status,
};
use taffrail_object::{GroupKind, Object};
use taffrail_status::Status;

use super::dump::{NOW, apps_of, document, holding};

const AGENT: &str = "taffrail-agent";

fn entry(group: &str, kind: &str, name: &str) -> Value {
    json!({"group": group, "kind": kind, "namespace": "shop", "name": name})
}

fn group(name: &str, resources: &[Value]) -> Value {
    json!({
        "apiVersion": "kpt.dev/v1alpha1", "kind": "ResourceGroup",
        "metadata": {"namespace": "shop", "name": name, "generation": 3, "uid": "u", "resourceVersion": "7"},
        "spec": {"resources": resources},
    })
}

fn settings(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": name}})
}

/// A Deployment whose rollout failed.
fn failed(name: &str, message: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": name, "generation": 1},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "conditions": [
            {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": message}]},
    })
}

fn status_of(snapshot: &Snapshot, name: &str) -> Result<Option<Value>, GroupStatusTooLarge> {
    let list = apps_of(snapshot);
    let find = |namespace: &str, name: &str| -> Option<&App> {
        list.apps.iter().find(|app| app.app.namespace == namespace && app.app.name == name)
    };
    let app = find("shop", name).unwrap();
    let key = app.declaring.clone().unwrap();
    let observed = taffrail_status::ClusterState::get(snapshot, key.as_ref()).present().unwrap();
    group_status(&observed.object, app, snapshot, &find, NOW)
}

fn written(objects: &[Value], name: &str) -> Value {
    status_of(&holding("prod", objects), name).unwrap().unwrap()
}

fn conditions(stalled: &str, reason: &str, message: &str) -> Value {
    json!([
        {"type": "Reconciling", "status": "False", "reason": "FinishReconciling",
            "message": "finish reconciling (observed by the Taffrail agent)", "lastTransitionTime": "2026-03-01T12:00:00Z"},
        {"type": "Stalled", "status": stalled, "reason": reason,
            "message": format!("{message} (observed by the Taffrail agent)"), "lastTransitionTime": "2026-03-01T12:00:00Z"},
    ])
}

#[test]
fn status_has_the_verdict_of_each_object_in_the_shape_of_the_controller() {
    let listed = [
        entry("", "ConfigMap", "settings"),
        entry("apps", "Deployment", "web"),
        entry("", "ConfigMap", "gone"),
        entry("", "ConfigMap", "settings"),
    ];
    let objects = [group("inventory", &listed), settings("settings"), failed("web", "no image")];
    let with = |mut entry: Value, status: &str| {
        entry["status"] = json!(status);
        entry
    };
    let mut web = with(listed[1].clone(), "Failed");
    web["conditions"] = json!([{"type": "Stalled", "status": "True", "reason": "ProgressDeadlineExceeded",
        "message": "Progress deadline exceeded", "lastTransitionTime": "2026-03-01T12:00:00Z"}]);
    let expected = json!({
        "observedGeneration": 3,
        "conditions": conditions(
            "True", "ComponentFailed", "The following components failed:apps/Deployment/shop/web"),
        "resourceStatuses": [with(listed[0].clone(), "Current"), web, with(listed[2].clone(), "NotFound")],
    });
    assert_eq!(written(&objects, "inventory"), expected);
}

#[test]
fn status_that_the_object_has_is_not_written_again() {
    let listed = [entry("", "ConfigMap", "settings"), entry("apps", "Deployment", "web")];
    let mut own = group("inventory", &listed);
    own["status"] = written(&[own.clone(), settings("settings"), failed("web", "no image")], "inventory");
    let again = |own: &Value, more: &[Value]| {
        let objects = [&[own.clone(), settings("settings")], more].concat();
        status_of(&holding("prod", &objects), "inventory").unwrap()
    };
    assert_eq!(again(&own, &[failed("web", "no image")]), None);
    // The text of a message alone is no transition.
    let mut earlier = own.clone();
    earlier["status"]["resourceStatuses"][1]["conditions"][0]["message"] = json!("1 of 2 failed");
    earlier["status"]["resourceStatuses"][1]["conditions"][0]["lastTransitionTime"] =
        json!("2026-02-01T00:00:00Z");
    assert_eq!(again(&earlier, &[failed("web", "no image")]), None);
    // A new generation, another status, and an object that is gone are.
    let mut newer = own.clone();
    newer["metadata"]["generation"] = json!(4);
    let status = again(&newer, &[failed("web", "no image")]).unwrap();
    assert_eq!(
        (&status["observedGeneration"], &status["conditions"]),
        (&json!(4), &own["status"]["conditions"])
    );
    assert_eq!(again(&own, &[]).unwrap()["resourceStatuses"][1]["status"], "NotFound");
    // A list that has become empty is taken away, and only once.
    let mut emptied = own.clone();
    emptied["spec"] = json!({});
    let status = again(&emptied, &[]).unwrap();
    assert_eq!(status["resourceStatuses"], Value::Null);
    emptied["status"] = json!({"observedGeneration": 3, "conditions": status["conditions"]});
    assert_eq!(again(&emptied, &[]), None);
    // One that is being deleted has no use for it.
    let mut deleted = newer;
    deleted["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:00:00Z");
    assert_eq!(again(&deleted, &[]), None);
}

#[test]
fn objects_that_were_not_observed_just_now_are_unknown() {
    let listed = [
        entry("", "ConfigMap", "settings"),
        entry("apps", "Deployment", "web"),
        json!({"group": "", "kind": "", "namespace": "shop", "name": "x"}),
    ];
    let mut snapshot =
        holding("prod", &[group("inventory", &listed), settings("settings"), failed("web", "no image")]);
    let kind = GroupKind { group: "apps".to_owned(), kind: "Deployment".to_owned() };
    snapshot.set_stale_scopes(vec![(Scope::Kind { kind, namespace: None }, NOW)]);
    let status = status_of(&snapshot, "inventory").unwrap().unwrap();
    let statuses: Vec<&Value> =
        status["resourceStatuses"].as_array().unwrap().iter().map(|it| &it["status"]).collect();
    assert_eq!(statuses, ["Current", "Unknown", "Unknown"]);
    let expected = "The status of the following components is not known:apps/Deployment/shop/web, //shop/x";
    assert_eq!(status["conditions"], conditions("Unknown", "ComponentUnknown", expected));
    // Without the group itself nothing is certain.
    let kind = GroupKind { group: "kpt.dev".to_owned(), kind: "ResourceGroup".to_owned() };
    snapshot.set_stale_scopes(vec![(Scope::Kind { kind, namespace: None }, NOW)]);
    assert_eq!(status_of(&snapshot, "inventory"), Ok(None));
}

#[test]
fn subgroups_have_the_worst_status_of_their_packages_and_of_those_below() {
    let below = |name: &str, resources: &[Value], subgroup: &str| {
        let mut group = group(name, resources);
        group["spec"]["subgroups"] = json!([{"namespace": "shop", "name": subgroup}]);
        // What an agent wrote before is old.
        group["status"] =
            json!({"observedGeneration": 1, "conditions": conditions("False", "FinishReconciling", "")});
        group
    };
    let top = below("top", &[], "middle");
    let middle = below("middle", &[entry("", "ConfigMap", "settings")], "low");
    // A circle ends, too.
    let low = below("low", &[entry("apps", "Deployment", "web")], "middle");
    let objects = |web: Value| [top.clone(), middle.clone(), low.clone(), settings("settings"), web];
    let status = written(&objects(failed("web", "")), "top");
    let entry = |status: &str| json!([{"namespace": "shop", "name": "middle", "status": status}]);
    assert_eq!(status["subgroupStatuses"], entry("Failed"));
    let status = written(&objects(settings("other")), "top");
    assert_eq!(status["subgroupStatuses"], entry("NotFound"));
    assert_eq!(
        status["conditions"][1]["status"], "False",
        "as that controller, which asks its resources alone"
    );
}

#[test]
fn messages_and_sizes_are_bounded() {
    let names: Vec<String> = (0..50).map(|number| format!("web-{number}")).collect();
    let listed: Vec<Value> = names.iter().map(|name| entry("apps", "Deployment", name)).collect();
    let mut objects: Vec<Value> = names.iter().map(|name| failed(name, &"x".repeat(10_000))).collect();
    objects.push(group("inventory", &listed));
    let status = written(&objects, "inventory");
    let message = status["conditions"][1]["message"].as_str().unwrap();
    assert!(message.contains("web-19, and 30 more (observed"), "{message}");
    assert!(status.to_string().len() < 100_000, "{}", status.to_string().len());
    let listed: Vec<Value> =
        (0..9000).map(|number| entry("", "ConfigMap", &format!("long-name-{number}"))).collect();
    assert_eq!(
        status_of(&holding("prod", &[group("inventory", &listed)]), "inventory"),
        Err(GroupStatusTooLarge)
    );
}

#[test]
fn owner_of_a_status_is_known_by_its_managed_fields() {
    let managed = |manager: &str, fields: Value| json!({"manager": manager, "operation": "Update", "fieldsV1": fields, "subresource": "status"});
    let owner = |status: Value, entries: Value| {
        let mut group = group("inventory", &[]);
        (group["status"], group["metadata"]["managedFields"]) = (status, entries);
        let document = document(&group);
        group_status_owner(&Object::new(document.root()).unwrap(), AGENT)
    };
    let (some, whole) = (json!({"observedGeneration": 1}), json!({"f:status": {"f:observedGeneration": {}}}));
    let spec = managed("kpt", json!({"f:spec": {"f:resources": {}}}));
    assert_eq!(owner(Value::Null, json!([spec])), GroupStatusOwner::Nobody);
    assert_eq!(owner(json!({"conditions": []}), Value::Null), GroupStatusOwner::Nobody);
    assert_eq!(owner(some.clone(), json!([spec, managed(AGENT, whole.clone())])), GroupStatusOwner::Own);
    assert_eq!(owner(some.clone(), Value::Null), GroupStatusOwner::NotRecorded);
    let both =
        json!([managed(AGENT, whole), managed("kpt", json!({"f:status": {"f:resourceStatuses": {}}}))]);
    assert_eq!(owner(some, both), GroupStatusOwner::Other("kpt".to_owned()));
}

#[test]
fn statuses_that_the_server_keeps_are_recognised() {
    let own = group("inventory", &[entry("", "ConfigMap", "gone")]);
    let status = written(std::slice::from_ref(&own), "inventory");
    let kept = |change: &dyn Fn(&mut Value)| {
        let mut object = own.clone();
        object["status"] = status.clone();
        change(&mut object["status"]);
        let document = document(&object);
        has_group_status(&Object::new(document.root()).unwrap(), &status)
    };
    assert!(kept(&|_| {}));
    assert!(!kept(&|status| drop(status.as_object_mut().unwrap().remove("resourceStatuses"))));
}

#[test]
fn what_the_agent_wrote_says_nothing_of_the_tool() {
    let listed = [entry("", "ConfigMap", "settings")];
    let row = |status: Option<Value>| {
        let mut own = group("inventory", &listed);
        own["status"] = status.unwrap_or_default();
        apps_of(&holding("prod", &[own, settings("settings")])).apps.remove(0)
    };
    let mut old = written(&[group("inventory", &listed)], "inventory");
    let bare = row(None);
    assert_eq!((bare.sync.state, &*bare.message), (SyncState::Unknown, ""));
    let own = row(Some(old.clone()));
    assert_eq!((own.sync.state, &*own.message), (SyncState::Unknown, ""));
    old["resourceStatuses"] = Value::Null;
    assert_eq!(row(Some(old.clone())).sync.state, SyncState::Unknown);
    // kpt has told since what it applied, and left the conditions as they were.
    let mut applied = listed[0].clone();
    for (field, word) in
        [("status", "Unknown"), ("strategy", "Apply"), ("actuation", "Succeeded"), ("reconcile", "Succeeded")]
    {
        applied[field] = json!(word);
    }
    old["resourceStatuses"] = json!([applied]);
    let both = row(Some(old.clone()));
    assert_eq!((both.sync.state, &*both.message), (SyncState::Synced, ""));
    // Config Sync's controller replaces the conditions.
    old["conditions"][0]["message"] = json!("finish reconciling");
    let theirs = row(Some(old));
    assert_eq!((theirs.health, &*theirs.message), (Status::Current, "finish reconciling"));
}
