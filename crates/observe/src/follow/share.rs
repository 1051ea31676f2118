//! Limits on the memory of each cluster, and on reports of malformed items.

use std::time::Duration;

use jiff::Timestamp;
use taffrail_apps::{Freshness, FreshnessState, Rounds, Scope, ScopeError, Snapshot};
use taffrail_cluster::ReadError;

use super::poll::PollFallback;
use super::{FleetWatcher, FollowedCluster, FollowedScope, PendingKinds, Singles};
use crate::error::Failure;

/// Time after which a cluster that was dropped because of its memory use is read again.
const LET_GO_FOR: Duration = Duration::from_mins(5);

/// Maximum number of malformed items of a scope that are reported one by one; one more report says that there are
/// others.
const MOST_MALFORMED: usize = 50;

/// The operation that the error of a cluster that exceeds its memory names.
const WHAT: &str = "follow the cluster";

impl FollowedScope {
    /// Counts a malformed item of the scope. Reports `message` for the first [`MOST_MALFORMED`] items, and for the next
    /// one that there are more, and returns true; reports nothing for later ones and returns false.
    pub(super) fn note(&mut self, snapshot: &mut Snapshot, message: String) -> bool {
        let (told, count) = &mut self.malformed;
        *count += 1;
        let message = match told.len() {
            known if known < MOST_MALFORMED => taffrail_status::cut(message).into_owned(),
            MOST_MALFORMED => format!(
                "more than {MOST_MALFORMED} items of the list of {} are malformed or were not requested; the \
                others are not reported",
                crate::read::resource(&self.read).full_name()
            ),
            _ => return false,
        };
        told.push(message.clone());
        snapshot.report(self.malformed_error(message));
        true
    }

    /// Reports the malformed items of the scope again, after its reports were removed from the snapshot.
    pub(super) fn report(&self, snapshot: &mut Snapshot) {
        self.malformed.0.iter().for_each(|message| snapshot.report(self.malformed_error(message.clone())));
    }

    fn malformed_error(&self, message: String) -> ScopeError {
        ScopeError { scope: self.read.scope(), reason: "Malformed".to_owned(), message }
    }
}

impl FollowedCluster {
    /// Updates the memory that the cluster's snapshot is charged for. Fails if the cluster exceeds its share.
    pub(super) fn charge(&mut self, snapshot: &Snapshot) -> Result<(), ReadError> {
        self.held.as_mut().map_or(Ok(()), |held| held.set(WHAT, snapshot.size(), snapshot.number()))
    }
}

