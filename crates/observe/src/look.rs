//! Live clusters: all at once, each with its own deadline.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::{join_all, join3};
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use taffrail_apps::{
    Answer, Asked, KindCatalog, Objects, Read, ReadMode, Sameness, Scope, ScopeError, ServedKind, Snapshot,
    Target, Turns, elsewhere, next_reads, still_wanted,
};
use taffrail_cluster::{
    ApiResource, Cluster, Context, Deadline, Discovery, Kubeconfig, ListRequest, Memory, ReadError, Reason,
    aside,
};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{Object, ObjectKey, Projection};
use taffrail_status::ActiveRules;

use super::timing::Timing;
use super::{reading, sameness};
use crate::cli::SourceArguments;
use crate::complaint::{Complaint, chain};
use crate::output::progress::Progress;
use crate::rule_source::RulesWithOptions;

/// Why a cluster cannot be read.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// One word in CamelCase.
    pub(crate) reason: String,
    /// For people.
    pub(crate) message: String,
}

impl Failure {
    pub(super) fn new(reason: Reason, error: &dyn std::error::Error, hint: Option<&str>) -> Failure {
        // What the reason tells by itself is told once, below the answer.
        let own = hint.filter(|hint| *hint != reason.hint());
        let hint = own.map(|hint| format!(" ({hint})")).unwrap_or_default();
        Failure { reason: reason.as_str().to_owned(), message: format!("{}{hint}", chain(error)) }
    }
}

/// A context that was asked for, usable or not.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) context: Result<Box<Context>, Failure>,
}

impl Member {
    /// What makes its answers doubtful whatever they are.
    fn warning(&self) -> Option<Complaint> {
        let warning = self.context.as_ref().ok()?.warning()?;
        Some(Complaint::usage(format!("context \"{}\": {warning}", self.name)).harmless())
    }

    /// What is known of it when it does not answer: where it is, so that apps that others deliver there are found to be
    /// its own.
    pub(super) fn lost(&self, failure: Failure) -> Snapshot {
        let mut snapshot = Snapshot::lost(&*self.name, failure.reason, failure.message);
        if let Ok(context) = &self.context {
            snapshot.add_server(context.server());
            if let Some(why) = context.unverified() {
                snapshot.set_unverified(why);
            }
        }
        snapshot
    }
}

/// A member, and how long it may take.
pub(crate) struct Live {
    pub(crate) member: Member,
    timeout: Duration,
}

/// The contexts that were asked for.
pub(crate) struct Members {
    pub(crate) members: Vec<Member>,
    /// What could not be read of the kubeconfigs.
    pub(crate) complaints: Vec<Complaint>,
}

fn kubeconfig(arguments: &SourceArguments) -> Result<Kubeconfig, Complaint> {
    let home = env::home_dir();
    let variable = env::var_os("KUBECONFIG");
    Kubeconfig::load(arguments.kubeconfig.as_deref(), variable.as_deref(), home.as_deref()).map_err(|error| {
        let complaint = Complaint::unreadable("no cluster to ask").because(&error);
        complaint.maybe_hint(error.hint())
    })
}

/// The names of all contexts there are.
pub(crate) fn contexts(arguments: &SourceArguments) -> Result<Vec<String>, Complaint> {
    Ok(kubeconfig(arguments)?.names().map(str::to_owned).collect())
}

/// The names, also several with commas between them, with those of all contexts in place of a pattern such as `prod-*`.
fn matching(names: &[String], kubeconfig: &Kubeconfig) -> Result<Vec<String>, Complaint> {
    let mut found = Vec::new();
    let is_known = |name: &str| kubeconfig.names().any(|known| known == name);
    // A name may have a comma in it; where there is no such context, it stands between two names.
    let split = names.iter().flat_map(|name| match is_known(name) {
        true => vec![name.as_str()],
        false => name.split(',').filter(|part| !part.is_empty()).collect(),
    });
    for name in split {
        if !name.contains('*') {
            found.push(name.to_owned());
            continue;
        }
        let before = found.len();
        found.extend(kubeconfig.names().filter(|context| is_like(name, context)).map(str::to_owned));
        if found.len() == before {
            let complaint = Complaint::usage(format!("no context is called like '{name}'"));
            let known: Vec<&str> = kubeconfig.names().take(10).collect();
            return Err(complaint.hint(format!("there are: {}", known.join(", "))));
        }
    }
    Ok(found)
}

