//! The connections to one API server, and who may send on them.
//!
//! API servers take 100 streams of a connection by default and others fewer than 128. Reads that end share the first
//! connection; streams that stay (watches) take places on others, each opened when the ones before are full.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connect::Protocol;
use crate::error::BoxError;

/// Beyond the server's limit a request waits inside hyper where nobody can say so; here it waits where it is known.
const STREAMS: usize = 90;

/// HTTP/1.1 has no streams: each watch is a connection.
const CONNECTIONS: usize = 1;

/// Makes the client of a further connection; it is opened by its first request.
pub(crate) type Opener = Box<dyn Fn() -> Result<kube::Client, BoxError> + Send + Sync>;

/// One connection, as far as HTTP/2 is spoken.
#[derive(Clone)]
pub(crate) struct Channel {
    pub(crate) client: kube::Client,
    pub(crate) streams: Arc<Semaphore>,
}

impl Channel {
    fn new(client: kube::Client, streams: usize) -> Channel {
        Channel { client, streams: Arc::new(Semaphore::new(streams)) }
    }
}

pub(crate) struct Channels {
    /// The one for reads that end.
    pub(crate) first: Channel,
    lasting: Mutex<Vec<Channel>>,
    streams: usize,
    open: Opener,
}

impl Channels {
    pub(crate) fn new(client: kube::Client, protocol: Protocol, open: Opener) -> Channels {
        let lasting = match protocol {
            Protocol::Http1 => CONNECTIONS,
            Protocol::Http2 => STREAMS,
        };
        let first = Channel::new(client, STREAMS);
        Channels { first, lasting: Mutex::new(Vec::new()), streams: lasting, open }
    }

    /// A place for a stream that stays, on the first connection that has one; nothing where `most` connections are full.
    pub(crate) fn lasting(
        &self,
        most: usize,
    ) -> Result<Option<(kube::Client, OwnedSemaphorePermit)>, BoxError> {
        let mut channels = self.lasting.lock().unwrap_or_else(PoisonError::into_inner);
        for channel in channels.iter() {
            if let Ok(place) = channel.streams.clone().try_acquire_owned() {
                return Ok(Some((channel.client.clone(), place)));
            }
        }
        if channels.len() >= most {
            return Ok(None);
        }
        let channel = Channel::new((self.open)()?, self.streams);
        let place = channel.streams.clone().try_acquire_owned()?;
        channels.push(channel.clone());
        Ok(Some((channel.client, place)))
    }

    /// How many connections were opened, or may have been.
    pub(crate) fn connections(&self) -> usize {
        1 + self.lasting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
