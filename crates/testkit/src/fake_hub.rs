//! Hubs with scripted answers: one that answers as a test says, and one of many apps.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// The time that [`ManyApps`] tells.
pub const NOW: &str = "2026-03-01T12:00:00Z";

/// The number of apps in a page of [`ManyApps`].
const PAGE: usize = 200;

/// The time without frames after which a stream of [`ManyApps`] sends an `alive` event, as a hub does.
const ALIVE: Duration = Duration::from_secs(15);

/// A server on a free port of this machine that sends for each request what a function writes.
pub struct FakeHub {
    /// The URL of the server: `http://127.0.0.1:7655`.
    pub url: String,
}

impl FakeHub {
    /// Starts the server, which runs as long as this process. `answer` gets the path of each request, its body and the
    /// connection.
    ///
    /// # Errors
    /// If no port can be opened.
    pub fn start(answer: impl Fn(&str, &str, &mut TcpStream) + Send + Sync + 'static) -> Result<FakeHub> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot open a port")?;
        let url = format!("http://{}", listener.local_addr().context("cannot tell the port")?);
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(mut stream), answer) = (stream, Arc::clone(&answer)) else { continue };
                std::thread::spawn(move || {
                    // A client that went away gets no answer.
                    if let Ok((path, body)) = request(&stream) {
                        answer(&path, &body, &mut stream);
                    }
                });
            }
        });
        Ok(FakeHub { url })
    }
}

/// Reads a request, and returns its path and its body.
fn request(stream: &TcpStream) -> Result<(String, String)> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        match header.to_ascii_lowercase().trim_end().split_once(": ") {
            Some(("content-length", value)) => length = value.parse()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((path, String::from_utf8(body)?))
}

/// Sends a JSON document as the answer.
pub fn send_json(stream: &mut TcpStream, body: &Value) {
    let body = body.to_string();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n", body.len());
    // The client may have gone.
    let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
}

/// Returns the row of the app with this number, which is Ready or has failed.
pub fn app(number: usize, has_failed: bool) -> Value {
    let status = if has_failed { "Failed" } else { "Current" };
    let live = json!({"state": "live", "observedAt": NOW});
    json!({"key": format!("helm/shop/app-{number:05}"), "cluster": "eu-1", "home": "eu-1", "delivery": "helm",
        "namespace": "shop", "name": format!("app-{number:05}"), "health": status, "effective": status,
        "message": if has_failed { "the quota is used up" } else { "" }, "objects": 1, "suspended": false,
        "counts": {"Current": usize::from(!has_failed), "InProgress": 0, "Failed": usize::from(has_failed),
            "Terminating": 0, "NotFound": 0, "Unknown": 0},
        "sync": {"state": "Synced", "effective": "Synced", "freshness": live}, "freshness": live})
}

/// Returns a list of the hub's API with these of `total` items, of one cluster.
pub fn list(kind: &str, items: &[Value], total: usize) -> Value {
    json!({"apiVersion": "taffrail.dev/v1alpha1", "kind": kind, "items": items, "errors": [], "total": total,
        "state": "complete", "asOf": NOW, "clusters": 1, "missing": [], "apps": total, "problems": 0})
}

/// A hub with so many apps in one cluster. All are ready, until a test lets the first one fail.
pub struct ManyApps {
    /// The URL of the hub.
    pub url: String,
    has_failed: Arc<AtomicBool>,
}

impl ManyApps {
    /// Starts the hub, which runs as long as this process.
    ///
    /// # Errors
    /// If no port can be opened.
    pub fn start(number: usize) -> Result<ManyApps> {
        let has_failed = Arc::new(AtomicBool::new(false));
        let state = Arc::clone(&has_failed);
        let hub = FakeHub::start(move |path, _, stream| {
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let parameter = |name: &str| query.split('&').find_map(|part| part.strip_prefix(name));
            let answer = match path {
                "/api/v1/stream" => return follow(stream, &state),
                "/api/v1/apps" => {
                    let from = parameter("cursor=").and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
                    page(number, from, state.load(Ordering::Relaxed))
                }
                "/api/v1/attention" => list("Attention", &[], 0),
                "/api/v1/changes" => list("AppChangeList", &[], 0),
                _ => list("ClusterList", &[], 0),
            };
            send_json(stream, &answer);
        })?;
        Ok(ManyApps { url: hub.url, has_failed })
    }

    /// Makes the first app fail.
    pub fn fail_first(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }
}

/// Returns the page of `number` apps that begins at `from`.
fn page(number: usize, from: usize, has_failed: bool) -> Value {
    let end = (from + PAGE).min(number);
    let items: Vec<Value> = (from..end).map(|place| app(place, has_failed && place == 0)).collect();
    let mut page = list("AppList", &items, number);
    if end < number {
        page["next"] = json!(end.to_string());
    }
    page
}

/// Tells of the state of the fleet, and of a change as soon as there is one, until the client goes.
fn follow(stream: &mut TcpStream, has_failed: &AtomicBool) {
    let mut told = begin_stream(stream);
    let (mut was, mut wrote) = (false, Instant::now());
    while told.is_ok() {
        std::thread::sleep(Duration::from_millis(20));
        let is = has_failed.load(Ordering::Relaxed);
        let event = match is == was {
            false => frame(2),
            true if wrote.elapsed() >= ALIVE => format!("event: alive\ndata: {}\n\n", json!({"asOf": NOW})),
            true => continue,
        };
        told = stream.write_all(event.as_bytes());
        (was, wrote) = (is, Instant::now());
    }
}

/// Sends the head of an event stream, and its first frame: one cluster is live.
///
/// # Errors
/// If the client has gone.
pub fn begin_stream(stream: &mut TcpStream) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    stream.write_all(format!("{head}{}", frame(1)).as_bytes())
}

fn frame(version: usize) -> String {
    let pages = json!([{"name": "news", "version": version},
        {"name": "clusters", "clusters": {"live": 1, "stale": 0, "lost": 0, "state": "complete"}}]);
    format!("event: frame\ndata: {}\n\n", json!({"asOf": NOW, "pages": pages}))
}
