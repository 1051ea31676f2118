//! Apps without a delivery tool: groups of objects that no tool declares and whose labels name the same app.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::str::FromStr;
use std::sync::Arc;

use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef, names};
use taffrail_status::Observed;

use super::Declaration;
use crate::claims::{Claimed, Claims, Named};
use crate::fleet::Fleet;
use crate::identity::Delivery;
use crate::kinds;
use crate::noting::ask_at_once;
use crate::object_keys::ObjectKeys;
use crate::objects::Objects;
use crate::owners::{ControllerLookup, control};
use crate::questions::Question;

/// The key of a label whose value names the app that an object belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppLabel(String);

/// The error for a text that cannot be the key of a label; holds the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a label key; write NAME or PREFIX/NAME, such as app or app.kubernetes.io/name")]
pub struct InvalidAppLabel(pub String);

/// Parses a label key by the rules of the API: a name of at most 63 characters, optionally after a DNS name
/// and a slash.
impl FromStr for AppLabel {
    type Err = InvalidAppLabel;

    fn from_str(text: &str) -> Result<AppLabel, InvalidAppLabel> {
        let is_word = |word: &str, longest: usize, marks: &[u8]| {
            let ends = [word.bytes().next(), word.bytes().next_back()];
            word.len() <= longest
                && ends.iter().all(|end| end.is_some_and(|end| end.is_ascii_alphanumeric()))
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || marks.contains(&byte))
        };
        let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
        if prefix.is_none_or(|prefix| is_word(prefix, 253, b"-.")) && is_word(name, 63, b"-_.") {
            Ok(AppLabel(text.to_owned()))
        } else {
            Err(InvalidAppLabel(text.to_owned()))
        }
    }
}

/// Labels that name apps, in order of precedence: the first of them that an object carries names its app.
///
/// By default `app.kubernetes.io/instance`, which names the installed instance, and for objects without it
/// `app.kubernetes.io/part-of`, which names the larger whole: several instances may be parts of one, so that
/// it is an app of its own only for objects without an instance. Kubernetes recommends both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppLabels(Vec<AppLabel>);

impl Default for AppLabels {
    fn default() -> AppLabels {
        let labels = ["app.kubernetes.io/instance", "app.kubernetes.io/part-of"];
        AppLabels(labels.map(|label| AppLabel(label.to_owned())).to_vec())
    }
}

/// Uses the default labels for an empty list.
impl From<Vec<AppLabel>> for AppLabels {
    fn from(labels: Vec<AppLabel>) -> AppLabels {
        if labels.is_empty() { AppLabels::default() } else { AppLabels(labels) }
    }
}

impl AppLabels {
    /// Returns the value of the first of these labels that is not empty on the object; `None` if there is none.
    fn app<'o>(&self, object: &Object<'o>) -> Option<std::borrow::Cow<'o, str>> {
        let values = self.0.iter().map(|AppLabel(label)| object.text(&["metadata", "labels", label]));
        values.into_iter().find(|value| !value.is_empty())
    }

    /// Returns the keys of the labels.
    pub(crate) fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|AppLabel(label)| &**label).collect()
    }

    /// Returns one label selector per label, for the objects that carry it and none of the labels before it.
    pub(crate) fn selectors(&self) -> Vec<String> {
        let mut before = String::new();
        let mut selectors = Vec::new();
        for AppLabel(label) in &self.0 {
            selectors.push(format!("{label}{before}"));
            before = format!("{before},!{label}");
        }
        selectors
    }

    /// Narrows `selector`, which selects objects with the label `key`, to those without any of these labels; `None`
    /// if `key` is one of them.
    pub(crate) fn beside(&self, key: &str, selector: &str) -> Option<String> {
        let is_apart = self.0.iter().all(|AppLabel(label)| label != key);
        is_apart.then(|| {
            self.0.iter().fold(selector.to_owned(), |all, AppLabel(label)| format!("{all},!{label}"))
        })
    }
}

/// Labels that controllers of Kubernetes put on ReplicaSets and Pods. They stay on orphans, which no tool declares
/// either.
const OF_MADE: [&str; 3] = ["pod-template-hash", "controller-revision-hash", "controller-uid"];

