//! One app in one cluster, and its declared objects with their status.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_object::ObjectKey;
use taffrail_status::Status;
use taffrail_status::assess::{CauseStep, Flags, UNJUDGED};
use taffrail_status::rollup::{AsSubject, Counts, Subject};

use crate::checks::{CheckResult, DeclaredCheck};
use crate::command::is_plain;
use crate::freshness::Freshness;
use crate::identity::{AppKey, AppRef};
use crate::problem::{Axis, Problem, UNCONFIRMED, order_problems};
use crate::scope::ScopeError;
use crate::sync::{ObjectSync, Source, Sync, SyncState};
use crate::teachers::Unheard;
use crate::upstream::Upstreams;
use crate::words::Words;

/// The reason of a status when objects are in a cluster that was not queried.
pub const OUT_OF_REACH: &str = "OutOfReach";

/// The reason of a status when objects could not be read.
pub const UNOBSERVED: &str = "Unobserved";

/// The reason of a status when the object that lists an app's objects was read, but the list is malformed or too long.
pub const UNREADABLE: &str = "Unreadable";

/// A declared object and its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The object.
    pub key: Arc<ObjectKey>,
    /// The status of the object, with the evidence about it considered.
    pub status: Status,
    /// The message in one line; for an object that is not well, the message of its root cause.
    pub message: Words,
    /// The name of the rule that decided; empty if there was no object to judge.
    pub rule: Cow<'static, str>,
    /// The time at which the object stopped being well, if known.
    pub since: Option<Timestamp>,
    /// The switches by which users turned parts of the object off.
    pub flags: Flags,
    /// The cause chain, from the object to the root cause; empty if the object is well.
    pub chain: Vec<Arc<CauseStep>>,
    /// True if the app's claim on the object is unconfirmed: the object exists outside of the author's own namespace
    /// and carries no mark of this app.
    pub unconfirmed: bool,
}

impl Resource {
    /// Iterates over the objects that decide the status: the object itself, and those of its cause chain.
    pub(crate) fn grounds(&self) -> impl Iterator<Item = &ObjectKey> {
        std::iter::once(&*self.key).chain(self.chain.iter().map(|link| &link.object))
    }

    pub(crate) fn unjudged(key: Arc<ObjectKey>, status: Status, message: String) -> Resource {
        let reason = if status == Status::NotFound { "NotFound" } else { UNOBSERVED };
        let link = CauseStep {
            object: (*key).clone(),
            status,
            reason: reason.to_owned(),
            message: message.clone(),
            since: None,
            rule: String::new(),
            facts: Vec::new(),
        };
        Resource {
            key,
            status,
            message: message.into(),
            rule: Cow::Borrowed(""),
            since: None,
            flags: Flags::default(),
            chain: vec![Arc::new(link)],
            unconfirmed: false,
        }
    }

    /// Makes the entry for an object in a cluster that was not queried, with status Unknown.
    ///
    /// `place` describes that cluster; `said` is the health that the delivery tool reports for the app.
    pub(crate) fn out_of_reach(key: Arc<ObjectKey>, place: &str, said: Option<&str>) -> Resource {
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

    /// Replaces status and message of the entry, and its cause chain by a single step: the object itself.
    pub(crate) fn turned(self, status: Status, message: &str) -> Resource {
        let own = Resource::unjudged(self.key.clone(), status, message.to_owned()).because("");
        Resource { status, message: own.message, chain: own.chain, ..self }
    }
}

impl AsSubject for Resource {
    fn subject(&self) -> Subject<'_> {
        Subject { status: self.status, since: self.since, key: ObjectKey::as_ref(&self.key) }
    }
}

/// The objects of an app in a cluster that is read lightly, where none of them was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadObjects {
    /// The entry that stands for all objects: the health that a controller says they have, else Unknown.
    pub health: Resource,
    /// True if a controller says how the objects are; false if nothing does.
    pub is_said: bool,
}

