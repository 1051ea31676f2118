//! Labels: objects that nobody else declares and whose labels name the same app.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::str::FromStr;

use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef};
use taffrail_status::Observed;

use super::Declaration;
use crate::claims::{Claimed, Claims, Named};
use crate::fleet::Fleet;
use crate::identity::Delivery;
use crate::kinds;
use crate::names;
use crate::objects::Objects;
use crate::owners::{Control, control};
use crate::rows::{Question, ask_at_once};

/// A label whose value names the app that an object belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppLabel(String);

/// A text that can be no label of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no label; write NAME or PREFIX/NAME, such as app or app.kubernetes.io/name")]
pub struct InvalidAppLabel(pub String);

/// As the API takes keys of labels: a name of at most 63 characters, and before it perhaps a DNS name and a slash.
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

/// Labels that name apps, the strongest first: the first of them that an object carries tells its app.
///
/// By default `app.kubernetes.io/instance`, which names what was installed, and for what carries none
/// `app.kubernetes.io/part-of`, which names the larger whole: several instances may be parts of one, so that it is
/// an app of its own only where nothing smaller is named. Both are those that Kubernetes recommends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppLabels(Vec<AppLabel>);

impl Default for AppLabels {
    fn default() -> AppLabels {
        let labels = ["app.kubernetes.io/instance", "app.kubernetes.io/part-of"];
        AppLabels(labels.map(|label| AppLabel(label.to_owned())).to_vec())
    }
}

/// Without any label the default ones.
impl From<Vec<AppLabel>> for AppLabels {
    fn from(labels: Vec<AppLabel>) -> AppLabels {
        if labels.is_empty() { AppLabels::default() } else { AppLabels(labels) }
    }
}

impl AppLabels {
    /// The app that the labels of an object name.
    fn app<'o>(&self, object: &Object<'o>) -> Option<std::borrow::Cow<'o, str>> {
        let values = self.0.iter().map(|AppLabel(label)| object.text(&["metadata", "labels", label]));
        values.into_iter().find(|value| !value.is_empty())
    }

    /// The selectors that choose objects with one of the labels; none chooses what another one does.
    pub(crate) fn selectors(&self) -> Vec<String> {
        let mut before = String::new();
        let mut selectors = Vec::new();
        for AppLabel(label) in &self.0 {
            selectors.push(format!("{label}{before}"));
            before = format!("{before},!{label}");
        }
        selectors
    }

    /// A selector that chooses what `selector`, which is about the label `key`, chooses and [`AppLabels::selectors`] do
    /// not; `None` where that is nothing.
    pub(crate) fn beside(&self, key: &str, selector: &str) -> Option<String> {
        let is_apart = self.0.iter().all(|AppLabel(label)| label != key);
        is_apart.then(|| {
            self.0.iter().fold(selector.to_owned(), |all, AppLabel(label)| format!("{all},!{label}"))
        })
    }
}

/// Labels of what controllers of Kubernetes make: of ReplicaSets, and of the Pods of ReplicaSets, of StatefulSets
/// and DaemonSets, and of Jobs. They stay on what its controller has left behind, which nobody has declared either.
const OF_MADE: [&str; 3] = ["pod-template-hash", "controller-revision-hash", "controller-uid"];

/// Kinds whose objects are many, and nearly all made by controllers.
pub(crate) fn is_mostly_made(group: &str, kind: &str) -> bool {
    matches!((group, kind), ("", "Pod") | ("apps", "ReplicaSet"))
}

/// Makes a selector leave out what controllers of Kubernetes have made.
pub(crate) fn not_made(selector: &str) -> String {
    OF_MADE.iter().fold(selector.to_owned(), |selector, label| format!("{selector},!{label}"))
}

/// The label by which helm-controller marks what a HelmRelease applied.
pub(crate) const HELM_RELEASE: &str = "helm.toolkit.fluxcd.io/name";

/// How many of the apps that marks name are told in a row.
const MOST_NAMED: usize = 3;

/// The objects of a row.
#[derive(Debug, PartialEq, Eq, Default)]
struct Group {
    objects: Vec<ObjectKey>,
    /// Of those that name an app which does not have them, which.
    named: BTreeMap<ObjectKey, Named>,
}

/// The place of an object among the rows of labels.
pub(crate) enum Place {
    /// It is in none.
    None,
    /// It is in that of an app; it may name another app, which does not have it.
    In(String, Option<Named>),
    /// It is said to be controlled by an object that was not looked at.
    Unknown(ObjectKey),
}

/// The label groups of one cluster: one in each namespace for each app that labels name.
#[derive(Debug)]
pub(crate) struct LabelGroups {
    home: usize,
    /// What the names of claims start with that StatefulSets make, by namespace: `<template>-<StatefulSet>-`.
    templates: HashSet<(String, String)>,
    groups: BTreeMap<(String, String), Group>,
}

impl LabelGroups {
    /// The groups of a cluster without any objects but the StatefulSets of it.
    pub(crate) fn new(fleet: &Fleet<'_>, home: usize) -> LabelGroups {
        let sets = || fleet.objects(home).of_kind("apps", "StatefulSet", None);
        let templates = ask_at_once(fleet.objects(home), &Question::ClaimTemplates, || {
            sets().flat_map(|set| claim_templates(&set)).collect()
        });
        LabelGroups { home, templates, groups: BTreeMap::new() }
    }

