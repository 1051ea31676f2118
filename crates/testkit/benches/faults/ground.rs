//! The clusters of a run, real or simulated, each behind its own proxies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use taffrail_sim::{Cluster, Fleet};
use taffrail_testkit::kube::{ControlPlane, Options};
use taffrail_testkit::objects::{
    definition, kustomizations, widgets, with_spec_and_status, with_status_subresource,
};
use taffrail_testkit::proxy::{Backend, Gate, Proxy};
use tokio::runtime::Handle;

use crate::world::Place;

/// The only way to a cluster for what is tested: a proxy of bytes, and behind it a gate that ends TLS.
pub(crate) struct Door {
    pub(crate) line: Proxy,
    pub(crate) gate: Gate,
    /// The token of the administrator.
    token: String,
}

impl Door {
    async fn open(folder: &Path, backend: Backend, token: String) -> Result<Door> {
        fs::create_dir_all(folder)?;
        let gate = Gate::open(folder, backend).await?;
        Ok(Door { line: Proxy::open(gate.address).await?, gate, token })
    }
}

/// The clusters themselves, with a way in that does not lead through their doors.
enum Servers {
    Real(Box<ControlPlane>),
    Simulated { _fleet: Fleet, clusters: Vec<Cluster> },
}

/// The clusters of a run with their doors, by number.
pub(crate) struct Ground {
    servers: Servers,
    names: Vec<String>,
    pub(crate) doors: Vec<Door>,
    folder: PathBuf,
}

