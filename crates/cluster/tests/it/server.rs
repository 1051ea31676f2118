//! A server that answers as a test tells it to, over HTTP or HTTPS, HTTP/1.1 or HTTP/2.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use taffrail_cluster::{Cluster, ConnectError, Context, Deadline, Kubeconfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What the server does with a request.
pub(crate) enum Reply {
    /// A whole answer: status, headers, body.
    Whole(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// A good answer that breaks off after these bytes.
    Cut(&'static str),
    /// A good answer that stops after these bytes and stays open.
    Stuck(&'static str),
    /// No answer.
    Silence,
}

impl Reply {
    pub(crate) fn json(status: u16, body: impl Into<String>) -> Reply {
        let headers = vec![("content-type", "application/json".to_owned())];
        Reply::Whole(status, headers, body.into().into_bytes())
    }

    /// An error as the API server tells it.
    pub(crate) fn status(code: u16, reason: &str, message: &str) -> Reply {
        let body = format!(
            r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"{message}","reason":"{reason}","code":{code}}}"#
        );
        Reply::json(code, body)
    }

    pub(crate) fn header(self, name: &'static str, value: &str) -> Reply {
        match self {
            Reply::Whole(status, mut headers, body) => {
                headers.push((name, value.to_owned()));
                Reply::Whole(status, headers, body)
            }
            other => other,
        }
    }
}

/// What the server saw of a request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: http::Method,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) accept: String,
    pub(crate) agent: String,
    pub(crate) authorization: Option<String>,
    pub(crate) version: Version,
}

#[derive(Default)]
struct Notes {
    seen: Vec<Seen>,
    connections: usize,
    under_way: usize,
    most_under_way: usize,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) https: bool,
    notes: Arc<Mutex<Notes>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Script = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

impl Server {
    /// Serves HTTP.
    pub(crate) async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Server {
        Server::serve(None, Duration::ZERO, Arc::new(script)).await
    }

    /// Serves HTTPS; each answer takes `delay`.
    pub(crate) async fn start_tls(
        tls: rustls::ServerConfig,
        delay: Duration,
        script: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Server {
        Server::serve(Some(TlsAcceptor::from(Arc::new(tls))), delay, Arc::new(script)).await
    }

    async fn serve(tls: Option<TlsAcceptor>, delay: Duration, script: Script) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let notes = Arc::new(Mutex::new(Notes::default()));
        let https = tls.is_some();
        let shared = notes.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.lock().unwrap().connections += 1;
                let (tls, script, notes) = (tls.clone(), script.clone(), shared.clone());
                tokio::spawn(async move {
                    match tls {
                        None => connection(stream, delay, script, notes).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                connection(stream, delay, script, notes).await;
                            }
                        }
                    }
                });
            }
        });
        Server { address, https, notes, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", if self.https { "https" } else { "http" }, self.address)
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.notes.lock().unwrap().seen.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.notes.lock().unwrap().connections
    }

    /// How many requests were under way at the same time at most.
    pub(crate) fn most_under_way(&self) -> usize {
        self.notes.lock().unwrap().most_under_way
    }

    /// Connects without credentials.
    pub(crate) async fn cluster(&self, timeout: Duration) -> Cluster {
        connect(&format!("server: {}", self.url()), "", timeout).await.unwrap()
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    delay: Duration,
    script: Script,
    notes: Arc<Mutex<Notes>>,
) {
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut seen = Seen {
            method: request.method().clone(),
            content_type: header(&request, "content-type").unwrap_or_default(),
            body: Vec::new(),
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            accept: header(&request, "accept").unwrap_or_default(),
            agent: header(&request, "user-agent").unwrap_or_default(),
            authorization: header(&request, "authorization"),
            version: request.version(),
        };
        let (script, notes) = (script.clone(), notes.clone());
        async move {
            seen.body =
                request.into_body().collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
            {
                let mut notes = notes.lock().unwrap();
                notes.seen.push(seen.clone());
                notes.under_way += 1;
                notes.most_under_way = notes.most_under_way.max(notes.under_way);
            }
            tokio::time::sleep(delay).await;
            let response = answer(script(&seen)).await;
            notes.lock().unwrap().under_way -= 1;
            Ok::<_, Infallible>(response)
        }
    });
    // A client that goes away is no concern of the server.
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

fn header(request: &Request<Incoming>, name: &str) -> Option<String> {
    request.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
}

async fn answer(reply: Reply) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
    let begun =
        |text: &'static str| futures::stream::iter([Ok(Frame::data(Bytes::from_static(text.as_bytes())))]);
    let ok = Response::builder().status(200).header("content-type", "application/json");
    match reply {
        Reply::Whole(status, headers, body) => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            let stream = futures::stream::iter([Ok(Frame::data(Bytes::from(body)))]);
            response.body(UnsyncBoxBody::new(StreamBody::new(stream))).unwrap()
        }
        Reply::Cut(text) => {
            let broken = futures::stream::once(async {
                // Lets the first bytes out before the connection goes.
                tokio::task::yield_now().await;
                Err(io::Error::other("cut"))
            });
            ok.body(UnsyncBoxBody::new(StreamBody::new(begun(text).chain(broken)))).unwrap()
        }
        Reply::Stuck(text) => {
            let stuck = begun(text).chain(futures::stream::pending());
            ok.body(UnsyncBoxBody::new(StreamBody::new(stuck))).unwrap()
        }
        Reply::Silence => std::future::pending().await,
    }
}

/// A kubeconfig with one context, whose `cluster` and `user` have these lines.
pub(crate) fn kubeconfig(cluster: &str, user: &str) -> String {
    let indent = |text: &str| text.lines().map(|line| format!("    {line}\n")).collect::<String>();
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\ncontexts:\n- name: test\n  context: {{cluster: c, user: u}}\n\
         clusters:\n- name: c\n  cluster:\n{}users:\n- name: u\n  user:\n{}",
        indent(cluster),
        if user.is_empty() { "    {}\n".to_owned() } else { indent(user) },
    )
}

pub(crate) fn context(cluster: &str, user: &str) -> Context {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), kubeconfig(cluster, user)).unwrap();
    Kubeconfig::load(Some(file.path()), None, None).unwrap().current().unwrap()
}

pub(crate) async fn connect(cluster: &str, user: &str, timeout: Duration) -> Result<Cluster, ConnectError> {
    Cluster::connect(&context(cluster, user), Deadline::after(timeout)).await
}

/// Enough for anything that is not meant to time out.
pub(crate) const LONG: Duration = Duration::from_secs(20);
