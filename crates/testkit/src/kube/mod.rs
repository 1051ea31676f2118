//! A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok
//! in place of kubelets. There is no container engine in it: everything is a process of this machine.
//!
//! [`ControlPlane::start`] starts one for a test and stops it when the value is dropped. [`ControlPlane::up`] leaves
//! one running for a person, until [`down`].
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use taffrail_testkit::kube::{ControlPlane, Options};
//!
//! let plane = ControlPlane::start(&Options { name: "docs".into(), ..Options::default() })?;
//! plane.apply("kube-1", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")?;
//! plane.kubectl("kube-1", &["wait", "--for=create", "serviceaccount/default", "-n", "shop", "--timeout=30s"])?;
//! # Ok(())
//! # }
//! ```

pub(crate) mod certificates;
mod clients;
mod cluster;
mod crash;
mod launch;
mod ports;
mod process;
mod programs;
mod record;
mod state;
mod store;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use anyhow::{Context, Result, bail};

pub use cluster::AUDIT_LOG;
use launch::Launcher;
pub use programs::cache;
pub use programs::{Programs, kubernetes_version};
pub use record::{Held, version};
pub use state::{Member, ProcessRecord, RunState};

/// The options of a control plane.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name, a DNS label: only one control plane of a name runs at a time.
    pub name: String,
    /// The number of clusters, each with an API server of its own.
    pub clusters: usize,
    /// The number of bare clusters, the last ones: an API server without controllers, scheduler and nodes. That is
    /// enough to read from, and costs half the memory and a fraction of the CPU time.
    pub bare: usize,
    /// The number of simulated nodes in each cluster that is not bare.
    pub nodes: usize,
    /// True if Flux's kinds are installed.
    pub flux_crds: bool,
    /// The path of the kubeconfig to write; `None` for `kubeconfig` in the folder of this control plane.
    pub kubeconfig: Option<PathBuf>,
    /// The initial data of the store, a folder that [`ControlPlane::save_store`] wrote; `None` for an empty store.
    pub store: Option<PathBuf>,
    /// True if each API server logs all requests, to [`AUDIT_LOG`] in the folder of its [`Member`].
    pub audited: bool,
    /// True if the store is run as in production: it waits for the disk at each commit, and may hold 8 GiB in place of
    /// 2, the most that etcd's documentation suggests.
    pub durable: bool,
    /// Further arguments of each API server.
    pub flags: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            clusters: 1,
            bare: 0,
            nodes: 3,
            flux_crds: true,
            kubeconfig: None,
            store: None,
            audited: false,
            durable: false,
            flags: Vec::new(),
        }
    }
}

impl Options {
    /// Fails if the name is not a DNS label, there is no cluster, or the kubeconfig would overwrite a file that this
    /// module did not write.
    fn check(&self) -> Result<()> {
        state::folder(&self.name)?;
        if self.clusters == 0 {
            bail!("a control plane has at least one cluster, and 0 were asked for");
        }
        match &self.kubeconfig {
            Some(file) if file.exists() && !state::is_marked(file) => bail!(
                "{} exists and was not written by `cargo xtask kube`: it would be overwritten. Name another file",
                file.display()
            ),
            _ => Ok(()),
        }
    }
}

/// A control plane that is ready.
///
/// One from [`ControlPlane::start`] stops when the value is dropped, and also when the process that holds it is killed.
/// Others keep running.
#[derive(Debug)]
pub struct ControlPlane {
    state: RunState,
    programs: Programs,
    owned: Option<Owned>,
}

/// The processes that must be stopped and reaped with the value.
#[derive(Debug)]
struct Owned {
    children: Vec<Child>,
    guard: Child,
}

impl ControlPlane {
    /// Starts a control plane that lives as long as the value.
    ///
    /// A former one of the same name is stopped first.
    pub fn start(options: &Options) -> Result<Self> {
        options.check()?;
        let programs = Programs::ensure()?;
        let _lock = state::lock(&options.name)?;
        state::discard(&options.name)?;
        let guard = process::Guard::watch(&state::folder(&options.name)?)?;
        let (state, children, guard) = launch(&programs, options, Some(guard))?;
        let guard = guard.context("the guard of the control plane was lost")?;
        Ok(Self { state, programs, owned: Some(Owned { children, guard }) })
    }

    /// Makes sure that a control plane of this name and shape runs, and leaves it running; fails if one of another
    /// shape runs under the name.
    ///
    /// The second value is true if it was running already.
    pub fn up(options: &Options) -> Result<(Self, bool)> {
        options.check()?;
        let programs = Programs::ensure()?;
        let _lock = state::lock(&options.name)?;
        if let Some(state) = state::load(&options.name)? {
            if state.is_running() {
                if !state.has_shape(options) {
                    bail!(
                        "a control plane named {0} runs already, with {1} clusters of {2} nodes{3}: end it with \
                         `cargo xtask kube down --name {0}`, or choose another --name",
                        state.name,
                        state.members.len(),
                        state.nodes,
                        if state.flux_crds { "" } else { " and without Flux's kinds" },
                    );
                }
                return Ok((Self { state, programs, owned: None }, true));
            }
            state::discard(&options.name)?;
        }
        let (state, _children, _guard) = launch(&programs, options, None)?;
        Ok((Self { state, programs, owned: None }, false))
    }

