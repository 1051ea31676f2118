//! `taffrail action`: plans and shows an action, asks, and prints what was written.

use std::io::{self, IsTerminal as _, Write};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use taffrail_api::API_VERSION;
use taffrail_cluster::Cluster;
use taffrail_object::ObjectKey;
use taffrail_observe::operations::{
    ActionRequest, ActionTarget, LocatedObject, OperationEvent, OperationId, OperationPlan, Outcome,
    PlannedWrite, Reply, plan_action,
};
use taffrail_rules::Origin;

use super::arguments::ActionArguments;
use super::{located, scripts};
use crate::cli::{DryRun, ListOutput, TextOutput};
use crate::command_error::{CommandError, Exit, written};
use crate::commands::{get, guard, writes};
use crate::output::{answer, printable};
use crate::runtime::block_on;
use crate::source;
use crate::{phrase, say};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    api_version: &'static str,
    kind: &'static str,
    action: String,
    /// The value of `--dry-run`: `none`, `server` or `client`.
    dry_run: &'static str,
    items: Vec<Row>,
}

/// The result of an action for one object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    cluster: String,
    object: ObjectKey,
    /// The origin of the action's script: `user`, `cluster` or `shipped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'static str>,
    /// For a script that a cluster defines, the ConfigMap that contains it; else `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    script_of: Option<String>,
    /// The result: `Done`, `Unchanged`, `Refused` or `Error`; of dry runs `Planned` or `Accepted`.
    result: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    changes: Vec<ChangeRow>,
}

#[derive(Serialize)]
struct ChangeRow {
    operation: &'static str,
    object: ObjectKey,
    /// The JSON merge patch of a change, or the whole object of a creation.
    body: Value,
    written: bool,
}

impl Row {
    fn new(target: &ActionTarget, writes: &[PlannedWrite]) -> Row {
        let change = |write: &PlannedWrite| ChangeRow {
            operation: match write {
                PlannedWrite::Patch { .. } => "patch",
                PlannedWrite::Create { .. } => "create",
            },
            object: write.object().clone(),
            body: write.body(),
            written: false,
        };
        Row {
            cluster: target.located.cluster.clone(),
            object: target.key.clone(),
            origin: target.origin().map(Origin::as_str),
            script_of: target.script_of().map(str::to_owned),
            result: "Error",
            message: String::new(),
            hint: None,
            changes: writes.iter().map(change).collect(),
        }
    }

    /// Describes the writes that were made, such as `changed Deployment shop/web`, for an error after them.
    fn written(&self) -> String {
        let written = self.changes.iter().filter(|change| change.written);
        let told = written.map(|change| match change.operation {
            "create" => {
                let ObjectKey { kind, namespace, name, .. } = &change.object;
                let slash = if namespace.is_empty() { "" } else { "/" };
                format!("created {kind} {namespace}{slash}{name}")
            }
            _ => format!("changed {} {}", self.object.kind, self.object.path()),
        });
        told.collect::<Vec<_>>().join(", ")
    }

    fn fail(&mut self, complaint: CommandError) {
        complaint.print();
        self.message = complaint.to_string();
        self.hint = complaint.hint;
    }
}

/// The output of an action.
struct Printer<'a> {
    arguments: &'a ActionArguments,
    plan: &'a OperationPlan<ActionTarget>,
    /// The rows, one for each item of the plan.
    rows: Vec<Row>,
    exit: Exit,
    /// The error that ended the output, such as a closed stdout.
    failed: Option<CommandError>,
}

pub(crate) fn run(arguments: &ActionArguments) -> Result<Exit, CommandError> {
    let which = &arguments.which;
    if !which.source.from.is_empty() && arguments.dry_run != DryRun::Client {
        let complaint = CommandError::usage("a dump cannot be changed");
        return Err(complaint.hint("--dry-run=client shows what would be written"));
    }
    let scripts = scripts(which.rules.0.as_deref())?;
    let (objects, complaints) = located::objects(which)?;
    let mut exit = Exit::Yes;
    for complaint in &complaints {
        complaint.print();
        exit = exit.max(complaint.exit);
    }
    confirm(arguments, &objects)?;
    let request = ActionRequest {
        scripts,
        action: arguments.action.clone(),
        parameters: arguments.parameters.clone(),
        allow_create: arguments.allow_create.clone(),
        now: which.source.now.unwrap_or_else(Timestamp::now),
    };
    let clusters: Vec<Cluster> = located::connections(&objects).cloned().collect();
    let plan = plan_action(&request, objects);
    let mut refused = Vec::new();
    for (target, error) in &plan.refused {
        let complaint = CommandError::from(error);
        exit = exit.max(complaint.exit);
        let mut row = Row::new(target, &[]);
        row.result = if complaint.exit == Exit::Usage { "Refused" } else { "Error" };
        row.fail(complaint);
        refused.push(row);
    }
    let rows = plan.items.iter().map(|item| Row::new(&item.target, &item.writes)).collect();
    let mut printer = Printer { arguments, plan: &plan, rows, exit, failed: None };
    if !may_ask(arguments) && (0..plan.items.len()).any(|item| printer.must_ask(item)) {
        let what =
            format!("{} is a script of the cluster, and would write with your rights", arguments.action);
        let hint = "check with --dry-run=client, then confirm with --yes";
        return Err(CommandError::usage(what).hint(hint));
    }
    match arguments.dry_run {
        DryRun::Client => {
            for item in 0..plan.items.len() {
                printer.show(item)?;
                let is_planned = !plan.items[item].writes.is_empty();
                printer.end(item, if is_planned { "Planned" } else { "Unchanged" })?;
            }
        }
        DryRun::None | DryRun::Server => {
            let (digest, id) = (plan.digest(), OperationId::random());
            let dry_run = arguments.dry_run == DryRun::Server;
            let take = |event: OperationEvent<'_>| {
                printer.take(event).unwrap_or_else(|failed| {
                    printer.failed = Some(failed);
                    Reply::Stop
                })
            };
            block_on(plan.run_action(&digest, &id, &request, dry_run, take))?
                .map_err(|error| CommandError::from(&error))?;
        }
    }
    let Printer { rows, exit, failed, .. } = printer;
    failed.map_or(Ok(()), Err)?;
    if arguments.output == TextOutput::Json {
        let document = Document {
            api_version: API_VERSION,
            kind: "ActionRun",
            action: arguments.action.clone(),
            dry_run: arguments.dry_run.as_str(),
            items: refused.into_iter().chain(rows).collect(),
        };
        written(get::document(ListOutput::Json, &document))?;
    }
    source::print_requests(which.source.verbose, clusters.iter());
    Ok(exit)
}

