//! The part of the read plan for evidence: objects that `assess` looks up to judge others and that were not read.
//!
//! There is no second list of the evidence that matters for each kind. The objects are assessed with what is
//! known, and what the assessment looked up in vain is read; what it will look up next is read along with it,
//! so that a Deployment, its ReplicaSets and their Pods cost one round. For objects that are well nothing is
//! looked up.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use taffrail_object::json::Value;
use taffrail_object::{GroupKind, Object, ObjectKey, ObjectKeyRef, Projection};
use taffrail_status::assess::{
    Costs, Event, Evidence, History, assess, evidence_projection, is_evidence, references,
};
use taffrail_status::{ActiveRules, ClusterState, Listing, Observed, Presence};

use super::named::{NamedEvidence, NamedRead};
use super::stages::NamedBy;
use super::{Changes, MAX_SINGLE_GETS, Plan, Read, Target, list};
use crate::declaration::Declaration;
use crate::delivery::{Declarations, time};
use crate::kinds::{KindCatalog, ServedKind};
use crate::objects::{Objects, suffices};
use crate::snapshot::Listed;

/// The maximum number of namespaces in which a kind is listed one by one; beyond it, one list of all namespaces is
/// made, unless the query has a namespace.
const MAX_NAMESPACED_LISTS: usize = 16;

/// The maximum number of listed kinds, of those in related API groups that a custom resource may control, and of those
/// that remain in a terminating namespace; further ones are not read.
const MAX_CONTROLLED_KINDS: usize = 12;

/// The field selector for events of type Warning; nearly all events are of type Normal.
const WARNINGS: &str = "type=Warning";

/// The field selector for events about Pods that are not warnings, such as those of an autoscaler, without
/// the frequent reasons that say nothing about a failure.
const OF_AUTOSCALERS: &str = "involvedObject.kind=Pod,type!=Warning,reason!=Scheduled,reason!=Pulling,\
                              reason!=Pulled,reason!=Created,reason!=Started,reason!=Killing";

/// Objects of one kind and namespace, each with the namespaces of the assessed objects that name it.
type NamedObjects<'d> = BTreeMap<ObjectKey, &'d BTreeSet<String>>;

/// The evidence that was looked up while objects were assessed and that may have to be read.
#[derive(Default)]
struct Demand {
    /// The objects, each with the namespaces of the assessed objects that name it.
    objects: BTreeMap<ObjectKey, BTreeSet<String>>,
    lists: BTreeSet<(GroupKind, Option<String>)>,
    /// UIDs of the objects whose dependents were looked up.
    owners: BTreeSet<String>,
    /// Namespaces in which events were looked up.
    events: BTreeSet<String>,
    /// Terminating namespaces whose remaining objects were looked up.
    contents: BTreeSet<String>,
}

impl Demand {
    /// Records that an object in `namespace` names the object `key`.
    fn name(&mut self, key: ObjectKey, namespace: &str) {
        let namespaces = self.objects.entry(key).or_default();
        if !namespaces.contains(namespace) {
            namespaces.insert(namespace.to_owned());
        }
    }
}

/// A cluster state that answers from `state`, and records the lookups of objects and kinds that were not read, or not
/// in the projection that evidence needs, and all lookups of dependents, events and contents of namespaces.
struct Recorder<'e> {
    state: &'e dyn ClusterState,
    /// The namespace of the object that is assessed.
    namespace: Cell<&'e str>,
    demand: RefCell<Demand>,
}

