//! The cluster, apps and times that the searches for findings share.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};
use taffrail_object::json::Value;
use taffrail_object::{GroupKind, Object, ObjectKey, ObjectKeyRef, Projection};
use taffrail_status::{Observed, Presence, Status, assess};

use super::{CheckedCluster, Concerned, TrustShape, is_green};
use crate::app::{App, AppList, Resource};
use crate::claimants::Claimants;
use crate::command;
use crate::delivery;
use crate::delivery::controllers::CONTROLLERS;
use crate::delivery::flux;
use crate::delivery::flux::sources::Sources;
use crate::freshness::FreshnessState;
use crate::objects::Objects;
use crate::owners::{controllers, dependents};

/// One cluster with its apps, and the time at which it is judged.
pub(super) struct ClusterContext<'a> {
    pub(super) objects: &'a dyn Objects,
    pub(super) list: &'a AppList,
    /// The present time, as the caller gave it.
    pub(super) asked_at: Timestamp,
    /// The present time by the cluster's clock; for a dump without a date, the latest time in its objects. Ages
    /// count up to it.
    pub(super) now: Timestamp,
    /// The latest time in the objects that is not in the future, see [`traces`]; `None` if no object has one.
    pub(super) newest: Option<Timestamp>,
    /// The times of objects that are in the future.
    pub(super) future: FutureTimes,
    claimants: &'a Claimants<'a>,
    /// The indexes of the apps that an object of this cluster declares, by the object.
    declaring: HashMap<&'a ObjectKey, Vec<usize>>,
    /// The indexes of the apps declared in this cluster that are not well, by their worst object.
    worst: HashMap<&'a ObjectKey, Vec<usize>>,
    /// CustomResourceDefinitions by the group and kind that they define; filled at the first use.
    definitions: OnceCell<HashMap<(String, String), Object<'a>>>,
    /// By group, version and kind: true for a status subresource in the definition; `None` if the definition
    /// was not read.
    with_status: RefCell<HashMap<(String, String, String), Option<bool>>>,
    /// The indexes of the apps for which findings are searched; `None` for all.
    asked: Option<BTreeSet<usize>>,
    /// The objects in this cluster that the selected apps declare and that were read whole, each once with its status.
    resources: Vec<(&'a Resource, Observed<'a>)>,
    context: Option<&'a str>,
    /// A cache of the parsed Flux sources.
    sources: Sources,
}

/// The difference between two clocks up to which there is no finding; even good clusters differ by some seconds.
pub(super) const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(30);

