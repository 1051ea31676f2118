//! Scenarios about what counts as a difference: webhooks, rules that ignore fields, and values that mean the same.

use serde_json::{Value, json};

use super::{
    DiffStage, OURS, assert_ruled, assert_told, changed, config_map, container, deployment, manifests,
    object, push,
};

/// Plays fields that the kind does not have.
pub fn unknown_fields_are_refused_by_name(stage: &impl DiffStage) {
    let wanted = deployment("b32");
    stage.apply(OURS, &wanted);
    let unknown = changed(&wanted, |it| it["spec"]["replicaz"] = json!(4));
    let map = changed(&config_map("b32", json!({})), |it| it["invalidKey"] = json!("asdf"));
    for (wanted, field) in [(unknown, "replicaz"), (map, "invalidKey")] {
        let answer = stage.diff(&manifests(&[&wanted]), None, &[]);
        assert!(answer.stdout.contains(" is refused") && answer.stdout.contains(field), "{}", answer.stdout);
        assert_eq!(answer.code, 3, "{}", answer.stderr);
    }
}

/// Plays roles whose rules a controller writes.
pub fn rules_of_aggregated_roles_are_ignored_on_demand(stage: &impl DiffStage) {
    const RBAC: &str = "rbac.authorization.k8s.io/v1";
    let rule = |verb: &str| json!({"apiGroups": [""], "resources": ["pods"], "verbs": [verb]});
    let role = |name: &str, rest: Value| object(RBAC, "ClusterRole", name, rest);
    let selector = json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"never": "b33"}}]}});
    let aggregated = |verb: &str| {
        let mut role = role("b33", selector.clone());
        role["rules"] = json!([rule(verb)]);
        role
    };
    stage.apply(OURS, &role("b33", selector.clone()));
    stage.update("clusterrole-aggregation-controller", &role("b33", json!({})), &|role| {
        role["rules"] = json!([rule("get")])
    });
    let wanted = aggregated("list");
    let answer = stage.diff(&manifests(&[&wanted]), None, &["-o", "json"]);
    assert_eq!(
        (answer.code, answer.list()["items"][0]["fields"][0]["path"].as_str()),
        (1, Some("rules")),
        "{}",
        answer.stdout
    );
    let ignoring = "ignoreAggregatedRoles: true\n";
    assert_ruled(stage, &[&wanted], Some(ignoring), &[], &["ClusterRole b33: unchanged by server"]);
    // The rules of other roles count all the same.
    let plain = |verb: &str| role("b33-plain", json!({"rules": [rule(verb)]}));
    stage.apply(OURS, &plain("get"));
    let answer = stage.diff(&manifests(&[&plain("list")]), Some(ignoring), &["-o", "json"]);
    assert_eq!(answer.code, 1, "{}", answer.stdout);
}

/// Plays annotations that are empty, null, full and of a wrong type.
pub fn empty_annotations_are_no_difference(stage: &impl DiffStage) {
    let with = |annotations: Value| {
        changed(&config_map("b34", json!({"a": "1"})), |it| it["metadata"]["annotations"] = annotations)
    };
    stage.apply(OURS, &config_map("b34", json!({"a": "1"})));
    for empty in [json!({}), json!(null)] {
        let wanted = changed(&with(empty.clone()), |it| it["metadata"]["labels"] = empty);
        assert_told(stage, &[&wanted], &["ConfigMap b34: unchanged by server"]);
    }
    let full = with(json!({"a": "b"}));
    assert_told(
        stage,
        &[&full],
        &["ConfigMap b34: change by server", "  metadata.annotations: - -> {\"a\":\"b\"}"],
    );
    stage.apply(OURS, &full);
    assert_told(stage, &[&full], &["ConfigMap b34: unchanged by server"]);
    let wrong = stage.diff(&manifests(&[&with(json!("wrong value"))]), None, &[]);
    assert!(wrong.stderr.contains("metadata.annotations"), "{}", wrong.stderr);
    assert_eq!((wrong.code, &*wrong.stdout), (3, ""));
}

