//! Clusters that are followed and reported: the rows that a hub puts together of the reports equal those of a direct
//! read.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_api::AppRow;
use taffrail_api::report::{
    AppId, ClusterView, Content, HalfSide, HeldHalf, LIVE, Received, Report, SourceMessage, SourceReply, join,
};
use taffrail_apps::{ClusterId, FreshnessState, ReadQuery};
use taffrail_cluster::{BootClock, ListStrategy, Moment};
use taffrail_observe::{
    ClusterSelection, FleetMembers, FleetWatcher, Inquiry, LightReach, LookRequest, NO_EXTRA, Reporter,
    TimeLimits, WatchRequest, look, members,
};
use taffrail_sim::{Cluster, Fleet, Trouble};
use taffrail_status::Status;
use taffrail_testkit::objects::{applications, deployment, kustomizations, namespace};
use tokio::sync::{mpsc, oneshot};

use crate::rules::Shipped;

/// Maximum time of each wait; no test that succeeds needs so much, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn kustomization(name: &str, objects: &[&str]) -> Value {
    let entries: Vec<Value> =
        objects.iter().map(|name| json!({"id": format!("shop_{name}_apps_Deployment"), "v": "v1"})).collect();
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "shop", "name": name, "generation": 1},
        "spec": {"path": "./shop", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": {"observedGeneration": 1, "inventory": {"entries": entries},
            "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "observedGeneration": 1}]},
    })
}

/// Returns an app that is declared in one cluster and whose Deployment is in the cluster `target`.
pub(super) fn application(target: &Cluster, sync: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": "argocd", "name": "far"},
        "spec": {"destination": {"server": target.url(), "namespace": "shop"},
            "source": {"repoURL": "https://git.example.com/far", "path": "far", "targetRevision": "main"}},
        "status": {"sync": {"status": sync, "revision": "c2"}, "health": {"status": "Healthy"},
            "reconciledAt": jiff::Timestamp::now().to_string(), "resources": [
            {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "far", "status": sync}]},
    })
}

fn marked(mut object: Value) -> Value {
    object["metadata"]["annotations"] =
        json!({"argocd.argoproj.io/tracking-id": "far:apps/Deployment:shop/far"});
    object
}

/// Two clusters that are followed and reported, and the hub that takes the reports.
pub(super) struct Stage {
    _fleet: Fleet,
    pub(super) clusters: [Cluster; 2],
    kubeconfig: tempfile::NamedTempFile,
    clock: BootClock,
    begun: Moment,
    messages: mpsc::Receiver<SourceMessage>,
    replies: mpsc::Sender<SourceReply>,
    inquiries: mpsc::Sender<Inquiry>,
    received: HashMap<ClusterId, Received>,
    /// The reports that the hub received.
    reports: Vec<Report>,
    /// True if reports get lost on their way to the hub.
    is_lossy: bool,
    lost: usize,
}

impl Stage {
    /// Starts to report two clusters to a hub; `room` is the maximum number of messages on their way.
    async fn new(room: usize) -> Stage {
        Stage::prepared(room, |_| {}).await
    }

    /// Works like [`Stage::new`], and calls `prepare` with the clusters before it starts to report.
    async fn prepared(room: usize, prepare: impl FnOnce(&[Cluster; 2])) -> Stage {
        Stage::reaching(room, LightReach::default(), prepare).await
    }

