//! Tests of Config Sync's own objects: `Stalled` decides, wherever it stands in the list of conditions.

use serde_json::{Value, json};
use taffrail_object::Object;
use taffrail_status::{Kstatus, ObjectContext, Rules, Status, Taffrail};

use super::NOW;

fn sync(kind: &str, observed: i64, conditions: &[Value]) -> Value {
    json!({
        "apiVersion": "configsync.gke.io/v1beta1", "kind": kind, "metadata": {"name": "root-sync", "generation": 2},
        "status": {"observedGeneration": observed, "conditions": conditions},
    })
}

fn condition(name: &str, status: &str) -> Value {
    json!({"type": name, "status": status, "reason": "Deployment", "message": format!("{name} is {status}")})
}

#[test]
fn a_stalled_reconciler_has_failed() {
    let (reconciling, stalled) = (condition("Reconciling", "True"), condition("Stalled", "True"));
    let calm = condition("Stalled", "False");
    let mut deleted = sync("RootSync", 2, &[reconciling.clone(), stalled.clone()]);
    deleted["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:00:00Z");
    for (object, status) in [
        (sync("RootSync", 2, &[reconciling.clone(), stalled.clone()]), Status::Failed),
        (sync("RepoSync", 2, &[stalled.clone(), reconciling.clone()]), Status::Failed),
        (sync("RootSync", 2, &[reconciling.clone(), calm.clone()]), Status::InProgress),
        (sync("RootSync", 2, &[calm]), Status::Current),
        (sync("RootSync", 1, &[reconciling.clone(), stalled.clone()]), Status::InProgress),
        (sync("Other", 2, &[reconciling, stalled]), Status::InProgress),
        (deleted, Status::Terminating),
    ] {
        let verdict =
            Taffrail.judge(&Object::new((&object).into()).unwrap(), &ObjectContext::default(), NOW).unwrap();
        assert_eq!(verdict.status, status, "{object}");
        if status == Status::Failed {
            assert_eq!((&*verdict.message, &*verdict.rule), ("Stalled is True", "builtin/configsync.gke.io"));
        }
    }
    let both = sync("RootSync", 2, &[condition("Reconciling", "True"), condition("Stalled", "True")]);
    let verdict = Kstatus::default()
        .judge(&Object::new((&both).into()).unwrap(), &ObjectContext::default(), NOW)
        .unwrap();
    assert_eq!(verdict.status, Status::InProgress, "kstatus itself stays as it is");
}
