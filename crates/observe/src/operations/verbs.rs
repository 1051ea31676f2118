//! `reconcile`, `suspend` and `resume`: writes each step of the plan, then waits until the tool has handled it and
//! the app is ready.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::{Either, select};
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use taffrail_api::operations::{
    OperationError, OperationEvent, OperationId, OperationPlan, Outcome, PlanAnswer, PlanDigest, PlannedItem,
    PlannedWrite, RefusedItem, Reply, VerbQuestion, WaitingItem, WriteTrace,
};
use taffrail_api::question::{FleetFacts, QuestionError, concerning};
use taffrail_apps::verbs::{self, Patch, Plan, Progress, Refusal, Step, Verb};
use taffrail_apps::{App, AppList, AppRef, Delivery, Objects, Snapshot, SyncState};
use taffrail_cluster::{Cluster, WriteError, aside};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{ApiResource, GroupKind, Object, ObjectKey, Projection};
use taffrail_status::{Observed, Presence};

use super::rights::{note_refusals, rights_questions};
use super::{MAX_TRIES, changed, of_write, send};
use crate::fleet::FleetSnapshot;
use crate::follow::FleetWatcher;
use crate::look::ExtraObjects;

/// Time that Argo CD may take from seeing a difference to starting an automatic sync.
const SYNC_GRACE: Duration = Duration::from_secs(5);

/// Interval at which the run of a verb checks if its deadline has passed.
const TICK: Duration = Duration::from_millis(500);

/// Minimum time that a write is given, even if the deadline is nearer or has passed: a write that is given up may
/// have been made.
const WRITE: Duration = Duration::from_secs(1);

/// The number of times that the object of a write without an answer is read, and the time of each read and pause.
const LOOKS: (usize, Duration) = (3, Duration::from_secs(1));

/// The plan of a verb, with what its run needs.
#[derive(Debug)]
pub struct VerbPlan {
    verb: Verb,
    /// The plan, as it is shown.
    pub answer: PlanAnswer<AppRef>,
    /// The steps of each item.
    steps: Vec<Vec<Step>>,
}

/// The options of [`VerbPlan::run`].
#[derive(Debug, Clone, Copy)]
pub struct VerbSettings {
    /// True for a server-side dry run.
    pub dry_run: bool,
    /// True to wait until the tools have handled the requests and the apps are ready or have failed.
    pub waits: bool,
    /// The time from the start of the run to its end: apps that are not ready then have timed out.
    pub deadline: Duration,
}

/// Plans the verb of `question` for the apps of `fleet` that it names or selects, each once even if it has several
/// target clusters. Sends nothing. `now` is the time that the writes contain.
///
/// # Errors
/// If a name matches no app or several, if the selection is empty, and for an unknown cluster.
pub fn plan_verb(
    question: &VerbQuestion,
    fleet: &FleetSnapshot,
    now: Timestamp,
) -> Result<VerbPlan, QuestionError> {
    let list = fleet.apps(&[]);
    let apps = question.choose(fleet, &list)?;
    let verb = question.verb;
    let (mut shown, mut all_steps) = (OperationPlan::new(verb.as_str()), Vec::new());
    let mut planned_apps: Vec<&App> = Vec::new();
    let mut known: HashSet<(&str, Delivery, &str, &str)> = HashSet::new();
    for app in apps {
        let AppRef { home, delivery, namespace, name, .. } = &app.app;
        let Some(snapshot) = snapshot(fleet, home) else { continue };
        if !known.insert((home, *delivery, namespace, name)) {
            continue;
        }
        let target = app.app.clone();
        match verbs::plan(app, verb, snapshot, &list, now) {
            Ok(Plan { steps, warnings, nothing }) => {
                shown.items.push(PlannedItem {
                    cluster: home.clone(),
                    target,
                    writes: steps.iter().map(write_of).collect(),
                    warnings,
                    unchanged: nothing.unwrap_or_else(|| "needs no change".to_owned()),
                    forbidden: None,
                });
                all_steps.push(steps);
                planned_apps.push(app);
            }
            Err(Refusal { message, hint }) => {
                let error = OperationError::usage(message).hint(hint);
                shown.refused.push(RefusedItem { target, error });
            }
        }
    }
    let answer = PlanAnswer {
        fleet: FleetFacts::of(fleet),
        planned_at: now,
        digest: shown.digest(),
        errors: concerning(&list, &planned_apps),
        plan: shown,
    };
    Ok(VerbPlan { verb, answer, steps: all_steps })
}

