//! Plans operations, runs them, and looks for what writes left.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::FutureExt as _;
use jiff::Timestamp;
use taffrail_api::operations::{
    OperationEvent, OperationQuestion, OperationTarget, PlanAnswer, Reply, RunRequest, UncertainWrite,
    VerbQuestion, WriteTrace,
};
use taffrail_api::question::QuestionError;
use taffrail_apps::{Objects as _, ReadQuery, Snapshot, verbs};
use taffrail_cluster::{BootClock, ListStrategy};
use taffrail_hub::{AskError, MAX_ITEMS, OperationRun};
use taffrail_object::{ObjectKey, Projection};
#[cfg(feature = "lua")]
use taffrail_observe::operations::ActionSettings;
use taffrail_observe::operations::{VerbPlan, VerbSettings, plan_verb};
use taffrail_observe::{FleetMembers, FleetWatcher, LightReach, Member, NO_EXTRA, WatchRequest};
use taffrail_status::{ClusterState as _, Presence};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::{Asker, Deadline};

/// The reason why a hub without Lua runs no actions.
#[cfg(not(feature = "lua"))]
pub(super) const WITHOUT_LUA: &str = "this build of Taffrail has no Lua, and so no actions";

/// The time limit of a request to a cluster, as that of the commands.
const REQUEST: Duration = Duration::from_secs(5);

/// The time that the API servers have to say whether they would allow the writes of a plan.
const RIGHTS: Duration = Duration::from_secs(2);

/// A plan, and what its run needs.
pub(super) enum Planned {
    /// A verb, with the clusters that it was planned from.
    Verb(Box<PlannedVerb>),
    /// An action.
    #[cfg(feature = "lua")]
    Action(Box<actions::PlannedAction>),
}

/// A plan of a verb, and the clusters that it was made from.
pub(super) struct PlannedVerb {
    plan: VerbPlan,
    follow: FleetWatcher,
    question: VerbQuestion,
}

/// Plans an operation by reading the clusters of its apps or object; `now` is the time that its writes contain.
pub(super) async fn plan(
    asker: &Asker,
    question: OperationQuestion,
    now: Timestamp,
    deadline: Deadline,
) -> Result<Planned, AskError> {
    match question {
        OperationQuestion::Verb(question) => {
            Ok(Planned::Verb(Box::new(plan_of_verb(asker, question, now, deadline).await?)))
        }
        #[cfg(feature = "lua")]
        OperationQuestion::Action(question) => {
            Ok(Planned::Action(Box::new(actions::plan(asker, question, now, deadline).await?)))
        }
        #[cfg(not(feature = "lua"))]
        OperationQuestion::Action(_) => Err(AskError::Invalid(WITHOUT_LUA.to_owned())),
    }
}

async fn plan_of_verb(
    asker: &Asker,
    question: VerbQuestion,
    now: Timestamp,
    deadline: Deadline,
) -> Result<PlannedVerb, AskError> {
    let chosen = asker.ask_followed(move |fleet| -> Result<_, QuestionError> {
        let question = question.resolved(fleet)?;
        let list = fleet.apps(&[]);
        let apps = question.choose(fleet, &list)?;
        if apps.len() > MAX_ITEMS {
            return Ok(Err(apps.len()));
        }
        let clusters = apps.iter().flat_map(|app| [app.app.home.clone(), app.app.target.clone()]);
        let clusters: BTreeSet<String> = clusters.collect();
        Ok(Ok((question, clusters)))
    });
    let chosen = chosen.await?.map_err(AskError::Question)?;
    let too_many = |apps| {
        let why = format!("the operation has {apps} apps; one operation has at most {MAX_ITEMS}");
        AskError::Invalid(why)
    };
    let (question, clusters) = chosen.map_err(too_many)?;
    let FleetMembers { members, problems } = asker.members();
    let members: Vec<Member> = members.into_iter().filter(|it| clusters.contains(&it.name)).collect();
    let _turns = asker.turns(&members, deadline).await?;
    let request = WatchRequest {
        members: FleetMembers { members, problems },
        timeout: deadline.left(),
        request_timeout: Some(REQUEST),
        asked: question.reads(),
        rules: Arc::clone(&asker.rules),
        lists: ListStrategy::Auto,
        clock: BootClock::default(),
        light: LightReach::default(),
    };
    let mut follow = FleetWatcher::start(request).await;
    follow.settle(&|snapshot, _| sources(&question, snapshot)).await;
    let plan = plan_verb(&question, follow.fleet(), now).map_err(AskError::Question)?;
    Ok(PlannedVerb { plan, follow, question })
}

/// Returns the further objects that the operation reads.
fn sources(question: &VerbQuestion, snapshot: &Snapshot) -> Vec<ObjectKey> {
    match question.has_sources() {
        true => verbs::sources(snapshot, &question.names()),
        false => Vec::new(),
    }
}

