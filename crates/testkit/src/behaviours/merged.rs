//! Scenarios about fields that differ between the manifest and the live object, and about removed ones.

use serde_json::json;

use super::{
    DiffStage, NAMESPACE, OURS, assert_ruled, assert_told, changed, config_map, container, deployment,
    manifests, object, push,
};

/// Plays equal objects, and one with a value of a wrong type.
pub fn equal_objects_are_unchanged(stage: &impl DiffStage) {
    let wanted = deployment("b26");
    stage.apply(OURS, &wanted);
    assert_told(stage, &[&wanted], &["Deployment b26: unchanged by server"]);
    let invalid = changed(&wanted, |it| it["spec"]["revisionHistoryLimit"] = json!("three"));
    let answer = stage.diff(&manifests(&[&invalid]), None, &[]);
    assert!(answer.stdout.starts_with("! Deployment behaviours/b26 is refused"), "{}", answer.stdout);
    assert!(answer.stdout.contains("revisionHistoryLimit"), "{}", answer.stdout);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
}

/// Plays objects that only one side has, and maps that are null.
pub fn objects_of_one_side_have_defined_results(stage: &impl DiffStage) {
    let live = config_map("b27-live", json!({"a": "1"}));
    stage.apply(OURS, &live);
    // An object that only the cluster has is none of those that are compared.
    assert_told(
        stage,
        &[&config_map("b27-new", json!({"a": "1"}))],
        &["ConfigMap b27-new: create by server"],
    );
    let null = changed(&live, |it| it["metadata"]["annotations"] = json!(null));
    assert_told(stage, &[&null], &["ConfigMap b27-live: unchanged by server"]);
    let bare = config_map("b27-bare", json!(null));
    stage.apply(OURS, &bare);
    assert_told(stage, &[&bare], &["ConfigMap b27-bare: unchanged by server"]);
    let full = config_map("b27-bare", json!({"a": "1"}));
    assert_told(stage, &[&full], &["ConfigMap b27-bare: change by server", "  data: - -> {\"a\":\"1\"}"]);
}

/// Plays several objects, of which one is declared twice in the end.
pub fn each_object_is_compared_alone(stage: &impl DiffStage) {
    let named = |name: &str, value: &str| config_map(name, json!({"a": value}));
    let (same, before) = (named("b28-same", "1"), named("b28-changed", "1"));
    stage.apply(OURS, &same);
    stage.apply(OURS, &before);
    let (after, new) = (named("b28-changed", "2"), named("b28-new", "1"));
    assert_told(
        stage,
        &[&new, &after, &same],
        &[
            "ConfigMap b28-new: create by server",
            "ConfigMap b28-changed: change by server",
            "  data.a: \"1\" -> \"2\"",
            "ConfigMap b28-same: unchanged by server",
        ],
    );
    // Pairs are found by names, so the one way to get them wrong is to declare an object twice.
    let twice = stage.diff(&manifests(&[&same, &after, &same]), None, &[]);
    assert!(twice.stderr.contains("declared a second time"), "{}", twice.stderr);
    assert_eq!((twice.code, &*twice.stdout), (3, ""));
}

/// Plays the removal of a field that was applied before, and of one that was not.
pub fn removed_fields_are_found_by_what_was_applied(stage: &impl DiffStage) {
    let wanted = deployment("b29");
    let before = changed(&wanted, |it| it["metadata"]["labels"]["old"] = json!("yes"));
    stage.apply_on_client_side(&before);
    assert_told(stage, &[&before], &["Deployment b29: unchanged by server"]);
    let removed = [
        "Deployment b29: change by server",
        "  metadata.labels.old: \"yes\" -> - (change: kubectl-client-side-apply)",
    ];
    assert_told(stage, &[&wanted], &removed);
    // Of an object that somebody else made, nothing tells that the label was ever declared here.
    let before = changed(&deployment("b29-other"), |it| it["metadata"]["labels"]["old"] = json!("yes"));
    stage.apply("ann", &before);
    assert_told(stage, &[&deployment("b29-other")], &["Deployment b29-other: unchanged by server"]);
}

