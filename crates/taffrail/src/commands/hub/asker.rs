//! Answers the questions of views: from what the hub follows, and where a view needs more, from a look at the clusters.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use taffrail_api::logs::LogsQuestion;
use taffrail_api::operations::{
    ActionQuestion, OperationQuestion, PlanAnswer, RunRequest, UncertainWrite, WriteTrace,
};
use taffrail_api::question::{
    AskedClusters, ClusterStatuses, ExplainAnswer, ExplainView, ListAnswer, OverviewAnswer, QuestionError,
    StatusAnswer, StatusView, View, ViewAnswer, ViewQuestion,
};
use taffrail_api::{AppRow, ClusterRow, ObjectActionList};
use taffrail_apps::{
    AppError, Freshness, FreshnessState, Objects as _, ReadQuery, Scope, ScopeError, Snapshot,
};
use taffrail_cluster::Reason;
use taffrail_hub::agents::Agents;
use taffrail_hub::{Ask, AskError, Asking, AskingLogs, FleetIndex, LogBounds, Operate, OperationRun};
use taffrail_object::ObjectKey;
use taffrail_observe::logs::{LogPlaces, LogReader};
use taffrail_observe::{
    ClusterConnector, ExtraObjects, Failure, FleetMembers, FleetRules, FleetSnapshot, Inquiry, LookRequest,
    Member, TimeBudget, TimeLimits, absent_namespaces, for_each_cluster, look,
};
use taffrail_status::Trust;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

#[cfg(feature = "agent")]
pub(crate) use answerer::answerer;
use checks::{CheckedFleet, ResultsOfChecks};
use passing::Passed;
use reported::{ReportedClusters, WholeFleet};

use crate::commands::explain::logs;
use crate::commands::status::answered::{ObjectsAsked, ObjectsRead};
use crate::rule_source::RulesWithOptions;

#[cfg(feature = "agent")]
mod answerer;
mod checks;
mod log_search;
mod operations;
mod passing;
mod reported;

/// Maximum number of questions in the channel to the task that holds the fleet; further ones wait for room in it.
const WAITING: usize = 64;

/// Maximum number of questions for which a cluster is asked at one time; further ones wait for their turn.
const MAX_AT_ONCE: usize = 32;

/// The maximum time for which a question waits for its turns at clusters, then the hub refuses it as busy; half of the
/// question's own time if that is shorter.
const TURN: Duration = Duration::from_secs(2);

/// The time that remains for computing and sending an answer after the clusters were asked.
const SENDING: Duration = Duration::from_millis(500);

/// The time in which an operation is planned again before it runs.
const PREPARING: Duration = Duration::from_secs(9);

/// Maximum length of the objects of clusters that do not answer that are copied for an answer, as JSON texts in bytes.
/// The answer tells of further such clusters only that they do not answer.
const MAX_COPIED: u64 = 64 << 20;

/// The time by which the clusters must have answered a question.
#[derive(Debug, Clone, Copy)]
struct Deadline(Instant);

impl Deadline {
    /// Returns the deadline of a question whose answer is due in `patience`.
    fn of(patience: Duration) -> Deadline {
        Deadline(Instant::now() + patience.saturating_sub(SENDING))
    }

    /// Returns the moment until which the question waits for its turns: [`TURN`] from now, but at most half of the time
    /// that is left, so that the clusters have the rest.
    fn of_turns(self) -> Instant {
        let now = Instant::now();
        now + (self.0.saturating_duration_since(now) / 2).min(TURN)
    }

    /// Returns the deadline after half of the time that is left.
    fn halved(self) -> Deadline {
        let now = Instant::now();
        Deadline(now + self.0.saturating_duration_since(now) / 2)
    }

    /// Returns the limits of asking the clusters from now on.
    fn limits(self) -> TimeLimits {
        let time = self.0.saturating_duration_since(Instant::now());
        TimeLimits { total: TimeBudget::PerCluster(time), request: None }
    }
}