    /// Works like [`Stage::prepared`], and reads those clusters lightly that `light` chooses.
    pub(super) async fn reaching(
        room: usize,
        light: LightReach,
        prepare: impl FnOnce(&[Cluster; 2]),
    ) -> Stage {
        let fleet = Fleet::builder().verbatim(true).controllers(false).start().await.unwrap();
        let clusters = [fleet.cluster("eu").await.unwrap(), fleet.cluster("us").await.unwrap()];
        let [eu, us] = &clusters;
        for cluster in &clusters {
            cluster.apply(kustomizations()).unwrap();
            cluster.apply(applications()).unwrap();
            let mut identity = namespace("kube-system");
            identity["metadata"]["uid"] = json!(format!("uid-of-{}", cluster.name()));
            cluster.apply(identity).unwrap();
            ["shop", "argocd"].into_iter().for_each(|name| cluster.apply(namespace(name)).unwrap());
            cluster.seed([kustomization("web", &["web"]), deployment("shop", "web", 2)]).unwrap();
        }
        eu.seed([application(us, "Synced")]).unwrap();
        us.seed([marked(deployment("shop", "far", 2))]).unwrap();
        prepare(&clusters);
        let kubeconfig = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(kubeconfig.path(), Cluster::kubeconfig_of(&clusters)).unwrap();
        let clock = BootClock::default();
        let request = WatchRequest {
            members: of(kubeconfig.path()),
            timeout: PATIENCE,
            request_timeout: None,
            asked: asked(),
            rules: Arc::new(Shipped::default()),
            lists: ListStrategy::Auto,
            clock: clock.clone(),
            light,
        };
        let (outbox, messages) = mpsc::channel(room);
        let (replies, inbox) = mpsc::channel(8);
        let begun = clock.now();
        let (inquiries, asked) = mpsc::channel(8);
        let reporter = Reporter::new(FleetWatcher::start(request).await, outbox, inbox);
        tokio::spawn(reporter.answering(asked).run());
        Stage {
            _fleet: fleet,
            clusters,
            kubeconfig,
            clock,
            begun,
            messages,
            replies,
            inquiries,
            received: HashMap::new(),
            reports: Vec::new(),
            is_lossy: false,
            lost: 0,
        }
    }

    /// Returns the apps and their health, as the watcher of the clusters has them.
    async fn ask(&self) -> Vec<String> {
        let (sender, receiver) = oneshot::channel();
        let inquiry: Inquiry = Box::new(move |fleet| {
            let apps = fleet.apps(&[]).apps;
            let told = apps.iter().map(|app| format!("{} {}: {}", app.app.target, app.app.name, app.health));
            sender.send(told.collect()).unwrap();
        });
        self.inquiries.send(inquiry).await.unwrap();
        receiver.await.unwrap()
    }

    pub(super) fn at(&self) -> Duration {
        self.clock.now().since(self.begun)
    }

    /// Processes a message as a hub does, and sends the reply.
    async fn take(&mut self, message: SourceMessage) {
        let at = self.at();
        let reply = match message {
            SourceMessage::Open(cluster) => {
                let new = || Received::new(cluster.clone(), 0);
                let epoch = self.received.entry(cluster.clone()).or_insert_with(new).reopen();
                Some(SourceReply::Accepted { cluster, epoch })
            }
            SourceMessage::Report(_) if self.is_lossy => {
                self.lost += 1;
                None
            }
            SourceMessage::Report(report) => {
                let (cluster, position) = (report.cluster.clone(), report.position);
                self.reports.push((*report).clone());
                let received = self.received.get_mut(&cluster);
                let taken = received.and_then(|received| received.take(*report, at).ok());
                SourceReply::to_report(&cluster, position, taken.as_ref())
            }
            SourceMessage::Close(cluster) => {
                self.received.remove(&cluster);
                None
            }
        };
        if let Some(reply) = reply {
            self.replies.send(reply).await.unwrap();
        }
    }

    /// Processes messages for the time `time`.
    async fn listen(&mut self, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while let Ok(message) = tokio::time::timeout_at(end, self.messages.recv()).await {
            self.take(message.expect("it is reported")).await;
        }
    }

    /// Processes messages while the clock runs three times as fast. If it ran much faster, working servers would seem
    /// silent.
    async fn hurry(&mut self) {
        self.clock.sleep(Duration::from_millis(600));
        self.listen(Duration::from_millis(300)).await;
    }