/// Plays empty and null rules, null timestamps, and endpoints in another order.
pub fn empty_and_null_are_equal(stage: &impl DiffStage) {
    let role = |rules: Value| object("rbac.authorization.k8s.io/v1", "Role", "b36", json!({"rules": rules}));
    stage.apply(OURS, &role(json!([])));
    for rules in [json!(null), json!([])] {
        assert_told(stage, &[&role(rules)], &["Role b36: unchanged by server"]);
    }
    let wanted = deployment("b36");
    stage.apply(OURS, &wanted);
    let null = changed(&wanted, |it| {
        it["metadata"]["creationTimestamp"] = json!(null);
        it["spec"]["template"]["metadata"]["creationTimestamp"] = json!(null);
    });
    assert_told(stage, &[&null], &["Deployment b36: unchanged by server"]);
    let endpoints = |addresses: Value| {
        let subsets = json!([{"addresses": addresses, "ports": [{"port": 80, "name": "http"}, {"port": 53, "name": "dns", "protocol": "UDP"}]}]);
        object("v1", "Endpoints", "b36", json!({"subsets": subsets}))
    };
    stage.apply(OURS, &endpoints(json!([{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}])));
    let unsorted = endpoints(json!([{"ip": "10.0.0.2"}, {"ip": "10.0.0.1"}]));
    assert_told(stage, &[&unsorted], &["Endpoints b36: unchanged by server"]);
    let more = endpoints(json!([{"ip": "10.0.0.2"}, {"ip": "10.0.0.3"}]));
    assert_eq!(stage.diff(&manifests(&[&more]), None, &[]).code, 1);
}

/// Plays removals and additions while a webhook and another manager change the object, too.
pub fn additions_of_webhooks_count_on_demand(stage: &impl DiffStage) {
    // While it is paused, no controller writes it.
    let paused = changed(&deployment("b38"), |it| {
        it["spec"]["paused"] = json!(true);
        it["metadata"]["annotations"] = json!({"team": "web"});
    });
    let before = changed(&paused, |it| {
        it["metadata"]["labels"]["old"] = json!("yes");
        push(&mut container(it)["env"], json!({"name": "OLD", "value": "1"}));
    });
    stage.apply(OURS, &before);
    // Somebody adds a container by an apply of their own, which is nobody's business here.
    let extra = object(
        "apps/v1",
        "Deployment",
        "b38",
        json!({"spec": {
        "selector": {"matchLabels": {"app": "b38"}},
        "template": {"spec": {"containers": [{"name": "debug", "image": "sh:1"}]}}}}),
    );
    stage.apply("ann", &extra);
    let wanted = changed(&paused, |it| {
        push(&mut container(it)["ports"], json!({"containerPort": 53, "protocol": "UDP"}));
        push(&mut container(it)["ports"], json!({"containerPort": 53, "protocol": "TCP"}));
    });
    stage.mutate(
        &wanted,
        &[("/metadata/annotations/injected", json!("yes")), ("/spec/revisionHistoryLimit", json!(3))],
    );
    let web = "spec.template.spec.containers[name=web]";
    let env = format!("  {web}.env[name=OLD]: {} -> -", json!({"name": "OLD", "value": "1"}));
    let port = |protocol: &str| {
        let port = json!({"containerPort": 53, "protocol": protocol});
        format!("  {web}.ports[containerPort=53,protocol={protocol}]: - -> {port}")
    };
    let (tcp, udp) = (port("TCP"), port("UDP"));
    let expected =
        ["Deployment b38: change by server", "  metadata.labels.old: \"yes\" -> -", &*env, &*tcp, &*udp];
    assert_told(stage, &[&wanted], &expected);
    let with_additions = [
        expected[0],
        "  metadata.annotations.injected: - -> \"yes\"",
        expected[1],
        "  spec.revisionHistoryLimit: 10 -> 3",
        &*env,
        &*tcp,
        &*udp,
    ];
    assert_ruled(stage, &[&wanted], None, &["--all-fields"], &with_additions);
    // Rules ignore what the server answered, too.
    let rules = "ignoreDifferences:\n- {group: apps, kind: Deployment, jsonPointers: [/spec/revisionHistoryLimit, /metadata/labels/old]}\n";
    let ignored = [
        expected[0],
        "  metadata.annotations.injected: - -> \"yes\"",
        &*env,
        &*tcp,
        &*udp,
        "  ignored: metadata.labels.old",
        "  ignored: spec.revisionHistoryLimit",
    ];
    assert_ruled(stage, &[&wanted], Some(rules), &["--all-fields"], &ignored);

    let data = |data: Value| config_map("b38", data);
    stage.apply(OURS, &data(json!({"a": "1", "b": "2"})));
    assert_told(
        stage,
        &[&data(json!({"a": "1"}))],
        &["ConfigMap b38: change by server", "  data.b: \"2\" -> -"],
    );
    // The copy that kubectl leaves is on no side, and neither is the version that every write changes.
    let secret = object("v1", "Secret", "b38-copy", json!({"type": "Opaque", "data": {"a": "MQ=="}}));
    for object in [config_map("b38-copy", json!({"a": "1"})), secret] {
        stage.apply_on_client_side(&object);
        let unchanged = format!("{} b38-copy: unchanged by server", super::text(&object["kind"]));
        for more in [&[][..], &["--all-fields"]] {
            assert_ruled(stage, &[&object], None, more, &[&unchanged]);
        }
    }
}

