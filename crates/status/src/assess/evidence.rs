//! Evidence from the state of a cluster, and a cluster state in memory.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use taffrail_object::json::Value;
use taffrail_object::kinds::is_namespaced;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef, Projection};

use crate::assess::edges;
use crate::cluster_state::{ClusterState, Listing, Observed, Presence};
use crate::costs::Costs;
use crate::event::{Event, Regarding};
use crate::rules::{ObjectContext, Rules};
use crate::verdict::Verdict;

/// The kinds, as group and kind, whose objects are evidence only by existing or not.
const EXISTENCE: [(&str, &str); 3] = [("", "ConfigMap"), ("", "Secret"), ("", "ServiceAccount")];

/// Returns the part of an object that must be read so that it can serve as evidence: metadata for the kinds in
/// `EXISTENCE`, else the whole object.
#[inline]
pub fn evidence_projection(group: &str, kind: &str) -> Projection {
    if EXISTENCE.contains(&(group, kind)) { Projection::Metadata } else { Projection::Full }
}

/// Returns true if the part of the object that was read suffices as evidence: all of it, or its metadata if the object
/// is being deleted or its kind needs no more. A body that was not read must not pass for empty fields.
#[inline]
pub fn is_evidence(observed: &Observed<'_>) -> bool {
    observed.projection == Projection::Full
        || evidence_projection(observed.key.group, observed.key.kind) == Projection::Metadata
        || !observed.object.text(&["metadata", "deletionTimestamp"]).is_empty()
}

/// A cluster state used as evidence, and the costs of using it.
#[derive(Clone, Copy)]
pub struct Evidence<'e> {
    state: &'e dyn ClusterState,
    costs: Option<&'e Costs>,
}

impl<'e, S: ClusterState> From<&'e S> for Evidence<'e> {
    fn from(state: &'e S) -> Evidence<'e> {
        Evidence::of(state)
    }
}

impl<'e> From<&'e (dyn ClusterState + 'e)> for Evidence<'e> {
    fn from(state: &'e (dyn ClusterState + 'e)) -> Evidence<'e> {
        Evidence::of(state)
    }
}

impl<'e> Evidence<'e> {
    /// Creates evidence from the state of a cluster, without a cost limit.
    pub fn of(state: &'e dyn ClusterState) -> Evidence<'e> {
        Evidence { state, costs: None }
    }

    /// Returns the evidence with limits on the cost of using it; `costs` holds what was spent before.
    pub fn at_cost(self, costs: &'e Costs) -> Evidence<'e> {
        Evidence { costs: Some(costs), ..self }
    }

    pub(super) fn costs(self) -> Option<&'e Costs> {
        self.costs
    }

    /// Returns the cluster state, for lookups that need metadata only.
    pub(super) fn state(self) -> &'e dyn ClusterState {
        self.state
    }

    pub(super) fn get(self, key: ObjectKeyRef<'_>) -> Presence<'e, Object<'e>> {
        match self.state.get(key) {
            Presence::Present(observed) if is_evidence(&observed) => Presence::Present(observed.object),
            Presence::Present(_) => {
                Presence::Unobserved(Cow::Borrowed("only the object's metadata was read"))
            }
            Presence::Absent => Presence::Absent,
            Presence::Unobserved(why) => Presence::Unobserved(why),
        }
    }

