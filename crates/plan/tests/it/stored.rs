//! Merges beside what API servers store: defaults, zero values, and fields that others own. Each case was seen on a real
//! server (`tests/e2e`, `merges`).

use serde_json::{Value, json};
use taffrail_merge::{GroupVersionKind, OpenApi, Type, TypeRef, built_in};
use taffrail_plan::diff::{
    DiffInput, DiffNote, DiffOptions, DiffOutcome, DifferenceClass, DryRun, IgnoreRules, NoDryRun,
    ObjectDiff, ToldConflict, diff,
};

use crate::server::{OURS, texts};

const OFFLINE: DryRun = DryRun::NotRun(NoDryRun::Offline);

/// Returns an object with one more entry of `managedFields`.
fn owned(mut object: Value, manager: &str, operation: &str, fields: &Value) -> Value {
    let entry = json!({"manager": manager, "operation": operation, "apiVersion": object["apiVersion"],
        "time": "2026-03-01T12:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields});
    match object["metadata"]["managedFields"].as_array_mut() {
        Some(entries) => entries.push(entry),
        None => object["metadata"]["managedFields"] = json!([entry]),
    }
    object
}

fn object(api_version: &str, kind: &str, rest: &Value) -> Value {
    let mut object = rest.clone();
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object["metadata"]["name"] = json!("web");
    object
}

fn compare_by(api: &OpenApi, wanted: &Value, live: &Value, dry_run: &DryRun) -> ObjectDiff {
    let text = |name: &str| wanted[name].as_str().unwrap().to_owned();
    let api_version = text("apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let kind = GroupVersionKind { group: group.to_owned(), version: version.to_owned(), kind: text("kind") };
    let of: TypeRef = api.type_of(&kind).unwrap();
    diff(&DiffInput {
        wanted: Some(wanted),
        live: Some(live),
        dry_run,
        of: Type::new(&api.schema, &of),
        manager: OURS,
        applied: None,
        rules: &IgnoreRules::default(),
        jq: None,
        options: &DiffOptions::default(),
    })
}

fn merged(wanted: &Value, live: &Value) -> Vec<String> {
    texts(&compare_by(built_in(), wanted, live, &OFFLINE))
}

#[test]
fn zero_values_that_servers_do_not_store_are_no_difference() {
    let service =
        |flag: &Value| object("v1", "Service", &json!({"spec": {"publishNotReadyAddresses": flag}}));
    let fields = json!({"f:spec": {"f:publishNotReadyAddresses": {}}});
    let live =
        owned(object("v1", "Service", &json!({"spec": {"type": "ClusterIP"}})), OURS, "Apply", &fields);
    assert_eq!(merged(&service(&json!(false)), &live), [""; 0]);
    // Another manager's value goes.
    let live = owned(service(&json!(true)), "kubectl-edit", "Update", &fields);
    assert_eq!(merged(&service(&json!(false)), &live), ["spec.publishNotReadyAddresses: true -> -"]);
    let fields = json!({"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {}}}}});
    let with = |selector: Value| {
        object(
            "apps/v1",
            "Deployment",
            &json!({"spec": {"paused": false, "minReadySeconds": 0,
            "template": {"spec": {"nodeSelector": selector, "containers": []}}}}),
        )
    };
    let live = object("apps/v1", "Deployment", &json!({"spec": {"template": {"spec": {}}}}));
    assert_eq!(merged(&with(json!({})), &owned(live, OURS, "Apply", &fields)), [""; 0]);
}

#[test]
fn empty_lists_of_a_manifest_take_the_place_of_others() {
    let role = |rules: Value| object("rbac.authorization.k8s.io/v1", "Role", &json!({ "rules": rules }));
    let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    let live = owned(role(json!([rule])), "kubectl-edit", "Update", &json!({"f:rules": {}}));
    assert_eq!(merged(&role(json!([])), &live), [format!("rules: [{rule}] -> -")]);
    let policy = |ingress: Value| {
        let spec = json!({"podSelector": {}, "policyTypes": ["Ingress"], "ingress": ingress});
        object("networking.k8s.io/v1", "NetworkPolicy", &json!({ "spec": spec }))
    };
    let live = owned(policy(json!([{}])), "flux", "Apply", &json!({"f:spec": {"f:ingress": {}}}));
    assert_eq!(merged(&policy(json!([])), &live), ["spec.ingress: [{}] -> -"]);
}

#[test]
fn defaults_within_values_owned_as_a_whole_are_known() {
    let policy = |port: Value| {
        let spec = json!({"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"ports": [port]}]});
        object("networking.k8s.io/v1", "NetworkPolicy", &json!({ "spec": spec }))
    };
    let fields = json!({"f:spec": {"f:ingress": {}}});
    let live = owned(policy(json!({"port": 80, "protocol": "TCP"})), OURS, "Apply", &fields);
    assert_eq!(merged(&policy(json!({"port": 80})), &live), [""; 0]);
    // The value that is told is the one that is stored.
    let told = compare_by(built_in(), &policy(json!({"port": 81})), &live, &OFFLINE);
    let wanted = told.differences[0].wanted.clone().unwrap();
    assert_eq!(wanted, json!([{"ports": [{"port": 81, "protocol": "TCP"}]}]));
    // A server of another release may have stored no default.
    let live = owned(policy(json!({"port": 80})), OURS, "Apply", &fields);
    assert_eq!(merged(&policy(json!({"port": 80})), &live), [""; 0]);

    let slice = |ports: Value, endpoint: Value| {
        object(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            &json!({"addressType": "IPv4", "ports": ports, "endpoints": [endpoint]}),
        )
    };
    let stored = slice(
        json!([{"name": "", "port": 80, "protocol": "TCP"}]),
        json!({"addresses": ["10.0.0.1"], "conditions": {}}),
    );
    let live = owned(stored, OURS, "Apply", &json!({"f:ports": {}, "f:endpoints": {}}));
    let wanted = slice(json!([{"port": 80}]), json!({"addresses": ["10.0.0.1"]}));
    assert_eq!(merged(&wanted, &live), [""; 0]);
}

#[test]
fn labels_that_a_selector_no_longer_has_differ() {
    let service = |selector: Value| object("v1", "Service", &json!({"spec": { "selector": selector }}));
    let live = owned(
        service(json!({"app": "web", "tier": "a"})),
        "flux",
        "Update",
        &json!({"f:spec": {"f:selector": {}}}),
    );
    let told = ["spec.selector: {\"app\":\"web\",\"tier\":\"a\"} -> {\"app\":\"web\"}"];
    assert_eq!(merged(&service(json!({"app": "web"})), &live), told);
    let applied =
        json!({"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"app": "web"}}}).to_string();
    let mut by_client = live;
    by_client["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": applied});
    assert_eq!(merged(&service(json!({"app": "web"})), &by_client), told);
}

#[test]
fn a_field_that_is_no_longer_wanted_takes_its_default() {
    let deployment = |more: Value| object("apps/v1", "Deployment", &json!({ "spec": more }));
    let fields = json!({"f:spec": {"f:replicas": {}}});
    let live = owned(deployment(json!({"replicas": 3})), OURS, "Apply", &fields);
    let wanted = deployment(json!({}));
    assert_eq!(merged(&wanted, &live), ["spec.replicas: 3 -> 1"]);
    let answer = owned(deployment(json!({"replicas": 1})), OURS, "Apply", &json!({"f:spec": {}}));
    let answered = DryRun::Answered { object: answer, conflicts: Vec::new() };
    let by_server = compare_by(built_in(), &wanted, &live, &answered);
    assert_eq!(texts(&by_server), ["spec.replicas: 3 -> 1"]);
    // The default again is no difference.
    let live = owned(deployment(json!({"replicas": 1})), OURS, "Apply", &fields);
    assert_eq!(merged(&wanted, &live), [""; 0]);
    // The former name of a field outlives the removal of the new one.
    let pod = |spec: Value| deployment(json!({"template": { "spec": spec }}));
    let fields = json!({"f:spec": {"f:template": {"f:spec": {"f:serviceAccountName": {}}}}});
    let live = pod(json!({"serviceAccount": "robot", "serviceAccountName": "robot"}));
    assert_eq!(merged(&pod(json!({})), &owned(live, OURS, "Apply", &fields)), [""; 0]);
}

#[test]
fn jobs_without_labels_get_those_of_their_pods_and_policies_have_plain_numbers() {
    let labels = json!({"job-name": "web"});
    let job = |more: Value| {
        let spec = json!({"template": {"metadata": {"labels": labels}, "spec": {"containers": []}}});
        object("batch/v1", "Job", &json!({"metadata": { "labels": more }, "spec": spec}))
    };
    let live =
        owned(job(labels.clone()), OURS, "Apply", &json!({"f:metadata": {"f:labels": {"f:job-name": {}}}}));
    let wanted = object("batch/v1", "Job", &json!({"spec": live["spec"]}));
    assert_eq!(merged(&wanted, &live), [""; 0]);

    let policies = json!([{"type": "Pods", "value": 2, "periodSeconds": 15}]);
    let scaler = |replicas: u8| {
        let spec = json!({"maxReplicas": replicas, "behavior": {"scaleUp": { "policies": policies }}});
        object("autoscaling/v2", "HorizontalPodAutoscaler", &json!({ "spec": spec }))
    };
    let live = owned(scaler(1), OURS, "Apply", &json!({"f:spec": {"f:maxReplicas": {}}}));
    let told = compare_by(built_in(), &scaler(2), &live, &OFFLINE);
    assert_eq!((texts(&told), told.notes), (vec!["spec.maxReplicas: 1 -> 2".to_owned()], vec![]));
}

#[test]
fn conflicts_with_our_own_writes_and_with_nobody_have_their_classes() {
    let map = |colour: &str| object("v1", "ConfigMap", &json!({"data": {"colour": colour}}));
    let fields = json!({"f:data": {"f:colour": {}}});
    let live = owned(map("red"), OURS, "Update", &fields);
    let conflict =
        |manager: &str| ToldConflict { path: ".data.colour".to_owned(), manager: Some(manager.to_owned()) };
    let by_server = |manager: &str| {
        let object = owned(map("blue"), OURS, "Apply", &fields);
        let answered = DryRun::Answered { object, conflicts: vec![conflict(manager)] };
        compare_by(built_in(), &map("blue"), &live, &answered).differences[0].class
    };
    assert_eq!(by_server(OURS), DifferenceClass::Change);
    assert_eq!(by_server("flux"), DifferenceClass::Conflict);
    // The server makes a manager of what is there if the object names none.
    let unnamed = compare_by(built_in(), &map("blue"), &map("red"), &OFFLINE);
    assert_eq!(unnamed.differences[0].class, DifferenceClass::Conflict);
}

fn custom() -> OpenApi {
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer", "default": 3}, "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "steps": {"type": "array", "items": {"type": "object", "properties": {
            "run": {"type": "string"}, "retries": {"type": "integer", "default": 0}}}},
        "limits": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
            "low": {"type": "integer"}, "high": {"type": "integer", "default": 100}}}}});
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let kind = json!({"type": "object",
        "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Widget"}],
        "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": any, "spec": spec, "status": any}});
    OpenApi::read(&json!({"components": {"schemas": {"Widget": kind}}})).unwrap()
}

