//! Finds the containers whose logs a question asks for: in clusters that the command reads itself, or in those of a
//! hub.

use std::collections::{BTreeSet, HashSet};
use std::future::Future;
use std::time::Duration;

use taffrail_api::logs::{LogEvent, LogSubject, LogsQuestion};
use taffrail_api::question::{FleetFacts, FleetProblem, QuestionError, concerning, find, resolve_clusters};
use taffrail_apps::{App, AppError, AppList, AppQuery};
use taffrail_cluster::{Cluster, LogRequest};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{Object, ObjectKey};
use taffrail_observe::logs::{
    LogChoice, LogReader, LogTarget, LogTargets, PodsOf, PodsRequest, choose, pods_of_app, pods_of_object,
};
use taffrail_observe::{ClusterConnector, Failure, FleetMembers, FleetSnapshot, Member, ObjectArg};
use taffrail_status::Status;

/// Number of lines of each log without `--tail` and `--since`, if there are several logs, as in kubectl.
const TAIL_OF_SEVERAL: u64 = 10;
/// Maximum number of logs that a question reads; further ones are left out and counted.
const MAX_LOGS: usize = 2_000;
/// Number of logs that one event names.
const NAMED: usize = 200;

/// The name of a cluster, and the result of asking it.
pub(crate) type OfCluster<T> = (String, Result<T, Failure>);

/// The reads of clusters that finding logs needs.
pub(crate) trait LogSource: Sync {
    /// The error of a read that concerns all clusters, or that a question has no answer.
    type Error: From<QuestionError> + Send;

    /// Returns the clusters to choose from, and failures outside of them.
    fn members(&self) -> Result<FleetMembers, Self::Error>;

    /// Finds the Pods of an object in each of the clusters `members`.
    fn objects(
        &self,
        members: Vec<Member>,
        request: PodsRequest,
    ) -> impl Future<Output = Result<Vec<OfCluster<(Cluster, PodsOf)>>, Self::Error>> + Send;

    /// Reads the apps declared in `namespace` (`None` for all), with the dependents of the one called `name` (`None`
    /// for those of all), and returns what `take` makes of them.
    fn apps<T: Send + 'static>(
        &self,
        question: &LogsQuestion,
        name: Option<&AppQuery>,
        take: impl FnOnce(&FleetSnapshot) -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, Self::Error>> + Send;

    /// Connects to each of the clusters `members`.
    fn connect(
        &self,
        members: Vec<Member>,
    ) -> impl Future<Output = Result<Vec<OfCluster<Cluster>>, Self::Error>> + Send;
}

/// Connects to a cluster, and finds the Pods of an object in it.
pub(crate) async fn pods_in(
    connector: ClusterConnector,
    request: PodsRequest,
) -> OfCluster<(Cluster, PodsOf)> {
    let found = async {
        let cluster = connector.connect().await?;
        let pods = pods_of_object(&cluster, &request).await?;
        Ok((cluster, pods))
    };
    (connector.member.name.clone(), found.await)
}

/// Connects to a cluster.
pub(crate) async fn cluster_of(connector: ClusterConnector) -> OfCluster<Cluster> {
    (connector.member.name.clone(), connector.connect().await)
}

/// The problems and notes of a search for logs, whether or not it finds any.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) problems: Vec<FleetProblem>,
    pub(crate) notes: Vec<String>,
    pub(crate) errors: Vec<AppError>,
    /// The names of the clusters that were never observed.
    pub(crate) unobserved: BTreeSet<String>,
    pub(crate) unread: Vec<(String, Failure)>,
}

impl Told {
    /// Returns the events that tell this.
    pub(crate) fn events(self) -> impl Iterator<Item = LogEvent> {
        let Told { problems, notes, errors, unobserved, unread } = self;
        let problems = problems.into_iter().map(LogEvent::Problem);
        let notes = notes.into_iter().map(|text| LogEvent::Note { text });
        let errors = errors.into_iter().map(move |error| {
            let is_unobserved = unobserved.contains(&error.cluster);
            LogEvent::Error { error, is_unobserved }
        });
        let unread = unread.into_iter().map(|(cluster, Failure { reason, message })| LogEvent::Unread {
            cluster,
            reason,
            message,
        });
        problems.chain(notes).chain(errors).chain(unread)
    }
}

