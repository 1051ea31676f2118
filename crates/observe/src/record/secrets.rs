//! Selects the parts of Secrets that a dump keeps: Helm releases and cluster addresses. No other values of Secrets are
//! read.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use taffrail_cluster::copy_members;
use taffrail_object::json::{self, DocumentBuilder, Kind, OwnedDocument};
use taffrail_object::{LAST_APPLIED, Object, may_show_annotation, yaml};

/// Prefix of the names of Secrets that contain a Helm release.
const HELM: &str = "sh.helm.release.v1.";

/// Maximum number of revisions kept per release: the newest ones, because while an upgrade runs the previous one
/// counts.
const MAX_REVISIONS: usize = 2;

/// Annotations with which tools keep a copy of the whole object, including Secret values.
const COPIES: [&str; 2] = [LAST_APPLIED, "kapp.k14s.io/original"];

/// Returns the JSON of an object for a dump: without embedded copies, and for a Secret without managedFields and
/// without annotations that may contain a value.
pub(super) fn without_copies(object: &Object<'_>) -> Vec<u8> {
    let is_secret = object.group().is_empty() && object.kind() == "Secret";
    let is_kept = |name: &str| match is_secret {
        true => may_show_annotation(name),
        false => !COPIES.contains(&name),
    };
    let annotations = |key: &str, value: json::Value<'_>, to: &mut Vec<u8>| {
        let is_map = value.kind() == Kind::Object;
        if key != "annotations" || !(is_map || is_secret) {
            return false;
        }
        match is_map {
            true => copy_members(value, is_kept, to, |_, _, _| false),
            false => to.extend_from_slice(b"null"),
        }
        true
    };
    let mut text = Vec::with_capacity(object.root().text().unwrap_or_default().len());
    copy_members(
        object.root(),
        |_| true,
        &mut text,
        |key, value, to| {
            let is_metadata = key == "metadata" && value.kind() == Kind::Object;
            if is_metadata {
                copy_members(value, |name| !is_secret || name != "managedFields", to, annotations);
            }
            is_metadata
        },
    );
    text
}

/// Removes user and password from a URL.
fn without_user(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('@') => (scheme, rest),
        _ => ("", address),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // A slash in a password does not end the authority.
    let has_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let is_host =
        !authority.contains('@') && authority.rsplit_once(':').is_none_or(|(_, port)| has_port(port));
    match rest.rsplit_once('@') {
        Some((_, host)) if !is_host && scheme.is_empty() => host.to_owned(),
        Some((_, host)) if !is_host => format!("{scheme}://{host}"),
        _ => address.to_owned(),
    }
}

/// The Secrets to read in full, collected while the other objects are dumped.
#[derive(Debug, Default)]
pub(super) struct SecretsToRead {
    /// The newest [`MAX_REVISIONS`] stored revisions by namespace and release.
    releases: BTreeMap<(String, String), BTreeSet<u64>>,
    /// Argo CD's cluster Secrets, by namespace and name.
    clusters: BTreeSet<(String, String)>,
    /// All listed Secrets, by namespace and name.
    listed: BTreeSet<(String, String)>,
    /// Kubeconfig Secrets that Flux objects name, by namespace and name, with their data keys.
    kubeconfigs: BTreeMap<(String, String), BTreeSet<String>>,
}

/// The part of a Secret's values that the dump keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeptValues {
    Release,
    Cluster,
    Kubeconfig(BTreeSet<String>),
}