fn write_of(step: &Step) -> PlannedWrite {
    let Step { object, patch, alternative, .. } = step;
    PlannedWrite::patch(object.clone(), patch.clone(), alternative.clone())
}

impl VerbPlan {
    /// Asks the API servers whether they would allow the writes, and notes the refusals in the plan; takes at most
    /// `time`. Nothing is written.
    pub async fn note_rights(&mut self, follow: &mut FleetWatcher, time: Duration) {
        let plan = &mut self.answer.plan;
        let homes: Vec<String> = plan.items.iter().map(|item| item.cluster.clone()).collect();
        let fleet = follow.fleet();
        let mut found = Vec::new();
        for (place, item) in plan.items.iter().enumerate() {
            for write in &item.writes {
                let snapshot = snapshot(fleet, &item.cluster);
                let resource = snapshot.and_then(|snapshot| resource(snapshot, &write.object));
                found.extend(resource.map(|resource| ((place, write.object.clone()), resource)));
            }
        }
        let resources: HashMap<(usize, ObjectKey), ApiResource> = found.into_iter().collect();
        let find = |place: usize, object: &ObjectKey| {
            let cluster = follow.cluster(homes.get(place)?)?;
            Some((cluster, resources.get(&(place, object.clone()))?.clone()))
        };
        let questions = rights_questions(plan, time, find);
        note_refusals(plan, questions).await;
    }

    /// Sends all writes of the plan and waits for their effect as `settings` say. `follow` watches the clusters of
    /// the apps, and `more` are the other objects that the plan was made from.
    ///
    /// # Errors
    ///
    /// Fails if the plan does not have this digest; all other failures are the [`Outcome`] of an item.
    pub async fn run<F: FnMut(OperationEvent) -> Reply>(
        &self,
        digest: &PlanDigest,
        id: &OperationId,
        follow: &mut FleetWatcher,
        more: ExtraObjects<'_>,
        settings: VerbSettings,
        on_event: F,
    ) -> Result<(), OperationError> {
        self.answer.plan.check(digest)?;
        let task = |(item, steps): (&PlannedItem<AppRef>, &Vec<Step>)| AppRun {
            app: item.target.clone(),
            verb: self.verb,
            steps: steps.clone(),
            at: 0,
            uses_alternative: false,
            is_announced: false,
            tries: 0,
            state: if steps.is_empty() { AppRunState::Ended } else { AppRunState::Writing },
        };
        let tasks = self.answer.plan.items.iter().zip(&self.steps).map(task).collect();
        let planned_at = self.answer.planned_at;
        let mut run = VerbRun { tasks, settings, planned_at, begun: Instant::now(), on_event };
        // The caller that stops it knows that it did.
        let _ = run.all(digest, id, follow, more).await;
        Ok(())
    }
}

/// The run of a verb on one app.
struct AppRun {
    app: AppRef,
    verb: Verb,
    steps: Vec<Step>,
    /// Index of the current step.
    at: usize,
    /// True if the step's alternative patch is used, because the server does not know the first one's field.
    uses_alternative: bool,
    /// True if the caller was informed of the current write before it was sent.
    is_announced: bool,
    tries: usize,
    state: AppRunState,
}

/// The index of an item and the result of its write; `None` if nothing could be sent.
type WriteAnswer = (usize, Option<Sent>);

/// The result of a write.
enum Sent {
    Answered(Result<OwnedDocument, WriteError>),
    /// The answer got lost; what the object then told of the change, with the object.
    Lost(WriteError, WriteTrace, Option<OwnedDocument>),
}

/// The state of the current step of a verb's run on one app.
enum AppRunState {
    /// The current step must be sent.
    Writing,
    /// The current step was sent, and its answer has not come.
    UnderWay,
    /// Another client changed the object at the same time; holds the server's message.
    Conflicted(String),
    /// The step was stored, and its tool has not handled it yet; holds the resulting resourceVersion.
    Handling(String),
    /// All steps are handled since this moment, and the app must become ready.
    Settling(Instant),
    Ended,
}

impl AppRun {
    fn current(&self) -> Option<(&Step, &Patch)> {
        let step = self.steps.get(self.at)?;
        Some((step, patch_of(step, self.uses_alternative)?))
    }