/// One cluster, and the Pods of the app or object in it.
pub(crate) struct ClusterPods {
    name: String,
    cluster: Cluster,
    pods: Vec<OwnedDocument>,
    /// True if the user named the Pods themselves, not an app or objects that have Pods.
    are_named: bool,
}

impl ClusterPods {
    fn choose(&self, question: &LogsQuestion) -> LogTargets {
        let pods: Vec<Object<'_>> = self.pods.iter().filter_map(|pod| Object::new(pod.root()).ok()).collect();
        let all_pods = question.all_pods || self.are_named;
        choose(&pods, &LogChoice { container: question.container.clone(), all_pods })
    }
}

/// The log of one container, to be read.
pub(crate) struct FoundLog {
    pub(crate) cluster: String,
    pub(crate) reader: LogReader,
    pub(crate) target: LogTarget,
    pub(crate) request: LogRequest,
}

impl FoundLog {
    fn new(cluster: &str, reader: &LogReader, target: LogTarget, question: &LogsQuestion) -> FoundLog {
        let request = LogRequest {
            namespace: target.namespace.clone(),
            pod: target.pod.clone(),
            container: target.container.clone(),
            previous: question.previous,
            follow: question.follow,
            timestamps: question.timestamps,
            tail: question.tail.and_then(|tail| u64::try_from(tail).ok()),
            since: question.since_millis.map(Duration::from_millis),
        };
        FoundLog { cluster: cluster.to_owned(), reader: reader.clone(), target, request }
    }
}

/// The logs that are read, and the numbers of what is left out.
pub(crate) struct ChosenLogs {
    pub(crate) logs: Vec<FoundLog>,
    well: usize,
    left_out: usize,
}

impl ChosenLogs {
    /// Returns the events that name the logs.
    pub(crate) fn events(&self) -> impl Iterator<Item = LogEvent> {
        let subject = |log: &FoundLog| LogSubject {
            cluster: log.cluster.clone(),
            namespace: log.target.namespace.clone(),
            pod: log.target.pod.clone(),
            container: log.target.container.clone(),
            status: log.target.status,
        };
        let part = |part: &[FoundLog]| LogEvent::Logs { subjects: part.iter().map(subject).collect() };
        let parts: Vec<LogEvent> = self.logs.chunks(NAMED).map(part).collect();
        parts.into_iter().chain([LogEvent::Chosen { well: self.well, left_out: self.left_out }])
    }
}

/// Chooses the containers of `found` whose logs are read: those with the worst status. `reader` makes the reader of a
/// cluster's logs.
///
/// # Errors
/// Fails if the question names a container that none of the Pods has.
pub(crate) fn chosen(
    mut found: Vec<ClusterPods>,
    question: &LogsQuestion,
    reader: impl Fn(&str, &Cluster) -> LogReader,
) -> Result<ChosenLogs, QuestionError> {
    found.retain(|found| !found.pods.is_empty());
    let mut chosen = ChosenLogs { logs: Vec::new(), well: 0, left_out: 0 };
    let mut known = BTreeSet::new();
    let of_each: Vec<LogTargets> = found.iter().map(|found| found.choose(question)).collect();
    let worst = of_each.iter().filter_map(|targets| targets.status).min();
    for (found, targets) in found.iter().zip(of_each) {
        known.extend(targets.known);
        // Pods that fail in one cluster hide those that are well in others, too.
        let is_hidden = targets.status == Some(Status::Current) && worst != targets.status;
        if is_hidden && !question.all_pods && !found.are_named {
            chosen.well += found.pods.len();
            continue;
        }
        chosen.well += targets.well;
        chosen.left_out += targets.left_out;
        let reader = reader(&found.name, &found.cluster);
        let log = |target| FoundLog::new(&found.name, &reader, target, question);
        chosen.logs.extend(targets.targets.into_iter().map(log));
    }
    if chosen.logs.is_empty()
        && let (Some(container), false) = (&question.container, known.is_empty())
    {
        let (container, known) = (container.clone(), Vec::from_iter(known));
        return Err(QuestionError::NoContainer { container, known });
    }
    chosen.left_out += chosen.logs.len().saturating_sub(MAX_LOGS);
    chosen.logs.truncate(MAX_LOGS);
    if chosen.logs.len() > 1 && question.tail.is_none() && question.since_millis.is_none() {
        chosen.logs.iter_mut().for_each(|log| log.request.tail = Some(TAIL_OF_SEVERAL));
    }
    Ok(chosen)
}

