//! The stage of a scenario: a real control plane, or a recording of one.
//!
//! A scenario is written once. Its changes to a cluster happen on Kubernetes only; a recording has their results. Its
//! runs of Taffrail and its assertions are the same on both, and the replay must return the answers of the recording
//! word for word.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;
use taffrail_testkit::examples::Example;
use taffrail_testkit::kube::ControlPlane;
use tempfile::TempDir;

use crate::harness::{Answer, Apps, CLUSTER, plane, run};
use crate::recording::Recording;
use crate::replay::Replay;
use crate::timeline::Timelines;

/// An environment variable, set while `cargo xtask kube record-scenarios` records.
const RECORD: &str = "TAFFRAIL_E2E_RECORD";

/// Defines two tests for each scenario: `real` and `replayed`. The number is that of the clusters in its recording.
macro_rules! scenarios {
    ($clusters:literal: $($name:ident),+ $(,)?) => { $(
        mod $name {
            #[test]
            fn real() {
                crate::stage::real(stringify!($name), $clusters, super::$name);
            }

            #[test]
            fn replayed() {
                crate::stage::replayed(stringify!($name), super::$name);
            }
        }
    )+ };
}

/// Plays a scenario on a real control plane, if it can be started.
pub(crate) fn real(name: &str, clusters: usize, scenario: fn(&mut Stage)) {
    if std::env::var_os(RECORD).is_some() {
        let mut stage = Stage::new(World::Recorded(Recording::start(name, clusters)));
        scenario(&mut stage);
        if let World::Recorded(recording) = stage.world {
            recording.finish();
        }
        return;
    }
    let Some(plane) = plane() else { return };
    scenario(&mut Stage::new(World::Real(plane)));
}

/// Plays the recording of a scenario.
pub(crate) fn replayed(name: &str, scenario: fn(&mut Stage)) {
    let mut stage = Stage::new(World::Replayed(Replay::of(name, Timelines::read(name))));
    scenario(&mut stage);
    if let World::Replayed(replay) = stage.world {
        replay.finish();
    }
}

/// The users as whom Taffrail is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// A user who may do everything.
    Admin,
    /// A user without roles except those that the scenario binds.
    Reader,
}

/// The stage of a scenario.
pub(crate) struct Stage {
    world: World,
    silent: Option<Silent>,
}

enum World {
    Real(Arc<ControlPlane>),
    Recorded(Recording),
    Replayed(Replay),
}

/// A server that accepts connections and never responds, in the place of a cluster's.
struct Silent {
    _listener: TcpListener,
    _folder: TempDir,
    kubeconfig: PathBuf,
    address: String,
}

impl Stage {
    fn new(world: World) -> Self {
        Self { world, silent: None }
    }

    /// Returns the control plane; `None` in a replay.
    pub(crate) fn plane(&self) -> Option<Arc<ControlPlane>> {
        match &self.world {
            World::Real(plane) => Some(Arc::clone(plane)),
            World::Recorded(recording) => Some(recording.plane()),
            World::Replayed(_) => None,
        }
    }

    /// Returns true if a replay has used all of its recording.
    pub(crate) fn is_over(&self) -> bool {
        matches!(&self.world, World::Replayed(replay) if replay.is_over())
    }

    /// Calls `act` with the control plane, to change its clusters; does nothing in a replay. Fails if `act` does.
    #[track_caller]
    pub(crate) fn act(&mut self, act: impl FnOnce(&ControlPlane) -> Result<()>) {
        if let Some(plane) = self.plane() {
            act(&plane).unwrap_or_else(|error| panic!("{error:#}"));
        }
    }

    /// Returns the result of `ask`, a reply of Kubernetes itself, and records it if a recording is made; a replay
    /// returns the recorded reply instead.
    #[track_caller]
    pub(crate) fn ask<T: Serialize + DeserializeOwned>(
        &mut self,
        ask: impl FnOnce(&ControlPlane) -> Result<T>,
    ) -> T {
        let fact = match &mut self.world {
            World::Replayed(replay) => replay.fact(),
            World::Real(plane) => return ask(plane).unwrap_or_else(|error| panic!("{error:#}")),
            World::Recorded(recording) => {
                let fact = ask(&recording.plane()).unwrap_or_else(|error| panic!("{error:#}"));
                recording.remember(serde_json::to_value(fact).expect("facts are JSON"))
            }
        };
        serde_json::from_value(fact).expect("the recording has facts of this form: record it again")
    }

    /// Creates an example on a cluster and waits until it reaches its expected state.
    #[track_caller]
    pub(crate) fn example_on(&mut self, context: &str, name: &str) {
        self.act(|plane| {
            let example = Example::named(name)?;
            example.apply(plane, context)?;
            example.settle(plane, context)
        });
    }

    /// Creates an example on the first cluster.
    #[track_caller]
    pub(crate) fn example(&mut self, name: &str) {
        self.example_on(CLUSTER, name);
    }

    /// Replaces the second cluster by a server that accepts connections and never responds: only the client's own
    /// timeout ends a request.
    pub(crate) fn silence_second(&mut self) {
        if let World::Replayed(replay) = &mut self.world {
            return replay.silence_second();
        }
        let Some(plane) = self.plane() else { return };
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = format!("https://{}", listener.local_addr().expect("its address"));
        let folder = tempfile::tempdir().expect("a folder");
        let kubeconfig = folder.path().join("kubeconfig");
        let text = fs::read_to_string(plane.kubeconfig()).expect("the kubeconfig");
        let second = plane.server(1).expect("two clusters");
        fs::write(&kubeconfig, text.replace(second, &address)).expect("a kubeconfig");
        self.silent = Some(Silent { _listener: listener, _folder: folder, kubeconfig, address });
    }

    /// Runs the binary as `who` with these arguments and returns its answer. A recording also stores it; a replay
    /// asserts that it is the recorded one.
    #[track_caller]
    pub(crate) fn taffrail(&mut self, who: Who, arguments: &[&str]) -> Answer {
        let kubeconfig = |plane: &ControlPlane| match (&self.silent, who) {
            (Some(silent), _) => silent.kubeconfig.clone(),
            (None, Who::Admin) => plane.kubeconfig().to_owned(),
            (None, Who::Reader) => plane.reader_kubeconfig().to_owned(),
        };
        match &mut self.world {
            World::Real(plane) => run(kubeconfig(plane).as_os_str(), arguments),
            World::Recorded(recording) => {
                let kubeconfig = kubeconfig(&recording.plane());
                let silent = self.silent.as_ref().map(|silent| &*silent.address);
                recording.look(who, arguments, kubeconfig.as_os_str(), silent)
            }
            World::Replayed(replay) => replay.look(who, arguments),
        }
    }

    /// Runs `taffrail get apps -A -o json` with further arguments, and returns the apps.
    #[track_caller]
    pub(crate) fn apps(&mut self, who: Who, arguments: &[&str]) -> Apps {
        let all = [&["get", "apps", "-A", "-o", "json"], arguments].concat();
        Apps::read(self.taffrail(who, &all))
    }

    /// Runs `taffrail get apps` on the first cluster as the administrator, and returns the apps.
    #[track_caller]
    pub(crate) fn look(&mut self) -> Apps {
        self.apps(Who::Admin, &["--context", CLUSTER])
    }
}
