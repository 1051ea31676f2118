//! The apps and controllers to which one object belongs.

use std::collections::{BTreeSet, HashMap, HashSet};

use taffrail_object::ObjectKey;
use taffrail_status::Presence;

use crate::agreement::{INSTANCE_LABEL, Mark};
use crate::app::{App, AppError, AppList};
use crate::claimants::{Claimants, NearestClaims};
use crate::identity::{AppRef, Delivery};
use crate::objects::Objects;
use crate::owners::controllers;
use crate::reads::declaring::{declares_apps, is_declaring_group, may_declare};
use crate::scope::Scope;

/// The end of a phrase in [`Ownership::marked`] about an app that the list does not have.
pub const NOT_SHOWN: &str = "which is not shown";

/// The apps and controllers that an object belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ownership<'l> {
    /// The controllers of the object, the nearest first.
    pub owners: Vec<ObjectKey>,
    /// The apps that declare the object and that it names, or else those of the nearest of its controllers for which
    /// there are any.
    pub apps: Vec<&'l App>,
    /// The apps that list the object, or the nearest of its controllers that any app lists, although it
    /// carries none of their marks.
    pub listed: Vec<&'l App>,
    /// The first app of the list that the object itself declares; `None` if there is none.
    pub declares: Option<&'l App>,
    /// Phrases for the apps that the object's marks name but that do not declare it, each with the remark that the app
    /// does not list it or is not shown. Tracking labels and shortened release names do not count.
    pub marked: Vec<String>,
    /// The clusters, and the kinds of apps in clusters, that could not be read and whose apps may declare the object,
    /// sorted: `eu-hub`, `eu-1 (kustomize.toolkit.fluxcd.io/Kustomization)`. Empty if the object belongs to an app or
    /// declares one.
    pub unread: Vec<String>,
}

/// The name of a cluster, and an object in it.
type Place<'l> = (&'l str, &'l ObjectKey);

/// An index of the apps of a list by their objects, made once for many lookups.
#[derive(Debug)]
pub struct Ownerships<'l> {
    list: &'l AppList,
    claimants: Claimants<'l>,
    /// The first app of the list that an object declares, by the object's cluster and key.
    declaring: HashMap<Place<'l>, &'l App>,
    /// The names by which marks may refer to the apps of the list, each with the target cluster and delivery.
    names: HashSet<(&'l str, Delivery, String)>,
    /// The errors because of which the list may lack apps.
    hiding: Vec<&'l AppError>,
}

impl AppList {
    /// Returns the apps and controllers to which the object `key` of `cluster` belongs; `cluster` is one of the
    /// list's clusters.
    pub fn belonging(&self, cluster: &dyn Objects, key: &ObjectKey) -> Ownership<'_> {
        self.belongings().of(cluster, key)
    }

    /// Builds an index of the apps by object, for looking up the apps of many objects.
    pub fn belongings(&self) -> Ownerships<'_> {
        let mut belongings = Ownerships {
            list: self,
            claimants: Claimants::of(self),
            declaring: HashMap::new(),
            names: HashSet::new(),
            hiding: self.errors.iter().filter(|error| hides(error)).collect(),
        };
        for app in &self.apps {
            let AppRef { home, target, delivery, namespace, name } = &app.app;
            if let Some(key) = &app.declaring {
                belongings.declaring.entry((home, key)).or_insert(app);
            }
            belongings.names.insert((target, *delivery, format!("{namespace}/{name}")));
            belongings.names.insert((target, *delivery, name.clone()));
        }
        belongings
    }
}

