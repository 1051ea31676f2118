//! Compressed answers.

use std::io::Read;

use flate2::read::GzDecoder;

use super::*;

#[tokio::test]
async fn a_long_answer_is_compressed_if_the_client_accepts_that() {
    let names: Vec<String> = (0..100).map(|number| format!("shop/app-{number}")).collect();
    let apps: Vec<(&str, Status, &str)> = names.iter().map(|name| (&**name, Status::Current, "")).collect();
    let router = open_router(&SampleFleet::new().with("eu-1", &apps));
    let (_, headers, plain) = load(&router, "/api/v1/apps", &[]).await;
    assert_eq!(
        (headers.get("content-encoding"), &headers["vary"]),
        (None, &"accept-encoding".parse().unwrap())
    );
    let accepted = [("accept-encoding", "br, gzip")];
    let (status, headers, short) = load(&router, "/api/v1/apps", &accepted).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers["content-encoding"], "gzip");
    assert_eq!(headers["content-type"], "application/json");
    assert!(short.len() * 8 < plain.len(), "{} of {} bytes", short.len(), plain.len());
    let mut bytes = Vec::new();
    GzDecoder::new(&*short).read_to_end(&mut bytes).unwrap();
    // The moment of the answer differs.
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap()["items"].clone();
    assert_eq!(read(&bytes), read(&plain));
    // A short one is not worth the time.
    let (_, headers, _) = load(&router, "/api/v1/apps?limit=1", &accepted).await;
    assert_eq!(headers.get("content-encoding"), None);
}
