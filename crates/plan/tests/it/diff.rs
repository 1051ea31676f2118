//! Differences by the answer of a server, and by a merge.

use serde_json::{Value, json};
use taffrail_merge::{FieldSet, ManagedEntry};
use taffrail_plan::diff::{
    ClassifiedBy, DiffBasis, DiffNote, DiffOptions, DiffOutcome, DifferenceClass, DryRun, ManagerOperation,
    NoDryRun, ToldConflict, UnknownReason,
};

use crate::server::{
    Case, OURS, apply, default_deployment, deployment, kubectl_apply, live_deployment, texts, update,
};

const IMAGE: &str = "spec.template.spec.containers[name=web].image";

fn changed(object: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut object = object.clone();
    change(&mut object);
    object
}

fn container(object: &mut Value) -> &mut Value {
    &mut object["spec"]["template"]["spec"]["containers"][0]
}

fn push(list: &mut Value, item: Value) {
    list.as_array_mut().unwrap().push(item);
}

fn simple(api_version: &str, kind: &str, rest: &Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "one"}});
    object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    object
}

/// Returns the differences by a merge of two objects that nobody is known to have applied.
fn compared(wanted: &Value, live: &Value) -> Vec<String> {
    Case::merged(wanted, live).texts()
}

#[test]
fn b26_same_object_is_unchanged_and_an_invalid_value_differs() {
    let wanted = deployment();
    let live = live_deployment(&wanted);
    let diff = Case::merged(&wanted, &live).diff();
    assert_eq!((diff.outcome, diff.differences.len()), (DiffOutcome::Unchanged, 0));
    assert_eq!(diff.basis, DiffBasis::Merged { why: NoDryRun::Offline });
    let diff = Case::server(&wanted, &live, default_deployment).diff();
    assert_eq!((diff.outcome, texts(&diff)), (DiffOutcome::Unchanged, vec![]));
    assert_eq!(diff.basis, DiffBasis::Server { forced: false });

    let invalid = changed(&wanted, |it| it["spec"]["replicas"] = json!("three"));
    let diff = Case::merged(&invalid, &live).diff();
    assert!(texts(&diff).contains(&"spec.replicas: 3 -> \"three\"".to_owned()), "{diff:?}");
    assert!(
        matches!(&*diff.notes, [DiffNote::NotOfItsType { message }, ..] if message.contains(".spec.replicas"))
    );
}

#[test]
fn b27_objects_that_only_one_side_has_have_defined_results() {
    let wanted = deployment();
    let live = live_deployment(&wanted);
    let none = Case { wanted: None, live: None, ..Case::merged(&wanted, &live) };
    assert_eq!(none.diff().outcome, DiffOutcome::Unchanged);
    let diff = Case { wanted: None, ..Case::merged(&wanted, &live) }.diff();
    assert_eq!((diff.outcome, diff.object.name.as_str()), (DiffOutcome::NotWanted, "web"));
    for dry_run in [
        DryRun::NotRun(NoDryRun::NoRight),
        DryRun::CreatedLater { needs: "Namespace shop".to_owned() },
        DryRun::Answered { object: live.clone(), conflicts: Vec::new() },
    ] {
        let diff = Case { live: None, dry_run, ..Case::merged(&wanted, &live) }.diff();
        assert_eq!(diff.outcome, DiffOutcome::Create);
        let paths: Vec<String> = diff.differences.iter().map(|it| it.path.to_string()).collect();
        assert_eq!(paths, ["apiVersion", "kind", "metadata", "spec"]);
        // Without defaults, but for those of keys.
        let mut spec = diff.differences[3].wanted.clone().unwrap();
        let port = &mut spec["template"]["spec"]["containers"][0]["ports"][0];
        port.as_object_mut().unwrap().remove("protocol");
        assert_eq!(spec, wanted["spec"]);
        assert_eq!(diff.differences[2].wanted.as_ref(), Some(&wanted["metadata"]));
    }
    let live = changed(&live, |it| it["metadata"]["annotations"] = json!(null));
    assert_eq!(compared(&wanted, &live), [""; 0]);
}

