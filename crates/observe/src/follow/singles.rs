//! Limits on objects that are followed one by one: each is a stream, and authors of objects decide which they are.

use std::collections::{BTreeSet, HashMap, HashSet};

use taffrail_apps::{NamedBy, Objects as _, Read, Scope, ScopeError, Snapshot, Target};
use taffrail_object::{GroupKind, ObjectKey};

use super::scopes::named;
use super::{FollowedCluster, FollowedScope};

/// Maximum number of objects in one namespace that are watched one by one. Beyond it the kind of a further one is
/// listed there, or, if it cannot be listed, the object is not watched, but counted.
const MOST_OF_NAMESPACE: usize = 100;

/// Maximum number of objects of a cluster that are watched one by one. Beyond it, up to twice as many, an object is
/// watched only if a namespace that names it has fewer than [`FEW_OF_ASKER`] watched objects.
const MOST: usize = 1000;

/// Maximum number of objects that are watched one by one because the apps and objects of one namespace name them, in
/// whatever namespaces these objects are; further ones are not watched, but counted.
const MOST_OF_ASKER: usize = MOST / 2;

/// Number of watched objects that a namespace names up to which the limit of the cluster may be exceeded.
const FEW_OF_ASKER: usize = 10;

/// The scopes of single objects of a cluster that the limits count (not of those that the user named, or that only apps
/// of other clusters need), and the reads of single objects that are not followed as planned.
#[derive(Debug, Default)]
pub(super) struct Singles {
    /// The number of counted scopes by the namespace of the object.
    namespaces: HashMap<String, usize>,
    /// The number of counted scopes by the namespace that names the object, which is charged for it.
    askers: HashMap<String, usize>,
    /// The number of counted scopes in all namespaces.
    all: usize,
    /// The planned reads of single objects that are not watched, because they are too many.
    set_by: HashSet<Read>,
    /// The number of reads in `set_by` that no list of their kind replaces, so that their objects are unknown.
    left_out: usize,
    /// The reported error about the left-out objects; `None` if none is reported.
    told: Option<ScopeError>,
}

/// The read to watch for a planned read, and the namespace that is charged for it; `None` for one without a limit.
pub(super) type Admitted = (Read, Option<String>);

impl Singles {
    /// Returns true if a read of a single object is not watched because of the limits, also if a list of its kind
    /// replaces it.
    pub(super) fn leave_out(&self, read: &Read) -> bool {
        self.set_by.contains(read)
    }

    /// Counts the scopes again after some ended, so that reads that were left out are tried again.
    pub(super) fn recount<'f>(&mut self, scopes: impl Iterator<Item = &'f FollowedScope>) {
        (self.all, self.left_out) = (0, 0);
        self.namespaces.clear();
        self.askers.clear();
        self.set_by.clear();
        for (asker, key) in scopes.filter_map(|it| Some((it.asker.as_ref()?, it.key.as_ref()?))) {
            self.count(&key.namespace, asker);
        }
    }

    fn count(&mut self, namespace: &str, asker: &str) {
        *self.namespaces.entry(namespace.to_owned()).or_default() += 1;
        *self.askers.entry(asker.to_owned()).or_default() += 1;
        self.all += 1;
    }

    /// Returns the read to watch in place of `read` of a single object: `read` itself if the limits allow it, else,
    /// if its namespace has [`MOST_OF_NAMESPACE`] such objects and the kind can be listed, the list of its kind in
    /// its namespace. Otherwise counts the object as left out and returns `None`.
    ///
    /// `askers` are the namespaces that name the object; if empty, its own does. That with the fewest watched
    /// objects is charged.
    fn at_most(&mut self, snapshot: &Snapshot, read: Read, askers: &BTreeSet<String>) -> Option<Admitted> {
        let namespace = read.namespace.clone().unwrap_or_default();
        let number = |of: &HashMap<String, usize>, name: &str| of.get(name).copied().unwrap_or_default();
        let asker =
            askers.iter().min_by_key(|asker| number(&self.askers, asker)).unwrap_or(&namespace).clone();
        let asked = number(&self.askers, &asker);
        let is_crowded = number(&self.namespaces, &namespace) >= MOST_OF_NAMESPACE;
        let most = if asked < FEW_OF_ASKER { 2 * MOST } else { MOST };
        if !is_crowded && asked < MOST_OF_ASKER && self.all < most {
            self.count(&namespace, &asker);
            return Some((read, Some(asker)));
        }
        self.set_by.insert(read.clone());
        let is_listable = || {
            let kind = GroupKind::new(&*read.group, &*read.kind);
            snapshot.kinds().and_then(|kinds| kinds.get(&kind)).is_some_and(|served| served.is_listable())
        };
        if is_crowded && is_listable() {
            return Some((Read { target: Target::List { labels: None, fields: None }, ..read }, None));
        }
        self.left_out += 1;
        None
    }

    /// Reports the number of objects that are not watched, or removes that report if there are none.
    pub(super) fn tell(&mut self, snapshot: &mut Snapshot) {
        let scope = Scope::Input("objects that are named one by one".to_owned());
        let message = format!(
            "Taffrail watches only {} of the {} objects that must be watched one by one: at most {MOST}, of which the \
             apps of one namespace may name {MOST_OF_ASKER}; and up to {MOST} more for namespaces that name fewer \
             than {FEW_OF_ASKER}",
            self.all,
            self.all + self.left_out
        );
        let error = ScopeError { scope, reason: "OverLimit".to_owned(), message };
        let error = (self.left_out > 0).then_some(error);
        if error == self.told {
            return;
        }
        if let Some(told) = self.told.take() {
            snapshot.retract(&told.scope);
        }
        error.iter().for_each(|error| snapshot.report(error.clone()));
        self.told = error;
    }
}

