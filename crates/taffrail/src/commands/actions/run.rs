//! `taffrail action`: plans and shows an action, asks, and prints what was written.

use std::io::{self, IsTerminal as _, Write};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use taffrail_api::operations::{
    ActionQuestion, ActionTarget, OperationEvent, OperationPlan, OperationQuestion, Outcome, PlanAnswer,
    PlannedChange, PlannedWrite, RefusedItem, Reply, RunRequest, WriteTrace,
};
use taffrail_api::{ActionRun, ActionRunRow, ErrorRow, ObjectChangeRow};
use taffrail_apps::AppError;
use taffrail_cluster::Cluster;
use taffrail_object::ObjectKey;
use taffrail_observe::operations::{ActionRequest, ActionSettings, plan_action, random_id};

use super::arguments::ActionArguments;
use super::located::{self, FoundObjects};
use super::{question, scripts};
use crate::cli::{DryRun, ListOutput, TextOutput};
use crate::command_error::{CommandError, Exit, written};
use crate::commands::{get, guard, named, writes};
use crate::hub_url::HubUrl;
use crate::output::answer::Console;
use crate::output::printable;
use crate::reasons;
use crate::runtime::block_on;
use crate::source;
use crate::source::NoEvents;
use crate::{phrase, say};

/// The time that a hub has for the writes of an action in each cluster.
const HUB_RUN: Duration = Duration::from_secs(30);

/// Returns the row of a target before its run: with the planned `writes`, none of them written, and the result `Error`.
fn row(target: &ActionTarget, writes: &[PlannedWrite]) -> ActionRunRow {
    let change = |write: &PlannedWrite| ObjectChangeRow {
        operation: match write.change {
            PlannedChange::Patch { .. } => "patch".into(),
            PlannedChange::Create { .. } => "create".into(),
        },
        object: write.object.clone(),
        body: write.body(),
        written: false,
    };
    ActionRunRow {
        cluster: target.cluster.clone(),
        object: target.object.clone(),
        origin: target.origin.clone(),
        script_of: target.script_of.clone(),
        result: "Error".into(),
        message: String::new(),
        hint: None,
        changes: writes.iter().map(change).collect(),
    }
}

/// Returns in words the writes of `row` that were made: `created Job shop/x, changed CronJob shop/night`; empty if
/// there are none.
fn made(row: &ActionRunRow) -> String {
    let written = row.changes.iter().filter(|change| change.written);
    let told = written.map(|change| match &*change.operation {
        "create" => format!("created {} {}", change.object.kind, change.object.path()),
        _ => format!("changed {} {}", row.object.kind, row.object.path()),
    });
    told.collect::<Vec<_>>().join(", ")
}

fn fail(row: &mut ActionRunRow, complaint: CommandError) {
    row.message = complaint.to_string();
    row.hint = complaint.hint;
}

/// Prints the plan and the results of an action, and keeps its rows for JSON.
struct Printer<'a> {
    arguments: &'a ActionArguments,
    plan: &'a OperationPlan<ActionTarget>,
    /// The rows, one for each item of the plan.
    rows: Vec<ActionRunRow>,
    exit: Exit,
    /// The error that ended the output, such as a full disk; `None` if there was none.
    failed: Option<CommandError>,
    /// True once the changes were shown and confirmed, before the run.
    is_asked: bool,
    console: &'a Console,
}