#[test]
fn defaults_of_custom_kinds_are_those_of_their_schemas() {
    let api = custom();
    let widget = |spec: Value| object("example.com/v1", "Widget", &json!({ "spec": spec }));
    let fields = json!({"f:spec": {"f:steps": {}, "f:limits": {}, "f:size": {}}});
    let stored = json!({"size": 2, "steps": [{"run": "a", "retries": 0}], "limits": {"low": 1, "high": 100}});
    let live = owned(widget(stored), OURS, "Apply", &fields);
    let told = |wanted: Value| texts(&compare_by(&api, &widget(wanted), &live, &OFFLINE));
    let same = json!({"size": 2, "steps": [{"run": "a"}], "limits": {"low": 1}});
    assert_eq!(told(same), [""; 0]);
    let changed = json!({"steps": [{"run": "b"}], "limits": {"low": 1}});
    assert_eq!(
        told(changed),
        [
            "spec.size: 2 -> 3",
            "spec.steps: [{\"retries\":0,\"run\":\"a\"}] -> [{\"retries\":0,\"run\":\"b\"}]",
        ]
    );
    // Null and nothing are one to a server that decides if it writes.
    let fields = json!({"f:spec": {"f:any": {"f:a": {}}}});
    let live = owned(widget(json!({"any": {"a": null}})), OURS, "Apply", &fields);
    let diff = compare_by(&api, &widget(json!({"any": {"a": {}}})), &live, &OFFLINE);
    assert_eq!((diff.outcome, texts(&diff)), (DiffOutcome::Unchanged, vec![]));
}