/// The part of the hub that answers questions about the clusters that it follows.
pub(super) struct Asker {
    inquiries: mpsc::Sender<Inquiry>,
    /// The clusters that are followed now.
    members: watch::Receiver<FleetMembers>,
    rules: Arc<dyn FleetRules>,
    /// The Argo CDs whose actions are offered.
    #[cfg_attr(not(feature = "lua"), expect(dead_code, reason = "without Lua there are no actions"))]
    trust: Trust,
    objects_rules: RulesWithOptions,
    /// The index that has the clusters which agents report or metrics tell of; `None` if the hub has no such source.
    reports: Option<Arc<FleetIndex>>,
    /// The agents; `None` if the hub takes no reports of agents.
    agents: Option<Arc<Agents>>,
    /// The turns of questions, and the places of logs, at each cluster that was asked, by name.
    turns: Mutex<HashMap<String, ClusterTurns>>,
}

/// The bounds of what is asked of one cluster at the same time. Clones share them.
#[derive(Clone)]
struct ClusterTurns {
    questions: Arc<Semaphore>,
    logs: LogPlaces,
}

impl Default for ClusterTurns {
    fn default() -> ClusterTurns {
        ClusterTurns { questions: Arc::new(Semaphore::new(MAX_AT_ONCE)), logs: LogPlaces::default() }
    }
}

/// The answer to a question if no cluster that it is about can be asked, or else the clusters to ask.
enum Prepared<A> {
    /// The answer, or the reason why the question has none.
    Answered(Result<A, QuestionError>),
    /// The names of the clusters to ask, and the other clusters: with what is known of them if the question is about
    /// them but they do not answer, up to [`MAX_COPIED`], else without objects.
    Asks(BTreeSet<String>, Vec<Snapshot>),
}

/// Returns the names of those clusters that are among `names` (`None` for all) and answer, and the other clusters: with
/// what is known of them if they are among `names`, up to [`MAX_COPIED`], else without objects.
fn divided(names: Option<&BTreeSet<String>>, fleet: &FleetSnapshot) -> (BTreeSet<String>, Vec<Snapshot>) {
    let (asked, others): (Vec<&Snapshot>, Vec<&Snapshot>) =
        fleet.snapshots.iter().partition(|snapshot| is_asked(names, snapshot));
    let asked: BTreeSet<String> = asked.into_iter().map(|snapshot| snapshot.name().to_owned()).collect();
    let mut errors: HashMap<String, Vec<ScopeError>> = HashMap::new();
    for AppError { cluster, error } in fleet.apps(&[]).errors {
        errors.entry(cluster).or_default().push(error);
    }
    let mut errors = |name: &str| errors.remove(name).into_iter().flatten();
    let mut room = MAX_COPIED;
    let other = |other: &Snapshot| {
        // The answer shows the last known state of a cluster that does not answer.
        match room.checked_sub(other.size()).filter(|_| is_concerned(names, other)) {
            Some(left) => {
                room = left;
                other.copied()
            }
            None => other.without_objects(errors(other.name())),
        }
    };
    (asked, others.into_iter().map(other).collect())
}

/// Returns the names of the clusters that the question of a view is about; `None` for all.
///
/// # Errors
/// If the question names something that the fleet does not have, as far as the hub follows it.
fn extent(view: &impl View, fleet: &FleetSnapshot) -> Result<Option<BTreeSet<String>>, QuestionError> {
    // What is followed has the apps of other namespaces, too, of which an answer about one says nothing.
    let is_narrow = view.reads().namespace.is_some();
    match view.extent(fleet) {
        Err(_) if is_narrow => Ok(None),
        Err(error) => Err(error),
        Ok(AskedClusters::All) => Ok(None),
        Ok(AskedClusters::Clusters(names)) if names.is_empty() && is_narrow => Ok(None),
        Ok(AskedClusters::Clusters(names)) => Ok(Some(names)),
    }
}

impl<A> Prepared<A> {
    /// Prepares the answer to the question of a view about `fleet`, which is all clusters that it is about if `is_whole`.
    fn of(view: &impl View<Answer = A>, fleet: &FleetSnapshot, is_whole: bool) -> Prepared<A> {
        let names = match extent(view, fleet) {
            Err(error) => return Prepared::Answered(Err(error)),
            Ok(names) => names,
        };
        if is_whole && !fleet.snapshots.iter().any(|snapshot| is_asked(names.as_ref(), snapshot)) {
            // Where nobody can be asked, what is known is told.
            return Prepared::Answered(view.answer(fleet));
        }
        let (asked, others) = divided(names.as_ref(), fleet);
        Prepared::Asks(asked, others)
    }
}

