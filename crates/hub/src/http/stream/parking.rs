//! The streams of disconnected clients, kept for a minute in case the clients reconnect.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use tokio::time::Instant;

use super::state::StreamState;
use super::subscription::Subscription;

/// The greatest number of parked streams; parking another one drops the one that was parked first.
const MAX_PARKED: usize = 64;

/// The time for which a parked stream can be resumed.
const PARKED: Duration = Duration::from_secs(60);

/// The streams of disconnected clients, each with the time of the disconnect; the earliest first.
#[derive(Debug, Default)]
pub(crate) struct Parking(Mutex<VecDeque<(Instant, StreamState)>>);

impl Parking {
    /// Keeps a stream whose client has disconnected; of 64 kept ones, drops the earliest.
    pub(super) fn park(&self, mut state: StreamState) {
        state.pause();
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if parked.len() >= MAX_PARKED {
            parked.pop_front();
        }
        parked.push_back((Instant::now(), state));
    }

    /// Removes and returns the stream that sent the frame with the id `last`, with the frames after that one. `None` if
    /// the stream was parked more than a minute ago or dropped, has other subscriptions, or no longer keeps all those
    /// frames.
    pub(super) fn resume(
        &self,
        last: &str,
        subscriptions: &[Subscription],
    ) -> Option<(StreamState, VecDeque<Bytes>)> {
        let (id, sequence) = last.rsplit_once('-')?;
        let sequence: u64 = sequence.parse().ok()?;
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parked.retain(|(since, _)| since.elapsed() <= PARKED);
        let at =
            parked.iter().position(|(_, state)| state.id == id && state.subscriptions == subscriptions)?;
        let missed = parked.get(at)?.1.after(sequence)?;
        Some((parked.remove(at)?.1, missed))
    }
}
