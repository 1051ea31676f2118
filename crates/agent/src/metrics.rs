//! The agent's own metrics, which it serves by plain HTTP.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use taffrail_api::metrics_text::MetricsText;
use taffrail_api::report::ClusterSummary;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::link::AgentState;
use crate::spool::SpoolCounts;

/// Maximum number of connections at one time; further ones are closed.
const MAX_CONNECTIONS: usize = 16;

/// Maximum length of the head of a request, in bytes.
const MAX_HEAD: usize = 8 * 1024;

/// The time in which a request must come, and its answer be taken.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Writes the metrics of an agent in the text format of Prometheus; those of apps and clusters have the names and labels
/// that a hub gives them.
pub fn agent_metrics(clusters: &[ClusterSummary], state: &AgentState, spool: &SpoolCounts) -> String {
    let mut text = MetricsText::default();
    text.summaries(clusters);
    let AgentState { is_connected, sessions, expires } = state;
    let connected = u8::from(*is_connected);
    text.one("taffrail_agent_connected", "gauge", "1 while the agent is connected to its hub.", connected);
    text.one(
        "taffrail_agent_sessions_total",
        "counter",
        "Connections to the hub that it accepted.",
        sessions,
    );
    if let Some(expires) = expires.map(Timestamp::as_second) {
        let about = "Unix time at which the certificate of the agent expires.";
        text.one("taffrail_agent_certificate_expires_seconds", "gauge", about, expires);
    }
    let SpoolCounts { entries, bytes, dropped } = spool;
    let about = "Changes of apps that the agent keeps because the hub may not have heard of them.";
    text.one("taffrail_agent_spool_entries", "gauge", about, entries);
    text.one("taffrail_agent_spool_bytes", "gauge", "Size of these changes, in bytes.", bytes);
    let about = "Changes of apps that the agent dropped because there were too many, or they were too old.";
    text.one("taffrail_agent_spool_dropped_total", "counter", about, dropped);
    text.into_text()
}

/// Answers `GET /metrics` with what `metrics` returns, and `GET /healthz`, for ever.
pub async fn serve_metrics(
    listener: TcpListener,
    metrics: impl Fn() -> String + Send + Sync + 'static,
) -> Infallible {
    let (metrics, turns) = (Arc::new(metrics), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let Ok(turn) = Arc::clone(&turns).try_acquire_owned() else { continue };
        let metrics = Arc::clone(&metrics);
        tokio::spawn(async move {
            let _turn = turn;
            // A client that is slow, or gone, gets no answer.
            let _ = timeout(PATIENCE, answer(stream, &*metrics)).await;
        });
    }
}

async fn answer(mut stream: TcpStream, metrics: &(impl Fn() -> String + Sync)) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > MAX_HEAD || stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let path = words.nth(1).and_then(|target| target.split(|byte| *byte == b'?').next());
    let plain = "text/plain; charset=utf-8";
    let (status, kind, body) = match path {
        _ if !line.starts_with(b"GET ") => ("405 Method Not Allowed", plain, String::new()),
        Some(b"/metrics") => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics()),
        Some(b"/healthz") => ("200 OK", plain, "ok\n".to_owned()),
        _ => ("404 Not Found", plain, String::new()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\nX-Content-Type-Options: nosniff\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
