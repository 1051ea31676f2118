//! `taffrail status -w`: prints the statuses of objects in clusters, and again what changes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use taffrail_api::ErrorRow;
use taffrail_apps::{FreshnessState, Objects, Scope, Snapshot};
use taffrail_cluster::ApiResource;
use taffrail_object::{GroupKind, ObjectKey};
use taffrail_observe::{ExtraWatches, FleetWatcher, NO_EXTRA};
use taffrail_status::assess::Costs;
use taffrail_status::{Status, Verdict};

use super::clusters::{Meant, ReadQuery, keys, of_key, plan};
use super::judge::{Judge, Judged, Row};
use super::print::Printer;
use super::{StatusArguments, StatusOutput};
use crate::cli::ViewArguments;
use crate::command_error::{CommandError, Exit};
use crate::commands::changes::Printed;
use crate::commands::watch::Following;
use crate::output::answer::Console;
use crate::runtime::block_on;

/// The objects that were in a list so far, by the index of their cluster and their key, each with its kind, so that
/// their deletion can be reported; filled only with `-o jsonl`.
#[derive(Default)]
pub(super) struct ListedObjects(BTreeMap<(usize, ObjectKey), ApiResource>);

/// The statuses of the selected objects in all clusters, and the scopes that could not be read.
#[derive(Default)]
struct Statuses {
    rows: Vec<Judged>,
    errors: Vec<ErrorRow>,
}

impl Statuses {
    fn unread(&mut self, cluster: &str, scope: impl ToString, reason: &str, message: &str) {
        let [cluster, reason, message] = [cluster, reason, message].map(str::to_owned);
        self.errors.push(ErrorRow { cluster, scope: scope.to_string(), reason, message });
    }
}

