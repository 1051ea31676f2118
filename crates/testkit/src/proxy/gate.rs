//! A proxy that ends TLS, and treats requests in a chosen manner.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, DATE, HOST, HeaderMap, HeaderValue,
};
use http::{Method, Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::times::moved;
use crate::kube::certificates;

/// The server behind a gate.
#[derive(Clone, Debug)]
pub struct Backend {
    /// The URL, `https://127.0.0.1:PORT`.
    pub url: String,
    /// The certificates by which the server is trusted, in PEM.
    pub authority: String,
}

/// The manner in which a gate treats requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Everything is forwarded.
    Honest,
    /// Everything is forwarded except the bytes of watches of this resource (its plural), open and new ones, which stay
    /// open. They break off when the manner changes: their bytes are lost.
    Swallowing(&'static str),
    /// The answer to everything is 401; open watches end.
    Unauthorized,
    /// Everything is forwarded, with all times in it moved by this duration. Protobuf is left out of what clients
    /// accept.
    Moved(SignedDuration),
    /// The server is taken for dead: requests for its health and version are answered by the gate as if it were well,
    /// others as this says. Open watches stay open without bytes, and break off when the manner changes.
    Dead(DeadAnswer),
}

/// The answer of a gate in place of a dead server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadAnswer {
    /// None, until the manner changes.
    Hang,
    /// The status 502, as of most proxies.
    BadGateway,
    /// The status 404 with a line for people, as of an ingress without a backend.
    NotFound,
    /// The status 200 with a page for people.
    Page,
    /// The status 200 with a list without items and resource version, in the form that the client asks for.
    Empty,
}

impl Manner {
    /// Returns true if the bytes of the answer to a request for `path` are swallowed.
    fn swallows(&self, path: &str, is_watch: bool) -> bool {
        match self {
            Manner::Swallowing(resource) => is_watch && path.rsplit('/').next() == Some(resource),
            Manner::Dead(_) => true,
            Manner::Honest | Manner::Unauthorized | Manner::Moved(_) => false,
        }
    }
}

/// The stage of a write on its way through a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStage {
    /// The client sent it, and the server does not have it yet.
    Sent,
    /// The server answered, and the client does not have the answer yet.
    Answered,
}

/// A write on its way through a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassingWrite {
    /// Its number among all writes of the gate, from 0.
    pub number: usize,
    /// The stage.
    pub stage: WriteStage,
    /// The method of the request.
    pub method: String,
    /// The path and query of the request.
    pub path: String,
    /// The form of its body.
    pub content_type: String,
    /// The status of the answer, once there is one.
    pub status: Option<u16>,
}

/// Decides about each write and stage if it goes on; one that does not is held until its client leaves.
type WriteJudge = Arc<dyn Fn(&PassingWrite) -> bool + Send + Sync>;

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A proxy before an API server on a loopback address; it runs until the runtime ends.
pub struct Gate {
    /// The address on which it listens.
    pub address: SocketAddr,
    /// The certificate by which clients trust it, in PEM.
    pub authority: String,
    shared: Arc<Shared>,
}

struct Shared {
    manner: watch::Sender<Manner>,
    backend: Backend,
    client: Client<HttpsConnector<HttpConnector>, Incoming>,
    judge: Mutex<Option<WriteJudge>>,
    writes: AtomicUsize,
}