/// Returns copies of those clusters of `fleet` that are in `errors`, with the error of a look that could not read them:
/// what is known of them, as a cluster that does not answer. Leaves out those of which nothing was ever observed, and
/// those beyond [`MAX_COPIED`].
fn known_of(fleet: &FleetSnapshot, errors: &HashMap<String, ScopeError>) -> Vec<Snapshot> {
    let mut room = MAX_COPIED;
    let known = |snapshot: &Snapshot| {
        let error = errors.get(snapshot.name())?;
        let observed_at = Some(snapshot.freshness().observed_at?);
        room = room.checked_sub(snapshot.size())?;
        let mut copy = snapshot.copied();
        copy.set_freshness(Freshness { state: FreshnessState::Lost, observed_at });
        copy.retract(&Scope::Cluster);
        copy.report(error.clone());
        Some(copy)
    };
    fleet.snapshots.iter().filter_map(known).collect()
}

/// Returns true if a question about the clusters `names` (`None` for all) concerns a followed cluster.
fn is_concerned(names: Option<&BTreeSet<String>>, snapshot: &Snapshot) -> bool {
    names.is_none_or(|names| names.contains(snapshot.name()))
}

/// Returns true if a followed cluster is asked a question about the clusters `names` (`None` for all).
fn is_asked(names: Option<&BTreeSet<String>>, snapshot: &Snapshot) -> bool {
    is_concerned(names, snapshot) && !is_lost(snapshot)
}

/// Returns true if a followed cluster is lost, and an error about it as a whole tells why.
fn is_lost(snapshot: &Snapshot) -> bool {
    snapshot.freshness().state == FreshnessState::Lost
        && snapshot.errors().iter().any(|error| error.scope == Scope::Cluster)
}

impl Asker {
    /// Creates the asker for the clusters `members`, and the receiver of its inquiries, which the task that follows
    /// these clusters must answer.
    pub(super) fn new(
        members: watch::Receiver<FleetMembers>,
        rules: RulesWithOptions,
        trust: Trust,
    ) -> (Asker, mpsc::Receiver<Inquiry>) {
        let (inquiries, receiver) = mpsc::channel(WAITING);
        let objects_rules = rules.clone();
        let turns = Mutex::default();
        let rules = Arc::new(rules);
        (
            Asker { inquiries, members, rules, trust, objects_rules, reports: None, agents: None, turns },
            receiver,
        )
    }

    /// Sets the index that has the clusters which agents report or metrics tell of, which lists then have, too, and the
    /// agents, if there are any, which answer other questions about their clusters.
    #[must_use]
    pub(super) fn with_reports(self, index: Arc<FleetIndex>, agents: Option<Arc<Agents>>) -> Asker {
        Asker { reports: Some(index), agents, ..self }
    }

    /// Has the agent answer that reports the only cluster of a question, as [`Asker::passed`] does, else answers it as
    /// [`Asker::answer`] does.
    async fn answer_or_pass<V: View<Answer: Send + 'static> + Send + Sync + 'static>(
        &self,
        view: &V,
        question: &ViewQuestion,
        deadline: Deadline,
        answered: impl FnOnce(V::Answer) -> ViewAnswer,
    ) -> Result<ViewAnswer, AskError> {
        match self.passed(view, question, deadline).await? {
            Passed::Answer(mut passed) => {
                self.results_of_checks().put_into(&mut passed);
                Ok(*passed)
            }
            Passed::Own(left_out) => self.answer(view.clone(), left_out, deadline).await.map(answered),
        }
    }

    /// Returns the results of the checks of all apps.
    fn results_of_checks(&self) -> ResultsOfChecks {
        self.reports.as_ref().map(|index| ResultsOfChecks::new(index.told_checks())).unwrap_or_default()
    }

    /// Returns the clusters that agents report or metrics tell of, and the hub does not follow itself; `None` if there are
    /// none.
    fn reported(&self) -> Option<ReportedClusters> {
        let view = self.reports.as_ref()?.view();
        let members = self.members.borrow();
        let followed: HashSet<&str> = members.members.iter().map(|member| &*member.name).collect();
        let reported = view.reported(|name| !followed.contains(name));
        (!reported.is_empty()).then(|| ReportedClusters::new(reported, view))
    }