    pub(super) fn owned(
        self,
        uid: &str,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = Object<'e>> + use<'e> {
        whole(self.state.owned(uid, namespace))
    }

    pub(super) fn dependents(
        self,
        uid: &str,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = Object<'e>> + use<'e> {
        whole(self.state.dependents(uid, namespace))
    }

    pub(super) fn of_kind(
        self,
        group: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = Object<'e>> + use<'e> {
        whole(self.state.of_kind(group, kind, namespace))
    }

    pub(super) fn users(self, namespace: &str, claim: &str) -> impl Iterator<Item = Object<'e>> + use<'e> {
        whole(self.state.users(namespace, claim))
    }

    pub(super) fn budgets(
        self,
        namespace: &str,
        labels: Option<Value<'_>>,
    ) -> impl Iterator<Item = Object<'e>> + use<'e> {
        whole(self.state.budgets(namespace, labels))
    }

    pub(super) fn terminating_on(self, node: &str) -> impl Iterator<Item = Object<'e>> + use<'e> {
        whole(self.state.terminating_on(node))
    }

    pub(super) fn definition(self, group: &str, kind: &str) -> Option<Object<'e>> {
        self.state.definition(group, kind).filter(is_evidence).map(|observed| observed.object)
    }

    pub(super) fn in_namespace(self, namespace: &str) -> impl Iterator<Item = Object<'e>> + use<'e> {
        whole(self.state.in_namespace(namespace))
    }

    pub(super) fn events(self, about: &Object<'_>) -> Vec<Event<'e>> {
        self.state.events(about)
    }

    /// Judges an object by `rules`, with the objects in its namespace (of a cluster-scoped object, the cluster-scoped
    /// ones) that name it as owner, and its status subresource, from the cluster state as context. `claimant` is the
    /// namespace charged for the cost; `None` for the object's own.
    pub fn judge(
        self,
        rules: &dyn Rules,
        object: &Object<'_>,
        claimant: Option<&str>,
        now: Timestamp,
    ) -> Verdict {
        let uid = object.text(&["metadata", "uid"]);
        let children = || {
            let beside = Some(&*object.namespace());
            let owner = Owner::of(object);
            let children = self.dependents(&uid, beside).filter(|child| owner.hears(child));
            children.filter_map(|child| child.root().to_tree().ok()).collect()
        };
        let context = ObjectContext {
            has_status_subresource: self.has_status_subresource(object),
            children: (!uid.is_empty()).then_some(&children),
            costs: self.costs,
            claimant,
        };
        Verdict::of(rules.judge(object, &context, now))
    }

    fn has_status_subresource(self, object: &Object<'_>) -> Option<bool> {
        // The built-in kinds are known, whatever a server reports.
        match is_namespaced(object.group(), object.kind()) {
            Some(_) => None,
            None => self.state.has_status_subresource(object.group(), object.version(), object.kind()),
        }
    }
}

fn whole<'e>(listing: Listing<'e>) -> impl Iterator<Item = Object<'e>> + use<'e> {
    listing.filter(is_evidence).map(|observed| observed.object)
}

/// A cluster state in memory. Objects that it does not contain are absent, unless
/// [`set_unobserved`](Dump::set_unobserved) was called for their kind.
///
/// If several objects have the same key, the last one counts.
#[derive(Debug, Default)]
pub struct Dump<'a> {
    objects: Vec<(ObjectKey, Object<'a>)>,
    owned: HashMap<String, Vec<usize>>,
    /// Indices of dependents by the UIDs of their owners that are not controllers.
    held: HashMap<String, Vec<usize>>,
    events: HashMap<(String, String), Vec<(Event<'a>, Regarding<'a>)>>,
    /// Indices of Pods by the PersistentVolumeClaims they use.
    users: HashMap<ObjectKey, Vec<usize>>,
    /// Indices of CustomResourceDefinitions by the group and kind that they define.
    definitions: HashMap<(String, String), usize>,
    unobserved: BTreeSet<(String, String)>,
}

impl<'a> Dump<'a> {
    /// Creates a state with `objects`, which may include events.
    pub fn new(objects: impl IntoIterator<Item = Object<'a>>) -> Dump<'a> {
        let mut named: Vec<_> = objects.into_iter().map(|object| (ObjectKey::of(&object), object)).collect();
        named.reverse();
        named.sort_by(|(one, _), (other, _)| one.cmp(other));
        named.dedup_by(|(one, _), (other, _)| one == other);
        let mut dump = Dump { objects: named, ..Dump::default() };
        let mut read = BTreeSet::new();
        for (at, (name, object)) in dump.objects.iter().enumerate() {
            let (controller, others) = owners(object.metadata());
            if let Some(uid) = controller {
                dump.owned.entry(uid.into_owned()).or_default().push(at);
            }
            for uid in others {
                dump.held.entry(uid.into_owned()).or_default().push(at);
            }
            match (object.group(), object.kind()) {
                ("", "Pod") => {
                    for claim in claims(object) {
                        dump.users.entry(claim).or_default().push(at);
                    }
                }
                DEFINITION => {
                    dump.definitions.insert(defined(object), at);
                }
                _ => {}
            }
            // The same event is served by two API groups.
            if let Some((event, regarding)) = Event::read(object)
                && read.insert((&name.namespace, &name.name))
            {
                let key = (regarding.kind.clone().into_owned(), regarding.name.clone().into_owned());
                dump.events.entry(key).or_default().push((event, regarding));
            }
        }
        dump
    }

    /// Marks a kind as unobserved: it was not read, or not completely, so an absent object of it proves nothing.
    pub fn set_unobserved(&mut self, group: &str, kind: &str) {
        self.unobserved.insert((group.to_owned(), kind.to_owned()));
    }

    fn within<'s>(&'s self, places: Option<&'s Vec<usize>>, namespace: Option<&str>) -> Listing<'s> {
        let namespace = namespace.map(str::to_owned);
        let objects = places.into_iter().flatten().filter_map(|&at| self.objects.get(at));
        let objects =
            objects.filter(move |(name, _)| namespace.as_ref().is_none_or(|own| *own == name.namespace));
        Box::new(objects.map(observed))
    }

    fn range(&self, group: &str, kind: &str, namespace: Option<&str>) -> &[(ObjectKey, Object<'a>)] {
        let place = |name: &ObjectKey| {
            let kinds = (name.group.as_str(), name.kind.as_str()).cmp(&(group, kind));
            kinds.then_with(|| {
                namespace.map_or(std::cmp::Ordering::Equal, |it| name.namespace.as_str().cmp(it))
            })
        };
        let start = self.objects.partition_point(|(name, _)| place(name).is_lt());
        let end = self.objects.partition_point(|(name, _)| place(name).is_le());
        self.objects.get(start..end).unwrap_or_default()
    }
}

fn observed<'e>((key, object): &'e (ObjectKey, Object<'_>)) -> Observed<'e> {
    Observed { key: key.as_ref(), object: object.clone(), projection: Projection::Full }
}

/// Group and kind of CustomResourceDefinitions.
pub(super) const DEFINITION: (&str, &str) = ("apiextensions.k8s.io", "CustomResourceDefinition");

/// Returns the group and kind that a CustomResourceDefinition defines.
pub fn defined(definition: &Object<'_>) -> (String, String) {
    let text = |path: &[&str]| definition.text(path).into_owned();
    (text(&["spec", "group"]), text(&["spec", "names", "kind"]))
}

/// Returns the keys of the PersistentVolumeClaims that a Pod mounts, also those of ephemeral volumes, without
/// duplicates.
pub fn claims(pod: &Object<'_>) -> Vec<ObjectKey> {
    let mut claims: Vec<_> = edges::claims(pod).into_iter().map(|reference| reference.to).collect();
    let mut known: HashSet<ObjectKey> = claims.iter().cloned().collect();
    // The claim of an ephemeral volume is named by convention, not by a field.
    for volume in pod.at(&["spec", "volumes"]).and_then(Value::items).into_iter().flatten() {
        if volume.get("ephemeral").is_some_and(|ephemeral| !ephemeral.is_null()) {
            let volume = volume.get("name").and_then(Value::as_str).unwrap_or_default();
            let name = format!("{}-{volume}", pod.name());
            let claim = ObjectKey::new("", "PersistentVolumeClaim", pod.namespace(), &name);
            if known.insert(claim.clone()) {
                claims.push(claim);
            }
        }
    }
    claims
}

/// Returns the owner reference of an object's controller; `None` if it has none, or one without UID.
pub(super) fn controller<'a>(object: &Object<'a>) -> Option<Value<'a>> {
    let mut owners = object.at(&["metadata", "ownerReferences"])?.items()?;
    owners
        .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))
        .filter(|owner| !uid_of(*owner).is_empty())
}

/// Returns the UIDs in the `ownerReferences` of an object's metadata: that of the first controller (`None` without
/// one), and all others that are not empty.
pub fn owners<'a>(metadata: Option<Value<'a>>) -> (Option<Cow<'a, str>>, Vec<Cow<'a, str>>) {
    let references = metadata.and_then(|it| it.get("ownerReferences")?.rows(["uid", "controller"]));
    let Some(references) = references else { return (None, Vec::new()) };
    let owner = |[uid, controls]: [Option<Value<'a>>; 2]| {
        (said(uid), controls.and_then(Value::as_bool) == Some(true))
    };
    let mut all: Vec<(Cow<'a, str>, bool)> = references.flatten().map(owner).collect();
    let first = all.iter().position(|(_, controls)| *controls);
    let controller = first.map(|at| all.remove(at).0).filter(|uid| !uid.is_empty());
    let uids = all.into_iter().map(|(uid, _)| uid);
    let others = uids.filter(|uid| !uid.is_empty() && controller.as_ref() != Some(uid)).collect();
    (controller, others)
}

/// The fields of an object by which owner references are compared with it: group, kind, namespace, name and UID.
pub(super) struct Owner<'o> {
    group: &'o str,
    kind: &'o str,
    namespace: Cow<'o, str>,
    name: Cow<'o, str>,
    uid: Cow<'o, str>,
}