impl Gate {
    /// Opens a gate before a server, on the current Tokio runtime. Writes its certificates into `folder`, which must
    /// exist.
    ///
    /// # Errors
    /// If the certificates cannot be made, or no port is free.
    pub async fn open(folder: &Path, backend: Backend) -> Result<Gate> {
        certificates::write(folder, "gate")?;
        let acceptor = TlsAcceptor::from(Arc::new(serving(folder)?));
        let authority = fs::read_to_string(folder.join("ca.crt"))?;
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(trusting(&backend.authority)?).https_only();
        // Over HTTP/2 the requests of many clients would share the streams that the server allows one connection.
        let client = Client::builder(TokioExecutor::new()).build(connector.enable_http1().build());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port is free")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            manner: watch::Sender::new(Manner::Honest),
            backend,
            client,
            judge: Mutex::new(None),
            writes: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    // Out of files, as a rule: trying again at once would only burn time.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                tokio::spawn(connection(stream, acceptor.clone(), Arc::clone(&serving)));
            }
        });
        Ok(Gate { address, authority, shared })
    }

    /// Asks `judge` about each write at each of its stages: one for which it returns false is held until its client leaves.
    pub fn judge_writes(&self, judge: impl Fn(&PassingWrite) -> bool + Send + Sync + 'static) {
        *self.shared.judge.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(judge));
    }

    /// Sets the manner in which requests are treated from now on, and open watches too.
    pub fn set(&self, manner: Manner) {
        self.shared.manner.send_replace(manner);
    }
}

fn serving(folder: &Path) -> Result<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(folder.join("tls.crt"))?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(folder.join("tls.key"))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn trusting(authority: &str) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = hyper::service::service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(shared.answer(request).await) }
    });
    // A client that disconnects is not an error of the gate.
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

impl Shared {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let manner = self.manner.borrow().clone();
        let path = request.uri().path();
        match manner {
            Manner::Dead(_) if ["/readyz", "/livez", "/healthz"].contains(&path) => {
                whole(200, "text/plain", "ok")
            }
            Manner::Dead(_) if path == "/version" => {
                let version = json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3"});
                whole(200, "application/json", &version.to_string())
            }
            Manner::Dead(DeadAnswer::Hang) => {
                let mut manner = self.manner.subscribe();
                // The sender lives as long as what is shared.
                let _ = manner.changed().await;
                bad_gateway()
            }
            Manner::Dead(DeadAnswer::BadGateway) => bad_gateway(),
            Manner::Dead(DeadAnswer::NotFound) => whole(404, "text/plain", "404 page not found"),
            Manner::Dead(DeadAnswer::Page) => {
                whole(200, "text/html", "<html><body>We will be back soon.</body></html>")
            }
            Manner::Dead(DeadAnswer::Empty) => {
                let accepted = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
                let is_partial = accepted.is_some_and(|forms| forms.contains("as=PartialObjectMetadataList"));
                let (kind, version) =
                    if is_partial { ("PartialObjectMetadataList", "meta.k8s.io/v1") } else { ("List", "v1") };
                let list = json!({"kind": kind, "apiVersion": version, "metadata": {}, "items": []});
                whole(200, "application/json", &list.to_string())
            }
            Manner::Unauthorized => {
                let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": "Unauthorized", "reason": "Unauthorized", "code": 401});
                whole(401, "application/json", &status.to_string())
            }
            Manner::Honest | Manner::Swallowing(_) | Manner::Moved(_) => {
                let judge = self.judge.lock().unwrap_or_else(PoisonError::into_inner).clone();
                match judge.filter(|_| request.method() != Method::GET) {
                    Some(judge) => self.forward_write(request, manner, judge).await,
                    None => self.forward(request, manner).await.unwrap_or_else(|_| bad_gateway()),
                }
            }
        }
    }

    async fn forward_write(
        self: Arc<Self>,
        request: Request<Incoming>,
        manner: Manner,
        judge: WriteJudge,
    ) -> Response<Body> {
        let mut write = PassingWrite {
            number: self.writes.fetch_add(1, Ordering::SeqCst),
            stage: WriteStage::Sent,
            method: request.method().to_string(),
            path: request.uri().path_and_query().map(ToString::to_string).unwrap_or_default(),
            content_type: request
                .headers()
                .get(CONTENT_TYPE)
                .and_then(|form| form.to_str().ok())
                .unwrap_or_default()
                .to_owned(),
            status: None,
        };
        if !judge(&write) {
            return std::future::pending().await;
        }
        let answer = self.forward(request, manner).await.unwrap_or_else(|_| bad_gateway());
        write.stage = WriteStage::Answered;
        write.status = Some(answer.status().as_u16());
        if !judge(&write) {
            return std::future::pending().await;
        }
        answer
    }

    async fn forward(self: Arc<Self>, request: Request<Incoming>, manner: Manner) -> Result<Response<Body>> {
        let path = request.uri().path().to_owned();
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        let (mut parts, body) = request.into_parts();
        let asked = parts.uri.path_and_query().map_or("/", |asked| asked.as_str());
        parts.uri = format!("{}{asked}", self.backend.url).parse::<Uri>()?;
        parts.version = http::Version::default();
        parts.headers.remove(HOST);
        let by = match manner {
            Manner::Moved(by) => Some(by),
            _ => None,
        };
        if by.is_some() {
            readable(&mut parts.headers);
        }
        let (mut parts, body) = self.client.request(Request::from_parts(parts, body)).await?.into_parts();
        parts.version = http::Version::default();
        if let Some(by) = by {
            move_date(&mut parts.headers, by);
            if !is_watch {
                let text = body.collect().await?.to_bytes();
                parts.headers.remove(CONTENT_LENGTH);
                return Ok(Response::from_parts(parts, full(moved(&String::from_utf8_lossy(&text), by))));
            }
        }
        let manner = self.manner.subscribe();
        let passing =
            Passing { body, manner, path, is_watch, held: Vec::new(), is_over: false, _shared: self };
        let frames = passing.stream().map(|part| part.map(Frame::data));
        Ok(Response::from_parts(parts, UnsyncBoxBody::new(StreamBody::new(frames))))
    }
}

