//! Runs a verb on each app step by step: write, wait until the tool has handled it, wait until the app is ready.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use futures::future::join_all;
use jiff::Timestamp;
use taffrail_api::{ActionList, ActionRow, PatchRow};
use taffrail_apps::command::quoted;
use taffrail_apps::verbs::{self, DiffLine, Patch, Plan, Progress as Reached, Step, Verb};
use taffrail_apps::{App, AppList, AppRef, Delivery, Objects, Snapshot, SyncState, full_name};
use taffrail_cluster::{ApiResource, Cluster, PatchRequest, PatchType, WriteError};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{GroupKind, Object, ObjectKey};
use taffrail_observe::{ExtraObjects, FleetSnapshot, FleetWatcher};

use super::arguments::ActingOutput;
use super::{ActingArguments, DryRun};
use crate::complaint::{Complaint, Exit, advise, written};
use crate::output::progress::{self, Progress};
use crate::output::{answer, indented, printable};
use crate::program;
use crate::runtime::block_on;
use crate::{emit, phrase, say};

/// Maximum number of attempts when another client changes the object at the same time.
const MAX_TRIES: usize = 5;

/// Time that Argo CD may take from seeing a difference to starting an automatic sync.
const SYNC_GRACE: Duration = Duration::from_secs(5);

/// Interval between checks of the deadline.
const TICK: Duration = Duration::from_millis(500);

/// Maximum number of apps that a question names, and of apps whose changes it previews.
const MAX_NAMED: usize = 5;
const MAX_PREVIEWED: usize = 10;

/// The run of a verb on one app.
struct Task {
    app: AppRef,
    plan: Plan,
    /// Index of the current step.
    at: usize,
    /// True if the step's alternative patch is used, because the server does not know the first one's field.
    otherwise: bool,
    shown: bool,
    /// True if the changes were printed before a question.
    is_previewed: bool,
    /// True if a line has said that the command waits for it.
    awaited: bool,
    tries: usize,
    state: State,
    /// The changes shown so far.
    patches: Vec<PatchRow>,
    /// The result, once it is known.
    outcome: Option<Outcome>,
}

struct Outcome {
    result: &'static str,
    message: String,
    hint: Option<String>,
    seconds: Option<f64>,
}

enum State {
    /// The step has to be written.
    Writing,
    /// Another client wrote at the same time.
    Conflicted(String),
    /// The step was written; holds the resulting resourceVersion.
    Handling(String),
    /// All steps are handled, since this moment.
    Settling(Instant),
    Ended,
}

impl Task {
    fn step(&self) -> Option<&Step> {
        self.plan.steps.get(self.at)
    }

    fn patch(&self) -> Option<&Patch> {
        let step = self.step()?;
        if self.otherwise { step.alternative.as_ref() } else { Some(&step.patch) }
    }

    fn row(&self) -> ActionRow {
        let mut row = ActionRow::new(&self.app, "Error", "");
        if let Some(Outcome { result, message, hint, seconds }) = &self.outcome {
            row = ActionRow::new(&self.app, *result, &**message);
            row.hint.clone_from(hint);
            row.seconds = *seconds;
        }
        row.patches.clone_from(&self.patches);
        row.warnings.clone_from(&self.plan.warnings);
        row
    }

    fn is_pending(&self) -> bool {
        !matches!(self.state, State::Ended)
    }

    /// Prints once that the command waits for this app, for output without a progress line.
    fn tell_awaited(&mut self) {
        if !std::mem::replace(&mut self.awaited, true) {
            let AppRef { home, namespace, name, .. } = &self.app;
            let slash = if namespace.is_empty() { "" } else { "/" };
            progress::tell(&format!("waiting for {namespace}{slash}{name} in {home}"));
        }
    }

    /// Moves to the next step, or to the state `last` after the last one.
    fn advance(&mut self, last: State) {
        self.at += 1;
        (self.otherwise, self.shown, self.tries) = (false, false, 0);
        self.state = if self.step().is_some() { State::Writing } else { last };
    }
}