impl<'a> ClusterContext<'a> {
    pub(super) fn new(
        objects: &'a dyn Objects,
        list: &'a AppList,
        claimants: &'a Claimants<'a>,
        asked_at: Timestamp,
        shape: TrustShape,
    ) -> ClusterContext<'a> {
        let mut declaring: HashMap<&ObjectKey, Vec<usize>> = HashMap::new();
        let mut worst: HashMap<&ObjectKey, Vec<usize>> = HashMap::new();
        for (place, app) in list.apps.iter().enumerate() {
            if app.app.home == objects.name() {
                for (index, key) in [(&mut declaring, &app.declaring), (&mut worst, &app.worst)] {
                    if let Some(key) = key {
                        index.entry(key).or_default().push(place);
                    }
                }
            }
        }
        // The times in objects are by the clocks of the cluster.
        let ahead = objects.clock_ahead().filter(|ahead| ahead.abs() > CLOCK_TOLERANCE).unwrap_or_default();
        let there = asked_at.saturating_add(ahead).unwrap_or(asked_at);
        let latest = there.saturating_add(CLOCK_TOLERANCE).unwrap_or(Timestamp::MAX);
        let (newest, future) = traces(objects, latest);
        let now = if objects.is_dated() { there } else { newest.unwrap_or(there).min(there) };
        ClusterContext {
            objects,
            list,
            asked_at,
            now,
            newest,
            future,
            claimants,
            declaring,
            worst,
            definitions: OnceCell::new(),
            with_status: RefCell::default(),
            asked: None,
            resources: Vec::new(),
            context: shape.contexts.then(|| objects.name()),
            sources: Sources::default(),
        }
    }

    /// Selects the apps for which findings are searched, by their indexes; `None` for all.
    pub(super) fn look_at(&mut self, asked: Option<&BTreeSet<usize>>) {
        self.asked = asked.cloned();
        // A claim that the object does not confirm may come with rules of the claimant, so others go before it.
        let rank = |resource: &Resource| (resource.unconfirmed, !is_well(resource));
        let mut places: HashMap<&ObjectKey, usize> = HashMap::new();
        let mut once: Vec<&Resource> = Vec::new();
        for resource in self.apps().flat_map(|(_, app)| &app.resources) {
            match places.get(&*resource.key) {
                Some(&place) if rank(resource) < rank(once[place]) => once[place] = resource,
                Some(_) => {}
                None => {
                    places.insert(&resource.key, once.len());
                    once.push(resource);
                }
            }
        }
        let once = once.into_iter();
        let read = once.filter_map(|resource| Some((resource, found(self.objects, &resource.key)?)));
        self.resources = read.filter(|(_, observed)| observed.projection == Projection::Full).collect();
    }

    /// Iterates over the indices of the selected apps in this cluster that declare an object of a namespace, confirmed
    /// by its marks, or that an object of it declares.
    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = usize> {
        let is_inside = |key: &ObjectKey| *key.namespace == *namespace;
        let name = self.objects.name();
        let apps = self.looked_at().filter(move |(_, app)| {
            let declares =
                || app.resources.iter().any(|resource| !resource.unconfirmed && is_inside(&resource.key));
            (app.app.home == name && app.declaring.as_ref().is_some_and(is_inside))
                || (app.in_reach && app.app.target == name && declares())
        });
        apps.map(|(place, _)| place)
    }

    /// Returns true if apps were selected by their indexes, even if these are all.
    pub(super) fn is_narrowed(&self) -> bool {
        self.asked.is_some()
    }

    /// Lists the selected apps with their indexes, even if their objects are in another cluster.
    fn looked_at(&self) -> impl Iterator<Item = (usize, &'a App)> {
        self.list.apps.iter().enumerate().filter(|(place, _)| self.is_asked(*place))
    }

    fn is_asked(&self, place: usize) -> bool {
        self.asked.as_ref().is_none_or(|asked| asked.contains(&place))
    }

    pub(super) fn name(&self) -> &'a str {
        self.objects.name()
    }

    /// Returns the kubectl command with these words; if the cluster does not answer, the command that tells more about
    /// its connection. `None` if a word could be taken for an option.
    pub(super) fn kubectl(&self, words: &[&str], namespace: &str) -> Option<String> {
        let freshness = self.objects.freshness();
        match freshness.state {
            FreshnessState::Lost => command::of_connection(self.name(), freshness, self.context),
            FreshnessState::Live | FreshnessState::Stale => command::kubectl(words, namespace, self.context),
        }
    }

    pub(super) fn taffrail(&self, words: &[&str], namespace: &str) -> Option<String> {
        command::taffrail(words, namespace, self.context)
    }

    /// Returns the command `taffrail explain` for an app; `None` if a name in it could be taken for an option.
    pub(super) fn explain(&self, app: &App) -> Option<String> {
        command::of_app(&["explain"], &app.app, self.context.is_some())
    }

    /// Returns the sources of `declaring`, which is a Flux object.
    pub(super) fn sources(&self, declaring: &Observed<'a>) -> Vec<ObjectKey> {
        flux::sources_by(&self.sources, self.objects, declaring)
    }

    /// Returns the time at which Flux fetched the present artifact of a source; `None` if it is not known.
    pub(super) fn fetched(&self, source: &ObjectKey) -> Option<Timestamp> {
        flux::fetched_by(&self.sources, self.objects, source)
    }

    /// Returns the sources of the Flux apps for which `wanted` is true, each with the indexes of these apps.
    pub(super) fn sources_of(&self, wanted: impl Fn(&App) -> bool) -> BTreeMap<ObjectKey, BTreeSet<usize>> {
        let mut sources: BTreeMap<ObjectKey, BTreeSet<usize>> = BTreeMap::new();
        for (place, app, declaring) in self.declared() {
            if wanted(app) && declaring.key.group.ends_with(".toolkit.fluxcd.io") {
                for key in self.sources(&declaring) {
                    sources.entry(key).or_default().insert(place);
                }
            }
        }
        sources
    }

    /// Returns the command `kubectl describe` for an object, or that of [`ClusterContext::kubectl`] if the cluster does
    /// not answer.
    pub(super) fn describe(&self, key: &ObjectKey) -> Option<String> {
        let kind = command::resource(&key.group, &key.kind);
        self.kubectl(&["describe", &kind, &key.name], &key.namespace)
    }

    /// Iterates over the selected apps whose objects are in this cluster, with their indices.
    pub(super) fn apps(&self) -> impl Iterator<Item = (usize, &'a App)> {
        let name = self.objects.name();
        let apps = self.looked_at();
        apps.filter(move |(_, app)| app.in_reach && app.app.target == name)
    }

    /// Iterates over the selected apps whose declaring object is in this cluster and was read, with their
    /// indices.
    pub(super) fn declared(&self) -> impl Iterator<Item = (usize, &'a App, Observed<'a>)> {
        let objects = self.objects;
        let apps = self.looked_at().filter(move |(_, app)| app.app.home == objects.name());
        apps.filter_map(move |(place, app)| {
            let observed = found(objects, app.declaring.as_ref()?)?;
            Some((place, app, observed))
        })
    }

    /// Iterates over the objects in this cluster that selected apps declare and that were read whole: each once, with
    /// its status and the indices of all apps that declare it.
    pub(super) fn resources(&self) -> impl Iterator<Item = (&'a Resource, Observed<'a>, Vec<usize>)> {
        let all = self.resources.iter();
        all.map(|(resource, observed)| (*resource, observed.clone(), self.claimants(&resource.key)))
    }

    /// Returns the indices of all apps that claim an object of this cluster, confirmed or not.
    pub(super) fn claimants(&self, key: &ObjectKey) -> Vec<usize> {
        self.claimants.all(self.name(), key)
    }

    /// Returns the indices of the apps whose claims on an object of this cluster count against each other; of all that
    /// claim it if these are fewer than two.
    pub(super) fn contenders(&self, key: &ObjectKey) -> Vec<usize> {
        self.claimants.contenders(self.name(), key)
    }

    /// Returns the first of the object and its controllers, from the object upwards, that an app declares, or else the
    /// first that apps list unconfirmed. The indexes are those of the apps that declare it, and of those that list the
    /// first listed one; `None` if no app declares or lists any of them.
    pub(super) fn claimed(&self, key: &ObjectKey) -> Option<(&'a ObjectKey, Vec<usize>)> {
        let owners = controllers(self.objects, key);
        let nearest = self.claimants.nearest(self.name(), std::iter::once(key).chain(&owners));
        let claimed = nearest.object.or(nearest.listed_object)?;
        Some((claimed, [nearest.confirmed, nearest.unconfirmed].concat()))
    }

    /// Iterates over the indices of the selected apps that the object `key` of this cluster declares.
    pub(super) fn declared_by(&self, key: &ObjectKey) -> impl Iterator<Item = usize> {
        let apps = self.declaring.get(key).into_iter().flatten().copied();
        apps.filter(|place| self.is_asked(*place))
    }

    /// Iterates over the indices of the selected apps declared in this cluster whose worst object is `key`.
    pub(super) fn spoken_for_by(&self, key: &ObjectKey) -> impl Iterator<Item = usize> {
        let apps = self.worst.get(key).into_iter().flatten().copied();
        apps.filter(|place| self.is_asked(*place))
    }

    /// Returns true if the CustomResourceDefinition of a custom resource has a status subresource in the object's
    /// version; `None` if the CustomResourceDefinition was not read.
    pub(super) fn is_defined_with_status(&self, object: &Object<'_>) -> Option<bool> {
        let (group, kind) = (object.group().to_owned(), object.kind().to_owned());
        let place = (group.clone(), object.version().to_owned(), kind.clone());
        if let Some(known) = self.with_status.borrow().get(&place) {
            return *known;
        }
        let definitions = self.definitions.get_or_init(|| {
            let mut definitions = HashMap::new();
            for definition in self.objects.of_kind("apiextensions.k8s.io", "CustomResourceDefinition", None) {
                definitions.entry(assess::defined(&definition.object)).or_insert(definition.object);
            }
            definitions
        });
        let serves = |value: Value<'_>| value.at(&["subresources", "status"]).is_some_and(|it| !it.is_null());
        let is_served = definitions.get(&(group, kind)).map(|definition| {
            let versions = definition.at(&["spec", "versions"]).and_then(Value::items);
            let is_own = |it: &Value<'_>| it.get("name").is_some_and(|name| name.is_str(object.version()));
            versions.into_iter().flatten().find(is_own).is_some_and(serves)
                || definition.at(&["spec"]).is_some_and(serves)
        });
        self.with_status.borrow_mut().insert(place, is_served);
        is_served
    }

    /// Returns the indexes of the selected apps declared in this cluster for which `is_it` is true.
    pub(super) fn delivered_by(&self, is_it: impl Fn(&App) -> bool) -> BTreeSet<usize> {
        let name = self.objects.name();
        let apps = self.looked_at();
        apps.filter(|(_, app)| app.app.home == name && is_it(app)).map(|(place, _)| place).collect()
    }

    /// Returns the time from `at` until [`ClusterContext::now`].
    pub(super) fn age(&self, at: Timestamp) -> SignedDuration {
        self.now.duration_since(at)
    }

    /// Returns true if at least one Pod of a namespace was read whole.
    pub(super) fn has_pods(&self, namespace: &str) -> bool {
        self.objects.of_kind("", "Pod", Some(namespace)).any(|pod| pod.projection == Projection::Full)
    }

    /// Returns the Pods that a workload controls, those of a Deployment by its ReplicaSets. `None` if some may not have
    /// been read whole, if no ReplicaSet of a Deployment was read, or if the workload has no UID.
    pub(super) fn pods(&self, workload: &Observed<'a>) -> Option<Vec<Observed<'a>>> {
        let is_a = |group: &'static str, kind: &'static str| {
            move |it: &Observed<'a>| it.key.group == group && it.key.kind == kind
        };
        let below = |owner: &Observed<'a>| dependents(self.objects, owner);
        let pods: Vec<Observed<'a>> = if workload.key.kind == "Deployment" {
            let sets: Vec<_> = below(workload).filter(is_a("apps", "ReplicaSet")).collect();
            if sets.is_empty() {
                return None;
            }
            sets.iter().flat_map(below).filter(is_a("", "Pod")).collect()
        } else {
            below(workload).filter(is_a("", "Pod")).collect()
        };
        let kind = GroupKind::new("", "Pod");
        let known = self.objects.is_observed(&kind.group, &kind.kind, Some(workload.key.namespace))
            && pods.iter().all(|pod| pod.projection == Projection::Full)
            && !workload.object.text(&["metadata", "uid"]).is_empty();
        known.then_some(pods)
    }

    /// Counts what was examined of the apps `asked`; `without_lease` are the controllers of which no Lease tells that they
    /// run.
    pub(super) fn checked(&self, asked: &BTreeSet<usize>, without_lease: Vec<String>) -> CheckedCluster {
        let apps = self.apps().filter(|(place, _)| asked.contains(place));
        let apps: Vec<&App> = apps.map(|(_, app)| app).collect();
        CheckedCluster {
            cluster: self.name().to_owned(),
            apps: apps.len(),
            green: apps.iter().filter(|app| is_green(app)).count(),
            objects: apps.iter().map(|app| app.counts.total()).sum(),
            pods: self
                .objects
                .of_kind("", "Pod", None)
                .filter(|pod| pod.projection == Projection::Full)
                .count(),
            leases: self.leases().count(),
            without_lease,
            as_of: self.now,
        }
    }

    /// Iterates over the Leases that were read whole.
    pub(super) fn leases(&self) -> impl Iterator<Item = Observed<'a>> + use<'a> {
        let leases = self.objects.of_kind("coordination.k8s.io", "Lease", None);
        leases.filter(|lease| lease.projection == Projection::Full)
    }
}

