//! Tests of reading lists and single objects.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_cluster::{ApiResource, ListRequest, ReadError, Reason};
use taffrail_object::Projection;
use taffrail_object::json::OwnedDocument;
use taffrail_testkit::server::{Reply, Server};

use crate::contexts::{LONG, reached};

fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
    }
}

fn deployments() -> ApiResource {
    resource("apps", "Deployment", "deployments")
}

fn text(object: &OwnedDocument) -> &str {
    std::str::from_utf8(object.text()).unwrap()
}

/// Returns a page of Deployments with these names; `next` is the token of the next page, empty on the last one.
fn page(names: &[&str], next: &str) -> Reply {
    let items: Vec<Value> = names.iter().map(|name| json!({ "metadata": { "name": name } })).collect();
    let list = json!({
        "kind": "DeploymentList", "apiVersion": "apps/v1",
        "metadata": { "resourceVersion": "7", "continue": next }, "items": items,
    });
    Reply::json(200, list.to_string())
}

fn names(objects: &[OwnedDocument]) -> Vec<String> {
    objects
        .iter()
        .map(|object| {
            serde_json::from_slice::<Value>(object.text()).unwrap()["metadata"]["name"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[tokio::test]
async fn items_get_the_kind_of_their_list() {
    let server = Server::start(|_| {
        Reply::json(
            200,
            r#"{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{},"items":[
               { "metadata": {"name":"bare"}, "spec": {"replicas": 1.50} },
               {"kind":"Own","apiVersion":"own/v1","metadata":{"name":"own"}},
               {"metadata":{"name":"half"},"kind":"Own"}]}"#,
        )
    });
    let cluster = reached(&server, LONG).await;
    let listing = cluster.list(&ListRequest::all(&deployments())).await.unwrap();
    let objects: Vec<&str> = listing.objects.iter().map(text).collect();
    // Nothing but the two members is added and no byte of the rest is changed.
    assert_eq!(
        objects,
        [
            r#"{"apiVersion":"apps/v1","kind":"Deployment", "metadata": {"name":"bare"}, "spec": {"replicas": 1.50} }"#,
            r#"{"kind":"Own","apiVersion":"own/v1","metadata":{"name":"own"}}"#,
            r#"{"apiVersion":"apps/v1","metadata":{"name":"half"},"kind":"Own"}"#,
        ]
    );
    assert!(listing.malformed.is_empty());
    assert!(server.requests()[0].agent.starts_with("taffrail/"));
}

#[tokio::test]
async fn metadata_items_get_the_kind_that_was_asked_for() {
    let server = Server::start(|_| {
        Reply::json(
            200,
            r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[
               {"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","uid":"1"}}]}"#,
        )
    });
    let cluster = reached(&server, LONG).await;
    let resource = deployments();
    let request = ListRequest { projection: Projection::Metadata, ..ListRequest::all(&resource) };
    let listing = cluster.list(&request).await.unwrap();
    assert_eq!(
        text(&listing.objects[0]),
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","uid":"1"}}"#
    );
    assert_eq!(
        server.requests()[0].accept,
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    );
}

#[tokio::test]
async fn secrets_are_listed_as_metadata_or_not_at_all() {
    let server = Server::start(|_| {
        Reply::json(
            200,
            r#"{"kind":"SecretList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"},"data":{"k":"cw=="}}]}"#,
        )
    });
    let cluster = reached(&server, LONG).await;
    let error = cluster.list(&ListRequest::all(&resource("", "Secret", "secrets"))).await.unwrap_err();
    assert_eq!(error.reason(), Reason::UnexpectedAnswer);
    assert!(server.requests()[0].accept.contains("PartialObjectMetadataList"));
    assert!(!server.requests()[0].accept.contains(','), "no other form may be offered");
}

