//! Claims of apps on objects by inventories, lists of managed resources and Helm's storage, and the marks
//! that objects carry.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::sync::Arc;

use taffrail_object::{ObjectKey, ObjectKeyRef};
use taffrail_status::{Observed, Presence};

use crate::agreement::{INSTANCE_LABEL, Mark};
use crate::claimants::contenders;
use crate::declaration::Declaration;
use crate::fleet::Fleet;
use crate::noting::metadata_of;
use crate::object_keys::ObjectKeys;
use crate::round_robin::round_robin;
use crate::scope::{Scope, ScopeError};

/// The maximum number of objects of a cluster for which an overlap (two or more claimants) is reported one by one; one
/// more error counts the others.
const MOST_OVERLAPS: usize = 100;

/// The maximum number of doubtful overlaps that are reported one by one for each set of authors; the error that counts
/// the others of the cluster includes the rest.
const MOST_DOUBTFUL: usize = 10;

/// The maximum number of claiming apps that the message about one object names; it counts the others.
pub(crate) const MOST_CLAIMANTS: usize = 10;

/// A claim: the hash of the cluster and object, the index of the app, and the index of the object in that
/// app's list.
type Claim = (u64, u32, u32);

/// An index of the apps by the objects that they claim and by their marks.
///
/// Label groups take an object only if no claim here holds for it.
#[derive(Debug, Default)]
pub(crate) struct ClaimIndex {
    hasher: RandomState,
    /// The claims on declared objects, sorted by the hash of the object, for binary search.
    declared: Vec<Claim>,
    hooks: Vec<Claim>,
    /// The indices of the apps that write a mark, by the cluster of their objects and the mark; of apps that
    /// [`is_alike`] does not distinguish, only the first.
    named: HashMap<usize, HashMap<Mark, Vec<usize>>>,
    /// The label keys by which any of the apps tracks its objects, and [`INSTANCE_LABEL`] before them.
    labels: Vec<String>,
}

impl ClaimIndex {
    /// Builds the index of `apps`, which it refers to by their positions in the slice. Those whose target cluster was
    /// not queried are left out.
    pub(crate) fn of(apps: &[Arc<Declaration>]) -> ClaimIndex {
        let mut index = ClaimIndex { labels: vec![INSTANCE_LABEL.to_owned()], ..ClaimIndex::default() };
        let mut labels = BTreeSet::new();
        for (place, app) in apps.iter().enumerate() {
            let Some(cluster) = app.cluster() else { continue };
            let claims = |keys: &ObjectKeys| -> Vec<Claim> {
                let numbered = (0_u32..).zip(keys);
                let number = u32::try_from(place).unwrap_or(u32::MAX);
                numbered.map(|(at, key)| (index.number(cluster, key.as_ref()), number, at)).collect()
            };
            let (declared, hooks) = (claims(&app.objects), claims(&app.claimant.hooks));
            index.declared.extend(declared);
            index.hooks.extend(hooks);
            for mark in &app.claimant.marks {
                let named = index.named.entry(cluster).or_default().entry(mark.clone()).or_default();
                let is_known = |known: &usize| apps.get(*known).is_some_and(|known| is_alike(known, app));
                if !named.iter().any(is_known) {
                    named.push(place);
                }
            }
            labels.extend(app.claimant.labels());
        }
        labels.remove(INSTANCE_LABEL);
        index.labels.extend(labels.into_iter().map(str::to_owned));
        index.declared.sort_unstable();
        index.hooks.sort_unstable();
        index
    }

    fn number(&self, cluster: usize, key: ObjectKeyRef<'_>) -> u64 {
        self.hasher.hash_one((cluster, key))
    }
}

/// The apps, with the index of the objects that they claim as theirs.
#[derive(Clone, Copy)]
pub(crate) struct Claims<'a> {
    apps: &'a [Arc<Declaration>],
    index: &'a ClaimIndex,
}

/// The claims on one object that two or more apps claim.
struct Overlap {
    /// The indexes of the apps.
    claimants: Vec<usize>,
    /// True if the object carries the mark of none of the apps, and some are of other namespaces. Whoever may write
    /// into one namespace can make any number of these.
    is_doubtful: bool,
}

/// The result of looking for the app that has an object.
pub(crate) enum Claimed {
    /// An app of the list has the object: as a declared object, as a hook or a Job that its operations create, or,
    /// while its list of objects is unreadable, by a mark.
    ByApp,
    /// No app has the object. Holds the app that the object's marks name, if they name one.
    ByNone(Option<Named>),
}