    /// Returns the control plane that runs under this name; `None` if there is none, or if one of its processes has
    /// ended.
    pub fn find(name: &str) -> Result<Option<Self>> {
        let Some(state) = state::load(name)? else { return Ok(None) };
        if !state.is_running() {
            return Ok(None);
        }
        Ok(Some(Self { state, programs: Programs::ensure()?, owned: None }))
    }

    /// Returns the name of the control plane.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Returns the path of the administrator's kubeconfig, with one context for each cluster.
    pub fn kubeconfig(&self) -> &Path {
        &self.state.kubeconfig
    }

    /// Returns the path of a kubeconfig with the same contexts for the user `reader`, who has no role.
    pub fn reader_kubeconfig(&self) -> &Path {
        &self.state.reader_kubeconfig
    }

    /// Lists the contexts: `kube-1`, `kube-2`, …
    pub fn contexts(&self) -> Vec<&str> {
        self.state.members.iter().map(|member| member.context.as_str()).collect()
    }

    /// Lists the clusters with their addresses.
    pub fn members(&self) -> &[Member] {
        &self.state.members
    }

    /// Returns the URL `https://127.0.0.1:PORT` of the API server of the cluster with this index, from 0; `None` if
    /// there is none.
    pub fn server(&self, index: usize) -> Option<&str> {
        self.state.members.get(index).map(|member| member.server.as_str())
    }

    /// Returns the path of a program of this build: `kubectl`, `helm`, `kube-apiserver`, …
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.path(name)
    }

    /// Copies the data of the store into a folder that must not exist, as the initial data of another control plane of
    /// the same shape ([`Options::store`]). The store is paused meanwhile.
    pub fn save_store(&self, target: &Path) -> Result<()> {
        let store = self
            .processes()
            .iter()
            .find(|it| it.program == "etcd")
            .context("cannot save the store: no etcd runs")?;
        let signal = |signal| process::signal(store.pid, &store.program, &self.state.folder, signal);
        signal(rustix::process::Signal::STOP)?;
        let copied = launch::copy(&self.state.folder.join("etcd"), target);
        signal(rustix::process::Signal::CONT)?;
        copied
    }

    /// Lists the processes of the control plane, as they were last started; some may have ended since.
    pub fn processes(&self) -> &[ProcessRecord] {
        &self.state.processes
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        let Some(mut owned) = self.owned.take() else { return };
        // A failure cannot be handled here. The guard's own clean-up is the second chance, so it is stopped only after
        // everything else is gone.
        let ended = state::discard(&self.state.name).is_ok();
        for child in &mut owned.children {
            let _ = child.wait();
        }
        if ended {
            let _ = owned.guard.kill();
        }
        drop(owned.guard.stdin.take());
        let _ = owned.guard.wait();
        // A control plane that stops with its process has a unique name.
        state::forget_lock(&self.state.name);
    }
}

/// Stops the control plane of this name, and removes its folder and the kept logs of a failed start; returns the number
/// of stopped processes, which may be 0.
pub fn down(name: &str) -> Result<usize> {
    let _lock = state::lock(name)?;
    // The logs of a failed start, kept for a person to read.
    let _ = fs::remove_dir_all(failed_logs(name)?);
    state::discard(name)
}

/// Lists every control plane that was started and not taken down, running or not, by name.
pub fn list() -> Result<Vec<RunState>> {
    state::all()
}

/// Returns the folder with the sources of control planes (stages of Pods, examples, Go modules), in the checkout that
/// this was built from.
pub fn source_folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/kube"))
}

/// Starts all processes of a control plane and waits until it is ready; after an error it stops them, and keeps only
/// the logs.
fn launch(
    programs: &Programs,
    options: &Options,
    guard: Option<process::Guard>,
) -> Result<(RunState, Vec<Child>, Option<Child>)> {
    let launcher = Launcher::new(programs, options, guard)?;
    match launcher.run() {
        Ok(()) => launcher.finish(),
        Err(error) => {
            let logs = keep_logs(&options.name);
            // The first error is reported; the next start cleans up the rest.
            let _ = state::discard(&options.name);
            match logs {
                Some(logs) => bail!("{error:#}\nThe logs are kept in {}", logs.display()),
                None => Err(error),
            }
        }
    }
}

/// Returns the path at which the logs of a failed start are kept.
fn failed_logs(name: &str) -> Result<PathBuf> {
    Ok(state::folder(name)?.with_extension("failed-logs"))
}

/// Moves the logs out of a folder that will be removed, as they are needed to understand a failed start; returns their
/// new path, `None` if there are none.
fn keep_logs(name: &str) -> Option<PathBuf> {
    let logs = state::folder(name).ok()?.join("logs");
    let kept = failed_logs(name).ok()?;
    let _ = fs::remove_dir_all(&kept);
    fs::rename(logs, &kept).ok()?;
    Some(kept)
}