/// One app in one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// The clusters, delivery, namespace and name of the app.
    pub app: AppRef,
    /// The key of the app, which copies of it in other clusters share.
    pub key: AppKey,
    /// True if the target cluster was queried. If not, `app.target` is the home cluster, and its objects of
    /// the same names are other objects.
    pub in_reach: bool,
    /// The declaring object, in the home cluster; `None` if there is none, or none whose status counts.
    pub declaring: Option<ObjectKey>,
    /// The rolled-up status, as last observed, of its objects, its declaring object and, if that could not be read in
    /// full, the list of its objects (which counts as Unknown).
    pub health: Status,
    /// The message in one line: that of [`speaker`](App::speaker), or of the delivery tool while `health` is Current.
    pub message: Words,
    /// The message of the delivery tool, even if the objects have another problem.
    pub delivery_message: String,
    /// The object that decides `health`; `None` while that is Current.
    pub worst: Option<ObjectKey>,
    /// Number of declared objects by status.
    pub counts: Counts,
    /// The sync state and revisions of the app.
    pub sync: Sync,
    /// True if the app is suspended in its tool: by `spec.suspend` of Flux, or because Argo CD skips it or its policy
    /// for automated sync is switched off; a package of Porch, if the app that delivers it is suspended.
    pub suspended: bool,
    /// The freshness of the observations in the target: `health`, `counts`, `worst` and `message`.
    pub freshness: Freshness,
    /// The freshness of the declarations in the home: `sync`, `suspended` and `source`.
    pub home_freshness: Freshness,
    /// The Git repository, OCI artifact or chart that the app comes from, if known.
    pub source: Option<Source>,
    /// The app that delivers this app's objects in place of its own tool, as a sync delivers a package of Porch; `None`
    /// if its own tool does.
    pub delivered_by: Option<AppRef>,
    /// The apps upstream of this one: those that it depends on, the one that delivers its declaring object, and
    /// `delivered_by`.
    pub upstreams: Upstreams,
    /// The declared objects.
    pub resources: Vec<Resource>,
    /// The problems on any axis, notices included, the worst first; empty if there are none.
    pub problems: Vec<Problem>,
    /// The results of the checks that the app names, sorted by name. Only a hub evaluates them: without one, none has data.
    pub checks: Vec<CheckResult>,
    /// The checks that the declaring object names, sorted by name.
    pub declared_checks: Vec<DeclaredCheck>,
    /// The objects that Argo CD reports as not synced; empty for other tools, which report no single objects.
    pub unsynced: Vec<ObjectSync>,
    /// The entry whose status and message the app shows; `None` while `health` is Current. It is that of a declared
    /// object, of the declaring object, or of the object that lists the declared ones.
    pub speaker: Option<Resource>,
    /// The object that contains health rules for the app's objects but is not fully trusted; `None` if all such
    /// objects are.
    pub unheard: Option<Unheard>,
    /// The state of the objects as a whole, if their cluster is read lightly: then `resources` is empty. `None` if
    /// they are read one by one.
    pub unread: Option<UnreadObjects>,
    /// The object because of which the declared objects are not all known: the storage of a Helm release, an inventory
    /// or the declaring object, which could not be read, or whose list is malformed or too long. `None` if they are
    /// known.
    pub unreadable: Option<ObjectKey>,
}

impl App {
    /// Returns the health of the app now: Unknown unless the observation of its objects is live.
    pub fn effective(&self) -> Status {
        self.freshness.effective(self.health)
    }

    /// Returns the sync state of the app now: `Unknown` if the home cluster is not live.
    pub fn effective_sync(&self) -> SyncState {
        self.home_freshness.effective_sync(self.sync.state)
    }

    /// Sets the results of the app's checks, and adds the problems that they are.
    pub fn set_checks(&mut self, results: Vec<CheckResult>, problems: Vec<Problem>) {
        self.checks = results;
        let mut found = std::mem::take(&mut self.problems);
        let unmarked = found.pop_if(|problem| problem.axis == Axis::Health && problem.state == UNCONFIRMED);
        found.extend(problems);
        self.problems = order_problems(found, unmarked);
    }

    /// Counts the objects of the app on which its claim is unconfirmed; see [`Resource::unconfirmed`]. Other apps that
    /// claim them show them too.
    pub fn unconfirmed(&self) -> usize {
        self.resources.iter().filter(|resource| resource.unconfirmed).count()
    }

    /// Returns true if the app has no problems on any axis, not even a notice.
    pub fn is_well(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns true if a part of the app was not judged because of a cost limit, so that the next update may judge it.
    pub(crate) fn is_unjudged(&self) -> bool {
        let is_open = |rule: &str| rule == UNJUDGED || rule == "cluster/budget";
        let resources = self.resources.iter().chain(&self.speaker);
        resources.into_iter().any(|it| is_open(&it.rule) || it.chain.iter().any(|link| is_open(&link.rule)))
    }

    /// Returns the worst problem on any axis; `None` if there is none.
    pub fn problem(&self) -> Option<&Problem> {
        self.problems.first()
    }

    /// Returns the objects that the delivery tool reports as not synced, by their key; of several entries with one key,
    /// the first.
    pub fn syncs(&self) -> HashMap<&ObjectKey, &ObjectSync> {
        // If a tool reports several states of an object, the first one counts.
        self.unsynced.iter().rev().map(|own| (&own.key, own)).collect()
    }

    /// Returns the worst problem if it is more than a notice, as `--exit-status` and counts take it; `None`
    /// otherwise.
    pub fn pressing(&self) -> Option<&Problem> {
        self.problem().filter(|problem| problem.is_pressing())
    }
}

/// A failure, and the cluster that it concerns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppError {
    /// Name of the cluster.
    pub cluster: String,
    /// The failure.
    pub error: ScopeError,
}

/// The apps of a fleet, and the failures that may hide or change some.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AppList {
    /// The apps, sorted by the cluster that shows them in the order given, then namespace, name, delivery and home
    /// cluster.
    pub apps: Vec<App>,
    /// Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded.
    pub errors: Vec<AppError>,
    /// The namespaces with apps that were left out because their cluster has too many, each with the name of its
    /// cluster.
    pub left_out: BTreeSet<(String, String)>,
}
