//! A small fleet for tests: clusters whose sources report what a test says.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use taffrail_api::checks::EvaluatedCheck;
use taffrail_api::report::{
    AppId, ClusterReport, Content, DeclaredHalf, Half, HalfBody, HalfId, HalfSide, ObservedHalf, Report,
    Speaker, StreamPosition,
};
use taffrail_api::{AppName, ErrorRow};
use taffrail_apps::{
    Axis, CheckAnswer, CheckResult, ClusterId, DeclaredCheck, Delivery, Problem, ProblemSeverity, SyncState,
};
use taffrail_object::ObjectKey;
use taffrail_status::Status;

use super::FleetIndex;
use crate::agents::AGENT;
use crate::clock::{HubClock, HubTime};
use crate::fleet::Tells;

/// The wall-clock time at the start of a sample hub.
pub(crate) const START: i64 = 1_800_000_000;

/// A hub whose clock a test moves, and the number of the last report of each stream.
pub(crate) struct SampleFleet {
    pub(crate) index: Arc<FleetIndex>,
    time: Arc<AtomicU64>,
    sent: Mutex<BTreeMap<(String, String), StreamPosition>>,
}

pub(crate) fn id(name: &str) -> ClusterId {
    ClusterId(name.to_owned())
}

/// Returns the identity of the Kustomization `name`, which is `NAMESPACE/NAME`, or a name in the namespace `shop`,
/// declared in `home`.
pub(crate) fn app(home: &str, name: &str) -> AppId {
    let (namespace, name) = name.split_once('/').unwrap_or(("shop", name));
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    AppId { home: id(home), app: AppName { delivery: Delivery::FluxKustomization, namespace, name } }
}

pub(crate) fn problem(axis: Axis, severity: ProblemSeverity, message: &str) -> Problem {
    Problem {
        axis,
        state: "Failed".to_owned(),
        severity,
        since: None,
        message: message.into(),
        object: None,
        upstream: None,
    }
}

/// Returns the declared half of a synced app with objects in `target`, as `edit` changed it.
pub(crate) fn declared(app: &AppId, target: &str, edit: impl FnOnce(&mut DeclaredHalf)) -> Half {
    let key = format!("{}/{}", app.app.namespace, app.app.name);
    let mut body = DeclaredHalf::new(key, id(target), SyncState::Synced);
    body.sync.applied = Some("main@sha1:5f2c".to_owned());
    body.message = "Applied revision: main@sha1:5f2c".into();
    edit(&mut body);
    Half { app: app.clone(), fingerprint: fingerprint(&body), body: HalfBody::Declared(Box::new(body)) }
}

/// Returns the observed half of an app with one Deployment of its name in this status.
pub(crate) fn observed(app: &AppId, health: Status, message: &str) -> Half {
    let severity = match health {
        Status::InProgress | Status::Terminating => ProblemSeverity::Waiting,
        _ => ProblemSeverity::Error,
    };
    let object = ObjectKey::new("apps", "Deployment", &*app.app.namespace, &*app.app.name);
    let problem = Problem {
        state: health.as_str().to_owned(),
        object: Some(object),
        since: Some(Timestamp::from_second(START - 60).unwrap()),
        ..problem(Axis::Health, severity, message)
    };
    let worst = (health != Status::Current).then(|| {
        Box::new(Speaker {
            status: health,
            rule: "builtin/apps/Deployment".to_owned(),
            unconfirmed: false,
            problem,
        })
    });
    let body = ObservedHalf { worst, ..ObservedHalf::new(health, [health].into_iter().collect()) };
    Half { app: app.clone(), fingerprint: fingerprint(&body), body: HalfBody::Observed(Box::new(body)) }
}

/// Returns a check of this name about a service.
pub(crate) fn check(name: &str, service: &str) -> DeclaredCheck {
    let parameters = BTreeMap::from([("service".to_owned(), service.to_owned())]);
    DeclaredCheck { name: name.to_owned(), parameters, fault: None }
}

fn fingerprint(body: &impl std::hash::Hash) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    hasher.finish()
}

