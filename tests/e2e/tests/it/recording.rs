//! Records a scenario: the events in its clusters, and Taffrail's answers meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use taffrail_testkit::kube::{ControlPlane, Options};
use tempfile::TempDir;

use crate::harness::{Answer, CLUSTER, run};
use crate::stage::Who;
use crate::timeline::{self, Head, Look, Scene, Timelines, normal};

/// Kinds of which a new cluster has many objects, always the same.
const BASE: [&str; 5] =
    ["APIService", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "PriorityClass"];

/// A control plane for one recording.
pub(crate) struct Recording {
    name: String,
    recorders: Vec<Recorder>,
    folder: TempDir,
    script: Vec<(Option<u64>, Scene)>,
    plane: Arc<ControlPlane>,
}

/// The process that records a cluster.
struct Recorder {
    context: String,
    child: Child,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A change of an object.
struct Change {
    cluster: usize,
    revision: u64,
    time: Timestamp,
    initial: bool,
    deleted: bool,
    object: Value,
}

/// An entry in the sequence of a recording: a change of an object, or a run of Taffrail, by its index in the script.
enum Happened {
    Change(Change),
    Look(usize),
}

impl Recording {
    pub(crate) fn start(name: &str, clusters: usize) -> Self {
        let options = Options {
            name: format!("replay-{}", std::process::id()),
            clusters,
            nodes: 3,
            ..Options::default()
        };
        let plane = ControlPlane::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
        let folder = tempfile::tempdir().expect("a folder");
        let mut recorders = Vec::new();
        for context in plane.contexts() {
            let mut command = plane.recorder(context).expect("a cluster of this name");
            let child = command
                .arg("-")
                .arg(folder.path().join(context))
                .env("KEEP_HELM", "1")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("the recorder starts");
            let mut recorder = Recorder { context: context.to_owned(), child };
            let mut line = String::new();
            let output = recorder.child.stdout.take().expect("its output");
            BufReader::new(output).read_line(&mut line).expect("it speaks");
            assert_eq!(line, "ready\n", "the recorder of {context}");
            recorders.push(recorder);
        }
        Self { name: name.to_owned(), recorders, folder, script: Vec::new(), plane: Arc::new(plane) }
    }

    pub(crate) fn plane(&self) -> Arc<ControlPlane> {
        Arc::clone(&self.plane)
    }

    /// Adds a reply of Kubernetes to the recording, and returns it.
    pub(crate) fn remember(&mut self, fact: Value) -> Value {
        self.script.push((None, Scene::Fact(fact.clone())));
        fact
    }

    /// Runs `taffrail` as `who` while the controllers are paused, again if something changed meanwhile, so that the
    /// answer belongs to one moment. Records the answer and returns it. `silent` is the URL of a server that takes the
    /// place of the second cluster.
    pub(crate) fn look(
        &mut self,
        who: Who,
        arguments: &[&str],
        kubeconfig: &OsStr,
        silent: Option<&str>,
    ) -> Answer {
        let revision = || self.plane.revision(CLUSTER).unwrap_or_else(|error| panic!("{error:#}"));
        let held = self.plane.hold().unwrap_or_else(|error| panic!("{error:#}"));
        for _ in 0..20 {
            let before = revision();
            if revision() != before {
                continue;
            }
            let now = Timestamp::now();
            let text = now.to_string();
            let answer = run(kubeconfig, &[arguments, &["--now", &text]].concat());
            if revision() != before {
                continue;
            }
            drop(held);
            let members = self.plane.members().iter();
            let mut servers: Vec<_> =
                members.map(|member| (member.context.clone(), member.server.clone())).collect();
            if let (Some(silent), Some(second)) = (silent, self.plane.members().get(1)) {
                servers.push((second.context.clone(), silent.to_owned()));
            }
            let look = Look {
                at: 0,
                now,
                who: format!("{who:?}"),
                arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
                code: answer.code,
                stdout: normal(&answer.stdout, &servers),
                stderr: normal(&answer.stderr, &servers),
            };
            self.script.push((Some(before), Scene::Look(look)));
            return answer;
        }
        panic!("{}: something changes all the time although the controllers are held", self.name);
    }