#[test]
fn b28_each_pair_is_compared_alone_and_an_answer_for_another_object_is_none() {
    let wanted = deployment();
    let live = live_deployment(&wanted);
    let more = changed(&wanted, |it| container(it)["image"] = json!("web:2"));
    assert_eq!(compared(&wanted, &live), [""; 0]);
    assert_eq!(compared(&more, &live), [format!("{IMAGE}: \"web:1\" -> \"web:2\"")]);
    let other = Case::server(&wanted, &live, |answer| answer["metadata"]["name"] = json!("api"));
    assert_eq!(other.diff().reasons, [UnknownReason::OtherAnswer]);
    for (field, value) in [("namespace", "test"), ("uid", "another")] {
        let other = Case::server(&wanted, &live, |answer| answer["metadata"][field] = json!(value));
        assert_eq!(other.diff().reasons, [UnknownReason::OtherAnswer], "{field}");
    }
    for no_object in [json!({}), json!(null), json!([]), json!({"kind": "Status", "apiVersion": "v1"})] {
        let other = Case::server(&wanted, &live, |answer| *answer = no_object);
        assert_eq!(other.diff().reasons, [UnknownReason::OtherAnswer]);
    }
    let pod = changed(&live, |it| it["kind"] = json!("ReplicaSet"));
    assert_eq!(Case::merged(&wanted, &pod).diff().reasons, [UnknownReason::OtherObject]);
}

#[test]
fn b29_three_way_ignores_defaulted_live_fields_and_finds_removed_ones_by_last_applied() {
    let before = changed(&deployment(), |it| it["metadata"]["labels"]["old"] = json!("yes"));
    let live = changed(&kubectl_apply(&before), default_deployment);
    assert_eq!(compared(&before, &live), [""; 0]);
    let removed = ["metadata.labels.old: \"yes\" -> -"];
    assert_eq!(compared(&deployment(), &live), removed);
    assert_eq!(Case::server(&deployment(), &live, |_| {}).texts(), removed);

    // What another manager took since stays.
    let taken = update(&live, "labeller", |it| it["metadata"]["labels"]["old"] = json!("no"));
    assert_eq!(compared(&deployment(), &taken), [""; 0]);

    let mut bare = live.clone();
    bare["metadata"]
        .as_object_mut()
        .unwrap()
        .retain(|name, _| name != "annotations" && name != "managedFields");
    let diff = Case::merged(&deployment(), &bare).diff();
    assert_eq!((diff.outcome, diff.notes), (DiffOutcome::Unchanged, vec![DiffNote::NoHistory]));
}

#[test]
fn b30_real_pairs_show_no_difference_and_labels_that_differ_do() {
    let metadata = json!({"name": "one", "namespace": "shop", "uid": "1", "resourceVersion": "2", "generation": 1,
        "creationTimestamp": "2026-03-01T12:00:00Z", "selfLink": "/api"});
    let account = simple("v1", "ServiceAccount", &json!({}));
    let live_account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata,
        "secrets": [{"name": "one-token"}]});
    let webhook = simple("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", &json!({}));
    let live_webhook = changed(&webhook, |it| {
        it["webhooks"] = json!([{"name": "a.b.c", "clientConfig": {"caBundle": "QQ=="}}])
    });
    let sealed = simple(
        "bitnami.com/v1alpha1",
        "SealedSecret",
        &json!({"spec": {"encryptedData": {"a": "b"}, "template": {"metadata": {"creationTimestamp": null}}}}),
    );
    let live_sealed = changed(&sealed, |it| {
        it["spec"]["template"]["metadata"] = json!({});
        it["status"] = json!({"observedGeneration": 1});
    });
    let role = simple("rbac.authorization.k8s.io/v1", "ClusterRole", &json!({"rules": []}));
    let live_role = changed(&role, |it| it["rules"] = json!(null));
    for (wanted, live) in
        [(account, live_account), (webhook, live_webhook), (sealed, live_sealed), (role, live_role)]
    {
        assert_eq!(compared(&wanted, &live), [""; 0]);
        assert_eq!(Case::server(&wanted, &live, |_| {}).texts(), [""; 0]);
    }
    let wanted = deployment();
    let with = |label: &str| changed(&wanted, |it| it["metadata"]["labels"][label] = json!("new"));
    let live = live_deployment(&with("tier"));
    assert_eq!(compared(&with("tier"), &live), [""; 0]);
    let differences = ["metadata.labels.app: \"web\" -> \"new\"", "metadata.labels.tier: \"new\" -> -"];
    assert_eq!(compared(&with("app"), &live), differences);
    assert_eq!(compared(&with("zone"), &live_deployment(&wanted)), ["metadata.labels.zone: - -> \"new\""]);
}