/// Returns the object `key` as it was read, whole or as metadata; `None` if it is absent or was not read.
pub(super) fn found<'a>(objects: &'a dyn Objects, key: &ObjectKey) -> Option<Observed<'a>> {
    match objects.get(key.as_ref()) {
        Presence::Present(observed) => Some(observed),
        Presence::Absent | Presence::Unobserved(_) => None,
    }
}

/// Returns the integer at a path of keys in an object; `None` if there is none.
pub(super) fn number(object: &Object<'_>, path: &[&str]) -> Option<i64> {
    object.at(path).and_then(Value::as_i64)
}

/// Returns true if the field at a path of keys is `true`.
pub(super) fn is_set(object: &Object<'_>, path: &[&str]) -> bool {
    object.at(path).and_then(Value::as_bool) == Some(true)
}

/// Returns the time at a path of keys in an object; `None` if there is none.
pub(super) fn moment(object: &Object<'_>, path: &[&str]) -> Option<Timestamp> {
    delivery::time(object.at(path))
}

/// Returns the time at which the spec of an object was last written; `None` if it is not recorded.
pub(super) fn changed(object: &Object<'_>) -> Option<Timestamp> {
    let wrote = object
        .managed_fields()
        .filter(|entry| entry.get("fieldsV1").and_then(|it| it.get("f:spec")).is_some());
    wrote.filter_map(|entry| delivery::time(entry.get("time"))).max()
}

