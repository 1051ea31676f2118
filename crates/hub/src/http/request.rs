//! The API of one run of a hub, and a request to it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::access::Access;
use super::cursor;
use super::limits::Limits;
use super::problem::Refusal;
use super::query::Query;
use super::stream::parking::Parking;
use crate::ask::Ask;
use crate::index::{FleetIndex, FleetView};
use crate::store::{Store, StoreError};

/// The number of answers that are computed at one time; others wait.
const COMPUTED: usize = 4;

/// The interval in which the tokens of the store are read again: another process may have created or revoked some.
const TOKENS: Duration = Duration::from_secs(5);

/// The HTTP API of one run of a hub.
pub struct HubApi {
    pub(crate) index: Arc<FleetIndex>,
    /// A random text that tells this run from others.
    pub(crate) instance: String,
    pub(crate) computed: Arc<Semaphore>,
    pub(crate) limits: Limits,
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) streams: Arc<Semaphore>,
    /// The slots for requests that need no access: probes, and those for a session.
    pub(crate) strangers: Arc<Semaphore>,
    pub(crate) parking: Parking,
    /// The access to the hub; `None` lets everybody read, in tests.
    pub(crate) access: Option<Access>,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) asker: Option<Arc<dyn Ask>>,
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
    /// Makes the API of a fleet for those who have `access`.
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
        })
    }

    /// Adds the store whose condition `/readyz` shows.
    #[must_use]
    pub fn with_store(self, store: Arc<dyn Store>) -> HubApi {
        HubApi { store: Some(store), ..self }
    }

    /// Admits those who have a token of the store: reads the tokens now and every five seconds, for ever. While the store
    /// cannot be read, those that it had before are valid.
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

    /// Adds the part of the program that answers the questions of views.
    #[must_use]
    pub fn with_asker(self, asker: Arc<dyn Ask>) -> HubApi {
        HubApi { asker: Some(asker), ..self }
    }
}

/// Computes an answer on a thread for blocking work, so that it delays no other request.
pub(super) async fn compute(
    hub: Arc<HubApi>,
    what: impl FnOnce(&HubApi) -> Result<Vec<u8>, Refusal> + Send + 'static,
) -> Result<Vec<u8>, Refusal> {
    let permit = Arc::clone(&hub.computed).acquire_owned().await.map_err(|_| Refusal::internal())?;
    let computed = tokio::task::spawn_blocking(move || {
        let answer = what(&hub);
        drop(permit);
        answer
    });
    computed.await.unwrap_or_else(|_| Err(Refusal::internal()))
}

/// A request to an endpoint.
pub(crate) struct Request<'r> {
    pub(crate) hub: &'r HubApi,
    pub(crate) view: FleetView,
    pub(crate) query: Query,
    /// The parameters in the path, in its order.
    pub(crate) path: Vec<String>,
}

impl Request<'_> {
    /// Reads the cursor as one of a list; `None` if the request has none.
    pub(crate) fn cursor<K: DeserializeOwned>(&self, list: &str) -> Result<Option<K>, Refusal> {
        let cursor = self.query.cursor.as_ref();
        cursor.map(|cursor| cursor::read(&self.hub.instance, list, cursor)).transpose()
    }
}