    /// Processes messages until the rows of the hub equal those of the direct read, and returns them; panics with
    /// `what` if they never do.
    #[track_caller]
    fn until_equal(&mut self, what: &'static str) -> impl Future<Output = BTreeMap<String, AppRow>> {
        let place = std::panic::Location::caller();
        async move {
            let begun = std::time::Instant::now();
            loop {
                self.listen(Duration::from_millis(100)).await;
                let (hub, direct) = (self.rows(), self.direct().await);
                if hub == direct {
                    return hub;
                }
                assert!(begun.elapsed() < PATIENCE, "{place}, {what}: {hub:#?}\n instead of {direct:#?}");
            }
        }
    }

    /// Processes messages until `holds` returns true; panics with `what` if it never does.
    #[track_caller]
    pub(super) fn until(
        &mut self,
        what: &'static str,
        holds: impl Fn(&Stage) -> bool,
    ) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let begun = std::time::Instant::now();
            while !holds(self) {
                assert!(begun.elapsed() < PATIENCE, "{place}: never {what}");
                self.listen(Duration::from_millis(50)).await;
            }
        }
    }

    /// Returns the rows that a hub puts together of the reports, by home, target and name.
    pub(super) fn rows(&self) -> BTreeMap<String, AppRow> {
        let mut rows = BTreeMap::new();
        for home in self.received.values() {
            for app in home.apps().filter(|app| app.home == *home.cluster()) {
                let Some(row) = self.row(home, app) else { continue };
                rows.insert(title(&row), row);
            }
        }
        rows
    }

    fn row(&self, home: &Received, app: &AppId) -> Option<AppRow> {
        let (at, now) = (self.at(), Timestamp::now());
        let body = &*home.declared(app)?.body;
        let freshness = home.freshness_of(app, HalfSide::Declared, at, now)?;
        let declared = HeldHalf { body, freshness, cluster: self.view(home) };
        let target = self.received.get(&body.target)?;
        let observed = target.observed(app).map(|half| &*half.body).zip(target.freshness_of(
            app,
            HalfSide::Observed,
            at,
            now,
        ));
        let cluster = self.view(target);
        let observed = observed.map(|(body, freshness)| HeldHalf { body, freshness, cluster });
        Some(timeless(join(app, declared, observed, cluster, None, |_| None)))
    }

    fn view<'r>(&self, of: &'r Received) -> ClusterView<'r> {
        let facts = of.facts();
        let silence = facts.lost.as_ref().map(|lost| &*lost.message);
        ClusterView {
            name: &facts.name,
            is_live: of.freshness(self.at(), Timestamp::now()).is_live(),
            silence,
        }
    }

    /// Returns the rows of a direct read of the clusters, by home, target and name.
    async fn direct(&self) -> BTreeMap<String, AppRow> {
        let request = LookRequest {
            members: of(self.kubeconfig.path()),
            limits: TimeLimits::each(PATIENCE),
            asked: asked(),
            now: Timestamp::now(),
            rules: Arc::new(Shipped::default()),
            answered: Arc::new(|_| {}),
        };
        let (fleet, _) = look(request, NO_EXTRA).await.unwrap();
        let rows = fleet.apps(&[]).apps.iter().map(|app| timeless(AppRow::from(app))).collect::<Vec<_>>();
        rows.into_iter().map(|row| (title(&row), row)).collect()
    }

    /// Returns what the hub received of the cluster with this name.
    pub(super) fn of(&self, name: &str) -> Option<&Received> {
        self.received.values().find(|received| received.facts().name == name)
    }
}

fn of(kubeconfig: &std::path::Path) -> FleetMembers {
    let kubeconfig = Some(kubeconfig.to_owned());
    members(&ClusterSelection { all_contexts: true, kubeconfig, ..ClusterSelection::default() }).unwrap()
}

fn asked() -> ReadQuery {
    ReadQuery { evidence: true, ..ReadQuery::default() }
}

fn title(row: &AppRow) -> String {
    format!("{} {} {}", row.home, row.cluster, row.name)
}

