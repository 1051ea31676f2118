//! Health rules that objects in the cluster contain, and the trust that each of these objects gets.
//!
//! Any author who may write into one namespace can make a ConfigMap `argocd-cm` and a workload of any name
//! there. Such an author cannot make a ClusterRoleBinding, so an Argo CD is recognised by the binding of its
//! application controller, if its role may write every kind, or by the user's settings. Read-only bindings
//! prove nothing: many workloads of tenants have them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use taffrail_object::json::Value;
use taffrail_object::{GroupKind, Object, ObjectKey, Projection};
use taffrail_status::{ActiveRules, Observed, Payer, Presence, Teacher, Trust, Voice};

use crate::delivery::{Declaration, argo};
use crate::fleet::Fleet;
use crate::identity::Delivery;
use crate::memo::Memo;
use crate::objects::{Objects, Scope, ScopeError};
use crate::questions::{Question, ask_at_once};

/// The label and value of the workload that applies what Applications declare.
pub(crate) const COMPONENT: [&str; 2] = ["app.kubernetes.io/component", "application-controller"];

/// The label selector for application controllers.
pub const CONTROLLERS: &str = "app.kubernetes.io/component=application-controller";

/// The kinds of workload that an application controller can be.
pub const WORKLOADS: [(&str, &str); 2] = [("apps", "Deployment"), ("apps", "StatefulSet")];

/// The kind of the binding by which an Argo CD is recognised.
pub const BINDING: (&str, &str) = ("rbac.authorization.k8s.io", "ClusterRoleBinding");

/// The kind of the role that a binding refers to.
pub const ROLE: (&str, &str) = ("rbac.authorization.k8s.io", "ClusterRole");

/// A field selector that matches every binding and role, and marks a read as made only to recognise an Argo
/// CD.
///
/// If such a read is forbidden, nothing that the user asked for is missing.
pub(crate) const ALL_BINDINGS: &str = "metadata.name!=";

/// The namespace into which Argo CD's own manifests install it.
pub(crate) const INSTALLED: &str = "argocd";

/// The name of the ConfigMap with the health scripts of an Argo CD.
pub const SETTINGS: &str = "argocd-cm";

/// The name of the ConfigMap that lists which namespaces an Argo CD serves beside its own.
pub const PARAMETERS: &str = "argocd-cmd-params-cm";

/// The maximum number of namespaces of a cluster that are searched for an Argo CD because they hold
/// Applications.
///
/// Each costs reads, and watches for as long as the cluster is followed.
pub(crate) const MAX_NAMESPACES: usize = 500;

/// The namespaces of a cluster with Applications.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Namespaces {
    /// The namespaces that are searched for an Argo CD.
    pub(crate) looked_into: BTreeSet<String>,
    /// Number of namespaces that are not searched.
    pub(crate) left_out: usize,
}

impl Namespaces {
    /// Finds the namespaces with Applications in a cluster.
    ///
    /// If there are too many, those that the user names come first, then that of the installer, then those
    /// with most Applications.
    pub(crate) fn of(objects: &dyn Objects, trust: &Trust) -> Namespaces {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for application in objects.of_kind(argo::GROUP, "Application", None) {
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

    /// Returns the error that some namespaces were left out, if any were.
    pub(crate) fn error(&self) -> Option<ScopeError> {
        let all = self.looked_into.len() + self.left_out;
        let message = format!(
            "Applications are in {all} namespaces: in {MAX_NAMESPACES} of them the settings of an Argo CD are looked for"
        );
        let scope = Scope::Input(format!("ConfigMaps {SETTINGS}"));
        (self.left_out > 0).then(|| ScopeError { scope, reason: "OverLimit".to_owned(), message })
    }
}

/// Confidence that a namespace holds an Argo CD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// The namespace has no application controller.
    Unknown,
    /// A workload is labelled as an application controller.
    Seen,
    /// The user's settings name it, or its ClusterRoleBinding gives it a role that may write every kind.
    Known,
}

/// Returns the confidence that an Argo CD runs in a namespace of a cluster.
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

/// Returns true for a workload that says that it is the application controller of an Argo CD.
pub(crate) fn is_controller(workload: &Observed<'_>) -> bool {
    let [label, value] = COMPONENT;
    workload.projection == Projection::Full && workload.object.text(&["metadata", "labels", label]) == value
}

/// Returns true if a ClusterRole may write objects of every kind, as an Argo CD needs.
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

/// Returns true if a ConfigMap has health scripts in its `data`.
pub(crate) fn has_health_scripts(object: &Object<'_>) -> bool {
    let data = object.at(&["data"]).and_then(Value::members);
    data.into_iter().flatten().any(|(key, text)| {
        let is_health =
            key.starts_with("resource.customizations.health.") || *key == *"resource.customizations";
        is_health && !text.is_str("")
    })
}

/// The scripts of an Argo CD that apply to an Application, and the confidence in that Argo CD.
pub(crate) struct Settings {
    /// The ConfigMap.
    pub(crate) key: ObjectKey,
    pub(crate) standing: Standing,
}

/// A cache of facts about namespaces, computed once however many Applications need them.
#[derive(Default)]
pub(crate) struct Standings {
    known: Memo<(String, String), Standing>,
    /// True for namespaces with health scripts, by cluster and namespace.
    teaching: Memo<(String, String), bool>,
    /// True if an Argo CD serves a namespace, by cluster, the namespace of the Argo CD, and that namespace.
    served: Memo<(String, String, String), bool>,
}

impl Standings {
    fn of(&self, objects: &dyn Objects, namespace: &str, trust: &Trust) -> Standing {
        let place = (objects.name().to_owned(), namespace.to_owned());
        self.known.get(objects, place, || argo_standing(objects, namespace, trust))
    }

