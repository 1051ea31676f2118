//! Questions about logs and operations that are passed to the agent that reports their cluster.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use taffrail_api::logs::LogsQuestion;
use taffrail_api::operations::{OperationEvent, OperationQuestion, RunRequest, UncertainWrite, WriteTrace};
use taffrail_api::question::{AppSelection, AppView, AskedClusters, AskedFleet, View as _};
use taffrail_apps::{AppLabels, AppQuery};
use taffrail_hub::agents::Agents;
use taffrail_hub::{AskError, OperationRun};
use taffrail_observe::ObjectArg;
use tokio::sync::mpsc::UnboundedSender;

use super::reported::WholeFleet;

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
    let plan = answer.plan.clone();
    let work = move |events: UnboundedSender<OperationEvent>| {
        let take = move |event: OperationEvent| match event {
            // The hub alone tells the end, and what is not of this plan is nobody's.
            OperationEvent::Done | OperationEvent::Alive => true,
            event if !event.is_about(&plan) => true,
            event => events.send(event).is_ok(),
        };
        async move { agents.run(&name, &request, take).await }.boxed()
    };
    Ok(OperationRun { answer, work: Box::new(work) })
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