/// The run of a verb on all selected apps.
pub(super) struct VerbRun<'a> {
    verb: Verb,
    arguments: &'a ActingArguments,
    tasks: Vec<Task>,
    refusals: Vec<(ActionRow, Complaint)>,
    /// The rows of the refused apps.
    refused: Vec<ActionRow>,
    exit: Exit,
    /// True if the changes were printed before a question.
    is_previewed: bool,
}

impl<'a> VerbRun<'a> {
    pub(super) fn new(verb: Verb, arguments: &'a ActingArguments) -> VerbRun<'a> {
        VerbRun {
            verb,
            arguments,
            tasks: Vec::new(),
            refusals: Vec::new(),
            refused: Vec::new(),
            exit: Exit::Yes,
            is_previewed: false,
        }
    }

    /// Plans the verb for an app. A refusal is kept and reported when the run begins.
    pub(super) fn add(&mut self, app: &App, fleet: &FleetSnapshot, list: &AppList) {
        let is_known = |task: &Task| {
            let AppRef { home, delivery, namespace, name, .. } = &task.app;
            (home, *delivery, namespace, name)
                == (&app.app.home, app.app.delivery, &app.app.namespace, &app.app.name)
        };
        if self.tasks.iter().any(is_known) {
            return;
        }
        let Some(home) = snapshot(fleet, &app.app.home) else { return };
        let now = self.arguments.source.now.unwrap_or_else(Timestamp::now);
        match verbs::plan(app, self.verb, home, list, now) {
            Ok(plan) => {
                let state = if plan.steps.is_empty() { State::Ended } else { State::Writing };
                let app = app.app.clone();
                let (patches, outcome) = Default::default();
                let task = Task {
                    app,
                    plan,
                    at: 0,
                    otherwise: false,
                    shown: false,
                    is_previewed: false,
                    awaited: false,
                    tries: 0,
                    state,
                    patches,
                    outcome,
                };
                self.tasks.push(task);
            }
            Err(refusal) => {
                let hint = refusal.hint.replace("taffrail ", &format!("{} ", program::name()));
                let message = format!("{refusal} (in {})", app.app.home);
                let mut row = ActionRow::new(&app.app, "Refused", refusal.message);
                row.hint = Some(hint.clone());
                self.refusals.push((row, Complaint::usage(message).hint(hint)));
            }
        }
    }

    /// Returns the clusters that are written to.
    pub(super) fn clusters(&self) -> Vec<String> {
        let homes: BTreeSet<&String> = self.tasks.iter().map(|task| &task.app.home).collect();
        homes.into_iter().cloned().collect()
    }

    /// Returns the names of the planned apps, for a question.
    pub(super) fn called(&self) -> String {
        let names: BTreeSet<String> = self.tasks.iter().map(|task| full_name(&task.app)).collect();
        let count = names.len();
        let mut named: Vec<String> = names.into_iter().take(MAX_NAMED).collect();
        if count == 1 {
            return named.remove(0);
        }
        if count > MAX_NAMED {
            named.push(format!("and {} more", count - MAX_NAMED));
        }
        format!("{count} apps ({})", named.join(", "))
    }

    /// Prints the planned changes to the terminal before a question.
    pub(super) fn preview(&mut self) {
        if std::mem::replace(&mut self.is_previewed, true) {
            return;
        }
        let mut out = Vec::new();
        for task in self.tasks.iter().take(MAX_PREVIEWED) {
            for step in &task.plan.steps {
                // Writing to a buffer cannot fail.
                let _ = print(&mut out, task, step, &step.patch);
            }
        }
        let more = self.tasks.len().saturating_sub(MAX_PREVIEWED);
        if more > 0 {
            let _ = say!(out, "… and {} more apps", more);
        }
        answer::retell(&String::from_utf8_lossy(&out));
        // If stdout is a file or a document is asked for, the changes are printed there again.
        let is_seen = self.is_text() && io::stdout().is_terminal();
        let tasks = self.tasks.iter_mut().take(MAX_PREVIEWED).filter(|_| is_seen);
        tasks.for_each(|task| task.is_previewed = true);
    }

    /// Returns the sources in other namespaces than the app that names them, as texts.
    pub(super) fn elsewhere(&self) -> Vec<String> {
        let named = self.tasks.iter().flat_map(|task| {
            let sources = task.plan.sources_elsewhere(&task.app);
            sources.map(|key| format!("{} {} (of {})", key.kind, key.path(), task.app))
        });
        named.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the apps of `list` that have a task.
    pub(super) fn apps<'l>(&self, list: &'l AppList) -> Vec<&'l App> {
        list.apps.iter().filter(|app| self.tasks.iter().any(|task| task.app == app.app)).collect()
    }

