//! The namespaces in which an Argo CD runs, and how sure that is.
//!
//! Any author who may write into one namespace can make a ConfigMap `argocd-cm` and a workload of any name
//! there. Such an author cannot make a ClusterRoleBinding, so an Argo CD is recognised by the binding of its
//! application controller, if its role may write every kind, or by the user's settings. Read-only bindings
//! prove nothing: many workloads of tenants have them.

use std::collections::{BTreeSet, HashMap};

use taffrail_object::json::Value;
use taffrail_object::{GroupKind, Object, ObjectKey, Projection};
use taffrail_status::{Observed, Presence, Trust};

use super::{GROUP, controller};
use crate::noting::{ask_at_once, keys_of};
use crate::objects::Objects;
use crate::questions::Question;
use crate::scope::{Scope, ScopeError};

/// The label and its value by which Argo CD's application controller is found, the workload that applies
/// Applications.
pub(crate) const COMPONENT: [&str; 2] = ["app.kubernetes.io/component", "application-controller"];

/// The label selector for application controllers.
pub const CONTROLLERS: &str = "app.kubernetes.io/component=application-controller";

/// The kinds of workload that an application controller can be.
pub const WORKLOADS: [(&str, &str); 2] = [("apps", "Deployment"), ("apps", "StatefulSet")];

/// The kind of the object that proves an Argo CD: group and kind.
pub const BINDING: (&str, &str) = ("rbac.authorization.k8s.io", "ClusterRoleBinding");

/// The kind of the role that a binding refers to.
pub const ROLE: (&str, &str) = ("rbac.authorization.k8s.io", "ClusterRole");

/// A field selector that matches every object. It marks a list as made only to prove an Argo CD, so that a refusal
/// is not reported.
///
/// If such a read is forbidden, nothing that the user asked for is missing.
pub(crate) const ALL_BINDINGS: &str = "metadata.name!=";

/// The namespace in which Argo CD's own installer puts it.
pub(crate) const INSTALLED: &str = "argocd";

/// The name of the ConfigMap with the health scripts of an Argo CD.
pub const SETTINGS: &str = "argocd-cm";

/// The name of the ConfigMap that lists which namespaces an Argo CD serves beside its own.
pub const PARAMETERS: &str = "argocd-cmd-params-cm";

/// The maximum number of namespaces of a cluster that are searched for an Argo CD because they hold Applications; for
/// more, an error is reported, and the others are not searched.
///
/// Each costs reads, and watches for as long as the cluster is followed.
pub(crate) const MAX_NAMESPACES: usize = 500;

/// The namespaces of a cluster with Applications.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Namespaces {
    /// The namespaces with Applications in which proofs of an Argo CD are read.
    pub(crate) looked_into: BTreeSet<String>,
    /// Number of namespaces with Applications beyond [`MAX_NAMESPACES`], in which no proof is read.
    pub(crate) left_out: usize,
}

impl Namespaces {
    /// Finds the namespaces with Applications in a cluster.
    ///
    /// If there are too many, those that the user names come first, then that of the installer, then those
    /// with most Applications.
    pub(crate) fn of(objects: &dyn Objects, trust: &Trust) -> Namespaces {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for application in keys_of(objects, GROUP, "Application") {
            *numbers.entry(application.key.namespace).or_default() += 1;
        }
        let mut all: Vec<(&str, usize)> = numbers.into_iter().collect();
        let left_out = all.len().saturating_sub(MAX_NAMESPACES);
        if left_out > 0 {
            all.sort_by_cached_key(|(name, number)| {
                let is_named = trust.names_argocd(objects.name(), name);
                (!is_named, *name != INSTALLED, std::cmp::Reverse(*number), *name)
            });
        }
        let looked_into = all.into_iter().take(MAX_NAMESPACES).map(|(name, _)| name.to_owned()).collect();
        Namespaces { looked_into, left_out }
    }

    /// Returns the error that some namespaces are not searched for an Argo CD; `None` if all are.
    pub(crate) fn error(&self) -> Option<ScopeError> {
        let all = self.looked_into.len() + self.left_out;
        let message = format!(
            "Applications are in {all} namespaces; Taffrail looks for Argo CD settings in only {MAX_NAMESPACES} of them"
        );
        let scope = Scope::Input(format!("ConfigMaps {SETTINGS}"));
        (self.left_out > 0).then(|| ScopeError { scope, reason: "OverLimit".to_owned(), message })
    }
}