    fn is_pending(&self) -> bool {
        !matches!(self.state, AppRunState::Ended)
    }

    /// Returns true if the app waits for a change in its cluster: after a conflict, until its tool has handled the
    /// step, or until it is ready.
    fn is_followed(&self) -> bool {
        !matches!(self.state, AppRunState::Writing | AppRunState::UnderWay | AppRunState::Ended)
    }

    /// Moves to the next step; after the last step, to the state `last`.
    fn advance(&mut self, last: AppRunState) {
        self.at += 1;
        (self.uses_alternative, self.is_announced, self.tries) = (false, false, 0);
        self.state = if self.at < self.steps.len() { AppRunState::Writing } else { last };
    }

    /// Makes the alternative patch of the current step the next write.
    fn use_alternative(&mut self) {
        (self.uses_alternative, self.is_announced, self.state) = (true, false, AppRunState::Writing);
    }

    /// Plans the current step again after a conflict. If the new patch changes the same fields to the same values as
    /// the confirmed one, makes it the next write, else changes nothing.
    fn replan(
        &mut self,
        app: Option<&App>,
        fleet: &FleetSnapshot,
        list: &AppList,
        planned_at: Timestamp,
    ) -> Replanned {
        let home = snapshot(fleet, &self.app.home);
        let again =
            app.zip(home).and_then(|(app, home)| verbs::plan(app, self.verb, home, list, planned_at).ok());
        let step = again.and_then(|plan| plan.steps.into_iter().nth(self.at));
        let Some(step) = step else { return Replanned::Other };
        let both = patch_of(&step, self.uses_alternative).zip(self.current());
        let Some((fresh, _)) = both.filter(|(fresh, (_, old))| fresh.is_same(old)) else {
            return Replanned::Other;
        };
        if fresh.base().is_some() && both.is_some_and(|(fresh, (_, old))| fresh.base() == old.base()) {
            return Replanned::NoNews;
        }
        self.steps[self.at] = step;
        self.state = AppRunState::Writing;
        Replanned::Same
    }
}

/// The result of planning a step again after a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replanned {
    /// The patch is the same, and is the next write.
    Same,
    /// The patch is another one, or none.
    Other,
    /// The version of the object that the server has was not read yet.
    NoNews,
}

/// Reads the object of a write whose answer got lost until it shows whether the change was made; passes other answers on.
async fn seen(
    sent: Result<OwnedDocument, WriteError>,
    cluster: &Cluster,
    resource: &ApiResource,
    object: &ObjectKey,
    patch: Patch,
    since: Timestamp,
) -> Sent {
    let lost = match sent {
        Err(error @ WriteError::Uncertain(_)) => error,
        answered => return Sent::Answered(answered),
    };
    let write = PlannedWrite::patch(object.clone(), patch, None);
    let (most, pause) = LOOKS;
    let mut last = WriteTrace::Unread;
    for _ in 0..most {
        // What is under way still may change the object.
        tokio::time::sleep(pause).await;
        let cluster = cluster.with_timeout(pause);
        let read = cluster.get(resource, Some(&object.namespace), &object.name, Projection::Full).await;
        let Ok(Some(document)) = read else { continue };
        let Ok(found) = Object::new(document.root()) else { continue };
        let observed = Observed { key: object.as_ref(), object: found, projection: Projection::Full };
        last = WriteTrace::of(&write, &Presence::Present(observed), since);
        if last == WriteTrace::Made {
            return Sent::Lost(lost, last, Some(document));
        }
    }
    Sent::Lost(lost, last, None)
}

fn patch_of(step: &Step, uses_alternative: bool) -> Option<&Patch> {
    if uses_alternative { step.alternative.as_ref() } else { Some(&step.patch) }
}

/// The run of a verb on all apps of a plan.
struct VerbRun<F> {
    tasks: Vec<AppRun>,
    settings: VerbSettings,
    /// The time at which the plan was made, which its writes contain.
    planned_at: Timestamp,
    begun: Instant,
    on_event: F,
}

