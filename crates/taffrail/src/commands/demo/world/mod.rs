//! The fleet that the demo shows: what is declared in `fleet.yaml`, expanded with `templates/`, and what goes wrong in it.

mod objects;
mod repository;
mod template;
#[cfg(test)]
mod tests;
mod tools;
mod troubles;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use objects::Made;
use serde::Deserialize;
use taffrail_object::yaml;
use taffrail_sim::{Cluster, Fleet, SimError, TimelineError};
use template::UnknownPlaceholder;
use tokio::task::JoinSet;
use tools::{Controllers, Place};

/// How long the fleet has been there when the demo begins.
const AGE: Duration = Duration::from_secs(3 * 86_400);
/// How many nodes each cluster has.
const NODES: usize = 3;

/// Why there is no fleet to show.
#[derive(Debug, thiserror::Error)]
pub(super) enum WorldError {
    #[error("the simulation cannot be started")]
    Sim(#[from] SimError),
    #[error("what is declared cannot be read: {0}")]
    Declared(String),
    #[error("a template cannot be filled in")]
    Template(#[from] UnknownPlaceholder),
    #[error("what goes wrong cannot be read")]
    Timeline(#[from] TimelineError),
}

/// An app, wherever it is delivered.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct App {
    namespace: String,
    #[serde(default)]
    image: String,
    #[serde(default)]
    version: String,
    /// Names, with numbers of replicas.
    #[serde(default)]
    workloads: BTreeMap<String, u32>,
    /// How many Pods its namespace may hold.
    quota: Option<u32>,
    /// The workload that has a disk.
    volume: Option<String>,
    chart: Option<String>,
    chart_version: Option<String>,
    /// What of its repository is delivered.
    path: Option<String>,
    /// Whether Argo CD puts changes in the cluster right.
    #[serde(default = "yes")]
    self_heal: bool,
}

fn yes() -> bool {
    true
}

/// A cluster, with the apps that each tool delivers into it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Member {
    name: String,
    region: String,
    /// The branch that its Flux follows.
    #[serde(default)]
    branch: String,
    /// The cluster whose Argo CD delivers into this one; itself if there is none.
    from: Option<String>,
    #[serde(default)]
    flux_kustomization: Vec<String>,
    #[serde(default)]
    flux_helmrelease: Vec<String>,
    #[serde(default)]
    argo_application: Vec<String>,
    #[serde(default)]
    config_sync: Vec<String>,
    #[serde(default)]
    kpt: Vec<String>,
    #[serde(default)]
    helm: Vec<String>,
    #[serde(default)]
    label: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    apps: BTreeMap<String, App>,
    clusters: Vec<Member>,
}

impl Declared {
    fn read() -> Result<Declared, WorldError> {
        yaml::read(include_str!("fleet.yaml")).map_err(|error| WorldError::Declared(error.to_string()))
    }

    fn app(&self, name: &str) -> Result<&App, WorldError> {
        self.apps.get(name).ok_or_else(|| WorldError::Declared(format!("there is no app {name:?}")))
    }
}

/// The fleet. It ends when this is dropped.
pub(super) struct World {
    fleet: Fleet,
    /// What the tools' controllers do.
    tools: JoinSet<()>,
    /// How far the story is moved on at the start.
    skip: Duration,
    pub(super) clusters: Vec<Cluster>,
    /// The region of each cluster, in the same order.
    pub(super) regions: Vec<String>,
}

impl World {
    /// Starts the fleet, which is then so far into the first round of what goes wrong, and stays there if it is held.
    pub(super) async fn start(seed: u64, skip: Duration, hold: bool) -> Result<World, WorldError> {
        let (mut world, controllers) = World::build(Declared::read()?, seed, skip).await?;
        controllers.into_iter().for_each(|controllers| controllers.listen(&mut world.tools));
        if !hold {
            world.catch_up();
            world.fleet.release();
        }
        Ok(world)
    }

    /// Makes the fleet, whose time is held, and the controllers of its clusters, which do nothing yet.
    async fn build(
        declared: Declared,
        seed: u64,
        skip: Duration,
    ) -> Result<(World, Vec<Controllers>), WorldError> {
        let past = SignedDuration::try_from(AGE.saturating_add(skip)).unwrap_or_default();
        let start = Timestamp::now().checked_sub(past).unwrap_or(Timestamp::MIN);
        let fleet = Fleet::builder()
            .seed(seed)
            .start_at(start)
            .held()
            .nodes(NODES)
            .managers(true)
            .missing_images(troubles::missing_images())
            .start()
            .await?;
        let mut clusters = Vec::with_capacity(declared.clusters.len());
        for member in &declared.clusters {
            clusters.push(fleet.cluster(&member.name).await?);
        }
        let servers = clusters.iter().map(|it| (it.name().to_owned(), it.url())).collect();
        let made = objects::all(&declared, seed, &servers, start)?;
        let place = |cluster: &Cluster| Place { cluster: cluster.clone(), repository: Arc::default() };
        let places: Arc<[Place]> = clusters.iter().map(place).collect();
        for place in &*places {
            for made in made.get(place.cluster.name()).into_iter().flatten() {
                made.apply(&place.cluster)?;
                made.declare(&place.repository)?;
            }
        }
        // Everything has rolled out long ago.
        fleet.advance(AGE);
        for cluster in &clusters {
            cluster.compact();
        }
        let regions = declared.clusters.iter().map(|member| member.region.clone()).collect();
        let mut world = World { fleet, tools: JoinSet::new(), clusters, regions, skip };
        // Nothing happens in the time that all this took: the story begins with its own time.
        world.catch_up();
        troubles::begin(&declared, &places, world.fleet.clock(), seed)?;
        world.fleet.advance(std::mem::take(&mut world.skip));
        world.clusters.iter().for_each(Cluster::keep_leases);
        let mut controllers = Vec::with_capacity(places.len());
        for place in &*places {
            let all = made.get(place.cluster.name()).into_iter().flatten();
            let told = all.map(Made::told).collect::<Result<Vec<_>, _>>()?.concat();
            let clock = world.fleet.clock().clone();
            controllers.push(Controllers::new(place.clone(), places.clone(), clock, told));
        }
        Ok((world, controllers))
    }

    /// Moves the time of the fleet to the time of this machine, less what is still to be skipped.
    fn catch_up(&self) {
        let behind = Timestamp::now().duration_since(self.fleet.clock().now());
        let behind = Duration::try_from(behind).unwrap_or_default();
        self.fleet.advance(behind.saturating_sub(self.skip));
    }

    /// The kubeconfig of all its clusters.
    pub(super) fn kubeconfig(&self) -> String {
        Cluster::kubeconfig_of(&self.clusters)
    }
}