#[tokio::test]
async fn the_copy_of_a_secret_among_its_annotations_is_left_out() {
    let server = Server::start(|_| {
        Reply::json(
            200,
            r#"{"kind":"PartialObjectMetadataList","metadata":{},"items":[{"metadata":{"name":"a",
               "annotations":{"x":"1","kubectl.kubernetes.io\/last-applied-configuration":"{\"data\":\"cw==\"}"},
               "labels":{"l":"\u00e9"}}}]}"#,
        )
    });
    let listing = reached(&server, LONG)
        .await
        .list(&ListRequest::all(&resource("", "Secret", "secrets")))
        .await
        .unwrap();
    assert_eq!(
        text(&listing.objects[0]),
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","annotations":{"x":"1"},"labels":{"l":"\u00e9"}}}"#
    );
}

#[tokio::test]
async fn pages_follow_one_another_and_selectors_are_escaped() {
    let server = Server::start(|seen| {
        if seen.query.contains("continue=next%2Bpage") {
            page(&["c"], "")
        } else {
            page(&["a", "b"], "next+page")
        }
    });
    let cluster = reached(&server, LONG).await;
    let resource = deployments();
    let request = ListRequest {
        namespace: Some("team-a"),
        label_selector: Some("app in (x,y)"),
        field_selector: Some("metadata.name!=z"),
        page: 2,
        ..ListRequest::all(&resource)
    };
    let listing = cluster.list(&request).await.unwrap();
    assert_eq!(names(&listing.objects), ["a", "b", "c"]);
    assert_eq!(listing.resource_version.as_deref(), Some("7"));
    let seen = server.requests();
    assert_eq!(seen[0].path, "/apis/apps/v1/namespaces/team-a/deployments");
    assert_eq!(
        seen[0].query,
        "limit=2&labelSelector=app%20in%20%28x%2Cy%29&fieldSelector=metadata.name%21%3Dz"
    );
    assert_eq!(seen[1].query, format!("{}&continue=next%2Bpage", seen[0].query));
    assert_eq!((cluster.requests().cost.requests, cluster.requests().rounds), (2, 2));
}

#[tokio::test]
async fn expired_list_restarts_once() {
    let firsts = AtomicUsize::new(0);
    let server = Server::start(move |seen| {
        if seen.query.contains("continue") {
            return match firsts.load(Ordering::SeqCst) {
                1 => Reply::status(410, "Expired", "too old"),
                _ => page(&["new-b"], ""),
            };
        }
        match firsts.fetch_add(1, Ordering::SeqCst) {
            0 => page(&["old-a"], "t1"),
            _ => page(&["new-a"], "t2"),
        }
    });
    let cluster = reached(&server, LONG).await;
    let listing = cluster.list(&ListRequest::all(&deployments())).await.unwrap();
    assert_eq!(names(&listing.objects), ["new-a", "new-b"]);
    assert!(listing.restarted);

    let always = Server::start(|seen| match seen.query.contains("continue") {
        true => Reply::status(410, "Expired", "too old"),
        false => page(&["a"], "t"),
    });
    let error = reached(&always, LONG).await.list(&ListRequest::all(&deployments())).await.unwrap_err();
    assert_eq!(error.reason(), Reason::Gone);
    assert_eq!(always.requests().len(), 4);
}

#[tokio::test]
async fn a_server_that_repeats_a_page_is_not_followed_for_ever() {
    let server = Server::start(|_| page(&["a"], "same"));
    let error = reached(&server, LONG).await.list(&ListRequest::all(&deployments())).await.unwrap_err();
    assert_eq!(error.reason(), Reason::UnexpectedAnswer);
}

#[tokio::test]
async fn malformed_item_leaves_others_readable() {
    let server = Server::start(|_| {
        Reply::json(
            200,
            r#"{"kind":"DeploymentList","apiVersion":"apps/v1","items":[
               {"metadata":{"name":"a"}}, 7, {"metadata":{"namespace":"n","name":"b"},"kind":3},
               {"metadata":{}}, {"spec":{}}, {"metadata":{"name":"c"}}]}"#,
        )
    });
    let listing = reached(&server, LONG).await.list(&ListRequest::all(&deployments())).await.unwrap();
    assert_eq!(names(&listing.objects), ["a", "c"]);
    let bad: Vec<(usize, Option<&str>)> =
        listing.malformed.iter().map(|item| (item.index, item.name.as_deref())).collect();
    assert_eq!(bad, [(1, None), (2, Some("n/b")), (3, None), (4, None)]);
}

