//! The objects of a compact index, in the form in which apps are computed from them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use taffrail_index::{Contents, IndexEvidence, IndexSettings, ObjectRef, Relation};
use taffrail_object::json::{OwnedDocument, Value};
use taffrail_object::kinds::is_namespaced;
use taffrail_object::{AsObjectKey, GroupKind, Object, ObjectError, ObjectKey, ObjectKeyRef, Projection};
use taffrail_status::assess::{Event, defined, evidence_projection};
use taffrail_status::{ClusterState, Listing, Observed, Presence, Rules};

use crate::agreement::annotations_of_apps;
use crate::cluster_facts::ClusterFacts;
use crate::delivery::argo::installs::{COMPONENT, WORKLOADS};
use crate::freshness::Freshness;
use crate::identity::ClusterId;
use crate::kinds::KindCatalog;
use crate::objects::Objects;
use crate::reads::declaring::is_declaring;
use crate::scope::ScopeError;
use crate::snapshot::{HAVE_PODS, has_pods};

/// The objects of one cluster, read from an index; implements [`Objects`].
///
/// It borrows the contents of the index; other facts about the cluster are set here.
#[derive(Debug)]
pub struct IndexedCluster<'s> {
    facts: ClusterFacts,
    /// Whole objects that were read one by one for this computation; they replace those of the index.
    bodies: BTreeMap<ObjectKey, OwnedDocument>,
    contents: &'s Contents,
    evidence: IndexEvidence<'s>,
    /// By group and kind of each CustomResourceDefinition: true if its objects live in namespaces.
    declared_scopes: OnceLock<HashMap<GroupKind, bool>>,
    without_pods: OnceLock<HashSet<String>>,
}

