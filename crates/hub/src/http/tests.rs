//! Requests to the router, without a network.

mod access;
mod compression;
mod logs;
mod metrics;
mod page;
mod past;
mod questions;
mod stream;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use http::{HeaderMap, Method, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use taffrail_api::report::Content;
use taffrail_status::Status;
use tower::ServiceExt;

use super::*;
use crate::index::samples::{SampleFleet, app, declared, observed};

/// An answer: its status, content type and JSON.
#[derive(Debug)]
struct Got {
    status: StatusCode,
    content_type: String,
    body: Value,
}

async fn send(router: &Router, request: http::Request<Body>) -> Got {
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let content_type = response.headers().get(header::CONTENT_TYPE).unwrap().to_str().unwrap().to_owned();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Got { status, content_type, body }
}

/// Sends a GET request with these headers, and returns the status, headers and body of the answer.
async fn load(router: &Router, path: &str, headers: &[(&str, &str)]) -> (StatusCode, HeaderMap, Bytes) {
    let mut request = http::Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    (parts.status, parts.headers, body.collect().await.unwrap().to_bytes())
}

/// Returns the router of a hub that answers everybody.
fn open_router(fleet: &SampleFleet) -> Router {
    router(Arc::new(HubApi::of(Arc::clone(&fleet.index), None, Limits::default()).unwrap()))
}

async fn fetch(fleet: &SampleFleet, path: &str) -> Got {
    let router = open_router(fleet);
    send(&router, http::Request::get(path).body(Body::empty()).unwrap()).await
}

fn fleet() -> SampleFleet {
    SampleFleet::new()
        .with("eu-1", &[("shop/web", Status::Current, ""), ("shop/db", Status::Failed, "crashes")])
        .with("us-1", &[("shop/web", Status::InProgress, "1 of 3 Pods")])
}

fn names(got: &Got) -> Vec<String> {
    let items = got.body["items"].as_array().unwrap_or_else(|| panic!("{got:?}"));
    let name =
        |item: &Value| format!("{} {}", item["cluster"].as_str().unwrap(), item["name"].as_str().unwrap());
    items.iter().map(name).collect()
}

#[tokio::test]
async fn apps_are_listed_as_the_command_line_prints_them() {
    let fleet = fleet();
    let got = fetch(&fleet, "/api/v1/apps").await;
    assert_eq!((got.status, &*got.content_type), (StatusCode::OK, "application/json"));
    assert_eq!(names(&got), ["eu-1 db", "eu-1 web", "us-1 web"]);
    let naive = fleet.index.view();
    let rows: Vec<Value> = naive
        .page(&crate::index::page::AppQueryPage {
            filter: &crate::AppFilter::default(),
            sort: None,
            limit: 100,
            after: None,
        })
        .pairs
        .iter()
        .map(|(_, pair)| serde_json::to_value(naive.row(pair)).unwrap())
        .collect();
    assert_eq!(got.body["items"], Value::Array(rows));
    assert_eq!(got.body["kind"], "AppList");
    assert_eq!(got.body["apiVersion"], taffrail_api::API_VERSION);
    assert_eq!((&got.body["state"], &got.body["missing"]), (&json!("complete"), &json!([])));
    assert_eq!((&got.body["total"], &got.body["clusters"]), (&json!(3), &json!(2)));
}

#[tokio::test]
async fn apps_are_filtered_sorted_and_cut_to_fields() {
    let fleet = fleet();
    let got = fetch(&fleet, "/api/v1/apps?status=!Ready&sort=status&fields=name,cluster,effective").await;
    let expected = json!([
        {"cluster": "eu-1", "name": "db", "effective": "Failed"},
        {"cluster": "us-1", "name": "web", "effective": "InProgress"},
    ]);
    assert_eq!(got.body["items"], expected);
    let got = fetch(&fleet, "/api/v1/apps?text=CRASH").await;
    assert_eq!(names(&got), ["eu-1 db"]);
    let got = fetch(&fleet, "/api/v1/apps?group-by=name").await;
    assert_eq!(got.body["kind"], "AppGroupList");
    let counted: Vec<_> = got.body["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["group"].clone(), it["apps"].clone()))
        .collect();
    assert_eq!(counted, [(json!("db"), json!(1)), (json!("web"), json!(2))]);
    let got = fetch(&fleet, "/api/v1/apps?fields=name,colour").await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        got.body["detail"],
        format!("parameter 'fields': 'colour' is not one of {}", query::APP_FIELDS.join(", "))
    );
}

#[tokio::test]
async fn pages_follow_one_another_by_cursors() {
    let fleet = fleet();
    let router = open_router(&fleet);
    let get = async |path: &str| send(&router, http::Request::get(path).body(Body::empty()).unwrap()).await;
    for list in [
        "apps?",
        "apps?sort=name&",
        "clusters?",
        "apps?group-by=cluster&",
        "matrix?",
        "clusters?sort=status&",
    ] {
        let whole = get(&format!("/api/v1/{list}limit=500")).await.body;
        let rows = if list == "matrix?" { "rows" } else { "items" };
        let (mut found, mut next) = (Vec::new(), String::new());
        loop {
            let page = get(&format!("/api/v1/{list}limit=1{next}")).await;
            found.extend(page.body[rows].as_array().unwrap_or_else(|| panic!("{list}: {page:?}")).clone());
            match page.body["next"].as_str() {
                Some(cursor) => next = format!("&cursor={cursor}"),
                None => break,
            }
        }
        assert!(found.len() > 1, "{list}");
        assert_eq!(Value::Array(found), whole[rows], "{list}");
    }
    let first = get("/api/v1/apps?limit=1").await.body["next"].as_str().unwrap().to_owned();
    for path in [
        format!("/api/v1/apps?sort=name&cursor={first}"),
        format!("/api/v1/clusters?cursor={first}"),
        "/api/v1/apps?cursor=abc".to_owned(),
    ] {
        let got = get(&path).await;
        assert_eq!(
            (got.status, &got.body["title"]),
            (StatusCode::BAD_REQUEST, &json!("Invalid cursor")),
            "{path}"
        );
    }
    // Another run of the hub knows nothing of it.
    assert_eq!(fetch(&fleet, &format!("/api/v1/apps?cursor={first}")).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn one_app_is_found_by_cluster_delivery_namespace_and_name() {
    let fleet = fleet();
    let got = fetch(&fleet, "/api/v1/apps/eu-1/ks/shop/web").await;
    assert_eq!(names(&got), ["eu-1 web"]);
    let missing = fetch(&fleet, "/api/v1/apps/eu-1/ks/shop/wen").await;
    assert_eq!((missing.status, &*missing.content_type), (StatusCode::NOT_FOUND, "application/problem+json"));
    assert_eq!(missing.body["detail"], "cluster 'eu-1' has no app flux-kustomization/shop/wen");
    assert_eq!(missing.body["type"], "urn:taffrail:problem:not-found");
    assert_eq!(missing.body["status"], 404);
    let elsewhere = fetch(&fleet, "/api/v1/apps/mars/ks/shop/web").await;
    assert_eq!(elsewhere.body["detail"], "the hub knows no cluster 'mars'");
    assert_eq!(fetch(&fleet, "/api/v1/apps/eu-1/tape/shop/web").await.status, StatusCode::NOT_FOUND);
    // Another cluster delivers an app of the same name.
    let other = app("us-1", "shop/web");
    fleet.change("us-1", "observer", vec![declared(&other, "eu-1", |_| {})]);
    fleet.change("eu-1", "observer", vec![observed(&other, Status::Current, "")]);
    fleet.index.publish();
    let both = fetch(&fleet, "/api/v1/apps/eu-1/ks/shop/web").await;
    assert_eq!(
        (both.status, &both.body["hint"]),
        (
            StatusCode::CONFLICT,
            &json!("choose the cluster that declares it with the parameter 'home': eu-1, us-1")
        )
    );
    let got = fetch(&fleet, "/api/v1/apps/eu-1/ks/shop/web?home=us-1").await;
    assert_eq!(got.body["items"][0]["home"], "us-1");
}

#[tokio::test]
async fn clusters_matrix_attention_and_changes_answer() {
    let fleet = fleet();
    fleet.change("eu-1", "observer", vec![observed(&app("eu-1", "shop/web"), Status::Failed, "crashes")]);
    fleet.index.publish();
    let clusters = fetch(&fleet, "/api/v1/clusters?status=Failed").await;
    assert_eq!((&clusters.body["kind"], &clusters.body["total"]), (&json!("ClusterList"), &json!(1)));
    assert_eq!(clusters.body["items"][0]["counts"]["Failed"], 2, "{clusters:?}");
    let matrix = fetch(&fleet, "/api/v1/matrix").await;
    assert_eq!(
        matrix.body["rows"],
        json!([{"key": "shop/db", "cells": "1."}, {"key": "shop/web", "cells": "1P"}])
    );
    let attention = fetch(&fleet, "/api/v1/attention?limit=1").await;
    assert_eq!((&attention.body["total"], &attention.body["items"][0]["count"]), (&json!(2), &json!(2)));
    assert_eq!(attention.body["items"][0]["keys"], json!(["shop/db", "shop/web"]));
    let changes = fetch(&fleet, "/api/v1/changes?cluster=eu-1&name=web").await;
    let change = &changes.body["items"][0];
    assert_eq!(
        (&change["before"]["effective"], &change["after"]["effective"]),
        (&json!("Current"), &json!("Failed"))
    );
    assert_eq!(fetch(&fleet, "/api/v1/changes?cluster=us-1").await.body["total"], 0);
}

#[tokio::test]
async fn answers_turn_stale_by_the_clock_of_the_hub_alone() {
    let fleet = fleet();
    fleet.pass(40);
    fleet.send("us-1", "observer", Content::Heartbeat);
    fleet.index.publish();
    fleet.pass(6);
    let got = fetch(&fleet, "/api/v1/apps?fields=cluster,effective,health").await;
    let effective: Vec<&Value> =
        got.body["items"].as_array().unwrap().iter().map(|it| &it["effective"]).collect();
    assert_eq!(effective, ["Unknown", "Unknown", "InProgress"]);
    assert_eq!((&got.body["state"], &got.body["missing"][0]["cluster"]), (&json!("stale"), &json!("eu-1")));
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let fleet = fleet();
    for path in ["/nothing", "/api/v1/nothing", "/api/v1/apps/eu-1"] {
        let got = fetch(&fleet, path).await;
        assert_eq!(
            (got.status, &*got.content_type),
            (StatusCode::NOT_FOUND, "application/problem+json"),
            "{path}"
        );
    }
    let router = open_router(&fleet);
    let request =
        http::Request::builder().method(Method::DELETE).uri("/api/v1/apps").body(Body::empty()).unwrap();
    let got = send(&router, request).await;
    assert_eq!(
        (got.status, &*got.content_type),
        (StatusCode::METHOD_NOT_ALLOWED, "application/problem+json")
    );
    for path in ["/api/v1/apps/%FF/ks/a/b", "/api/v1/apps?limit=9999", "/api/v1/clusters?problems=sync"] {
        assert_eq!(fetch(&fleet, path).await.status, StatusCode::BAD_REQUEST, "{path}");
    }
}

#[tokio::test]
async fn answers_are_as_the_openapi_document_says() {
    let fleet = fleet();
    fleet.open("silent", "observer");
    let error = taffrail_api::ErrorRow {
        cluster: "us-1".to_owned(),
        scope: "Secret".to_owned(),
        reason: "Forbidden".to_owned(),
        message: "secrets is forbidden".to_owned(),
    };
    fleet.facts("us-1", "observer", |facts| facts.blind = Some("forbidden".to_owned()), vec![error]);
    fleet.change("eu-1", "observer", vec![observed(&app("eu-1", "shop/web"), Status::Failed, "crashes")]);
    fleet.index.publish();
    let document = openapi::document();
    for (path, query) in [
        ("/api/v1/apps", "limit=2"),
        ("/api/v1/apps", "fields=name,sync"),
        ("/api/v1/apps", "group-by=status&limit=1"),
        ("/api/v1/apps", "group-by=status&fields=colour"),
        ("/api/v1/apps", "at=2026-03-01T12:00:00Z"),
        ("/api/v1/apps/{cluster}/{delivery}/{namespace}/{name}", ""),
        ("/api/v1/apps/{cluster}/{delivery}/{namespace}/{name}", "home=mars"),
        ("/api/v1/clusters", ""),
        ("/api/v1/matrix", ""),
        ("/api/v1/attention", ""),
        ("/api/v1/changes", ""),
        ("/api/v1/changes", "limit=none"),
    ] {
        let real = path.replace("{cluster}/{delivery}/{namespace}/{name}", "eu-1/ks/shop/web");
        let got = fetch(&fleet, &format!("{real}?{query}")).await;
        let content = &document["paths"][path]["get"]["responses"][got.status.as_str()]["content"];
        let schema = &content[&got.content_type]["schema"];
        assert!(schema.is_object(), "{path} {query}: {got:?}");
        let faults = openapi::faults(&document, schema, &got.body, "");
        assert!(faults.is_empty(), "{path} {query}: {faults:?}");
    }
}

#[tokio::test]
async fn long_texts_of_one_app_hide_no_others_and_are_said() {
    let long = "\u{1}".repeat(20_000);
    let fleet = SampleFleet::new();
    fleet.open("eu-1", "observer");
    let halves = ["a", "b", "c"].map(|name| {
        declared(&app("eu-1", name), "eu-1", |half| {
            half.key = format!("{name}{long}");
            half.source = Some(Arc::new(taffrail_apps::Source {
                kind: "git".to_owned(),
                namespace: None,
                name: None,
                url: Some(format!("{name}{long}")),
                path: Some(long.clone()),
                reference: None,
            }));
        })
    });
    fleet.snapshot("eu-1", halves.into());
    fleet.index.publish();
    let router = open_router(&fleet);
    for path in ["/api/v1/apps?group-by=source", "/api/v1/apps?group-by=key", "/api/v1/matrix?"] {
        let (mut next, mut pages) = (String::new(), 0);
        loop {
            let request = http::Request::get(format!("{path}&limit=1{next}")).body(Body::empty()).unwrap();
            let got = send(&router, request).await;
            assert_eq!(got.status, StatusCode::OK, "{path} {got:?}");
            pages += 1;
            let Some(cursor) = got.body["next"].as_str() else { break };
            next = format!("&cursor={cursor}");
        }
        assert_eq!(pages, 3, "{path}");
    }
    let got = fetch(&fleet, "/api/v1/apps").await;
    assert_eq!(got.body["errors"][0]["reason"], "TooLong", "{got:?}");
}
