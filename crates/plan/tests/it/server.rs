//! A small API server for tests: schemas, applies, updates, and comparisons of what they leave.

use std::sync::LazyLock;

use serde_json::{Value, json};
use taffrail_merge::{
    FieldSet, GroupVersionKind, ManagedEntry, ManagedFields, Managers, OpenApi, Schema, Type, TypeRef,
    Updater,
};
use taffrail_plan::diff::{
    DiffInput, DiffOptions, DryRun, IgnoreRules, JqRunner, NoDryRun, ObjectDiff, diff,
};

/// Our own manager.
pub(crate) const OURS: &str = "taffrail";

fn list(keys: &[&str], item: &Value) -> Value {
    json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys})
}

fn object(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties})
}

static OPEN_API: LazyLock<OpenApi> = LazyLock::new(|| {
    let texts = || json!({"type": "object", "additionalProperties": {"type": "string"}});
    let text = || json!({"type": "string"});
    let number = || json!({"type": "integer"});
    let any = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let metadata = object(&json!({
        "name": text(), "namespace": text(), "labels": texts(), "annotations": texts(), "creationTimestamp": text(),
        "uid": text(), "resourceVersion": text(), "generation": number(), "selfLink": text(),
        "finalizers": {"type": "array", "items": text(), "x-kubernetes-list-type": "set"},
    }));
    let port = object(
        &json!({"containerPort": number(), "protocol": {"type": "string", "default": "TCP"}, "name": text()}),
    );
    let quantities = || json!({"type": "object", "additionalProperties": {}});
    let container = object(&json!({
        "name": text(), "image": text(), "imagePullPolicy": text(),
        "args": {"type": "array", "items": text(), "x-kubernetes-list-type": "atomic"},
        "env": list(&["name"], &object(&json!({"name": text(), "value": text()}))),
        "ports": list(&["containerPort", "protocol"], &port),
        "resources": object(&json!({"requests": quantities(), "limits": quantities()})),
    }));
    let atomic = || json!({"type": "array", "items": any(), "x-kubernetes-list-type": "atomic"});
    let pod = object(&json!({
        "containers": list(&["name"], &container), "restartPolicy": text(), "tolerations": atomic(),
    }));
    let template = object(&json!({"metadata": metadata, "spec": pod}));
    let workload = object(&json!({
        "replicas": number(), "selector": any(), "template": template, "volumeClaimTemplates": atomic(),
        "strategy": any(), "serviceName": text(),
    }));
    let service_port = object(&json!({
        "port": number(), "protocol": {"type": "string", "default": "TCP"}, "name": text(), "targetPort": {}, "nodePort": number(),
    }));
    let service = object(
        &json!({"type": text(), "clusterIP": text(), "ports": list(&["port", "protocol"], &service_port)}),
    );
    let kind = |group: &str, version: &str, kind: &str, mut properties: Value| {
        let fields = properties.as_object_mut().unwrap();
        fields.extend([
            ("apiVersion".to_owned(), text()),
            ("kind".to_owned(), text()),
            ("metadata".to_owned(), metadata.clone()),
            ("status".to_owned(), any()),
        ]);
        let mut schema = object(&properties);
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": group, "version": version, "kind": kind}]);
        (kind.to_owned(), schema)
    };
    let hpa = object(&json!({"minReplicas": number(), "maxReplicas": number(), "metrics": atomic()}));
    let schemas: serde_json::Map<String, Value> = [
        kind("apps", "v1", "Deployment", json!({"spec": workload})),
        kind("apps", "v1", "StatefulSet", json!({"spec": workload})),
        kind("", "v1", "Service", json!({"spec": service})),
        kind("", "v1", "ConfigMap", json!({"data": texts()})),
        kind("", "v1", "Secret", json!({"data": texts(), "stringData": texts(), "type": text()})),
        kind("autoscaling", "v1", "HorizontalPodAutoscaler", json!({"spec": hpa})),
        kind(
            "example.com",
            "v1",
            "Chart",
            json!({"spec": object(&json!({"values": any(), "version": text()}))}),
        ),
    ]
    .into_iter()
    .collect();
    OpenApi::read(&json!({"components": {"schemas": schemas}})).unwrap()
});

/// Returns the type of an object; the deduced one if the schemas do not have its kind.
pub(crate) fn type_of(object: &Value) -> Type<'static> {
    static DEDUCED: LazyLock<TypeRef> = LazyLock::new(|| TypeRef::named(Schema::DEDUCED));
    static KINDS: LazyLock<Vec<(GroupVersionKind, TypeRef)>> = LazyLock::new(|| {
        OPEN_API.kinds.keys().map(|kind| (kind.clone(), OPEN_API.type_of(kind).unwrap())).collect()
    });
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let known = KINDS
        .iter()
        .find(|(kind, _)| kind.group == group && kind.version == version && object["kind"] == *kind.kind);
    Type::new(&OPEN_API.schema, known.map_or(&DEDUCED, |(_, of)| of))
}

fn split(live: &Value) -> (Value, Managers) {
    let mut object = live.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    (object, ManagedEntry::managers(&ManagedEntry::read_all(live).unwrap()))
}

fn join(mut object: Value, managers: &Managers) -> Value {
    let entries = managers.iter().map(|(id, owned)| {
        let id: Vec<String> = serde_json::from_str(id).unwrap();
        let ManagedFields { fields, version, is_applied } = owned.clone();
        let time = "2026-03-01T12:00:00Z".parse().ok();
        let (manager, subresource) = (id[0].clone(), id[3].clone());
        ManagedEntry { manager, is_applied, version, subresource, time, fields }.to_value()
    });
    object["metadata"]["managedFields"] = entries.collect();
    object
}

