//! The order of a sync, by the rules of each dialect.

mod cycles;
mod kapp;
mod pruned;
mod substitution;

use taffrail_object::{GroupKind, ObjectKey};
use taffrail_plan::manifests::{DeclaredSet, HookPhase, KindScope, ManifestFile, StatedChanges, read};
use taffrail_plan::order::{Dialect, OrderError, OrderInput, PrunedObject, SyncOrder, SyncStep, Task, order};

pub(crate) fn set(text: &str) -> DeclaredSet {
    let file = ManifestFile { path: "deploy/all.yaml", content: text.as_bytes() };
    let is_cluster = [
        "Namespace",
        "CustomResourceDefinition",
        "ClusterRole",
        "ClusterRoleBinding",
        "StorageClass",
        "PersistentVolume",
        "ValidatingWebhookConfiguration",
    ];
    read(&[file], "shop", &|kind| {
        Some(if is_cluster.contains(&&*kind.kind) { KindScope::Cluster } else { KindScope::Namespaced })
    })
    .unwrap()
}

/// Returns the errors about a set, each with its hint, in one line.
fn refused(text: &str) -> String {
    let file = ManifestFile { path: "deploy/all.yaml", content: text.as_bytes() };
    let scope = |kind: &GroupKind| (kind.kind != "Unknown").then_some(KindScope::Namespaced);
    let errors = read(&[file], "shop", &scope).unwrap_err().errors;
    errors.iter().map(|error| format!("{error}; {}", error.hint())).collect::<Vec<_>>().join("\n")
}

/// Returns a manifest: `Kind name`, then annotations as `key: value` and others lines as they are.
pub(crate) fn manifest(api_version: &str, kind: &str, name: &str, annotations: &[(&str, &str)]) -> String {
    let mut text = format!("apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: {name}\n");
    if !annotations.is_empty() {
        text += "  annotations:\n";
    }
    for (key, value) in annotations {
        text += &format!("    {key}: '{value}'\n");
    }
    if kind == "CustomResourceDefinition" {
        text +=
            "spec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: Widget, plural: widgets}\n";
    }
    text + "---\n"
}

pub(crate) const WAVE: &str = "argocd.argoproj.io/sync-wave";
pub(crate) const HOOK: &str = "argocd.argoproj.io/hook";
const DEPENDS_ON: &str = "config.kubernetes.io/depends-on";

fn pruned(kind: &str, name: &str, wave: i64) -> PrunedObject {
    let key = ObjectKey::new("", kind, "shop", name);
    let changes = StatedChanges::default();
    PrunedObject { key, wave, is_last: false, depends_on: Vec::new(), defines: None, changes }
}

fn ordered(
    set: &DeclaredSet,
    pruned: &[PrunedObject],
    dialect: Dialect,
    annotations: &[Dialect],
) -> Result<SyncOrder, Vec<OrderError>> {
    let exists = |key: &ObjectKey| key.name == "outside";
    order(&OrderInput {
        objects: &set.objects,
        pruned,
        dialect,
        annotations,
        destroys: false,
        exists: &exists,
    })
}

/// Writes each step as a line: `Sync 0: a b | c`, where `|` stands between batches, `-` before what is pruned, and `!`
/// before hooks.
fn shown(set: &DeclaredSet, pruned: &[PrunedObject], steps: &[SyncStep]) -> Vec<String> {
    let task = |task: &Task| match *task {
        Task::Prune(at) => format!("-{}", pruned[at].key.name),
        Task::Hook(at) => format!("!{}", set.objects[at].key.name),
        Task::Apply(at) => set.objects[at].key.name.clone(),
    };
    let line = |step: &SyncStep| {
        let batches: Vec<String> =
            step.batches.iter().map(|batch| batch.iter().map(task).collect::<Vec<_>>().join(" ")).collect();
        format!("{} {}: {}", step.phase, step.wave, batches.join(" | "))
    };
    steps.iter().map(line).collect()
}

#[track_caller]
fn assert_order(text: &str, pruned: &[PrunedObject], dialect: Dialect, expected: &[&str]) {
    let set = set(text);
    let order = ordered(&set, pruned, dialect, &[]).unwrap();
    assert_eq!(shown(&set, pruned, &order.steps), expected);
}