pub(crate) fn run(arguments: &ActionArguments, console: &Console) -> Result<Exit, CommandError> {
    let which = &arguments.which;
    if !which.source.from.is_empty() && arguments.dry_run != DryRun::Client {
        let complaint = CommandError::usage("the objects of a dump (--from) cannot be changed");
        return Err(complaint.hint("add --dry-run=client to print the change without writing it"));
    }
    if let Some(url) = &which.hub.hub {
        return by_hub(arguments, url, console);
    }
    let scripts = scripts(which.rules.0.as_deref())?;
    let begun = Instant::now();
    let FoundObjects { objects, complaints, errors } = located::objects(which, console)?;
    // The time to answer questions does not count.
    let time = which.source.limits().to_write(begun.elapsed());
    let mut exit = Exit::Yes;
    for complaint in &complaints {
        complaint.print(console);
        exit = exit.max(complaint.exit);
    }
    let places = objects.iter().map(|object| (object.cluster.clone(), object.key())).collect::<Vec<_>>();
    confirm(arguments, &places, console)?;
    let request = ActionRequest {
        scripts,
        action: arguments.action.clone(),
        parameters: arguments.parameters.clone(),
        allow_create: arguments.allow_create.clone(),
        now: which.source.now.unwrap_or_else(Timestamp::now),
    };
    let clusters: Vec<Cluster> = located::connections(&objects).cloned().collect();
    let plan = plan_action(&request, objects);
    let (refused, refusal) = refused_rows(&plan.shown, console);
    exit = exit.max(refusal);
    let rows = plan.shown.items.iter().map(|item| row(&item.target, &item.writes)).collect();
    let mut printer =
        Printer { arguments, plan: &plan.shown, rows, exit, failed: None, is_asked: false, console };
    printer.check_question("your")?;
    match arguments.dry_run {
        DryRun::Client => printer.show_all()?,
        DryRun::None | DryRun::Server => {
            let (digest, id) = (plan.shown.digest(), random_id());
            let settings = ActionSettings { dry_run: arguments.dry_run == DryRun::Server, time };
            let run = plan.run(&digest, &id, &request, settings, |event| printer.take(event));
            block_on(run)?.map_err(|error| CommandError::from(&error))?;
        }
    }
    let exit = printer.finish(refused, errors)?;
    source::print_requests(which.source.verbose, clusters.iter(), console);
    Ok(exit)
}

/// Returns the rows of the objects to which an action cannot be applied, with the exit code, and prints the reasons.
fn refused_rows(plan: &OperationPlan<ActionTarget>, console: &Console) -> (Vec<ActionRunRow>, Exit) {
    let mut exit = Exit::Yes;
    let refused = plan.refused.iter().map(|RefusedItem { target, error }| {
        let complaint = CommandError::from(error);
        exit = exit.max(complaint.exit);
        let result = if complaint.exit == Exit::Usage { "Refused" } else { "Error" };
        let mut row = ActionRunRow { result: result.into(), ..row(target, &[]) };
        complaint.print(console);
        fail(&mut row, complaint);
        row
    });
    (refused.collect(), exit)
}

/// Has the hub at `url` plan the action and run it.
fn by_hub(arguments: &ActionArguments, url: &HubUrl, console: &Console) -> Result<Exit, CommandError> {
    let ActionArguments { action, which, parameters, allow_create, dry_run, .. } = arguments;
    let question = ActionQuestion {
        action: action.clone(),
        parameters: parameters.iter().cloned().collect(),
        allow_create: allow_create.clone(),
        ..question(which)
    };
    let answer: PlanAnswer<ActionTarget> =
        source::ask_hub_at(url, &which.hub.files, source::PLANS, &question, which.source.timeout)?
            .map_err(|error| named::refused_by_hub("actions", &error))?;
    let mut exit = Exit::Yes;
    for AppError { cluster, error } in &answer.errors {
        let complaint = CommandError::unreadable(format!("{cluster}: {}", error.message))
            .maybe_hint(reasons::hint(&error.reason).map(str::to_owned));
        complaint.print(console);
        exit = exit.max(complaint.exit);
    }
    let plan = &answer.plan;
    let targets = plan.items.iter().map(|item| &item.target);
    let targets = targets.chain(plan.refused.iter().map(|refused| &refused.target));
    let places: Vec<_> = targets.map(|target| (target.cluster.clone(), target.object.clone())).collect();
    confirm(arguments, &places, console)?;
    let (refused, refusal) = refused_rows(plan, console);
    let rows = plan.items.iter().map(|item| row(&item.target, &item.writes)).collect();
    let exit = exit.max(refusal);
    let mut printer = Printer { arguments, plan, rows, exit, failed: None, is_asked: false, console };
    printer.check_question("the hub's")?;
    if *dry_run == DryRun::Client || plan.targets() == 0 {
        printer.show_all()?;
    } else if printer.asks_at_once()? {
        let request = RunRequest {
            dry_run: *dry_run == DryRun::Server,
            ..RunRequest::new(random_id(), OperationQuestion::Action(question), &answer, HUB_RUN)
        };
        let events = source::hub_operation(url, &which.hub.files, &request, |event| printer.take(event));
        match block_on(events)? {
            Ok(()) => {}
            Err(NoEvents::Refused(error)) => return Err(error),
            // What is known is printed.
            Err(NoEvents::Broken(error)) => {
                error.print(console);
                printer.exit = printer.exit.max(Exit::Incomplete);
            }
        }
    }
    printer.finish(refused, answer.errors.iter().map(ErrorRow::from).collect())
}

