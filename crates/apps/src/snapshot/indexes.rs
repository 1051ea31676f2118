//! Indexes of the objects of a snapshot, each built at its first use.
//!
//! Each is built when first needed, so a cluster in which all is well costs nothing. From then on each change
//! of an object updates it, at a cost that does not depend on the other objects.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use taffrail_object::json::Value;
use taffrail_object::selector::Operator;
use taffrail_object::{AsObjectKey, LabelSelector, Object, ObjectKey, ObjectKeyRef};
use taffrail_status::assess;

use super::{Snapshot, Stored};
use crate::keyed::Keyed;
use crate::owners::ReferenceIndex;

/// The indexes of the objects of a snapshot, each built at its first use.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    pointers: OnceLock<ReferenceIndex>,
    /// Pods, by namespace and name of each PersistentVolumeClaim that they use.
    users: OnceLock<Keyed<(String, String)>>,
    /// Pods that are being deleted, by the name of their node.
    terminating: OnceLock<Keyed<String>>,
    /// CustomResourceDefinitions by the group and kind that they define; the last of several counts.
    definitions: OnceLock<Keyed<(String, String)>>,
    budgets: OnceLock<Budgets>,
    namespaces: OnceLock<HashMap<String, PodCounts>>,
    /// The keys of all objects, by namespace.
    contents: OnceLock<Keyed<String>>,
}

/// The number of Pods in a namespace, and the number of controllers there whose status reports Pods.
#[derive(Debug, Default)]
struct PodCounts {
    pods: usize,
    with_pods: usize,
}

/// The key and value of a label.
pub(crate) type Label = (String, String);

/// PodDisruptionBudgets, by namespace and one of the labels that their selector requires; `None` if it requires
/// none.
#[derive(Debug, Default)]
struct Budgets {
    by_label: HashMap<String, Keyed<Option<Label>>>,
    frequency: HashMap<Label, usize>,
}

impl Budgets {
    fn of<'a>(budgets: impl Iterator<Item = (&'a Arc<ObjectKey>, Object<'a>)>) -> Budgets {
        let budgets: Vec<_> = budgets.map(|(key, budget)| (wanted(&budget), key)).collect();
        let mut index = Budgets::default();
        for label in budgets.iter().flat_map(|(wanted, _)| wanted) {
            *index.frequency.entry(label.clone()).or_default() += 1;
        }
        for (wanted, budget) in budgets {
            index.place(wanted, budget);
        }
        index
    }

    /// Adds a budget under one of the labels in `wanted`, which its selector requires: the one that the fewest budgets
    /// require.
    fn place(&mut self, wanted: Vec<Label>, budget: &Arc<ObjectKey>) {
        let rarest = wanted.into_iter().min_by_key(|label| self.frequency.get(label).copied());
        self.by_label.entry(budget.namespace.clone()).or_default().insert(rarest, budget);
    }

    fn insert(&mut self, wanted: Vec<Label>, budget: &Arc<ObjectKey>) {
        for label in &wanted {
            *self.frequency.entry(label.clone()).or_default() += 1;
        }
        self.place(wanted, budget);
    }

    fn remove(&mut self, wanted: Vec<Label>, budget: &Arc<ObjectKey>) {
        for label in &wanted {
            if let Some(number) = self.frequency.get_mut(label) {
                *number -= 1;
                if *number == 0 {
                    self.frequency.remove(label);
                }
            }
        }
        let Some(places) = self.by_label.get_mut(&budget.namespace) else { return };
        // The rarest label depends on the budgets that existed when it was filed.
        for place in wanted.into_iter().map(Some).chain([None]) {
            if places.remove(&place, budget) {
                break;
            }
        }
        if places.is_empty() {
            self.by_label.remove(&budget.namespace);
        }
    }

    fn of_labels(&self, namespace: &str, own: Option<Value<'_>>) -> Vec<&Arc<ObjectKey>> {
        let Some(budgets) = self.by_label.get(namespace) else { return Vec::new() };
        let keys = labels(own).into_iter().map(Some).chain([None]);
        keys.flat_map(|key| budgets.get(&key)).collect()
    }
}

/// Returns the labels in `spec.selector.matchLabels` of a PodDisruptionBudget, each with its value.
pub(crate) fn wanted(budget: &Object<'_>) -> Vec<Label> {
    let selector = LabelSelector::of_object(budget.at(&["spec", "selector"]));
    let equal = selector.requirements().filter(|wanted| wanted.operator == Operator::Equals);
    equal.map(|wanted| (wanted.key.clone(), wanted.values.concat())).collect()
}

/// Returns the labels in `value`, which is the `labels` field of an object; each key once.
pub(crate) fn labels(value: Option<Value<'_>>) -> Vec<Label> {
    let members = value.and_then(Value::members).into_iter().flatten();
    let texts = members.filter_map(|(key, value)| Some((key.into_owned(), value.as_str()?.into_owned())));
    texts.collect::<BTreeMap<_, _>>().into_iter().collect()
}