impl<F: FnMut(OperationEvent) -> Reply> VerbRun<F> {
    fn tell(&mut self, event: OperationEvent) -> ControlFlow<()> {
        if (self.on_event)(event) == Reply::Stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn end(&mut self, item: usize, outcome: Outcome) -> ControlFlow<()> {
        self.tasks[item].state = AppRunState::Ended;
        self.tell(OperationEvent::Ended { item, outcome })
    }

    async fn all(
        &mut self,
        digest: &PlanDigest,
        id: &OperationId,
        follow: &mut FleetWatcher,
        more: ExtraObjects<'_>,
    ) -> ControlFlow<()> {
        self.tell(OperationEvent::Started { id: id.clone(), digest: digest.clone() })?;
        for item in 0..self.tasks.len() {
            if !self.tasks[item].is_pending() {
                self.end(item, Outcome::Unchanged)?;
                continue;
            }
            match (self.on_event)(OperationEvent::Begins { item }) {
                Reply::Continue => {}
                Reply::Skip => self.end(item, Outcome::Refused)?,
                Reply::Stop => return ControlFlow::Break(()),
            }
        }
        // A write of a slow cluster holds up neither the results of others nor the look at them.
        let mut under_way = FuturesUnordered::new();
        loop {
            for item in 0..self.tasks.len() {
                under_way.extend(self.send(item, follow)?);
            }
            if !self.tasks.iter().any(AppRun::is_followed) {
                // Nothing under way: everything has ended.
                let Some((item, sent)) = under_way.next().await else { return ControlFlow::Continue(()) };
                self.take(item, sent)?;
                continue;
            }
            if self.tasks.iter().any(|task| matches!(task.state, AppRunState::Conflicted(_))) {
                // What the other one wrote is on its way.
                self.wait(&mut under_way, follow.next(TICK)).await?;
            }
            self.wait(&mut under_way, follow.settle(more)).await?;
            let looked = Instant::now();
            let fleet = follow.fleet();
            let list = aside(|| fleet.apps(&[]));
            let mut waiting = Vec::new();
            for item in 0..self.tasks.len() {
                waiting.extend(self.check_progress(item, fleet, &list)?.map(|why| WaitingItem { item, why }));
            }
            if !waiting.is_empty() {
                self.tell(OperationEvent::Waiting { items: waiting.clone() })?;
            }
            if self.left().is_zero() {
                for item in 0..self.tasks.len() {
                    let waits = waiting.iter().find(|waiting| waiting.item == item);
                    let why = waits.map(|waiting| waiting.why.clone());
                    self.give_up(item, &list, why)?;
                }
            } else if !waiting.is_empty() {
                let (rest, tick) = (looked.elapsed().min(self.left()), TICK.min(self.left()));
                let resting = async {
                    if !follow.rest(rest).await {
                        follow.next(tick).await;
                    }
                };
                self.wait(&mut under_way, resting).await?;
            }
        }
    }

    /// Returns the time until the deadline of the operation; zero if it has passed.
    fn left(&self) -> Duration {
        self.settings.deadline.saturating_sub(self.begun.elapsed())
    }

    /// Waits for `follow`, and processes the results of writes that come meanwhile.
    async fn wait<T>(
        &mut self,
        under_way: &mut FuturesUnordered<impl Future<Output = WriteAnswer>>,
        follow: impl Future<Output = T>,
    ) -> ControlFlow<()> {
        let mut follow = pin!(follow);
        loop {
            let answered = async {
                match under_way.next().await {
                    Some(answered) => answered,
                    None => std::future::pending().await,
                }
            };
            match select(pin!(answered), follow.as_mut()).await {
                Either::Left(((item, sent), _)) => self.take(item, sent)?,
                Either::Right(_) => return ControlFlow::Continue(()),
            }
        }
    }

    /// Returns the future that sends the current step of an app that waits to be written, after reporting the write to
    /// the caller unless that was done before; `None` for other apps.
    fn send(
        &mut self,
        item: usize,
        follow: &mut FleetWatcher,
    ) -> ControlFlow<(), Option<impl Future<Output = WriteAnswer> + use<F>>> {
        let time = self.left().max(WRITE);
        let (dry_run, since) = (self.settings.dry_run, self.planned_at);
        let task = &mut self.tasks[item];
        let (AppRunState::Writing, Some((step, patch))) = (&task.state, task.current()) else {
            return ControlFlow::Continue(None);
        };
        let (object, patch, is_alternative) = (step.object.clone(), patch.clone(), task.uses_alternative);
        let is_announced = std::mem::replace(&mut task.is_announced, true);
        task.state = AppRunState::UnderWay;
        let cluster = follow.cluster(&task.app.home).map(|cluster| cluster.within(time));
        let resource = snapshot(follow.fleet(), &task.app.home).and_then(|it| resource(it, &object));
        if !is_announced {
            let write = PlannedWrite::patch(object.clone(), patch.clone(), None);
            self.tell(OperationEvent::Writing { item, write, is_alternative })?;
        }
        ControlFlow::Continue(Some(async move {
            let (Some(cluster), Some(resource)) = (cluster, resource) else { return (item, None) };
            let sent = send::patch(&cluster, &resource, &object, None, &patch, dry_run).await;
            (item, Some(seen(sent, &cluster, &resource, &object, patch, since).await))
        }))
    }

    /// Processes the result of the write of an item; `None` if nothing could be sent.
    fn take(&mut self, item: usize, sent: Option<Sent>) -> ControlFlow<()> {
        let failed = |task: &AppRun, error: &WriteError| {
            of_write(format!("cannot {} {}", task.verb.as_str(), task.app), error)
        };
        let task = &mut self.tasks[item];
        let Some((step, patch)) = task.current() else { return ControlFlow::Continue(()) };
        let has_alternative = step.alternative.is_some() && !task.uses_alternative;
        let name = format!("{} {}", step.object.kind, step.object.path());
        let error = match sent {
            None => OperationError::unreadable(format!(
                "cannot write {name}: cluster {} is not connected",
                task.app.home
            )),
            Some(Sent::Answered(Ok(document))) => {
                let object = Object::new(document.root()).ok();
                let dropped = object.as_ref().map(|object| patch.dropped(object)).unwrap_or_default();
                if dropped.is_empty() {
                    let version = object.map(|it| it.text(&["metadata", "resourceVersion"]).into_owned());
                    return self.written(item, version.unwrap_or_default());
                }
                if has_alternative {
                    task.use_alternative();
                    return ControlFlow::Continue(());
                }
                super::dropped(&name, &dropped)
            }
            Some(Sent::Answered(Err(WriteError::UnknownField { .. }))) if has_alternative => {
                task.use_alternative();
                return ControlFlow::Continue(());
            }
            Some(Sent::Answered(Err(WriteError::Conflict { message, .. }))) if task.tries < MAX_TRIES => {
                task.tries += 1;
                task.state = AppRunState::Conflicted(message);
                return ControlFlow::Continue(());
            }
            Some(Sent::Answered(Err(error))) => failed(task, &error),
            Some(Sent::Lost(_, WriteTrace::Made, Some(document))) => {
                let object = Object::new(document.root()).ok();
                let version = object.map(|it| it.text(&["metadata", "resourceVersion"]).into_owned());
                return self.written(item, version.unwrap_or_default());
            }
            Some(Sent::Lost(error, trace, _)) => {
                let seen = match trace {
                    WriteTrace::NotMade => "the object does not have the change now",
                    WriteTrace::Made | WriteTrace::Unknown | WriteTrace::Unread => {
                        "whether it was made cannot be told"
                    }
                };
                let error = failed(task, &error);
                OperationError { message: format!("{}; {seen}", error.message), ..error }
            }
        };
        self.end(item, Outcome::Error { error })
    }

    /// Goes on after the server has accepted the current write of an item; `version` is the resource version that the
    /// object has by it.
    fn written(&mut self, item: usize, version: String) -> ControlFlow<()> {
        let VerbSettings { dry_run, waits, .. } = self.settings;
        let task = &mut self.tasks[item];
        let write = task.at;
        match waits && !dry_run {
            true => task.state = AppRunState::Handling(version),
            false => task.advance(AppRunState::Ended),
        }
        let is_over = !task.is_pending();
        self.tell(OperationEvent::Written { item, write, is_stored: !dry_run, name: None })?;
        match (is_over, dry_run) {
            (false, _) => ControlFlow::Continue(()),
            (true, true) => self.end(item, Outcome::Accepted),
            (true, false) => self.end(item, Outcome::Done),
        }
    }

    /// Checks the progress of an app. Returns what it still waits for; `None` if it has ended, or is or must be
    /// written. Breaks if the caller stops the operation.
    fn check_progress(
        &mut self,
        item: usize,
        fleet: &FleetSnapshot,
        list: &AppList,
    ) -> ControlFlow<(), Option<String>> {
        let several = self.tasks.len() > 1;
        let (after, planned_at) = (self.begun.elapsed(), self.planned_at);
        let task = &mut self.tasks[item];
        let Some(home) = snapshot(fleet, &task.app.home) else { return ControlFlow::Continue(None) };
        let app = list.apps.iter().find(|app| app.app == task.app);
        let reached = match &task.state {
            AppRunState::Ended | AppRunState::Writing | AppRunState::UnderWay => {
                return ControlFlow::Continue(None);
            }
            AppRunState::Conflicted(message) => {
                let error = changed(&task.app, message);
                return match task.replan(app, fleet, list, planned_at) {
                    Replanned::Same => ControlFlow::Continue(None),
                    Replanned::NoNews => {
                        let why = format!("{} was changed, and its new version was not read yet", task.app);
                        ControlFlow::Continue(Some(why))
                    }
                    Replanned::Other => {
                        self.end(item, Outcome::Error { error })?;
                        ControlFlow::Continue(None)
                    }
                };
            }
            AppRunState::Handling(version) => {
                task.current().map_or(Progress::Done, |(step, _)| step.progress(home, version))
            }
            AppRunState::Settling(since) => match app {
                None => Progress::Waiting(format!("app {} was not found", task.app)),
                // No time turns it ready.
                Some(app) if !app.in_reach => {
                    let why = app.message.to_string();
                    self.end(item, Outcome::Unobservable { why })?;
                    return ControlFlow::Continue(None);
                }
                Some(app) => match verbs::settled(app) {
                    Progress::Done if is_about_to_sync(app) && since.elapsed() < SYNC_GRACE => {
                        Progress::Waiting(format!("{} is OutOfSync", task.app))
                    }
                    reached => reached,
                },
            },
        };
        match reached {
            Progress::Waiting(why) if several => {
                let why = format!("{} in {}: {why}", task.app, task.app.target);
                return ControlFlow::Continue(Some(why));
            }
            Progress::Waiting(why) => return ControlFlow::Continue(Some(why)),
            Progress::Failed(why) => self.end(item, Outcome::Failed { why, after: after.into() })?,
            Progress::Done if matches!(task.state, AppRunState::Settling(_)) => {
                let message = app.map(|app| app.delivery_message.clone()).unwrap_or_default();
                let is_out_of_sync = app.is_some_and(|app| app.sync.state == SyncState::OutOfSync);
                self.end(item, Outcome::Ready { message, is_out_of_sync, after: after.into() })?;
            }
            Progress::Done if task.verb == Verb::Suspend => {
                task.advance(AppRunState::Ended);
                if !task.is_pending() {
                    self.end(item, Outcome::Done)?;
                }
            }
            Progress::Done => {
                task.advance(AppRunState::Settling(Instant::now()));
                // It may be ready already.
                return self.check_progress(item, fleet, list);
            }
        }
        ControlFlow::Continue(None)
    }

    /// Ends the app with index `item` as timed out, because the deadline has passed; `why` says what it still
    /// waited for. Does nothing if the app has ended, or if its write is under way: the answer to the write ends
    /// it.
    fn give_up(&mut self, item: usize, list: &AppList, why: Option<String>) -> ControlFlow<()> {
        let task = &self.tasks[item];
        if !task.is_pending() || matches!(task.state, AppRunState::UnderWay) {
            return ControlFlow::Continue(());
        }
        let app = list.apps.iter().find(|app| app.app == task.app);
        let is_observed = app.is_some_and(|app| app.freshness.is_live() && app.home_freshness.is_live());
        let why = why.unwrap_or_else(|| "the reason is unknown".to_owned());
        self.end(item, Outcome::TimedOut { why, is_observed, after: self.begun.elapsed().into() })
    }
}

/// Returns true if Argo CD may be about to start an automatic sync: the app is an OutOfSync Application that is not
/// suspended.
fn is_about_to_sync(app: &App) -> bool {
    app.app.delivery == Delivery::ArgoApplication && app.sync.state == SyncState::OutOfSync && !app.suspended
}

fn snapshot<'f>(fleet: &'f FleetSnapshot, name: &str) -> Option<&'f Snapshot> {
    fleet.snapshots.iter().find(|snapshot| snapshot.name() == name)
}

fn resource(snapshot: &Snapshot, key: &ObjectKey) -> Option<ApiResource> {
    Some(snapshot.kinds()?.get(&GroupKind::new(&*key.group, &*key.kind))?.resource())
}
