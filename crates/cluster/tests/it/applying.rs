//! Tests of applies and deletions, against servers with scripted answers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use taffrail_cluster::{
    ApiResource, ApplyRequest, DeleteOutcome, DeletePropagation, DeleteRequest, FieldConflict, FieldOwner,
    ManagersRequest, Reason, WriteError, chain,
};
use taffrail_sim::{Fleet, Trouble};
use taffrail_testkit::objects::namespace;
use taffrail_testkit::server::{Reply, Server};

use crate::contexts::{LONG, reached};
use crate::writing::{config_maps, connect, resource};

fn wanted<'a>(resource: &'a ApiResource, body: &'a [u8]) -> ApplyRequest<'a> {
    ApplyRequest {
        resource,
        namespace: Some("shop"),
        name: "a",
        subresource: None,
        body,
        manager: "taffrail-sync",
        force: false,
        dry_run: false,
        allow_secret: false,
    }
}

fn unwanted(resource: &ApiResource) -> DeleteRequest<'_> {
    DeleteRequest {
        resource,
        namespace: Some("shop"),
        name: "a",
        uid: None,
        resource_version: None,
        propagation: None,
        dry_run: false,
        allow_secret: false,
    }
}

fn secrets() -> ApiResource {
    resource("", "v1", "Secret", "secrets")
}

const SAVED: &str = r#"{"metadata":{"name":"a","namespace":"shop","resourceVersion":"8"},"data":{"k":"v"}}"#;

/// A value that no error of a Secret may show.
const CANARY: &str = "Y2FuYXJ5LTk5";

#[tokio::test]
async fn apply_names_its_manager_and_asks_for_force_and_dry_run() {
    let server = Server::start(|_| Reply::json(200, SAVED));
    let cluster = reached(&server, LONG).await;
    let (resource, body) = (config_maps(), br#"{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"v"}}"#);
    let object = cluster.apply(&wanted(&resource, body)).await.unwrap();
    let object: Value = serde_json::from_slice(object.text()).unwrap();
    assert_eq!((&object["kind"], &object["metadata"]["resourceVersion"]), (&json!("ConfigMap"), &json!("8")));
    let forced = ApplyRequest {
        name: "a/b",
        subresource: Some("status"),
        manager: "a sync&er",
        force: true,
        dry_run: true,
        ..wanted(&resource, body)
    };
    cluster.apply(&forced).await.unwrap();

    let seen = server.requests();
    assert_eq!((seen[0].method.as_str(), &*seen[0].content_type), ("PATCH", "application/apply-patch+yaml"));
    assert_eq!(seen[0].path, "/api/v1/namespaces/shop/configmaps/a");
    assert_eq!(seen[0].query, "fieldManager=taffrail-sync&fieldValidation=Strict");
    assert_eq!(seen[0].body, body);
    assert_eq!(seen[1].path, "/api/v1/namespaces/shop/configmaps/a%2Fb/status");
    let query = "fieldManager=a%20sync%26er&fieldValidation=Strict&force=true&dryRun=All";
    assert_eq!(seen[1].query, query);
}

#[tokio::test]
async fn conflicts_of_an_apply_name_fields_and_owners() {
    let cause = |field: &str, message: &str| json!({"reason": "FieldManagerConflict", "field": field, "message": message});
    let server = Server::start(move |_| {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409,
        "message": "Apply failed with 2 conflicts: conflicts with \"kubectl\" using v1:\n- .data.k",
        "details": {"causes": [
            cause(".data.k", "conflict with \"kubectl\" using v1"),
            cause(".data.l", "conflict with \"argocd\""),
            {"reason": "FieldValueInvalid", "field": ".data", "message": "no"},
        ]}});
        Reply::json(409, status.to_string())
    });
    let cluster = reached(&server, LONG).await;
    let error = cluster.apply(&wanted(&config_maps(), b"{}")).await.unwrap_err();
    assert_eq!(error.reason(), Reason::Conflict);
    let WriteError::FieldConflict { what, message, conflicts } = error else { panic!("{error:?}") };
    assert_eq!(what, "apply configmaps/a in namespace shop");
    assert!(message.ends_with("using v1: - .data.k"), "{message}");
    let conflict = |path: &str, message: &str, manager: &str, version: Option<&str>| FieldConflict {
        path: path.to_owned(),
        message: message.to_owned(),
        owner: Some(FieldOwner {
            manager: manager.to_owned(),
            subresource: None,
            updated_version: version.map(str::to_owned),
        }),
    };
    let expected = [
        conflict(".data.k", "conflict with \"kubectl\" using v1", "kubectl", Some("v1")),
        conflict(".data.l", "conflict with \"argocd\"", "argocd", None),
    ];
    assert_eq!(conflicts, expected);
}

