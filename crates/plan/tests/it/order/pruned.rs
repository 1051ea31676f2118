//! What is pruned waits for what must be gone first, and stays if that is not gone.

use jiff::Timestamp;
use taffrail_object::ObjectKey;
use taffrail_plan::manifests::DeclaredSet;
use taffrail_plan::order::{Dialect, PrunedObject, SyncOrder};
use taffrail_plan::sync::{
    Answer, NewRun, Observation, ObservedObject, RunAction, RunPolicy, SyncRun, TaskState, step,
};

use super::kapp::{GROUP, RULE, live};
use super::{DEPENDS_ON, manifest, ordered, set};

/// Carries a run that goes on after failures out, in which the given objects fail, and returns the reason why each of the
/// others was skipped.
fn skipped(
    set: &DeclaredSet,
    pruned: &[PrunedObject],
    order: &SyncOrder,
    failing: &[&str],
) -> Vec<(String, String)> {
    let policy =
        RunPolicy { continues: true, waits_at_end: false, deadline: None, step_deadline: None, retries: 0 };
    let keys: Vec<(ObjectKey, String)> =
        pruned.iter().map(|it| (it.key.clone(), format!("uid-{}", it.key.name))).collect();
    let now = Timestamp::UNIX_EPOCH;
    let mut run = SyncRun::new(&NewRun {
        id: "run",
        digest: "digest",
        revision: "",
        started: now,
        policy: &policy,
        order,
        objects: &set.objects,
        pruned: &keys,
        unchanged: &|_| None,
    });
    let mut answers = Vec::new();
    while run.end().is_none() {
        let observation = Observation {
            answers: &answers,
            object: &|_| ObservedObject::Absent,
            terminates: false,
            is_superseded: false,
            restarted: false,
        };
        let stepped = step(run, &observation, now);
        run = stepped.run;
        let answer = |action: &RunAction| {
            let at = match action {
                RunAction::Apply(at) | RunAction::RunHook(at) | RunAction::Delete { task: at, .. } => *at,
                RunAction::Release { task, .. } => *task,
            };
            let is_failing = failing.contains(&&*run.tasks[at].key.name);
            let answer = if is_failing { Answer::Failed("refused".to_owned()) } else { Answer::Gone };
            (at, answer)
        };
        answers = stepped.actions.iter().map(answer).collect();
        assert!(!answers.is_empty() || run.end().is_some(), "the run stands still");
    }
    let message = |state: &TaskState| match state {
        TaskState::Skipped { message } => Some(message.clone()),
        _ => None,
    };
    let tasks = run.tasks.iter();
    tasks.filter_map(|task| Some((task.key.name.clone(), message(&task.state)?))).collect()
}

#[test]
fn kpt_keeps_what_an_object_depends_on_that_could_not_be_deleted() {
    let pruned = [
        live("v1", "ConfigMap", "shop", "base", &[]),
        live("v1", "ConfigMap", "shop", "above", &[(DEPENDS_ON, "/namespaces/shop/ConfigMap/base")]),
        live("v1", "ConfigMap", "shop", "top", &[(DEPENDS_ON, "/namespaces/shop/ConfigMap/above")]),
        live("v1", "ConfigMap", "shop", "free", &[]),
        live("v1", "Namespace", "", "shop", &[]),
    ];
    let set = set("");
    let order = ordered(&set, &pruned, Dialect::Kpt, &[]).unwrap();
    assert_eq!(order.pruned_after, [vec![1], vec![2], vec![], vec![], vec![0, 1, 2, 3]]);
    assert_eq!(skipped(&set, &pruned, &order, &[]), []);
    let expected = [
        ("above", "ConfigMap shop/top, on which it depends, failed"),
        ("base", "ConfigMap shop/above, on which it depends, was skipped"),
        ("shop", "ConfigMap shop/base, on which it depends, was skipped"),
    ];
    let told = skipped(&set, &pruned, &order, &["top"]);
    let told: Vec<(&str, &str)> = told.iter().map(|(name, why)| (&**name, &**why)).collect();
    assert_eq!(told, expected);
    // What nothing depends on is deleted though others fail; a circle of live objects is no reason to keep anything.
    assert_eq!(skipped(&set, &pruned, &order, &["free"]).len(), 1);
    let circle = [
        live("v1", "ConfigMap", "shop", "a", &[(DEPENDS_ON, "/namespaces/shop/ConfigMap/b")]),
        live("v1", "ConfigMap", "shop", "b", &[(DEPENDS_ON, "/namespaces/shop/ConfigMap/a")]),
    ];
    let order = ordered(&set, &circle, Dialect::Kpt, &[]).unwrap();
    assert!(order.pruned_after.iter().all(Vec::is_empty), "{:?}", order.pruned_after);
}

#[test]
fn live_objects_depend_on_the_sources_of_their_fields() {
    let mutation =
        "- sourceRef: {kind: ConfigMap, name: source}\n  sourcePath: $.data.a\n  targetPath: $.data.b\n";
    let pruned = [
        live("v1", "ConfigMap", "shop", "source", &[]),
        live("v1", "ConfigMap", "shop", "target", &[("config.kubernetes.io/apply-time-mutation", mutation)]),
    ];
    let order = ordered(&set(""), &pruned, Dialect::Kpt, &[]).unwrap();
    assert_eq!(order.pruned_after, [vec![1], vec![]]);
}

#[test]
fn kapp_keeps_what_was_not_imported() {
    let import = manifest("batch/v1", "Job", "import", &[(RULE, "upsert before deleting g/etcd")]);
    let set = set(&import);
    let pruned = [
        live("apps/v1", "StatefulSet", "shop", "etcd", &[(GROUP, "g/etcd")]),
        live("v1", "Service", "shop", "etcd-service", &[(RULE, "delete after deleting g/etcd")]),
        live("v1", "Service", "shop", "other", &[]),
    ];
    let order = ordered(&set, &pruned, Dialect::Kapp, &[]).unwrap();
    let told = skipped(&set, &pruned, &order, &["import"]);
    let names: Vec<&str> = told.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["etcd", "etcd-service"]);
    // In Argo CD's order nothing that is pruned waits for another.
    let order = ordered(&set, &pruned, Dialect::Argo, &[]).unwrap();
    assert!(order.pruned_after.is_empty() && order.across.is_empty());
}
