//! The state of a cluster, as a snapshot holds it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::OnceLock;

use taffrail_object::json::Value;
use taffrail_object::selector::Operator;
use taffrail_object::{AsObjectKey, GroupKind, LabelSelector, Object, ObjectKey, ObjectKeyRef, Projection};
use taffrail_status::assess::{self, Event, evidence_projection};
use taffrail_status::{ClusterState, Listing, Observed, Presence};

use super::marks::Mark;
use super::{Rest, Snapshot, Stored};
use crate::objects::Objects;
use crate::owners::Pointers;

/// Indexes of the objects of a snapshot. Each is made when the first question needs it: a cluster in which all is well costs
/// nothing.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    pointers: OnceLock<Pointers>,
    /// Pods by namespace and name of the claims they use.
    users: OnceLock<HashMap<(String, String), Vec<ObjectKey>>>,
    /// Pods that are being deleted, by node.
    terminating: OnceLock<HashMap<String, Vec<ObjectKey>>>,
    /// CustomResourceDefinitions by the group and kind they define.
    definitions: OnceLock<HashMap<(String, String), ObjectKey>>,
    budgets: OnceLock<Budgets>,
    /// The objects of each namespace, by its name.
    contents: OnceLock<HashMap<String, Vec<ObjectKey>>>,
    /// The namespaces of which it is known that their Pods were left out.
    without_pods: OnceLock<HashSet<String>>,
}

/// A label, and its value.
type Label = (String, String);

/// PodDisruptionBudgets by namespace and by one label that they want; those that want none by nothing.
#[derive(Debug)]
struct Budgets(HashMap<String, HashMap<Option<Label>, Vec<ObjectKey>>>);

impl Budgets {
    fn of<'a>(budgets: impl Iterator<Item = Observed<'a>>) -> Budgets {
        let read = |budget: Observed<'a>| {
            let selector = LabelSelector::of_object(budget.object.at(&["spec", "selector"]));
            let equal = selector.requirements().filter(|wanted| wanted.operator == Operator::Equals);
            let wanted: Vec<Label> =
                equal.map(|wanted| (wanted.key.clone(), wanted.values.concat())).collect();
            (wanted, budget.key.to_owned())
        };
        let budgets: Vec<_> = budgets.map(read).collect();
        let mut frequency: HashMap<Label, usize> = HashMap::new();
        for label in budgets.iter().flat_map(|(wanted, _)| wanted) {
            *frequency.entry(label.clone()).or_default() += 1;
        }
        let mut index: HashMap<String, HashMap<_, Vec<_>>> = HashMap::new();
        for (wanted, budget) in budgets {
            // What all have in common tells none of them apart.
            let rarest = wanted.into_iter().min_by_key(|label| frequency.get(label).copied());
            index.entry(budget.namespace.clone()).or_default().entry(rarest).or_default().push(budget);
        }
        Budgets(index)
    }

    fn of_labels(&self, namespace: &str, own: Option<Value<'_>>) -> Vec<&ObjectKey> {
        let Some(budgets) = self.0.get(namespace) else { return Vec::new() };
        let keys = labels(own).into_iter().map(Some).chain([None]);
        keys.filter_map(|key| budgets.get(&key)).flatten().collect()
    }
}

/// Labels, each key once.
fn labels(value: Option<Value<'_>>) -> Vec<Label> {
    let members = value.and_then(Value::members).into_iter().flatten();
    let texts = members.filter_map(|(key, value)| Some((key.into_owned(), value.as_str()?.into_owned())));
    texts.collect::<BTreeMap<_, _>>().into_iter().collect()
}

