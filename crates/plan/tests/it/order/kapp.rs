//! kapp's order, by its documentation and its own rules.

use serde_json::{Value, json};
use taffrail_object::ObjectKey;
use taffrail_plan::manifests::{ApplyMode, HookPhase, Removal};
use taffrail_plan::order::{Dialect, PrunedObject, Task, TaskPair};

use super::{manifest, ordered, refused, set, shown};

pub(super) const GROUP: &str = "kapp.k14s.io/change-group";
pub(super) const RULE: &str = "kapp.k14s.io/change-rule";
const RULE_1: &str = "kapp.k14s.io/change-rule.1";
const RULE_2: &str = "kapp.k14s.io/change-rule.2";
const SKIPS: &str = "kapp.k14s.io/disable-default-change-group-and-rules";

/// Returns a live object to delete.
pub(super) fn live(
    api_version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
    stated: &[(&str, &str)],
) -> PrunedObject {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let annotations: Value = stated.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let spec = json!({"group": "example.com", "names": {"kind": "Widget"}});
    let object = json!({"metadata": {"annotations": annotations}, "spec": spec});
    PrunedObject::of_live(ObjectKey::new(group, kind, namespace, name), &object)
}

/// Asserts the levels: the names of each, and `-` before those that are deleted.
#[track_caller]
fn assert_levels(manifests: &[String], pruned: &[PrunedObject], expected: &[&str]) {
    let set = set(&manifests.concat());
    let order = ordered(&set, pruned, Dialect::Kapp, &[]).unwrap();
    let levels = shown(&set, pruned, &order.steps);
    let levels: Vec<&str> = levels.iter().map(|line| line.trim_start_matches("Sync 0: ")).collect();
    assert_eq!(levels, expected);
    assert_eq!(order.unread, []);
}

fn job(name: &str, stated: &[(&str, &str)]) -> String {
    manifest("batch/v1", "Job", name, stated)
}

fn deployment(name: &str, stated: &[(&str, &str)]) -> String {
    manifest("apps/v1", "Deployment", name, stated)
}

fn config_map(name: &str, stated: &[(&str, &str)]) -> String {
    manifest("v1", "ConfigMap", name, stated)
}

fn plain(api_version: &str, kind: &str, name: &str) -> String {
    manifest(api_version, kind, name, &[])
}

/// The example of the documentation: a migration, then the app, then a check of its health.
const APP: &str = "apps.big.co/deployment";
const MIGRATIONS: &str = "apps.big.co/db-migrations";

#[test]
fn a_migration_runs_before_the_app_and_a_check_after_it() {
    let app = [(GROUP, APP)];
    let manifests = [
        job("app-health-check", &[(RULE, "upsert after upserting apps.big.co/deployment")]),
        deployment("app", &[(GROUP, APP), (RULE, "upsert after upserting apps.big.co/db-migrations")]),
        manifest("networking.k8s.io/v1", "Ingress", "app-ingress", &app),
        manifest("v1", "Service", "app-service", &app),
        job("migrations", &[(GROUP, MIGRATIONS)]),
        config_map("app-config", &[]),
    ];
    assert_levels(
        &manifests,
        &[],
        &["app-config", "app-ingress app-service migrations", "app", "app-health-check"],
    );
}

#[test]
fn data_is_imported_before_its_source_is_deleted() {
    let import = "apps.big.co/import-etcd-into-db";
    let manifests = [
        job("import", &[(GROUP, import), (RULE, "upsert before deleting apps.big.co/etcd")]),
        job("migrations", &[(RULE, "upsert after upserting apps.big.co/import-etcd-into-db")]),
    ];
    let etcd = live("apps/v1", "StatefulSet", "shop", "etcd", &[(GROUP, "apps.big.co/etcd")]);
    let other = live("apps/v1", "StatefulSet", "shop", "other", &[]);
    let pruned = [etcd, other];
    assert_levels(&manifests, &pruned, &["import -other", "-etcd migrations"]);
    let set = set(&manifests.concat());
    let order = ordered(&set, &pruned, Dialect::Kapp, &[]).unwrap();
    assert_eq!(order.across, [TaskPair { later: Task::Prune(0), first: Task::Apply(0) }]);
    assert_eq!(order.after, [vec![], vec![0]]);
    assert!(order.pruned_after.iter().all(Vec::is_empty), "{:?}", order.pruned_after);
}

#[test]
fn a_live_object_may_be_deleted_before_its_successor_comes() {
    let old = live("v1", "Service", "shop", "old", &[(RULE, "delete before upserting apps.big.co/service")]);
    let manifests =
        [manifest("v1", "Service", "new", &[(GROUP, "apps.big.co/service")]), deployment("web", &[])];
    assert_levels(&manifests, &[old], &["-old web", "new"]);
}