/// Returns true for Pods and ReplicaSets, nearly all of which controllers made, so that lists should leave those
/// out.
pub(crate) fn is_mostly_made(group: &str, kind: &str) -> bool {
    matches!((group, kind), ("", "Pod") | ("apps", "ReplicaSet"))
}

/// Restricts a label selector to objects that carry none of the labels in [`OF_MADE`], which controllers set.
pub(crate) fn not_made(selector: &str) -> String {
    OF_MADE.iter().fold(selector.to_owned(), |selector, label| format!("{selector},!{label}"))
}

/// The label by which helm-controller marks the objects that a HelmRelease applied.
pub(crate) const HELM_RELEASE: &str = "helm.toolkit.fluxcd.io/name";

/// The maximum number of apps, named by marks of a label group's objects that they do not have, that the message of the
/// group names; it counts the rest.
const MOST_NAMED: usize = 3;

/// An object of a label group. They sort like their keys.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GroupMember {
    /// The key, shared with the row of the group: a cluster may have 100,000 of them.
    key: Arc<ObjectKey>,
    /// The app that the object's marks name although that app does not have it.
    named: Option<Arc<Named>>,
}

/// The objects of one label group, sorted: undeclared objects of a namespace with the same app label.
#[derive(Debug, PartialEq, Eq, Default)]
struct LabelGroup(Vec<GroupMember>);

/// The result of searching the label group of an object.
pub(crate) enum GroupSearch {
    /// The object is in no group.
    None,
    /// The object is in no group as long as its controller exists with the UID that the object names.
    Controlled,
    /// The object is in the group of the app named here; the second value is an app that its marks name but
    /// that does not have it.
    In(String, Option<Named>),
    /// It is not known if the object is in a group, because the controller that it names was not read; holds the
    /// controller's key.
    Unknown(ObjectKey),
}

/// The label groups of one cluster, one for each namespace and app name.
#[derive(Debug)]
pub(crate) struct LabelGroups {
    home: usize,
    /// Prefixes of the names of PersistentVolumeClaims that StatefulSets create, `<template>-<StatefulSet>-`,
    /// each with its namespace.
    templates: HashSet<(String, String)>,
    groups: BTreeMap<(String, String), LabelGroup>,
}

impl LabelGroups {
    /// Makes an empty set of groups for the cluster `home`, whose StatefulSets it reads.
    pub(crate) fn new(fleet: &Fleet<'_>, home: usize) -> LabelGroups {
        let sets = || fleet.objects(home).of_kind("apps", "StatefulSet", None);
        let templates = ask_at_once(fleet.objects(home), &Question::ClaimTemplates, || {
            sets().flat_map(|set| claim_templates(&set)).collect()
        });
        LabelGroups { home, templates, groups: BTreeMap::new() }
    }

    /// Returns the label group of an object, from its labels, the claims of apps on it and its controller.
    pub(crate) fn place(
        &self,
        objects: &dyn Objects,
        labels: &AppLabels,
        claims: &Claims<'_>,
        observed: &Observed<'_>,
    ) -> GroupSearch {
        let (key, object) = (observed.key, &observed.object);
        let Some(app) = named(labels, key, object) else { return GroupSearch::None };
        // Of the objects of a group only those would be known that declare other apps.
        if objects.is_light() {
            return GroupSearch::None;
        }
        if is_made_by_controller(key, object) || is_claim_of(&self.templates, key) {
            return GroupSearch::None;
        }
        let Claimed::ByNone(named) = claims.on(self.home, observed) else { return GroupSearch::None };
        match control(objects, observed) {
            ControllerLookup::Proved => GroupSearch::Controlled,
            ControllerLookup::Known => GroupSearch::None,
            ControllerLookup::Unknown(owner) => GroupSearch::Unknown(owner),
            ControllerLookup::None => GroupSearch::In(app.into_owned(), named),
        }
    }

    /// Adds an object to the group of `app`, which must not contain it yet; `named` is another app that its
    /// marks name.
    pub(crate) fn insert(&mut self, key: Arc<ObjectKey>, app: String, named: Option<Named>) {
        let LabelGroup(members) = self.groups.entry((key.namespace.clone(), app)).or_default();
        let at = members.partition_point(|own| own.key < key);
        members.insert(at, GroupMember { key, named: named.map(Arc::new) });
    }

