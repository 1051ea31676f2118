//! The part of the read plan for dependents of declared objects.

use std::collections::{BTreeMap, BTreeSet};

use taffrail_object::{GroupKind, ObjectKey, Projection};
use taffrail_status::{ClusterState as _, Presence};

use super::{Dependents, Plan, Read, Target, body_of, list};
use crate::declaration::Declaration;
use crate::delivery::Declarations;
use crate::kinds::KindCatalog;
use crate::snapshot::Listed;

/// The kinds that the controllers of Kubernetes create as dependents of declared objects.
const DEPENDENT: [(&str, &str); 5] = [
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("apps", "ReplicaSet"),
    ("batch", "Job"),
    ("discovery.k8s.io", "EndpointSlice"),
];

/// The maximum number of namespaces in which dependents are listed one by one if the query has no namespace; beyond it,
/// one list of all namespaces is made instead.
const MAX_NAMESPACED_LISTS: usize = 10;

/// The maximum number of objects about which events are listed one by one.
const MAX_EVENTS_ABOUT: usize = 20;

/// The maximum number of namespaces of the apps in which dependents are listed one by one if the query has a namespace.
/// Beyond it, one list of all namespaces is made beside those of the first 200, because the user may be forbidden to
/// list all.
const MAX_SCOPED_LISTS: usize = 200;

impl Plan<'_> {
    /// Plans the lists of dependents, and of events if the query wants them, in the namespaces of the apps that
    /// [`ReadQuery::dependents`](super::ReadQuery::dependents) selects, and in `dependents_in`; beyond
    /// [`MAX_NAMESPACED_LISTS`] or [`MAX_SCOPED_LISTS`] in all namespaces at once.
    pub(super) fn dependents(&self, catalog: &KindCatalog, found: &Declarations) -> Vec<Read> {
        let own = dependent_namespaces(&self.asked.dependents, &self.apps(found));
        let others = self.asked.dependents_in.iter().map(String::as_str);
        let scopes: Vec<Option<&str>> = match self.namespace {
            Some(_) => {
                let whole = (own.len() > MAX_SCOPED_LISTS).then_some(None);
                let few: BTreeSet<&str> = own.into_iter().take(MAX_SCOPED_LISTS).chain(others).collect();
                few.into_iter().map(Some).chain(whole).collect()
            }
            None => {
                let all: BTreeSet<&str> = own.into_iter().chain(others).collect();
                match all.len() <= MAX_NAMESPACED_LISTS {
                    true => all.into_iter().map(Some).collect(),
                    false => vec![None],
                }
            }
        };
        let events = [("", "Event")].into_iter().filter(|_| self.asked.events);
        let mut reads = Vec::new();
        for (group, kind) in DEPENDENT.into_iter().chain(events) {
            let id = GroupKind::new(group, kind);
            let Some(served) = catalog.get(&id).filter(|served| served.is_listable()) else { continue };
            let projection = body_of(group, kind);
            let unread =
                scopes.iter().filter(|it| self.snapshot.listed(&id, **it, projection) != Listed::Done);
            let read = |scope: &Option<&str>| list(served, scope.map(str::to_owned), None, projection);
            reads.extend(unread.map(read));
        }
        reads
    }

    /// Plans the lists of the events about each object of the query that exists, if the query wants them: for
    /// cluster-scoped objects in the namespace `default`, where the API server keeps most of these.
    pub(super) fn events_about(&self, catalog: &KindCatalog) -> Vec<Read> {
        let id = GroupKind::new("", "Event");
        let Some(served) = catalog.get(&id).filter(|it| self.asked.events_about && it.is_listable()) else {
            return Vec::new();
        };
        let exists = |key: &&ObjectKey| matches!(self.snapshot.get(key.as_ref()), Presence::Present(_));
        let read = |key: &ObjectKey| {
            let namespace = if key.namespace.is_empty() { "default" } else { &*key.namespace };
            let fields = format!("involvedObject.kind={},involvedObject.name={}", key.kind, key.name);
            let target = Target::List { labels: None, fields: Some(fields) };
            let is_read = self.snapshot.was_selected(&id, Some(namespace), &target, Projection::Full);
            (!is_read)
                .then(|| Read { target, ..list(served, Some(namespace.to_owned()), None, Projection::Full) })
        };
        self.asked.objects.iter().filter(exists).take(MAX_EVENTS_ABOUT).filter_map(read).collect()
    }
}

/// Returns the namespaces of the declaring objects of the apps that `wanted` selects and of the apps that these
/// deliver, and of their objects in clusters that were queried.
pub(super) fn dependent_namespaces<'a>(wanted: &Dependents, apps: &[&'a Declaration]) -> BTreeSet<&'a str> {
    let named = |app: &&'a Declaration| match wanted {
        Dependents::None => false,
        Dependents::Of(query) => query.means(&app.key, app.delivery, &app.namespace, &app.name),
        Dependents::All => true,
    };
    let apps = || apps.iter().copied();
    let declaring: BTreeMap<&ObjectKey, &Declaration> =
        apps().filter_map(|app| Some((app.declaring.as_ref()?, app))).collect();
    let mut waiting: Vec<&'a Declaration> = apps().filter(named).collect();
    let mut seen = BTreeSet::new();
    let mut namespaces = BTreeSet::new();
    while let Some(app) = waiting.pop() {
        if !seen.insert((app.delivery, &app.namespace, &app.name)) {
            continue;
        }
        // Flux reports its own work as events about the declaring object.
        let own = app.declaring.iter().map(|key| key.namespace.as_str());
        let objects = app.objects.iter().filter(|_| app.cluster().is_some());
        namespaces.extend(objects.clone().map(|key| key.namespace.as_str()).chain(own));
        waiting.extend(objects.filter_map(|key| declaring.get(key)));
    }
    namespaces.remove("");
    namespaces
}