#[test]
fn an_object_may_come_after_a_deletion() {
    let manifests = [job("after", &[(RULE, "upsert after deleting apps.big.co/old")]), job("other", &[])];
    let old = live("batch/v1", "Job", "shop", "old", &[(GROUP, "apps.big.co/old")]);
    assert_levels(&manifests, &[old], &["-old other", "after"]);
    // A group without members orders nothing.
    assert_levels(&manifests, &[], &["after other"]);
}

#[test]
fn several_rules_stand_on_one_object() {
    let manifests = [
        job("import", &[(GROUP, "apps.big.co/import")]),
        job("last", &[(GROUP, "apps.big.co/last")]),
        job(
            "migrations",
            &[
                (RULE_1, "upsert after upserting apps.big.co/import"),
                (RULE_2, "upsert before upserting apps.big.co/last"),
            ],
        ),
    ];
    assert_levels(&manifests, &[], &["import", "migrations", "last"]);
}

#[test]
fn an_object_may_be_in_several_groups() {
    let manifests = [
        job(
            "last",
            &[("kapp.k14s.io/change-group.a", "apps.big.co/a"), ("kapp.k14s.io/change-group.b", "b")],
        ),
        job("one", &[(RULE, "upsert before upserting apps.big.co/a")]),
        job("two", &[(RULE, "upsert before upserting b")]),
    ];
    assert_levels(&manifests, &[], &["one two", "last"]);
}

#[test]
fn deletions_follow_the_rules_of_live_objects() {
    let app = |kind, name| live("v1", kind, "shop", name, &[(GROUP, APP)]);
    let pruned = [
        live("v1", "ConfigMap", "shop", "app-config", &[]),
        live(
            "batch/v1",
            "Job",
            "shop",
            "migrations",
            &[
                (GROUP, MIGRATIONS),
                (RULE, "upsert after upserting apps.big.co/import"),
                (RULE_1, "delete before deleting apps.big.co/deployment"),
            ],
        ),
        app("Service", "app-service"),
        app("Pod", "app"),
        live(
            "batch/v1",
            "Job",
            "shop",
            "check",
            &[(RULE_1, "delete before deleting apps.big.co/db-migrations")],
        ),
    ];
    assert_levels(&[], &pruned, &["-app-config -check", "-migrations", "-app -app-service"]);
    let set = set("");
    let order = ordered(&set, &pruned, Dialect::Kapp, &[]).unwrap();
    assert_eq!(order.pruned_after, [vec![], vec![4], vec![1], vec![1], vec![]]);
}

#[test]
fn namespaces_and_pod_related_kinds_come_first() {
    let manifests = [
        plain("v1", "Namespace", "shop"),
        plain("v1", "Namespace", "other"),
        plain("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com"),
        config_map("app-config", &[]),
        plain("v1", "Secret", "key"),
        plain("v1", "ServiceAccount", "robot"),
        deployment("app", &[(GROUP, APP)]),
        job("check", &[(RULE, "upsert after upserting apps.big.co/deployment")]),
    ];
    assert_levels(
        &manifests,
        &[],
        &["other shop widgets.example.com", "app-config key robot", "app", "check"],
    );
}

#[test]
fn an_object_waits_for_its_own_namespace_alone() {
    let elsewhere =
        config_map("elsewhere", &[]).replace("name: elsewhere", "name: elsewhere\n  namespace: away");
    let manifests = [plain("v1", "Namespace", "shop"), elsewhere, config_map("here", &[])];
    assert_levels(&manifests, &[], &["shop elsewhere", "here"]);
}

#[test]
fn a_custom_object_waits_for_its_own_definition_alone() {
    let manifests = [
        plain("example.com/v1", "Widget", "one"),
        plain("example.com/v1", "Gadget", "two"),
        plain("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com"),
    ];
    assert_levels(&manifests, &[], &["widgets.example.com two", "one"]);
}

#[test]
fn roles_come_before_bindings() {
    let rbac = "rbac.authorization.k8s.io/v1";
    let manifests = [
        plain(rbac, "ClusterRoleBinding", "cluster-binding"),
        plain(rbac, "RoleBinding", "binding"),
        plain(rbac, "ClusterRole", "cluster-role"),
        plain(rbac, "Role", "role"),
        deployment("web", &[]),
    ];
    assert_levels(&manifests, &[], &["cluster-role role", "cluster-binding binding", "web"]);
}

