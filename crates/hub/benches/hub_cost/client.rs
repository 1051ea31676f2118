//! A client of the hub's HTTP API.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;

use crate::Failure;

/// The address of a hub, and the token with which it is asked.
#[derive(Debug, Clone)]
pub(crate) struct Hub {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// A connection to a hub.
pub(crate) struct Client {
    hub: Hub,
    sender: SendRequest<Empty<Bytes>>,
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
        if self.status != StatusCode::OK {
            let text = String::from_utf8_lossy(&self.body);
            return Err(format!("the hub answered with {}: {text}", self.status).into());
        }
        Ok(serde_json::from_slice(&self.body)?)
    }
}

impl Client {
    pub(crate) async fn connect(hub: &Hub) -> Result<Client, Failure> {
        let stream = TcpStream::connect(hub.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Client { hub: hub.clone(), sender })
    }

    fn request(&self, path: &str) -> Result<Request<Empty<Bytes>>, Failure> {
        let request = Request::get(path)
            .header(header::HOST, self.hub.address.to_string())
            .header(header::AUTHORIZATION, format!("Bearer {}", self.hub.token));
        Ok(request.body(Empty::new())?)
    }

    /// Asks for `path`, and returns the whole answer.
    pub(crate) async fn get(&mut self, path: &str) -> Result<Answer, Failure> {
        let request = self.request(path)?;
        self.sender.ready().await?;
        let asked = Instant::now();
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Answer { status, body, took: asked.elapsed() })
    }

    /// Opens the stream of server-sent events at `path`.
    pub(crate) async fn events(mut self, path: &str) -> Result<Events, Failure> {
        let request = self.request(path)?;
        let response = self.sender.send_request(request).await?;
        if response.status() != StatusCode::OK {
            return Err(
                format!("the hub answered the request for a stream with {}", response.status()).into()
            );
        }
        Ok(Events { body: response.into_body(), text: Vec::new(), _sender: self.sender })
    }
}

/// A stream of server-sent events.
pub(crate) struct Events {
    body: hyper::body::Incoming,
    text: Vec<u8>,
    /// Keeps the connection open.
    _sender: SendRequest<Empty<Bytes>>,
}

impl Events {
    /// Waits for the next event, and returns its data; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        loop {
            if let Some(end) = self.text.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.text.drain(..end + 2).collect();
                let mut lines = event.split(|byte| *byte == b'\n');
                if let Some(data) = lines.find_map(|line| line.strip_prefix(b"data: ")) {
                    return Ok(Some(data.to_vec()));
                }
                continue;
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            if let Some(data) = frame?.data_ref() {
                self.text.extend_from_slice(data);
            }
        }
    }
}
