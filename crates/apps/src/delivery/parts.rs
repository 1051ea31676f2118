//! A cache of declarations, from one look at the fleet to the next.
//!
//! Each is kept until a lookup that was made to read it may have another result; then it is read again.

use std::collections::HashMap;
use std::sync::Arc;

use taffrail_object::{AsObjectKey, ObjectKey, ObjectKeyRef};
use taffrail_status::Trust;

use super::Declaration;
use super::argo::GROUP;
use super::argo::homes::Homes;
use super::declared::Resolved;
use super::flux::releases::ReleaseClaims;
use super::most_apps::AppNumbers;
use super::notes::Notes;
use crate::claims::ClaimIndex;
use crate::noting::ask_at_once;
use crate::objects::Objects;
use crate::questions::{Question, QuestionRecord};

/// The name of a part of the declarations that is kept on its own, with the index of its cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum DeclaredPart {
    /// The app that an object declares.
    Object(usize, ObjectKey),
    /// The namespaces in which an Argo CD is installed.
    ArgoHomes(usize),
    /// The apps of Helm's storage.
    Helm(usize),
}

/// The kept parts of the declarations of a fleet.
#[derive(Debug, Default)]
pub(crate) struct DeclaredParts {
    /// False for a single look, after which nothing is kept.
    is_kept: bool,
    /// The number of the current look, to detect parts that it does not use.
    look: u64,
    clusters: HashMap<usize, ClusterParts>,
    claims: Option<KnownClaims>,
    /// The parts that were read since the last [`take_changes`](DeclaredParts::take_changes), with the lookups made
    /// for each.
    fresh: Vec<(DeclaredPart, QuestionRecord)>,
    /// The parts that were dropped or marked to be read again since the last `take_changes`.
    gone: Vec<DeclaredPart>,
}

/// The kept parts of one cluster.
#[derive(Debug, Default)]
struct ClusterParts {
    objects: HashMap<ObjectKey, ObjectPart>,
    /// The namespaces with an Argo CD, and false if they must be read again; the former value stays for a
    /// comparison with the new one.
    homes: Option<(Arc<Homes>, bool)>,
    /// The apps of Helm's storage, with the facts about other apps on which they depend; `None` if they must be read
    /// again.
    helm: Option<(Arc<Resolved>, BesideHelm)>,
}

/// The claims of HelmReleases on the releases of Helm's storage, and, where the cluster may have too many apps, the
/// numbers of its other apps.
type BesideHelm = (Vec<Arc<ReleaseClaims>>, Option<AppNumbers>);

/// The kept declaration of one object.
#[derive(Debug)]
struct ObjectPart {
    resolved: Arc<Resolved>,
    /// The index, among all declared apps, of the app that the object declares.
    place: usize,
    /// The number of the last look that used this declaration.
    look: u64,
}

/// The index of the claims of some apps.
#[derive(Debug)]
struct KnownClaims {
    apps: Vec<Arc<Declaration>>,
    index: Arc<ClaimIndex>,
}

impl ClusterParts {
    /// Drops the declarations of the cluster `home` for which `is_kept` returns false, and adds them to `gone`.
    fn retain(
        &mut self,
        home: usize,
        gone: &mut Vec<DeclaredPart>,
        is_kept: impl Fn(&ObjectKey, &ObjectPart) -> bool,
    ) {
        let dropped = self.objects.extract_if(|key, kept| !is_kept(key, kept));
        gone.extend(dropped.map(|(key, _)| DeclaredPart::Object(home, key)));
    }
}

impl DeclaredParts {
    /// Makes an empty store for a fleet that is looked at again and again.
    pub(crate) fn kept() -> DeclaredParts {
        DeclaredParts { is_kept: true, ..DeclaredParts::default() }
    }

    /// Makes the next look read this part of the declarations again, if it still needs it, and lists it as gone in
    /// [`take_changes`](DeclaredParts::take_changes). The former Argo CD namespaces stay for a comparison with the
    /// new ones.
    pub(crate) fn forget(&mut self, part: &DeclaredPart) {
        let (DeclaredPart::Object(home, _) | DeclaredPart::ArgoHomes(home) | DeclaredPart::Helm(home)) = part;
        let Some(own) = self.clusters.get_mut(home) else { return };
        match part {
            DeclaredPart::Object(_, key) => drop(own.objects.remove(key)),
            DeclaredPart::ArgoHomes(_) => own.homes.iter_mut().for_each(|(_, is_valid)| *is_valid = false),
            DeclaredPart::Helm(_) => own.helm = None,
        }
        self.gone.push(part.clone());
    }

    /// Returns the parts that were dropped or marked to be read again since the last call, and those that were read,
    /// with the lookups made for each. A part that was dropped and read again is in both lists.
    pub(crate) fn take_changes(&mut self) -> (Vec<DeclaredPart>, Vec<(DeclaredPart, QuestionRecord)>) {
        (std::mem::take(&mut self.gone), std::mem::take(&mut self.fresh))
    }

    /// Begins a look: only the parts that are used from now on survive [`finish`](DeclaredParts::finish).
    pub(super) fn begin(&mut self) {
        self.look += 1;
    }

    /// Ends a look: drops the parts of objects that it did not use.
    pub(super) fn finish(&mut self) {
        let DeclaredParts { look, clusters, gone, .. } = self;
        for (home, own) in clusters {
            own.retain(*home, gone, |_, kept| kept.look == *look);
        }
    }

    /// Drops the declaration of an object; returns it with the index of its app, `None` if it was not kept.
    pub(super) fn take(&mut self, home: usize, key: &ObjectKey) -> Option<(Arc<Resolved>, usize)> {
        let kept = self.clusters.get_mut(&home)?.objects.remove(key)?;
        self.gone.push(DeclaredPart::Object(home, key.clone()));
        Some((kept.resolved, kept.place))
    }