/// Removes the time at which a live cluster was observed, which differs between two reads.
fn timeless(mut row: AppRow) -> AppRow {
    for freshness in [&mut row.freshness, &mut row.sync.freshness] {
        freshness.observed_at = freshness.observed_at.filter(|_| !freshness.is_live());
    }
    row
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_from_what_is_followed_once_it_is_known() {
    let stage = Stage::new(1).await;
    // Nobody takes the reports, and nothing was read yet.
    assert_eq!(stage.ask().await, ["eu web: Current", "us far: Current", "us web: Current"]);
    assert!(stage.clusters[1].delete("apps/v1", "Deployment", "shop", "web"));
    let begun = std::time::Instant::now();
    while stage.ask().await != ["eu web: Current", "us far: Current", "us web: NotFound"] {
        assert!(begun.elapsed() < PATIENCE, "{:?}", stage.ask().await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_hub_are_those_of_the_direct_answer_after_each_change() {
    let mut stage = Stage::new(8).await;
    let [eu, us] = stage.clusters.clone();
    let rows = stage.until_equal("at the beginning").await;
    assert_eq!(rows.keys().collect::<Vec<_>>(), ["eu eu web", "eu us far", "us us web"]);
    let mut ids: Vec<&str> = stage.received.keys().map(|id| &*id.0).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["uid-of-eu", "uid-of-us"]);
    assert!(rows.values().all(|row| row.effective == Status::Current), "{rows:#?}");

    let effective = |rows: &BTreeMap<String, AppRow>, title: &str| rows[title].effective;
    us.apply(marked(deployment("shop", "far", 0))).unwrap();
    let rows = stage.until_equal("objects in another cluster got worse").await;
    assert_eq!(effective(&rows, "eu us far"), Status::InProgress);
    us.apply(marked(deployment("shop", "far", 2))).unwrap();
    eu.apply(kustomization("web", &["web", "api"])).unwrap();
    let rows = stage.until_equal("an object is missing").await;
    assert_eq!(effective(&rows, "eu eu web"), Status::NotFound);
    eu.apply(deployment("shop", "api", 2)).unwrap();
    let rows = stage.until_equal("it came").await;
    assert_eq!((effective(&rows, "eu eu web"), rows["eu eu web"].objects), (Status::Current, 2));
    eu.apply(application(&us, "OutOfSync")).unwrap();
    let rows = stage.until_equal("an app is out of sync").await;
    assert_eq!(rows["eu us far"].sync.state.as_str(), "OutOfSync");
    // Its objects are in the home cluster now.
    eu.apply(application(&eu, "OutOfSync")).unwrap();
    let rows = stage.until_equal("an app moved").await;
    assert!(rows.contains_key("eu eu far") && !rows.contains_key("eu us far"));
    eu.apply(kustomization("new", &["api"])).unwrap();
    assert!(us.delete("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "shop", "web"));
    let rows = stage.until_equal("an app came, and one went").await;
    assert!(rows.contains_key("eu eu new") && !rows.contains_key("us us web"), "{:?}", rows.keys());

    let mut labelled = kustomization("new", &["api"]);
    labelled["metadata"]["labels"] = json!({"team": "blue"});
    eu.apply(labelled).unwrap();
    let has_label = |stage: &Stage| {
        let eu = stage.of("eu").unwrap();
        let app = eu.apps().find(|app| app.app.name == "new").unwrap();
        eu.declared(app).unwrap().body.labels.get("team").is_some_and(|team| team == "blue")
    };
    stage.until("the label is known", has_label).await;
    // Nothing was sent again.
    let parts = stage.reports.iter().filter(|report| matches!(report.content, Content::Snapshot { .. }));
    assert_eq!(parts.count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_report_is_made_good_by_the_next_digest() {
    let mut stage = Stage::new(8).await;
    let [eu, _] = stage.clusters.clone();
    stage.until_equal("at the beginning").await;
    stage.is_lossy = true;
    eu.apply(deployment("shop", "web", 0)).unwrap();
    stage.until("a report got lost", |stage| stage.lost > 0).await;
    stage.is_lossy = false;
    let is_ready = |stage: &Stage| stage.rows()["eu eu web"].health == Status::Current;
    assert!(is_ready(&stage));
    let begun = std::time::Instant::now();
    while is_ready(&stage) {
        assert!(begun.elapsed() < PATIENCE, "the digest did not find it");
        stage.hurry().await;
    }
    stage.until_equal("after the digest").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_that_stops_ages_and_the_other_one_stays_live() {
    let mut stage = Stage::new(8).await;
    stage.until_equal("at the beginning").await;
    let us = stage.clusters[1].clone();
    let away = us.trouble(Trouble::Blackhole);
    let begun = std::time::Instant::now();
    let told = stage.reports.len();
    while stage.of("us").unwrap().state(stage.at()) == FreshnessState::Live {
        assert!(begun.elapsed() < PATIENCE, "it is live");
        stage.hurry().await;
    }
    assert!(stage.of("us").unwrap().age(stage.at()) > Some(LIVE));
    let is_live = |stage: &Stage| stage.of("eu").unwrap().state(stage.at()) == FreshnessState::Live;
    stage.until("the other one is live", is_live).await;
    // It told that it is there all the time, and that the cluster is not.
    let id = stage.of("us").unwrap().cluster().clone();
    let of_us: Vec<&Report> = stage.reports[told..].iter().filter(|report| report.cluster == id).collect();
    assert!(of_us.iter().any(|report| report.age > Some(Duration::from_secs(30))));
    let facts = stage.of("us").unwrap().facts();
    assert!(facts.not_live.is_some() && facts.lost.is_some(), "{facts:?}");
    let rows = stage.rows();
    let states =
        ["eu eu web", "eu us far", "us us web"].map(|title| (rows[title].health, rows[title].effective));
    let (well, dark) = ((Status::Current, Status::Current), (Status::Current, Status::Unknown));
    assert_eq!(states, [well, dark, dark]);

    us.heal(away);
    let begun = std::time::Instant::now();
    while stage.rows().values().any(|row| row.effective != Status::Current) {
        assert!(begun.elapsed() < PATIENCE, "{:#?}", stage.rows());
        stage.hurry().await;
    }
    stage.until_equal("it is back").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_that_was_never_reached_is_reported_with_the_reason() {
    let unreachable = |clusters: &[Cluster; 2]| {
        clusters[1].trouble(Trouble::Unreachable);
    };
    let mut stage = Stage::prepared(1, unreachable).await;
    stage.until("it is reported", |stage| stage.of("us").is_some()).await;
    let of_us = stage.of("us").unwrap();
    assert_eq!(of_us.cluster().0, "context us");
    assert!(of_us.facts().lost.is_some() && of_us.facts().not_live.is_some(), "{:?}", of_us.facts());
    assert_eq!(of_us.age(stage.at()), None);
    // The other one does not wait for it.
    stage.until("the other one is known", |stage| stage.rows().len() == 2).await;
    let rows = stage.rows();
    assert_eq!((rows["eu us far"].health, rows["eu us far"].effective), (Status::Unknown, Status::Unknown));

    stage.clusters[1].heal_all();
    stage.until_equal("it answers").await;
    let of_us: Vec<&ClusterId> =
        stage.received.keys().filter(|id| stage.received[*id].facts().name == "us").collect();
    assert_eq!(of_us, [&ClusterId("uid-of-us".to_owned())]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_hub_gets_the_newest_state() {
    let mut stage = Stage::new(1).await;
    let [eu, _] = stage.clusters.clone();
    stage.until_equal("at the beginning").await;
    eu.apply(deployment("shop", "web", 0)).unwrap();
    let begun = std::time::Instant::now();
    while stage.messages.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "nothing was reported");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // There is no room for more.
    for available in [1, 2, 0, 1, 2, 0, 1] {
        eu.apply(deployment("shop", "web", available)).unwrap();
    }
    assert!(eu.delete("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "shop", "web"));
    eu.apply(kustomization("new", &["web"])).unwrap();
    let rows = stage.until_equal("the hub takes messages again").await;
    assert_eq!(rows["eu eu new"].health, Status::InProgress);
}