    /// Answers the question of a list as [`Asker::answer`] does, with the clusters that agents report; `restore` puts
    /// their rows into the answer.
    async fn list<V: View<Answer: Send + 'static> + Send + Sync + 'static>(
        &self,
        view: V,
        deadline: Deadline,
        restore: impl FnOnce(&ReportedClusters, &mut V::Answer) + Send + 'static,
    ) -> Result<V::Answer, AskError> {
        let Some(reported) = self.reported().filter(|_| is_followed(&view.reads())) else {
            return self.answer(view, Vec::new(), deadline).await;
        };
        let asked = view.clone();
        let results = self.results_of_checks();
        let answered = self.ask_followed(move |fleet| {
            let whole = WholeFleet { followed: fleet, reported: &reported };
            let whole = CheckedFleet { fleet: &whole, results: &results };
            let mut answer = asked.answer(&whole)?;
            if asked.reads_more(&answer).is_some() {
                asked.complete(&mut answer, &whole);
            }
            restore(&reported, &mut answer);
            Ok(answer)
        });
        let mut answer = answered.await?.map_err(AskError::Question)?;
        if let Some(unseen) = view.unseen_namespaces(&mut answer) {
            *unseen = self.not_existing(std::mem::take(unseen), deadline).await?;
        }
        Ok(answer)
    }

    /// Returns the clusters that are followed now.
    fn members(&self) -> FleetMembers {
        self.members.borrow().clone()
    }

    /// Answers the question of a view: from what the hub follows if that suffices, else by reading the clusters; the answer
    /// then names those of `left_out`, too.
    async fn answer<V: View<Answer: Send + 'static> + Send + Sync + 'static>(
        &self,
        view: V,
        left_out: Vec<Snapshot>,
        deadline: Deadline,
    ) -> Result<V::Answer, AskError> {
        let asked = view.reads();
        let mut answer = match is_followed(&asked) {
            true => {
                let view = view.clone();
                let results = self.results_of_checks();
                self.ask_followed(move |fleet| {
                    let fleet = CheckedFleet { fleet, results: &results };
                    let mut answer = view.answer(&fleet)?;
                    // The hub follows the apps of all namespaces.
                    if view.reads_more(&answer).is_some() {
                        view.complete(&mut answer, &fleet);
                    }
                    Ok(answer)
                })
                .await?
            }
            false => self.drill_down(asked, &view, left_out, deadline).await?,
        }
        .map_err(AskError::Question)?;
        if let Some(unseen) = view.unseen_namespaces(&mut answer) {
            *unseen = self.not_existing(std::mem::take(unseen), deadline).await?;
        }
        Ok(answer)
    }

