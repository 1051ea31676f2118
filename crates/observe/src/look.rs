//! Reads live clusters once: all at the same time, each with its own deadline.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::{join_all, join3};
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use taffrail_apps::{
    Answer, KindCatalog, Objects, Read, ReadMode, ReadQuery, Rounds, Sameness, Scope, ScopeError, ServedKind,
    Snapshot, Target, Turns, elsewhere, plan_reads, still_wanted,
};
use taffrail_cluster::{Cluster, Discovery, ReadError, Reason, aside, aside_if_large, chain};
use taffrail_object::{Object, ObjectKey, Projection};
use taffrail_status::ActiveRules;

use crate::connector::{ClusterConnector, Task, all};
use crate::error::{Failure, ObserveError};
use crate::fleet::FleetSnapshot;
use crate::members::{FleetMembers, Member};
use crate::read::{Outcome, read_one};
use crate::rules::FleetRules;
use crate::timing::{TimeLimits, Timing};
use crate::{reading, sameness};

/// A function that returns further objects to read from a cluster. Its arguments are the cluster's snapshot and the
/// namespace of its context.
pub type ExtraObjects<'m> = &'m (dyn Fn(&Snapshot, &str) -> Vec<ObjectKey> + Sync);

/// Returns no further objects.
pub const NO_EXTRA: ExtraObjects<'static> = &|_, _| Vec::new();

/// The arguments of [`look`].
pub struct LookRequest {
    /// The clusters to read.
    pub members: FleetMembers,
    /// The time limits: that of each cluster or of the whole answer, and that of each request.
    pub limits: TimeLimits,
    /// The query that decides what is read of each cluster.
    pub asked: ReadQuery,
    /// The time at which objects are judged.
    pub now: Timestamp,
    /// The rules that judge objects.
    pub rules: Arc<dyn FleetRules>,
    /// Called with the name of each cluster once it was read by itself, or once that failed.
    pub answered: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for LookRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.members.members.iter().map(|member| &*member.name).collect();
        f.debug_struct("LookRequest").field("members", &names).finish_non_exhaustive()
    }
}

/// Reads all clusters at the same time. Then reads, in each cluster, the objects that `more` returns and, if the query
/// asks for apps of several clusters, those that apps of other clusters deliver into it. Returns the snapshots, and the
/// connections to the clusters that could be connected to.
///
/// # Errors
/// Returns an error if the task of a cluster panics. If a cluster cannot be read, its snapshot contains the error.
pub async fn look(
    request: LookRequest,
    more: ExtraObjects<'_>,
) -> Result<(FleetSnapshot, Vec<Cluster>), ObserveError> {
    let LookRequest { members: FleetMembers { members, problems }, limits, asked, now, rules, answered } =
        request;
    let is_fleet = members.len() > 1 || asked.follow;
    let asked = ReadQuery { follow: asked.declarations && is_fleet, ..asked };
    let labels = asked.app_labels.clone();
    let lives = of_members(members, limits, asked, now, &rules, answered, more).await?;
    let (snapshots, clusters): (Vec<_>, Vec<_>) = lives.into_iter().unzip();
    let fleet = FleetSnapshot { snapshots, now, rules, problems, labels, rows: None };
    Ok((fleet, clusters.into_iter().flatten().collect()))
}

