//! The fleet that the writer reports: what is true of each app, and the halves that say so.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use taffrail_api::AppName;
use taffrail_api::report::{
    AppId, Buckets, ClusterReport, DeclaredHalf, Half, HalfBody, ObservedHalf, Speaker,
};
use taffrail_apps::{Axis, ClusterId, Delivery, Problem, ProblemSeverity, Source, Sync, SyncState};
use taffrail_object::ObjectKey;
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

/// The number of apps of a cluster.
pub(crate) const APPS: usize = 100;

/// The names of the apps of each namespace, sorted.
pub(crate) const NAMES: [&str; 5] = ["api-gateway", "checkout", "inventory", "search-index", "web"];

/// The number of namespaces of a cluster.
pub(crate) const NAMESPACES: usize = APPS / NAMES.len();

/// The Unix time before which all problems began.
const EPOCH: i64 = 1_780_000_000;

/// The state of one app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AppState {
    /// The number of its last change, which its revision shows.
    pub(crate) change: u32,
    pub(crate) health: Health,
    pub(crate) is_out_of_sync: bool,
}

/// The health of the objects of an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    Ready,
    InProgress,
    Failed,
    /// Failed by an image that does not exist.
    BadImage,
}

/// All apps of a fleet; those of a cluster beside each other, by namespace and name.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) clusters: usize,
    apps: Vec<AppState>,
    /// The number of the last change.
    pub(crate) changes: u32,
}

/// Returns the name of a cluster, by its number.
pub(crate) fn cluster_name(cluster: usize) -> String {
    let regions = ["eu-west", "us-east", "ap-south", "sa-east"];
    let region = regions.get(cluster % regions.len()).copied().unwrap_or_default();
    format!("{region}-prod-{cluster:05}")
}

/// Returns the identity of a cluster, which sorts as its number does.
pub(crate) fn cluster_id(cluster: usize) -> ClusterId {
    let tail = mix(cluster as u64);
    ClusterId(format!(
        "{cluster:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        tail >> 48,
        tail & 0xfff,
        tail >> 52,
        tail & 0xffff_ffff_ffff
    ))
}

/// Returns the namespace of an app, by its number in its cluster.
pub(crate) fn namespace(app: usize) -> String {
    format!("team-{:02}", app / NAMES.len())
}

/// Returns the name of an app, by its number in its cluster.
pub(crate) fn name(app: usize) -> &'static str {
    NAMES.get(app % NAMES.len()).copied().unwrap_or_default()
}

/// Returns the number of an app in its cluster, by its namespace and name; `None` if there is no such app.
pub(crate) fn app_number(namespace: &str, name: &str) -> Option<usize> {
    let namespace: usize = namespace.strip_prefix("team-")?.parse().ok()?;
    let name = NAMES.iter().position(|it| *it == name)?;
    Some(namespace * NAMES.len() + name)
}

/// Returns the delivery of an app, by its number in its cluster.
pub(crate) fn delivery(app: usize) -> Delivery {
    match app / NAMES.len() {
        0..10 => Delivery::FluxKustomization,
        10..15 => Delivery::FluxHelmRelease,
        _ => Delivery::ArgoApplication,
    }
}

/// Returns the key of an app, which is the same in all clusters.
pub(crate) fn key(app: usize) -> String {
    format!("{}/{}/{}", delivery(app), namespace(app), name(app))
}

/// Returns the revision that the app's delivery tool has applied; it ends with the number of the app's last change.
pub(crate) fn revision(state: AppState) -> String {
    format!("main@sha1:{:032x}{:08x}", u128::from(mix(u64::from(state.change))), state.change)
}

/// Returns the number of the change that a revision shows; `None` for another text.
pub(crate) fn change_of(revision: &str) -> Option<u32> {
    u32::from_str_radix(revision.get(revision.len().checked_sub(8)?..)?, 16).ok()
}

