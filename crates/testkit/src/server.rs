//! An API server with scripted answers, over HTTP or HTTPS, HTTP/1.1 or HTTP/2.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _};
use http::{Method, Response, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The maximum time that [`Server::until`] waits: enough for a busy machine; a test that passes never waits that long.
const MAX_WAIT: Duration = Duration::from_secs(45);

/// The server's reaction to a request.
pub enum Reply {
    /// A whole answer: HTTP status, headers, body.
    Whole(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// A successful answer in JSON, in parts; an error breaks it off.
    Parts(BoxStream<'static, io::Result<Bytes>>),
    /// No answer; the connection stays open.
    Silence,
}

impl Reply {
    /// Returns a whole answer in JSON, with this HTTP status.
    pub fn json(status: u16, body: impl Into<String>) -> Reply {
        let headers = vec![("content-type", "application/json".to_owned())];
        Reply::Whole(status, headers, body.into().into_bytes())
    }

    /// Returns an error as the API server sends it: a `Status` object with this code, reason and message.
    pub fn status(code: u16, reason: &str, message: &str) -> Reply {
        let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
            "message": message, "reason": reason, "code": code});
        Reply::json(code, body.to_string())
    }

    /// Returns a successful answer that breaks off after this text.
    pub fn cut(text: impl Into<Bytes>) -> Reply {
        let broken = futures::stream::once(async {
            // Lets the first bytes out before the connection is closed.
            tokio::task::yield_now().await;
            Err(io::Error::other("cut"))
        });
        Reply::Parts(part(text).chain(broken).boxed())
    }

    /// Returns a successful answer that stops after this text and stays open.
    pub fn stuck(text: impl Into<Bytes>) -> Reply {
        Reply::Parts(part(text).chain(futures::stream::pending()).boxed())
    }

    /// Returns a successful answer that repeats this text endlessly.
    pub fn flood(text: &str) -> Reply {
        let text = Bytes::from(text.repeat(64));
        Reply::Parts(futures::stream::repeat_with(move || Ok(text.clone())).boxed())
    }

    /// Returns a successful answer that repeats this text endlessly, once every 50 ms, so that it never gets long.
    pub fn trickle(text: &'static str) -> Reply {
        let slow = futures::stream::repeat(()).then(move |()| async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(Bytes::from_static(text.as_bytes()))
        });
        Reply::Parts(slow.boxed())
    }

    /// Returns a successful answer that begins with one text, continues with another once that is available, and ends.
    pub fn staged(first: impl Into<Bytes>, then: impl Future<Output = String> + Send + 'static) -> Reply {
        let then = futures::stream::once(async { Ok(Bytes::from(then.await)) });
        Reply::Parts(part(first).chain(then).boxed())
    }

    /// Adds a header to a whole answer; other replies stay as they are.
    #[must_use]
    pub fn header(self, name: &'static str, value: &str) -> Reply {
        match self {
            Reply::Whole(status, mut headers, body) => {
                headers.push((name, value.to_owned()));
                Reply::Whole(status, headers, body)
            }
            other => other,
        }
    }
}

fn part(text: impl Into<Bytes>) -> BoxStream<'static, io::Result<Bytes>> {
    let text = text.into();
    futures::stream::once(async { Ok(text) }).boxed()
}

/// Formats a line of a watch: the event `word`, such as `ADDED`, with the object.
pub fn watch_event(word: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": word, "object": object}))
}

/// Returns the answer to a client's first requests (`/version`, `/api`, `/apis`), of a server with these kinds in the
/// core group, as `("configmaps", "ConfigMap")`; `None` for other requests.
pub fn core_discovery(request: &Request, kinds: &[(&str, &str)]) -> Option<Reply> {
    let groups = |items: Value| json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items});
    let resource = |(plural, kind): &(&str, &str)| {
        json!({"resource": plural, "singularResource": "", "scope": "Namespaced", "verbs": ["get", "list", "watch"],
            "responseKind": {"group": "", "version": "v1", "kind": kind}})
    };
    let body = match request.path.as_str() {
        "/version" => json!({"gitVersion": "v1.33.0"}),
        "/api" => {
            let resources: Vec<Value> = kinds.iter().map(resource).collect();
            let versions = json!([{"version": "v1", "freshness": "Current", "resources": resources}]);
            groups(json!([{"metadata": {"name": ""}, "versions": versions}]))
        }
        "/apis" => groups(json!([])),
        _ => return None,
    };
    Some(Reply::json(200, body.to_string()))
}

