//! `/api/v1/stream`: pages that are kept up to date, as server-sent events.
//!
//! A client subscribes to up to 20 pages. The first event holds their rows, the others what changed. Frames are made when
//! the client can take one, at most four a second: a slow client gets fewer that hold more, and needs no more memory. The
//! identity of each frame tells the run of the hub, the stream, and the number of the frame. A client that comes back
//! within a minute with the identity of its last frame gets what it missed; any other begins anew.

pub(crate) mod parking;
mod state;
mod subscription;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName};
use tokio::sync::watch;
use tokio::time::Instant;

use self::state::StreamState;
use self::subscription::Subscription;
use super::body::typed;
use super::problem::Refusal;
use super::request::HubApi;
use crate::index::{FleetView, PublishedFleet};

/// The least time between two frames.
const PACE: Duration = Duration::from_millis(250);

/// The time after which a stream says that the hub is there, if it has no frame.
const ALIVE: Duration = Duration::from_secs(15);

/// The time after which a stream ends. Its client then connects again with its token or session, which may have
/// become invalid.
const MAX_AGE: Duration = Duration::from_secs(15 * 60);

/// The age of a view beyond which the publisher is not trusted to follow the clock.
const MAX_VIEW_AGE: Duration = Duration::from_secs(2);

/// The header in which a browser names the last frame that it got.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Answers with a stream.
pub(super) fn open(hub: Arc<HubApi>, headers: &HeaderMap, query: &str) -> Response {
    let subscriptions = match Subscription::read_all(query) {
        Ok(subscriptions) => subscriptions,
        Err(refusal) => return refusal.into_response(),
    };
    let last = headers.get(LAST_EVENT_ID).and_then(|last| last.to_str().ok());
    let resumed = last.and_then(|last| hub.parking.resume(last, &subscriptions));
    let (state, missed) = match resumed {
        Some(resumed) => resumed,
        None => {
            let mut random = [0; 8];
            if getrandom::fill(&mut random).is_err() {
                return Refusal::internal().into_response();
            }
            let id = format!("{}-{:016x}", hub.instance, u64::from_le_bytes(random));
            (StreamState::new(id, subscriptions), VecDeque::new())
        }
    };
    let now = Instant::now();
    let published = hub.index.subscribe();
    let connection =
        Connection { client: Client { hub, state: Some(state) }, published, missed, began: now, sent: now };
    let frames = futures::stream::unfold(connection, |connection| async {
        let (frame, connection) = connection.next().await?;
        Some((Ok::<Bytes, Infallible>(frame), connection))
    });
    typed(Body::from_stream(frames), "text/event-stream")
}

/// The connection of a client to its stream.
struct Connection {
    client: Client,
    published: watch::Receiver<Arc<PublishedFleet>>,
    /// Frames that the client missed.
    missed: VecDeque<Bytes>,
    began: Instant,
    /// The moment at which the last event was made.
    sent: Instant,
}

/// The stream of a connected client; it is parked when the client disconnects.
struct Client {
    hub: Arc<HubApi>,
    state: Option<StreamState>,
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            self.hub.parking.park(state);
        }
    }
}

impl Connection {
    /// Waits for the next event; `None` at the end of the stream.
    async fn next(mut self) -> Option<(Bytes, Connection)> {
        if let Some(missed) = self.missed.pop_front() {
            return Some((missed, self));
        }
        loop {
            if self.began.elapsed() >= MAX_AGE {
                return None;
            }
            let seen = self.client.state.as_ref()?.seen.clone();
            if seen.is_some() {
                tokio::time::sleep_until(self.sent + PACE).await;
                // Time alone may change what is shown.
                drop(tokio::time::timeout(2 * PACE, self.published.changed()).await);
            }
            self.published.mark_unchanged();
            let view = current(&self.client.hub);
            let is_news = seen.as_ref().is_none_or(|seen| !Arc::ptr_eq(seen, &view));
            if is_news {
                let (frame, client) = frame(self.client, view).await?;
                self.client = client;
                if let Some(frame) = frame {
                    self.sent = Instant::now();
                    return Some((frame, self));
                }
            }
            if self.sent.elapsed() >= ALIVE {
                self.sent = Instant::now();
                let now = self.client.hub.index.clock().time().now;
                return Some((Bytes::from(format!("event: alive\ndata: {{\"asOf\":\"{now}\"}}\n\n")), self));
            }
        }
    }
}

/// Returns the present view of the fleet: the last one of the publisher, if that follows the clock.
fn current(hub: &HubApi) -> Arc<FleetView> {
    let view = hub.index.last_view();
    let age = hub.index.clock().time().at.saturating_sub(view.moment().at);
    if age > MAX_VIEW_AGE { Arc::new(hub.index.view()) } else { view }
}

/// Makes the next frame on a thread for blocking work. Returns `None` if that failed.
async fn frame(mut client: Client, view: Arc<FleetView>) -> Option<(Option<Bytes>, Client)> {
    let permit = Arc::clone(&client.hub.computed).acquire_owned().await.ok()?;
    let made = tokio::task::spawn_blocking(move || {
        let hub = Arc::clone(&client.hub);
        let frame = client.state.as_mut().and_then(|state| state.frame(&hub.index, view));
        drop(permit);
        (frame, client)
    });
    made.await.ok()
}