    /// Ends the recording and writes it.
    pub(crate) fn finish(mut self) {
        let mut changes = Vec::new();
        for (cluster, recorder) in self.recorders.iter_mut().enumerate() {
            // Closing stdin is its signal to end.
            drop(recorder.child.stdin.take());
            let status = recorder.child.wait().expect("the recorder ends");
            assert!(status.success(), "the recorder of {} ended with {status}", recorder.context);
            let text = fs::read_to_string(self.folder.path().join(&recorder.context));
            changes.extend(text.expect("the history").lines().map(|line| Change::read(cluster, line)));
        }
        let began = changes.iter().map(|change| change.time).min().expect("a cluster has objects");
        let mut happened: Vec<(u64, Happened)> = Vec::new();
        let (initial, later): (Vec<Change>, Vec<Change>) =
            changes.into_iter().partition(|change| change.initial);
        happened.extend(later.into_iter().map(|change| (change.revision, Happened::Change(change))));
        let looks = self.script.iter().enumerate();
        happened
            .extend(looks.filter_map(|(index, (revision, _))| Some(((*revision)?, Happened::Look(index)))));
        // A look at a revision sees its change.
        happened.sort_by_key(|(revision, it)| (*revision, matches!(it, Happened::Look(_))));
        // No look sees the changes after the last one.
        let end = happened.iter().rposition(|(_, it)| matches!(it, Happened::Look(_))).unwrap_or(0);
        happened.truncate(end + 1);

        let mut clusters = vec![Encoder::default(); self.recorders.len()];
        let base = base(&initial);
        for (cluster, encoder) in clusters.iter_mut().enumerate() {
            encoder.begin(initial.iter().filter(|change| change.cluster == cluster), &base);
        }
        let mut at = 0;
        for (_, it) in happened {
            // Changes must not share a time: their order is that of the revisions.
            let own = |time: Timestamp| u64::try_from(time.duration_since(began).as_micros()).unwrap_or(0);
            match it {
                Happened::Change(change) => {
                    at = own(change.time).max(at + 1);
                    clusters[change.cluster].change(at, change);
                }
                Happened::Look(index) => {
                    if let Some((_, Scene::Look(look))) = self.script.get_mut(index) {
                        at = own(look.now).max(at + 1);
                        look.at = at;
                    }
                }
            }
        }
        let version: Value = serde_json::from_str(
            &self.plane.kubectl(CLUSTER, &["get", "--raw", "/version"]).expect("a version"),
        )
        .expect("JSON");
        let contexts = self.recorders.iter().map(|recorder| recorder.context.clone());
        let timelines = Timelines {
            head: Head {
                begin: began,
                version: version["gitVersion"].as_str().unwrap_or_default().to_owned(),
            },
            clusters: contexts.zip(clusters.into_iter().map(|encoder| encoder.text)).collect(),
            script: self.script.into_iter().map(|(_, scene)| scene).collect(),
        };
        timelines.write(&self.name);
    }
}

impl Change {
    fn read(cluster: usize, line: &str) -> Self {
        let mut line: Value = serde_json::from_str(line).expect("a line of JSON");
        Self {
            cluster,
            revision: line["revision"].as_u64().expect("a revision"),
            time: line["time"].as_str().and_then(|time| time.parse().ok()).expect("a time"),
            initial: line["initial"] == true,
            deleted: line["deleted"] == true,
            object: line["object"].take(),
        }
    }
}

/// Returns the fields that identify an object.
fn identity(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut named = json!({"name": metadata["name"]});
    if metadata["namespace"].is_string() {
        named["namespace"] = metadata["namespace"].clone();
    }
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": named})
}

/// Returns the objects that all clusters share, by identity. The first recording creates the file.
fn base(initial: &[Change]) -> BTreeMap<String, Value> {
    let file = timeline::file("base");
    if !file.exists() {
        let of_first = initial.iter().filter(|change| change.cluster == 0);
        let objects = of_first.map(|change| &change.object);
        let mut text = String::new();
        for object in objects.filter(|object| BASE.iter().any(|kind| object["kind"] == *kind)) {
            let _ = writeln!(text, "{object}");
        }
        timeline::write(&file, &text);
    }
    let objects = timeline::read(&file);
    let objects = objects.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    objects.map(|object| (identity(&object).to_string(), object)).collect()
}

/// Removes the fields that differ in every cluster: uids and times.
fn lasting(value: &Value) -> Value {
    match value {
        Value::String(text) if text.parse::<Timestamp>().is_ok() => Value::Null,
        Value::Array(items) => items.iter().map(lasting).collect(),
        Value::Object(members) => members
            .iter()
            .filter(|(key, _)| *key != "uid")
            .map(|(key, value)| (key.clone(), lasting(value)))
            .collect(),
        plain => plain.clone(),
    }
}

/// Writes the timeline of a cluster.
#[derive(Clone, Default)]
struct Encoder {
    known: BTreeMap<String, Value>,
    text: String,
}

impl Encoder {
    fn step(&mut self, at: u64, step: &Value) {
        let step = step.to_string();
        let rest = step.get(1..).unwrap_or_default();
        let _ = writeln!(self.text, "- {{\"at\":\"{}.{:06}s\",{rest}", at / 1_000_000, at % 1_000_000);
    }

    fn begin<'a>(&mut self, initial: impl Iterator<Item = &'a Change>, base: &BTreeMap<String, Value>) {
        let mut seen = BTreeSet::new();
        for Change { object, .. } in initial {
            let key = identity(object).to_string();
            if base.get(&key).is_none_or(|common| lasting(common) != lasting(object)) {
                self.step(0, &json!({ "object": object }));
            }
            self.known.insert(key.clone(), object.clone());
            seen.insert(key);
        }
        for missing in base.iter().filter(|(key, _)| !seen.contains(*key)) {
            self.step(0, &json!({"delete": identity(missing.1)}));
        }
    }

    fn change(&mut self, at: u64, change: Change) {
        let named = identity(&change.object);
        let key = named.to_string();
        if change.deleted {
            self.known.remove(&key);
            return self.step(at, &json!({ "delete": named }));
        }
        let step = self.known.get(&key).and_then(|before| {
            let with = difference(before, &change.object);
            // A patch cannot set a field to null.
            let mut after = before.clone();
            merge(&mut after, &with);
            (after == change.object).then(|| json!({"patch": named, "with": with}))
        });
        let step = step.unwrap_or_else(|| json!({"object": change.object}));
        self.step(at, &step);
        self.known.insert(key, change.object);
    }
}

/// Returns the merge patch from one value to another.
fn difference(before: &Value, after: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (before, after) else { return after.clone() };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(key) {
            Some(known) if known == value => {}
            Some(known) => drop(patch.insert(key.clone(), difference(known, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(patch)
}

/// Applies a merge patch by RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(members) = target.as_object_mut() else { return };
    for (key, value) in patch {
        match value {
            Value::Null => drop(members.remove(key)),
            value => merge(members.entry(key.clone()).or_insert(Value::Null), value),
        }
    }
}
