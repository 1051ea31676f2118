//! `taffrail reconcile`, `suspend` and `resume`: write requests to an app's delivery tool into the app's objects.
//!
//! [`taffrail_observe::operations`] plans and sends the writes; this module finds the apps, asks before it affects more
//! than the user named, and prints the plan and the progress.

mod arguments;
mod print;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use taffrail_api::filter::Filter;
use taffrail_api::question::{FleetFacts, concerning, inside};
use taffrail_apps::verbs::{self, Verb};
use taffrail_apps::{App, AppList, AppQuery, Delivery, Dependents, ReadQuery, ScopeError, full_name};
use taffrail_cluster::ListStrategy;
use taffrail_observe::FleetSnapshot;
use taffrail_observe::operations::{OperationEvent, OperationId, VerbSettings, plan_verb};

use super::get::tell;
use super::guard;
use super::named;
use crate::cli::{DryRun, Pdb, SourceArguments};
use crate::command_error::{CommandError, Exit};
use crate::output::answer::Console;
use crate::program;
use crate::rule_source::{self, RuleSource};
use crate::runtime::block_on;
use crate::source::{self, print_requests};

pub(crate) use arguments::{ActingArguments, ReconcileArguments, ResumeArguments, SuspendArguments};

use print::Printer;

/// The delivery tools that the verbs support.
const WITH_VERBS: [Delivery; 3] =
    [Delivery::FluxKustomization, Delivery::FluxHelmRelease, Delivery::ArgoApplication];

pub(crate) fn run(verb: Verb, arguments: &ActingArguments, console: &Console) -> Result<Exit, CommandError> {
    let now = || arguments.source.now.unwrap_or_else(Timestamp::now);
    if !arguments.source.from.is_empty() {
        if arguments.dry_run != DryRun::Client {
            let complaint = CommandError::usage("the objects of a dump (--from) cannot be changed");
            return Err(complaint.hint("add --dry-run=client to print the change without writing it"));
        }
        let fleet = source::dumps(&arguments.source, console)?;
        let list = fleet.apps(&[]);
        let apps = chosen(verb, arguments, &fleet, &list)?;
        let plan = plan_verb(verb, &apps, &fleet, &list, now());
        return Printer::new(verb, arguments, &plan, console)
            .show()
            .map(|exit| exit.max(tell(&FleetFacts::of(&*fleet), &[], true, console)));
    }
    let names = names(arguments);
    let asked = ReadQuery {
        namespace: arguments.which.namespace.clone(),
        dependents: match names.as_slice() {
            [name] => Dependents::Of(name.clone()),
            _ => Dependents::None,
        },
        app_labels: arguments.which.grouping.labels(),
        ..ReadQuery::default()
    };
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
    let mut follow = source::follow(&first, rules, &asked, ListStrategy::Auto)?;
    let with_source = matches!(verb, Verb::Reconcile(how) if how.with_source);
    let more = |snapshot: &taffrail_apps::Snapshot, _: &str| match with_source {
        true => verbs::sources(snapshot, &names),
        false => Vec::new(),
    };
    block_on(follow.settle(&more))?;
    // The time to answer a question does not count.
    let deadline = source.timeout.saturating_sub(begun.elapsed());
    let fleet = follow.fleet();
    let list = fleet.apps(&[]);
    let apps = chosen(verb, arguments, fleet, &list)?;
    let plan = plan_verb(verb, &apps, fleet, &list, now());
    let digest = plan.digest();
    let mut printer = Printer::new(verb, arguments, &plan, console);
    confirm(&mut printer, verb, arguments, &apps, console)?;
    let errors = concerning(&list, &printer.apps(&list));
    let exit = tell(&FleetFacts::of(fleet), &errors, true, console);
    let result = match arguments.dry_run {
        DryRun::Client => printer.show()?,
        DryRun::None | DryRun::Server => {
            printer.begin()?;
            let settings = VerbSettings {
                dry_run: arguments.dry_run == DryRun::Server,
                waits: arguments.wait,
                deadline,
            };
            let id = OperationId::random();
            let take = |event: OperationEvent<'_>| printer.take(event);
            block_on(plan.run_verb(&digest, &id, &mut follow, &more, settings, take))?
                .map_err(|error| CommandError::from(&error))?;
            printer.finish()?
        }
    };
    print_requests(arguments.source.verbose, follow.clusters().iter(), console);
    Ok(exit.max(result))
}

/// Returns the named apps; names without a namespace get that of -n.
fn names(arguments: &ActingArguments) -> Vec<AppQuery> {
    let within = |name: &AppQuery| name.clone().within(arguments.which.namespace.as_deref());
    arguments.name.iter().map(within).collect()
}

/// Returns true if the failed read `error` may hide a Flux or Argo CD app called `name`, so that a write could be meant
/// for that one.
fn may_hide(error: &ScopeError, name: &AppQuery) -> bool {
    WITH_VERBS.into_iter().any(|delivery| name.may_be_hidden(error, Some(delivery)))
}

/// Returns the apps that the arguments name, or the Flux and Argo CD apps that they select with --all or -l. Fails if a
/// name matches none or several, or may match one that could not be read, if the selection is empty, and for an unknown
/// `--cluster`.
fn chosen<'l>(
    verb: Verb,
    arguments: &ActingArguments,
    fleet: &FleetSnapshot,
    list: &'l AppList,
) -> Result<Vec<&'l App>, CommandError> {
    let namespace = arguments.which.namespace.as_deref();
    let (mut clusters, mut names) = (arguments.which.cluster.clone(), names(arguments));
    let of_names = names.iter_mut().flat_map(AppQuery::clusters_mut);
    named::resolve_clusters(clusters.iter_mut().chain(of_names), fleet)?;
    let mut apps = Vec::new();
    for name in &names {
        if let Some(error) = list.errors.iter().find(|error| may_hide(&error.error, name)) {
            let what = format!(
                "cannot rule out a second app '{name}' in {}: {}",
                error.cluster, error.error.message
            );
            return Err(CommandError::unreadable(what).hint("name the app in full: DELIVERY/NAMESPACE/NAME"));
        }
        apps.extend(named::find(verb.as_str(), name, (namespace, &clusters), list)?);
    }
    if !arguments.name.is_empty() {
        return Ok(apps);
    }
    let filter = Filter { labels: arguments.selector.clone(), ..Filter::default() };
    let mut admitted = AppList { apps: list.apps.clone(), ..AppList::default() };
    filter.apps(&mut admitted, &fleet.clusters());
    let inside = inside(namespace, &clusters, &admitted);
    let admitted: BTreeSet<_> =
        inside.iter().filter(|app| WITH_VERBS.contains(&app.app.delivery)).map(|app| &app.app).collect();
    if admitted.is_empty() {
        let complaint = CommandError::usage("the selection matches no Flux or Argo CD app");
        return Err(complaint.hint(format!("{} lists all apps", program::hinted("taffrail get apps"))));
    }
    Ok(list.apps.iter().filter(|app| admitted.contains(&app.app)).collect())
}

/// Asks for confirmation if the verb affects more than the user named: several selected apps, apps in several clusters,
/// or sources in other namespaces. Asks nothing with `--yes` or in a dry run. Fails if the user declines, or if there
/// is no terminal to ask at.
fn confirm(
    printer: &mut Printer<'_>,
    verb: Verb,
    arguments: &ActingArguments,
    apps: &[&App],
    console: &Console,
) -> Result<(), CommandError> {
    let ActingArguments { yes, dry_run, .. } = *arguments;
    let names: BTreeSet<String> = apps.iter().map(|app| full_name(&app.app)).collect();
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
