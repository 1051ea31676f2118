//! Answers the questions about logs: finds them in the followed clusters, and reads or follows them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::{StreamExt, stream};
use taffrail_api::logs::{LogEvent, LogsQuestion};
use taffrail_api::question::{AppSelection, AppView, QuestionError};
use taffrail_apps::{AppLabels, AppQuery, Objects as _, Scope, ScopeError, Snapshot};
use taffrail_cluster::Cluster;
use taffrail_hub::{AskError, LogAnswer, LogBounds};
use taffrail_observe::logs::{LogReader, PodsOf, PodsRequest};
use taffrail_observe::{
    ClusterConnector, Failure, FleetMembers, FleetSnapshot, Member, NO_EXTRA, for_each_cluster,
};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::{Asker, Deadline, divided, extent, is_lost};
use crate::commands::logs::asked;
use crate::commands::logs::find::{self, LogSource, OfCluster, Told};
use crate::commands::logs::read::{self, ReadBounds};

/// Maximum length of an event with lines of a log, in bytes, unless it has one line.
const MAX_EVENT: usize = 64 << 10;

/// Finds the logs that a question asks for, in half of the time, and begins to read or follow them.
pub(super) async fn answer(
    asker: &Asker,
    question: LogsQuestion,
    bounds: LogBounds,
) -> Result<LogAnswer, AskError> {
    let (begun, deadline) = (Instant::now(), Deadline::of(bounds.patience));
    let search = LogSearch { asker, deadline: deadline.halved(), turns: Mutex::default() };
    let mut told = Told::default();
    let found = timeout_at(deadline.0, find::pods(&search, &question, &mut told)).await;
    let found = found.map_err(|_| AskError::Late)??;
    let reader = |name: &str, cluster: &Cluster| LogReader::sharing(cluster, asker.turn(name).logs);
    let chosen = find::chosen(found, &question, reader)?;
    let named: Vec<LogEvent> = told.events().chain(chosen.events()).collect();
    let reads = ReadBounds { until: Some(deadline.0), kept: Some(bounds.bytes), event: MAX_EVENT };
    let turns = search.turns.into_inner().unwrap_or_else(PoisonError::into_inner);
    if question.follow {
        // A follower of logs holds their places, but not the turns of other questions.
        drop(turns);
        return Ok(LogAnswer::follow(stream::iter(named).chain(read::follow(chosen.logs, reads))));
    }
    let logs = stream::iter(named).chain(read::read(chosen.logs, reads));
    // The turns are held as long as the logs are read.
    let logs = logs.map(move |event| {
        let _ = &turns;
        event
    });
    Ok(LogAnswer::read(logs, bounds.patience, begun + bounds.patience, bounds.bytes))
}

/// The search for logs that a question asks for, with the turns at the clusters that it asked.
struct LogSearch<'a> {
    asker: &'a Asker,
    deadline: Deadline,
    turns: Mutex<Vec<(String, OwnedSemaphorePermit)>>,
}

impl LogSearch<'_> {
    /// Returns the turns that the search holds.
    fn held(&self) -> MutexGuard<'_, Vec<(String, OwnedSemaphorePermit)>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn at each of `members` at which the search has none yet.
    async fn take_turns(&self, members: &[Member]) -> Result<(), AskError> {
        let is_new = |member: &&Member| !self.held().iter().any(|(name, _)| *name == member.name);
        let new: Vec<Member> = members.iter().filter(is_new).cloned().collect();
        let turns = self.asker.turns(&new, self.deadline).await?;
        self.held().extend(new.into_iter().map(|member| member.name).zip(turns));
        Ok(())
    }

    /// Returns those of the followed clusters that do not answer, each with the reason.
    async fn lost(&self) -> Result<HashMap<String, Failure>, AskError> {
        let lost = |fleet: &FleetSnapshot| {
            let lost = fleet.snapshots.iter().filter(|snapshot| is_lost(snapshot));
            let why = |snapshot: &Snapshot| {
                let error = snapshot.errors().iter().find(|error| error.scope == Scope::Cluster)?;
                let ScopeError { reason, message, .. } = error.clone();
                Some((snapshot.name().to_owned(), Failure { reason, message }))
            };
            lost.filter_map(why).collect()
        };
        self.asker.ask_followed(lost).await
    }
}

impl LogSource for LogSearch<'_> {
    type Error = AskError;

    fn members(&self) -> Result<FleetMembers, AskError> {
        Ok(self.asker.members())
    }

    async fn objects(
        &self,
        members: Vec<Member>,
        request: PodsRequest,
    ) -> Result<Vec<OfCluster<(Cluster, PodsOf)>>, AskError> {
        let mut lost = self.lost().await?;
        let order: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
        let asked: Vec<Member> =
            members.into_iter().filter(|member| !lost.contains_key(&member.name)).collect();
        self.take_turns(&asked).await?;
        let work = |connector: ClusterConnector| find::pods_in(connector, request.clone());
        let found = for_each_cluster(asked, self.deadline.limits(), work).await;
        let mut found: HashMap<_, _> = found.map_err(|_| AskError::Ended)?.into_iter().collect();
        let of_cluster = |name: String| {
            let answer = found.remove(&name).or_else(|| lost.remove(&name).map(Err))?;
            Some((name, answer))
        };
        Ok(order.into_iter().filter_map(of_cluster).collect())
    }

    async fn apps<T: Send + 'static>(
        &self,
        question: &LogsQuestion,
        name: Option<&AppQuery>,
        take: impl FnOnce(&FleetSnapshot) -> T + Send + 'static,
    ) -> Result<T, AskError> {
        let view = name.map(|name| AppView {
            name: name.clone(),
            apps: AppSelection {
                namespace: question.namespace.clone(),
                clusters: question.clusters.clone(),
                app_labels: AppLabels::default(),
            },
        });
        let divided = self.asker.ask_followed(move |fleet| {
            let names = view.map(|view| extent(&view, fleet)).transpose()?.flatten();
            Ok::<_, QuestionError>(divided(names.as_ref(), fleet))
        });
        let (names, others) = divided.await??;
        let members: Vec<Member> = self.asker.members().members;
        let members: Vec<Member> =
            members.into_iter().filter(|member| names.contains(&member.name)).collect();
        self.take_turns(&members).await?;
        let asked = asked(question, name, AppLabels::default());
        let look = self.asker.look_at(asked, (&names, others), NO_EXTRA, self.deadline);
        let fleet = look.await?;
        tokio::task::spawn_blocking(move || take(&fleet)).await.map_err(|_| AskError::Ended)
    }

    async fn connect(&self, members: Vec<Member>) -> Result<Vec<OfCluster<Cluster>>, AskError> {
        self.take_turns(&members).await?;
        let connected = for_each_cluster(members, self.deadline.limits(), find::cluster_of).await;
        connected.map_err(|_| AskError::Ended)
    }
}
