//! Replays a recording on `taffrail-sim`, where the answers must equal those that were recorded on Kubernetes.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;
use taffrail_sim::{Cluster, Fleet, Pace, Timeline, Trouble};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::harness::{Answer, CLUSTER, run};
use crate::stage::Who;
use crate::timeline::{self, Scene, Timelines, normal};

/// A simulated fleet that replays a recording, up to the moment of the next recorded run of Taffrail.
pub(crate) struct Replay {
    name: String,
    script: VecDeque<Scene>,
    /// The time, in microseconds since the beginning.
    at: u64,
    clusters: Vec<Cluster>,
    admin: OsString,
    reader: OsString,
    fleet: Fleet,
    _folder: TempDir,
    _runtime: Runtime,
}

/// Returns the objects that every new cluster begins with.
fn base() -> &'static [Value] {
    static BASE: OnceLock<Vec<Value>> = OnceLock::new();
    BASE.get_or_init(|| {
        let text = timeline::read(&timeline::file("base"));
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    })
}

impl Replay {
    pub(crate) fn of(name: &str, recorded: Timelines) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let (fleet, clusters) = runtime.block_on(async {
            let fleet = Fleet::builder()
                .pace(Pace::Stepped)
                .start_at(recorded.head.begin)
                .version(&recorded.head.version)
                .controllers(false)
                .verbatim(true)
                .start()
                .await
                .expect("a fleet");
            let mut clusters = Vec::new();
            for (name, timeline) in &recorded.clusters {
                let cluster = fleet.cluster(name).await.expect("a cluster");
                cluster.seed(base().iter().cloned()).expect("what every cluster has");
                cluster.play(&Timeline::read(timeline).expect("a timeline"));
                clusters.push(cluster);
            }
            (fleet, clusters)
        });
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: String, text: String| -> PathBuf {
            let file = folder.path().join(name);
            fs::write(&file, text).expect("a kubeconfig");
            file
        };
        let admin = write("admin".to_owned(), Cluster::kubeconfig_of(&clusters));
        let readers = clusters.iter().map(|cluster| {
            let reader = cluster.add_user("reader", &["readers"]);
            write(format!("reader-{}", cluster.name()), cluster.kubeconfig_for(&reader))
        });
        let reader = std::env::join_paths(readers).expect("paths");
        Self {
            name: name.to_owned(),
            script: recorded.script.into(),
            at: 0,
            clusters,
            admin: admin.into(),
            reader,
            fleet,
            _folder: folder,
            _runtime: runtime,
        }
    }

    /// Returns the recorded reply of Kubernetes.
    #[track_caller]
    pub(crate) fn fact(&mut self) -> Value {
        match self.script.pop_front() {
            Some(Scene::Fact(fact)) => fact,
            other => self.differs("asks Kubernetes", other.as_ref()),
        }
    }

    /// Returns true if the recording has no further scenes.
    pub(crate) fn is_over(&self) -> bool {
        self.script.is_empty()
    }

    /// Silences the second cluster; see [`Stage::silence_second`](crate::stage::Stage::silence_second).
    pub(crate) fn silence_second(&self) {
        self.clusters.get(1).expect("two clusters").trouble(Trouble::Blackhole);
    }

    /// Advances the fleet to the moment of the next recorded run of Taffrail, runs it there, and asserts that the
    /// answer is the recorded one. Fails if that run had another user or other arguments.
    #[track_caller]
    pub(crate) fn look(&mut self, who: Who, arguments: &[&str]) -> Answer {
        let look = match self.script.pop_front() {
            Some(Scene::Look(look)) if look.arguments == arguments && look.who == format!("{who:?}") => look,
            other => self.differs(&format!("looks with {arguments:?} as {who:?}"), other.as_ref()),
        };
        self.fleet.advance(Duration::from_micros(look.at.saturating_sub(self.at)));
        self.at = look.at;
        let kubeconfig = match who {
            Who::Admin => &self.admin,
            Who::Reader => &self.reader,
        };
        let now = look.now.to_string();
        let answer = run(kubeconfig, &[arguments, &["--now", &now]].concat());
        let servers: Vec<_> =
            self.clusters.iter().map(|cluster| (cluster.name().to_owned(), cluster.url())).collect();
        let same = |what: &str, recorded: &str, played: &str| {
            let played = normal(played, &servers);
            let is_same =
                match (serde_json::from_str::<Value>(recorded), serde_json::from_str::<Value>(&played)) {
                    (Ok(recorded), Ok(played)) => recorded == without_newer_fields(played, &recorded),
                    _ => recorded == played,
                };
            let is_text = serde_json::from_str::<Value>(recorded).is_err();
            if !is_same && is_text && std::env::var_os("SNAPSHOTS").is_some_and(|mode| mode == "overwrite") {
                rewrite(&self.name, recorded, &played);
                return;
            }
            assert!(
                is_same,
                "{}: {what} of `{}` is not what it was on Kubernetes:\n{}",
                self.name,
                arguments.join(" "),
                differences(recorded, &played)
            );
        };
        same("stderr", &look.stderr, &answer.stderr);
        same("stdout", &look.stdout, &answer.stdout);
        assert_eq!(look.code, answer.code, "{answer}");
        answer
    }

    /// Asserts that the scenario used everything that was recorded.
    pub(crate) fn finish(mut self) {
        if let Some(left) = self.script.pop_front() {
            self.differs("ends", Some(&left));
        }
    }

    #[track_caller]
    fn differs(&self, does: &str, recorded: Option<&Scene>) -> ! {
        panic!(
            "{0}: the scenario {does}, and in the recording there follows {recorded:?}. If it was changed on purpose: \
             cargo xtask kube record-scenarios {0}",
            self.name
        )
    }
}

