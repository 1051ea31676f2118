//! The clusters that are read: contexts of kubeconfigs.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;

use taffrail_api::question::FleetProblem;
use taffrail_apps::Snapshot;
use taffrail_cluster::{Context, EnvironmentProxies, Kubeconfig, Memory};

use crate::error::{Failure, ObserveError};

/// A choice of clusters, by their contexts in the kubeconfigs.
#[derive(Debug, Clone, Default)]
pub struct ClusterSelection {
    /// Names of contexts or patterns such as `prod-*`, each also as a list with commas; empty for the current
    /// context.
    pub contexts: Vec<String>,
    /// True to select all contexts; [`ClusterSelection::contexts`] is then ignored.
    pub all_contexts: bool,
    /// The kubeconfig to read; `None` for those of `$KUBECONFIG`, or else `~/.kube/config`, or else, in a Pod, its
    /// service account.
    pub kubeconfig: Option<PathBuf>,
}

/// A selected context, usable or not.
#[derive(Debug, Clone)]
pub struct Member {
    /// The name of the context.
    pub name: String,
    /// The context, or the reason why it cannot be used.
    pub context: Result<Box<Context>, Failure>,
    /// The labels by which users select the cluster.
    pub labels: BTreeMap<String, String>,
}

impl Member {
    /// Returns the warning that the server's certificate is not verified, or that the connection is plain HTTP across
    /// the network; else `None`, also if the context is unusable.
    fn warning(&self) -> Option<ObserveError> {
        let warning = self.context.as_ref().ok()?.warning()?.to_string();
        Some(ObserveError::Doubtful { context: self.name.clone(), warning })
    }

    /// Returns a snapshot without objects, which says that the cluster is not connected yet (reason `Connecting`).
    pub(crate) fn unread(&self) -> Snapshot {
        let (reason, message) = ("Connecting".to_owned(), "the cluster is not connected yet".to_owned());
        self.lost(Failure { reason, message })
    }

    /// Returns the snapshot of a cluster that does not answer. It contains the labels, and the address, so that objects
    /// that apps of other clusters deliver there are assigned to it.
    pub(crate) fn lost(&self, failure: Failure) -> Snapshot {
        let mut snapshot = Snapshot::lost(&*self.name, failure.reason, failure.message);
        snapshot.set_labels(self.labels.clone());
        if let Ok(context) = &self.context {
            snapshot.add_server(context.server());
            if let Some(why) = context.unverified() {
                snapshot.set_unverified(why);
            }
        }
        snapshot
    }
}

/// The contexts that a [`ClusterSelection`] names.
#[derive(Debug, Clone, Default)]
pub struct FleetMembers {
    /// The contexts in the order of the selection (those of a pattern, or all, as in the kubeconfigs), each once.
    pub members: Vec<Member>,
    /// Failures in kubeconfigs, and warnings about contexts.
    pub problems: Vec<FleetProblem>,
}

fn kubeconfig(selection: &ClusterSelection) -> Result<Kubeconfig, ObserveError> {
    let home = env::home_dir();
    let variable = env::var_os("KUBECONFIG");
    Kubeconfig::load(selection.kubeconfig.as_deref(), variable.as_deref(), home.as_deref())
        .map_err(ObserveError::NoCluster)
}

/// Returns the names of all contexts in the kubeconfigs that `selection` reads, whatever contexts it selects.
///
/// # Errors
/// Fails when no context is found in any kubeconfig.
pub fn contexts(selection: &ClusterSelection) -> Result<Vec<String>, ObserveError> {
    Ok(kubeconfig(selection)?.names().map(str::to_owned).collect())
}

/// Splits `names` at commas, except the name of a context, and replaces each pattern such as `prod-*` by the names of
/// all matching contexts; fails if there are none. Other names are returned without a check.
fn matching(names: &[String], kubeconfig: &Kubeconfig) -> Result<Vec<String>, ObserveError> {
    let mut found = Vec::new();
    let is_known = |name: &str| kubeconfig.names().any(|known| known == name);
    // A name may have a comma in it; where there is no such context, it stands between two names.
    let split = names.iter().flat_map(|name| match is_known(name) {
        true => vec![name.as_str()],
        false => name.split(',').filter(|part| !part.is_empty()).collect(),
    });
    for name in split {
        if !name.contains('*') {
            found.push(name.to_owned());
            continue;
        }
        let before = found.len();
        found.extend(kubeconfig.names().filter(|context| is_like(name, context)).map(str::to_owned));
        if found.len() == before {
            let known = kubeconfig.names().take(10).map(str::to_owned).collect();
            return Err(ObserveError::NoContext { pattern: name.to_owned(), known });
        }
    }
    Ok(found)
}

/// Returns true if the whole `name` matches `pattern`, in which each `*` stands for any text.
pub(crate) fn is_like(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Returns the proxies that `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` name, or these names in lower case.
pub fn environment_proxies() -> EnvironmentProxies {
    let [http, https, no_proxy] = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"]
        .map(|name| env::var(name).or_else(|_| env::var(name.to_lowercase())).unwrap_or_default());
    EnvironmentProxies { http, https, no_proxy }
}

/// Returns the contexts that a selection names.
///
/// # Errors
/// Fails when no context is found in any kubeconfig, when a pattern matches no context, and when nothing is selected
/// and the current context cannot be used. A selected context that cannot be used is a failure of that [`Member`]
/// alone.
pub fn members(selection: &ClusterSelection) -> Result<FleetMembers, ObserveError> {
    let mut kubeconfig = kubeconfig(selection)?;
    let proxies = environment_proxies();
    let proxied = |context: Context| Box::new(context.with_environment_proxies(&proxies));

    let names: Vec<String> = if selection.all_contexts {
        kubeconfig.names().map(str::to_owned).collect()
    } else {
        matching(&selection.contexts, &kubeconfig)?
    };
    if names.is_empty() {
        let context = kubeconfig.current().map_err(ObserveError::NoCluster)?;
        let (name, labels) = (context.name().to_owned(), kubeconfig.labels(context.name()));
        let member = Member { name, context: Ok(proxied(context)), labels };
        let problems = problems(&mut kubeconfig, member.warning());
        return Ok(FleetMembers { members: vec![member], problems });
    }
    let mut members: Vec<Member> = Vec::new();
    let mut warnings = Vec::new();
    for name in names {
        if members.iter().any(|known| known.name == name) {
            continue;
        }
        let context = kubeconfig.context(&name).map(proxied);
        let context = context.map_err(|error| Failure::new(error.reason(), &error, error.hint().as_deref()));
        let labels = kubeconfig.labels(&name);
        let member = Member { name, context, labels };
        warnings.extend(member.warning());
        members.push(member);
    }
    Memory::process().expect(members.len());
    Ok(FleetMembers { members, problems: problems(&mut kubeconfig, warnings) })
}

/// Returns the failures in the kubeconfigs, and after them the warnings about contexts.
fn problems(
    kubeconfig: &mut Kubeconfig,
    warnings: impl IntoIterator<Item = ObserveError>,
) -> Vec<FleetProblem> {
    let problems = kubeconfig.take_problems().into_iter().map(ObserveError::Kubeconfig);
    problems.chain(warnings).map(|problem| problem.told()).collect()
}