#[test]
fn zero_values_that_a_server_leaves_out_are_neither_a_difference_nor_rewritten() {
    let wanted = changed(&deployment(), |it| {
        push(&mut container(it)["env"], json!({"name": "EMPTY", "value": ""}));
        container(it)["args"] = json!([]);
        it["spec"]["replicas"] = json!(0);
        it["metadata"]["annotations"] = json!(null);
    });
    let stored = |object: &mut Value| {
        container(object)["env"][1].as_object_mut().unwrap().remove("value");
        container(object).as_object_mut().unwrap().remove("args");
        object["spec"].as_object_mut().unwrap().remove("replicas");
    };
    let live = changed(&live_deployment(&wanted), stored);
    let diff = Case::server(&wanted, &live, stored).diff();
    assert_eq!((diff.outcome, texts(&diff), diff.rewritten), (DiffOutcome::Unchanged, vec![], vec![]));
    assert_eq!(compared(&wanted, &live), ["spec.replicas: - -> 0"]);
    // A value that is not zero is missed.
    let more = changed(&wanted, |it| it["spec"]["replicas"] = json!(3));
    let diff = Case::server(&more, &live, stored).diff();
    assert_eq!(diff.rewritten.iter().map(ToString::to_string).collect::<Vec<_>>(), ["spec.replicas"]);
}

#[test]
fn b31_the_namespace_of_the_destination_and_of_cluster_scoped_objects_is_no_difference() {
    let mut wanted = deployment();
    let live = live_deployment(&wanted);
    assert_eq!(compared(&wanted, &live), [""; 0]);
    wanted["metadata"].as_object_mut().unwrap().remove("namespace");
    assert_eq!(compared(&wanted, &live), [""; 0]);
    wanted["metadata"]["namespace"] = json!("other");
    assert_eq!(compared(&wanted, &live), ["metadata.namespace: \"shop\" -> \"other\""]);
    let class = simple("storage.k8s.io/v1", "StorageClass", &json!({"provisioner": "a"}));
    let stray = changed(&class, |it| it["metadata"]["namespace"] = json!("shop"));
    assert_eq!(compared(&stray, &class), [""; 0]);
    let create = Case { live: None, ..Case::merged(&stray, &class) }.diff();
    assert_eq!(create.outcome, DiffOutcome::Create);
}

#[test]
fn b32_unknown_fields_show_as_differences_or_as_rewritten() {
    let wanted = changed(&deployment(), |it| it["spec"]["replicaz"] = json!(4));
    let live = live_deployment(&deployment());
    let diff = Case::merged(&wanted, &live).diff();
    assert!(texts(&diff).contains(&"spec.replicaz: - -> 4".to_owned()), "{diff:?}");
    assert!(matches!(&*diff.notes, [DiffNote::NotOfItsType { .. }, ..]), "{diff:?}");
    // A server that drops it says so, and nothing would change.
    let dry_run = DryRun::Answered { object: live.clone(), conflicts: Vec::new() };
    let diff = Case { dry_run, ..Case::merged(&wanted, &live) }.diff();
    assert_eq!(diff.outcome, DiffOutcome::Unchanged);
    assert!(diff.rewritten.iter().any(|path| path.to_string() == "spec.replicaz"), "{diff:?}");
    for broken in [json!(null), json!("text"), json!([]), json!({"kind": 5}), json!({"metadata": []})] {
        let diff = Case::merged(&broken, &live).diff();
        assert_ne!(diff.outcome, DiffOutcome::Unchanged, "{broken}");
    }
    let mut deep = json!({});
    (0..300).for_each(|_| deep = json!({"a": deep.take()}));
    assert_eq!(Case::merged(&deep, &live).diff().reasons, [UnknownReason::TooDeep]);
}

#[test]
fn b33_rules_of_aggregated_roles_count_unless_an_option_ignores_them() {
    let rules = |rules: Value| {
        simple(
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            &json!({"aggregationRule": {"clusterRoleSelectors": []}, "rules": rules}),
        )
    };
    let (wanted, live) = (rules(json!([])), rules(json!([{"verbs": ["get"]}])));
    let wanted_some = rules(json!([{"verbs": ["list"]}]));
    assert_eq!(compared(&wanted_some, &live).len(), 1);
    let options = DiffOptions { ignores_aggregated_rules: true, ..DiffOptions::default() };
    for wanted in [&wanted, &wanted_some] {
        let case = Case { options: options.clone(), ..Case::merged(wanted, &live) };
        assert_eq!(case.texts(), [""; 0]);
    }
    let plain = |verb: &str| {
        simple("rbac.authorization.k8s.io/v1", "ClusterRole", &json!({"rules": [{"verbs": [verb]}]}))
    };
    let (wanted, live) = (plain("get"), plain("list"));
    assert_eq!(Case { options, ..Case::merged(&wanted, &live) }.texts().len(), 1);
}

