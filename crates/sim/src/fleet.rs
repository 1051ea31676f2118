//! A fleet of simulated clusters with a common clock.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::TcpListener;

use crate::behaviour::{Behaviour, Behaviours};
use crate::clock::{Clock, Pace, later};
use crate::cluster::Cluster;
use crate::error::SimError;
use crate::fleet_state::{FleetState, Options, conduct};

/// Simulated clusters that share a clock, a seed and a certificate authority.
///
/// Each cluster lives as long as its own handles; planned tasks run as long as the fleet's handle is held.
#[derive(Debug)]
pub struct Fleet {
    pub(crate) shared: Arc<FleetState>,
    conductor: Option<tokio::task::AbortHandle>,
}

/// The options of a new fleet.
#[derive(Debug, Clone)]
pub struct FleetBuilder(Options);

impl Fleet {
    /// Returns the default options: real time, seed 0, controllers, no nodes.
    pub fn builder() -> FleetBuilder {
        FleetBuilder(Options {
            seed: 0,
            pace: Pace::Real,
            start: Timestamp::now(),
            held: false,
            controllers: true,
            verbatim: false,
            managers: false,
            window: 1024,
            bookmark_every: Duration::from_secs(60),
            version: "v1.36.3".to_owned(),
            nodes: 0,
            missing_images: Vec::new(),
            off: Behaviours::default(),
        })
    }

    /// Returns the clock of the fleet.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Adds a cluster: an API server on a port of its own, with the objects that every cluster begins with, such as
    /// namespaces; without any in a verbatim fleet.
    ///
    /// # Errors
    /// If the name is taken, or no port is free.
    pub async fn cluster(&self, name: &str) -> Result<Cluster, SimError> {
        self.cluster_at(name, TcpListener::bind(("127.0.0.1", 0)).await)
    }

    fn cluster_at(&self, name: &str, listener: io::Result<TcpListener>) -> Result<Cluster, SimError> {
        // Nothing fails once the name is taken.
        let listener = listener.map_err(SimError::Listen)?;
        let address = listener.local_addr().map_err(SimError::Listen)?;
        {
            let mut names = self.shared.names.lock().unwrap_or_else(PoisonError::into_inner);
            if names.iter().any(|known| known == name) {
                return Err(SimError::NameTaken(name.to_owned()));
            }
            names.push(name.to_owned());
        }
        Ok(Cluster::start(self.shared.clone(), name, listener, address))
    }

    /// Moves the clock forward by `by`. All tasks that become due run before this returns, in their order and each
    /// at its own time, so that a fleet with a past is ready at once.
    pub fn advance(&self, by: Duration) {
        let end = later(self.shared.clock.now(), by);
        self.shared.run_until(end, true);
        self.shared.clock.step_to(end);
        // The next task is now due sooner than the timer expects.
        self.shared.clock_moved();
    }

    /// Lets the time of a held fleet pass from now on.
    pub fn release(&self) {
        self.shared.clock.release();
        self.shared.clock_moved();
    }

    /// Returns the certificate of the authority that signed those of all API servers, in PEM.
    pub fn authority(&self) -> &str {
        &self.shared.tls.authority
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if let Some(conductor) = &self.conductor {
            conductor.abort();
        }
    }
}

impl FleetBuilder {
    /// Sets the seed of all random values: uids, generated names, delays.
    pub fn seed(mut self, seed: u64) -> FleetBuilder {
        self.0.seed = seed;
        self
    }

    /// Sets the pace of time.
    pub fn pace(mut self, pace: Pace) -> FleetBuilder {
        self.0.pace = pace;
        self
    }

    /// Sets the time at which the fleet begins.
    pub fn start_at(mut self, start: Timestamp) -> FleetBuilder {
        self.0.start = start;
        self
    }

    /// Holds time until [`Fleet::release`]: before that only [`Fleet::advance`] moves it, so that the past of a fleet
    /// is the same on any machine.
    pub fn held(mut self) -> FleetBuilder {
        self.0.held = true;
        self
    }

    /// Enables or disables the kubelets and the controllers of workloads (Deployments, StatefulSets, DaemonSets, Jobs,
    /// CronJobs), Services, budgets, quotas, claims and nodes. Without them, objects of these kinds stay as they are
    /// written; namespaces, custom resources and dependents are still handled.
    pub fn controllers(mut self, controllers: bool) -> FleetBuilder {
        self.0.controllers = controllers;
        self
    }

    /// Makes clusters hold only the objects of timelines and of [`Cluster::apply`], as a complete recording needs it:
    /// they begin empty, nothing is defaulted or counted, and no controller reacts, except that custom resources are
    /// served. Writes of clients follow the usual rules.
    pub fn verbatim(mut self, verbatim: bool) -> FleetBuilder {
        self.0.verbatim = verbatim;
        self
    }

    /// Enables the recording of field managers (`metadata.managedFields`) as kube-apiserver does it for updates.
    /// Without them, an object is one or two kilobytes smaller.
    pub fn managers(mut self, managers: bool) -> FleetBuilder {
        self.0.managers = managers;
        self
    }

    /// Sets the number of changes that a cluster keeps; a watch that resumes before them gets `410 Gone`.
    pub fn window(mut self, changes: usize) -> FleetBuilder {
        self.0.window = changes.max(1);
        self
    }

    /// Sets the interval at which a watch whose client wants bookmarks gets them, in real time.
    pub fn bookmark_every(mut self, interval: Duration) -> FleetBuilder {
        self.0.bookmark_every = interval.max(Duration::from_millis(1));
        self
    }

    /// Sets the version that API servers report, such as `v1.36.3`.
    pub fn version(mut self, version: &str) -> FleetBuilder {
        self.0.version = version.to_owned();
        self
    }

    /// Sets the number of nodes that each cluster begins with.
    pub fn nodes(mut self, nodes: usize) -> FleetBuilder {
        self.0.nodes = nodes;
        self
    }

    /// Adds names of images that cannot be pulled: containers with such an image wait and back off.
    pub fn missing_images(mut self, images: impl IntoIterator<Item = impl Into<String>>) -> FleetBuilder {
        self.0.missing_images.extend(images.into_iter().map(Into::into));
        self
    }

    /// Switches a behaviour off in all clusters, so that tests can prove that they fail without it.
    #[doc(hidden)]
    pub fn without(mut self, behaviour: Behaviour) -> FleetBuilder {
        self.0.off.turn_off(behaviour);
        self
    }

    /// Starts the fleet, on the current Tokio runtime.
    ///
    /// # Errors
    /// If its certificates cannot be created.
    pub async fn start(self) -> Result<Fleet, SimError> {
        let shared = Arc::new(FleetState::new(self.0)?);
        let stepped = shared.clock.pace() == Pace::Stepped;
        let conductor = (!stepped).then(|| tokio::spawn(conduct(Arc::downgrade(&shared))).abort_handle());
        Ok(Fleet { shared, conductor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn cluster_without_a_port_leaves_its_name_free() {
        let fleet = Fleet::builder().start().await.unwrap();
        let refused = fleet.cluster_at("one", Err(io::Error::other("no port is free")));
        assert!(matches!(refused, Err(SimError::Listen(_))), "{refused:?}");
        fleet.cluster("one").await.unwrap();
        let taken = fleet.cluster("one").await;
        assert!(matches!(taken, Err(SimError::NameTaken(_))), "{taken:?}");
    }
}