impl ClusterState for Recorder<'_> {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        let found = self.state.get(key);
        let is_known = match &found {
            Presence::Present(observed) => is_evidence(observed),
            Presence::Absent => true,
            Presence::Unobserved(_) => false,
        };
        if !is_known {
            self.demand.borrow_mut().name(key.to_owned(), self.namespace.get());
        }
        found
    }

    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.demand.borrow_mut().owners.insert(uid.to_owned());
        self.state.owned(uid, namespace)
    }

    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.demand.borrow_mut().owners.insert(uid.to_owned());
        self.state.dependents(uid, namespace)
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        self.is_observed(group, kind, namespace);
        self.state.of_kind(group, kind, namespace)
    }

    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        self.is_observed("", "Pod", Some(namespace));
        self.state.users(namespace, claim)
    }

    fn terminating_on(&self, node: &str) -> Listing<'_> {
        self.is_observed("", "Pod", None);
        self.state.terminating_on(node)
    }

    fn budgets(&self, namespace: &str, labels: Option<Value<'_>>) -> Listing<'_> {
        self.is_observed("policy", "PodDisruptionBudget", Some(namespace));
        self.state.budgets(namespace, labels)
    }

    fn knows_users(&self, namespace: &str) -> bool {
        self.is_observed("", "Pod", Some(namespace)) && self.state.knows_users(namespace)
    }

    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        let found = self.state.definition(group, kind);
        if found.is_none() {
            self.is_observed("apiextensions.k8s.io", "CustomResourceDefinition", None);
        }
        found
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        self.demand.borrow_mut().contents.insert(namespace.to_owned());
        self.state.in_namespace(namespace)
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        // Events about cluster-scoped objects are in this namespace.
        let namespace = Some(about.namespace()).filter(|it| !it.is_empty()).unwrap_or("default".into());
        self.demand.borrow_mut().events.insert(namespace.into_owned());
        self.state.events(about)
    }

    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        let is_observed = self.state.is_observed(group, kind, namespace);
        if !is_observed {
            let kind = GroupKind::new(group, kind);
            self.demand.borrow_mut().lists.insert((kind, namespace.map(str::to_owned)));
        }
        is_observed
    }

    fn has_status_subresource(&self, group: &str, version: &str, kind: &str) -> Option<bool> {
        self.state.has_status_subresource(group, version, kind)
    }

    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        self.state.tells_absence(group, kind, namespace)
    }
}