    /// Prints the refusals and the apps with nothing to do. Returns an error if no app is left.
    fn begin(&mut self) -> Result<(), Complaint> {
        let mut refusals = std::mem::take(&mut self.refusals);
        if self.tasks.is_empty() {
            let last = refusals.pop();
            refusals.iter().for_each(|(_, refusal)| refusal.print());
            return last.map_or(Ok(()), |(_, last)| Err(last));
        }
        for (row, refusal) in refusals {
            refusal.print();
            self.exit = self.exit.max(refusal.exit);
            self.refused.push(row);
        }
        for at in 0..self.tasks.len() {
            let Plan { steps, nothing, .. } = &self.tasks[at].plan;
            if steps.is_empty() {
                let why = nothing.clone().unwrap_or_else(|| "is as it should be".to_owned());
                self.end(at, "Unchanged", &why, None);
                self.say(&self.tasks[at], &why, Style::new())?;
            }
        }
        for task in &self.tasks {
            for warning in &task.plan.warnings {
                Complaint::usage(format!("{} in {}: {warning}", task.app, task.app.home)).harmless().print();
            }
        }
        Ok(())
    }

    /// Prints the planned changes without sending them.
    pub(super) fn show(mut self) -> Result<Exit, Complaint> {
        self.begin()?;
        for at in 0..self.tasks.len() {
            let steps = self.tasks[at].plan.steps.clone();
            for step in &steps {
                self.print(at, step, &step.patch)?;
            }
            if !steps.is_empty() {
                self.end(at, "Planned", "", None);
            }
        }
        if self.is_text() && self.tasks.iter().any(|task| !task.plan.steps.is_empty()) {
            written(say!(answer::people(), "nothing was sent (dry run)"))?;
        }
        self.finish()
    }

    fn is_text(&self) -> bool {
        self.arguments.output == ActingOutput::Text
    }

    /// Prints the document for programs, and returns the exit code.
    fn finish(self) -> Result<Exit, Complaint> {
        if !self.is_text() {
            let rows = self.tasks.iter().map(Task::row).chain(self.refused).collect();
            let list = ActionList::new(self.verb, self.arguments.dry_run.as_str(), rows);
            let mut out = answer::programs();
            let text = serde_json::to_writer_pretty(&mut out, &list).map_err(io::Error::from);
            written(text.and_then(|()| emit!(out, "")).and_then(|()| out.flush()))?;
        }
        Ok(self.exit)
    }

    /// Records the result of an app; with `begun`, also the time it took.
    fn end(&mut self, at: usize, result: &'static str, message: &str, begun: Option<Instant>) {
        let seconds = begun.map(|begun| (begun.elapsed().as_secs_f64() * 1000.0).round() / 1000.0);
        let task = &mut self.tasks[at];
        task.state = State::Ended;
        task.outcome = Some(Outcome { result, message: message.to_owned(), hint: None, seconds });
    }

