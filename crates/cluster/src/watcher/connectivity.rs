//! Connectivity: probes of the server, and renewal of credentials.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use taffrail_object::{ApiResource, Projection};
use tokio::time::Instant;

use super::backoff::Backoff;
use super::decode::went_back;
use super::{Connection, Message, Shared, WatchEvent};
use crate::connect::Cluster;
use crate::costs::Purpose;
use crate::deadline::Deadline;
use crate::error::{ReadError, Reason};
use crate::read::ListRequest;

/// The connectivity to the API server, proven by recent answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connectivity {
    /// The server answers a probe again, after [`Connectivity::Lost`] or [`Connectivity::Stale`].
    Live,
    /// The server was not probed in time, because the process or its machine was asleep: it is probed now. After that,
    /// each scope that was live reports its state again.
    Stale {
        /// The time since the server last sent something or answered a probe.
        silent: Duration,
    },
    /// A probe failed: the server does not answer, or with an error that is not its own Forbidden, NotFound or
    /// TooManyRequests, or something else answers in its place.
    Lost {
        /// The time since the server last sent something or answered a probe.
        silent: Duration,
        /// The reason, one word in CamelCase.
        reason: &'static str,
        /// Message for people.
        message: String,
    },
    /// The server's state went back in time, as after a restore from a backup. Everything is listed again.
    WentBack {
        /// The highest resource version that the server had stated before.
        from: String,
        /// The resource version found now, which is lower.
        to: String,
    },
}

/// Number of times in [`WatchSettings::probe_after`](super::WatchSettings::probe_after) at which the watcher checks if
/// the machine was asleep, because timers stop in sleep: by default each 2 s.
const SLEEP_CHECKS: u32 = 5;

/// Probes the server when no watch shows that it is alive, and reports changes of connectivity, until the receiver of
/// events is gone.
pub(super) async fn keep(shared: Arc<Shared>) {
    let settings = &shared.settings;
    let mut backoff = Backoff::new(settings.longest_pause);
    let mut lost = false;
    // Not known to be there since a sleep.
    let mut stale = false;
    let mut last_version: Option<String> = None;
    let mut looked = settings.clock.now();
    loop {
        let silent = shared.silent();
        let began = settings.clock.now();
        // A server that is lost is silent, whoever is awake.
        let paused = if lost { began.since(looked) } else { silent.max(began.since(looked)) };
        looked = began;
        if paused > settings.longest_silence() {
            stale = true;
            let told = Message::Event(WatchEvent::Connectivity(Connectivity::Stale { silent }));
            if shared.send(told).await.is_err() {
                return;
            }
            shared.woken.send_modify(|moved| *moved += 1);
        }
        let left = settings.probe_after.saturating_sub(silent);
        if !lost && !stale && !left.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(left.min(settings.probe_after / SLEEP_CHECKS)) => continue,
                () = shared.doubted.notified() => {}
            }
        }
        let generation = shared.connection().generation;
        let mut refused = false;
        let tell = match probe(&shared).await {
            // What was said before a sleep proves nothing after it.
            Ok(_) if settings.clock.now().since(began) > settings.longest_silence() => continue,
            Ok(version) => {
                shared.prove();
                shared.accept(generation);
                backoff.reset();
                let was_lost = std::mem::take(&mut lost);
                let back = std::mem::take(&mut stale) || was_lost;
                // After a mere sleep nothing rests, and watches are being opened again. A watch that was open while the server
                // was lost may have lost its connection without a word: it is opened again too.
                if was_lost {
                    shared.woken.send_modify(|moved| *moved += 1);
                    shared.returned.send_modify(|moved| *moved += 1);
                }
                let before = std::mem::replace(&mut last_version, version.clone());
                match (before, version) {
                    (Some(from), Some(to)) if went_back(&from, &to) => {
                        shared.void();
                        shared.costs.relist();
                        Some(Connectivity::WentBack { from, to })
                    }
                    _ => back.then_some(Connectivity::Live),
                }
            }
            Err(error) => {
                refused = error.reason() == Reason::Unauthorized;
                let first = !std::mem::replace(&mut lost, true);
                let silent = shared.silent();
                let (reason, message) = (error.reason().as_str(), error.to_string());
                first.then_some(Connectivity::Lost { silent, reason, message })
            }
        };
        if let Some(connectivity) = tell {
            if shared.send(Message::Event(WatchEvent::Connectivity(connectivity))).await.is_err() {
                return;
            }
            // A reader may take its time.
            looked = settings.clock.now();
        }
        if refused {
            // The report comes first, because renewing credentials may take long.
            let _ = renew(&shared, generation).await;
        }
        if lost {
            // Retries begin quickly: a server that was away for a second must not show as lost for ten.
            tokio::time::sleep(backoff.next().min(shared.settings.probe_after)).await;
        }
    }
}

