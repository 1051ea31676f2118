//! The objects of a run as they are now: watched, and judged by the rules of all other views.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use taffrail_apps::wait::{Options, Seen, Subject, Target, Until, Wait, WaitState};
use taffrail_apps::{KindCatalog, Objects as _, Scope};
use taffrail_cluster::{Cluster, Discovery};
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, Projection};
use taffrail_observe::{ExtraWatches, FleetWatcher};
use taffrail_plan::sync::{ObservedObject, TaskVerdict};
use taffrail_status::{ClusterState as _, Presence, Status};

use crate::error::EngineError;
use crate::write::HOOK_FINALIZER;

/// Time for which an object that this process wrote may be missing among the watched ones before the API server is asked.
const UNSEEN: Duration = Duration::from_secs(2);

/// Time for which a connection can be used: longer than any run.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// One cluster whose objects are watched.
pub(crate) struct View {
    watcher: FleetWatcher,
    name: String,
    begun: Instant,
    wait: Wait,
    /// The objects that this process wrote, which the watch may not show yet.
    written: HashMap<ObjectKey, WrittenObject>,
    observed: BTreeMap<ObjectKey, ObservedObject>,
}

/// An object as it was when this process wrote it.
struct WrittenObject {
    uid: String,
    generation: i64,
    at: Instant,
    is_seen: bool,
}

impl View {
    /// Waits until the watcher of one cluster is connected and knows its kinds.
    pub(crate) async fn connected(
        mut watcher: FleetWatcher,
        patience: Duration,
    ) -> Result<View, EngineError> {
        let begun = Instant::now();
        loop {
            watcher.ask().await;
            let snapshot = watcher.fleet().snapshots.first();
            let name = snapshot.map(|it| it.name().to_owned()).unwrap_or_default();
            let failure = snapshot.and_then(|it| it.errors().iter().find(|it| it.scope == Scope::Cluster));
            let failure = failure.map(|error| (error.reason.clone(), error.message.clone()));
            if watcher.discovery(0).is_some() && watcher.cluster(&name).is_some() {
                let options =
                    Options { stable_for: Duration::ZERO, fail_fast: false, deadline: Duration::MAX };
                let wait = Wait::new(Until::Current, options, Vec::new());
                return Ok(View {
                    watcher,
                    name,
                    begun,
                    wait,
                    written: HashMap::new(),
                    observed: BTreeMap::new(),
                });
            }
            let is_late = begun.elapsed() >= patience;
            if watcher.is_lost(0) || is_late || failure.is_some() && !watcher.is_connecting(0) {
                let (reason, message) = failure.unwrap_or_else(|| {
                    ("Timeout".to_owned(), format!("no answer within {} s", patience.as_secs()))
                });
                return Err(EngineError::Unreachable { cluster: name, reason, message });
            }
            watcher.soon(Duration::from_millis(200)).await;
        }
    }

    /// Returns the namespace of the context.
    pub(crate) fn namespace(&self) -> &str {
        self.watcher.namespace(0)
    }

    /// Returns the connection. Whoever uses it limits the time of each request.
    pub(crate) fn cluster(&self) -> Result<Cluster, EngineError> {
        let cluster = self.watcher.cluster(&self.name).ok_or_else(|| self.gone())?;
        Ok(cluster.with_timeout(LONGEST))
    }

    /// Returns the kinds that the server serves.
    pub(crate) fn discovery(&self) -> Result<&Discovery, EngineError> {
        self.watcher.discovery(0).ok_or_else(|| self.gone())
    }

    /// Returns the kinds that the server serves, as the watched objects know them.
    pub(crate) fn kinds(&mut self) -> Option<KindCatalog> {
        self.watcher.fleet().snapshots.first().and_then(|it| it.kinds()).cloned()
    }

    fn gone(&self) -> EngineError {
        EngineError::Unreachable {
            cluster: self.name.clone(),
            reason: "Disconnected".to_owned(),
            message: "the connection was closed".to_owned(),
        }
    }

    /// Notes that this process wrote an object: what the watch shows is older until it shows this.
    pub(crate) fn note_written(&mut self, key: &ObjectKey, uid: &str, generation: i64) {
        let written = WrittenObject { uid: uid.to_owned(), generation, at: Instant::now(), is_seen: false };
        self.written.insert(key.clone(), written);
        self.observed.remove(key);
    }

    /// Watches these objects too, judges them, and returns after a change, or after `at_most`.
    pub(crate) async fn look(
        &mut self,
        keys: &BTreeSet<ObjectKey>,
        at_most: Duration,
    ) -> Result<(), EngineError> {
        self.follow(keys);
        self.watcher.ask().await;
        if !at_most.is_zero() {
            self.watcher.soon(at_most).await;
            self.watcher.ask().await;
        }
        self.judge(keys);
        self.ask_for_unseen(keys).await
    }

    /// Begins to watch objects that will be looked at. All at once, so that a list a kind brings them.
    pub(crate) fn follow(&mut self, keys: &BTreeSet<ObjectKey>) {
        let known = self.watcher.fleet().snapshots.first().and_then(|it| it.kinds());
        let lacks_kind =
            known.is_some_and(|catalog| keys.iter().any(|key| catalog.get(&key.group_kind()).is_none()));
        let objects = keys.iter().cloned().collect();
        self.watcher.want(0, ExtraWatches { objects, selections: Vec::new(), kinds: lacks_kind });
    }

