//! Objects that say what health means for what an app declares, and how far each of them is heard.
//!
//! Whoever may write into one namespace can make a ConfigMap `argocd-cm` and a workload of any name there. What such people
//! cannot make is a ClusterRoleBinding, so an Argo CD is known by the one of its application controller, if its role may write
//! whatever there is, or by the user's settings. Many workloads of tenants have bindings that let them read.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use taffrail_object::json::Value;
use taffrail_object::{GroupKind, Object, ObjectKey, Projection};
use taffrail_status::{ActiveRules, Observed, Payer, Presence, Teacher, Trust, Voice};

use crate::delivery::{Declaration, argo};
use crate::fleet::Fleet;
use crate::identity::Delivery;
use crate::objects::{Objects, Scope, ScopeError};

/// The label of the workload that applies what Applications declare, and its value.
pub(crate) const COMPONENT: [&str; 2] = ["app.kubernetes.io/component", "application-controller"];

/// The selector for it.
pub(crate) const CONTROLLERS: &str = "app.kubernetes.io/component=application-controller";

/// The kinds that such a workload has.
pub(crate) const WORKLOADS: [(&str, &str); 2] = [("apps", "Deployment"), ("apps", "StatefulSet")];

/// The kind by which an Argo CD is known.
pub(crate) const BINDING: (&str, &str) = ("rbac.authorization.k8s.io", "ClusterRoleBinding");

/// The kind that says what a binding allows.
pub(crate) const ROLE: (&str, &str) = ("rbac.authorization.k8s.io", "ClusterRole");

/// A selector that chooses every binding or role: a read with it is made to know an Argo CD and for nothing else, so not being let
/// read them leaves out nothing that anybody asked for.
pub(crate) const ALL_BINDINGS: &str = "metadata.name!=";

/// The namespace into which the installer of Argo CD puts it.
pub(crate) const INSTALLED: &str = "argocd";

/// The ConfigMap with the scripts of an Argo CD.
pub(crate) const SETTINGS: &str = "argocd-cm";

/// The ConfigMap that says which namespaces an Argo CD serves beside its own.
pub(crate) const PARAMETERS: &str = "argocd-cmd-params-cm";

/// The most namespaces of a cluster that are looked into for an Argo CD because Applications are there. Each costs reads, and
/// streams for as long as the cluster is followed.
pub(crate) const MOST_NAMESPACES: usize = 500;

/// The namespaces of a cluster with Applications.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Namespaces {
    /// Those that are looked into for an Argo CD.
    pub(crate) looked_into: BTreeSet<String>,
    /// How many are not.
    pub(crate) left_out: usize,
}

impl Namespaces {
    /// Finds those of a cluster: of many, the ones that the user names come first, then that of the installer, then those with most
    /// Applications.
    pub(crate) fn of(objects: &dyn Objects, trust: &Trust) -> Namespaces {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for application in objects.of_kind(argo::GROUP, "Application", None) {
            *numbers.entry(application.key.namespace).or_default() += 1;
        }
        let mut all: Vec<(&str, usize)> = numbers.into_iter().collect();
        let left_out = all.len().saturating_sub(MOST_NAMESPACES);
        if left_out > 0 {
            all.sort_by_cached_key(|(name, number)| {
                let is_named = trust.names_argocd(objects.name(), name);
                (!is_named, *name != INSTALLED, std::cmp::Reverse(*number), *name)
            });
        }
        let looked_into = all.into_iter().take(MOST_NAMESPACES).map(|(name, _)| name.to_owned()).collect();
        Namespaces { looked_into, left_out }
    }

    /// Returns what is reported of those that are left out.
    pub(crate) fn error(&self) -> Option<ScopeError> {
        let all = self.looked_into.len() + self.left_out;
        let message = format!(
            "Applications are in {all} namespaces: in {MOST_NAMESPACES} of them the settings of an Argo CD are looked for"
        );
        let scope = Scope::Input(format!("ConfigMaps {SETTINGS}"));
        (self.left_out > 0).then(|| ScopeError { scope, reason: "OverLimit".to_owned(), message })
    }
}

/// How sure it is that a namespace is that of an Argo CD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// Nothing of one is there.
    Unknown,
    /// A workload is there that says it is one.
    Seen,
    /// The user says so, or a ClusterRoleBinding to a role that may write everything does.
    Known,
}

/// How sure it is that an Argo CD runs in a namespace of a cluster.
pub fn argo_standing(objects: &dyn Objects, namespace: &str, trust: &Trust) -> Standing {
    if trust.names_argocd(objects.name(), namespace) {
        return Standing::Known;
    }
    let mut accounts = BTreeSet::new();
    for (group, kind) in WORKLOADS {
        for workload in objects.of_kind(group, kind, Some(namespace)) {
            let object = &workload.object;
            let [label, value] = COMPONENT;
            if workload.projection != Projection::Full || object.text(&["metadata", "labels", label]) != value
            {
                continue;
            }
            accounts.insert(object.text(&["spec", "template", "spec", "serviceAccountName"]).into_owned());
        }
    }
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
                // What every Pod of a namespace runs as proves nothing by its rights: no Argo CD runs as that.
                && !matches!(&*text("name"), "" | "default")
                && accounts.contains(&*text("name"))
        });
        is_bound
            && binding.object.text(&["roleRef", "kind"]) == ROLE.1
            && allows_all(&binding.object.text(&["roleRef", "name"]))
    };
    if objects.of_kind(group, kind, None).any(names) { Standing::Known } else { Standing::Seen }
}

/// Returns if a ClusterRole may write objects of every kind, as that of an Argo CD that applies what it is given.
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