    /// Replaces the app with the index `place`, in the list whose claims are indexed, by another one with the same
    /// claims.
    pub(super) fn replace(&mut self, place: usize, app: &Arc<Declaration>) {
        let own = self.claims.as_mut().and_then(|claims| claims.apps.get_mut(place));
        own.into_iter().for_each(|own| own.clone_from(app));
    }

    /// Returns the app that an object of the cluster `home` declares, which gets the index `place`. Only if it is not
    /// kept, `find` reads it and makes the notes.
    pub(super) fn object(
        &mut self,
        objects: &dyn Objects,
        (home, key): (usize, ObjectKeyRef<'_>),
        place: usize,
        find: impl FnOnce(&mut Notes) -> Resolved,
    ) -> (Arc<Resolved>, Notes) {
        let look = self.look;
        let own = self.clusters.get_mut(&home).and_then(|own| own.objects.get_mut(&key as &dyn AsObjectKey));
        if let Some(kept) = own {
            (kept.look, kept.place) = (look, place);
            return (kept.resolved.clone(), Notes::default());
        }
        let find = |notes: &mut Notes| {
            ask_at_once(objects, &Question::Object(key), || ());
            find(notes)
        };
        let (found, notes, is_kept) = self.read(objects, || DeclaredPart::Object(home, key.to_owned()), find);
        if is_kept {
            let own = self.clusters.entry(home).or_default();
            own.objects.insert(key.to_owned(), ObjectPart { resolved: found.clone(), place, look });
        }
        (found, notes)
    }

    /// Returns the apps of Helm's storage in a cluster, which depend on `beside`. Only if none are kept for an equal
    /// `beside`, `find` reads them and makes the notes.
    pub(super) fn helm(
        &mut self,
        objects: &dyn Objects,
        home: usize,
        beside: BesideHelm,
        find: impl FnOnce(&BesideHelm, &mut Notes) -> Resolved,
    ) -> (Arc<Resolved>, Notes) {
        let own = self.clusters.get(&home).and_then(|own| own.helm.as_ref());
        if let Some((kept, before)) = own
            && *before == beside
        {
            return (kept.clone(), Notes::default());
        }
        let (found, notes, is_kept) =
            self.read(objects, || DeclaredPart::Helm(home), |notes| find(&beside, notes));
        if self.is_kept {
            let own = self.clusters.entry(home).or_default();
            own.helm = is_kept.then(|| (found.clone(), beside));
            if !is_kept {
                self.gone.push(DeclaredPart::Helm(home));
            }
        }
        (found, notes)
    }

    /// Returns the namespaces of a cluster in which an Argo CD is installed, from the cache unless it was told to
    /// [`forget`](DeclaredParts::forget) them.
    ///
    /// If they changed, drops the Applications of the cluster, so that they are read again.
    pub(super) fn argo_homes(&mut self, objects: &dyn Objects, home: usize, trust: &Trust) -> Arc<Homes> {
        let own = self.clusters.get(&home).and_then(|own| own.homes.as_ref());
        if let Some((kept, true)) = own {
            return kept.clone();
        }
        let find = || Homes::of(objects, trust);
        let Some((log, _)) = objects.question_log().filter(|_| self.is_kept) else { return Arc::new(find()) };
        let (found, asked) = log.record(find);
        self.fresh.push((DeclaredPart::ArgoHomes(home), asked));
        let own = self.clusters.entry(home).or_default();
        let found = Arc::new(found);
        let before = own.homes.replace((found.clone(), true));
        if before.is_some_and(|(before, _)| before != found) {
            let DeclaredParts { clusters, gone, .. } = self;
            if let Some(own) = clusters.get_mut(&home) {
                own.retain(home, gone, |key, _| key.group != GROUP);
            }
        }
        found
    }

    /// Returns the index of the claims of `apps`: the kept one, if it is of apps with the same claims in the same
    /// order.
    pub(super) fn claims(&mut self, apps: &[Arc<Declaration>]) -> Arc<ClaimIndex> {
        if let Some(KnownClaims { apps: before, index }) = &self.claims
            && are_alike(before, apps)
        {
            return index.clone();
        }
        let index = Arc::new(ClaimIndex::of(apps));
        if self.is_kept {
            self.claims = Some(KnownClaims { apps: apps.to_vec(), index: index.clone() });
        }
        index
    }

    /// Reads a part; returns it with true if it may be kept. If it may not, the lookups made for it are recorded as
    /// made by the running computation.
    fn read(
        &mut self,
        objects: &dyn Objects,
        part: impl FnOnce() -> DeclaredPart,
        find: impl FnOnce(&mut Notes) -> Resolved,
    ) -> (Arc<Resolved>, Notes, bool) {
        let mut notes = Notes::default();
        let Some((log, _)) = objects.question_log().filter(|_| self.is_kept) else {
            return (Arc::new(find(&mut notes)), notes, false);
        };
        let (found, asked) = log.record(|| find(&mut notes));
        let is_kept = notes.is_repeatable();
        match is_kept {
            true => self.fresh.push((part(), asked)),
            false => log.add(asked),
        }
        (Arc::new(found), notes, is_kept)
    }
}

/// Returns true if two lists of apps make the same claims.
fn are_alike(one: &[Arc<Declaration>], other: &[Arc<Declaration>]) -> bool {
    let is_alike = |(one, other): (&Arc<Declaration>, &Arc<Declaration>)| {
        Arc::ptr_eq(one, other) || one.claims_as(other)
    };
    one.len() == other.len() && one.iter().zip(other).all(is_alike)
}
