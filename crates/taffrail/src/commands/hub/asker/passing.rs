//! Questions that are passed to the agent that reports their cluster.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use taffrail_api::logs::LogsQuestion;
use taffrail_api::operations::{
    OperationEvent, OperationId, OperationPlan, OperationQuestion, OperationTarget, PlanDigest, PlannedItem,
    PlannedWrite, RunRequest, UncertainWrite, WriteTrace,
};
use taffrail_api::question::{
    AppSelection, AppView, AskedClusters, AskedFleet, View, ViewAnswer, ViewQuestion,
};
use taffrail_apps::{AppLabels, AppQuery, Snapshot};
use taffrail_hub::agents::Agents;
use taffrail_hub::{AskError, OperationRun};
use taffrail_observe::ObjectArg;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::reported::WholeFleet;
use super::{Asker, Deadline};

/// The outcome of passing a question on.
pub(super) enum Passed {
    /// The answer of the agent that reports the only cluster of the question.
    Answer(Box<ViewAnswer>),
    /// The hub is to answer about the clusters that it follows. The others that the question is about have nothing here but
    /// the error that says so.
    Own(Vec<Snapshot>),
}

impl Asker {
    /// Has the agent answer that reports the only cluster that the question of a view is about.
    ///
    /// # Errors
    /// If the question is about several clusters of agents alone, about one of which only metrics tell, or names clusters of
    /// agents beside others.
    pub(super) async fn passed<V: View + Send + Sync + 'static>(
        &self,
        view: &V,
        question: &ViewQuestion,
        deadline: Deadline,
    ) -> Result<Passed, AskError> {
        let is_named = !view.clone().clusters_mut().is_empty();
        let named = |view: &V, fleet: &WholeFleet<'_>| names_of(view, fleet);
        let Concerned { of_agents, of_metrics, others, left_out } =
            self.concerned(view.clone(), named).await?;
        if !others.is_empty() {
            return match is_named && !left_out.is_empty() {
                true => Err(several(of_agents.iter().chain(&of_metrics).chain(&others))),
                false => Ok(Passed::Own(left_out)),
            };
        }
        if let Some(name) = of_metrics.first() {
            return Err(only_metrics(name));
        }
        match (&*of_agents, &self.agents) {
            ([], _) | (_, None) => Ok(Passed::Own(Vec::new())),
            ([name], Some(agents)) => {
                let patience = deadline.0.saturating_duration_since(Instant::now());
                agents.ask(name, question, patience).await.map(|answer| Passed::Answer(Box::new(answer)))
            }
            (several, _) => Err(AskError::Invalid(format!(
                "the question is about several clusters that agents report ({}), and each agent answers about its own: name one of them",
                several.join(", ")
            ))),
        }
    }

    /// Returns the agents, and the name of the cluster that one of them reports, if a question is about that cluster
    /// alone; `None` if it is about clusters that the hub follows itself. `names` returns the clusters of a question.
    pub(super) async fn agents_of<Q: Send + 'static>(
        &self,
        question: Q,
        names: fn(&Q, &WholeFleet<'_>) -> BTreeSet<String>,
    ) -> Result<Option<(Arc<Agents>, String)>, AskError> {
        let Some(agents) = &self.agents else { return Ok(None) };
        let Concerned { of_agents, of_metrics, others, .. } = self.concerned(question, names).await?;
        if let Some(name) = of_metrics.first() {
            return Err(only_metrics(name));
        }
        match (of_agents, others) {
            (of_agents, _) if of_agents.is_empty() => Ok(None),
            (mut of_agents, others) if of_agents.len() == 1 && others.is_empty() => {
                Ok(of_agents.pop().map(|name| (Arc::clone(agents), name)))
            }
            (of_agents, others) => Err(several(of_agents.iter().chain(&others))),
        }
    }

    /// Divides the clusters of a question, which `names` returns, by who reads them; all are empty if no cluster is reported.
    async fn concerned<Q: Send + 'static>(
        &self,
        question: Q,
        names: fn(&Q, &WholeFleet<'_>) -> BTreeSet<String>,
    ) -> Result<Concerned, AskError> {
        let Some(reported) = self.reported() else { return Ok(Concerned::default()) };
        self.ask_followed(move |fleet| {
            let mut concerned = Concerned::default();
            for name in names(&question, &WholeFleet { followed: fleet, reported: &reported }) {
                match reported.has(&name) {
                    false => concerned.others.push(name),
                    true if reported.is_of_metrics(&name) => concerned.of_metrics.push(name),
                    true => concerned.of_agents.push(name),
                }
            }
            let left_out = concerned.of_agents.iter().chain(&concerned.of_metrics);
            concerned.left_out = left_out.filter_map(|name| reported.left_out(name)).collect();
            concerned
        })
        .await
    }

    /// Returns the agents, and the name of the one cluster of these writes, if an agent reports it.
    pub(super) fn tracing_agents(&self, writes: &[UncertainWrite]) -> Option<(Arc<Agents>, String)> {
        let agents = self.agents.as_ref()?;
        let name = &writes.first()?.cluster;
        let is_followed = self.members.borrow().members.iter().any(|member| member.name == *name);
        let is_one = writes.iter().all(|write| write.cluster == *name);
        (is_one && !is_followed).then(|| (Arc::clone(agents), name.clone()))
    }
}