    /// Prints the changes of a step, and records them for the document.
    fn print(&mut self, at: usize, step: &Step, patch: &Patch) -> Result<(), Complaint> {
        let task = &mut self.tasks[at];
        task.patches.push(PatchRow::new(&step.object, patch));
        if !self.is_text() || self.tasks[at].is_previewed {
            return Ok(());
        }
        let mut out = answer::people();
        written(print(&mut out, &self.tasks[at], step, patch).and_then(|()| out.flush()))
    }

    /// Writes all steps and waits for the result.
    pub(super) fn run(
        mut self,
        follow: &mut FleetWatcher,
        more: ExtraObjects<'_>,
    ) -> Result<Exit, Complaint> {
        self.begin()?;
        let begun = Instant::now();
        let mut waiting: Option<(String, Progress)> = None;
        loop {
            while self.tasks.iter().any(|task| matches!(task.state, State::Writing)) {
                waiting = None;
                self.write_all(follow)?;
            }
            if !self.tasks.iter().any(Task::is_pending) {
                return self.finish();
            }
            if self.tasks.iter().any(|task| matches!(task.state, State::Conflicted(_))) {
                // What the other one wrote is on its way.
                block_on(follow.next(TICK))?;
            }
            block_on(follow.settle(more))?;
            let looked = Instant::now();
            let fleet = follow.fleet();
            let list = fleet.apps(&[]);
            let mut first = None;
            for at in 0..self.tasks.len() {
                let why = self.look(at, fleet, &list, begun)?;
                if why.is_some() && begun.elapsed() >= progress::PATIENCE {
                    self.tasks[at].tell_awaited();
                }
                first = first.or(why);
            }
            let is_late = begun.elapsed() >= self.arguments.deadline;
            if is_late {
                for at in 0..self.tasks.len() {
                    self.give_up(at, fleet, &list, begun)?;
                }
            }
            let Some(why) = first.filter(|_| !is_late) else { continue };
            if waiting.as_ref().is_none_or(|(told, _)| *told != why) {
                // The old progress line must be cleared before the new one appears.
                drop(waiting.take());
                let line = Progress::start("waiting:".to_owned(), vec![why.clone()]);
                waiting = Some((why, line));
            }
            let left = || self.arguments.deadline.saturating_sub(begun.elapsed());
            if !block_on(follow.rest(looked.elapsed().min(left())))? {
                block_on(follow.next(TICK.min(left())))?;
            }
        }
    }

    /// Sends the current step of each app that waits to be written, all at the same time.
    fn write_all(&mut self, follow: &mut FleetWatcher) -> Result<(), Complaint> {
        let dry_run = self.arguments.dry_run == DryRun::Server;
        let mut under_way = Vec::new();
        for at in 0..self.tasks.len() {
            let task = &mut self.tasks[at];
            if !matches!(task.state, State::Writing) {
                continue;
            }
            let shown = std::mem::replace(&mut task.shown, true);
            let (Some(step), Some(patch)) = (task.step().cloned(), task.patch().cloned()) else { continue };
            if !shown {
                self.print(at, &step, &patch)?;
            }
            let task = &self.tasks[at];
            let cluster = follow.cluster(&task.app.home);
            let resource = snapshot(follow.fleet(), &task.app.home).and_then(|it| resource(it, &step.object));
            let (key, body) = (step.object.clone(), patch.body());
            under_way.push(async move {
                let (Some(cluster), Some(resource)) = (cluster, resource) else { return (at, None) };
                (at, Some(write(&cluster, &resource, &key, &body, dry_run).await))
            });
        }
        for (at, outcome) in block_on(join_all(under_way))? {
            self.take(at, outcome, dry_run)?;
        }
        Ok(())
    }

