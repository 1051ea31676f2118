//! `taffrail wait`: waits for a condition, and shows what blocks it.
//!
//! [`taffrail_apps::wait`] decides; this module passes watch events to it. It does not poll.

mod arguments;
mod junit;
mod output;
mod targets;

use std::time::{Duration, Instant};

use taffrail_apps::command;
use taffrail_apps::wait::{EXPRESSION_FAULT, End, Options, Seen, Target, Until, Wait};
use taffrail_apps::{AppLabels, AppQuery, Delivery, Objects};
use taffrail_cluster::ListStrategy;
use taffrail_object::ObjectKey;
use taffrail_observe::{ExtraWatches, FleetWatcher};

use super::named::check_clusters;
use crate::cli::ViewArguments;
use crate::command_error::{CommandError, Exit, advise};
use crate::output::answer::Console;
use crate::program;
use crate::rule_source;
use crate::runtime::block_on;
use crate::source::{self, print_requests};

pub(crate) use arguments::{ClusterArguments, WaitArguments, WaitOutput};
use output::Output;
use targets::ReadQuery;

/// Time after which a cluster that does not answer counts as unreachable; Taffrail goes on trying to reach it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Interval at which `wait` evaluates its condition if nothing changes but the time.
const TICK: Duration = Duration::from_secs(1);

/// Interval between evaluations while the server's kinds are read again and again because it does not serve a needed
/// one yet.
const RESTLESS: Duration = Duration::from_millis(50);

pub(crate) fn run(arguments: &WaitArguments, console: &Console) -> Result<Exit, CommandError> {
    let asked = ReadQuery::read(arguments)?;
    let options = Options {
        stable_for: arguments.stable_for.unwrap_or_default(),
        fail_fast: arguments.fail_fast,
        deadline: arguments.deadline,
    };
    let question = Question {
        asked,
        until: arguments.until.clone(),
        options,
        namespace: arguments.namespace.clone(),
        labels: arguments.grouping.labels(),
        output: arguments.output,
    };
    question.answer(&arguments.view(), console)
}

/// The targets and options of one run of `wait`.
struct Question {
    asked: ReadQuery,
    until: Until,
    options: Options,
    namespace: Option<String>,
    labels: AppLabels,
    output: Option<WaitOutput>,
}

impl Question {
    /// Returns the query for the targets, their apps and the evidence about them.
    fn reads(&self) -> taffrail_apps::ReadQuery {
        let apps = &self.asked.apps;
        let may_be_labels =
            |app: &AppQuery| app.delivery().is_none_or(|delivery| delivery == Delivery::Label);
        taffrail_apps::ReadQuery {
            namespace: self.namespace.clone().filter(|_| self.asked.is_of_apps()),
            label_groups: apps.iter().any(may_be_labels),
            app_labels: self.labels.clone(),
            declarations: !apps.is_empty(),
            by_name: true,
            whole: self.until.needs_bodies() || self.asked.has_inventories(),
            only: apps.clone(),
            ..taffrail_apps::ReadQuery::default()
        }
    }