/// Asks the user to confirm an action on several objects; asks nothing for a single object, with --yes or in a dry
/// run.
///
/// # Errors
/// Fails if the user declines, or if there is no terminal to ask at.
fn confirm(
    arguments: &ActionArguments,
    objects: &[(String, ObjectKey)],
    console: &Console,
) -> Result<(), CommandError> {
    let ActionArguments { action, which, yes, dry_run, .. } = arguments;
    let (what, of, names): (_, _, Vec<String>) = match which.all_namespaces {
        true => {
            let named = |(cluster, key): &(String, ObjectKey)| format!("{} in {cluster}", key.path());
            (action.clone(), "objects", objects.iter().map(named).collect())
        }
        false => {
            let clusters = objects.iter().map(|(cluster, _)| cluster.clone());
            (format!("{action} in"), "clusters", clusters.collect())
        }
    };
    guard::confirm(&what, of, &names, *yes, *dry_run, console, || ())
}

/// Returns true if the user can answer a question: the output is text, and stdin and stderr are a terminal.
fn may_ask(arguments: &ActionArguments) -> bool {
    arguments.output == TextOutput::Text && io::stdin().is_terminal() && io::stderr().is_terminal()
}

impl Printer<'_> {
    /// Fails if a script of the cluster would write with `whose` rights, and the user cannot be asked.
    fn check_question(&self, whose: &str) -> Result<(), CommandError> {
        let must_ask = (0..self.plan.items.len()).any(|item| self.must_ask(item));
        if may_ask(self.arguments) || !must_ask {
            return Ok(());
        }
        let what = format!(
            "the action {} is a script of the cluster, and needs a confirmation to write with {whose} rights",
            self.arguments.action
        );
        let hint = "look at the action's changes with --dry-run=client, then confirm with --yes";
        Err(CommandError::usage(what).hint(hint))
    }

    /// Shows the changes of all items, which are not sent.
    fn show_all(&mut self) -> Result<(), CommandError> {
        for item in 0..self.plan.items.len() {
            self.show(item)?;
            let is_planned = !self.plan.items[item].writes.is_empty();
            self.end(item, if is_planned { "Planned" } else { "Unchanged" })?;
        }
        Ok(())
    }

    /// Shows all changes and asks for a confirmation of them together, if one must be confirmed; returns false if the
    /// user declines.
    fn asks_at_once(&mut self) -> Result<bool, CommandError> {
        if !(0..self.plan.items.len()).any(|item| self.must_ask(item)) {
            return Ok(true);
        }
        for item in 0..self.plan.items.len() {
            self.show(item)?;
        }
        self.is_asked = true;
        if self.is_confirmed()? {
            return Ok(true);
        }
        self.exit = self.exit.max(Exit::Usage);
        for item in 0..self.plan.items.len() {
            self.end(item, "Refused")?;
        }
        Ok(false)
    }

    /// Prints the document, if that is the output, and returns the exit code.
    fn finish(self, refused: Vec<ActionRunRow>, errors: Vec<ErrorRow>) -> Result<Exit, CommandError> {
        let Printer { arguments, rows, exit, failed, console, .. } = self;
        failed.map_or(Ok(()), Err)?;
        if arguments.output == TextOutput::Json {
            let items = refused.into_iter().chain(rows).collect();
            let document = ActionRun::new(&arguments.action, arguments.dry_run.as_str(), items, errors);
            written(get::document(ListOutput::Json, &document, console))?;
        }
        Ok(exit)
    }

    /// Returns true if the user must confirm item number `item`: a script of the cluster would write with the user's
    /// rights, and neither --yes nor --dry-run is given.
    fn must_ask(&self, item: usize) -> bool {
        let ActionArguments { yes, dry_run, .. } = self.arguments;
        let is_of_cluster = self.plan.items[item].target.script_of.is_some();
        !yes && *dry_run == DryRun::None && is_of_cluster && !self.plan.items[item].writes.is_empty()
    }

    fn is_text(&self) -> bool {
        self.arguments.output == TextOutput::Text
    }

    /// Takes an event of the operation, and prints what it tells. Returns [`Reply::Stop`] if printing failed.
    fn take(&mut self, event: OperationEvent) -> Reply {
        self.print_event(event).unwrap_or_else(|failed| {
            self.failed = Some(failed);
            Reply::Stop
        })
    }

    fn print_event(&mut self, event: OperationEvent) -> Result<Reply, CommandError> {
        if !event.is_about(self.plan) {
            return Err(CommandError::unreadable("the hub tells of an object that its plan does not have"));
        }
        match event {
            OperationEvent::Started { .. }
            | OperationEvent::Writing { .. }
            | OperationEvent::Waiting { .. }
            | OperationEvent::Refused { .. }
            | OperationEvent::Done
            | OperationEvent::Alive => {}
            OperationEvent::Begins { item } => {
                if self.is_asked {
                    return Ok(Reply::Continue);
                }
                self.show(item)?;
                if self.must_ask(item) && !self.is_confirmed()? {
                    self.exit = self.exit.max(Exit::Usage);
                    return Ok(Reply::Skip);
                }
            }
            OperationEvent::Written { item, write, is_stored, name } => {
                let change = &mut self.rows[item].changes[write];
                change.written = is_stored;
                change.object.name = name.unwrap_or_else(|| change.object.name.clone());
            }
            OperationEvent::Ended { item, outcome } => {
                let result = match outcome {
                    Outcome::Unchanged => "Unchanged",
                    Outcome::Refused => "Refused",
                    Outcome::Accepted => "Accepted",
                    Outcome::Error { error } => {
                        let complaint = CommandError::from(&error);
                        self.exit = self.exit.max(complaint.exit);
                        complaint.print_about(&self.place(item), self.console);
                        fail(&mut self.rows[item], complaint);
                        if error.is_late { "Timeout" } else { "Error" }
                    }
                    Outcome::Done
                    | Outcome::Ready { .. }
                    | Outcome::Failed { .. }
                    | Outcome::Unobservable { .. }
                    | Outcome::TimedOut { .. } => "Done",
                    Outcome::Interrupted { trace, why } => {
                        self.exit = self.exit.max(Exit::Incomplete);
                        let row = &mut self.rows[item];
                        row.changes.iter_mut().for_each(|change| change.written |= trace == WriteTrace::Made);
                        row.message = why;
                        "Interrupted"
                    }
                };
                self.end(item, result)?;
            }
        }
        Ok(Reply::Continue)
    }

    /// Asks at the terminal if the cluster's script shall run; returns true if the user answers yes.
    fn is_confirmed(&self) -> Result<bool, CommandError> {
        self.console.tell(phrase!(
            "Run the action {}, which is a script of the cluster? [y/N] ",
            printable(&self.arguments.action)
        ));
        let mut said = String::new();
        let read = io::stdin().read_line(&mut said);
        read.map_err(|error| {
            CommandError::unreadable("cannot read your answer from the terminal").with_source(&error)
        })?;
        Ok(matches!(said.trim(), "y" | "Y" | "yes"))
    }

    /// Prints the planned changes of item number `item` if the output is text; prints nothing if it has none.
    fn show(&self, item: usize) -> Result<(), CommandError> {
        let planned = &self.plan.items[item];
        if !self.is_text() || planned.writes.is_empty() {
            return Ok(());
        }
        let mut out = self.console.people();
        if let Some(of) = &self.rows[item].script_of {
            let (action, place) = (printable(&self.arguments.action), printable(&planned.cluster));
            written(say!(out, "{} is a script of the cluster: {} in {}", action, printable(of), place))?;
        }
        for write in &planned.writes {
            let note = if matches!(write.change, PlannedChange::Create { .. }) { ", new" } else { "" };
            written(writes::print(&mut out, write, &planned.cluster, note))?;
        }
        written(out.flush())
    }

    /// Records the result of item number `item`, and prints it if the output is text, except for a refusal and for an
    /// error after which nothing was written.
    fn end(&mut self, item: usize, result: &'static str) -> Result<(), CommandError> {
        let row = &mut self.rows[item];
        row.result = result.into();
        let done = made(row);
        let text = match result {
            "Planned" => "nothing was sent (dry run)".to_owned(),
            "Accepted" => "the server accepts the change; nothing was written (dry run)".to_owned(),
            "Unchanged" => self.plan.items[item].unchanged.clone(),
            "Done" => format!("{}: {done}", self.arguments.action),
            "Interrupted" => row.message.clone(),
            "Error" | "Timeout" if !done.is_empty() => {
                format!("the action failed, but was partly written: {done}")
            }
            _ => return Ok(()),
        };
        if !self.is_text() {
            return Ok(());
        }
        let text = format!("{}{text}", self.place(item));
        written(say!(self.console.people(), "{}", printable(&text)))
    }

    /// Returns the beginning of a line about item number `item`: `CLUSTER: ` if there are several items, else nothing.
    fn place(&self, item: usize) -> String {
        match self.plan.items.as_slice() {
            [_] => String::new(),
            items => format!("{}: ", items[item].cluster),
        }
    }
}