/// The clusters of a question.
#[derive(Default)]
struct Concerned {
    /// The names of those that agents report.
    of_agents: Vec<String>,
    /// The names of those of which metrics alone tell.
    of_metrics: Vec<String>,
    /// The names of the others.
    others: Vec<String>,
    /// Those that agents report or metrics tell of, without objects and with an error that says so.
    left_out: Vec<Snapshot>,
}

/// Returns the names of the clusters that the question of a view is about; none if it has no answer. Of a question about all
/// clusters, those of which metrics alone tell are left out: they have none of the objects that it is about.
fn names_of(view: &impl View, fleet: &WholeFleet<'_>) -> BTreeSet<String> {
    let named: BTreeSet<String> = view.clone().clusters_mut().into_iter().map(|name| name.clone()).collect();
    match named.is_empty() {
        false => named,
        true => match view.extent(fleet) {
            Ok(AskedClusters::Clusters(names)) => names,
            Ok(AskedClusters::All) => {
                let names =
                    fleet.clusters().iter().map(|cluster| cluster.name().to_owned()).collect::<Vec<_>>();
                names.into_iter().filter(|name| !fleet.reported.is_of_metrics(name)).collect()
            }
            Err(_) => BTreeSet::new(),
        },
    }
}

/// Returns the error for what is about clusters of agents beside others.
fn several<'n>(names: impl Iterator<Item = &'n String>) -> AskError {
    let names: Vec<&str> = names.map(String::as_str).collect();
    AskError::Invalid(format!(
        "this is about several clusters ({}), and agents that report some of them answer and act in their own alone: name one cluster",
        names.join(", ")
    ))
}

/// Returns the error for a question that needs objects of the cluster `name`, of which metrics alone tell.
fn only_metrics(name: &str) -> AskError {
    AskError::Invalid(format!(
        "only metrics tell of cluster {name}, and they tell of no objects; lists show what they tell"
    ))
}

/// Returns the names of the clusters that a question about logs is about, as far as it names them or their app; a question
/// about an object that names no cluster is about all of them.
pub(super) fn of_logs(question: &LogsQuestion, fleet: &WholeFleet<'_>) -> BTreeSet<String> {
    let named: BTreeSet<String> = question.clusters.iter().cloned().collect();
    if !named.is_empty() {
        return named;
    }
    if let Ok(object) = question.what.parse::<ObjectArg>() {
        return of_object(&object, fleet);
    }
    let Ok(name) = question.what.parse::<AppQuery>() else { return BTreeSet::new() };
    let apps = AppSelection {
        namespace: question.namespace.clone(),
        clusters: Vec::new(),
        app_labels: AppLabels::default(),
    };
    match (AppView { name, apps }).extent(fleet) {
        Ok(AskedClusters::Clusters(names)) => names,
        Ok(AskedClusters::All) | Err(_) => BTreeSet::new(),
    }
}

/// Returns the names of the clusters that an operation is about.
pub(super) fn of_operation(question: &OperationQuestion, fleet: &WholeFleet<'_>) -> BTreeSet<String> {
    match question {
        OperationQuestion::Verb(question) => {
            let list = fleet.apps(&[]);
            // One that has no answer is refused where it is planned.
            let apps = question.choose(fleet, &list).unwrap_or_default();
            apps.iter().flat_map(|app| [app.app.home.clone(), app.app.target.clone()]).collect()
        }
        OperationQuestion::Action(question) => match question.object.parse::<ObjectArg>() {
            Ok(object) => of_object(&object, fleet),
            Err(_) => BTreeSet::new(),
        },
    }
}

/// Returns the name of the cluster of an object; of one that names none, the names of all clusters that may have it.
fn of_object(object: &ObjectArg, fleet: &WholeFleet<'_>) -> BTreeSet<String> {
    match object.cluster() {
        Some(name) => BTreeSet::from([name.to_owned()]),
        // Those that are followed have been asked alone so far; an agent is asked where there is no other cluster.
        None if !fleet.followed.snapshots.is_empty() => BTreeSet::new(),
        None => fleet.clusters().iter().map(|cluster| cluster.name().to_owned()).collect(),
    }
}

