//! A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok
//! in place of kubelets. There is no container engine in it: everything is a process of this machine.
//!
//! [`ControlPlane::start`] gives one to a test and ends it with the value. [`ControlPlane::up`] leaves one running for a
//! person, until [`down`].
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

mod certificates;
mod clients;
mod cluster;
mod crash;
mod launch;
mod ports;
mod process;
mod programs;
mod record;
mod state;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use anyhow::{Context, Result, bail};

pub use cluster::AUDIT_LOG;
use launch::Launcher;
pub use programs::Programs;
pub use programs::cache;
pub use record::Held;
pub use state::{Member, ProcessRecord, RunState};

/// What a control plane is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name, a DNS label: one control plane runs under a name at a time.
    pub name: String,
    /// How many clusters, each with an API server of its own.
    pub clusters: usize,
    /// How many of them, the last ones, are an API server alone: without controllers, scheduler and nodes. That is
    /// enough to read from, and costs half the memory and a fraction of the CPU time.
    pub bare: usize,
    /// How many simulated nodes each cluster has.
    pub nodes: usize,
    /// Whether Flux's kinds are installed.
    pub flux_crds: bool,
    /// Where the kubeconfig is written; without it, into the folder of this control plane.
    pub kubeconfig: Option<PathBuf>,
    /// The data that its store begins with: a folder that [`ControlPlane::save_store`] wrote.
    pub store: Option<PathBuf>,
    /// Whether each API server notes all requests, in [`AUDIT_LOG`] in the folder of its [`Member`].
    pub audited: bool,
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
        }
    }
}

impl Options {
    /// Whether they can be met at all: asked before anything is built for them.
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
/// One that was made by [`ControlPlane::start`] ends when the value is dropped, and also when the process that holds it
/// is killed. Others stay.
#[derive(Debug)]
pub struct ControlPlane {
    state: RunState,
    programs: Programs,
    owned: Option<Owned>,
}

/// What must be ended and reaped with the value.
#[derive(Debug)]
struct Owned {
    children: Vec<Child>,
    guard: Child,
}

impl ControlPlane {
    /// Starts a control plane that lives as long as the value.
    ///
    /// Anything left over under the same name is ended first.
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

    /// Makes sure that a control plane of this name and shape runs, and leaves it running.
    ///
    /// The second value says whether it was running already.
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

    /// The control plane that runs under this name, if one does.
    pub fn find(name: &str) -> Result<Option<Self>> {
        let Some(state) = state::load(name)? else { return Ok(None) };
        if !state.is_running() {
            return Ok(None);
        }
        Ok(Some(Self { state, programs: Programs::ensure()?, owned: None }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The kubeconfig with one context for each cluster, as the administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.state.kubeconfig
    }

    /// A kubeconfig with the same contexts, as the user `reader`, whom no role is bound to.
    pub fn reader_kubeconfig(&self) -> &Path {
        &self.state.reader_kubeconfig
    }

    /// The contexts: `kube-1`, `kube-2`, …
    pub fn contexts(&self) -> Vec<&str> {
        self.state.members.iter().map(|member| member.context.as_str()).collect()
    }

    /// The clusters with their addresses.
    pub fn members(&self) -> &[Member] {
        &self.state.members
    }

    /// The address of a cluster's API server, `https://127.0.0.1:PORT`.
    pub fn server(&self, index: usize) -> Option<&str> {
        self.state.members.get(index).map(|member| member.server.as_str())
    }

    /// The path of a program of this build: `kubectl`, `helm`, `kube-apiserver`, …
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.path(name)
    }

    /// Copies the data of its store into a folder that must not be there, for another control plane of the same shape to
    /// begin with ([`Options::store`]). The store is held still meanwhile.
    pub fn save_store(&self, target: &Path) -> Result<()> {
        let store = self.processes().iter().find(|it| it.program == "etcd").context("no etcd runs")?;
        let signal = |signal| process::signal(store.pid, &store.program, &self.state.folder, signal);
        signal(rustix::process::Signal::STOP)?;
        let copied = launch::copy(&self.state.folder.join("etcd"), target);
        signal(rustix::process::Signal::CONT)?;
        copied
    }

    /// What runs.
    pub fn processes(&self) -> &[ProcessRecord] {
        &self.state.processes
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        let Some(mut owned) = self.owned.take() else { return };
        // Nothing can be done about a failure here, and the guard's own clean-up is the second chance: it is let go
        // only once all is gone.
        let ended = state::discard(&self.state.name).is_ok();
        for child in &mut owned.children {
            let _ = child.wait();
        }
        if ended {
            let _ = owned.guard.kill();
        }
        drop(owned.guard.stdin.take());
        let _ = owned.guard.wait();
        // Names of control planes that end with a process are used once.
        state::forget_lock(&self.state.name);
    }
}

/// Ends what runs under this name and removes its folder. Says how many processes were ended; none is no error.
pub fn down(name: &str) -> Result<usize> {
    let _lock = state::lock(name)?;
    // What a start that failed left for a person to read.
    let _ = fs::remove_dir_all(failed_logs(name)?);
    state::discard(name)
}

/// Every control plane that was started and not taken down, running or not.
pub fn list() -> Result<Vec<RunState>> {
    state::all()
}

/// The folder with the parts of a control plane in the checkout that this was built from.
pub fn source_folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/kube"))
}

/// Starts everything, or leaves nothing behind.
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
            // The first error is the one to tell; what could not be cleaned up is cleaned by the next start.
            let _ = state::discard(&options.name);
            match logs {
                Some(logs) => bail!("{error:#}\nThe logs are kept in {}", logs.display()),
                None => Err(error),
            }
        }
    }
}

/// Where the logs of a start that failed are kept.
fn failed_logs(name: &str) -> Result<PathBuf> {
    Ok(state::folder(name)?.with_extension("failed-logs"))
}

/// Moves the logs out of a folder that is about to go: without them a failed start cannot be understood.
fn keep_logs(name: &str) -> Option<PathBuf> {
    let logs = state::folder(name).ok()?.join("logs");
    let kept = failed_logs(name).ok()?;
    let _ = fs::remove_dir_all(&kept);
    fs::rename(logs, &kept).ok()?;
    Some(kept)
}