impl SecretsToRead {
    /// Records which Secrets to read because of `object`: if it is one, or if it names one.
    pub(super) fn see(&mut self, object: &Object<'_>) {
        let namespace = || object.namespace().into_owned();
        match (object.group(), object.kind()) {
            ("", "Secret") => {
                let label = |name: &str| object.text(&["metadata", "labels", name]);
                let name = object.name();
                self.listed.insert((namespace(), name.clone().into_owned()));
                if label("owner") == "helm"
                    && let Some((release, revision)) =
                        name.strip_prefix(HELM).and_then(|rest| rest.rsplit_once(".v"))
                    && let Ok(revision) = revision.parse()
                {
                    let stored = self.releases.entry((namespace(), release.to_owned())).or_default();
                    stored.insert(revision);
                    if stored.len() > MAX_REVISIONS {
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

    /// Returns the Secrets to read: namespace, name, and the kind of value to keep. The first ones of each namespace
    /// come before the second ones of any. If `all_listed`, all Secrets were seen, and others do not exist.
    pub(super) fn list(self, all_listed: bool) -> Vec<(String, String, KeptValues)> {
        let releases = self.releases.into_iter().flat_map(|((namespace, release), revisions)| {
            let name = move |revision| format!("{HELM}{release}.v{revision}");
            revisions
                .into_iter()
                .map(move |revision| (namespace.clone(), name(revision), KeptValues::Release))
        });
        let clusters =
            self.clusters.into_iter().map(|(namespace, name)| (namespace, name, KeptValues::Cluster));
        let kubeconfigs = self
            .kubeconfigs
            .into_iter()
            .filter(|(secret, _)| !all_listed || self.listed.contains(secret))
            .map(|((namespace, name), keys)| (namespace, name, KeptValues::Kubeconfig(keys)));
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let all = clusters.chain(kubeconfigs).chain(releases);
        let mut secrets: Vec<_> = all
            .map(|secret| {
                let count = counts.entry(secret.0.clone()).or_default();
                *count += 1;
                (*count, secret)
            })
            .collect();
        secrets.sort_by_key(|(count, _)| *count);
        secrets.into_iter().map(|(_, secret)| secret).collect()
    }
}

/// Returns a Secret with only the values that the dump keeps, perhaps none; `None` if it has 4 GiB or more.
pub(super) fn masked(object: &Object<'_>, kept: &KeptValues) -> Option<OwnedDocument> {
    let secret = object.root();
    let value = |key: &str| Some(secret.at(&["data", key])?.as_str()?.into_owned());
    let of_type = secret.get("type");
    let data: Map<String, Value> = match kept {
        KeptValues::Release if of_type.is_some_and(|of_type| of_type.is_str("helm.sh/release.v1")) => {
            value("release").map(|release| ("release".to_owned(), release.into())).into_iter().collect()
        }
        KeptValues::Release => Map::new(),
        KeptValues::Cluster => {
            let name = value("name").map(|name| ("name".to_owned(), name.into()));
            let server = value("server").and_then(|server| {
                let server = String::from_utf8(BASE64.decode(server.trim()).ok()?).ok()?;
                Some(("server".to_owned(), BASE64.encode(without_user(&server)).into()))
            });
            name.into_iter().chain(server).collect()
        }
        KeptValues::Kubeconfig(keys) => {
            let address = |key: &String| Some((key.clone(), address(&value(key)?)?.into()));
            keys.iter().filter_map(address).collect()
        }
    };
    let data = OwnedDocument::parse(Value::Object(data).to_string().into_bytes()).ok()?;
    let null = OwnedDocument::parse(*b"null").ok()?;
    let mut masked = DocumentBuilder::new(data.text().len());
    masked.string("apiVersion", "v1");
    masked.value("data", data.root());
    masked.string("kind", "Secret");
    masked.value("metadata", secret.get("metadata").unwrap_or(null.root()));
    masked.value("type", of_type.unwrap_or(null.root()));
    masked.finish().ok()
}

/// The parts of a kubeconfig that name a server.
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

/// Reduces a kubeconfig to the address of its current context; input and output are base64. Returns `None` if it
/// cannot be parsed or the context has no server.
fn address(config: &str) -> Option<String> {
    let config = BASE64.decode(config.trim()).ok()?;
    let config: Kubeconfig = yaml::read(std::str::from_utf8(&config).ok()?).ok()?;
    let context =
        config.contexts.iter().find(|context| context["name"] == config.current_context.as_str())?;
    let cluster = config.clusters.iter().find(|cluster| cluster["name"] == context["context"]["cluster"])?;
    let name = &config.current_context;
    let server = without_user(cluster["cluster"]["server"].as_str()?);
    let masked = json!({"apiVersion": "v1", "kind": "Config", "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name}}],
        "clusters": [{"name": name, "cluster": {"server": server}}]});
    Some(BASE64.encode(masked.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_removed_from_addresses() {
        for (address, plain) in [
            ("https://u:pw@b", "https://b"),
            ("https://u:p/w@b:6443/c", "https://b:6443/c"),
            ("u:pw@b", "b"),
            ("https://b:6443/c@d", "https://b:6443/c@d"),
            ("https://[::1]:6443/c", "https://[::1]:6443/c"),
        ] {
            assert_eq!(without_user(address), plain);
        }
    }

    #[test]
    fn masked_secrets_are_copied_part_by_part() {
        let masked_of = |text: &str, kept: &KeptValues| {
            let secret = OwnedDocument::parse(text.as_bytes()).unwrap();
            let masked = masked(&Object::new(secret.root()).unwrap(), kept).unwrap();
            String::from_utf8(masked.text().to_vec()).unwrap()
        };
        let head = r#""apiVersion":"v1","kind":"Secret","metadata":{"name":"a", "x":1.0}"#;
        // What is nested too deeply for a tree is not copied, and hinders nothing.
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let release = format!(
            r#"{{{head},"type":"helm.sh/release.v1","data":{{"release":"eA==","other":"hush"}},"x":{deep}}}"#
        );
        assert_eq!(
            masked_of(&release, &KeptValues::Release),
            r#"{"apiVersion":"v1","data":{"release":"eA=="},"kind":"Secret","metadata":{"name":"a", "x":1.0},"type":"helm.sh/release.v1"}"#
        );
        let typeless = format!(r#"{{{head},"data":{{"release":"eA=="}}}}"#);
        assert_eq!(
            masked_of(&typeless, &KeptValues::Release),
            r#"{"apiVersion":"v1","data":{},"kind":"Secret","metadata":{"name":"a", "x":1.0},"type":null}"#
        );
    }

    #[test]
    fn secrets_are_read_in_turns_by_namespace_if_they_exist() {
        let metadata = |namespace: &str, name: &str| json!({"namespace": namespace, "name": name});
        let mut objects = vec![json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": metadata("shop", "sh.helm.release.v1.web.v1")})];
        objects[0]["metadata"]["labels"] = json!({"owner": "helm"});
        for name in ["a", "b", "c", "missing"] {
            objects.push(json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                "metadata": metadata("aaa", name), "spec": {"kubeConfig": {"secretRef": {"name": name}}}}));
            if name != "missing" {
                let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata("aaa", name)});
                objects.push(secret);
            }
        }
        let listed = |all_listed| {
            let mut wanted = SecretsToRead::default();
            for object in &objects {
                let document = json::OwnedDocument::parse(object.to_string().into_bytes()).unwrap();
                wanted.see(&Object::new(document.root()).unwrap());
            }
            wanted.list(all_listed).into_iter().map(|(_, name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(listed(true), ["a", "sh.helm.release.v1.web.v1", "b", "c"]);
        assert_eq!(listed(false), ["a", "sh.helm.release.v1.web.v1", "b", "c", "missing"]);
    }

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
