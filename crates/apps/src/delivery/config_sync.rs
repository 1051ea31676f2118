//! Apps of Config Sync, declared by a `RootSync` or `RepoSync`. The ResourceGroup of the same name and namespace
//! lists their objects.

use jiff::Timestamp;
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef};
use taffrail_status::{Observed, Presence};

use super::declared::{Declared, Declaring};
use super::destination::Target;
use super::notes::Notes;
use super::{Condition, Declaration, Destination, is_blank, resource_group, text, time};
use crate::agreement::{Claimant, Mark};
use crate::identity::{AppKey, Delivery};
use crate::noting::elapsed;
use crate::objects::Objects;
use crate::problem::{self, MAX_UNTRIED_TIME, Problem, ProblemSeverity};
use crate::sync::{Source, Sync, SyncState};

pub(super) const GROUP: &str = "configsync.gke.io";
const KINDS: [&str; 2] = ["RootSync", "RepoSync"];

/// Returns the app that a RootSync or RepoSync declares, with the objects that the ResourceGroup of its name lists; its
/// target is the cluster that declares it.
pub(super) fn declare(declaring: &Declaring<'_, '_>, notes: &mut Notes) -> Declared {
    let Declaring { home, objects, observed, .. } = *declaring;
    Declared { app: reconciler(objects, home, observed, notes), target: Target::Home, release: None }
}

/// Returns true if a RootSync or RepoSync of the same namespace and name was read in the cluster of a ResourceGroup, so
/// that the group is not an app of kpt.
pub(super) fn owns(objects: &dyn Objects, group: ObjectKeyRef<'_>) -> bool {
    KINDS.iter().any(|kind| {
        let key = ObjectKey::new(GROUP, *kind, group.namespace, group.name);
        matches!(objects.get(key.as_ref()), Presence::Present(_))
    })
}

fn reconciler(objects: &dyn Objects, home: usize, observed: &Observed<'_>, notes: &mut Notes) -> Declaration {
    let (key, object) = (observed.key, &observed.object);
    let inventory = ObjectKey::new(resource_group::GROUP, resource_group::KIND, key.namespace, key.name);
    let mut unreadable = None;
    let objects = match objects.get(inventory.as_ref()) {
        Presence::Present(group) => resource_group::objects(&group, home, notes),
        // Nothing was applied yet.
        Presence::Absent => Vec::new(),
        Presence::Unobserved(why) => {
            let message = format!("ResourceGroup {} cannot be read: {why}", inventory.path());
            notes.lacking.insert((home, inventory.clone()));
            unreadable = Some((inventory, message));
            Vec::new()
        }
    };
    let (sync, trouble) = sync(object);
    let syncing = Condition::find(object, "Syncing");
    Declaration {
        home,
        destination: Destination::Cluster(home),
        delivery: Delivery::ConfigSync,
        namespace: key.namespace.to_owned(),
        name: key.name.to_owned(),
        key: AppKey::of(Delivery::ConfigSync, key.namespace, key.name, Some(object)),
        declaring: Some(key.to_owned()),
        never_reconciled: object.at(&["status"]).is_none_or(is_blank),
        objects: objects.into(),
        unreadable,
        sync,
        suspended: false,
        message: syncing.map(|syncing| syncing.text("message")).unwrap_or_default(),
        trouble,
        source: source(object),
        delivered_by: None,
        checks: Vec::new(),
        claimant: Claimant::in_namespace(
            home,
            key.namespace,
            Mark::of_sync(key.kind, key.namespace, key.name),
        ),
    }
}

/// The status of one stage of Config Sync: source, rendering or sync; `None` if the stage was not reported.
struct Stage<'a>(Option<Value<'a>>);

impl Stage<'_> {
    fn commit(&self) -> Option<String> {
        text(self.0?, &["commit"])
    }

    /// Returns the message of the stage's first error, perhaps empty; a message with the number of errors if only that
    /// is stated; `None` without errors.
    fn error(&self) -> Option<String> {
        let errors = self.0?.get("errors").and_then(Value::items).into_iter().flatten();
        let first = errors.into_iter().next().map(|error| text(error, &["errorMessage"]).unwrap_or_default());
        let count = self.0?.at(&["errorSummary", "totalCount"]).and_then(Value::as_i64).unwrap_or_default();
        // A long list may be cut to nothing; the count stays.
        first.or_else(|| (count > 0).then(|| format!("Config Sync reports {count} errors")))
    }
}

/// Returns the message of the first error of the source stage of a RootSync or RepoSync, or one with the number of
/// errors; `None` if there is none.
pub(crate) fn source_error(object: &Object<'_>) -> Option<String> {
    Stage(object.at(&["status", "source"])).error()
}

/// The conditions that mean that a reconciler is stuck.
const STUCK: [&str; 2] = ["Stalled", "ReconcilerFinalizerFailure"];

