//! A simulated cluster, each of whose answers can be disturbed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use taffrail_sim::{Cluster, Fault, Fleet, SimError, Trouble};

use crate::Outcome;
use crate::ground::{Change, Counts, NAMESPACE};

pub(crate) struct Simulated {
    cluster: Cluster,
    kubeconfig: PathBuf,
    /// True after a compaction, until the next time that the server's state would be set back: it is not set back that
    /// time, because what was compacted cannot be restored.
    is_compacted: AtomicBool,
    counts: Mutex<Counts>,
    _fleet: Fleet,
}

impl Simulated {
    pub(crate) async fn start(seed: u64) -> Outcome<Simulated> {
        let fleet =
            Fleet::builder().seed(seed).nodes(5).bookmark_every(Duration::from_secs(1)).start().await?;
        let cluster = fleet.cluster("soak").await?;
        let kubeconfig = std::env::temp_dir().join(format!("taffrail-soak-{}", std::process::id()));
        std::fs::write(&kubeconfig, cluster.kubeconfig())?;
        Ok(Simulated {
            cluster,
            kubeconfig,
            is_compacted: AtomicBool::new(false),
            counts: Mutex::default(),
            _fleet: fleet,
        })
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn write(&self, change: Change) -> Outcome<()> {
        match change {
            Change::Apply(object) => self.cluster.apply(object)?,
            Change::Delete { api_version, kind, name } => {
                self.cluster.delete(api_version, kind, NAMESPACE, &name);
            }
        }
        Ok(())
    }

    fn count(&self, what: &str) -> String {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(what.to_owned()).or_default() += 1;
        what.to_owned()
    }

    pub(crate) fn trouble(&self, random: &mut fastrand::Rng) -> String {
        let (what, trouble, times) = match random.u8(0..12) {
            0 => {
                self.cluster.cut_connections();
                return self.count("connections cut");
            }
            1 => {
                self.cluster.compact();
                self.is_compacted.store(true, Ordering::Relaxed);
                return self.count("compacted");
            }
            2 => {
                self.cluster.heal_all();
                return self.count("healed");
            }
            3 => ("unreachable", Trouble::Unreachable, u32::MAX),
            4 => ("answers cut", Trouble::Cut(random.usize(0..5000)), 3),
            5 => ("garbage", Trouble::Garbage, 3),
            6 => ("server errors", Trouble::ServerError("etcdserver: leader changed".to_owned()), 5),
            7 => ("too many requests", Trouble::TooManyRequests(1), 5),
            8 => ("silent watches", Trouble::SilentWatch, 3),
            9 => ("expired", Trouble::Expired, 3),
            10 => ("delayed", Trouble::Latency(Duration::from_millis(random.u64(1..800))), 10),
            _ => ("hanging", Trouble::Hang, 2),
        };
        self.cluster.fault(Fault::new(trouble).times(times));
        self.count(what)
    }

    pub(crate) fn darken(&self) -> String {
        self.cluster.trouble(Trouble::Blackhole);
        self.count("swallowed")
    }

    pub(crate) fn lighten(&self) {
        self.cluster.heal_all();
    }

    pub(crate) fn heal(&self) {
        self.cluster.heal_all();
    }

    pub(crate) fn finish_round(&self, random: &mut fastrand::Rng) -> Outcome<Option<String>> {
        if random.u8(0..4) > 0 || self.is_compacted.swap(false, Ordering::Relaxed) {
            return Ok(None);
        }
        // A backup that is older than what is written until everybody is connected again: nobody can tell others.
        let before = self.cluster.resource_version();
        match self.cluster.restore(random.usize(100..600)) {
            Ok(()) | Err(SimError::TooFarBack { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.count("restored");
        Ok(Some(format!("restored from version {before} to {}", self.cluster.resource_version())))
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}