/// The evidence that an Argo CD runs in a namespace, from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// No evidence: no application controller in the namespace was read whole.
    Unknown,
    /// Weak evidence: a workload is labelled as an application controller, which any author can do.
    Seen,
    /// Proof: the user's settings name the namespace, or a ClusterRoleBinding gives the ServiceAccount of its
    /// controller, other than `default`, a role that may write every kind.
    Known,
}

/// Returns the evidence that an Argo CD runs in a namespace of a cluster.
pub fn argo_standing(objects: &dyn Objects, namespace: &str, trust: &Trust) -> Standing {
    if trust.names_argocd(objects.name(), namespace) {
        return Standing::Known;
    }
    let accounts: BTreeSet<String> = ask_at_once(objects, &Question::ArgoControllers(namespace), || {
        let workloads =
            WORKLOADS.into_iter().flat_map(|(group, kind)| objects.of_kind(group, kind, Some(namespace)));
        let workloads = workloads.filter(is_controller);
        let account = ["spec", "template", "spec", "serviceAccountName"];
        workloads.map(|workload| workload.object.text(&account).into_owned()).collect()
    });
    if accounts.is_empty() {
        return Standing::Unknown;
    }
    let (group, kind) = BINDING;
    let allows_all = |role: &str| {
        let (group, kind) = ROLE;
        whole(objects, &ObjectKey::new(group, kind, "", role)).is_some_and(|role| writes_all(&role.object))
    };
    let names = |binding: Observed<'_>| {
        let mut subjects = binding.object.at(&["subjects"]).and_then(Value::items).into_iter().flatten();
        let is_bound = subjects.any(|subject| {
            let text = |key| subject.get(key).and_then(Value::as_str).unwrap_or_default();
            text("kind") == "ServiceAccount"
                && text("namespace") == namespace
                // Every Pod of a namespace can run as its default account, so the rights of that prove
                // nothing: no Argo CD uses it.
                && !matches!(&*text("name"), "" | "default")
                && accounts.contains(&*text("name"))
        });
        is_bound
            && binding.object.text(&["roleRef", "kind"]) == ROLE.1
            && allows_all(&binding.object.text(&["roleRef", "name"]))
    };
    if objects.of_kind(group, kind, None).any(names) { Standing::Known } else { Standing::Seen }
}

/// Returns true if a workload was read whole and its labels call it the application controller of an Argo CD.
pub(crate) fn is_controller(workload: &Observed<'_>) -> bool {
    let [label, value] = COMPONENT;
    workload.projection == Projection::Full && workload.object.text(&["metadata", "labels", label]) == value
}

/// Returns true if one rule of a ClusterRole allows to create, update or patch objects of every kind, as an Argo CD
/// needs.
fn writes_all(role: &Object<'_>) -> bool {
    let mut rules = role.at(&["rules"]).and_then(Value::items).into_iter().flatten();
    rules.any(|rule| {
        let has = |list: &str, words: &[&str]| {
            let mut items = rule.get(list).and_then(Value::items).into_iter().flatten();
            items.any(|item| words.iter().any(|word| item.is_str(word)))
        };
        has("apiGroups", &["*"])
            && has("resources", &["*"])
            && has("verbs", &["*", "create", "update", "patch"])
    })
}

/// Returns true if a ConfigMap has a key for health scripts whose value is not empty.
pub(crate) fn has_health_scripts(object: &Object<'_>) -> bool {
    let data = object.at(&["data"]).and_then(Value::members);
    data.into_iter().flatten().any(|(key, text)| {
        let is_health =
            key.starts_with("resource.customizations.health.") || *key == *"resource.customizations";
        is_health && !text.is_str("")
    })
}

