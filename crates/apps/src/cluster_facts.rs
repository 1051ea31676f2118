//! The facts about a cluster as a whole.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};
use taffrail_object::{GroupKind, ObjectKey};

use crate::errors::Errors;
use crate::freshness::Freshness;
use crate::identity::ClusterId;
use crate::kinds::{KindCatalog, ServedKind};
use crate::reading::ReadStats;
use crate::scope::Scope;

/// The facts about a cluster as a whole, beside its objects.
#[derive(Debug, Clone)]
pub struct ClusterFacts {
    /// The name by which the user gave the cluster: a context or a file name.
    pub(crate) name: String,
    /// The identity of the cluster; `None` if it is not known.
    pub(crate) id: Option<ClusterId>,
    /// The reason why the server was not verified, so that any host may have answered; `None` if it was, and for a
    /// dump.
    pub(crate) unverified: Option<String>,
    /// Names of other contexts with the same identity: true if proved to be this cluster, false if proved to
    /// be another.
    pub(crate) compared: HashMap<String, bool>,
    /// The server addresses by which declarations in other clusters name this cluster.
    pub(crate) servers: Vec<String>,
    /// The version of the API server; `None` if it is not known.
    pub(crate) version: Option<String>,
    /// The labels by which users select the cluster.
    pub(crate) labels: BTreeMap<String, String>,
    /// The freshness of the objects outside of `stale_scopes`.
    pub(crate) freshness: Freshness,
    /// Scopes whose objects were observed earlier than the others, each with the time of that observation.
    pub(crate) stale_scopes: Vec<(Scope, Timestamp)>,
    /// True if the objects come from a dump that could be read in full. A dump may omit whole kinds, so an absent
    /// object proves nothing.
    pub(crate) is_dump: bool,
    /// True if only what declares apps is read, and no objects of these.
    pub(crate) is_light: bool,
    /// True if the time of reading is known. For a dump it is not, unless its author recorded it.
    pub(crate) is_dated: bool,
    /// The time by which the clock of the API server is ahead of the reader's, negative if it is behind; `None` if it
    /// is not known.
    pub(crate) clock_ahead: Option<SignedDuration>,
    /// Statistics of requests and watches; `None` unless the cluster is live and answered.
    pub(crate) reading: Option<ReadStats>,
    /// The kinds that the API server serves; `None` before discovery.
    pub(crate) catalog: Option<KindCatalog>,
    /// The objects that a dump holds more than once with different contents; the last copy of each counts.
    pub(crate) repeated: Vec<ObjectKey>,
    /// The errors of reading the cluster.
    pub(crate) errors: Errors,
    /// The scopes that only apps of other clusters need, each with the names of these clusters.
    pub(crate) foreign_scopes: HashMap<Scope, BTreeSet<String>>,
}

impl ClusterFacts {
    /// Makes the facts about a cluster or dump of which nothing is known but the name and the freshness.
    pub(crate) fn new(name: String, freshness: Freshness, is_dump: bool) -> ClusterFacts {
        ClusterFacts {
            name,
            id: None,
            unverified: None,
            compared: HashMap::new(),
            servers: Vec::new(),
            version: None,
            labels: BTreeMap::new(),
            freshness,
            stale_scopes: Vec::new(),
            is_dump,
            is_light: false,
            is_dated: true,
            clock_ahead: None,
            reading: None,
            catalog: None,
            repeated: Vec::new(),
            errors: Errors::default(),
            foreign_scopes: HashMap::new(),
        }
    }

    /// Returns the kind as discovery found it; `None` if it was not found.
    pub(crate) fn served(&self, group: &str, kind: &str) -> Option<&ServedKind> {
        self.catalog.as_ref()?.get(&GroupKind::new(group, kind))
    }

    /// Returns true if `kind` has a status subresource in `version`; `None` if discovery did not find this version of
    /// the kind.
    pub(crate) fn has_status_subresource(&self, group: &str, version: &str, kind: &str) -> Option<bool> {
        let served = self.served(group, kind)?;
        (served.version == version).then_some(served.has_status_subresource)
    }
}