impl<'s> IndexedCluster<'s> {
    /// Makes a live cluster called `name` from `contents`.
    pub fn live(name: impl Into<String>, contents: &'s Contents, freshness: Freshness) -> IndexedCluster<'s> {
        let evidence = contents.evidence();
        let home = evidence.get(ObjectKeyRef::new("", "Namespace", "", "kube-system")).present();
        let uid = home.map(|home| home.object.text(&["metadata", "uid"]).into_owned());
        let mut facts = ClusterFacts::new(name.into(), freshness, false);
        facts.id = uid.filter(|uid| !uid.is_empty()).map(ClusterId);
        IndexedCluster {
            facts,
            bodies: BTreeMap::new(),
            contents,
            evidence,
            declared_scopes: OnceLock::new(),
            without_pods: OnceLock::new(),
        }
    }

    /// Makes a dump called `name` from `contents`; objects that are not in `contents` count as absent.
    pub fn dump(name: impl Into<String>, contents: &'s Contents, freshness: Freshness) -> IndexedCluster<'s> {
        let mut cluster = IndexedCluster::live(name, contents, freshness);
        cluster.facts.is_dump = true;
        cluster
    }

    /// Adds a server address by which declarations in other clusters name this one.
    pub fn add_server(&mut self, server: impl Into<String>) {
        self.facts.servers.push(server.into());
    }

    /// Sets the version of the API server.
    pub fn set_version(&mut self, version: impl Into<String>) {
        self.facts.version = Some(version.into());
    }

    /// Sets the kinds that the API server serves.
    pub fn set_kinds(&mut self, catalog: KindCatalog) {
        self.facts.catalog = Some(catalog);
    }

    /// Adds a failure to the errors of the cluster; the objects stay.
    pub fn report(&mut self, error: ScopeError) {
        self.facts.errors.push(error);
    }

    /// Sets the objects that a dump holds more than once with different contents; the index holds the last
    /// copy of each.
    pub fn set_repeated(&mut self, repeated: Vec<ObjectKey>) {
        self.facts.repeated = repeated;
    }

    /// Adds a whole object that was read for this computation alone, such as a Helm release or a kubeconfig Secret.
    ///
    /// An index keeps no values of Secrets, so the object is dropped together with this cluster.
    ///
    /// # Errors
    ///
    /// When the document is not a Kubernetes object.
    pub fn add_body(&mut self, document: OwnedDocument) -> Result<(), ObjectError> {
        let key = ObjectKey::of(&Object::new(document.root())?);
        self.bodies.insert(key, document);
        Ok(())
    }

    /// Returns the object as it was read one by one, if it was; otherwise `observed`. That is marked as metadata unless
    /// the index keeps its body, or its kind is one of those of which the index keeps all fields that `assess` reads.
    fn as_read<'o>(&'o self, observed: Observed<'o>) -> Observed<'o> {
        let key = observed.key;
        if let Some(body) = self.bodies.get(&key as &dyn AsObjectKey)
            && let Ok(object) = Object::new(body.root())
        {
            return Observed { object, projection: Projection::Full, ..observed };
        }
        if evidence_projection(key.group, key.kind) == Projection::Full {
            return observed;
        }
        let kept = self.contents.find(key.group, key.kind, key.namespace, key.name);
        match kept.is_none_or(|object| object.body().is_none()) {
            true => Observed { projection: Projection::Metadata, ..observed },
            false => observed,
        }
    }

    /// Returns true if the index knows, without building the object, that its controller exists.
    ///
    /// Of an object without a body the index keeps its owners by UID alone. The scope of other than built-in kinds may
    /// change, so objects that such kinds control are not decided here.
    fn is_controlled(&self, object: &ObjectRef<'_>) -> bool {
        let controller = || object.owners().find(|(_, relation)| *relation == Relation::Controller);
        let is_there = |owner: ObjectRef<'_>| {
            let is_namespaced = owner.resource().and_then(|it| is_namespaced(&it.group, &it.kind));
            is_namespaced.is_some_and(|it| owner.namespace() == if it { object.namespace() } else { "" })
        };
        object.body().is_none()
            && controller().and_then(|(uid, _)| self.contents.find_uid(uid)).is_some_and(is_there)
            && (self.bodies.is_empty() || !self.bodies.contains_key(&object.object_name()))
    }

    /// Returns the objects sorted by key, so that messages always name them in the same order: each whole if it was
    /// read one by one, and marked as metadata if the index keeps neither its body nor all fields that `assess` reads.
    fn listing<'l>(&'l self, listing: impl Iterator<Item = Observed<'l>>) -> Listing<'l> {
        let mut all: Vec<_> = listing.map(|observed| self.as_read(observed)).collect();
        all.sort_by_key(|observed| observed.key);
        Box::new(all.into_iter())
    }
}

impl ClusterState for IndexedCluster<'_> {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        match self.evidence.get(key) {
            Presence::Present(observed) => Presence::Present(self.as_read(observed)),
            Presence::Unobserved(_) if self.facts.is_dump => Presence::Absent,
            missing => missing,
        }
    }

    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.listing(self.evidence.owned(uid, namespace))
    }

    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.listing(self.evidence.dependents(uid, namespace))
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        self.listing(self.evidence.of_kind(group, kind, namespace))
    }

    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        self.listing(self.evidence.users(namespace, claim))
    }

    fn knows_users(&self, namespace: &str) -> bool {
        self.is_observed("", "Pod", Some(namespace))
            && !self.without_pods.get_or_init(|| without_pods(self)).contains(namespace)
    }

    fn budgets(&self, namespace: &str, labels: Option<Value<'_>>) -> Listing<'_> {
        self.listing(self.evidence.budgets(namespace, labels))
    }

    fn terminating_on(&self, node: &str) -> Listing<'_> {
        self.listing(self.evidence.terminating_on(node))
    }

    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        self.evidence.definition(group, kind)
    }

    fn has_status_subresource(&self, group: &str, version: &str, kind: &str) -> Option<bool> {
        self.facts.has_status_subresource(group, version, kind)
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        self.listing(self.evidence.in_namespace(namespace))
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        self.evidence.events(about)
    }

    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        self.facts.is_dump || self.evidence.is_observed(group, kind, namespace)
    }

    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        match self.facts.is_dump {
            true => {
                self.of_kind(group, kind, Some(namespace)).next().is_some()
                    || self.definition(group, kind).is_some()
            }
            false => self.evidence.tells_absence(group, kind, namespace),
        }
    }
}

