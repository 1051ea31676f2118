//! Carries out the run of a set: takes the set, compares, orders, and steps the run until it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::Either;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use taffrail_apps::sets::{
    MAX_RUNS, MAX_SET_OBJECTS, ObjectResult, SET_MARK, SetPhase, SetRun, SetSummary, SetVerb,
};
use taffrail_cluster::{Cluster, OpenApiCache};
use taffrail_object::{GroupKind, InventoryEntry, ObjectKey};
use taffrail_observe::FleetWatcher;
use taffrail_plan::manifests::{self, ApplyMode, DeclaredObject, DeclaredSet, KindScope, ManifestFile};
use taffrail_plan::order::{Dialect, OrderInput, PrunedObject, order};
use taffrail_plan::sync::{
    Answer, NewRun, Observation, RunAction, RunEnd, Stepped, SyncRun, TaskState, TaskWork, WaitingFor, step,
};

use crate::compare::{Coming, Comparer, Comparison, LastApplied, Types};
use crate::error::EngineError;
use crate::options::WriteOptions;
use crate::prune::{Pruning, existing_outside, plan_prune};
use crate::record::{RecordError, RecordStore, SetRecord};
use crate::request::{
    ManifestText, Manifests, PlannedObject, Stop, SyncCaller, SyncEvent, SyncPlan, SyncReport, SyncRequest,
};
use crate::results::{
    KeptEntry, counts, inventory_after, inventory_during, kept_entries, kept_results, phase, results,
};
use crate::view::View;
use crate::write::{Writer, Written};

/// Maximum time in which a cluster must answer for the first time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Interval at which the holder of a set writes its record though nothing happens, so that others see that it lives.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Interval at which a run looks whether it may go on if nothing happens.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Maximum time of the requests of one action.
const REQUEST: Duration = Duration::from_secs(60);

/// Maximum number of writes that are sent to one API server at one time.
const AT_ONCE: usize = 16;

/// Number of good runs with different manifests whose manifests are kept, for a rollback.
const GOOD_RUNS: usize = 3;

/// Carries out a request in the cluster of `watcher`, and waits until its objects are ready.
///
/// The watcher has one cluster. Each step of the run is saved in the record of the set before it is carried out: if the
/// process dies, the next request with the same manifests continues the run.
///
/// # Errors
/// Returns an error if nothing was begun, or if the record cannot be written any more. What fails after the first write is
/// the end of the run in the report.
pub async fn sync(
    watcher: FleetWatcher,
    request: &SyncRequest,
    manifests: Manifests<'_>,
    stop: &Stop,
    caller: &mut dyn SyncCaller,
) -> Result<SyncReport, EngineError> {
    let mut view = View::connected(watcher, PATIENCE).await?;
    if let Manifests::Given(files) = manifests {
        // Wrong manifests are told without touching the set.
        declare(&view, request, files)?;
    }
    let store = RecordStore::new(view.cluster()?, request.set.clone(), request.actor.clone())
        .with_times(request.holder);
    if request.creates_namespace {
        store.create_namespace().await?;
    }
    let mut record = store.take(&mut |holder| caller.take(&SyncEvent::Held(holder))).await?;
    let (view, stop) = (&mut view, stop.clone());
    let mut held = Held {
        view,
        store: &store,
        record: &mut record,
        request,
        stop,
        saved: Instant::now(),
        types: Types::built_in(),
        coming: Coming::of(&[]),
        last: LastApplied::default(),
        has_tried_to_keep: false,
    };
    let outcome = {
        let carried_out = std::pin::pin!(held.carry_out_request(manifests, caller));
        let lost = std::pin::pin!(store.keep_alive());
        match futures::future::select(carried_out, lost).await {
            Either::Left((outcome, _)) => outcome,
            // All that is still to be sent is dropped with the run.
            Either::Right((error, _)) => Err(error.into()),
        }
    };
    match outcome {
        Ok(report) if request.verb == SetVerb::Destroy && record.inventory.is_empty() => {
            match store.remove(record).await {
                Ok(()) => Ok(report),
                Err(error) => {
                    let _ = store.give_up().await;
                    Err(error.into())
                }
            }
        }
        Ok(report) => {
            store.release(record).await?;
            Ok(report)
        }
        Err(error) => {
            // The reason counts more than a record that cannot be released: its holder is succeeded.
            let _ = store.give_up().await;
            Err(error)
        }
    }
}

