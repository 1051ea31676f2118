//! The page, which needs no token.

use std::io::Read;

use flate2::read::GzDecoder;

use super::*;
use crate::http::guard::is_taken;

const HOST: &str = "127.0.0.1:7654";

/// Returns the router of a hub on loopback whose page anyone may load.
fn guarded(fleet: &SampleFleet) -> Router {
    let (access, _) = Access::loopback(7654).unwrap();
    let hub = HubApi::of(Arc::clone(&fleet.index), Some(access), Limits::default()).unwrap();
    router(Arc::new(hub))
}

#[tokio::test]
async fn a_browser_loads_the_page_without_a_token() {
    let router = guarded(&fleet());
    let browser = [("host", HOST), ("accept", "text/html,*/*;q=0.8"), ("accept-encoding", "gzip, br")];
    let (status, headers, document) = load(&router, "/", &browser).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers["content-encoding"], "gzip");
    let mut text = String::new();
    GzDecoder::new(&*document).read_to_string(&mut text).unwrap();
    assert!(text.starts_with("<!doctype html>"), "{text}");
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert_eq!(headers["cache-control"], "no-store");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    // Each view has an address of its own.
    let (_, _, view) = load(&router, "/apps?status=Failed", &browser).await;
    assert_eq!(view, document);
    let plain = [("host", HOST), ("accept", "text/html"), ("accept-encoding", "gzip;q=0")];
    let (_, headers, body) = load(&router, "/", &plain).await;
    assert_eq!((headers.get("content-encoding"), &*body), (None, text.as_bytes()));
}

#[tokio::test]
async fn all_that_tells_of_the_fleet_needs_a_token() {
    let router = guarded(&fleet());
    let browser = [("host", HOST), ("accept", "text/html")];
    for path in ["/api/v1/apps", "/api/v1/no-such-path", "/api", "/metrics"] {
        assert!(is_taken(path));
        assert_eq!(load(&router, path, &browser).await.0, StatusCode::UNAUTHORIZED, "{path}");
    }
    // A program that asks for a path that does not exist is told so, if it has a token.
    assert_eq!(load(&router, "/apps", &[("host", HOST)]).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(fetch(&fleet(), "/apps").await.status, StatusCode::NOT_FOUND);
    let foreign = [("host", "rebound.example:7654"), ("accept", "text/html")];
    assert_eq!(load(&router, "/", &foreign).await.0, StatusCode::FORBIDDEN);
}