/// Plays objects of many kinds, as charts have them, and changes of their labels.
pub fn live_objects_of_many_kinds_are_unchanged(stage: &impl DiffStage) {
    let labels = json!({"app": "b30"});
    let objects = [
        object("v1", "ServiceAccount", "b30", json!({})),
        object(
            "apps/v1",
            "StatefulSet",
            "b30",
            json!({"spec": {
                "replicas": 0, "serviceName": "b30", "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "initContainers": [{"name": "sysctl", "image": "busybox:1", "command": ["sysctl", "-w", "a=1"],
                        "securityContext": {"privileged": true}}],
                    "containers": [{"name": "search", "image": "search:1", "ports": [{"name": "http", "containerPort": 9200}],
                        "resources": {"limits": {"cpu": "1", "memory": "1024Mi"}, "requests": {"cpu": 0.1, "memory": "512Mi"}},
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
                    "terminationGracePeriodSeconds": 120}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "4096Mi"}}}}],
            }}),
        ),
        object(
            "apps/v1",
            "Deployment",
            "b30",
            json!({"metadata": {"labels": labels}, "spec": {
                "replicas": 0, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "containers": [{"name": "blog", "image": "blog:1",
                        "env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "blog", "key": "password"}}},
                            {"name": "EMPTY", "value": ""}],
                        "livenessProbe": {"httpGet": {"path": "/login", "port": "http"}, "initialDelaySeconds": 120},
                        "ports": [{"name": "http", "containerPort": 80}, {"name": "https", "containerPort": 443}]}],
                    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "blog"}}]}},
            }}),
        ),
        object(
            "admissionregistration.k8s.io/v1",
            "MutatingWebhookConfiguration",
            "b30",
            json!({"webhooks": [{"name": "b30.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "failurePolicy": "Ignore", "clientConfig": {"service": {"name": "b30", "namespace": NAMESPACE}},
                "objectSelector": {"matchLabels": {"never": "b30"}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]}]}),
        ),
        object("rbac.authorization.k8s.io/v1", "ClusterRole", "b30", json!({"rules": []})),
        object(
            "v1",
            "Endpoints",
            "b30",
            json!({"subsets": [{"addresses": [{"ip": "10.0.0.2"}, {"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]}),
        ),
    ];
    let kinds: Vec<String> =
        objects.iter().map(|it| format!("{} b30: unchanged by server", super::text(&it["kind"]))).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let wanted: Vec<_> = objects.iter().collect();
    for object in &objects {
        stage.apply_on_client_side(object);
    }
    assert_told(stage, &wanted, &kinds);
    // And once our own manager has applied them.
    for object in &objects {
        stage.apply(OURS, object);
    }
    assert_told(stage, &wanted, &kinds);

    let labelled = |label: &str, value: &str| {
        changed(&deployment("b30-labels"), |it| it["metadata"]["labels"][label] = json!(value))
    };
    stage.apply(OURS, &labelled("tier", "one"));
    assert_told(
        stage,
        &[&labelled("tier", "two")],
        &["Deployment b30-labels: change by server", "  metadata.labels.tier: \"one\" -> \"two\""],
    );
    assert_told(
        stage,
        &[&labelled("zone", "one")],
        &[
            "Deployment b30-labels: change by server",
            "  metadata.labels.tier: \"one\" -> -",
            "  metadata.labels.zone: - -> \"one\"",
        ],
    );
}

/// Plays objects with and without a namespace.
pub fn namespaces_of_the_destination_are_no_difference(stage: &impl DiffStage) {
    let named = config_map("b31", json!({"a": "1"}));
    stage.apply(OURS, &named);
    let bare = changed(&named, |it| drop(it["metadata"].as_object_mut().unwrap().remove("namespace")));
    let unchanged = ["ConfigMap b31: unchanged by server"];
    for wanted in [&named, &bare] {
        assert_ruled(stage, &[wanted], None, &["--default-namespace", NAMESPACE], &unchanged);
    }
    let role = object("rbac.authorization.k8s.io/v1", "ClusterRole", "b31", json!({"rules": []}));
    stage.apply(OURS, &role);
    let stray = changed(&role, |it| it["metadata"]["namespace"] = json!(NAMESPACE));
    assert_told(stage, &[&stray], &["ClusterRole b31: unchanged by server"]);
}

/// Plays the removal of items and fields, and ports of a Service.
pub fn structured_merges_remove_what_is_no_longer_applied(stage: &impl DiffStage) {
    let wanted = deployment("b37");
    let before = changed(&wanted, |it| {
        push(&mut it["spec"]["template"]["spec"]["containers"], json!({"name": "log", "image": "log:1"}));
        push(&mut container(it)["ports"], json!({"containerPort": 80, "protocol": "UDP"}));
        it["spec"]["minReadySeconds"] = json!(5);
    });
    stage.apply(OURS, &before);
    assert_told(stage, &[&before], &["Deployment b37: unchanged by server"]);
    let answer = stage.diff(&manifests(&[&wanted]), None, &["-o", "json"]);
    let paths: Vec<String> = answer.list()["items"][0]["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| format!("{} {}", super::text(&field["path"]), field.get("wanted").is_some()))
        .collect();
    let web = "spec.template.spec.containers";
    let expected = [
        "spec.minReadySeconds false".to_owned(),
        format!("{web}[name=log] false"),
        format!("{web}[name=web].ports[containerPort=80,protocol=UDP] false"),
    ];
    assert_eq!(paths, expected, "{}", answer.stdout);

    let service =
        |ports| object("v1", "Service", "b37", json!({"spec": {"selector": {"app": "b37"}, "ports": ports}}));
    let two = service(json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]));
    stage.apply(OURS, &two);
    assert_told(stage, &[&two], &["Service b37: unchanged by server"]);
    let other = service(json!([{"name": "a", "port": 80}, {"name": "c", "port": 81}]));
    assert_told(
        stage,
        &[&other],
        &["Service b37: change by server", "  spec.ports[port=81,protocol=TCP].name: \"b\" -> \"c\""],
    );
}

/// Plays an object that was applied at another version. The simulation serves one version of each built-in kind.
pub fn versions_are_converted_by_the_server(stage: &impl DiffStage) {
    // Both sides are compared at the version of the manifest, to which the server converts.
    let target = json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "b37"}});
    let scaler = |version: &str, spec| {
        let mut scaler = object(version, "HorizontalPodAutoscaler", "b37", json!({"spec": target}));
        super::merge(&mut scaler["spec"], spec);
        scaler
    };
    let of_cpu = json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]);
    stage.apply(OURS, &scaler("autoscaling/v2", json!({"maxReplicas": 3, "metrics": of_cpu})));
    let first = |use_of_cpu: u32| {
        scaler("autoscaling/v1", json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": use_of_cpu}))
    };
    let note = "  'taffrail' owns fields at autoscaling/v2: which of them differ cannot be told";
    assert_told(stage, &[&first(50)], &["HorizontalPodAutoscaler b37: unchanged by server", note]);
    let more = [
        "HorizontalPodAutoscaler b37: change by server",
        "  spec.targetCPUUtilizationPercentage: 50 -> 60",
        note,
    ];
    assert_told(stage, &[&first(60)], &more);
}