/// Reads the manifests as the cluster takes them. Objects without a namespace are in `namespace`.
pub(crate) fn declared_set(
    view: &View,
    namespace: &str,
    files: &[ManifestText],
) -> Result<DeclaredSet, EngineError> {
    let discovery = view.discovery()?;
    let scope_of = |kind: &GroupKind| {
        let served = discovery.kind(&kind.group, &kind.kind)?;
        Some(if served.preferred().namespaced { KindScope::Namespaced } else { KindScope::Cluster })
    };
    let files: Vec<ManifestFile<'_>> = files
        .iter()
        .map(|file| ManifestFile { path: &file.path, content: file.content.as_bytes() })
        .collect();
    manifests::read(&files, namespace, &scope_of).map_err(EngineError::Manifests)
}

/// Reads the manifests, and marks each object with the name of the set.
fn declare(view: &View, request: &SyncRequest, files: &[ManifestText]) -> Result<Declared, EngineError> {
    let namespace = request.default_namespace.as_deref().unwrap_or_else(|| view.namespace());
    let set = declared_set(view, namespace, files)?;
    let is_left_alone = |object: &DeclaredObject| {
        object.options.apply_mode.as_ref().is_some_and(|mode| mode.value == ApplyMode::Ignore)
    };
    let (left_alone, mut objects): (Vec<_>, Vec<_>) = set.objects.into_iter().partition(is_left_alone);
    if objects.is_empty() {
        return Err(EngineError::NothingDeclared);
    }
    if objects.len() > MAX_SET_OBJECTS {
        return Err(EngineError::TooMany { count: objects.len(), most: MAX_SET_OBJECTS });
    }
    let mark = request.set.to_string();
    objects.iter_mut().for_each(|object| object.annotate(SET_MARK, &mark));
    let left_alone = left_alone.into_iter().map(|object| object.key).collect();
    Ok(Declared { objects, left_alone })
}

/// The objects of the manifests.
#[derive(Default)]
struct Declared {
    /// The objects to apply, and hooks.
    objects: Vec<DeclaredObject>,
    /// The objects that their options leave alone: they are declared, and never written.
    left_alone: BTreeSet<ObjectKey>,
}

/// Returns the digest of manifests, by which equal ones are known.
fn digest_of(files: &[ManifestText]) -> String {
    let mut hash = Sha256::new();
    for file in files {
        for part in [&file.path, &file.content] {
            hash.update(part.len().to_le_bytes());
            hash.update(part.as_bytes());
        }
    }
    hex(hash)
}

/// Returns the digest of manifests and of the options that decide about the steps: a run continues only under the same.
fn run_digest(request: &SyncRequest, manifests: &str) -> String {
    let SyncRequest { verb, dialect, annotations, prune, .. } = request;
    let mut hash = Sha256::new();
    hash.update(format!("{manifests} {verb:?} {dialect:?} {annotations:?} {prune:?}"));
    hex(hash)
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A set that this process holds.
struct Held<'a> {
    view: &'a mut View,
    store: &'a RecordStore,
    record: &'a mut SetRecord,
    request: &'a SyncRequest,
    stop: Stop,
    /// The time of the last save.
    saved: Instant,
    types: Types,
    coming: Coming,
    last: LastApplied,
    /// True once the manifests of the run were sent to be kept.
    has_tried_to_keep: bool,
}