impl Plan<'_> {
    /// Plans the reads of evidence about objects that are not well, within the bound of `named` for reads by name. If
    /// the query sets `follow`, adds to `named_by` the namespaces of the objects that name others.
    pub(super) fn evidence(
        &self,
        catalog: &KindCatalog,
        found: &Declarations,
        rules: &ActiveRules<'_>,
        named: &mut NamedEvidence,
        named_by: &mut NamedBy,
    ) -> Vec<Read> {
        let (mut demand, of_changes) = self.demand(catalog, found, rules);
        demand.owners.extend(of_changes.owners);
        self.resolve(catalog, &mut demand);
        // Objects that the kubelet does not complain about are not evidence, but they may have changed.
        for (key, namespaces) in of_changes.objects {
            demand.objects.entry(key).or_default().extend(namespaces);
        }
        let mut reads = Vec::new();
        self.lists(catalog, &demand, &mut reads);
        self.objects(catalog, &demand, named, &mut reads);
        self.events(catalog, &demand, &mut reads);
        if self.asked.follow {
            for (key, namespaces) in demand.objects {
                named_by.entry(key).or_default().extend(namespaces);
            }
        }
        reads
    }

    /// Assesses the objects that were read whole, of the declared and declaring ones and those of the query, with the
    /// evidence that was read. Returns the evidence that was looked up: first that about their health, then that about
    /// changes.
    fn demand(
        &self,
        catalog: &KindCatalog,
        found: &Declarations,
        rules: &ActiveRules<'_>,
    ) -> (Demand, Demand) {
        let now = self.snapshot.freshness().observed_at.unwrap_or(Timestamp::UNIX_EPOCH);
        let costs = Costs::default();
        let recorder =
            || Recorder { state: self.snapshot, namespace: Cell::default(), demand: RefCell::default() };
        let (recorder, of_changes) = (recorder(), recorder());
        let history = History::new(&of_changes);
        let changing = self.changing(found);
        let apps = self.apps(found);
        let declaring = apps.iter().filter_map(|app| app.declaring.as_ref());
        let declared = self.objects_of(found);
        let keys: BTreeSet<&ObjectKey> = declared.chain(declaring).chain(&self.asked.objects).collect();
        for key in keys {
            let Presence::Present(observed) = self.snapshot.get(key.as_ref()) else { continue };
            if !suffices(&observed) || observed.projection != Projection::Full {
                continue;
            }
            recorder.namespace.set(&key.namespace);
            of_changes.namespace.set(&key.namespace);
            let assessment = assess(&observed.object, Evidence::from(&recorder).at_cost(&costs), rules, now);
            if let Some(turn) = assessment.since.filter(|_| changing.contains(key)) {
                history.before(&assessment.chain, turn, 0);
            }
            // Of all definitions only that of the object matters.
            let mut demand = recorder.demand.borrow_mut();
            let definitions = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
            if demand.lists.remove(&(definitions.clone(), None))
                && let Some(served) = catalog.get(&key.group_kind())
            {
                let name = format!("{}.{}", served.plural, served.group);
                let definition = ObjectKey::new(definitions.group, definitions.kind, "", name);
                demand.name(definition, &key.namespace);
            }
        }
        drop(history);
        (recorder.demand.into_inner(), of_changes.demand.into_inner())
    }

    /// Returns the declared and declaring objects for which the query wants the changes before a failure to be read,
    /// and, if it wants any, [`ReadQuery::objects`](super::ReadQuery::objects).
    fn changing<'f>(&'f self, found: &'f Declarations) -> BTreeSet<&'f ObjectKey> {
        let is_meant = |app: &&Declaration| match &self.asked.changes {
            Changes::None => false,
            Changes::Of(queries) => {
                queries.iter().any(|query| query.means(&app.key, app.delivery, &app.namespace, &app.name))
            }
            Changes::All => true,
        };
        let named = self.asked.objects.iter().filter(|_| self.asked.changes != Changes::None);
        let apps = self.apps(found).into_iter().filter(is_meant);
        let of_apps = apps.flat_map(|app| {
            let objects = app.objects.iter().filter(|_| app.cluster().is_some());
            objects.chain(&app.declaring)
        });
        of_apps.chain(named).collect()
    }

    /// Adds to `demand` the kinds of the dependents and contents that were looked up, and the events of the namespaces
    /// in which Pods are read; removes lookups that would find no evidence.
    fn resolve(&self, catalog: &KindCatalog, demand: &mut Demand) {
        if !demand.owners.is_empty() {
            for owner in self.snapshot.all() {
                let uid = owner.object.text(&["metadata", "uid"]);
                if uid.is_empty() || !demand.owners.contains(&*uid) || is_done(&owner.object) {
                    continue;
                }
                for kind in made_by(catalog, &owner.key.group_kind()) {
                    let namespace = Some(owner.key.namespace.to_owned()).filter(|it| !it.is_empty());
                    demand.lists.insert((kind, namespace));
                }
            }
        }
        for namespace in &demand.contents {
            let key = ObjectKey::new("", "Namespace", "", &**namespace);
            let Presence::Present(observed) = self.snapshot.get(key.as_ref()) else { continue };
            for served in remaining(catalog, &observed.object) {
                let kind = GroupKind::new(&*served.group, &*served.kind);
                demand.lists.insert((kind, Some(namespace.clone())));
            }
        }
        // Events about Pods are read wherever Pods are.
        let pods = demand.lists.iter().filter(|(kind, _)| kind.group.is_empty() && kind.kind == "Pod");
        demand.events.extend(pods.filter_map(|(_, namespace)| namespace.clone()));

        let wanted = self.named_by_silent_pods(demand);
        demand
            .objects
            .retain(|key, _| !IS_NAMED_BY_PODS.contains(&(&*key.group, &*key.kind)) || wanted.contains(key));
    }

    /// Returns all objects to which Pods refer that are not ready and for which the kubelet states no reason. Empty if
    /// `demand` has no object of a kind in [`IS_NAMED_BY_PODS`].
    ///
    /// Where the kubelet reports an image error or a crash, it has found all objects that the Pod refers to.
    fn named_by_silent_pods(&self, demand: &Demand) -> BTreeSet<ObjectKey> {
        let mut named = BTreeSet::new();
        if !demand.objects.keys().any(|key| IS_NAMED_BY_PODS.contains(&(&*key.group, &*key.kind))) {
            return named;
        }
        for pod in self.snapshot.of_kind("", "Pod", None).filter(|pod| pod.projection == Projection::Full) {
            if !is_ready(&pod.object) && !is_complained_of(&pod.object) {
                named.extend(references(&pod.object).into_iter().map(|reference| {
                    let taffrail_object::ObjectKey { group, kind, namespace, name } = reference.to;
                    ObjectKey { group, kind, namespace, name }
                }));
            }
        }
        named
    }

    fn lists(&self, catalog: &KindCatalog, demand: &Demand, reads: &mut Vec<Read>) {
        let mut scopes: BTreeMap<&GroupKind, BTreeSet<Option<&str>>> = BTreeMap::new();
        for (kind, namespace) in &demand.lists {
            let Some(served) = catalog.get(kind).filter(|served| served.is_listable()) else { continue };
            let namespace = namespace.as_deref().filter(|_| served.namespaced);
            // Lists of metadata do not count: the evidence may need whole objects.
            let projection = evidence_projection(&kind.group, &kind.kind);
            if self.snapshot.listed(kind, namespace, projection) != Listed::Done {
                scopes.entry(kind).or_default().insert(namespace);
            }
        }
        for (kind, namespaces) in scopes {
            let Some(served) = catalog.get(kind) else { continue };
            for namespace in self.together(namespaces) {
                let projection = evidence_projection(&kind.group, &kind.kind);
                reads.push(list(served, namespace.map(str::to_owned), None, projection));
            }
        }
    }

    /// Replaces a set of namespaces by the single item `None`, for all, if it has that item already, or has more than
    /// [`MAX_NAMESPACED_LISTS`] and the query has no namespace.
    fn together<'n>(&self, namespaces: BTreeSet<Option<&'n str>>) -> BTreeSet<Option<&'n str>> {
        let is_all = self.namespace.is_none() && namespaces.len() > MAX_NAMESPACED_LISTS;
        if is_all || namespaces.contains(&None) { BTreeSet::from([None]) } else { namespaces }
    }

    fn objects(
        &self,
        catalog: &KindCatalog,
        demand: &Demand,
        named: &mut NamedEvidence,
        reads: &mut Vec<Read>,
    ) {
        let mut groups: BTreeMap<(GroupKind, Option<String>), NamedObjects<'_>> = BTreeMap::new();
        for (key, namespaces) in &demand.objects {
            let kind = key.group_kind();
            let Some(served) = catalog.get(&kind) else { continue };
            if served.namespaced == key.namespace.is_empty() && served.namespaced {
                continue;
            }
            let namespace = served.namespaced.then(|| key.namespace.clone());
            let projection = evidence_projection(&kind.group, &kind.kind);
            let is_coming = reads.iter().any(|read| {
                (&read.group, &read.kind) == (&kind.group, &kind.kind)
                    && read.projection.covers(projection)
                    && (read.namespace.is_none() || read.namespace == namespace)
            });
            let key = ObjectKey { namespace: namespace.clone().unwrap_or_default(), ..key.clone() };
            // An object that a list could not return cannot be read by name either.
            let is_known = matches!(self.snapshot.get(key.as_ref()), Presence::Present(_));
            let is_listed = self.snapshot.listed(&kind, namespace.as_deref(), projection) == Listed::Done;
            let is_lost = is_listed && !is_known;
            if !is_coming && !is_lost && !self.snapshot.was_read(&key, projection) {
                groups.entry((kind, namespace)).or_default().insert(key, namespaces);
            }
        }
        let mut wanted: BTreeMap<GroupKind, Vec<NamedRead>> = BTreeMap::new();
        for ((kind, namespace), keys) in groups {
            let Some(served) = catalog.get(&kind) else { continue };
            let projection = evidence_projection(&kind.group, &kind.kind);
            let is_unlisted = self.snapshot.listed(&kind, namespace.as_deref(), projection) != Listed::Done;
            let of_kind = wanted.entry(kind).or_default();
            if keys.len() > MAX_SINGLE_GETS && is_unlisted && served.is_listable() {
                let read = list(served, namespace, None, projection);
                let named_by = keys.values().flat_map(|namespaces| (*namespaces).clone()).collect();
                of_kind.push(NamedRead { read, objects: keys.len(), named_by });
            } else {
                let single = keys.into_iter().filter_map(|(key, namespaces)| {
                    let read = self.object(catalog, &key, projection)?;
                    Some(NamedRead { read, objects: 1, named_by: namespaces.clone() })
                });
                of_kind.extend(single);
            }
        }
        self.widen(catalog, &mut wanted, named.room(), reads);
        reads.extend(named.grant(wanted.into_values().flatten().collect()));
    }

    /// Replaces reads by name with one list of their kind, until at most `room` are left: only for kinds of which
    /// metadata suffices and with more than [`MAX_SINGLE_GETS`] reads, the most reads first. Does nothing for a reader
    /// who asks for one namespace, who may not be allowed to list all.
    fn widen(
        &self,
        catalog: &KindCatalog,
        wanted: &mut BTreeMap<GroupKind, Vec<NamedRead>>,
        room: usize,
        reads: &mut Vec<Read>,
    ) {
        let mut sum: usize = wanted.values().map(Vec::len).sum();
        let is_cheap = |kind: &GroupKind| {
            let is_listable = catalog.get(kind).is_some_and(ServedKind::is_listable);
            is_listable && evidence_projection(&kind.group, &kind.kind) == Projection::Metadata
        };
        while sum > room && self.namespace.is_none() {
            let cheap = wanted.iter().filter(|(kind, own)| own.len() > MAX_SINGLE_GETS && is_cheap(kind));
            let Some(kind) = cheap.max_by_key(|(_, own)| own.len()).map(|(kind, _)| kind.clone()) else {
                break;
            };
            sum -= wanted.remove(&kind).map_or(0, |own| own.len());
            let served = catalog.get(&kind).into_iter();
            reads.extend(served.map(|served| list(served, None, None, Projection::Metadata)));
        }
    }

    fn events(&self, catalog: &KindCatalog, demand: &Demand, reads: &mut Vec<Read>) {
        let kind = GroupKind::new("", "Event");
        let Some(served) = catalog.get(&kind) else { return };
        let unschedulable: BTreeSet<&str> = self
            .snapshot
            .of_kind("", "Pod", None)
            .filter(|pod| pod.projection == Projection::Full && is_unschedulable(&pod.object))
            .map(|pod| pod.key.namespace)
            .collect();
        for (fields, only) in [(WARNINGS, None), (OF_AUTOSCALERS, Some(unschedulable))] {
            let target = Target::List { labels: None, fields: Some(fields.to_owned()) };
            let is_new = |namespace: &&str| {
                let was_selected =
                    |place| self.snapshot.was_selected(&kind, place, &target, Projection::Full);
                self.snapshot.listed(&kind, Some(namespace), Projection::Full) != Listed::Done
                    && !was_selected(Some(namespace))
                    && !was_selected(None)
            };
            let namespaces = demand.events.iter().map(String::as_str);
            let namespaces = namespaces.filter(|it| only.as_ref().is_none_or(|only| only.contains(it)));
            for namespace in self.together(namespaces.filter(is_new).map(Some).collect()) {
                let read = list(served, namespace.map(str::to_owned), None, Projection::Full);
                reads.push(Read { target: target.clone(), ..read });
            }
        }
    }
}

