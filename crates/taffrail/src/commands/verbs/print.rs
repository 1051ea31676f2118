//! Prints the plan, progress and results of a verb, as text or as one document.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use taffrail_api::operations::{
    OperationEvent, OperationPlan, Outcome, PlannedChange, PlannedItem, PlannedWrite, RefusedItem, Reply,
    WaitingItem, WriteTrace,
};
use taffrail_api::{ActionList, ActionRow, PatchRow};
use taffrail_apps::command::quoted;
use taffrail_apps::verbs::Verb;
use taffrail_apps::{AppRef, Delivery, full_name};

use super::ActingArguments;
use crate::cli::{ListOutput, TextOutput};
use crate::command_error::{CommandError, Exit, advise, written};
use crate::commands::{get, writes};
use crate::output::answer::Console;
use crate::output::indented;
use crate::output::progress::{self, Progress};
use crate::program;
use crate::{phrase, say};

/// Maximum number of apps that a request for confirmation names; the others are counted.
const MAX_NAMED: usize = 5;
/// Maximum number of apps whose changes are shown before a request for confirmation; the others are counted.
const MAX_PREVIEWED: usize = 10;

/// The result of one app, as it is printed and put into the document.
struct Printed {
    row: ActionRow,
    /// True if this app's changes were printed before a request for confirmation, and need not be printed again.
    is_previewed: bool,
    /// True once the result is known.
    is_ended: bool,
    /// True once the command has waited for this app for a second; if stderr is not a terminal, a line then says so.
    is_awaited: bool,
}

/// Prints the plan, the progress and the results of `reconcile`, `suspend` or `resume`.
pub(super) struct Printer<'a> {
    verb: Verb,
    arguments: &'a ActingArguments,
    plan: &'a OperationPlan<AppRef>,
    /// The state of the output, one for each item of the plan.
    items: Vec<Printed>,
    exit: Exit,
    /// True if changes were printed before a request for confirmation, so that another one does not print them again.
    is_previewed: bool,
    begun: Instant,
    /// The text about an app that the progress line shows, and the line; `None` if none is shown.
    waiting: Option<(String, Progress)>,
    /// The error that ended the output, such as a full disk; `None` if there was none.
    failed: Option<CommandError>,
    console: &'a Console,
}