/// Spreads the bits of a number.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl AppState {
    pub(crate) fn status(self) -> Status {
        match self.health {
            Health::Ready => Status::Current,
            Health::InProgress => Status::InProgress,
            Health::Failed | Health::BadImage => Status::Failed,
        }
    }

    pub(crate) fn sync(self) -> SyncState {
        if self.is_out_of_sync { SyncState::OutOfSync } else { SyncState::Synced }
    }

    /// Returns the time at which its problem, if it has one, began.
    pub(crate) fn since(self, cluster: usize, app: usize) -> Timestamp {
        let some = mix((cluster * APPS + app) as u64 ^ u64::from(self.change) << 32) % 1_000_000_000;
        Timestamp::from_microsecond((EPOCH - 1_000) * 1_000_000 + some.cast_signed()).unwrap_or_default()
    }

    /// Returns the severity of its worst problem; `None` if it has none.
    pub(crate) fn severity(self) -> Option<ProblemSeverity> {
        match self.health {
            Health::Failed | Health::BadImage => Some(ProblemSeverity::Error),
            Health::InProgress => Some(ProblemSeverity::Waiting),
            Health::Ready => self.is_out_of_sync.then_some(ProblemSeverity::Waiting),
        }
    }

    /// Returns the message of its worst problem; `None` if it has none.
    pub(crate) fn problem_message(self, cluster: usize, app: usize) -> Option<String> {
        let spread = mix(u64::from(self.change) + app as u64);
        let name = name(app);
        match self.health {
            Health::InProgress => {
                Some(format!("Deployment {name}: {} of 3 replicas are updated", spread % 3))
            }
            Health::Failed => Some(match spread % 3 {
                0 => format!(
                    "Deployment {name}: container {name} restarts again and again: exit code {}",
                    spread % 128
                ),
                1 => format!("Deployment {name}: Pods wait for the PersistentVolumeClaim data of {name}"),
                _ => format!("Deployment {name}: did not progress for {}m0s", 10 + spread % 50),
            }),
            Health::BadImage => Some(format!(
                "Deployment {name}: cannot pull the image registry.example/shop/{name}:v7 in {} for {}m: not found",
                cluster_name(cluster),
                spread % 60
            )),
            Health::Ready => self.is_out_of_sync.then(|| OUT_OF_SYNC.to_owned()),
        }
    }

    /// Returns the message of its row.
    pub(crate) fn message(self, cluster: usize, app: usize) -> String {
        match self.health {
            Health::Ready => format!("Applied revision: {}", revision(self)),
            _ => self.problem_message(cluster, app).unwrap_or_default(),
        }
    }
}

/// The message of the problem of an app that is out of sync.
const OUT_OF_SYNC: &str = "another revision is desired than the applied one";

impl Model {
    /// Makes a fleet in which 97 of 100 apps are well.
    pub(crate) fn new(clusters: usize) -> Model {
        let ready = AppState { change: 0, health: Health::Ready, is_out_of_sync: false };
        let mut model = Model { clusters, apps: vec![ready; clusters * APPS], changes: 0 };
        for state in &mut model.apps {
            model.changes += 1;
            state.change = model.changes;
            match fastrand::u8(0..200) {
                0..2 => state.health = Health::Failed,
                2..4 => state.health = Health::InProgress,
                4..6 => state.is_out_of_sync = true,
                _ => {}
            }
        }
        model
    }

    /// Returns the state of an app, by the numbers of its cluster and of itself in there.
    pub(crate) fn app(&self, cluster: usize, app: usize) -> AppState {
        let ready = AppState { change: 0, health: Health::Ready, is_out_of_sync: false };
        self.apps.get(cluster * APPS + app).copied().unwrap_or(ready)
    }

