//! `taffrail reconcile`, `suspend` and `resume`: requests to an app's delivery tool.
//!
//! With `action`, the only commands that write to clusters. [`taffrail_apps::verbs`] plans the writes; this module
//! finds the apps, sends the writes and reports the progress.

mod arguments;
mod run;

use taffrail_api::filter::Filter;
use taffrail_apps::verbs::{self, Verb};
use taffrail_apps::{App, AppList, AppQuery, Asked, Delivery, Dependents, Objects, ScopeError, full_name};
use taffrail_cluster::ListStrategy;
use taffrail_observe::FleetSnapshot;

use super::get::{check_clusters, tell};
use super::{guard, named};
use crate::cli::Pdb;
use crate::complaint::{Complaint, Exit};
use crate::program;
use crate::rule_source::RuleSource;
use crate::runtime::block_on;
use crate::source::{self, print_requests};

pub(crate) use arguments::{ActingArguments, DryRun, ReconcileArguments, ResumeArguments, SuspendArguments};

#[cfg(feature = "lua")]
pub(crate) use run::lines;

use run::VerbRun;

pub(crate) fn run(verb: Verb, arguments: &ActingArguments) -> Result<Exit, Complaint> {
    if !arguments.source.from.is_empty() {
        if arguments.dry_run != DryRun::Client {
            let complaint = Complaint::usage("a dump cannot be changed");
            return Err(complaint.hint("--dry-run=client shows what would be written"));
        }
        let fleet = source::dumps(&arguments.source)?;
        let list = fleet.apps(&[]);
        let run = chosen(verb, arguments, &fleet, &list)?;
        return run.show().map(|exit| exit.max(tell(&fleet, &[], true)));
    }
    let names = names(arguments);
    let asked = Asked {
        namespace: arguments.which.namespace.clone(),
        dependents: match names.as_slice() {
            [name] => Dependents::Of(name.clone()),
            _ => Dependents::None,
        },
        app_labels: arguments.which.grouping.labels(),
        ..Asked::default()
    };
    let timeout = arguments.source.timeout;
    let source = &arguments.source;
    let rules = RuleSource::default().with_options(Pdb::Advisory.into(), source.timeout, &source.trust);
    let rules = rules.with_patience("--request-timeout", timeout);
    let mut follow = source::follow(&arguments.source, rules, &asked, ListStrategy::Auto)?;
    let with_source = matches!(verb, Verb::Reconcile(how) if how.with_source);
    let more = |snapshot: &taffrail_apps::Snapshot, _: &str| match with_source {
        true => verbs::sources(snapshot, &names),
        false => Vec::new(),
    };
    block_on(follow.settle(&more))?;
    let fleet = follow.fleet();
    let list = fleet.apps(&[]);
    let run = chosen(verb, arguments, fleet, &list)?;
    let shown: Vec<&App> = run.apps(&list);
    let errors = named::concerning(&list, &shown);
    let mut exit = tell(fleet, &errors, true);
    exit = exit.max(match arguments.dry_run {
        DryRun::Client => run.show()?,
        DryRun::None | DryRun::Server => run.run(&mut follow, &more)?,
    });
    print_requests(arguments.source.verbose, follow.clusters().iter());
    Ok(exit)
}

/// Returns the given names, each within the given namespace.
fn names(arguments: &ActingArguments) -> Vec<AppQuery> {
    let within = |name: &AppQuery| name.clone().within(arguments.which.namespace.as_deref());
    arguments.name.iter().map(within).collect()
}

/// Returns true if an error may hide a writable app of this name.
fn may_hide(error: &ScopeError, name: &AppQuery) -> bool {
    let deliveries = [Delivery::FluxKustomization, Delivery::FluxHelmRelease, Delivery::ArgoApplication];
    deliveries.into_iter().any(|delivery| name.may_be_hidden(error, Some(delivery)))
}

/// Plans the verb for the selected apps, and asks before it affects more than the user named.
fn chosen<'a>(
    verb: Verb,
    arguments: &'a ActingArguments,
    fleet: &FleetSnapshot,
    list: &AppList,
) -> Result<VerbRun<'a>, Complaint> {
    check_clusters(&arguments.which.cluster, fleet)?;
    let mut run = VerbRun::new(verb, arguments);
    for name in &names(arguments) {
        if let Some(error) = list.errors.iter().find(|error| may_hide(&error.error, name)) {
            let what =
                format!("cannot rule out another app '{name}': {}: {}", error.cluster, error.error.message);
            return Err(Complaint::unreadable(what).hint("write its name in full: DELIVERY/NAMESPACE/NAME"));
        }
        for app in named::find(verb.as_str(), name, &arguments.which, list)? {
            run.add(app, fleet, list);
        }
    }
    if !arguments.name.is_empty() {
        confirm_clusters(&mut run, verb, arguments)?;
        return Ok(run);
    }
    let filter = Filter { labels: arguments.selector.clone(), ..Filter::default() };
    let mut admitted = AppList { apps: list.apps.clone(), errors: Vec::new() };
    let clusters: Vec<&dyn Objects> = fleet.clusters();
    filter.apps(&mut admitted, &clusters);
    let has_tool = |app: &&App| {
        matches!(
            app.app.delivery,
            Delivery::FluxKustomization | Delivery::FluxHelmRelease | Delivery::ArgoApplication
        )
    };
    let inside = named::inside(&arguments.which, &admitted);
    let apps: Vec<&App> = inside.into_iter().filter(has_tool).collect();
    let names: std::collections::BTreeSet<String> = apps.iter().map(|app| full_name(&app.app)).collect();
    if names.is_empty() {
        let complaint = Complaint::usage("the selection matches no Flux or Argo CD app");
        return Err(complaint.hint(format!("'{} get apps' lists all", program::name())));
    }
    let names: Vec<String> = names.into_iter().collect();
    for app in apps {
        run.add(app, fleet, list);
    }
    if names.len() <= 1 {
        confirm_clusters(&mut run, verb, arguments)?;
        return Ok(run);
    }
    let ActingArguments { yes, dry_run, .. } = *arguments;
    guard::confirm(verb.as_str(), "apps", &names, yes, dry_run, || run.preview())?;
    confirm_elsewhere(&mut run, verb, arguments)?;
    Ok(run)
}

/// Asks before named apps are written to in several clusters.
fn confirm_clusters(run: &mut VerbRun<'_>, verb: Verb, arguments: &ActingArguments) -> Result<(), Complaint> {
    let what = format!("{} {} in", verb.as_str(), run.called());
    let clusters = run.clusters();
    let ActingArguments { yes, dry_run, .. } = *arguments;
    guard::confirm(&what, "clusters", &clusters, yes, dry_run, || run.preview())?;
    confirm_elsewhere(run, verb, arguments)
}

/// Asks before writing to sources that other apps may use.
fn confirm_elsewhere(
    run: &mut VerbRun<'_>,
    verb: Verb,
    arguments: &ActingArguments,
) -> Result<(), Complaint> {
    let sources = run.elsewhere();
    let ActingArguments { yes, dry_run, .. } = *arguments;
    guard::confirm_elsewhere(verb.as_str(), &sources, yes, dry_run, || run.preview())
}