/// Reads all `members` as [`look`] does; the time of each is divided as [`crate::timing`] describes.
async fn of_members(
    members: Vec<Member>,
    limits: TimeLimits,
    asked: ReadQuery,
    now: Timestamp,
    rules: &Arc<dyn FleetRules>,
    answered: Arc<dyn Fn(&str) + Send + Sync>,
    more: ExtraObjects<'_>,
) -> Result<Vec<(Snapshot, Option<Cluster>)>, ObserveError> {
    let timing = Timing::start(limits.total);
    let asked = Arc::new(asked);
    let planning = if members.len() == 1 { Planning::Here } else { Planning::Aside };
    let namespace =
        |member: &Member| member.context.as_ref().map_or("default", |it| it.namespace()).to_owned();
    let namespaces: Vec<String> = members.iter().map(namespace).collect();
    let first = |(place, member)| {
        let (live, asked, answered) = (ClusterConnector { member, limits }, asked.clone(), answered.clone());
        let rules = rules.clone();
        Task::spawn(async move {
            let (name, begun) = (live.member.name.clone(), Instant::now());
            let (snapshot, cluster) = connect_and_read(&live, &asked, now, &rules.active(), planning).await;
            answered(&name);
            (place, ClusterRead { snapshot, cluster, spent: begun.elapsed() })
        })
    };
    let tasks: FuturesUnordered<_> = members.into_iter().enumerate().map(first).collect();
    let mut looks = alone(tasks, timing).await?;
    let mut wanted: BTreeMap<String, Vec<ObjectKey>> = BTreeMap::new();
    let mut others: BTreeMap<String, (Turns, BTreeSet<String>)> = BTreeMap::new();
    if asked.follow {
        let clusters: Vec<_> = looks.iter().map(|look| &look.snapshot as &dyn Objects).collect();
        let mode = match asked.namespace {
            Some(_) => ReadMode::OnceByNamespace,
            None => ReadMode::Once,
        };
        let mut all = elsewhere(&clusters, &asked.dependents, mode);
        wanted = still_wanted(&clusters, std::mem::take(&mut all.objects));
        for snapshot in &clusters {
            let dependents = all.dependents_in.get(snapshot.name()).into_iter().flatten();
            let dependents_in = dependents.map(|(namespace, _)| namespace.clone()).collect();
            others.insert(snapshot.name().to_owned(), (Turns::of(&all, snapshot.name()), dependents_in));
        }
        for over in all.left_out {
            let home = looks.iter_mut().find(|look| look.snapshot.name() == over.home);
            home.into_iter().for_each(|look| look.snapshot.report(over.error()));
        }
    }
    let second = |(ClusterRead { mut snapshot, cluster, spent }, namespace): (ClusterRead, &String)| {
        let left = timing.elsewhere(spent);
        let keys = wanted.remove(snapshot.name()).unwrap_or_default();
        let (turns, dependents_in) = others.remove(snapshot.name()).unwrap_or_default();
        let own = [asked.objects.clone(), more(&snapshot, namespace)].concat();
        let objects = [own.clone(), keys].concat();
        let own = ReadQuery { objects: own, ..(*asked).clone() };
        let asked = ReadQuery { objects, dependents_in, ..(*asked).clone() };
        let rules = rules.clone();
        Task::spawn(async move {
            if let Some(cluster) = &cluster {
                let others = (!turns.is_empty()).then_some((&turns, &own));
                let cluster = cluster.with_timeout(left);
                go_on_by_turns(&mut snapshot, &cluster, &asked, others, &rules.active(), planning).await;
                snapshot.set_reading(reading::once(&cluster));
            }
            (snapshot, cluster)
        })
    };
    all(looks.into_iter().zip(&namespaces).map(second).collect()).await
}

/// The result of reading one cluster without regard to the others, and the time it took.
struct ClusterRead {
    snapshot: Snapshot,
    cluster: Option<Cluster>,
    spent: Duration,
}