/// Has an operation planned by the agent of a cluster as it was planned at the time that the request tells, and returns
/// its run.
pub(super) async fn prepared(
    agents: Arc<Agents>,
    name: String,
    request: RunRequest,
    patience: Duration,
) -> Result<OperationRun, AskError> {
    let planned_at = Some(request.planned_at);
    let answer = agents.plan(&name, request.question.clone(), planned_at, patience).await?;
    let mut told = ToldRun::new(&request, answer.plan.clone());
    let work = move |events: UnboundedSender<OperationEvent>| {
        let refused = events.clone();
        let take = move |event: OperationEvent| match event {
            // The hub alone tells the end.
            OperationEvent::Done | OperationEvent::Alive => true,
            event => told.admits(&event) && events.send(event).is_ok(),
        };
        async move {
            if let Err(error) = agents.run(&name, &request, take).await {
                // Nobody may follow the run any more.
                let _ = refused.send(OperationEvent::Refused { message: error.to_string(), hint: None });
            }
        }
        .boxed()
    };
    Ok(OperationRun { answer, work: Box::new(work) })
}

/// The run of a plan as an agent tells it, which may tell nothing else.
struct ToldRun {
    plan: OperationPlan<OperationTarget>,
    id: OperationId,
    digest: PlanDigest,
    /// The number of events that may follow.
    left: usize,
    has_begun: bool,
}

impl ToldRun {
    fn new(request: &RunRequest, plan: OperationPlan<OperationTarget>) -> ToldRun {
        let of_item = |item: &PlannedItem<OperationTarget>| 2 + 4 * item.writes.len();
        let left = 2 + plan.items.iter().map(of_item).sum::<usize>();
        ToldRun { plan, id: request.id.clone(), digest: request.digest.clone(), left, has_begun: false }
    }

    /// Returns true if an honest run of the plan can tell this event next. What an agent tells is recorded.
    fn admits(&mut self, event: &OperationEvent) -> bool {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let is_waiting = matches!(event, OperationEvent::Waiting { .. });
        let has_room = is_waiting || self.left > 0;
        self.left = self.left.saturating_sub(usize::from(!is_waiting));
        let is_planned = match event {
            OperationEvent::Started { id, digest } => is_first && *id == self.id && *digest == self.digest,
            OperationEvent::Refused { .. } => is_first,
            OperationEvent::Writing { item, write, is_alternative } => {
                let writes = self.plan.items.get(*item).map(|item| &*item.writes).unwrap_or_default();
                let is_it = |planned: &PlannedWrite| {
                    planned == write || *is_alternative && planned.object == write.object
                };
                writes.iter().any(is_it)
            }
            OperationEvent::Waiting { items } => items.len() <= self.plan.items.len(),
            _ => true,
        };
        has_room && is_planned && event.is_about(&self.plan)
    }
}

/// Has the agent of a cluster look for what writes left.
pub(super) async fn traced(
    agents: &Agents,
    name: &str,
    writes: Vec<UncertainWrite>,
    patience: Duration,
) -> Vec<(WriteTrace, String)> {
    match agents.trace(name, &writes, patience).await {
        Ok(traces) => traces,
        Err(error) => writes.iter().map(|_| (WriteTrace::Unread, error.to_string())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn key() -> Value {
        json!({"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web"})
    }

    fn planned() -> (RunRequest, OperationPlan<OperationTarget>) {
        let target = json!({"cluster": "eu", "object": key()});
        let item = json!({"cluster": "eu", "target": target, "writes": [], "warnings": [], "unchanged": ""});
        let plan = json!({"operation": "pause", "items": [item], "refused": []});
        let plan: OperationPlan<OperationTarget> = serde_json::from_value(plan).unwrap();
        let request = json!({"id": "0123456789abcdef0", "question": {"action": "pause", "object": "deploy/web"},
            "plannedAt": "2026-03-01T00:00:00Z", "digest": plan.digest(), "timeoutMillis": 60_000});
        (serde_json::from_value(request).unwrap(), plan)
    }

    fn event(event: Value) -> OperationEvent {
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn an_agent_tells_nothing_that_its_plan_does_not_hold() {
        let (request, plan) = planned();
        let started = event(json!({"event": "started", "id": request.id, "digest": request.digest}));
        let begins = event(json!({"event": "begins", "item": 0}));
        let refused = event(json!({"event": "refused", "message": "no", "hint": null}));
        let told = || ToldRun::new(&request, plan.clone());
        let mut run = told();
        assert!(run.admits(&started) && run.admits(&begins));
        assert!(!run.admits(&started), "it begins once");
        assert!(!run.admits(&refused), "something may have been sent");
        assert!(told().admits(&refused));
        let other = event(json!({"event": "started", "id": request.id, "digest": "00"}));
        assert!(!told().admits(&other));
        assert!(!told().admits(&event(json!({"event": "begins", "item": 1}))));
        let mut run = told();
        assert!(run.admits(&started));
        assert!((0..100).any(|_| !run.admits(&begins)), "events have a bound");
    }
}