fn id(object: &Value, manager: &str, is_applied: bool) -> String {
    let version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
    let (manager, fields) = (manager.to_owned(), FieldSet::default());
    ManagedEntry { manager, is_applied, version, subresource: String::new(), time: None, fields }.id()
}

fn updater(object: &Value) -> Updater<'static> {
    let fields = json!({"f:apiVersion": {}, "f:kind": {}, "f:metadata": {"f:name": {}, "f:namespace": {}}});
    Updater::new(type_of(object), object["apiVersion"].as_str().unwrap_or_default())
        .ignoring(FieldSet::from_fields_v1(&fields).unwrap())
}

/// Returns the object that an apply with force leaves.
pub(crate) fn apply(live: Option<&Value>, wanted: &Value, manager: &str) -> Value {
    let (object, managers) = live.map_or_else(|| (json!({}), Managers::new()), split);
    let applied =
        updater(wanted).apply(&object, wanted, &managers, &id(wanted, manager, true), true).unwrap();
    join(applied.object.unwrap_or(object), &applied.managers)
}

/// Returns the object that a change by another manager leaves.
pub(crate) fn update(live: &Value, manager: &str, change: impl FnOnce(&mut Value)) -> Value {
    let (object, managers) = split(live);
    let mut new = object.clone();
    change(&mut new);
    let managers = updater(&new).update(&object, &new, &managers, &id(&new, manager, false)).unwrap();
    join(new, &managers)
}

/// Returns the object that `kubectl apply` on the client's side leaves.
pub(crate) fn kubectl_apply(wanted: &Value) -> Value {
    update(
        &json!({"apiVersion": wanted["apiVersion"], "kind": wanted["kind"], "metadata": {}}),
        "kubectl-client-side-apply",
        |new| {
            *new = wanted.clone();
            new["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
                json!(wanted.to_string());
        },
    )
}

/// A comparison with its defaults.
#[derive(Clone)]
pub(crate) struct Case<'a> {
    pub(crate) wanted: Option<&'a Value>,
    pub(crate) live: Option<&'a Value>,
    pub(crate) dry_run: DryRun,
    pub(crate) applied: Option<&'a FieldSet>,
    pub(crate) rules: IgnoreRules,
    pub(crate) jq: Option<&'a dyn JqRunner>,
    pub(crate) options: DiffOptions,
}

impl<'a> Case<'a> {
    /// Compares offline.
    pub(crate) fn merged(wanted: &'a Value, live: &'a Value) -> Case<'a> {
        Case {
            wanted: Some(wanted),
            live: Some(live),
            dry_run: DryRun::NotRun(NoDryRun::Offline),
            applied: None,
            rules: IgnoreRules::default(),
            jq: None,
            options: DiffOptions::default(),
        }
    }

    /// Compares with the answer of a server that changes what an apply leaves.
    pub(crate) fn server(wanted: &'a Value, live: &'a Value, change: impl FnOnce(&mut Value)) -> Case<'a> {
        let mut object = apply(Some(live), wanted, OURS);
        change(&mut object);
        let dry_run = DryRun::Answered { object, conflicts: Vec::new() };
        Case { dry_run, ..Case::merged(wanted, live) }
    }

    pub(crate) fn diff(&self) -> ObjectDiff {
        diff(&DiffInput {
            wanted: self.wanted,
            live: self.live,
            dry_run: &self.dry_run,
            of: type_of(self.wanted.or(self.live).unwrap_or(&Value::Null)),
            manager: OURS,
            applied: self.applied,
            rules: &self.rules,
            jq: self.jq,
            options: &self.options,
        })
    }

    /// Returns the differences as text, or the outcome if it is neither a change nor none.
    pub(crate) fn texts(&self) -> Vec<String> {
        texts(&self.diff())
    }
}

/// Returns the differences as text; the reasons if they are unknown.
pub(crate) fn texts(diff: &ObjectDiff) -> Vec<String> {
    let text = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
    let differences =
        diff.differences.iter().map(|it| format!("{}: {} -> {}", it.path, text(&it.live), text(&it.wanted)));
    differences.chain(diff.reasons.iter().map(ToString::to_string)).collect()
}

/// A Deployment with one container.
pub(crate) fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}],
                    "env": [{"name": "MODE", "value": "fast"}], "resources": {"requests": {"cpu": "100m"}}}]},
            },
        },
    })
}

/// Adds the protocols of ports, which are keys of the list, to a Deployment.
pub(crate) fn default_ports(object: &mut Value) {
    let containers = object.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        for port in container["ports"].as_array_mut().into_iter().flatten() {
            port["protocol"] = json!("TCP");
        }
    }
}

/// Adds what an API server adds to each Deployment.
pub(crate) fn default_deployment(object: &mut Value) {
    object["metadata"]["uid"] = json!("6f0c");
    object["metadata"]["resourceVersion"] = json!("17");
    object["metadata"]["generation"] = json!(2);
    object["metadata"]["creationTimestamp"] = json!("2026-03-01T12:00:00Z");
    object["spec"]["strategy"] = json!({"type": "RollingUpdate"});
    let pod = &mut object["spec"]["template"]["spec"];
    pod["restartPolicy"] = json!("Always");
    for container in pod["containers"].as_array_mut().into_iter().flatten() {
        container["imagePullPolicy"] = json!("IfNotPresent");
    }
    default_ports(object);
    object["status"] = json!({"replicas": 3});
}

/// Returns the live form of an object that our manager applied and that the server gave its defaults.
pub(crate) fn live_deployment(wanted: &Value) -> Value {
    let mut live = apply(None, wanted, OURS);
    default_deployment(&mut live);
    live
}