    /// Calls `work` with the fleet that the hub follows.
    async fn ask_followed<T: Send + 'static>(
        &self,
        work: impl FnOnce(&FleetSnapshot) -> T + Send + 'static,
    ) -> Result<T, AskError> {
        let (sender, receiver) = oneshot::channel();
        let inquiry: Inquiry = Box::new(move |fleet| {
            // An asker that is gone costs nothing more.
            if !sender.is_closed() {
                let _ = sender.send(work(fleet));
            }
        });
        self.inquiries.send(inquiry).await.map_err(|_| AskError::Ended)?;
        receiver.await.map_err(|_| AskError::Ended)
    }

    /// Answers the question of a view by asking the clusters that it is about, but for those that do not answer anyway;
    /// `asked` is its query.
    async fn drill_down<V: View<Answer: Send + 'static> + Send + Sync + 'static>(
        &self,
        asked: ReadQuery,
        view: &V,
        left_out: Vec<Snapshot>,
        deadline: Deadline,
    ) -> Result<Result<V::Answer, QuestionError>, AskError> {
        let (own, is_whole) = (view.clone(), left_out.is_empty());
        let prepare = move |fleet: &FleetSnapshot| Prepared::of(&own, fleet, is_whole);
        let (names, mut others) = match self.ask_followed(prepare).await? {
            Prepared::Answered(answer) => return Ok(answer),
            Prepared::Asks(names, others) => (names, others),
        };
        others.extend(left_out);
        let more = |snapshot: &Snapshot, namespace: &str| view.reads_objects(snapshot, namespace);
        let members = self.members().members;
        let members: Vec<Member> =
            members.into_iter().filter(|member| names.contains(&member.name)).collect();
        let _turns = self.turns(&members, deadline).await?;
        let fleet = self.look_at(asked, (&names, others), &more, deadline).await?;
        let view = view.clone();
        let results = self.results_of_checks();
        let answered = tokio::task::spawn_blocking(move || {
            view.answer(&CheckedFleet { fleet: &fleet, results: &results })
        });
        answered.await.map_err(|_| AskError::Ended)
    }

    /// Explains apps and objects; reads the logs of their causes if the question asks for them, in the half of the time
    /// that is kept for that.
    async fn explain(
        &self,
        view: ExplainView,
        left_out: Vec<Snapshot>,
        deadline: Deadline,
    ) -> Result<ExplainAnswer, AskError> {
        if !view.logs {
            return self.answer(view, left_out, deadline).await;
        }
        let mut answer = self.answer(view, left_out, deadline.halved()).await?;
        let wanted = logs::wanted(&answer);
        let members = self.members().members;
        let members: Vec<Member> =
            members.into_iter().filter(|member| wanted.contains_key(&member.name)).collect();
        let until_turn = deadline.of_turns();
        let read = |connector: ClusterConnector| {
            let name = connector.member.name.clone();
            let (turns, wanted) = (self.turn(&name), wanted.get(&name).cloned().unwrap_or_default());
            async move {
                // One cluster that hangs, or is busy, must not cost the logs of the others.
                let unread = |why: &AskError| {
                    let failure =
                        || Failure { reason: Reason::Timeout.as_str().to_owned(), message: why.to_string() };
                    let failed = |(place, key): &(usize, ObjectKey)| {
                        (*place, Err(logs::unfound(&name, key, failure())))
                    };
                    wanted.iter().map(failed).collect()
                };
                let Ok(_turn) = timeout_at(until_turn, turns.questions.acquire_owned()).await else {
                    return unread(&AskError::Busy(name.clone()));
                };
                let read = async {
                    // The answer already names clusters that do not answer.
                    let Ok(cluster) = connector.connect().await else { return Vec::new() };
                    // The reads have the time that the wait for the turn left.
                    let cluster = cluster.within(deadline.0.saturating_duration_since(Instant::now()));
                    let reader = LogReader::sharing(&cluster, turns.logs);
                    logs::of_cluster(&cluster, &reader, &name, wanted.clone(), Some(deadline.0)).await
                };
                // Each read ends by itself in time, and returns what it has read.
                let read = timeout_at(deadline.0 + SENDING / 2, read).await;
                read.unwrap_or_else(|_| unread(&AskError::Late))
            }
        };
        let found = for_each_cluster(members, deadline.limits(), read).await.map_err(|_| AskError::Ended)?;
        logs::store(&mut answer, found.into_iter().flatten());
        Ok(answer)
    }

    /// Looks at the clusters `names` for `asked`, at each of which the caller must have a turn, and returns the fleet
    /// that consists of them and of `others`.
    async fn look_at(
        &self,
        asked: ReadQuery,
        (names, others): (&BTreeSet<String>, Vec<Snapshot>),
        more: ExtraObjects<'_>,
        deadline: Deadline,
    ) -> Result<FleetSnapshot, AskError> {
        let FleetMembers { members, problems } = self.members();
        let is_asked = |member: &&Member| names.contains(&member.name);
        let asked_members: Vec<Member> = members.iter().filter(is_asked).cloned().collect();
        let request = LookRequest {
            members: FleetMembers { members: asked_members, problems },
            limits: deadline.limits(),
            asked: ReadQuery { follow: members.len() > 1, ..asked },
            now: Timestamp::now(),
            rules: Arc::clone(&self.rules),
            answered: Arc::new(|_| {}),
        };
        let (mut fleet, _) = look(request, more).await.map_err(|_| AskError::Ended)?;
        // The hub may not have noticed yet that a cluster does not answer.
        let lost = fleet.snapshots.iter().filter(|snapshot| is_lost(snapshot));
        let error = |snapshot: &Snapshot| {
            let error = snapshot.errors().iter().find(|error| error.scope == Scope::Cluster)?;
            Some((snapshot.name().to_owned(), error.clone()))
        };
        let errors: HashMap<String, ScopeError> = lost.filter_map(error).collect();
        if !errors.is_empty() {
            let known = self.ask_followed(move |fleet| known_of(fleet, &errors)).await?;
            let is_known = |name: &str| known.iter().any(|known| known.name() == name);
            fleet.snapshots.retain(|snapshot| !is_known(snapshot.name()));
            fleet.snapshots.extend(known);
        }
        fleet.snapshots.extend(others);
        let places: HashMap<&str, usize> =
            members.iter().enumerate().map(|(place, member)| (&*member.name, place)).collect();
        fleet.snapshots.sort_by_key(|snapshot| places.get(snapshot.name()).copied());
        Ok(fleet)
    }

    /// Answers the question of `status` by reading the objects in the clusters that their names begin with (in all, if
    /// some name has none). Of clusters that do not answer, and of the others, the answer tells only the errors.
    async fn objects(&self, view: &StatusView, deadline: Deadline) -> Result<StatusAnswer, AskError> {
        let asked = ObjectsAsked::new(view, self.objects_rules.clone());
        let asked = asked.map_err(|error| AskError::Invalid(error.to_string()))?;
        let FleetMembers { members, problems } = self.members();
        let names = asked.clusters();
        let known = || members.iter().map(|member| member.name.clone());
        let reported = self.reported();
        let is_reported = |name: &&String| reported.as_ref().is_some_and(|reported| reported.has(name));
        if let Some(name) = names.iter().flatten().find(is_reported) {
            return Err(AskError::Invalid(format!(
                "the hub does not read cluster {name}, and reads no statuses through others: taffrail explain OBJECT --cluster {name}"
            )));
        }
        // Of those the answer tells that they are left out.
        let of_agents = reported.filter(|_| names.is_none()).map(|reported| reported.statuses());
        if let Some(name) = names.iter().flatten().find(|name| !known().any(|known| known == **name)) {
            return Err(QuestionError::UnknownCluster { name: name.clone(), known: known().collect() }.into());
        }
        let is_meant = move |name: &str| names.as_ref().is_none_or(|names| names.contains(name));
        // Of the clusters that are not asked it is known whether they answer.
        let others = self.ask_followed(move |fleet| {
            let others = fleet.snapshots.iter().filter(|it| !is_meant(it.name()) || is_lost(it));
            let other = |snapshot: &Snapshot| {
                let errors = snapshot.errors().iter().filter(|error| error.scope == Scope::Cluster);
                ClusterStatuses {
                    cluster: snapshot.name().to_owned(),
                    is_unobserved: snapshot.freshness() == Freshness::never(),
                    errors: errors.cloned().collect(),
                    items: Vec::new(),
                }
            };
            others.map(other).collect::<Vec<_>>()
        });
        let others = others.await?;
        let is_asked = |name: &String| !others.iter().any(|other| other.cluster == *name);
        let asked_members: Vec<Member> =
            members.iter().filter(|member| is_asked(&member.name)).cloned().collect();
        let turns = self.turns(&asked_members, deadline).await?;
        let read = asked
            .read(asked_members, deadline.limits(), others.is_empty())
            .await
            .map_err(|_| AskError::Ended)?;
        drop(turns);
        let ObjectsRead { mut clusters, unseen_namespaces } = read?;
        clusters.extend(others);
        let places: HashMap<&str, usize> =
            members.iter().enumerate().map(|(place, member)| (&*member.name, place)).collect();
        clusters.sort_by_key(|told| places.get(&*told.cluster).copied());
        clusters.extend(of_agents.into_iter().flatten());
        let missing_namespaces = self.not_existing(unseen_namespaces, deadline).await?;
        Ok(StatusAnswer { clusters, problems, missing_namespaces })
    }

    /// Waits for the turn of a question at each of the clusters `asked`, which are in the order of all members. Fails
    /// with [`AskError::Busy`] for the first whose turn does not come in time.
    async fn turns(
        &self,
        asked: &[Member],
        deadline: Deadline,
    ) -> Result<Vec<OwnedSemaphorePermit>, AskError> {
        let until = deadline.of_turns();
        let mut turns = Vec::new();
        // All questions wait in one order, so that no two wait for each other.
        for member in asked {
            let permit = timeout_at(until, self.turn(&member.name).questions.acquire_owned()).await;
            let permit = permit.map_err(|_| AskError::Busy(member.name.clone()))?;
            turns.push(permit.map_err(|_| AskError::Ended)?);
        }
        Ok(turns)
    }

    /// Returns the bounds of what is asked of the cluster of this name: [`MAX_AT_ONCE`] questions at a time. Creating
    /// them drops those of clusters that are no longer followed and at which nothing has a turn or place.
    fn turn(&self, name: &str) -> ClusterTurns {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if !turns.contains_key(name) {
            // Those of clusters that are gone go when a new one comes.
            let members = self.members.borrow();
            let names: BTreeSet<&str> = members.members.iter().map(|member| &*member.name).collect();
            let is_used =
                |turns: &ClusterTurns| Arc::strong_count(&turns.questions) > 1 || turns.logs.are_shared();
            turns.retain(|name, turns| names.contains(&**name) || is_used(turns));
        }
        turns.entry(name.to_owned()).or_default().clone()
    }

    /// Returns those of `unseen`, namespaces of which nothing was read, that do not exist in any followed cluster,
    /// without those of which one cluster does not tell.
    async fn not_existing(&self, unseen: Vec<String>, deadline: Deadline) -> Result<Vec<String>, AskError> {
        if unseen.is_empty() {
            return Ok(unseen);
        }
        let members = self.members().members;
        let _turns = self.turns(&members, deadline).await?;
        let (asked, now, rules): (Arc<[String]>, _, _) =
            (unseen.clone().into(), Timestamp::now(), Arc::clone(&self.rules));
        let absent = for_each_cluster(members, deadline.limits(), move |live| {
            absent_namespaces(live, Arc::clone(&asked), now, Arc::clone(&rules))
        });
        let absent = absent.await.map_err(|_| AskError::Ended)?;
        Ok(unseen.into_iter().filter(|name| absent.iter().all(|absent| absent.contains(name))).collect())
    }
}