    /// Adds objects of the whole cluster `objects`, each with its app and the other app that its marks name.
    pub(crate) fn fill(
        &mut self,
        objects: &dyn Objects,
        found: Vec<(ObjectKeyRef<'_>, String, Option<Named>)>,
    ) {
        let mut all_named: HashSet<Arc<Named>> = HashSet::new();
        for (key, app, named) in found {
            let named = named.map(|named| match all_named.get(&named) {
                Some(known) => known.clone(),
                None => {
                    let named = Arc::new(named);
                    all_named.insert(named.clone());
                    named
                }
            });
            let LabelGroup(members) = self.groups.entry((key.namespace.to_owned(), app)).or_default();
            members.push(GroupMember { key: objects.share(key), named });
        }
        // Each group by itself: comparing the keys of a whole cluster takes longer than all else here.
        for LabelGroup(members) in self.groups.values_mut() {
            members.sort_unstable();
            members.shrink_to_fit();
        }
    }

    /// Removes an object from the group of an app.
    ///
    /// Returns `None` if the group lacks the object, otherwise the other app that its marks name, if any.
    pub(crate) fn remove(&mut self, key: &ObjectKey, app: &str) -> Option<Option<Named>> {
        let place = (key.namespace.clone(), app.to_owned());
        let LabelGroup(members) = self.groups.get_mut(&place)?;
        let at = members.binary_search_by(|own| (*own.key).cmp(key)).ok()?;
        let GroupMember { named, .. } = members.remove(at);
        if members.is_empty() {
            self.groups.remove(&place);
        }
        Some(named.map(Arc::unwrap_or_clone))
    }

    /// Returns true if the app `name` in `namespace` has a group with objects.
    pub(crate) fn has(&self, namespace: &str, name: &str) -> bool {
        self.groups.contains_key(&(namespace.to_owned(), name.to_owned()))
    }

    /// Returns the number of groups.
    pub(crate) fn number(&self) -> usize {
        self.groups.len()
    }

    /// Lists the namespace and app of each group.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.groups.keys().map(|(namespace, name)| (&**namespace, &**name))
    }

    /// Returns namespace and app name of each group that differs between two states of the cluster.
    pub(crate) fn differing(&self, other: &LabelGroups) -> Vec<(String, String)> {
        let own = self.groups.iter().filter(|(place, group)| other.groups.get(*place) != Some(group));
        let gone = other.groups.keys().filter(|place| !self.groups.contains_key(*place));
        own.map(|(place, _)| place).chain(gone).cloned().collect()
    }

    /// Returns the declaration of the app `name` in `namespace`; `None` if it has no group.
    pub(crate) fn declaration(&self, namespace: &str, name: &str) -> Option<Declaration> {
        let group = self.groups.get(&(namespace.to_owned(), name.to_owned()))?;
        Some(self.of_group(namespace, name, group))
    }

    /// Returns the declarations of all groups.
    pub(crate) fn declarations(&self) -> impl Iterator<Item = Declaration> {
        self.groups.iter().map(|((namespace, name), group)| self.of_group(namespace, name, group))
    }

    fn of_group(&self, namespace: &str, name: &str, LabelGroup(members): &LabelGroup) -> Declaration {
        let mut marked: BTreeMap<&Named, usize> = BTreeMap::new();
        for named in members.iter().filter_map(|member| member.named.as_deref()) {
            *marked.entry(named).or_default() += 1;
        }
        let message = says(&marked);
        let objects: ObjectKeys = members.iter().map(|member| member.key.clone()).collect();
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Declaration {
            message,
            ..Declaration::by_nobody(self.home, Delivery::Label, namespace, name, objects)
        }
    }
}

/// Returns the app that the labels of an object name; `None` if they name none or a text too long for a name, or if the
/// object can be in no group: it is cluster-scoped, or of a kind that is never declared, such as an Event.
pub(crate) fn named<'o>(
    labels: &AppLabels,
    key: ObjectKeyRef<'_>,
    object: &Object<'o>,
) -> Option<std::borrow::Cow<'o, str>> {
    if key.namespace.is_empty() || kinds::is_noise(key.group, key.kind) {
        return None;
    }
    labels.app(object).filter(|app| names::is_short(app))
}