/// Puts another text for people into a recording, where words were changed on purpose (`SNAPSHOTS=overwrite`). Answers
/// for programs, and what Kubernetes did, stay as they were recorded.
fn rewrite(name: &str, recorded: &str, played: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("timelines").join(format!("{name}.timeline"));
    let text = fs::read_to_string(&file).expect("a recording");
    let [old, new] = [recorded, played].map(|text| serde_json::to_string(text).expect("a string"));
    fs::write(file, text.replace(&old, &new)).expect("a recording");
}

/// The fields that came after the first answers were recorded.
const NEWER_FIELDS: [&str; 16] = [
    "applied",
    "appsDiffer",
    "declares",
    "effective",
    "errors",
    "freshness",
    "health",
    "home",
    "madeBy",
    "nextOfFirst",
    "object",
    "objects",
    "problems",
    "since",
    "source",
    "withoutLease",
];

/// Removes the newer fields that an answer did not have when it was recorded: of rows, those that none of them had.
fn without_newer_fields(mut played: Value, recorded: &Value) -> Value {
    fn trim(played: &mut Value, recorded: &[&Value]) {
        match played {
            Value::Object(fields) => {
                fields.retain(|name, _| {
                    !NEWER_FIELDS.contains(&&**name) || recorded.iter().any(|it| it.get(name).is_some())
                });
                for (name, value) in fields {
                    trim(value, &recorded.iter().filter_map(|it| it.get(name)).collect::<Vec<_>>());
                }
            }
            Value::Array(items) => {
                let recorded = recorded.iter().filter_map(|it| it.as_array()).flatten().collect::<Vec<_>>();
                items.iter_mut().for_each(|item| trim(item, &recorded));
            }
            _ => {}
        }
    }

    trim(&mut played, &[recorded]);
    played
}

/// Lists the lines of two answers that the other lacks: `-` on Kubernetes, `+` here.
fn differences(recorded: &str, played: &str) -> String {
    let pretty = |text: &str| -> Vec<String> {
        let value =
            serde_json::from_str::<Value>(text).and_then(|value| serde_json::to_string_pretty(&value));
        value.unwrap_or_else(|_| text.to_owned()).lines().map(str::to_owned).collect()
    };
    let (old, new) = (pretty(recorded), pretty(played));
    let lost = old.iter().filter(|line| !new.contains(line)).map(|line| format!("- {line}\n"));
    let come = new.iter().filter(|line| !old.contains(line)).map(|line| format!("+ {line}\n"));
    let text: String = lost.chain(come).take(60).collect();
    if text.is_empty() { format!("the same lines in another order:\n{played}") } else { text }
}

/// Replays the first run of Taffrail in a recording without the timeline lines for which `tamper` is true; fails if its
/// answer differs from the recorded one.
fn tampered(tamper: impl Fn(&str) -> bool) {
    let name = "a_container_that_crashes";
    let mut recorded = Timelines::read(name);
    for (_, timeline) in &mut recorded.clusters {
        let kept: Vec<&str> = timeline.lines().filter(|line| !tamper(line)).collect();
        assert!(kept.len() < timeline.lines().count(), "nothing is left out");
        *timeline = kept.join("\n");
    }
    Replay::of(name, recorded).look(Who::Admin, &["get", "apps", "-A", "-o", "json", "--context", CLUSTER]);
}

#[test]
#[should_panic(expected = "is not what it was on Kubernetes")]
fn replay_detects_a_missing_change() {
    tampered(|line| line.contains("CrashLoopBackOff"));
}

#[test]
#[should_panic(expected = "is not what it was on Kubernetes")]
fn replay_detects_a_missing_object() {
    tampered(|line| line.contains("\"kind\":\"Kustomization\""));
}

#[test]
#[should_panic(expected = "the scenario looks with [\"get\", \"clusters\"]")]
fn replay_detects_a_changed_scenario() {
    let name = "a_container_that_crashes";
    Replay::of(name, Timelines::read(name)).look(Who::Admin, &["get", "clusters"]);
}

#[test]
fn recordings_contain_nothing_of_the_recording_machine() {
    let folder = timeline::file("base").parent().expect("a folder").to_owned();
    let mut bytes = 0;
    for entry in fs::read_dir(folder).expect("the recordings").map(|entry| entry.expect("an entry")) {
        bytes += entry.metadata().expect("a size").len();
        let text = timeline::read(&entry.path());
        let file = entry.file_name().display().to_string();
        for part in ["/home", "/root", "/tmp", "localhost", "-----BEGIN"] {
            assert!(!text.contains(part), "{file} has {part}");
        }
        for rest in text.split("127.0.0.1:").skip(1) {
            // The addresses of the API servers, and that of the webhook that does not respond.
            assert!(
                ["6443", "9/", "9:"].iter().any(|known| rest.starts_with(known)),
                "{file} has a port: {rest:.20}"
            );
        }
    }
    assert!(bytes < 12_000_000, "{bytes} bytes are too many to keep beside the code");
}