/// Whether a ConfigMap has scripts of health, in its `data`.
pub(crate) fn has_health_scripts(object: &Object<'_>) -> bool {
    let data = object.at(&["data"]).and_then(Value::members);
    data.into_iter().flatten().any(|(key, text)| {
        let is_health =
            key.starts_with("resource.customizations.health.") || *key == *"resource.customizations";
        is_health && !text.is_str("")
    })
}

/// The scripts of an Argo CD that are meant for an Application, and how far they are heard.
pub(crate) struct Settings {
    /// The ConfigMap.
    pub(crate) key: ObjectKey,
    pub(crate) standing: Standing,
}

/// What is known of each namespace, by the name of its cluster and its own; found out once, however many Applications ask.
#[derive(Default)]
pub(crate) struct Standings {
    known: RefCell<HashMap<(String, String), Standing>>,
    /// Those with scripts of health.
    teaching: RefCell<HashMap<(String, String), bool>>,
    /// By cluster, the namespace of the Argo CD, and the one that it may serve.
    served: RefCell<HashMap<(String, String, String), bool>>,
}

impl Standings {
    fn of(&self, objects: &dyn Objects, namespace: &str, trust: &Trust) -> Standing {
        let place = (objects.name().to_owned(), namespace.to_owned());
        once(&self.known, place, || argo_standing(objects, namespace, trust))
    }

    /// Returns the ConfigMap with the scripts of health in a namespace, if there are any.
    fn scripts(&self, objects: &dyn Objects, namespace: &str) -> Option<ObjectKey> {
        let key = ObjectKey::new("", "ConfigMap", namespace, SETTINGS);
        let place = (objects.name().to_owned(), namespace.to_owned());
        let read = || whole(objects, &key).is_some_and(|it| has_health_scripts(&it.object));
        once(&self.teaching, place, read).then_some(key)
    }

    fn serves(&self, objects: &dyn Objects, argo: &str, namespace: &str) -> bool {
        let place = (objects.name().to_owned(), argo.to_owned(), namespace.to_owned());
        once(&self.served, place, || serves(objects, argo, namespace))
    }

    /// The scripts that are meant for an Application: those of a known Argo CD that serves its namespace, else those beside it.
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

/// Returns the answer to a question that may be asked often.
fn once<K: Eq + Hash, V: Copy>(known: &RefCell<HashMap<K, V>>, place: K, answer: impl FnOnce() -> V) -> V {
    if let Some(known) = known.borrow().get(&place) {
        return *known;
    }
    let answer = answer();
    known.borrow_mut().insert(place, answer);
    answer
}

/// The scripts that may be meant for an Application and could not be read, and why: what they would say is not known.
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

/// Whether an Argo CD serves the Applications of another namespace: those that its parameters list, with wildcards.
pub(crate) fn serves(objects: &dyn Objects, argo: &str, namespace: &str) -> bool {
    let key = ObjectKey::new("", "ConfigMap", argo, PARAMETERS);
    let Some(parameters) = whole(objects, &key) else { return false };
    let listed = parameters.object.text(&["data", "application.namespaces"]);
    listed.split(',').any(|pattern| matches(pattern.trim().as_bytes(), namespace.as_bytes()))
}

/// Whether a pattern with `*` and `?` fits.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // Where the last star stands, and from where what is behind it was tried last.
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

/// One who says what health means for the objects of an app, and is not heard in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unheard {
    /// The object that says it, in the home of the app.
    pub object: ObjectKey,
    /// How far it is heard; `None`: not at all.
    pub voice: Option<Voice>,
    /// What would have it heard, as it is written in the settings.
    pub setting: String,
}

/// The objects that may say what health means for what an app declares, the declaring one and the settings of its tool; and one of
/// them that is not heard in full.
pub(crate) fn teachers<'f>(
    fleet: &'f Fleet<'_>,
    app: &Declaration,
    rules: &ActiveRules<'_>,
    standings: &Standings,
) -> (Vec<Teacher<'f>>, Option<Unheard>) {
    let home = fleet.objects(app.home);
    let target = app.cluster().unwrap_or(app.home);
    let trust = &rules.options.trust;
    // What is another's is made worse, unless the user trusts that home.
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

/// Returns the teachers as far as they are heard for objects of which it is not sure that they are the app's: an author lists
/// whatever they like, and makes nothing better by that. What the people of a cluster wrote stays as it is, and the author of the
/// list pays for it: the scripts that others' objects may use would be used up by who lists them often.
pub(crate) fn of_doubted<'f>(teachers: &[Teacher<'f>]) -> Vec<Teacher<'f>> {
    let lowered = teachers.iter().cloned().map(|teacher| match teacher.payer {
        Payer::Object => Teacher { payer: Payer::Claimant, ..teacher },
        Payer::Teacher | Payer::Claimant => Teacher { voice: Voice::OnlyWorse, ..teacher },
    });
    lowered.collect()
}

/// The namespaces of a cluster in which it is to be found out whether an Argo CD is known: Applications may be meant by the
/// scripts there, or be named by bare names.
pub(crate) fn doubtful(objects: &dyn Objects, trust: &Trust) -> BTreeSet<String> {
    let looked_into = Namespaces::of(objects, trust).looked_into;
    let mut namespaces = BTreeSet::new();
    // Beside an Argo CD bare names in marks count, which is taken for granted only where its installer puts it.
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

/// Whether a read is made only to know an Argo CD.
pub(crate) fn is_to_know(kind: &GroupKind, labels: Option<&str>, fields: Option<&str>) -> bool {
    let is = |(group, name): &(&str, &str)| *group == kind.group && *name == kind.kind;
    [BINDING, ROLE].iter().any(is) && fields == Some(ALL_BINDINGS)
        || WORKLOADS.iter().any(is) && labels == Some(CONTROLLERS)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn namespaces_are_listed_with_wildcards() {
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
