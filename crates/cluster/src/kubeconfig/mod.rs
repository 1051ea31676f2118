//! Kubeconfig files, merged as kubectl merges them.
//!
//! Unlike in kubectl, a defect affects only what depends on it: a malformed entry breaks the contexts that use it, and
//! an unreadable file leaves those of the other files. So the files are read as plain data first, and each entry is
//! parsed separately.

mod contained;
mod context;
mod error;
mod file;
mod folder;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::config::{AuthInfo, Cluster};
use serde_json::Value;

pub(crate) use contained::{Entries, NotChosen};
pub use context::Context;
pub use error::KubeconfigError;

use context::{EntryPlace, in_cluster, is_open};
use file::{FileText, Named, named};
use folder::FolderContext;

use crate::exec_plugin::Plugins;
use crate::memory::Memory;

/// Folder of the service account's credentials in a Pod.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Name of the context for the cluster in which this process runs.
const IN_CLUSTER: &str = "in-cluster";

/// The contexts of one or several kubeconfig files, or folders of them.
#[derive(Debug, Default)]
pub struct Kubeconfig {
    contexts: Vec<Named>,
    clusters: BTreeMap<String, Named>,
    users: BTreeMap<String, Named>,
    /// The contexts of the files in folders, which share no clusters or users with other files.
    in_folders: Vec<FolderContext>,
    current: Option<String>,
    /// An unreadable file that precedes the one with the current context, and might have set it; `None` if there is
    /// none.
    current_shadowed: Option<PathBuf>,
    files: Vec<PathBuf>,
    problems: Vec<KubeconfigError>,
    in_cluster: Option<PathBuf>,
}

impl Kubeconfig {
    /// Reads the file `explicit`; or else the files in `env`, the value of `KUBECONFIG`; or else `.kube/config` in
    /// `home`; or else, in a Pod, its service account.
    ///
    /// Of entries with the same name the first file's counts, and so does the first current context. Missing files of a
    /// list are skipped; unreadable ones are in [`Kubeconfig::problems`].
    ///
    /// A path may also be that of a folder. Each of its files stands alone, since tools that write a file for each
    /// cluster use the same names in all: a context can only name a cluster and a user of its own file, the current
    /// contexts do not count, and the only context of a file is named after the file. Those of a file with several have
    /// the names `FILE/CONTEXT`. A context of a folder is left out if one of a file, or an earlier one, has its name.
    ///
    /// # Errors
    ///
    /// Returns an error if no context is found.
    pub fn load(
        explicit: Option<&Path>,
        env: Option<&OsStr>,
        home: Option<&Path>,
    ) -> Result<Kubeconfig, KubeconfigError> {
        Kubeconfig::load_with(explicit, env, home, Path::new(SERVICE_ACCOUNT))
    }

    fn load_with(
        explicit: Option<&Path>,
        env: Option<&OsStr>,
        home: Option<&Path>,
        service_account: &Path,
    ) -> Result<Kubeconfig, KubeconfigError> {
        if let Some(file) = explicit {
            return Kubeconfig::merge(vec![file.to_owned()]);
        }
        let listed: Vec<PathBuf> = env
            .map(|list| std::env::split_paths(list).filter(|file| !file.as_os_str().is_empty()).collect())
            .unwrap_or_default();
        if !listed.is_empty() {
            return Kubeconfig::merge(listed);
        }
        let usual = home.map(|home| home.join(".kube").join("config"));
        if let Some(usual) = usual.as_ref().filter(|file| file.exists()) {
            return Kubeconfig::merge(vec![usual.clone()]);
        }
        if service_account.join("token").exists() {
            return Ok(Kubeconfig { in_cluster: Some(service_account.to_owned()), ..Kubeconfig::default() });
        }
        Err(KubeconfigError::NotConfigured(usual))
    }

