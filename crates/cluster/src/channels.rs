//! The connections to one API server, and who may send on them.
//!
//! API servers take 100 streams of a connection by default and others fewer than 128. Reads that end share the first
//! connection; streams that stay (watches) take places on others, each opened when the ones before are full.

use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connect::Protocol;
use crate::error::BoxError;

/// Beyond the server's limit a request waits inside hyper where nobody can say so; here it waits where it is known.
const STREAMS: usize = 90;

/// HTTP/1.1 has no streams: each watch is a connection, and what limits them is files. One cluster opens so many of them
/// at most, and no more than its [share](share).
const CONNECTIONS: usize = 4096;

/// The part of the files of this process that connections of one cluster take at most, so that others can always connect.
const PART: usize = 8;

/// Files that are for other things than connections.
const RESERVE: usize = 128;

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
    /// How many connections there may be for streams that stay.
    most: usize,
    open: Opener,
}

/// All connections that one cluster may have are open.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} watches are open, each on a connection of its own, and no more than that for one cluster: the server speaks no \
     HTTP/2, and this process may open only so many files (ulimit -n)"
)]
struct NoMoreConnections(usize);

/// How many connections one cluster may have, where the process may open so many files.
fn share(files: Option<u64>) -> usize {
    let files = files.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    (files.saturating_sub(RESERVE) / PART).clamp(PART, CONNECTIONS)
}

impl Channels {
    pub(crate) fn new(client: kube::Client, protocol: Protocol, open: Opener) -> Channels {
        let most = share(getrlimit(Resource::Nofile).current);
        let (streams, most) = match protocol {
            Protocol::Http1 => (most, 1),
            Protocol::Http2 => (STREAMS, most),
        };
        let first = Channel::new(client, STREAMS);
        Channels { first, lasting: Mutex::new(Vec::new()), streams, most, open }
    }

    /// A place for a stream that stays, on the first connection that has one.
    pub(crate) fn lasting(&self) -> Result<(kube::Client, OwnedSemaphorePermit), BoxError> {
        let mut channels = self.lasting.lock().unwrap_or_else(PoisonError::into_inner);
        for channel in channels.iter() {
            if let Ok(place) = channel.streams.clone().try_acquire_owned() {
                return Ok((channel.client.clone(), place));
            }
        }
        if channels.len() >= self.most {
            return Err(Box::new(NoMoreConnections(self.streams * self.most)));
        }
        let channel = Channel::new((self.open)()?, self.streams);
        let place = channel.streams.clone().try_acquire_owned()?;
        channels.push(channel.clone());
        Ok((channel.client, place))
    }

    /// How many connections were opened, or may have been.
    pub(crate) fn connections(&self) -> usize {
        1 + self.lasting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cluster_leaves_files_for_the_others() {
        assert_eq!([Some(1_024), Some(64), Some(1 << 20), None].map(share), [112, 8, 4_096, 4_096]);
    }

    #[tokio::test]
    async fn no_more_connections_are_opened_than_a_cluster_may_have() {
        let client = || {
            let unused = tower::service_fn(|_: http::Request<kube::client::Body>| async {
                Ok::<_, BoxError>(http::Response::new(kube::client::Body::empty()))
            });
            kube::Client::new(unused, "default")
        };
        let mut channels = Channels::new(client(), Protocol::Http1, Box::new(move || Ok(client())));
        channels.streams = 3;
        let open: Vec<_> = (0..3).map(|_| channels.lasting().unwrap()).collect();
        let refused = channels.lasting().err().unwrap().to_string();
        assert!(refused.starts_with("3 watches are open"), "{refused}");
        drop(open);
        assert!(channels.lasting().is_ok());
        assert_eq!(channels.connections(), 2);
    }
}