#[test]
fn accounts_and_roles_come_before_apps_of_kapp_controller() {
    let rbac = "rbac.authorization.k8s.io/v1";
    let manifests = [
        plain("kappctrl.k14s.io/v1alpha1", "App", "app"),
        plain("packaging.carvel.dev/v1alpha1", "PackageInstall", "package"),
        plain(rbac, "RoleBinding", "binding"),
        plain(rbac, "Role", "role"),
        plain("v1", "ServiceAccount", "robot"),
        plain("v1", "Secret", "values"),
        plain("v1", "Namespace", "shop"),
    ];
    assert_levels(&manifests, &[], &["shop", "robot role values", "binding", "app package"]);
}

#[test]
fn apps_of_kapp_controller_are_deleted_before_their_accounts_and_those_before_the_namespace() {
    let rbac = "rbac.authorization.k8s.io/v1";
    let pruned = [
        live("v1", "Namespace", "", "shop", &[]),
        live("v1", "ServiceAccount", "shop", "robot", &[]),
        live(rbac, "Role", "shop", "role", &[]),
        live(rbac, "RoleBinding", "shop", "binding", &[]),
        live("kappctrl.k14s.io/v1alpha1", "App", "shop", "app", &[]),
        live("packaging.carvel.dev/v1alpha1", "PackageInstall", "shop", "package", &[]),
        live("v1", "Secret", "shop", "values", &[]),
    ];
    assert_levels(&[], &pruned, &["-app -package -values", "-binding -robot -role", "-shop"]);
    let order = ordered(&set(""), &pruned, Dialect::Kapp, &[]).unwrap();
    assert_eq!(order.pruned_after[0], [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_namespace_is_deleted_after_its_accounts_alone() {
    let pruned = [
        live("v1", "Namespace", "", "one", &[]),
        live("v1", "ServiceAccount", "one", "robot-1", &[]),
        live("v1", "Namespace", "", "two", &[]),
        live("v1", "ServiceAccount", "elsewhere", "robot-2", &[]),
        live("v1", "ConfigMap", "two", "config", &[]),
    ];
    assert_levels(&[], &pruned, &["-two -robot-2 -robot-1 -config", "-one"]);
}

#[test]
fn custom_objects_are_deleted_before_definitions_and_those_before_all_others() {
    let pruned = [
        live("apps/v1", "Deployment", "shop", "webhook", &[]),
        live("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets", &[]),
        live("example.com/v1", "Widget", "shop", "one", &[]),
        live("other.com/v1", "Gadget", "shop", "two", &[]),
    ];
    assert_levels(&[], &pruned, &["-one -two", "-widgets", "-webhook"]);
}

#[test]
fn storage_comes_class_first() {
    let manifests = [
        plain("v1", "Pod", "web"),
        plain("v1", "PersistentVolumeClaim", "claim"),
        plain("v1", "PersistentVolume", "volume"),
        plain("storage.k8s.io/v1", "StorageClass", "fast"),
    ];
    assert_levels(&manifests, &[], &["fast", "volume claim", "web"]);
}

#[test]
fn versions_of_a_kind_count() {
    let budget = |version: &str, name: &str| plain(&format!("policy/{version}"), "PodDisruptionBudget", name);
    let manifests = [budget("v1", "new"), budget("v1beta1", "old"), deployment("web", &[])];
    assert_levels(&manifests, &[], &["old", "new web"]);
}

#[test]
fn placeholders_stand_for_parts_of_the_object() {
    let manifests = [
        job("first", &[(GROUP, "apps.big.co/{kind}-{namespace}-{name}")]),
        job("second", &[(RULE, "upsert after upserting apps.big.co/Job-{namespace}-first")]),
        manifest("apps/v1", "Deployment", "third", &[(RULE, "upsert after upserting {api-group}")]),
        job("fourth", &[(GROUP, "{api-group}"), (RULE, "upsert after upserting a-{api-group}")]),
        manifest("apps/v1", "StatefulSet", "fifth", &[(GROUP, "a-batch")]),
    ];
    assert_levels(&manifests, &[], &["fifth first third", "fourth second"]);
}

#[test]
fn placeholders_stand_for_the_kind_that_a_definition_defines() {
    let crd = "apiextensions.k8s.io/v1";
    let manifests = [
        manifest(
            crd,
            "CustomResourceDefinition",
            "widgets.example.com",
            &[(GROUP, "{crd-group}-{crd-kind}")],
        ),
        job("after", &[(RULE, "upsert after upserting example.com-Widget")]),
        job("also", &[(RULE, "upsert after upserting change-groups.kapp.k14s.io/crds-example.com-Widget")]),
        job("other", &[]),
    ];
    assert_levels(&manifests, &[], &["widgets.example.com other", "after also"]);
}

#[test]
fn own_rules_give_way_pair_by_pair() {
    // All others of pod-related still come before the Deployment.
    let manifests = [
        deployment("web", &[(GROUP, "web")]),
        config_map("marker", &[(RULE, "upsert after upserting web")]),
        config_map("settings", &[]),
        plain("v1", "Secret", "key"),
        plain("v1", "Service", "service"),
    ];
    assert_levels(&manifests, &[], &["key settings", "web", "marker", "service"]);
    // In the group of its own rule an object does not wait for itself.
    let manifests = [
        deployment("web", &[(GROUP, "change-groups.kapp.k14s.io/pod-related")]),
        config_map("settings", &[]),
    ];
    assert_levels(&manifests, &[], &["settings", "web"]);
}

#[test]
fn own_rules_may_be_left_out() {
    let rbac = "rbac.authorization.k8s.io/v1";
    let manifests = [
        plain(rbac, "Role", "role"),
        manifest(rbac, "RoleBinding", "early", &[(SKIPS, "")]),
        plain(rbac, "RoleBinding", "late"),
        plain("v1", "Namespace", "shop"),
        manifest("v1", "ConfigMap", "own", &[(SKIPS, "")]),
    ];
    assert_levels(&manifests, &[], &["shop early own", "role", "late"]);
}

#[test]
fn what_is_left_alone_orders_nothing() {
    let manifests = [
        job("a", &[(GROUP, "a"), ("kapp.k14s.io/noop", "")]),
        job("b", &[(RULE, "upsert after upserting a")]),
        job("c", &[(RULE, "upsert after upserting b"), ("kapp.k14s.io/noop", "")]),
    ];
    assert_levels(&manifests, &[], &["a b c"]);
}

#[test]
fn a_step_waits_for_what_somebody_else_writes() {
    let manifests = [
        manifest("v1", "Secret", "made-by-operator", &[("kapp.k14s.io/exists", "")]),
        config_map("settings", &[]),
        deployment("web", &[]),
        job("last", &[(RULE, "upsert after upserting web")]),
    ];
    let set = set(&manifests.concat());
    let order = ordered(&set, &[], Dialect::Kapp, &[]).unwrap();
    assert_eq!(shown(&set, &[], &order.steps), ["Sync 0: made-by-operator settings", "Sync 0: last web"]);
    let needs: Vec<Vec<&str>> =
        order.steps.iter().map(|step| step.needs.iter().map(|key| &*key.name).collect()).collect();
    assert_eq!(needs, [vec![], vec!["made-by-operator"]]);
}

#[test]
fn strategies_and_switches_are_options() {
    let with = |key: &str, value: &str| {
        let key = format!("kapp.k14s.io/{key}");
        set(&manifest("v1", "ConfigMap", "a", &[(&key, value)])).objects.remove(0).options
    };
    let modes =
        ["skip", "fallback-on-replace", "always-replace", ""].map(|value| with("update-strategy", value));
    assert_eq!(modes[0].apply_mode.as_ref().unwrap().value, ApplyMode::IfNotPresent);
    assert!(modes[1].force.as_ref().unwrap().value && modes[1].replace.is_none());
    assert!(modes[2].force.as_ref().unwrap().value && modes[2].replace.as_ref().unwrap().value);
    assert_eq!(modes[3], Default::default());
    let orphan = with("delete-strategy", "orphan");
    assert_eq!(orphan.prune.as_ref().unwrap().value, Removal::Never);
    assert_eq!(orphan.delete.unwrap().stated_by, "kapp.k14s.io/delete-strategy");
    assert!(with("disable-wait", "").ignore_healthcheck.unwrap().value);
    for key in ["noop", "exists"] {
        let left = with(key, "");
        assert_eq!(left.apply_mode.unwrap().value, ApplyMode::Ignore, "{key}");
        assert_eq!(left.prune.unwrap().value, Removal::Never, "{key}");
    }
    assert_eq!(with("create-strategy", "fallback-on-update-or-noop"), Default::default());
}

#[test]
fn rules_hold_in_another_dialect_where_it_is_named_only() {
    let manifests = [
        job("a", &[(RULE, "upsert after upserting b")]),
        job("b", &[(GROUP, "b")]),
        job("c", &[(RULE, "upsert before deleting old")]),
    ];
    let set = set(&manifests.concat());
    let old = live("batch/v1", "Job", "shop", "old", &[(GROUP, "old")]);
    let order = ordered(&set, std::slice::from_ref(&old), Dialect::Kpt, &[]).unwrap();
    let unread: Vec<_> = order.unread.iter().map(|it| (it.object, it.key, it.line)).collect();
    assert_eq!(unread, [(0, RULE, 6), (2, RULE, 20)]);
    let order = ordered(&set, std::slice::from_ref(&old), Dialect::Kpt, &[Dialect::Kapp]).unwrap();
    assert_eq!(shown(&set, &[old], &order.steps), ["Sync 0: b c", "Sync 0: a", "Sync 0: -old"]);
    assert_eq!(order.after, [vec![1], vec![], vec![]]);
    assert_eq!(order.unread, []);
}

#[test]
fn misspelt_annotations_are_errors_that_name_the_nearest() {
    let group = "write a name such as apps.example.com/migrations; {crd-group} and {crd-kind} are for CRDs, and \
                 {namespace} for kinds that have one";
    let cases = [
        (
            "change-rule.x",
            "upsrt after upserting a/b",
            "change-rule: 'upsrt' is not upsert or delete; did you mean upsert?",
        ),
        (
            "change-rule",
            "upsert aftre upserting a/b",
            "change-rule: 'aftre' is not before or after; did you mean after?",
        ),
        (
            "change-rule",
            "upsert after a/b",
            "change-rule: 'upsert after a/b' is not a rule such as 'upsert after upserting apps.example.com/migrations'; \
             write a rule such as 'upsert after upserting apps.example.com/migrations'",
        ),
        (
            "change-group",
            "a/{names}",
            "change-group: '{names}' is not one of {api-group}, {kind}, {name}, {namespace}, {crd-group}, {crd-kind}; \
             did you mean {name}?",
        ),
        (
            "change-group",
            "a/{crd-kind}",
            &format!(
                "change-group: 'a/{{crd-kind}}' is not the name of a group, since {{crd-kind}} is empty here; {group}"
            ),
        ),
        (
            "change-rule",
            "delete before deleting a/b/c",
            &format!(
                "change-rule: 'a/b/c' is not the name of a group, since it is not a qualified name; {group}"
            ),
        ),
        (
            "update-strategy",
            "skipp",
            "update-strategy: 'skipp' is not fallback-on-replace or always-replace or skip; did you mean skip?",
        ),
        ("delete-strategy", "orphen", "delete-strategy: 'orphen' is not orphan; did you mean orphan?"),
        ("noop", "false", "noop: 'false' is not true; write true"),
    ];
    for (key, value, expected) in cases {
        let told = refused(&config_map("a", &[(&format!("kapp.k14s.io/{key}"), value)]));
        let (_, told) = told.split_once("kapp.k14s.io/").unwrap();
        assert_eq!(told, expected);
    }
    let told = refused(&config_map("a", &[("kapp.k14s.io/change-grup.x", "a/b")]));
    let expected = "deploy/all.yaml:6: ConfigMap a: the annotation kapp.k14s.io/change-grup.x is unknown; \
                    did you mean kapp.k14s.io/change-group?";
    assert_eq!(told, expected);
    // kapp's other annotations state nothing about a sync.
    for key in ["versioned", "versioned-explicit-ref.a", "num-versions", "something-else"] {
        set(&config_map("a", &[(&format!("kapp.k14s.io/{key}"), "")]));
    }
}

#[test]
fn hooks_and_waves_hold_where_argo_cd_is_named() {
    const HOOK: &str = "argocd.argoproj.io/hook";
    let manifests = [
        job("early", &[(HOOK, "PreSync")]),
        job("late", &[(HOOK, "PreSync"), (RULE, "upsert after upserting web")]),
        job("failed", &[(HOOK, "SyncFail"), (GROUP, "never")]),
        deployment("web", &[(GROUP, "web"), ("argocd.argoproj.io/sync-wave", "2")]),
        job("free", &[(RULE, "upsert after upserting never")]),
    ];
    let set = set(&manifests.concat());
    let order = ordered(&set, &[], Dialect::Kapp, &[Dialect::Argo]).unwrap();
    assert_eq!(
        shown(&set, &[], &order.steps),
        ["PreSync 0: !early", "Sync 0: free", "Sync 2: web", "Sync 2: !late"]
    );
    assert!(matches!(&order.after_failure[..], [step] if step.phase == HookPhase::SyncFail));
    let order = ordered(&set, &[], Dialect::Kapp, &[]).unwrap();
    assert_eq!(shown(&set, &[], &order.steps), ["Sync 0: early failed web", "Sync 0: free late"]);
}