/// Collects the results of reading each cluster, in the order of the members. Compares two clusters with one identity
/// as soon as both were read, while others are still being read, and records in the later snapshot if they were proved
/// to be one or two.
async fn alone(
    mut tasks: FuturesUnordered<Task<(usize, ClusterRead)>>,
    timing: Timing,
) -> Result<Vec<ClusterRead>, ObserveError> {
    let mut looks: BTreeMap<usize, ClusterRead> = BTreeMap::new();
    let mut comparing = FuturesUnordered::new();
    let mut compared = Vec::new();
    loop {
        tokio::select! {
            Some(ended) = tasks.next() => {
                let (place, look) = ended?;
                let twins = looks.iter().filter(|(_, other)| sameness::are_twins(&look.snapshot, &other.snapshot));
                let mut clusters: BTreeMap<usize, Cluster> =
                    twins.filter_map(|(twin, other)| Some((*twin, other.cluster.clone()?))).collect();
                if let Some(cluster) = look.cluster.clone().filter(|_| !clusters.is_empty()) {
                    let pair = |twin: &usize| (place.max(*twin), place.min(*twin));
                    let pairs = clusters.keys().map(pair).collect();
                    clusters.insert(place, cluster);
                    comparing.push(sameness::compare(clusters, pairs, timing.alone()));
                }
                looks.insert(place, look);
            }
            Some(found) = comparing.next() => compared.push(found),
            else => break,
        }
    }
    for sameness::Compared { pairs, spent } in compared {
        for (place, took) in spent {
            looks.entry(place).and_modify(|look| look.spent += took);
        }
        for ((place, before), found) in pairs {
            let Some(name) = looks.get(&before).map(|look| look.snapshot.name().to_owned()) else { continue };
            if found != Sameness::Unproven
                && let Some(look) = looks.get_mut(&place)
            {
                look.snapshot.set_same_as(name, found == Sameness::One);
            }
        }
    }
    Ok(looks.into_values().collect())
}

/// Reads what the plan of reads still needs, round by round, once the kinds are known; does nothing before. A list that
/// exceeds the time fails only for its kind: while the cluster answers, each round gets some time of its own. When that
/// is used up, all that is still needed fails with a timeout.
pub(crate) async fn go_on(
    snapshot: &mut Snapshot,
    cluster: &Cluster,
    asked: &ReadQuery,
    rules: &ActiveRules<'_>,
) {
    go_on_by_turns(snapshot, cluster, asked, None, rules, Planning::Aside).await;
}

/// The thread that computes a plan of reads. Rules that a cluster brings may make that slow.
#[derive(Debug, Clone, Copy)]
enum Planning {
    /// The thread of the task: no other cluster is read that would have to wait.
    Here,
    /// Another thread takes over the other tasks, see [`aside`].
    Aside,
}

impl Planning {
    fn run<T>(self, plan: impl FnOnce() -> T) -> T {
        match self {
            Planning::Here => plan(),
            Planning::Aside => aside(plan),
        }
    }
}

/// Works like [`go_on`] for a cluster in which apps of other clusters have objects, too. `others` is the order
/// among those clusters and the query without them: the cluster's own reads come first, then one for each other
/// cluster in turn.
async fn go_on_by_turns(
    snapshot: &mut Snapshot,
    cluster: &Cluster,
    asked: &ReadQuery,
    others: Option<(&Turns, &ReadQuery)>,
    rules: &ActiveRules<'_>,
    planning: Planning,
) {
    let (mut has_answered, mut is_over) = (true, false);
    // The limits hold for the whole look, so that no chain of objects keeps the later stages from being read.
    let mut rounds = Rounds::default();
    // Without discovery there is no plan, and what is planned late is not read.
    while snapshot.kinds().is_some() && !is_over {
        let mut reads = planning.run(|| plan_by_turns(snapshot, asked, others, rules, &mut rounds));
        if reads.is_empty() {
            break;
        }
        let more_time = cluster.with_more_time();
        is_over = more_time.in_time("plan what to read").is_err();
        if is_over {
            // All that is still lacking fails for want of time, so that answers say what was not read.
            reads = planning.run(|| plan_by_turns(snapshot, asked, others, rules, &mut Rounds::spent()));
        }
        let answers = match has_answered {
            true => read_all(&more_time, &reads).await,
            false => read_all(cluster, &reads).await,
        };
        has_answered = answers.iter().any(|answer| !matches!(answer, Err(error) if is_lost(error)));
        take_all(snapshot, &reads, answers);
    }
    rounds.report(snapshot);
}

