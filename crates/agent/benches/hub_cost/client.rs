//! A client of the hub's HTTP API, and of a Kubernetes API server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::Failure;

/// The address of a server, and the token with which it is asked.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    /// The check of its certificate; `None` for a server without TLS.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// A connection to a server.
pub(crate) struct Client {
    server: Server,
    sender: SendRequest<Full<Bytes>>,
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// The type of the answer; `None` for the server's own choice.
    pub(crate) accept: Option<&'static str>,
    /// The type of the body; `None` for a request without a body.
    pub(crate) content: Option<&'static str>,
    pub(crate) body: Bytes,
}

impl Call {
    /// Returns the request for what is at `path`.
    pub(crate) fn get(path: &str) -> Call {
        let path = path.to_owned();
        Call { method: Method::GET, path, accept: None, content: None, body: Bytes::new() }
    }
}

/// An answer, with the time from the request to its last byte.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    pub(crate) took: Duration,
}

impl Answer {
    /// Parses the answer, which must be a success.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        self.succeeded()?;
        Ok(serde_json::from_slice(&self.body)?)
    }

    /// Fails if the answer is not a success.
    pub(crate) fn succeeded(&self) -> Result<(), Failure> {
        if self.status.is_success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&self.body);
        Err(format!("the server answered with {}: {text}", self.status).into())
    }
}

impl Client {
    pub(crate) async fn connect(server: &Server) -> Result<Client, Failure> {
        let stream = TcpStream::connect(server.address).await?;
        stream.set_nodelay(true)?;
        let sender = match &server.tls {
            None => {
                let (sender, connection) = handshake(TokioIo::new(stream)).await?;
                tokio::spawn(connection);
                sender
            }
            Some(config) => {
                let name = ServerName::IpAddress(server.address.ip().into());
                let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await?;
                let (sender, connection) = handshake(TokioIo::new(stream)).await?;
                tokio::spawn(connection);
                sender
            }
        };
        Ok(Client { server: server.clone(), sender })
    }

    fn request(&self, call: Call) -> Result<Request<Full<Bytes>>, Failure> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(header::HOST, self.server.address.to_string())
            .header(header::AUTHORIZATION, format!("Bearer {}", self.server.token));
        if let Some(accept) = call.accept {
            request = request.header(header::ACCEPT, accept);
        }
        if let Some(content) = call.content {
            request = request.header(header::CONTENT_TYPE, content);
        }
        Ok(request.body(Full::new(call.body))?)
    }

    /// Sends a request, and returns the whole answer.
    pub(crate) async fn send(&mut self, call: Call) -> Result<Answer, Failure> {
        let request = self.request(call)?;
        // A server closes connections that were long idle.
        if self.sender.ready().await.is_err() {
            *self = Client::connect(&self.server).await?;
            self.sender.ready().await?;
        }
        let asked = Instant::now();
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Answer { status, body, took: asked.elapsed() })
    }

    /// Asks for `path`, and returns the whole answer.
    pub(crate) async fn get(&mut self, path: &str) -> Result<Answer, Failure> {
        self.send(Call::get(path)).await
    }

    /// Opens the stream of server-sent events, or the watch, at `path`.
    pub(crate) async fn events(mut self, path: &str) -> Result<Events, Failure> {
        let request = self.request(Call::get(path))?;
        let response = self.sender.send_request(request).await?;
        if response.status() != StatusCode::OK {
            return Err(
                format!("the server answered the request for a stream with {}", response.status()).into()
            );
        }
        Ok(Events { body: response.into_body(), text: Vec::new(), searched: 0, _sender: self.sender })
    }
}

/// A stream of server-sent events, or a watch.
pub(crate) struct Events {
    body: hyper::body::Incoming,
    text: Vec<u8>,
    /// The length of the text that has no end of an event.
    searched: usize,
    /// Keeps the connection open.
    _sender: SendRequest<Full<Bytes>>,
}

impl Events {
    /// Waits for the next server-sent event, and returns its data; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        while let Some(event) = self.until(b"\n\n").await? {
            let mut lines = event.split(|byte| *byte == b'\n');
            if let Some(data) = lines.find_map(|line| line.strip_prefix(b"data: ")) {
                return Ok(Some(data.to_vec()));
            }
        }
        Ok(None)
    }

    /// Waits for the next line, which is an event of a watch; `None` at the end of the stream.
    pub(crate) async fn line(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        self.until(b"\n").await
    }

    /// Waits for a text that ends so, and returns it; `None` at the end of the stream.
    async fn until(&mut self, end: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        loop {
            let rest = self.text.get(self.searched..).unwrap_or_default();
            if let Some(at) = rest.windows(end.len()).position(|some| some == end) {
                let length = self.searched + at + end.len();
                self.searched = 0;
                return Ok(Some(self.text.drain(..length).collect()));
            }
            self.searched = self.text.len().saturating_sub(end.len() - 1);
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            if let Some(data) = frame?.data_ref() {
                self.text.extend_from_slice(data);
            }
        }
    }
}
