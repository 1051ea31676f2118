//! Requests that are let in, and those that are refused.

use std::net::SocketAddr;
use std::time::Duration;

use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::http::{Access, Door, serve};
use crate::index::samples::START;
use crate::store::Token;

/// A hub on loopback at port 7070 with the token of its run.
fn loopback() -> (Router, Token) {
    let fleet = fleet();
    let (access, token) = Access::loopback(7070).unwrap();
    let hub = HubApi::new(Arc::clone(&fleet.index), access, Limits::default()).unwrap();
    (router(Arc::new(hub)), token)
}

async fn ask(
    router: &Router,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (Got, HeaderMap) {
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let content_type = headers.get(header::CONTENT_TYPE).map_or("", |it| it.to_str().unwrap()).to_owned();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (Got { status, content_type, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) }, headers)
}

async fn status(router: &Router, headers: &[(&str, &str)]) -> u16 {
    ask(router, Method::GET, "/api/v1/apps", headers, "").await.0.status.as_u16()
}

const HOST: (&str, &str) = ("host", "127.0.0.1:7070");

#[tokio::test]
async fn only_the_right_token_is_let_in() {
    let (router, token) = loopback();
    let bearer = format!("Bearer {}", token.as_str());
    assert_eq!(status(&router, &[HOST, ("authorization", &bearer)]).await, 200);
    assert_eq!(status(&router, &[("host", "LocalHost:7070"), ("authorization", &bearer)]).await, 200);
    assert_eq!(status(&router, &[("host", "[::1]:7070"), ("authorization", &bearer)]).await, 200);
    let wrong = format!("Bearer taffrail_{}", "0".repeat(64));
    for headers in [
        &[HOST][..],
        &[HOST, ("authorization", &wrong)],
        &[HOST, ("authorization", "Bearer")],
        &[HOST, ("authorization", token.as_str())],
        &[HOST, ("authorization", &bearer), ("authorization", &bearer)],
        &[HOST, ("cookie", "taffrail-7070=guess"), ("sec-fetch-site", "same-origin")],
        &[HOST, ("cookie", &format!("taffrail-7070={}", token.as_str())), ("sec-fetch-site", "same-origin")],
    ] {
        let (got, answered) = ask(&router, Method::GET, "/api/v1/apps", headers, "").await;
        assert_eq!(
            (got.status.as_u16(), &*got.content_type),
            (401, "application/problem+json"),
            "{headers:?}"
        );
        assert_eq!(answered["www-authenticate"], "Bearer realm=\"taffrail\"");
        assert!(!got.body.to_string().contains("eu-1"));
    }
    // What does not exist is not told to strangers.
    for path in ["/nothing", "/metrics", "/api/v1/stream"] {
        assert_eq!(ask(&router, Method::GET, path, &[HOST], "").await.0.status, 401, "{path}");
    }
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused_even_with_the_token() {
    let (router, token) = loopback();
    let bearer = format!("Bearer {}", token.as_str());
    let authorized = ("authorization", &*bearer);
    for headers in [
        &[authorized][..],
        &[authorized, ("host", "evil.example.com")],
        &[authorized, ("host", "evil.example.com:7070")],
        &[authorized, ("host", "127.0.0.1")],
        &[authorized, ("host", "127.0.0.1:7071")],
        &[authorized, ("host", "localhost.evil.example.com:7070")],
        &[authorized, HOST, ("host", "evil.example.com")],
        &[authorized, HOST, ("origin", "http://evil.example.com")],
        &[authorized, HOST, ("origin", "https://127.0.0.1:7070")],
        &[authorized, HOST, ("origin", "http://127.0.0.1:3000")],
        &[authorized, HOST, ("origin", "null")],
    ] {
        let (got, _) = ask(&router, Method::GET, "/api/v1/apps", headers, "").await;
        assert_eq!(
            (got.status.as_u16(), &*got.content_type),
            (403, "application/problem+json"),
            "{headers:?}"
        );
    }
    assert_eq!(status(&router, &[authorized, HOST, ("origin", "http://localhost:7070")]).await, 200);
    // A whole URL in the first line names a host, too.
    let (got, _) =
        ask(&router, Method::GET, "http://evil.example.com/api/v1/apps", &[authorized, HOST], "").await;
    assert_eq!(got.status, 403);
}

#[tokio::test]
async fn token_is_exchanged_for_a_session_that_counts_only_for_the_own_page() {
    let (router, token) = loopback();
    let session = |token: &str| {
        let body = json!({ "token": token }).to_string();
        let router = router.clone();
        async move {
            ask(&router, Method::POST, "/api/v1/session", &[HOST, ("sec-fetch-site", "same-origin")], &body)
                .await
        }
    };
    assert_eq!(session("guess").await.0.status, 401);
    let (got, headers) = session(token.as_str()).await;
    assert_eq!(got.status, StatusCode::NO_CONTENT);
    let cookie = headers["set-cookie"].to_str().unwrap();
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict");
    assert!(pair.starts_with("taffrail-7070=") && !pair.contains(token.as_str()), "{pair}");

    let with = |site: Option<&'static str>| {
        let mut headers = vec![HOST, ("cookie", pair)];
        headers.extend(site.map(|site| ("sec-fetch-site", site)));
        headers
    };
    assert_eq!(status(&router, &with(Some("same-origin"))).await, 200);
    assert_eq!(status(&router, &with(Some("none"))).await, 200);
    for site in [Some("same-site"), Some("cross-site"), Some("nonsense"), None] {
        assert_eq!(status(&router, &with(site)).await, 403, "{site:?}");
    }
    // A cookie of another port beside it does not hide it.
    let both = format!("taffrail-7071=x; taffrail-7070=y; {pair}");
    assert_eq!(status(&router, &[HOST, ("cookie", &both), ("sec-fetch-site", "same-origin")]).await, 200);
    // Of many sessions the first one ends.
    for _ in 0..64 {
        session(token.as_str()).await;
    }
    assert_eq!(status(&router, &with(Some("same-origin"))).await, 401);
    let listed = json!([token.as_str()]).to_string();
    for body in ["", "{}", "[]", "{\"token\": 1}", &listed] {
        let (got, _) = ask(&router, Method::POST, "/api/v1/session", &[HOST], body).await;
        assert_eq!(got.status, 400, "{body}");
    }
}

