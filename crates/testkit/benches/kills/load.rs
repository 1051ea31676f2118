//! The simulated clusters and their apps, which change all the time, and the log of their changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_sim::{Cluster, Fleet};
use taffrail_testkit::objects::{applications, kustomizations, namespace, widgets, with_status_subresource};
use tokio::runtime::Handle;

/// The namespace of all objects.
const NAMESPACE: &str = "apps";

/// The number of syncs that a Kustomization remembers, as Flux does.
const REMEMBERED: usize = 5;

/// The longest pause between two bursts of changes, in milliseconds. It lets the hub save all that it knows now and
/// then, which is what it acknowledges.
const PAUSE: u64 = 400;

/// The least time between two syncs of one app.
const SYNC: Duration = Duration::from_secs(3);

/// An app in a cluster, and what happened to it.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) cluster: usize,
    pub(crate) name: String,
    pub(crate) tool: Tool,
    /// The time at which the app became well or unwell, before and after the write, and whether it was well then.
    pub(crate) states: Vec<(Timestamp, Timestamp, bool)>,
    /// The revision of each sync, and whether it succeeded.
    pub(crate) syncs: BTreeMap<String, bool>,
    /// The last syncs that the tool remembers, the latest first.
    history: Vec<Value>,
    /// The time of the last sync.
    synced: Option<Instant>,
}

/// The tool that delivers an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Flux,
    ArgoCd,
}

impl App {
    /// Returns the path of the app in the hub's API below that of a list, without the cluster.
    pub(crate) fn path(&self) -> String {
        let delivery = match self.tool {
            Tool::Flux => "flux-kustomization",
            Tool::ArgoCd => "argo-application",
        };
        format!("{delivery}/{NAMESPACE}/{}", self.name)
    }

    fn widget(&self) -> Value {
        let is_well = self.states.last().is_none_or(|(_, _, is_well)| *is_well);
        let (status, reason) = if is_well { ("True", "Succeeded") } else { ("False", "BuildFailed") };
        let mut object = json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"namespace": NAMESPACE, "name": self.name},
            "status": {"conditions": [{"type": "Ready", "status": status, "reason": reason,
                "message": format!("state {}", self.states.len()), "lastTransitionTime": "2026-03-01T12:00:00Z"}]}});
        match self.tool {
            Tool::Flux => {
                object["metadata"]["labels"] = json!({"kustomize.toolkit.fluxcd.io/name": self.name,
                    "kustomize.toolkit.fluxcd.io/namespace": NAMESPACE});
            }
            Tool::ArgoCd => {
                let id = format!("{}:example.com/Widget:{NAMESPACE}/{}", self.name, self.name);
                object["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id": id});
            }
        }
        object
    }

    fn declaration(&self) -> Value {
        match self.tool {
            Tool::Flux => {
                let id = format!("{NAMESPACE}_{}_example.com_Widget", self.name);
                json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                    "metadata": {"namespace": NAMESPACE, "name": self.name},
                    "spec": {"interval": "10m", "prune": true, "path": "./",
                        "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
                    "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded",
                        "message": "applied", "lastTransitionTime": "2026-03-01T12:00:00Z"}],
                        "inventory": {"entries": [{"id": id, "v": "v1"}]}, "history": self.history}})
            }
            Tool::ArgoCd => {
                let last = self.history.first().cloned().unwrap_or(Value::Null);
                let done: Vec<&Value> =
                    self.history.iter().rev().filter(|it| it["phase"] == "Succeeded").collect();
                let entry = |(id, it): (usize, &&Value)| {
                    json!({"id": id, "revision": it["syncResult"]["revision"], "deployStartedAt": it["startedAt"],
                        "deployedAt": it["finishedAt"], "source": {"repoURL": "https://git.example/fleet", "path": "."}})
                };
                let mut object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                    "metadata": {"namespace": NAMESPACE, "name": self.name},
                    "spec": {"project": "default", "destination": {"server": "https://kubernetes.default.svc",
                        "namespace": NAMESPACE},
                        "source": {"repoURL": "https://git.example/fleet", "path": ".", "targetRevision": "main"}},
                    "status": {"sync": {"status": "Synced"}, "health": {"status": "Healthy"},
                        "history": done.iter().enumerate().map(entry).collect::<Vec<_>>(),
                        "resources": [{"group": "example.com", "version": "v1", "kind": "Widget",
                            "namespace": NAMESPACE, "name": self.name, "status": "Synced"}]}});
                if !last.is_null() {
                    object["status"]["operationState"] = last;
                }
                object
            }
        }
    }

    /// Lets the tool record one more sync.
    fn sync(&mut self, number: usize, is_success: bool) {
        let revision = format!("{number:040x}");
        let at = Timestamp::now();
        let began = Timestamp::from_second(at.as_second() - 2).unwrap_or(at).to_string();
        let ended = Timestamp::from_second(at.as_second()).unwrap_or(at).to_string();
        let record = match self.tool {
            Tool::Flux => {
                let result = if is_success { "Succeeded" } else { "Failed" };
                json!({"digest": format!("sha256:{revision}"), "firstReconciled": began, "lastReconciled": ended,
                    "lastReconciledDuration": "2s", "totalReconciliations": 1,
                    "lastReconciledStatus": format!("Reconciliation{result}"),
                    "metadata": {"revision": format!("main@sha1:{revision}")}})
            }
            Tool::ArgoCd => {
                let phase = if is_success { "Succeeded" } else { "Failed" };
                json!({"phase": phase, "startedAt": began, "finishedAt": ended, "message": format!("sync {number}"),
                    "operation": {"sync": {"revision": revision}}, "syncResult": {"revision": revision,
                        "source": {"repoURL": "https://git.example/fleet", "path": "."}}})
            }
        };
        self.history.insert(0, record);
        self.history.truncate(REMEMBERED);
        self.syncs.insert(revision, is_success);
        self.synced = Some(Instant::now());
    }
}

