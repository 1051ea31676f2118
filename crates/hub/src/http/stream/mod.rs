//! `/api/v1/stream`: pages that are kept up to date, as server-sent events.
//!
//! A client subscribes to up to 20 pages. The first event (frame) holds their rows, each later one the changes since
//! the one before. The hub makes a frame when the client can take one, at most four a second: a slow client gets fewer
//! frames with more changes, and costs no more memory. The id of a frame consists of the run of the hub, the stream,
//! and the number of the frame. A client that reconnects within a minute with the id of its last frame and the same
//! pages gets the frames that it missed, if the hub still keeps them all; any other gets all rows again.

pub(crate) mod parking;
mod state;
mod subscription;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::HeaderName;
use http::request::Parts;
use tokio::sync::watch;
use tokio::time::Instant;

use self::state::StreamState;
use self::subscription::Subscription;
use super::body::typed;
use super::problem::Refusal;
use super::request::HubApi;
use crate::index::{FleetView, PublishedFleet};

/// The least time between two frames of one stream, and between two comparisons of its pages with the fleet.
const PACE: Duration = Duration::from_millis(250);

/// The time without frames after which a stream sends an `alive` event.
const ALIVE: Duration = Duration::from_secs(15);

/// The age at which the hub ends a stream, so that the client must connect again.
const MAX_AGE: Duration = Duration::from_secs(15 * 60);

/// The age beyond which streams do not use the publisher's last view, but make one of the present moment.
const MAX_VIEW_AGE: Duration = Duration::from_secs(2);

/// The header in which a browser names the last frame that it got.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Responds with the event stream of the subscriptions in `query`: the parked one that `Last-Event-ID` names, if it is
/// still there with the same subscriptions, else a new one.
pub(super) fn open(hub: Arc<HubApi>, parts: Parts, query: &str) -> Response {
    let subscriptions = match Subscription::read_all(query) {
        Ok(subscriptions) => subscriptions,
        Err(refusal) => return refusal.into_response(),
    };
    let last = parts.headers.get(LAST_EVENT_ID).and_then(|last| last.to_str().ok());
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
    let client = Client { hub, state: Some(state) };
    let connection = Connection { client, parts, published, missed, began: now, sent: now, compared: now };
    let frames = futures::stream::unfold(connection, |connection| async {
        let (frame, connection) = connection.next().await?;
        Some((Ok::<Bytes, Infallible>(frame), connection))
    });
    typed(Body::from_stream(frames), "text/event-stream")
}

/// A client's connection to its stream.
struct Connection {
    client: Client,
    /// The head of the request, by which it is checked again and again whether the client may still read.
    parts: Parts,
    published: watch::Receiver<Arc<PublishedFleet>>,
    /// The frames that the client missed while it was disconnected, to send first.
    missed: VecDeque<Bytes>,
    began: Instant,
    /// The moment at which the last frame or `alive` event was made; before the first, the one at which the client
    /// connected.
    sent: Instant,
    /// The moment at which the pages were last compared with a view of the fleet, whether they had changed or not.
    compared: Instant,
}

/// The stream of a connected client. Dropping this parks the stream.
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
    /// Waits for the next event, and returns its text with the connection; `None` if the stream has reached its
    /// greatest age, the client may not read any more, or a frame could not be made.
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
                // A comparison costs as much as a frame: pages in which nothing changes are not compared more often.
                tokio::time::sleep_until(self.compared + PACE).await;
                // Time alone may change what is shown.
                drop(tokio::time::timeout(2 * PACE, self.published.changed()).await);
            }
            // The token may be gone since the last frame.
            if self.client.hub.still_admits(&self.parts).is_err() {
                return None;
            }
            self.published.mark_unchanged();
            let view = current(&self.client.hub);
            let is_news = seen.as_ref().is_none_or(|seen| !Arc::ptr_eq(seen, &view));
            if is_news {
                self.compared = Instant::now();
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

/// Returns the publisher's last view of the fleet, or one of the present moment if that is older than 2 s.
fn current(hub: &HubApi) -> Arc<FleetView> {
    let view = hub.index.last_view();
    let age = hub.index.clock().time().at.saturating_sub(view.moment().at);
    if age > MAX_VIEW_AGE { Arc::new(hub.index.view()) } else { view }
}

/// Makes the frame that brings the client to `view`, on a thread for blocking work. The inner `None` stands for no
/// change, the outer one for a failure.
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