/// Lists one namespace and returns the server's resource version; `None` if the server refused it. No proxy can answer
/// that in place of the server, and it is cheap.
async fn probe(shared: &Shared) -> Result<Option<String>, ReadError> {
    let namespaces = ApiResource::namespaces();
    let request = ListRequest { projection: Projection::Metadata, page: 1, ..ListRequest::all(&namespaces) };
    shared.costs.request(Purpose::Probe);
    shared.connection().cluster.with_timeout(shared.settings.probe_timeout).prove(&request).await
}

/// The state of renewing credentials, with its backoff.
#[derive(Debug)]
pub(super) struct Renewals {
    backoff: Backoff,
    /// The time until which credentials are not renewed again, and the error until then; `None` if they were not
    /// renewed, or the server has accepted the renewed ones.
    refused: Option<(Instant, String)>,
}

impl Renewals {
    pub(super) fn new(longest_pause: Duration) -> Renewals {
        Renewals { backoff: Backoff::new(longest_pause), refused: None }
    }

    fn rest(&mut self, why: &str) {
        self.refused = Some((Instant::now() + self.backoff.next(), why.to_owned()));
    }
}

/// Renews the credentials and reconnects, unless that was done since connection `generation` was made. Concurrent
/// callers share the result; the error is the reason why the connection was not replaced. Credentials that the server
/// keeps refusing are renewed with growing backoff.
pub(super) async fn renew(shared: &Shared, generation: u64) -> Result<(), String> {
    if shared.context().is_none() {
        return Err("the credentials for the cluster cannot be renewed".to_owned());
    }
    let mut renewals = shared.renewals.lock().await;
    if shared.connection().generation != generation {
        return Ok(());
    }
    // The server accepted renewed credentials since, so renewing them helps.
    if shared.accepted.swap(0, Ordering::Relaxed) > generation {
        renewals.backoff.reset();
        renewals.refused = None;
    }
    if let Some((until, why)) = &renewals.refused
        && Instant::now() < *until
    {
        return Err(why.clone());
    }
    let limit = shared.connection().cluster.request_timeout();
    let deadline = Deadline::after(shared.settings.credentials_timeout).with_request_timeout(limit);
    // It may have been replaced while this waited.
    let Some(context) = shared.context() else { return Ok(()) };
    match Cluster::connect(&context, deadline).await {
        Ok(cluster) => {
            let before = shared.connection().cluster;
            let last = before.requests().cost;
            // Both connections are to the same cluster, which has one memory share.
            let cluster = cluster.sharing(&before);
            *shared.before.lock().unwrap_or_else(PoisonError::into_inner) += last;
            shared.connection.send_replace(Connection { cluster, generation: generation + 1 });
            renewals.rest("the server refused the renewed credentials as well");
            Ok(())
        }
        Err(error) => {
            let why = error.to_string();
            renewals.rest(&why);
            Err(why)
        }
    }
}

/// Connects with the present context, and then opens all watches again. Tries until it is connected.
pub(super) async fn replace(shared: Arc<Shared>) {
    let mut backoff = Backoff::new(shared.settings.longest_pause);
    loop {
        let generation = shared.connection().generation;
        // That other credentials were refused says nothing about these.
        shared.renewals.lock().await.refused = None;
        if renew(&shared, generation).await.is_ok() {
            shared.woken.send_modify(|moved| *moved += 1);
            shared.returned.send_modify(|moved| *moved += 1);
            shared.doubted.notify_one();
            return;
        }
        tokio::time::sleep(backoff.next()).await;
    }
}
