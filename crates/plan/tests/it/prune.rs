//! Objects of an inventory that are not declared any more: deleted, kept or let go.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use taffrail_object::{InventoryEntry, ObjectKey};
use taffrail_plan::prune::{
    Guard, KeepReason, LetGoReason, LiveContent, LiveEntry, MASS_FROM, PruneDecision, PruneInput, decide,
};

/// An entry with its live object, to be changed by a case.
struct Case {
    entry: InventoryEntry,
    metadata: Map<String, Value>,
    has_mark: bool,
    claimed_by: Option<String>,
    content: Option<LiveContent>,
}

fn case(group: &str, kind: &str) -> Case {
    let entry =
        InventoryEntry { key: ObjectKey::new(group, kind, "shop", "old"), uid: Some("u-1".to_owned()) };
    let Value::Object(metadata) = json!({"namespace": "shop", "name": "old", "uid": "u-1"}) else { panic!() };
    Case { entry, metadata, has_mark: true, claimed_by: None, content: Some(LiveContent::default()) }
}

impl Case {
    fn annotated(mut self, key: &str, value: &str) -> Case {
        self.metadata.insert("annotations".to_owned(), json!({key: value}));
        self
    }

    fn live(&self) -> LiveEntry<'_> {
        let Case { metadata, has_mark, claimed_by, content, .. } = self;
        LiveEntry { metadata, has_mark: *has_mark, claimed_by: claimed_by.clone(), content: content.clone() }
    }

    /// Decides for this entry alone, in a set of 100 other objects.
    fn decide(&self, allows_guarded: bool) -> PruneDecision {
        let confirmed: BTreeSet<ObjectKey> = [ObjectKey::new("", "Pod", "shop", "old")].into();
        let declared_uids = ["u-declared".to_owned()].into();
        let input = PruneInput {
            entries: &[(self.entry.clone(), Some(self.live()))],
            declared: 100,
            kept: 100,
            declared_uids: &declared_uids,
            destroys: false,
            allows_guarded,
            confirmed: &confirmed,
        };
        decide(&input).remove(0)
    }
}

fn delete() -> PruneDecision {
    PruneDecision::Delete { uid: "u-1".to_owned() }
}

#[test]
fn the_uid_that_was_applied_is_deleted_and_no_other() {
    assert_eq!(case("", "ConfigMap").decide(false), delete());
    let mut again = case("", "ConfigMap");
    again.metadata.insert("uid".to_owned(), json!("u-2"));
    assert_eq!(again.decide(true), PruneDecision::LetGo(LetGoReason::Recreated));
    let mut declared = case("", "ConfigMap");
    declared.entry.uid = Some("u-declared".to_owned());
    declared.metadata.insert("uid".to_owned(), json!("u-declared"));
    assert_eq!(declared.decide(true), PruneDecision::LetGo(LetGoReason::StillDeclared));
    let mut claimed = case("", "ConfigMap");
    claimed.claimed_by = Some("Kustomization flux-system/other".to_owned());
    assert_eq!(
        claimed.decide(true),
        PruneDecision::LetGo(LetGoReason::Claimed { by: "Kustomization flux-system/other".to_owned() })
    );
    let mut terminating = case("", "ConfigMap");
    terminating.metadata.insert("deletionTimestamp".to_owned(), json!("2026-03-01T12:00:00Z"));
    assert_eq!(terminating.decide(true), PruneDecision::Terminating);
}

#[test]
fn an_object_needs_the_mark_of_its_app() {
    let mut foreign = case("", "ConfigMap");
    foreign.has_mark = false;
    // Who may write the inventory knows the UIDs of objects that he may not delete.
    assert_eq!(foreign.decide(true), PruneDecision::LetGo(LetGoReason::NoMark));
    foreign.entry.uid = None;
    assert_eq!(foreign.decide(true), PruneDecision::LetGo(LetGoReason::NoMark));
    foreign.has_mark = true;
    assert_eq!(foreign.decide(false), delete());
    foreign.metadata.remove("uid");
    assert_eq!(foreign.decide(true), PruneDecision::Keep(KeepReason::NoUid));
}

#[test]
fn annotations_of_each_tool_keep_an_object() {
    let forbidden = |stated_by| PruneDecision::Keep(KeepReason::Forbidden { stated_by });
    let detached = |stated_by| PruneDecision::LetGo(LetGoReason::Detached { stated_by });
    for (key, value, expected) in [
        ("argocd.argoproj.io/sync-options", "Prune=false", forbidden("argocd.argoproj.io/sync-options")),
        ("kustomize.toolkit.fluxcd.io/prune", "disabled", forbidden("kustomize.toolkit.fluxcd.io/prune")),
        (
            "kustomize.toolkit.fluxcd.io/reconcile",
            "disabled",
            forbidden("kustomize.toolkit.fluxcd.io/reconcile"),
        ),
        ("kustomize.toolkit.fluxcd.io/ssa", "Ignore", forbidden("kustomize.toolkit.fluxcd.io/ssa")),
        ("helm.sh/resource-policy", "keep", detached("helm.sh/resource-policy")),
        (
            "client.lifecycle.config.k8s.io/deletion",
            "detach",
            detached("client.lifecycle.config.k8s.io/deletion"),
        ),
        ("cli-utils.sigs.k8s.io/on-remove", "keep", detached("cli-utils.sigs.k8s.io/on-remove")),
        ("argocd.argoproj.io/sync-options", "Prune=flase", delete()),
    ] {
        assert_eq!(case("", "ConfigMap").annotated(key, value).decide(true), expected, "{key}: {value}");
    }
    let stated_by = "argocd.argoproj.io/sync-options";
    let unconfirmed = case("", "ConfigMap").annotated(stated_by, "Prune=confirm");
    assert_eq!(unconfirmed.decide(true), PruneDecision::Keep(KeepReason::Unconfirmed { stated_by }));
    assert_eq!(case("", "Pod").annotated(stated_by, "Prune=confirm").decide(false), delete());
}