/// Returns the sync state of a RootSync or RepoSync, and Config Sync's message if the state is Failed.
fn sync(object: &Object<'_>) -> (Sync, Option<String>) {
    let stage = |name| Stage(object.at(&["status", name]));
    let (source, rendering, syncing) = (stage("source"), stage("rendering"), stage("sync"));
    let desired = source.commit();
    let applied = text(object.root(), &["status", "lastSyncedCommit"]);
    let attempted = syncing.commit();

    // Errors of a stage that has not reached the newest commit belong to an older one.
    let is_of_newest = |stage: &&Stage<'_>| stage.commit() == desired;
    let later = [&rendering, &syncing].into_iter().filter(is_of_newest).find_map(|stage| stage.error());
    let error = source.error().or(later).or_else(|| condition_error(object, desired.as_deref()));
    let is_true = |name| Condition::find(object, name).filter(|condition| condition.is("True"));
    let stalled = STUCK.iter().find_map(|name| is_true(name)).map(|stalled| stalled.text("message"));
    // The errors of the source or of rendering leave the last sync as it was.
    let is_clean =
        applied.is_some() && applied == attempted && syncing.error().is_none() && !has_sync_error(object);

    let (state, trouble) = if let Some(message) = stalled.or(error) {
        (SyncState::Failed, Some(message))
    } else if is_true("Syncing").is_some() {
        (SyncState::Syncing, None)
    } else {
        match (&desired, &applied) {
            (None, _) => (SyncState::Unknown, None),
            (Some(desired), Some(applied)) if desired == applied => (SyncState::Synced, None),
            (Some(_), _) => (SyncState::OutOfSync, None),
        }
    };
    let last_success = syncing.0.filter(|_| is_clean).and_then(|stage| time(stage.get("lastUpdate")));
    (Sync { state, desired, attempted, applied, last_success }, trouble)
}

/// Returns the first error in the condition `Syncing` with the condition's message; `None` if there is no error, or it
/// is of another commit than `desired`.
fn condition_error(object: &Object<'_>, desired: Option<&str>) -> Option<String> {
    let syncing = Condition::find(object, "Syncing")?;
    let stage = Stage(Some(syncing.0));
    let is_of_newest = stage.commit().is_none_or(|commit| Some(&*commit) == desired);
    let error = stage.error().filter(|_| is_of_newest)?;
    let message = syncing.text("message");
    Some(if message.is_empty() { error } else { format!("{error}: {message}") })
}

/// Returns true if the condition `Syncing` has errors that may be of the stage sync: it refers to those of that stage,
/// or does not say of which stage they are.
fn has_sync_error(object: &Object<'_>) -> bool {
    let Some(syncing) = Condition::find(object, "Syncing") else { return false };
    let mut stages = syncing.0.get("errorSourceRefs").and_then(Value::items).into_iter().flatten().peekable();
    let is_unnamed = stages.peek().is_none();
    Stage(Some(syncing.0)).error().is_some() && (is_unnamed || stages.any(|stage| stage.is_str("SyncError")))
}

/// Returns the time of the last transition of the condition `Syncing`, else of its last update; `None` without that
/// condition or a time in it.
pub(crate) fn syncing_since(object: &Object<'_>) -> Option<Timestamp> {
    let syncing = Condition::find(object, "Syncing")?;
    syncing.since().or_else(|| time(syncing.0.get("lastUpdateTime")))
}

/// Returns the time since when a RootSync or RepoSync has failed: that of a true condition in [`STUCK`], else of the
/// first stage (source, rendering, sync) with an error, else of the condition `Syncing` if that has an error; each only
/// if it states its time. `None` if nothing failed or no time is known.
pub(crate) fn failed_at(object: &Object<'_>) -> Option<Timestamp> {
    let is_true = |name: &&str| Condition::find(object, name).filter(|condition| condition.is("True"));
    let stalled = STUCK.iter().find_map(is_true);
    let failed = ["source", "rendering", "sync"].into_iter().find_map(|name| {
        let stage = Stage(object.at(&["status", name]));
        stage.error().and_then(|_| time(stage.0?.get("lastUpdate")))
    });
    let by_condition =
        || Stage(Some(Condition::find(object, "Syncing")?.0)).error().and(syncing_since(object));
    stalled.and_then(|stalled| stalled.since()).or(failed).or_else(by_condition)
}

/// Returns the problem of a RootSync or RepoSync that is OutOfSync, if its source was last updated [`MAX_UNTRIED_TIME`]
/// ago or longer; else `None`.
pub(crate) fn problem(
    home: &dyn Objects,
    declaring: &Observed<'_>,
    sync: &Sync,
    now: Timestamp,
) -> Option<Problem> {
    let fetched = time(declaring.object.at(&["status", "source", "lastUpdate"]))?;
    let is_late = sync.state == SyncState::OutOfSync
        && elapsed(home, fetched, MAX_UNTRIED_TIME, now) >= MAX_UNTRIED_TIME;
    let message = "the source has a newer commit, and the reconciler of the app has not tried it";
    let problem = problem::untried(ProblemSeverity::Error, Some(fetched));
    is_late.then(|| problem.says(message).about(declaring.key))
}

fn source(object: &Object<'_>) -> Option<Source> {
    let spec = object.at(&["spec"])?;
    let kind = text(spec, &["sourceType"]).unwrap_or_else(|| "git".to_owned());
    let of = spec.get(&kind)?;
    let field = |names: &[&str]| names.iter().find_map(|name| text(of, &[name]));
    Some(Source {
        namespace: None,
        name: None,
        url: field(&["repo", "image"]),
        path: field(&["dir", "chart"]),
        reference: field(&["revision", "branch", "version"]),
        kind,
    })
}
