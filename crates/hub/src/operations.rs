//! The runs of operations. Each has an identifier and is recorded before anything is sent, so that it runs at most once,
//! however often it is asked for and whatever ends the hub meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use taffrail_api::ObjectActionList;
use taffrail_api::operations::{
    ActionQuestion, MOST_UNCOUNTED, OperationEvent, OperationId, OperationQuestion, OperationRecord,
    OperationTarget, Outcome, PlanAnswer, RecordedItem, RecordedWrite, RunRequest, UncertainWrite,
    WriteTrace,
};
use taffrail_api::report::AppId;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::ask::AskError;
use crate::index::FleetIndex;
use crate::store::{OperationQuery, SavedOperation, Store};

/// Maximum number of operations that run at one time; the hub refuses further ones.
const MAX_RUNNING: usize = 32;

/// Maximum number of operations that are kept in memory after their end; the store keeps the others.
const MAX_KEPT: usize = 64;

/// Maximum number of apps or objects of one operation; the hub refuses one with more.
pub const MAX_ITEMS: usize = 500;

/// The greatest age of a plan that is run: its writes contain its time.
const MAX_AGE: SignedDuration = SignedDuration::from_mins(15);

/// The interval in which the results of a run are saved.
const SAVING: Duration = Duration::from_millis(500);

/// The interval, and the number of times, in which the writes of an interrupted run are looked for.
const LOOKS: (Duration, usize) = (Duration::from_secs(15), 20);

/// The interval, and the number of times, in which the end of a run is saved that could not be.
const SAVED_LATER: (Duration, usize) = (Duration::from_secs(10), 360);

/// The time that one look for writes takes at most.
const LOOK: Duration = Duration::from_secs(10);

/// Plans and runs operations in clusters. The binary implements it; the hub calls it for `/api/v1/plans` and
/// `/api/v1/operations`.
pub trait Operate: Send + Sync {
    /// Returns a future that plans an operation within `patience`, and asks the API servers whether they would allow its
    /// writes. Nothing is written.
    fn plan(
        &self,
        question: OperationQuestion,
        patience: Duration,
    ) -> BoxFuture<'_, Result<PlanAnswer, AskError>>;

    /// Returns a future that lists within `patience` the actions that an object has; the action of the question does not
    /// matter.
    fn actions(
        &self,
        question: ActionQuestion,
        patience: Duration,
    ) -> BoxFuture<'_, Result<ObjectActionList, AskError>>;

    /// Returns a future that plans an operation as it was planned at the time that the request tells, and prepares to
    /// run it. Nothing is written before the [work](OperationRun::work) begins.
    fn prepare(&self, request: RunRequest) -> BoxFuture<'_, Result<OperationRun, AskError>>;

    /// Returns a future that looks within `patience` for what writes left: what the object of each tells, and the reason
    /// if it tells nothing.
    fn trace(
        &self,
        writes: Vec<UncertainWrite>,
        patience: Duration,
    ) -> BoxFuture<'_, Vec<(WriteTrace, String)>>;
}

/// The work of an operation: sends its writes, and the events of the run, until it ends.
pub type Work = Box<dyn FnOnce(mpsc::UnboundedSender<OperationEvent>) -> BoxFuture<'static, ()> + Send>;

/// An operation that is ready to run.
pub struct OperationRun {
    /// The plan.
    pub answer: PlanAnswer,
    /// The work. It begins when it is called and polled.
    pub work: Work,
}

impl fmt::Debug for OperationRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationRun").field("answer", &self.answer).finish_non_exhaustive()
    }
}

/// The reason why a run was refused; nothing was sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The plan cannot be made.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The plan is another than the one that was shown.
    #[error("the plan has changed since it was shown, so nothing was sent")]
    Changed,
    /// The plan was made too long ago, or in the future.
    #[error("the plan is older than 15 minutes, so nothing was sent")]
    Old,
    /// The number of apps was not confirmed; holds it.
    #[error("the operation writes to {0} apps or objects, and their number was not confirmed")]
    NotCounted(usize),
    /// The operation has too many apps; holds their number.
    #[error("the operation has {0} apps or objects; one operation has at most {MAX_ITEMS}")]
    TooMany(usize),
    /// Another run with the identifier was asked for.
    #[error("another operation has this identifier")]
    IdTaken,
    /// The hub runs the greatest number of operations that may run at one time.
    #[error("the hub already runs as many operations as it may at one time")]
    Busy,
    /// The run could not be recorded.
    #[error("the operation could not be recorded, so nothing was sent")]
    NotStored,
}