/// Whether a name has the parts of a pattern between its stars, in their order.
fn is_like(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The contexts that the arguments name, or the current one.
pub(crate) fn members(arguments: &SourceArguments) -> Result<Members, Complaint> {
    let kubeconfig = kubeconfig(arguments)?;
    let complaints = kubeconfig
        .problems()
        .iter()
        .map(|error| Complaint::unreadable("cannot use a kubeconfig").because(error).maybe_hint(error.hint()))
        .collect();
    let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"]
        .map(|name| env::var(name).or_else(|_| env::var(name.to_lowercase())).unwrap_or_default());
    let [http, https, no_proxy] = &proxies;
    let proxied = |context: Context| Box::new(context.with_environment_proxies(http, https, no_proxy));

    let mut complaints: Vec<Complaint> = complaints;
    let names: Vec<String> = if arguments.all_contexts {
        kubeconfig.names().map(str::to_owned).collect()
    } else {
        matching(&arguments.context, &kubeconfig)?
    };
    if names.is_empty() {
        let context = kubeconfig.current().map_err(|error| {
            Complaint::unreadable("no cluster to ask").because(&error).maybe_hint(error.hint())
        })?;
        let member = Member { name: context.name().to_owned(), context: Ok(proxied(context)) };
        complaints.extend(member.warning());
        return Ok(Members { members: vec![member], complaints });
    }
    let mut members: Vec<Member> = Vec::new();
    for name in names {
        if members.iter().any(|known| known.name == name) {
            continue;
        }
        let context = kubeconfig.context(&name).map(proxied);
        let context = context.map_err(|error| Failure::new(error.reason(), &error, error.hint().as_deref()));
        let member = Member { name, context };
        complaints.extend(member.warning());
        members.push(member);
    }
    Memory::process().expect(members.len());
    Ok(Members { members, complaints })
}

/// The runtime that asks clusters. Also where there is one processor, no cluster waits for what another one has to be read.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Complaint> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.clamp(2, 4))
        .enable_all()
        .build()
        .map_err(|error| Complaint::unreadable("cannot start").because(&error))
}

/// Tells the patient of whom is waited for.
fn waiting(members: &[Member], verb: &str) -> Progress {
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let text = match names.len() {
        1 => verb.to_owned(),
        several => format!("{verb} {several} clusters"),
    };
    Progress::start(text, names)
}

/// Does the same with each member, all at once; the results come in the order of the members.
pub(crate) fn each<T, F>(
    members: Vec<Member>,
    timeout: Duration,
    work: impl Fn(Live) -> F,
) -> Result<Vec<T>, Complaint>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    Asking::start()?.each(members, timeout, work)
}

/// Asks clusters; connections are of use as long as it lives.
pub(crate) struct Asking(Option<tokio::runtime::Runtime>);

impl Asking {
    pub(crate) fn start() -> Result<Asking, Complaint> {
        runtime().map(|runtime| Asking(Some(runtime)))
    }

    fn runtime(&self) -> Result<&tokio::runtime::Runtime, Complaint> {
        self.0.as_ref().ok_or_else(|| Complaint::unreadable("nobody is asked any more"))
    }