impl FollowedCluster {
    /// Returns the read to watch in place of `read`: `read` itself if it is a list, or if `is_asked` is true for its
    /// object (the user named it), else the one that the limits allow; `None` if the object is left out. `named_by` is
    /// that of the plan.
    pub(super) fn bound_single(
        &mut self,
        snapshot: &Snapshot,
        read: Read,
        is_asked: impl FnOnce(&ObjectKey) -> bool,
        named_by: &NamedBy,
    ) -> Option<Admitted> {
        match named(&read) {
            Some(key) if !is_asked(&key) => {
                let nobody = BTreeSet::new();
                self.singles.at_most(snapshot, read, named_by.get(&key).unwrap_or(&nobody))
            }
            _ => Some((read, None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use taffrail_apps::{KindCatalog, ServedKind};
    use taffrail_object::Projection;

    use super::*;

    fn snapshot() -> Snapshot {
        let served = ServedKind {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            plural: "configmaps".to_owned(),
            namespaced: true,
            verbs: vec!["get".to_owned(), "list".to_owned()],
            has_status_subresource: false,
        };
        let mut snapshot = Snapshot::live("one", Timestamp::UNIX_EPOCH);
        snapshot.set_kinds(KindCatalog::new([served], []));
        snapshot
    }

    fn one(namespace: &str, name: &str) -> Read {
        Read {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            plural: "configmaps".to_owned(),
            namespace: Some(namespace.to_owned()),
            target: Target::Object(name.to_owned()),
            projection: Projection::Full,
        }
    }

    #[test]
    fn of_many_objects_of_a_namespace_the_kind_is_followed_there() {
        let (snapshot, mut singles) = (snapshot(), Singles::default());
        let followed = |singles: &mut Singles, at: usize| {
            let admitted = singles.at_most(&snapshot, one("shop", &format!("c{at}")), &BTreeSet::new());
            admitted.map(|(read, _)| read.target)
        };
        for at in 0..MOST_OF_NAMESPACE {
            assert_eq!(followed(&mut singles, at), Some(Target::Object(format!("c{at}"))));
        }
        let everything = Some(Target::List { labels: None, fields: None });
        assert_eq!(followed(&mut singles, MOST_OF_NAMESPACE), everything);
        // It is not asked for again, and nothing is left out.
        assert!(singles.leave_out(&one("shop", &format!("c{MOST_OF_NAMESPACE}"))));
        assert_eq!(singles.left_out, 0);
    }

    #[test]
    fn of_many_objects_in_many_namespaces_some_are_followed_and_the_rest_is_told() {
        let (mut snapshot, mut singles) = (snapshot(), Singles::default());
        let reads: Vec<Read> = (0..3000).map(|at| one(&format!("n{at}"), "argocd-cm")).collect();
        let followed = reads
            .iter()
            .filter(|read| singles.at_most(&snapshot, (*read).clone(), &BTreeSet::new()).is_some());
        assert_eq!(followed.count(), 2 * MOST);
        singles.tell(&mut snapshot);
        singles.tell(&mut snapshot);
        let told: Vec<_> = snapshot.errors().iter().map(|error| (&*error.reason, &*error.message)).collect();
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, "OverLimit");
        assert!(told[0].1.starts_with("Taffrail watches only 2000 of the 3000 objects"), "{told:?}");
        // Where some are let go of, the rest has its turn.
        singles.recount(std::iter::empty());
        assert!(
            reads
                .last()
                .is_some_and(|read| singles.at_most(&snapshot, read.clone(), &BTreeSet::new()).is_some())
        );
        singles.tell(&mut snapshot);
        assert_eq!(snapshot.errors(), []);
    }

    #[test]
    fn who_names_many_takes_no_place_of_who_names_few() {
        let (snapshot, mut singles) = (snapshot(), Singles::default());
        for at in 0..20 * MOST_OF_NAMESPACE {
            let namespace = format!("team-{}", at / MOST_OF_NAMESPACE);
            singles.at_most(&snapshot, one(&namespace, &format!("c{at}")), &BTreeSet::new());
        }
        assert!(singles.all < 2 * MOST, "{}", singles.all);
        assert!(singles.at_most(&snapshot, one("shop", "argocd-cm"), &BTreeSet::new()).is_some());
    }

    #[test]
    fn a_namespace_that_names_objects_of_many_is_charged_for_them() {
        let (snapshot, mut singles) = (snapshot(), Singles::default());
        let by = |asker: &str| BTreeSet::from([asker.to_owned()]);
        for at in 0..3000 {
            singles.at_most(&snapshot, one(&format!("made-up-{at}"), "c"), &by("tenant"));
        }
        assert_eq!((singles.all, singles.left_out), (MOST_OF_ASKER, 3000 - MOST_OF_ASKER));
        // An object that another namespace names too is charged to that one.
        let both = BTreeSet::from(["tenant".to_owned(), "shop".to_owned()]);
        let admitted = singles.at_most(&snapshot, one("made-up-2999", "c"), &both);
        assert_eq!(admitted.and_then(|(_, asker)| asker).as_deref(), Some("shop"));
    }
}
