//! The stages of the read plan, and the maximum number of rounds for which each may delay those after it.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use taffrail_object::{ObjectKey, Projection};
use taffrail_status::ActiveRules;

use super::named::NamedEvidence;
use super::{Plan, Read, ReadQuery};
use crate::declaration::Declaration;
use crate::delivery::{Declarations, Lacking};
use crate::fleet::Fleet;
use crate::identity::Delivery;
use crate::objects::Objects as _;
use crate::scope::Scope;
use crate::snapshot::Snapshot;

/// The maximum number of rounds for which each stage may delay the stages after it; from then on, these do not wait for
/// it.
///
/// Two or three are enough where nothing changes meanwhile. Without a maximum, an author who keeps creating
/// objects that a stage wants could keep all later stages from ever being read.
const MAX_ROUNDS: [u8; 4] = [3, 3, 6, 3];

/// For each stage of the plan, the number of rounds for which it has delayed the later ones; and the evidence that was
/// read by name.
///
/// A reader keeps the numbers from one plan to the next; one that watches a cluster resets them once all awaited
/// reads are done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rounds {
    delays: [u8; MAX_ROUNDS.len()],
    named: NamedEvidence,
}

impl Rounds {
    /// Makes rounds of which none are left: once the kinds that declare apps are read, all other stages are planned at
    /// once.
    pub fn spent() -> Rounds {
        Rounds { delays: MAX_ROUNDS, named: NamedEvidence::default() }
    }

    /// Reports to `snapshot` how much evidence [`plan_reads`] has left unread, because too much would be read by name.
    pub fn report(&self, snapshot: &mut Snapshot) {
        self.named.report(snapshot);
    }

    /// Returns true if `stage` may delay the stages after it in this round, and counts the round for it.
    fn may_hold_up(&mut self, stage: usize) -> bool {
        let (Some(rounds), Some(most)) = (self.delays.get_mut(stage), MAX_ROUNDS.get(stage)) else {
            return false;
        };
        let may = *rounds < *most;
        *rounds += u8::from(may);
        may
    }
}

/// The reads to send next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadPlan {
    /// The reads that must be answered before the next stages are planned.
    pub awaited: Vec<Read>,
    /// The reads for which no stage waits: those beyond the share of one namespace's apps, and those of stages
    /// without rounds left.
    pub loose: Vec<Read>,
    /// The namespaces of the apps and objects that name an object which is read by name. An object that is not listed
    /// here is named in its own namespace. Empty unless [`ReadQuery::follow`] is set.
    ///
    /// A reader that bounds the reads charges them to these namespaces, because the namespace of the object itself is
    /// up to the author of the name.
    pub named_by: NamedBy,
}

/// Objects that are read by name, each with the namespaces of the apps and objects that name it.
pub type NamedBy = HashMap<ObjectKey, BTreeSet<String>>;