/// Returns true if the status of the object is Current.
pub(super) fn is_well(resource: &Resource) -> bool {
    resource.status == Status::Current
}

/// The objects of a finding by kind, with the apps that declare them.
pub(super) type ByKind = BTreeMap<GroupKind, (Concerned, BTreeSet<usize>)>;

/// The objects of which a time is in the future.
#[derive(Debug, Default)]
pub(super) struct FutureTimes {
    /// The future times that tenants cannot write: those of cluster-scoped objects, and of objects in namespaces of
    /// Kubernetes or of a delivery tool. `None` if there are none.
    pub(super) sure: Option<Farthest>,
    /// The future times that tenants may have written, those of objects in all other namespaces, by namespace.
    pub(super) of_namespaces: BTreeMap<String, Farthest>,
}

/// The farthest of some times in the future, with its object, and the number of objects with such times.
#[derive(Debug)]
pub(super) struct Farthest {
    pub(super) at: Timestamp,
    pub(super) key: ObjectKey,
    pub(super) objects: usize,
}

impl FutureTimes {
    fn add(&mut self, at: Timestamp, key: ObjectKeyRef<'_>, is_sure: bool) {
        let known = match is_sure {
            true => self.sure.as_mut(),
            false => self.of_namespaces.get_mut(key.namespace),
        };
        match known {
            Some(farthest) => {
                farthest.objects += 1;
                if farthest.at < at {
                    (farthest.at, farthest.key) = (at, key.to_owned());
                }
            }
            None => {
                let first = Farthest { at, key: key.to_owned(), objects: 1 };
                match is_sure {
                    true => self.sure = Some(first),
                    false => drop(self.of_namespaces.insert(key.namespace.to_owned(), first)),
                }
            }
        }
    }
}