impl<'a> Printer<'a> {
    pub(super) fn new(
        verb: Verb,
        arguments: &'a ActingArguments,
        plan: &'a OperationPlan<AppRef>,
        console: &'a Console,
    ) -> Printer<'a> {
        let printed = |item: &PlannedItem<AppRef>| {
            let mut row = ActionRow::new(&item.target, "Error", "");
            row.warnings.clone_from(&item.warnings);
            Printed { row, is_previewed: false, is_ended: false, is_awaited: false }
        };
        Printer {
            verb,
            arguments,
            plan,
            items: plan.items.iter().map(printed).collect(),
            exit: Exit::Yes,
            is_previewed: false,
            begun: Instant::now(),
            waiting: None,
            failed: None,
            console,
        }
    }

    fn app(&self, item: usize) -> &'a AppRef {
        &self.plan.items[item].target
    }

    /// Returns the names of the clusters of the plan's items, sorted, each once.
    pub(super) fn clusters(&self) -> Vec<String> {
        let homes: BTreeSet<&String> = self.plan.items.iter().map(|item| &item.cluster).collect();
        homes.into_iter().cloned().collect()
    }

    /// Returns the name of the app of the plan, or the number of its apps and the names of the first [`MAX_NAMED`]: `2
    /// apps (…)`, for a request for confirmation.
    pub(super) fn called(&self) -> String {
        let names: BTreeSet<String> = self.plan.items.iter().map(|item| full_name(&item.target)).collect();
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

    /// Returns, sorted, `KIND NAMESPACE/NAME (of APP)` for each source that the plan writes in another namespace than
    /// that of the app that names it.
    pub(super) fn elsewhere(&self) -> Vec<String> {
        let named = self.plan.items.iter().flat_map(|item| {
            let sources = item.sources_elsewhere();
            sources.map(|key| format!("{} {} (of {})", key.kind, key.path(), item.target))
        });
        named.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Prints the planned changes of the first apps to stderr before a request for confirmation; only once.
    pub(super) fn preview(&mut self) {
        if std::mem::replace(&mut self.is_previewed, true) {
            return;
        }
        let mut out = Vec::new();
        for (at, item) in self.plan.items.iter().enumerate().take(MAX_PREVIEWED) {
            for write in &item.writes {
                // Writing to a buffer cannot fail.
                let _ = self.print(&mut out, at, write);
            }
        }
        let more = self.items.len().saturating_sub(MAX_PREVIEWED);
        if more > 0 {
            let _ = say!(out, "… and {} more apps", more);
        }
        self.console.message(&String::from_utf8_lossy(&out));
        // If stdout is a file or a document is asked for, the changes are printed there again.
        let is_seen = self.is_text() && io::stdout().is_terminal();
        let items = self.items.iter_mut().take(MAX_PREVIEWED).filter(|_| is_seen);
        items.for_each(|item| item.is_previewed = true);
    }

    /// Prints the refused apps, those with nothing to do, and the warnings.
    pub(super) fn begin(&mut self) -> Result<(), CommandError> {
        for RefusedItem { target: app, error } in &self.plan.refused {
            let refusal = CommandError::usage(format!("{error} (in {})", app.home))
                .maybe_hint(hint_of(error.hint.as_ref(), app));
            self.exit = self.exit.max(refusal.exit);
            if self.is_text() {
                self.report(&refusal)?;
            }
            // On a terminal the report has said it.
            if !self.is_text() || !io::stdout().is_terminal() {
                refusal.print(self.console);
            }
        }
        for (at, item) in self.plan.items.iter().enumerate().filter(|(_, item)| item.writes.is_empty()) {
            let unchanged = program::typed_in(&self.app(at).home, &item.unchanged);
            self.end(at, "Unchanged", &unchanged);
            self.say(at, &unchanged, Style::new())?;
        }
        for PlannedItem { target: app, warnings, forbidden, .. } in &self.plan.items {
            let warnings = forbidden.iter().chain(warnings);
            for warning in warnings {
                CommandError::usage(format!("{app} in {}: {warning}", app.home))
                    .harmless()
                    .print(self.console);
            }
        }
        Ok(())
    }

    /// Prints what [`Printer::begin`] and [`Printer::finish`] do, and between these the planned changes, which are not
    /// sent. Returns the exit code.
    pub(super) fn show(mut self) -> Result<Exit, CommandError> {
        self.begin()?;
        for (at, item) in self.plan.items.iter().enumerate() {
            for write in &item.writes {
                self.announce(at, write)?;
                self.end(at, "Planned", "");
            }
        }
        if self.is_text() && self.plan.items.iter().any(|item| !item.writes.is_empty()) {
            written(say!(self.console.people(), "nothing was sent (dry run)"))?;
        }
        self.finish()
    }

    fn is_text(&self) -> bool {
        self.arguments.output == TextOutput::Text
    }

    /// Prints the document if the output is JSON, and returns the exit code. Fails if an earlier output failed.
    pub(super) fn finish(mut self) -> Result<Exit, CommandError> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        for item in self.items.iter_mut().filter(|item| !item.is_ended) {
            self.exit = self.exit.max(Exit::Incomplete);
            "the result is not known".clone_into(&mut item.row.message);
        }
        if self.arguments.output == TextOutput::Json {
            let refused = self.plan.refused.iter().map(|RefusedItem { target: app, error }| {
                let mut row = ActionRow::new(app, "Refused", &*error.message);
                row.hint = hint_of(error.hint.as_ref(), app);
                row
            });
            let rows = self.items.into_iter().map(|item| item.row).chain(refused).collect();
            let list = ActionList::new(self.verb, self.arguments.dry_run.as_str(), rows);
            written(get::document(ListOutput::Json, &list, self.console))?;
        }
        Ok(self.exit)
    }

    /// Records the result of the app number `at`.
    fn end(&mut self, at: usize, result: &'static str, message: &str) {
        self.items[at].is_ended = true;
        let row = &mut self.items[at].row;
        (row.result, row.message) = (result.into(), message.to_owned());
    }

    fn print(&self, out: &mut impl Write, at: usize, write: &PlannedWrite) -> io::Result<()> {
        let AppRef { home, target, .. } = self.app(at);
        let elsewhere = if target == home { String::new() } else { format!(", for {target}") };
        writes::print(out, write, home, &elsewhere)
    }

    /// Keeps a planned patch of the app number `at` for the document, and, if the output is text, prints the planned
    /// write before it is sent, unless it was printed before.
    fn announce(&mut self, at: usize, write: &PlannedWrite) -> Result<(), CommandError> {
        if let PlannedChange::Patch { patch, .. } = &write.change {
            self.items[at].row.patches.push(PatchRow::new(&write.object, patch));
        }
        if !self.is_text() || self.items[at].is_previewed {
            return Ok(());
        }
        let mut out = self.console.people();
        written(self.print(&mut out, at, write).and_then(|()| out.flush()))
    }

    /// Prints an event of the operation. Returns [`Reply::Stop`] if printing failed, else [`Reply::Continue`].
    pub(super) fn take(&mut self, event: OperationEvent) -> Reply {
        if !event.is_about(self.plan) {
            self.failed =
                Some(CommandError::unreadable("the hub tells of an app that its plan does not have"));
            return Reply::Stop;
        }
        match self.print_event(event) {
            Ok(()) => Reply::Continue,
            Err(failed) => {
                self.failed = Some(failed);
                Reply::Stop
            }
        }
    }

    fn print_event(&mut self, event: OperationEvent) -> Result<(), CommandError> {
        match event {
            OperationEvent::Started { .. } => self.begun = Instant::now(),
            OperationEvent::Begins { .. }
            | OperationEvent::Refused { .. }
            | OperationEvent::Done
            | OperationEvent::Alive => {}
            OperationEvent::Writing { item, write, is_alternative } => {
                self.waiting = None;
                if is_alternative {
                    self.items[item].is_previewed = false;
                    if self.is_text() {
                        let text = "the delivery tool is too old for this field; this is written instead:";
                        written(say!(self.console.people(), "{}", text))?;
                    }
                }
                self.announce(item, &write)?;
            }
            OperationEvent::Written { item, is_stored, .. } => {
                self.items[item].row.patches.last_mut().into_iter().for_each(|last| last.written = is_stored);
            }
            OperationEvent::Waiting { items } => self.wait_for(&items),
            OperationEvent::Ended { item, outcome } => self.print_outcome(item, outcome)?,
        }
        Ok(())
    }

    /// Shows the text about the first app in `waiting` in the progress line; if stderr is not a terminal, prints a line
    /// for each app instead, once, from a second after the start on.
    fn wait_for(&mut self, waiting: &[WaitingItem]) {
        for WaitingItem { item, .. } in waiting.iter().filter(|_| self.begun.elapsed() >= progress::PATIENCE)
        {
            if !std::mem::replace(&mut self.items[*item].is_awaited, true) {
                let AppRef { home, namespace, name, .. } = self.app(*item);
                let slash = if namespace.is_empty() { "" } else { "/" };
                progress::tell(&format!("waiting for {namespace}{slash}{name} in {home}"));
            }
        }
        let Some(WaitingItem { why, .. }) = waiting.first() else { return };
        if self.waiting.as_ref().is_none_or(|(told, _)| told != why) {
            // The old progress line must be cleared before the new one appears.
            drop(self.waiting.take());
            let line = Progress::start("waiting:".to_owned(), vec![why.clone()]);
            self.waiting = Some((why.clone(), line));
        }
    }

    fn print_outcome(&mut self, at: usize, outcome: Outcome) -> Result<(), CommandError> {
        let (result, message, text, style, after) = match outcome {
            // It was printed when the run began.
            Outcome::Unchanged | Outcome::Refused => {
                self.items[at].is_ended = true;
                return Ok(());
            }
            Outcome::Accepted => {
                let text = "the server accepts the change; nothing was written (dry run)".to_owned();
                ("Accepted", String::new(), text, Style::new(), None)
            }
            Outcome::Done => {
                let (result, text) = match self.verb {
                    Verb::Suspend => ("Suspended", "suspended"),
                    Verb::Resume => ("Resumed", "resumed"),
                    Verb::Reconcile(_) => ("Requested", "requested"),
                };
                (result, String::new(), text.to_owned(), Style::new(), None)
            }
            Outcome::Ready { message, is_out_of_sync, after } => {
                let said = taffrail_api::text::revision(&message).into_owned();
                let out_of_sync = if is_out_of_sync { ", but OutOfSync" } else { "" };
                let colon = if said.is_empty() { "" } else { ": " };
                let text = format!("ready after {}{out_of_sync}{colon}{said}", span(after.into()));
                ("Ready", said, text, AnsiColor::Green.on_default(), Some((after, is_out_of_sync)))
            }
            Outcome::Failed { why, after } => {
                self.exit = self.exit.max(Exit::No);
                let text = format!("failed after {}: {why}", span(after.into()));
                ("Failed", why, text, AnsiColor::Red.on_default(), Some((after, false)))
            }
            Outcome::Unobservable { why } => {
                self.exit = self.exit.max(Exit::Incomplete);
                let done = match self.verb {
                    Verb::Suspend => "suspended",
                    Verb::Resume => "resumed",
                    Verb::Reconcile(_) => "reconciled",
                };
                let text = format!("{done}, but whether it is ready is not known: it {why}");
                ("Unobservable", why, text, AnsiColor::Yellow.on_default(), None)
            }
            Outcome::Interrupted { trace, why } => {
                self.exit = self.exit.max(Exit::Incomplete);
                if trace == WriteTrace::Made {
                    self.items[at].row.patches.iter_mut().for_each(|patch| patch.written = true);
                }
                ("Interrupted", why.clone(), why, AnsiColor::Yellow.on_default(), None)
            }
            Outcome::TimedOut { why, is_observed, after } => {
                self.exit = self.exit.max(if is_observed { Exit::No } else { Exit::Incomplete });
                let text = format!("not ready within {}: {why}", span(self.arguments.source.timeout));
                ("Timeout", why, text, AnsiColor::Yellow.on_default(), Some((after, false)))
            }
            Outcome::Error { error } => {
                let complaint = CommandError::from(&error);
                let place = match self.items.len() {
                    1 => String::new(),
                    _ => format!("{}: ", self.app(at).home),
                };
                complaint.print_about(&place, self.console);
                self.exit = self.exit.max(complaint.exit);
                self.end(at, "Error", &complaint.to_string());
                self.items[at].row.hint = complaint.hint;
                return Ok(());
            }
        };
        self.end(at, result, &message);
        let seconds = after.map(|(after, _)| after.after_millis as f64 / 1000.0);
        self.items[at].row.seconds = seconds;
        self.say(at, &text, style)?;
        let name = full_name(self.app(at));
        let is_argo = self.app(at).delivery == Delivery::ArgoApplication;
        match (result, after) {
            ("Failed" | "Timeout", _) => {
                let command = program::hinted(&format!("taffrail explain {}", quoted(&name)));
                advise(&format!("{command} shows the cause"), self.console);
            }
            (_, Some((_, true))) if is_argo => {
                let command = program::hinted(&format!("taffrail reconcile {} --sync", quoted(&name)));
                advise(&format!("{command} applies the desired revision"), self.console);
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints to stdout why an app is refused, and the hint.
    fn report(&self, refusal: &CommandError) -> Result<(), CommandError> {
        let style = AnsiColor::Red.on_default();
        let mut out = self.console.people();
        written(
            out.write_all(phrase!("{}", style).as_str().as_bytes())
                .and_then(|()| indented(&mut out, "refused: ", &refusal.to_string()))
                .and_then(|()| out.write_all(phrase!("{:#}", style).as_str().as_bytes()))
                .and_then(|()| refusal.hint.iter().try_for_each(|hint| indented(&mut out, "  hint: ", hint))),
        )
    }

    /// Prints the line with the result of the app number `at` if the output is text.
    fn say(&self, at: usize, text: &str, style: Style) -> Result<(), CommandError> {
        if !self.is_text() {
            return Ok(());
        }
        let lead = match self.items.len() {
            1 if !self.plan.items[at].writes.is_empty() => String::new(),
            _ => format!("{} in {}: ", self.app(at), self.app(at).home),
        };
        let mut out = self.console.people();
        written(
            out.write_all(phrase!("{}", style).as_str().as_bytes())
                .and_then(|()| indented(&mut out, &lead, text))
                .and_then(|()| out.write_all(phrase!("{:#}", style).as_str().as_bytes())),
        )
    }
}

/// Returns a hint about an app whose commands have the options of this process that choose what is read.
fn hint_of(hint: Option<&String>, app: &AppRef) -> Option<String> {
    hint.map(|hint| program::typed_in(&app.home, hint))
}

/// Formats a duration, such as `4.2 s` or `3 min 5 s`.
fn span(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    match seconds {
        ..60.0 => format!("{seconds:.1} s"),
        _ => format!("{:.0} min {:.0} s", (seconds / 60.0).floor(), seconds % 60.0),
    }
}