pub(crate) fn is_pod(key: ObjectKeyRef<'_>) -> bool {
    key.group.is_empty() && key.kind == "Pod"
}

pub(crate) fn is_budget(key: ObjectKeyRef<'_>) -> bool {
    key.group == "policy" && key.kind == "PodDisruptionBudget"
}

pub(crate) fn is_definition(key: ObjectKeyRef<'_>) -> bool {
    key.group == "apiextensions.k8s.io" && key.kind == "CustomResourceDefinition"
}

/// The kinds of controllers that report their number of Pods, each with the status field that holds it.
pub(crate) const HAVE_PODS: [(&str, &str); 4] = [
    ("ReplicaSet", "replicas"),
    ("StatefulSet", "replicas"),
    ("Deployment", "replicas"),
    ("DaemonSet", "currentNumberScheduled"),
];

/// Returns true for a controller whose status reports at least one Pod.
pub(crate) fn has_pods(key: ObjectKeyRef<'_>, object: &Object<'_>) -> bool {
    let field = HAVE_PODS.into_iter().find(|(kind, _)| *kind == key.kind);
    let count = |(_, count)| object.at(&["status", count]).and_then(Value::as_i64);
    key.group == "apps" && field.and_then(count).is_some_and(|count| count > 0)
}

/// Returns the node of a terminating Pod, empty if it has none; `None` if the Pod is not terminating.
pub(crate) fn leaves<'a>(pod: &Object<'a>) -> Option<Cow<'a, str>> {
    let is_leaving = !pod.text(&["metadata", "deletionTimestamp"]).is_empty();
    is_leaving.then(|| pod.text(&["spec", "nodeName"]))
}

/// Returns true if two states of a Pod have the same volumes, and so use the same PersistentVolumeClaims.
pub(super) fn uses_same(one: &Object<'_>, other: &Object<'_>) -> bool {
    let [one, other] = [one, other].map(|pod| pod.at(&["spec", "volumes"]));
    one.and_then(Value::text) == other.and_then(Value::text)
}

fn claims(pod: &Object<'_>) -> impl Iterator<Item = (String, String)> + use<> {
    assess::claims(pod).into_iter().map(|claim| (claim.namespace, claim.name))
}

impl Indexes {
    /// Returns true if at least one index was built, so that changes must be applied.
    pub(super) fn are_built(&self) -> bool {
        self.pointers.get().is_some()
            || self.users.get().is_some()
            || self.terminating.get().is_some()
            || self.definitions.get().is_some()
            || self.budgets.get().is_some()
            || self.namespaces.get().is_some()
            || self.contents.get().is_some()
    }

    /// Updates the indexes for an object that was created (`old` is `None`), changed, or deleted (`new` is
    /// `None`).
    pub(super) fn replace(&mut self, key: &Arc<ObjectKey>, old: Option<&Stored>, new: Option<&Stored>) {
        if !self.are_built() {
            return;
        }
        let [old, new] = [old, new].map(|stored| Some(stored?.observed(key)?.object));
        let (old, new) = (old.as_ref(), new.as_ref());
        if let Some(pointers) = self.pointers.get_mut() {
            pointers.replace(key, old, new);
        }
        if is_pod(key.as_object_key()) {
            self.replace_pod(key, old, new);
        }
        if let Some(definitions) = self.definitions.get_mut().filter(|_| is_definition(key.as_object_key())) {
            if let Some(old) = old {
                definitions.remove(&assess::defined(old), key);
            }
            if let Some(new) = new {
                definitions.insert(assess::defined(new), key);
            }
        }
        if let Some(budgets) = self.budgets.get_mut().filter(|_| is_budget(key.as_object_key())) {
            let [old, new] = [old, new].map(|it| it.map(wanted));
            if old != new {
                if let Some(old) = old {
                    budgets.remove(old, key);
                }
                if let Some(new) = new {
                    budgets.insert(new, key);
                }
            }
        }
        if let Some(namespaces) = self.namespaces.get_mut() {
            count(namespaces, key, old, |number| *number = number.saturating_sub(1));
            count(namespaces, key, new, |number| *number += 1);
        }
        if let Some(contents) = self.contents.get_mut() {
            match (old, new) {
                (None, Some(_)) => contents.insert(key.namespace.clone(), key),
                (Some(_), None) => {
                    contents.remove(&key.namespace, key);
                }
                _ => {}
            }
        }
    }

