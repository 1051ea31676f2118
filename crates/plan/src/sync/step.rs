//! The next step of a run.

use jiff::{SignedDuration, Timestamp};
use taffrail_object::ObjectKey;

use super::run::{
    Answer, Delay, HookTask, Observation, ObservedObject, Place, RunAction, RunEnd, RunPhase, SyncRun,
    SyncTask, TaskOutcome, TaskState, TaskVerdict, TaskWork, WaitingFor,
};
use crate::manifests::HookDeletePolicy;

/// The longest delay before a write is sent again.
const MAX_DELAY: SignedDuration = SignedDuration::from_secs(30);

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stepped {
    /// The run as it stands now. It is saved before the actions are carried out.
    pub run: SyncRun,
    /// The actions. All of them are carried out, and their answers are part of the next observation.
    pub actions: Vec<RunAction>,
    /// The objects that the run waits for.
    pub waiting_for: Vec<WaitingFor>,
    /// The time at which the next step is due though nothing else happens; `None` if there is none.
    pub due: Option<Timestamp>,
}

/// Takes a run as far as it gets by what was observed.
pub fn step(run: SyncRun, observation: &Observation<'_>, now: Timestamp) -> Stepped {
    let mut machine =
        Machine { run, seen: observation, now, actions: Vec::new(), waiting_for: Vec::new(), due: None };
    if observation.restarted {
        machine.forget_lost_answers();
    }
    for (task, answer) in observation.answers {
        machine.take(*task, answer);
    }
    machine.look();
    while machine.advance() {}
    let Machine { run, actions, waiting_for, due, .. } = machine;
    Stepped { run, actions, waiting_for, due }
}

struct Machine<'a> {
    run: SyncRun,
    seen: &'a Observation<'a>,
    now: Timestamp,
    actions: Vec<RunAction>,
    waiting_for: Vec<WaitingFor>,
    due: Option<Timestamp>,
}

/// The readiness of the object of a task.
enum Readiness {
    Ready,
    Failed(String),
    Waiting { reason: String, since: Option<Timestamp> },
}