impl<'o> Owner<'o> {
    pub(super) fn of(object: &'o Object<'_>) -> Owner<'o> {
        Owner {
            group: object.group(),
            kind: object.kind(),
            namespace: object.namespace(),
            name: object.name(),
            uid: object.text(&["metadata", "uid"]),
        }
    }

    /// Returns true if an owner reference of `object` has this owner's UID, and its kind, name and group where it
    /// states them: an index keeps only the UID. As in the API's garbage collector, a namespaced object owns only
    /// objects in its namespace.
    pub(super) fn can_own(&self, object: &Object<'_>) -> bool {
        let wanted = ["namespace", "ownerReferences"];
        let [namespace, references] = object.metadata().map_or([None; 2], |metadata| metadata.pick(wanted));
        if !self.namespace.is_empty() && self.namespace != said(namespace) {
            return false;
        }
        let names_it = |[uid, kind, name, version]: [Option<Value<'_>>; 4]| {
            let is = |value, own: &str| {
                let said = said(value);
                said.is_empty() || said == own
            };
            let is_group = || {
                let version = said(version);
                let group = version.split_once('/').map_or("", |(group, _)| group);
                // Built-in workloads are, or were, served in two groups, and a reference may name either.
                version.is_empty() || group == self.group || [group, self.group].contains(&"extensions")
            };
            said(uid) == self.uid && is(kind, self.kind) && is(name, &self.name) && is_group()
        };
        let references = references.and_then(|it| it.rows(["uid", "kind", "name", "apiVersion"]));
        references.into_iter().flatten().any(|reference| names_it(reference.unwrap_or([None; 4])))
    }

    /// Returns true if the owner [can own](Owner::can_own) `object`, and the state of `object` may decide the owner's
    /// status. A namespaced object may not decide that of a cluster-scoped owner: the API does not check its owner
    /// reference, and rights in one namespace suffice to write it.
    pub(super) fn hears(&self, object: &Object<'_>) -> bool {
        self.can_own(object) && (!self.namespace.is_empty() || object.namespace().is_empty())
    }
}

