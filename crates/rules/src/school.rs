//! What objects of a cluster say themselves of health.

use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxBuildHasher, FxHashMap};
use taffrail_status::Object;
use taffrail_status::json::Value;

use crate::cel::{HealthChecks, ReadExpression};
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
            ("kustomize.toolkit.fluxcd.io", "Kustomization") | ("helm.toolkit.fluxcd.io", "HelmRelease") => {
                (&["spec", "healthCheckExprs"], health_checks)
            }
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
    let texts = teacher.at(&["data"])?.members()?;
    let texts = texts.filter_map(|(key, text)| Some((key.into_owned(), text.as_str()?.into_owned())));
    let scripts = Customizations::of_config_map(Origin::Cluster, &texts.collect());
    (!scripts.is_empty()).then(|| Arc::new(scripts) as Arc<dyn Script>)
}