/// Returns true if a hub follows all that `asked` reads, in whichever namespace.
fn is_followed(asked: &ReadQuery) -> bool {
    ReadQuery { namespace: None, cluster_status: false, ..asked.clone() } == ReadQuery::default()
}

impl Ask for Asker {
    fn ask(&self, question: ViewQuestion, patience: Duration) -> Asking<'_> {
        let deadline = Deadline::of(patience);
        Box::pin(async move {
            match question {
                ViewQuestion::Apps(view) => {
                    let restore = |reported: &ReportedClusters, answer: &mut ListAnswer<AppRow>| {
                        reported.restore_apps(&mut answer.items);
                        reported.restore_apps(&mut answer.left_out);
                    };
                    self.list(view, deadline, restore).await.map(ViewAnswer::Apps)
                }
                ViewQuestion::Clusters(view) => {
                    let restore = |reported: &ReportedClusters, answer: &mut ListAnswer<ClusterRow>| {
                        reported.restore_clusters(&mut answer.items);
                        reported.restore_clusters(&mut answer.left_out);
                    };
                    self.list(view, deadline, restore).await.map(ViewAnswer::Clusters)
                }
                ViewQuestion::Resources(ref view) => match view.orphaned_in() {
                    Some(namespaces) if namespaces.is_empty() => {
                        let why = "a hub lists the objects that no app declares only in given namespaces: add -n or --in-namespace";
                        Err(AskError::Invalid(why.to_owned()))
                    }
                    _ => self.answer_or_pass(view, &question, deadline, ViewAnswer::Resources).await,
                },
                ViewQuestion::App(ref view) => {
                    self.answer_or_pass(view, &question, deadline, ViewAnswer::App).await
                }
                ViewQuestion::Tree(ref view) => {
                    self.answer_or_pass(view, &question, deadline, ViewAnswer::Tree).await
                }
                ViewQuestion::Events(ref view) => {
                    self.answer_or_pass(view, &question, deadline, ViewAnswer::Events).await
                }
                ViewQuestion::Trust(ref view) => {
                    self.answer_or_pass(view, &question, deadline, ViewAnswer::Trust).await
                }
                ViewQuestion::Explain(ref view) => match self.passed(view, &question, deadline).await? {
                    Passed::Answer(passed) => Ok(*passed),
                    Passed::Own(left_out) => {
                        self.explain(view.clone(), left_out, deadline).await.map(ViewAnswer::Explain)
                    }
                },
                ViewQuestion::Overview(view) => {
                    let restore = |reported: &ReportedClusters, answer: &mut OverviewAnswer| {
                        reported.restore_apps(&mut answer.apps);
                        reported.restore_clusters(&mut answer.clusters);
                    };
                    self.list(view, deadline, restore).await.map(ViewAnswer::Overview)
                }
                ViewQuestion::Status(view) => self.objects(&view, deadline).await.map(ViewAnswer::Status),
                ViewQuestion::Object(ref view) => {
                    self.answer_or_pass(view, &question, deadline, ViewAnswer::Object).await
                }
            }
        })
    }

    fn logs(&self, question: LogsQuestion, bounds: LogBounds) -> AskingLogs<'_> {
        Box::pin(async move {
            match self.agents_of(question.clone(), passing::of_logs).await? {
                Some((agents, name)) => agents.logs(&name, &question, bounds).await,
                None => log_search::answer(self, question, bounds).await,
            }
        })
    }
}

