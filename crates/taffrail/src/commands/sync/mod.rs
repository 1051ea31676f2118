//! `taffrail sync`: makes clusters equal to manifests, and keeps what it applied as a set.
//!
//! [`taffrail_engine`] carries the run out; this module reads the manifests, asks before deletions, and prints the progress.

mod arguments;
mod plan;
mod print;

use std::io;
use std::time::Duration;

use jiff::SignedDuration;
use taffrail_api::{ErrorRow, List, SetHistory};
use taffrail_apps::sets::{ObjectResult, RunResults, SetName, SetVerb};
use taffrail_cluster::ListStrategy;
use taffrail_engine::{
    EngineError, HolderTimes, InventoryPrune, ManifestText, Manifests, PruneConsent, Stop, SyncCaller,
    SyncEvent, SyncPlan, SyncReport, SyncRequest, prune_inventory,
};
use taffrail_observe::{FleetMembers, FleetWatcher, InventoryArg, WatchRequest};
use taffrail_plan::order::Dialect;
use taffrail_plan::sync::{RunEnd, RunPolicy};

use super::diff;
use super::get;
use super::guard;
use crate::cli::{ListOutput, TextOutput};
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::rule_source::{self, RuleSource};
use crate::runtime::block_on;
use crate::source;

pub(crate) use arguments::{
    DestroyArguments, PruneArguments, RollbackArguments, RunArguments, SyncArguments,
};
use arguments::{OrderOf, WritingArguments};
use print::Progress;

/// Time after which a cluster that does not answer counts as unreachable.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of times that a write is sent again which the API server could not carry out for now.
const RETRIES: u32 = 5;

pub(crate) fn run(arguments: &SyncArguments, console: &Console) -> Result<Exit, CommandError> {
    let files = diff::files(&arguments.files, arguments.recursive)?;
    let files = files.into_iter().map(text_of).collect::<Result<Vec<_>, _>>()?;
    let runs = Runs {
        verb: SetVerb::Sync,
        revision: arguments.revision.clone(),
        prune: arguments.prune,
        creates_namespace: arguments.create_namespace,
        writing: &arguments.writing,
        running: &arguments.running,
        console,
    };
    runs.carry_out(Subject::OfSet(Manifests::Given(&files)))
}

pub(crate) fn prune(arguments: &PruneArguments, console: &Console) -> Result<Exit, CommandError> {
    let files = diff::files(&arguments.files, arguments.recursive)?;
    let files = files.into_iter().map(text_of).collect::<Result<Vec<_>, _>>()?;
    let writing = WritingArguments::default();
    let runs = Runs {
        verb: SetVerb::Prune,
        revision: String::new(),
        prune: true,
        creates_namespace: false,
        writing: &writing,
        running: &arguments.running,
        console,
    };
    runs.carry_out(match (&arguments.inventory, files.is_empty()) {
        (Some(inventory), _) => Subject::OfInventory(inventory, &files),
        (None, true) => Subject::OfSet(Manifests::Last),
        (None, false) => Subject::OfSet(Manifests::Given(&files)),
    })
}

pub(crate) fn destroy(arguments: &DestroyArguments, console: &Console) -> Result<Exit, CommandError> {
    let writing = WritingArguments::default();
    let runs = Runs {
        verb: SetVerb::Destroy,
        revision: String::new(),
        prune: true,
        creates_namespace: false,
        writing: &writing,
        running: &arguments.running,
        console,
    };
    runs.carry_out(Subject::OfSet(Manifests::Last))
}

pub(crate) fn rollback(arguments: &RollbackArguments, console: &Console) -> Result<Exit, CommandError> {
    let runs = Runs {
        verb: SetVerb::Rollback,
        revision: String::new(),
        prune: arguments.prune,
        creates_namespace: false,
        writing: &arguments.writing,
        running: &arguments.running,
        console,
    };
    runs.carry_out(Subject::OfSet(Manifests::OfRun(arguments.to)))
}

fn text_of(file: diff::ReadFile) -> Result<ManifestText, CommandError> {
    let diff::ReadFile { path, content } = file;
    match String::from_utf8(content) {
        Ok(content) => Ok(ManifestText { path, content }),
        Err(_) => Err(CommandError::unreadable(format_args!("{path} is not UTF-8"))),
    }
}

/// The inventory by which a command works, and its manifests.
#[derive(Clone, Copy)]
enum Subject<'a> {
    OfSet(Manifests<'a>),
    OfInventory(&'a InventoryArg, &'a [ManifestText]),
}

