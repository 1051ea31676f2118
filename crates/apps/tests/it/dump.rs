//! Clusters out of YAML.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_apps::{AppList, Snapshot, apps};
use taffrail_object::Projection;
use taffrail_object::json::OwnedDocument;
use taffrail_status::ActiveRules;

/// The time at which all cases are judged.
pub(crate) const NOW: Timestamp = Timestamp::constant(1_772_366_400, 0);

pub(crate) fn documents(yaml: &str) -> Vec<Value> {
    let options = serde_saphyr::options! { budget: None };
    serde_saphyr::from_multiple_with_options(yaml, options).unwrap()
}

/// A cluster that holds the objects of a dump; a first line `# server: URL` is its address.
pub(crate) fn cluster(name: &str, yaml: &str) -> Snapshot {
    let mut snapshot = Snapshot::dump(name, NOW);
    if let Some(server) = yaml.lines().next().and_then(|line| line.strip_prefix("# server: ")) {
        snapshot.add_server(server);
    }
    for document in documents(yaml) {
        match document.get("items").and_then(Value::as_array) {
            Some(items) if document["kind"] == "List" => {
                items.iter().for_each(|item| insert(&mut snapshot, item))
            }
            _ => insert(&mut snapshot, &document),
        }
    }
    snapshot
}

pub(crate) fn insert(snapshot: &mut Snapshot, object: &Value) {
    snapshot.insert(document(object), Projection::Full).unwrap();
}

/// Inserts an object that is nested too deeply for a tree of values.
pub(crate) fn insert_text(snapshot: &mut Snapshot, object: &str) {
    snapshot.insert(OwnedDocument::parse(object.as_bytes()).unwrap(), Projection::Full).unwrap();
}

pub(crate) fn document(object: &Value) -> OwnedDocument {
    OwnedDocument::parse(object.to_string().into_bytes()).unwrap()
}

/// A cluster that holds `objects`.
pub(crate) fn holding(name: &str, objects: &[Value]) -> Snapshot {
    let mut snapshot = Snapshot::dump(name, NOW);
    objects.iter().for_each(|object| insert(&mut snapshot, object));
    snapshot
}

/// The apps of one cluster.
pub(crate) fn apps_of(cluster: &Snapshot) -> AppList {
    apps(&[cluster], &ActiveRules::default(), NOW)
}

/// The Secret in which Helm stores a release: Helm v3.22, `pkg/storage/driver/secrets.go`, newSecretsObject, with the
/// Release of `pkg/release/release.go`.
pub(crate) fn release(namespace: &str, name: &str, version: i64, status: &str, manifest: &str) -> Value {
    let release = json!({
        "name": name, "namespace": namespace, "version": version, "manifest": manifest,
        "info": {
            "status": status, "description": format!("{status} by a test"), "last_deployed": "2026-03-01T11:20:00Z",
        },
        "chart": {"metadata": {"name": name, "version": format!("{version}.0.0")}},
    });
    let payload = STANDARD.encode(gzip(release.to_string().as_bytes()));
    storage(namespace, name, version, &json!({"release": STANDARD.encode(payload)}))
}

/// A Secret in Helm's storage with any data.
pub(crate) fn storage(namespace: &str, name: &str, version: i64, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "data": data,
        "metadata": {
            "namespace": namespace, "name": format!("sh.helm.release.v1.{name}.v{version}"),
            "labels": {"owner": "helm", "name": name, "version": version.to_string(), "status": "deployed"},
        },
    })
}

/// The ConfigMap in which Helm stores the release that is in a Secret: Helm v3.22, `pkg/storage/driver/cfgmaps.go`,
/// newConfigMapsObject. What the API packs in Secrets it does not pack there.
pub(crate) fn in_config_map(mut secret: Value) -> Value {
    let data = secret["data"]["release"].as_str().unwrap_or_default();
    let release = String::from_utf8(STANDARD.decode(data).unwrap()).unwrap();
    secret["data"]["release"] = json!(release);
    secret["kind"] = json!("ConfigMap");
    secret.as_object_mut().unwrap().remove("type");
    secret
}

pub(crate) fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Text as the API writes it in Secrets.
pub(crate) fn base64(text: &str) -> String {
    STANDARD.encode(text)
}