/// Returns the namespaces without Pods in which a controller says that it has some: the author of the dump left the Pods out.
pub(crate) fn without_pods(objects: &dyn ClusterState) -> HashSet<String> {
    const HAVE_PODS: [(&str, &str); 4] = [
        ("ReplicaSet", "replicas"),
        ("StatefulSet", "replicas"),
        ("Deployment", "replicas"),
        ("DaemonSet", "currentNumberScheduled"),
    ];

    let of_kind = |(kind, count): (&'static str, &'static str)| {
        let has_pods = move |controller: &Observed<'_>| {
            controller.object.at(&["status", count]).and_then(Value::as_i64).is_some_and(|count| count > 0)
        };
        objects
            .of_kind("apps", kind, None)
            .filter(has_pods)
            .map(|controller| controller.key.namespace.to_owned())
    };
    let namespaces: HashSet<String> = HAVE_PODS.into_iter().flat_map(of_kind).collect();
    let lacks_pods = |namespace: &String| objects.of_kind("", "Pod", Some(namespace)).next().is_none();
    namespaces.into_iter().filter(lacks_pods).collect()
}

impl Snapshot {
    fn missing(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        if let Some(message) = &self.lost {
            return Presence::Unobserved(Cow::Borrowed(message));
        }
        if let Some(read) = self.unread.get(&key as &dyn AsObjectKey) {
            let answers = || read.at_least(Projection::Metadata);
            return match answers().find_map(Option::as_ref).filter(|_| answers().all(Option::is_some)) {
                None => Presence::Absent,
                Some(message) => Presence::Unobserved(Cow::Borrowed(message)),
            };
        }
        let kind = key.group_kind();
        let marks = self.kinds.get(&kind);
        let find = |namespace| marks.and_then(|marks| marks.find(namespace, Projection::Metadata));
        let mark = find(Some(key.namespace)).or_else(|| find(None));
        match mark {
            Some(Mark::Listed) => return Presence::Absent,
            Some(Mark::Selected) => {
                return Presence::Unobserved(Cow::Borrowed("only some of its kind were read"));
            }
            Some(Mark::Failed { message, .. }) => return Presence::Unobserved(Cow::Borrowed(message)),
            Some(Mark::NotServed { .. }) | None => {}
        }
        match &self.catalog {
            Some(catalog) if !catalog.may_serve(&kind) => return Presence::Absent,
            Some(catalog) => {
                if let Some(reason) = catalog.broken(&kind.group) {
                    return Presence::Unobserved(Cow::Borrowed(reason));
                }
            }
            None if mark.is_some() => return Presence::Absent,
            None => {}
        }
        match self.rest {
            Rest::Absent => Presence::Absent,
            Rest::Unobserved(reason) => Presence::Unobserved(Cow::Borrowed(reason)),
        }
    }

    fn pointers(&self) -> &Pointers {
        self.indexes.pointers.get_or_init(|| Pointers::of(self.all()))
    }

    fn each<'a>(&'a self, keys: impl IntoIterator<Item = &'a ObjectKey> + 'a) -> Listing<'a> {
        Box::new(keys.into_iter().filter_map(|key| self.objects.get(key)?.observed(key)))
    }

    /// Returns the events about objects of this kind and name in a namespace, or in none, each once.
    pub fn events_about(&self, kind: &str, namespace: &str, name: &str) -> Listing<'_> {
        self.each(self.pointers().events(kind, namespace, name))
    }
}