#[test]
fn dangerous_deletions_need_a_consent() {
    let guarded = |guard| PruneDecision::Keep(KeepReason::Guarded(guard));
    let definition = || case("apiextensions.k8s.io", "CustomResourceDefinition");
    let with = |mut case: Case, content| {
        case.content = content;
        case
    };
    let objects = |count| {
        let example = Some(ObjectKey::new("", "ConfigMap", "old", "notes"));
        Some(LiveContent { count, is_more: false, example })
    };
    for (case, guard) in [
        (case("", "Namespace"), Guard::Namespace),
        (case("", "PersistentVolumeClaim"), Guard::VolumeClaim),
        (with(definition(), objects(3)), Guard::Definition),
        (with(definition(), None), Guard::Definition),
    ] {
        assert_eq!(case.decide(false), guarded(guard));
        assert_eq!(case.decide(true), delete());
    }
    assert_eq!(definition().decide(false), delete());
    for allows_guarded in [false, true] {
        for (count, told) in [
            (7, "7 other objects are in the namespace, such as ConfigMap notes"),
            (1, "ConfigMap notes is in the namespace, and does not go with the app"),
        ] {
            let full = with(case("", "Namespace"), objects(count)).decide(allows_guarded);
            let PruneDecision::Keep(reason) = full else { panic!("{full:?}") };
            assert_eq!(reason.to_string(), told);
        }
        let unknown = with(case("", "Namespace"), None).decide(allows_guarded);
        assert_eq!(unknown, PruneDecision::Keep(KeepReason::UnknownContent));
    }
}

/// Decides for `count` objects that are there and ten that are gone, in an inventory with `kept` others.
fn many(count: usize, declared: usize, kept: usize, allows_guarded: bool) -> Vec<PruneDecision> {
    let cases: Vec<Case> = (0..count).map(|_| case("", "ConfigMap")).collect();
    let mut entries: Vec<_> = cases.iter().map(|case| (case.entry.clone(), Some(case.live()))).collect();
    entries.extend((0..10).map(|_| (case("", "ConfigMap").entry, None)));
    let (declared_uids, confirmed) = (BTreeSet::new(), BTreeSet::new());
    decide(&PruneInput {
        entries: &entries,
        declared,
        kept,
        declared_uids: &declared_uids,
        destroys: false,
        allows_guarded,
        confirmed: &confirmed,
    })
    .into_iter()
    .filter(|it| *it != PruneDecision::Gone)
    .collect()
}

#[test]
fn half_of_a_set_does_not_go_at_once() {
    let is_deleted = |decisions: &[PruneDecision]| decisions.iter().all(|it| *it == delete());
    assert!(is_deleted(&many(5, 5, 5, false)));
    assert!(is_deleted(&many(MASS_FROM - 2, 1, 1, false)));
    let mass = PruneDecision::Keep(KeepReason::Guarded(Guard::Mass { pruned: 6, all: 10 }));
    assert!(many(6, 4, 4, false).iter().all(|it| *it == mass));
    // What the set gained meanwhile makes the loss no smaller.
    assert!(many(6, 100, 4, false).iter().all(|it| *it == mass));
    let whole = PruneDecision::Keep(KeepReason::Guarded(Guard::Mass { pruned: 50, all: 50 }));
    assert!(many(50, 50, 0, false).iter().all(|it| *it == whole));
    assert!(is_deleted(&many(6, 4, 4, true)));
}

#[test]
fn a_set_that_declares_nothing_deletes_nothing() {
    let kept = PruneDecision::Keep(KeepReason::Guarded(Guard::NothingDeclared));
    for allows_guarded in [false, true] {
        assert!(many(1, 0, 0, allows_guarded).iter().all(|it| *it == kept));
        assert!(many(50, 0, 0, allows_guarded).iter().all(|it| *it == kept));
    }
    let gone = InventoryEntry { key: ObjectKey::new("", "Pod", "shop", "a"), uid: None };
    let (declared_uids, confirmed) = (BTreeSet::new(), BTreeSet::new());
    let input = PruneInput {
        entries: &[(gone, None)],
        declared: 0,
        kept: 0,
        declared_uids: &declared_uids,
        destroys: false,
        allows_guarded: false,
        confirmed: &confirmed,
    };
    assert_eq!(decide(&input), [PruneDecision::Gone]);
}

#[test]
fn removing_a_whole_set_asks_for_the_consent_to_deletions() {
    let declared_uids = BTreeSet::new();
    let confirmed = BTreeSet::new();
    let destroy = |annotation: &str, value: &str| {
        let case = case("", "ConfigMap").annotated(annotation, value);
        let entries = [(case.entry.clone(), Some(case.live()))];
        let input = PruneInput {
            entries: &entries,
            declared: 0,
            kept: 0,
            declared_uids: &declared_uids,
            destroys: true,
            allows_guarded: false,
            confirmed: &confirmed,
        };
        decide(&input).remove(0)
    };
    let options = "argocd.argoproj.io/sync-options";
    assert_eq!(destroy(options, "Prune=false"), PruneDecision::Delete { uid: "u-1".to_owned() });
    let kept = PruneDecision::Keep(KeepReason::Forbidden { stated_by: "argocd.argoproj.io/sync-options" });
    assert_eq!(destroy(options, "Delete=false"), kept);
    let asked = PruneDecision::Keep(KeepReason::Unconfirmed { stated_by: "argocd.argoproj.io/sync-options" });
    assert_eq!(destroy(options, "Delete=confirm"), asked);
}