/// Asks for confirmation before the action runs on several objects, which -A or several contexts selected.
fn confirm(arguments: &ActionArguments, objects: &[LocatedObject]) -> Result<(), CommandError> {
    let ActionArguments { action, which, yes, dry_run, .. } = arguments;
    let (what, of, names): (_, _, Vec<String>) = match which.all_namespaces {
        true => {
            let named = |object: &LocatedObject| format!("{} in {}", object.key().path(), object.cluster);
            (action.clone(), "objects", objects.iter().map(named).collect())
        }
        false => {
            let clusters = objects.iter().map(|object| object.cluster.clone());
            (format!("{action} in"), "clusters", clusters.collect())
        }
    };
    guard::confirm(&what, of, &names, *yes, *dry_run, || ())
}

/// Returns true if the user can answer a question: the output is text, and stdin and stderr are a terminal.
fn may_ask(arguments: &ActionArguments) -> bool {
    arguments.output == TextOutput::Text && io::stdin().is_terminal() && io::stderr().is_terminal()
}

impl Printer<'_> {
    /// Returns true if item number `item` runs a script of the cluster, which would write with the user's rights.
    fn must_ask(&self, item: usize) -> bool {
        let ActionArguments { yes, dry_run, .. } = self.arguments;
        let is_of_cluster = self.plan.items[item].target.origin() == Some(Origin::Cluster);
        !yes && *dry_run == DryRun::None && is_of_cluster && !self.plan.items[item].writes.is_empty()
    }

    fn is_text(&self) -> bool {
        self.arguments.output == TextOutput::Text
    }

    fn take(&mut self, event: OperationEvent<'_>) -> Result<Reply, CommandError> {
        match event {
            OperationEvent::Started { .. } | OperationEvent::Writing { .. } | OperationEvent::Waiting(_) => {}
            OperationEvent::Begins { item } => {
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
                    Outcome::Error(error) => {
                        let complaint = CommandError::from(&error);
                        self.exit = self.exit.max(complaint.exit);
                        self.rows[item].fail(complaint);
                        "Error"
                    }
                    Outcome::Done
                    | Outcome::Ready { .. }
                    | Outcome::Failed { .. }
                    | Outcome::TimedOut { .. } => "Done",
                };
                self.end(item, result)?;
            }
        }
        Ok(Reply::Continue)
    }

    /// Asks for confirmation of the changes shown.
    fn is_confirmed(&self) -> Result<bool, CommandError> {
        answer::tell(phrase!("Run the cluster's script {}? [y/N] ", printable(&self.arguments.action)));
        let mut said = String::new();
        let read = io::stdin().read_line(&mut said);
        read.map_err(|error| CommandError::unreadable("cannot read the answer").with_source(&error))?;
        Ok(matches!(said.trim(), "y" | "Y" | "yes"))
    }

    /// Prints the planned changes of item number `item`.
    fn show(&self, item: usize) -> Result<(), CommandError> {
        let planned = &self.plan.items[item];
        if !self.is_text() || planned.writes.is_empty() {
            return Ok(());
        }
        let mut out = answer::people();
        if let Some(of) = &self.rows[item].script_of {
            let (action, place) = (printable(&self.arguments.action), printable(&planned.cluster));
            written(say!(out, "{} is a script of the cluster: {} in {}", action, printable(of), place))?;
        }
        for write in &planned.writes {
            let note = if matches!(write, PlannedWrite::Create { .. }) { ", new" } else { "" };
            written(writes::print(&mut out, write, &planned.cluster, note))?;
        }
        written(out.flush())
    }

    /// Records and prints the result of item number `item`.
    fn end(&mut self, item: usize, result: &'static str) -> Result<(), CommandError> {
        let row = &mut self.rows[item];
        row.result = result;
        let done = row.written();
        let text = match result {
            "Planned" => "nothing was sent (dry run)".to_owned(),
            "Accepted" => "the server accepts the change; nothing was written (dry run)".to_owned(),
            "Unchanged" => self.plan.items[item].unchanged.clone(),
            "Done" => format!("{}: {done}", self.arguments.action),
            "Error" if !done.is_empty() => format!("written before it failed: {done}"),
            _ => return Ok(()),
        };
        if !self.is_text() {
            return Ok(());
        }
        written(say!(answer::people(), "{}", printable(&text)))
    }
}
