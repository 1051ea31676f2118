//! `taffrail reconcile`, `suspend` and `resume`: write requests to an app's delivery tool into the app's objects.
//!
//! [`taffrail_observe::operations`] plans and sends the writes; this module finds the apps, asks before it affects more
//! than the user named, and prints the plan and the progress.

mod arguments;
mod by_hub;
pub(crate) mod outcome;
mod print;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use taffrail_api::operations::{OperationEvent, OperationPlan, PlanAnswer, VerbQuestion};
use taffrail_apps::verbs::{self, Verb};
use taffrail_apps::{AppRef, full_name};
use taffrail_cluster::ListStrategy;
use taffrail_observe::FleetSnapshot;
use taffrail_observe::operations::{VerbSettings, plan_verb, random_id};

use super::get::tell;
use super::guard;
use super::named;
use crate::cli::{DryRun, Pdb, SourceArguments};
use crate::command_error::{CommandError, Exit};
use crate::output::answer::Console;
use crate::rule_source::{self, RuleSource};
use crate::runtime::block_on;
use crate::source::{self, print_requests};

pub(crate) use arguments::{ActingArguments, ReconcileArguments, ResumeArguments, SuspendArguments};

use print::Printer;

pub(crate) fn run(verb: Verb, arguments: &ActingArguments, console: &Console) -> Result<Exit, CommandError> {
    let question = question(verb, arguments);
    if let Some(url) = &arguments.hub.hub {
        return by_hub::run(verb, question, arguments, url, console);
    }
    let now = || arguments.source.now.unwrap_or_else(Timestamp::now);
    let planned = |fleet: &FleetSnapshot| {
        let plan = plan_verb(&question, fleet, now());
        plan.map_err(|error| named::refused(verb.as_str(), &error))
    };
    if !arguments.source.from.is_empty() {
        if arguments.dry_run != DryRun::Client {
            let complaint = CommandError::usage("the objects of a dump (--from) cannot be changed");
            return Err(complaint.hint("add --dry-run=client to print the change without writing it"));
        }
        let dumps = source::dumps(&arguments.source, console)?;
        let PlanAnswer { fleet, plan, .. } = planned(&dumps)?.answer;
        let exit = Printer::new(verb, arguments, &plan, console).show()?;
        return Ok(exit.max(tell(&fleet, &[], true, console)));
    }
    let begun = Instant::now();
    let source = &arguments.source;
    let patience = match source.request_timeout {
        None | Some(Duration::MAX) => source.timeout,
        Some(arguments::REQUEST_TIMEOUT) => arguments::REQUEST_TIMEOUT.min(source.timeout),
        // For one release, the time for each cluster.
        Some(given) => given,
    };
    let judging = rule_source::patience(format!("{patience:?}"), patience);
    let rules = RuleSource::default().with_options(Pdb::Advisory.into(), judging, &source.trust);
    let first = SourceArguments { timeout: patience, ..source.clone() };
    let mut follow = source::follow(&first, rules, &question.reads(), ListStrategy::Auto)?;
    let names = question.names();
    let more = |snapshot: &taffrail_apps::Snapshot, _: &str| match question.has_sources() {
        true => verbs::sources(snapshot, &names),
        false => Vec::new(),
    };
    block_on(follow.settle(&more))?;
    // The time to answer a question does not count.
    let deadline = source.timeout.saturating_sub(begun.elapsed());
    let plan = planned(follow.fleet())?;
    let answer = &plan.answer;
    let mut printer = Printer::new(verb, arguments, &answer.plan, console);
    confirm(&mut printer, verb, arguments, &answer.plan, console)?;
    let exit = tell(&answer.fleet, &answer.errors, true, console);
    let result = match arguments.dry_run {
        DryRun::Client => printer.show()?,
        DryRun::None | DryRun::Server => {
            printer.begin()?;
            let settings = VerbSettings {
                dry_run: arguments.dry_run == DryRun::Server,
                waits: arguments.wait,
                deadline,
            };
            let take = |event: OperationEvent| printer.take(event);
            block_on(plan.run(&answer.digest, &random_id(), &mut follow, &more, settings, take))?
                .map_err(|error| CommandError::from(&error))?;
            printer.finish()?
        }
    };
    print_requests(arguments.source.verbose, follow.clusters().iter(), console);
    Ok(exit.max(result))
}

/// Returns the question that the arguments ask.
fn question(verb: Verb, arguments: &ActingArguments) -> VerbQuestion {
    VerbQuestion {
        verb,
        names: arguments.name.clone(),
        selector: arguments.selector.clone(),
        apps: named::selection(&arguments.which),
    }
}

/// Asks for confirmation if the verb affects more than the user named: several selected apps, apps in several clusters,
/// or sources in other namespaces. Asks nothing with `--yes` or in a dry run. Fails if the user declines, or if there
/// is no terminal to ask at.
fn confirm(
    printer: &mut Printer<'_>,
    verb: Verb,
    arguments: &ActingArguments,
    plan: &OperationPlan<AppRef>,
    console: &Console,
) -> Result<(), CommandError> {
    let ActingArguments { yes, dry_run, .. } = *arguments;
    let targets = plan.items.iter().map(|item| &item.target);
    let targets = targets.chain(plan.refused.iter().map(|refused| &refused.target));
    let names: BTreeSet<String> = targets.map(full_name).collect();
    if !arguments.name.is_empty() || names.len() <= 1 {
        let what = format!("{} {} in", verb.as_str(), printer.called());
        guard::confirm(&what, "clusters", &printer.clusters(), yes, dry_run, console, || printer.preview())?;
    } else {
        let names = Vec::from_iter(names);
        guard::confirm(verb.as_str(), "apps", &names, yes, dry_run, console, || printer.preview())?;
    }
    let sources = printer.elsewhere();
    guard::confirm_elsewhere(verb.as_str(), &sources, yes, dry_run, console, || printer.preview())
}