#[test]
fn names_of_definitions_take_their_defaults() {
    let definition = |names: &Value| {
        object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            &json!({"spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": []}}),
        )
    };
    let wanted = definition(&json!({"kind": "Widget", "plural": "widgets"}));
    let stored = json!({"kind": "Widget", "plural": "widgets", "singular": "gadget", "listKind": "Widgets"});
    let fields =
        json!({"f:spec": {"f:names": {"f:kind": {}, "f:plural": {}, "f:singular": {}, "f:listKind": {}}}});
    let live = owned(definition(&stored), OURS, "Apply", &fields);
    assert_eq!(
        merged(&wanted, &live),
        [
            "spec.names.listKind: \"Widgets\" -> \"WidgetList\"",
            "spec.names.singular: \"gadget\" -> \"widget\"",
        ]
    );
    // What another manager set beside it stays.
    let fields = json!({"f:spec": {"f:names": {"f:kind": {}, "f:plural": {}}}});
    let live = owned(definition(&stored), OURS, "Apply", &fields);
    assert_eq!(merged(&wanted, &live), [""; 0]);
}

#[test]
fn empty_data_of_a_secret_that_others_fill_is_no_removal() {
    let secret = |team: &str, data: &Value| {
        object(
            "v1",
            "Secret",
            &json!({"metadata": {"labels": {"team": team}}, "type": "Opaque", "data": data}),
        )
    };
    // The API server moves `stringData`, and lets its manager own no key of `data`.
    let live = owned(secret("blue", &json!({"key": "dmFsdWU="})), OURS, "Apply", &json!({"f:data": {}}));
    let live = owned(live, "controller", "Apply", &json!({"f:stringData": {"f:key": {}}}));
    assert_eq!(merged(&secret("red", &json!({})), &live), ["metadata.labels.team: \"blue\" -> \"red\""]);
}