    /// Returns the key of the ConfigMap with health scripts in a namespace, if there are any.
    fn scripts(&self, objects: &dyn Objects, namespace: &str) -> Option<ObjectKey> {
        let key = ObjectKey::new("", "ConfigMap", namespace, SETTINGS);
        let place = (objects.name().to_owned(), namespace.to_owned());
        let read = || whole(objects, &key).is_some_and(|it| has_health_scripts(&it.object));
        self.teaching.get(objects, place, read).then_some(key)
    }

    fn serves(&self, objects: &dyn Objects, argo: &str, namespace: &str) -> bool {
        let place = (objects.name().to_owned(), argo.to_owned(), namespace.to_owned());
        self.served.get(objects, place, || serves(objects, argo, namespace))
    }

    /// Returns the scripts that apply to an Application: those of a known Argo CD that serves its namespace,
    /// otherwise those in its own namespace.
    pub(crate) fn settings(
        &self,
        objects: &dyn Objects,
        application: &Object<'_>,
        trust: &Trust,
    ) -> Option<Settings> {
        let own = application.namespace();
        if let Some(namespace) = argo::controller(application)
            && let Some(key) = self.scripts(objects, &namespace)
            && self.of(objects, &namespace, trust) == Standing::Known
            && self.serves(objects, &namespace, &own)
        {
            return Some(Settings { key, standing: Standing::Known });
        }
        let key = self.scripts(objects, &own)?;
        Some(Settings { key, standing: self.of(objects, &own, trust) })
    }
}

/// Returns the ConfigMap with scripts that may apply to an Application but could not be read, and the reason.
pub(crate) fn unread_settings(
    objects: &dyn Objects,
    application: &Object<'_>,
) -> Option<(ObjectKey, String)> {
    let own = application.namespace().into_owned();
    let namespaces = [argo::controller(application), Some(own)];
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

fn whole<'a>(objects: &'a dyn Objects, key: &ObjectKey) -> Option<Observed<'a>> {
    objects.get(key.as_ref()).present().filter(|observed| observed.projection == Projection::Full)
}

/// Returns true if an Argo CD serves the Applications of another namespace: its parameters list namespaces,
/// with wildcards.
pub(crate) fn serves(objects: &dyn Objects, argo: &str, namespace: &str) -> bool {
    let key = ObjectKey::new("", "ConfigMap", argo, PARAMETERS);
    let Some(parameters) = whole(objects, &key) else { return false };
    let listed = parameters.object.text(&["data", "application.namespaces"]);
    listed.split(',').any(|pattern| matches(pattern.trim().as_bytes(), namespace.as_bytes()))
}

/// Returns true if `text` matches a pattern with `*` and `?`.
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