#[test]
fn b34_empty_annotations_and_labels_are_no_difference() {
    let with = |annotations: Value, labels: Value| {
        let mut object = simple("v1", "ConfigMap", &json!({}));
        object["metadata"]["annotations"] = annotations;
        object["metadata"]["labels"] = labels;
        object
    };
    let none = simple("v1", "ConfigMap", &json!({}));
    for empty in [json!({}), json!(null)] {
        assert_eq!(compared(&with(empty.clone(), empty.clone()), &none), [""; 0]);
        assert_eq!(compared(&none, &with(empty.clone(), empty)), [""; 0]);
    }
    let full = with(json!({"a": "b"}), json!({}));
    assert_eq!(compared(&full, &none), ["metadata.annotations: - -> {\"a\":\"b\"}"]);
    assert_eq!(compared(&with(json!("wrong"), json!([1])), &none).len(), 2);
}

#[test]
fn b36_null_rules_null_timestamps_and_unsorted_endpoints_are_equal() {
    let role = |rules: Value| simple("rbac.authorization.k8s.io/v1", "Role", &json!({"rules": rules}));
    assert_eq!(compared(&role(json!(null)), &role(json!([]))), [""; 0]);
    assert_eq!(compared(&role(json!([{"verbs": ["get"]}])), &role(json!([]))).len(), 1);
    let null = changed(&deployment(), |it| {
        it["metadata"]["creationTimestamp"] = json!(null);
        it["spec"]["template"]["metadata"]["creationTimestamp"] = json!(null);
    });
    assert_eq!(compared(&null, &live_deployment(&deployment())), [""; 0]);
    let endpoints = |subsets: Value| simple("v1", "Endpoints", &json!({"subsets": subsets}));
    let wanted = endpoints(json!([
        {"addresses": [{"ip": "10.0.0.2"}, {"ip": "10.0.0.1"}], "ports": [{"port": 80}]},
        {"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 53, "protocol": "UDP"}]},
    ]));
    let live = endpoints(json!([
        {"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 53, "protocol": "UDP"}]},
        {"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], "ports": [{"port": 80, "protocol": "TCP"}]},
    ]));
    assert_eq!(compared(&wanted, &live), [""; 0]);
    let fewer =
        endpoints(json!([{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 53, "protocol": "UDP"}]}]));
    assert_eq!(compared(&fewer, &live).len(), 1);
}

#[test]
fn b37_merges_keep_defaults_and_remove_what_is_no_longer_applied() {
    let before = changed(&deployment(), |it| {
        push(&mut it["spec"]["template"]["spec"]["containers"], json!({"name": "log", "image": "log:1"}));
        push(&mut container(it)["ports"], json!({"containerPort": 80, "protocol": "UDP"}));
    });
    let live = live_deployment(&before);
    let pod = "spec.template.spec.containers";
    let log = json!({"name": "log", "image": "log:1", "imagePullPolicy": "IfNotPresent"});
    let removed = [
        format!("{pod}[name=log]: {log} -> -"),
        format!(
            "{pod}[name=web].ports[containerPort=80,protocol=UDP]: {} -> -",
            // Our default sets the protocol of every port.
            json!({"containerPort": 80, "protocol": "UDP"})
        ),
    ];
    let live = changed(&live, |it| container(it)["ports"][1]["protocol"] = json!("UDP"));
    assert_eq!(compared(&deployment(), &live), removed);
    assert_eq!(Case::server(&deployment(), &live, |_| {}).texts(), removed);

    let service = |ports: Value| simple("v1", "Service", &json!({"spec": {"ports": ports}}));
    let wanted = service(json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]));
    let live = changed(&apply(None, &wanted, OURS), |it| {
        it["spec"]["clusterIP"] = json!("10.0.0.1");
        for port in it["spec"]["ports"].as_array_mut().unwrap() {
            port["protocol"] = json!("TCP");
            port["nodePort"] = json!(30_000);
        }
    });
    assert_eq!(compared(&wanted, &live), [""; 0]);
    let more =
        service(json!([{"name": "a", "port": 80}, {"name": "c", "port": 81}, {"name": "d", "port": 82}]));
    assert_eq!(
        compared(&more, &live),
        [
            "spec.ports[port=81,protocol=TCP].name: \"b\" -> \"c\"",
            "spec.ports[port=82,protocol=TCP]: - -> {\"name\":\"d\",\"port\":82,\"protocol\":\"TCP\"}",
        ]
    );
}

