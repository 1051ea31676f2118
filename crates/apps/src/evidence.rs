//! The objects of one cluster as evidence for `assess`.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};

use taffrail_object::json::Value;
use taffrail_object::selector::Operator;
use taffrail_object::{GroupKind, LabelSelector, Object, ObjectKeyRef};
use taffrail_status::assess::{self, Costs, Event};
use taffrail_status::{ClusterState, Listing, Observed, Presence};

use crate::objects::Objects;

/// What is known of one cluster, as answers to questions about what stands behind an object.
///
/// Each index is made when the first question needs it: a cluster in which all is well costs nothing.
pub struct ClusterEvidence<'a> {
    objects: &'a dyn Objects,
    /// Pods by namespace and name of the claims they use.
    users: OnceCell<HashMap<(String, String), Vec<Observed<'a>>>>,
    /// Pods that are being deleted, by node.
    terminating: OnceCell<HashMap<String, Vec<Observed<'a>>>>,
    /// CustomResourceDefinitions by the group and kind they define.
    definitions: OnceCell<HashMap<(String, String), Observed<'a>>>,
    budgets: OnceCell<Budgets<'a>>,
    /// What is in each namespace, by its name.
    contents: OnceCell<HashMap<&'a str, Vec<Observed<'a>>>>,
    costs: Costs,
    /// Namespaces of which it is known if their Pods were left out.
    without_pods: RefCell<HashMap<String, bool>>,
}

/// A label, and its value.
type Label = (String, String);

/// PodDisruptionBudgets by namespace and by one label that they want; those that want none by nothing.
struct Budgets<'a>(HashMap<String, HashMap<Option<Label>, Vec<Observed<'a>>>>);

impl<'a> Budgets<'a> {
    fn of(budgets: impl Iterator<Item = Observed<'a>>) -> Budgets<'a> {
        let read = |budget: Observed<'a>| {
            let selector = LabelSelector::of_object(budget.object.at(&["spec", "selector"]));
            let equal = selector.requirements().filter(|wanted| wanted.operator == Operator::Equals);
            let wanted: Vec<Label> =
                equal.map(|wanted| (wanted.key.clone(), wanted.values.concat())).collect();
            (budget.key.namespace.clone(), wanted, budget)
        };
        let budgets: Vec<_> = budgets.map(read).collect();
        let mut frequency: HashMap<Label, usize> = HashMap::new();
        for label in budgets.iter().flat_map(|(_, wanted, _)| wanted) {
            *frequency.entry(label.clone()).or_default() += 1;
        }
        let mut index: HashMap<String, HashMap<_, Vec<_>>> = HashMap::new();
        for (namespace, wanted, budget) in budgets {
            // What all have in common tells none of them apart.
            let rarest = wanted.into_iter().min_by_key(|label| frequency.get(label).copied());
            index.entry(namespace).or_default().entry(rarest).or_default().push(budget);
        }
        Budgets(index)
    }