/// Returns the ConfigMap `argocd-cm` that was not read whole and whose scripts may apply to an Application, with the
/// reason: the one beside the controller that the Application names, else that in its own namespace. `None` if both
/// were read or do not exist.
pub(crate) fn unread_settings(
    objects: &dyn Objects,
    application: &Object<'_>,
) -> Option<(ObjectKey, String)> {
    let own = application.namespace().into_owned();
    let namespaces = [controller(application), Some(own)];
    namespaces.into_iter().flatten().find_map(|namespace| {
        let key = ObjectKey::new("", "ConfigMap", namespace, SETTINGS);
        match objects.get(key.as_ref()) {
            Presence::Unobserved(why) => Some((key, why.into_owned())),
            Presence::Present(observed) if observed.projection != Projection::Full => {
                Some((key, "only its metadata was read".to_owned()))
            }
            Presence::Present(_) | Presence::Absent => None,
        }
    })
}

pub(crate) fn whole<'a>(objects: &'a dyn Objects, key: &ObjectKey) -> Option<Observed<'a>> {
    objects.get(key.as_ref()).present().filter(|observed| observed.projection == Projection::Full)
}

/// Returns true if the parameters of the Argo CD in the namespace `argo` say that it serves Applications in
/// `namespace`.
pub(crate) fn serves(objects: &dyn Objects, argo: &str, namespace: &str) -> bool {
    let key = ObjectKey::new("", "ConfigMap", argo, PARAMETERS);
    let Some(parameters) = whole(objects, &key) else { return false };
    let listed = parameters.object.text(&["data", "application.namespaces"]);
    listed.split(',').any(|pattern| matches(pattern.trim().as_bytes(), namespace.as_bytes()))
}

/// Returns true if the whole `text` matches a pattern with `*` and `?`.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // The position of the last star, and the position in `text` from which the part after it was tried last.
    let mut star = None;
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(own) if *own == b'?' || text.get(from) == Some(own) => {
                at += 1;
                from += 1;
            }
            _ => match star {
                Some((place, tried)) => {
                    star = Some((place, tried + 1));
                    at = place + 1;
                    from = tried + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|byte| *byte == b'*'))
}

/// Returns the namespaces of a cluster for which proofs of an Argo CD must be read, of those that hold Applications or
/// that these name as their controller's. It leaves out those that the user's settings name, and takes one if its
/// `argocd-cm` has health scripts, or if it is not `argocd` and holds an Application that names no other controller,
/// whose bare name may be a mark.
pub(crate) fn doubtful(objects: &dyn Objects, trust: &Trust) -> BTreeSet<String> {
    let looked_into = Namespaces::of(objects, trust).looked_into;
    let mut namespaces = BTreeSet::new();
    // Beside an Argo CD bare names in marks count, which is taken for granted only where its installer puts
    // it.
    let mut homes: BTreeSet<&str> = BTreeSet::new();
    for application in objects.of_kind(GROUP, "Application", None) {
        let own = application.key.namespace;
        let controller = controller(&application.object);
        if controller.is_none() && own != INSTALLED && looked_into.contains(own) {
            homes.insert(own);
        }
        namespaces.extend(controller);
    }
    namespaces.extend(looked_into.iter().cloned());
    namespaces.retain(|namespace| {
        let key = ObjectKey::new("", "ConfigMap", &**namespace, SETTINGS);
        !trust.names_argocd(objects.name(), namespace)
            && (homes.contains(&**namespace)
                || whole(objects, &key).is_some_and(|it| has_health_scripts(&it.object)))
    });
    namespaces
}

/// Returns true if a list is made only to prove an Argo CD, by its kind and its label or field selector.
pub(crate) fn is_to_know(kind: &GroupKind, labels: Option<&str>, fields: Option<&str>) -> bool {
    let is = |(group, name): &(&str, &str)| *group == kind.group && *name == kind.kind;
    [BINDING, ROLE].iter().any(is) && fields == Some(ALL_BINDINGS)
        || WORKLOADS.iter().any(is) && labels == Some(CONTROLLERS)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn application_namespaces_match_wildcards() {
        for (pattern, text, fits) in [
            ("team-a", "team-a", true),
            ("team-*", "team-a", true),
            ("*", "team-a", true),
            ("*-a*", "team-a", true),
            ("team-?", "team-ab", false),
            ("team", "team-a", false),
            ("", "team-a", false),
            ("*b*a", "team-a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} {text}");
        }
    }
}
