//! An index and a snapshot of the same objects: they show the same rows.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taffrail_apps::{AppList, Freshness, IndexedCluster, Objects, Snapshot, apps, index_settings};
use taffrail_index::{Index, IndexSettings, Retention};
use taffrail_object::ApiResource;
use taffrail_object::json::OwnedDocument;
use taffrail_status::{ActiveRules, ClusterState as _, Taffrail};

use super::dump::NOW;
use super::golden;

/// Fills an index with the objects of a snapshot.
fn indexed(snapshot: &Snapshot, settings: IndexSettings) -> taffrail_index::Snapshot {
    let mut index = Index::new(settings);
    for observed in snapshot.all() {
        let api_version = observed.object.text(&["apiVersion"]).into_owned();
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let kind = index.kind(&ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: observed.key.kind.to_owned(),
            plural: format!("{}s", observed.key.kind.to_lowercase()),
            namespaced: !observed.key.namespace.is_empty(),
        });
        let document = OwnedDocument::parse(observed.object.root().text().unwrap()).unwrap();
        index.apply_document(kind, document, observed.projection, NOW).unwrap();
    }
    index.publish(NOW)
}

fn settings(retention: Retention) -> IndexSettings {
    IndexSettings { retention, ..index_settings(Arc::new(Taffrail)) }
}

fn rows_by_index(snapshots: &[Snapshot], retention: Retention) -> AppList {
    let indexes: Vec<_> = snapshots.iter().map(|snapshot| indexed(snapshot, settings(retention))).collect();
    let clusters: Vec<IndexedCluster<'_>> = snapshots
        .iter()
        .zip(&indexes)
        .map(|(snapshot, index)| {
            let mut cluster = IndexedCluster::dump(snapshot.name(), index, Freshness::live(NOW));
            snapshot.servers().iter().for_each(|server| cluster.add_server(server));
            cluster.set_repeated(snapshot.repeated().to_vec());
            for secret in snapshot.of_kind("", "Secret", None) {
                cluster
                    .add_body(OwnedDocument::parse(secret.object.root().text().unwrap()).unwrap())
                    .unwrap();
            }
            cluster
        })
        .collect();
    let clusters: Vec<&dyn Objects> = clusters.iter().map(|cluster| cluster as &dyn Objects).collect();
    // An extract is judged by what was said of the whole object.
    let recorded = indexes.first().filter(|_| retention == Retention::Compact).map(|index| index.rules());
    let rules = recorded.as_ref().map_or_else(ActiveRules::default, |rules| ActiveRules::new(rules));
    apps(&clusters, &rules, NOW)
}

/// The cases of apps: those that are golden, and our own.
fn cases() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../taffrail/tests/cases/apps");
    let own = fs::read_dir(own).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = golden::cases().into_iter().chain(own).collect();
    cases.sort();
    assert!(cases.len() >= 80, "only {} cases", cases.len());
    cases
}

/// Returns how many rows there are, and those that differ.
fn differences(retention: Retention) -> (usize, Vec<String>) {
    let (mut rows, mut differences) = (0, Vec::new());
    for case in cases() {
        let snapshots = golden::clusters(&case);
        if snapshots.len() > 1 && retention == Retention::Compact {
            continue;
        }
        let clusters: Vec<&dyn Objects> = snapshots.iter().map(|snapshot| snapshot as &dyn Objects).collect();
        let by_snapshot = apps(&clusters, &ActiveRules::default(), NOW);
        let by_index = rows_by_index(&snapshots, retention);
        rows += by_snapshot.apps.len();
        let case = case.file_name().unwrap().to_string_lossy();
        for row in &by_snapshot.apps {
            match by_index.apps.iter().find(|other| other.app == row.app) {
                None => differences.push(format!("{case}: {} is missing", row.app)),
                Some(other) if other != row => {
                    differences.push(format!("{case}: {}\n  {row:?}\n  {other:?}", row.app))
                }
                Some(_) => {}
            }
        }
        let more =
            by_index.apps.iter().filter(|row| by_snapshot.apps.iter().all(|other| other.app != row.app));
        differences.extend(more.map(|row| format!("{case}: {} is not in the snapshot", row.app)));
        if by_index.errors != by_snapshot.errors {
            differences.push(format!("{case}: errors\n  {:?}\n  {:?}", by_snapshot.errors, by_index.errors));
        }
    }
    (rows, differences)
}

#[test]
fn full_index_and_snapshot_show_the_same_rows() {
    let (rows, differences) = differences(Retention::Full);
    println!("{rows} rows, {} differ in an index that keeps bodies", differences.len());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn compact_index_and_snapshot_show_the_same_rows() {
    let (rows, differences) = differences(Retention::Compact);
    println!("{rows} rows, {} differ in a compact index", differences.len());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