    /// Finds the place of an object.
    pub(crate) fn place(
        &self,
        objects: &dyn Objects,
        labels: &AppLabels,
        claims: &Claims<'_>,
        observed: &Observed<'_>,
    ) -> Place {
        let (key, object) = (observed.key, &observed.object);
        let Some(app) = named(labels, key, object) else { return Place::None };
        if is_left_behind(key, object) || is_claim_of(&self.templates, key) {
            return Place::None;
        }
        let Claimed::ByNone(named) = claims.on(self.home, observed) else { return Place::None };
        match control(objects, observed) {
            Control::Known => Place::None,
            Control::Unknown(owner) => Place::Unknown(owner),
            Control::None => Place::In(app.into_owned(), named),
        }
    }

    /// Puts an object that is not there yet into the row of an app.
    pub(crate) fn insert(&mut self, key: &ObjectKey, app: String, named: Option<Named>) {
        let group = self.groups.entry((key.namespace.clone(), app)).or_default();
        let at = match group.objects.last() {
            Some(last) if last > key => group.objects.partition_point(|own| own < key),
            _ => group.objects.len(),
        };
        group.objects.insert(at, key.clone());
        group.named.extend(named.map(|named| (key.clone(), named)));
    }

    /// Takes an object out of the row of an app, if it is there; returns which other app it names, if it names one.
    pub(crate) fn remove(&mut self, key: &ObjectKey, app: &str) -> Option<Option<Named>> {
        let place = (key.namespace.clone(), app.to_owned());
        let group = self.groups.get_mut(&place)?;
        let at = group.objects.binary_search(key).ok()?;
        group.objects.remove(at);
        let named = group.named.remove(key);
        if group.objects.is_empty() {
            self.groups.remove(&place);
        }
        Some(named)
    }

    /// Returns true if an app has a row.
    pub(crate) fn has(&self, namespace: &str, name: &str) -> bool {
        self.groups.contains_key(&(namespace.to_owned(), name.to_owned()))
    }

    /// Returns the namespaces and names of all rows.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.groups.keys().map(|(namespace, name)| (&**namespace, &**name))
    }

    /// Returns the namespaces and names of the rows that are not as in another state of the cluster, or stand in one of them.
    pub(crate) fn differing(&self, other: &LabelGroups) -> Vec<(String, String)> {
        let own = self.groups.iter().filter(|(place, group)| other.groups.get(*place) != Some(group));
        let gone = other.groups.keys().filter(|place| !self.groups.contains_key(*place));
        own.map(|(place, _)| place).chain(gone).cloned().collect()
    }

    /// Returns the row of an app, if it has one.
    pub(crate) fn declaration(&self, namespace: &str, name: &str) -> Option<Declaration> {
        let group = self.groups.get(&(namespace.to_owned(), name.to_owned()))?;
        Some(self.of_group(namespace, name, group))
    }

    /// Returns all rows.
    pub(crate) fn declarations(&self) -> impl Iterator<Item = Declaration> {
        self.groups.iter().map(|((namespace, name), group)| self.of_group(namespace, name, group))
    }

    fn of_group(&self, namespace: &str, name: &str, group: &Group) -> Declaration {
        let mut marked: BTreeMap<&Named, usize> = BTreeMap::new();
        for named in group.named.values() {
            *marked.entry(named).or_default() += 1;
        }
        let message = says(&marked);
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let objects = group.objects.clone();
        Declaration {
            message,
            ..Declaration::by_nobody(self.home, Delivery::Label, namespace, name, objects)
        }
    }
}

/// Returns the app that the labels of an object name, where they may.
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

/// The label groups of one cluster. Those who are said to control objects and were not looked at go to `owners`.
pub(crate) fn declare(
    fleet: &Fleet<'_>,
    home: usize,
    labels: &AppLabels,
    claims: &Claims<'_>,
    owners: &mut BTreeSet<(usize, ObjectKey)>,
) -> LabelGroups {
    let objects = fleet.objects(home);
    let mut groups = LabelGroups::new(fleet, home);
    for observed in objects.all() {
        match groups.place(objects, labels, claims, &observed) {
            Place::None => {}
            Place::In(app, named) => groups.insert(&observed.key.to_owned(), app, named),
            Place::Unknown(owner) => drop(owners.insert((home, owner))),
        }
    }
    groups
}

/// The words for an app that claims objects and is not among those that were found.
pub(crate) const NOT_SHOWN: &str = "is not shown";

/// What the objects of a row say of whose they are.
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
    let more = marked.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    told.join("; ")
}

/// Whether an object was made by a controller that is gone.
fn is_left_behind(key: ObjectKeyRef<'_>, object: &Object<'_>) -> bool {
    let has = |label: &str| object.at(&["metadata", "labels", label]).is_some();
    is_mostly_made(key.group, key.kind) && OF_MADE.iter().any(|label| has(label))
}

/// What the names of claims start with that StatefulSets make, by namespace: `<template>-<StatefulSet>-`.
pub(crate) fn claim_templates(set: &Observed<'_>) -> Vec<(String, String)> {
    let of = set.object.at(&["spec", "volumeClaimTemplates"]).and_then(Value::items);
    let names = of.into_iter().flatten().filter_map(|it| it.at(&["metadata", "name"])?.as_str());
    let ObjectKeyRef { namespace, name: set, .. } = set.key;
    names.map(|name| (namespace.to_owned(), format!("{name}-{set}-"))).collect()
}

/// Whether a claim was made by a StatefulSet: it has no owner unless the set says that it shall go with it.
fn is_claim_of(templates: &HashSet<(String, String)>, key: ObjectKeyRef<'_>) -> bool {
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
