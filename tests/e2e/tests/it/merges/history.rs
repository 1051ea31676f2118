//! Histories of objects: writes of several managers, each by the means that such a manager has.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};
use taffrail_testkit::exchange;
use taffrail_testkit::kube::ControlPlane;

use super::MANAGER;
use super::draw::{Catalog, Edit, Kind, put};
use crate::harness::CLUSTER;

const PATIENCE: Duration = Duration::from_secs(60);

/// The maximum number of writes after the first one.
const WRITES: usize = 4;

/// The managers of others.
const OTHERS: [&str; 3] = ["kubectl-edit", "controller", "flux"];

/// `kubectl proxy`, by which requests reach the API server without TLS and tokens.
pub(super) struct Door {
    proxy: Child,
    address: SocketAddr,
}

impl Door {
    pub(super) fn open(plane: &ControlPlane) -> Door {
        let mut command = plane.kubectl_command(CLUSTER);
        let mut proxy = command
            .args(["proxy", "--port=0", "--address=127.0.0.1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("kubectl runs");
        let mut line = String::new();
        BufReader::new(proxy.stdout.take().expect("a pipe")).read_line(&mut line).expect("its address");
        let address = line.trim().rsplit(' ').next().and_then(|it| it.parse().ok()).expect("its address");
        Door { proxy, address }
    }

    /// Sends a request; returns the object, or the answer if it is no success.
    fn ask(&self, method: &str, path: &str, form: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = format!("Content-Type: {form}\r\nAccept: application/json\r\n");
        let (status, answer) =
            exchange(self.address, &format!("{method} /{path}"), &headers, &body, PATIENCE)
                .unwrap_or_else(|error| panic!("{error:#}"));
        match status {
            200..=299 => Ok(serde_json::from_str(&answer).expect("an object")),
            _ => Err(format!("{method} {path}: {status} {answer}")),
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // It may have ended with the control plane.
        let _ = self.proxy.kill();
        let _ = self.proxy.wait();
    }
}

/// A write of a history.
enum Write {
    /// Creates the object, as `kubectl create` and controllers do.
    Create(String, Value),
    /// Applies a manifest on the client's side, by kubectl.
    ClientApply(Value),
    /// Applies a manifest on the server's side.
    Apply { manager: String, object: Value, force: bool },
    /// Reads the object, changes it and replaces it.
    Replace(String, Vec<Edit>),
    /// Patches fields.
    Patch { manager: String, form: &'static str, patch: Value },
    /// Writes the status.
    Status(String, Edit),
    /// Scales the object by its subresource.
    Scale(String, u8),
}

/// An object's history, and what is wanted of it.
pub(super) struct Pair<'c> {
    pub(super) kind: &'c Kind,
    pub(super) name: String,
    writes: Vec<Write>,
    pub(super) wanted: Value,
    /// The descriptions of the writes, and what the server said of those that it refused.
    pub(super) told: Vec<String>,
    pub(super) refused: usize,
}

/// Returns the manifest after some edits.
fn edited(mut object: Value, edits: &[Edit]) -> Value {
    for (path, value) in edits {
        put(&mut object, path, value.as_ref());
    }
    object
}

impl<'c> Pair<'c> {
    pub(super) fn draw(catalog: &'c Catalog, number: usize, random: &mut Rng) -> Pair<'c> {
        let kind = catalog.kind(random);
        let name = format!("p{number}");
        let mut pair =
            Pair { kind, wanted: Value::Null, writes: Vec::new(), told: Vec::new(), refused: 0, name };
        // The manifest of our own, as it was at some time.
        let mut ours = pair.version(kind.manifest(&pair.name), random);
        if random.u8(0..30) > 0 {
            pair.writes.push(match random.u8(0..6) {
                0 => Write::Create((*random.choice(&OTHERS).expect("others")).to_owned(), ours.clone()),
                1 => Write::Create(MANAGER.to_owned(), ours.clone()),
                2 | 3 => Write::ClientApply(ours.clone()),
                _ => Write::Apply { manager: MANAGER.to_owned(), object: ours.clone(), force: true },
            });
            for _ in 0..random.usize(0..=WRITES) {
                pair.add(&mut ours, random);
            }
        }
        let mut wanted = match random.u8(0..8) {
            0 | 1 => ours,
            2..6 => pair.version(ours, random),
            _ => pair.version(kind.manifest(&pair.name), random),
        };
        catalog.reform(&mut wanted, random);
        pair.wanted = wanted;
        pair
    }

    /// Returns another version of a manifest.
    fn version(&self, manifest: Value, random: &mut Rng) -> Value {
        edited(manifest, &self.kind.edits(random.usize(0..5), &self.name, random))
    }

    fn add(&mut self, ours: &mut Value, random: &mut Rng) {
        let (kind, name) = (self.kind, self.name.clone());
        let manager = (*random.choice(&OTHERS).expect("others")).to_owned();
        let edits = kind.edits(random.usize(1..4), &name, random);
        let write = match random.u8(0..12) {
            0 | 1 => Write::Replace(manager, edits),
            2 => {
                let maps = edits.into_iter().filter(|(path, _)| path.iter().all(|it| !it.starts_with('[')));
                let edits: Vec<Edit> =
                    maps.map(|(path, value)| (path, value.or(Some(Value::Null)))).collect();
                let patch = edited(json!({}), &edits);
                Write::Patch { manager, form: "application/merge-patch+json", patch }
            }
            3 if !kind.custom => {
                let patch = edited(json!({}), &edits);
                Write::Patch { manager, form: "application/strategic-merge-patch+json", patch }
            }
            3..=5 => Write::Apply { manager, object: kind.part(&edits, &name), force: random.u8(0..3) > 0 },
            6 | 7 => {
                *ours = self.version(ours.clone(), random);
                Write::Apply { manager: MANAGER.to_owned(), object: ours.clone(), force: random.u8(0..4) > 0 }
            }
            8 | 9 => {
                *ours = self.version(ours.clone(), random);
                Write::ClientApply(ours.clone())
            }
            _ if kind.scale && random.bool() => Write::Scale("hpa".to_owned(), random.u8(1..5)),
            _ => match kind.status(&name, random) {
                Some(status) => Write::Status("controller".to_owned(), status),
                None => Write::Replace(manager, edits),
            },
        };
        self.writes.push(write);
    }

    /// Returns the path of the object.
    fn path(&self) -> String {
        let name = self.wanted["metadata"]["name"].as_str().unwrap_or_default();
        format!("{}/{name}", self.kind.path)
    }

    /// Does a write, unless kubectl has to.
    fn write(&mut self, number: usize, door: &Door) {
        const JSON: &str = "application/json";
        let path = self.path();
        let by = |path: &str, manager: &str| format!("{path}?fieldManager={manager}");
        let result = match &self.writes[number] {
            Write::ClientApply(_) => return,
            Write::Create(manager, object) => {
                self.told.push(format!("{manager} creates {object}"));
                door.ask("POST", &by(&self.kind.path, manager), JSON, object)
            }
            Write::Apply { manager, object, force } => {
                self.told.push(format!("{manager} applies (force {force}) {object}"));
                let place = format!("{}&force={force}", by(&path, manager));
                door.ask("PATCH", &place, "application/apply-patch+yaml", object)
            }
            Write::Replace(manager, edits) => {
                self.told.push(format!("{manager} replaces {edits:?}"));
                let live = door.ask("GET", &path, JSON, &Value::Null);
                live.and_then(|live| door.ask("PUT", &by(&path, manager), JSON, &edited(live, edits)))
            }
            Write::Patch { manager, form, patch } => {
                self.told.push(format!("{manager} patches ({form}) {patch}"));
                door.ask("PATCH", &by(&path, manager), form, patch)
            }
            Write::Status(manager, edit) => {
                self.told.push(format!("{manager} writes the status {edit:?}"));
                let patch = edited(json!({}), std::slice::from_ref(edit));
                door.ask(
                    "PATCH",
                    &by(&format!("{path}/status"), manager),
                    "application/merge-patch+json",
                    &patch,
                )
            }
            Write::Scale(manager, replicas) => {
                self.told.push(format!("{manager} scales to {replicas}"));
                let patch = json!({"spec": {"replicas": replicas}});
                door.ask(
                    "PATCH",
                    &by(&format!("{path}/scale"), manager),
                    "application/merge-patch+json",
                    &patch,
                )
            }
        };
        if let Err(why) = result {
            self.refused += 1;
            self.told.push(format!("refused: {why}"));
        }
    }
}

/// The number of threads that write.
const WRITERS: usize = 4;

/// Writes the histories of all pairs; returns the number of writes.
pub(super) fn write_all(pairs: &mut [Pair<'_>], plane: &ControlPlane) -> usize {
    let door = Door::open(plane);
    for number in 0..=WRITES {
        let share = pairs.len().div_ceil(WRITERS).max(1);
        std::thread::scope(|scope| {
            for some in pairs.chunks_mut(share) {
                let door = &door;
                scope.spawn(move || {
                    let some = some.iter_mut().filter(|pair| number < pair.writes.len());
                    some.for_each(|pair| pair.write(number, door));
                });
            }
        });
        // One kubectl for all: starting it takes longer than most writes.
        let mut manifests = Vec::new();
        for pair in pairs.iter_mut() {
            if let Some(Write::ClientApply(object)) = pair.writes.get(number) {
                pair.told.push(format!("kubectl applies {object}"));
                manifests.push(object.clone());
            }
        }
        kubectl_apply(plane, &manifests, &[]);
    }
    pairs.iter().map(|pair| pair.writes.len()).sum()
}

/// Applies objects by kubectl, which goes on after those that the server refuses; returns what it said of these.
pub(super) fn kubectl_apply(plane: &ControlPlane, objects: &[Value], more: &[&str]) -> String {
    if objects.is_empty() {
        return String::new();
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("objects.yaml");
    let text: String = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    std::fs::write(&file, text).expect("a file");
    let mut command = plane.kubectl_command(CLUSTER);
    let output = command.arg("apply").args(more).arg("-f").arg(&file).output().expect("kubectl runs");
    String::from_utf8_lossy(&output.stderr).into_owned()
}
