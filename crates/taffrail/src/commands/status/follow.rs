//! `status -w`: objects of clusters, as they change.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use taffrail_apps::wait::Selection;
use taffrail_apps::{FreshnessState, GroupKind, Lookup, ObjectKey, Objects, Scope, Snapshot};
use taffrail_cluster::{ApiResource, Discovery};
use taffrail_status::{Status, Verdict};

use super::clusters::{Asked, not_found};
use super::judge::{Judge, Row};
use super::print::Printer;
use super::{StatusArguments, StatusOutput};
use crate::cli::ViewArguments;
use crate::complaint::{Complaint, Exit};
use crate::reasons;
use crate::source::{Follow, NOTHING_MORE, Source, Wanted};

/// Objects that were seen, in which version of their kind; programs that read lines are told of each that it is gone.
#[derive(Default)]
pub(super) struct Seen(BTreeMap<(usize, ObjectKey), ApiResource>);

/// What one word of the command line stands for in a cluster.
enum Meant {
    One(ApiResource, ObjectKey),
    All(ApiResource, Option<String>),
    /// Why it stands for nothing.
    Nothing(String),
}

/// The statuses now.
pub(super) fn look(
    arguments: &StatusArguments,
    view: &ViewArguments,
    judge: &Judge,
    seen: &mut Seen,
    from: &mut dyn Source,
) -> Result<Exit, Complaint> {
    let asked = Asked::read(arguments)?;
    let reads = taffrail_apps::Asked {
        declarations: false,
        label_groups: false,
        evidence: false,
        by_name: true,
        whole: true,
        ..taffrail_apps::Asked::default()
    };
    let Some((follow, is_held)) = from.followed(view, &reads)? else {
        return Err(Complaint::unreadable("nothing is followed"));
    };
    let members = follow.fleet().snapshots.len();
    if !is_held {
        connect(follow, members, arguments.source.timeout);
    }
    let meant: Vec<Vec<Meant>> = (0..members)
        .map(|at| match follow.discovery(at) {
            Some(discovery) => meant(&asked, discovery, follow.namespace(at)),
            None => Vec::new(),
        })
        .collect();
    if !is_held {
        for (at, meant) in meant.iter().enumerate() {
            follow.want(at, wanted(&asked, meant));
        }
        follow.settle(NOTHING_MORE);
    }
    let fleet = follow.fleet();
    let mut printer = Printer::new(arguments, members > 1);
    for complaint in &fleet.complaints {
        complaint.print();
    }
    for (at, (snapshot, meant)) in fleet.snapshots.iter().zip(&meant).enumerate() {
        let keeps = (arguments.output == StatusOutput::Jsonl).then_some(&mut *seen);
        show(&mut printer, judge, snapshot, meant, keeps.map(|seen| (at, seen)))?;
    }
    printer.finish(false)
}

/// Waits until each cluster has said which kinds it has, or that it does not answer.
fn connect(follow: &mut Follow, members: usize, patience: Duration) {
    let until = Instant::now() + patience;
    loop {
        follow.ask();
        let left = until.saturating_duration_since(Instant::now());
        let waits = (0..members).any(|at| follow.discovery(at).is_none() && follow.is_connecting(at));
        if !waits || left.is_zero() {
            return;
        }
        follow.soon(left);
    }
}

fn meant(asked: &Asked, discovery: &Discovery, own: &str) -> Vec<Meant> {
    let all = asked.wanted.iter().map(|wanted| {
        let (resource, place) = match asked.meant(wanted, discovery, own) {
            Ok(meant) => meant,
            Err(why) => return Meant::Nothing(why),
        };
        match &wanted.name {
            None => Meant::All(resource, place.map(str::to_owned)),
            Some(name) => {
                let place = place.unwrap_or_default();
                let key = ObjectKey::new(&*resource.group, &*resource.kind, place, &**name);
                Meant::One(resource, key)
            }
        }
    });
    all.collect()
}

fn wanted(asked: &Asked, meant: &[Meant]) -> Wanted {
    let mut wanted = Wanted::default();
    for meant in meant {
        match meant {
            Meant::One(_, key) => wanted.objects.push(key.clone()),
            Meant::All(resource, namespace) => wanted.selections.push(Selection {
                kind: GroupKind::new(&*resource.group, &*resource.kind),
                namespace: namespace.clone(),
                labels: asked.selector.clone(),
            }),
            Meant::Nothing(_) => {}
        }
    }
    wanted
}

fn show(
    printer: &mut Printer,
    judge: &Judge,
    snapshot: &Snapshot,
    meant: &[Meant],
    mut seen: Option<(usize, &mut Seen)>,
) -> Result<(), Complaint> {
    let name = snapshot.name();
    let complain = |printer: &mut Printer, reason: &str, message: &str| {
        let complaint = Complaint::unreadable(format!("{name}: {message}"));
        printer.complain(complaint.maybe_hint(reasons::hint(reason).map(str::to_owned)));
    };
    let is_live = snapshot.freshness().state == FreshnessState::Live;
    let own = snapshot.errors().iter().find(|error| error.scope == Scope::Cluster);
    let silence = own.map_or("the cluster does not answer", |error| &*error.message);
    if !is_live || (meant.is_empty() && own.is_some()) {
        complain(printer, own.map_or("", |error| &error.reason), silence);
    }
    let print = |printer: &mut Printer, resource: &ApiResource, key: &ObjectKey| -> Result<(), Complaint> {
        let place = Some(key.namespace.as_str());
        let absent = || Row { cluster: name.to_owned(), ..not_found(resource, place, &key.name) };
        let unknown =
            |why: &str| Row { verdict: Verdict::new(Status::Unknown, why.to_owned(), ""), ..absent() };
        let answers = match snapshot.get(key) {
            _ if !is_live => judge.absent(unknown(silence)),
            Lookup::Found(observed) => judge.object(name, observed.object),
            Lookup::Absent => judge.absent(absent()),
            Lookup::Unobserved(why) => judge.absent(unknown(&why)),
        };
        printer.print(answers).map(drop)
    };
    for meant in meant {
        match meant {
            Meant::Nothing(why) => complain(printer, "", why),
            Meant::One(resource, key) => print(printer, resource, key)?,
            Meant::All(resource, namespace) => {
                let kind = GroupKind::new(&*resource.group, &*resource.kind);
                let scope = Scope::Kind { kind, namespace: namespace.clone() };
                if let Some(error) = snapshot.errors().iter().find(|error| error.scope == scope) {
                    complain(printer, &error.reason, &error.message);
                }
                let all = snapshot.of_kind(&resource.group, &resource.kind).map(|observed| observed.key);
                let here = |key: &&ObjectKey| namespace.as_ref().is_none_or(|place| *place == key.namespace);
                let mut keys: Vec<ObjectKey> = all.filter(here).cloned().collect();
                if let Some((at, Seen(seen))) = &mut seen {
                    seen.extend(keys.iter().map(|key| ((*at, key.clone()), resource.clone())));
                    let of_it = seen
                        .iter()
                        .filter(|((own, key), known)| own == at && *known == resource && here(&key));
                    keys = of_it.map(|((_, key), _)| key.clone()).collect();
                }
                keys.sort_unstable();
                keys.iter().try_for_each(|key| print(printer, resource, key))?;
            }
        }
    }
    Ok(())
}