impl Machine<'_> {
    /// Makes tasks pending again whose answer got lost with the process that sent them.
    fn forget_lost_answers(&mut self) {
        for task in &mut self.run.tasks {
            match &mut task.state {
                TaskState::Sent => {
                    task.state = TaskState::Pending;
                    task.is_doubtful = true;
                }
                TaskState::Clearing { is_asked, .. } => *is_asked = false,
                _ => {}
            }
        }
    }

    fn take(&mut self, at: usize, answer: &Answer) {
        let (retries, now) = (self.run.policy.retries, self.now);
        let is_ending = matches!(self.run.phase, RunPhase::Ending(_));
        let mut trouble = None;
        let Some(task) = self.run.tasks.get_mut(at) else { return };
        if let (TaskWork::Hook(hook), true) = (&mut task.work, task.state.is_final() || is_ending) {
            match answer {
                Answer::Later(reason) if task.delay.as_ref().is_none_or(|it| it.tries < retries) => {
                    task.delay = Some(Delay::after(task.delay.take(), reason, now));
                    return;
                }
                Answer::Later(reason) | Answer::Failed(reason) => {
                    let ObjectKey { kind, .. } = &task.key;
                    trouble =
                        Some(format!("the hook {kind} {} could not be released: {reason}", task.key.path()));
                }
                _ => {}
            }
            hook.is_released = true;
            // A hook that was only released may be deleted yet, and one that failed is given up.
            hook.is_settled = is_ending && !matches!(answer, Answer::Released { deleted: false });
            task.delay = None;
            if let Some(trouble) = trouble {
                self.note_trouble(trouble);
            }
            return;
        }
        let is_prune = matches!(task.work, TaskWork::Prune { .. });
        let outcome_of = |outcome: TaskOutcome, task: &SyncTask| match outcome {
            TaskOutcome::Created if task.is_replaced => TaskOutcome::Replaced,
            outcome => outcome,
        };
        task.state = match (&task.state, answer) {
            (TaskState::Sent, Answer::Written { uid, outcome }) => {
                TaskState::Done { uid: uid.clone(), outcome: outcome_of(*outcome, task) }
            }
            (TaskState::Sent, Answer::InTheWay { uid, replaces }) => {
                task.is_replaced |= *replaces;
                TaskState::Clearing { uid: uid.clone(), is_asked: false }
            }
            (TaskState::Sent, Answer::Deleting | Answer::Gone) if is_prune => {
                let TaskWork::Prune { uid } = &task.work else { return };
                let (uid, outcome) = (uid.clone(), TaskOutcome::Deleted);
                match answer {
                    Answer::Gone => TaskState::Ready { uid, outcome },
                    _ => TaskState::Done { uid, outcome },
                }
            }
            (TaskState::Clearing { uid, .. }, Answer::Deleting) => {
                TaskState::Clearing { uid: uid.clone(), is_asked: true }
            }
            (TaskState::Clearing { .. }, Answer::Gone) => TaskState::Pending,
            (TaskState::Sent | TaskState::Clearing { .. }, Answer::Later(reason))
                if task.delay.as_ref().is_none_or(|it| it.tries < retries) =>
            {
                task.delay = Some(Delay::after(task.delay.take(), reason, now));
                if task.state == TaskState::Sent {
                    // A write that may have been made is looked for before it is sent again.
                    task.is_doubtful = true;
                    task.state = TaskState::Pending;
                }
                return;
            }
            (
                TaskState::Sent | TaskState::Clearing { .. },
                Answer::Later(reason) | Answer::Failed(reason),
            ) => TaskState::Failed { uid: None, outcome: None, message: reason.clone() },
            // An answer that nobody waits for.
            _ => return,
        };
        task.delay = None;
        task.is_doubtful = false;
    }

    /// Adds a reason to the end of the run, which then is a failure.
    fn note_trouble(&mut self, trouble: String) {
        let (RunPhase::AfterFailure(end) | RunPhase::Ending(end) | RunPhase::Ended(end)) =
            &mut self.run.phase
        else {
            return;
        };
        match end {
            RunEnd::Failed(message) => {
                message.push_str("; ");
                message.push_str(&trouble);
            }
            end => *end = RunEnd::Failed(trouble),
        }
    }

    /// Follows what objects became of themselves: those in the way that are gone, pruned ones that are, and hooks that ended.
    fn look(&mut self) {
        for task in &mut self.run.tasks {
            let seen = match &task.state {
                TaskState::Clearing { is_asked: true, .. } => (self.seen.object)(&task.key),
                TaskState::Done { .. } if !matches!(task.work, TaskWork::Apply { .. }) => {
                    (self.seen.object)(&task.key)
                }
                _ => continue,
            };
            let is_gone = |own: &str| match &seen {
                ObservedObject::Unknown(_) => false,
                ObservedObject::Absent => true,
                ObservedObject::Present { uid, .. } => uid != own,
            };
            match (&task.work, &task.state) {
                (_, TaskState::Clearing { uid, .. }) if is_gone(uid) => task.state = TaskState::Pending,
                (TaskWork::Prune { .. }, TaskState::Done { uid, outcome }) if is_gone(uid) => {
                    task.state = TaskState::Ready { uid: uid.clone(), outcome: *outcome };
                }
                (TaskWork::Hook(_), TaskState::Done { uid, outcome }) => {
                    let failed = |message: String| TaskState::Failed {
                        uid: Some(uid.clone()),
                        outcome: Some(*outcome),
                        message,
                    };
                    task.state = match &seen {
                        _ if is_gone(uid) => failed("the hook was deleted while it ran".to_owned()),
                        ObservedObject::Present { verdict: TaskVerdict::Ready, .. } => {
                            TaskState::Ready { uid: uid.clone(), outcome: *outcome }
                        }
                        ObservedObject::Present { verdict: TaskVerdict::Failed, reason, .. } => {
                            failed(reason.clone())
                        }
                        _ => continue,
                    };
                }
                _ => {}
            }
        }
    }

    /// Goes on as far as it can; returns true if there is more to do at once.
    fn advance(&mut self) -> bool {
        match &self.run.phase {
            RunPhase::Ended(_) => false,
            RunPhase::Ending(end) => {
                let end = end.clone();
                self.settle_hooks(&end);
                let is_settled = |task: &SyncTask| match &task.work {
                    TaskWork::Hook(hook) => hook.is_settled,
                    _ => true,
                };
                if self.run.tasks.iter().all(is_settled) {
                    self.skip_the_rest();
                    // A hook that could not be released has made it a failure meanwhile.
                    let RunPhase::Ending(end) = &self.run.phase else { return false };
                    self.run.phase = RunPhase::Ended(end.clone());
                }
                false
            }
            RunPhase::Running | RunPhase::AfterFailure(_) => {
                if self.seen.terminates {
                    return self.end(RunEnd::Terminated);
                }
                if let Some(deadline) = self.run.policy.deadline {
                    let at = self.run.started.saturating_add(deadline).unwrap_or(Timestamp::MAX);
                    if self.now >= at {
                        let waits = self.present_wait();
                        return self
                            .end(RunEnd::Failed(format!("not done within {}{waits}", told(deadline))));
                    }
                    self.wake(at);
                }
                self.release_ended_hooks();
                self.go_on()
            }
        }
    }

    /// Returns the first object that the run waits for, in words.
    fn present_wait(&self) -> String {
        let Some(step) = self.run.steps().get(self.run.at.step) else { return String::new() };
        let first = step.batches.iter().flatten().find_map(|at| {
            let task = self.run.tasks.get(*at)?;
            match self.readiness(task) {
                Readiness::Waiting { reason, .. } => Some((&task.key, reason)),
                _ => None,
            }
        });
        first
            .map_or_else(String::new, |(key, reason)| format!(": waiting for {}", waiting_text(key, &reason)))
    }

    fn wake(&mut self, at: Timestamp) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Carries out the present step; returns true if the run came to another one.
    fn go_on(&mut self) -> bool {
        let Place { step: at, batch, since } = self.run.at;
        let Some(step) = self.run.steps().get(at) else { return self.finish() };
        if self.seen.is_superseded && batch == 0 && self.run.phase == RunPhase::Running && !self.has_begun(at)
        {
            return self.end(RunEnd::Superseded);
        }
        let (batches, needs) = (step.batches.clone(), step.needs.clone());
        let step_deadline = self.run.policy.step_deadline;
        let until = step_deadline.map(|limit| since.saturating_add(limit).unwrap_or(Timestamp::MAX));
        let is_late = until.is_some_and(|until| self.now >= until);
        if let Some(until) = until {
            self.wake(until);
        }
        if let Some(unmet) = self.unmet(&needs).filter(|_| batch == 0) {
            if is_late {
                let what = waiting_text(&unmet.key, &unmet.reason);
                return self.end(RunEnd::Failed(format!("{what}, and others of the set depend on it")));
            }
            self.waiting_for.push(unmet);
            return false;
        }
        for (number, tasks) in batches.iter().enumerate().skip(batch) {
            if self.has_to_stop(&batches[..number]) {
                break;
            }
            if !self.send(tasks) {
                self.run.at.batch = number;
                return false;
            }
            self.run.at.batch = number + 1;
        }
        self.settle(&batches, is_late)
    }

    /// Returns true if a task of a step is not pending any more.
    fn has_begun(&self, step: usize) -> bool {
        let tasks = self.run.steps().get(step).into_iter().flat_map(|step| step.batches.iter().flatten());
        let unchanged = |task: &SyncTask| {
            matches!(task.state, TaskState::Done { outcome: TaskOutcome::Unchanged, .. } | TaskState::Pending)
        };
        tasks.filter_map(|at| self.run.tasks.get(*at)).any(|task| !unchanged(task))
    }

    /// Returns the first object outside of the set that a step needs and that is not ready.
    fn unmet(&self, needs: &[ObjectKey]) -> Option<WaitingFor> {
        needs.iter().find_map(|key| {
            let (reason, since) = match (self.seen.object)(key) {
                ObservedObject::Present { verdict: TaskVerdict::Ready, .. } => return None,
                ObservedObject::Present { reason, since, .. } => (reason, since),
                ObservedObject::Absent => ("it does not exist".to_owned(), None),
                ObservedObject::Unknown(reason) => (reason, None),
            };
            Some(WaitingFor { key: key.clone(), reason, since: since.unwrap_or(self.run.at.since) })
        })
    }

    /// Returns true if a task in these batches failed, and the run does not go on after failures.
    fn has_to_stop(&self, batches: &[Vec<usize>]) -> bool {
        let is_failed = |at: &usize| {
            self.run.tasks.get(*at).is_some_and(|task| matches!(task.state, TaskState::Failed { .. }))
        };
        !self.goes_on_after_failures() && batches.iter().flatten().any(is_failed)
    }

    /// Returns true if failures do not end the present step. After a failure all hooks run.
    fn goes_on_after_failures(&self) -> bool {
        self.run.policy.continues || matches!(self.run.phase, RunPhase::AfterFailure(_))
    }

    /// Sends the tasks of a batch that were not; returns true if all were answered.
    fn send(&mut self, tasks: &[usize]) -> bool {
        let mut is_answered = true;
        for &at in tasks {
            let skipped = self.run.policy.continues.then(|| self.failed_before(at)).flatten();
            let now = self.now;
            let Some(task) = self.run.tasks.get_mut(at) else { continue };
            if let Some(delay) = task.delay.as_ref().filter(|delay| delay.until > now) {
                let (until, reason) = (delay.until, delay.reason.clone());
                let key = task.key.clone();
                is_answered = false;
                self.wake(until);
                self.waiting_for.push(WaitingFor { key, reason, since: self.run.at.since });
                continue;
            }
            match &task.state {
                TaskState::Pending => {
                    if let Some(message) = skipped {
                        task.state = TaskState::Skipped { message };
                        continue;
                    }
                    self.actions.push(match &task.work {
                        TaskWork::Apply { .. } => RunAction::Apply(at),
                        TaskWork::Hook(_) => RunAction::RunHook(at),
                        TaskWork::Prune { uid } => RunAction::Delete { task: at, uid: uid.clone() },
                    });
                    task.state = TaskState::Sent;
                    is_answered = false;
                }
                TaskState::Clearing { uid, is_asked } => {
                    let (uid, is_asked) = (uid.clone(), *is_asked);
                    is_answered = false;
                    if is_asked {
                        let (key, reason) =
                            (task.key.clone(), "it is being deleted, to be created again".to_owned());
                        self.waiting_for.push(WaitingFor { key, reason, since: self.run.at.since });
                    } else if !self.is_asked_already(at) {
                        self.actions.push(RunAction::Delete { task: at, uid });
                    }
                }
                TaskState::Sent => is_answered = false,
                TaskState::Done { .. }
                | TaskState::Ready { .. }
                | TaskState::Failed { .. }
                | TaskState::Skipped { .. } => {}
            }
        }
        is_answered
    }

    fn is_asked_already(&self, at: usize) -> bool {
        self.actions.iter().any(|action| matches!(action, RunAction::Delete { task, .. } if *task == at))
    }

    /// Returns the reason to skip a task: the first that it comes after and that failed or was skipped.
    fn failed_before(&self, at: usize) -> Option<String> {
        let task = self.run.tasks.get(at)?;
        let first = task.after.iter().filter_map(|first| self.run.tasks.get(*first));
        let mut failed = first.filter_map(|first| match &first.state {
            TaskState::Failed { .. } => Some((first, "failed")),
            TaskState::Skipped { .. } => Some((first, "was skipped")),
            _ => None,
        });
        let (first, how) = failed.next()?;
        Some(format!("{} {}, on which it depends, {how}", first.key.kind, first.key.path()))
    }

    /// Waits until the objects of a step are ready, and goes on to the next step then; returns true if it did.
    fn settle(&mut self, batches: &[Vec<usize>], is_late: bool) -> bool {
        let waits = self.run.policy.waits_at_end || !self.is_last();
        let mut verdicts = Vec::new();
        for &at in batches.iter().flatten() {
            let Some(task) = self.run.tasks.get(at) else { continue };
            if !matches!(task.state, TaskState::Done { .. }) {
                continue;
            }
            let is_apply = matches!(task.work, TaskWork::Apply { .. });
            let readiness = if is_apply && !waits { Readiness::Ready } else { self.readiness(task) };
            match readiness {
                Readiness::Waiting { reason, since } if !is_late => {
                    let since = since.unwrap_or(self.run.at.since);
                    self.waiting_for.push(WaitingFor { key: task.key.clone(), reason, since });
                }
                Readiness::Waiting { reason, .. } => {
                    let limit = self.run.policy.step_deadline.map(told).unwrap_or_default();
                    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                    verdicts.push((at, Some(format!("not ready within {limit}{reason}"))));
                }
                Readiness::Ready => verdicts.push((at, None)),
                Readiness::Failed(message) => verdicts.push((at, Some(message))),
            }
        }
        // A failed object may recover as long as others are waited for.
        if !self.waiting_for.is_empty() {
            return false;
        }
        for (at, failure) in verdicts {
            let Some(task) = self.run.tasks.get_mut(at) else { continue };
            let TaskState::Done { uid, outcome } = &task.state else { continue };
            let (uid, outcome) = (uid.clone(), *outcome);
            task.state = match failure {
                None => TaskState::Ready { uid, outcome },
                Some(message) => TaskState::Failed { uid: Some(uid), outcome: Some(outcome), message },
            };
        }
        self.release_ended_hooks();
        if !self.goes_on_after_failures() && self.first_failure(batches).is_some() {
            return self.fail();
        }
        let step = self.run.at.step + 1;
        self.run.at = Place { step, batch: 0, since: self.now };
        true
    }

    /// Returns true if the present step is the last one that applies anything.
    fn is_last(&self) -> bool {
        self.run.at.step + 1 >= self.run.steps().len()
    }

    fn readiness(&self, task: &SyncTask) -> Readiness {
        let waiting = |reason: &str, since| Readiness::Waiting { reason: reason.to_owned(), since };
        if let Some(delay) = &task.delay {
            return waiting(&delay.reason, None);
        }
        match (&task.work, &task.state) {
            (_, TaskState::Ready { .. } | TaskState::Skipped { .. }) => Readiness::Ready,
            (_, TaskState::Failed { message, .. }) => Readiness::Failed(message.clone()),
            (TaskWork::Apply { ignores_health: true, .. }, TaskState::Done { .. }) => Readiness::Ready,
            (TaskWork::Apply { may_vanish, .. }, TaskState::Done { .. }) => {
                match (self.seen.object)(&task.key) {
                    ObservedObject::Present { verdict: TaskVerdict::Ready, .. } => Readiness::Ready,
                    ObservedObject::Present { verdict: TaskVerdict::Failed, reason, .. } => {
                        Readiness::Failed(reason)
                    }
                    ObservedObject::Present { reason, since, .. } => Readiness::Waiting { reason, since },
                    ObservedObject::Unknown(reason) => Readiness::Waiting { reason, since: None },
                    ObservedObject::Absent if *may_vanish => Readiness::Ready,
                    ObservedObject::Absent => {
                        Readiness::Failed("it was deleted after it was applied".to_owned())
                    }
                }
            }
            (TaskWork::Prune { .. }, TaskState::Done { .. }) => match (self.seen.object)(&task.key) {
                ObservedObject::Present { since, .. } => waiting("it is being deleted", since),
                _ => waiting("it is being deleted", None),
            },
            (TaskWork::Hook(_), TaskState::Done { .. }) => match (self.seen.object)(&task.key) {
                ObservedObject::Present { reason, since, .. } => Readiness::Waiting { reason, since },
                ObservedObject::Unknown(reason) => waiting(&reason, None),
                ObservedObject::Absent => waiting("", None),
            },
            (_, TaskState::Clearing { .. }) => waiting("it is being deleted, to be created again", None),
            (_, TaskState::Pending | TaskState::Sent) => waiting("", None),
        }
    }

    /// Returns the first failure in these batches, or anywhere if there are none.
    fn first_failure(&self, batches: &[Vec<usize>]) -> Option<String> {
        let tasks = batches.iter().flatten().filter_map(|at| self.run.tasks.get(*at));
        failures_of(tasks)
    }

    /// Ends a run after its last step.
    fn finish(&mut self) -> bool {
        if let RunPhase::AfterFailure(end) = &self.run.phase {
            let end = end.clone();
            let failed = failures_of(
                self.run
                    .after_failure
                    .iter()
                    .flat_map(|step| step.batches.iter().flatten())
                    .filter_map(|at| self.run.tasks.get(*at)),
            );
            self.run.phase = RunPhase::Ending(end);
            if let Some(failed) = failed {
                self.note_trouble(failed);
            }
            return true;
        }
        match failures_of(self.run.tasks.iter()) {
            Some(_) => self.fail(),
            None => self.end(RunEnd::Succeeded),
        }
    }

    /// Ends the steps after a failure: those for it follow.
    fn fail(&mut self) -> bool {
        let message = failures_of(self.run.tasks.iter()).unwrap_or_default();
        let end = RunEnd::Failed(message);
        if self.run.after_failure.is_empty() {
            return self.end(end);
        }
        self.run.phase = RunPhase::AfterFailure(end);
        self.run.at = Place { step: 0, batch: 0, since: self.now };
        true
    }

    fn end(&mut self, end: RunEnd) -> bool {
        self.waiting_for.clear();
        self.run.phase = RunPhase::Ending(end);
        true
    }

    /// Removes the finalizers of hooks that ended, whose results are saved with this step.
    fn release_ended_hooks(&mut self) {
        let asked: Vec<usize> = self.asked_releases();
        for (at, task) in self.run.tasks.iter().enumerate() {
            let (TaskWork::Hook(HookTask { is_released: false, .. }), true) =
                (&task.work, task.state.is_final())
            else {
                continue;
            };
            let Some((uid, _)) = task.state.written() else { continue };
            let is_delayed = task.delay.as_ref().is_some_and(|delay| delay.until > self.now);
            if !asked.contains(&at) && !is_delayed {
                self.actions.push(RunAction::Release { task: at, uid: Some(uid.to_owned()), deletes: false });
            }
        }
        let delays =
            self.run.tasks.iter().filter(|task| task.state.is_final()).filter_map(|task| task.delay.as_ref());
        if let Some(next) = delays.map(|delay| delay.until).min() {
            self.wake(next);
        }
    }

    fn asked_releases(&self) -> Vec<usize> {
        let task = |action: &RunAction| match action {
            RunAction::Release { task, .. } => Some(*task),
            _ => None,
        };
        self.actions.iter().filter_map(task).collect()
    }

    /// Releases all hooks at the end of a run, and deletes those whose time has come, and those that still run.
    fn settle_hooks(&mut self, end: &RunEnd) {
        let asked = self.asked_releases();
        let now = self.now;
        let mut delayed = None;
        for (at, task) in self.run.tasks.iter_mut().enumerate() {
            let TaskWork::Hook(hook) = &mut task.work else { continue };
            if hook.is_settled || asked.contains(&at) {
                continue;
            }
            if let Some(delay) = task.delay.as_ref().filter(|delay| delay.until > now) {
                delayed = Some(delayed.map_or(delay.until, |at: Timestamp| at.min(delay.until)));
                continue;
            }
            let written = task.state.written().map(|(uid, _)| uid.to_owned());
            let (uid, deletes) = match (written, task.is_doubtful || matches!(task.state, TaskState::Sent)) {
                (Some(uid), _) => (Some(uid), !task.state.is_final() || is_due(hook, end)),
                (None, true) => (None, true),
                (None, false) => {
                    hook.is_settled = true;
                    continue;
                }
            };
            if hook.is_released && !deletes {
                hook.is_settled = true;
                continue;
            }
            self.actions.push(RunAction::Release { task: at, uid, deletes });
        }
        if let Some(at) = delayed {
            self.wake(at);
        }
    }

    /// Gives each task that was not carried out the reason: the run is over.
    fn skip_the_rest(&mut self) {
        for task in &mut self.run.tasks {
            let message = match &task.state {
                TaskState::Pending | TaskState::Sent | TaskState::Clearing { .. } => {
                    "the run ended before its turn"
                }
                TaskState::Done { uid, outcome } => {
                    let (uid, outcome) = (uid.clone(), *outcome);
                    task.state = match &task.work {
                        TaskWork::Hook(_) => TaskState::Failed {
                            uid: Some(uid),
                            outcome: Some(outcome),
                            message: "the run ended while the hook ran".to_owned(),
                        },
                        _ => TaskState::Ready { uid, outcome },
                    };
                    continue;
                }
                _ => continue,
            };
            task.state = TaskState::Skipped { message: message.to_owned() };
        }
    }
}

