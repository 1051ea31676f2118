//! The state of a control plane on disk: a folder in the cache with its description, data and logs.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::{Options, process, programs};

/// The first line of every kubeconfig written here: a file without it belongs to the user and is not overwritten.
pub(super) const KUBECONFIG_MARK: &str =
    "# Written by cargo xtask kube; it goes when the control plane goes.";

/// A control plane as its state file describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunState {
    /// The name of the control plane.
    pub name: String,
    /// The folder with the control plane's data, certificates and logs.
    pub folder: PathBuf,
    /// True once the control plane was ready.
    pub ready: bool,
    /// The number of bare clusters: an API server alone.
    #[serde(default)]
    pub bare: usize,
    /// The number of nodes in each cluster that is not bare.
    pub nodes: usize,
    /// True if Flux's kinds are installed.
    pub flux_crds: bool,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The kubeconfig of the user without roles.
    pub reader_kubeconfig: PathBuf,
    /// The clusters of the control plane.
    pub members: Vec<Member>,
    /// The processes of the control plane.
    pub processes: Vec<ProcessRecord>,
}

/// One cluster of a control plane.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Member {
    /// The context of this cluster in the kubeconfig.
    pub context: String,
    /// The address of the cluster's API server.
    pub server: String,
    /// The folder with the cluster's certificates and tokens.
    pub folder: PathBuf,
}

/// A process of a control plane, as it was started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// The context of the process's cluster; empty for processes that all clusters share.
    pub context: String,
    /// The name of the program that the process runs.
    pub program: String,
    /// The process id.
    pub pid: u32,
    /// The arguments of the program.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The file with the output of the process.
    pub log: PathBuf,
}

impl RunState {
    /// Returns true if the control plane was ready and all of its processes still run.
    pub fn is_running(&self) -> bool {
        self.ready
            && !self.processes.is_empty()
            && self.processes.iter().all(|process| self.is_alive(process))
    }

    /// Returns true if a process of this control plane still runs.
    pub fn is_alive(&self, process: &ProcessRecord) -> bool {
        process::is_ours(process.pid, &process.program, &self.folder)
    }

    /// Returns true if it has the numbers of clusters, bare clusters and nodes of these options, Flux's kinds if they
    /// do, and their kubeconfig if they name one.
    pub(super) fn has_shape(&self, options: &Options) -> bool {
        self.members.len() == options.clusters
            && self.bare == options.bare
            && self.nodes == options.nodes
            && self.flux_crds == options.flux_crds
            && options.kubeconfig.as_ref().is_none_or(|file| *file == self.kubeconfig)
    }

    pub(super) fn save(&self) -> Result<()> {
        let file = self.folder.join("state.json");
        let fresh = self.folder.join("state.json.new");
        let text = serde_json::to_vec_pretty(self).context("cannot encode the state of the control plane")?;
        // Renamed, so that readers never see half of it.
        fs::write(&fresh, text)
            .and_then(|()| fs::rename(&fresh, &file))
            .with_context(|| format!("cannot write {}", file.display()))
    }
}

/// Returns the folder that contains those of all control planes.
pub(super) fn root() -> Result<PathBuf> {
    Ok(programs::cache()?.join("run"))
}

/// Returns the folder of the control plane with this name, which may not exist; fails if the name is not a DNS label.
pub(super) fn folder(name: &str) -> Result<PathBuf> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > 63 || name.starts_with('-') || !name.bytes().all(plain) {
        bail!("{name:?} cannot name a control plane: use lower-case letters, digits and `-`, 63 at most");
    }
    Ok(root()?.join(name))
}

/// Locks a name while a control plane is started or stopped, so that two commands do not interfere. The file stays if
/// the name is used again: removing it would let two processes hold a lock of the same name.
pub(super) fn lock(name: &str) -> Result<File> {
    let folder = folder(name)?;
    let root = root()?;
    fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
    let path = folder.with_extension("lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

/// Removes the lock of a name that will not be used again.
pub(super) fn forget_lock(name: &str) {
    if let Ok(folder) = folder(name) {
        let _ = fs::remove_file(folder.with_extension("lock"));
    }
}

/// Reads the state of the control plane with this name; `None` if there is none.
pub(super) fn load(name: &str) -> Result<Option<RunState>> {
    let file = folder(name)?.join("state.json");
    let text = match fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    serde_json::from_slice(&text).map(Some).with_context(|| {
        format!(
            "{} does not have the form that `cargo xtask kube up` writes; remove its folder to start anew",
            file.display()
        )
    })
}

/// Kills the processes of this name that are still ours, and removes their kubeconfig and folder; returns their number.
pub(super) fn discard(name: &str) -> Result<usize> {
    let folder = folder(name)?;
    let mut ended = 0;
    if let Some(state) = load(name)? {
        // Later processes depend on earlier ones.
        for process in state.processes.iter().rev() {
            ended += usize::from(process::end(process.pid, &process.program, &folder)?);
        }
        if is_marked(&state.kubeconfig) {
            let _ = fs::remove_file(&state.kubeconfig);
        }
    }
    match fs::remove_dir_all(&folder) {
        Ok(()) => Ok(ended),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(ended),
        Err(error) => Err(error).with_context(|| format!("cannot remove {}", folder.display())),
    }
}

/// Returns true if a kubeconfig was written by this module; false for one of the user.
pub(super) fn is_marked(kubeconfig: &std::path::Path) -> bool {
    fs::read_to_string(kubeconfig).is_ok_and(|text| text.starts_with(KUBECONFIG_MARK))
}

/// Lists all control planes that have a folder, by name.
pub(super) fn all() -> Result<Vec<RunState>> {
    let root = root()?;
    let entries = match fs::read_dir(&root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", root.display())),
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| folder(name).is_ok())
        .collect();
    names.sort();
    names.iter().filter_map(|name| load(name).transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::folder;

    #[test]
    fn names_stay_inside_the_cache() {
        for bad in ["", "..", "a/b", "-a", "A", "a b", &"a".repeat(64)] {
            assert!(folder(bad).is_err(), "{bad:?}");
        }
        assert!(folder("try-2").is_ok());
    }
}
