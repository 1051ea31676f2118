//! The bound on the evidence that is read by name for one cluster: authors of objects decide to how many others these
//! refer.

use std::collections::{BTreeMap, BTreeSet};

use super::Read;
use crate::scope::{Scope, ScopeError};
use crate::snapshot::Snapshot;

/// The maximum number of reads of evidence by name for one cluster that is read once. Up to twice as many are made, but
/// beyond the maximum only for objects of namespaces that had fewer than [`FEW_OF_NAMESPACE`] reads.
const MAX_READS: usize = 1000;

/// The maximum number of reads of evidence by name for the objects of one namespace, in whatever namespaces the
/// evidence is; the rest is left unread, and an error reports how much.
const MAX_READS_OF_NAMESPACE: usize = 100;

/// The number of reads for one namespace up to which [`MAX_READS`] may be exceeded.
const FEW_OF_NAMESPACE: usize = 10;

/// A read of evidence that counts against the bound: of one object, or a list in place of many objects of a namespace.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamedRead {
    pub(super) read: Read,
    /// The number of objects that the read is planned for.
    pub(super) objects: usize,
    /// The namespaces of the objects that name these objects; an empty one for cluster-scoped objects.
    pub(super) named_by: BTreeSet<String>,
}

/// The evidence about one cluster that was read by name so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NamedEvidence {
    /// False for a cluster that is watched: the watcher bounds the objects that it watches one by one.
    is_bounded: bool,
    granted: BTreeSet<Read>,
    /// The number of granted reads by the namespace that is charged for them, one of those that name the evidence.
    /// The namespace of the evidence itself is up to the author of the name, so it is not charged.
    charged: BTreeMap<String, usize>,
    /// The number of objects that the last plan left unread because all namespaces together name too many.
    left_out: usize,
    /// The number of objects that the last plan left unread because one namespace names too many, by namespace.
    left_out_of: BTreeMap<String, usize>,
}

impl NamedEvidence {
    /// Applies the bound to all further calls of [`NamedEvidence::grant`].
    pub(super) fn bound(&mut self) {
        self.is_bounded = true;
    }

    /// Returns the number of further reads until [`MAX_READS`] are granted; unlimited for a cluster that is watched.
    pub(super) fn room(&self) -> usize {
        if self.is_bounded { MAX_READS.saturating_sub(self.granted.len()) } else { usize::MAX }
    }

    /// Returns those of the `wanted` reads that fit into the bound, first those granted before; all for a cluster that
    /// is watched. Namespaces take turns, those that had fewer reads first, so that the excess of one does not displace
    /// the evidence of others. If several namespaces name one object, the one with the fewest reads is charged.
    pub(super) fn grant(&mut self, mut wanted: Vec<NamedRead>) -> Vec<Read> {
        if !self.is_bounded {
            return wanted.into_iter().map(|wanted| wanted.read).collect();
        }
        wanted.sort_unstable();
        let (again, new): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|wanted| self.granted.contains(&wanted.read));
        let mut reads: Vec<Read> = again.into_iter().map(|wanted| wanted.read).collect();