#[test]
fn nothing_is_left_of_a_map_from_which_the_copy_of_kubectl_takes_the_last_field() {
    let deployment = |context: Value| {
        let container = json!({"name": "main", "image": "nginx:1.27", "securityContext": context});
        object("apps/v1", "Deployment", &json!({"spec": {"template": {"spec": {"containers": [container]}}}}))
    };
    let applied = deployment(json!({"runAsNonRoot": true}));
    let fields = json!({"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/last-applied-configuration": {}}},
        "f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {
        ".": {}, "f:name": {}, "f:image": {}, "f:securityContext": {".": {}, "f:runAsNonRoot": {}}}}}}}});
    let mut live = owned(applied.clone(), "kubectl-client-side-apply", "Update", &fields);
    live["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": applied.to_string()});
    let wanted = deployment(json!({}));
    let removed = ["spec.template.spec.containers[name=main].securityContext: {\"runAsNonRoot\":true} -> -"];
    assert_eq!(merged(&wanted, &live), removed);
    let dry_run = DryRun::Answered { object: live.clone(), conflicts: vec![] };
    assert_eq!(texts(&compare_by(built_in(), &wanted, &live, &dry_run)), removed);
}

#[test]
fn a_status_in_a_manifest_of_a_custom_kind_is_undecided_until_a_write_shows_its_subresource() {
    let api = custom();
    let widget =
        |status: &Value| object("example.com/v1", "Widget", &json!({"spec": {"size": 1}, "status": status}));
    let fields = json!({"f:spec": {"f:size": {}}});
    let live = owned(widget(&Value::Null), OURS, "Apply", &fields);
    let wanted = widget(&json!({"phase": "Ready"}));
    let diff = compare_by(&api, &wanted, &live, &OFFLINE);
    assert_eq!(diff.outcome, DiffOutcome::Unknown);
    assert!(matches!(&*diff.notes, [DiffNote::Undecided { paths }] if paths[0].to_string() == "status"));
    let mut live = owned(live, "controller", "Update", &json!({"f:status": {}}));
    live["metadata"]["managedFields"][1]["subresource"] = json!("status");
    assert_eq!(compare_by(&api, &wanted, &live, &OFFLINE).outcome, DiffOutcome::Unchanged);
}
