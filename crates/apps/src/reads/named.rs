//! The bound on the evidence that one look reads by name: authors of objects decide to how many others these refer.

use std::collections::{BTreeMap, BTreeSet};

use super::{Read, Target};
use crate::scope::{Scope, ScopeError};
use crate::snapshot::Snapshot;

/// The maximum number of reads of evidence by name in one look. Beyond it, up to twice as many, a namespace gets such
/// a read only if it had fewer than [`FEW_OF_NAMESPACE`].
const MAX_READS: usize = 1000;

/// The maximum number of reads of evidence by name in one namespace.
const MAX_READS_OF_NAMESPACE: usize = 100;

/// The number of reads of a namespace up to which [`MAX_READS`] may be exceeded.
const FEW_OF_NAMESPACE: usize = 10;

/// A read of evidence that counts against the bound: of one object, or a list in place of many objects of a namespace.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamedRead {
    pub(super) read: Read,
    /// The number of objects that the read is planned for.
    pub(super) objects: usize,
}

/// The evidence that one look has read by name so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NamedEvidence {
    /// False for a cluster that is watched: the watcher bounds the objects that it watches one by one.
    is_bounded: bool,
    granted: BTreeSet<Read>,
    /// The number of granted reads by namespace; that of cluster-scoped objects is empty.
    namespaces: BTreeMap<String, usize>,
    /// The number of objects that the last plan left unread.
    left_out: usize,
}

impl NamedEvidence {
    /// Applies the bound from now on.
    pub(super) fn bound(&mut self) {
        self.is_bounded = true;
    }

    /// Returns the number of further reads for which no namespace has to wait.
    pub(super) fn room(&self) -> usize {
        if self.is_bounded { MAX_READS.saturating_sub(self.granted.len()) } else { usize::MAX }
    }

    /// Returns the reads that fit into the bound. Namespaces take turns, those that had fewer reads first, so that the
    /// excess of one leaves the evidence of others.
    pub(super) fn grant(&mut self, mut wanted: Vec<NamedRead>) -> Vec<Read> {
        if !self.is_bounded {
            return wanted.into_iter().map(|wanted| wanted.read).collect();
        }
        wanted.sort_unstable();
        let (again, new): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|wanted| self.granted.contains(&wanted.read));
        let mut reads: Vec<Read> = again.into_iter().map(|wanted| wanted.read).collect();

        let mut turns = self.namespaces.clone();
        let in_turns = new.into_iter().map(|wanted| {
            let turn = turns.entry(wanted.read.namespace.clone().unwrap_or_default()).or_default();
            *turn += 1;
            (*turn, wanted)
        });
        let mut in_turns: Vec<(usize, NamedRead)> = in_turns.collect();
        in_turns.sort_unstable();
        self.left_out = 0;
        for (turn, NamedRead { read, objects }) in in_turns {
            let most = if turn <= FEW_OF_NAMESPACE { 2 * MAX_READS } else { MAX_READS };
            if turn > MAX_READS_OF_NAMESPACE || self.granted.len() >= most {
                self.left_out += objects;
                continue;
            }
            self.namespaces.insert(read.namespace.clone().unwrap_or_default(), turn);
            self.granted.insert(read.clone());
            reads.push(read);
        }
        reads
    }

    /// Reports the number of objects that the last plan left unread to `snapshot`, if there were any.
    pub(super) fn report(&self, snapshot: &mut Snapshot) {
        if self.left_out == 0 {
            return;
        }
        let scope = Scope::Input("evidence that is read by name".to_owned());
        let message = format!(
            "objects that are not Ready refer to too many others: {} of these were not read, because Taffrail reads at \
             most {MAX_READS_OF_NAMESPACE} by name in each namespace and {MAX_READS} in all (up to {MAX_READS} more in \
             namespaces with at most {FEW_OF_NAMESPACE}); use -n to read those of one namespace",
            self.left_out
        );
        snapshot.retract(&scope);
        snapshot.report(ScopeError { scope, reason: "OverLimit".to_owned(), message });
    }
}

impl NamedRead {
    pub(super) fn of(read: Read, objects: usize) -> NamedRead {
        debug_assert!(matches!(read.target, Target::List { .. }) || objects == 1);
        NamedRead { read, objects }
    }
}

#[cfg(test)]
mod tests {
    use taffrail_object::Projection;

    use super::*;

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
        assert_eq!(evidence.left_out, 900);
        assert_eq!(NamedEvidence::default().grant(named("team", 1000)).len(), 1000);
    }
}