impl Drop for Ground {
    fn drop(&mut self) {
        // Certificates and a kubeconfig are of no use afterwards.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Ground {
    /// Starts so many real API servers on one etcd, without controllers.
    pub(crate) fn real(runtime: &Handle, count: usize) -> Result<Ground> {
        let name = format!("bench-faults-{}", process::id());
        let options = Options { name, clusters: count, bare: count, nodes: 0, ..Options::default() };
        let plane = ControlPlane::start(&options)?;
        let mut backends = Vec::new();
        for member in plane.members() {
            let file = member.folder.join("ca.crt");
            let authority =
                fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            backends.push(Backend { url: member.server.clone(), authority });
        }
        let tokens = tokens(&fs::read_to_string(plane.kubeconfig())?);
        let names = plane.contexts().into_iter().map(str::to_owned).collect();
        let ground = Ground::behind(runtime, Servers::Real(Box::new(plane)), names, backends, tokens)?;
        for cluster in 0..count {
            ground.create(cluster, &[widgets()])?;
            let Servers::Real(plane) = &ground.servers else { continue };
            plane
                .wait(&ground.names[cluster], &["--for=condition=Established", "crd/widgets.example.com"])?;
        }
        Ok(ground)
    }

    /// Starts so many simulated clusters.
    pub(crate) fn simulated(runtime: &Handle, seed: u64, count: usize) -> Result<Ground> {
        let (fleet, clusters) = runtime.block_on(async {
            let fleet = Fleet::builder().seed(seed).start().await?;
            let mut clusters = Vec::new();
            for number in 1..=count {
                clusters.push(fleet.cluster(&format!("sim-{number}")).await?);
            }
            anyhow::Ok((fleet, clusters))
        })?;
        let backend =
            |cluster: &Cluster| Backend { url: cluster.url(), authority: fleet.authority().to_owned() };
        let backends = clusters.iter().map(backend).collect();
        let names = clusters.iter().map(|cluster| cluster.name().to_owned()).collect();
        let tokens = tokens(&Cluster::kubeconfig_of(&clusters));
        let source = definition("source.toolkit.fluxcd.io", "v1", "GitRepository", with_spec_and_status());
        let servers = Servers::Simulated { _fleet: fleet, clusters };
        let ground = Ground::behind(runtime, servers, names, backends, tokens)?;
        for cluster in 0..count {
            let mut source = with_status_subresource(source.clone());
            // Its plural is irregular.
            source["metadata"]["name"] = "gitrepositories.source.toolkit.fluxcd.io".into();
            ground.create(cluster, &[widgets(), with_status_subresource(kustomizations()), source])?;
        }
        Ok(ground)
    }

    fn behind(
        runtime: &Handle,
        servers: Servers,
        names: Vec<String>,
        backends: Vec<Backend>,
        tokens: Vec<String>,
    ) -> Result<Ground> {
        let folder = std::env::temp_dir().join(format!("taffrail-faults-{}", process::id()));
        let mut doors = Vec::new();
        for ((name, backend), token) in names.iter().zip(backends).zip(tokens) {
            doors.push(runtime.block_on(Door::open(&folder.join(name), backend, token))?);
        }
        Ok(Ground { servers, names, doors, folder })
    }

    /// Returns the folder of the run's files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the names of the clusters.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns a kubeconfig that leads to these clusters through their doors.
    pub(crate) fn kubeconfig(&self, clusters: &[usize]) -> String {
        let lines: Vec<(String, String)> = clusters
            .iter()
            .map(|cluster| {
                let Door { line, gate, token } = &self.doors[*cluster];
                let authority = STANDARD.encode(&gate.authority);
                let server =
                    format!("server: https://{}\ncertificate-authority-data: {authority}", line.address);
                (server, format!("token: {token}"))
            })
            .collect();
        let contexts = clusters.iter().zip(&lines);
        let contexts: Vec<(&str, &str, &str)> =
            contexts.map(|(cluster, (server, user))| (&*self.names[*cluster], &**server, &**user)).collect();
        taffrail_testkit::kubeconfig(&contexts)
    }

    /// Creates objects; a real API server leaves out the status of those that have it as a subresource.
    pub(crate) fn create(&self, cluster: usize, objects: &[Value]) -> Result<()> {
        match &self.servers {
            Servers::Real(plane) => {
                let all: Vec<String> = objects.iter().map(Value::to_string).collect();
                plane.apply(&self.names[cluster], &all.join("\n---\n"))
            }
            Servers::Simulated { clusters, .. } => {
                objects.iter().try_for_each(|object| Ok(clusters[cluster].apply(object.clone())?))
            }
        }
    }

    /// Reads an object from the store of a cluster; `None` if it does not exist.
    pub(crate) fn read(&self, cluster: usize, place: &Place) -> Result<Option<Value>> {
        match &self.servers {
            Servers::Real(plane) => plane.stored(&self.names[cluster], &place.path()),
            Servers::Simulated { clusters, .. } => Ok(clusters[cluster].get(
                &place.api_version(),
                place.kind(),
                crate::world::NAMESPACE,
                place.name(),
            )),
        }
    }

    /// Writes an object, read before and changed, to the store of a cluster.
    pub(crate) fn write(&self, cluster: usize, place: &Place, object: &Value) -> Result<()> {
        match &self.servers {
            Servers::Real(plane) => plane.store(&self.names[cluster], &place.path(), object),
            Servers::Simulated { clusters, .. } => Ok(clusters[cluster].apply(object.clone())?),
        }
    }

    /// Removes an object from the store of a cluster, if it is there.
    pub(crate) fn remove(&self, cluster: usize, place: &Place) -> Result<()> {
        match &self.servers {
            Servers::Real(plane) => plane.unstore(&self.names[cluster], &place.path()),
            Servers::Simulated { clusters, .. } => {
                clusters[cluster].delete(
                    &place.api_version(),
                    place.kind(),
                    crate::world::NAMESPACE,
                    place.name(),
                );
                Ok(())
            }
        }
    }

    /// Pauses the process of a real API server, or lets it run on; does nothing to a simulated one.
    pub(crate) fn pause(&self, cluster: usize, is_paused: bool) -> Result<()> {
        let Servers::Real(plane) = &self.servers else { return Ok(()) };
        match is_paused {
            true => plane.hold_still(&self.names[cluster], "kube-apiserver"),
            false => plane.release(&self.names[cluster], "kube-apiserver"),
        }
    }

    /// Returns a simulated cluster; `None` if the clusters are real.
    pub(crate) fn simulation(&self, cluster: usize) -> Option<&Cluster> {
        match &self.servers {
            Servers::Real(_) => None,
            Servers::Simulated { clusters, .. } => clusters.get(cluster),
        }
    }
}

/// Returns the tokens in a kubeconfig, in its order.
fn tokens(kubeconfig: &str) -> Vec<String> {
    let tokens = kubeconfig.lines().filter_map(|line| line.trim().strip_prefix("token: "));
    tokens.map(|token| token.trim_matches('"').to_owned()).collect()
}
