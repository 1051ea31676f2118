//! Objects that no app declares.

use std::collections::{BTreeSet, HashSet};

use taffrail_object::{LEADER, ObjectKey, ObjectKeyRef};
use taffrail_status::Observed;
use taffrail_status::assess::owners;

use crate::app::AppList;
use crate::delivery::flux::{self, sources::Sources};
use crate::delivery::helm_storage;
use crate::delivery::labels::{claim_templates, is_claim_of};
use crate::kinds;
use crate::objects::Objects;

/// The namespaces of Kubernetes itself, whose objects count as orphaned only where they are asked for by name.
const OF_KUBERNETES: [&str; 3] = ["kube-node-lease", "kube-public", "kube-system"];

/// The maximum number of apps that an orphan names of those that list it; the others are left out.
const MAX_NAMED: usize = 3;

/// An object that no app declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// The object.
    pub key: ObjectKey,
    /// Phrases for the apps that its marks name but that do not declare it, and for those that list it although it
    /// does not name them.
    pub remarks: Vec<String>,
}

impl AppList {
    /// Returns the objects of `cluster` in these namespaces that belong to no app of the list, in order of their keys.
    /// If `namespaces` is empty, looks in all but `OF_KUBERNETES`.
    ///
    /// Leaves out what Argo CD does not call orphaned: cluster-scoped objects, objects with owners, and objects that
    /// every namespace has; also kinds that controllers fill, objects for which `is_made` is true, the Flux sources of
    /// apps, and namespaces of which the list leaves out apps.
    pub fn orphans(&self, cluster: &dyn Objects, namespaces: &BTreeSet<String>) -> Vec<Orphan> {
        let is_inside = |namespace: &str| match namespaces.is_empty() {
            true => !namespace.is_empty() && !OF_KUBERNETES.contains(&namespace),
            false => namespaces.contains(namespace),
        };
        let sets = cluster.of_kind("apps", "StatefulSet", None);
        let templates: HashSet<(String, String)> = sets.flat_map(|set| claim_templates(&set)).collect();
        let sources = self.sources(cluster);
        let belongings = self.belongings();
        // An app that is left out may declare any object of its namespace.
        let has_left_out = |namespace: &str| {
            !self.left_out.is_empty()
                && self.left_out.contains(&(cluster.name().to_owned(), namespace.to_owned()))
        };
        let candidates = cluster.all().filter(|observed| {
            is_inside(observed.key.namespace)
                && !has_left_out(observed.key.namespace)
                && !kinds::is_noise(observed.key.group, observed.key.kind)
                && !is_owned(observed)
                && !is_made(observed)
                && !is_claim_of(&templates, observed.key)
                && !is_source_of(&sources, observed.key)
        });
        let mut orphans: Vec<Orphan> = candidates
            .filter_map(|observed| {
                let key = observed.key.to_owned();
                let own = belongings.of(cluster, &key);
                // Whoever may write into one namespace can list any object.
                let is_orphan = own.apps.is_empty() && own.declares.is_none();
                is_orphan.then(|| {
                    let listed = own.listed.iter().take(MAX_NAMED);
                    let listed = listed
                        .map(|app| format!("listed by {}, although it carries no mark of that app", app.app));
                    Orphan { remarks: own.marked.iter().cloned().chain(listed).collect(), key }
                })
            })
            .collect();
        orphans.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        orphans
    }

    /// Returns the sources that the Flux apps declared in `cluster` name.
    fn sources(&self, cluster: &dyn Objects) -> HashSet<ObjectKey> {
        let known = Sources::default();
        let declared = self.apps.iter().filter(|app| app.app.home == cluster.name());
        let declaring = declared.filter_map(|app| cluster.get(app.declaring.as_ref()?.as_ref()).present());
        let of_flux = declaring.filter(|observed| observed.key.group.ends_with(".toolkit.fluxcd.io"));
        of_flux.flat_map(|observed| flux::sources_by(&known, cluster, &observed)).collect()
    }
}

/// Returns true if `key` is a Flux source in `sources`.
fn is_source_of(sources: &HashSet<ObjectKey>, key: ObjectKeyRef<'_>) -> bool {
    key.group == "source.toolkit.fluxcd.io" && sources.contains(&key.to_owned())
}

fn is_owned(observed: &Observed<'_>) -> bool {
    let (controller, others) = owners(observed.object.metadata());
    controller.is_some() || !others.is_empty()
}

/// Returns true for objects that Kubernetes or a delivery tool makes without owners: in every namespace, for a
/// ServiceAccount, for leader election, for a release of Helm, or for a HelmRelease of Flux.
fn is_made(observed: &Observed<'_>) -> bool {
    let ObjectKeyRef { group, kind, namespace, name } = observed.key;
    let has = |part: &str, key: &str| observed.object.at(&["metadata", part, key]).is_some();
    match (group, kind) {
        ("", "ServiceAccount") => name == "default",
        ("", "Service") => (namespace, name) == ("default", "kubernetes"),
        ("", "ConfigMap") => {
            name == "kube-root-ca.crt"
                || has("annotations", LEADER)
                || helm_storage::stored(observed).is_some()
        }
        ("", "Secret") => {
            has("annotations", "kubernetes.io/service-account.name")
                || helm_storage::stored(observed).is_some()
        }
        ("rbac.authorization.k8s.io", _) => has("labels", "kubernetes.io/bootstrapping"),
        ("source.toolkit.fluxcd.io", "HelmChart") => true,
        _ => false,
    }
}