    fn replace_pod(&mut self, key: &Arc<ObjectKey>, old: Option<&Object<'_>>, new: Option<&Object<'_>>) {
        let is_same = old.zip(new).is_some_and(|(old, new)| uses_same(old, new));
        if let Some(users) = self.users.get_mut().filter(|_| !is_same) {
            if let Some(pod) = old {
                for claim in claims(pod) {
                    users.remove(&claim, key);
                }
            }
            if let Some(pod) = new {
                claims(pod).for_each(|claim| users.insert(claim, key));
            }
        }
        if let Some(terminating) = self.terminating.get_mut() {
            if let Some(node) = old.and_then(leaves) {
                terminating.remove(&*node, key);
            }
            if let Some(node) = new.and_then(leaves) {
                terminating.insert(node.into_owned(), key);
            }
        }
    }
}

/// Applies `step` to the counts of an object's namespace, if the object is a Pod or a controller that reports Pods.
fn count(
    namespaces: &mut HashMap<String, PodCounts>,
    key: &ObjectKey,
    object: Option<&Object<'_>>,
    step: impl Fn(&mut usize),
) {
    let Some(object) = object else { return };
    let (is_pod, has_pods) = (is_pod(key.as_ref()), has_pods(key.as_ref(), object));
    if !is_pod && !has_pods {
        return;
    }
    let counts = namespaces.entry(key.namespace.clone()).or_default();
    step(if is_pod { &mut counts.pods } else { &mut counts.with_pods });
}

impl Snapshot {
    /// Lists the objects of a kind, each with its key.
    fn kept(&self, group: &str, kind: &str) -> impl Iterator<Item = (&Arc<ObjectKey>, Object<'_>)> + use<'_> {
        let all = self.range(group, kind);
        all.filter_map(|(key, stored)| Some((key, stored.observed(key)?.object)))
    }

    fn of_pods<'a, K: Hash + Eq, P: Hash + Eq + Into<K>, I: IntoIterator<Item = P>>(
        &'a self,
        places: impl Fn(&Object<'a>) -> I,
    ) -> Keyed<K> {
        let pods = self.kept("", "Pod");
        Keyed::of(pods.flat_map(|(key, pod)| places(&pod).into_iter().map(move |place| (place, key))))
    }

    pub(super) fn pointers(&self) -> &ReferenceIndex {
        let objects = || self.objects.iter().map(|(key, stored)| (key, stored.document.root()));
        self.indexes.pointers.get_or_init(|| ReferenceIndex::of(objects()))
    }

    /// Returns the Pods in `namespace` that use the PersistentVolumeClaim `claim`.
    pub(super) fn users_of(
        &self,
        namespace: &str,
        claim: &str,
    ) -> impl Iterator<Item = &Arc<ObjectKey>> + use<'_> {
        let users = self.indexes.users.get_or_init(|| self.of_pods(claims));
        users.get(&(namespace.to_owned(), claim.to_owned()))
    }

    /// Returns the terminating Pods on a node.
    pub(super) fn leaving(&self, node: &str) -> impl Iterator<Item = &Arc<ObjectKey>> + use<'_> {
        self.indexes.terminating.get_or_init(|| self.of_pods(leaves)).get(node)
    }

    /// Returns the CustomResourceDefinition of `group` and `kind`, of several the last by its key; `None` if there is
    /// none.
    pub(super) fn defining(&self, group: &str, kind: &str) -> Option<&Arc<ObjectKey>> {
        let definitions = self.indexes.definitions.get_or_init(|| {
            let all = self.kept("apiextensions.k8s.io", "CustomResourceDefinition");
            Keyed::of(all.map(|(key, it)| (assess::defined(&it), key)))
        });
        definitions.get(&(group.to_owned(), kind.to_owned())).next_back()
    }

    /// Returns the PodDisruptionBudgets of a namespace that may select Pods with these labels.
    pub(super) fn budgets_of(&self, namespace: &str, labels: Option<Value<'_>>) -> Vec<&Arc<ObjectKey>> {
        let all = || Budgets::of(self.kept("policy", "PodDisruptionBudget"));
        self.indexes.budgets.get_or_init(all).of_labels(namespace, labels)
    }

    /// Returns the objects of a namespace.
    pub(super) fn contents(&self, namespace: &str) -> impl Iterator<Item = &Arc<ObjectKey>> + use<'_> {
        let all = || Keyed::of(self.objects.keys().map(|key| (&*key.namespace, key)));
        self.indexes.contents.get_or_init(all).get(namespace)
    }

    /// Returns true if controllers in a namespace report Pods but the snapshot has none there, as in a dump that leaves
    /// them out.
    pub(super) fn lacks_pods(&self, namespace: &str) -> bool {
        let namespaces = self.indexes.namespaces.get_or_init(|| {
            let mut namespaces = HashMap::new();
            let controllers = HAVE_PODS.into_iter().flat_map(|(kind, _)| self.kept("apps", kind));
            for (key, object) in self.kept("", "Pod").chain(controllers) {
                count(&mut namespaces, key, Some(&object), |number| *number += 1);
            }
            namespaces
        });
        namespaces.get(namespace).is_some_and(|counts| counts.pods == 0 && counts.with_pods > 0)
    }
}
