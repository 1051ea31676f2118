//! Tests of patches and new objects, against servers with scripted answers and against a simulated API server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use taffrail_cluster::{
    ApiResource, Cluster, CreateRequest, Deadline, OwnSecret, OwnSecretRead, PatchRequest, PatchType, Reason,
    WriteError, chain,
};
use taffrail_sim::Fleet;
use taffrail_testkit::objects::{self, namespace, with_status_subresource};
use taffrail_testkit::server::{Reply, Server};

use crate::contexts::{LONG, current, reached};

pub(crate) fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
    }
}

pub(crate) fn config_maps() -> ApiResource {
    resource("", "v1", "ConfigMap", "configmaps")
}

fn merge<'a>(resource: &'a ApiResource, name: &'a str, body: &'a [u8]) -> PatchRequest<'a> {
    PatchRequest {
        resource,
        namespace: Some("shop"),
        name,
        subresource: None,
        patch_type: PatchType::Merge,
        body,
        dry_run: false,
    }
}

const SAVED: &str = r#"{"metadata":{"name":"a","namespace":"shop","resourceVersion":"8"},"data":{"k":"v"}}"#;

#[tokio::test]
async fn patch_names_the_field_manager_and_is_counted_once() {
    let server = Server::start(|_| Reply::json(200, SAVED));
    let cluster = reached(&server, LONG).await;
    let resource = config_maps();
    let object = cluster.patch(&merge(&resource, "a/b", br#"{"data":{"k":"v"}}"#)).await.unwrap();
    let object: Value = serde_json::from_slice(object.text()).unwrap();
    assert_eq!((&object["kind"], &object["metadata"]["resourceVersion"]), (&json!("ConfigMap"), &json!("8")));
    let operations = PatchRequest {
        patch_type: PatchType::Json,
        dry_run: true,
        ..merge(&resource, "a", br#"[{"op":"test","path":"/data/k","value":"v"}]"#)
    };
    cluster.patch(&operations).await.unwrap();

    let seen = server.requests();
    assert_eq!(seen[0].method, "PATCH");
    assert_eq!(seen[0].path, "/api/v1/namespaces/shop/configmaps/a%2Fb");
    assert_eq!(seen[0].query, "fieldManager=taffrail&fieldValidation=Strict");
    assert_eq!(seen[0].content_type, "application/merge-patch+json");
    assert_eq!(seen[0].body, br#"{"data":{"k":"v"}}"#);
    assert_eq!(seen[1].query, "fieldManager=taffrail&fieldValidation=Strict&dryRun=All");
    assert_eq!(seen[1].content_type, "application/json-patch+json");
    assert_eq!(cluster.requests().cost.requests, 2);
}

#[tokio::test]
async fn refused_writes_have_a_type_and_a_hint() {
    type Is = fn(&WriteError) -> bool;
    let unknown = r#"strict decoding error: unknown field \"spec.syncPolicy.automated.enabled\""#;
    let denied = r#"admission webhook "w.example.com" denied the request: no owner label"#;
    let webhook = r#"Internal error occurred: failed calling webhook \"w.example.com\": refused"#;
    let cases: Vec<(u16, &str, &str, Is, Reason)> = vec![
        (409, "Conflict", "was modified", |it| matches!(it, WriteError::Conflict { .. }), Reason::Conflict),
        (403, "Forbidden", "may not", |it| matches!(it, WriteError::Forbidden { .. }), Reason::Forbidden),
        (404, "NotFound", "not found", |it| matches!(it, WriteError::NotFound { .. }), Reason::NotFound),
        (422, "Invalid", "spec.x", |it| matches!(it, WriteError::Invalid { .. }), Reason::Invalid),
        (400, "BadRequest", denied, |it| matches!(it, WriteError::Invalid { .. }), Reason::Invalid),
        (403, "Forbidden", denied, |it| matches!(it, WriteError::Invalid { .. }), Reason::Invalid),
        (500, "InternalError", denied, |it| matches!(it, WriteError::Invalid { .. }), Reason::Invalid),
        (400, "BadRequest", unknown, |it| matches!(it, WriteError::UnknownField { .. }), Reason::Invalid),
        (400, "BadRequest", "no", |it| matches!(it, WriteError::Refused(_)), Reason::BadRequest),
        (401, "Unauthorized", "who", |it| matches!(it, WriteError::Refused(_)), Reason::Unauthorized),
        (500, "InternalError", webhook, |it| matches!(it, WriteError::Refused(_)), Reason::ServerError),
        (504, "Timeout", "late", |it| matches!(it, WriteError::Uncertain(_)), Reason::ServerError),
    ];
    for (code, reason, message, is, class) in cases {
        let server = Server::start(move |_| Reply::status(code, reason, message));
        let cluster = reached(&server, LONG).await;
        let error = cluster.patch(&merge(&config_maps(), "a", b"{}")).await.unwrap_err();
        assert!(is(&error), "{code}: {error:?}");
        assert_eq!(error.reason(), class, "{error:?}");
        assert!(!error.hint().is_empty());
        assert!(chain(&error).contains("patch configmaps/a in namespace shop"), "{error}");
        assert_eq!(server.requests().len(), 1, "{code}: a change is not tried again");
    }
}

#[tokio::test]
async fn lost_answer_makes_a_write_uncertain() {
    let scripts: [fn() -> Reply; 4] = [
        || Reply::cut(r#"{"metadata""#),
        || Reply::stuck(r#"{"metadata""#),
        || Reply::Silence,
        || Reply::json(200, r#"{"kind":"Status","metadata":{},"status":"Success"}"#),
    ];
    for script in scripts {
        let server = Server::start(move |_| script());
        let cluster = reached(&server, LONG).await.with_timeout(Duration::from_millis(700));
        let resource = config_maps();
        let error = cluster.patch(&merge(&resource, "a", b"{}")).await.unwrap_err();
        assert!(matches!(error, WriteError::Uncertain(_)), "{error:?}");
        let told = "the API server did not confirm the write, and the change may or may not have been made: \
            patch configmaps/a in namespace shop: ";
        assert!(chain(&error).starts_with(told), "{}", chain(&error));
        assert_eq!(server.requests().len(), 1);
    }
    // Where nobody listens nothing was done.
    let server = Server::start(|_| Reply::Silence);
    let cluster = reached(&server, LONG).await.with_timeout(Duration::from_millis(700));
    let resource = config_maps();
    let dry = PatchRequest { dry_run: true, ..merge(&resource, "a", b"{}") };
    let error = cluster.patch(&dry).await.unwrap_err();
    assert!(matches!(error, WriteError::Refused(_)), "{error:?}");
}

#[tokio::test]
async fn dry_run_with_an_unreadable_answer_is_certain() {
    let server = Server::start(|_| Reply::json(200, r#"{"kind":"Status","metadata":{},"status":"Success"}"#));
    let cluster = reached(&server, LONG).await;
    let resource = config_maps();
    let dry = PatchRequest { dry_run: true, ..merge(&resource, "a", b"{}") };
    let error = cluster.patch(&dry).await.unwrap_err();
    assert!(matches!(error, WriteError::Refused(_)), "{error:?}");
    assert_eq!(error.reason(), Reason::UnexpectedAnswer);
}

#[tokio::test]
async fn write_after_the_deadline_is_not_sent() {
    let server = Server::start(|_| Reply::json(200, SAVED));
    let cluster = reached(&server, LONG).await.with_timeout(Duration::ZERO);
    for dry_run in [false, true] {
        let resource = config_maps();
        let request = PatchRequest { dry_run, ..merge(&resource, "a", b"{}") };
        let error = cluster.patch(&request).await.unwrap_err();
        assert!(matches!(error, WriteError::Refused(_)), "{error:?}");
        assert!(error.to_string().ends_with("gave up before the request was sent"), "{error}");
    }
    assert!(server.requests().is_empty(), "{:?}", server.requests());
}

#[tokio::test]
async fn deferred_writes_are_retried() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::status(429, "TooManyRequests", "later").header("retry-after", "0"),
        _ => Reply::json(200, SAVED),
    });
    let cluster = reached(&server, LONG).await;
    cluster.patch(&merge(&config_maps(), "a", b"{}")).await.unwrap();
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn deferred_writes_wait_though_the_server_asks_for_no_pause() {
    let server = Server::start(|_| Reply::status(429, "TooManyRequests", "later").header("retry-after", "0"));
    let cluster = reached(&server, LONG).await;
    // The time is over before the second request.
    let cluster = cluster.with_timeout(Duration::from_millis(240));
    assert!(cluster.patch(&merge(&config_maps(), "a", b"{}")).await.is_err());
    assert!(server.requests().len() <= 1, "{}", server.requests().len());
}

#[tokio::test]
async fn secrets_are_never_written() {
    let server = Server::start(|_| Reply::json(200, SAVED));
    let cluster = reached(&server, LONG).await;
    let secrets = resource("", "v1", "Secret", "secrets");
    let error = cluster.patch(&merge(&secrets, "a", b"{}")).await.unwrap_err();
    assert!(matches!(error, WriteError::Secret { .. }), "{error:?}");
    assert!(server.requests().is_empty());
}

/// Returns the definition of a kind `Widget` with a status subresource, whose schema has only `spec.suspend` and
/// `status.phase`.
fn definition() -> Value {
    let schema = json!({"type": "object",
        "properties": {"spec": {"type": "object", "properties": {"suspend": {"type": "boolean"}}},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}});
    with_status_subresource(objects::definition("example.com", "v1", "Widget", schema))
}

pub(crate) async fn connect(cluster: &taffrail_sim::Cluster, kubeconfig: &str) -> Cluster {
    let context = current(kubeconfig);
    assert_eq!(context.name(), cluster.name());
    Cluster::connect(&context, Deadline::after(LONG)).await.unwrap()
}

#[tokio::test]
async fn api_server_applies_patches() {
    let fleet = Fleet::builder().controllers(false).start().await.unwrap();
    let sim = fleet.cluster("one").await.unwrap();
    sim.apply(namespace("shop")).unwrap();
    sim.apply(definition()).unwrap();
    sim.apply(json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "web", "namespace": "shop"}, "spec": {"suspend": false}}))
        .unwrap();
    let cluster = connect(&sim, &sim.kubeconfig()).await;
    let widgets = resource("example.com", "v1", "Widget", "widgets");
    let stored = || sim.get("example.com/v1", "Widget", "shop", "web").unwrap();
    let before = stored();

    let suspend = br#"{"spec":{"suspend":true}}"#;
    let dry = PatchRequest { dry_run: true, ..merge(&widgets, "web", suspend) };
    let would: Value = serde_json::from_slice(cluster.patch(&dry).await.unwrap().text()).unwrap();
    assert_eq!(would["spec"]["suspend"], true);
    assert_eq!(stored(), before, "a dry run keeps nothing");

    let now: Value =
        serde_json::from_slice(cluster.patch(&merge(&widgets, "web", suspend)).await.unwrap().text())
            .unwrap();
    assert_eq!((&now["spec"]["suspend"], &stored()["spec"]["suspend"]), (&json!(true), &json!(true)));

    // What was read before is not what is there now.
    let version = before["metadata"]["resourceVersion"].as_str().unwrap();
    let stale = json!({"metadata": {"resourceVersion": version}, "spec": {"suspend": false}}).to_string();
    let error = cluster.patch(&merge(&widgets, "web", stale.as_bytes())).await.unwrap_err();
    assert!(matches!(error, WriteError::Conflict { .. }), "{error:?}");
    let unknown = br#"{"spec":{"pause":true}}"#;
    let error = cluster.patch(&merge(&widgets, "web", unknown)).await.unwrap_err();
    assert!(matches!(error, WriteError::UnknownField { .. }), "{error:?}");
    let error = cluster.patch(&merge(&widgets, "web", br#"{"spec":{"suspend":"yes"}}"#)).await.unwrap_err();
    assert!(matches!(error, WriteError::Invalid { .. }), "{error:?}");
    let error = cluster.patch(&merge(&widgets, "api", suspend)).await.unwrap_err();
    assert!(matches!(error, WriteError::NotFound { .. }), "{error:?}");
    assert_eq!(stored()["spec"], json!({"suspend": true}));

    // Its status is apart: it is written for itself, and with the rest it is left out.
    let status = br#"{"status":{"phase":"Idle"}}"#;
    cluster.patch(&merge(&widgets, "web", status)).await.unwrap();
    assert_eq!(stored().get("status"), None);
    let apart = PatchRequest { subresource: Some("status"), ..merge(&widgets, "web", status) };
    cluster.patch(&apart).await.unwrap();
    assert_eq!(stored()["status"], json!({"phase": "Idle"}));
    let resource = config_maps();
    let apart = PatchRequest { subresource: Some("status"), ..merge(&resource, "a", status) };
    let error = cluster.patch(&apart).await.unwrap_err();
    assert!(matches!(error, WriteError::NotFound { .. }), "{error:?}");

    let alice = sim.add_user("alice", &[]);
    let cluster = connect(&sim, &sim.kubeconfig_for(&alice)).await;
    let error = cluster.patch(&merge(&widgets, "web", suspend)).await.unwrap_err();
    assert!(matches!(error, WriteError::Forbidden { .. }), "{error:?}");
    assert!(error.hint().contains("patch"), "{}", error.hint());
}

#[tokio::test]
async fn api_server_creates_objects_once() {
    let fleet = Fleet::builder().controllers(false).start().await.unwrap();
    let sim = fleet.cluster("one").await.unwrap();
    sim.apply(namespace("shop")).unwrap();
    sim.apply(definition()).unwrap();
    let cluster = connect(&sim, &sim.kubeconfig()).await;
    let widgets = resource("example.com", "v1", "Widget", "widgets");
    let stored = |name: &str| sim.get("example.com/v1", "Widget", "shop", name);
    let made = |name: &str| {
        let metadata = json!({"namespace": "shop", "name": name});
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"suspend": true}})
    };
    let body = made("web").to_string();
    let request =
        CreateRequest { resource: &widgets, namespace: Some("shop"), body: body.as_bytes(), dry_run: true };
    cluster.create(&request).await.unwrap();
    assert_eq!(stored("web"), None, "a dry run keeps nothing");
    let request = CreateRequest { dry_run: false, ..request };
    let answer: Value = serde_json::from_slice(cluster.create(&request).await.unwrap().text()).unwrap();
    assert_eq!(answer["metadata"]["uid"], stored("web").unwrap()["metadata"]["uid"]);
    let error = cluster.create(&request).await.unwrap_err();
    assert!(matches!(error, WriteError::Conflict { .. }), "{error:?}");
    assert!(error.to_string().contains("already exists"), "{error}");

    let mut nameless = made("");
    nameless["metadata"] = json!({"generateName": "night-"});
    let body = nameless.to_string();
    let request = CreateRequest { body: body.as_bytes(), ..request };
    let answer: Value = serde_json::from_slice(cluster.create(&request).await.unwrap().text()).unwrap();
    assert!(answer["metadata"]["name"].as_str().unwrap().starts_with("night-"), "{answer}");

    let secrets = resource("", "v1", "Secret", "secrets");
    let error = cluster.create(&CreateRequest { resource: &secrets, ..request }).await.unwrap_err();
    assert!(matches!(error, WriteError::Secret { .. }), "{error:?}");

    let alice = sim.add_user("alice", &[]);
    let cluster = connect(&sim, &sim.kubeconfig_for(&alice)).await;
    let error = cluster.create(&request).await.unwrap_err();
    assert!(matches!(error, WriteError::Forbidden { .. }), "{error:?}");
    assert!(error.hint().contains("`create`"), "{}", error.hint());
}

#[tokio::test]
async fn own_secret_is_created_once_and_keeps_what_others_wrote() {
    let fleet = Fleet::builder().controllers(false).start().await.unwrap();
    let sim = fleet.cluster("one").await.unwrap();
    sim.apply(namespace("shop")).unwrap();
    let cluster = connect(&sim, &sim.kubeconfig()).await;
    let own = OwnSecret { namespace: "shop", name: "agent", key: "agent.json", ..OwnSecret::default() };
    assert_eq!(cluster.read_own_secret(&own).await.unwrap(), None);
    let first = cluster.write_own_secret(&own, b"first", None).await.unwrap();
    let read = OwnSecretRead { value: Some(b"first".to_vec()), version: first.clone() };
    assert_eq!(cluster.read_own_secret(&own).await.unwrap(), Some(read));

    let mut stored = sim.get("v1", "Secret", "shop", "agent").unwrap();
    assert_eq!(stored["type"], "Opaque");
    stored["data"]["other"] = json!("dmFsdWU=");
    sim.apply(stored).unwrap();
    // Another one that found no Secret, or an earlier version, replaces nothing.
    for earlier in [None, Some(&*first)] {
        let refused = cluster.write_own_secret(&own, b"other", earlier).await.unwrap_err();
        assert!(matches!(refused, WriteError::Conflict { .. }), "{refused:?}");
    }
    let now = cluster.read_own_secret(&own).await.unwrap().unwrap().version;
    let second = cluster.write_own_secret(&own, b"second", Some(&now)).await.unwrap();
    assert!(second != now);
    let stored = sim.get("v1", "Secret", "shop", "agent").unwrap();
    assert_eq!(stored["data"], json!({"agent.json": "c2Vjb25k", "other": "dmFsdWU="}));

    // No other way leads to a Secret.
    let secrets = resource("", "v1", "Secret", "secrets");
    let error = cluster.patch(&merge(&secrets, "agent", b"{}")).await.unwrap_err();
    assert!(matches!(error, WriteError::Secret { .. }), "{error:?}");
}
