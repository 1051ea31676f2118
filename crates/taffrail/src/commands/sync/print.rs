//! Prints the progress and the result of a run.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use taffrail_api::text;
use taffrail_apps::sets::{ObjectResult, RunObject};
use taffrail_engine::{SyncEvent, SyncReport};
use taffrail_object::ObjectKey;
use taffrail_plan::sync::{RunEnd, SyncRun, SyncTask, TaskOutcome, TaskState, TaskWork, WaitingFor};

use crate::command_error::CommandError;
use crate::output::answer::Console;
use crate::output::printable;
use crate::{phrase, say};

/// Maximum number of objects that a line about waiting names; the others are counted.
const MAX_NAMED: usize = 3;

/// Prints a line for each task that comes forward, and one for what the run waits for.
pub(super) struct Progress {
    console: Console,
    /// The cluster, if there are several.
    cluster: String,
    /// False where a document tells of the run at its end.
    tells_lines: bool,
    told: BTreeMap<usize, &'static str>,
    /// The objects that the run waits for, each with the time since when.
    waiting: BTreeMap<ObjectKey, Instant>,
    /// The line about them that was printed last.
    line: String,
}

/// Time for which a run must wait for an object before a line says so: most objects are ready at once.
const UNTOLD: Duration = Duration::from_secs(2);

/// A line about an object: sign, colour and word.
type Word = (&'static str, Style, &'static str);

impl Progress {
    /// Creates one that prints lines only if `tells_lines`, and what concerns the set as a whole in any case.
    pub(super) fn new(console: &Console, cluster: Option<&str>, tells_lines: bool) -> Progress {
        let cluster = cluster.map(|name| format!("{name} ")).unwrap_or_default();
        Progress {
            console: console.clone(),
            cluster,
            tells_lines,
            told: BTreeMap::new(),
            waiting: BTreeMap::new(),
            line: String::new(),
        }
    }

    /// Prints what is new in an event. An error says that stdout is closed.
    pub(super) fn take(&mut self, event: &SyncEvent<'_>) -> io::Result<()> {
        let mut out = self.console.people();
        match event {
            SyncEvent::Held(holder) => {
                let line =
                    format!("{}{} holds the set; waiting until it is free", self.cluster, holder.actor);
                self.console.tell(phrase!("{}\n", printable(&line)));
            }
            SyncEvent::Warning { message, hint } => {
                let warning = CommandError::unreadable(message).harmless();
                let warning = if hint.is_empty() { warning } else { warning.hint(*hint) };
                warning.print_about(&self.cluster, &self.console);
            }
            _ if !self.tells_lines => {}
            SyncEvent::Resumed(run) => {
                let done = run.tasks.iter().filter(|task| task.state.written().is_some()).count();
                let all = run.tasks.len();
                let line = format!(
                    "{}continues a run that was interrupted: {done} of {all} were done",
                    self.cluster
                );
                say!(out, "{}", printable(&line))?;
                for (at, task) in run.tasks.iter().enumerate() {
                    self.told.extend(word(task).map(|(_, _, word)| (at, word)));
                }
            }
            SyncEvent::Stepped { run, waiting_for } => {
                self.tasks(&mut out, run)?;
                self.waiting(&mut out, waiting_for)?;
            }
            _ => {}
        }
        out.flush()
    }

    fn tasks(&mut self, out: &mut impl Write, run: &SyncRun) -> io::Result<()> {
        for (at, task) in run.tasks.iter().enumerate() {
            let Some((sign, style, word)) = word(task) else { continue };
            if self.told.insert(at, word) == Some(word) {
                continue;
            }
            line(out, &self.cluster, (sign, style, word), &task.key, message(task))?;
        }
        Ok(())
    }

    fn waiting(&mut self, out: &mut impl Write, waiting_for: &[WaitingFor]) -> io::Result<()> {
        let now = Instant::now();
        self.waiting.retain(|key, _| waiting_for.iter().any(|it| it.key == *key));
        for it in waiting_for {
            self.waiting.entry(it.key.clone()).or_insert(now);
        }
        let long = waiting_for
            .iter()
            .filter(|it| self.waiting.get(&it.key).is_some_and(|since| now.duration_since(*since) >= UNTOLD));
        let (mut named, mut more) = (Vec::new(), 0);
        for it in long {
            let why = if it.reason.is_empty() { String::new() } else { format!(" ({})", it.reason) };
            match named.len() < MAX_NAMED {
                true => named.push(format!("{} {}{why}", it.key.kind, it.key.path())),
                false => more += 1,
            }
        }
        let mut line = named.join(", ");
        if more > 0 {
            line.push_str(&format!(" and {more} more"));
        }
        if line == self.line || line.is_empty() {
            return Ok(());
        }
        self.line = line;
        let dim = Style::new().dimmed();
        say!(out, "{}{}  waiting for {}{:#}", printable(&self.cluster), dim, printable(&self.line), dim)
    }
}