/// An object that teaches health rules for the objects of an app but is not trusted in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unheard {
    /// The object, in the home of the app.
    pub object: ObjectKey,
    /// The trust that it gets; `None` if it is ignored.
    pub voice: Option<Voice>,
    /// The line of the settings that would make it trusted.
    pub setting: String,
}

/// Returns the objects that teach health rules for an app: its declaring object and the settings of its tool.
///
/// The second value is one of them that is not trusted in full, if there is one.
pub(crate) fn teachers<'f>(
    fleet: &'f Fleet<'_>,
    app: &Declaration,
    rules: &ActiveRules<'_>,
    standings: &Standings,
) -> (Vec<Teacher<'f>>, Option<Unheard>) {
    let home = fleet.objects(app.home);
    let target = app.cluster().unwrap_or(app.home);
    let trust = &rules.options.trust;
    // Rules for objects of another cluster can only make them look worse, unless the user trusts the home.
    let is_own = target == app.home || fleet.trusts(app.home, trust);
    let Some(declaring) = app.declaring.as_ref().and_then(|key| whole(home, key)) else {
        return (Vec::new(), None);
    };
    let teacher = |object: Object<'f>, standing: Standing| {
        let voice = if is_own && standing == Standing::Known { Voice::Full } else { Voice::OnlyWorse };
        let is_of_argo = object.kind() == "ConfigMap";
        let payer = if is_of_argo && voice == Voice::Full { Payer::Object } else { Payer::Teacher };
        let claimant = Cow::Owned(app.namespace.clone());
        Teacher { object, home: home.name(), target: fleet.objects(target).name(), voice, payer, claimant }
    };
    let settings = (app.delivery == Delivery::ArgoApplication)
        .then(|| standings.settings(home, &declaring.object, trust))
        .flatten();
    let says = declaring.object.at(&["spec", "healthCheckExprs"]).is_some_and(|checks| !checks.is_null());
    let trusted_home = || format!("trusted-homes: [{}]", home.name());
    let unheard = match &settings {
        Some(Settings { key, standing }) if *standing != Standing::Known => Some(Unheard {
            object: key.clone(),
            voice: (*standing == Standing::Seen).then_some(Voice::OnlyWorse),
            setting: format!("argocd: [{}]", key.namespace),
        }),
        Some(Settings { key, .. }) if !is_own => {
            Some(Unheard { object: key.clone(), voice: Some(Voice::OnlyWorse), setting: trusted_home() })
        }
        None if says && !is_own => Some(Unheard {
            object: declaring.key.to_owned(),
            voice: Some(Voice::OnlyWorse),
            setting: trusted_home(),
        }),
        _ => None,
    };
    let settings = settings.filter(|settings| settings.standing != Standing::Unknown);
    let settings =
        settings.and_then(|Settings { key, standing }| Some(teacher(whole(home, &key)?.object, standing)));
    ([teacher(declaring.object, Standing::Known)].into_iter().chain(settings).collect(), unheard)
}

/// Returns the teachers with the trust that they get for objects that may not be the app's.
///
/// An author can list any object, and must not make it look better by that. Rules of the cluster's own
/// administrators keep their trust, but the author of the list pays for running them: otherwise a long list
/// could use up the budget that other objects need.
pub(crate) fn of_doubted<'f>(teachers: &[Teacher<'f>]) -> Vec<Teacher<'f>> {
    let lowered = teachers.iter().cloned().map(|teacher| match teacher.payer {
        Payer::Object => Teacher { payer: Payer::Claimant, ..teacher },
        Payer::Teacher | Payer::Claimant => Teacher { voice: Voice::OnlyWorse, ..teacher },
    });
    lowered.collect()
}

/// Returns the namespaces of a cluster for which it must be decided if an Argo CD is known.
///
/// Health scripts there may apply to Applications, or bare names in marks may name them.
pub(crate) fn doubtful(objects: &dyn Objects, trust: &Trust) -> BTreeSet<String> {
    let looked_into = Namespaces::of(objects, trust).looked_into;
    let mut namespaces = BTreeSet::new();
    // Beside an Argo CD bare names in marks count, which is taken for granted only where its installer puts
    // it.
    let mut homes: BTreeSet<&str> = BTreeSet::new();
    for application in objects.of_kind(argo::GROUP, "Application", None) {
        let own = application.key.namespace;
        let controller = argo::controller(&application.object);
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

/// Returns true if a read is made only to recognise an Argo CD.
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
