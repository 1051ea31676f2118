//! A stand-in for Prometheus that can be disturbed: answers the instant queries of a reader about texts that it "scrapes",
//! by a clock of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use taffrail_sim::Scrapes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// The behaviour of the server.
#[derive(Default)]
pub(crate) struct FakeState {
    /// The time of the server's clock, in seconds.
    pub(crate) now: f64,
    scrapes: Scrapes,
    /// Answers in place of those of queries that contain the text: the HTTP status and the body.
    pub(crate) answers: Vec<(String, u16, String)>,
    /// The warnings in answers to queries that contain the text.
    pub(crate) warnings: Vec<(String, String)>,
    /// The requests with their headers.
    pub(crate) requests: Vec<String>,
}

/// A running stand-in.
pub(crate) struct FakePrometheus {
    pub(crate) url: String,
    state: Arc<Mutex<FakeState>>,
    tasks: Arc<Mutex<JoinSet<()>>>,
    accepting: JoinHandle<()>,
}

impl FakePrometheus {
    /// Closes the port and all connections.
    pub(crate) fn stop(&self) {
        self.accepting.abort();
        self.tasks.lock().unwrap().abort_all();
    }

    pub(crate) async fn start() -> FakePrometheus {
        FakePrometheus::with_tls(None).await
    }

    /// Starts a stand-in that serves by TLS.
    pub(crate) async fn with_tls(tls: Option<TlsAcceptor>) -> FakePrometheus {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let url = match tls {
            Some(_) => format!("https://localhost:{}", address.port()),
            None => format!("http://{address}"),
        };
        let state = Arc::new(Mutex::new(FakeState { now: 1_800_000_000.0, ..FakeState::default() }));
        let tasks: Arc<Mutex<JoinSet<()>>> = Arc::default();
        let (served, spawned) = (Arc::clone(&state), Arc::clone(&tasks));
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let (tls, served) = (tls.clone(), Arc::clone(&served));
                spawned.lock().unwrap().spawn(async move {
                    match tls {
                        None => serve(stream, served).await,
                        // A client that shows no certificate gets no answer.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, served).await;
                            }
                        }
                    }
                });
            }
        });
        FakePrometheus { url, state, tasks, accepting }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().unwrap()
    }

    /// Scrapes a text of the target with these labels now.
    pub(crate) fn scrape(&self, labels: &str, text: &str) {
        self.state().scrape(labels, text);
    }
}

impl FakeState {
    /// Replaces the samples of a target by those of a text, as a scrape at this moment does.
    pub(crate) fn scrape(&mut self, labels: &str, text: &str) {
        self.scrapes.scrape(labels, text, self.now).unwrap();
    }

    /// Lets a scrape of a target fail now.
    pub(crate) fn fail(&mut self, labels: &str) {
        self.scrapes.fail(labels, self.now).unwrap();
    }

    fn answer(&self, query: &str, time: Option<f64>) -> (u16, String) {
        if let Some((_, status, body)) = self.answers.iter().find(|(text, ..)| query.contains(&**text)) {
            return (*status, body.clone());
        }
        let mut body = self.scrapes.answer(query, time.unwrap_or(self.now)).unwrap();
        if let Some((_, warning)) = self.warnings.iter().find(|(text, _)| query.contains(&**text)) {
            body["warnings"] = serde_json::json!([warning]);
        }
        (200, body.to_string())
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<Mutex<FakeState>>) {
    let mut read = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = read.windows(4).position(|it| it == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let headers = String::from_utf8(read[..head].to_vec()).unwrap();
        let length = headers.to_lowercase();
        let length = length.split("content-length: ").nth(1).unwrap();
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        while read.len() < head + length {
            if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let form: BTreeMap<String, String> =
            form_urlencoded::parse(&read[head..head + length]).into_owned().collect();
        read.drain(..head + length);
        let time = form.get("time").map(|time| time.parse().unwrap());
        let (status, body) = {
            let mut state = state.lock().unwrap();
            state.requests.push(headers);
            state.answer(&form["query"], time)
        };
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