    fn answer(self, view: &ViewArguments, console: &Console) -> Result<Exit, CommandError> {
        if let Some(word) = self.asked.likely_app() {
            let name = format!("app/{word}");
            let namespace = self.namespace.as_deref().unwrap_or_default();
            let command = command::taffrail(&["wait", &name], namespace, None);
            let app = command.map_or(name, |command| program::hinted(&command));
            advise(
                &format!("'{word}' is taken for a kind of objects; for the app of that name: {app}"),
                console,
            );
        }
        let begun = Instant::now();
        let patience = view.source.timeout;
        let rules = view.rules().with_patience(rule_source::patience(format!("{patience:?}"), patience));
        let mut follow = source::follow(&view.source, rules, &self.reads(), ListStrategy::Streams)?;
        for complaint in follow.fleet().problems.iter().map(CommandError::from) {
            complaint.print(console);
        }
        check_clusters(&self.asked.clusters(), follow.fleet())?;
        let names: Vec<String> = follow.fleet().snapshots.iter().map(|it| it.name().to_owned()).collect();
        let members = names.len();
        let source = &view.source;
        let mut output = Output::open(
            self.output,
            members > 1,
            source.all_contexts || !source.context.is_empty(),
            console,
        )?;
        let apps = self.asked.apps.clone();
        let mut wait = Wait::new(self.until, self.options, apps);
        loop {
            let looked = Instant::now();
            let target = |(at, name): (usize, &String)| {
                self.asked.targets(name, follow.discovery(at), follow.namespace(at))
            };
            let targets: Vec<Vec<Target>> = names.iter().enumerate().map(target).collect();
            want(&mut follow, &mut wait, &targets);
            block_on(follow.ask())?;
            let settled: Vec<(bool, bool)> =
                (0..members).map(|at| (follow.is_settled(at), follow.is_lost(at))).collect();
            output.note(follow.notes());
            let fleet = follow.fleet();
            let seen: Vec<Seen<'_>> = fleet
                .snapshots
                .iter()
                .zip(&targets)
                .zip(&settled)
                .map(|((snapshot, targets), &(is_settled, is_lost))| Seen {
                    snapshot,
                    targets,
                    is_settled,
                    is_lost,
                })
                .collect();
            let at = begun.elapsed();
            let changed = wait.look(&seen, || fleet.apps(&[]), &fleet.rules.active(), fleet.now, at);
            let end = wait.end(at);
            let is_read = output.show(&wait, &changed, fleet.now, at, self.options)?;
            if let Some(complaint) = fault(&wait) {
                return Err(complaint);
            }
            if let Some(end) = end {
                output.finish(&wait, end, fleet.now, at)?;
                print_requests(source.verbose, follow.clusters().iter(), console);
                return Ok(exit(end));
            }
            if !is_read {
                return Ok(Exit::Yes);
            }
            let pause = if follow.is_restless() { RESTLESS } else { TICK };
            let left = |wait: &Wait| wait.next_moment().saturating_sub(begun.elapsed());
            if !block_on(follow.rest(looked.elapsed().min(left(&wait))))? {
                block_on(follow.soon(pause.min(left(&wait))))?;
            }
        }
    }
}

/// Returns the error of the first target for which the CEL expression of `--for` fails; `None` if it fails for none.
fn fault(wait: &Wait) -> Option<CommandError> {
    let mut judgements = wait.rows().map(|row| &row.judgement);
    let faulty = judgements.find(|it| it.reason == EXPRESSION_FAULT)?;
    let what = format!(
        "cannot evaluate the expression for {} in {}: {}",
        faulty.subject, faulty.cluster, faulty.message
    );
    let hint = "write a short expression that is true or false of the object, such as object.status.phase == 'Running'";
    Some(CommandError::usage(what).hint(hint))
}

fn exit(end: End) -> Exit {
    match end {
        End::Met => Exit::Yes,
        End::Failed | End::Deadline { observed: true } => Exit::No,
        End::Deadline { observed: false } | End::Unobservable => Exit::Incomplete,
    }
}

/// Tells `follow` the objects and kinds to watch in each cluster: the targets, and what `wait` needs to judge them.
fn want(follow: &mut FleetWatcher, wait: &mut Wait, targets: &[Vec<Target>]) {
    for (at, targets) in targets.iter().enumerate() {
        let Some(snapshot) = follow.fleet().snapshots.get(at) else { continue };
        wait.learn(at, snapshot, targets);
        let objects = wait.keys(at, targets);
        let selections: Vec<_> = targets
            .iter()
            .filter_map(|target| match target {
                Target::Selection(selection) => Some(selection.clone()),
                _ => None,
            })
            .collect();
        let kinds =
            objects.iter().map(ObjectKey::group_kind).chain(selections.iter().map(|it| it.kind.clone()));
        let lacks_kind = snapshot
            .kinds()
            .is_some_and(|catalog| kinds.into_iter().any(|kind| catalog.get(&kind).is_none()));
        let is_unknown = targets.iter().any(|target| matches!(target, Target::UnknownKind { .. }));
        let kinds = lacks_kind || is_unknown && snapshot.kinds().is_some();
        follow.want(at, ExtraWatches { objects, selections, kinds });
    }
}