/// Returns the newest time in the objects up to `latest`, and the times beyond it, which are in the future.
///
/// If a Node has a heartbeat, or a Lease in a namespace of Kubernetes or of a delivery tool has a renew time, the
/// newest time counts only creation times and the times of cluster-scoped objects and of objects in such namespaces.
//
// Whoever may write in one namespace can write any time there. The API server writes creation times.
fn traces(objects: &dyn Objects, latest: Timestamp) -> (Option<Timestamp>, FutureTimes) {
    let mut newest: Option<Timestamp> = None;
    let mut sure: Option<Timestamp> = None;
    let mut has_clock = false;
    let mut future = FutureTimes::default();
    for observed in objects.all() {
        let object = &observed.object;
        let is_sure = observed.key.namespace.is_empty() || renews(object);
        has_clock |= is_sure && ticks(&observed);
        let mut own: Option<Timestamp> = None;
        times(object, &mut |at| {
            own = own.max(Some(at));
            if is_sure && at <= latest {
                sure = sure.max(Some(at));
            }
        });
        let made = moment(object, &["metadata", "creationTimestamp"]).filter(|at| *at <= latest);
        sure = sure.max(made);
        let Some(own) = own else { continue };
        if own <= latest {
            newest = newest.max(Some(own));
        } else {
            future.add(own, observed.key, is_sure);
        }
    }
    (if has_clock { sure } else { newest }, future)
}