    fn merge(files: Vec<PathBuf>) -> Result<Kubeconfig, KubeconfigError> {
        let mut merged = Kubeconfig::default();
        let mut missing = Vec::new();
        let mut spoilt: Option<PathBuf> = None;
        for file in files {
            if file.is_dir() {
                merged.in_folders.append(&mut folder::read(&file, &mut merged.problems));
                merged.files.push(file);
                continue;
            }
            match FileText::read(&file) {
                Ok(Some(text)) => {
                    if merged.current.is_none() && text.current.is_some() {
                        merged.current = text.current.clone();
                        merged.current_shadowed = spoilt.clone();
                    }
                    merged.add(&file, text);
                    merged.files.push(file);
                }
                Ok(None) => missing.push(file),
                Err(problem) => {
                    // An empty file sets nothing; the content of any other broken file is unknown.
                    if !matches!(problem, KubeconfigError::Empty(_)) {
                        spoilt.get_or_insert(file);
                    }
                    merged.problems.push(problem);
                }
            }
        }
        merged.drop_repeated();
        if merged.names().next().is_some() {
            return Ok(merged);
        }
        // Without any context, the first problem is the error.
        if !merged.problems.is_empty() {
            return Err(merged.problems.swap_remove(0));
        }
        Err(if merged.files.is_empty() {
            KubeconfigError::Missing(missing)
        } else {
            KubeconfigError::NoContexts(merged.files)
        })
    }

    fn add(&mut self, file: &Path, text: FileText) {
        let shared: Arc<Path> = Arc::from(file);
        for context in named(&shared, text.contexts, "context", &mut self.problems) {
            if !self.contexts.iter().any(|known| known.name == context.name) {
                self.contexts.push(context);
            }
        }
        for cluster in named(&shared, text.clusters, "cluster", &mut self.problems) {
            self.clusters.entry(cluster.name.clone()).or_insert(cluster);
        }
        for user in named(&shared, text.users, "user", &mut self.problems) {
            self.users.entry(user.name.clone()).or_insert(user);
        }
    }

    /// Drops contexts of folders whose names other contexts have, and adds a problem for each.
    fn drop_repeated(&mut self) {
        let mut names: HashSet<String> = self.contexts.iter().map(|context| context.name.clone()).collect();
        let Kubeconfig { in_folders, problems, .. } = self;
        in_folders.retain(|context| {
            let is_new = names.insert(context.name.clone());
            if let Some(file) = context.file.files.first().filter(|_| !is_new) {
                problems
                    .push(KubeconfigError::Repeated { context: context.name.clone(), file: file.clone() });
            }
            is_new
        });
    }

    /// Returns the defects of files, and of entries without a name; the other files and entries are kept.
    pub fn problems(&self) -> &[KubeconfigError] {
        &self.problems
    }

    /// Takes and returns the defects; [`Kubeconfig::problems`] is empty afterwards.
    pub fn take_problems(&mut self) -> Vec<KubeconfigError> {
        std::mem::take(&mut self.problems)
    }