impl SampleFleet {
    pub(crate) fn new() -> SampleFleet {
        let time = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&time);
        let clock = HubClock::new(move || {
            let at = Duration::from_millis(clock.load(Ordering::SeqCst));
            let start = Timestamp::from_second(START).unwrap();
            HubTime { at, now: start + SignedDuration::try_from(at).unwrap() }
        });
        SampleFleet { index: Arc::new(FleetIndex::new(clock)), time, sent: Mutex::default() }
    }

    /// Makes the fleet that a store holds; the clock goes on from that of an `earlier` one, or from 1,000 s.
    pub(crate) async fn restored(
        earlier: Option<&SampleFleet>,
        store: &impl crate::store::Store,
    ) -> SampleFleet {
        // Some time before the first start, of which the store may know.
        let at = earlier.map_or(1_000, |earlier| earlier.time.load(Ordering::SeqCst) / 1_000);
        SampleFleet::restored_at(at, store).await
    }

    /// Makes the fleet that a store holds, at so many seconds of the clock.
    pub(crate) async fn restored_at(seconds: u64, store: &impl crate::store::Store) -> SampleFleet {
        let fleet = SampleFleet::new();
        fleet.time.store(seconds * 1_000, Ordering::SeqCst);
        let index = FleetIndex::restore(fleet.index.clock().clone(), store, |_| true).await.unwrap();
        SampleFleet { index: Arc::new(index), ..fleet }
    }

    /// Returns the present time.
    pub(crate) fn now(&self) -> Timestamp {
        self.index.clock().time().now
    }

    /// Returns the epoch of a stream; 0 if it is not open.
    pub(crate) fn epoch(&self, cluster: &str, source: &str) -> u64 {
        self.epochs().get(&format!("{cluster} {source}")).copied().unwrap_or_default()
    }

    /// Returns the epochs of all open streams, by cluster and source.
    pub(crate) fn epochs(&self) -> BTreeMap<String, u64> {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.iter().map(|((cluster, source), at)| (format!("{cluster} {source}"), at.epoch)).collect()
    }

    /// Moves the clock forward.
    pub(crate) fn pass(&self, seconds: u64) {
        self.time.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }

    /// Opens a stream about a cluster that has its identity as name; the source `agent` outlives the hub.
    pub(crate) fn open(&self, cluster: &str, source: &str) {
        let tells = if source == AGENT { Tells::AGENT } else { Tells::ALL };
        let epoch = self.index.open(&id(cluster), source, tells);
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.insert((cluster.to_owned(), source.to_owned()), StreamPosition { epoch, seq: 0 });
        drop(sent);
        self.facts(cluster, source, |_| {}, Vec::new());
    }

    pub(crate) fn facts(
        &self,
        cluster: &str,
        source: &str,
        edit: impl FnOnce(&mut ClusterReport),
        errors: Vec<ErrorRow>,
    ) {
        let mut facts = ClusterReport { name: cluster.to_owned(), ..ClusterReport::default() };
        edit(&mut facts);
        self.send(cluster, source, Content::Cluster { facts: Box::new(facts), errors });
    }

    pub(crate) fn send(&self, cluster: &str, source: &str, content: Content) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(position) = sent.get_mut(&(cluster.to_owned(), source.to_owned())) else { return };
        position.seq += 1;
        let report = Report { cluster: id(cluster), position: *position, age: Some(Duration::ZERO), content };
        self.index.take(source, report).unwrap();
    }

    /// Sends a snapshot of all halves of a cluster, as its source `observer`.
    pub(crate) fn snapshot(&self, cluster: &str, halves: Vec<Half>) {
        let content = Content::Snapshot { buckets: u64::MAX, part: 0, is_last: true, halves };
        self.send(cluster, "observer", content);
    }

    /// Sends halves of a cluster that changed.
    pub(crate) fn change(&self, cluster: &str, source: &str, changed: Vec<Half>) {
        self.send(cluster, source, Content::Changes { changed, gone: Vec::new() });
    }

    /// Reports that a half of an app is gone, as the source `observer`.
    pub(crate) fn remove(&self, cluster: &str, app: &AppId, side: HalfSide) {
        let gone = vec![HalfId { app: app.clone(), side }];
        self.send(cluster, "observer", Content::Changes { changed: Vec::new(), gone });
    }

    /// Takes the result of a check of an app in a cluster, which counts for so many seconds.
    pub(crate) fn check(
        &self,
        (app, target): (&AppId, &str),
        asked: DeclaredCheck,
        result: CheckAnswer,
        seconds: u64,
    ) {
        let message = if result == CheckAnswer::False { "3 is not below 2" } else { "" };
        let result = CheckResult { result, ..CheckResult::no_data(&asked.name, message) };
        let (app, target) = (Arc::new(app.clone()), id(target));
        let live = Duration::from_secs(seconds);
        self.index.take_checks([EvaluatedCheck { app, target, asked, result, age: Duration::ZERO, live }]);
    }

    /// Forgets what a source told of a cluster.
    pub(crate) fn forget(&self, cluster: &str, source: &str) {
        self.index.forget(&id(cluster), source);
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.remove(&(cluster.to_owned(), source.to_owned()));
    }

    /// Adds a live cluster with apps of these names, statuses and messages, and publishes it.
    pub(crate) fn with(self, cluster: &str, apps: &[(&str, Status, &str)]) -> SampleFleet {
        self.open(cluster, "observer");
        let halves = apps.iter().flat_map(|(name, health, message)| {
            let app = app(cluster, name);
            [declared(&app, cluster, |_| {}), observed(&app, *health, message)]
        });
        self.snapshot(cluster, halves.collect());
        self.index.publish();
        self
    }
}