/// Computes the label groups of one cluster. Controllers that objects name but that were not read are added
/// to `owners`.
pub(crate) fn declare(
    fleet: &Fleet<'_>,
    home: usize,
    labels: &AppLabels,
    claims: &Claims<'_>,
    owners: &mut BTreeSet<(usize, ObjectKey)>,
) -> LabelGroups {
    let objects = fleet.objects(home);
    let mut groups = LabelGroups::new(fleet, home);
    let mut members = Vec::new();
    let keys = labels.keys();
    for observed in objects.labelled_uncontrolled(&keys) {
        match groups.place(objects, labels, claims, &observed) {
            GroupSearch::None | GroupSearch::Controlled => {}
            GroupSearch::In(app, named) => members.push((observed.key, app, named)),
            GroupSearch::Unknown(owner) => drop(owners.insert((home, owner))),
        }
    }
    groups.fill(objects, members);
    groups
}

/// The phrase for an app that a mark names but that is not in the list.
pub(crate) const NOT_SHOWN: &str = "is not shown";

/// Returns the message about the apps that marks of objects of a group name although they do not have these objects;
/// `marked` counts the objects by app.
fn says(marked: &BTreeMap<&Named, usize>) -> String {
    let says = |(named, number): (&&Named, &usize)| {
        let Named { app, is_shown } = named;
        let marked = match number {
            1 => "1 object is marked".to_owned(),
            number => format!("{number} objects are marked"),
        };
        let why = match (is_shown, number) {
            (false, _) => NOT_SHOWN,
            (true, 1) => "does not list it",
            (true, _) => "does not list them",
        };
        format!("{marked} for {app}, which {why}")
    };
    let mut told: Vec<String> = marked.iter().take(MOST_NAMED).map(says).collect();
    match marked.len().saturating_sub(MOST_NAMED) {
        0 => {}
        1 => told.push("and objects are marked for 1 more app".to_owned()),
        more => told.push(format!("and objects are marked for {more} more apps")),
    }
    told.join("; ")
}

/// Returns true for a Pod or ReplicaSet with a label that only controllers of Kubernetes set, such as
/// `pod-template-hash`. The label stays when the controller is deleted.
fn is_made_by_controller(key: ObjectKeyRef<'_>, object: &Object<'_>) -> bool {
    let has = |label: &str| object.at(&["metadata", "labels", label]).is_some();
    is_mostly_made(key.group, key.kind) && OF_MADE.iter().any(|label| has(label))
}

/// Returns the prefixes of the names of PersistentVolumeClaims that a StatefulSet creates,
/// `<template>-<StatefulSet>-`, each with its namespace.
pub(crate) fn claim_templates(set: &Observed<'_>) -> Vec<(String, String)> {
    let of = set.object.at(&["spec", "volumeClaimTemplates"]).and_then(Value::items);
    let names = of.into_iter().flatten().filter_map(|it| it.at(&["metadata", "name"])?.as_str());
    let ObjectKeyRef { namespace, name: set, .. } = set.key;
    names.map(|name| (namespace.to_owned(), format!("{name}-{set}-"))).collect()
}

/// Returns true if `key` is a PersistentVolumeClaim named like one that a StatefulSet created: by one of the prefixes
/// in `templates`, and a number. Such a claim names an owner only if the set deletes its claims.
pub(crate) fn is_claim_of(templates: &HashSet<(String, String)>, key: ObjectKeyRef<'_>) -> bool {
    if !key.group.is_empty() || key.kind != "PersistentVolumeClaim" {
        return false;
    }
    let ordinal = key.name.rfind('-').map(|at| key.name.split_at(at + 1));
    ordinal.is_some_and(|(prefix, ordinal)| {
        !ordinal.is_empty()
            && ordinal.bytes().all(|byte| byte.is_ascii_digit())
            && templates.contains(&(key.namespace.to_owned(), prefix.to_owned()))
    })
}
