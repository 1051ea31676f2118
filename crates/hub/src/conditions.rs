//! The status of clusters, written back as conditions of the objects that stand for them in management clusters.
//!
//! Only objects that prove for which cluster they stand get conditions, and only in management clusters that the hub reads
//! itself. A condition is written when its status or reason becomes another one, never for a new message.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use taffrail_api::conditions::{APPS_READY, ClusterCondition, ConditionStatus, ConditionsWritten, LIVE};
use taffrail_apps::FreshnessState;
use taffrail_apps::text::moment;
use taffrail_object::ObjectKey;
use taffrail_status::Status;
use tokio::time::MissedTickBehavior;

use crate::index::{AppCounts, FleetIndex, FleetView, ManagedClusters};

/// Interval at which the conditions of all clusters are compared with those that were written.
const INTERVAL: Duration = Duration::from_secs(5);

/// The time for which a cluster must have another status before that is written: one that comes and goes is not.
const SETTLED: Duration = Duration::from_secs(10);

/// Minimum time between two writes into one object.
const PAUSE: Duration = Duration::from_secs(30);

/// Time without writes into a management cluster that did not answer one: twice as long each time, up to
/// [`AFTER_REFUSAL`].
const AFTER_SILENCE: Duration = Duration::from_secs(30);

/// The time after which the object is looked at again, since another client may have written its conditions.
const RECHECK: Duration = Duration::from_secs(600);

/// Time without a write into an object that the management cluster refused, or that cannot take conditions.
const AFTER_REFUSAL: Duration = Duration::from_secs(600);

/// Maximum number of writes at one time, each into another management cluster.
const AT_ONCE: usize = 8;

/// Maximum number of reasons for missing writes that are told; then one tells that there are more.
const MAX_TOLD: usize = 100;

/// The conditions of a cluster.
type Conditions = [ClusterCondition; 2];

/// Conditions to write into an object of a management cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionsWrite {
    /// The name of the management cluster.
    pub home: String,
    /// The object.
    pub object: ObjectKey,
    /// All conditions that the object is to have from this hub.
    pub conditions: Vec<ClusterCondition>,
}

/// Writes conditions into objects of management clusters. The binary implements it.
pub trait WriteConditions: Send + Sync {
    /// Returns a future that writes the conditions of `write`, and no other field of the object, within a bounded time.
    fn write(&self, write: ConditionsWrite) -> BoxFuture<'_, ConditionsWritten>;
}