impl FleetWatcher {
    /// Drops the objects of a cluster that exceeds its share of memory, except those that declare apps, so that its
    /// rows stay; if these exceed it too, drops all. After [`LET_GO_FOR`] the cluster is read again.
    pub(super) fn let_go(&mut self, at: usize, over: &ReadError) {
        let following = &mut self.clusters[at];
        let snapshot = &mut self.fleet.snapshots[at];
        let Failure { reason, message } = Failure::new(over.reason(), over, over.hint());
        following.feeds = None;
        following.scopes.clear();
        following.planned.clear();
        following.singles = Singles::default();
        following.values.clear();
        following.rounds = Rounds::default();
        following.again = PollFallback::default();
        following.coming = PendingKinds { is_wanted: following.coming.is_wanted, ..PendingKinds::default() };
        following.live_since = None;
        following.is_settled = true;
        following.changed = true;
        snapshot.keep_declarations(&message);
        if following.charge(snapshot).is_err() {
            *snapshot = following.lost(Failure { reason, message });
            following.held = None;
        } else {
            let observed_at = Some(Timestamp::now());
            snapshot.set_freshness(Freshness { state: FreshnessState::Lost, observed_at });
            snapshot.report(ScopeError { scope: Scope::Cluster, reason, message });
        }
        self.connect(at, LET_GO_FOR);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use taffrail_apps::{Objects, ReadQuery};
    use taffrail_cluster::{BootClock, ListStrategy, Memory};
    use taffrail_rules::RuleSet;
    use taffrail_sim::{Cluster, Fleet};
    use taffrail_status::assess::Options;
    use taffrail_status::{ActiveRules, ClusterState as _, Status};
    use taffrail_testkit::objects::{kustomizations, namespace};

    use super::*;
    use crate::follow::WatchRequest;
    use crate::look::NO_EXTRA;
    use crate::members::{ClusterSelection, FleetMembers, members};
    use crate::rules::FleetRules;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Returns a Kustomization and its Deployment, which has a field of `size` bytes.
    pub(in super::super) fn app(size: usize) -> [Value; 2] {
        let entries = json!([{"id": "shop_web_apps_Deployment", "v": "v1"}]);
        [
            json!({
                "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                "metadata": {"namespace": "shop", "name": "web", "generation": 1},
                "status": {"observedGeneration": 1, "inventory": {"entries": entries},
                    "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "observedGeneration": 1}]},
            }),
            deployment("web", size),
        ]
    }

    pub(in super::super) fn deployment(name: &str, size: usize) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "shop", "name": name, "generation": 1, "annotations": {"filler": "x".repeat(size)}},
            "spec": {"replicas": 1},
            "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
                "conditions": [{"type": "Available", "status": "True"}]},
        })
    }

    /// The rules that are built into the program.
    #[derive(Debug)]
    struct Shipped(RuleSet);

    impl FleetRules for Shipped {
        fn active(&self) -> ActiveRules<'_> {
            self.0.active(Options::DEFAULT)
        }
    }

    /// Follows clusters by the clock of the machine.
    pub(in super::super) async fn follow(clusters: &[Cluster], memory: &Memory) -> FleetWatcher {
        follow_by(&BootClock::default(), clusters, memory).await
    }

    /// Follows clusters by the clock `clock`, and charges their objects to `memory`.
    pub(in super::super) async fn follow_by(
        clock: &BootClock,
        clusters: &[Cluster],
        memory: &Memory,
    ) -> FleetWatcher {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), Cluster::kubeconfig_of(clusters)).unwrap();
        let kubeconfig = Some(file.path().to_owned());
        let selection = ClusterSelection { all_contexts: true, kubeconfig, ..ClusterSelection::default() };
        let mut members: FleetMembers = members(&selection).unwrap();
        for member in &mut members.members {
            let context = std::mem::replace(
                &mut member.context,
                Err(Failure { reason: String::new(), message: String::new() }),
            );
            member.context = context.map(|context| Box::new(context.with_memory(memory)));
        }
        let request = WatchRequest {
            members,
            timeout: PATIENCE,
            request_timeout: None,
            asked: ReadQuery::default(),
            rules: Arc::new(Shipped(RuleSet::shipped())),
            lists: ListStrategy::Auto,
            clock: clock.clone(),
            light: crate::follow::LightReach::default(),
        };
        FleetWatcher::start(request).await
    }

    /// Applies events until `is_so` returns true.
    pub(in super::super) async fn until(
        follow: &mut FleetWatcher,
        mut is_so: impl FnMut(&FleetWatcher) -> bool,
    ) {
        let began = std::time::Instant::now();
        while !is_so(follow) {
            assert!(began.elapsed() < PATIENCE, "nothing came of it");
            follow.next(Duration::from_millis(200)).await;
            follow.ask().await;
        }
    }

    fn rows(follow: &mut FleetWatcher) -> Vec<(String, Status)> {
        let list = follow.fleet().apps(&[]);
        let apps = list.apps.iter().filter(|app| app.app.name == "web");
        apps.map(|app| (app.app.target.clone(), app.effective())).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_cluster_over_its_share_is_let_go_of_and_takes_nothing_from_others() {
        let fleet = Fleet::builder().verbatim(true).controllers(false).start().await.unwrap();
        let (eu, us) = (fleet.cluster("eu").await.unwrap(), fleet.cluster("us").await.unwrap());
        for cluster in [&eu, &us] {
            cluster.apply(kustomizations()).unwrap();
            cluster.apply(namespace("shop")).unwrap();
            cluster.seed(app(10)).unwrap();
        }
        let memory = Memory::of(4 << 20);
        let mut follow = follow(&[eu.clone(), us.clone()], &memory).await;
        follow.settle(NO_EXTRA).await;
        let ready = |name: &str| (name.to_owned(), Status::Current);
        assert_eq!(rows(&mut follow), [ready("eu"), ready("us")]);

        // Half of 4 MiB is for both, and of the rest it may have half: 1 MiB of text.
        // Small events, one at a time: text on its way counts too, from 16 KiB on, and breaks the watch that brings it.
        let is_over = |follow: &FleetWatcher| {
            follow.fleet.snapshots[1].errors().iter().any(|it| it.reason == "OverLimit")
        };
        let mut number = 0;
        while !is_over(&follow) {
            assert!(number < 200, "no limit was reached");
            let before = follow.fleet.snapshots[1].size();
            us.apply(deployment(&format!("d{number}"), 14_000)).unwrap();
            until(&mut follow, |follow| is_over(follow) || follow.fleet.snapshots[1].size() > before).await;
            number += 1;
        }
        let errors = follow.fleet.snapshots[1].errors();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].scope, Scope::Cluster);
        assert!(errors[0].message.contains("exceeds its share of memory"), "{}", errors[0].message);
        // Its rows stay, and are Unknown; those of the other are as they were, and are told of changes still.
        let unknown = |name: &str| (name.to_owned(), Status::Unknown);
        assert_eq!(rows(&mut follow), [ready("eu"), unknown("us")]);
        assert!(follow.fleet.snapshots[1].size() < 10_000);
        assert!(eu.delete("apps/v1", "Deployment", "shop", "web"));
        until(&mut follow, |follow| {
            !matches!(
                follow.fleet.snapshots[0]
                    .get((taffrail_object::ObjectKey::new("apps", "Deployment", "shop", "web")).as_ref()),
                taffrail_status::Presence::Present(_)
            )
        })
        .await;
        assert_eq!(rows(&mut follow), [("eu".to_owned(), Status::NotFound), unknown("us")]);
        // What it had taken is there for the other, again by small events, one at a time.
        let mut number = 0;
        while follow.fleet.snapshots[0].size() <= 800_000 {
            let before = follow.fleet.snapshots[0].size();
            eu.apply(deployment(&format!("d{number}"), 14_000)).unwrap();
            until(&mut follow, |follow| follow.fleet.snapshots[0].size() > before).await;
            number += 1;
        }
        assert_eq!(follow.fleet.snapshots[0].errors(), []);
        drop(fleet);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_cluster_without_a_connection_is_whole_once_planned() {
        let fleet = Fleet::builder().verbatim(true).controllers(false).start().await.unwrap();
        let cluster = fleet.cluster("eu").await.unwrap();
        cluster.apply(namespace("shop")).unwrap();
        let mut follow = follow(std::slice::from_ref(&cluster), &Memory::of(64 << 20)).await;
        follow.settle(NO_EXTRA).await;
        let over = ReadError::OverLimit { what: WHAT.to_owned(), limit: "too much".to_owned() };
        follow.let_go(0, &over);
        follow.take_news();
        follow.ask().await;
        assert!(follow.is_whole());
        drop(fleet);
    }

    /// The texts of these objects take a tenth of the memory that their records take, so the records must count, too.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_cluster_of_very_many_tiny_objects_is_let_go_of() {
        let fleet = Fleet::builder().verbatim(true).controllers(false).start().await.unwrap();
        let cluster = fleet.cluster("eu").await.unwrap();
        cluster.apply(kustomizations()).unwrap();
        cluster.apply(namespace("shop")).unwrap();
        let tiny = |at: usize| {
            json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                "metadata": {"namespace": "shop", "name": format!("a{at}")}})
        };
        cluster.seed((0..8_000).map(tiny)).unwrap();
        let mut follow = follow(std::slice::from_ref(&cluster), &Memory::of(8 << 20)).await;
        let is_over = |follow: &FleetWatcher| {
            follow.fleet.snapshots[0].errors().iter().any(|it| it.reason == "OverLimit")
        };
        until(&mut follow, |follow| is_over(follow) || follow.fleet.snapshots[0].number() >= 8_000).await;
        assert!(is_over(&follow), "{} bytes of text", follow.fleet.snapshots[0].size());
        drop(fleet);
    }
}