impl Planned {
    /// Notes which writes the API servers would refuse, and returns the plan.
    pub(super) async fn with_rights(self, deadline: Deadline) -> PlanAnswer {
        let time = RIGHTS.min(deadline.left());
        match self {
            Planned::Verb(mut planned) => {
                planned.plan.note_rights(&mut planned.follow, time).await;
                planned.plan.answer.with_targets(OperationTarget::App)
            }
            #[cfg(feature = "lua")]
            Planned::Action(mut planned) => {
                planned.plan.note_rights(time).await;
                planned.answer()
            }
        }
    }

    /// Returns the operation, ready to run as `request` says.
    pub(super) fn ready(self, request: &RunRequest) -> OperationRun {
        let (id, digest) = (request.id.clone(), request.digest.clone());
        let (dry_run, time) = (request.dry_run, Duration::from_millis(request.timeout_millis));
        match self {
            Planned::Verb(planned) => {
                let PlannedVerb { plan, mut follow, question } = *planned;
                let settings = VerbSettings { dry_run, waits: request.waits, deadline: time };
                let answer = plan.answer.clone().with_targets(OperationTarget::App);
                let work = move |events: Events| {
                    async move {
                        let more = |snapshot: &Snapshot, _: &str| sources(&question, snapshot);
                        // The hub has compared the digests.
                        let _ = plan.run(&digest, &id, &mut follow, &more, settings, take(&events)).await;
                    }
                    .boxed()
                };
                OperationRun { answer, work: Box::new(work) }
            }
            #[cfg(feature = "lua")]
            Planned::Action(planned) => {
                let settings = ActionSettings { dry_run, time };
                let answer = planned.answer();
                let work = move |events: Events| {
                    async move {
                        let actions::PlannedAction { plan, request, .. } = *planned;
                        let _ = plan.run(&digest, &id, &request, settings, take(&events)).await;
                    }
                    .boxed()
                };
                OperationRun { answer, work: Box::new(work) }
            }
        }
    }
}

/// The channel to the hub for the events of a run.
type Events = UnboundedSender<OperationEvent>;

/// Passes events on to the hub; a run that it no longer wants ends.
fn take(events: &Events) -> impl FnMut(OperationEvent) -> Reply {
    |event| match events.send(event) {
        Ok(()) => Reply::Continue,
        Err(_) => Reply::Stop,
    }
}

#[cfg(feature = "lua")]
pub(super) mod actions {
    //! Actions on objects.

    use taffrail_api::operations::{ActionQuestion, ActionTarget};
    use taffrail_api::question::FleetFacts;
    use taffrail_api::{ErrorRow, ObjectActionList};
    use taffrail_apps::{AppError, Scope, ScopeError};
    use taffrail_observe::operations::{
        ActionPlan, ActionRequest, ActionScripts, LocateRequest, LocatedObject, locate, plan_action,
    };
    use taffrail_observe::{ClusterConnector, ObjectArg, for_each_cluster};

    use super::{AskError, Asker, Deadline, Member, OperationTarget, PlanAnswer, QuestionError, Timestamp};
    use crate::commands::actions::offered;

    /// The plan of an action, and what its run needs.
    pub(in super::super) struct PlannedAction {
        pub(super) plan: ActionPlan,
        pub(super) request: ActionRequest,
        facts: FleetFacts,
        errors: Vec<AppError>,
    }

    impl PlannedAction {
        pub(super) fn answer(&self) -> PlanAnswer {
            let answer: PlanAnswer<ActionTarget> = PlanAnswer {
                fleet: self.facts.clone(),
                planned_at: self.request.now,
                digest: self.plan.shown.digest(),
                plan: self.plan.shown.clone(),
                errors: self.errors.clone(),
            };
            answer.with_targets(OperationTarget::Object)
        }
    }

    /// Finds the object of a question in the clusters that may have it.
    async fn found(
        asker: &Asker,
        question: &ActionQuestion,
        deadline: Deadline,
    ) -> Result<(Vec<LocatedObject>, Vec<AppError>), AskError> {
        let object: ObjectArg = question.object.parse().map_err(AskError::Invalid)?;
        let members = asker.members().members;
        if let Some(wanted) = object.cluster()
            && !members.iter().any(|member| member.name == wanted)
        {
            let known = members.into_iter().map(|member| member.name).collect();
            return Err(QuestionError::UnknownCluster { name: wanted.to_owned(), known }.into());
        }
        let is_meant = |member: &Member| object.cluster().is_none_or(|wanted| member.name == wanted);
        let members: Vec<Member> = members.into_iter().filter(is_meant).collect();
        let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
        let _turns = asker.turns(&members, deadline).await?;
        let request = LocateRequest {
            object: object.clone(),
            namespace: question.namespace.clone(),
            all_namespaces: question.all_namespaces,
            trust: asker.trust.clone(),
        };
        let locating = |connector: ClusterConnector| {
            let request = request.clone();
            async move { locate(&connector, &request).await }
        };
        let answers =
            for_each_cluster(members, deadline.limits(), locating).await.map_err(|_| AskError::Ended)?;
        let (mut objects, mut errors) = (Vec::new(), Vec::new());
        for (cluster, answer) in names.into_iter().zip(answers) {
            match answer {
                Ok(located) => {
                    objects.extend(located.objects);
                    errors.extend(located.notes.into_iter().map(|note| unread(&cluster, "Incomplete", note)));
                }
                Err(failure) => errors.push(unread(&cluster, &failure.reason, failure.message)),
            }
        }
        if objects.is_empty() && errors.is_empty() {
            let place = match (&object, &question.namespace) {
                (ObjectArg::Named { .. }, Some(namespace)) => format!(" in namespace {namespace}"),
                _ => String::new(),
            };
            return Err(QuestionError::NoSuchObject {
                text: question.object.clone(),
                object: format!("{object}{place}"),
                is_served: true,
                has_searched_all: question.all_namespaces,
            }
            .into());
        }
        Ok((objects, errors))
    }