/// Plans the next reads: those that the cluster's own apps need come first, then one for each other home cluster in
/// turn. Records in the snapshot, for each scope that only apps of other clusters need, the names of those clusters.
/// Without `others`, returns the plan of reads as it is and records nothing.
fn plan_by_turns(
    snapshot: &mut Snapshot,
    asked: &ReadQuery,
    others: Option<(&Turns, &ReadQuery)>,
    rules: &ActiveRules<'_>,
    rounds: &mut Rounds,
) -> Vec<Read> {
    let mut before = rounds.clone();
    let mut reads = plan_reads(snapshot, asked, rules, rounds);
    let Some((turns, own)) = others.filter(|_| !reads.is_empty()) else { return reads };
    let own: BTreeSet<Read> = plan_reads(snapshot, own, rules, &mut before).into_iter().collect();
    turns.order(&own, &mut reads);
    let own_scopes: HashSet<Scope> = own.iter().map(Read::scope).collect();
    for read in &reads {
        let is_foreign = !own_scopes.contains(&read.scope());
        snapshot.set_homes(read, turns.names(read).filter(|_| is_foreign).map(str::to_owned));
    }
    reads
}

/// Returns an empty snapshot of a connected cluster, with its address, and the reason if its server is not verified.
pub(crate) fn begun(name: &str, cluster: &Cluster, now: Timestamp) -> Snapshot {
    let mut snapshot = Snapshot::live(name, now);
    snapshot.add_server(cluster.server());
    if let Some(why) = cluster.unverified() {
        snapshot.set_unverified(why);
    }
    snapshot
}

/// Reads what `asked` needs of a cluster. Fails if its kinds cannot be discovered and no other read was answered.
async fn read(
    name: &str,
    cluster: &Cluster,
    asked: &ReadQuery,
    now: Timestamp,
    rules: &ActiveRules<'_>,
    planning: Planning,
) -> Result<Snapshot, Failure> {
    let mut snapshot = begun(name, cluster, now);

    // What declares apps has well-known names: it is asked for before discovery says that it is there.
    let reads = plan_reads(&snapshot, asked, rules, &mut Rounds::default());
    let (discovery, version, answers) =
        join3(cluster.discover(), cluster.version(), read_all(cluster, &reads)).await;
    if let Ok(version) = version {
        snapshot.set_version(version);
    }
    let mut answered = false;
    let mut too_much = Vec::new();
    for (read, answer) in reads.iter().zip(&answers) {
        answered |= !matches!(answer, Err(error) if is_lost(error));
        too_much.extend(answer.as_ref().err().filter(|error| is_too_much(error)).map(|_| read));
    }
    take_all(&mut snapshot, &reads, answers);
    if answered && discovery.is_ok() {
        by_namespace(&mut snapshot, cluster, &too_much).await;
    }
    match discovery {
        Ok(discovery) => snapshot.set_kinds(catalog(&discovery)),
        Err(error) => {
            let failure = Failure::new(error.reason(), &error, error.hint());
            if !answered {
                return Err(failure);
            }
            let Failure { reason, message } = failure;
            snapshot.report(ScopeError { scope: Scope::Cluster, reason, message });
            return Ok(snapshot);
        }
    }
    go_on_by_turns(&mut snapshot, cluster, asked, None, rules, planning).await;
    if let Some(ahead) = cluster.clock_ahead() {
        snapshot.set_clock_ahead(ahead);
    }
    Ok(snapshot)
}

/// Maximum number of namespaces of a cluster up to which a kind is listed in each of them, after the list of all
/// namespaces was too large; with more it is listed in none.
const MOST_NAMESPACES: usize = 300;