impl ClusterState for Snapshot {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        let found = self.objects.get_key_value(&key as &dyn AsObjectKey);
        let observed = found.and_then(|(key, stored)| stored.observed(key));
        observed.map_or_else(|| self.missing(key), Presence::Present)
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        let Some(namespace) = namespace else {
            return Box::new(self.range(group, kind).filter_map(|(key, stored)| stored.observed(key)));
        };
        let after = self.from(ObjectKeyRef::new(group, kind, namespace, ""));
        let first = after.clone().next().map(|(key, _)| key);
        let first = first.filter(|key| key.group == group && key.kind == kind && key.namespace == namespace);
        let is_beside = move |(key, _): &(&ObjectKey, &Stored)| {
            first.is_some_and(|first| {
                key.namespace == first.namespace && key.kind == first.kind && key.group == first.group
            })
        };
        Box::new(after.take_while(is_beside).filter_map(|(key, stored)| stored.observed(key)))
    }

    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.each(self.pointers().controlled(uid, namespace))
    }

    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        let pointers = self.pointers();
        self.each(pointers.controlled(uid, namespace).iter().chain(pointers.held(uid, namespace)))
    }

    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        let users = self.indexes.users.get_or_init(|| {
            let mut users: HashMap<_, Vec<_>> = HashMap::new();
            for pod in self.of_kind("", "Pod", None) {
                for claim in assess::claims(&pod.object) {
                    users.entry((claim.namespace, claim.name)).or_default().push(pod.key.to_owned());
                }
            }
            users
        });
        self.each(users.get(&(namespace.to_owned(), claim.to_owned())).into_iter().flatten())
    }

    fn knows_users(&self, namespace: &str) -> bool {
        self.is_observed("", "Pod", Some(namespace))
            && !self.indexes.without_pods.get_or_init(|| without_pods(self)).contains(namespace)
    }

    fn budgets(&self, namespace: &str, labels: Option<Value<'_>>) -> Listing<'_> {
        let all = || Budgets::of(self.of_kind("policy", "PodDisruptionBudget", None));
        self.each(self.indexes.budgets.get_or_init(all).of_labels(namespace, labels))
    }

    fn terminating_on(&self, node: &str) -> Listing<'_> {
        let terminating = self.indexes.terminating.get_or_init(|| {
            let mut terminating: HashMap<_, Vec<_>> = HashMap::new();
            for pod in self.of_kind("", "Pod", None) {
                if !pod.object.text(&["metadata", "deletionTimestamp"]).is_empty() {
                    let node = pod.object.text(&["spec", "nodeName"]).into_owned();
                    terminating.entry(node).or_default().push(pod.key.to_owned());
                }
            }
            terminating
        });
        self.each(terminating.get(node).into_iter().flatten())
    }

    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        let definitions = self.indexes.definitions.get_or_init(|| {
            let all = self.of_kind("apiextensions.k8s.io", "CustomResourceDefinition", None);
            all.map(|observed| (assess::defined(&observed.object), observed.key.to_owned())).collect()
        });
        let key = definitions.get(&(group.to_owned(), kind.to_owned()))?;
        self.objects.get(key)?.observed(key)
    }

    fn has_status_subresource(&self, group: &str, version: &str, kind: &str) -> Option<bool> {
        let served = self.catalog.as_ref()?.get(&GroupKind::new(group, kind))?;
        (served.version == version).then_some(served.has_status_subresource)
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        let contents = self.indexes.contents.get_or_init(|| {
            let mut contents: HashMap<String, Vec<_>> = HashMap::new();
            for observed in self.all() {
                match contents.get_mut(observed.key.namespace) {
                    Some(keys) => keys.push(observed.key.to_owned()),
                    None => drop(
                        contents.insert(observed.key.namespace.to_owned(), vec![observed.key.to_owned()]),
                    ),
                }
            }
            contents
        });
        self.each(contents.get(namespace).into_iter().flatten())
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        let events = self.events_about(about.kind(), &about.namespace(), &about.name());
        let read = events.filter_map(|observed| Event::read(&observed.object));
        read.filter(|(_, regarding)| regarding.is(about)).map(|(event, _)| event).collect()
    }

    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        let kind = &GroupKind::new(group, kind);
        if self.is_lost() {
            return false;
        }
        let wanted = evidence_projection(&kind.group, &kind.kind);
        let mark = self.kinds.get(kind).and_then(|marks| marks.find(namespace, wanted));
        match mark {
            Some(Mark::Listed) => return true,
            Some(Mark::Selected | Mark::Failed { .. }) => return false,
            Some(Mark::NotServed { .. }) | None => {}
        }
        match &self.catalog {
            Some(catalog) if !catalog.may_serve(kind) => true,
            Some(catalog) if catalog.broken(&kind.group).is_some() => false,
            None if mark.is_some() => true,
            _ => matches!(self.rest, Rest::Absent),
        }
    }

    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        !self.is_dump()
            || self.of_kind(group, kind, Some(namespace)).next().is_some()
            || self.definition(group, kind).is_some()
    }
}
