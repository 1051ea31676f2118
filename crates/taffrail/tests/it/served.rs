//! Simulated clusters and the kubeconfig that leads to them; no controllers run there, so that every status is one that a
//! test wrote.

use std::path::PathBuf;

use taffrail_sim::{Cluster, Fleet};
use tempfile::TempDir;

use super::{Answer, taffrail};

/// Clusters that answer as long as it lives.
pub(super) struct Served {
    pub(super) runtime: tokio::runtime::Runtime,
    _fleet: Fleet,
    pub(super) clusters: Vec<Cluster>,
    pub(super) folder: TempDir,
    pub(super) kubeconfig: String,
    /// Options with which each question ends.
    flags: &'static [&'static str],
}

impl Served {
    /// Starts a cluster of each name, which `fill` fills.
    pub(super) fn start(names: &[&str], fill: impl Fn(&str, &Cluster)) -> Served {
        Served::start_in(false, false, names, fill)
    }

    /// Starts clusters that record who manages fields.
    pub(super) fn start_with_managers(names: &[&str], fill: impl Fn(&str, &Cluster)) -> Served {
        Served::start_in(false, true, names, fill)
    }

    /// Starts clusters that keep objects as they are applied, their metadata too.
    pub(super) fn start_verbatim(names: &[&str], fill: impl Fn(&str, &Cluster)) -> Served {
        Served::start_in(true, false, names, fill)
    }

    fn start_in(
        is_verbatim: bool,
        has_managers: bool,
        names: &[&str],
        fill: impl Fn(&str, &Cluster),
    ) -> Served {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (fleet, clusters) = runtime.block_on(async {
            let fleet = Fleet::builder()
                .controllers(false)
                .verbatim(is_verbatim)
                .managers(has_managers)
                .start()
                .await
                .unwrap();
            let mut clusters = Vec::new();
            for name in names {
                let cluster = fleet.cluster(name).await.unwrap();
                fill(name, &cluster);
                clusters.push(cluster);
            }
            (fleet, clusters)
        });
        let folder = tempfile::tempdir().unwrap();
        let path: PathBuf = folder.path().join("config");
        std::fs::write(&path, Cluster::kubeconfig_of(&clusters)).unwrap();
        let kubeconfig = path.to_str().unwrap().to_owned();
        Served {
            runtime,
            _fleet: fleet,
            clusters,
            folder,
            kubeconfig,
            flags: &["--timeout", "60s", "--request-timeout", "0"],
        }
    }

    /// Ends each question with these options.
    pub(super) fn asked_with(self, flags: &'static [&'static str]) -> Served {
        Served { flags, ..self }
    }

    /// Asks all clusters.
    pub(super) fn ask(&self, arguments: &[&str]) -> Answer {
        taffrail(&self.all(&[arguments, self.flags].concat()), "")
    }

    /// Adds the options that lead to all clusters.
    pub(super) fn all<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        [arguments, &["--all-contexts", "--kubeconfig", &self.kubeconfig]].concat()
    }
}