/// Finds the Pods of the app or object that the question names, in each cluster. Adds to `told` what could not be read.
///
/// # Errors
/// Fails if there is no such app or object.
pub(crate) async fn pods<S: LogSource>(
    source: &S,
    question: &LogsQuestion,
    told: &mut Told,
) -> Result<Vec<ClusterPods>, S::Error> {
    let text = &question.what;
    let query = text.parse::<AppQuery>().ok();
    // The full name of an app has as many parts as that of an object.
    let object = match &query {
        Some(query) if query.cluster().is_some() => None,
        _ => text.parse::<ObjectArg>().ok(),
    };
    if query.is_none() && object.is_none() {
        return Err(QuestionError::InvalidName { text: text.clone() }.into());
    }
    let FleetMembers { members: all, problems } = source.members()?;
    let own = object.as_ref().and_then(ObjectArg::cluster).map(str::to_owned);
    check_clusters(question.clusters.iter().chain(&own).map(String::as_str), &all)?;
    told.problems = problems;
    let Some(object) = object else {
        return match &query {
            Some(query) => of_app(source, question, query, all, told).await,
            None => Ok(Vec::new()),
        };
    };
    let is_chosen = |member: &&Member| {
        (question.clusters.is_empty() || question.clusters.contains(&member.name))
            && own.as_ref().is_none_or(|own| *own == member.name)
    };
    let members = all.iter().filter(is_chosen).cloned().collect();
    let request = PodsRequest {
        object: object.clone(),
        namespace: question.namespace.clone(),
        all_namespaces: question.all_namespaces,
    };
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let (mut is_served, mut keys) = (false, Vec::new());
    for (name, answer) in source.objects(members, request).await? {
        match answer {
            Ok((cluster, PodsOf { objects, is_served: own, pods, note })) => {
                told.notes.extend(note.map(|note| format!("{name}: {note}")));
                is_served |= own;
                let are_named = objects.iter().all(|key| (&*key.group, &*key.kind) == ("", "Pod"));
                keys.extend(objects);
                found.push(ClusterPods { name, cluster, pods, are_named });
            }
            Err(failure) => unread.push((name, failure)),
        }
    }
    once_each(&mut found);
    if found.iter().any(|found| !found.pods.is_empty()) || query.is_none() && !keys.is_empty() {
        told.unread.extend(unread);
        return Ok(found);
    }
    // An object that declares an app stands for that app.
    if let Some(key) = keys.into_iter().next() {
        return of_declaring(source, question, key, all, told).await;
    }
    let Some(query) = query.as_ref() else {
        return nothing(question, &object, is_served, unread, told).map_err(Into::into);
    };
    if !is_served && unread.is_empty() {
        return of_app(source, question, query, all, told).await;
    }
    match of_app(source, question, query, all, told).await {
        Ok(found) => Ok(found),
        Err(_) => nothing(question, &object, is_served, unread, told).map_err(Into::into),
    }
}

/// Returns no Pods where some clusters could not be read, which `told` then tells; fails, as there is no such object,
/// if all could be read.
fn nothing(
    question: &LogsQuestion,
    object: &ObjectArg,
    is_served: bool,
    unread: Vec<(String, Failure)>,
    told: &mut Told,
) -> Result<Vec<ClusterPods>, QuestionError> {
    if unread.is_empty() {
        return Err(QuestionError::NoSuchObject {
            text: question.what.clone(),
            object: object.to_string(),
            is_served,
            has_searched_all: question.all_namespaces,
        });
    }
    told.unread.extend(unread);
    Ok(Vec::new())
}

/// Fails for the first of `wanted` that is not the name of a member.
fn check_clusters<'w>(
    mut wanted: impl Iterator<Item = &'w str>,
    members: &[Member],
) -> Result<(), QuestionError> {
    match wanted.find(|wanted| !members.iter().any(|member| member.name == *wanted)) {
        None => Ok(()),
        Some(name) => {
            let known = members.iter().map(|member| member.name.clone()).collect();
            Err(QuestionError::UnknownCluster { name: name.to_owned(), known })
        }
    }
}