/// A request that the server received.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The header `content-type`, empty if it is missing.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
    /// The path, without the query.
    pub path: String,
    /// The query, empty if there is none.
    pub query: String,
    /// The header `accept`, empty if it is missing.
    pub accept: String,
    /// The header `user-agent`, empty if it is missing.
    pub agent: String,
    /// The header `authorization`; `None` if it is missing.
    pub authorization: Option<String>,
    /// The version of HTTP.
    pub version: Version,
}

impl Request {
    /// Returns path and query, as in the request line.
    pub fn target(&self) -> String {
        if self.query.is_empty() { self.path.clone() } else { format!("{}?{}", self.path, self.query) }
    }
}

/// The traffic of a server.
#[derive(Debug, Default)]
pub struct Traffic {
    /// All requests so far.
    pub requests: Vec<Request>,
    /// The targets of the requests whose answers come in parts and have not ended.
    pub open: Vec<String>,
    /// The number of connections so far.
    pub connections: usize,
    /// The largest number of requests that waited for their answer at the same time.
    pub most_under_way: usize,
    under_way: usize,
}

impl Traffic {
    /// Returns the number of requests so far whose path with query contains `part`.
    pub fn count(&self, part: &str) -> usize {
        self.requests.iter().filter(|request| request.target().contains(part)).count()
    }
}

#[derive(Default)]
struct Board {
    traffic: Mutex<Traffic>,
    moved: Condvar,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut Traffic)) {
        change(&mut self.lock());
        self.moved.notify_all();
    }
}

/// A server that answers by a script, on threads of its own, until it is dropped.
pub struct Server {
    address: SocketAddr,
    is_https: bool,
    board: Arc<Board>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // It may be dropped where a test's own runtime must not be blocked.
            runtime.shutdown_background();
        }
    }
}

type Script = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

impl Server {
    /// Starts a server for HTTP.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        Server::serve(None, Duration::ZERO, Arc::new(script))
    }

    /// Starts a server for HTTPS, which waits for `delay` before it answers a request.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start_tls(
        tls: rustls::ServerConfig,
        delay: Duration,
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Server {
        Server::serve(Some(TlsAcceptor::from(Arc::new(tls))), delay, Arc::new(script))
    }

    /// Starts a server that accepts connections and never answers.
    ///
    /// # Panics
    /// If no port is free.
    pub fn hanging() -> Server {
        Server::start(|_| Reply::Silence)
    }

    #[expect(clippy::expect_used, reason = "a test without a server fails")]
    fn serve(tls: Option<TlsAcceptor>, delay: Duration, script: Script) -> Server {
        let (runtime, listener) = listen().expect("a server on a free port");
        let address = listener.local_addr().expect("the address of the server");
        let board = Arc::new(Board::default());
        let (is_https, shared) = (tls.is_some(), board.clone());
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.note(|traffic| traffic.connections += 1);
                let (tls, script, board) = (tls.clone(), script.clone(), shared.clone());
                tokio::spawn(async move {
                    match tls {
                        None => connection(stream, delay, script, board).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                connection(stream, delay, script, board).await;
                            }
                        }
                    }
                });
            }
        });
        Server { address, is_https, board, runtime: Some(runtime) }
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the server's URL: `http` or `https`, address and port, without a path.
    pub fn url(&self) -> String {
        format!("{}://{}", if self.is_https { "https" } else { "http" }, self.address)
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.board.lock().requests.clone()
    }

    /// Returns the traffic so far; the server is blocked until the guard is dropped.
    pub fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.board.lock()
    }

    /// Waits until `holds` returns true for the traffic; calls it now and after each change of the traffic.
    ///
    /// # Panics
    /// If it does not within 45 s.
    #[track_caller]
    pub fn until(&self, holds: impl Fn(&Traffic) -> bool) {
        let waited = self.board.moved.wait_timeout_while(self.board.lock(), MAX_WAIT, |it| !holds(it));
        let (traffic, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        let found = timeout.timed_out().then(|| format!("{traffic:#?}"));
        // The server must be able to continue.
        drop(traffic);
        assert!(
            found.is_none(),
            "the expected traffic did not come within 45 s; it was: {}",
            found.unwrap_or_default()
        );
    }
}

