//! Writes of single objects: drift, fields of others, take-overs, and what cannot be changed in place.

use serde_json::{Value, json};
use taffrail_apps::sets::ObjectResult;
use taffrail_cluster::{ApiResource, ApplyRequest};
use taffrail_engine::{EngineError, Manifests, Stop, SyncReport, SyncRequest, sync};
use taffrail_plan::sync::RunEnd;
use taffrail_sim::{Cluster, Fault, Fleet, Trouble};

use crate::harness::{Approving, PATIENCE, cluster, manifests, request, watcher};
use crate::stores::connect;

/// A cluster to which manifests are applied.
struct Play {
    sim: Cluster,
    _fleet: Fleet,
}

impl Play {
    async fn start() -> Play {
        let (fleet, sim) = cluster().await;
        Play { sim, _fleet: fleet }
    }

    async fn sync(&self, text: &str) -> Result<SyncReport, EngineError> {
        self.sync_with(text, &request()).await
    }

    async fn sync_with(&self, text: &str, request: &SyncRequest) -> Result<SyncReport, EngineError> {
        let (files, mut caller) = (manifests(text), Approving::default());
        let watcher = watcher(&self.sim.kubeconfig()).await;
        let stop = Stop::default();
        let asked = sync(watcher, request, Manifests::Given(&files), &stop, &mut caller);
        tokio::time::timeout(PATIENCE, asked)
            .await
            .unwrap_or_else(|_| panic!("waits for {:?}", caller.waits_for))
    }

    /// Syncs, and asserts the results.
    #[track_caller]
    fn succeeds(report: Result<SyncReport, EngineError>, wanted: &[ObjectResult]) {
        let report = report.unwrap();
        assert_eq!(report.end, RunEnd::Succeeded, "{report:?}");
        let results: Vec<ObjectResult> = report.objects.iter().map(|it| it.result).collect();
        assert_eq!(results, wanted, "{report:?}");
    }

    fn get(&self, api_version: &str, kind: &str, name: &str) -> Value {
        self.sim.get(api_version, kind, "default", name).unwrap()
    }

    /// Applies an object as another field manager does.
    async fn apply_as(&self, manager: &str, plural: &str, object: Value) {
        let cluster = connect(&self.sim.kubeconfig()).await;
        let api_version = object["apiVersion"].as_str().unwrap();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource {
            group: group.into(),
            version: version.into(),
            kind: object["kind"].as_str().unwrap().into(),
            plural: plural.into(),
            namespaced: true,
        };
        let body = object.to_string();
        let request = ApplyRequest {
            resource: &resource,
            namespace: Some("default"),
            name: object["metadata"]["name"].as_str().unwrap(),
            subresource: None,
            body: body.as_bytes(),
            manager,
            force: true,
            dry_run: false,
            allow_secret: true,
        };
        cluster.apply(&request).await.unwrap();
    }
}

/// Returns the one message about an object that cannot be applied.
#[track_caller]
fn refused(report: Result<SyncReport, EngineError>) -> String {
    match report {
        Err(EngineError::Refused(objects)) if objects.len() == 1 => objects[0].message.clone(),
        other => panic!("{other:?}"),
    }
}

/// Returns the managers of an object with their operations.
fn managers(object: &Value) -> Vec<(String, String)> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    entries.iter().map(|entry| (text(&entry["manager"]), text(&entry["operation"]))).collect()
}

fn config(data: &Value) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop"}, "data": data}).to_string()
}