    /// Processes the result of a write.
    fn take(
        &mut self,
        at: usize,
        outcome: Option<Result<OwnedDocument, WriteError>>,
        dry_run: bool,
    ) -> Result<(), Complaint> {
        let waits = self.arguments.wait && !dry_run;
        let task = &mut self.tasks[at];
        let (Some(step), Some(patch)) = (task.step(), task.patch()) else { return Ok(()) };
        let has_other = step.alternative.is_some() && !task.otherwise;
        let name = format!("{} {}", step.object.kind, step.object.path());
        let failed = match outcome {
            None => {
                let what = format!("{name}: cluster {} is not connected", task.app.home);
                Complaint::unreadable(what)
            }
            Some(Ok(document)) => {
                let object = Object::new(document.root()).ok();
                let dropped = object.as_ref().map(|object| patch.dropped(object)).unwrap_or_default();
                if !dropped.is_empty() && has_other {
                    return self.go_otherwise(at);
                }
                if dropped.is_empty() {
                    if let Some(last) = task.patches.last_mut() {
                        last.written = !dry_run;
                    }
                    let version = object.map(|it| it.text(&["metadata", "resourceVersion"]).into_owned());
                    if waits {
                        task.state = State::Handling(version.unwrap_or_default());
                        return Ok(());
                    }
                    task.advance(State::Ended);
                    if task.is_pending() {
                        return Ok(());
                    }
                    let (result, said) = match (dry_run, self.verb) {
                        (true, _) => {
                            ("Accepted", "the server accepts the change; nothing was written (dry run)")
                        }
                        (false, Verb::Suspend) => ("Suspended", "suspended"),
                        (false, Verb::Resume) => ("Resumed", "resumed"),
                        (false, Verb::Reconcile(_)) => ("Requested", "requested"),
                    };
                    self.end(at, result, "", None);
                    return self.say(&self.tasks[at], said, Style::new());
                }
                let what = format!("{name}: the server did not keep {}", dropped.join(", "));
                Complaint::unreadable(what).hint("a webhook may have set it back")
            }
            Some(Err(WriteError::UnknownField { .. })) if has_other => return self.go_otherwise(at),
            Some(Err(WriteError::Conflict { message, .. })) if task.tries < MAX_TRIES => {
                task.tries += 1;
                task.state = State::Conflicted(message);
                return Ok(());
            }
            Some(Err(error)) => {
                let hint = error.hint();
                Complaint::unreadable(format!("cannot {} {}", self.verb.as_str(), task.app))
                    .because(&error)
                    .hint(hint)
            }
        };
        self.fail(at, &failed);
        Ok(())
    }

    /// Switches to the step's alternative patch, because the server does not know the field.
    fn go_otherwise(&mut self, at: usize) -> Result<(), Complaint> {
        let task = &mut self.tasks[at];
        (task.otherwise, task.shown, task.state) = (true, false, State::Writing);
        task.is_previewed = false;
        let text = "the tool is too old for this field; instead:";
        if self.is_text() { written(say!(answer::people(), "{}", text)) } else { Ok(()) }
    }

    fn fail(&mut self, at: usize, complaint: &Complaint) {
        complaint.print();
        self.exit = self.exit.max(complaint.exit);
        self.end(at, "Error", &complaint.to_string(), None);
        if let Some(outcome) = &mut self.tasks[at].outcome {
            outcome.hint.clone_from(&complaint.hint);
        }
    }

