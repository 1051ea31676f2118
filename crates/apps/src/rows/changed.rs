//! The lookups that may find something else because an object changed.

use taffrail_object::ObjectKey;
use taffrail_status::Observed;
use taffrail_status::assess::{Regarding, claims, defined};

use crate::delivery::argo::installs::{WORKLOADS, is_controller};
use crate::delivery::helm_storage;
use crate::objects::Objects;
use crate::owners::ObjectReferences;
use crate::questions::Question;
use crate::snapshot::{has_pods, is_budget, is_definition, is_pod, leaves, wanted};

/// Calls `tell` with each lookup that may find something else because the object `key` was created (`old` is
/// `None`), changed, or deleted (`new` is `None`).
pub(super) fn questions(
    key: &ObjectKey,
    old: Option<&Observed<'_>>,
    new: Option<&Observed<'_>>,
    tell: &mut dyn FnMut(Question<'_>),
) {
    let ObjectKey { group, kind, namespace, .. } = key;
    let both = || old.into_iter().chain(new);
    tell(Question::Object(key.as_ref()));
    tell(Question::Kind(group, kind, None));
    tell(Question::Kind(group, kind, Some(namespace)));
    tell(Question::Namespace(namespace));
    tell(Question::All);
    if is_marked_otherwise(old, new) {
        tell(Question::Metadata(key.as_ref()));
    }
    if old.is_some() != new.is_some() {
        tell(Question::Keys(group, kind));
        tell(Question::IsNamespaced(group, kind));
    }
    for observed in both() {
        let ObjectReferences { controller, others, about } = ObjectReferences::of(&observed.object);
        if let Some(uid) = controller {
            tell(Question::Controlled(&uid));
            tell(Question::Owned(&uid));
        }
        others.iter().for_each(|uid| tell(Question::Owned(uid)));
        if let Some((kind, namespace, name)) = about {
            tell(Question::Events(&kind, &namespace, &name));
            if Regarding::is_of_cluster(&namespace) {
                tell(Question::Events(&kind, "", &name));
            }
        }
        if helm_storage::stored(observed).is_some() {
            tell(Question::Storage);
        }
    }
    if is_pod(key.as_ref()) {
        for pod in both() {
            claims(&pod.object).iter().for_each(|claim| tell(Question::Users(&claim.namespace, &claim.name)));
            leaves(&pod.object).iter().for_each(|node| tell(Question::Leaving(node)));
        }
    }
    let has_pods = |observed: Option<&Observed<'_>>| observed.is_some_and(|it| has_pods(it.key, &it.object));
    if is_pod(key.as_ref()) && old.is_some() != new.is_some() || has_pods(old) != has_pods(new) {
        tell(Question::Pods(namespace));
    }
    if is_budget(key.as_ref()) {
        for budget in both() {
            let wanted = wanted(&budget.object);
            if wanted.is_empty() {
                tell(Question::Budgets(namespace, None));
            }
            wanted.iter().for_each(|label| tell(Question::Budgets(namespace, Some(label))));
        }
    }
    if is_definition(key.as_ref()) {
        for definition in both() {
            let (group, kind) = defined(&definition.object);
            tell(Question::Definition(&group, &kind));
            tell(Question::IsNamespaced(&group, &kind));
        }
    }
    if WORKLOADS.contains(&(&**group, &**kind)) && both().any(is_controller) {
        tell(Question::ArgoControllers(namespace));
    }
}

/// Returns true if the labels, annotations, owner references or UID of an object changed, or it was created or deleted.
pub(super) fn is_marked_otherwise(old: Option<&Observed<'_>>, new: Option<&Observed<'_>>) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return true };
    ["labels", "annotations", "ownerReferences", "uid"].into_iter().any(|field| {
        let [old, new] = [old, new].map(|it| it.object.at(&["metadata", field]).and_then(|it| it.text()));
        old != new
    })
}

/// Returns the objects that name the former UID of a changed object `key` as their controller, if its UID is another
/// one now or it is gone.
pub(super) fn left_behind(
    objects: &dyn Objects,
    key: &ObjectKey,
    old: Option<Observed<'_>>,
) -> Vec<ObjectKey> {
    let new = objects.get(key.as_ref()).present();
    let [old, new] = [old, new].map(|it| it.map(|it| it.object.text(&["metadata", "uid"]).into_owned()));
    match old {
        Some(uid) if !uid.is_empty() && new.as_ref() != Some(&uid) => {
            objects.owned(&uid, None).map(|dependent| dependent.key.to_owned()).collect()
        }
        _ => Vec::new(),
    }
}
