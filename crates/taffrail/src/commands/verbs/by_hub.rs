//! `--hub`: has a hub plan and run a verb, and prints its answers as those of this process.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::TryStreamExt as _;
use taffrail_api::operations::{OperationEvent, Reply, RunRequest, VerbQuestion};
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
use crate::source::{self, EventQuestion, NoEvents};

/// The time in which a hub must answer with a plan, and begin to run it.
const PATIENCE: Duration = Duration::from_secs(12);

/// The longest time of a run, as a hub allows it.
const MAX_RUN: Duration = Duration::from_secs(600);

/// The number of times that a lost connection is opened again, and the pause before.
const REOPENED: (usize, Duration) = (10, Duration::from_secs(1));

pub(super) fn run(
    verb: Verb,
    question: VerbQuestion,
    arguments: &ActingArguments,
    url: &HubUrl,
    console: &Console,
) -> Result<Exit, CommandError> {
    let files = &arguments.hub_files;
    let answer = source::hub_plan(url, files, &question, PATIENCE)?
        .map_err(|error| named::refused_by_hub(verb.as_str(), &error))?;
    let mut printer = Printer::new(verb, arguments, &answer.plan, console);
    confirm(&mut printer, verb, arguments, &answer.plan, console)?;
    let exit = tell(&answer.fleet, &answer.errors, true, console);
    if arguments.dry_run == DryRun::Client {
        return Ok(exit.max(printer.show()?));
    }
    printer.begin()?;
    if answer.plan.apps() > 0 {
        let timeout = arguments.source.timeout.min(MAX_RUN);
        let request = RunRequest {
            id: random_id(),
            question,
            planned_at: answer.planned_at,
            digest: answer.digest.clone(),
            confirmed: Some(answer.plan.apps()),
            dry_run: arguments.dry_run == DryRun::Server,
            waits: arguments.wait,
            timeout_millis: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        };
        block_on(follow(url, arguments, &request, &mut printer))??;
    }
    Ok(exit.max(printer.finish()?))
}

/// Asks the hub to run the plan, and prints the events of the run until its end. A lost connection is opened again: the
/// identifier keeps the hub from running the plan twice.
async fn follow(
    url: &HubUrl,
    arguments: &ActingArguments,
    request: &RunRequest,
    printer: &mut Printer<'_>,
) -> Result<(), CommandError> {
    let asked = EventQuestion {
        path: "/api/v1/operations",
        command: request.question.verb.as_str(),
        time: PATIENCE,
        is_endless: true,
    };
    let mut seen = Seen::default();
    let (most, pause) = REOPENED;
    let mut reopened = 0;
    loop {
        let outcome = async {
            let events = source::hub_events(url, &arguments.hub_files, asked, request).await?;
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.try_next().await.map_err(NoEvents::Broken)? {
                if event == OperationEvent::Done {
                    return Ok(true);
                }
                if seen.is_new(&event) && printer.take(event) == Reply::Stop {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let why = match outcome.await {
            Ok(true) => return Ok(()),
            Ok(false) => "the hub ended its answer".to_owned(),
            Err(NoEvents::Refused(error)) if !seen.has_begun => return Err(error),
            Err(error) => error.error().to_string(),
        };
        if reopened == most {
            let lost =
                format_args!("operation {} may go on in the hub, which tells no more: {why}", request.id);
            return Err(CommandError::unreadable(lost)
                .hint("its result is in the history of each app: taffrail history APP --hub URL"));
        }
        reopened += 1;
        tokio::time::sleep(pause).await;
    }
}

/// The events that were printed, by which those that a hub repeats are known.
#[derive(Default)]
struct Seen {
    has_begun: bool,
    printed: HashSet<(&'static str, usize, usize)>,
    /// The number of events about sent writes of each item, in this connection.
    writing: HashMap<usize, usize>,
}

impl Seen {
    fn is_new(&mut self, event: &OperationEvent) -> bool {
        match event {
            OperationEvent::Started { .. } => {
                self.writing.clear();
                !std::mem::replace(&mut self.has_begun, true)
            }
            OperationEvent::Begins { item } => self.printed.insert(("begins", *item, 0)),
            OperationEvent::Writing { item, .. } => {
                let count = self.writing.entry(*item).or_default();
                *count += 1;
                self.printed.insert(("writing", *item, *count))
            }
            OperationEvent::Written { item, write, .. } => self.printed.insert(("written", *item, *write)),
            OperationEvent::Ended { item, .. } => self.printed.insert(("ended", *item, 0)),
            OperationEvent::Waiting { .. } | OperationEvent::Done | OperationEvent::Alive => true,
        }
    }
}