/// All runs of operations of a hub that are not over, and the last ones that are.
#[derive(Debug)]
pub(crate) struct Operations {
    index: Arc<FleetIndex>,
    runs: Mutex<BTreeMap<OperationId, Arc<Run>>>,
    places: Arc<Semaphore>,
}

/// A run of an operation, which any number of clients watch.
#[derive(Debug)]
pub(crate) struct Run {
    state: Mutex<RunState>,
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
enum RunState {
    /// The plan is made again and recorded.
    Preparing,
    /// Nothing was sent, and nothing will be.
    Refused(Arc<RunError>),
    /// The run has begun.
    Begun(Box<Progress>),
}

/// The progress of a run.
#[derive(Debug)]
struct Progress {
    record: OperationRecord,
    apps: Vec<Option<AppId>>,
    /// The events so far, without those about waiting.
    events: Vec<OperationEvent>,
    /// The last event about waiting.
    waiting: Option<OperationEvent>,
}

/// The position of a client in the events of a run.
#[derive(Debug, Default)]
pub(crate) struct Position {
    events: usize,
    waiting: Option<OperationEvent>,
}

impl Run {
    fn new(state: RunState) -> Arc<Run> {
        Arc::new(Run { state: Mutex::new(state), changed: watch::Sender::new(0) })
    }

    fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: RunState) {
        *self.state() = state;
        self.changed.send_modify(|count| *count += 1);
    }

    /// Adds an event to the progress; the event is dropped if the run has not begun.
    fn note(&self, event: OperationEvent) {
        if let RunState::Begun(progress) = &mut *self.state() {
            progress.record.note(&event);
            match event {
                OperationEvent::Waiting { .. } => progress.waiting = Some(event),
                event => {
                    progress.waiting = None;
                    progress.events.push(event);
                }
            }
        }
        self.changed.send_modify(|count| *count += 1);
    }

    /// Returns the record, as it is now; `None` unless the run has begun.
    pub(crate) fn record(&self) -> Option<OperationRecord> {
        self.progress(|progress| progress.record.clone())
    }

    fn saved(&self) -> Option<SavedOperation> {
        self.progress(|Progress { record, apps, .. }| SavedOperation {
            record: record.clone(),
            apps: apps.clone(),
        })
    }

    /// Returns the number of items with a result.
    fn results(&self) -> usize {
        let count =
            |progress: &Progress| progress.record.items.iter().filter(|item| item.outcome.is_some()).count();
        self.progress(count).unwrap_or(0)
    }

    /// Returns what `read` returns for the progress; `None` unless the run has begun.
    fn progress<T>(&self, read: impl FnOnce(&Progress) -> T) -> Option<T> {
        match &*self.state() {
            RunState::Begun(progress) => Some(read(progress)),
            RunState::Preparing | RunState::Refused(_) => None,
        }
    }

    fn is_over(&self) -> bool {
        match &*self.state() {
            RunState::Preparing => false,
            RunState::Refused(_) => true,
            RunState::Begun(progress) => progress.record.ended.is_some(),
        }
    }

    /// Waits until the run has begun.
    ///
    /// # Errors
    /// If it was refused.
    pub(crate) async fn begun(&self) -> Result<(), Arc<RunError>> {
        let mut changes = self.changed.subscribe();
        loop {
            changes.borrow_and_update();
            match &*self.state() {
                RunState::Preparing => {}
                RunState::Refused(error) => return Err(Arc::clone(error)),
                RunState::Begun(_) => return Ok(()),
            }
            // The sender is a part of this run.
            let _ = changes.changed().await;
        }
    }

