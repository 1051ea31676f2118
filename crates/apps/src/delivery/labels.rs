//! Labels: objects that nobody else declares and whose labels name the same app.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::str::FromStr;

use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef};

use super::Declaration;
use crate::claims::{Claimed, Claims, Named};
use crate::fleet::Fleet;
use crate::identity::Delivery;
use crate::kinds;
use crate::names;
use crate::objects::Objects;
use crate::owners::{Control, control};

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

/// The objects of a row, and how many of them name which app that does not have them.
type Group = (Vec<ObjectKey>, BTreeMap<Named, usize>);

/// How many of the apps that marks name are told in a row.
const MOST_NAMED: usize = 3;

/// The label groups of one cluster: one in each namespace for each app that labels name. Those who are said to control objects
/// and were not looked at go to `owners`.
pub(crate) fn declare(
    fleet: &Fleet<'_>,
    home: usize,
    labels: &AppLabels,
    claims: &Claims<'_>,
    owners: &mut BTreeSet<(usize, ObjectKey)>,
) -> Vec<Declaration> {
    let objects = fleet.objects(home);
    let templates = claim_templates(objects);
    let mut groups: BTreeMap<(String, String), Group> = BTreeMap::new();
    for observed in objects.all() {
        let (key, object) = (observed.key, &observed.object);
        if key.namespace.is_empty() || kinds::is_noise(key.group, key.kind) {
            continue;
        }
        let Some(app) = labels.app(object).filter(|app| names::is_short(app)) else { continue };
        if is_left_behind(key, object) || is_claim_of(&templates, key) {
            continue;
        }
        let Claimed::ByNone(named) = claims.on(home, &observed) else { continue };
        match control(objects, &observed) {
            Control::Known => continue,
            Control::Unknown(owner) => {
                owners.insert((home, owner));
                continue;
            }
            Control::None => {}
        }
        let (members, marked) = groups.entry((key.namespace.to_owned(), app.into_owned())).or_default();
        members.push(key.to_owned());
        if let Some(named) = named {
            *marked.entry(named).or_default() += 1;
        }
    }
    let app = |((namespace, name), (objects, marked)): ((String, String), Group)| {
        let message = says(&marked);
        Declaration { message, ..Declaration::by_nobody(home, Delivery::Label, namespace, name, objects) }
    };
    groups.into_iter().map(app).collect()
}

/// The words for an app that claims objects and is not among those that were found.
pub(crate) const NOT_SHOWN: &str = "is not shown";

/// What the objects of a row say of whose they are.
fn says(marked: &BTreeMap<Named, usize>) -> String {
    let says = |(named, number): (&Named, &usize)| {
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
fn claim_templates(objects: &dyn Objects) -> HashSet<(String, String)> {
    let mut templates = HashSet::new();
    for observed in objects.of_kind("apps", "StatefulSet", None) {
        let of = observed.object.at(&["spec", "volumeClaimTemplates"]).and_then(Value::items);
        for template in of.into_iter().flatten() {
            if let Some(name) = template.at(&["metadata", "name"]).and_then(Value::as_str) {
                let ObjectKeyRef { namespace, name: set, .. } = observed.key;
                templates.insert((namespace.to_owned(), format!("{name}-{set}-")));
            }
        }
    }
    templates
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
