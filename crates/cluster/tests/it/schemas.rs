//! Tests of OpenAPI documents, against servers with scripted answers and against a simulated API server.

use serde_json::{Value, json};
use taffrail_cluster::{OpenApiCache, OpenApiReadError, Reason, chain};
use taffrail_sim::Fleet;
use taffrail_testkit::server::{Reply, Server};

use crate::contexts::{LONG, reached};
use crate::writing::connect;

fn index() -> Reply {
    let of = |url: &str| json!({ "serverRelativeURL": url });
    let paths = json!({"paths": {"api/v1": of("/openapi/v3/api/v1?hash=A1"), "apis/apps/v1": of("/openapi/v3/apis/apps/v1?hash=B2"),
        "apis/metrics.k8s.io/v1beta1": of("")}});
    Reply::json(200, paths.to_string())
}

fn document() -> Value {
    json!({"openapi": "3.0.0", "paths": {"/api/v1/pods": {"get": {"description": "long"}}},
        "components": {"schemas": {"Pod": {"type": "object", "description": "long"}}}})
}

#[tokio::test]
async fn document_is_read_once_for_each_hash() {
    let server = Server::start(|request| match request.path.as_str() {
        "/openapi/v3" => index(),
        _ => Reply::json(200, document().to_string()),
    });
    let cluster = reached(&server, LONG).await;
    let (index, cache) = (cluster.open_api_index().await.unwrap(), OpenApiCache::default());
    assert_eq!((index.hash("v1"), index.hash("apps/v1")), (Some("A1"), Some("B2")));
    assert!(index.has("metrics.k8s.io/v1beta1") && !index.has("apps/v2"));
    let read = cluster.open_api(&index, "v1", &cache).await.unwrap();
    assert_eq!(read.document, json!({"components": {"schemas": {"Pod": {"type": "object"}}}}));
    assert_eq!(read.hash.as_deref(), Some("A1"));
    cluster.open_api(&index, "v1", &cache).await.unwrap();
    cluster.open_api(&index, "apps/v1", &cache).await.unwrap();
    // Without a hash nobody knows if it is the same.
    for _ in 0..2 {
        assert_eq!(cluster.open_api(&index, "metrics.k8s.io/v1beta1", &cache).await.unwrap().hash, None);
    }
    let seen = server.requests();
    let asked: Vec<String> = seen.iter().map(|it| format!("{}?{}", it.path, it.query)).collect();
    let metrics = "/openapi/v3/apis/metrics.k8s.io/v1beta1?";
    let expected =
        ["/openapi/v3?", "/openapi/v3/api/v1?hash=A1", "/openapi/v3/apis/apps/v1?hash=B2", metrics, metrics];
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn document_that_has_changed_since_the_index_is_read_as_it_is() {
    let server = Server::start(|request| match (request.path.as_str(), request.query.as_str()) {
        ("/openapi/v3", _) => index(),
        (_, "") => Reply::json(200, document().to_string()).header("etag", "\"C3\""),
        _ => Reply::Whole(301, vec![("location", "/openapi/v3/api/v1?hash=C3".to_owned())], Vec::new()),
    });
    let cluster = reached(&server, LONG).await;
    let (index, cache) = (cluster.open_api_index().await.unwrap(), OpenApiCache::default());
    let read = cluster.open_api(&index, "v1", &cache).await.unwrap();
    assert_eq!(read.hash.as_deref(), Some("C3"));
}

#[tokio::test]
async fn missing_broken_and_huge_documents_are_errors_of_their_own() {
    type Script = fn() -> Reply;
    let scripts: [(Script, Option<Reason>); 7] = [
        (|| Reply::status(404, "NotFound", "no"), None),
        (|| Reply::status(403, "Forbidden", "no"), Some(Reason::Forbidden)),
        (|| Reply::json(200, "<html>"), Some(Reason::NotJson)),
        (|| Reply::json(200, r#"{"components":{"schemas":"#), Some(Reason::UnexpectedAnswer)),
        (|| Reply::json(200, r#"{"components":{}}"#), Some(Reason::UnexpectedAnswer)),
        (|| Reply::json(200, format!("{{\"a\":\"{}\"}}", "x".repeat(64 << 20))), Some(Reason::OverLimit)),
        (|| Reply::json(200, format!("{{\"a\":[{}1]}}", "1,".repeat(5_000_001))), Some(Reason::OverLimit)),
    ];
    for (script, reason) in scripts {
        let server = Server::start(move |request| match request.path.as_str() {
            "/openapi/v3" => index(),
            _ => script(),
        });
        let cluster = reached(&server, LONG).await;
        let (index, cache) = (cluster.open_api_index().await.unwrap(), OpenApiCache::default());
        let error = cluster.open_api(&index, "v1", &cache).await.unwrap_err();
        match (&error, reason) {
            (OpenApiReadError::NoDocument { api_version }, None) => assert_eq!(api_version, "v1"),
            (OpenApiReadError::Read(read), Some(reason)) => {
                assert_eq!(read.reason(), reason, "{}", chain(&error))
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            cluster.open_api(&index, "apps/v9", &cache).await.unwrap_err(),
            OpenApiReadError::NoDocument { .. }
        ));
    }
    let server = Server::start(|_| Reply::json(200, r#"{"paths":[]}"#));
    let error = reached(&server, LONG).await.open_api_index().await.unwrap_err();
    assert_eq!(error.reason(), Reason::UnexpectedAnswer, "{error}");
}

#[tokio::test]
async fn api_server_tells_the_schemas_of_its_kinds() {
    let fleet = Fleet::builder().controllers(false).start().await.unwrap();
    let sim = fleet.cluster("one").await.unwrap();
    let cluster = connect(&sim, &sim.kubeconfig()).await;
    let (index, cache) = (cluster.open_api_index().await.unwrap(), OpenApiCache::default());
    let read = cluster.open_api(&index, "apps/v1", &cache).await.unwrap();
    let schema = &read.document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
    let kind = &schema["x-kubernetes-group-version-kind"][0]["kind"];
    assert_eq!(kind, "Deployment");
    assert_eq!(read.hash.as_deref(), index.hash("apps/v1"));
}