#[test]
fn another_version_is_told_apart_and_not_compared() {
    let hpa = |version: &str, max: u32| {
        simple(
            &format!("autoscaling/{version}"),
            "HorizontalPodAutoscaler",
            &json!({"spec": {"maxReplicas": max}}),
        )
    };
    let (wanted, live) = (hpa("v1", 3), apply(None, &hpa("v1", 3), OURS));
    assert_eq!(compared(&wanted, &live), [""; 0]);
    assert_eq!(compared(&hpa("v1", 4), &live), ["spec.maxReplicas: 3 -> 4"]);
    let other = hpa("v2", 3);
    let told = "the live object was read at autoscaling/v2, and the manifest has autoscaling/v1";
    assert_eq!(compared(&wanted, &other), [told]);

    // What we applied at another version may be removed, which only the server can tell.
    let elsewhere =
        changed(&live, |it| it["metadata"]["managedFields"][0]["apiVersion"] = json!("autoscaling/v2"));
    let diff = Case::merged(&wanted, &elsewhere).diff();
    let api_version = "autoscaling/v2".to_owned();
    assert_eq!(diff.reasons, [UnknownReason::AppliedAtOtherVersion { api_version: api_version.clone() }]);
    assert_eq!(diff.notes, [DiffNote::OwnedAtOtherVersion { manager: OURS.to_owned(), api_version }]);
    assert_eq!(Case::server(&wanted, &elsewhere, |_| {}).texts(), [""; 0]);
}

#[test]
fn defaults_within_lists_owned_as_a_whole_are_not_told_apart_offline() {
    let with = |tolerations: Value| {
        changed(&deployment(), |it| it["spec"]["template"]["spec"]["tolerations"] = tolerations)
    };
    let wanted = with(json!([{"key": "a"}]));
    let path = "spec.template.spec.tolerations";
    let defaulted = |live: &Value| {
        changed(live, |it| {
            it["spec"]["template"]["spec"]["tolerations"][0]["operator"] = json!("Equal");
        })
    };
    let live = defaulted(&live_deployment(&wanted));
    let diff = Case::merged(&wanted, &live).diff();
    assert_eq!(diff.outcome, DiffOutcome::Unknown);
    assert_eq!(
        texts(&diff),
        [format!("without the server, defaults cannot be told apart from removed fields in {path}")]
    );
    assert_eq!(Case::server(&wanted, &live, |it| *it = defaulted(it)).texts(), [""; 0]);
    // With what was last applied, they can be.
    let live = changed(&defaulted(&kubectl_apply(&wanted)), default_deployment);
    assert_eq!(compared(&wanted, &live), [""; 0]);
    let fewer = with(json!([{}]));
    assert_eq!(compared(&fewer, &live).len(), 1);
}

#[test]
fn b38_what_webhooks_and_defaults_add_counts_on_demand_alone() {
    let wanted = changed(&deployment(), |it| container(it)["image"] = json!("web:2"));
    let live = live_deployment(&deployment());
    let webhook = |answer: &mut Value| {
        default_deployment(answer);
        answer["metadata"]["resourceVersion"] = json!("99");
        answer["metadata"]["annotations"] = json!({"injected": "yes"});
        answer["spec"]["strategy"]["type"] = json!("Recreate");
        push(
            &mut answer["spec"]["template"]["spec"]["containers"],
            json!({"name": "proxy", "image": "proxy:1"}),
        );
        push(&mut container(answer)["env"], json!({"name": "PROXY", "value": "on"}));
    };
    let image = format!("{IMAGE}: \"web:1\" -> \"web:2\"");
    let case = Case::server(&wanted, &live, webhook);
    assert_eq!(case.texts(), [&*image]);
    let options = DiffOptions { includes_additions: true, ..DiffOptions::default() };
    let all = Case { options, ..case }.texts();
    assert_eq!(all.len(), 5, "{all:?}");
    assert!(
        all.contains(&image)
            && all.iter().any(|it| it.starts_with("spec.template.spec.containers[name=proxy]"))
    );

    // A webhook that removes what nobody here declares, and one that changes what the manifest has.
    let removed = Case::server(&wanted, &live, |answer| {
        answer["spec"].as_object_mut().unwrap().remove("strategy");
    });
    assert_eq!(removed.texts(), [image]);
    let changed_image =
        Case::server(&wanted, &live, |answer| container(answer)["image"] = json!("mirror/web:2"));
    let diff = changed_image.diff();
    assert_eq!(texts(&diff), [format!("{IMAGE}: \"web:1\" -> \"mirror/web:2\"")]);
    assert_eq!(diff.rewritten.iter().map(ToString::to_string).collect::<Vec<_>>(), [IMAGE]);
}

