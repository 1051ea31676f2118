//! Plans operations, runs them, and looks for what writes left.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::FutureExt as _;
use jiff::Timestamp;
use taffrail_api::operations::{PlannedWrite, Reply, RunRequest, VerbQuestion, WriteTrace};
use taffrail_api::question::QuestionError;
use taffrail_apps::{Objects as _, ReadQuery, Snapshot, verbs};
use taffrail_cluster::{BootClock, ListStrategy};
use taffrail_hub::{AskError, OperationRun};
use taffrail_object::ObjectKey;
use taffrail_observe::operations::{VerbPlan, VerbSettings, note_rights, plan_verb};
use taffrail_observe::{FleetMembers, FleetWatcher, Member, NO_EXTRA, WatchRequest};
use taffrail_status::{ClusterState as _, Presence};
use tokio::time::Instant;

use super::{Asker, Deadline};

/// The time limit of a request to a cluster, as that of the commands.
const REQUEST: Duration = Duration::from_secs(5);

/// The time that the API servers have to say whether they would allow the writes of a plan.
const RIGHTS: Duration = Duration::from_secs(2);

/// A plan, and the clusters that it was made from.
pub(super) struct Followed {
    pub(super) plan: VerbPlan,
    follow: FleetWatcher,
    question: VerbQuestion,
}

/// Plans an operation by reading the clusters of its apps; `now` is the time that its writes contain.
pub(super) async fn plan(
    asker: &Asker,
    question: VerbQuestion,
    now: Timestamp,
    deadline: Deadline,
) -> Result<Followed, AskError> {
    let chosen = asker.ask_followed(move |fleet| -> Result<_, QuestionError> {
        let question = question.resolved(fleet)?;
        let list = fleet.apps(&[]);
        let apps = question.choose(fleet, &list)?;
        let clusters = apps.iter().flat_map(|app| [app.app.home.clone(), app.app.target.clone()]);
        let clusters: BTreeSet<String> = clusters.collect();
        Ok((question, clusters))
    });
    let (question, clusters) = chosen.await?.map_err(AskError::Question)?;
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
    };
    let mut follow = FleetWatcher::start(request).await;
    follow.settle(&|snapshot, _| sources(&question, snapshot)).await;
    let plan = plan_verb(&question, follow.fleet(), now).map_err(AskError::Question)?;
    Ok(Followed { plan, follow, question })
}

/// Returns the further objects that the operation reads.
fn sources(question: &VerbQuestion, snapshot: &Snapshot) -> Vec<ObjectKey> {
    match question.has_sources() {
        true => verbs::sources(snapshot, &question.names()),
        false => Vec::new(),
    }
}

impl Followed {
    /// Notes which writes the API servers would refuse.
    pub(super) async fn note_rights(&mut self, deadline: Deadline) {
        note_rights(&mut self.plan.answer, &mut self.follow, RIGHTS.min(deadline.left())).await;
    }

    /// Returns the operation, ready to run as `request` says.
    pub(super) fn ready(self, request: &RunRequest) -> OperationRun {
        let Followed { plan, mut follow, question } = self;
        let (id, digest) = (request.id.clone(), request.digest.clone());
        let settings = VerbSettings {
            dry_run: request.dry_run,
            waits: request.waits,
            deadline: Duration::from_millis(request.timeout_millis),
        };
        let answer = plan.answer.clone();
        let work = move |events: tokio::sync::mpsc::UnboundedSender<_>| {
            async move {
                let more = |snapshot: &Snapshot, _: &str| sources(&question, snapshot);
                let take = |event| match events.send(event) {
                    Ok(()) => Reply::Continue,
                    Err(_) => Reply::Stop,
                };
                // The hub has compared the digests.
                let _ = plan.run(&digest, &id, &mut follow, &more, settings, take).await;
            }
            .boxed()
        };
        OperationRun { answer, work: Box::new(work) }
    }
}

/// Looks for what writes left: reads their objects.
pub(super) async fn trace(
    asker: &Asker,
    writes: Vec<(String, PlannedWrite)>,
    deadline: Deadline,
) -> Vec<(WriteTrace, String)> {
    let names: BTreeSet<String> = writes.iter().map(|(cluster, _)| cluster.clone()).collect();
    let objects: BTreeSet<ObjectKey> = writes.iter().map(|(_, write)| write.object.clone()).collect();
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
            let unread = |_| (WriteTrace::Unknown, error.to_string());
            return writes.iter().map(unread).collect();
        }
    };
    let snapshots: HashMap<&str, &Snapshot> =
        fleet.snapshots.iter().map(|snapshot| (snapshot.name(), snapshot)).collect();
    let trace = |(cluster, write): &(String, PlannedWrite)| {
        let Some(snapshot) = snapshots.get(&**cluster) else {
            return (WriteTrace::Unknown, format!("the hub no longer follows cluster {cluster}"));
        };
        let found = snapshot.get(write.object.as_ref());
        let why = match &found {
            Presence::Unobserved(why) => why.clone().into_owned(),
            Presence::Absent => "the object does not exist now".to_owned(),
            Presence::Present(_) => "the object was changed since".to_owned(),
        };
        (WriteTrace::of(write, &found), why)
    };
    writes.iter().map(trace).collect()
}

impl Deadline {
    fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}
