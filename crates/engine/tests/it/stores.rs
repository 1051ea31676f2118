//! Makes records, runs, and processes that hold them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use taffrail_apps::sets::{SetName, SetPhase, SetRun, SetVerb};
use taffrail_cluster::{Cluster, Deadline, Kubeconfig};
use taffrail_engine::{HolderTimes, RecordStore, SetRecord};
use taffrail_object::{InventoryEntry, ObjectKey};
use taffrail_plan::manifests::{self, DeclaredObject, KindScope, ManifestFile};
use taffrail_plan::order::{Dialect, OrderInput, order};
use taffrail_plan::sync::{NewRun, RunPolicy, SyncRun};
use taffrail_sim::{Fleet, User};
use taffrail_testkit::objects::namespace;

/// The times of processes in tests: a dead holder is soon succeeded.
pub(crate) const TIMES: HolderTimes = HolderTimes {
    poll: Duration::from_millis(5),
    patience: Duration::from_millis(150),
    heartbeat: Duration::from_millis(20),
};

/// The times of processes that succeed no holder during a test.
pub(crate) const PATIENT: HolderTimes = HolderTimes { patience: Duration::from_secs(600), ..TIMES };

/// A cluster with the namespace `shop`.
pub(crate) struct Shop {
    pub(crate) sim: taffrail_sim::Cluster,
    _fleet: Fleet,
}

impl Shop {
    pub(crate) async fn start() -> Shop {
        let fleet = Fleet::builder().controllers(false).start().await.unwrap();
        let sim = fleet.cluster("one").await.unwrap();
        sim.apply(namespace("shop")).unwrap();
        Shop { sim, _fleet: fleet }
    }

    pub(crate) async fn cluster(&self) -> Cluster {
        connect(&self.sim.kubeconfig()).await
    }

    /// Connects as a user with these rights in the namespace `shop`: resources and verbs.
    pub(crate) async fn cluster_of(&self, name: &str, rights: &[(&str, &[&str])]) -> Cluster {
        let user: User = self.sim.add_user(name, &[]);
        let rules: Vec<Value> = rights
            .iter()
            .map(|(resource, verbs)| json!({"apiGroups": [""], "resources": [resource], "verbs": verbs}))
            .collect();
        const RBAC: &str = "rbac.authorization.k8s.io";
        let metadata = json!({"name": name, "namespace": "shop"});
        let role =
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": metadata, "rules": rules});
        let binding = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": name}]});
        self.sim.apply(role).unwrap();
        self.sim.apply(binding).unwrap();
        connect(&self.sim.kubeconfig_for(&user)).await
    }

    /// Returns a process that would hold the set `web`.
    pub(crate) async fn process(&self, actor: &str) -> RecordStore {
        RecordStore::new(self.cluster().await, web(), actor.to_owned()).with_times(TIMES)
    }

    /// Returns the ConfigMap of the set `web`.
    pub(crate) fn stored(&self) -> Option<Value> {
        self.sim.get("v1", "ConfigMap", "shop", "taffrail-set-web")
    }

    /// Changes the ConfigMap of the set `web` by hand.
    pub(crate) fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut stored = self.stored().unwrap();
        change(&mut stored);
        stored["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        self.sim.apply(stored).unwrap();
    }
}

/// Connects to the cluster of a kubeconfig.
pub(crate) async fn connect(kubeconfig: &str) -> Cluster {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), kubeconfig).unwrap();
    let context = Kubeconfig::load(Some(file.path()), None, None).unwrap().current().unwrap();
    Cluster::connect(&context, Deadline::after(Duration::from_secs(120))).await.unwrap()
}

pub(crate) fn web() -> SetName {
    SetName::new("shop", "web").unwrap()
}

pub(crate) async fn take(store: &RecordStore) -> SetRecord {
    store.take(&mut |_| {}).await.unwrap()
}

/// Returns a run of a set that just begins.
pub(crate) fn summary_of(number: u64, digest: &str) -> SetRun {
    SetRun {
        number,
        verb: SetVerb::Sync,
        phase: SetPhase::Running,
        revision: "v1.2.0".to_owned(),
        digest: digest.to_owned(),
        actor: "ann@laptop".to_owned(),
        started: Timestamp::UNIX_EPOCH,
        ended: None,
        message: String::new(),
        counts: BTreeMap::new(),
        is_kept: false,
    }
}

pub(crate) fn config_map(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}})
}

pub(crate) fn declared(objects: &[Value]) -> Vec<DeclaredObject> {
    let text = objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n");
    let file = ManifestFile { path: "all.yaml", content: text.as_bytes() };
    manifests::read(&[file], "shop", &|_| Some(KindScope::Namespaced)).unwrap().objects
}

/// Returns a run that has not sent anything yet; `uid_of` has the UIDs of objects that are as declared.
pub(crate) fn run_of(objects: &[DeclaredObject], uid_of: &dyn Fn(usize) -> Option<String>) -> SyncRun {
    let input = OrderInput {
        objects,
        pruned: &[],
        dialect: Dialect::Argo,
        annotations: &[],
        destroys: false,
        exists: &|_| false,
    };
    SyncRun::new(&NewRun {
        id: "0123456789abcdef",
        digest: "digest",
        revision: "v1.2.0",
        started: Timestamp::UNIX_EPOCH,
        policy: &RunPolicy {
            continues: false,
            waits_at_end: true,
            deadline: Some(SignedDuration::from_hours(1)),
            step_deadline: None,
            retries: 5,
        },
        order: &order(&input).unwrap(),
        objects,
        pruned: &[],
        unchanged: uid_of,
    })
}

/// Makes a record that a run of two objects has begun in.
pub(crate) fn begin(record: &mut SetRecord) {
    let objects = declared(&[config_map("shop", "a"), config_map("shop", "b")]);
    record.run = Some(run_of(&objects, &|at| (at == 0).then(|| "uid-of-a".to_owned())));
    record.summary.runs.insert(0, summary_of(1, "digest"));
    let uids = [Some("uid-of-a".to_owned()), None];
    let keys = objects.iter().map(|object| object.key.clone());
    record.inventory = keys.zip(uids).map(|(key, uid)| InventoryEntry { key, uid }).collect();
    record.inventory.push(InventoryEntry {
        key: ObjectKey::new("apps", "Deployment", "shop", "old"),
        uid: Some("uid-of-old".to_owned()),
    });
}