#[test]
fn phases_come_before_waves_before_kinds_before_names() {
    let text = [
        manifest("apps/v1", "Deployment", "web", &[]),
        manifest("v1", "Service", "web-service", &[]),
        manifest("v1", "ConfigMap", "z", &[]),
        manifest("v1", "ConfigMap", "a", &[]),
        manifest("v1", "ConfigMap", "late", &[(WAVE, "5")]),
        manifest("v1", "ConfigMap", "early", &[(WAVE, "-1")]),
        manifest("batch/v1", "Job", "before", &[(HOOK, "PreSync")]),
        manifest("batch/v1", "Job", "after", &[("helm.sh/hook", "post-install")]),
        manifest("batch/v1", "Job", "twice", &[(HOOK, "PreSync,PostSync"), (WAVE, "1")]),
        manifest("batch/v1", "Job", "failed", &[(HOOK, "SyncFail")]),
        manifest("v1", "Pod", "never", &[("helm.sh/hook", "test")]),
        manifest("batch/v1", "Job", "deleted", &[(HOOK, "PreDelete")]),
        manifest("example.com/v1", "Other", "unknown", &[]),
    ]
    .concat();
    let set = set(&text);
    let order = ordered(&set, &[], Dialect::Argo, &[]).unwrap();
    let steps = [
        "PreSync 0: !before",
        "PreSync 1: !twice",
        "Sync -1: early",
        "Sync 0: a z | web-service | web | unknown",
        "Sync 5: late",
        "PostSync 0: !after",
        "PostSync 1: !twice",
    ];
    assert_eq!(shown(&set, &[], &order.steps), steps);
    assert_eq!(shown(&set, &[], &order.after_failure), ["SyncFail 0: !failed"]);
    assert!(order.steps.iter().all(|step| step.phase != HookPhase::SyncFail));
    assert_eq!(order.unread, []);
}

#[test]
fn namespaces_and_definitions_take_the_phase_and_wave_of_the_first_that_needs_them() {
    let text = [
        manifest("v1", "Namespace", "shop", &[(WAVE, "3")]),
        manifest(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "widgets.example.com",
            &[(WAVE, "3")],
        ),
        manifest("v1", "Namespace", "empty", &[(WAVE, "3")]),
        manifest("batch/v1", "Job", "before", &[(HOOK, "PreSync")]),
        manifest("example.com/v1", "Widget", "one", &[(WAVE, "1")]),
        manifest("v1", "ConfigMap", "two", &[]),
        // A kind that is called like a built-in one which comes first.
        manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "secrets.acme.io", &[])
            .replace("example.com", "acme.io")
            .replace("Widget", "Secret"),
        manifest("acme.io/v1", "Secret", "odd", &[]),
    ]
    .concat();
    assert_order(
        &text,
        &[],
        Dialect::Argo,
        &[
            "PreSync 0: shop | !before",
            "Sync 0: two | secrets.acme.io | odd",
            "Sync 1: widgets.example.com | one",
            "Sync 3: empty",
        ],
    );
}

#[test]
fn pruned_objects_go_first_in_mirrored_waves_or_last() {
    let text =
        [manifest("v1", "ConfigMap", "kept", &[]), manifest("v1", "ConfigMap", "late", &[(WAVE, "7")])]
            .concat();
    let last = PrunedObject { is_last: true, ..pruned("ConfigMap", "last", -4) };
    let gone = [
        pruned("ConfigMap", "low", -4),
        pruned("ConfigMap", "middle", 0),
        pruned("ConfigMap", "high", 2),
        pruned("Service", "high-too", 2),
        last,
    ];
    assert_order(
        &text,
        &gone,
        Dialect::Argo,
        &[
            "Sync -4: -high-too | -high",
            "Sync 0: -middle | kept",
            "Sync 2: -low",
            "Sync 7: late",
            "Sync 8: -last",
        ],
    );
}

#[test]
fn pruned_last_is_after_all_that_is_pruned_and_never_below_zero() {
    let text = manifest("v1", "ConfigMap", "kept", &[(WAVE, "-5")]);
    let last = PrunedObject { is_last: true, ..pruned("ConfigMap", "last", 0) };
    let gone = [pruned("ConfigMap", "high", 3), last.clone()];
    assert_order(&text, &gone, Dialect::Argo, &["Sync -5: kept", "Sync 0: -high", "Sync 4: -last"]);
    assert_order(&text, &[last], Dialect::Argo, &["Sync -5: kept", "Sync 1: -last"]);
}