    /// Iterates over all apps with the numbers of their clusters and of themselves in there.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, usize, AppState)> {
        self.apps.iter().enumerate().map(|(number, state)| (number / APPS, number % APPS, *state))
    }

    /// Changes an app: both halves. Most that are not well become well, and of the others most stay well with another
    /// revision.
    pub(crate) fn change(&mut self, cluster: usize, app: usize) -> AppState {
        let health = match self.app(cluster, app).health {
            Health::Ready => match fastrand::u8(0..100) {
                0..4 => Health::Failed,
                4..30 => Health::InProgress,
                _ => Health::Ready,
            },
            other if fastrand::u8(0..100) < 10 => other,
            _ => Health::Ready,
        };
        let is_out_of_sync = health == Health::Ready && fastrand::u8(0..100) < 3;
        self.set(cluster, app, health, is_out_of_sync)
    }

    /// Sets the state of an app, as one change.
    pub(crate) fn set(
        &mut self,
        cluster: usize,
        app: usize,
        health: Health,
        is_out_of_sync: bool,
    ) -> AppState {
        self.changes += 1;
        let state = AppState { change: self.changes, health, is_out_of_sync };
        if let Some(slot) = self.apps.get_mut(cluster * APPS + app) {
            *slot = state;
        }
        state
    }

    /// Returns the facts about a cluster.
    pub(crate) fn facts(cluster: usize) -> ClusterReport {
        ClusterReport {
            name: cluster_name(cluster),
            id: Some(cluster_id(cluster).0),
            version: Some("v1.36.3".to_owned()),
            ..ClusterReport::default()
        }
    }

    /// Returns both halves of an app.
    pub(crate) fn halves(&self, cluster: usize, app: usize) -> [Half; 2] {
        let state = self.app(cluster, app);
        let (id, namespace, name) = (cluster_id(cluster), namespace(app), name(app));
        let app_name =
            AppName { delivery: delivery(app), namespace: namespace.clone(), name: name.to_owned() };
        let revision = revision(state);
        let last_success = Some(state.since(cluster, app));
        let problem = Problem {
            axis: Axis::Sync,
            state: "OutOfSync".to_owned(),
            severity: ProblemSeverity::Waiting,
            since: last_success,
            message: OUT_OF_SYNC.into(),
            object: None,
            upstream: None,
        };
        let is_flux = delivery(app) != Delivery::ArgoApplication;
        let declared = DeclaredHalf {
            key: key(app),
            target: id.clone(),
            sync: Sync {
                state: state.sync(),
                desired: Some(revision.clone()),
                attempted: Some(revision.clone()),
                applied: Some(revision.clone()),
                last_success,
            },
            suspended: false,
            source: Some(Arc::new(Source {
                kind: "GitRepository".to_owned(),
                namespace: is_flux.then(|| "flux-system".to_owned()),
                name: is_flux.then(|| "fleet".to_owned()),
                url: Some("https://git.example.com/platform/fleet.git".to_owned()),
                path: Some(format!("./apps/{namespace}/{name}")),
                reference: Some("main".to_owned()),
            })),
            labels: Arc::new(BTreeMap::from([
                ("kustomize.toolkit.fluxcd.io/name".to_owned(), "apps".to_owned()),
                ("team".to_owned(), namespace.clone()),
            ])),
            message: format!("Applied revision: {revision}").into(),
            own: None,
            problems: state.is_out_of_sync.then_some(problem).into_iter().collect(),
            syncs: Vec::new(),
            upstreams: None,
            not_live: None,
            unobserved: Default::default(),
            checks: Vec::new(),
        };
        let object = ObjectKey::new("apps", "Deployment", &*namespace, name);
        let worst = state.problem_message(cluster, app).filter(|_| state.health != Health::Ready);
        let worst = worst.map(|message| {
            Box::new(Speaker {
                status: state.status(),
                rule: "builtin/apps/Deployment".to_owned(),
                unconfirmed: false,
                problem: Problem {
                    axis: Axis::Health,
                    state: state.status().as_str().to_owned(),
                    severity: state.severity().unwrap_or(ProblemSeverity::Error),
                    since: Some(state.since(cluster, app)),
                    message: message.into(),
                    object: Some(object),
                    upstream: None,
                },
            })
        });
        let well = [Status::Current; 4];
        let observed = ObservedHalf {
            health: state.status(),
            worst,
            counts: well.into_iter().chain([state.status()]).collect::<Counts>(),
            unconfirmed: 0,
            unmarked: None,
            not_live: None,
            unobserved: Default::default(),
            said: false,
        };
        let app_id = AppId { home: id, app: app_name };
        let [one, two] = fingerprints(cluster, app, state);
        [
            Half { app: app_id.clone(), fingerprint: one, body: HalfBody::Declared(Box::new(declared)) },
            Half { app: app_id, fingerprint: two, body: HalfBody::Observed(Box::new(observed)) },
        ]
    }

    /// Returns the digest of all halves of a cluster.
    pub(crate) fn digest(&self, cluster: usize) -> Buckets {
        let mut digest = Buckets::default();
        for app in 0..APPS {
            fingerprints(cluster, app, self.app(cluster, app)).into_iter().for_each(|it| digest.toggle(it));
        }
        digest
    }
}

/// Returns the fingerprints of the two halves of an app.
fn fingerprints(cluster: usize, app: usize, state: AppState) -> [u64; 2] {
    let app = (cluster * APPS + app) as u64;
    [0, 1].map(|side| mix(mix(app * 2 + side) ^ u64::from(state.change)))
}