const IS_NAMED_BY_PODS: [(&str, &str); 4] =
    [("", "ConfigMap"), ("", "Node"), ("", "Secret"), ("", "ServiceAccount")];

/// Returns true if the status of a CronJob proves that its last Job succeeded; false for other kinds.
///
/// Returns false where Jobs may overlap, because the one that ended last need not be the last one that started.
fn is_done(object: &Object<'_>) -> bool {
    let at = |path: &[&str]| time(object.at(path));
    object.kind() == "CronJob"
        && matches!(&*object.text(&["spec", "concurrencyPolicy"]), "Forbid" | "Replace")
        && at(&["status", "lastSuccessfulTime"])
            .is_some_and(|success| at(&["status", "lastScheduleTime"]).is_some_and(|last| success >= last))
}

/// Returns the kinds that the controller of a `kind` may create as dependents: for a custom resource (its group has a
/// dot and does not end in `.k8s.io`) up to [`MAX_CONTROLLED_KINDS`] of its own and related API groups, the built-in
/// workloads, and Pods. Empty for other kinds than these and workloads.
fn made_by(catalog: &KindCatalog, kind: &GroupKind) -> Vec<GroupKind> {
    let pod = || GroupKind::new("", "Pod");
    let set = || GroupKind::new("apps", "ReplicaSet");
    match (&*kind.group, &*kind.kind) {
        ("apps" | "extensions", "Deployment") => vec![set(), pod()],
        ("apps" | "extensions", "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job")
        | ("", "ReplicationController") => vec![pod()],
        ("batch", "CronJob") => vec![GroupKind::new("batch", "Job")],
        (group, _) if group.contains('.') && !group.ends_with(".k8s.io") => {
            let is_family = |served: &&ServedKind| {
                let (one, other) = (served.group.as_str(), group);
                let is_below =
                    |one: &str, other: &str| one.strip_suffix(other).is_some_and(|it| it.ends_with('.'));
                served.is_listable() && (one == other || is_below(one, other) || is_below(other, one))
            };
            let family = catalog.iter().filter(is_family).take(MAX_CONTROLLED_KINDS);
            let mut kinds: Vec<_> =
                family.map(|served| GroupKind::new(&*served.group, &*served.kind)).collect();
            let workloads =
                ["DaemonSet", "Deployment", "StatefulSet"].map(|kind| GroupKind::new("apps", kind));
            kinds.extend(workloads);
            kinds.extend([set(), GroupKind::new("batch", "Job"), pod()]);
            kinds
        }
        _ => Vec::new(),
    }
}

