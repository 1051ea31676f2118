//! Plain Helm releases.
//!
//! The shapes are those of Helm v3.22, `pkg/release/release.go` and `pkg/storage/driver`; the end-to-end tests read
//! what the real helm has stored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};
use taffrail_apps::{AppList, SyncState};
use taffrail_status::Status;

use super::dump::{apps_of, gzip, holding, in_config_map, release, storage};

const MANIFEST: &str =
    "---\n# Source: pg/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: pg\n";

fn config_map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "data", "name": "pg"}})
}

fn show(objects: Vec<Value>) -> AppList {
    apps_of(&holding("prod", &objects))
}

#[test]
fn sync_follows_the_status_of_the_newest_release() {
    for (status, state, message) in [
        ("deployed", SyncState::Synced, "pg-12.0.0, revision 12"),
        ("failed", SyncState::Failed, "failed by a test"),
        ("pending-install", SyncState::Syncing, "pending-install by a test"),
        ("pending-upgrade", SyncState::Syncing, "pending-upgrade by a test"),
        ("pending-rollback", SyncState::Syncing, "pending-rollback by a test"),
        ("uninstalling", SyncState::Syncing, "uninstalling by a test"),
        ("unknown", SyncState::Unknown, "unknown by a test"),
    ] {
        // Ten is more than nine: versions are numbers.
        let list = show(vec![
            release("data", "pg", 12, status, MANIFEST),
            release("data", "pg", 9, "superseded", "kind: Gone\nmetadata: {name: x}"),
            config_map(),
        ]);
        let [row] = list.apps.as_slice() else { panic!("{list:?}") };
        assert_eq!((row.sync.state, row.health, &*row.message), (state, Status::Current, message));
        let applied = if status == "deployed" { "pg-12.0.0" } else { "pg-9.0.0" };
        assert_eq!(row.sync.applied.as_deref(), Some(applied), "{status}");
        assert_eq!(row.counts.total(), 1);
    }
    assert_eq!(show(vec![release("data", "pg", 2, "uninstalled", MANIFEST)]).apps, []);
}

#[test]
fn release_objects_get_the_namespace_that_the_api_gives_them() {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "zones.example.com"},
        "spec": {"group": "example.com", "names": {"kind": "Zone"}, "scope": "Cluster"},
    });
    let manifest = "\
apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: pg, namespace: data}\n---\n\
apiVersion: example.com/v1\nkind: Zone\nmetadata: {name: eu}\n---\n\
apiVersion: example.com/v1\nkind: Unheard\nmetadata: {name: a}\n---\n\
apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: pg}}\n- {apiVersion: v1, kind: Secret, metadata: {name: pg}}\n---\n\
apiVersion: v1\nkind: Secret\nmetadata: {name: pg, namespace: other}\n";
    let list = show(vec![crd, release("data", "pg", 1, "deployed", manifest)]);
    let keys: Vec<String> = list.apps[0].resources.iter().map(|resource| resource.key.to_string()).collect();
    assert_eq!(
        keys,
        [
            "rbac.authorization.k8s.io/ClusterRole//pg",
            "example.com/Zone//eu",
            "example.com/Unheard/data/a",
            "/Secret/data/pg",
            "/Secret/other/pg",
        ]
    );
}

#[test]
fn malformed_manifest_documents_are_reported_and_not_counted() {
    let manifest = format!("{MANIFEST}---\nkind: ConfigMap\nmetadata: {{}}\n");
    let list = show(vec![release("data", "pg", 1, "deployed", &manifest), config_map()]);
    assert_eq!((list.apps[0].health, list.apps[0].counts.total()), (Status::Current, 1));
    let [error] = list.errors.as_slice() else { panic!("{:?}", list.errors) };
    assert!(error.error.message.contains("sh.helm.release.v1.pg.v1"), "{}", error.error.message);
    assert!(
        error.error.message.contains("document 3 of the manifest has no name"),
        "{}",
        error.error.message
    );
}