#[tokio::test]
async fn static_tokens_are_valid_until_they_expire_or_are_revoked() {
    let fleet = fleet();
    let token = Token::generate().unwrap();
    let start = Timestamp::from_second(START).unwrap();
    let mut record = token.record("ci", start);
    record.expires = Some(start + SignedDuration::from_secs(60));
    let access = Access::behind_tls(["hub.example.com".to_owned()], vec![record]);
    let hub = Arc::new(HubApi::new(Arc::clone(&fleet.index), access, Limits::default()).unwrap());
    let router = router(Arc::clone(&hub));
    let bearer = format!("Bearer {}", token.as_str());
    let headers = [("host", "hub.example.com"), ("authorization", &*bearer)];
    assert_eq!(status(&router, &headers).await, 200);
    let body = json!({ "token": token.as_str() }).to_string();
    let (_, answered) = ask(&router, Method::POST, "/api/v1/session", &headers, &body).await;
    let cookie = answered["set-cookie"].to_str().unwrap();
    assert!(cookie.ends_with("; SameSite=Strict; Secure"));
    let (cookie, _) = cookie.split_once(';').unwrap();
    let session = [("host", "hub.example.com"), ("cookie", cookie), ("sec-fetch-site", "same-origin")];
    assert_eq!(status(&router, &session).await, 200);
    fleet.pass(60);
    assert_eq!((status(&router, &headers).await, status(&router, &session).await), (401, 401));
    let access = hub.access.as_ref().unwrap();
    access.set_tokens(vec![token.record("ci", start)]);
    assert_eq!((status(&router, &headers).await, status(&router, &session).await), (200, 200));
    // Another token ends no session.
    access.set_tokens(vec![token.record("ci", start), Token::generate().unwrap().record("more", start)]);
    assert_eq!(status(&router, &session).await, 200);
    access.set_tokens(Vec::new());
    assert_eq!((status(&router, &headers).await, status(&router, &session).await), (401, 401));
}

/// Only a hub on loopback prints a URL.
#[tokio::test]
async fn hints_behind_tls_name_no_printed_url() {
    let access = Access::behind_tls(["hub.example.com".to_owned()], Vec::new());
    let hub = HubApi::new(Arc::clone(&fleet().index), access, Limits::default()).unwrap();
    let (tls, (loopback, _)) = (router(Arc::new(hub)), loopback());
    for (router, host, cookie, is_printed) in [
        (&tls, "hub.example.com", "__Host-taffrail=guess", false),
        (&loopback, HOST.1, "taffrail-7070=guess", true),
    ] {
        for headers in [&[("host", host)][..], &[("host", host), ("cookie", cookie)]] {
            let (got, _) = ask(router, Method::GET, "/api/v1/apps", headers, "").await;
            let hint = got.body["hint"].as_str().unwrap();
            assert_eq!((got.status.as_u16(), hint.contains("printed")), (401, is_printed), "{hint}");
        }
    }
}