/// Plays an object with fields that its schema does not know, which a webhook changes, too.
pub fn declared_fields_among_unknown_ones_are_kept(stage: &impl DiffStage) {
    let anything = crate::objects::anything();
    let spec = json!({"type": "object", "properties": {"version": {"type": "string"}, "values": anything}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    stage.define(&crate::objects::definition("behaviours.example.com", "v1", "Chart", schema));
    let chart = |values: Value| {
        object(
            "behaviours.example.com/v1",
            "Chart",
            "b39",
            json!({"spec": {"version": "1", "values": values}}),
        )
    };
    stage.apply(OURS, &chart(json!({"web": {"image": {"tag": "1"}}})));
    stage.mutate(
        &chart(json!({})),
        &[
            ("/spec/values/web/image/pullPolicy", json!("Always")),
            ("/spec/values/db", json!({"enabled": true})),
        ],
    );
    let wanted = chart(json!({"web": {"image": {"tag": "2"}, "port": 80}}));
    let declared = [
        "Chart b39: change by server",
        "  spec.values.web.image.tag: \"1\" -> \"2\"",
        "  spec.values.web.port: - -> 80",
    ];
    assert_told(stage, &[&wanted], &declared);
    let all = [
        declared[0],
        "  spec.values.db: - -> {\"enabled\":true}",
        "  spec.values.web.image.pullPolicy: - -> \"Always\"",
        declared[1],
        declared[2],
    ];
    assert_ruled(stage, &[&wanted], None, &["--all-fields"], &all);
}

/// Plays rules that ignore fields.
pub fn ignored_fields_are_no_difference(stage: &impl DiffStage) {
    let rules = "\
ignoreDifferences:
- {group: '', kind: Service, name: b42, jsonPointers: [/spec/sessionAffinity, /metadata/annotations/a~1b]}
- {group: '*', kind: '*', namespace: other, jsonPointers: [/spec/selector]}
ignore:
- {paths: [/spec/sessionAffinity], target: {kind: Service, name: b42-flux}}
";
    let service = |name: &str, affinity: &str| {
        object(
            "v1",
            "Service",
            name,
            json!({"metadata": {"annotations": {"a/b": affinity}}, "spec": {
            "selector": {"app": name}, "sessionAffinity": affinity, "ports": [{"port": 80}]}}),
        )
    };
    // Without and with the copy that kubectl leaves.
    for is_on_client_side in [false, true] {
        let before = service("b42", "None");
        if is_on_client_side {
            stage.apply_on_client_side(&before)
        } else {
            stage.apply(OURS, &before)
        }
        let wanted = service("b42", "ClientIP");
        let answer = stage.diff(&manifests(&[&wanted]), None, &[]);
        assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
        let ignored = [
            "Service b42: unchanged by server",
            "  ignored: metadata.annotations[\"a/b\"]",
            "  ignored: spec.sessionAffinity",
        ];
        assert_ruled(stage, &[&wanted], Some(rules), &[], &ignored);
    }
    stage.apply(OURS, &service("b42-flux", "None"));
    assert_ruled(
        stage,
        &[&service("b42-flux", "ClientIP")],
        Some(rules),
        &[],
        &[
            "Service b42-flux: change by server",
            "  metadata.annotations[\"a/b\"]: \"None\" -> \"ClientIP\"",
            "  ignored: spec.sessionAffinity",
        ],
    );
}
