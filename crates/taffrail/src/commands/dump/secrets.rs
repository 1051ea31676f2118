//! What a dump keeps of Secrets: Helm's releases, and addresses of clusters. Nothing else of a Secret's values is asked for.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use taffrail_apps::yaml;
use taffrail_status::Object;

/// The start of the name of a Secret in which Helm keeps a release.
const HELM: &str = "sh.helm.release.v1.";

/// How many revisions of a release are kept: the newest, and the one before while that one is being installed.
const REVISIONS: usize = 2;

/// Secrets whose bodies are wanted.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// By namespace and release, the revisions that are stored.
    releases: BTreeMap<(String, String), BTreeSet<u64>>,
    /// Argo CD's Secrets of clusters, by namespace and name.
    clusters: BTreeSet<(String, String)>,
    /// Kubeconfigs that apps of Flux name, by namespace and name, with the keys in which they are.
    kubeconfigs: BTreeMap<(String, String), BTreeSet<String>>,
}

/// What is kept of a Secret's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kept {
    Release,
    Cluster,
    Kubeconfig(BTreeSet<String>),
}

impl Wanted {
    /// Looks at an object that is written down.
    pub(super) fn see(&mut self, object: &Object<'_>) {
        let namespace = || object.namespace().into_owned();
        match (object.group(), object.kind()) {
            ("", "Secret") => {
                let label = |name: &str| object.text(&["metadata", "labels", name]);
                let name = object.name();
                if label("owner") == "helm"
                    && let Some((release, revision)) =
                        name.strip_prefix(HELM).and_then(|rest| rest.rsplit_once(".v"))
                    && let Ok(revision) = revision.parse()
                {
                    let stored = self.releases.entry((namespace(), release.to_owned())).or_default();
                    stored.insert(revision);
                    if stored.len() > REVISIONS {
                        stored.pop_first();
                    }
                } else if label("argocd.argoproj.io/secret-type") == "cluster" {
                    self.clusters.insert((namespace(), name.into_owned()));
                }
            }
            ("kustomize.toolkit.fluxcd.io", "Kustomization") | ("helm.toolkit.fluxcd.io", "HelmRelease") => {
                let field = |name| object.text(&["spec", "kubeConfig", "secretRef", name]);
                let name = field("name");
                if name.is_empty() {
                    return;
                }
                let keys = self.kubeconfigs.entry((namespace(), name.into_owned())).or_default();
                match &*field("key") {
                    "" => keys.extend(["value".to_owned(), "value.yaml".to_owned()]),
                    key => drop(keys.insert(key.to_owned())),
                }
            }
            _ => {}
        }
    }

    /// Returns what is wanted: namespace, name, and what is kept of it.
    pub(super) fn list(self) -> Vec<(String, String, Kept)> {
        let releases = self.releases.into_iter().flat_map(|((namespace, release), revisions)| {
            let name = move |revision| format!("{HELM}{release}.v{revision}");
            revisions.into_iter().map(move |revision| (namespace.clone(), name(revision), Kept::Release))
        });
        let clusters = self.clusters.into_iter().map(|(namespace, name)| (namespace, name, Kept::Cluster));
        let kubeconfigs = self
            .kubeconfigs
            .into_iter()
            .map(|((namespace, name), keys)| (namespace, name, Kept::Kubeconfig(keys)));
        clusters.chain(kubeconfigs).chain(releases).collect()
    }
}

/// Returns a Secret with those of its values that are kept, perhaps none.
pub(super) fn masked(object: &Object<'_>, kept: &Kept) -> Option<Value> {
    let secret = object.root().to_tree().ok()?;
    let value = |key: &str| secret["data"][key].as_str().map(str::to_owned);
    let data: Map<String, Value> = match kept {
        Kept::Release if secret["type"] == "helm.sh/release.v1" => {
            value("release").map(|release| ("release".to_owned(), release.into())).into_iter().collect()
        }
        Kept::Release => Map::new(),
        Kept::Cluster => {
            let field = |key: &str| value(key).map(|text| (key.to_owned(), text.into()));
            ["name", "server"].into_iter().filter_map(field).collect()
        }
        Kept::Kubeconfig(keys) => {
            let address = |key: &String| Some((key.clone(), address(&value(key)?)?.into()));
            keys.iter().filter_map(address).collect()
        }
    };
    let (metadata, of_type) = (&secret["metadata"], &secret["type"]);
    Some(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": of_type, "data": data}))
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig {
    #[serde(default)]
    clusters: Vec<Value>,
    #[serde(default)]
    contexts: Vec<Value>,
    #[serde(default)]
    current_context: String,
}

/// Returns a kubeconfig that has nothing but the address of the current context; both in base64.
fn address(config: &str) -> Option<String> {
    let config = BASE64.decode(config.trim()).ok()?;
    let config: Kubeconfig = yaml::read(std::str::from_utf8(&config).ok()?).ok()?;
    let context =
        config.contexts.iter().find(|context| context["name"] == config.current_context.as_str())?;
    let cluster = config.clusters.iter().find(|cluster| cluster["name"] == context["context"]["cluster"])?;
    let name = &config.current_context;
    let masked = json!({"apiVersion": "v1", "kind": "Config", "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name}}],
        "clusters": [{"name": name, "cluster": {"server": cluster["cluster"]["server"].as_str()?}}]});
    Some(BASE64.encode(masked.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubeconfigs_keep_nothing_but_the_address() {
        let config = "current-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]\n\
            clusters: [{name: b, cluster: {server: 'https://b', certificate-authority-data: xyz}}]\n\
            users: [{name: c, user: {token: hush}}]\n";
        let masked = address(&BASE64.encode(config)).unwrap();
        let masked = String::from_utf8(BASE64.decode(masked).unwrap()).unwrap();
        assert!(
            masked.contains("https://b") && !masked.contains("hush") && !masked.contains("xyz"),
            "{masked}"
        );
    }
}
