//! Objects that no app declares.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use taffrail_object::{LEADER, ObjectKey, ObjectKeyRef};
use taffrail_status::Observed;
use taffrail_status::assess::owners;

use crate::app::AppList;
use crate::delivery::flux::{self, sources::Sources};
use crate::delivery::helm_storage;
use crate::delivery::labels::{claim_templates, is_claim_of};
use crate::kinds;
use crate::objects::Objects;
use crate::scope::{Scope, ScopeError};
use crate::text::listed;

/// The namespaces of Kubernetes itself, whose objects count as orphaned only where they are asked for by name.
const OF_KUBERNETES: [&str; 3] = ["kube-node-lease", "kube-public", "kube-system"];

/// The maximum number of apps that an orphan names of those that list it; the others are left out. Also of the unread
/// places that an error names; it counts the others.
const MAX_NAMED: usize = 3;

/// The reason of the errors about objects of which it is not known whether an app declares them.
const NOT_KNOWN: &str = "OwnersUnread";

/// An object that no app declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// The object.
    pub key: ObjectKey,
    /// Phrases for the apps that its marks name but that do not declare it, and for up to three of those that list it
    /// although it does not name them.
    pub remarks: Vec<String>,
}

/// The orphans of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Orphans {
    /// The objects that no app declares, in order of their keys.
    pub objects: Vec<Orphan>,
    /// An error for each namespace with objects that belong to no app of the list, but may belong to one that could not
    /// be read; these objects are not listed as orphans.
    pub undecided: Vec<ScopeError>,
}

impl AppList {
    /// Returns the objects of `cluster` in these namespaces that belong to no app of the list, nor to one that may be
    /// missing there, and that declare no app of the list. If `namespaces` is empty, looks in all but `OF_KUBERNETES`.
    ///
    /// Leaves out what Argo CD does not call orphaned: cluster-scoped objects, objects with owners, and objects that
    /// every namespace has; also kinds that the cluster makes or computes (Event, metrics), objects that Kubernetes or
    /// a delivery tool makes without owners, PersistentVolumeClaims of StatefulSets, the Flux sources of apps, and
    /// namespaces of which the list leaves out apps.
    pub fn orphans(&self, cluster: &dyn Objects, namespaces: &BTreeSet<String>) -> Orphans {
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
        let mut objects: Vec<Orphan> = Vec::new();
        let mut undecided: BTreeMap<String, (usize, BTreeSet<String>)> = BTreeMap::new();
        for observed in candidates {
            let key = observed.key.to_owned();
            let own = belongings.of(cluster, &key);
            // Whoever may write into one namespace can list any object.
            if !own.apps.is_empty() || own.declares.is_some() {
                continue;
            }
            if !own.unread.is_empty() {
                let (count, unread) = undecided.entry(key.namespace).or_default();
                *count += 1;
                unread.extend(own.unread);
                continue;
            }
            let listed = own.listed.iter().take(MAX_NAMED);
            let listed = listed.map(|app| {
                format!("the object is listed by {}, although it carries no mark of that app", app.app)
            });
            objects.push(Orphan { remarks: own.marked.iter().cloned().chain(listed).collect(), key });
        }
        objects.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        let undecided =
            undecided.into_iter().map(|(namespace, (count, unread))| undecided_in(namespace, count, &unread));
        Orphans { objects, undecided: undecided.collect() }
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

/// Returns the error that `count` objects of a namespace may belong to apps of `unread`, see [`Ownership::unread`].
///
/// [`Ownership::unread`]: crate::Ownership::unread
fn undecided_in(namespace: String, count: usize, unread: &BTreeSet<String>) -> ScopeError {
    let named = listed(unread, MAX_NAMED);
    let (objects, are) = match count {
        1 => ("object", "is not listed as an orphan"),
        _ => ("objects", "are not listed as orphans"),
    };
    let message = format!(
        "{count} {objects} of namespace {namespace} may belong to apps of {named}, which could not be read, and \
         {are}"
    );
    ScopeError { scope: Scope::Namespace(namespace), reason: NOT_KNOWN.to_owned(), message }
}

/// Returns true if `key` is a Flux source in `sources`.
fn is_source_of(sources: &HashSet<ObjectKey>, key: ObjectKeyRef<'_>) -> bool {
    key.group == "source.toolkit.fluxcd.io" && sources.contains(&key.to_owned())
}

fn is_owned(observed: &Observed<'_>) -> bool {
    let (controller, others) = owners(observed.object.metadata());
    controller.is_some() || !others.is_empty()
}

/// Returns true for objects that Kubernetes or a delivery tool makes without owners: the ServiceAccount `default`, the
/// Service `kubernetes`, the ConfigMap `kube-root-ca.crt`, the bootstrap roles, and any token Secret of a
/// ServiceAccount, ConfigMap for leader election, storage of a Helm release, or HelmChart of Flux.
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
