//! The interface to the objects of a cluster: of a live cluster, a dump or an index.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use taffrail_object::{GroupKind, ObjectKey, ObjectKeyRef, Projection};
use taffrail_status::{ClusterState, Listing, Observed};

use crate::cluster_facts::ClusterFacts;
use crate::freshness::{Freshness, FreshnessState};
use crate::identity::{ClusterId, Delivery};
use crate::kinds::{self, KindCatalog, ServedKind};
use crate::questions::{Question, QuestionLog};
use crate::reading::ReadStats;
use crate::scope::{Scope, ScopeError};

/// Returns true if the part of an object that was read is enough to judge it: true for a whole object, and for metadata
/// if objects of the kind have no status or the object is being deleted.
pub fn suffices(observed: &Observed<'_>) -> bool {
    observed.projection == Projection::Full
        || !kinds::needs_body(observed.key.group, observed.key.kind)
        || !observed.object.text(&["metadata", "deletionTimestamp"]).is_empty()
}

/// One cluster: its objects, and the facts about it as a whole.
pub trait Objects: ClusterState + Send + Sync {
    /// Returns the facts about the cluster as a whole. Callers that need their lookups recorded use the methods below
    /// instead.
    #[doc(hidden)]
    fn facts(&self) -> &ClusterFacts;

    /// Lists all objects that were read, each in the projection (whole or metadata) in which it was read.
    fn all(&self) -> Listing<'_>;

    /// Lists the objects that carry at least one of these labels, with any value, and whose controller is not known to
    /// exist, each as in [`all`](Objects::all), in no particular order. Lists others too where it costs more to leave
    /// them out.
    fn labelled_uncontrolled<'o>(&'o self, _labels: &'o [&'o str]) -> Listing<'o> {
        self.all()
    }

    /// Lists the objects of a kind, in all namespaces, whose names begin with `start`, each as in
    /// [`all`](Objects::all).
    fn of_kind_named<'o>(&'o self, group: &str, kind: &str, start: &'o str) -> Listing<'o> {
        Box::new(self.of_kind(group, kind, None).filter(move |object| object.key.name.starts_with(start)))
    }

    /// Returns true if objects of a kind live in namespaces, false for cluster-scoped kinds; `None` if
    /// unknown.
    fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool>;

    /// Returns a shared copy of the key of an object: the one that the cluster holds, if it holds one, else a new one.
    fn share(&self, key: ObjectKeyRef<'_>) -> Arc<ObjectKey> {
        Arc::new(key.to_owned())
    }

    /// Returns the log of lookups, and the index of this cluster in it; `None` if lookups are not recorded.
    #[doc(hidden)]
    fn question_log(&self) -> Option<(&QuestionLog, usize)> {
        None
    }

    /// Returns the name of the cluster: a context, the name in a dump, a file name, or `HOME/NAMESPACE/BASE` for a
    /// cluster that a Secret in the cluster HOME gives access to.
    fn name(&self) -> &str {
        &self.facts().name
    }

    /// Returns the identity of the cluster; `None` if it is not known.
    fn id(&self) -> Option<&ClusterId> {
        self.facts().id.as_ref()
    }

    /// Returns true if this cluster is proved to be the one called `name`, which has the same identity; false
    /// if it is proved to be another; `None` without proof.
    fn is_same_as(&self, name: &str) -> Option<bool> {
        self.facts().compared.get(name).copied()
    }

    /// Returns the reason why the server's certificate was not verified, so that any host may have answered; `None` if
    /// it was, and for a dump.
    fn unverified(&self) -> Option<&str> {
        self.facts().unverified.as_deref()
    }

    /// Returns the server addresses by which declarations in other clusters name this cluster.
    fn servers(&self) -> &[String] {
        &self.facts().servers
    }

    /// Returns the version of the API server; `None` if it is not known.
    fn version(&self) -> Option<&str> {
        self.facts().version.as_deref()
    }

    /// Returns the labels by which users select the cluster; none for a dump.
    fn labels(&self) -> &BTreeMap<String, String> {
        &self.facts().labels
    }

    /// Returns the freshness of the cluster as a whole.
    fn freshness(&self) -> Freshness {
        asked(self, &Question::Freshness).freshness
    }

    /// Returns the scopes whose objects were observed earlier than the rest, each with the time of that
    /// observation.
    fn stale_scopes(&self) -> &[(Scope, Timestamp)] {
        &asked(self, &Question::Freshness).stale_scopes
    }

    /// Returns true if the objects come from a dump that could be read in full. A dump may omit whole kinds, so an
    /// absent object proves nothing.
    fn is_dump(&self) -> bool {
        self.facts().is_dump
    }

    /// Returns true if the cluster is read lightly: only what declares apps is read, and no objects of these.
    fn is_light(&self) -> bool {
        self.facts().is_light
    }

    /// Returns the kinds that the API server serves; `None` before discovery.
    fn kinds(&self) -> Option<&KindCatalog> {
        self.facts().catalog.as_ref()
    }

    /// Returns true if the API server serves a kind, or may serve it because discovery of its group failed; `None`
    /// without any discovery.
    fn is_served(&self, group: &str, kind: &str) -> Option<bool> {
        Some(self.facts().catalog.as_ref()?.may_serve(&GroupKind::new(group, kind)))
    }

    /// Returns true if the server can list objects of a kind, false if it can only get single ones; `None` if discovery
    /// did not find the kind.
    fn is_listable(&self, group: &str, kind: &str) -> Option<bool> {
        self.facts().served(group, kind).map(ServedKind::is_listable)
    }

    /// Returns the objects that a dump holds more than once with different contents; the last copy of each
    /// counts.
    fn repeated(&self) -> &[ObjectKey] {
        &asked(self, &Question::All).repeated
    }

    /// Returns the errors of reading the cluster.
    fn errors(&self) -> &[ScopeError] {
        &asked(self, &Question::Errors).errors
    }

    /// Returns the scopes that only apps of other clusters need, each with the names of these clusters.
    fn foreign_scopes(&self) -> &HashMap<Scope, BTreeSet<String>> {
        &asked(self, &Question::Errors).foreign_scopes
    }

    /// Returns true if the time of observation is known. For a dump it is not, unless its author recorded it.
    fn is_dated(&self) -> bool {
        self.facts().is_dated
    }

    /// Returns the time by which the clock of the API server is ahead of the reader's, negative if it is behind;
    /// `None` if it is not known.
    fn clock_ahead(&self) -> Option<SignedDuration> {
        self.facts().clock_ahead
    }

    /// Returns the statistics of requests and watches; `None` unless the cluster is live and answered.
    fn reading(&self) -> Option<&ReadStats> {
        self.facts().reading.as_ref()
    }
}

