//! What objects of a cluster say themselves of health.

use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxBuildHasher, FxHashMap};
use taffrail_status::Object;
use taffrail_status::json::Value;

use crate::cel::{Answer, HealthChecks, ReadExpression, ReadyExpr};
use crate::layer::Origin;
#[cfg(not(target_family = "wasm"))]
use crate::lua::Customizations;
use crate::script::Script;

/// More of what was read is not kept; who asks for all again and again has fewer.
const KEPT: usize = 4096;

/// Reads what objects say of health, each time they say something else.
#[derive(Debug)]
pub(crate) struct School {
    reader: ReadExpression,
    /// By what they say; nothing where that cannot be read.
    read: Mutex<FxHashMap<u64, Option<Arc<dyn Script>>>>,
}

impl School {
    pub(crate) fn new(reader: ReadExpression) -> School {
        School { reader, read: Mutex::default() }
    }

    /// What an object says of the health of others; `None` when it says nothing, or nothing that can be read: its own tool
    /// refuses it then and says so.
    pub(crate) fn script(&self, teacher: &Object<'_>) -> Option<Arc<dyn Script>> {
        let (path, read): (&[&str], Read) = match (teacher.group(), teacher.kind()) {
            _ if delivers(teacher) => (&["spec", "healthCheckExprs"], health_checks),
            #[cfg(not(target_family = "wasm"))]
            ("", "ConfigMap") => (&["data"], customizations),
            _ => return None,
        };
        let said = teacher.at(path).filter(|said| !said.is_null())?;
        let key = digest(said)?;
        let mut kept = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(script) = kept.get(&key) {
            return script.clone();
        }
        let script = read(teacher, self.reader);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(key, script.clone());
        script
    }

    /// What an object of Flux asks of one that it depends on, and does not find.
    pub(crate) fn unmet_by(&self, object: &Object<'_>, dependency: &Object<'_>) -> Option<String> {
        if !delivers(object) || (object.group(), object.kind()) != (dependency.group(), dependency.kind()) {
            return None;
        }
        let text = |entry: Value<'_>, key: &str| {
            entry.get(key).and_then(Value::as_str).map(|text| text.into_owned()).unwrap_or_default()
        };
        let is_meant = |entry: &Value<'_>| {
            let namespace = Some(text(*entry, "namespace")).filter(|namespace| !namespace.is_empty());
            text(*entry, "name") == dependency.name()
                && namespace.as_deref().unwrap_or(&object.namespace()) == dependency.namespace()
        };
        let entry = object.at(&["spec", "dependsOn"])?.items()?.find(is_meant)?;
        let written = text(entry, "readyExpr");
        if written.trim().is_empty() {
            return None;
        }
        let called = format!("{} {}/{}", dependency.kind(), dependency.namespace(), dependency.name());
        let asked = ReadyExpr::read(&written, &self.reader);
        let trees = || Some((object.root().to_tree().ok()?, dependency.root().to_tree().ok()?));
        let answer = match asked {
            Ok(asked) => trees().map(|(object, dependency)| asked.ask(&object, &dependency))?,
            Err(error) => Answer::Fault(error.to_string()),
        };
        match answer {
            Answer::True => None,
            Answer::False => Some(format!("readyExpr does not hold of {called}: {written}")),
            Answer::Missing(what) => {
                Some(format!("readyExpr does not hold of {called} yet, {what}: {written}"))
            }
            Answer::Fault(why) => Some(format!("readyExpr cannot be asked of {called}, {why}: {written}")),
        }
    }
}

/// Whether an object of Flux delivers others.
fn delivers(object: &Object<'_>) -> bool {
    matches!(
        (object.group(), object.kind()),
        ("kustomize.toolkit.fluxcd.io", "Kustomization") | ("helm.toolkit.fluxcd.io", "HelmRelease")
    )
}

type Read = fn(&Object<'_>, ReadExpression) -> Option<Arc<dyn Script>>;

fn digest(said: Value<'_>) -> Option<u64> {
    let text = serde_json::to_string(&said.to_tree().ok()?).ok()?;
    let mut hasher = FxBuildHasher.build_hasher();
    hasher.write(text.as_bytes());
    Some(hasher.finish())
}

fn health_checks(teacher: &Object<'_>, reader: ReadExpression) -> Option<Arc<dyn Script>> {
    let tree = teacher.root().to_tree().ok()?;
    let checks = HealthChecks::of_object(Origin::Cluster, &tree, &reader).ok()??;
    Some(Arc::new(checks))
}

/// What an `argocd-cm` says. Which ConfigMap that is, is known to who hands it over.
#[cfg(not(target_family = "wasm"))]
fn customizations(teacher: &Object<'_>, _: ReadExpression) -> Option<Arc<dyn Script>> {
    let scripts = Customizations::of_config_map_object(Origin::Cluster, teacher.root())?;
    Some(Arc::new(scripts))
}