fn with(object: &str, annotations: &Value) -> String {
    let mut object: Value = serde_json::from_str(object).unwrap();
    object["metadata"]["annotations"] = annotations.clone();
    object.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_set_applied_is_taken_back_and_what_it_never_applied_is_not() {
    let play = Play::start().await;
    Play::succeeds(play.sync(&config(&json!({"a": "1"}))).await, &[ObjectResult::Created]);
    let other = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop"}, "data": data});
    play.apply_as("hand", "configmaps", other(json!({"a": "2", "b": "x"}))).await;
    Play::succeeds(play.sync(&config(&json!({"a": "1"}))).await, &[ObjectResult::Changed]);
    assert_eq!(play.get("v1", "ConfigMap", "shop")["data"], json!({"a": "1", "b": "x"}));
    let wanted = config(&json!({"a": "1", "b": "y"}));
    let before = play.get("v1", "ConfigMap", "shop");
    let message = refused(play.sync(&wanted).await);
    assert!(message.starts_with("data.b is managed by hand;"), "{message}");
    // A second attempt knows as little of the field as the first one.
    refused(play.sync(&wanted).await);
    assert_eq!(play.get("v1", "ConfigMap", "shop"), before);
    let elsewhere = SyncRequest { take_over: vec!["feet".to_owned()], ..request() };
    refused(play.sync_with(&wanted, &elsewhere).await);
    let take_over = SyncRequest { take_over: vec!["hand".to_owned()], ..request() };
    Play::succeeds(play.sync_with(&wanted, &take_over).await, &[ObjectResult::Changed]);
    assert_eq!(play.get("v1", "ConfigMap", "shop")["data"], json!({"a": "1", "b": "y"}));
    let before = play.sim.get("v1", "ConfigMap", "default", "shop").unwrap();
    Play::succeeds(play.sync(&wanted).await, &[ObjectResult::Unchanged]);
    assert_eq!(play.get("v1", "ConfigMap", "shop"), before, "an unchanged object is not written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_of_an_item_that_the_set_applied_is_still_that_of_another_manager() {
    let play = Play::start().await;
    let deployment = |policy: Option<&str>| {
        let mut container = json!({"name": "main", "image": "shop:1"});
        if let Some(policy) = policy {
            container["imagePullPolicy"] = json!(policy);
        }
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"},
            "spec": {"selector": {"matchLabels": {"app": "shop"}},
                "template": {"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": [container]}}}})
    };
    Play::succeeds(play.sync(&deployment(None).to_string()).await, &[ObjectResult::Created]);
    let by_hand = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"},
        "spec": {"template": {"spec": {"containers": [{"name": "main", "imagePullPolicy": "Always"}]}}}});
    play.apply_as("hand", "deployments", by_hand).await;
    let message = refused(play.sync(&deployment(Some("Never")).to_string()).await);
    let path = "spec.template.spec.containers[name=\"main\"].imagePullPolicy is managed by hand;";
    assert!(message.starts_with(path), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_of_a_kind_without_a_schema_is_still_that_of_another_manager() {
    let play = Play::start().await;
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList", "singular": "widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    play.sim.apply(definition).unwrap();
    let widget = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "shop"}, "spec": spec});
    Play::succeeds(play.sync(&widget(json!({"size": {"x": 1}})).to_string()).await, &[ObjectResult::Created]);
    play.apply_as("hand", "widgets", widget(json!({"size": {"x": 2, "y": 1}, "colour": "red"}))).await;
    let wanted = widget(json!({"size": {"x": 1, "y": 2}, "colour": "blue"}));
    let message = refused(play.sync(&wanted.to_string()).await);
    assert!(
        message.starts_with("spec.colour is managed by hand, spec.size.y is managed by hand;"),
        "{message}"
    );
    assert_eq!(play.get("example.com/v1", "Widget", "shop")["spec"]["size"]["x"], 2, "nothing is written");
    Play::succeeds(play.sync(&widget(json!({"size": {"x": 1}})).to_string()).await, &[ObjectResult::Changed]);
    assert_eq!(
        play.get("example.com/v1", "Widget", "shop")["spec"],
        json!({"size": {"x": 1, "y": 1}, "colour": "red"})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_apply_makes_no_claim_to_the_fields_of_others() {
    let play = Play::start().await;
    Play::succeeds(play.sync(&config(&json!({"a": "1"}))).await, &[ObjectResult::Created]);
    // The second run keeps its manifests, and fails before it applies the object.
    let hook = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "before",
        "annotations": {"argocd.argoproj.io/hook": "PreSync"}},
        "spec": {"backoffLimit": 0, "template": {"metadata": {"annotations": {"taffrail.dev/simulate": "exit-1"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "hook:1"}]}}}});
    let policy = taffrail_plan::sync::RunPolicy {
        deadline: Some(jiff::SignedDuration::from_secs(2)),
        ..request().policy
    };
    let short = SyncRequest { policy, ..request() };
    let wanted = config(&json!({"a": "1", "b": "y"}));
    let report = play.sync_with(&format!("{hook}\n---\n{wanted}"), &short).await.unwrap();
    assert!(matches!(report.end, RunEnd::Failed(_)), "{report:?}");
    let by_hand =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop"}, "data": {"b": "x"}});
    play.apply_as("hand", "configmaps", by_hand).await;
    let message = refused(play.sync(&wanted).await);
    assert!(message.starts_with("data.b is managed by hand;"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_three_fields_of_others_are_named() {
    let play = Play::start().await;
    let data = |value: &str| json!({"a": value, "b": value, "c": value, "d": value, "e": value});
    let by_hand =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop"}, "data": data("x")});
    play.apply_as("hand", "configmaps", by_hand).await;
    let message = refused(play.sync(&config(&data("y"))).await);
    assert!(message.contains("data.c is managed by hand, and 2 further fields of others;"), "{message}");
    assert!(!message.contains("data.d"), "{message}");
    let forced = SyncRequest { force_conflicts: true, ..request() };
    Play::succeeds(play.sync_with(&config(&data("y")), &forced).await, &[ObjectResult::Changed]);
}

/// Returns an object as `kubectl apply` on the client's side leaves it.
fn by_client(kind: &str, data: &Value) -> Value {
    let last =
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "shop"}, "data": data}).to_string();
    json!({"apiVersion": "v1", "kind": kind, "data": data, "metadata": {"name": "shop", "namespace": "default",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": last}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kubectl_applied_is_taken_over_before_the_first_apply_only() {
    let play = Play::start().await;
    let manager = "kubectl-client-side-apply";
    let old = json!({"a": "1", "b": "1"});
    play.sim.apply_by(by_client("ConfigMap", &old), manager, "").unwrap();
    Play::succeeds(play.sync(&config(&json!({"a": "2"}))).await, &[ObjectResult::Changed]);
    let live = play.get("v1", "ConfigMap", "shop");
    assert_eq!(live["data"], json!({"a": "2"}), "a field that is not declared any more is removed");
    assert_eq!(managers(&live), [("taffrail".to_owned(), "Apply".to_owned())]);
    // From now on it is a manager as any other.
    play.sim.apply_by(by_client("ConfigMap", &json!({"a": "2", "c": "x"})), manager, "").unwrap();
    let message = refused(play.sync(&config(&json!({"a": "2", "c": "y"}))).await);
    assert!(message.starts_with("data.c is managed by kubectl-client-side-apply;"), "{message}");
    Play::succeeds(play.sync(&config(&json!({"a": "3"}))).await, &[ObjectResult::Changed]);
    assert_eq!(play.get("v1", "ConfigMap", "shop")["data"], json!({"a": "3", "c": "x"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_kubectl_applied_loses_what_is_not_declared() {
    let play = Play::start().await;
    let old = json!({"password": "aHVudGVyMg==", "old": "aHVudGVyMg=="});
    play.sim.apply_by(by_client("Secret", &old), "kubectl-client-side-apply", "").unwrap();
    let wanted = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop"},
        "data": {"password": "aHVudGVyMw=="}});
    Play::succeeds(play.sync(&wanted.to_string()).await, &[ObjectResult::Changed]);
    let live = play.get("v1", "Secret", "shop");
    assert_eq!(live["data"], json!({"password": "aHVudGVyMw=="}));
    let copy = &live["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    assert!(copy.is_null(), "the copy with the old values goes, too");
}

fn job(image: &str) -> String {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "shop"},
        "spec": {"template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": image}]}}}})
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_change_in_place_is_replaced_only_where_that_is_allowed() {
    let play = Play::start().await;
    Play::succeeds(play.sync(&job("job:1")).await, &[ObjectResult::Created]);
    let uid = || play.get("batch/v1", "Job", "shop")["metadata"]["uid"].clone();
    let first = uid();
    let message = refused(play.sync(&job("job:2")).await);
    assert!(message.contains("field is immutable") && message.contains("--force"), "{message}");
    assert_eq!(uid(), first);
    let force = SyncRequest { replaces: true, ..request() };
    Play::succeeds(play.sync_with(&job("job:2"), &force).await, &[ObjectResult::Replaced]);
    let second = uid();
    assert_ne!(second, first);
    for (key, value, image) in [
        ("argocd.argoproj.io/sync-options", "Force=true", "job:3"),
        ("kustomize.toolkit.fluxcd.io/force", "enabled", "job:4"),
    ] {
        let before = uid();
        let wanted = with(&job(image), &json!({key: value}));
        Play::succeeds(play.sync(&wanted).await, &[ObjectResult::Replaced]);
        assert_ne!(uid(), before, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_not_deleted_for_one_that_cannot_be_created() {
    let play = Play::start().await;
    Play::succeeds(play.sync(&job("job:1")).await, &[ObjectResult::Created]);
    let before = play.get("batch/v1", "Job", "shop");
    let force = SyncRequest { replaces: true, ..request() };
    let message = refused(play.sync_with(&job(""), &force).await);
    assert!(message.contains("containers[0].image"), "{message}");
    assert!(!message.contains("dry-run"), "{message}");
    assert_eq!(play.get("batch/v1", "Job", "shop")["metadata"]["uid"], before["metadata"]["uid"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_only_created_is_left_as_it_is() {
    let play = Play::start().await;
    let once = json!({"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"});
    Play::succeeds(play.sync(&with(&config(&json!({"a": "1"})), &once)).await, &[ObjectResult::Created]);
    let by_hand =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop"}, "data": {"a": "2"}});
    play.apply_as("hand", "configmaps", by_hand).await;
    Play::succeeds(play.sync(&with(&config(&json!({"a": "3"})), &once)).await, &[ObjectResult::Unchanged]);
    assert_eq!(play.get("v1", "ConfigMap", "shop")["data"], json!({"a": "2"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_message_quotes_a_secret() {
    let play = Play::start().await;
    let secret = |value: &str, kind: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop"}, "type": kind,
            "stringData": {"password": value}})
        .to_string()
    };
    Play::succeeds(play.sync(&secret("hunter2", "Opaque")).await, &[ObjectResult::Created]);
    let message = refused(play.sync(&secret("hunter3", "example.com/other")).await);
    assert!(!message.contains("hunter"), "{message}");
    let by_hand = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}, "data": {"a": "aHVudGVyMg=="}});
    play.apply_as("hand", "secrets", by_hand).await;
    let other = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}, "data": {"a": "aHVudGVyMw=="}});
    let both = format!("{}\n---\n{other}", secret("hunter2", "Opaque"));
    let message = refused(play.sync(&both).await);
    assert!(message.starts_with("data.a is managed by hand;") && !message.contains("aHVudGVy"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_tried_again() {
    let play = Play::start().await;
    play.sim.fault(
        Fault::new(Trouble::ServerError("boom".to_owned()))
            .verb("patch")
            .resource("configmaps")
            .path("/api/v1/namespaces/default/configmaps/shop")
            .times(1),
    );
    let text = config(&json!({"a": "1"}));
    // The dry run is refused: nothing is begun.
    assert!(play.sync(&text).await.is_err());
    Play::succeeds(play.sync(&text).await, &[ObjectResult::Created]);
    play.sim.fault(
        Fault::new(Trouble::Cut(10))
            .verb("patch")
            .resource("configmaps")
            .path("/api/v1/namespaces/default/configmaps/shop")
            .times(1),
    );
    let _ = play.sync(&config(&json!({"a": "2"}))).await;
    let report = play.sync(&config(&json!({"a": "2"}))).await.unwrap();
    assert_eq!(report.end, RunEnd::Succeeded, "{report:?}");
    assert_eq!(play.get("v1", "ConfigMap", "shop")["data"], json!({"a": "2"}));
}