#[test]
fn flux_applies_definitions_then_classes_then_the_others_and_prunes_last() {
    let text = [
        manifest("apps/v1", "Deployment", "web", &[]),
        manifest("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "hook", &[]),
        manifest("storage.k8s.io/v1", "StorageClass", "fast", &[]),
        manifest("example.com/v1", "Other", "unknown", &[]),
        manifest("v1", "Namespace", "shop", &[(WAVE, "9")]),
        manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com", &[]),
        manifest("batch/v1", "Job", "before", &[(HOOK, "PreSync")]),
    ]
    .concat();
    let gone = [pruned("ConfigMap", "settings", 5), pruned("Deployment", "old", -5)];
    assert_order(
        &text,
        &gone,
        Dialect::Flux,
        &[
            "Sync 0: widgets.example.com | shop",
            "Sync 0: fast",
            "Sync 0: web | before | unknown | hook",
            "Sync 0: -old | -settings",
        ],
    );
    let set = set(&text);
    let order = ordered(&set, &gone, Dialect::Flux, &[]).unwrap();
    let unread: Vec<_> =
        order.unread.iter().map(|it| (&*set.objects[it.object].key.name, it.key, it.line)).collect();
    assert_eq!(unread, [("shop", WAVE, 26), ("before", HOOK, 42)]);
}

#[test]
fn kpt_applies_by_levels_and_prunes_them_in_reverse() {
    let text = [
        manifest("v1", "ConfigMap", "third", &[(DEPENDS_ON, "apps/namespaces/shop/Deployment/second")]),
        manifest(
            "apps/v1",
            "Deployment",
            "second",
            &[(DEPENDS_ON, "/namespaces/shop/ConfigMap/first,/namespaces/shop/Secret/outside")],
        ),
        manifest("v1", "ConfigMap", "first", &[]),
        manifest("v1", "Namespace", "shop", &[]),
        manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com", &[]),
        manifest("example.com/v1", "Widget", "one", &[]),
        manifest("v1", "Service", "free", &[]),
    ]
    .concat();
    let depends = |it: PrunedObject, on: &str| PrunedObject {
        depends_on: vec![ObjectKey::new("", "ConfigMap", "shop", on)],
        ..it
    };
    let gone = [
        pruned("ConfigMap", "base", 0),
        depends(pruned("ConfigMap", "above", 0), "base"),
        depends(pruned("ConfigMap", "circle-a", 0), "circle-b"),
        depends(pruned("ConfigMap", "circle-b", 0), "circle-a"),
        PrunedObject {
            defines: Some(GroupKind::new("", "Secret")),
            ..pruned("CustomResourceDefinition", "definition", 0)
        },
        pruned("Secret", "custom", 0),
    ];
    let expected = [
        "Sync 0: shop | widgets.example.com",
        "Sync 0: first | free | one",
        "Sync 0: second",
        "Sync 0: third",
        "Sync 0: -custom | -above",
        "Sync 0: -definition | -base -circle-a -circle-b",
    ];
    assert_order(&text, &gone, Dialect::Kpt, &expected);
    let order = ordered(&set(&text), &gone, Dialect::Kpt, &[]).unwrap();
    let needs: Vec<usize> = order.steps.iter().map(|step| step.needs.len()).collect();
    assert_eq!(needs, [0, 0, 1, 0, 0, 0]);
}

#[test]
fn what_is_stated_beats_what_is_implied() {
    // The namespace states to come after an object in it, and the web after one of a later wave.
    let text = [
        manifest("v1", "Namespace", "shop", &[(DEPENDS_ON, "/namespaces/shop/ConfigMap/first")]),
        manifest("v1", "ConfigMap", "first", &[(WAVE, "2")]),
        manifest("apps/v1", "Deployment", "web", &[(DEPENDS_ON, "/namespaces/shop/ConfigMap/first")]),
    ]
    .concat();
    let set = set(&text);
    let order = ordered(&set, &[], Dialect::Argo, &[Dialect::Kpt]).unwrap();
    assert_eq!(shown(&set, &[], &order.steps), ["Sync 2: first", "Sync 2: shop | web"]);
    let order = ordered(&set, &[], Dialect::Kpt, &[]).unwrap();
    assert_eq!(shown(&set, &[], &order.steps), ["Sync 0: first", "Sync 0: shop", "Sync 0: web"]);
    let order = ordered(&set, &[], Dialect::Flux, &[Dialect::Kpt, Dialect::Argo]).unwrap();
    assert_eq!(shown(&set, &[], &order.steps), ["Sync 2: first", "Sync 2: shop | web"]);
}

#[test]
fn nothing_waits_for_a_hook_that_runs_later_or_twice() {
    let text = |phases: &str| {
        let a = manifest("v1", "ConfigMap", "a", &[(DEPENDS_ON, "batch/namespaces/shop/Job/hook")]);
        a + &manifest("batch/v1", "Job", "hook", &[(HOOK, phases)])
    };
    for late in ["PreDelete", "PostDelete", "SyncFail"] {
        let errors = ordered(&set(&text(late)), &[], Dialect::Argo, &[Dialect::Kpt]).unwrap_err();
        assert!(matches!(&errors[..], [OrderError::LateHook(_)]), "{late}: {errors:?}");
    }
    let set = set(&text("PreSync,PostSync"));
    let order = ordered(&set, &[], Dialect::Argo, &[Dialect::Kpt]).unwrap();
    assert_eq!(shown(&set, &[], &order.steps), ["PreSync 0: !hook", "Sync 0: a", "PostSync 0: !hook"]);
}

#[test]
fn circles_and_unknown_objects_are_errors_with_their_lines() {
    let text = [
        manifest("v1", "ConfigMap", "a", &[(DEPENDS_ON, "/namespaces/shop/ConfigMap/b")]),
        manifest("v1", "ConfigMap", "b", &[(DEPENDS_ON, "/namespaces/shop/ConfigMap/a")]),
        manifest("v1", "ConfigMap", "c", &[(DEPENDS_ON, "/namespaces/shop/ConfigMap/a")]),
        manifest("v1", "ConfigMap", "d", &[(DEPENDS_ON, "/namespaces/shop/ConfigMap/d")]),
    ]
    .concat();
    let errors = ordered(&set(&text), &[], Dialect::Kpt, &[]).unwrap_err();
    let told: Vec<String> = errors.iter().map(OrderError::to_string).collect();
    let expected = [
        "objects depend on each other in a circle: deploy/all.yaml:6: /ConfigMap/shop/a comes after /ConfigMap/shop/b; \
         deploy/all.yaml:13: /ConfigMap/shop/b comes after /ConfigMap/shop/a",
        "objects depend on each other in a circle: deploy/all.yaml:27: /ConfigMap/shop/d comes after /ConfigMap/shop/d",
    ];
    assert_eq!(told, expected);
    // In another dialect the annotation changes nothing.
    assert!(ordered(&set(&text), &[], Dialect::Argo, &[]).is_ok());

    let text = [
        manifest("v1", "ConfigMap", "a", &[(DEPENDS_ON, "/namespaces/shop/ConfigMap/nobody")]),
        manifest("v1", "ConfigMap", "b", &[(DEPENDS_ON, "apps/namespaces/shop/Deployment/none")]),
        manifest("v1", "ConfigMap", "c", &[(DEPENDS_ON, "/namespaces/shop/ConfigMap/outside")]),
    ]
    .concat();
    let gone = ordered(&set(&text), &[pruned("ConfigMap", "outside", 0)], Dialect::Kpt, &[]).unwrap_err();
    assert_eq!(
        gone.last().unwrap().to_string(),
        "deploy/all.yaml:20: /ConfigMap/shop/c comes after /ConfigMap/shop/outside, which is not declared any more and will be deleted"
    );
    let errors = ordered(&set(&text), &[], Dialect::Kpt, &[]).unwrap_err();
    let told: Vec<String> = errors.iter().map(OrderError::to_string).collect();
    let expected = [
        "deploy/all.yaml:6: /ConfigMap/shop/a comes after /ConfigMap/shop/nobody, which is neither in the manifests nor in the cluster",
        "deploy/all.yaml:13: /ConfigMap/shop/b comes after apps/Deployment/shop/none, which is neither in the manifests nor in the cluster",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_set_is_removed_between_its_hooks_and_the_highest_wave_first() {
    let text = [
        manifest("batch/v1", "Job", "before", &[(HOOK, "PreDelete")]),
        manifest("batch/v1", "Job", "after", &[("helm.sh/hook", "post-delete")]),
        manifest("batch/v1", "Job", "sync", &[(HOOK, "PreSync,SyncFail")]),
        manifest("v1", "ConfigMap", "a", &[]),
    ]
    .concat();
    let set = set(&text);
    let gone =
        [pruned("ConfigMap", "early", -1), pruned("ConfigMap", "late", 3), pruned("Service", "web", 0)];
    for dialect in [Dialect::Argo, Dialect::Flux, Dialect::Kpt] {
        let exists = |_: &ObjectKey| false;
        let annotations = &[Dialect::Argo];
        let input = OrderInput {
            objects: &set.objects,
            pruned: &gone,
            dialect,
            annotations,
            destroys: true,
            exists: &exists,
        };
        let order = order(&input).unwrap();
        let steps = shown(&set, &gone, &order.steps);
        let phases: Vec<&str> = order.steps.iter().map(|step| step.phase.as_str()).collect();
        assert_eq!((phases.first(), phases.last()), (Some(&"PreDelete"), Some(&"PostDelete")), "{steps:?}");
        assert_eq!(order.after_failure, []);
        if dialect == Dialect::Argo {
            assert_eq!(steps[1..4], ["Sync -1: -late", "Sync 0: -web", "Sync 3: -early"]);
        }
    }
}