fn line(out: &mut impl Write, cluster: &str, word: Word, key: &ObjectKey, message: &str) -> io::Result<()> {
    let (sign, style, word) = word;
    let name = format!("{} {}", key.kind, key.path());
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    say!(
        out,
        "{}{}{} {} {}{:#}{}",
        printable(cluster),
        style,
        sign,
        printable(&name),
        word,
        style,
        printable(&message)
    )
}

/// Returns the line about a task; `None` while there is nothing to tell.
fn word(task: &SyncTask) -> Option<Word> {
    let (green, yellow, red) =
        (AnsiColor::Green.on_default(), AnsiColor::Yellow.on_default(), AnsiColor::Red.on_default());
    Some(match (&task.work, &task.state) {
        (_, TaskState::Failed { .. }) => ("!", red, "failed"),
        (TaskWork::Hook(_), TaskState::Done { .. }) => (">", Style::new(), "runs"),
        (TaskWork::Hook(_), TaskState::Ready { .. }) => (">", green, "succeeded"),
        (TaskWork::Prune { .. }, TaskState::Ready { .. }) => ("-", red, "deleted"),
        (_, TaskState::Clearing { .. }) => ("-", red, "is deleted first"),
        (TaskWork::Apply { .. }, TaskState::Done { outcome, .. } | TaskState::Ready { outcome, .. }) => {
            match outcome {
                TaskOutcome::Created => ("+", green, "created"),
                TaskOutcome::Changed => ("~", yellow, "changed"),
                TaskOutcome::Replaced => ("~", yellow, "replaced"),
                TaskOutcome::Unchanged | TaskOutcome::Deleted => return None,
            }
        }
        _ => return None,
    })
}

fn message(task: &SyncTask) -> &str {
    match &task.state {
        TaskState::Failed { message, .. } => message,
        _ => "",
    }
}

/// Prints the objects that were skipped or stayed, and the result of the run of a set or inventory (`what`) in one line.
pub(super) fn result(
    console: &Console,
    cluster: Option<&str>,
    what: &str,
    report: &SyncReport,
) -> io::Result<()> {
    let mut out = console.people();
    let cluster = cluster.map(|name| format!("{name} ")).unwrap_or_default();
    for object in &report.objects {
        let (sign, word) = match object.result {
            ObjectResult::Skipped => ("?", "was skipped"),
            ObjectResult::Kept => ("=", "stays"),
            _ => continue,
        };
        line(&mut out, &cluster, (sign, Style::new(), word), &object.object, &object.message)?;
    }
    let (word, style) = match &report.end {
        RunEnd::Succeeded => ("Succeeded", AnsiColor::Green.on_default()),
        RunEnd::Failed(_) => ("Failed", AnsiColor::Red.on_default()),
        RunEnd::Terminated => ("Terminated", AnsiColor::Yellow.on_default()),
        RunEnd::Superseded => ("Superseded", AnsiColor::Yellow.on_default()),
    };
    let took = text::age(report.ended.duration_since(report.started).as_secs());
    let rest = format!("{what}: {} after {took}", told_counts(&report.objects));
    say!(out, "{}{}{}{:#} {}", printable(&cluster), style, word, style, printable(&rest))?;
    out.flush()
}

/// Returns the number of objects of each result in words: `2 created, 1 changed`.
fn told_counts(objects: &[RunObject]) -> String {
    let counts = ObjectResult::ALL.into_iter().filter_map(|result| {
        let count = objects.iter().filter(|object| object.result == result).count();
        (count > 0).then(|| format!("{count} {}", result.as_str().to_lowercase()))
    });
    let told = counts.collect::<Vec<_>>().join(", ");
    if told.is_empty() { "nothing to do".to_owned() } else { told }
}