fn listen() -> Result<(tokio::runtime::Runtime, TcpListener)> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    listener.set_nonblocking(true)?;
    let inside = runtime.enter();
    let listener = TcpListener::from_std(listener)?;
    drop(inside);
    Ok((runtime, listener))
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    delay: Duration,
    script: Script,
    board: Arc<Board>,
) {
    let service = hyper::service::service_fn(move |request: http::Request<Incoming>| {
        let (script, board) = (script.clone(), board.clone());
        async move {
            let request = read(request).await;
            board.note(|traffic| {
                traffic.requests.push(request.clone());
                traffic.under_way += 1;
                traffic.most_under_way = traffic.most_under_way.max(traffic.under_way);
            });
            tokio::time::sleep(delay).await;
            let response = answer(script(&request), &request, &board).await;
            board.note(|traffic| traffic.under_way -= 1);
            Ok::<_, Infallible>(response)
        }
    });
    // A client that disconnects is not an error of the server.
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

async fn read(request: http::Request<Incoming>) -> Request {
    let header = |name: &str| {
        let value = request.headers().get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let mut read = Request {
        method: request.method().clone(),
        content_type: header("content-type").unwrap_or_default(),
        body: Vec::new(),
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        accept: header("accept").unwrap_or_default(),
        agent: header("user-agent").unwrap_or_default(),
        authorization: header("authorization"),
        version: request.version(),
    };
    let body = request.into_body().collect().await;
    read.body = body.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
    read
}

/// An answer in parts that has not ended; its drop removes the target from [`Traffic::open`].
struct Open {
    board: Arc<Board>,
    target: String,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.board.note(|traffic| {
            let at = traffic.open.iter().position(|open| *open == self.target);
            at.map(|at| traffic.open.swap_remove(at));
        });
    }
}

#[expect(clippy::expect_used, reason = "a script that is not HTTP is a mistake in the test")]
async fn answer(
    reply: Reply,
    request: &Request,
    board: &Arc<Board>,
) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
    let (response, parts) = match reply {
        Reply::Whole(status, headers, body) => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            (response, part(body))
        }
        Reply::Parts(parts) => {
            let open = Open { board: board.clone(), target: request.target() };
            board.note(|traffic| traffic.open.push(open.target.clone()));
            let parts = parts.inspect(move |_| {
                let _ = &open;
            });
            (Response::builder().header("content-type", "application/json"), parts.boxed())
        }
        Reply::Silence => std::future::pending().await,
    };
    let frames = parts.map(|part| part.map(Frame::data));
    response.body(UnsyncBoxBody::new(StreamBody::new(frames))).expect("a response")
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use super::*;

    /// Sends a GET request for `target` in HTTP/1.1, and returns the connection with the unread answer.
    fn ask(server: &Server, target: &str) -> TcpStream {
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        write!(stream, "GET {target} HTTP/1.1\r\nhost: a\r\n\r\n").expect("sent");
        stream
    }

    fn until_text(stream: &mut TcpStream, text: &str) {
        let (mut read, mut buffer) = (String::new(), [0; 1024]);
        while !read.contains(text) {
            let length = stream.read(&mut buffer).expect("more");
            assert_ne!(length, 0, "{read}");
            read.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
    }

    #[test]
    fn server_records_requests_and_tracks_open_answers() {
        let server = Server::start(|request| match request.path.as_str() {
            "/stuck" => Reply::stuck("half"),
            _ => Reply::status(404, "NotFound", "no"),
        });
        until_text(&mut ask(&server, "/none"), "\"reason\":\"NotFound\"");
        let mut stuck = ask(&server, "/stuck?watch=1");
        until_text(&mut stuck, "half");
        server.until(|traffic| traffic.open == ["/stuck?watch=1"]);
        drop(stuck);
        server.until(|traffic| traffic.open.is_empty());
        assert_eq!(server.traffic().count("/stuck"), 1);
        assert_eq!(server.traffic().connections, 2);
    }

    #[test]
    fn cut_answer_breaks_off() {
        let server = Server::start(|_| Reply::cut("half"));
        let mut all = String::new();
        // The end is an error or just the end of the stream.
        let _ = ask(&server, "/").read_to_string(&mut all);
        assert!(all.contains("half") && !all.contains("0\r\n\r\n"), "{all}");
    }
}