#[tokio::test]
async fn null_items_are_an_empty_list_and_no_items_are_an_error() {
    let server = Server::start(|seen| match seen.path.contains("pods") {
        true => Reply::json(200, r#"{"kind":"PodList","apiVersion":"v1","items":null}"#),
        false => Reply::json(200, r#"{"kind":"Deployment","apiVersion":"apps/v1"}"#),
    });
    let cluster = reached(&server, LONG).await;
    assert!(cluster.list(&ListRequest::all(&resource("", "Pod", "pods"))).await.unwrap().objects.is_empty());
    let error = cluster.list(&ListRequest::all(&deployments())).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "list deployments.apps: the answer is not a list: its kind is \"Deployment\" and it has no field 'items'"
    );
}

#[tokio::test]
async fn reads_are_retried_after_retry_after() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => Reply::status(429, "TooManyRequests", "slow down").header("retry-after", "0"),
        _ => page(&["a"], ""),
    });
    let listing = reached(&server, LONG).await.list(&ListRequest::all(&deployments())).await.unwrap();
    assert_eq!(listing.objects.len(), 1);
    assert_eq!(server.requests().len(), 3);

    let patient =
        Server::start(|_| Reply::status(429, "TooManyRequests", "slow down").header("retry-after", "60"));
    let begun = Instant::now();
    let error = reached(&patient, LONG).await.list(&ListRequest::all(&deployments())).await.unwrap_err();
    assert_eq!(error.reason(), Reason::TooManyRequests);
    assert!(begun.elapsed() < Duration::from_secs(5), "waiting beyond the deadline is of no use");
}

#[tokio::test]
async fn reads_pause_though_the_server_asks_for_no_pause() {
    for code in [429, 503] {
        let server = Server::start(move |_| Reply::status(code, "Busy", "later").header("retry-after", "0"));
        // The time is over before the second request.
        let cluster = reached(&server, LONG).await.with_timeout(Duration::from_millis(240));
        assert!(cluster.list(&ListRequest::all(&deployments())).await.is_err());
        assert!(server.requests().len() <= 1, "{code}: {} requests", server.requests().len());
    }
}

#[tokio::test]
async fn a_server_that_always_defers_a_read_gets_few_requests() {
    let server = Server::start(|_| Reply::status(429, "Busy", "later").header("retry-after", "0"));
    let error = reached(&server, LONG).await.list(&ListRequest::all(&deployments())).await.unwrap_err();
    assert_eq!((error.reason(), server.requests().len()), (Reason::TooManyRequests, 11));
}

#[tokio::test]
async fn a_failing_server_is_asked_once_more() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::status(500, "InternalError", "etcd is away"),
        _ => page(&["a"], ""),
    });
    assert!(reached(&server, LONG).await.list(&ListRequest::all(&deployments())).await.is_ok());

    let down = Server::start(|_| Reply::status(500, "InternalError", "conversion webhook failed"));
    let error = reached(&down, LONG).await.list(&ListRequest::all(&deployments())).await.unwrap_err();
    assert_eq!(error.reason(), Reason::ServerError);
    assert_eq!(error.to_string(), "list deployments.apps: conversion webhook failed (HTTP 500)");
    assert_eq!(down.requests().len(), 2);
}