/// Repeats those of `lists` that have neither namespace nor selector in each namespace, after they were too large, so
/// that a namespace with too many objects does not hide those of others, and removes the errors of the whole lists.
/// Does nothing if the namespaces cannot be listed or are more than [`MOST_NAMESPACES`].
async fn by_namespace(snapshot: &mut Snapshot, cluster: &Cluster, lists: &[&Read]) {
    let is_whole = |read: &&&Read| {
        read.namespace.is_none() && read.target == Target::List { labels: None, fields: None }
    };
    let lists: Vec<&Read> = lists.iter().filter(is_whole).copied().collect();
    if lists.is_empty() {
        return;
    }
    let namespaces = Read {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        plural: "namespaces".to_owned(),
        namespace: None,
        target: Target::List { labels: None, fields: None },
        projection: Projection::Metadata,
    };
    let Ok(Some((documents, _))) = read_one(&cluster.with_more_time(), &namespaces).await else { return };
    let names = documents.iter().filter_map(|document| Object::new(document.root()).ok());
    let names: Vec<String> = names.map(|object| object.name().into_owned()).collect();
    if names.len() > MOST_NAMESPACES {
        return;
    }
    let inside = |read: &Read| {
        let read = read.clone();
        names.iter().map(move |name| Read { namespace: Some(name.clone()), ..read.clone() })
    };
    let reads: Vec<Read> = lists.iter().flat_map(|read| inside(read)).collect();
    let answers = read_all(&cluster.with_more_time(), &reads).await;
    take_all(snapshot, &reads, answers);
    // Each namespace of which it is still true says so itself.
    lists.iter().for_each(|read| snapshot.retract(&read.scope()));
}

/// Returns true if the read failed by timeout or by a size limit, so perhaps because there was too much data.
fn is_too_much(error: &ReadError) -> bool {
    matches!(error.reason(), Reason::Timeout | Reason::OverLimit)
}

/// Returns true unless the error shows that the server answered (forbidden, not found, gone, bad request) or sent too
/// much: any other may mean that the whole cluster cannot be read.
fn is_lost(error: &ReadError) -> bool {
    !matches!(
        error.reason(),
        Reason::Forbidden | Reason::NotFound | Reason::Gone | Reason::BadRequest | Reason::OverLimit
    )
}

/// Converts the discovered kinds to the form that the plan of reads takes.
pub fn catalog(discovery: &Discovery) -> KindCatalog {
    let kinds = discovery.resources().iter().map(|served| ServedKind {
        group: served.group.clone(),
        version: served.versions.first().cloned().unwrap_or_default(),
        kind: served.kind.clone(),
        plural: served.plural.clone(),
        namespaced: served.namespaced,
        verbs: served.verbs.clone(),
        has_status_subresource: served.has_status_subresource,
    });
    let broken = discovery.broken().iter().map(|group| {
        let name = group.group().unwrap_or(KindCatalog::ALL_GROUPS);
        (name.to_owned(), group.reason.clone())
    });
    KindCatalog::new(kinds, broken)
}

/// Connects to a cluster and reads what `asked` needs of it. If that fails, the snapshot contains the error; the
/// connection is `None` if the cluster could not be connected to.
async fn connect_and_read(
    connector: &ClusterConnector,
    asked: &ReadQuery,
    now: Timestamp,
    rules: &ActiveRules<'_>,
    planning: Planning,
) -> (Snapshot, Option<Cluster>) {
    let lost = |failure: Failure| connector.member.lost(failure);
    match connector.connect().await {
        Err(failure) => (lost(failure), None),
        Ok(cluster) => match read(&connector.member.name, &cluster, asked, now, rules, planning).await {
            Ok(mut snapshot) => {
                snapshot.set_labels(connector.member.labels.clone());
                (snapshot, Some(cluster))
            }
            Err(failure) => (lost(failure), Some(cluster)),
        },
    }
}

/// Sends all reads at the same time, and returns the results in their order.
async fn read_all(cluster: &Cluster, reads: &[Read]) -> Vec<Outcome> {
    join_all(reads.iter().map(|read| read_one(cluster, read))).await
}

