//! Metrics that an agent serves.

use jiff::Timestamp;
use snapbox::{assert_data_eq, str};
use taffrail_agent::{AgentState, SpoolCounts, agent_metrics, serve_metrics};
use taffrail_api::report::ClusterSummary;
use taffrail_apps::FreshnessState;
use taffrail_status::Status;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::hub::LONG;

#[test]
fn metrics_have_the_names_and_labels_of_a_hub_and_the_agents_own() {
    let app = |key: &str, status| (key.to_owned(), status);
    let summary = ClusterSummary {
        name: "eu-1".to_owned(),
        freshness: FreshnessState::Stale,
        // Of two apps of one key the worse one counts.
        apps: vec![app("shop", Status::Current), app("db", Status::Current), app("shop", Status::Failed)],
        problems: 1,
    };
    let expires = Timestamp::from_second(1_800_000_000).ok();
    let state = AgentState { is_connected: true, sessions: 3, expires };
    let spool = SpoolCounts { entries: 2, bytes: 300, dropped: 1 };
    let text = agent_metrics(&[summary], &state, &spool);
    let series = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.contains("_units") || line.ends_with(" 1"));
    assert_data_eq!(
        series.collect::<Vec<_>>().join("\n"),
        str![[r#"
taffrail_app_units{app="db",state="Current"} 1
taffrail_app_units{app="shop",state="Failed"} 1
taffrail_app_state{app="shop",cluster="eu-1"} 0
taffrail_hub_series_omitted{metric="taffrail_app_state"} 0
taffrail_hub_series_omitted{metric="taffrail_cluster_freshness"} 0
taffrail_cluster_freshness{cluster="eu-1"} 1
taffrail_cluster_apps{cluster="eu-1"} 3
taffrail_cluster_problems{cluster="eu-1"} 1
taffrail_agent_connected 1
taffrail_agent_sessions_total 3
taffrail_agent_certificate_expires_seconds 1800000000
taffrail_agent_spool_entries 2
taffrail_agent_spool_bytes 300
taffrail_agent_spool_dropped_total 1
"#]]
    );
}

#[tokio::test]
async fn metrics_are_answered_and_nothing_else() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(serve_metrics(listener, || "taffrail_agent_connected 0\n".to_owned()));
    let ask = async |request: Vec<u8>| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(&request).await;
        let mut answer = Vec::new();
        let _ =
            tokio::time::timeout(LONG, stream.read_to_end(&mut answer)).await.expect("it answers or closes");
        String::from_utf8(answer).unwrap()
    };
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes();
    // Those that send nothing leave room for others.
    let silent = [TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap()];
    let metrics = ask(get("/metrics?x=1")).await;
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{metrics}");
    assert!(metrics.ends_with("\r\n\r\ntaffrail_agent_connected 0\n"), "{metrics}");
    assert!(ask(get("/healthz")).await.ends_with("ok\n"));
    assert!(ask(get("/")).await.starts_with("HTTP/1.1 404 "));
    assert!(ask(b"POST /metrics HTTP/1.1\r\n\r\n".to_vec()).await.starts_with("HTTP/1.1 405 "));
    assert_eq!(ask(vec![b'x'; 20_000]).await, "");
    drop(silent);
    server.abort();
}