impl Held<'_> {
    /// Reads the manifests, and carries the run out.
    async fn carry_out_request(
        &mut self,
        manifests: Manifests<'_>,
        caller: &mut dyn SyncCaller,
    ) -> Result<SyncReport, EngineError> {
        let files = match manifests {
            Manifests::Given(files) => files.to_vec(),
            Manifests::OfRun(number) => self.kept_manifests(number).await?,
            // A set whose manifests are not kept is destroyed without its hooks.
            Manifests::Last => self.last_manifests().await?,
        };
        let declared = match files.is_empty() {
            true => Declared::default(),
            false => declare(self.view, self.request, &files)?,
        };
        self.carry_out_run(&declared, &files, caller).await
    }

    async fn kept_manifests(&self, number: Option<u64>) -> Result<Vec<ManifestText>, EngineError> {
        let set = &self.request.set;
        let good = || {
            let runs = self.record.summary.runs.iter();
            runs.filter(|run| run.is_kept && run.phase == SetPhase::Succeeded)
        };
        let now = good().next().map(|run| &run.digest);
        let number = match number {
            Some(number) => number,
            None => match good().find(|run| now.is_some_and(|now| run.digest != *now)) {
                Some(run) => run.number,
                None => {
                    let why = format!(
                        "the set {}/{} has no earlier good run to return to",
                        set.namespace, set.name
                    );
                    return Err(EngineError::NotFound(why));
                }
            },
        };
        let Some(run) = self.record.summary.runs.iter().find(|run| run.number == number && run.is_kept)
        else {
            let known: Vec<String> = good().map(|run| run.number.to_string()).collect();
            let why = format!(
                "the set {}/{} does not keep the manifests of run {number}, only those of {}",
                set.namespace,
                set.name,
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            );
            return Err(EngineError::NotFound(why));
        };
        Ok(self.store.read_manifests(run).await?)
    }

    async fn last_manifests(&self) -> Result<Vec<ManifestText>, EngineError> {
        let last = self.record.summary.runs.iter().find(|run| run.is_kept).map(|run| run.number);
        match last {
            Some(number) => self.kept_manifests(Some(number)).await,
            None => Ok(Vec::new()),
        }
    }

    async fn carry_out_run(
        &mut self,
        declared: &Declared,
        files: &[ManifestText],
        caller: &mut dyn SyncCaller,
    ) -> Result<SyncReport, EngineError> {
        let objects = &*declared.objects;
        let manifests = digest_of(files);
        let digest = run_digest(self.request, &manifests);
        let unfinished = self.unfinished(&digest, caller).await?;
        let compared = match self.request.verb {
            SetVerb::Sync | SetVerb::Rollback => {
                self.prepare(objects).await?;
                self.compare(objects).await?
            }
            // Nothing is applied.
            SetVerb::Prune | SetVerb::Destroy => Vec::new(),
        };
        let is_resumed = unfinished.is_some();
        let (run, kept) = match unfinished {
            Some(run) => (run, Vec::new()),
            None => self.begin(declared, &compared, (&manifests, &digest), caller).await?,
        };
        if is_resumed {
            caller.take(&SyncEvent::Resumed(&run));
        }
        let work = RunWork { objects, compared: &compared, files };
        let run = self.drive(run, &work, is_resumed, caller).await?;
        self.finish(&run, &kept).await
    }

    /// Returns the run that another process began and did not end, if it has the same manifests and options. Another one is
    /// ended first: its hooks are released, and those that run are deleted.
    async fn unfinished(
        &mut self,
        digest: &str,
        caller: &mut dyn SyncCaller,
    ) -> Result<Option<SyncRun>, EngineError> {
        let Some(run) = self.record.run.clone() else { return Ok(None) };
        if run.digest == digest {
            return Ok(Some(run));
        }
        let stop = self.stop.clone();
        self.stop = Stop::set();
        let ended = self.drive(run, &RunWork::default(), true, caller).await;
        self.stop = stop;
        self.finish(&ended?, &[]).await?;
        Ok(None)
    }

    /// Reads what comparisons need: the schemas, and the manifests of the last run.
    async fn prepare(&mut self, objects: &[DeclaredObject]) -> Result<(), EngineError> {
        let cluster = self.view.cluster()?;
        self.types = Types::of(&cluster, objects, &OpenApiCache::default()).await;
        self.coming = Coming::of(objects);
        self.last = self.last_applied().await;
        Ok(())
    }

    /// Reads what the set applied last time, object by object: a run that failed may not have applied all of its manifests.
    /// Manifests that cannot be read are left out, and the fields of others in them are conflicts.
    async fn last_applied(&self) -> LastApplied {
        let mut last = LastApplied::default();
        for run in self.record.summary.runs.iter().filter(|run| run.is_kept) {
            let declared = match self.store.read_manifests(run).await {
                Ok(files) => declare(self.view, self.request, &files).ok(),
                Err(_) => None,
            };
            let objects = declared.into_iter().flat_map(|declared| declared.objects);
            last.add_earlier(objects.filter(|object| self.was_applied(run, &object.key)));
            if run.phase == SetPhase::Succeeded {
                break;
            }
        }
        last
    }

    /// Returns true if a run is known to have applied an object of its manifests.
    fn was_applied(&self, run: &SetRun, key: &ObjectKey) -> bool {
        match run.phase {
            SetPhase::Succeeded => true,
            SetPhase::Running => self.record.run.as_ref().is_some_and(|run| {
                run.tasks.iter().any(|task| task.key == *key && task.state.written().is_some())
            }),
            _ => {
                let results = self.record.results.iter().find(|results| results.number == run.number);
                // Those that are as they were are not told, and failed ones come first.
                results.is_some_and(|results| {
                    let mut told = results.objects.iter().filter(|it| it.object == *key);
                    told.all(|it| !matches!(it.result, ObjectResult::Failed | ObjectResult::Skipped))
                })
            }
        }
    }

    async fn compare(&mut self, objects: &[DeclaredObject]) -> Result<Vec<Comparison>, EngineError> {
        let (cluster, options) = (self.view.cluster()?, self.write_options());
        let is_applied = |object: &DeclaredObject| self.is_applied(object);
        self.comparer(&cluster, &options)?.compare_all(objects, &is_applied).await
    }

    /// Returns true unless an object runs as a hook, or is never written.
    fn is_applied(&self, object: &DeclaredObject) -> bool {
        let SyncRequest { dialect, annotations, .. } = self.request;
        let holds = |key: &str| {
            Dialect::of_annotation(key).is_some_and(|of| of == *dialect || annotations.contains(&of))
        };
        let is_hook = object.options.hook.as_ref().is_some_and(|hook| holds(hook.stated_by));
        let mode = object.options.apply_mode.as_ref().map(|mode| mode.value);
        !is_hook && mode != Some(ApplyMode::Ignore)
    }

    fn comparer<'c>(
        &'c self,
        cluster: &'c Cluster,
        options: &'c WriteOptions,
    ) -> Result<Comparer<'c>, EngineError> {
        let discovery = self.view.discovery()?;
        let (types, coming, last) = (&self.types, &self.coming, &self.last);
        Ok(Comparer { cluster, discovery, options, types, coming, last })
    }

    fn write_options(&self) -> WriteOptions {
        let SyncRequest { force_conflicts, take_over, replaces, dialect, .. } = self.request;
        WriteOptions {
            force_conflicts: *force_conflicts,
            take_over: take_over.clone(),
            replaces: *replaces,
            dialect: *dialect,
            ..WriteOptions::default()
        }
    }

    /// Begins a run: decides what is pruned, orders the objects, and notes all that it may create in the inventory.
    async fn begin(
        &mut self,
        declared: &Declared,
        compared: &[Comparison],
        (manifests, digest): (&str, &str),
        caller: &mut dyn SyncCaller,
    ) -> Result<(SyncRun, Vec<KeptEntry>), EngineError> {
        let (cluster, discovery) = (self.view.cluster()?, self.view.discovery()?);
        let all: BTreeSet<&ObjectKey> =
            declared.objects.iter().map(|object| &object.key).chain(&declared.left_alone).collect();
        // Nothing is applied by a prune.
        let objects = match self.request.verb {
            SetVerb::Prune => &[],
            _ => &*declared.objects,
        };
        let Pruning { pruned, kept, dropped } =
            plan_prune(&cluster, discovery, &self.record.inventory, self.request, &all, compared).await?;
        let outside = existing_outside(&cluster, discovery, objects).await?;
        let (pruned, uids): (Vec<PrunedObject>, Vec<String>) = pruned.into_iter().unzip();
        let ordered = order(&OrderInput {
            objects,
            pruned: &pruned,
            dialect: self.request.dialect,
            annotations: &self.request.annotations,
            destroys: self.request.verb == SetVerb::Destroy,
            exists: &|key| outside.contains(key),
        })
        .map_err(EngineError::Order)?;
        let plan = SyncPlan {
            objects: objects
                .iter()
                .zip(compared)
                .map(|(declared, compared)| PlannedObject { declared, diff: compared.diff() })
                .collect(),
            pruned: pruned.iter().map(|it| &it.key).collect(),
            kept: kept.iter().map(|it| (&it.entry.key, &*it.reason)).collect(),
            order: &ordered,
        };
        if !caller.approves(&plan) {
            return Err(EngineError::NotApproved);
        }
        let uids: Vec<(ObjectKey, String)> = pruned.into_iter().map(|it| it.key).zip(uids).collect();
        let started = Timestamp::now();
        let run = SyncRun::new(&NewRun {
            id: &format!("{:016x}", fastrand::u64(..)),
            digest,
            revision: &self.request.revision,
            started,
            policy: &self.request.policy,
            order: &ordered,
            objects,
            pruned: &uids,
            unchanged: &|at| compared.get(at)?.unchanged().map(str::to_owned),
        });
        let before: Vec<InventoryEntry> =
            self.record.inventory.iter().filter(|entry| !dropped.contains(&entry.key)).cloned().collect();
        self.record.inventory = inventory_during(&before, &run);
        let number = self.record.summary.runs.first().map_or(0, |run| run.number) + 1;
        let new = SetRun {
            number,
            verb: self.request.verb,
            phase: SetPhase::Running,
            revision: self.request.revision.clone(),
            digest: manifests.to_owned(),
            actor: self.request.actor.clone(),
            started,
            ended: None,
            message: String::new(),
            counts: BTreeMap::new(),
            is_kept: false,
        };
        self.record.summary.runs.insert(0, new);
        self.record.summary.runs.truncate(MAX_RUNS);
        Ok((run, kept))
    }

    /// Steps a run until it ends. Each state is saved before its actions are carried out.
    async fn drive(
        &mut self,
        mut run: SyncRun,
        work: &RunWork<'_>,
        is_resumed: bool,
        caller: &mut dyn SyncCaller,
    ) -> Result<SyncRun, EngineError> {
        let (mut answers, mut restarted) = (Vec::new(), is_resumed);
        self.view.follow(&run.tasks.iter().map(|task| task.key.clone()).collect());
        if is_resumed {
            // What the watch shows after it began is newer than all that was sent before.
            self.view.look(&watched(&run), PATIENCE).await?;
        }
        loop {
            let observation = Observation {
                answers: &answers,
                object: &|key| self.view.observed(key),
                terminates: self.stop.is_set(),
                is_superseded: false,
                restarted,
            };
            let now = Timestamp::now();
            let Stepped { run: next, actions, waiting_for, due } = step(run, &observation, now);
            (run, restarted) = (next, false);
            if !actions.is_empty() {
                // A process whose set was taken over learns it here, and writes nothing.
                self.save(&run, &waiting_for).await?;
                if self.keep_manifests(work, caller).await? {
                    self.save(&run, &waiting_for).await?;
                }
            } else if self.saved.elapsed() >= HEARTBEAT {
                self.save(&run, &waiting_for).await?;
            }
            caller.take(&SyncEvent::Stepped { run: &run, waiting_for: &waiting_for });
            if run.end().is_some() {
                return Ok(run);
            }
            answers = self.carry_out(&run, &actions, work).await?;
            let rest = match due {
                _ if !answers.is_empty() => Duration::ZERO,
                Some(due) => Duration::try_from(due.duration_since(now)).unwrap_or_default().min(TICK),
                None => TICK,
            };
            self.view.look(&watched(&run), rest).await?;
        }
    }

    /// Saves the run in the record, and tells in it what the run waits for.
    async fn save(&mut self, run: &SyncRun, waiting_for: &[WaitingFor]) -> Result<(), EngineError> {
        if let Some(last) = self.record.summary.runs.first_mut() {
            let first = waiting_for.first();
            last.message = first.map_or_else(String::new, |it| {
                let why = if it.reason.is_empty() { String::new() } else { format!(": {}", it.reason) };
                format!("waits for {} {}{why}", it.key.kind, it.key.path())
            });
        }
        self.record.run = Some(run.clone());
        self.write_record(run).await
    }

    /// Writes the record, unless it went with its namespace, which the run deletes.
    async fn write_record(&mut self, run: &SyncRun) -> Result<(), EngineError> {
        self.saved = Instant::now();
        let home = &self.request.set.namespace;
        let is_home = |key: &ObjectKey| key.group.is_empty() && key.kind == "Namespace" && key.name == *home;
        let removes_home = self.request.verb == SetVerb::Destroy
            && run.tasks.iter().any(|task| {
                matches!(task.work, TaskWork::Prune { .. })
                    && task.state != TaskState::Pending
                    && is_home(&task.key)
            });
        if removes_home {
            self.store.let_vanish();
        }
        match self.store.save(self.record).await {
            Err(error) if self.store.has_vanished(&error) => Ok(()),
            saved => Ok(saved?),
        }
    }

    /// Keeps the manifests of the run, once; returns true if the record is to tell that they are kept now.
    async fn keep_manifests(
        &mut self,
        work: &RunWork<'_>,
        caller: &mut dyn SyncCaller,
    ) -> Result<bool, EngineError> {
        let Some(last) = self.record.summary.runs.first_mut() else { return Ok(false) };
        let applies = matches!(self.request.verb, SetVerb::Sync | SetVerb::Rollback);
        if last.is_kept || self.has_tried_to_keep || work.files.is_empty() || !applies {
            return Ok(false);
        }
        self.has_tried_to_keep = true;
        match self.store.keep_manifests(last, work.files).await {
            Ok(()) => last.is_kept = true,
            Err(error @ RecordError::NotKept(_)) => {
                caller.take(&SyncEvent::Warning { message: &error.to_string(), hint: error.hint() });
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Carries out actions, several at one time, and returns their answers.
    async fn carry_out(
        &mut self,
        run: &SyncRun,
        actions: &[RunAction],
        work: &RunWork<'_>,
    ) -> Result<Vec<(usize, Answer)>, EngineError> {
        if actions.is_empty() {
            return Ok(Vec::new());
        }
        let (cluster, options) = (self.view.cluster()?, self.write_options());
        let Comparer { discovery, types, coming, last, .. } = self.comparer(&cluster, &options)?;
        let mark = &*self.request.set.to_string();
        let one = |action: &RunAction| {
            let (cluster, options, action) = (cluster.within(REQUEST), &options, action.clone());
            async move {
                let comparer = Comparer { cluster: &cluster, discovery, options, types, coming, last };
                let (comparer, run_id, mark) = (&comparer, &*run.id, Some(mark));
                let writer = Writer { cluster: &cluster, discovery, options, comparer, run: run_id, mark };
                let at = action.task();
                let Some(task) = run.tasks.get(at) else {
                    return (at, Written::of(Answer::Failed("the run has no such task".to_owned())));
                };
                let object =
                    work.objects.get(task.object).filter(|_| !matches!(task.work, TaskWork::Prune { .. }));
                let missing = || Written::of(Answer::Failed("its manifest is missing".to_owned()));
                let written = match &action {
                    RunAction::Apply(_) => match object {
                        Some(object) => {
                            // What was compared before it was sent in vain, or replaced, is old.
                            let compared = work.compared.get(task.object).filter(|_| task.is_first_try());
                            writer.apply(object, compared).await
                        }
                        None => missing(),
                    },
                    RunAction::RunHook(_) => match (object, &task.work) {
                        (Some(object), TaskWork::Hook(hook)) => {
                            writer.run_hook(object, &task.key, hook).await
                        }
                        _ => missing(),
                    },
                    RunAction::Delete { uid, .. } => Written::of(writer.delete(&task.key, uid, object).await),
                    RunAction::Release { uid, deletes, .. } => {
                        Written::of(writer.release(&task.key, uid.as_deref(), object, *deletes).await)
                    }
                };
                (at, written)
            }
        };
        let sent: Vec<(usize, Written)> =
            futures::stream::iter(actions.iter().map(one)).buffer_unordered(AT_ONCE).collect().await;
        let mut answers = Vec::with_capacity(sent.len());
        for (at, Written { answer, generation }) in sent {
            if let (Answer::Written { uid, .. }, Some(task)) = (&answer, run.tasks.get(at)) {
                self.view.note_written(&task.key, uid, generation.unwrap_or_default());
            }
            answers.push((at, answer));
        }
        Ok(answers)
    }

    /// Writes the end of a run into the record.
    async fn finish(&mut self, run: &SyncRun, kept: &[KeptEntry]) -> Result<SyncReport, EngineError> {
        let end = run.end().cloned().unwrap_or(RunEnd::Terminated);
        let ended = Timestamp::now();
        let kept = kept_entries(&self.record.inventory, run, kept);
        let objects = results(run, &kept);
        self.record.inventory = inventory_after(&self.record.inventory, run, &kept);
        self.record.run = None;
        let (phase, message) = phase(&end);
        let mut number = 0;
        if let Some(last) = self.record.summary.runs.first_mut() {
            number = last.number;
            (last.phase, last.message, last.ended) = (phase, message, Some(ended));
            last.counts = counts(&objects);
            if phase == SetPhase::Succeeded {
                self.record.summary.applied = Some(last.revision.clone());
                self.record.summary.applied_at = Some(ended);
            }
        }
        self.record.results.insert(0, kept_results(number, &objects));
        self.record.results.truncate(MAX_RUNS);
        let (dropped, keep) = self.drop_manifests();
        self.write_record(run).await?;
        if !dropped.is_empty() {
            // Those that cannot be deleted are found the next time.
            let _ = self.store.remove_manifests(&dropped, &|number| keep.contains(&number)).await;
        }
        let summary = SetSummary { holder: None, ..self.record.summary.clone() };
        Ok(SyncReport { end, number, objects, summary, started: run.started, ended })
    }

    /// Notes that the manifests of runs to which nobody rolls back are not kept any more, and returns the numbers of those runs and
    /// of those that stay: the last good ones and the last run.
    fn drop_manifests(&mut self) -> (Vec<u64>, Vec<u64>) {
        let runs = &mut self.record.summary.runs;
        let mut seen = BTreeSet::new();
        let good = runs.iter().filter(|run| run.is_kept && run.phase == SetPhase::Succeeded);
        // Of runs with equal manifests the newest one is enough.
        let other = good.filter(|run| seen.insert(&run.digest));
        let mut keep: Vec<u64> = other.take(GOOD_RUNS).map(|run| run.number).collect();
        keep.extend(runs.first().map(|run| run.number));
        let mut dropped = Vec::new();
        for run in runs.iter_mut().filter(|run| run.is_kept && !keep.contains(&run.number)) {
            run.is_kept = false;
            dropped.push(run.number);
        }
        (dropped, keep)
    }
}

/// The declared objects of a run, as they were compared, and their manifests.
#[derive(Default)]
struct RunWork<'a> {
    objects: &'a [DeclaredObject],
    compared: &'a [Comparison],
    files: &'a [ManifestText],
}

/// Returns the objects of a run that are watched: those of its tasks that are not ended, and those outside of the set.
pub(crate) fn watched(run: &SyncRun) -> BTreeSet<ObjectKey> {
    run.watched().cloned().collect()
}