#[test]
fn errors_about_releases_are_limited_per_namespace() {
    let manifest = format!("{MANIFEST}{}", "---\nkind: ConfigMap\nmetadata: {}\n".repeat(30));
    let in_namespace = |namespace: &str| {
        (0..5).map(|at| release(namespace, &format!("pg{at}"), 1, "deployed", &manifest)).collect::<Vec<_>>()
    };
    let list = show([in_namespace("data"), in_namespace("more")].concat());
    for namespace in ["data", "more"] {
        let is_about = |message: &&str| {
            [format!("release {namespace}/"), format!("releases in namespace {namespace}:")]
                .iter()
                .any(|about| message.contains(about))
        };
        let messages = list.errors.iter().map(|error| &*error.error.message);
        let messages: Vec<_> = messages.filter(is_about).collect();
        assert_eq!(messages.len(), 51, "{messages:?}");
        let more = format!("Helm releases in namespace {namespace}: 100 more errors are not listed");
        assert!(messages.contains(&&*more), "{messages:?}");
    }
}

#[test]
fn uncompressed_releases_are_read() {
    let text = json!({
        "name": "pg", "namespace": "data", "version": 1, "manifest": MANIFEST, "info": {"status": "deployed"},
        "chart": {"metadata": {"name": "pg", "version": "1.0.0"}},
    });
    let data = json!({"release": STANDARD.encode(STANDARD.encode(text.to_string()))});
    let list = show(vec![storage("data", "pg", 1, &data), config_map()]);
    assert_eq!((list.apps[0].health, list.apps[0].sync.state), (Status::Current, SyncState::Synced));
}