    /// Waits for the events after `position`, and moves that. Returns none after the last one.
    pub(crate) async fn next(&self, position: &mut Position) -> Vec<OperationEvent> {
        let mut changes = self.changed.subscribe();
        loop {
            changes.borrow_and_update();
            if let RunState::Begun(progress) = &*self.state() {
                let mut fresh = progress.events.get(position.events..).unwrap_or_default().to_vec();
                position.events = progress.events.len();
                if progress.waiting != position.waiting {
                    position.waiting.clone_from(&progress.waiting);
                    fresh.extend(progress.waiting.clone());
                }
                // The end is told after it was saved.
                if !fresh.is_empty() || progress.events.last() == Some(&OperationEvent::Done) {
                    return fresh;
                }
            }
            // The sender is a part of this run.
            let _ = changes.changed().await;
        }
    }
}

impl Operations {
    pub(crate) fn new(index: Arc<FleetIndex>) -> Operations {
        Operations { index, runs: Mutex::default(), places: Arc::new(Semaphore::new(MAX_RUNNING)) }
    }

    fn runs(&self) -> MutexGuard<'_, BTreeMap<OperationId, Arc<Run>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        self.index.clock().time().now
    }

    /// Returns the record of a run in memory that has begun.
    pub(crate) fn record(&self, id: &OperationId) -> Option<OperationRecord> {
        let run = self.runs().get(id).cloned();
        run?.record()
    }

    /// Returns the runs in memory that have begun, the latest first.
    pub(crate) fn records(&self) -> Vec<OperationRecord> {
        let mut records: Vec<_> = self.runs().values().filter_map(|run| run.record()).collect();
        records.sort_by_key(|record| std::cmp::Reverse(record.began));
        records
    }

    /// Starts the run that `by` asks for, in a task of its own, or returns the run that has its identifier.
    pub(crate) fn start(
        self: &Arc<Self>,
        request: RunRequest,
        by: Option<String>,
        operator: Arc<dyn Operate>,
        store: Option<Arc<dyn Store>>,
    ) -> Arc<Run> {
        let mut runs = self.runs();
        if let Some(run) = runs.get(&request.id) {
            let is_refused = matches!(&*run.state(), RunState::Refused(_));
            if !is_refused {
                return Arc::clone(run);
            }
        }
        let run = Run::new(RunState::Preparing);
        runs.insert(request.id.clone(), Arc::clone(&run));
        forget_oldest(&mut runs);
        drop(runs);
        let (operations, started) = (Arc::clone(self), Arc::clone(&run));
        let running = {
            let run = Arc::clone(&run);
            // Who asked may be gone before the end.
            tokio::spawn(async move { operations.run(&run, request, by, &*operator, store.as_deref()).await })
        };
        tokio::spawn(async move {
            // A task that failed before the run began has sent nothing.
            if running.await.is_err() && matches!(&*started.state(), RunState::Preparing) {
                started.set(RunState::Refused(Arc::new(RunError::Ask(AskError::Ended))));
            }
        });
        run
    }

    async fn run(
        &self,
        run: &Run,
        request: RunRequest,
        by: Option<String>,
        operator: &dyn Operate,
        store: Option<&dyn Store>,
    ) {
        let Ok(_place) = self.places.try_acquire() else {
            return run.set(RunState::Refused(Arc::new(RunError::Busy)));
        };
        let work = match self.prepare(run, &request, by, operator, store).await {
            Ok(Some(work)) => work,
            Ok(None) => return,
            Err(error) => return run.set(RunState::Refused(Arc::new(error))),
        };
        let (sender, events) = mpsc::unbounded_channel();
        let working = tokio::spawn(work(sender));
        self.follow(run, events, store).await;
        // A failure of the task is seen by the items without a result.
        let _ = working.await;
        self.end(run, operator, store).await;
    }

    /// Plans the operation again, checks that the plan is the one that was shown, and records the run. Returns the work
    /// that sends the writes; `None` if the store has a run with the identifier, which is then told.
    async fn prepare(
        &self,
        run: &Run,
        request: &RunRequest,
        by: Option<String>,
        operator: &dyn Operate,
        store: Option<&dyn Store>,
    ) -> Result<Option<Work>, RunError> {
        if let Some(store) = store {
            let known = store.operations(OperationQuery::Id(request.id.clone())).await;
            let known = known.map_err(|_| RunError::NotStored)?;
            if let Some(record) = known.into_iter().next() {
                if record.digest != request.digest {
                    return Err(RunError::IdTaken);
                }
                run.set(RunState::Begun(Box::new(self.progress(record))));
                if !run.is_over() {
                    self.end(run, operator, Some(store)).await;
                }
                return Ok(None);
            }
        }
        let age = self.now().duration_since(request.planned_at);
        if age > MAX_AGE || age < -MAX_AGE {
            return Err(RunError::Old);
        }
        let OperationRun { answer, work } = operator.prepare(request.clone()).await?;
        if answer.digest != request.digest {
            return Err(RunError::Changed);
        }
        let apps = answer.plan.targets();
        if answer.plan.items.len() > MAX_ITEMS {
            return Err(RunError::TooMany(answer.plan.items.len()));
        }
        if apps > MOST_UNCOUNTED && request.confirmed != Some(apps) {
            return Err(RunError::NotCounted(apps));
        }
        let progress = self.progress(OperationRecord::new(request, by, self.now(), &answer));
        if let Some(store) = store {
            let saved = SavedOperation { record: progress.record.clone(), apps: progress.apps.clone() };
            store.save_operation(saved).await.map_err(|_| RunError::NotStored)?;
        }
        // The work tells the start.
        run.set(RunState::Begun(Box::new(Progress { events: Vec::new(), ..progress })));
        Ok(Some(work))
    }

    /// Makes the progress of a run from its record.
    fn progress(&self, record: OperationRecord) -> Progress {
        let view = self.index.view();
        let fleet = view.fleet();
        let identity = |home: &str| {
            let cluster = view.called(home).next().and_then(|place| fleet.cluster(place));
            cluster.map_or_else(|| taffrail_apps::ClusterId(home.to_owned()), |cluster| cluster.id.clone())
        };
        let app = |item: &RecordedItem| match &item.target {
            OperationTarget::App(app) => Some(AppId::new(identity(&app.home), app)),
            // An object may be of several apps, or of none.
            OperationTarget::Object(_) => None,
        };
        let apps = record.items.iter().map(app).collect();
        Progress { events: record.events(), record, apps, waiting: None }
    }

    /// Takes the events of a run until the last one, and saves its results meanwhile.
    async fn follow(
        &self,
        run: &Run,
        mut events: mpsc::UnboundedReceiver<OperationEvent>,
        store: Option<&dyn Store>,
    ) {
        let taking = async {
            while let Some(event) = events.recv().await {
                run.note(event);
            }
        };
        let saving = async {
            let Some(store) = store else { return std::future::pending().await };
            let mut saved = 0;
            loop {
                tokio::time::sleep(SAVING).await;
                let results = run.results();
                // The end is saved again.
                if results != saved
                    && let Some(operation) = run.saved()
                    && store.save_operation(operation).await.is_ok()
                {
                    saved = results;
                }
            }
        };
        tokio::select! {
            () = taking => {}
            () = saving => {}
        }
    }

    /// Ends a run: looks for the writes of items without a result, saves the record, and tells the end.
    async fn end(&self, run: &Run, operator: &dyn Operate, store: Option<&dyn Store>) {
        self.look_for_writes(run, operator).await;
        if let RunState::Begun(progress) = &mut *run.state() {
            progress.record.ended = Some(self.now());
        }
        let save = async || match (store, run.saved()) {
            (Some(store), Some(operation)) => store.save_operation(operation).await.is_ok(),
            _ => true,
        };
        let is_saved = save().await;
        run.note(OperationEvent::Done);
        if !is_saved {
            // The disk may have room again later. What is never saved is looked for at the next start.
            let (every, most) = SAVED_LATER;
            for _ in 0..most {
                tokio::time::sleep(every).await;
                if save().await {
                    return;
                }
            }
        }
    }

    /// Looks for the writes of items without a result, until their objects can be read.
    async fn look_for_writes(&self, run: &Run, operator: &dyn Operate) {
        let (every, most) = LOOKS;
        for look in 1..=most {
            let Some(record) = run.record() else { return };
            let open = record.items.iter().enumerate().filter(|(_, item)| item.outcome.is_none());
            let open: Vec<(usize, &RecordedItem)> = open.collect();
            let uncertain = |item: &RecordedItem| {
                let cluster = item.cluster.clone();
                let since = record.planned_at;
                let write = move |it: &RecordedWrite| UncertainWrite {
                    cluster: cluster.clone(),
                    write: it.write.clone(),
                    since,
                };
                item.writes.iter().map(write).collect::<Vec<_>>()
            };
            let wanted: Vec<UncertainWrite> = open.iter().flat_map(|(_, item)| uncertain(item)).collect();
            let mut traces = match wanted.is_empty() {
                true => Vec::new(),
                false => operator.trace(wanted, LOOK).await,
            }
            .into_iter();
            let mut is_unread = false;
            for (place, item) in open {
                let own: Vec<(WriteTrace, String)> = traces.by_ref().take(item.writes.len()).collect();
                // What is under way may still change an object that did not have the change.
                let is_open = own.iter().any(|(trace, _)| match trace {
                    WriteTrace::Unread => true,
                    WriteTrace::NotMade => look == 1,
                    WriteTrace::Made | WriteTrace::Unknown => false,
                });
                if !is_open || look == most {
                    let outcome = interrupted(&own, record.dry_run);
                    run.note(OperationEvent::Ended { item: place, outcome });
                }
                is_unread |= is_open;
            }
            if !is_unread {
                return;
            }
            tokio::time::sleep(every).await;
        }
    }

    /// Looks for what the writes of runs left that an earlier process of the hub did not end.
    pub(crate) async fn recover(self: &Arc<Self>, operator: &Arc<dyn Operate>, store: &Arc<dyn Store>) {
        let records = loop {
            match store.operations(OperationQuery::Running).await {
                Ok(records) => break records,
                Err(_) => tokio::time::sleep(LOOKS.0).await,
            }
        };
        for record in records {
            let id = record.id.clone();
            let run = Run::new(RunState::Begun(Box::new(self.progress(record))));
            {
                let mut runs = self.runs();
                if runs.contains_key(&id) {
                    continue;
                }
                runs.insert(id, Arc::clone(&run));
            }
            let (operations, operator, store) = (Arc::clone(self), Arc::clone(operator), Arc::clone(store));
            tokio::spawn(async move { operations.end(&run, &*operator, Some(&*store)).await });
        }
    }
}

