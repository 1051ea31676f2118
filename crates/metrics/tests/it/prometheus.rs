//! A stand-in for Prometheus: answers the instant queries of a reader about texts that it "scrapes", by a clock of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use regex::Regex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// The time for which a sample is found after its scrape, in seconds.
const LOOKBACK: f64 = 300.0;

type Labels = BTreeMap<String, String>;

/// A target: its own labels, and the samples of each series with their times.
#[derive(Default)]
struct FakeTarget {
    labels: Labels,
    series: BTreeMap<Labels, (f64, f64)>,
}

/// The behaviour of the server.
#[derive(Default)]
pub(crate) struct FakeState {
    /// The time of the server's clock, in seconds.
    pub(crate) now: f64,
    targets: Vec<FakeTarget>,
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
    fn target(&mut self, labels: &str) -> &mut FakeTarget {
        let labels = parse_labels(labels);
        let place = self.targets.iter().position(|target| target.labels == labels).unwrap_or_else(|| {
            self.targets.push(FakeTarget { labels, ..FakeTarget::default() });
            self.targets.len() - 1
        });
        &mut self.targets[place]
    }

    /// Replaces the samples of a target by those of a text, as a scrape at this moment does.
    pub(crate) fn scrape(&mut self, labels: &str, text: &str) {
        let now = self.now;
        let target = self.target(labels);
        target.series.clear();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (series, rest) = match line.rfind('}') {
                Some(end) => line.split_at(end + 1),
                None => line.split_once(' ').unwrap(),
            };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let mut labels = parse_labels(labels.trim_end_matches('}'));
            for (label, value) in &target.labels {
                if let Some(own) = labels.insert(label.clone(), value.clone()) {
                    labels.insert(format!("exported_{label}"), own);
                }
            }
            labels.insert("__name__".to_owned(), name.to_owned());
            let mut numbers = rest.split_whitespace();
            let value = numbers.next().unwrap().parse().unwrap();
            let at = numbers.next().map_or(now, |at| at.parse::<f64>().unwrap() / 1_000.0);
            target.series.insert(labels, (value, at));
        }
        target.up(now, 1.0);
    }

    /// Lets a scrape of a target fail now.
    pub(crate) fn fail(&mut self, labels: &str) {
        let now = self.now;
        let target = self.target(labels);
        target.series.clear();
        target.up(now, 0.0);
    }

    fn answer(&self, query: &str, time: Option<f64>) -> (u16, String) {
        if let Some((_, status, body)) = self.answers.iter().find(|(text, ..)| query.contains(&**text)) {
            return (*status, body.clone());
        }
        let warning = self.warnings.iter().find(|(text, _)| query.contains(&**text));
        let warnings =
            warning.map(|(_, warning)| format!(",\"warnings\":[{}]", json(warning))).unwrap_or_default();
        let time = time.unwrap_or(self.now);
        if query == "time()" {
            let body = format!(
                r#"{{"status":"success","data":{{"resultType":"scalar","result":[{time},"{time}"]}}{warnings}}}"#
            );
            return (200, body);
        }
        let (is_time, selector) = match query.strip_prefix("timestamp(") {
            Some(rest) => (true, rest.strip_suffix(')').unwrap()),
            None => (false, query),
        };
        let matchers = parse_matchers(selector);
        let mut items = Vec::new();
        let all = self.targets.iter().flat_map(|target| &target.series);
        for (labels, (value, at)) in all.filter(|(_, (_, at))| *at <= time && time - at < LOOKBACK) {
            let is_selected = matchers
                .iter()
                .all(|(label, matcher)| matcher.is_match(labels.get(label).map_or("", String::as_str)));
            if !is_selected {
                continue;
            }
            let shown = labels.iter().filter(|(label, _)| !is_time || *label != "__name__");
            let shown: Vec<String> =
                shown.map(|(label, value)| format!("{}:{}", json(label), json(value))).collect();
            let value = if is_time { *at } else { *value };
            items.push(format!(r#"{{"metric":{{{}}},"value":[{time},"{value}"]}}"#, shown.join(",")));
        }
        let items = items.join(",");
        let body = format!(
            r#"{{"status":"success","data":{{"resultType":"vector","result":[{items}]}}{warnings}}}"#
        );
        (200, body)
    }
}

impl FakeTarget {
    fn up(&mut self, now: f64, value: f64) {
        let mut labels = self.labels.clone();
        labels.insert("__name__".to_owned(), "up".to_owned());
        self.series.insert(labels, (value, now));
    }
}

fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// Parses `a="b",c="d"`, with the escapes of the exposition format.
fn parse_labels(text: &str) -> Labels {
    static PAIR: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)""#).unwrap());
    let read = PAIR.captures_iter(text).map(|it| {
        let value = it[2].replace("\\n", "\n").replace("\\\"", "\"").replace("\\\\", "\\");
        (it[1].to_owned(), value)
    });
    read.collect()
}

enum Matcher {
    Equal(String),
    Like(Regex),
}

impl Matcher {
    fn is_match(&self, text: &str) -> bool {
        match self {
            Matcher::Equal(other) => text == other,
            Matcher::Like(expression) => expression.is_match(text),
        }
    }
}

fn parse_matchers(selector: &str) -> Vec<(String, Matcher)> {
    let (name, rest) = selector.split_once('{').unwrap();
    static MATCHER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"([a-zA-Z_][a-zA-Z0-9_]*)(=~|=)"((?:[^"\\]|\\.)*)""#).unwrap());
    let matcher = |it: regex::Captures<'_>| {
        let matcher = match &it[2] {
            "=" => Matcher::Equal(it[3].to_owned()),
            _ => Matcher::Like(Regex::new(&format!("^(?:{})$", &it[3])).unwrap()),
        };
        (it[1].to_owned(), matcher)
    };
    let mut matchers: Vec<(String, Matcher)> = MATCHER.captures_iter(rest).map(matcher).collect();
    if !name.is_empty() {
        matchers.insert(0, ("__name__".to_owned(), Matcher::Equal(name.to_owned())));
    }
    matchers
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