/// The runs of one command: one in each selected cluster.
struct Runs<'a> {
    verb: SetVerb,
    revision: String,
    prune: bool,
    creates_namespace: bool,
    writing: &'a WritingArguments,
    running: &'a RunArguments,
    console: &'a Console,
}

impl Runs<'_> {
    fn carry_out(&self, subject: Subject<'_>) -> Result<Exit, CommandError> {
        let source = self.running.clusters.source(PATIENCE);
        let FleetMembers { members, problems } = source::members(&source)?;
        for problem in &problems {
            CommandError::from(problem).print(self.console);
        }
        let mut exit = if problems.is_empty() { Exit::Yes } else { Exit::Incomplete };
        let several = members.len() > 1;
        let is_json = self.running.output == TextOutput::Json;
        if is_json && (self.running.dry_run || matches!(subject, Subject::OfInventory(..))) {
            let error = CommandError::usage("-o json tells of the run of a set");
            return Err(error.hint("leave -o out with --dry-run and --inventory"));
        }
        let mut histories = Vec::new();
        for member in members {
            let cluster = member.name.clone();
            let namespace = match (&self.running.namespace, &member.context) {
                (Some(namespace), _) => namespace.clone(),
                (None, Ok(context)) => context.namespace().to_owned(),
                (None, Err(_)) => "default".to_owned(),
            };
            let name = self.running.set.as_deref().unwrap_or_default();
            let one = FleetMembers { members: vec![member], problems: Vec::new() };
            let rules = RuleSource::default().with_options(
                crate::cli::Pdb::Advisory.into(),
                rule_source::patience(format!("{PATIENCE:?}"), PATIENCE),
                &source.trust,
            );
            let watched = taffrail_apps::ReadQuery { by_name: true, ..taffrail_apps::ReadQuery::default() };
            let watch = WatchRequest {
                lists: ListStrategy::Auto,
                ..source::watch_request(one, &source, watched, rules)
            };
            let mut caller = Caller {
                runs: self,
                cluster: several.then(|| cluster.clone()),
                progress: Progress::new(self.console, several.then_some(&*cluster), !is_json),
                refusal: None,
                broken: None,
                is_planned: false,
            };
            let stop = Stop::default();
            let outcome = match subject {
                Subject::OfSet(manifests) => {
                    let set = SetName::new(&namespace, name).map_err(CommandError::usage)?;
                    let request = self.request(set);
                    block_on(async {
                        let watcher = FleetWatcher::start(watch).await;
                        taffrail_engine::sync(watcher, &request, manifests, &stop, &mut caller).await
                    })?
                }
                Subject::OfInventory(inventory, files) => {
                    let request = self.inventory_prune(inventory);
                    block_on(async {
                        let watcher = FleetWatcher::start(watch).await;
                        prune_inventory(watcher, &request, files, &stop, &mut caller).await
                    })?
                }
            };
            let Caller { refusal, broken, is_planned, .. } = caller;
            if let Some(error) = broken {
                written(Err(error))?;
            }
            let own = match (outcome, refusal) {
                (Ok(report), _) if is_json => {
                    let set = SetName::new(&namespace, name).map_err(CommandError::usage)?;
                    histories.push(history(&cluster, &set, &report));
                    exit_of(&report)
                }
                (Ok(report), _) => {
                    let what = match subject {
                        Subject::OfSet(_) => format!("set {namespace}/{name}, run {}", report.number),
                        Subject::OfInventory(inventory, _) => format!("inventory {inventory}"),
                    };
                    written(print::result(self.console, several.then_some(&*cluster), &what, &report))?;
                    exit_of(&report)
                }
                (Err(EngineError::NotApproved), Some(refusal)) => return Err(refusal),
                (Err(EngineError::NotApproved), None) if is_planned => Exit::Yes,
                (Err(error), _) => {
                    tell(&error, several.then_some(&*cluster), self.console);
                    Exit::Incomplete
                }
            };
            exit = exit.max(own);
        }
        if is_json {
            let list = List::of(histories, Vec::<ErrorRow>::new());
            written(get::document(ListOutput::Json, &list, self.console))?;
        }
        Ok(exit)
    }

    fn policy(&self) -> RunPolicy {
        let RunArguments { timeout, wave_timeout, wait, .. } = self.running;
        let limit = |time: Duration| SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
        RunPolicy {
            continues: self.writing.order.dialect() == Dialect::Kpt,
            waits_at_end: *wait,
            deadline: Some(limit(*timeout)),
            step_deadline: wave_timeout.map(limit),
            retries: RETRIES,
        }
    }

    fn consent(&self) -> PruneConsent {
        PruneConsent { allows_guarded: self.running.allow_prune }
    }

    fn inventory_prune(&self, inventory: &InventoryArg) -> InventoryPrune {
        InventoryPrune {
            inventory: inventory.clone(),
            namespace: self.running.namespace.clone(),
            consent: self.consent(),
            dialect: self.writing.order.dialect(),
            policy: self.policy(),
        }
    }

    fn request(&self, set: SetName) -> SyncRequest {
        let dialect = self.writing.order.dialect();
        SyncRequest {
            default_namespace: Some(set.namespace.clone()),
            set,
            verb: self.verb,
            actor: actor(),
            revision: self.revision.clone(),
            dialect,
            annotations: self.writing.annotations.iter().map(|it| OrderOf::dialect(*it)).collect(),
            policy: self.policy(),
            prune: self.prune.then(|| self.consent()),
            // A dry run writes nothing.
            creates_namespace: self.creates_namespace && !self.running.dry_run,
            force_conflicts: self.writing.force_conflicts,
            take_over: self.writing.take_over.clone(),
            replaces: self.writing.force,
            holder: HolderTimes::default(),
        }
    }
}

