//! Streams whose clients have gone, kept for a while in case they come back.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use tokio::time::Instant;

use super::state::StreamState;
use super::subscription::Subscription;

/// The greatest number of streams that are kept; of more the oldest are dropped.
const MAX_PARKED: usize = 64;

/// The time for which a stream is kept.
const PARKED: Duration = Duration::from_secs(60);

/// The streams without clients, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Parking(Mutex<VecDeque<(Instant, StreamState)>>);

impl Parking {
    /// Keeps a stream whose client has gone.
    pub(super) fn park(&self, mut state: StreamState) {
        state.pause();
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if parked.len() >= MAX_PARKED {
            parked.pop_front();
        }
        parked.push_back((Instant::now(), state));
    }

    /// Returns the stream of the frame with identity `last`, and the frames after that; `None` if it is not kept, or is one
    /// of other subscriptions.
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
