//! The connection pool of one API server, with a limit of streams per connection.
//!
//! API servers accept 100 streams per connection by default, and some fewer than 128. Reads that end share the first
//! connection; lasting streams (watches and followed logs) take slots on further connections, each opened when the
//! earlier ones are full. A pool of one connection has them all there.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::BoxError;

/// Maximum number of streams per HTTP/2 connection, and of HTTP/1.1 requests at once besides watches and followed logs.
/// Beyond it, a watch gets another connection, and any other request waits in the `Queue` phase: beyond the server's
/// own limit it would wait inside hyper without a trace.
const MAX_STREAMS: usize = 90;

/// Maximum number of streams per HTTP/1.1 connection, which has no streams: each watch and followed log is a
/// connection.
const MAX_HTTP1_STREAMS: usize = 1;

/// The HTTP version spoken with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1: one connection per concurrent request, of which there are up to 90 besides watches and followed logs.
    Http1,
    /// HTTP/2: one connection for up to 90 concurrent requests; watches and followed logs have further ones of their
    /// own.
    Http2,
}

/// A function that creates the client of a further connection; the client's first request opens the connection.
pub(crate) type Opener = Box<dyn Fn() -> Result<kube::Client, BoxError> + Send + Sync>;

/// The client of one HTTP/2 connection, or of HTTP/1.1 connections that it opens as needed, and the slots for its
/// concurrent requests.
#[derive(Clone)]
pub(crate) struct PooledConnection {
    pub(crate) client: kube::Client,
    pub(crate) streams: Arc<Semaphore>,
}

impl PooledConnection {
    fn new(client: kube::Client, streams: usize) -> PooledConnection {
        PooledConnection { client, streams: Arc::new(Semaphore::new(streams)) }
    }
}

/// The connections to one API server.
pub(crate) struct ConnectionPool {
    /// The connection for all requests but watches and followed logs, whose responses do not end by themselves.
    pub(crate) first: PooledConnection,
    lasting: Mutex<Vec<PooledConnection>>,
    streams: usize,
    /// Creates further connections; `None` if lasting streams take slots on the first one.
    open: Option<Opener>,
}

impl ConnectionPool {
    /// Creates the pool of `client`. Without `open` it has one connection, on which lasting streams take slots, too.
    pub(crate) fn new(client: kube::Client, protocol: Protocol, open: Option<Opener>) -> ConnectionPool {
        let lasting = match protocol {
            Protocol::Http1 => MAX_HTTP1_STREAMS,
            Protocol::Http2 => MAX_STREAMS,
        };
        let first = PooledConnection::new(client, MAX_STREAMS);
        ConnectionPool { first, lasting: Mutex::new(Vec::new()), streams: lasting, open }
    }

    /// Reserves a slot for a watch or followed log on the first of the connections for these that has a free one, and
    /// returns that connection's client. If none has one, adds a connection; returns `None` if there are already
    /// `most`, all full.
    pub(crate) fn lasting(
        &self,
        most: usize,
    ) -> Result<Option<(kube::Client, OwnedSemaphorePermit)>, BoxError> {
        let Some(open) = &self.open else {
            let place = self.first.streams.clone().try_acquire_owned().ok();
            return Ok(place.map(|place| (self.first.client.clone(), place)));
        };
        let mut connections = self.lasting.lock().unwrap_or_else(PoisonError::into_inner);
        for connection in connections.iter() {
            if let Ok(place) = connection.streams.clone().try_acquire_owned() {
                return Ok(Some((connection.client.clone(), place)));
            }
        }
        if connections.len() >= most {
            return Ok(None);
        }
        let connection = PooledConnection::new(open()?, self.streams);
        let place = connection.streams.clone().try_acquire_owned()?;
        connections.push(connection.clone());
        Ok(Some((connection.client, place)))
    }

    /// Returns the number of connections whose clients were created; their first request may not have opened them
    /// yet.
    pub(crate) fn connections(&self) -> usize {
        1 + self.lasting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
