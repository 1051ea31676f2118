//! The simulated fleet of the demo: the apps and clusters of `fleet.yaml`, with objects made of `templates/`, and the
//! faults in it.

mod faults;
mod managers;
mod objects;
mod repository;
mod template;
#[cfg(test)]
mod tests;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use objects::ManagedTexts;
use serde::Deserialize;
use taffrail_object::yaml;
use taffrail_sim::{Cluster, Fleet, SimError, TimelineError};
use template::UnknownPlaceholder;
use tokio::task::JoinSet;
use tools::{ControlledCluster, Controllers};

/// The time that is simulated before the demo begins, so that objects are as old as that.
const AGE: Duration = Duration::from_secs(3 * 86_400);
/// Number of nodes of each cluster.
const NODES: usize = 3;

/// The reason why the fleet could not be built or started.
#[derive(Debug, thiserror::Error)]
pub(super) enum WorldError {
    #[error("the demo's simulated clusters cannot be started, or filled with objects")]
    Sim(#[from] SimError),
    #[error("the demo cannot read the declaration of its fleet or faults: {0}")]
    Declared(String),
    #[error("the demo cannot make its objects")]
    Template(#[from] UnknownPlaceholder),
    #[error("the demo cannot read the timeline of its faults")]
    Timeline(#[from] TimelineError),
}

/// An app as `fleet.yaml` declares it; each cluster names the tool that delivers it there.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct App {
    namespace: String,
    #[serde(default)]
    image: String,
    #[serde(default)]
    version: String,
    /// The number of replicas of each workload, by the workload's name.
    #[serde(default)]
    workloads: BTreeMap<String, u32>,
    /// The maximum number of Pods in the quota of the app's namespace; `None` for no quota.
    quota: Option<u32>,
    /// The name of the workload that has a volume; `None` if there is none.
    volume: Option<String>,
    chart: Option<String>,
    chart_version: Option<String>,
    /// The path in the app's repository from which Argo CD delivers; `None` for the name of the cluster. Flux always
    /// delivers from `./clusters/CLUSTER`.
    path: Option<String>,
    /// True if Argo CD heals the drift of this app's objects.
    #[serde(default = "yes")]
    self_heal: bool,
}

fn yes() -> bool {
    true
}

/// The way by which the demo's hub learns of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Reach {
    /// The hub reads the cluster, as everybody can who has the kubeconfig.
    #[default]
    Kubeconfig,
    /// An agent reports the cluster.
    Agent,
    /// A metrics server has the metrics of the cluster's delivery tools.
    Metrics,
}

impl Reach {
    /// Returns true if this program has the parts by which the hub learns of such a cluster.
    fn is_possible(self) -> bool {
        match self {
            Reach::Kubeconfig => true,
            Reach::Agent => cfg!(all(feature = "hub", feature = "agent")),
            Reach::Metrics => cfg!(feature = "hub"),
        }
    }
}

/// A cluster in `fleet.yaml`, with the names of the apps that each tool delivers to it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Member {
    name: String,
    region: String,
    #[serde(default)]
    reach: Reach,
    /// The Git branch that Flux in this cluster follows.
    #[serde(default)]
    branch: String,
    /// The name of the cluster whose Argo CD delivers the Argo CD apps of this cluster; `None` for its own.
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

/// The contents of `fleet.yaml`: the apps by name, and the clusters to which they are delivered.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    apps: BTreeMap<String, App>,
    clusters: Vec<Member>,
}

impl Declared {
    fn read() -> Result<Declared, WorldError> {
        let read = yaml::read(include_str!("fleet.yaml"));
        let mut declared: Declared = read.map_err(|error| WorldError::Declared(error.to_string()))?;
        declared.clusters.retain(|member| member.reach.is_possible());
        Ok(declared)
    }

    fn app(&self, name: &str) -> Result<&App, WorldError> {
        self.apps.get(name).ok_or_else(|| WorldError::Declared(format!("there is no app {name:?}")))
    }
}

/// The running simulated fleet. It stops on drop.
pub(super) struct World {
    fleet: Fleet,
    /// The tasks that run the simulated controllers of Flux and Argo CD.
    tools: JoinSet<()>,
    /// The part of the skipped time that is still to be simulated.
    skip: Duration,
    /// The clusters of the kubeconfig.
    pub(super) clusters: Vec<Cluster>,
    /// The region of each of these, in the same order.
    pub(super) regions: Vec<String>,
    /// The clusters that the kubeconfig does not have, of which the hub alone learns.
    #[cfg_attr(not(feature = "hub"), expect(dead_code, reason = "without a hub there are none"))]
    further: Vec<Further>,
}

/// A cluster that the kubeconfig does not have.
#[cfg_attr(
    not(all(feature = "hub", feature = "agent")),
    expect(dead_code, reason = "the parts that learn of such clusters are not in this program")
)]
struct Further {
    cluster: Cluster,
    region: String,
    reach: Reach,
}