/// Removes the earliest runs that are over, until at most [`MAX_KEPT`] are left.
fn forget_oldest(runs: &mut BTreeMap<OperationId, Arc<Run>>) {
    while runs.len() > MAX_KEPT + MAX_RUNNING {
        let over = runs.iter().filter(|(_, run)| run.is_over());
        let oldest = over.min_by_key(|(_, run)| run.record().map(|record| record.began));
        let Some(id) = oldest.map(|(id, _)| id.clone()) else { return };
        runs.remove(&id);
    }
}

/// Returns the result of an item that a hub did not end, from what was found of its writes.
fn interrupted(traces: &[(WriteTrace, String)], is_dry: bool) -> Outcome {
    let all = |wanted: WriteTrace| traces.iter().all(|(trace, _)| *trace == wanted);
    let unknown = traces.iter().find(|(trace, _)| matches!(trace, WriteTrace::Unknown | WriteTrace::Unread));
    let (trace, found) = if traces.is_empty() {
        return Outcome::Unchanged;
    } else if is_dry {
        (WriteTrace::NotMade, "the server was to check the change alone".to_owned())
    } else if let Some((_, why)) = unknown {
        (WriteTrace::Unknown, format!("whether the change was made cannot be told: {why}"))
    } else if all(WriteTrace::Made) {
        (WriteTrace::Made, "the object has the change".to_owned())
    } else if all(WriteTrace::NotMade) {
        (WriteTrace::NotMade, "the object does not have the change, which is not sent again".to_owned())
    } else {
        (WriteTrace::Unknown, "some objects have their change, others do not".to_owned())
    };
    Outcome::Interrupted { trace, why: format!("the hub did not learn the result; {found}") }
}