    fn of_labels(&self, namespace: &str, own: Option<Value<'_>>) -> Vec<Observed<'a>> {
        let Some(budgets) = self.0.get(namespace) else { return Vec::new() };
        let keys = labels(own).into_iter().map(Some).chain([None]);
        keys.filter_map(|key| budgets.get(&key)).flatten().cloned().collect()
    }
}

/// Labels, each key once.
fn labels(value: Option<Value<'_>>) -> Vec<Label> {
    let members = value.and_then(Value::members).into_iter().flatten();
    let texts = members.filter_map(|(key, value)| Some((key.into_owned(), value.as_str()?.into_owned())));
    texts.collect::<BTreeMap<_, _>>().into_iter().collect()
}

impl<'a> ClusterEvidence<'a> {
    /// The evidence that `objects` hold.
    pub fn new(objects: &'a dyn Objects) -> ClusterEvidence<'a> {
        ClusterEvidence {
            objects,
            users: OnceCell::new(),
            terminating: OnceCell::new(),
            definitions: OnceCell::new(),
            budgets: OnceCell::new(),
            contents: OnceCell::new(),
            costs: Costs::default(),
            without_pods: RefCell::default(),
        }
    }

    /// Returns what looking at it has cost so far.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }
}

/// Whether there is no Pod in a namespace in which a controller says that it has some: whoever made the dump left
/// the Pods out.
fn lacks_pods(objects: &dyn Objects, namespace: &str) -> bool {
    const HAVE_PODS: [(&str, &str); 4] = [
        ("ReplicaSet", "replicas"),
        ("StatefulSet", "replicas"),
        ("Deployment", "replicas"),
        ("DaemonSet", "currentNumberScheduled"),
    ];

    let has_pods = |(kind, count): (&str, &str)| {
        let mut controllers = objects.of_kind_in("apps", kind, namespace);
        controllers.any(|controller| {
            controller.object.at(&["status", count]).and_then(Value::as_i64).is_some_and(|count| count > 0)
        })
    };
    objects.of_kind_in("", "Pod", namespace).next().is_none() && HAVE_PODS.into_iter().any(has_pods)
}

impl ClusterState for ClusterEvidence<'_> {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        self.objects.get(key)
    }

    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.objects.controlled(uid, namespace)
    }

    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        Box::new(self.owned(uid, namespace).chain(self.objects.held(uid, namespace)))
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        match namespace {
            Some(namespace) => self.objects.of_kind_in(group, kind, namespace),
            None => self.objects.of_kind(group, kind),
        }
    }

    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        let users = self.users.get_or_init(|| {
            let mut users: HashMap<_, Vec<_>> = HashMap::new();
            for pod in self.objects.of_kind("", "Pod") {
                for claim in assess::claims(&pod.object) {
                    users.entry((claim.namespace, claim.name)).or_default().push(pod.clone());
                }
            }
            users
        });
        let key = (namespace.to_owned(), claim.to_owned());
        Box::new(users.get(&key).into_iter().flatten().cloned())
    }

    fn knows_users(&self, namespace: &str) -> bool {
        if !self.is_observed("", "Pod", Some(namespace)) {
            return false;
        }
        let known = self.without_pods.borrow().get(namespace).copied();
        let lacks = known.unwrap_or_else(|| {
            let lacks = lacks_pods(self.objects, namespace);
            self.without_pods.borrow_mut().insert(namespace.to_owned(), lacks);
            lacks
        });
        !lacks
    }

    fn budgets(&self, namespace: &str, labels: Option<Value<'_>>) -> Listing<'_> {
        let budgets = self.budgets.get_or_init(|| {
            let all = self.objects.of_kind("policy", "PodDisruptionBudget");
            Budgets::of(all)
        });
        Box::new(budgets.of_labels(namespace, labels).into_iter())
    }

    fn terminating_on(&self, node: &str) -> Listing<'_> {
        let terminating = self.terminating.get_or_init(|| {
            let mut terminating: HashMap<_, Vec<_>> = HashMap::new();
            for pod in self.objects.of_kind("", "Pod") {
                if !pod.object.text(&["metadata", "deletionTimestamp"]).is_empty() {
                    let node = pod.object.text(&["spec", "nodeName"]).into_owned();
                    terminating.entry(node).or_default().push(pod);
                }
            }
            terminating
        });
        Box::new(terminating.get(node).into_iter().flatten().cloned())
    }

    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        let definitions = self.definitions.get_or_init(|| {
            let all = self.objects.of_kind("apiextensions.k8s.io", "CustomResourceDefinition");
            all.map(|observed| (assess::defined(&observed.object), observed)).collect()
        });
        definitions.get(&(group.to_owned(), kind.to_owned())).cloned()
    }

    fn has_status_subresource(&self, group: &str, version: &str, kind: &str) -> Option<bool> {
        self.objects.has_status_subresource(group, version, kind)
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        let contents = self.contents.get_or_init(|| {
            let mut contents: HashMap<_, Vec<_>> = HashMap::new();
            for observed in self.objects.all() {
                contents.entry(&*observed.key.namespace).or_default().push(observed);
            }
            contents
        });
        Box::new(contents.get(namespace).into_iter().flatten().cloned())
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        let events = self.objects.events_about(about.kind(), &about.namespace(), &about.name());
        let read = events.filter_map(|observed| Event::read(&observed.object));
        read.filter(|(_, regarding)| regarding.is(about)).map(|(event, _)| event).collect()
    }

    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        self.objects.is_observed(&GroupKind::new(group, kind), namespace)
    }

    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        !self.objects.is_dump()
            || self.objects.of_kind_in(group, kind, namespace).next().is_some()
            || self.definition(group, kind).is_some()
    }
}