impl World {
    /// Starts the fleet at the time `skip` of the first round of faults; with `hold` its time stays there, else it runs
    /// on.
    pub(super) async fn start(seed: u64, skip: Duration, hold: bool) -> Result<World, WorldError> {
        let (mut world, controllers) = World::build(Declared::read()?, seed, skip).await?;
        controllers.into_iter().for_each(|controllers| controllers.listen(&mut world.tools));
        if !hold {
            world.catch_up();
            world.fleet.release();
        }
        Ok(world)
    }

    /// Builds the fleet, whose time is held, and returns it with the controllers of its clusters, which do not run yet.
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
            .missing_images(faults::missing_images())
            .start()
            .await?;
        let mut clusters = Vec::with_capacity(declared.clusters.len());
        for member in &declared.clusters {
            clusters.push(fleet.cluster(&member.name).await?);
        }
        let servers = clusters.iter().map(|it| (it.name().to_owned(), it.url())).collect();
        let made = objects::all(&declared, seed, &servers, start)?;
        let place =
            |cluster: &Cluster| ControlledCluster { cluster: cluster.clone(), repository: Arc::default() };
        let places: Arc<[ControlledCluster]> = clusters.iter().map(place).collect();
        for place in &*places {
            for made in made.get(place.cluster.name()).into_iter().flatten() {
                made.apply(&place.cluster)?;
                made.declare(&place.repository)?;
            }
        }
        // All rollouts are long complete.
        fleet.advance(AGE);
        for cluster in &clusters {
            cluster.compact();
        }
        let mut world = World {
            fleet,
            tools: JoinSet::new(),
            skip,
            clusters: Vec::new(),
            regions: Vec::new(),
            further: Vec::new(),
        };
        for (cluster, member) in clusters.into_iter().zip(&declared.clusters) {
            let region = member.region.clone();
            match member.reach {
                Reach::Kubeconfig => {
                    world.clusters.push(cluster);
                    world.regions.push(region);
                }
                reach => world.further.push(Further { cluster, region, reach }),
            }
        }
        // The story begins at its own time; building took no simulated time.
        world.catch_up();
        faults::begin(&declared, &places, world.fleet.clock(), seed)?;
        world.fleet.advance(std::mem::take(&mut world.skip));
        places.iter().for_each(|place| place.cluster.keep_leases());
        let mut controllers = Vec::with_capacity(places.len());
        for place in &*places {
            let all = made.get(place.cluster.name()).into_iter().flatten();
            let told = all.map(ManagedTexts::told).collect::<Result<Vec<_>, _>>()?.concat();
            let clock = world.fleet.clock().clone();
            controllers.push(Controllers::new(place.clone(), places.clone(), clock, told));
        }
        Ok((world, controllers))
    }

    /// Moves the fleet's time to this machine's time, minus the part of the skipped time that is not simulated yet.
    fn catch_up(&self) {
        let behind = Timestamp::now().duration_since(self.fleet.clock().now());
        let behind = Duration::try_from(behind).unwrap_or_default();
        self.fleet.advance(behind.saturating_sub(self.skip));
    }

    /// Returns the text of a kubeconfig with a context for each cluster that it may have, labelled with its region.
    pub(super) fn kubeconfig(&self) -> String {
        kubeconfig(self.clusters.iter().zip(&self.regions))
    }

    /// Returns the clusters that agents report, and the text of a kubeconfig with a context for each of them, as an agent
    /// beside its cluster has it.
    #[cfg(all(feature = "hub", feature = "agent"))]
    pub(super) fn of_agents(&self) -> (Vec<Cluster>, String) {
        let of_agents = || self.further.iter().filter(|further| further.reach == Reach::Agent);
        let text = kubeconfig(of_agents().map(|further| (&further.cluster, &further.region)));
        (of_agents().map(|further| further.cluster.clone()).collect(), text)
    }

    /// Returns the clusters of which only metrics tell.
    #[cfg(feature = "hub")]
    pub(super) fn of_metrics(&self) -> Vec<Cluster> {
        let of_metrics = self.further.iter().filter(|further| further.reach == Reach::Metrics);
        of_metrics.map(|further| further.cluster.clone()).collect()
    }
}

/// Returns the text of a kubeconfig with a context for each of these clusters, labelled with its region.
fn kubeconfig<'c>(clusters: impl Iterator<Item = (&'c Cluster, &'c String)>) -> String {
    let region = |region: &String| region.to_lowercase().replace(' ', "-");
    let labelled: Vec<(&Cluster, BTreeMap<String, String>)> = clusters
        .map(|(cluster, of)| (cluster, BTreeMap::from([("region".to_owned(), region(of))])))
        .collect();
    let labelled: Vec<_> = labelled.iter().map(|(cluster, labels)| (*cluster, labels)).collect();
    Cluster::labelled_kubeconfig(&labelled)
}
