//! The faults, which occur and heal in rounds: each is a file in `faults/`, whose placeholders are filled in for each
//! round.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use taffrail_object::yaml;
use taffrail_sim::{Clock, Timeline};

use super::managers::status_manager;
use super::objects::{artifact, manager_in, revision};
use super::template::{fill, hash};
use super::tools::ControlledCluster;
use super::{Declared, WorldError};

/// Duration of a round of faults, after which the next round begins.
const ROUND: Duration = Duration::from_secs(300);

/// The texts of the files in `faults/`, one for each fault.
const FAULTS: [&str; 13] = [
    include_str!("faults/bad-image.yaml"),
    include_str!("faults/quota.yaml"),
    include_str!("faults/dark.yaml"),
    include_str!("faults/crash-loop.yaml"),
    include_str!("faults/node-lost.yaml"),
    include_str!("faults/drift.yaml"),
    include_str!("faults/behind.yaml"),
    include_str!("faults/finalizer.yaml"),
    include_str!("faults/source.yaml"),
    include_str!("faults/suspended.yaml"),
    include_str!("faults/routine.yaml"),
    include_str!("faults/edge.yaml"),
    include_str!("faults/vendor.yaml"),
];

/// Returns the images that faults deploy although the simulated registry does not have them.
pub(super) fn missing_images() -> [&'static str; 2] {
    ["ghcr.io/acme/shop/web:1.6.0", "ghcr.io/acme/lockers/door:1.9.0"]
}

/// A part of a fault's file: the clusters in which it occurs, its time from the start of a round, and its timeline
/// steps.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scene {
    at: String,
    clusters: Vec<String>,
    steps: Vec<Value>,
}

/// The facts about one cluster from which the placeholders of all faults are filled in there.
struct FaultFacts<'p> {
    seed: u64,
    declared: &'p Declared,
    cluster: &'p str,
    branch: &'p str,
    servers: Vec<(String, String)>,
    /// The texts of `states.yaml`, by name.
    states: &'p BTreeMap<String, String>,
}

impl FaultFacts<'_> {
    /// Returns the value of the placeholder `place` of a fault file in a round, counted from 0; `None` if there is
    /// no such placeholder.
    fn value(&self, place: &str, round: u64) -> Option<String> {
        let mut words = place.split(' ');
        let (what, first, second) = (words.next()?, words.next(), words.next());
        let revision = || Some(revision(self.seed, first?, self.branch, &format!("{}-{round}", second?)));
        let chart = |minor: u64, patch: u64| format!("0.{minor}.{patch}");
        match what {
            "revision" => revision(),
            "hash" => Some(hash(self.seed, &[self.cluster, first?, &round.to_string()], 64)),
            "server" => {
                self.servers.iter().find(|(name, _)| Some(name.as_str()) == first).map(|it| it.1.clone())
            }
            "bad" => Some(chart(10 + round, 0)),
            "after" => Some(chart(10 + round, 1)),
            "before" if round == 0 => Some(chart(9, 2)),
            "before" => Some(chart(9 + round, 1)),
            state => {
                let revision = revision()?;
                let values = |place: &str| match place {
                    "artifact" => Some(artifact(first?, &revision, "${NOW}").to_string()),
                    "revision" => Some(revision.clone()),
                    _ => None,
                };
                fill(self.states.get(state)?, values).ok()
            }
        }
    }

    /// Returns a timeline step with a field manager; one that writes no object unchanged. If it names none: the
    /// reporter for an Event, the kubelet for a Node, the kind's controller for a write of status, else the tool that
    /// delivers to the object's namespace.
    fn written(&self, mut step: Value) -> Value {
        let of = |key: &str| step.get(key).filter(|object| object.is_object());
        let Some(object) = of("object").or_else(|| of("patch")) else { return step };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let is_of_status = step["with"].get("status").is_some();
        let manager = match &*kind {
            "Event" => text(&object["reportingComponent"]),
            "Node" => "kubelet".to_owned(),
            _ if is_of_status => status_manager(group, &kind).to_owned(),
            _ => manager_in(self.declared, self.cluster, &text(&object["metadata"]["namespace"])).to_owned(),
        };
        if let Some(step) = step.as_object_mut() {
            step.entry("by").or_insert(Value::String(manager));
        }
        step
    }

    /// Returns the timeline of round number `round` (from 0) in this cluster: the steps of all of its faults, with all
    /// placeholders filled in.
    fn timeline(&self, round: u64) -> Result<Timeline, WorldError> {
        let mut steps = Vec::new();
        for text in FAULTS {
            let text = fill(text, |place| self.value(place, round))?;
            let scenes: Vec<Scene> =
                yaml::read_strict(&text).map_err(|error| WorldError::Declared(error.to_string()))?;
            for scene in scenes.into_iter().filter(|scene| scene.clusters.iter().any(|it| it == self.cluster))
            {
                let written = scene.steps.into_iter().map(|step| self.written(step)).collect::<Vec<_>>();
                steps.push(serde_json::json!({"at": scene.at, "steps": written}));
            }
        }
        Ok(Timeline::read(&Value::Array(steps).to_string())?)
    }
}

/// Starts the first round of faults in each cluster that has some, and schedules the next rounds. At the start of a
/// round its commits are added to the clusters' repositories.
pub(super) fn begin(
    declared: &Declared,
    places: &[ControlledCluster],
    clock: &Clock,
    seed: u64,
) -> Result<(), WorldError> {
    let states: BTreeMap<String, String> = yaml::read_strict(include_str!("states.yaml"))
        .map_err(|error| WorldError::Declared(error.to_string()))?;
    let servers: Vec<(String, String)> =
        places.iter().map(|it| (it.cluster.name().to_owned(), it.cluster.url())).collect();
    for ControlledCluster { cluster, repository } in places {
        let member = declared.clusters.iter().find(|member| member.name == cluster.name());
        let branch = member.map(|member| member.branch.clone()).unwrap_or_default();
        let name = cluster.name().to_owned();
        let (declared, servers, states) = (declared.clone(), servers.clone(), states.clone());
        let timeline = move |round| {
            let part = FaultFacts {
                seed,
                declared: &declared,
                cluster: &name,
                branch: &branch,
                servers: servers.clone(),
                states: &states,
            };
            part.timeline(round)
        };
        // A round that parses once always parses: only hashes and versions differ.
        if timeline(0)?.is_empty() {
            continue;
        }
        let (clock, repository) = (clock.clone(), repository.clone());
        cluster.play_again(ROUND, move |round| {
            let timeline = timeline(round).unwrap_or_default();
            repository.commit(&timeline, clock.now());
            timeline
        });
    }
    Ok(())
}
