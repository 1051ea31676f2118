//! Faults that tests and demos inject.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// The kinds of faults that can be injected. Durations are in real time.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Trouble {
    /// The answer is delayed by this duration.
    Latency(Duration),
    /// The answer is 429 with `Retry-After` in seconds.
    TooManyRequests(u64),
    /// The answer is 500 with this message.
    ServerError(String),
    /// The request is never answered.
    Hang,
    /// The answer is cut off after this number of bytes of its body, even in the middle of a line.
    Cut(usize),
    /// The answer is 200 with a body that is not JSON but text.
    Garbage,
    /// A mutating webhook changes what is written by this JSON merge patch. As in kube-apiserver, its changes have no owner.
    MutatingWebhook(Value),
    /// A webhook does not support dry runs: writes whose query asks for one are answered with 400.
    WebhookWithoutDryRun,
    /// A webhook does not answer writes within this duration, and they fail.
    LateWebhook(Duration),
    /// A watch opens and then stays silent: no events and no bookmarks.
    SilentWatch,
    /// Every watch is answered with 410 (`Expired`), as if its resourceVersion were too old.
    Expired,
    /// The certificate has expired: new connections fail, and open ones are closed.
    ExpiredCertificate,
    /// The server is down: open connections are closed, and new ones are closed as soon as they are made.
    Unreachable,
    /// Connections are accepted and never answered, as behind a firewall that drops packets. Open ones are closed.
    Blackhole,
}

impl Trouble {
    /// Returns the patch by which a webhook changes what is written; `None` for other troubles.
    pub(crate) fn mutation(&self) -> Option<&Value> {
        match self {
            Trouble::MutatingWebhook(patch) => Some(patch),
            _ => None,
        }
    }

    /// Returns true if the trouble is one of connections, not of requests.
    fn is_of_connections(&self) -> bool {
        matches!(self, Trouble::ExpiredCertificate | Trouble::Unreachable | Trouble::Blackhole)
    }
}

/// An injected fault: a [`Trouble`] and the requests that it affects. A fault of connections
/// ([`Trouble::ExpiredCertificate`], [`Trouble::Unreachable`], [`Trouble::Blackhole`]) affects all connections until it
/// is removed.
#[derive(Debug, Clone)]
pub struct Fault {
    trouble: Trouble,
    verb: Option<String>,
    resource: Option<String>,
    path: Option<String>,
    times: Option<u32>,
}

/// The identifier of an injected fault, to remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultId(u64);

impl Fault {
    /// Creates a fault that affects every request of a cluster.
    pub fn new(trouble: Trouble) -> Fault {
        Fault { trouble, verb: None, resource: None, path: None, times: None }
    }

    /// Returns true if the fault affects connections, not requests.
    pub(crate) fn is_of_connections(&self) -> bool {
        self.trouble.is_of_connections()
    }

    /// Restricts the fault to requests with this verb: `get`, `list`, `watch`, `create`, `update`, `patch`,
    /// `delete`, `deletecollection`.
    pub fn verb(mut self, verb: &str) -> Fault {
        self.verb = Some(verb.to_owned());
        self
    }

    /// Restricts the fault to requests for this resource: `pods`, `deployments.apps`.
    pub fn resource(mut self, resource: &str) -> Fault {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Restricts the fault to requests whose path begins with `prefix`.
    pub fn path(mut self, prefix: &str) -> Fault {
        self.path = Some(prefix.to_owned());
        self
    }

    /// Restricts the fault to the next `times` requests that it affects.
    pub fn times(mut self, times: u32) -> Fault {
        self.times = Some(times);
        self
    }
}

/// The faults that are set in a cluster.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    next: AtomicU64,
    set: Mutex<Vec<(FaultId, Fault)>>,
}

impl Faults {
    pub(crate) fn add(&self, fault: Fault) -> FaultId {
        let id = FaultId(self.next.fetch_add(1, Ordering::Relaxed));
        self.set().push((id, fault));
        id
    }

    pub(crate) fn remove(&self, id: FaultId) {
        self.set().retain(|(known, _)| *known != id);
    }

    /// Removes the fault with this trouble that was set last; returns true if there was one.
    pub(crate) fn remove_newest(&self, trouble: &Trouble) -> bool {
        let mut set = self.set();
        let newest = set.iter().rposition(|(_, fault)| fault.trouble == *trouble);
        newest.map(|place| set.remove(place)).is_some()
    }

    pub(crate) fn clear(&self) {
        self.set().clear();
    }

    fn set(&self) -> std::sync::MutexGuard<'_, Vec<(FaultId, Fault)>> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the troubles of the faults that affect a request, except those of connections, oldest first. Counts the
    /// request for them, and removes faults whose number of requests is used up.
    pub(crate) fn hit(&self, verb: &str, resource: &str, path: &str) -> Vec<Trouble> {
        let mut set = self.set();
        let mut hits = Vec::new();
        for (_, fault) in set.iter_mut() {
            let other = |wanted: &Option<String>, found: &str| {
                wanted.as_deref().is_some_and(|wanted| wanted != found)
            };
            let elsewhere = fault.path.as_deref().is_some_and(|prefix| !path.starts_with(prefix));
            if other(&fault.verb, verb)
                || other(&fault.resource, resource)
                || elsewhere
                || fault.times == Some(0)
                || fault.is_of_connections()
            {
                continue;
            }
            if let Some(times) = &mut fault.times {
                *times -= 1;
            }
            hits.push(fault.trouble.clone());
        }
        set.retain(|(_, fault)| fault.times != Some(0));
        hits
    }

    /// Returns the oldest trouble that affects new connections (expired certificate, unreachable, black hole); `None`
    /// if there is none.
    pub(crate) fn connection(&self) -> Option<Trouble> {
        let set = self.set();
        set.iter().map(|(_, fault)| &fault.trouble).find(|trouble| trouble.is_of_connections()).cloned()
    }
}