/// Applies the results of reads to the snapshot.
fn take_all(snapshot: &mut Snapshot, reads: &[Read], outcomes: Vec<Outcome>) {
    let documents = outcomes.iter().flatten().flatten().flat_map(|(documents, _)| documents);
    let size = documents.map(|document| document.text().len()).sum();
    aside_if_large(size, || {
        reads.iter().zip(outcomes).for_each(|(read, outcome)| take(snapshot, read, outcome));
    });
}

pub(crate) fn take(snapshot: &mut Snapshot, read: &Read, outcome: Outcome) {
    let answer = match outcome {
        Ok(Some((documents, problems))) => {
            for message in problems {
                snapshot.report(ScopeError { scope: read.scope(), reason: "Malformed".to_owned(), message });
            }
            Answer::Objects(documents)
        }
        Ok(None) => Answer::NotFound,
        Err(error) => match error.reason() {
            Reason::NotFound => Answer::NotFound,
            Reason::Forbidden => Answer::Forbidden { message: chain(&error) },
            reason => Answer::Failed { reason: reason.as_str().to_owned(), message: chain(&error) },
        },
    };
    snapshot.answer(read, answer);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::sleep;

    use serde_json::json;
    use taffrail_apps::declared;
    use taffrail_object::json::OwnedDocument;
    use taffrail_status::{ComputeError, ObjectContext, Rules, Status, Verdict};
    use taffrail_testkit::server::{Reply, Server};

    use super::*;
    use crate::members::{ClusterSelection, members};

    const LONG: Duration = Duration::from_secs(3);

    /// Rules that take the time `time` for each object and give each the status `status`.
    #[derive(Clone)]
    struct Slow {
        time: Duration,
        status: Status,
        begun: Arc<AtomicBool>,
    }

    impl Slow {
        fn new(time: Duration, status: Status) -> Slow {
            Slow { time, status, begun: Arc::default() }
        }
    }

    impl Rules for Slow {
        fn judge(
            &self,
            _: &Object<'_>,
            _: &ObjectContext<'_>,
            _: Timestamp,
        ) -> Result<Verdict, ComputeError> {
            self.begun.store(true, Ordering::Relaxed);
            sleep(self.time);
            Ok(Verdict::new(self.status, "", "slow"))
        }
    }

    async fn connected(kubeconfig: &str) -> Cluster {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), kubeconfig).unwrap();
        let kubeconfig = Some(file.path().to_owned());
        let selection = ClusterSelection { kubeconfig, ..ClusterSelection::default() };
        let member = members(&selection).unwrap().members.remove(0);
        ClusterConnector { member, limits: TimeLimits::each(LONG) }.connect().await.unwrap()
    }

    /// Returns a Knot in the namespace `shop` that refers to `others` there, each a kind and a name.
    fn knot(name: &str, others: impl Iterator<Item = (&'static str, String)>) -> serde_json::Value {
        let others = others
            .map(|(kind, name)| json!({"apiVersion": "example.com/v1", "kind": kind, "name": name}))
            .collect::<Vec<_>>();
        json!({"apiVersion": "example.com/v1", "kind": "Knot", "metadata": {"namespace": "shop", "name": name},
            "spec": {"resourceRefs": others}})
    }

    /// Reads the Knot `k0` and the evidence about it within the time `time`, from a server whose kinds can be read by
    /// name but not listed.
    async fn read_knot(server: &Server, time: Duration, rules: &Slow) -> Snapshot {
        let kubeconfig = taffrail_testkit::kubeconfig(&[("one", &format!("server: {}", server.url()), "")]);
        let cluster = connected(&kubeconfig).await.with_timeout(time);
        let served = |(kind, plural): (&str, &str)| ServedKind {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced: true,
            verbs: vec!["get".to_owned()],
            has_status_subresource: false,
        };
        let mut snapshot = begun("one", &cluster, Timestamp::UNIX_EPOCH);
        snapshot.set_kinds(KindCatalog::new([("Knot", "knots"), ("Thing", "things")].map(served), []));
        let key = ObjectKey::new("example.com", "Knot", "shop", "k0");
        let asked = ReadQuery { declarations: false, objects: vec![key], ..ReadQuery::default() };
        go_on(&mut snapshot, &cluster, &asked, &ActiveRules::new(rules)).await;
        snapshot
    }

    #[tokio::test]
    async fn chain_that_outlasts_the_time_is_reported_as_timeout() {
        // Each Knot waits for one more.
        let server = Server::start(|request| match request.path.rsplit_once("/knots/k") {
            Some((_, number)) => {
                let next = number.parse::<usize>().unwrap() + 1;
                let next = std::iter::once(("Knot", format!("k{next}")));
                Reply::json(200, knot(&format!("k{number}"), next).to_string())
            }
            None => Reply::status(404, "NotFound", "no such object"),
        });
        // To plan takes longer from round to round: each Knot is judged again.
        let rules = Slow::new(Duration::from_millis(150), Status::InProgress);
        let snapshot = read_knot(&server, Duration::from_secs(1), &rules).await;
        let key = ObjectKey::new("example.com", "Knot", "shop", "k0");
        let list = declared(&[&snapshot], &[key], &ActiveRules::new(&rules), Timestamp::UNIX_EPOCH);
        let told: Vec<_> = list.errors.iter().map(|it| (&*it.error.reason, &it.error.scope)).collect();
        let [("Timeout", Scope::Object(unread))] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((&*unread.kind, &*unread.namespace), ("Knot", "shop"));
        assert!(snapshot.all().all(|known| known.key != unread.as_ref()), "{unread}");
        assert_ne!(list.apps[0].health, Status::Current);
    }

    #[tokio::test]
    async fn evidence_beyond_the_bound_is_reported() {
        let server = Server::start(|request| match request.path.ends_with("/knots/k0") {
            true => {
                let things = (0..130).map(|at| ("Thing", format!("t{at}")));
                Reply::json(200, knot("k0", things).to_string())
            }
            false => Reply::status(404, "NotFound", "no such object"),
        });
        let snapshot = read_knot(&server, LONG, &Slow::new(Duration::ZERO, Status::InProgress)).await;
        assert_eq!(server.traffic().count("/things/"), 100);
        let told: Vec<_> = snapshot.errors().iter().map(|error| (&*error.reason, &*error.message)).collect();
        let [("OverLimit", message)] = told.as_slice() else { panic!("{told:?}") };
        assert!(message.contains(": 30 of these were not read"), "{message}");
        assert_eq!(snapshot.errors()[0].scope, Scope::Namespace("shop".to_owned()));
    }

    #[test]
    fn what_takes_long_to_be_planned_for_takes_no_time_of_others() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let cluster = runtime.block_on(async {
            let fleet = taffrail_sim::Fleet::builder().controllers(false).start().await.unwrap();
            let one = fleet.cluster("one").await.unwrap();
            connected(&one.kubeconfig()).await
        });
        let slow = Slow::new(LONG, Status::Current);
        for _ in 0..8 {
            let (cluster, slow) = (cluster.clone(), slow.clone());
            runtime.spawn(async move {
                let mut snapshot = begun("evil", &cluster, Timestamp::UNIX_EPOCH);
                snapshot.set_kinds(KindCatalog::new([], []));
                let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "evil", "name": "slow"}});
                let map = OwnedDocument::parse(map.to_string().into_bytes()).unwrap();
                snapshot.insert(map, Projection::Full).unwrap();
                let key = ObjectKey::new("", "ConfigMap", "evil", "slow");
                let asked = ReadQuery { declarations: false, objects: vec![key], ..ReadQuery::default() };
                go_on(&mut snapshot, &cluster, &asked, &ActiveRules::new(&slow)).await;
            });
        }
        let began = Instant::now();
        let other = runtime.spawn(async {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        runtime.block_on(other).unwrap();
        let took = began.elapsed();
        runtime.shutdown_background();
        assert!(slow.begun.load(Ordering::Relaxed));
        assert!(took < LONG * 2 / 3, "{took:?}");
    }
}