impl Operate for Asker {
    fn plan(
        &self,
        question: OperationQuestion,
        patience: Duration,
    ) -> BoxFuture<'_, Result<PlanAnswer, AskError>> {
        let deadline = Deadline::of(patience);
        Box::pin(async move {
            if let Some((agents, name)) = self.agents_of(question.clone(), passing::of_operation).await? {
                return agents.plan(&name, question, Some(Timestamp::now()), patience).await;
            }
            let planned = operations::plan(self, question, Timestamp::now(), deadline).await?;
            Ok(planned.with_rights(deadline).await)
        })
    }

    fn actions(
        &self,
        question: ActionQuestion,
        patience: Duration,
    ) -> BoxFuture<'_, Result<ObjectActionList, AskError>> {
        Box::pin(async move {
            let asked = OperationQuestion::Action(question.clone());
            if let Some((agents, name)) = self.agents_of(asked, passing::of_operation).await? {
                return agents.actions(&name, &question, patience).await;
            }
            #[cfg(feature = "lua")]
            return operations::actions::list(self, question, Deadline::of(patience)).await;
            #[cfg(not(feature = "lua"))]
            Err(AskError::Invalid(operations::WITHOUT_LUA.to_owned()))
        })
    }

    fn prepare(&self, request: RunRequest) -> BoxFuture<'_, Result<OperationRun, AskError>> {
        let deadline = Deadline::of(PREPARING);
        Box::pin(async move {
            let question = request.question.clone();
            if let Some((agents, name)) = self.agents_of(question.clone(), passing::of_operation).await? {
                return passing::prepared(agents, name, request, PREPARING).await;
            }
            let planned = operations::plan(self, question, request.planned_at, deadline).await?;
            Ok(planned.ready(&request))
        })
    }

    fn trace(
        &self,
        writes: Vec<UncertainWrite>,
        patience: Duration,
    ) -> BoxFuture<'_, Vec<(WriteTrace, String)>> {
        Box::pin(async move {
            match self.tracing_agents(&writes) {
                Some((agents, name)) => passing::traced(&agents, &name, writes, patience).await,
                None => operations::trace(self, writes, Deadline::of(patience)).await,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use taffrail_observe::Failure;
    use taffrail_status::assess::Budgets;

    use super::*;
    use crate::rule_source::{RuleSource, patience};

    #[tokio::test]
    async fn a_cluster_is_asked_for_32_questions_at_once() {
        let failure = Failure { reason: "Unreachable".to_owned(), message: "gone".to_owned() };
        let member = |name: &str| Member {
            name: name.to_owned(),
            context: Err(failure.clone()),
            labels: Default::default(),
        };
        let members = FleetMembers { members: ["eu", "us"].map(member).into(), problems: Vec::new() };
        let rules = RuleSource::default().with_options(
            Budgets::default(),
            patience(String::new(), TURN),
            &Trust::default(),
        );
        let (_sender, receiver) = watch::channel(members.clone());
        let (asker, _inquiries) = Asker::new(receiver, rules, Trust::default());
        let all = &members.members[..];
        let (eu, us) = all.split_at(1);
        let deadline = || Deadline::of(Duration::from_secs(10));
        let mut turns = Vec::new();
        for _ in 0..MAX_AT_ONCE {
            turns.push(asker.turns(eu, deadline()).await.unwrap());
        }
        let begun = Instant::now();
        assert!(matches!(asker.turns(all, deadline()).await, Err(AskError::Busy(name)) if name == "eu"));
        assert!(begun.elapsed() >= TURN);
        assert_eq!(asker.turns(us, deadline()).await.unwrap().len(), 1);
        // A question that is due sooner waits less.
        let begun = Instant::now();
        let soon = Deadline::of(Duration::from_secs(1));
        assert!(matches!(asker.turns(eu, soon).await, Err(AskError::Busy(_))));
        assert!(begun.elapsed() < TURN);
        // The next one has its turn as soon as one is done.
        let (next, ()) = tokio::join!(asker.turns(eu, deadline()), async { drop(turns.pop()) });
        assert_eq!(next.unwrap().len(), 1);
    }
}
