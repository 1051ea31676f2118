//! Tests of the manifests that a set keeps in Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use taffrail_apps::sets::{SetName, SetRun};
use taffrail_engine::{ManifestText, RecordError, RecordStore};
use taffrail_sim::{Fault, Trouble};

use crate::stores::{Shop, TIMES, summary_of, take, web};

/// Returns manifests that are not smaller when they are packed: of about this many bytes.
fn manifests(seed: u64, bytes: usize) -> Vec<ManifestText> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let content = (0..bytes * 4 / 3).map(|_| rng.alphanumeric()).collect();
    vec![ManifestText { path: format!("{seed}.yaml"), content }]
}

fn same(read: &[ManifestText], wanted: &[ManifestText]) -> bool {
    read.iter().map(|file| (&file.path, &file.content)).eq(wanted.iter().map(|it| (&it.path, &it.content)))
}

fn names(shop: &Shop) -> Vec<String> {
    let secrets = shop.sim.list("v1", "Secret");
    let mut names: Vec<String> =
        secrets.iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

fn secret(shop: &Shop, name: &str) -> Value {
    shop.sim.get("v1", "Secret", "shop", name).unwrap()
}

fn put(shop: &Shop, mut secret: Value) {
    secret["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    shop.sim.apply(secret).unwrap();
}

#[tokio::test]
async fn manifests_are_kept_in_as_many_secrets_as_they_need() {
    let shop = Shop::start().await;
    let store = shop.process("ann@laptop").await;
    take(&store).await;
    let (large, small) = (manifests(1, 1_700_000), manifests(2, 10));
    let (first, second) = (summary_of(1, "one"), summary_of(12, "two"));
    store.keep_manifests(&first, &large).await.unwrap();
    store.keep_manifests(&second, &small).await.unwrap();
    let wanted = ["v1-0", "v1-1", "v1-2", "v12-0"].map(|end| format!("taffrail-set-web-{end}"));
    assert_eq!(names(&shop), wanted);
    for name in &wanted {
        let secret = secret(&shop, name);
        assert_eq!(secret["type"], "Opaque");
        assert_eq!(secret["metadata"]["labels"], json!({"taffrail.dev/record": "manifests"}));
        assert_eq!(secret["metadata"]["annotations"]["taffrail.dev/set"], "shop_web");
        let bytes = STANDARD.decode(secret["data"]["manifests"].as_str().unwrap()).unwrap();
        assert!(bytes.len() < 1 << 20, "{} bytes", bytes.len());
    }
    assert!(same(&store.read_manifests(&first).await.unwrap(), &large));
    assert!(same(&store.read_manifests(&second).await.unwrap(), &small));
    // The second time nothing is written.
    let before = shop.sim.resource_version();
    store.keep_manifests(&first, &large).await.unwrap();
    assert_eq!(shop.sim.resource_version(), before);
}

#[tokio::test]
async fn missing_cut_and_edited_parts_are_errors() {
    let shop = Shop::start().await;
    let store = shop.process("ann@laptop").await;
    take(&store).await;
    let run = summary_of(1, "one");
    let large = manifests(1, 1_700_000);
    let value = |secret: &Value| STANDARD.decode(secret["data"]["manifests"].as_str().unwrap()).unwrap();
    let header = |bytes: &[u8], change: &dyn Fn(&mut Value)| {
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        let mut header: Value = serde_json::from_slice(&bytes[..end]).unwrap();
        change(&mut header);
        [header.to_string().as_bytes(), &bytes[end..]].concat()
    };
    type Damage<'a> = (&'a str, &'a dyn Fn(Vec<u8>) -> Vec<u8>);
    let damages: [Damage<'_>; 10] = [
        ("v1-1", &|_| Vec::new()),
        ("v1-1", &|bytes| bytes[..bytes.len() / 2].to_vec()),
        ("v1-2", &|mut bytes| {
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            bytes
        }),
        ("v1-0", &|bytes| header(&bytes, &|it| it["parts"] = json!(2))),
        ("v1-0", &|bytes| header(&bytes, &|it| it["parts"] = json!(u64::MAX))),
        ("v1-0", &|bytes| header(&bytes, &|it| it["parts"] = json!(0))),
        ("v1-1", &|bytes| header(&bytes, &|it| it["part"] = json!(2))),
        ("v1-2", &|bytes| header(&bytes, &|it| it["run"] = json!("two"))),
        ("v1-0", &|bytes| header(&bytes, &|it| it["more"] = json!(true))),
        ("v1-0", &|_| b"\n".to_vec()),
    ];
    store.keep_manifests(&run, &large).await.unwrap();
    for (number, (end, damage)) in damages.into_iter().enumerate() {
        let whole = secret(&shop, &format!("taffrail-set-web-{end}"));
        let mut edited = whole.clone();
        edited["data"]["manifests"] = json!(STANDARD.encode(damage(value(&edited))));
        put(&shop, edited);
        let error = store.read_manifests(&run).await.err().unwrap();
        assert!(matches!(error, RecordError::Manifests(1)), "{number}: {error:?}");
        assert!(error.hint().contains("from their source"), "{}", error.hint());
        put(&shop, whole);
        assert!(same(&store.read_manifests(&run).await.unwrap(), &large), "{number}");
    }
    shop.sim.delete("v1", "Secret", "shop", "taffrail-set-web-v1-1");
    assert!(matches!(store.read_manifests(&run).await, Err(RecordError::Manifests(1))));
    // Those of the same number, which another process kept for another run.
    store.keep_manifests(&summary_of(1, "two"), &manifests(2, 10)).await.unwrap();
    assert!(matches!(store.read_manifests(&run).await, Err(RecordError::Manifests(1))));
}

#[tokio::test]
async fn removal_finds_all_of_the_set_and_nothing_else() {
    let shop = Shop::start().await;
    let store = shop.process("ann@laptop").await;
    take(&store).await;
    // The names of its Secrets begin as those of the other set do.
    let other = SetName::new("shop", "web-v1").unwrap();
    let other = RecordStore::new(shop.cluster().await, other, "bob@ci".to_owned()).with_times(TIMES);
    take(&other).await;
    for (number, bytes) in [(1, 1_500_000), (2, 10), (3, 10)] {
        store.keep_manifests(&summary_of(number, "one"), &manifests(number, bytes)).await.unwrap();
    }
    other.keep_manifests(&summary_of(2, "one"), &manifests(9, 10)).await.unwrap();
    shop.sim
        .apply(json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": "shop", "name": "taffrail-set-web-v1-notes"}, "type": "Opaque"}))
        .unwrap();
    // Somebody deleted the first part of a run: the others are found all the same.
    shop.sim.delete("v1", "Secret", "shop", "taffrail-set-web-v1-0");
    store.remove_manifests(&[], &|number| number >= 2).await.unwrap();
    let stay = ["taffrail-set-web-v1-notes", "taffrail-set-web-v1-v2-0"];
    assert_eq!(names(&shop), [stay[0], stay[1], "taffrail-set-web-v2-0", "taffrail-set-web-v3-0"]);
    let record = store.read().await.unwrap().unwrap();
    store.remove(record).await.unwrap();
    assert_eq!(names(&shop), stay);
    assert_eq!(shop.stored(), None);
}

#[tokio::test]
async fn lost_answers_keep_each_part_once() {
    for trouble in [Trouble::Cut(0), Trouble::ServerError("etcdserver: request timed out".to_owned())] {
        let shop = Shop::start().await;
        let store = shop.process("ann@laptop").await;
        take(&store).await;
        let (run, large) = (summary_of(1, "one"), manifests(1, 1_500_000));
        for verb in ["create", "patch"] {
            shop.sim.fault(Fault::new(trouble.clone()).verb(verb).resource("secrets").times(1));
            store.keep_manifests(&run, &large).await.unwrap();
            assert!(same(&store.read_manifests(&run).await.unwrap(), &large), "{trouble:?}");
            let mut edited = secret(&shop, "taffrail-set-web-v1-1");
            edited["data"]["manifests"] = json!("");
            put(&shop, edited);
        }
    }
}

#[tokio::test]
async fn without_rights_on_secrets_manifests_are_not_kept() {
    let shop = Shop::start().await;
    let maps: (&str, &[&str]) = ("configmaps", &["get", "create", "patch", "delete"]);
    let reader = shop.cluster_of("reader", &[maps, ("secrets", &["get"])]).await;
    let nobody = shop.cluster_of("nobody", &[maps]).await;
    let (run, small) = (summary_of(1, "one"), manifests(1, 10));
    for (name, cluster) in [("reader", reader), ("nobody", nobody)] {
        let store = RecordStore::new(cluster, web(), name.to_owned()).with_times(TIMES);
        let mut record = take(&store).await;
        record.summary.runs.insert(0, run.clone());
        let error = store.keep_manifests(&run, &small).await.unwrap_err();
        assert!(matches!(error, RecordError::NotKept(_)), "{error:?}");
        assert!(error.to_string().contains(name), "{error}");
        assert!(error.hint().contains("syncs work without it"), "{}", error.hint());
        // What was not kept is not in the way of a removal.
        store.remove(record).await.unwrap();
        assert_eq!(shop.stored(), None);
    }
    let huge = vec![ManifestText { path: "a.yaml".to_owned(), content: "a".repeat(40 << 20) }];
    let store = shop.process("ann@laptop").await;
    take(&store).await;
    let error = store.keep_manifests(&run, &huge).await.unwrap_err();
    assert_eq!(error.to_string(), "the manifests cannot be kept for a rollback: they have 40 MiB");
    store.keep_manifests(&run, &small).await.unwrap();

    // Who may not list Secrets finds those of known runs by their names.
    let record = store.read().await.unwrap().unwrap();
    store.release(record).await.unwrap();
    let deletes = shop.cluster_of("deletes", &[maps, ("secrets", &["delete"])]).await;
    let store = RecordStore::new(deletes, web(), "deletes".to_owned()).with_times(TIMES);
    take(&store).await;
    let error = store.read_manifests(&run).await.err().unwrap();
    assert!(error.hint().contains("`get` on Secrets"), "{error:?}: {}", error.hint());
    store.remove_manifests(&[1, 2], &|_| false).await.unwrap();
    assert!(names(&shop).is_empty());
    let record = store.read().await.unwrap().unwrap();
    store.release(record).await.unwrap();

    // Those that another user kept are not left behind.
    let keeps = shop.process("ann@laptop").await;
    let mut record = take(&keeps).await;
    keeps.keep_manifests(&run, &small).await.unwrap();
    record.summary.runs.insert(0, SetRun { is_kept: true, ..run });
    keeps.release(record).await.unwrap();
    let nobody = shop.cluster_of("nobody", &[maps]).await;
    let store = RecordStore::new(nobody, web(), "nobody".to_owned()).with_times(TIMES);
    let record = take(&store).await;
    let error = store.remove(record).await.unwrap_err();
    assert!(error.hint().contains("`delete` on Secrets"), "{error:?}: {}", error.hint());
    store.give_up().await.unwrap();
    assert!(shop.stored().is_some());
}
