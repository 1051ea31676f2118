//! The apps of a list by the objects that they claim.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use taffrail_object::ObjectKey;

use crate::app::AppList;

/// An index of the apps of a list by the objects that they claim.
///
/// A claim is unconfirmed if the object exists outside of the author's own namespace but does not name the app
/// ([`Resource::unconfirmed`]): whoever may write into one namespace can make such a claim on any object. So an
/// unconfirmed claim never takes the place of a confirmed one.
///
/// [`Resource::unconfirmed`]: crate::Resource::unconfirmed
#[derive(Debug)]
pub(crate) struct Claimants<'l> {
    list: &'l AppList,
    /// The claims on the objects of each cluster, by the name of the cluster.
    claims: HashMap<&'l str, ClaimsOfCluster<'l>>,
}

/// For each object of a cluster, the indexes of the apps that claim it, in the order of their list, each with true if
/// its claim is unconfirmed.
type ClaimsOfCluster<'l> = HashMap<&'l ObjectKey, Vec<(usize, bool)>>;

/// The apps that claim an object, or the nearest of its controllers that any app claims.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NearestClaims<'l> {
    /// The object with confirmed claims; `None` if there is none.
    pub(crate) object: Option<&'l ObjectKey>,
    /// The indexes of the apps with confirmed claims on [`object`](NearestClaims::object).
    pub(crate) confirmed: Vec<usize>,
    /// The object with unconfirmed claims, which may be another one; `None` if there is none.
    pub(crate) listed_object: Option<&'l ObjectKey>,
    /// The indexes of the apps with unconfirmed claims on [`listed_object`](NearestClaims::listed_object).
    pub(crate) unconfirmed: Vec<usize>,
}

impl<'l> Claimants<'l> {
    /// Builds the index of the apps in `list` whose target cluster was queried.
    pub(crate) fn of(list: &'l AppList) -> Claimants<'l> {
        let mut claims: HashMap<&str, ClaimsOfCluster<'_>> = HashMap::new();
        for (place, app) in list.apps.iter().enumerate().filter(|(_, app)| app.in_reach) {
            let of_cluster = claims.entry(&app.app.target).or_default();
            for resource in &app.resources {
                let claims = of_cluster.entry(&resource.key).or_default();
                match claims.last_mut() {
                    Some((last, is_unconfirmed)) if *last == place => *is_unconfirmed |= resource.unconfirmed,
                    _ => claims.push((place, resource.unconfirmed)),
                }
            }
        }
        Claimants { list, claims }
    }

    fn on(&self, cluster: &str, object: &ObjectKey) -> &[(usize, bool)] {
        let of_cluster = self.claims.get(cluster);
        of_cluster.and_then(|claims| claims.get(object)).map_or(&[], Vec::as_slice)
    }

    /// Returns the indexes of all apps that claim an object of the cluster with the name `cluster`, in the order of the
    /// list.
    pub(crate) fn all(&self, cluster: &str, object: &ObjectKey) -> Vec<usize> {
        self.on(cluster, object).iter().map(|(place, _)| *place).collect()
    }

    /// Returns the indexes of the apps whose claims on an object of the cluster with the name `cluster` count against
    /// each other, see [`contenders`]; of all that claim it if these are fewer than two.
    pub(crate) fn contenders(&self, cluster: &str, object: &ObjectKey) -> Vec<usize> {
        let counting = contenders(self.on(cluster, object), |place| {
            let app = self.list.apps.get(*place).map(|app| &app.app);
            app.map(|app| (app.home.as_str(), app.namespace.as_str()))
        });
        if counting.len() < 2 { self.all(cluster, object) } else { counting }
    }

    /// Returns the apps with confirmed claims on the first of `objects` that has any, and the apps with unconfirmed
    /// claims on the first that has any of these. `objects` are an object and its controllers, the nearest first, in
    /// the cluster with the name `cluster`.
    pub(crate) fn nearest<'k>(
        &self,
        cluster: &str,
        objects: impl IntoIterator<Item = &'k ObjectKey>,
    ) -> NearestClaims<'l> {
        let mut nearest = NearestClaims::default();
        let Some(of_cluster) = self.claims.get(cluster) else { return nearest };
        for (&object, claims) in objects.into_iter().filter_map(|object| of_cluster.get_key_value(object)) {
            let of = |unconfirmed: bool| {
                let claims = claims.iter().filter(move |(_, is_unconfirmed)| *is_unconfirmed == unconfirmed);
                claims.map(|(place, _)| *place).collect::<Vec<usize>>()
            };
            if nearest.object.is_none() {
                nearest.confirmed = of(false);
                nearest.object = (!nearest.confirmed.is_empty()).then_some(object);
            }
            if nearest.listed_object.is_none() {
                nearest.unconfirmed = of(true);
                nearest.listed_object = (!nearest.unconfirmed.is_empty()).then_some(object);
            }
        }
        nearest
    }
}

/// Returns the claims on one object that count against each other: those that are confirmed, and those of the same
/// `author` as a confirmed one. The flag of a claim is true if it is unconfirmed.
//
// Of two Kustomizations that apply one object in turns, the object names the last. Both are meant if one author makes
// both, but not if the other is somebody else's, who could claim anything.
pub(crate) fn contenders<T: Copy, A: Eq + Hash>(claims: &[(T, bool)], author: impl Fn(&T) -> A) -> Vec<T> {
    let confirmed = claims.iter().filter(|(_, is_unconfirmed)| !is_unconfirmed);
    let authors: HashSet<A> = confirmed.map(|(claim, _)| author(claim)).collect();
    let counting =
        claims.iter().filter(|(claim, is_unconfirmed)| !is_unconfirmed || authors.contains(&author(claim)));
    counting.map(|(claim, _)| *claim).collect()
}
