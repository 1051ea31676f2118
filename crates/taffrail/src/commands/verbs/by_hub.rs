//! `--hub`: has a hub plan and run a verb, and prints its answers as those of this process.

use std::time::Duration;

use taffrail_api::operations::{OperationQuestion, PlanAnswer, RunRequest, VerbQuestion};
use taffrail_apps::AppRef;
use taffrail_apps::verbs::Verb;
use taffrail_observe::operations::random_id;

use super::{ActingArguments, Printer, confirm};
use crate::cli::DryRun;
use crate::command_error::{CommandError, Exit};
use crate::commands::get::tell;
use crate::commands::named;
use crate::hub_url::HubUrl;
use crate::output::answer::Console;
use crate::runtime::block_on;
use crate::source::{self, NoEvents};

/// The time in which a hub must answer with a plan.
const PATIENCE: Duration = Duration::from_secs(12);

/// The longest time of a run, as a hub allows it.
const MAX_RUN: Duration = Duration::from_secs(3600);

pub(super) fn run(
    verb: Verb,
    question: VerbQuestion,
    arguments: &ActingArguments,
    url: &HubUrl,
    console: &Console,
) -> Result<Exit, CommandError> {
    let files = &arguments.hub.files;
    let answer: PlanAnswer<AppRef> = source::ask_hub_at(url, files, source::PLANS, &question, PATIENCE)?
        .map_err(|error| named::refused_by_hub(verb.as_str(), &error))?;
    let mut printer = Printer::new(verb, arguments, &answer.plan, console);
    confirm(&mut printer, verb, arguments, &answer.plan, console)?;
    let exit = tell(&answer.fleet, &answer.errors, true, console);
    if arguments.dry_run == DryRun::Client {
        return Ok(exit.max(printer.show()?));
    }
    printer.begin()?;
    if answer.plan.targets() > 0 {
        let timeout = arguments.source.timeout.min(MAX_RUN);
        let request = RunRequest {
            dry_run: arguments.dry_run == DryRun::Server,
            waits: arguments.wait,
            ..RunRequest::new(random_id(), OperationQuestion::Verb(question), &answer, timeout)
        };
        let run = source::hub_operation(url, files, &request, |event| printer.take(event));
        match block_on(run)? {
            Ok(()) => {}
            Err(NoEvents::Refused(error)) => return Err(error),
            // What is known is printed.
            Err(NoEvents::Broken(error)) => error.print(console),
        }
    }
    Ok(exit.max(printer.finish()?))
}