#[tokio::test]
async fn other_conflicts_of_an_apply_are_those_of_versions() {
    let server = Server::start(|_| Reply::status(409, "Conflict", "the object has been modified"));
    let cluster = reached(&server, LONG).await;
    let error = cluster.apply(&wanted(&config_maps(), b"{}")).await.unwrap_err();
    assert!(matches!(error, WriteError::Conflict { .. }), "{error:?}");
}

#[tokio::test]
async fn applied_object_that_does_not_fit_its_schema_is_certainly_refused() {
    let undeclared = "failed to create typed patch object (shop/a; /v1, Kind=ConfigMap): .dat: field not declared in schema";
    let mistyped =
        "failed to create typed patch object (shop/a; /v1, Kind=ConfigMap): .data: expected map, got &{[1]}";
    for (message, is_unknown) in [(undeclared, true), (mistyped, false)] {
        let server = Server::start(move |_| Reply::status(500, "", message));
        let cluster = reached(&server, LONG).await;
        let error = cluster.apply(&wanted(&config_maps(), b"{}")).await.unwrap_err();
        assert_eq!(matches!(error, WriteError::UnknownField { .. }), is_unknown, "{error:?}");
        assert_eq!(matches!(error, WriteError::Invalid { .. }), !is_unknown, "{error:?}");
    }
}

