//! Apps as their declaring objects state them, before the declared objects are looked up.

use jiff::Timestamp;
use taffrail_object::ObjectKey;
use taffrail_status::Status;

use crate::agreement::Claimant;
use crate::checks::DeclaredCheck;
use crate::identity::{AppKey, Delivery};
use crate::object_keys::{ObjectKeys, dedup};
use crate::sync::{Source, Sync};

/// The cluster that holds the objects of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    /// A cluster of the fleet.
    Cluster(usize),
    /// A cluster that was not queried; holds its description for messages, such as "the cluster at
    /// https://…".
    OutOfReach(String),
}

/// The health of an app's objects, as a controller writes it into an object that declares or lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SaidHealth {
    pub(crate) status: Status,
    /// The word of the controller, as a sentence.
    pub(crate) message: String,
    /// The time since when the objects are not well; `None` if they are, or if it is not known.
    pub(crate) since: Option<Timestamp>,
}

/// An app as its declaring object states it, before its objects are looked up.
#[derive(Debug, Clone)]
pub(crate) struct Declaration {
    /// The index of the cluster that holds the declaring object.
    pub(crate) home: usize,
    pub(crate) destination: Destination,
    pub(crate) delivery: Delivery,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) key: AppKey,
    /// The declaring object; `None` if there is none, or if its status does not count towards the app's health.
    pub(crate) declaring: Option<ObjectKey>,
    /// True if the declaring object has no status yet: its controller has never reconciled it. Set only for Argo CD and
    /// Config Sync.
    pub(crate) never_reconciled: bool,
    /// The declared objects, each once.
    pub(crate) objects: ObjectKeys,
    /// The object because of which `objects` are not all that the app declares, with the reason: it cannot be read, or
    /// it names too many. `None` if they are all.
    pub(crate) unreadable: Option<(ObjectKey, String)>,
    pub(crate) sync: Sync,
    pub(crate) suspended: bool,
    /// The message that the delivery tool reports when the sync has no problem.
    pub(crate) message: String,
    /// The delivery tool's message about a sync that is not well, which is shown while the sync state is Failed or
    /// Unknown; `None` if it reports none.
    pub(crate) trouble: Option<String>,
    pub(crate) source: Option<Source>,
    /// The index of the app that delivers this app's objects in place of its own tool, as a sync delivers a Porch
    /// package; `None` if its own tool does.
    pub(crate) delivered_by: Option<usize>,
    /// The checks that the declaring object names, sorted by name.
    pub(crate) checks: Vec<DeclaredCheck>,
    /// The author of the claims on the objects, with the marks that confirm them.
    pub(crate) claimant: Claimant,
}

impl Declaration {
    /// Makes an app of objects that the user named, in the cluster with index `home`.
    pub(crate) fn of_objects(home: usize, objects: &[ObjectKey]) -> Declaration {
        let mut objects = objects.to_vec();
        dedup(&mut objects);
        Declaration::by_nobody(home, Delivery::Taffrail, String::new(), "declared".to_owned(), objects)
    }

    /// Makes an app that no object declares, with these objects; no delivery tool reports its state.
    pub(crate) fn by_nobody(
        home: usize,
        delivery: Delivery,
        namespace: String,
        name: String,
        objects: impl Into<ObjectKeys>,
    ) -> Declaration {
        Declaration {
            home,
            destination: Destination::Cluster(home),
            delivery,
            key: AppKey::of(delivery, &namespace, &name, None),
            namespace,
            name,
            declaring: None,
            never_reconciled: false,
            objects: objects.into(),
            unreadable: None,
            sync: Sync::unknown(),
            suspended: false,
            message: String::new(),
            trouble: None,
            source: None,
            delivered_by: None,
            checks: Vec::new(),
            claimant: Claimant::default(),
        }
    }

    /// Returns true if the two declarations are equal, apart from the index `delivered_by`.
    pub(crate) fn says_as(&self, other: &Declaration) -> bool {
        self.claims_as(other)
            && self.destination == other.destination
            && self.key == other.key
            && self.declaring == other.declaring
            && self.never_reconciled == other.never_reconciled
            && self.unreadable == other.unreadable
            && self.sync == other.sync
            && self.suspended == other.suspended
            && self.message == other.message
            && self.trouble == other.trouble
            && self.source == other.source
            && self.checks == other.checks
    }

    /// Returns true if two declarations are of the same app, see [`Declaration::is_claimant_as`], and claim the same
    /// objects with the same marks.
    pub(crate) fn claims_as(&self, other: &Declaration) -> bool {
        self.is_claimant_as(other)
            && self.claimant.hooks == other.claimant.hooks
            && self.objects == other.objects
    }

    /// Returns true if two declarations are of the same app (home, target cluster, delivery, namespace and name) with
    /// the same marks, and both or neither have an unreadable list of objects. The objects may differ.
    pub(crate) fn is_claimant_as(&self, other: &Declaration) -> bool {
        self.home == other.home
            && self.cluster() == other.cluster()
            && self.delivery == other.delivery
            && self.namespace == other.namespace
            && self.name == other.name
            && self.unreadable.is_some() == other.unreadable.is_some()
            && self.claimant.place == other.claimant.place
            && self.claimant.marks == other.claimant.marks
    }

    /// Returns the name of the app for sentences: `flux-kustomization flux-system/shop`.
    pub(crate) fn title(&self) -> String {
        format!("{} {}/{}", self.delivery, self.namespace, self.name)
    }

    /// Returns kind and name of the declaring object for sentences: `RootSync config-management-system/root-sync`; the
    /// name of the app if there is none.
    pub(crate) fn declaring_name(&self) -> String {
        match &self.declaring {
            Some(key) => format!("{} {}", key.kind, key.path()),
            None => self.title(),
        }
    }

    /// Returns the index of the cluster that holds the declared objects; `None` if it was not queried.
    pub(crate) fn cluster(&self) -> Option<usize> {
        match self.destination {
            Destination::Cluster(cluster) => Some(cluster),
            Destination::OutOfReach(_) => None,
        }
    }
}