#[test]
fn removals_and_nested_items_are_seen_beside_a_webhook() {
    let before = changed(&deployment(), |it| {
        it["metadata"]["labels"]["old"] = json!("yes");
        push(&mut container(it)["env"], json!({"name": "OLD", "value": "1"}));
    });
    let wanted = changed(&deployment(), |it| {
        push(&mut container(it)["ports"], json!({"containerPort": 53, "protocol": "UDP"}));
        push(&mut container(it)["ports"], json!({"containerPort": 54}));
    });
    // Somebody added a container by an apply of their own: it is nobody's business here.
    let mut live = live_deployment(&before);
    let extra = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {"spec": {"containers": [{"name": "debug", "image": "sh"}]}}}});
    live = apply(Some(&live), &extra, "ann");
    let case = Case::server(&wanted, &live, |answer| {
        default_deployment(answer);
        // The default sets TCP where no protocol is.
        container(answer)["ports"][1]["protocol"] = json!("UDP");
        answer["metadata"]["labels"]["webhook"] = json!("was here");
    });
    let web = "spec.template.spec.containers[name=web]";
    assert_eq!(
        case.texts(),
        [
            "metadata.labels.old: \"yes\" -> -".to_owned(),
            format!("{web}.env[name=OLD]: {} -> -", json!({"name": "OLD", "value": "1"})),
            // Keys are kept though the server has set them.
            format!(
                "{web}.ports[containerPort=53,protocol=UDP]: - -> {}",
                json!({"containerPort": 53, "protocol": "UDP"})
            ),
            format!(
                "{web}.ports[containerPort=54,protocol=TCP]: - -> {}",
                json!({"containerPort": 54, "protocol": "TCP"})
            ),
        ]
    );
    let data = |data: Value| simple("v1", "ConfigMap", &json!({"data": data}));
    let (wanted, before) = (data(json!({"a": "1"})), data(json!({"a": "1", "b": "2"})));
    let live = apply(None, &before, OURS);
    assert_eq!(Case::server(&wanted, &live, |_| {}).texts(), ["data.b: \"2\" -> -"]);
}

#[test]
fn b39_declared_fields_among_unknown_ones_stay_and_foreign_siblings_go() {
    let chart = |values: Value| {
        simple("example.com/v1", "Chart", &json!({"spec": {"version": "1", "values": values}}))
    };
    let live = apply(None, &chart(json!({})), OURS);
    let wanted = chart(json!({"web": {"image": {"tag": "2"}}}));
    let case = Case::server(&wanted, &live, |answer| {
        answer["spec"]["values"]["web"]["image"]["pullPolicy"] = json!("Always");
        answer["spec"]["values"]["db"] = json!({"enabled": true});
    });
    let added = case.texts();
    assert_eq!(added, ["spec.values.web: - -> {\"image\":{\"tag\":\"2\"}}"]);
}