#[tokio::test]
async fn apply_or_deletion_without_an_answer_is_uncertain_and_sent_once() {
    let server = Server::start(|_| Reply::cut(r#"{"metadata""#));
    let cluster = reached(&server, LONG).await.with_timeout(Duration::from_secs(5));
    let resource = config_maps();
    let error = cluster.apply(&wanted(&resource, b"{}")).await.unwrap_err();
    assert!(matches!(error, WriteError::Uncertain(_)), "{error:?}");
    let error = cluster.delete(&unwanted(&resource)).await.unwrap_err();
    assert!(matches!(error, WriteError::Uncertain(_)), "{error:?}");
    let dry = ApplyRequest { dry_run: true, ..wanted(&resource, b"{}") };
    let error = cluster.apply(&dry).await.unwrap_err();
    assert!(matches!(error, WriteError::Refused(_)), "{error:?}");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn deferred_applies_are_retried() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::status(429, "TooManyRequests", "later").header("retry-after", "0"),
        _ => Reply::json(201, SAVED),
    });
    let cluster = reached(&server, LONG).await;
    cluster.apply(&wanted(&config_maps(), b"{}")).await.unwrap();
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn deletion_sends_preconditions_policy_and_dry_run() {
    let server =
        Server::start(|_| Reply::json(200, r#"{"kind":"Status","apiVersion":"v1","status":"Success"}"#));
    let cluster = reached(&server, LONG).await;
    let resource = config_maps();
    assert!(matches!(cluster.delete(&unwanted(&resource)).await.unwrap(), DeleteOutcome::Gone));
    let exact = DeleteRequest {
        uid: Some("1-2"),
        resource_version: Some("7"),
        propagation: Some(DeletePropagation::Orphan),
        dry_run: true,
        ..unwanted(&resource)
    };
    cluster.delete(&exact).await.unwrap();
    let seen = server.requests();
    assert_eq!((seen[0].method.as_str(), &*seen[0].path), ("DELETE", "/api/v1/namespaces/shop/configmaps/a"));
    let sent: Vec<Value> = seen.iter().map(|it| serde_json::from_slice(&it.body).unwrap()).collect();
    assert_eq!(sent[0], json!({"apiVersion": "v1", "kind": "DeleteOptions"}));
    let expected = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan", "dryRun": ["All"],
        "preconditions": {"uid": "1-2", "resourceVersion": "7"}});
    assert_eq!(sent[1], expected);
}

#[tokio::test]
async fn deletion_tells_whether_the_object_is_gone() {
    let marked = json!({"metadata": {"name": "a", "deletionTimestamp": "2026-03-01T12:00:00Z", "finalizers": ["x/y"]}});
    let gone = json!({"metadata": {"name": "a"}, "status": {"phase": "Active"}});
    for (answer, is_gone) in [(marked, false), (gone, true)] {
        let server = Server::start(move |_| Reply::json(200, answer.to_string()));
        let cluster = reached(&server, LONG).await;
        let outcome = cluster.delete(&unwanted(&config_maps())).await.unwrap();
        assert_eq!(matches!(outcome, DeleteOutcome::Gone), is_gone, "{outcome:?}");
    }
    let server = Server::start(|_| Reply::status(403, "Forbidden", "may not"));
    let cluster = reached(&server, LONG).await;
    let error = cluster.delete(&unwanted(&config_maps())).await.unwrap_err();
    assert!(error.hint().contains("`delete`"), "{}", error.hint());
    let server = Server::start(|_| Reply::json(200, r#"{"kind":"Status","status":"Failure"}"#));
    let cluster = reached(&server, LONG).await;
    let error = cluster.delete(&unwanted(&config_maps())).await.unwrap_err();
    assert!(matches!(error, WriteError::Uncertain(_)), "{error:?}");
}

#[tokio::test]
async fn secrets_are_applied_and_deleted_only_if_the_request_allows_it() {
    let server = Server::start(|_| Reply::json(200, SAVED));
    let cluster = reached(&server, LONG).await;
    let resource = secrets();
    let error = cluster.apply(&wanted(&resource, b"{}")).await.unwrap_err();
    assert!(matches!(error, WriteError::Secret { .. }), "{error:?}");
    let error = cluster.delete(&unwanted(&resource)).await.unwrap_err();
    assert!(matches!(error, WriteError::Secret { .. }), "{error:?}");
    assert!(server.requests().is_empty());

    let body = format!(r#"{{"data":{{"k":"{CANARY}"}}}}"#);
    let allowed = ApplyRequest { allow_secret: true, ..wanted(&resource, body.as_bytes()) };
    cluster.apply(&allowed).await.unwrap();
    cluster.delete(&DeleteRequest { allow_secret: true, ..unwanted(&resource) }).await.unwrap();
    assert_eq!(server.requests().len(), 2);
    let bytes = format!("{:?}", body.as_bytes());
    let shown = format!("{allowed:?}");
    assert!(!shown.contains(CANARY) && !shown.contains(bytes.trim_matches(['[', ']'])), "{shown}");
}

#[tokio::test]
async fn errors_of_a_secret_quote_no_value() {
    let quoting = [
        (422, "Invalid", format!("Secret \"a\" is invalid: data[k]: Invalid value: \"{CANARY}\": no")),
        (400, "BadRequest", format!("admission webhook \"w\" denied the request: {CANARY} is weak")),
        (400, "BadRequest", format!("unknown field \"{CANARY}\"")),
        (400, "BadRequest", format!("cannot read {CANARY}")),
        (403, "Forbidden", format!("secrets \"a\" is forbidden: policy 'p' denied request: {CANARY}")),
        (500, "", format!("failed to create typed patch object (shop/a): .data.k: got {CANARY}")),
        (500, "InternalError", format!("failed calling webhook \"w\": {CANARY}")),
        (503, "ServiceUnavailable", CANARY.to_owned()),
    ];
    let replies = quoting.into_iter().map(|(code, reason, message)| {
        (code, Reply::status(code, reason, &message), Reply::status(code, reason, &message))
    });
    let plain =
        |code, text: String| Reply::Whole(code, vec![("content-type", "text/html".to_owned())], text.into());
    let broken = [
        (200, plain(200, format!("data: {CANARY}")), plain(200, format!("data: {CANARY}"))),
        (418, plain(418, format!("data: {CANARY}")), plain(418, format!("data: {CANARY}"))),
        (
            200,
            Reply::json(200, format!("{{\"{CANARY}\" 1}}")),
            Reply::json(200, format!("{{\"{CANARY}\" 1}}")),
        ),
        (
            200,
            Reply::json(200, format!("{{\"kind\":\"{CANARY}\"}}")),
            Reply::json(200, format!("{{\"kind\":\"{CANARY}\"}}")),
        ),
    ];
    let resource = secrets();
    for (code, first, second) in replies.chain(broken) {
        let answers = std::sync::Mutex::new(vec![second, first]);
        let server = Server::start(move |_| answers.lock().unwrap().pop().unwrap_or(Reply::Silence));
        let cluster = reached(&server, LONG).await;
        let allowed = ApplyRequest { allow_secret: true, ..wanted(&resource, b"{}") };
        let error = cluster.apply(&allowed).await.unwrap_err();
        assert!(
            !chain(&error).contains(CANARY) && !format!("{error:?}").contains(CANARY),
            "{code}: {error:?}"
        );
        assert!(chain(&error).contains("secrets/a in namespace shop"), "{code}: {}", chain(&error));
        let error =
            cluster.delete(&DeleteRequest { allow_secret: true, ..unwanted(&resource) }).await.unwrap_err();
        assert!(
            !chain(&error).contains(CANARY) && !format!("{error:?}").contains(CANARY),
            "{code}: {error:?}"
        );
    }
    // What has no value stays: rights are checked before the Secret is read.
    let message = "secrets \"a\" is forbidden: User \"ann\" cannot patch resource \"secrets\"";
    let server = Server::start(move |_| Reply::status(403, "Forbidden", message));
    let cluster = reached(&server, LONG).await;
    let allowed = ApplyRequest { allow_secret: true, ..wanted(&resource, b"{}") };
    let error = cluster.apply(&allowed).await.unwrap_err();
    assert!(error.to_string().contains("cannot patch"), "{error}");
}

#[tokio::test]
async fn api_server_applies_and_deletes() {
    let fleet = Fleet::builder().controllers(false).managers(true).start().await.unwrap();
    let sim = fleet.cluster("one").await.unwrap();
    sim.apply(namespace("shop")).unwrap();
    let cluster = connect(&sim, &sim.kubeconfig()).await;
    let resource = config_maps();
    let body = |extra: Value, data: Value| {
        let mut metadata = json!({"name": "a"});
        metadata.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}).to_string()
    };
    let stored = || sim.get("v1", "ConfigMap", "shop", "a");
    let first = body(json!({}), json!({"k": "1", "l": "1"}));
    let dry = ApplyRequest { dry_run: true, ..wanted(&resource, first.as_bytes()) };
    cluster.apply(&dry).await.unwrap();
    assert_eq!(stored(), None, "a dry run keeps nothing");
    cluster.apply(&wanted(&resource, first.as_bytes())).await.unwrap();
    let object = stored().unwrap();
    assert_eq!(object["metadata"]["managedFields"][0]["manager"], "taffrail-sync");

    // Another manager wants another value.
    let second = body(json!({}), json!({"k": "2"}));
    let other = ApplyRequest { manager: "other", ..wanted(&resource, second.as_bytes()) };
    let error = cluster.apply(&other).await.unwrap_err();
    let WriteError::FieldConflict { conflicts, .. } = error else { panic!("{error:?}") };
    let owner = conflicts[0].owner.clone().unwrap();
    assert_eq!(
        (&*conflicts[0].path, &*owner.manager, owner.updated_version),
        (".data.k", "taffrail-sync", None)
    );
    cluster.apply(&ApplyRequest { force: true, ..other }).await.unwrap();
    assert_eq!(stored().unwrap()["data"], json!({"k": "2", "l": "1"}));
    // What it no longer wants goes, what it no longer owns stays.
    let none = body(json!({}), json!({}));
    cluster.apply(&ApplyRequest { force: true, ..wanted(&resource, none.as_bytes()) }).await.unwrap();
    assert_eq!(stored().unwrap()["data"], json!({"k": "2"}));

    let stale = body(json!({"resourceVersion": object["metadata"]["resourceVersion"]}), json!({"l": "3"}));
    let error = cluster.apply(&wanted(&resource, stale.as_bytes())).await.unwrap_err();
    assert!(matches!(error, WriteError::Conflict { .. }), "{error:?}");
    let another = body(json!({"uid": "1-2"}), json!({"l": "3"}));
    let error = cluster.apply(&wanted(&resource, another.as_bytes())).await.unwrap_err();
    assert!(matches!(error, WriteError::Invalid { .. }), "{error:?}");
    let unknown =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dat": {}}).to_string();
    let error = cluster.apply(&wanted(&resource, unknown.as_bytes())).await.unwrap_err();
    assert!(matches!(error, WriteError::UnknownField { .. }), "{error:?}");

    let wrong = DeleteRequest { uid: Some("1-2"), ..unwanted(&resource) };
    let error = cluster.delete(&wrong).await.unwrap_err();
    assert!(matches!(error, WriteError::Conflict { .. }), "{error:?}");
    let uid = stored().unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let right = DeleteRequest { uid: Some(&uid), dry_run: true, ..unwanted(&resource) };
    assert!(matches!(cluster.delete(&right).await.unwrap(), DeleteOutcome::Gone));
    assert!(stored().is_some(), "a dry run deletes nothing");
    cluster.delete(&DeleteRequest { dry_run: false, ..right }).await.unwrap();
    assert_eq!(stored(), None);
    let error = cluster.delete(&unwanted(&resource)).await.unwrap_err();
    assert!(matches!(error, WriteError::NotFound { .. }), "{error:?}");
    // An object of its own UID is not made anew.
    let gone = body(json!({"uid": uid}), json!({"k": "1"}));
    let error = cluster.apply(&wanted(&resource, gone.as_bytes())).await.unwrap_err();
    assert!(matches!(error, WriteError::Conflict { .. }), "{error:?}");
}

#[tokio::test]
async fn managers_of_fields_are_changed_at_one_version_and_those_of_secrets_too() {
    let fleet = Fleet::builder().controllers(false).managers(true).start().await.unwrap();
    let sim = fleet.cluster("one").await.unwrap();
    sim.apply(namespace("shop")).unwrap();
    let cluster = connect(&sim, &sim.kubeconfig()).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"k": "aHVudGVyMg=="},
        "metadata": {"name": "a", "namespace": "shop"}});
    sim.apply_by(secret, "old", "").unwrap();
    let stored = || sim.get("v1", "Secret", "shop", "a").unwrap();
    let before = stored();
    let mut fields = before["metadata"]["managedFields"].as_array().unwrap().clone();
    fields[0]["manager"] = json!("new");
    fields[0]["operation"] = json!("Apply");
    let resource = ApiResource { kind: "Secret".to_owned(), plural: "secrets".to_owned(), ..config_maps() };
    let request = |version| ManagersRequest {
        resource: &resource,
        namespace: Some("shop"),
        name: "a",
        resource_version: version,
        managed_fields: &fields,
    };
    let error = cluster.set_managers(&request("1")).await.unwrap_err();
    assert!(matches!(error, WriteError::Invalid { .. } | WriteError::Conflict { .. }), "{error:?}");
    assert!(!chain(&error).contains("aHVudGVyMg"), "{}", chain(&error));
    assert_eq!(stored(), before);
    let version = before["metadata"]["resourceVersion"].as_str().unwrap();
    cluster.set_managers(&request(version)).await.unwrap();
    let after = stored();
    let entry = &after["metadata"]["managedFields"][0];
    assert_eq!((&entry["manager"], &entry["operation"]), (&json!("new"), &json!("Apply")));
    assert_eq!(after["metadata"]["managedFields"].as_array().unwrap().len(), 1);
    assert_eq!(after["data"], before["data"]);
}