        let mut turns = self.charged.clone();
        let in_turns = new.into_iter().map(|NamedRead { read, objects, named_by }| {
            let turn_of = |namespace: &String| turns.get(namespace).copied().unwrap_or_default();
            let namespace = named_by.into_iter().min_by_key(turn_of).unwrap_or_default();
            let turn = turns.entry(namespace.clone()).or_default();
            *turn += 1;
            (*turn, read, objects, namespace)
        });
        let mut in_turns: Vec<(usize, Read, usize, String)> = in_turns.collect();
        in_turns.sort_unstable();
        self.left_out = 0;
        self.left_out_of.clear();
        for (turn, read, objects, namespace) in in_turns {
            let most = if turn <= FEW_OF_NAMESPACE { 2 * MAX_READS } else { MAX_READS };
            if turn > MAX_READS_OF_NAMESPACE {
                *self.left_out_of.entry(namespace).or_default() += objects;
            } else if self.granted.len() >= most {
                self.left_out += objects;
            } else {
                self.charged.insert(namespace, turn);
                self.granted.insert(read.clone());
                reads.push(read);
            }
        }
        reads
    }

    /// Reports the numbers of objects that the last plan left unread to `snapshot`, if there were any: those beyond
    /// the bound of one namespace for that namespace alone.
    pub(super) fn report(&self, snapshot: &mut Snapshot) {
        let mut report =
            |scope, message| snapshot.report(ScopeError { scope, reason: "OverLimit".to_owned(), message });
        for (namespace, left_out) in &self.left_out_of {
            let message = format!(
                "objects in namespace {namespace} that are not Ready refer to too many others: {left_out} of these \
                 were not read, because Taffrail reads at most {MAX_READS_OF_NAMESPACE} by name for the objects of \
                 one namespace"
            );
            report(Scope::Namespace(namespace.clone()), message);
        }
        if self.left_out > 0 {
            let message = format!(
                "objects that are not Ready refer to too many others: {} of these were not read, because Taffrail \
                 reads at most {MAX_READS} by name in all (up to {MAX_READS} more for the first {FEW_OF_NAMESPACE} of \
                 each namespace); use -n to read those of one namespace",
                self.left_out
            );
            report(Scope::Input("evidence that is read by name".to_owned()), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use taffrail_object::Projection;

    use super::*;
    use crate::reads::Target;

    fn named(namespace: &str, count: usize) -> Vec<NamedRead> {
        let one = |at| NamedRead {
            read: Read {
                group: "example.com".to_owned(),
                version: "v1".to_owned(),
                kind: "Thing".to_owned(),
                plural: "things".to_owned(),
                namespace: Some(namespace.to_owned()),
                target: Target::Object(format!("t{at:05}")),
                projection: Projection::Full,
            },
            objects: 1,
            named_by: BTreeSet::from([namespace.to_owned()]),
        };
        (0..count).map(one).collect()
    }

    fn bounded() -> NamedEvidence {
        let mut evidence = NamedEvidence::default();
        evidence.bound();
        evidence
    }

    fn of_namespace(reads: &[Read], namespace: &str) -> usize {
        reads.iter().filter(|read| read.namespace.as_deref() == Some(namespace)).count()
    }

    #[test]
    fn namespaces_with_few_reads_come_before_the_excess_of_others() {
        let many = (0..40).flat_map(|at| named(&format!("a{at}"), 1000));
        let reads = bounded().grant(many.chain(named("shop", 30)).collect());
        assert_eq!((reads.len(), of_namespace(&reads, "shop")), (MAX_READS, 24));
    }

    #[test]
    fn excess_of_one_round_leaves_reads_for_other_namespaces_in_later_ones() {
        let mut evidence = bounded();
        assert_eq!(
            evidence.grant((0..11).flat_map(|at| named(&format!("a{at}"), 1000)).collect()).len(),
            1000
        );
        assert_eq!(evidence.grant(named("shop", 30)).len(), FEW_OF_NAMESPACE);
        // What was granted stays granted, and nothing more is.
        assert_eq!(evidence.grant(named("shop", 30)).len(), FEW_OF_NAMESPACE);
        assert_eq!(evidence.left_out, 20);
        let all = (0..5000).flat_map(|at| named(&format!("b{at}"), 1));
        evidence.grant(all.collect());
        assert_eq!(evidence.granted.len(), 2 * MAX_READS);
    }

    #[test]
    fn one_namespace_has_a_bound_of_its_own() {
        let mut evidence = bounded();
        assert_eq!(evidence.grant(named("team", 1000)).len(), MAX_READS_OF_NAMESPACE);
        assert_eq!(
            (evidence.left_out, evidence.left_out_of),
            (0, BTreeMap::from([("team".to_owned(), 900)]))
        );
        assert_eq!(NamedEvidence::default().grant(named("team", 1000)).len(), 1000);
    }

    #[test]
    fn namespace_that_names_objects_of_many_is_charged_for_them() {
        let mut evidence = bounded();
        let by = |namespaces: &[&str], of: Vec<NamedRead>| -> Vec<NamedRead> {
            let named_by: BTreeSet<String> = namespaces.iter().map(|it| (*it).to_owned()).collect();
            of.into_iter().map(|read| NamedRead { named_by: named_by.clone(), ..read }).collect()
        };
        let many = (0..3000).flat_map(|at| by(&["tenant"], named(&format!("made-up-{at}"), 1)));
        assert_eq!(evidence.grant(many.collect()).len(), MAX_READS_OF_NAMESPACE);
        assert_eq!((evidence.left_out, &evidence.left_out_of["tenant"]), (0, &2900));
        // Nothing of `shop` is used up, and it is charged only for what the tenant cannot pay.
        assert_eq!(evidence.grant(named("shop", 60)).len(), 60);
        assert_eq!(evidence.grant(by(&["tenant", "shop"], named("made-up-2999", 1))).len(), 1);
        assert_eq!(evidence.charged["shop"], 61);
    }
}