/// Removes the Pods whose UID an earlier entry has, so that the logs of a cluster with two contexts are printed once.
fn once_each(found: &mut [ClusterPods]) {
    let mut seen = HashSet::new();
    for found in found {
        found.pods.retain(|pod| {
            let uid = Object::new(pod.root()).map(|pod| pod.text(&["metadata", "uid"]).into_owned());
            uid.is_ok_and(|uid| uid.is_empty() || seen.insert(uid))
        });
    }
}

/// The Pods of apps, each with the name of its cluster, and what could not be read.
struct AppPods {
    pods: Vec<(String, Vec<OwnedDocument>)>,
    errors: Vec<AppError>,
    unobserved: BTreeSet<String>,
}

impl AppPods {
    fn of(fleet: &FleetSnapshot, list: &AppList, apps: &[&App]) -> AppPods {
        AppPods {
            pods: apps.iter().map(|app| (app.app.target.clone(), pods_of_app(fleet, app))).collect(),
            errors: concerning(list, apps),
            unobserved: FleetFacts::of(fleet).unobserved,
        }
    }
}

/// Finds the Pods of the app that `query` names, in each cluster that has it.
async fn of_app<S: LogSource>(
    source: &S,
    question: &LogsQuestion,
    query: &AppQuery,
    members: Vec<Member>,
    told: &mut Told,
) -> Result<Vec<ClusterPods>, S::Error> {
    let (name, namespace, mut clusters) =
        (query.clone(), question.namespace.clone(), question.clusters.clone());
    let take = move |fleet: &FleetSnapshot| {
        resolve_clusters(&mut clusters, &fleet.clusters())?;
        let list = fleet.apps(&[]);
        let apps = find(&name, namespace.as_deref(), &clusters, &list)?;
        Ok::<_, QuestionError>(AppPods::of(fleet, &list, &apps))
    };
    let found = source.apps(question, Some(query), take).await??;
    connected(source, found, members, told).await
}

/// Finds the Pods of the apps whose declaring object is `key`.
async fn of_declaring<S: LogSource>(
    source: &S,
    question: &LogsQuestion,
    key: ObjectKey,
    members: Vec<Member>,
    told: &mut Told,
) -> Result<Vec<ClusterPods>, S::Error> {
    let mut clusters = question.clusters.clone();
    let take = move |fleet: &FleetSnapshot| {
        resolve_clusters(&mut clusters, &fleet.clusters())?;
        let list = fleet.apps(&[]);
        let is_chosen = |app: &&App| clusters.is_empty() || clusters.contains(&app.app.target);
        let declared = list.apps.iter().filter(|app| app.declaring.as_ref() == Some(&key));
        let apps: Vec<&App> = declared.filter(is_chosen).collect();
        Ok::<_, QuestionError>(AppPods::of(fleet, &list, &apps))
    };
    let everywhere = LogsQuestion { namespace: None, ..question.clone() };
    let found = source.apps(&everywhere, None, take).await??;
    connected(source, found, members, told).await
}

/// Connects to those clusters in which `found` has any Pods, and returns these.
async fn connected<S: LogSource>(
    source: &S,
    found: AppPods,
    members: Vec<Member>,
    told: &mut Told,
) -> Result<Vec<ClusterPods>, S::Error> {
    told.errors.extend(found.errors);
    told.unobserved.extend(found.unobserved);
    let mut wanted: Vec<(String, Vec<OwnedDocument>)> = Vec::new();
    for (name, pods) in found.pods.into_iter().filter(|(_, pods)| !pods.is_empty()) {
        match wanted.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => known.extend(pods),
            None => wanted.push((name, pods)),
        }
    }
    let is_wanted = |member: &Member| wanted.iter().any(|(name, _)| *name == member.name);
    let members = members.into_iter().filter(is_wanted).collect();
    let mut found = Vec::new();
    for (name, connected) in source.connect(members).await? {
        match connected {
            Ok(cluster) => {
                let pods = wanted.iter_mut().find(|(wanted, _)| *wanted == name);
                let pods = pods.map(|(_, pods)| std::mem::take(pods)).unwrap_or_default();
                found.push(ClusterPods { name, cluster, pods, are_named: false });
            }
            Err(failure) => told.unread.push((name, failure)),
        }
    }
    Ok(found)
}