/// An app that the marks of an object name, although that app does not claim the object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Named {
    pub(crate) app: String,
    pub(crate) is_shown: bool,
}

impl<'a> Claims<'a> {
    /// Joins `apps` with the `index` that was built of them.
    pub(crate) fn new(apps: &'a [Arc<Declaration>], index: &'a ClaimIndex) -> Claims<'a> {
        Claims { apps, index }
    }

    /// Returns the apps that claim the object `key` of the cluster with this index, by a search in `claims`;
    /// `is_hook` is true if these are claims on hooks.
    fn claimants(
        self,
        claims: &'a [Claim],
        is_hook: bool,
        cluster: usize,
        key: ObjectKeyRef<'a>,
    ) -> impl Iterator<Item = &'a Declaration> {
        let number = self.index.number(cluster, key);
        let start = claims.partition_point(|(own, ..)| *own < number);
        let own = claims.iter().skip(start).take_while(move |(own, ..)| *own == number);
        own.filter_map(move |(_, place, at)| {
            let app = self.apps.get(usize::try_from(*place).ok()?)?;
            let objects = if is_hook { &app.claimant.hooks } else { &app.objects };
            let is_it = objects.get(usize::try_from(*at).ok()?).is_some_and(|own| own.as_ref() == key);
            Some(&**app).filter(|app| is_it && app.cluster() == Some(cluster))
        })
    }

    /// Returns [`Claimed::ByApp`] if an app of the list has this object of the cluster with this index, by the claims
    /// on it or by its marks; else [`Claimed::ByNone`] with the first app that its marks name. A mark that users write
    /// as well, such as a tracking label, must name an app of the list.
    pub(crate) fn on(&self, cluster: usize, observed: &Observed<'_>) -> Claimed {
        let (key, object) = (observed.key, &observed.object);
        let ClaimIndex { declared, hooks, labels, .. } = self.index;
        let claimants = || {
            let declared = self.claimants(declared, false, cluster, key);
            declared.chain(self.claimants(hooks, true, cluster, key))
        };
        // The marks of most objects need not be read.
        if claimants().any(|app| app.claimant.owns_place_of(cluster, key)) {
            return Claimed::ByApp;
        }
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let marks = Mark::all(key, object, &labels);
        if claimants().any(|app| app.claimant.is_named(&marks)) {
            return Claimed::ByApp;
        }
        let is_job = matches!((key.group, key.kind), ("batch", "Job") | ("", "Pod"));
        let mut named = None;
        for mark in &marks {
            let comes_and_goes = is_job && (mark.is_written_by_tool() || is_hook(object));
            // An app has an object that it does not list only by a mark that its author could not choose.
            let has = |app: &Declaration| {
                (app.unreadable.is_some() || comes_and_goes)
                    && (mark.is_bound_to(&app.namespace) || app.claimant.owns_place_of(cluster, key))
            };
            let shown: Vec<&Declaration> = self.shown(cluster, mark, &marks).collect();
            if shown.iter().any(|app| has(app)) {
                return Claimed::ByApp;
            }
            match shown.first() {
                Some(_) if named.is_some() => {}
                Some(app) => named = Some(Named { app: app.title(), is_shown: true }),
                None if mark.is_written_by_tool() && named.is_none() => {
                    named = Some(Named { app: mark.to_string(), is_shown: false });
                }
                None => {}
            }
        }
        let release = is_job.then(|| Mark::of_hook(key, object)).flatten();
        let is_of_shown = |mark: Mark| {
            let mut apps = self.shown(cluster, &mark, std::slice::from_ref(&mark));
            apps.any(|app| app.claimant.owns_place_of(cluster, key))
        };
        if release.is_some_and(is_of_shown) {
            return Claimed::ByApp;
        }
        Claimed::ByNone(named)
    }

    /// Returns the apps with objects in this cluster that a mark names. `marks` are all marks that the object carries:
    /// if one of them is another mark of a HelmRelease, HelmReleases are left out.
    fn shown<'s>(
        &'s self,
        cluster: usize,
        mark: &'s Mark,
        marks: &[Mark],
    ) -> impl Iterator<Item = &'a Declaration> + use<'s, 'a> {
        let of_cluster = self.index.named.get(&cluster);
        let named = of_cluster.and_then(|named| named.get(mark)).into_iter().flatten();
        // A HelmRelease is found by the mark of helm-controller: others with the same release name are not
        // meant.
        let of_another = marks.iter().any(|it| it.is_of_helm_release() && it != mark);
        let apps = named.filter_map(|&place| self.apps.get(place)).map(|app| &**app);
        apps.filter(move |app| !of_another || !app.claimant.is_helm_release())
    }

    /// Returns the objects that two or more apps declare, by the index of their cluster. Leaves out claims that do not
    /// count against the others; see [`contenders`].
    fn several(&self, fleet: &Fleet<'_>) -> BTreeMap<usize, BTreeMap<&'a ObjectKey, Overlap>> {
        let mut found: BTreeMap<usize, BTreeMap<&ObjectKey, Vec<usize>>> = BTreeMap::new();
        for same in self.index.declared.chunk_by(|one, other| one.0 == other.0).filter(|it| it.len() > 1) {
            for (_, place, at) in same {
                let (Ok(place), Ok(at)) = (usize::try_from(*place), usize::try_from(*at)) else { continue };
                let Some(app) = self.apps.get(place) else { continue };
                if let Some((cluster, key)) = app.cluster().zip(app.objects.get(at)) {
                    found.entry(cluster).or_default().entry(key).or_default().push(place);
                }
            }
        }
        let counting = |(cluster, claims): (usize, BTreeMap<&'a ObjectKey, Vec<usize>>)| {
            let claims = claims.into_iter().filter(|(_, claimants)| claimants.len() > 1);
            let claims =
                claims.map(|(key, claimants)| (key, self.contenders(fleet, cluster, key, &claimants)));
            (cluster, claims.filter(|(_, overlap)| overlap.claimants.len() > 1).collect())
        };
        found.into_iter().map(counting).collect()
    }

    /// Returns those of `claimants`, which are indexes of apps, whose claims on an object count against each other:
    /// all, perhaps as doubtful, if the object carries the mark of none of them; else those that [`contenders`]
    /// returns.
    fn contenders(&self, fleet: &Fleet<'_>, cluster: usize, key: &ObjectKey, claimants: &[usize]) -> Overlap {
        let found = metadata_of(fleet.objects(cluster), key);
        let is_named = |app: &Arc<Declaration>| match &found {
            Presence::Present(observed) => {
                let marks = Mark::all(key.as_ref(), &observed.object, &app.claimant.labels());
                app.claimant.is_named(&marks)
            }
            Presence::Absent | Presence::Unobserved(_) => false,
        };
        let owns_place = |app: &Arc<Declaration>| app.claimant.owns_place_of(cluster, key.as_ref());
        let apps = || claimants.iter().filter_map(|&place| Some((place, self.apps.get(place)?)));
        // Of an object that names none of them no claim is better than another one.
        if !apps().any(|(_, app)| is_named(app)) {
            let is_doubtful = !apps().all(|(_, app)| owns_place(app));
            return Overlap { claimants: claimants.to_vec(), is_doubtful };
        }
        let claims: Vec<((usize, &Arc<Declaration>), bool)> =
            apps().map(|(place, app)| ((place, app), !owns_place(app) && !is_named(app))).collect();
        let counting = contenders(&claims, |(_, app)| (app.home, app.namespace.as_str()));
        Overlap { claimants: counting.into_iter().map(|(place, _)| place).collect(), is_doubtful: false }
    }

    /// Returns the homes and namespaces that declare these apps as one text, sorted, each once: `0/shop 1/web`.
    fn authors(&self, claimants: &[usize]) -> String {
        let apps = claimants.iter().filter_map(|&place| self.apps.get(place));
        let authors: BTreeSet<String> = apps.map(|app| format!("{}/{}", app.home, app.namespace)).collect();
        authors.into_iter().collect::<Vec<_>>().join(" ")
    }

    /// Returns those of `overlaps` that are reported one by one, at most [`MOST_OVERLAPS`], in the order of their
    /// objects. Of the doubtful ones of the same authors it takes at most [`MOST_DOUBTFUL`].
    ///
    /// One namespace with many overlaps does not displace the others: namespaces take turns. Doubtful ones come last,
    /// and there the authors take turns, as they can list the objects of any namespace.
    fn reported<'o>(
        &self,
        overlaps: &'o BTreeMap<&'a ObjectKey, Overlap>,
    ) -> Vec<(&'a ObjectKey, &'o Overlap)> {
        let all = || overlaps.iter().map(|(object, overlap)| (*object, overlap));
        let sure: Vec<_> = all().filter(|(_, overlap)| !overlap.is_doubtful).collect();
        let mut reported = round_robin(sure, |(object, _)| &object.namespace);
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let doubtful = all().filter(|(_, overlap)| overlap.is_doubtful);
        let doubtful =
            doubtful.map(|(object, overlap)| (self.authors(&overlap.claimants), (object, overlap)));
        let few: Vec<_> = doubtful
            .filter(|(authors, _)| {
                let number = numbers.entry(authors.clone()).or_default();
                *number += 1;
                *number <= MOST_DOUBTFUL
            })
            .collect();
        reported.extend(round_robin(few, |(authors, _)| authors).into_iter().map(|(_, it)| it));
        reported.truncate(MOST_OVERLAPS);
        reported.sort_by_key(|(object, _)| *object);
        reported
    }

    /// Returns an error for each object that several apps claim, with the index of its cluster. One error for each
    /// cluster counts the objects that [`reported`](Claims::reported) leaves out.
    pub(crate) fn overlaps(&self, fleet: &Fleet<'_>) -> Vec<(usize, ScopeError)> {
        let mut errors = Vec::new();
        let error = |object: &ObjectKey, message| {
            let scope = Scope::Object(object.to_owned());
            ScopeError { scope, reason: "Overlap".to_owned(), message }
        };
        for (cluster, overlaps) in &self.several(fleet) {
            let cluster = *cluster;
            let reported = self.reported(overlaps);
            for (object, Overlap { claimants, .. }) in &reported {
                let more = claimants.len().saturating_sub(MOST_CLAIMANTS);
                let named = claimants.iter().take(MOST_CLAIMANTS).filter_map(|&place| self.apps.get(place));
                let mut names: Vec<String> = named.map(|app| name(app, cluster, fleet)).collect();
                if more > 0 {
                    names.push(format!("{more} more"));
                }
                let Some((last, others @ [_, ..])) = names.split_last() else { continue };
                let message = format!("{object} is claimed by {} and {last}", others.join(", "));
                errors.push((cluster, error(object, message)));
            }
            let mut left_out = overlaps
                .keys()
                .filter(|object| reported.binary_search_by_key(object, |(reported, _)| reported).is_err());
            if let Some(first) = left_out.next() {
                let message = match left_out.count() + 1 {
                    1 => "1 more object is claimed by several apps".to_owned(),
                    more => format!("{more} more objects are claimed by several apps"),
                };
                errors.push((cluster, error(first, message)));
            }
        }
        errors
    }
}