/// The clusters with apps that change until it is dropped.
pub(crate) struct Load {
    _fleet: Fleet,
    clusters: Vec<Cluster>,
    state: Arc<Mutex<State>>,
    changing: Option<JoinHandle<Result<()>>>,
}

struct State {
    apps: Vec<App>,
    is_over: bool,
    /// True while apps are synced, too: Argo CD remembers a sync that failed only until the next one, so a hub that is
    /// killed meanwhile cannot know of all.
    is_watched: bool,
    syncs: usize,
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Load {
    /// Starts so many clusters with so many apps each, and begins to change them.
    pub(crate) fn start(runtime: &Handle, seed: u64, clusters: usize, each: usize) -> Result<Load> {
        let (fleet, clusters) = runtime.block_on(async {
            let fleet = Fleet::builder().seed(seed).start().await?;
            let mut all = Vec::new();
            for number in 1..=clusters {
                all.push(fleet.cluster(&format!("sim-{number}")).await?);
            }
            anyhow::Ok((fleet, all))
        })?;
        let mut apps = Vec::new();
        for (place, cluster) in clusters.iter().enumerate() {
            let definitions =
                [widgets(), with_status_subresource(kustomizations()), applications(), namespace(NAMESPACE)];
            definitions.into_iter().try_for_each(|object| cluster.apply(object))?;
            for number in 0..each {
                let tool = if number % 4 == 3 { Tool::ArgoCd } else { Tool::Flux };
                let mut app = App {
                    cluster: place,
                    name: format!("app-{place}-{number}"),
                    tool,
                    states: Vec::new(),
                    syncs: BTreeMap::new(),
                    history: Vec::new(),
                    synced: None,
                };
                let before = Timestamp::now();
                cluster.apply(app.widget())?;
                app.states.push((before, Timestamp::now(), true));
                cluster.apply(app.declaration())?;
                apps.push(app);
            }
        }
        let state = Arc::new(Mutex::new(State { apps, is_over: false, is_watched: false, syncs: 0 }));
        let changing = {
            let (clusters, state) = (clusters.clone(), Arc::clone(&state));
            std::thread::spawn(move || change(&clusters, &state, fastrand::Rng::with_seed(seed)))
        };
        Ok(Load { _fleet: fleet, clusters, state, changing: Some(changing) })
    }

    pub(crate) fn kubeconfig(&self) -> String {
        Cluster::kubeconfig_of(&self.clusters)
    }

    pub(crate) fn cluster(&self, place: usize) -> &str {
        self.clusters[place].name()
    }

    /// Lets the tools sync from now on, as a hub follows the clusters without being killed.
    pub(crate) fn watched(&self) {
        lock(&self.state).is_watched = true;
    }

    /// Returns the apps with the log of their changes so far.
    pub(crate) fn apps(&self) -> Vec<App> {
        lock(&self.state).apps.clone()
    }

    /// Ends the changes. Fails if one of them could not be made.
    pub(crate) fn end(&mut self) -> Result<()> {
        lock(&self.state).is_over = true;
        let Some(changing) = self.changing.take() else { return Ok(()) };
        changing.join().ok().context("the load failed")?
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // It is told where the load is ended.
        drop(self.end());
    }
}

/// Makes apps well, unwell and synced, in bursts, until the load is over.
fn change(clusters: &[Cluster], state: &Mutex<State>, mut random: fastrand::Rng) -> Result<()> {
    loop {
        let burst = random.usize(1..=12);
        for _ in 0..burst {
            let mut held = lock(state);
            if held.is_over {
                return Ok(());
            }
            let place = random.usize(..held.apps.len());
            let is_watched = held.is_watched;
            held.syncs += 1;
            let number = held.syncs;
            let app = &mut held.apps[place];
            let cluster = &clusters[app.cluster];
            // Each sync can be known only if a report tells of it before the tool forgets it.
            let is_due = app.synced.is_none_or(|last| last.elapsed() >= SYNC);
            if is_watched && is_due && random.u8(..8) == 0 {
                app.sync(number, random.bool());
                cluster.apply(app.declaration())?;
                continue;
            }
            let is_well = !app.states.last().is_none_or(|(_, _, is_well)| *is_well);
            let before = Timestamp::now();
            app.states.push((before, before, is_well));
            cluster.apply(app.widget())?;
            if let Some(last) = app.states.last_mut() {
                last.1 = Timestamp::now();
            }
        }
        std::thread::sleep(Duration::from_millis(random.u64(..PAUSE)));
    }
}
