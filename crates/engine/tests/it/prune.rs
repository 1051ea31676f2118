//! Prunes of simulated clusters by inventories of all six kinds.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use taffrail_apps::sets::{SetName, SetVerb};
use taffrail_engine::{
    EngineError, InventoryPrune, ManifestText, Manifests, PruneConsent, Stop, SyncReport, prune_inventory, sync,
};
use taffrail_plan::order::Dialect;
use taffrail_sim::{Cluster, Fleet};

use crate::inventories::{self, Pair, Playground, definitions};
use crate::world::{Approves, request, watcher, policy};

/// The number of pairs that are drawn.
const PAIRS: usize = 36;

/// The variables with the seed of an earlier run, and with another number of pairs.
const SEED: &str = "TAFFRAIL_INVENTORIES_SEED";
const NUMBER: &str = "TAFFRAIL_INVENTORIES";

struct Sim(Cluster);

impl Playground for Sim {
    fn write(&self, objects: &[Value]) {
        for object in objects {
            self.0.apply(object.clone()).unwrap_or_else(|error| panic!("{error}: {object}"));
        }
    }

    fn remove(&self, object: &Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let [kind, namespace, name] = ["/kind", "/metadata/namespace", "/metadata/name"].map(text);
        assert!(self.0.delete(text("/apiVersion"), kind, namespace, name), "{object}");
    }

    fn all(&self, widgets: Option<&str>) -> Vec<Value> {
        let of_kind = |(api_version, kind, _): &(&str, &str, &str)| self.0.list(api_version, kind);
        let mut all: Vec<Value> = inventories::KINDS.iter().flat_map(of_kind).collect();
        if let Some((_, group)) = widgets.and_then(|widgets| widgets.split_once('.')) {
            all.extend(self.0.list(&format!("{group}/v1"), "Widget"));
        }
        all
    }

    fn serves_events_twice(&self) -> bool {
        false
    }
}

async fn prune(cluster: &Cluster, pair: &Pair) -> Result<SyncReport, EngineError> {
    let content = Value::from(pair.manifests.clone());
    let documents: Vec<String> = content.as_array().unwrap().iter().map(Value::to_string).collect();
    let files = [ManifestText { path: "app.yaml".to_owned(), content: documents.join("\n---\n") }];
    let consent = PruneConsent { allows_guarded: pair.allows };
    let watcher = watcher(cluster).await;
    let mut caller = Approves::default();
    match &pair.inventory {
        Some(inventory) => {
            let asked = InventoryPrune {
                inventory: inventory.parse().unwrap(),
                namespace: Some(pair.home.clone()),
                consent,
                dialect: Dialect::Argo,
                policy: policy(),
            };
            prune_inventory(watcher, &asked, &files, &Stop::default(), &mut caller).await
        }
        None => {
            let set = SetName::new(&pair.home, "app").unwrap();
            let asked = request(set, SetVerb::Prune, Some(consent));
            sync(watcher, &asked, Manifests::Given(&files), &Stop::default(), &mut caller).await
        }
    }
}

fn uids(live: &[Value]) -> BTreeSet<String> {
    live.iter().map(|it| it["metadata"]["uid"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prune_deletes_what_a_second_model_says() {
    let number = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().unwrap());
    let seed = number(SEED).unwrap_or_else(|| fastrand::u64(..));
    let count = number(NUMBER).map_or(PAIRS, |it| usize::try_from(it).unwrap());
    println!("{SEED}={seed} {NUMBER}={count}");
    let mut random = fastrand::Rng::with_seed(seed);
    let fleet = Fleet::builder().start().await.unwrap();
    let sim = Sim(fleet.cluster("one").await.unwrap());
    sim.write(&definitions());
    let (mut deleted_in_all, mut kept_in_all, mut wrong) = (0, 0, Vec::new());
    for at in 0..count {
        let mut pair = Pair::draw("pair", at, sim.serves_events_twice(), random.u64(..));
        pair.prepare(&sim);
        let before = pair.look(&sim);
        let expected = pair.deleted(&before);
        let outcome = prune(&sim.0, &pair).await;
        let is_refused = matches!(outcome, Err(EngineError::NothingDeclared));
        let is_right = if pair.manifests.is_empty() { is_refused } else { outcome.is_ok() };
        assert!(is_right, "pair {at}: {outcome:?}\n{}", pair.told());
        // What goes along goes a little later.
        let mut gone = BTreeSet::new();
        for _ in 0..100 {
            let after = uids(&pair.look(&sim));
            gone = uids(&before).difference(&after).cloned().collect();
            if gone == expected {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        deleted_in_all += gone.len();
        kept_in_all += before.len() - gone.len();
        if gone != expected {
            let name = |uid: &String| {
                let found = before.iter().find(|it| it["metadata"]["uid"] == **uid);
                found.map(inventories::id).unwrap_or_default()
            };
            let [more, less] = [gone.difference(&expected), expected.difference(&gone)]
                .map(|uids| uids.map(name).collect::<Vec<_>>());
            wrong.push(format!(
                "pair {at}: deleted though they should stay {more:?}, kept {less:?}\n{:?}\n{}",
                outcome.map(|report| report.objects),
                pair.told()
            ));
        }
    }
    println!("{count} pairs: {deleted_in_all} objects deleted, {kept_in_all} kept, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "seed {seed}\n{}", wrong.join("\n\n"));
    assert!(deleted_in_all * 10 > count && kept_in_all * 10 > count, "the pairs are to differ");
}