/// Returns the run that a report tells of as its set's history does.
fn history(cluster: &str, set: &SetName, report: &SyncReport) -> SetHistory {
    let results = [RunResults { number: report.number, objects: report.objects.clone() }];
    let gone = [ObjectResult::Pruned, ObjectResult::Ran];
    let objects = report.objects.iter().filter(|it| !gone.contains(&it.result)).count();
    SetHistory::of(cluster, set, (&report.summary, objects, &results), Some(report.number))
}

/// Returns the person and the machine that a run is noted with.
fn actor() -> String {
    let user = std::env::var("USER").ok().filter(|user| !user.is_empty());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{}@{host}", user.as_deref().unwrap_or("unknown"))
}

fn exit_of(report: &SyncReport) -> Exit {
    match report.end {
        RunEnd::Succeeded => Exit::Yes,
        RunEnd::Failed(_) | RunEnd::Terminated | RunEnd::Superseded => Exit::No,
    }
}

/// Prints an error, with what it lists.
fn tell(error: &EngineError, cluster: Option<&str>, console: &Console) {
    let place = cluster.map(|name| format!("{name}: ")).unwrap_or_default();
    match error {
        EngineError::Manifests(errors) => {
            for error in &errors.errors {
                CommandError::unreadable(error).print_about(&place, console);
            }
        }
        EngineError::Order(errors) => {
            for error in errors {
                CommandError::unreadable(error).print_about(&place, console);
            }
        }
        EngineError::Refused(refused) => {
            for it in refused {
                let what = format!("{}: {} {}: {}", it.place, it.key.kind, it.key.path(), it.message);
                CommandError::unreadable(what).print_about(&place, console);
            }
        }
        _ => {}
    }
    let summary = CommandError::unreadable(taffrail_cluster::chain(error));
    let hint = error.hint();
    let summary = if hint.is_empty() { summary } else { summary.hint(hint) };
    summary.print_about(&place, console);
}

/// The caller of one run.
struct Caller<'a> {
    runs: &'a Runs<'a>,
    cluster: Option<String>,
    progress: Progress,
    /// The reason why the user did not approve.
    refusal: Option<CommandError>,
    /// The reason why nothing can be printed any more.
    broken: Option<io::Error>,
    /// True if the plan was printed, and nothing more was asked for.
    is_planned: bool,
}

impl SyncCaller for Caller<'_> {
    fn take(&mut self, event: &SyncEvent<'_>) {
        if self.broken.is_none() {
            self.broken = self.progress.take(event).err();
        }
    }

    fn approves(&mut self, plan: &SyncPlan<'_>) -> bool {
        let Runs { running, console, .. } = self.runs;
        if running.dry_run {
            self.is_planned = true;
            self.broken = plan::print(plan, self.cluster.as_deref(), console).err();
            return false;
        }
        let pruned: Vec<String> =
            plan.pruned.iter().map(|key| format!("{} {}", key.kind, key.path())).collect();
        match guard::confirm_deletions(&pruned, running.yes, console) {
            Ok(()) => true,
            Err(refusal) => {
                self.refusal = Some(refusal);
                false
            }
        }
    }
}