/// Returns the facts about a cluster, and records the lookup `question` in its log.
fn asked<'o>(objects: &'o (impl Objects + ?Sized), question: &Question<'_>) -> &'o ClusterFacts {
    if let Some((log, cluster)) = objects.question_log() {
        log.ask(cluster, question);
    }
    objects.facts()
}

/// Returns the message of the first error of reading this object by itself, not of listing its kind; `None` if there is
/// none: the whole object was not requested or was read.
pub(crate) fn why_unread(objects: &dyn Objects, key: ObjectKeyRef<'_>) -> Option<String> {
    let is_it = |error: &&ScopeError| matches!(&error.scope, Scope::Object(object) if object.as_ref() == key);
    objects.errors().iter().find(is_it).map(|error| error.message.clone())
}

/// Returns the freshness of what an app's row shows from its home cluster: the worst of those of the cluster, of the
/// declaring object, and of the kinds that its delivery tool reads in `namespace`, the app's own.
pub(crate) fn freshness_of_home(
    home: &dyn Objects,
    delivery: Delivery,
    namespace: &str,
    declaring: Option<&ObjectKey>,
) -> Freshness {
    let is_read = |(scope, _): &&(Scope, Timestamp)| {
        matches!(scope, Scope::Kind { kind, namespace: own }
            if delivery.reads(kind) && own.as_deref().is_none_or(|own| own == namespace))
    };
    let stale = home.stale_scopes().iter().filter(is_read);
    let stale = stale.map(|(_, at)| Freshness { state: FreshnessState::Stale, observed_at: Some(*at) });
    stale.fold(freshness_of(home, declaring), Freshness::worst)
}

/// Returns the freshness of the objects `keys`: the worst of that of the cluster and those of the stale scopes that
/// contain one of them.
pub(crate) fn freshness_of<'k>(
    objects: &dyn Objects,
    keys: impl IntoIterator<Item = &'k ObjectKey>,
) -> Freshness {
    let (whole, stale) = (objects.freshness(), objects.stale_scopes());
    if stale.is_empty() {
        return whole;
    }
    let stale_of = |key: &ObjectKey| {
        let holding = stale.iter().filter(|(scope, _)| scope.holds(key));
        holding
            .map(|(_, at)| Freshness { state: FreshnessState::Stale, observed_at: Some(*at) })
            .collect::<Vec<_>>()
    };
    keys.into_iter().flat_map(stale_of).fold(whole, Freshness::worst)
}
