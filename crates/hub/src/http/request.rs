//! The state that all handlers of the HTTP API share, and a parsed request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::access::{Access, Rights};
use super::cursor;
use super::limits::Limits;
use super::problem::Refusal;
use super::query::Query;
use super::stream::parking::Parking;
use crate::agents::Agents;
use crate::ask::Ask;
use crate::index::{FleetIndex, FleetView};
use crate::operations::{Operate, Operations};
use crate::store::{Store, StoreError};

/// The greatest number of answers that are computed at one time; further ones wait.
const COMPUTED: usize = 4;

/// The interval in which the tokens of the store are read again: another process may have created or revoked some.
const TOKENS: Duration = Duration::from_secs(5);

/// The state that all handlers of one run of a hub share: the fleet, limits, access rules, store.
pub struct HubApi {
    pub(crate) index: Arc<FleetIndex>,
    /// A random text that tells this run from others.
    pub(crate) instance: String,
    pub(crate) computed: Arc<Semaphore>,
    pub(crate) limits: Limits,
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) streams: Arc<Semaphore>,
    /// The slots for requests that need no token: probes, and those that open a session.
    pub(crate) strangers: Arc<Semaphore>,
    pub(crate) parking: Parking,
    /// The access rules; `None` (in tests only) lets every client read.
    pub(crate) access: Option<Access>,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) asker: Option<Arc<dyn Ask>>,
    pub(crate) operator: Option<Arc<dyn Operate>>,
    /// The agents that report to the hub; `None` if it serves none.
    pub(crate) agents: Option<Arc<Agents>>,
    pub(crate) operations: Arc<Operations>,
}

impl fmt::Debug for HubApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubApi")
            .field("instance", &self.instance)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl HubApi {
    /// Makes the API of the fleet `index`, without store and asker, that answers only the requests that `access`
    /// admits.
    ///
    /// # Errors
    /// If the operating system gives no random bytes.
    pub fn new(index: Arc<FleetIndex>, access: Access, limits: Limits) -> Result<HubApi, StoreError> {
        HubApi::of(index, Some(access), limits)
    }

    pub(crate) fn of(
        index: Arc<FleetIndex>,
        access: Option<Access>,
        limits: Limits,
    ) -> Result<HubApi, StoreError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| StoreError::NoRandomness(error.to_string()))?;
        let instance = format!("{:016x}", u64::from_le_bytes(random));
        Ok(HubApi {
            operations: Arc::new(Operations::new(Arc::clone(&index))),
            index,
            instance,
            computed: Arc::new(Semaphore::new(COMPUTED)),
            requests: Arc::new(Semaphore::new(limits.requests)),
            streams: Arc::new(Semaphore::new(limits.streams)),
            strangers: Arc::new(Semaphore::new(limits.requests)),
            parking: Parking::default(),
            limits,
            access,
            store: None,
            asker: None,
            operator: None,
            agents: None,
        })
    }

    /// Sets the store, from which `/readyz` takes the condition, the API the history, and
    /// [`keep_tokens`](HubApi::keep_tokens) the tokens.
    #[must_use]
    pub fn with_store(self, store: Arc<dyn Store>) -> HubApi {
        HubApi { store: Some(store), ..self }
    }

    /// Sets the agents that report to the hub, which [`serve`](super::serve()) then serves by TLS.
    #[must_use]
    pub fn with_agents(self, agents: Arc<Agents>) -> HubApi {
        HubApi { agents: Some(agents), ..self }
    }

    /// Admits those who have a token of the store: reads the tokens now and every five seconds, for ever; without a
    /// store it only waits. While the store cannot be read, the tokens that it had before are valid.
    pub async fn keep_tokens(&self) {
        let (Some(store), Some(access)) = (&self.store, &self.access) else {
            return std::future::pending().await;
        };
        loop {
            if let Ok(tokens) = store.tokens().await {
                access.set_tokens(tokens);
            }
            tokio::time::sleep(TOKENS).await;
        }
    }

    /// Looks for what operations left that an earlier process of the hub did not end, as its store tells.
    pub async fn recover_operations(&self) {
        if let (Some(store), Some(operator)) = (&self.store, &self.operator) {
            self.operations.recover(operator, store).await;
        }
    }

    /// Returns the rights of a request whose answer goes on, or the refusal if it is not admitted any more: its token
    /// was revoked or has expired, say.
    pub(super) fn still_admits(&self, parts: &Parts) -> Result<Rights, Refusal> {
        match &self.access {
            Some(access) => access.check_reader(parts, self.index.clock().time().now),
            None => Ok(Rights::ALL),
        }
    }

    /// Sets what answers the questions of views and those about logs; without it these paths respond with 404.
    #[must_use]
    pub fn with_asker(self, asker: Arc<dyn Ask>) -> HubApi {
        HubApi { asker: Some(asker), ..self }
    }

    /// Sets what plans and runs operations; without it these paths respond with 404.
    #[must_use]
    pub fn with_operator(self, operator: Arc<dyn Operate>) -> HubApi {
        HubApi { operator: Some(operator), ..self }
    }
}

/// Runs `what` on a thread for blocking work, so that it does not block the async runtime; waits while 4 others run. An
/// internal error (500) if it panics.
pub(super) async fn compute<A: Send + 'static>(
    hub: Arc<HubApi>,
    what: impl FnOnce(&HubApi) -> Result<A, Refusal> + Send + 'static,
) -> Result<A, Refusal> {
    let permit = Arc::clone(&hub.computed).acquire_owned().await.map_err(|_| Refusal::internal())?;
    let computed = tokio::task::spawn_blocking(move || {
        let answer = what(&hub);
        drop(permit);
        answer
    });
    computed.await.unwrap_or_else(|_| Err(Refusal::internal()))
}

/// A parsed request to an endpoint, with the view of the fleet from which it is answered.
pub(crate) struct Request<'r> {
    pub(crate) hub: &'r HubApi,
    pub(crate) view: FleetView,
    pub(crate) query: Query,
    /// The decoded path parameters, in the order of the path.
    pub(crate) path: Vec<String>,
}

impl Request<'_> {
    /// Returns the position that the request's cursor holds; `None` without a cursor. Refuses a text that is no cursor,
    /// and a cursor of another list or of another run of the hub.
    pub(crate) fn cursor<K: DeserializeOwned>(&self, list: &str) -> Result<Option<K>, Refusal> {
        let cursor = self.query.cursor.as_ref();
        cursor.map(|cursor| cursor::read(&self.hub.instance, list, cursor)).transpose()
    }
}