#[tokio::test]
async fn probes_answer_everybody_and_tell_nothing_of_the_fleet() {
    let (router, _) = loopback();
    for path in ["/healthz", "/readyz"] {
        let (got, _) = ask(&router, Method::GET, path, &[("host", "10.0.0.7:8443")], "").await;
        assert_eq!((got.status, &*got.content_type), (StatusCode::OK, "application/json"), "{path}");
    }
    let fleet = SampleFleet::new();
    assert_eq!(fetch(&fleet, "/readyz").await.status, StatusCode::SERVICE_UNAVAILABLE);
    fleet.index.publish();
    assert_eq!(fetch(&fleet, "/readyz").await.body, json!({"ready": true}));
}

#[tokio::test]
async fn too_large_requests_are_refused_with_the_reason() {
    let (router, token) = loopback();
    let bearer = format!("Bearer {}", token.as_str());
    let headers = [HOST, ("authorization", &*bearer)];
    let long = "a".repeat(17_000);
    let (got, _) = ask(&router, Method::GET, &format!("/api/v1/apps?text={long}"), &headers, "").await;
    assert_eq!((got.status.as_u16(), &*got.content_type), (414, "application/problem+json"));
    let many = "a".repeat(40_000);
    let (got, _) = ask(&router, Method::GET, "/api/v1/apps", &[HOST, ("x-more", &many)], "").await;
    assert_eq!(got.status, 431);
    let (got, _) = ask(&router, Method::POST, "/api/v1/session", &[HOST], &many).await;
    assert_eq!(got.status, 413);
    // A body whose length is not told.
    let chunks = futures::stream::iter((0..40).map(|_| Ok::<_, std::io::Error>(vec![b'a'; 1_000])));
    let request =
        http::Request::post("/api/v1/session").header("host", HOST.1).body(Body::from_stream(chunks));
    assert_eq!(router.clone().oneshot(request.unwrap()).await.unwrap().status(), 413);
}

#[tokio::test]
async fn answers_count_until_they_are_sent() {
    let fleet = fleet();
    let limits = Limits { requests: 2, ..Limits::default() };
    let router = router(Arc::new(HubApi::of(Arc::clone(&fleet.index), None, limits).unwrap()));
    let get = || router.clone().oneshot(http::Request::get("/api/v1/apps").body(Body::empty()).unwrap());
    let (first, second) = (get().await.unwrap(), get().await.unwrap());
    let refused = get().await.unwrap();
    assert_eq!(
        (refused.status(), &refused.headers()["retry-after"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().unwrap())
    );
    drop(first);
    assert_eq!(get().await.unwrap().status(), 200);
    drop(second);
}

#[tokio::test]
async fn every_answer_forbids_to_keep_and_to_embed_it() {
    let (router, _) = loopback();
    for path in ["/healthz", "/api/v1/apps", "/nothing"] {
        let (_, headers) = ask(&router, Method::GET, path, &[HOST], "").await;
        assert_eq!(headers["cache-control"], "no-store", "{path}");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["content-security-policy"], "default-src 'none'; frame-ancestors 'none'");
        assert!(!headers.contains_key("access-control-allow-origin"));
    }
}

#[tokio::test]
async fn hub_answers_on_a_real_socket_until_it_ends() {
    let fleet = fleet();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (access, token) = Access::loopback(address.port()).unwrap();
    let limits = Limits { time: Duration::from_millis(500), ..Limits::default() };
    let hub = Arc::new(HubApi::new(Arc::clone(&fleet.index), access, limits).unwrap());
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(serve([Door { listener, tls: None }], hub, async { drop(ended.await) }));
    let ask = async |request: String| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        drop(stream.read_to_string(&mut answer).await);
        answer
    };
    let request = |more: &str| {
        format!("GET /api/v1/apps?fields=name HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n")
    };
    let answer = ask(request(&format!("Authorization: Bearer {}\r\n", token.as_str()))).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("\"items\":[{\"name\":\"db\"}"),
        "{answer}"
    );
    assert!(ask(request("")).await.starts_with("HTTP/1.1 401 "));
    assert!(ask(request(&format!("X-More: {}\r\n", "a".repeat(200_000)))).await.starts_with("HTTP/1.1 431 "));
    // A request whose headers never end does not stay.
    assert!(!ask("GET /healthz HTTP/1.1\r\nHost:".to_owned()).await.contains(" 200 "));
    end.send(()).unwrap();
    server.await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err());

    let everywhere = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let hub = HubApi::of(Arc::clone(&fleet.index), None, Limits::default()).unwrap();
    let door = Door { listener: everywhere, tls: None };
    let error = serve([door], Arc::new(hub), std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("a hub there needs TLS"), "{error}");
}