/// Returns true if two apps agree in their namespace, in the place where their claims need no mark, in being a
/// HelmRelease, and in having unreadable objects. Of several such apps with the same mark, only one is in the index.
fn is_alike(one: &Declaration, other: &Declaration) -> bool {
    one.unreadable.is_some() == other.unreadable.is_some()
        && one.namespace == other.namespace
        && one.claimant.place == other.claimant.place
        && one.claimant.is_helm_release() == other.claimant.is_helm_release()
}

fn name(app: &Declaration, cluster: usize, fleet: &Fleet<'_>) -> String {
    if app.home == cluster {
        app.title()
    } else {
        format!("{} of {}", app.title(), fleet.objects(app.home).name())
    }
}

/// Returns true if the annotations of an object mark it as a hook of Argo CD or Helm.
fn is_hook(object: &taffrail_object::Object<'_>) -> bool {
    let says = |key: &str| object.at(&["metadata", "annotations", key]).is_some();
    says("argocd.argoproj.io/hook") || says("helm.sh/hook")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::Claimant;
    use crate::identity::Delivery;

    #[test]
    fn apps_of_one_mark_are_looked_at_by_what_tells_them_apart() {
        let app = |namespace: &str, at: usize| Declaration {
            claimant: Claimant::in_namespace(0, namespace, vec![Mark::of_release("x", "r")]),
            ..Declaration::by_nobody(0, Delivery::Kpt, namespace.to_owned(), format!("a{at}"), Vec::new())
        };
        let apps = (0..100).map(|at| app("aaa", at)).chain((0..100).map(|at| app("bbb", at)));
        let apps: Vec<_> = apps.map(Arc::new).collect();
        let claims = ClaimIndex::of(&apps);
        let most = claims.named.values().flat_map(HashMap::values).map(Vec::len).max();
        assert_eq!(most, Some(2));
    }
}