#[test]
fn b41_quantities_are_canonical_and_templates_get_no_timestamps() {
    let with = |cpu: Value| {
        changed(&deployment(), |it| {
            container(it)["resources"] = json!({"requests": {"cpu": cpu, "memory": "1024Mi"}})
        })
    };
    let live = live_deployment(&changed(&with(json!("500m")), |it| {
        container(it)["resources"]["requests"]["memory"] = json!("1Gi");
    }));
    assert_eq!(compared(&with(json!("0.5")), &live), [""; 0]);
    assert_eq!(compared(&with(json!(0.5)), &live), [""; 0]);
    assert_eq!(compared(&with(json!("501m")), &live).len(), 1);
    let replicas = changed(&live, |it| it["spec"]["replicas"] = json!(3.0));
    assert_eq!(compared(&with(json!("0.5")), &replicas), [""; 0]);
    // An environment variable is not a quantity.
    let mode = |value: &str| changed(&deployment(), |it| container(it)["env"][0]["value"] = json!(value));
    assert_eq!(compared(&mode("0.1"), &live_deployment(&mode("100m"))).len(), 1);

    let set = simple(
        "apps/v1",
        "StatefulSet",
        &json!({"spec": {"volumeClaimTemplates": [
        {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1024Mi"}}}}]}}),
    );
    let live = changed(&apply(None, &set, OURS), |it| {
        let template = &mut it["spec"]["volumeClaimTemplates"][0];
        template["apiVersion"] = json!("v1");
        template["kind"] = json!("PersistentVolumeClaim");
        template["metadata"]["creationTimestamp"] = json!(null);
        template["spec"]["volumeMode"] = json!("Filesystem");
        template["spec"]["resources"]["requests"]["storage"] = json!("1Gi");
        template["status"] = json!({"phase": "Pending"});
    });
    assert_eq!(compared(&set, &live), [""; 0]);
    assert_eq!(Case::server(&set, &live, |_| {}).texts(), [""; 0]);
    let definition = |default: Value| {
        simple(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            &json!({"spec": {"schema": {"default": default, "limits": {"cpu": "0.1"}}}}),
        )
    };
    assert_eq!(compared(&definition(json!([])), &definition(json!(null))).len(), 1);
}

#[test]
fn classes_tell_drift_from_conflicts_by_what_was_applied_last() {
    let wanted = deployment();
    let mut live = live_deployment(&wanted);
    let applied = ManagedEntry::read_all(&live).unwrap().remove(0).fields;
    live = update(&live, "hpa", |it| it["spec"]["replicas"] = json!(5));
    live = update(&live, "kubectl-edit", |it| {
        it["metadata"]["labels"].as_object_mut().unwrap().remove("app");
        it["metadata"]["labels"]["owner"] = json!("ann");
    });
    let wanted = changed(&wanted, |it| {
        it["metadata"]["labels"]["owner"] = json!("bob");
        container(it)["image"] = json!("web:2");
    });
    let classes = |case: &Case<'_>| {
        let diff = case.diff();
        let classes: Vec<_> = diff.differences.iter().map(|it| (it.path.to_string(), it.class)).collect();
        (classes, diff)
    };
    use DifferenceClass::{Change, Conflict, Drift};
    for case in [Case::merged(&wanted, &live), Case::server(&wanted, &live, |_| {})] {
        let with_applied = Case { applied: Some(&applied), ..case.clone() };
        let (known, diff) = classes(&with_applied);
        let [app, owner, replicas, image] =
            ["metadata.labels.app", "metadata.labels.owner", "spec.replicas", IMAGE].map(str::to_owned);
        assert_eq!(
            known,
            [
                (app.clone(), Drift),
                (owner.clone(), Conflict),
                (replicas.clone(), Drift),
                (image.clone(), Change)
            ]
        );
        assert_eq!(diff.classified_by, ClassifiedBy::LastApply);
        let owners = &diff.differences[2].owners;
        assert_eq!((&*owners[0].manager, owners[0].operation), ("hpa", ManagerOperation::Update));
        assert_eq!(owners[0].since.unwrap().to_string(), "2026-03-01T12:00:00Z");
        let (unknown, diff) = classes(&case);
        assert_eq!(unknown, [(app, Change), (owner, Conflict), (replicas, Conflict), (image, Change)]);
        assert_eq!(diff.classified_by, ClassifiedBy::ManagedFields);
    }
    // What two apply together is in conflict once one of them wants another value.
    let shared = apply(Some(&live_deployment(&deployment())), &deployment(), "flux");
    let (both, _) = classes(&Case { applied: Some(&applied), ..Case::merged(&wanted, &shared) });
    assert!(both.contains(&(IMAGE.to_owned(), Conflict)), "{both:?}");
    // A conflict that the server told counts though managedFields do not show it.
    let conflicts = vec![ToldConflict {
        path: ".spec.template.spec.containers[name=\"web\"].image".to_owned(),
        manager: None,
    }];
    let dry_run = DryRun::Answered { object: apply(Some(&live), &wanted, OURS), conflicts };
    let (told, diff) =
        classes(&Case { dry_run, applied: Some(&FieldSet::default()), ..Case::merged(&wanted, &live) });
    assert!(told.contains(&(IMAGE.to_owned(), Conflict)), "{told:?}");
    assert_eq!(diff.basis, DiffBasis::Server { forced: true });
}

#[test]
fn an_empty_map_of_another_manager_is_no_conflict_with_fields_in_it() {
    let chart = |values: Value| simple("example.com/v1", "Chart", &json!({"spec": {"values": values}}));
    let live = apply(None, &chart(json!({"security": {}})), "ann");
    let diff = Case::merged(&chart(json!({"security": {"user": 1}})), &live).diff();
    assert_eq!(diff.differences[0].class, DifferenceClass::Change, "{diff:?}");
}

#[test]
fn results_are_json_with_paths_as_text() {
    let live = update(&live_deployment(&deployment()), "hpa", |it| it["spec"]["replicas"] = json!(5));
    let value = serde_json::to_value(Case::merged(&deployment(), &live).diff()).unwrap();
    assert_eq!(
        value,
        json!({
            "object": {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web"},
            "basis": {"diff": "merged", "why": "offline"}, "outcome": "change",
            "differences": [{"path": "spec.replicas", "wanted": 3, "live": 5, "class": "conflict",
                "owners": [{"manager": "hpa", "operation": "Update", "since": "2026-03-01T12:00:00Z"}]}],
            "classifiedBy": "managedFields",
        })
    );
    let refused = DryRun::Refused { message: "spec.replicas: must be positive".to_owned() };
    let (wanted, live) = (deployment(), live);
    let value =
        serde_json::to_value(Case { dry_run: refused, ..Case::merged(&wanted, &live) }.diff()).unwrap();
    assert_eq!(value["basis"], json!({"diff": "refused", "message": "spec.replicas: must be positive"}));
    assert_eq!((&value["outcome"], &value["reasons"]), (&json!("unknown"), &json!([{"reason": "refused"}])));
}

#[test]
fn what_the_server_removes_differs_where_our_own_fields_are_not_known() {
    let hpa = |spec: Value| simple("autoscaling/v1", "HorizontalPodAutoscaler", &json!({"spec": spec}));
    let before = hpa(json!({"minReplicas": 2, "maxReplicas": 3}));
    let wanted = hpa(json!({"maxReplicas": 3}));
    let live = apply(None, &before, OURS);
    let elsewhere =
        changed(&live, |it| it["metadata"]["managedFields"][0]["apiVersion"] = json!("autoscaling/v2"));
    // So many managers are not read.
    let entry = live["metadata"]["managedFields"][0].clone();
    let many = changed(&live, |it| {
        let entries = (0..1_001).map(|at| changed(&entry, |it| it["manager"] = json!(format!("m-{at}"))));
        it["metadata"]["managedFields"] = entries.collect();
    });
    let removes = |answer: &mut Value| {
        answer["spec"].as_object_mut().unwrap().remove("minReplicas");
    };
    let known = Case::server(&wanted, &live, removes);
    for live in [&live, &elsewhere, &many] {
        let diff =
            Case { live: Some(live), dry_run: known.dry_run.clone(), ..Case::merged(&wanted, live) }.diff();
        let paths: Vec<String> = diff.differences.iter().map(|it| it.path.to_string()).collect();
        assert_eq!((diff.outcome, paths), (DiffOutcome::Change, vec!["spec.minReplicas".to_owned()]));
    }
}

#[test]
fn another_order_of_items_with_keys_differs() {
    let with = |env: Value| changed(&deployment(), |it| container(it)["env"] = env);
    let (host, url) =
        (json!({"name": "HOST", "value": "db"}), json!({"name": "URL", "value": "http://$(HOST)"}));
    let (live, wanted) = (with(json!([url, host])), with(json!([host, url])));
    let live = live_deployment(&live);
    let path = "spec.template.spec.containers[name=web].env";
    for case in [Case::server(&wanted, &live, default_deployment), Case::merged(&wanted, &live)] {
        let diff = case.diff();
        let paths: Vec<String> = diff.differences.iter().map(|it| it.path.to_string()).collect();
        assert_eq!((diff.outcome, paths), (DiffOutcome::Change, vec![path.to_owned()]));
    }
    // Items of others between them change nothing.
    let more = changed(&live, |it| {
        let env = container(it)["env"].as_array_mut().unwrap();
        env.insert(1, json!({"name": "OTHER", "value": "1"}));
    });
    let same = with(json!([url, host]));
    assert_eq!(Case::merged(&same, &more).diff().outcome, DiffOutcome::Unchanged);
}

#[test]
fn object_whose_paths_are_too_long_in_sum_is_unknown() {
    let long = "k".repeat(100_000);
    let values: serde_json::Map<String, Value> =
        (0..1_000).map(|at| (format!("v{at}"), json!("x"))).collect();
    let mut spec = serde_json::Map::new();
    spec.insert(long, Value::Object(values));
    let chart = simple("example.com/v1", "Chart", &json!({"spec": {"values": spec}}));
    let diff = Case::merged(&chart, &chart).diff();
    assert_eq!((diff.outcome, diff.reasons), (DiffOutcome::Unknown, vec![UnknownReason::TooDeep]));
}