/// Makes a server answer in JSON without compression.
fn readable(headers: &mut HeaderMap) {
    headers.remove(ACCEPT_ENCODING);
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let rest: Vec<&str> = accepted.split(',').filter(|form| !form.contains("protobuf")).collect();
    if let Ok(value) = HeaderValue::from_str(&rest.join(",")) {
        headers.insert(ACCEPT, value);
    }
}

fn move_date(headers: &mut HeaderMap, by: SignedDuration) {
    let date = headers.get(DATE).and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
    let now = date.map_or_else(Timestamp::now, |date| date.timestamp());
    let later = now.checked_add(by).ok();
    let printed =
        later.and_then(|it| jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&it).ok());
    if let Some(value) = printed.and_then(|text| HeaderValue::try_from(text).ok()) {
        headers.insert(DATE, value);
    }
}

/// The body of an answer on its way.
struct Passing {
    body: Incoming,
    manner: watch::Receiver<Manner>,
    path: String,
    is_watch: bool,
    /// The beginning of a line whose end has not come, while times are moved.
    held: Vec<u8>,
    is_over: bool,
    /// Keeps the sender of manners.
    _shared: Arc<Shared>,
}

impl Passing {
    fn stream(self) -> BoxStream<'static, io::Result<Bytes>> {
        futures::stream::unfold(self, |mut it| async move {
            let part = it.next().await?;
            Some((part, it))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        while !self.is_over {
            let manner = self.manner.borrow_and_update().clone();
            if manner.swallows(&self.path, self.is_watch) {
                // The sender lives as long as what is shared.
                let _ = self.manner.changed().await;
                self.is_over = true;
                return Some(Err(io::Error::other("the bytes were swallowed")));
            }
            if manner == Manner::Unauthorized {
                return None;
            }
            let frame = tokio::select! {
                biased;
                _ = self.manner.changed() => continue,
                frame = self.body.frame() => frame,
            };
            let data = match frame {
                None => {
                    self.is_over = true;
                    let rest = std::mem::take(&mut self.held);
                    return (!rest.is_empty()).then(|| Ok(Bytes::from(rest)));
                }
                Some(Err(error)) => {
                    self.is_over = true;
                    return Some(Err(io::Error::other(error)));
                }
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            self.held.extend_from_slice(&data);
            let Manner::Moved(by) = manner else {
                return Some(Ok(Bytes::from(std::mem::take(&mut self.held))));
            };
            let Some(end) = self.held.iter().rposition(|byte| *byte == b'\n') else { continue };
            let rest = self.held.split_off(end + 1);
            let lines = std::mem::replace(&mut self.held, rest);
            return Some(Ok(Bytes::from(moved(&String::from_utf8_lossy(&lines), by))));
        }
        None
    }
}

fn full(text: String) -> Body {
    UnsyncBoxBody::new(http_body_util::Full::new(Bytes::from(text)).map_err(|never| match never {}))
}

fn whole(status: u16, form: &'static str, text: &str) -> Response<Body> {
    let mut response = Response::new(full(text.to_owned()));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form));
    response
}