/// Writes the conditions of all clusters as they turn; `tell` gets each reason for which an object has none. Never ends.
pub async fn keep_conditions(
    index: Arc<FleetIndex>,
    writer: &dyn WriteConditions,
    tell: impl Fn(&str) + Send,
) {
    let mut keeper = ConditionKeeper::default();
    let mut running = FuturesUnordered::new();
    let mut tick = tokio::time::interval(INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = 0;
    loop {
        tokio::select! {
            _ = tick.tick() => keeper.look(&index.view()),
            Some((target, written)) = running.next(), if !running.is_empty() => {
                let reason = keeper.finish(&target, written, index.clock().time().at);
                told += usize::from(reason.is_some());
                match reason {
                    Some(reason) if told <= MAX_TOLD => tell(&reason),
                    Some(_) if told == MAX_TOLD + 1 => tell("further objects get no conditions"),
                    _ => {}
                }
            }
        }
        for write in keeper.begin(index.clock().time().at) {
            running.push(async move {
                let target = (write.home.clone(), write.object.clone());
                (target, writer.write(write).await)
            });
        }
    }
}

/// A management cluster by name, and an object in it.
type Target = (String, ObjectKey);

/// The objects that stand for clusters, with what was written into each and what waits.
#[derive(Debug, Default)]
struct ConditionKeeper {
    objects: HashMap<Target, KnownObject>,
    /// The management clusters that did not answer, each with the moment until which it rests and the number of writes in
    /// sequence that it did not answer.
    silent: HashMap<String, (Duration, u32)>,
    /// The management clusters into which a write runs.
    running: HashSet<String>,
}

/// An object that stands for a cluster.
#[derive(Debug)]
struct KnownObject {
    /// The conditions that were written, and the moment at which that was seen.
    written: Option<(Conditions, Duration)>,
    /// The conditions of the cluster, and the moment since which they have been these.
    wanted: (Conditions, Duration),
    /// The conditions that are being written.
    sent: Option<Conditions>,
    /// The moment before which it is not written.
    next: Duration,
    /// True if the reason why it has no conditions was told.
    was_told: bool,
}

impl ConditionKeeper {
    /// Takes the present state of all clusters.
    fn look(&mut self, view: &FleetView) {
        let now = view.moment().at;
        let managed = ManagedClusters::of(view);
        let mut present = HashSet::new();
        for (place, home, object) in managed.proved_by_own_homes() {
            let Some(conditions) = conditions(view, place) else { continue };
            let target = (home.to_owned(), object.clone());
            present.insert(target.clone());
            let known = self.objects.entry(target).or_insert_with(|| KnownObject {
                written: None,
                wanted: (conditions.clone(), now),
                sent: None,
                next: Duration::ZERO,
                was_told: false,
            });
            let is_as = same(&known.wanted.0, &conditions);
            known.wanted = (conditions, if is_as { known.wanted.1 } else { now });
        }
        self.objects.retain(|target, known| present.contains(target) || known.sent.is_some());
        self.silent.retain(|home, _| present.iter().any(|(it, _)| it == home));
    }

    /// Returns the writes that are to be made now, those that wait for longest first; each must be
    /// [finished](ConditionKeeper::finish).
    fn begin(&mut self, now: Duration) -> Vec<ConditionsWrite> {
        let is_awake = |home: &String| self.silent.get(home).is_none_or(|(until, _)| *until <= now);
        let due = self.objects.iter_mut().filter(|((home, _), known)| known.is_due(now) && is_awake(home));
        let mut waiting: Vec<(&Target, &mut KnownObject)> = due.collect();
        waiting.sort_by(|one, other| (one.1.wanted.1, one.0).cmp(&(other.1.wanted.1, other.0)));
        let mut writes = Vec::new();
        for ((home, object), known) in waiting {
            if self.running.len() == AT_ONCE || !self.running.insert(home.clone()) {
                continue;
            }
            known.sent = Some(known.wanted.0.clone());
            let conditions = known.wanted.0.to_vec();
            writes.push(ConditionsWrite { home: home.clone(), object: object.clone(), conditions });
        }
        writes
    }

    /// Takes the result of a write; returns the reason to tell if the object has no conditions.
    fn finish(&mut self, target: &Target, written: ConditionsWritten, now: Duration) -> Option<String> {
        let (home, object) = target;
        self.running.remove(home);
        match written {
            ConditionsWritten::Unanswered(_) => {
                let (until, times) = self.silent.entry(home.clone()).or_default();
                *until = now + AFTER_SILENCE.saturating_mul(1 << (*times).min(5)).min(AFTER_REFUSAL);
                *times += 1;
            }
            _ => drop(self.silent.remove(home)),
        }
        let known = self.objects.get_mut(target)?;
        let sent = known.sent.take();
        known.next = now + PAUSE;
        let reason = match written {
            ConditionsWritten::Done => {
                (known.written, known.was_told) = (sent.map(|sent| (sent, now)), false);
                return None;
            }
            ConditionsWritten::Outdated => return None,
            ConditionsWritten::Unsuited(reason) | ConditionsWritten::Refused(reason) => {
                known.next = now + AFTER_REFUSAL;
                reason
            }
            ConditionsWritten::Unanswered(reason) => reason,
        };
        let told =
            format!("{} {} of cluster {home} gets no conditions: {reason}", object.kind, object.path());
        (!std::mem::replace(&mut known.was_told, true)).then_some(told)
    }
}

impl KnownObject {
    fn is_due(&self, now: Duration) -> bool {
        let (wanted, since) = &self.wanted;
        let is_as = |(written, at): &(Conditions, Duration)| same(written, wanted) && *at + RECHECK > now;
        let is_written = self.written.as_ref().is_some_and(is_as);
        self.sent.is_none() && !is_written && self.next <= now && *since + SETTLED <= now
    }
}

fn same(one: &Conditions, other: &Conditions) -> bool {
    one.iter().zip(other).all(|(one, other)| !one.turns_into(other))
}

/// Returns the conditions of the cluster at a place; `None` if it was never observed.
fn conditions(view: &FleetView, place: usize) -> Option<Conditions> {
    let (freshness, counts) = view.cluster_counts(place)?;
    let at = moment(freshness.observed_at?);
    let (status, reason, message) = match freshness.state {
        FreshnessState::Live => (ConditionStatus::True, "Live", "the API server answers".to_owned()),
        FreshnessState::Stale => (
            ConditionStatus::Unknown,
            "Stale",
            format!("the API server has given no sign of life since {at}"),
        ),
        FreshnessState::Lost => {
            (ConditionStatus::False, "Lost", format!("the API server has not answered since {at}"))
        }
    };
    let live = ClusterCondition { condition_type: LIVE, status, reason, message };
    let (status, reason, message) = match freshness.is_live() {
        true => of_apps(&counts),
        false => (ConditionStatus::Unknown, "NotLive", format!("the apps were last observed {at}")),
    };
    let apps_ready = ClusterCondition { condition_type: APPS_READY, status, reason, message };
    Some([live, apps_ready])
}

/// Returns status, reason and message of [`APPS_READY`] for the apps of a live cluster.
fn of_apps(counts: &AppCounts) -> (ConditionStatus, &'static str, String) {
    let AppCounts { worst, apps, pressing, .. } = *counts;
    let message = format!("{} of {apps} apps are ready", apps.saturating_sub(pressing));
    let (status, reason) = match worst {
        _ if counts.is_unread => (ConditionStatus::Unknown, "Unread"),
        _ if apps == 0 => return (ConditionStatus::True, "NoApps", "the cluster has no apps".to_owned()),
        _ if pressing == 0 => (ConditionStatus::True, "Ready"),
        Status::Unknown => (ConditionStatus::Unknown, "Unknown"),
        Status::Failed => (ConditionStatus::False, "Failed"),
        Status::NotFound => (ConditionStatus::False, "NotFound"),
        Status::Terminating => (ConditionStatus::False, "Terminating"),
        Status::InProgress => (ConditionStatus::False, "InProgress"),
        // All objects are as they were declared, and the delivery of an app has a problem.
        Status::Current => (ConditionStatus::False, "DeliveryProblem"),
    };
    (status, reason, message)
}

#[cfg(test)]
mod tests {
    use taffrail_api::report::{ClusterReport, Content, ManagedCluster};
    use taffrail_status::{ClusterNames, NamedCluster};

    use super::*;
    use crate::agents::AGENT;
    use crate::index::samples::{SampleFleet, app, observed};

    fn object(name: &str) -> ObjectKey {
        ObjectKey::new("cluster.x-k8s.io", "Cluster", "fleet", name)
    }

    /// Returns an object that stands for the cluster with the identity `name`, proved or claimed.
    fn managed(name: &str, is_proved: bool) -> ManagedCluster {
        let named = ClusterNames { ids: vec![name.to_owned()], ..ClusterNames::default() };
        let (observed, claimed) =
            if is_proved { (named, ClusterNames::default()) } else { (ClusterNames::default(), named) };
        ManagedCluster {
            object: object(name),
            status: Status::Current,
            message: String::new(),
            named: NamedCluster { observed, claimed },
        }
    }

    fn manages(fleet: &SampleFleet, home: &str, source: &str, objects: Vec<ManagedCluster>) {
        let edit = |facts: &mut ClusterReport| facts.managed = objects;
        fleet.facts(home, source, edit, Vec::new());
    }

    /// Returns the writes that are due, each as the object with types, statuses and reasons.
    fn due(keeper: &mut ConditionKeeper, fleet: &SampleFleet) -> Vec<String> {
        fleet.index.publish();
        let view = fleet.index.view();
        keeper.look(&view);
        let writes = keeper.begin(view.moment().at);
        let told = |write: &ConditionsWrite| {
            let each = write.conditions.iter();
            let each: Vec<String> = each
                .map(|it| format!("{}={} {}", it.condition_type, it.status.as_str(), it.reason))
                .collect();
            format!("{} in {}: {}", write.object.path(), write.home, each.join(", "))
        };
        writes.iter().map(told).collect()
    }

    fn finish(
        keeper: &mut ConditionKeeper,
        fleet: &SampleFleet,
        name: &str,
        written: ConditionsWritten,
    ) -> Option<String> {
        keeper.finish(&("mgmt".to_owned(), object(name)), written, fleet.index.clock().time().at)
    }

    fn live(fleet: &SampleFleet, clusters: &[&str]) {
        clusters.iter().for_each(|cluster| fleet.send(cluster, "observer", Content::Heartbeat));
    }

    const READY: &str = "fleet/eu in mgmt: taffrail.dev/Live=True Live, taffrail.dev/AppsReady=True Ready";

    const EMPTY: &str = "fleet/eu in mgmt: taffrail.dev/Live=True Live, taffrail.dev/AppsReady=True NoApps";

    #[test]
    fn conditions_are_written_at_transitions_that_last() {
        let fleet = SampleFleet::new()
            .with("mgmt", &[])
            .with("eu", &[("shop", Status::Current, ""), ("web", Status::Current, "")]);
        manages(&fleet, "mgmt", "observer", vec![managed("eu", true)]);
        let mut keeper = ConditionKeeper::default();
        assert_eq!(due(&mut keeper, &fleet), [] as [&str; 0]);
        fleet.pass(10);
        assert_eq!(due(&mut keeper, &fleet), [READY]);
        assert_eq!(due(&mut keeper, &fleet), [] as [&str; 0], "it is being written");
        assert_eq!(finish(&mut keeper, &fleet, "eu", ConditionsWritten::Done), None);
        let turn = |status, message: &str| {
            live(&fleet, &["mgmt", "eu"]);
            fleet.change("eu", "observer", vec![observed(&app("eu", "shop"), status, message)]);
        };
        // It fails for a moment only.
        turn(Status::Failed, "no");
        assert_eq!(due(&mut keeper, &fleet), [] as [&str; 0]);
        fleet.pass(5);
        turn(Status::Current, "");
        assert_eq!(due(&mut keeper, &fleet), [] as [&str; 0]);
        fleet.pass(30);
        turn(Status::Failed, "no");
        assert_eq!(due(&mut keeper, &fleet), [] as [&str; 0]);
        fleet.pass(10);
        let failed = "fleet/eu in mgmt: taffrail.dev/Live=True Live, taffrail.dev/AppsReady=False Failed";
        assert_eq!(due(&mut keeper, &fleet), [failed]);
        assert_eq!(finish(&mut keeper, &fleet, "eu", ConditionsWritten::Done), None);
        // Another number of failed apps is no transition.
        fleet.change("eu", "observer", vec![observed(&app("eu", "web"), Status::Failed, "no")]);
        fleet.pass(40);
        turn(Status::Failed, "no");
        assert_eq!(due(&mut keeper, &fleet), [] as [&str; 0]);
        // The cluster falls silent, and its management cluster does not.
        fleet.pass(200);
        live(&fleet, &["mgmt"]);
        assert_eq!(due(&mut keeper, &fleet), [] as [&str; 0]);
        fleet.pass(10);
        let lost = "fleet/eu in mgmt: taffrail.dev/Live=False Lost, taffrail.dev/AppsReady=Unknown NotLive";
        assert_eq!(due(&mut keeper, &fleet), [lost]);
    }

    #[test]
    fn conditions_are_written_where_the_hub_reads_a_proof_itself() {
        let fleet = SampleFleet::new().with("mgmt", &[]).with("eu", &[]).with("us", &[]);
        fleet.open("edge", AGENT);
        manages(&fleet, "mgmt", "observer", vec![managed("eu", true), managed("us", false)]);
        // An agent could name any cluster.
        manages(&fleet, "edge", AGENT, vec![managed("us", true)]);
        let mut keeper = ConditionKeeper::default();
        due(&mut keeper, &fleet);
        fleet.pass(10);
        assert_eq!(due(&mut keeper, &fleet), [EMPTY]);
    }

    #[test]
    fn silent_management_cluster_rests_and_a_refused_object_waits() {
        let fleet = SampleFleet::new().with("mgmt", &[]).with("eu", &[]).with("us", &[]);
        manages(&fleet, "mgmt", "observer", vec![managed("eu", true), managed("us", true)]);
        let mut keeper = ConditionKeeper::default();
        due(&mut keeper, &fleet);
        fleet.pass(10);
        // One object of a management cluster is written at a time.
        assert_eq!(due(&mut keeper, &fleet), [EMPTY]);
        let silent = || ConditionsWritten::Unanswered("no answer".to_owned());
        let told = finish(&mut keeper, &fleet, "eu", silent());
        assert_eq!(told.as_deref(), Some("Cluster fleet/eu of cluster mgmt gets no conditions: no answer"));
        assert_eq!(due(&mut keeper, &fleet), [] as [&str; 0]);
        let pass = |seconds: u64| {
            fleet.pass(seconds);
            live(&fleet, &["mgmt", "eu", "us"]);
        };
        pass(30);
        assert_eq!(due(&mut keeper, &fleet), [EMPTY]);
        assert_eq!(finish(&mut keeper, &fleet, "eu", silent()), None, "it was told");
        pass(30);
        assert_eq!(due(&mut keeper, &fleet), [] as [&str; 0], "it rests for twice as long");
        pass(30);
        assert_eq!(due(&mut keeper, &fleet), [EMPTY]);
        finish(&mut keeper, &fleet, "eu", ConditionsWritten::Refused("forbidden".to_owned()));
        let us = EMPTY.replace("fleet/eu", "fleet/us");
        assert_eq!(due(&mut keeper, &fleet), [us.as_str()]);
        let told = finish(&mut keeper, &fleet, "us", ConditionsWritten::Unsuited("one list".to_owned()));
        assert_eq!(told.as_deref(), Some("Cluster fleet/us of cluster mgmt gets no conditions: one list"));
        (0..19).for_each(|_| pass(30));
        assert_eq!(due(&mut keeper, &fleet), [] as [&str; 0]);
        pass(30);
        assert_eq!(due(&mut keeper, &fleet), [EMPTY]);
        // Another client may have written the conditions meanwhile.
        assert_eq!(finish(&mut keeper, &fleet, "eu", ConditionsWritten::Done), None);
        assert_eq!(due(&mut keeper, &fleet), [us.as_str()]);
        finish(&mut keeper, &fleet, "us", ConditionsWritten::Done);
        (0..19).for_each(|_| pass(30));
        assert_eq!(due(&mut keeper, &fleet), [] as [&str; 0]);
        pass(30);
        assert_eq!(due(&mut keeper, &fleet), [EMPTY]);
    }
}