#[tokio::test]
async fn long_values_do_not_hide_what_is_wrong_with_them() {
    let long = "x".repeat(1000);
    let json = format!("{{\"a\":\"{long}: }}\"}}");
    let structure = format!("core.PodTemplateSpec{{Name:\"{long}\", Labels:map[string]string{{}}}}");
    let causes = json!([
        {"reason": "FieldValueInvalid", "field": "spec.template", "message": format!("Invalid value: {json}: field is immutable")},
        {"reason": "FieldValueInvalid", "field": "spec.other", "message": format!("Invalid value: {structure}: may not change")},
        {"reason": "FieldValueForbidden", "field": "spec", "message": "Forbidden: the value: b is not allowed"},
    ]);
    let message =
        format!("Job.batch \"a\" is invalid: [spec.template: Invalid value: {json}: field is immutable, …]");
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422, "reason": "Invalid",
        "message": message, "details": {"name": "a", "causes": causes}});
    let server = Server::start(move |_| Reply::json(422, status.to_string()));
    let resource = config_maps();
    let error = reached(&server, LONG).await.apply(&wanted(&resource, b"{}")).await.unwrap_err();
    let WriteError::Invalid { message, .. } = error else { panic!("{error:?}") };
    let start = "x".repeat(34);
    assert_eq!(
        message,
        format!(
            "Job.batch \"a\" is invalid: spec.template: Invalid value: {{\"a\":\"{start}…: field is immutable, spec.other: \
             Invalid value: core.PodTemplateSpec{{Name:\"xxxxxxxxxxxxx…: may not change, spec: Forbidden: the value: b is not \
             allowed"
        )
    );
}