/// Returns true if a controller regularly writes the present time into the object: a Lease with a renew time, or a Node
/// with a heartbeat.
fn ticks(observed: &Observed<'_>) -> bool {
    match (observed.key.group, observed.key.kind) {
        ("coordination.k8s.io", "Lease") => moment(&observed.object, &["spec", "renewTime"]).is_some(),
        ("", "Node") => {
            let ready = observed.object.condition("Ready");
            ready.and_then(|ready| delivery::time(ready.get("lastHeartbeatTime"))).is_some()
        }
        _ => false,
    }
}

/// Returns true if an object is in a namespace of Kubernetes or of a delivery tool, where tenants cannot write
/// Leases.
fn renews(object: &Object<'_>) -> bool {
    let namespace = object.namespace();
    namespace.starts_with("kube-") || CONTROLLERS.iter().any(|controller| controller.namespace == namespace)
}

/// Calls `each` with the times in an object: of its creation, of writes, in its status, of an event, and of the renewal
/// of a Lease that no tenant can write.
fn times(object: &Object<'_>, each: &mut dyn FnMut(Timestamp)) {
    const PLACES: [&[&str]; 8] = [
        &["metadata", "creationTimestamp"],
        &["spec", "renewTime"],
        &["status", "startTime"],
        &["status", "reconciledAt"],
        &["lastTimestamp"],
        &["eventTime"],
        &["series", "lastObservedTime"],
        &["deprecatedLastTimestamp"],
    ];
    let places = PLACES.iter().filter(|path| path[1..] != ["renewTime"] || renews(object));
    places.filter_map(|path| moment(object, path)).for_each(&mut *each);
    let lists = [
        (&["metadata", "managedFields"], &["time"][..]),
        (&["status", "conditions"], &["lastTransitionTime", "lastUpdateTime", "lastHeartbeatTime"]),
    ];
    for (path, keys) in lists {
        for entry in object.at(path).and_then(Value::items).into_iter().flatten() {
            keys.iter().filter_map(|key| delivery::time(entry.get(key))).for_each(&mut *each);
        }
    }
}