    fn judge(&mut self, keys: &BTreeSet<ObjectKey>) {
        let targets: Vec<Target> = keys.iter().cloned().map(Target::Object).collect();
        let (is_settled, is_lost) = (self.watcher.is_settled(0), self.watcher.is_lost(0));
        let fleet = self.watcher.fleet();
        let Some(snapshot) = fleet.snapshots.first() else { return };
        let seen = [Seen { snapshot, targets: &targets, is_settled, is_lost }];
        let at = self.begun.elapsed();
        self.wait.look(&seen, || fleet.apps(&[]), &fleet.rules.active(), fleet.now, at);
        let mut observed = BTreeMap::new();
        for row in self.wait.rows() {
            let Subject::Object(key) = &row.judgement.subject else { continue };
            let judgement = &row.judgement;
            let reason = judgement.message.to_string();
            let found = match (judgement.verdict, judgement.status) {
                (WaitState::Unobserved, _) => ObservedObject::Unknown(reason),
                (_, Some(Status::NotFound)) => ObservedObject::Absent,
                (verdict, status) => {
                    let verdict = match (verdict, status) {
                        (WaitState::Met, _) => TaskVerdict::Ready,
                        (_, Some(Status::Failed)) => TaskVerdict::Failed,
                        _ => TaskVerdict::Waiting,
                    };
                    ObservedObject::Present {
                        uid: judgement.uid.clone().unwrap_or_default(),
                        verdict,
                        reason,
                        since: judgement.since,
                    }
                }
            };
            let object = match snapshot.get(ObjectKey::as_ref(key)) {
                Presence::Present(observed) => Some(observed),
                _ => None,
            };
            let object = object.as_ref().map(|it| &it.object);
            let found = match object {
                Some(object) if is_held(object) => ended_hook(object).unwrap_or(found),
                _ => found,
            };
            observed.insert(
                key.clone(),
                self.written.get_mut(key).map_or(found.clone(), |written| written.admit(found, object)),
            );
        }
        self.observed = observed;
    }

    /// Asks the API server for objects that this process wrote some time ago and that the watch has never shown: an object may
    /// be created and deleted between two events.
    async fn ask_for_unseen(&mut self, keys: &BTreeSet<ObjectKey>) -> Result<(), EngineError> {
        let overdue: Vec<ObjectKey> = keys
            .iter()
            .filter(|key| {
                let written = self.written.get(*key);
                written.is_some_and(|it| !it.is_seen && it.at.elapsed() >= UNSEEN)
            })
            .cloned()
            .collect();
        for key in overdue {
            let Some(kind) = self.discovery()?.kind(&key.group, &key.kind) else { continue };
            let resource = kind.preferred();
            let namespace = Some(&*key.namespace).filter(|_| resource.namespaced);
            let found = self.cluster()?.get(&resource, namespace, &key.name, Projection::Metadata).await;
            if let Ok(None) = found {
                self.written.remove(&key);
                self.observed.insert(key, ObservedObject::Absent);
            } else if let Some(written) = self.written.get_mut(&key) {
                written.at = Instant::now();
            }
        }
        Ok(())
    }

    /// Returns an object as it was at the last look.
    pub(crate) fn observed(&self, key: &ObjectKey) -> ObservedObject {
        self.observed.get(key).cloned().unwrap_or_else(|| ObservedObject::Unknown(String::new()))
    }
}

impl WrittenObject {
    /// Returns what is observed of the object, unless that is older than what this process wrote.
    fn admit(&mut self, found: ObservedObject, object: Option<&Object<'_>>) -> ObservedObject {
        let generation = object.and_then(|it| it.at(&["metadata", "generation"])).and_then(Value::as_i64);
        let is_new = match &found {
            ObservedObject::Present { uid, .. } if *uid == self.uid => {
                generation.is_none_or(|generation| generation >= self.generation)
            }
            // Another object took its place, or it was deleted: only after it was there.
            ObservedObject::Present { .. } | ObservedObject::Absent => self.is_seen,
            ObservedObject::Unknown(_) => return found,
        };
        self.is_seen |= is_new;
        if is_new { found } else { ObservedObject::Unknown(String::new()) }
    }
}

/// Returns true for a hook that is being deleted, and that a finalizer holds until its result is saved.
fn is_held(object: &Object<'_>) -> bool {
    let is_deleted = object.at(&["metadata", "deletionTimestamp"]).is_some_and(|it| !it.is_null());
    let finalizers = object.at(&["metadata", "finalizers"]).and_then(Value::items).into_iter().flatten();
    is_deleted && finalizers.into_iter().any(|it| it.is_str(HOOK_FINALIZER))
}

/// Returns the result of a Job or Pod that ended before it was deleted, as the time to live of a Job does; `None` for others,
/// and for one that did not end.
fn ended_hook(object: &Object<'_>) -> Option<ObservedObject> {
    let uid = object.text(&["metadata", "uid"]).into_owned();
    let of = |verdict: TaskVerdict, reason: String| ObservedObject::Present {
        uid: uid.clone(),
        verdict,
        reason,
        since: None,
    };
    let is_true = |name: &str| {
        let conditions = object.at(&["status", "conditions"]).and_then(Value::items).into_iter().flatten();
        let mut found = conditions.filter(|it| it.get("type").is_some_and(|it| it.is_str(name)));
        found.find(|it| it.get("status").is_some_and(|it| it.is_str("True")))
    };
    match (object.group(), object.kind()) {
        ("batch", "Job") if is_true("Complete").is_some() => Some(of(TaskVerdict::Ready, String::new())),
        ("batch", "Job") => is_true("Failed").map(|condition| {
            let text = condition.get("message").and_then(|it| it.as_str());
            of(TaskVerdict::Failed, text.map(|text| text.into_owned()).unwrap_or_default())
        }),
        ("", "Pod") => match &*object.text(&["status", "phase"]) {
            "Succeeded" => Some(of(TaskVerdict::Ready, String::new())),
            "Failed" => Some(of(TaskVerdict::Failed, object.text(&["status", "message"]).into_owned())),
            _ => None,
        },
        _ => None,
    }
}