    fn unread(cluster: &str, reason: &str, message: String) -> AppError {
        let error = ScopeError { scope: Scope::Cluster, reason: reason.to_owned(), message };
        AppError { cluster: cluster.to_owned(), error }
    }

    /// Plans an action; `now` is the time that its script sees.
    pub(super) async fn plan(
        asker: &Asker,
        question: ActionQuestion,
        now: Timestamp,
        deadline: Deadline,
    ) -> Result<PlannedAction, AskError> {
        let (objects, errors) = found(asker, &question, deadline).await?;
        let clusters = asker.members().members.len();
        // Scripts compute for a while.
        let planned = tokio::task::spawn_blocking(move || {
            let request = ActionRequest {
                scripts: ActionScripts::new(None),
                action: question.action,
                parameters: question.parameters.into_iter().collect(),
                allow_create: question.allow_create,
                now,
            };
            (plan_action(&request, objects), request)
        });
        let (plan, request) = planned.await.map_err(|_| AskError::Ended)?;
        let facts = FleetFacts {
            now,
            clusters,
            only: None,
            unobserved: Default::default(),
            last_observed: Default::default(),
            problems: Vec::new(),
        };
        Ok(PlannedAction { plan, request, facts, errors })
    }

    /// Lists the actions of the object of a question.
    pub(in super::super) async fn list(
        asker: &Asker,
        question: ActionQuestion,
        deadline: Deadline,
    ) -> Result<ObjectActionList, AskError> {
        let (objects, errors) = found(asker, &question, deadline).await?;
        let listing = tokio::task::spawn_blocking(move || {
            let scripts = ActionScripts::new(None);
            let now = Timestamp::now();
            let (mut items, mut errors) = (Vec::new(), errors.iter().map(ErrorRow::from).collect::<Vec<_>>());
            for object in &objects {
                let (rows, failures) = offered(&scripts, object, now);
                items.extend(rows);
                errors.extend(failures);
            }
            ObjectActionList::of(items, errors)
        });
        listing.await.map_err(|_| AskError::Ended)
    }
}

/// Looks for what writes left: reads their objects.
pub(super) async fn trace(
    asker: &Asker,
    writes: Vec<UncertainWrite>,
    deadline: Deadline,
) -> Vec<(WriteTrace, String)> {
    let names: BTreeSet<String> = writes.iter().map(|write| write.cluster.clone()).collect();
    let objects: BTreeSet<ObjectKey> = writes.iter().map(|write| write.write.object.clone()).collect();
    let asked =
        ReadQuery { declarations: false, objects: objects.into_iter().collect(), ..ReadQuery::default() };
    let members = asker.members().members.into_iter().filter(|member| names.contains(&member.name));
    let members: Vec<Member> = members.collect();
    let looked = async {
        let _turns = asker.turns(&members, deadline).await?;
        asker.look_at(asked, (&names, Vec::new()), NO_EXTRA, deadline).await
    };
    let fleet = match looked.await {
        Ok(fleet) => fleet,
        Err(error) => {
            let unread = |_| (WriteTrace::Unread, error.to_string());
            return writes.iter().map(unread).collect();
        }
    };
    let snapshots: HashMap<&str, &Snapshot> =
        fleet.snapshots.iter().map(|snapshot| (snapshot.name(), snapshot)).collect();
    let trace = |UncertainWrite { cluster, write, since }: &UncertainWrite| {
        let Some(snapshot) = snapshots.get(&**cluster) else {
            return (WriteTrace::Unread, format!("the hub no longer follows cluster {cluster}"));
        };
        let found = match snapshot.get(write.object.as_ref()) {
            // The last known state tells nothing of a write since.
            _ if !snapshot.freshness().is_live() => {
                Presence::Unobserved("the cluster does not answer".into())
            }
            Presence::Present(observed) if observed.projection != Projection::Full => {
                Presence::Unobserved("only its metadata was read".into())
            }
            found => found,
        };
        let why = match &found {
            Presence::Unobserved(why) => why.clone().into_owned(),
            Presence::Absent => "the object does not exist now".to_owned(),
            Presence::Present(_) => "the object shows neither the change nor its former state".to_owned(),
        };
        (WriteTrace::of(write, &found, *since), why)
    };
    writes.iter().map(trace).collect()
}

impl Deadline {
    fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}