#[tokio::test]
async fn doors_share_the_places_of_connections() {
    let fleet = fleet();
    let limits = Limits { connections: 3, ..Limits::default() };
    let hub = Arc::new(HubApi::of(Arc::clone(&fleet.index), None, limits).unwrap());
    let (mut doors, mut addresses) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        addresses.push(listener.local_addr().unwrap());
        doors.push(Door { listener, tls: None });
    }
    let server = tokio::spawn(serve(doors, hub, std::future::pending()));
    let ask = async |address: SocketAddr| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
            .await
            .unwrap();
        stream
    };
    let is_answered = async |stream: &mut TcpStream| stream.read(&mut [0; 64]).await.unwrap() > 0;
    let mut held = Vec::new();
    for door in [0, 1, 1] {
        let mut stream = ask(addresses[door]).await;
        assert!(is_answered(&mut stream).await);
        held.push(stream);
    }
    let mut waiting = ask(addresses[0]).await;
    let early = tokio::time::timeout(Duration::from_millis(200), is_answered(&mut waiting)).await;
    assert!(early.is_err(), "a fourth connection has a place");
    held.pop();
    assert!(is_answered(&mut waiting).await);
    server.abort();
}

#[tokio::test]
async fn strangers_who_send_slowly_take_no_place_of_readers() {
    let fleet = fleet();
    let (access, token) = Access::loopback(7070).unwrap();
    let limits = Limits { requests: 2, ..Limits::default() };
    let router = router(Arc::new(HubApi::new(Arc::clone(&fleet.index), access, limits).unwrap()));
    let slow = || {
        let body = Body::from_stream(futures::stream::pending::<Result<String, std::io::Error>>());
        let request = http::Request::post("/api/v1/session").header(HOST.0, HOST.1).body(body).unwrap();
        Box::pin(router.clone().oneshot(request))
    };
    let mut waiting = [slow(), slow()];
    for request in &mut waiting {
        assert!(futures::poll!(request).is_pending());
    }
    let (got, _) = ask(&router, Method::POST, "/api/v1/session", &[HOST], "{}").await;
    assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE);
    let bearer = format!("Bearer {}", token.as_str());
    assert_eq!(status(&router, &[HOST, ("authorization", &bearer)]).await, 200);
}

/// Every operation of the OpenAPI document, and every method that a path does not have.
#[tokio::test]
async fn every_path_refuses_strangers_and_methods_that_it_does_not_have() {
    let (router, token) = loopback();
    let bearer = format!("Bearer {}", token.as_str());
    let wrong = format!("Bearer taffrail_{}", "0".repeat(64));
    let (right, wrong) = (("authorization", &*bearer), ("authorization", &*wrong));
    let refused = async |method: &Method, path: &str, headers: &[(&str, &str)], status: u16| {
        let (got, answered) = ask(&router, method.clone(), path, headers, "").await;
        assert_eq!(
            (got.status.as_u16(), &*got.content_type),
            (status, "application/problem+json"),
            "{method} {path} {headers:?}"
        );
        answered
    };
    let document = crate::http::openapi::document();
    let mut operations = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let real = path.replace("{cluster}/{delivery}/{namespace}/{name}", "eu-1/ks/shop/web");
        let has = |method: &Method| methods.get(method.as_str().to_ascii_lowercase()).is_some();
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS]
        {
            if !has(&method) {
                let answered = refused(&method, &real, &[HOST, right], 405).await;
                let allowed = match (has(&Method::GET), has(&Method::POST)) {
                    (true, true) => "GET,HEAD,POST",
                    (true, false) => "GET,HEAD",
                    (false, _) => "POST",
                };
                assert_eq!(answered["allow"], allowed, "{method} {path}");
                continue;
            }
            operations += 1;
            // Probes tell nothing of the fleet, and do not know the name of the hub.
            if ["/healthz", "/readyz"].contains(&&**path) {
                continue;
            }
            refused(&method, &real, &[("host", "evil.example.com:7070"), right], 403).await;
            refused(&method, &real, &[HOST, ("origin", "http://evil.example.com"), right], 403).await;
            refused(&method, &real, &[HOST, ("origin", "null"), right], 403).await;
            // The token that opens a session is in the body.
            if path != "/api/v1/session" {
                refused(&method, &real, &[HOST], 401).await;
                refused(&method, &real, &[HOST, wrong], 401).await;
            }
        }
    }
    assert_eq!(operations, 19);
}