/// Prints what changed in the statuses of the selected objects since `printed` (with `-o json` or `yaml` all of them,
/// if any changed); with `-o jsonl` also NotFound for objects in `seen` that were deleted since. Returns the exit code.
pub(super) fn look(
    arguments: &StatusArguments,
    view: &ViewArguments,
    judge: &Judge,
    (printed, seen): (&mut Printed<Judged>, &mut ListedObjects),
    from: &mut Following,
    console: &Console,
) -> Result<Exit, CommandError> {
    let asked = ReadQuery::read(arguments)?;
    let reads = plan(judge);
    let is_held = from.is_held();
    let follow = from.watcher(view, &reads)?;
    let names: Vec<String> = follow.fleet().snapshots.iter().map(|it| it.name().to_owned()).collect();
    asked.check_clusters(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
    let members = names.len();
    if !is_held {
        connect(follow, members, arguments.source.timeout)?;
    }
    let meant: Vec<Vec<Meant>> = (0..members)
        .map(|at| match follow.discovery(at) {
            Some(discovery) => asked.meant(&names[at], discovery, follow.namespace(at)),
            None => Vec::new(),
        })
        .collect();
    if (0..members).all(|at| follow.discovery(at).is_some())
        && let Some(complaint) = ReadQuery::wrong_kind(meant.iter().map(Vec::as_slice), Vec::new())
    {
        return Err(complaint);
    }
    if !is_held {
        for (at, meant) in meant.iter().enumerate() {
            let (objects, selections) = asked.reads(meant);
            follow.want(at, ExtraWatches { objects, selections, kinds: false });
        }
        block_on(follow.settle(NO_EXTRA))?;
        // Evidence for listed objects can be requested only once the list has arrived.
        for (at, meant) in meant.iter().enumerate() {
            let Some(snapshot) = follow.fleet().snapshots.get(at) else { continue };
            let listed = meant.iter().flat_map(|meant| match meant {
                Meant::All(resource, namespace) => keys(snapshot, resource, namespace.as_ref()),
                Meant::One(..) | Meant::NoKind(_) | Meant::Nothing(_) | Meant::Elsewhere => Vec::new(),
            });
            let objects = listed.collect();
            follow.want(at, ExtraWatches { objects, ..ExtraWatches::default() });
        }
        block_on(follow.settle(NO_EXTRA))?;
    }
    let fleet = follow.fleet();
    let mut statuses = Statuses::default();
    for (at, (snapshot, meant)) in fleet.snapshots.iter().zip(&meant).enumerate() {
        let keeps = (arguments.output == StatusOutput::Jsonl).then_some(&mut *seen);
        add(&mut statuses, judge, snapshot, meant, keeps.map(|seen| (at, seen)));
    }
    let Statuses { rows, errors } = statuses;
    if !printed.is_other(&rows, &errors) {
        return Ok(Exit::Yes);
    }
    let mut printer = Printer::new(arguments, members > 1, console);
    for complaint in fleet.problems.iter().map(CommandError::from) {
        complaint.print(console);
    }
    for ErrorRow { cluster, scope, reason, message } in &errors {
        printer.unread(cluster, scope, reason, message);
    }
    printer.print_changed(&rows, printed)?;
    printed.set(rows, errors);
    printer.finish(false)
}

/// Waits until the kinds of each of the clusters are known or could not be read, for `patience` at most.
fn connect(follow: &mut FleetWatcher, members: usize, patience: Duration) -> Result<(), CommandError> {
    let until = Instant::now() + patience;
    loop {
        block_on(follow.ask())?;
        let left = until.saturating_duration_since(Instant::now());
        let waits = (0..members).any(|at| follow.discovery(at).is_none() && follow.is_connecting(at));
        if !waits || left.is_zero() {
            return Ok(());
        }
        block_on(follow.soon(left))?;
    }
}

/// Adds the statuses in one cluster to `statuses`, all of them Unknown if it is not live, and the scopes that could not
/// be read. `seen` gets the listed objects, if deleted ones are to be reported.
fn add(
    statuses: &mut Statuses,
    judge: &Judge,
    snapshot: &Snapshot,
    meant: &[Meant],
    mut seen: Option<(usize, &mut ListedObjects)>,
) {
    let name = snapshot.name();
    let state = snapshot.freshness().state;
    let is_live = state == FreshnessState::Live;
    let own = snapshot.errors().iter().find(|error| error.scope == Scope::Cluster);
    let silence =
        own.map_or_else(|| format!("the cluster {}", state.predicate()), |error| error.message.clone());
    if !is_live || (meant.is_empty() && own.is_some()) {
        statuses.unread(name, Scope::Cluster, own.map_or("", |error| &error.reason), &silence);
    }
    let costs = Costs::default();
    let judged = |resource: &ApiResource, key: &ObjectKey| {
        let answers = match is_live {
            true => of_key(judge, snapshot, &costs, resource, key),
            false => judge.absent(Row {
                cluster: name.to_owned(),
                group: resource.group.clone(),
                version: resource.version.clone(),
                kind: resource.kind.clone(),
                namespace: key.namespace.clone(),
                name: key.name.clone(),
                verdict: Verdict::new(Status::Unknown, silence.clone(), ""),
            }),
        };
        Judged { cluster: name.to_owned(), key: key.clone(), answers }
    };
    for meant in meant {
        match meant {
            Meant::NoKind(kind) => {
                statuses.unread(name, kind, "", &format!("the server has no kind called {kind}"));
            }
            Meant::Elsewhere => {}
            Meant::Nothing(why) => statuses.unread(name, Scope::Cluster, "", why),
            Meant::One(resource, key) => statuses.rows.push(judged(resource, key)),
            Meant::All(resource, namespace) => {
                let kind = GroupKind::new(&*resource.group, &*resource.kind);
                let scope = Scope::Kind { kind, namespace: namespace.clone() };
                if let Some(error) = snapshot.errors().iter().find(|error| error.scope == scope) {
                    statuses.unread(name, &error.scope, &error.reason, &error.message);
                }
                let here = |key: &&ObjectKey| namespace.as_ref().is_none_or(|place| *place == key.namespace);
                let mut keys = keys(snapshot, resource, namespace.as_ref());
                if let Some((at, ListedObjects(seen))) = &mut seen {
                    seen.extend(keys.iter().map(|key| ((*at, key.clone()), resource.clone())));
                    let of_it = seen
                        .iter()
                        .filter(|((own, key), known)| own == at && *known == resource && here(&key));
                    keys = of_it.map(|((_, key), _)| key.clone()).collect();
                }
                keys.sort_unstable();
                statuses.rows.extend(keys.iter().map(|key| judged(resource, key)));
            }
        }
    }
}