#[tokio::test]
async fn refusals_contain_the_servers_message() {
    let server = Server::start(|seen| match seen.path.as_str() {
        "/api/v1/pods" => Reply::status(401, "Unauthorized", "Unauthorized"),
        "/api/v1/nodes" => Reply::status(403, "Forbidden", "nodes is forbidden:\n User cannot list"),
        _ => Reply::Whole(
            404,
            vec![("content-type", "text/plain".to_owned())],
            b"404 page not found\n".to_vec(),
        ),
    });
    let cluster = reached(&server, LONG).await;
    let list =
        async |plural: &str| cluster.list(&ListRequest::all(&resource("", "X", plural))).await.unwrap_err();
    let (unauthorized, forbidden, missing) = (list("pods").await, list("nodes").await, list("gone").await);
    assert_eq!(unauthorized.reason(), Reason::Unauthorized);
    assert!(unauthorized.hint().unwrap().contains("log in again"));
    assert_eq!(forbidden.reason(), Reason::Forbidden);
    assert_eq!(forbidden.to_string(), "list nodes: nodes is forbidden: User cannot list (HTTP 403)");
    assert_eq!(missing.reason(), Reason::NotFound);
    assert_eq!(server.requests().len(), 3, "none of these is asked twice");
}

/// Proxies and aggregated API servers send JSON that is not a `Status`.
#[tokio::test]
async fn json_error_of_another_form_is_quoted() {
    for (code, expected) in [
        (400, "list pods: Bad Request, application/json: \"{\"error\":\"bad selector\"}\" (HTTP 400)"),
        (409, "list pods: Conflict, application/json: \"{\"error\":\"bad selector\"}\" (HTTP 409)"),
        (
            422,
            "list pods: Unprocessable Entity, application/json: \"{\"error\":\"bad selector\"}\" (HTTP 422)",
        ),
    ] {
        let server = Server::start(move |_| Reply::json(code, r#"{"error":"bad selector"}"#));
        let cluster = reached(&server, LONG).await;
        let error = cluster.list(&ListRequest::all(&resource("", "Pod", "pods"))).await.unwrap_err();
        assert_eq!((error.reason(), &*error.to_string()), (Reason::BadRequest, expected));
    }
}

#[tokio::test]
async fn html_answer_is_quoted_in_the_error() {
    let login = format!("<!doctype html>\n\u{1b}[2J<html> <title>Log in</title>{}", "é".repeat(2000));
    let server = Server::start(move |seen| {
        let headers = vec![("content-type", "text/html; charset=utf-8".to_owned())];
        let code = if seen.path.ends_with("pods") { 502 } else { 200 };
        Reply::Whole(code, headers, login.clone().into_bytes())
    });
    let cluster = reached(&server, LONG).await;
    let error = cluster.list(&ListRequest::all(&deployments())).await.unwrap_err();
    assert_eq!(error.reason(), Reason::NotJson);
    let ReadError::NotJson { code: 200, start, .. } = &error else { panic!("{error:?}") };
    assert_eq!(start.chars().count(), 81, "80 characters and an ellipsis");
    assert!(error.to_string().starts_with(
        "list deployments.apps: the answer is not JSON (HTTP 200, text/html; charset=utf-8): \"<!doctype html> [2J<html>"
    ));
    let gateway = cluster.list(&ListRequest::all(&resource("", "Pod", "pods"))).await.unwrap_err();
    assert_eq!(gateway.reason(), Reason::ServerError);
    assert!(gateway.to_string().contains("Bad Gateway, text/html"), "{gateway}");
}

#[tokio::test]
async fn truncated_answer_is_an_error() {
    let server = Server::start(|seen| match seen.path.ends_with("pods") {
        true => Reply::json(200, r#"{"kind":"PodList","items":[{"metadata":"#),
        false => Reply::cut(r#"{"kind":"DeploymentList","items":["#),
    });
    let cluster = reached(&server, LONG).await;
    let cut = cluster.list(&ListRequest::all(&deployments())).await.unwrap_err();
    assert_eq!(cut.reason(), Reason::ConnectionLost, "{cut:?}");
    let half = cluster.list(&ListRequest::all(&resource("", "Pod", "pods"))).await.unwrap_err();
    assert_eq!(half.reason(), Reason::UnexpectedAnswer);
    assert!(half.to_string().contains("the answer is malformed"), "{half}");
}

#[tokio::test]
async fn hanging_server_times_out_and_names_the_phase() {
    const SHORT: Duration = Duration::from_millis(300);
    let server = Server::start(|seen| match seen.path.ends_with("pods") {
        true => Reply::stuck(r#"{"kind":"PodList","#),
        false => Reply::Silence,
    });
    let begun = Instant::now();
    let before = reached(&server, SHORT).await.list(&ListRequest::all(&deployments())).await.unwrap_err();
    let cluster = reached(&server, SHORT).await;
    let amid = cluster.list(&ListRequest::all(&resource("", "Pod", "pods"))).await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(
        before.to_string(),
        "list deployments.apps: no complete answer within 0.3 s: gave up waiting for an answer"
    );
    assert_eq!(
        amid.to_string(),
        "list pods: no complete answer within 0.3 s: gave up in the middle of the answer"
    );
    assert_eq!((before.reason(), amid.reason()), (Reason::Timeout, Reason::Timeout));
    assert_eq!(cluster.requests().cost.bytes, 18);
}

#[tokio::test]
async fn one_object_is_found_missing_or_of_an_unknown_kind() {
    let server = Server::start(|seen| match seen.path.as_str() {
        "/apis/apps/v1/namespaces/a/deployments/there" => {
            Reply::json(200, r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"there"}}"#)
        }
        "/apis/apps/v1/namespaces/a/deployments/gone" => Reply::json(
            404,
            r#"{"kind":"Status","status":"Failure","message":"deployments.apps \"gone\" not found",
               "reason":"NotFound","details":{"name":"gone","group":"apps","kind":"deployments"},"code":404}"#,
        ),
        _ => Reply::Whole(404, vec![], b"404 page not found".to_vec()),
    });
    let cluster = reached(&server, LONG).await;
    let there = cluster.get(&deployments(), Some("a"), "there", Projection::Full).await.unwrap().unwrap();
    assert_eq!(text(&there), r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"there"}}"#);
    assert!(cluster.get(&deployments(), Some("a"), "gone", Projection::Full).await.unwrap().is_none());
    let kind = resource("nobody.example", "Thing", "things");
    let error = cluster.get(&kind, Some("a"), "x", Projection::Full).await.unwrap_err();
    assert_eq!(error.reason(), Reason::NotFound);
}

#[tokio::test]
async fn names_are_escaped_in_paths() {
    let server = Server::start(|_| Reply::status(404, "NotFound", "no"));
    let cluster = reached(&server, LONG).await;
    let _ = cluster.get(&deployments(), Some("a/../b"), "x?limit=1#y", Projection::Full).await;
    let seen = server.requests();
    assert_eq!(seen[0].path, "/apis/apps/v1/namespaces/a%2F..%2Fb/deployments/x%3Flimit%3D1%23y");
    assert_eq!(seen[0].query, "");
}

#[tokio::test]
async fn compressed_answers_are_read() {
    let server = Server::start(|_| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let body = format!(
            r#"{{"kind":"PodList","items":[{{"metadata":{{"name":"a"}}}}],"x":"{}"}}"#,
            "y".repeat(9000)
        );
        gzip.write_all(body.as_bytes()).unwrap();
        let headers =
            vec![("content-type", "application/json".to_owned()), ("content-encoding", "gzip".to_owned())];
        Reply::Whole(200, headers, gzip.finish().unwrap())
    });
    let cluster = reached(&server, LONG).await;
    let listing = cluster.list(&ListRequest::all(&resource("", "Pod", "pods"))).await.unwrap();
    assert_eq!(listing.objects.len(), 1);
    assert!(cluster.requests().cost.bytes > 9000);
}

#[tokio::test]
async fn a_cluster_is_known_by_its_first_namespace() {
    let server = Server::start(|seen| match seen.path.as_str() {
        "/version" => Reply::json(200, r#"{"major":"1","minor":"36","gitVersion":"v1.36.3"}"#),
        "/api/v1/namespaces/kube-system" => Reply::json(
            200,
            r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"kube-system","uid":"u-1"}}"#,
        ),
        _ => Reply::Silence,
    });
    let cluster = reached(&server, LONG).await;
    assert_eq!(cluster.id().await.unwrap(), "u-1");
    assert_eq!(cluster.version().await.unwrap(), "v1.36.3");
}
