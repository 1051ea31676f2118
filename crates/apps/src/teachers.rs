//! Health rules in objects of the cluster, such as Argo CD's scripts and Flux's `healthCheckExprs`, and the trust
//! in each of these objects.

use std::borrow::Cow;

use taffrail_object::{Object, ObjectKey};
use taffrail_status::{ActiveRules, Payer, Teacher, Trust, Voice};

use crate::declaration::Declaration;
use crate::delivery::argo;
use crate::delivery::argo::installs::{SETTINGS, Standing, argo_standing, has_health_scripts, serves, whole};
use crate::fleet::Fleet;
use crate::identity::Delivery;
use crate::memo::Memo;
use crate::objects::Objects;

/// The ConfigMap with the Argo CD health scripts for an Application, and the proof that an Argo CD runs in its
/// namespace.
pub(crate) struct ScriptSettings {
    /// The key of the ConfigMap with the scripts.
    pub(crate) key: ObjectKey,
    /// The proof that an Argo CD runs in the ConfigMap's namespace.
    pub(crate) standing: Standing,
}

/// A cache of three facts about namespaces with an Argo CD: the proof of it, its health scripts, and the namespaces
/// that it serves.
#[derive(Default)]
pub(crate) struct Standings {
    /// The proof that an Argo CD runs in a namespace, by cluster and namespace.
    known: Memo<(String, String), Standing>,
    /// True if a namespace has health scripts; by cluster and namespace.
    teaching: Memo<(String, String), bool>,
    /// True if an Argo CD serves a namespace: by cluster, the namespace of the Argo CD, and the namespace that it may
    /// serve.
    served: Memo<(String, String, String), bool>,
}

impl Standings {
    fn of(&self, objects: &dyn Objects, namespace: &str, trust: &Trust) -> Standing {
        let place = (objects.name().to_owned(), namespace.to_owned());
        self.known.get(objects, place, || argo_standing(objects, namespace, trust))
    }

    /// Returns the key of the ConfigMap with health scripts in `namespace`; `None` if there is none, or it was not read
    /// whole.
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

    /// Returns the ConfigMap with the health scripts that apply to an Application: that of the controller which its
    /// status names, if this is a known Argo CD with scripts that serves its namespace; otherwise that in its own
    /// namespace. `None` if there are no scripts.
    pub(crate) fn settings(
        &self,
        objects: &dyn Objects,
        application: &Object<'_>,
        trust: &Trust,
    ) -> Option<ScriptSettings> {
        let own = application.namespace();
        if let Some(namespace) = argo::controller(application)
            && let Some(key) = self.scripts(objects, &namespace)
            && self.of(objects, &namespace, trust) == Standing::Known
            && self.serves(objects, &namespace, &own)
        {
            return Some(ScriptSettings { key, standing: Standing::Known });
        }
        let key = self.scripts(objects, &own)?;
        Some(ScriptSettings { key, standing: self.of(objects, &own, trust) })
    }
}

/// An object with health rules for an app whose rules are ignored or limited because the object is not fully
/// trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unheard {
    /// The object, in the home cluster of the app.
    pub object: ObjectKey,
    /// The limited influence of the object's rules; `None` if they are ignored.
    pub voice: Option<Voice>,
    /// The line for Taffrail's settings that would make the object trusted.
    pub setting: String,
}

/// Returns the objects whose health rules apply to an app: its declaring object and, for an Application, the ConfigMap
/// with scripts of its Argo CD unless these are ignored; none if the declaring object was not read whole. The second
/// value is an object with such rules that is not fully trusted; `None` if all are.
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
        Some(ScriptSettings { key, standing }) if *standing != Standing::Known => Some(Unheard {
            object: key.clone(),
            voice: (*standing == Standing::Seen).then_some(Voice::OnlyWorse),
            setting: format!("argocd: [{}]", key.namespace),
        }),
        Some(ScriptSettings { key, .. }) if !is_own => {
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
    let settings = settings
        .and_then(|ScriptSettings { key, standing }| Some(teacher(whole(home, &key)?.object, standing)));
    ([teacher(declaring.object, Standing::Known)].into_iter().chain(settings).collect(), unheard)
}

/// Returns the same objects with less trust, for judging objects that an app claims without a mark on them.
///
/// An author can list any object, and must not make it look better by that. Rules of the cluster's own
/// administrators keep their trust, but the author of the list pays for running them: otherwise a long list could
/// use up the budget that other objects need.
pub(crate) fn of_doubted<'f>(teachers: &[Teacher<'f>]) -> Vec<Teacher<'f>> {
    let lowered = teachers.iter().cloned().map(|teacher| match teacher.payer {
        Payer::Object => Teacher { payer: Payer::Claimant, ..teacher },
        Payer::Teacher | Payer::Claimant => Teacher { voice: Voice::OnlyWorse, ..teacher },
    });
    lowered.collect()
}
