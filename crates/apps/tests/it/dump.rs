//! Clusters out of YAML.

use jiff::Timestamp;
use serde_json::Value;
use taffrail_apps::{Body, Snapshot};
use taffrail_status::json::OwnedDocument;

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
        insert(&mut snapshot, &document);
    }
    snapshot
}

pub(crate) fn insert(snapshot: &mut Snapshot, object: &Value) {
    snapshot.insert(document(object), Body::Whole).unwrap();
}

pub(crate) fn document(object: &Value) -> OwnedDocument {
    OwnedDocument::parse(object.to_string().into_bytes()).unwrap()
}
