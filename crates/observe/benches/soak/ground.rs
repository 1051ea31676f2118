//! The writes, and the simulated or real server that they go to.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_cluster::WatchSettings;
use taffrail_testkit::objects::{namespace, widgets};

use crate::Outcome;
use crate::real::Real;
use crate::simulated::Simulated;

pub(crate) const NAMESPACE: &str = "soak";

/// A write to the server.
pub(crate) enum Change {
    /// Creates the object, or changes it to this.
    Apply(Value),
    /// Deletes the object if it exists.
    Delete { api_version: &'static str, kind: &'static str, name: String },
}

impl Change {
    pub(crate) fn random(random: &mut fastrand::Rng) -> Change {
        let name = random.u64(0..250);
        match random.u8(0..20) {
            0..10 => Change::Apply(config_map(name, random.u64(..))),
            10..12 => Change::Delete { api_version: "v1", kind: "ConfigMap", name: format!("map-{name}") },
            12..14 => Change::Apply(widget(name, random.bool())),
            14 => Change::Delete {
                api_version: "example.com/v1",
                kind: "Widget",
                name: format!("widget-{name}"),
            },
            // Rollouts bring ten changes each; they are to be some of the writes.
            15 if random.u8(0..10) == 0 => {
                Change::Apply(deployment(random.u64(0..40), random.i64(0..4), random.u64(0..3)))
            }
            // What elections write again and again.
            _ => Change::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "leader", "namespace": NAMESPACE, "annotations": {"renewed": random.u64(..).to_string()}}})),
        }
    }
}

fn config_map(name: u64, value: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("map-{name}"), "namespace": NAMESPACE},
        "data": {"value": value.to_string()}})
}

fn widget(name: u64, ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": format!("widget-{name}"), "namespace": NAMESPACE},
        "status": {"conditions": [{"type": "Ready", "status": status, "reason": "Random", "message": "it fell so"}]}})
}

fn deployment(name: u64, replicas: i64, image: u64) -> Value {
    let name = format!("web-{name}");
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": format!("web:{image}")}]}}}})
}

/// Number of disturbances of each sort.
pub(crate) type Counts = BTreeMap<String, u64>;

/// The server that is written to, disturbed and followed.
pub(crate) enum Ground {
    Simulated(Simulated),
    Real(Real),
}

impl Ground {
    /// Creates the objects that exist from the beginning.
    pub(crate) async fn furnish(&self, random: &mut fastrand::Rng) -> Outcome<()> {
        for object in [namespace(NAMESPACE), widgets()] {
            self.write_at_last(object).await?;
        }
        for name in 0..200 {
            self.write_at_last(config_map(name, 0)).await?;
        }
        for name in 0..100 {
            self.write_at_last(widget(name, random.bool())).await?;
        }
        for name in 0..40 {
            self.write_at_last(deployment(name, 2, 0)).await?;
        }
        Ok(())
    }

    /// Writes an object, and retries until it succeeds or [`PATIENCE`](crate::PATIENCE) is over: a kind that was just
    /// defined is not served for a moment.
    async fn write_at_last(&self, object: Value) -> Outcome<()> {
        let begun = Instant::now();
        loop {
            match self.write(Change::Apply(object.clone())).await {
                Ok(()) => return Ok(()),
                Err(error) if begun.elapsed() > crate::PATIENCE => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Returns the kubeconfig of the index, whose connections are disturbed.
    pub(crate) fn followed(&self) -> &Path {
        match self {
            Ground::Simulated(own) => own.kubeconfig(),
            Ground::Real(own) => own.followed(),
        }
    }

    /// Returns the kubeconfig by which the true objects are read; with a real server its connections are not disturbed.
    pub(crate) fn kubeconfig(&self) -> &Path {
        match self {
            Ground::Simulated(own) => own.kubeconfig(),
            Ground::Real(own) => own.kubeconfig(),
        }
    }

    /// Returns settings of watches with short times, so that half an hour shows what otherwise takes longer.
    pub(crate) fn settings(&self) -> WatchSettings {
        let mut feeds = WatchSettings::default();
        feeds.probe_after = Duration::from_secs(2);
        feeds.probe_timeout = Duration::from_secs(1);
        feeds.longest_pause = Duration::from_secs(2);
        feeds.answer_timeout = Duration::from_secs(6);
        if let Ground::Simulated(_) = self {
            feeds.silence = Duration::from_secs(4);
        }
        feeds
    }

    /// Returns the maximum time until it is noticed that a watch brings nothing any more, or that a server's state was
    /// set back.
    pub(crate) fn noticed_within(&self) -> Duration {
        match self {
            // Silence, a question that hangs, and the pauses after it.
            Ground::Simulated(_) => self.settings().silence + self.settings().answer_timeout,
            // A connection that is dead is found out by its pings.
            Ground::Real(_) => Duration::from_secs(25),
        }
    }

    /// Returns the number of concurrent writers.
    pub(crate) fn writers(&self) -> u64 {
        match self {
            Ground::Simulated(_) => 1,
            Ground::Real(_) => 16,
        }
    }

    pub(crate) async fn write(&self, change: Change) -> Outcome<()> {
        match self {
            Ground::Simulated(own) => own.write(change),
            Ground::Real(own) => own.write(change).await,
        }
    }

    /// Disturbs the server or the connections to it in a random way; returns the name of the disturbance.
    pub(crate) async fn trouble(&self, random: &mut fastrand::Rng) -> Outcome<String> {
        match self {
            Ground::Simulated(own) => Ok(own.trouble(random)),
            Ground::Real(own) => own.trouble(random).await,
        }
    }

    /// Makes the server silent until [`Ground::lighten`]; returns the name of the disturbance.
    pub(crate) async fn darken(&self, random: &mut fastrand::Rng) -> Outcome<String> {
        match self {
            Ground::Simulated(own) => Ok(own.darken()),
            Ground::Real(own) => own.darken(random).await,
        }
    }

    /// Makes a server answer again that was made silent at `since`.
    pub(crate) async fn lighten(&self, since: Instant) -> Outcome<()> {
        match self {
            Ground::Simulated(own) => own.lighten(),
            Ground::Real(own) => own.lighten(since).await?,
        }
        Ok(())
    }

    /// Ends all disturbances.
    pub(crate) async fn heal(&self) -> Outcome<()> {
        match self {
            Ground::Simulated(own) => own.heal(),
            Ground::Real(own) => own.heal().await?,
        }
        Ok(())
    }

    /// Ends a round, after the writers ended. Now and then it sets the server back to an older state, and returns a
    /// description of that.
    pub(crate) async fn finish_round(&self, random: &mut fastrand::Rng) -> Outcome<Option<String>> {
        match self {
            Ground::Simulated(own) => own.finish_round(random),
            Ground::Real(own) => own.finish_round(random).await,
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        match self {
            Ground::Simulated(own) => own.counts(),
            Ground::Real(own) => own.counts(),
        }
    }
}