    /// Checks the progress of an app. Returns what it still waits for, if it does.
    fn look(
        &mut self,
        at: usize,
        fleet: &FleetSnapshot,
        list: &AppList,
        begun: Instant,
    ) -> Result<Option<String>, Complaint> {
        let several = self.tasks.len() > 1;
        let task = &mut self.tasks[at];
        let Some(home) = snapshot(fleet, &task.app.home) else { return Ok(None) };
        let app = list.apps.iter().find(|app| app.app == task.app);
        let reached = match &task.state {
            State::Ended | State::Writing => return Ok(None),
            State::Conflicted(message) => {
                let message = message.clone();
                let again = app.and_then(|app| verbs::plan(app, self.verb, home, list, fleet.now).ok());
                let step = again.and_then(|plan| plan.steps.into_iter().nth(task.at));
                let fresh = step.as_ref().and_then(|step| match task.otherwise {
                    true => step.alternative.as_ref(),
                    false => Some(&step.patch),
                });
                let is_same = fresh.zip(task.patch()).is_some_and(|(fresh, old)| fresh.is_same(old));
                if let (true, Some(step)) = (is_same, step) {
                    task.plan.steps[task.at] = step;
                    task.state = State::Writing;
                    return Ok(None);
                }
                let what = format!("{} was changed meanwhile: {message}", task.app);
                let complaint = Complaint::unreadable(what)
                    .hint("check the object, and try again if the change is still needed");
                self.fail(at, &complaint);
                return Ok(None);
            }
            State::Handling(version) => match task.step() {
                Some(step) => step.progress(home, version),
                None => Reached::Done,
            },
            State::Settling(since) => match app {
                None => Reached::Waiting(format!("{} is not among the apps", task.app)),
                Some(app) => match verbs::settled(app) {
                    Reached::Done if is_about_to_sync(app) && since.elapsed() < SYNC_GRACE => {
                        Reached::Waiting(format!("{} is OutOfSync", task.app))
                    }
                    reached => reached,
                },
            },
        };
        let settles = matches!(task.state, State::Settling(_));
        match reached {
            Reached::Waiting(why) if several => {
                Ok(Some(format!("{} in {}: {why}", task.app, task.app.target)))
            }
            Reached::Waiting(why) => Ok(Some(why)),
            Reached::Failed(why) => {
                self.end(at, "Failed", &why, Some(begun));
                let text = format!("failed after {}: {why}", seconds(begun));
                let style = AnsiColor::Red.on_default();
                self.exit = self.exit.max(Exit::No);
                self.say(&self.tasks[at], &text, style)?;
                self.hint(at);
                Ok(None)
            }
            Reached::Done if !settles => {
                let handled = self.verb == Verb::Suspend;
                task.advance(if handled { State::Ended } else { State::Settling(Instant::now()) });
                if handled {
                    self.end(at, "Suspended", "", None);
                    self.say(&self.tasks[at], "suspended", Style::new())?;
                    return Ok(None);
                }
                // It may be ready already.
                self.look(at, fleet, list, begun)
            }
            Reached::Done => {
                let app = app.map(|app| (app.said.clone(), app.sync.state));
                let (said, sync) = app.unwrap_or((String::new(), SyncState::Unknown));
                let said = taffrail_api::text::revision(&said).into_owned();
                let mut text = format!("ready after {}", seconds(begun));
                if sync == SyncState::OutOfSync {
                    text.push_str(", but OutOfSync");
                }
                if !said.is_empty() {
                    text = format!("{text}: {said}");
                }
                self.end(at, "Ready", &said, Some(begun));
                self.say(&self.tasks[at], &text, AnsiColor::Green.on_default())?;
                if sync == SyncState::OutOfSync && self.tasks[at].app.delivery == Delivery::ArgoApplication {
                    let name = full_name(&self.tasks[at].app);
                    let hint = format!("'{} reconcile {name} --sync' applies it", program::name());
                    advise(&hint);
                }
                Ok(None)
            }
        }
    }

    /// Ends an app at the deadline.
    fn give_up(
        &mut self,
        at: usize,
        fleet: &FleetSnapshot,
        list: &AppList,
        begun: Instant,
    ) -> Result<(), Complaint> {
        if !self.tasks[at].is_pending() {
            return Ok(());
        }
        let why = self.look(at, fleet, list, begun)?;
        let task = &mut self.tasks[at];
        if !task.is_pending() {
            return Ok(());
        }
        let app = list.apps.iter().find(|app| app.app == task.app);
        let is_observed = app.is_some_and(|app| app.freshness.is_live() && app.home_freshness.is_live());
        self.exit = self.exit.max(if is_observed { Exit::No } else { Exit::Incomplete });
        let why = why.unwrap_or_else(|| "the reason is unknown".to_owned());
        self.end(at, "Timeout", &why, Some(begun));
        let text = format!("not ready within {}: {why}", span(self.arguments.deadline));
        self.say(&self.tasks[at], &text, AnsiColor::Yellow.on_default())?;
        self.hint(at);
        Ok(())
    }