fn bad_gateway() -> Response<Body> {
    whole(502, "text/html", "<html><body>502 Bad Gateway</body></html>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Reply, Server};

    type Asker = Client<HttpsConnector<HttpConnector>, http_body_util::Empty<Bytes>>;

    /// A client that trusts the gate.
    fn asker(gate: &Gate) -> Asker {
        let tls = trusting(&gate.authority).expect("certificates");
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_all_versions();
        Client::builder(TokioExecutor::new()).build(connector.build())
    }

    async fn ask(asker: &Asker, gate: &Gate, path: &str) -> Response<Incoming> {
        let url = format!("https://{}{path}", gate.address).parse().expect("a URL");
        asker.get(url).await.expect("an answer")
    }

    async fn next(response: &mut Response<Incoming>) -> Option<Result<Bytes, hyper::Error>> {
        Some(response.frame().await?.map(|frame| frame.into_data().unwrap_or_default()))
    }

    #[tokio::test]
    async fn manners_concern_open_watches_and_new_requests() {
        let folder = std::env::temp_dir().join(format!("taffrail-gate-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        certificates::write(&folder, "server").expect("certificates");
        let authority = fs::read_to_string(folder.join("ca.crt")).expect("a certificate");
        let line = "{\"at\":\"2026-03-01T12:00:00Z\"}\n";
        let server =
            Server::start_tls(serving(&folder).expect("TLS"), Duration::ZERO, move |seen| {
                match seen.query.is_empty() {
                    true => Reply::json(200, "listed"),
                    false => Reply::trickle(line),
                }
            });
        let gate = Gate::open(&folder, Backend { url: server.url(), authority }).await.expect("a gate");
        let asker = asker(&gate);
        let mut pods = ask(&asker, &gate, "/api/v1/pods?watch=1").await;
        let mut maps = ask(&asker, &gate, "/api/v1/configmaps?watch=1").await;
        assert_eq!(next(&mut pods).await.expect("more").expect("bytes"), line);

        gate.set(Manner::Moved(SignedDuration::from_hours(1)));
        let hour_later = |bytes: &Bytes| bytes.ends_with(b"T13:00:00Z\"}\n");
        while !hour_later(&next(&mut maps).await.expect("more").expect("bytes")) {}

        gate.set(Manner::Swallowing("pods"));
        let pause = Duration::from_millis(300);
        // What was on its way still comes.
        while tokio::time::timeout(pause, next(&mut pods)).await.is_ok() {}
        assert!(tokio::time::timeout(pause, next(&mut maps)).await.is_ok());
        let listed = ask(&asker, &gate, "/api/v1/pods").await.into_body().collect().await.expect("a body");
        assert_eq!(listed.to_bytes(), "listed");

        gate.set(Manner::Dead(DeadAnswer::NotFound));
        assert!(next(&mut pods).await.is_none_or(|bytes| bytes.is_err()), "its bytes are lost");
        assert_eq!(ask(&asker, &gate, "/readyz").await.status(), 200);
        assert_eq!(ask(&asker, &gate, "/api/v1/pods").await.status(), 404);
        gate.set(Manner::Unauthorized);
        assert_eq!(ask(&asker, &gate, "/readyz").await.status(), 401);
        let _ = fs::remove_dir_all(&folder);
    }
}
