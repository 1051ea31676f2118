//! Where a scenario is played: on a real control plane, or on what was recorded of one.
//!
//! A scenario is written once. What it does to a cluster happens on Kubernetes only; a recording has what came of it. What
//! it looks at and expects is the same on both, and the replay must answer word for word what Kubernetes made Taffrail
//! answer.

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

/// Set while `cargo xtask kube record-scenarios` records.
const RECORD: &str = "TAFFRAIL_E2E_RECORD";

/// Makes two tests of each scenario: `real` and `replayed`. The number is how many clusters a recording needs.
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

/// Plays a scenario on a real control plane, if there can be one.
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

/// Plays a scenario on what was recorded of it.
pub(crate) fn replayed(name: &str, scenario: fn(&mut Stage)) {
    let mut stage = Stage::new(World::Replayed(Replay::of(name, Timelines::read(name))));
    scenario(&mut stage);
    if let World::Replayed(replay) = stage.world {
        replay.finish();
    }
}

/// Who looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// May do everything.
    Admin,
    /// Whom no role is bound to but those of the scenario.
    Reader,
}

/// Where a scenario is played.
pub(crate) struct Stage {
    world: World,
    silent: Option<Silent>,
}

enum World {
    Real(Arc<ControlPlane>),
    Recorded(Recording),
    Replayed(Replay),
}

/// A server that takes connections and says nothing, in the place of a cluster's.
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

    /// The control plane; none in a replay.
    pub(crate) fn plane(&self) -> Option<Arc<ControlPlane>> {
        match &self.world {
            World::Real(plane) => Some(Arc::clone(plane)),
            World::Recorded(recording) => Some(recording.plane()),
            World::Replayed(_) => None,
        }
    }

    /// Whether a replay has shown all.
    pub(crate) fn is_over(&self) -> bool {
        matches!(&self.world, World::Replayed(replay) if replay.is_over())
    }

    /// Does something to the clusters.
    #[track_caller]
    pub(crate) fn act(&mut self, act: impl FnOnce(&ControlPlane) -> Result<()>) {
        if let Some(plane) = self.plane() {
            act(&plane).unwrap_or_else(|error| panic!("{error:#}"));
        }
    }

    /// What Kubernetes itself says.
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

    /// Creates an example on a cluster and waits until it looks as it should.
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

    /// From now on the second cluster takes connections and says nothing: only a deadline of the client's own ends that.
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

    /// Looks: runs the binary.
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

    /// Looks: runs `get apps -A -o json` with further arguments.
    #[track_caller]
    pub(crate) fn apps(&mut self, who: Who, arguments: &[&str]) -> Apps {
        let all = [&["get", "apps", "-A", "-o", "json"], arguments].concat();
        Apps::read(self.taffrail(who, &all))
    }

    /// Looks at the apps of the first cluster.
    #[track_caller]
    pub(crate) fn look(&mut self) -> Apps {
        self.apps(Who::Admin, &["--context", CLUSTER])
    }
}