#[test]
fn unreadable_releases_are_unknown() {
    let packed = |payload: &[u8]| STANDARD.encode(STANDARD.encode(payload));
    let bomb = gzip(&vec![b' '; 65 << 20]);
    for (data, why) in [
        (json!({}), "has no key 'release'"),
        (json!({"release": 1}), "has no key 'release'"),
        (json!({"release": "%"}), "is not base64"),
        (json!({"release": STANDARD.encode("%")}), "is not base64"),
        (json!({"release": packed(&gzip(b"{}")[..12])}), "is truncated or damaged"),
        (json!({"release": packed(&bomb)}), "more than 32 MiB"),
        (json!({"release": packed(b"<html>")}), "is not JSON"),
        (json!({"release": packed(b"{}")}), "has no manifest"),
        (json!({"release": packed(br#"{"manifest":""}"#)}), "has no chart name"),
    ] {
        let list = show(vec![
            storage("data", "pg", 2, &data),
            release("data", "pg", 1, "deployed", MANIFEST),
            config_map(),
        ]);
        let [row] = list.apps.as_slice() else { panic!("{list:?}") };
        assert_eq!((row.health, row.sync.state), (Status::Unknown, SyncState::Unknown), "{why}");
        assert!(row.message.contains(why), "{} does not say {why}", row.message);
        assert_eq!(row.worst.as_ref().map(|key| &*key.name), Some("sh.helm.release.v1.pg.v2"));
        assert_eq!(list.errors.len(), 1);
    }
}

/// Returns a release with this many MiB of zeros in it.
fn padded(namespace: &str, name: &str, mebibytes: usize) -> Value {
    let release = json!({
        "name": name, "namespace": namespace, "version": 1, "manifest": MANIFEST, "info": {"status": "deployed"},
        "chart": {"metadata": {"name": name, "version": "1.0.0"}}, "pad": "x".repeat(mebibytes << 20),
    });
    let payload = STANDARD.encode(gzip(release.to_string().as_bytes()));
    storage(namespace, name, 1, &json!({"release": STANDARD.encode(payload)}))
}

#[test]
fn the_unpacking_limit_applies_per_namespace() {
    let costly = ["a", "b", "c"].map(|name| padded("tenant", name, 30));
    let honest = [release("tenant", "web", 1, "deployed", MANIFEST), padded("shop", "web", 30)];
    let list = show(costly.into_iter().chain(honest).collect());
    let is_read = |row: &taffrail_apps::App| {
        (format!("{}/{}", row.app.namespace, row.app.name), row.health != Status::Unknown)
    };
    let rows: Vec<(String, bool)> = list.apps.iter().map(is_read).collect();
    let expected = [
        ("shop/web", true),
        ("tenant/a", true),
        ("tenant/b", true),
        ("tenant/c", false),
        ("tenant/web", true),
    ];
    assert_eq!(rows, expected.map(|(name, is_read)| (name.to_owned(), is_read)));
    let told = &list.apps[3].message;
    assert!(told.contains("the releases of namespace tenant cost too much to read"), "{told}");
}

/// Before, each app unpacked it again, so that a few used up the limit.
#[test]
fn a_release_that_many_helm_releases_name_is_unpacked_once() {
    let named = |number: usize| {
        json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"namespace": "tenant", "name": format!("r{number}"), "generation": 1},
            "spec": {"releaseName": "web"},
        })
    };
    let list = show((0..8).map(named).chain([padded("tenant", "web", 30)]).collect());
    assert_eq!(list.apps.len(), 8);
    for row in &list.apps {
        assert_eq!(
            (row.counts.total(), row.speaker.as_ref().map(|it| &*it.key.kind)),
            (1, Some("ConfigMap")),
            "{row:?}"
        );
    }
}

#[test]
fn releases_in_config_maps_are_read() {
    let newest = in_config_map(release("data", "pg", 2, "failed", MANIFEST));
    let older = in_config_map(release("data", "pg", 1, "deployed", MANIFEST));
    let list = show(vec![newest.clone(), older.clone(), config_map()]);
    let [row] = list.apps.as_slice() else { panic!("{list:?}") };
    assert_eq!((row.health, row.sync.state), (Status::Current, SyncState::Failed));
    assert_eq!(row.sync.applied.as_deref(), Some("pg-1.0.0"));

    let mut damaged = newest;
    damaged["data"]["release"] = json!("%");
    let list = show(vec![damaged, older.clone(), config_map()]);
    assert_eq!((list.apps[0].health, list.apps.len()), (Status::Unknown, 1));
    assert!(list.apps[0].message.contains("is not base64"), "{}", list.apps[0].message);

    // Anybody may name a ConfigMap so.
    let mut other = older;
    other["metadata"]["labels"] = json!({});
    assert_eq!(show(vec![other]).apps, []);
}

#[test]
fn other_secrets_are_not_releases() {
    let mut opaque = release("data", "pg", 1, "deployed", MANIFEST);
    opaque["type"] = json!("Opaque");
    let mut odd = release("data", "pg", 1, "deployed", MANIFEST);
    odd["metadata"]["name"] = json!("sh.helm.release.v1.pg");
    assert_eq!(show(vec![opaque, odd]).apps, []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_payload_breaks_the_reader(payload: Vec<u8>, layers in 0..4) {
        let payload = if layers == 3 { gzip(&payload) } else { payload };
        let once = STANDARD.encode(&payload);
        let text = match layers {
            0 => String::from_utf8_lossy(&payload).into_owned(),
            1 => once,
            _ => STANDARD.encode(once),
        };
        let list = show(vec![storage("data", "pg", 1, &json!({"release": text}))]);
        prop_assert_eq!(list.apps[0].health, Status::Unknown);
    }

    #[test]
    fn no_manifest_breaks_the_reader(lines in prop::collection::vec(line(), 0..12)) {
        let list = show(vec![release("data", "pg", 1, "deployed", &lines.join("\n"))]);
        prop_assert_eq!(list.apps.len(), 1);
    }
}

/// A line of a manifest, or of something like one.
fn line() -> impl Strategy<Value = String> {
    let known = [
        "---",
        "apiVersion: v1",
        "kind: List",
        "kind: Secret",
        "metadata:",
        "  name: a",
        "  name: [",
        "items: [{}]",
        "items:",
        "- kind: List",
        "  items: [null, 1]",
        "&a [*a]",
        "? {",
        "\"",
        "|",
        "# kind: no",
    ];
    prop_oneof![prop::sample::select(known.to_vec()).prop_map(str::to_owned), "\\PC{0,12}"]
}
