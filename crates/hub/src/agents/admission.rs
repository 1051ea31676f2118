//! The admission of connections that say that they are agents': until one has proved that, it holds a place of those who
//! read, for a short time and with little data.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use crate::index::lock;

/// The length of all requests of a connection before it is admitted, in bytes. An enrolment fits.
const BEFORE: usize = 16 * 1024;

/// The state of a connection of an agent.
#[derive(Debug)]
pub(crate) struct Admission {
    /// The place that it holds: of those who read, and once it is admitted of agents.
    place: Mutex<Option<OwnedSemaphorePermit>>,
    /// The places of agents.
    places: Arc<Semaphore>,
    is_admitted: AtomicBool,
    closed: Notify,
}

impl Admission {
    /// Makes the state of a new connection, which holds `place`; `places` are those of agents.
    pub(crate) fn new(place: Option<OwnedSemaphorePermit>, places: Arc<Semaphore>) -> Admission {
        Admission {
            place: Mutex::new(place),
            places,
            is_admitted: AtomicBool::new(false),
            closed: Notify::new(),
        }
    }

    /// Admits the connection, whose agent has proved who it is, to a place of agents.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn admit(&self) -> Result<(), Status> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place =
            place.map_err(|_| Status::resource_exhausted("the hub has as many agents as it may have"))?;
        *lock(&self.place) = Some(place);
        self.is_admitted.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) fn is_admitted(&self) -> bool {
        self.is_admitted.load(Ordering::Acquire)
    }

    /// Ends the connection soon.
    pub(super) fn close(&self) {
        self.closed.notify_one();
    }

    /// Waits until the connection is to end.
    pub(crate) async fn closed(&self) {
        self.closed.notified().await;
    }
}

/// The body of a request, which fails if it is too long before its connection is admitted.
pub(crate) struct AdmittedBody<B> {
    body: B,
    admission: Arc<Admission>,
    left: usize,
}

impl<B> AdmittedBody<B> {
    pub(crate) fn new(body: B, admission: Arc<Admission>) -> AdmittedBody<B> {
        AdmittedBody { body, admission, left: BEFORE }
    }
}

impl<B: Body<Data = Bytes, Error = hyper::Error> + Unpin> Body for AdmittedBody<B> {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
            return Poll::Ready(None);
        };
        let frame = frame?;
        if !self.admission.is_admitted() {
            let length = frame.data_ref().map_or(0, Bytes::len);
            match self.left.checked_sub(length) {
                Some(left) => self.left = left,
                None => {
                    return Poll::Ready(Some(Err(
                        "an agent that has not said who it is sent too much".into()
                    )));
                }
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
