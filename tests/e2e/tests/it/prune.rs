//! Prunes of a real cluster by random inventories of all six kinds, beside a second model.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_testkit::kube::{ControlPlane, Options};

use crate::harness::{CLUSTER, run, unavailable};
use crate::inventories::{self, KINDS, Pair, Playground, definitions};

/// The number of pairs that are drawn, unless [`NUMBER`] says another one.
const PAIRS: usize = 6;

/// The variables with the seed of an earlier run, and with the number of pairs.
const SEED: &str = "TAFFRAIL_INVENTORIES_SEED";
const NUMBER: &str = "TAFFRAIL_E2E_INVENTORIES";

/// Time within which all goes that goes along with a deleted object.
const PATIENCE: Duration = Duration::from_secs(60);

struct Real(ControlPlane);

impl Real {
    fn kubectl(&self, arguments: &[&str]) -> String {
        self.0.kubectl(CLUSTER, arguments).unwrap_or_else(|error| panic!("{error:#}"))
    }
}

impl Playground for Real {
    fn write(&self, objects: &[Value]) {
        if objects.is_empty() {
            return;
        }
        let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
        let documents = documents.join("\n---\n");
        self.0.apply(CLUSTER, &documents).unwrap_or_else(|error| panic!("{error:#}\n{documents}"));
        for object in objects.iter().filter(|it| it["kind"] == "CustomResourceDefinition") {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let wait = ["--for=condition=Established", "crd", name];
            self.0.wait(CLUSTER, &wait).expect("the definition is established");
        }
    }

    fn remove(&self, object: &Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let [api_version, kind, namespace, name] =
            ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"].map(text);
        let group = api_version.split_once('/').map(|(group, version)| format!(".{version}.{group}"));
        let kind = format!("{kind}{}", group.unwrap_or_default());
        let place = if namespace.is_empty() { "default" } else { namespace };
        self.kubectl(&["delete", &kind, name, "-n", place, "--wait=true", "--timeout=60s"]);
    }

    fn all(&self, widgets: Option<&str>) -> Vec<Value> {
        let read = |kinds: &str| -> Option<Vec<Value>> {
            let answer = self.0.kubectl(CLUSTER, &["get", kinds, "-A", "-o", "json"]).ok()?;
            let list: Value = serde_json::from_str(&answer).ok()?;
            list["items"].as_array().cloned()
        };
        let kinds: Vec<&str> = KINDS.iter().map(|(_, _, plural)| *plural).collect();
        let mut all = read(&kinds.join(",")).expect("the objects can be read");
        // The definition may be gone.
        all.extend(widgets.and_then(read).unwrap_or_default());
        all
    }

    fn serves_events_twice(&self) -> bool {
        true
    }
}

fn uids(live: &[Value]) -> BTreeSet<String> {
    live.iter().map(|it| it["metadata"]["uid"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_prune_deletes_what_a_second_model_says() {
    if unavailable() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().expect("a number"));
    let seed = number(SEED).unwrap_or_else(|| fastrand::u64(..));
    let count = number(NUMBER).map_or(PAIRS, |it| usize::try_from(it).expect("a number of pairs"));
    println!("{SEED}={seed} {NUMBER}={count}");
    let mut random = fastrand::Rng::with_seed(seed);
    let name = format!("e2e-prune-{}", std::process::id());
    let options = Options { name, clusters: 1, nodes: 0, flux_crds: false, ..Options::default() };
    let plane = ControlPlane::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
    let real = Real(plane);
    real.write(&definitions());
    let kubeconfig = real.0.kubeconfig().as_os_str().to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    let (mut deleted_in_all, mut kept_in_all, mut wrong) = (0, 0, Vec::new());
    for at in 0..count {
        let mut pair = Pair::draw("pair", at, real.serves_events_twice(), random.u64(..));
        pair.prepare(&real);
        let before = pair.look(&real);
        let expected = pair.deleted(&before);
        let file = folder.path().join(format!("{at}.json"));
        let documents: Vec<String> = pair.manifests.iter().map(Value::to_string).collect();
        fs::write(&file, documents.join("\n---\n")).expect("it can be written");
        let file = file.to_str().expect("it is UTF-8");
        let mut arguments = vec!["prune", "--context", CLUSTER, "-n", &pair.home, "-f", file, "--yes"];
        match &pair.inventory {
            Some(inventory) => arguments.extend(["--inventory", inventory]),
            None => arguments.extend(["--set", "app"]),
        }
        arguments.extend(pair.allows.then_some("--allow-prune"));
        let answer = run(&kubeconfig, &arguments);
        let code = if pair.manifests.is_empty() { 3 } else { 0 };
        assert_eq!(answer.code, code, "pair {at}, seed {seed}: {answer}\n{}", pair.told());
        let (begun, mut gone) = (Instant::now(), BTreeSet::new());
        while begun.elapsed() < PATIENCE {
            let after = uids(&pair.look(&real));
            gone = uids(&before).difference(&after).cloned().collect();
            if gone == expected {
                break;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        deleted_in_all += gone.len();
        kept_in_all += before.len() - gone.len();
        if gone != expected {
            let name = |uid: &String| {
                let found = before.iter().find(|it| it["metadata"]["uid"] == **uid);
                found.map(inventories::id).unwrap_or_default()
            };
            let [more, less] = [gone.difference(&expected), expected.difference(&gone)]
                .map(|uids| json!(uids.map(name).collect::<Vec<_>>()));
            wrong.push(format!(
                "pair {at}: deleted though they should stay {more}, kept {less}\n{answer}\n{}",
                pair.told()
            ));
        }
    }
    println!("{count} pairs: {deleted_in_all} objects deleted, {kept_in_all} kept, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "seed {seed}\n{}", wrong.join("\n\n"));
}