    /// As [`each`].
    pub(crate) fn each<T, F>(
        &self,
        members: Vec<Member>,
        timeout: Duration,
        work: impl Fn(Live) -> F,
    ) -> Result<Vec<T>, Complaint>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let runtime = self.runtime()?;
        let progress = waiting(&members, "asking");
        let spawn = |member: Member| {
            let (name, progress) = (member.name.clone(), progress.clone());
            let working = work(Live { member, timeout });
            runtime.spawn(async move {
                let result = working.await;
                progress.done(&name);
                result
            })
        };
        finish(runtime, members.into_iter().map(spawn).collect())
    }

    /// Waits for something that is asked of a connection.
    #[cfg(feature = "lua")]
    pub(crate) fn wait<T>(&self, asked: impl Future<Output = T>) -> Result<T, Complaint> {
        Ok(self.runtime()?.block_on(asked))
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        // A name that does not resolve holds a thread that cannot be interrupted.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

fn finish<T>(
    runtime: &tokio::runtime::Runtime,
    tasks: Vec<tokio::task::JoinHandle<T>>,
) -> Result<Vec<T>, Complaint> {
    let results = runtime.block_on(join_all(tasks)).into_iter();
    let results: Result<_, _> = results.collect();
    results.map_err(|error| Complaint::unreadable("a cluster could not be read").because(&error))
}

/// What else is wanted of a cluster, in view of what there is; with the namespace of its context.
pub(crate) type More<'m> = &'m dyn Fn(&Snapshot, &str) -> Vec<ObjectKey>;

/// Reads what `asked` needs of all members at once; then of each what apps of the others deliver into it, and
/// what `more` wants when it sees what there is. How the time is divided says [`super::timing`].
pub(super) fn fleet(
    members: Vec<Member>,
    timeout: Duration,
    asked: Asked,
    now: Timestamp,
    rules: RulesWithOptions,
    more: More<'_>,
) -> Result<Vec<(Snapshot, Option<Cluster>)>, Complaint> {
    let runtime = runtime()?;
    let timing = Timing::start(timeout);
    let asked = Arc::new(asked);
    let namespace =
        |member: &Member| member.context.as_ref().map_or("default", |it| it.namespace()).to_owned();
    let namespaces: Vec<String> = members.iter().map(namespace).collect();
    let progress = waiting(&members, "asking");
    let first = |(place, member)| {
        let (live, asked, progress) = (Live { member, timeout }, asked.clone(), progress.clone());
        let rules = rules.clone();
        runtime.spawn(async move {
            let (name, begun) = (live.member.name.clone(), Instant::now());
            let (snapshot, cluster) = live.snapshot(&asked, now, &rules.active()).await;
            progress.done(&name);
            (place, Look { snapshot, cluster, spent: begun.elapsed() })
        })
    };
    let tasks: FuturesUnordered<_> = members.into_iter().enumerate().map(first).collect();
    let lives = runtime.block_on(alone(tasks, timing)).and_then(|mut looks| {
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
        let second = |(Look { mut snapshot, cluster, spent }, namespace): (Look, &String)| {
            let left = timing.elsewhere(spent);
            let keys = wanted.remove(snapshot.name()).unwrap_or_default();
            let (turns, dependents_in) = others.remove(snapshot.name()).unwrap_or_default();
            let own = [asked.objects.clone(), more(&snapshot, namespace)].concat();
            let objects = [own.clone(), keys].concat();
            let own = Asked { objects: own, ..(*asked).clone() };
            let asked = Asked { objects, dependents_in, ..(*asked).clone() };
            let rules = rules.clone();
            runtime.spawn(async move {
                if let Some(cluster) = &cluster {
                    let others = (!turns.is_empty()).then_some((&turns, &own));
                    let cluster = cluster.with_timeout(left);
                    go_on_by_turns(&mut snapshot, &cluster, &asked, others, &rules.active()).await;
                    snapshot.set_reading(reading::once(&cluster));
                }
                (snapshot, cluster)
            })
        };
        finish(&runtime, looks.into_iter().zip(&namespaces).map(second).collect())
    });
    runtime.shutdown_background();
    lives
}

/// What was read of one member by itself, and how long that took.
struct Look {
    snapshot: Snapshot,
    cluster: Option<Cluster>,
    spent: Duration,
}

/// Takes in what is read of each member by itself, in the order of the members. Those that give one identity are compared as
/// soon as both have answered, while others are still read.
async fn alone(
    mut tasks: FuturesUnordered<tokio::task::JoinHandle<(usize, Look)>>,
    timing: Timing,
) -> Result<Vec<Look>, Complaint> {
    let mut looks: BTreeMap<usize, Look> = BTreeMap::new();
    let mut comparing = FuturesUnordered::new();
    let mut compared = Vec::new();
    loop {
        tokio::select! {
            Some(ended) = tasks.next() => {
                let ended = ended.map_err(|error| Complaint::unreadable("a cluster could not be read").because(&error));
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

/// Reads what the plan says is still to be read. A list that took all the time fails for its kind alone: while the cluster
/// answers, each round has some time of its own.
pub(crate) async fn go_on(
    snapshot: &mut Snapshot,
    cluster: &Cluster,
    asked: &Asked,
    rules: &ActiveRules<'_>,
) {
    go_on_by_turns(snapshot, cluster, asked, None, rules).await;
}

/// As [`go_on`], where apps of `others` want something too: what is asked without them goes first, and each of them has its turn.
async fn go_on_by_turns(
    snapshot: &mut Snapshot,
    cluster: &Cluster,
    asked: &Asked,
    others: Option<(&Turns, &Asked)>,
    rules: &ActiveRules<'_>,
) {
    let (mut has_answered, mut is_over) = (true, false);
    // Without discovery there is no plan, and what is planned late is not read.
    while snapshot.kinds().is_some() && !is_over {
        let reads = aside(|| {
            let mut reads = next_reads(snapshot, asked, rules);
            if let Some((turns, own)) = others.filter(|_| reads.len() > 1) {
                turns.order(&next_reads(snapshot, own, rules).into_iter().collect(), &mut reads);
            }
            reads
        });
        if reads.is_empty() {
            return;
        }
        let more_time = cluster.with_more_time();
        is_over = more_time.in_time("plan what to read").is_err();
        let answers = match has_answered {
            true => read_all(&more_time, &reads).await,
            false => read_all(cluster, &reads).await,
        };
        has_answered = answers.iter().any(|answer| !matches!(answer, Err(error) if is_lost(error)));
        take_all(snapshot, &reads, answers);
    }
}

impl Live {
    /// A member that may take so long.
    #[cfg(feature = "demo")]
    pub(super) fn new(member: Member, timeout: Duration) -> Live {
        Live { member, timeout }
    }

    /// Returns how long it may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Connects; the deadline begins here.
    pub(crate) async fn connect(&self) -> Result<Cluster, Failure> {
        let context = self.member.context.as_ref().map_err(Clone::clone)?;
        let connected = Cluster::connect(context, Deadline::after(self.timeout)).await;
        connected.map_err(|error| Failure::new(error.reason(), &error, error.hint()))
    }

    /// Reads all that is needed to show the apps.
    async fn snapshot(
        self,
        asked: &Asked,
        now: Timestamp,
        rules: &ActiveRules<'_>,
    ) -> (Snapshot, Option<Cluster>) {
        let lost = |failure: Failure| self.member.lost(failure);
        match self.connect().await {
            Err(failure) => (lost(failure), None),
            Ok(cluster) => match read(&self.member.name, &cluster, asked, now, rules).await {
                Ok(snapshot) => (snapshot, Some(cluster)),
                Err(failure) => (lost(failure), Some(cluster)),
            },
        }
    }
}

/// A snapshot of a cluster that answers; nothing was read of it yet.
pub(crate) fn begun(name: &str, cluster: &Cluster, now: Timestamp) -> Snapshot {
    let mut snapshot = Snapshot::live(name, now);
    snapshot.add_server(cluster.server());
    if let Some(why) = cluster.unverified() {
        snapshot.set_unverified(why);
    }
    snapshot
}

/// Reads all that is needed to show the apps of a cluster; a failure where it does not answer at all.
pub(super) async fn read(
    name: &str,
    cluster: &Cluster,
    asked: &Asked,
    now: Timestamp,
    rules: &ActiveRules<'_>,
) -> Result<Snapshot, Failure> {
    let mut snapshot = begun(name, cluster, now);

    // What declares apps has well-known names: it is asked for before discovery says that it is there.
    let reads = aside(|| next_reads(&snapshot, asked, rules));
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
    go_on(&mut snapshot, cluster, asked, rules).await;
    if let Some(ahead) = cluster.clock_ahead() {
        snapshot.set_clock_ahead(ahead);
    }
    Ok(snapshot)
}

/// The most namespaces in which a list is made that cannot be had as a whole.
const MOST_NAMESPACES: usize = 300;

/// Lists in each namespace what could not be listed in all: what is too much in one is not to hide what is in others.
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

/// Whether an error may come of how much was asked for.
fn is_too_much(error: &ReadError) -> bool {
    matches!(error.reason(), Reason::Timeout | Reason::OverLimit)
}

/// Whether an error says that the cluster as a whole cannot be read, not only this one thing.
fn is_lost(error: &ReadError) -> bool {
    !matches!(
        error.reason(),
        Reason::Forbidden | Reason::NotFound | Reason::Gone | Reason::BadRequest | Reason::OverLimit
    )
}

/// What discovery says, in the words of the plan of reads.
pub(crate) fn catalog(discovery: &Discovery) -> KindCatalog {
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

/// So many objects take a while to be read.
const MANY: usize = 500;

/// What became of a read: objects with what was wrong in some of them, nothing of that name, or a failure.
pub(super) type Outcome = Result<Option<(Vec<OwnedDocument>, Vec<String>)>, ReadError>;

/// Reads all at once.
async fn read_all(cluster: &Cluster, reads: &[Read]) -> Vec<Outcome> {
    join_all(reads.iter().map(|read| read_one(cluster, read))).await
}

/// The resource that a read is addressed to.
pub(super) fn resource(read: &Read) -> ApiResource {
    ApiResource {
        group: read.group.clone(),
        version: read.version.clone(),
        kind: read.kind.clone(),
        plural: read.plural.clone(),
        namespaced: read.namespace.is_some(),
    }
}

pub(super) async fn read_one(cluster: &Cluster, read: &Read) -> Outcome {
    let resource = resource(read);
    let (texts, mut problems) = match &read.target {
        Target::Object(name) => {
            match cluster.get(&resource, read.namespace.as_deref(), name, read.projection).await? {
                Some(text) => (vec![text], Vec::new()),
                None => return Ok(None),
            }
        }
        Target::List { labels, fields } => {
            let request = ListRequest {
                namespace: read.namespace.as_deref(),
                projection: read.projection,
                label_selector: labels.as_deref(),
                field_selector: fields.as_deref(),
                ..ListRequest::all(&resource)
            };
            let listing = cluster.list(&request).await?;
            let malformed = listing.malformed.iter().map(|item| {
                let name = item.name.clone().unwrap_or_else(|| format!("item {}", item.index));
                format!("{name}: {}", item.reason)
            });
            (listing.objects, malformed.collect())
        }
    };
    let is_much = texts.len() > MANY;
    let parse = || {
        let mut documents = Vec::with_capacity(texts.len());
        for text in texts {
            cluster.in_time("read what was listed")?;
            match OwnedDocument::parse(text) {
                Ok(document) => documents.push(document),
                Err(error) => problems.push(error.to_string()),
            }
        }
        Ok(Some((documents, problems)))
    };
    if is_much { aside(parse) } else { parse() }
}

/// Takes in what became of reads, beside all else.
fn take_all(snapshot: &mut Snapshot, reads: &[Read], outcomes: Vec<Outcome>) {
    aside(|| reads.iter().zip(outcomes).for_each(|(read, outcome)| take(snapshot, read, outcome)));
}

pub(super) fn take(snapshot: &mut Snapshot, read: &Read, outcome: Outcome) {
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

    use taffrail_status::{ComputeError, ObjectContext, Rules, Status, Verdict};

    use super::*;

    /// Rules of a cluster that take long to plan with.
    #[derive(Clone, Default)]
    struct Slow {
        begun: Arc<AtomicBool>,
    }

    const LONG: Duration = Duration::from_secs(3);

    impl Rules for Slow {
        fn judge(
            &self,
            _: &Object<'_>,
            _: &ObjectContext<'_>,
            _: Timestamp,
        ) -> Result<Verdict, ComputeError> {
            self.begun.store(true, Ordering::Relaxed);
            sleep(LONG);
            Ok(Verdict::new(Status::Current, "", "slow"))
        }
    }

    #[test]
    fn what_takes_long_to_be_planned_for_takes_no_time_of_others() {
        let runtime = runtime().unwrap_or_else(|_| panic!("no runtime"));
        let cluster = runtime.block_on(async {
            let fleet = taffrail_sim::Fleet::builder().controllers(false).start().await.unwrap();
            let one = fleet.cluster("one").await.unwrap();
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), one.kubeconfig()).unwrap();
            let source = SourceArguments::of_kubeconfig(file.path().to_owned(), LONG);
            let context =
                members(&source).unwrap_or_else(|_| panic!("no contexts")).members.remove(0).context;
            Cluster::connect(&context.unwrap(), Deadline::after(LONG)).await.unwrap()
        });
        let slow = Slow::default();
        for _ in 0..8 {
            let (cluster, slow) = (cluster.clone(), slow.clone());
            runtime.spawn(async move {
                let mut snapshot = begun("evil", &cluster, Timestamp::UNIX_EPOCH);
                snapshot.set_kinds(KindCatalog::new([], []));
                let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "evil", "name": "slow"}});
                let map = OwnedDocument::parse(map.to_string().into_bytes()).unwrap();
                snapshot.insert(map, Projection::Full).unwrap();
                let key = ObjectKey::new("", "ConfigMap", "evil", "slow");
                let asked = Asked { declarations: false, objects: vec![key], ..Asked::default() };
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