/// Returns true if a hook that ended is deleted at this end of the run.
fn is_due(hook: &HookTask, end: &RunEnd) -> bool {
    let policy = match end {
        RunEnd::Succeeded | RunEnd::Superseded => HookDeletePolicy::HookSucceeded,
        RunEnd::Failed(_) | RunEnd::Terminated => HookDeletePolicy::HookFailed,
    };
    hook.delete.contains(&policy)
}

/// Returns the reasons of the tasks that failed, each once; `None` if none did.
fn failures_of<'t>(tasks: impl Iterator<Item = &'t SyncTask>) -> Option<String> {
    /// The number of reasons that the end of a run quotes.
    const MOST: usize = 3;
    let mut told: Vec<String> = Vec::new();
    let mut more = 0;
    for task in tasks {
        let TaskState::Failed { message, .. } = &task.state else { continue };
        let text = format!("{} {}: {message}", task.key.kind, task.key.path());
        match told.len() < MOST && !told.contains(&text) {
            true => told.push(text),
            false => more += 1,
        }
    }
    let rest = (more > 0).then(|| format!("and {more} further failures"));
    told.extend(rest);
    (!told.is_empty()).then(|| told.join("; "))
}

fn waiting_text(key: &ObjectKey, reason: &str) -> String {
    let why = if reason.is_empty() { "it is not ready yet" } else { reason };
    format!("{} {}: {why}", key.kind, key.path())
}

/// Formats a limit of time: `5m`.
fn told(limit: SignedDuration) -> String {
    format!("{limit:#}")
}

impl Delay {
    /// Returns the delay after one more try in vain: 1 s, then twice the last one, at most [`MAX_DELAY`].
    fn after(last: Option<Delay>, reason: &str, now: Timestamp) -> Delay {
        let tries = last.map_or(0, |last| last.tries) + 1;
        let seconds = 1_i64.checked_shl(tries - 1).unwrap_or(i64::MAX);
        let pause = SignedDuration::from_secs(seconds).min(MAX_DELAY);
        Delay { tries, until: now.saturating_add(pause).unwrap_or(now), reason: reason.to_owned() }
    }
}