impl Objects for IndexedCluster<'_> {
    fn facts(&self) -> &ClusterFacts {
        &self.facts
    }

    fn all(&self) -> Listing<'_> {
        self.listing(self.contents.all().filter_map(|object| self.evidence.of(object)))
    }

    /// Lists the objects that have one of `labels` and no known controller, without a sort and without building other
    /// objects, because it is called for whole clusters.
    fn labelled_uncontrolled<'o>(&'o self, labels: &'o [&'o str]) -> Listing<'o> {
        let is_meant = |object: &ObjectRef<'_>| {
            labels.iter().any(|label| object.label(label).is_some()) && !self.is_controlled(object)
        };
        Box::new(
            self.contents
                .all()
                .filter(is_meant)
                .filter_map(|object| Some(self.as_read(self.evidence.of(object)?))),
        )
    }

    /// Lists the objects without building those of other names, of which a cluster may have very many.
    fn of_kind_named<'o>(&'o self, group: &str, kind: &str, start: &'o str) -> Listing<'o> {
        let kind = self.contents.find_kind(group, kind);
        let all = kind.map(|kind| self.contents.of_kind(kind, None)).into_iter().flatten();
        self.listing(
            all.filter(|object| object.name().starts_with(start))
                .filter_map(|object| self.evidence.of(object)),
        )
    }

    fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool> {
        let key = GroupKind::new(group, kind);
        let declared = || {
            let definitions = self.evidence.of_kind("apiextensions.k8s.io", "CustomResourceDefinition", None);
            let scopes = definitions.filter_map(|definition| {
                let (group, kind) = defined(&definition.object);
                let scope = definition.object.text(&["spec", "scope"]);
                let is_namespaced = match &*scope {
                    "Namespaced" => true,
                    "Cluster" => false,
                    _ => return None,
                };
                Some((GroupKind::new(group, kind), is_namespaced))
            });
            scopes.collect()
        };
        is_namespaced(group, kind)
            .or_else(|| Some(self.facts.served(group, kind)?.namespaced))
            .or_else(|| self.declared_scopes.get_or_init(declared).get(&key).copied())
            .or_else(|| {
                let kind = self.contents.find_kind(group, kind)?;
                self.contents.of_kind(kind, None).next().map(|object| !object.namespace().is_empty())
            })
    }
}

/// Returns the settings for a compact index whose contents suffice to find apps and judge their objects by `rules`.
pub fn index_settings(rules: Arc<dyn Rules>) -> IndexSettings {
    let annotations = annotations_of_apps().map(str::to_owned).collect();
    IndexSettings {
        rules,
        annotations,
        keep: Arc::new(reads_body),
        managed_fields: true,
        ..IndexSettings::default()
    }
}

/// Returns true if a compact index must keep the whole of this object because apps are found by it: it declares apps or
/// is a source, a CustomResourceDefinition, an application controller of Argo CD, or a ConfigMap with a Helm release or
/// settings of Argo CD.
fn reads_body(object: &Object<'_>) -> bool {
    match (object.group(), object.kind()) {
        ("", "ConfigMap") => {
            let labels = [("owner", "helm"), ("app.kubernetes.io/part-of", "argocd")];
            labels.iter().any(|(label, value)| object.text(&["metadata", "labels", label]) == *value)
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => true,
        // What applies the objects of an Argo CD: its account tells which Argo CD is known.
        kind if WORKLOADS.contains(&kind) => {
            let [label, value] = COMPONENT;
            object.text(&["metadata", "labels", label]) == value
        }
        (group, kind) => is_declaring(group, kind),
    }
}

/// Returns the namespaces in which controllers report Pods but the cluster state has none: a dump that left out
/// Pods.
fn without_pods(objects: &dyn ClusterState) -> HashSet<String> {
    let controllers = HAVE_PODS.into_iter().flat_map(|(kind, _)| objects.of_kind("apps", kind, None));
    let namespaces = controllers
        .filter(|it| has_pods(it.key, &it.object))
        .map(|controller| controller.key.namespace.to_owned());
    let lacks_pods = |namespace: &String| objects.of_kind("", "Pod", Some(namespace)).next().is_none();
    namespaces.collect::<HashSet<_>>().into_iter().filter(lacks_pods).collect()
}