/// Plans the next reads of a cluster that is watched: those for which `is_new` returns true; none if the cluster is
/// lost. `rounds` counts, for each stage, the plans in which later stages waited for its reads.
///
/// A stage is planned only when the reads of the stages before it are answered, so that no list is made twice; without
/// rounds left the later ones do not wait. Objects that `rules` call well need no evidence.
pub fn plan_watches(
    snapshot: &Snapshot,
    asked: &ReadQuery,
    rules: &ActiveRules<'_>,
    rounds: &mut Rounds,
    is_new: &dyn Fn(&Read) -> bool,
) -> ReadPlan {
    let mut next = ReadPlan::default();
    if snapshot.is_lost() {
        return next;
    }
    let plan = Plan { snapshot, asked, namespace: asked.namespace.as_deref() };
    let declaring = plan.declaring();
    let Some(catalog) = snapshot.kinds().filter(|_| !asked.declaring_only) else {
        next.awaited = declaring.into_iter().filter(is_new).collect();
        return next;
    };

    let fleet = Fleet::new(&[snapshot]);
    let mut found = match asked.declarations {
        true => Declarations::of(&fleet, &asked.app_labels, &rules.options.trust, Timestamp::UNIX_EPOCH),
        false => Declarations::default(),
    };
    let is_coming = |key: &ObjectKey| {
        let brings = |read: &Read| {
            read.kind == key.kind
                && read.group == key.group
                && read.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
        };
        declaring.iter().any(brings)
    };
    let mut lacking = std::mem::take(&mut found.lacking);
    if asked.follow {
        lacking.add(std::mem::take(&mut found.addresses));
    }
    lacking.extend(plan.origins(&found).into_iter().map(|key| (0, key)));
    let (mut first, mut rest) =
        lacking.parted(|key| !is_coming(key) && !snapshot.was_read(key, Projection::Full));
    if asked.namespace.is_some() {
        // With one namespace there are no others whose reads could wait.
        first.append(&mut rest);
        first.sort();
    }
    let read = |key: &&ObjectKey| plan.object(catalog, key, Projection::Full);
    let rest: Vec<Read> = rest.iter().filter_map(read).filter(is_new).collect();
    let first: Vec<Read> = first.iter().filter_map(read).filter(is_new).collect();
    // The number of declaring kinds is not up to tenants, so these reads are awaited without a limit.
    next.awaited = declaring.into_iter().filter(is_new).collect();
    if next.awaited.is_empty() {
        next.add(0, first, rounds);
    } else {
        next.awaited.extend(first);
    }
    let mut stage = 1;
    while next.awaited.is_empty() && stage < MAX_ROUNDS.len() {
        let mut reads = match stage {
            1 => {
                let mut reads = plan.declared(catalog, &found, rules);
                reads.extend(plan.widened(catalog, &found, &[Delivery::Helm, Delivery::Porch]));
                reads
            }
            2 => {
                let mut reads = plan.widened(catalog, &found, &[Delivery::Label]);
                reads.extend(plan.left(catalog, &found));
                if asked.declarations {
                    reads.extend(plan.argo(catalog, rules));
                }
                reads.extend(plan.controllers(catalog, &found));
                if asked.evidence {
                    reads.extend(plan.evidence(
                        catalog,
                        &found,
                        rules,
                        &mut rounds.named,
                        &mut next.named_by,
                    ));
                }
                reads
            }
            _ => {
                let mut reads = plan.dependents(catalog, &found);
                reads.extend(plan.events_about(catalog));
                reads.extend(plan.liveness(catalog, &found));
                reads.extend(plan.owners(catalog));
                reads
            }
        };
        reads.retain(is_new);
        next.add(stage, reads, rounds);
        stage += 1;
    }
    // The excess of one namespace's apps is read after what all others need.
    if next.awaited.is_empty() {
        next.loose.extend(rest);
    }
    let mut seen = BTreeSet::new();
    next.loose.retain(|read| seen.insert(read.clone()));
    if asked.follow {
        let of_evidence = std::mem::take(&mut next.named_by);
        let reads = next.awaited.iter().chain(&next.loose);
        next.named_by = named_by(reads, &lacking, || plan.apps(&found), of_evidence);
    }
    next
}

/// Returns [`ReadPlan::named_by`] of `reads`; `of_evidence` has the objects that references of other objects name.
fn named_by<'r>(
    reads: impl Iterator<Item = &'r Read>,
    lacking: &Lacking,
    apps: impl FnOnce() -> Vec<&'r Declaration>,
    mut of_evidence: NamedBy,
) -> NamedBy {
    let keys = reads.filter_map(|read| match read.scope() {
        Scope::Object(key) => Some(key),
        _ => None,
    });
    let mut named_by: NamedBy =
        keys.map(|key| of_evidence.remove_entry(&key).unwrap_or((key, BTreeSet::new()))).collect();
    if named_by.is_empty() {
        return named_by;
    }
    for (key, askers) in lacking.iter() {
        if let Some(known) = named_by.get_mut(key) {
            known.extend(askers.iter().cloned());
        }
    }
    for app in apps().into_iter().filter(|app| app.cluster().is_some()) {
        for key in &app.objects {
            if let Some(known) = named_by.get_mut(key)
                && !known.contains(&app.namespace)
            {
                known.insert(app.namespace.clone());
            }
        }
    }
    named_by.retain(|_, askers| !askers.is_empty());
    named_by
}

impl ReadPlan {
    /// Adds the reads of a stage to `awaited` if the stage may delay the later ones, otherwise to `loose`.
    fn add(&mut self, stage: usize, reads: Vec<Read>, rounds: &mut Rounds) {
        match !reads.is_empty() && rounds.may_hold_up(stage) {
            true => self.awaited = reads,
            false => self.loose.extend(reads),
        }
    }
}

/// Plans the next reads for a cluster that is read once; empty if everything needed was read. `rounds` limits how long
/// a stage delays the later ones, bounds the evidence that is read by name, and is kept from one plan to the next.
pub fn plan_reads(
    snapshot: &Snapshot,
    asked: &ReadQuery,
    rules: &ActiveRules<'_>,
    rounds: &mut Rounds,
) -> Vec<Read> {
    rounds.named.bound();
    let ReadPlan { mut awaited, loose, .. } = plan_watches(snapshot, asked, rules, rounds, &|_| true);
    awaited.extend(loose);
    awaited
}