    /// Returns the names of all contexts, in the order of the files; those of folders come after the others.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.in_cluster
            .iter()
            .map(|_| IN_CLUSTER)
            .chain(self.contexts.iter().map(|context| context.name.as_str()))
            .chain(self.in_folders.iter().map(|context| context.name.as_str()))
    }

    /// Returns the labels that the context called `name` gives to its cluster by its extension `taffrail.dev/labels`,
    /// even if the context cannot be used otherwise; none without the context or the extension, or if that is invalid.
    pub fn labels(&self, name: &str) -> BTreeMap<String, String> {
        if let Some(context) = self.in_folders.iter().find(|context| context.name == name) {
            return context.file.labels(&context.own);
        }
        let entry = self.contexts.iter().find(|context| context.name == name);
        entry.and_then(|entry| EntryPlace { context: name, entry }.labels().ok()).unwrap_or_default()
    }

    /// Returns the current context.
    ///
    /// # Errors
    ///
    /// Returns an error if there is none, if an unreadable file may have set it, or if it cannot be used.
    pub fn current(&self) -> Result<Context, KubeconfigError> {
        if self.in_cluster.is_some() {
            return self.context(IN_CLUSTER);
        }
        if let Some(file) = &self.current_shadowed {
            return Err(KubeconfigError::CurrentContextUnknown(file.clone()));
        }
        match &self.current {
            Some(name) => self.context(name),
            None => Err(KubeconfigError::NoCurrentContext {
                files: self.files.clone(),
                known: self.names().map(str::to_owned).collect(),
            }),
        }
    }

    /// Returns the context called `name`, with its files read and its certificates decoded.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such context, or if it or an entry or file that it refers to cannot be used.
    pub fn context(&self, name: &str) -> Result<Context, KubeconfigError> {
        if let Some(folder) = self.in_cluster.as_deref().filter(|_| name == IN_CLUSTER) {
            return in_cluster(folder);
        }
        if let Some(context) = self.in_folders.iter().find(|context| context.name == name) {
            let own = context.file.context(&context.own).map_err(|error| error.of_context(name))?;
            return Ok(Context { name: name.to_owned(), ..own });
        }
        let Some(entry) = self.contexts.iter().find(|context| context.name == name) else {
            let mut known: Vec<String> = self.names().map(str::to_owned).collect();
            known.sort_by_cached_key(|candidate| distance(candidate, name));
            return Err(KubeconfigError::UnknownContext { name: name.to_owned(), known });
        };
        let here = EntryPlace { context: name, entry };
        if entry.twice {
            return Err(here.fails("the context is defined twice in this file"));
        }
        here.labels()?;
        let field = |key: &str| match entry.body.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(value)) => Ok(Some(value.as_str()).filter(|value| !value.is_empty())),
            // YAML reads a bare `n` as false; an empty value must not stand in for a name.
            Some(_) => Err(here.fails(format!("its {key} is not text: put it in quotes"))),
        };

        let cluster_name = field("cluster")?.ok_or_else(|| here.fails("it names no cluster"))?;
        let cluster_entry = self
            .clusters
            .get(cluster_name)
            .ok_or_else(|| here.fails(format!("its cluster \"{cluster_name}\" is not defined")))?;
        let at_cluster = EntryPlace { context: name, entry: cluster_entry };
        let mut cluster: Cluster = at_cluster.form("cluster")?;

        let mut config = at_cluster.server(&mut cluster)?;
        let mut exec = None;
        // As in kubectl, a context without a user is anonymous.
        if let Some(user_name) = field("user")? {
            let user_entry = self
                .users
                .get(user_name)
                .ok_or_else(|| here.fails(format!("its user \"{user_name}\" is not defined")))?;
            let at_user = EntryPlace { context: name, entry: user_entry };
            let mut user: AuthInfo = at_user.form("user")?;
            at_user.credentials(&mut user)?;
            exec = user.exec.take();
            if let Some(exec) = exec.as_mut().filter(|exec| exec.provide_cluster_info) {
                let cluster = (&cluster).try_into();
                exec.cluster = Some(cluster.map_err(|error| {
                    at_cluster.caused("the cluster's description for the exec plugin is invalid", error)
                })?);
            }
            config.auth_info = user;
        }
        if is_open(&config) {
            config.auth_info = AuthInfo::default();
            exec = None;
        }
        let namespace = field("namespace")?.unwrap_or("default").to_owned();
        config.default_namespace = namespace.clone();
        let (memory, plugins) = (Memory::process(), Plugins::process());
        let config = Arc::new(config);
        Ok(Context {
            name: name.to_owned(),
            namespace,
            config,
            exec,
            memory,
            plugins,
            guard: None,
            is_one_connection: false,
        })
    }
}

/// Returns the edit distance of two names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replaced = before + usize::from(ca != *cb);
            before = row[j + 1];
            row[j + 1] = replaced.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_come_first() {
        assert_eq!(distance("prod-eu", "prod-eu"), 0);
        assert_eq!(distance("prod-eu", "prd-eu"), 1);
        assert!(distance("prod-eu", "prod-ue") < distance("staging", "prod-ue"));
    }

    #[test]
    fn in_cluster_context_uses_the_service_account() {
        let folder = tempfile::tempdir().unwrap();
        let key = rcgen::generate_simple_self_signed(["kubernetes.default.svc".to_owned()]).unwrap();
        std::fs::write(folder.path().join("ca.crt"), key.cert.pem()).unwrap();
        std::fs::write(folder.path().join("token"), "t").unwrap();
        std::fs::write(folder.path().join("namespace"), "flux-system\n").unwrap();
        let nowhere = folder.path().join("home");

        let found = Kubeconfig::load_with(None, None, Some(&nowhere), folder.path()).unwrap();
        assert_eq!(found.names().collect::<Vec<_>>(), ["in-cluster"]);
        let context = found.current().unwrap();
        assert_eq!(context.server(), "https://kubernetes.default.svc");
        assert_eq!(context.namespace(), "flux-system");

        let none = Kubeconfig::load_with(None, None, Some(&nowhere), &nowhere).unwrap_err();
        assert!(none.to_string().contains("home/.kube/config does not exist"), "{none}");
    }
}