/// Returns the kinds of the objects that remain in a terminating namespace, as the message of its condition names them:
/// `pods. has 2 resource instances`. At most [`MAX_CONTROLLED_KINDS`], in the order of the message.
fn remaining<'c>(catalog: &'c KindCatalog, namespace: &Object<'_>) -> Vec<&'c ServedKind> {
    let message = namespace.condition("NamespaceContentRemaining").and_then(|it| it.get("message")?.as_str());
    let message = message.unwrap_or_default();
    let words: Vec<&str> = message.split_whitespace().collect();
    let named = words.windows(2).filter(|pair| pair[1] == "has").map(|pair| pair[0]);
    let served = named.filter_map(|resource| {
        let (plural, group) = resource.split_once('.')?;
        catalog.iter().find(|served| served.plural == plural && served.group == group)
    });
    served.take(MAX_CONTROLLED_KINDS).collect()
}

fn is_ready(pod: &Object<'_>) -> bool {
    pod.condition_is("Ready", "True") && pod.text(&["metadata", "deletionTimestamp"]).is_empty()
}

fn is_unschedulable(pod: &Object<'_>) -> bool {
    pod.condition_is("PodScheduled", "False")
}

/// Returns true if a container of a Pod waits for another reason than that it is starting.
fn is_complained_of(pod: &Object<'_>) -> bool {
    let lists = ["initContainerStatuses", "containerStatuses"].into_iter();
    let lists = lists.filter_map(|key| pod.at(&["status", key])?.items());
    let reasons = lists.flatten().filter_map(|status: Value<'_>| {
        status.at(&["state", "waiting", "reason"])?.as_str().map(|reason| reason.into_owned())
    });
    let mut complaints =
        reasons.filter(|reason| !matches!(reason.as_str(), "" | "ContainerCreating" | "PodInitializing"));
    complaints.next().is_some()
}
