//! Notices of changes for subscribers.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use futures::Stream;
use taffrail_object::ObjectDigest;
use taffrail_status::Status;

use super::KindId;
use super::record::{Handle, Health, Judged};

/// The state of an object that subscribers see, before or after a change.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The object's status; see [`ObjectRef::status`](super::ObjectRef::status).
    pub status: Status,
    /// The digest of the declared fields; see [`ObjectRef::digest`](super::ObjectRef::digest).
    pub digest: ObjectDigest,
    /// True if the object is being deleted.
    pub is_deleting: bool,
    pub(super) verdict: Option<Arc<Judged>>,
    pub(super) health: Option<Arc<Health>>,
}

impl Seen {
    /// Returns the message of the status: by evidence, or else of the object's own verdict; may be empty.
    pub fn message(&self) -> &str {
        match (&self.health, &self.verdict) {
            (Some(health), _) => &health.message,
            (None, Some(verdict)) => &verdict.0.message,
            (None, None) => "",
        }
    }
}

/// The aspects of an object that changed, as a set of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Aspects(u16);

impl Aspects {
    /// The declared fields: labels, annotations, and all fields except metadata and status, as far as
    /// [`digest`](super::ObjectRef::digest) covers them.
    pub const DIGEST: Aspects = Aspects(1);
    /// Status, message or cause.
    pub const STATUS: Aspects = Aspects(2);
    /// Labels.
    pub const LABELS: Aspects = Aspects(4);
    /// The annotations of the object that the index keeps.
    pub const ANNOTATIONS: Aspects = Aspects(8);
    /// Owners.
    pub const OWNERS: Aspects = Aspects(16);
    /// Marks, or other keys by which objects are found, such as the claims that a Pod uses.
    pub const MARKS: Aspects = Aspects(32);
    /// The kept body.
    pub const BODY: Aspects = Aspects(64);
    /// Fields that evidence may read, whether they changed the status or not.
    pub const CONTENT: Aspects = Aspects(128);
    /// The object's deletion was requested.
    pub const DELETION: Aspects = Aspects(256);
    /// Events about the object that came, changed, were deleted or grew too old; of the latter two only those that
    /// stated its UID.
    pub const EVENTS: Aspects = Aspects(512);

    /// Returns true if this set contains at least one of `others`.
    pub fn has(self, others: Aspects) -> bool {
        self.0 & others.0 != 0
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl std::ops::BitOrAssign for Aspects {
    fn bitor_assign(&mut self, other: Aspects) {
        self.0 |= other.0;
    }
}

/// A change of an object that was added, changed or removed.
#[derive(Debug, Clone)]
pub struct Change {
    /// The object's handle. The slot of a removed object may be reused in the same batch already, with another
    /// generation.
    pub handle: Handle,
    /// The object's kind.
    pub kind: KindId,
    /// The object's namespace; empty if cluster-scoped.
    pub namespace: Arc<str>,
    /// The object's name.
    pub name: Arc<str>,
    /// The object's state at the previous batch; `None` if it did not exist.
    pub before: Option<Seen>,
    /// The object's state now; `None` if it was removed.
    pub after: Option<Seen>,
    /// The changed aspects, if the object existed before and exists now.
    pub aspects: Aspects,
}

/// All changes between two snapshots, each object once, in the order of their first changes.
#[derive(Debug)]
pub struct Batch {
    /// The number of the snapshot that contains the changes.
    pub sequence: u64,
    /// The changes of objects.
    pub changes: Vec<Change>,
    /// True if the state of a scope changed.
    pub scopes_changed: bool,
}

/// A notice for a subscriber.
#[derive(Debug, Clone)]
pub enum Notice {
    /// A batch of changes.
    Batch(Arc<Batch>),
    /// The subscriber must read a snapshot with at least this number; the next batch follows on it. This is always
    /// the first notice; later it means that batches were dropped because the subscriber was too slow.
    Reread {
        /// The lowest number of a snapshot to read.
        sequence: u64,
    },
}

/// The notices that wait for one subscriber.
#[derive(Debug, Default)]
struct Queue {
    batches: VecDeque<Arc<Batch>>,
    changes: usize,
    reread: Option<u64>,
    waker: Option<Waker>,
    is_closed: bool,
}

/// The queue of one subscriber, which the index and the subscriber share.
#[derive(Debug)]
struct Shared {
    /// Maximum number of queued changes of objects, over all batches; beyond it, all are dropped and the subscriber
    /// must read a snapshot.
    bound: usize,
    queue: Mutex<Queue>,
}

impl Shared {
    fn with<R>(&self, act: impl FnOnce(&mut Queue) -> R) -> R {
        act(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The receiving end of a subscription. Dropping it unsubscribes.
#[derive(Debug)]
pub struct Subscription(Arc<Shared>);

impl Subscription {
    /// Returns the next notice; `None` if none is queued.
    pub fn try_next(&mut self) -> Option<Notice> {
        self.0.with(|queue| {
            if let Some(sequence) = queue.reread.take() {
                return Some(Notice::Reread { sequence });
            }
            let batch = queue.batches.pop_front()?;
            queue.changes -= batch.changes.len();
            Some(Notice::Batch(batch))
        })
    }
}

/// The stream ends when the index is dropped.
impl Stream for Subscription {
    type Item = Notice;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Notice>> {
        // The waker goes in first: what is told after it was looked for in vain wakes.
        let is_closed = self.0.with(|queue| {
            queue.waker = Some(context.waker().clone());
            queue.is_closed
        });
        match self.try_next() {
            Some(notice) => Poll::Ready(Some(notice)),
            None if is_closed => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// The queues of all subscribers that still exist.
#[derive(Debug, Default)]
pub(super) struct Subscribers(Vec<Weak<Shared>>);

impl Subscribers {
    pub(super) fn add(&mut self, bound: usize, sequence: u64) -> Subscription {
        let queue = Queue { reread: Some(sequence), ..Queue::default() };
        let shared = Arc::new(Shared { bound, queue: Mutex::new(queue) });
        self.0.push(Arc::downgrade(&shared));
        Subscription(shared)
    }

    pub(super) fn tell(&mut self, batch: &Arc<Batch>) {
        self.0.retain(|subscriber| {
            let Some(shared) = subscriber.upgrade() else { return false };
            let waker = shared.with(|queue| {
                queue.changes += batch.changes.len();
                if queue.reread.is_some() || queue.changes > shared.bound {
                    // One that begins again from the newest snapshot needs nothing of what was before.
                    queue.batches.clear();
                    (queue.changes, queue.reread) = (0, Some(batch.sequence));
                } else {
                    queue.batches.push_back(Arc::clone(batch));
                }
                queue.waker.take()
            });
            if let Some(waker) = waker {
                waker.wake();
            }
            true
        });
    }
}

impl Drop for Subscribers {
    fn drop(&mut self) {
        for shared in self.0.iter().filter_map(Weak::upgrade) {
            let waker = shared.with(|queue| {
                queue.is_closed = true;
                queue.waker.take()
            });
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}
