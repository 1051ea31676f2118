//! Labels: objects that nobody else declares and that carry the same `app.kubernetes.io/instance`.

use std::collections::{BTreeMap, HashSet};

use taffrail_status::Object;
use taffrail_status::json::Value;

use super::{Declaration, Destination};
use crate::claims::Claims;
use crate::fleet::Fleet;
use crate::identity::{AppKey, Delivery, ObjectKey};
use crate::kinds;
use crate::objects::Objects;
use crate::sync::Sync;

/// The label that says which instance of an application an object belongs to.
pub(crate) const INSTANCE: &str = "app.kubernetes.io/instance";

/// The label by which helm-controller marks what a HelmRelease applied.
pub(crate) const HELM_RELEASE: &str = "helm.toolkit.fluxcd.io/name";

/// Labels and annotations by which a tool marks what is its own, with the value where not every value does.
const MARKS: [(&str, &str, Option<&str>); 10] = [
    ("labels", "app.kubernetes.io/managed-by", Some("Helm")),
    ("labels", "argocd.argoproj.io/instance", None),
    ("labels", HELM_RELEASE, None),
    ("labels", "kustomize.toolkit.fluxcd.io/name", None),
    ("annotations", "argocd.argoproj.io/tracking-id", None),
    ("annotations", "config.k8s.io/owning-inventory", None),
    ("annotations", "configmanagement.gke.io/managed", Some("enabled")),
    ("annotations", "meta.helm.sh/release-name", None),
    // Hooks come and go with what a tool does; nobody declares that they are there.
    ("annotations", "argocd.argoproj.io/hook", None),
    ("annotations", "helm.sh/hook", None),
];

/// The label groups of one cluster: one in each namespace for each instance.
pub(crate) fn declare(fleet: &Fleet<'_>, home: usize, claims: &Claims) -> Vec<Declaration> {
    let objects = fleet.objects(home);
    let templates = claim_templates(objects);
    let mut groups: BTreeMap<(String, String), Vec<ObjectKey>> = BTreeMap::new();
    for observed in objects.all() {
        let (key, object) = (observed.key, &observed.object);
        if key.namespace.is_empty() || kinds::is_noise(&key.group, &key.kind) {
            continue;
        }
        let instance = object.text(&["metadata", "labels", INSTANCE]);
        let is_weak = !instance.is_empty()
            && !claims.contains(home, key)
            && !is_marked(object)
            && !has_controller(object)
            && !is_claim_of(&templates, key);
        if is_weak {
            groups.entry((key.namespace.clone(), instance.into_owned())).or_default().push(key.clone());
        }
    }
    let app = |((namespace, name), objects): ((String, String), Vec<ObjectKey>)| Declaration {
        home,
        destination: Destination::Cluster(home),
        delivery: Delivery::Label,
        key: AppKey::of(Delivery::Label, &namespace, &name, None),
        namespace,
        name,
        declaring: None,
        objects,
        unseen: false,
        unreadable: None,
        sync: Sync::unknown(),
        suspended: false,
        message: String::new(),
        trouble: None,
        source: None,
    };
    groups.into_iter().map(app).collect()
}

fn is_marked(object: &Object<'_>) -> bool {
    let Some(metadata) = object.at(&["metadata"]) else { return false };
    let has = |&(place, name, wanted): &(&str, &str, Option<&str>)| {
        let value = metadata.at(&[place, name]);
        value.is_some_and(|value| wanted.is_none_or(|wanted| value.is_str(wanted)))
    };
    MARKS.iter().any(has)
}

fn has_controller(object: &Object<'_>) -> bool {
    let owners = object.at(&["metadata", "ownerReferences"]).and_then(Value::items);
    let controls = |owner: Value<'_>| owner.get("controller").and_then(Value::as_bool) == Some(true);
    owners.into_iter().flatten().any(controls)
}

/// What the names of claims start with that StatefulSets make, by namespace: `<template>-<StatefulSet>-`.
fn claim_templates(objects: &dyn Objects) -> HashSet<(String, String)> {
    let mut templates = HashSet::new();
    for observed in objects.of_kind("apps", "StatefulSet") {
        let of = observed.object.at(&["spec", "volumeClaimTemplates"]).and_then(Value::items);
        for template in of.into_iter().flatten() {
            if let Some(name) = template.at(&["metadata", "name"]).and_then(Value::as_str) {
                let ObjectKey { namespace, name: set, .. } = observed.key;
                templates.insert((namespace.clone(), format!("{name}-{set}-")));
            }
        }
    }
    templates
}

/// Whether a claim was made by a StatefulSet: it has no owner unless the set says that it shall go with it.
fn is_claim_of(templates: &HashSet<(String, String)>, key: &ObjectKey) -> bool {
    if !key.group.is_empty() || key.kind != "PersistentVolumeClaim" {
        return false;
    }
    let ordinal = key.name.rfind('-').map(|at| key.name.split_at(at + 1));
    ordinal.is_some_and(|(prefix, ordinal)| {
        !ordinal.is_empty()
            && ordinal.bytes().all(|byte| byte.is_ascii_digit())
            && templates.contains(&(key.namespace.clone(), prefix.to_owned()))
    })
}