impl<'l> Ownerships<'l> {
    /// Returns the apps and controllers to which the object `key` of `cluster` belongs; `cluster` is one of the
    /// list's clusters.
    pub fn of(&self, cluster: &dyn Objects, key: &ObjectKey) -> Ownership<'l> {
        let owners = controllers(cluster, key);
        let nearest = self.claimants.nearest(cluster.name(), std::iter::once(key).chain(&owners));
        let NearestClaims { confirmed, unconfirmed, .. } = nearest;
        let of = |places: Vec<usize>| -> Vec<&'l App> {
            places.into_iter().filter_map(|place| self.list.apps.get(place)).collect()
        };
        let (apps, listed) = (of(confirmed), of(unconfirmed));
        let declares = self.declaring.get(&(cluster.name(), key)).copied();
        let marked = self.marked(cluster, key, &apps);
        let unread = match apps.is_empty() && declares.is_none() {
            true => self.unread(cluster, std::iter::once(key).chain(&owners)),
            false => Vec::new(),
        };
        Ownership { apps, listed, declares, owners, marked, unread }
    }

    /// Returns the clusters, and the kinds of apps in clusters, that could not be read and may declare one of `keys`,
    /// sorted: `eu-hub`, `eu-1 (KIND)`. The keys are those of an object of `cluster` and of its controllers.
    fn unread<'k>(&self, cluster: &dyn Objects, keys: impl Iterator<Item = &'k ObjectKey>) -> Vec<String> {
        if self.hiding.is_empty() {
            return Vec::new();
        }
        let all = keys.flat_map(|key| marks(cluster, key).into_iter().chain(hook(cluster, key)));
        let marks: Vec<Mark> = all.collect();
        let mut told = BTreeSet::new();
        for AppError { cluster: home, error } in &self.hiding {
            let kind = match &error.scope {
                Scope::Kind { kind, .. } => Some(kind),
                _ => None,
            };
            let is_marked =
                || marks.iter().any(|mark| kind.is_none_or(|kind| may_declare(kind, mark.app().0)));
            // What another cluster delivers, and what Helm does, carries a mark.
            let needs_mark = home != cluster.name() || kind.is_some_and(|kind| kind.kind == "Secret");
            if !needs_mark || is_marked() {
                told.insert(match kind {
                    Some(kind) => format!("{home} ({kind})"),
                    None if matches!(error.scope, Scope::Cluster) => home.clone(),
                    None => format!("{home} ({})", error.scope),
                });
            }
        }
        told.into_iter().collect()
    }

    /// Returns phrases for the apps that an object's marks name, without `apps`, to which it belongs; only for marks
    /// that only a delivery tool writes.
    fn marked(&self, cluster: &dyn Objects, key: &ObjectKey, apps: &[&App]) -> Vec<String> {
        let is_it = |app: &App, mark: &Mark| {
            let (delivery, name) = mark.app();
            let own = format!("{}/{}", app.app.namespace, app.app.name);
            let is_named = match delivery {
                Some(Delivery::ArgoApplication) => name == own || name == app.app.name,
                Some(Delivery::FluxKustomization | Delivery::FluxHelmRelease) => name == own,
                // The marks of a HelmRelease and of a sync do not use their names.
                Some(Delivery::Helm) => name == own || app.app.delivery == Delivery::FluxHelmRelease,
                _ => {
                    return matches!(
                        app.app.delivery,
                        Delivery::Kpt | Delivery::ConfigSync | Delivery::Taffrail
                    );
                }
            };
            let by = [delivery, Some(Delivery::FluxHelmRelease).filter(|_| delivery == Some(Delivery::Helm))];
            is_named && by.contains(&Some(app.app.delivery))
        };
        let marks = marks(cluster, key);
        let others = marks.iter().filter(|mark| mark.is_written_by_tool());
        let others = others.filter(|mark| !apps.iter().any(|app| is_it(app, mark)));
        let told = others.map(|mark| {
            let (delivery, name) = mark.app();
            let is_shown =
                delivery.is_some_and(|it| self.names.contains(&(cluster.name(), it, name.clone())));
            let why = if is_shown { "which does not list it" } else { NOT_SHOWN };
            format!("{mark}, {why}")
        });
        told.collect()
    }
}

/// Returns true if apps may be missing because of `error`: nothing of a cluster or input was read, or a kind or group
/// that declares apps was not.
fn hides(error: &AppError) -> bool {
    match &error.error.scope {
        Scope::Cluster | Scope::Input(_) => true,
        Scope::Kind { kind, .. } => declares_apps(kind),
        Scope::Group(group) => is_declaring_group(group),
        Scope::Namespace(_) | Scope::Object(_) => false,
    }
}

/// Returns the marks that an object carries, the tracking label that Argo CD writes by default among them; none if the
/// object was not read.
fn marks(cluster: &dyn Objects, key: &ObjectKey) -> Vec<Mark> {
    let Presence::Present(observed) = cluster.get(key.as_ref()) else { return Vec::new() };
    Mark::all(observed.key, &observed.object, &[INSTANCE_LABEL])
}

/// Returns the mark of the release to which a Helm hook seems to belong; `None` for other objects.
fn hook(cluster: &dyn Objects, key: &ObjectKey) -> Option<Mark> {
    let observed = cluster.get(key.as_ref()).present()?;
    Mark::of_hook(observed.key, &observed.object)
}
