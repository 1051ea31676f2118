//! Writes the conditions of clusters into objects of the management clusters that a hub follows.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use taffrail_api::conditions::ConditionsWritten;
use taffrail_cluster::{Cluster, Discovery, chain};
use taffrail_hub::conditions::{ConditionsWrite, WriteConditions};
use taffrail_observe::{ClusterConnector, FleetMembers, TimeBudget, TimeLimits, write_conditions};
use tokio::sync::watch;

/// Maximum time for all requests of one write.
const PATIENCE: Duration = Duration::from_secs(20);

/// The time for which a connection is used, with the kinds that its server had.
const KEPT: Duration = Duration::from_secs(600);

/// The part of a hub that writes conditions.
pub(super) struct ConditionsWriter {
    /// The clusters that are followed now.
    members: watch::Receiver<FleetMembers>,
    connections: Mutex<HashMap<String, Connection>>,
}

/// A connection to a management cluster.
#[derive(Clone)]
struct Connection {
    cluster: Cluster,
    discovery: Discovery,
    since: Instant,
}

impl ConditionsWriter {
    pub(super) fn new(members: watch::Receiver<FleetMembers>) -> ConditionsWriter {
        ConditionsWriter { members, connections: Mutex::default() }
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<String, Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the connection to a cluster, a new one if there is none or it is old.
    async fn connection(&self, name: &str) -> Result<Connection, ConditionsWritten> {
        let kept = self.connections().get(name).filter(|it| it.since.elapsed() < KEPT).cloned();
        if let Some(kept) = kept {
            return Ok(kept);
        }
        let member = self.members.borrow().members.iter().find(|member| member.name == name).cloned();
        let member = member.ok_or_else(|| {
            ConditionsWritten::Unanswered("the hub does not follow its cluster any more".to_owned())
        })?;
        let limits = TimeLimits { total: TimeBudget::PerCluster(PATIENCE), request: None };
        let connected = ClusterConnector { member, limits }.connect().await;
        let cluster = connected.map_err(|failure| ConditionsWritten::Unanswered(failure.message))?;
        let discovery = cluster.discover().await;
        let discovery = discovery.map_err(|error| ConditionsWritten::Unanswered(chain(&error)))?;
        let connection = Connection { cluster, discovery, since: Instant::now() };
        self.connections().insert(name.to_owned(), connection.clone());
        Ok(connection)
    }
}

impl WriteConditions for ConditionsWriter {
    fn write(&self, write: ConditionsWrite) -> BoxFuture<'_, ConditionsWritten> {
        async move {
            let ConditionsWrite { home, object, conditions } = write;
            let Connection { cluster, discovery, .. } = match self.connection(&home).await {
                Ok(connection) => connection,
                Err(failed) => return failed,
            };
            let cluster = cluster.with_timeout(PATIENCE);
            let now = Timestamp::now();
            let written = write_conditions(&cluster, &discovery, &object, &conditions, now).await;
            if matches!(written, ConditionsWritten::Unanswered(_) | ConditionsWritten::Refused(_)) {
                self.connections().remove(&home);
            }
            written
        }
        .boxed()
    }
}
