//! The cost of a status event where rows are kept up to date: at 100 apps and at 1,000, by turns.
//!
//! Each event is a Deployment whose number of ready replicas changes, told to the snapshot and to the rows. Half of the apps are
//! those of Flux, half those of labels. Prints the medians and their ratio, which must be at most 1.1.
#![expect(clippy::print_stdout, reason = "it answers on standard output")]
#![expect(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_apps::{AppLabels, AppRows, Objects, Snapshot, apps_by};
use taffrail_object::Projection;
use taffrail_object::json::OwnedDocument;
use taffrail_status::ActiveRules;

const NOW: Timestamp = Timestamp::constant(1_772_366_400, 0);
const EVENTS: usize = 2_000;

struct World {
    cluster: Snapshot,
    rows: AppRows,
    apps: usize,
}

fn insert(cluster: &mut Snapshot, object: &Value) {
    if let Ok(document) = OwnedDocument::parse(object.to_string().into_bytes()) {
        let inserted = cluster.insert(document, Projection::Full);
        assert!(inserted.is_ok(), "{object}");
    }
}

fn deployment(app: usize, ready: usize) -> Value {
    let name = format!("web-{app}");
    let mut labels = json!({"app": name, "kustomize.toolkit.fluxcd.io/name": name,
        "kustomize.toolkit.fluxcd.io/namespace": "flux-system"});
    if app % 2 == 1 {
        labels = json!({"app": name, "app.kubernetes.io/instance": name});
    }
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": format!("team-{app}"), "name": name, "uid": format!("u-{app}"), "generation": 1,
            "labels": labels, "creationTimestamp": "2026-03-01T11:00:00Z"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}}},
        "status": {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": ready,
            "availableReplicas": ready}})
}

/// The objects of an app beside its Deployment.
fn others(app: usize) -> Vec<Value> {
    let (namespace, name) = (format!("team-{app}"), format!("web-{app}"));
    let owned = |kind: &str, owner: &str, uid: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": uid, "controller": true}]);
    let set = format!("{name}-1");
    let mut objects = vec![json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"namespace": namespace, "name": set, "uid": format!("s-{app}"),
            "ownerReferences": owned("Deployment", &name, &format!("u-{app}"))},
        "spec": {"replicas": 3, "template": {"metadata": {"labels": {"app": name}}}},
        "status": {"replicas": 3, "readyReplicas": 3, "availableReplicas": 3}})];
    objects.extend((0..3).map(|at| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": namespace, "name": format!("{set}-{at}"), "labels": {"app": name},
                "ownerReferences": owned("ReplicaSet", &set, &format!("s-{app}"))},
            "spec": {"containers": [{"name": "web"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
    }));
    if app.is_multiple_of(2) {
        let id = format!("{namespace}_{name}_apps_Deployment");
        objects.push(json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"namespace": "flux-system", "name": name, "generation": 1},
            "spec": {"interval": "10m", "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
            "status": {"observedGeneration": 1, "lastAppliedRevision": "main@sha1:aaa",
                "lastAttemptedRevision": "main@sha1:aaa", "inventory": {"entries": [{"id": id, "v": "v1"}]},
                "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded",
                    "message": "Applied", "observedGeneration": 1}]}}));
    }
    objects
}

fn world(apps: usize) -> World {
    let mut cluster = Snapshot::dump("prod", NOW);
    insert(
        &mut cluster,
        &json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"namespace": "flux-system", "name": "fleet"},
            "spec": {"url": "https://git.example/r.git", "interval": "1m"},
            "status": {"artifact": {"revision": "main@sha1:aaa", "lastUpdateTime": "2026-03-01T11:59:00Z"},
                "conditions": [{"type": "Ready", "status": "True"}]}}),
    );
    for app in 0..apps {
        insert(&mut cluster, &deployment(app, 3));
        others(app).iter().for_each(|object| insert(&mut cluster, object));
    }
    let mut world = World { cluster, rows: AppRows::new(AppLabels::default()), apps };
    for _ in 0..2 {
        world.look();
    }
    world
}

impl World {
    fn look(&mut self) -> usize {
        let changes = [self.cluster.take_changes()];
        let clusters: [&dyn Objects; 1] = [&self.cluster];
        self.rows.look(&clusters, &changes, &ActiveRules::default(), NOW).judged
    }

    /// Tells that a Deployment changed; how long that took.
    fn event(&mut self, number: usize) -> Duration {
        let app = number.wrapping_mul(7_919) % self.apps;
        let ready = if (number / self.apps).is_multiple_of(2) { 2 } else { 3 };
        self.tell(&deployment(app, ready))
    }

    /// Tells that a Kustomization changed, and with `has_claims` that it lists other objects than before; how long
    /// that took.
    fn declaration(&mut self, number: usize, has_claims: bool) -> Duration {
        let app = number.wrapping_mul(7_919) % self.apps / 2 * 2;
        let mut own = others(app).into_iter().filter(|object| object["kind"] == "Kustomization");
        let Some(mut object) = own.next() else { return Duration::ZERO };
        object["status"]["conditions"][0]["message"] = json!(format!("Applied for the {number}th time"));
        if has_claims {
            let entry = json!({"id": format!("team-{app}_c{number}__ConfigMap"), "v": "v1"});
            object["status"]["inventory"]["entries"] = json!([entry]);
        }
        self.tell(&object)
    }

    fn tell(&mut self, object: &Value) -> Duration {
        let text = object.to_string().into_bytes();
        let begun = Instant::now();
        if let Ok(document) = OwnedDocument::parse(text) {
            let inserted = self.cluster.insert(document, Projection::Full);
            assert!(inserted.is_ok());
        }
        let judged = self.look();
        let took = begun.elapsed();
        assert!(judged <= 1, "{judged} rows were judged");
        took
    }

    fn is_right(&self) -> bool {
        let clusters: [&dyn Objects; 1] = [&self.cluster];
        *self.rows.list() == apps_by(&AppLabels::default(), &clusters, &ActiveRules::default(), NOW)
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn main() {
    let mut worlds = [world(100), world(1_000)];
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..EVENTS {
        for (world, times) in worlds.iter_mut().zip(&mut times) {
            times.push(world.event(number));
        }
    }
    assert!(worlds.iter().all(World::is_right), "the rows are those of a full look");
    let [few, many] = times.map(median);
    let declared = [false, true].map(|has_claims| {
        let mut declared = [Vec::new(), Vec::new()];
        for number in 0..EVENTS / 10 {
            for (world, times) in worlds.iter_mut().zip(&mut declared) {
                times.push(world.declaration(number, has_claims));
            }
        }
        declared.map(median)
    });
    assert!(worlds.iter().all(World::is_right), "the rows are those of a full look");
    let clusters: [&dyn Objects; 1] = [&worlds[1].cluster];
    let begun = Instant::now();
    let whole = apps_by(&AppLabels::default(), &clusters, &ActiveRules::default(), NOW);
    let took = begun.elapsed();
    let ratio = many.as_secs_f64() / few.as_secs_f64();
    println!("a status event at 100 apps: {few:?}, at 1,000: {many:?}, ratio {ratio:.3} (at most 1.1)");
    for (what, [few, many]) in
        ["an event of a declaring object", "one that changes its claims"].iter().zip(declared)
    {
        println!("{what} at 100 apps: {few:?}, at 1,000: {many:?}");
    }
    println!("a full look at {} apps: {took:?}", whole.apps.len());
}
