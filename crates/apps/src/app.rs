//! One app in one cluster, and its declared objects with their status.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use taffrail_object::ObjectKey;
use taffrail_status::Status;
use taffrail_status::assess::{CauseStep, Flags};
use taffrail_status::rollup::{AsSubject, Counts, Subject};

use crate::command::is_plain;
use crate::freshness::Freshness;
use crate::identity::{AppKey, AppRef};
use crate::problem::Problem;
use crate::scope::ScopeError;
use crate::sync::{ObjectSync, Source, Sync, SyncState};
use crate::teachers::Unheard;
use crate::words::Words;

/// The reason for objects in a cluster that was not queried.
pub const OUT_OF_REACH: &str = "OutOfReach";

/// The reason for objects that could not be read.
pub const UNOBSERVED: &str = "Unobserved";

/// The reason for objects that were read but are malformed.
pub const UNREADABLE: &str = "Unreadable";

/// A declared object and its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The object.
    pub key: ObjectKey,
    /// Its status, with the evidence considered.
    pub status: Status,
    /// The message; where it is not well, in the words of the cause.
    pub message: Words,
    /// The rule that decided; empty if there was no object to judge.
    pub rule: String,
    /// The time since when it is not well, if known.
    pub since: Option<Timestamp>,
    /// The switches that are off on purpose.
    pub flags: Flags,
    /// The cause chain, from the object to the cause; empty where it is well.
    pub chain: Vec<Arc<CauseStep>>,
    /// True if it exists but carries no mark of this app.
    pub unconfirmed: bool,
}

impl Resource {
    /// Iterates over the objects that its status rests on: the object itself, and those of the chain.
    pub(crate) fn grounds(&self) -> impl Iterator<Item = &ObjectKey> {
        std::iter::once(&self.key).chain(self.chain.iter().map(|link| &link.object))
    }

    pub(crate) fn unjudged(key: &ObjectKey, status: Status, message: String) -> Resource {
        let reason = if status == Status::NotFound { "NotFound" } else { UNOBSERVED };
        let link = CauseStep {
            object: key.clone(),
            status,
            reason: reason.to_owned(),
            message: message.clone(),
            since: None,
            rule: String::new(),
            facts: Vec::new(),
        };
        Resource {
            key: key.clone(),
            status,
            message: message.into(),
            rule: String::new(),
            since: None,
            flags: Flags::default(),
            chain: vec![Arc::new(link)],
            unconfirmed: false,
        }
    }

    /// Makes the entry for an object in a cluster that was not queried.
    ///
    /// `said` is the health that its delivery tool reports.
    pub(crate) fn out_of_reach(key: &ObjectKey, place: &str, said: Option<&str>) -> Resource {
        // Argo CD's name of a cluster is most often that of its context.
        let name = place.split_once(" at ").map_or(place, |(name, _)| name);
        // Users copy it, and it comes from outside.
        let is_context = !name.is_empty() && !name.starts_with('-') && is_plain(name.as_bytes());
        let context = if is_context { name } else { "NAME" };
        let said = said.map(|said| format!("; {said}")).unwrap_or_default();
        let message = format!("deploys to {place}, which was not queried (add --context {context}){said}");
        Resource::unjudged(key, Status::Unknown, message).because(OUT_OF_REACH)
    }

    pub(crate) fn because(mut self, reason: &str) -> Resource {
        for link in &mut self.chain {
            Arc::make_mut(link).reason = reason.to_owned();
        }
        self
    }

    /// Replaces the status of the object for a reason of its own, so that the chain ends there.
    pub(crate) fn turned(self, status: Status, message: &str) -> Resource {
        let own = Resource::unjudged(&self.key, status, message.to_owned()).because("");
        Resource { status, message: own.message, chain: own.chain, ..self }
    }
}

impl AsSubject for Resource {
    fn subject(&self) -> Subject<'_> {
        Subject { status: self.status, since: self.since, key: self.key.as_ref() }
    }
}

/// One app in one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// Its name.
    pub app: AppRef,
    /// The key that the copies of the app in other clusters share.
    pub key: AppKey,
    /// True if its objects are in one of the queried clusters. If not, the target is the home, and objects of
    /// the same names there are others.
    pub in_reach: bool,
    /// The object that declares it, in its home, if there is one that has a status.
    pub declaring: Option<ObjectKey>,
    /// The rolled-up status of its objects and its declaring object when they were last observed.
    pub health: Status,
    /// The message in one line; for an app that is well, that of its delivery tool.
    pub message: Words,
    /// The message of its delivery tool, whatever the state of the objects.
    pub delivery_message: String,
    /// The worst object; `None` if the app is well.
    pub worst: Option<ObjectKey>,
    /// Number of declared objects by status.
    pub counts: Counts,
    /// Its revisions.
    pub sync: Sync,
    /// True if it is suspended.
    pub suspended: bool,
    /// The freshness of the observations in the target: `health`, `counts`, `worst` and `message`.
    pub freshness: Freshness,
    /// The freshness of the declarations in the home: `sync`, `suspended` and `source`.
    pub home_freshness: Freshness,
    /// Its source.
    pub source: Option<Source>,
    /// The app that delivers it if its own tool does not: a sync delivers a package of Porch.
    pub delivered_by: Option<AppRef>,
    /// The declared objects.
    pub resources: Vec<Resource>,
    /// The problems on any axis, the worst first; empty if the app is well.
    pub problems: Vec<Problem>,
    /// The objects that the delivery tool reports as not synced, if it reports single objects.
    pub unsynced: Vec<ObjectSync>,
    /// The entry of the worst object: a declared one, the declaring one, or the one that lists what is
    /// declared.
    pub speaker: Option<Resource>,
    /// An object that teaches health rules for the objects but is not trusted in full.
    pub unheard: Option<Unheard>,
    /// The object that lists what is declared but could not be read: the storage of a release, an inventory.
    pub unreadable: Option<ObjectKey>,
}

impl App {
    /// Returns its health now: Unknown if the last observation is too old.
    pub fn effective(&self) -> Status {
        self.freshness.effective(self.health)
    }

    /// Returns its sync state now: `Unknown` if the home is not live.
    pub fn effective_sync(&self) -> SyncState {
        self.home_freshness.effective_sync(self.sync.state)
    }

    /// Counts its objects that exist but carry no mark of it: they stay in the other rows that have them.
    pub fn unconfirmed(&self) -> usize {
        self.resources.iter().filter(|resource| resource.unconfirmed).count()
    }

    /// Returns true if the app has no problems.
    pub fn is_well(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the worst problem; `None` if the app is well.
    pub fn problem(&self) -> Option<&Problem> {
        self.problems.first()
    }

    /// Returns the sync states that the delivery tool reports for objects that are not synced, by object.
    pub fn syncs(&self) -> HashMap<&ObjectKey, &ObjectSync> {
        // If a tool reports several states of an object, the first one counts.
        self.unsynced.iter().rev().map(|own| (&own.key, own)).collect()
    }

    /// Returns the problem that counts for `--exit-status` and in counts: the worst one, unless it is a
    /// notice.
    pub fn pressing(&self) -> Option<&Problem> {
        self.problem().filter(|problem| problem.is_pressing())
    }
}

/// A failure, and the cluster that it concerns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AppError {
    /// Name of the cluster.
    pub cluster: String,
    /// The failure.
    pub error: ScopeError,
}

/// The apps of a fleet, and the failures that may hide or change some.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AppList {
    /// The apps by cluster in the order given, namespace, name and delivery.
    pub apps: Vec<App>,
    /// Failures to read, invalid declarations, and objects claimed twice.
    pub errors: Vec<AppError>,
}
