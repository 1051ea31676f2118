//! The API of one run of a hub, and a request to it.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::cursor;
use super::problem::Refusal;
use super::query::Query;
use crate::index::{FleetIndex, FleetView};
use crate::store::StoreError;

/// The number of answers that are computed at one time; others wait.
const COMPUTED: usize = 4;

/// The HTTP API of one run of a hub.
#[derive(Debug)]
pub struct HubApi {
    pub(crate) index: Arc<FleetIndex>,
    /// A random text that tells this run from others.
    pub(crate) instance: String,
    pub(crate) computed: Arc<Semaphore>,
}

impl HubApi {
    /// Makes the API of a fleet.
    ///
    /// # Errors
    /// If the operating system gives no random bytes.
    pub fn new(index: Arc<FleetIndex>) -> Result<HubApi, StoreError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| StoreError::NoRandomness(error.to_string()))?;
        let instance = format!("{:016x}", u64::from_le_bytes(random));
        Ok(HubApi { index, instance, computed: Arc::new(Semaphore::new(COMPUTED)) })
    }
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