    fn hint(&self, at: usize) {
        let name = quoted(&full_name(&self.tasks[at].app));
        advise(&format!("'{} explain {name}' shows more", program::name()));
    }

    /// Prints the result of an app.
    fn say(&self, task: &Task, text: &str, style: Style) -> Result<(), Complaint> {
        if !self.is_text() {
            return Ok(());
        }
        let lead = match self.tasks.len() {
            1 if !task.plan.steps.is_empty() => String::new(),
            _ => format!("{} in {}: ", task.app, task.app.home),
        };
        let mut out = answer::people();
        written(
            out.write_all(phrase!("{}", style).as_str().as_bytes())
                .and_then(|()| indented(&mut out, &lead, text))
                .and_then(|()| out.write_all(phrase!("{:#}", style).as_str().as_bytes())),
        )
    }
}

/// Returns true if Argo CD may be about to start an automatic sync.
fn is_about_to_sync(app: &App) -> bool {
    app.app.delivery == Delivery::ArgoApplication && app.sync.state == SyncState::OutOfSync && !app.suspended
}

/// Prints the changes of a step.
fn print(out: &mut impl Write, task: &Task, step: &Step, patch: &Patch) -> io::Result<()> {
    let bold = Style::new().bold();
    let ObjectKey { kind, .. } = &step.object;
    let elsewhere = if task.app.target == task.app.home {
        phrase!("")
    } else {
        phrase!(", for {}", printable(&task.app.target))
    };
    say!(
        out,
        "{}{} {}{:#} in {}{}",
        bold,
        printable(kind),
        printable(&step.object.path()),
        bold,
        printable(&task.app.home),
        elsewhere
    )?;
    lines(out, &patch.lines())
}

/// Prints the lines of a diff.
pub(crate) fn lines(out: &mut impl Write, lines: &[DiffLine]) -> io::Result<()> {
    for line in lines {
        let (sign, style, text) = match line {
            DiffLine::Context(text) => (" ", Style::new(), text),
            DiffLine::Removed(text) => ("-", AnsiColor::Red.on_default(), text),
            DiffLine::Added(text) => ("+", AnsiColor::Green.on_default(), text),
        };
        say!(out, "{}{} {}{:#}", style, sign, printable(text), style)?;
    }
    Ok(())
}

async fn write(
    cluster: &Cluster,
    resource: &ApiResource,
    key: &ObjectKey,
    body: &[u8],
    dry_run: bool,
) -> Result<OwnedDocument, WriteError> {
    let request = PatchRequest {
        resource,
        namespace: Some(&key.namespace),
        name: &key.name,
        subresource: None,
        patch_type: PatchType::Merge,
        body,
        dry_run,
    };
    cluster.patch(&request).await
}

fn snapshot<'f>(fleet: &'f FleetSnapshot, name: &str) -> Option<&'f Snapshot> {
    fleet.snapshots.iter().find(|snapshot| snapshot.name() == name)
}

fn resource(snapshot: &Snapshot, key: &ObjectKey) -> Option<ApiResource> {
    let served = snapshot.kinds()?.get(&GroupKind::new(&*key.group, &*key.kind))?;
    Some(ApiResource {
        group: served.group.clone(),
        version: served.version.clone(),
        kind: served.kind.clone(),
        plural: served.plural.clone(),
        namespaced: served.namespaced,
    })
}

fn seconds(begun: Instant) -> String {
    span(begun.elapsed())
}

/// Formats a duration, such as `4.2 s` or `3 min 5 s`.
fn span(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    match seconds {
        ..60.0 => format!("{seconds:.1} s"),
        _ => format!("{:.0} min {:.0} s", (seconds / 60.0).floor(), seconds % 60.0),
    }
}