#[tokio::test]
async fn webhooks_mutate_refuse_dry_runs_and_are_late() {
    let fleet = Fleet::builder().controllers(false).managers(true).start().await.unwrap();
    let sim = fleet.cluster("one").await.unwrap();
    sim.apply(namespace("shop")).unwrap();
    let cluster = connect(&sim, &sim.kubeconfig()).await;
    let resource = config_maps();
    let body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}})
            .to_string();
    let apply = wanted(&resource, body.as_bytes());
    sim.trouble(Trouble::MutatingWebhook(
        json!({"metadata": {"labels": {"injected": "yes"}}, "data": {"k": "mine"}}),
    ));
    for dry_run in [true, false] {
        let object = cluster.apply(&ApplyRequest { dry_run, ..apply }).await.unwrap();
        let object: Value = serde_json::from_slice(object.text()).unwrap();
        assert_eq!(object["data"]["k"], "mine");
        assert_eq!(object["metadata"]["labels"], json!({"injected": "yes"}));
        let fields = &object["metadata"]["managedFields"][0]["fieldsV1"];
        assert_eq!(*fields, json!({"f:data": {"f:k": {}}}), "what a webhook adds has no owner");
    }
    sim.heal_all();

    sim.trouble(Trouble::WebhookWithoutDryRun);
    let error = cluster.apply(&ApplyRequest { dry_run: true, ..apply }).await.unwrap_err();
    assert_eq!(error.reason(), Reason::BadRequest, "{error:?}");
    assert!(error.to_string().contains("does not support dry run"), "{error}");
    cluster.apply(&apply).await.unwrap();
    sim.heal_all();

    // It is called before anything is written, so nothing is uncertain.
    sim.trouble(Trouble::LateWebhook(Duration::from_millis(50)));
    let error = cluster.apply(&apply).await.unwrap_err();
    assert!(matches!(error, WriteError::Refused(_)), "{error:?}");
    assert!(chain(&error).contains("failed calling webhook"), "{error}");
}