/// Returns the text of a value, or an empty text.
fn said(value: Option<Value<'_>>) -> Cow<'_, str> {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn uid_of(owner: Value<'_>) -> Cow<'_, str> {
    owner.get("uid").and_then(Value::as_str).unwrap_or_default()
}

impl ClusterState for Dump<'_> {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        let ObjectKeyRef { group, kind, namespace, name } = key;
        let objects = self.range(group, kind, Some(namespace));
        match objects.binary_search_by(|(found, _)| found.name.as_str().cmp(name)) {
            Ok(at) => objects.get(at).map_or(Presence::Absent, |entry| Presence::Present(observed(entry))),
            Err(_) if self.is_observed(group, kind, None) => Presence::Absent,
            Err(_) => Presence::Unobserved(Cow::Borrowed("the object was not read")),
        }
    }

    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.within(self.owned.get(uid), namespace)
    }

    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        Box::new(self.owned(uid, namespace).chain(self.within(self.held.get(uid), namespace)))
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        Box::new(self.range(group, kind, namespace).iter().map(observed))
    }

    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        let claim = ObjectKey::new("", "PersistentVolumeClaim", namespace, claim);
        let users = self.users.get(&claim).into_iter().flatten();
        Box::new(users.filter_map(|&at| self.objects.get(at).map(observed)))
    }

    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        let at = *self.definitions.get(&(group.to_owned(), kind.to_owned()))?;
        self.objects.get(at).map(observed)
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        let namespace = namespace.to_owned();
        let there = self.objects.iter().filter(move |(name, _)| name.namespace == namespace);
        Box::new(there.map(observed))
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        let key = (about.kind().to_owned(), about.name().into_owned());
        let events = self.events.get(&key).into_iter().flatten();
        events.filter(|(_, regarding)| regarding.is(about)).map(|(event, _)| event.clone()).collect()
    }

    fn is_observed(&self, group: &str, kind: &str, _namespace: Option<&str>) -> bool {
        !self.unobserved.contains(&(group.to_owned(), kind.to_owned()))
    }
    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        !self.range(group, kind, Some(namespace)).is_empty()
            || self.definitions.contains_key(&(group.to_owned(), kind.to_owned()))
    }
}
