//! Pairs of wanted and live objects, as a cluster that Argo CD delivers to has them.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use fastrand::Rng;
use serde_json::{Value, json};
use taffrail_merge::{FieldSet, ManagedEntry, ManagedFields, Managers, OpenApi, Type, Updater, built_in};
use taffrail_object::LAST_APPLIED;

use super::{MANAGER, kind_of};

/// The number of pairs of which one differs.
const CHANGED: u8 = 8;

/// Returns the types of the custom kind, which the peer has in the same form.
pub(super) fn custom_types() -> OpenApi {
    let text = || json!({"type": "string"});
    let any = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let port = json!({"type": "object", "properties": {"name": text(), "port": {"type": "integer"}}});
    let ports = json!({"type": "array", "items": port, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
    let spec = json!({"type": "object", "properties": {"chart": text(), "version": text(),
        "interval": text(), "ports": ports, "values": any()}});
    let texts = || json!({"type": "object", "additionalProperties": text()});
    let metadata = json!({"type": "object", "properties": {"name": text(), "namespace": text(), "uid": text(),
        "resourceVersion": text(), "generation": {"type": "integer"}, "creationTimestamp": text(),
        "labels": texts(), "annotations": texts(), "managedFields": {"type": "array", "items": any()}}});
    let chart = json!({"type": "object",
        "x-kubernetes-group-version-kind": [{"group": "bench.example.com", "version": "v1", "kind": "Chart"}],
        "properties": {"apiVersion": text(), "kind": text(), "metadata": metadata, "spec": spec, "status": any()}});
    OpenApi::read(&json!({"components": {"schemas": {"Chart": chart}}})).expect("types")
}

/// Writes the pairs twice: applied on the server's side, with the answers to dry runs, and on the client's side.
pub(super) fn write(folder: &Path, count: u64, seed: u64) {
    let mut random = Rng::with_seed(seed);
    let custom = custom_types();
    let create = |name: &str| BufWriter::new(File::create(folder.join(name)).expect("a file"));
    let (mut server, mut client) = (create("server.jsonl"), create("client.jsonl"));
    for number in 0..count {
        let before = manifest(number, &mut random);
        let is_changed = random.u8(0..CHANGED) == 0;
        let wanted = if is_changed { changed(&before, &mut random) } else { before.clone() };
        let kind = kind_of(&before);
        let api = if built_in().type_of(&kind).is_some() { built_in() } else { &custom };
        let of = api.type_of(&kind).expect("a type");
        let apply = Apply {
            of: Type::new(&api.schema, &of),
            version: before["apiVersion"].as_str().expect("a text"),
        };

        let live = apply.live(&before, true, number);
        let answer = apply.answer(&live, &wanted);
        let pair = json!({"wanted": wanted, "live": live, "answer": answer});
        writeln!(server, "{pair}").expect("a line");
        let live = apply.live(&before, false, number);
        writeln!(client, "{}", json!({"wanted": wanted, "live": live})).expect("a line");
    }
    server.flush().and_then(|()| client.flush()).expect("the files");
}

/// Applies of objects of one type.
struct Apply<'t> {
    of: Type<'t>,
    version: &'t str,
}

impl Apply<'_> {
    fn updater(&self) -> Updater<'_> {
        let ignored =
            json!({"f:apiVersion": {}, "f:kind": {}, "f:metadata": {"f:name": {}, "f:namespace": {}}});
        Updater::new(self.of, self.version).ignoring(FieldSet::from_fields_v1(&ignored).expect("fields"))
    }

    fn entry(&self, manager: &str, is_applied: bool, subresource: &str, fields: FieldSet) -> ManagedEntry {
        ManagedEntry {
            manager: manager.to_owned(),
            is_applied,
            version: self.version.to_owned(),
            subresource: subresource.to_owned(),
            time: "2026-03-01T12:00:00Z".parse().ok(),
            fields,
        }
    }

    /// Returns the live form of a manifest: with defaults, a status and managers.
    fn live(&self, manifest: &Value, is_by_server: bool, number: u64) -> Value {
        let mut live = manifest.clone();
        add_defaults(&mut live);
        if !is_by_server {
            live["metadata"]["annotations"][LAST_APPLIED] = json!(format!("{manifest}\n"));
        }
        let applied = if is_by_server { manifest } else { &live };
        let id = self.entry(MANAGER, is_by_server, "", FieldSet::default()).id();
        let own = self.updater().apply(&json!({}), applied, &Managers::new(), &id, true).expect("an apply");
        let own = own.managers.into_values().next().map(|own| own.fields).unwrap_or_default();
        let mut entries = vec![self.entry(MANAGER, is_by_server, "", own).to_value()];
        if let Some(status) = status_of(manifest) {
            let fields = self.of.field_set(&json!({ "status": status })).expect("fields");
            entries.push(self.entry("kube-controller-manager", false, "status", fields).to_value());
            live["status"] = status;
        }
        let metadata = &mut live["metadata"];
        metadata["uid"] = json!(format!("6f0c7f6e-5b7f-4c2d-9a3e-{number:012}"));
        metadata["resourceVersion"] = json!((10_000 + number).to_string());
        metadata["generation"] = json!(3);
        metadata["creationTimestamp"] = json!("2026-03-01T12:00:00Z");
        metadata["managedFields"] = Value::Array(entries);
        live
    }

    /// Returns an API server's answer to the dry run of an apply.
    fn answer(&self, live: &Value, wanted: &Value) -> Value {
        let managers = ManagedEntry::managers(&ManagedEntry::read_all(live).expect("managers"));
        let id = self.entry(MANAGER, true, "", FieldSet::default()).id();
        let mut object = live.clone();
        object["metadata"].as_object_mut().expect("metadata").remove("managedFields");
        let applied = self.updater().apply(&object, wanted, &managers, &id, true).expect("an apply");
        let mut answer = applied.object.unwrap_or(object);
        let entries = applied.managers.iter().map(|(id, owned)| {
            let id: Vec<String> = serde_json::from_str(id).expect("an identifier");
            let ManagedFields { fields, is_applied, .. } = owned.clone();
            self.entry(&id[0], is_applied, &id[3], fields).to_value()
        });
        answer["metadata"]["managedFields"] = entries.collect();
        answer
    }
}

fn manifest(number: u64, random: &mut Rng) -> Value {
    let (name, app) = (format!("app-{number}"), number % 97);
    let labels = json!({"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": format!("shop-{app}"), "team": "blue"});
    let mut object = match random.u8(0..20) {
        0..7 => deployment(&name, random),
        7..11 => json!({"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"app": name}, "ports": [
            {"name": "http", "port": 80, "targetPort": "http"}, {"name": "metrics", "port": 9090, "targetPort": 9090}]}}),
        11..15 => {
            let text = "key: value\n".repeat(random.usize(1..60));
            let data = (0..random.usize(1..8)).map(|at| (format!("file-{at}.yaml"), json!(text)));
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data.collect::<serde_json::Map<_, _>>()})
        }
        15..17 => json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": [
            {"apiGroups": [""], "resources": ["pods", "services"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "patch"]}]}),
        _ => {
            json!({"apiVersion": "bench.example.com/v1", "kind": "Chart", "spec": {"chart": "web", "version": "1.2.3",
            "interval": "10m", "ports": [{"name": "http", "port": 80}, {"name": "grpc", "port": 81}],
            "values": {"replicas": 2, "image": {"repository": "registry.example.com/web", "tag": "1.2.3"},
                "hosts": ["a.example.com", "b.example.com"], "resources": {"limits": {"memory": "1Gi"}}}}})
        }
    };
    object["metadata"] = json!({"name": name, "namespace": format!("team-{app}"), "labels": labels,
        "annotations": {"argocd.argoproj.io/tracking-id": format!("shop-{app}:{name}"), "example.com/owner": "team"}});
    object
}

fn deployment(name: &str, random: &mut Rng) -> Value {
    let containers = (0..random.usize(1..4)).map(|at| {
        let env = (0..random.usize(2..12)).map(|it| json!({"name": format!("SETTING_{it}"), "value": format!("value {it}")}));
        json!({"name": format!("main-{at}"), "image": format!("registry.example.com/shop/web-{at}:1.{}", random.u8(0..9)),
            "args": ["--verbose", "--port=8080"], "env": env.collect::<Vec<_>>(),
            "ports": [{"name": format!("http-{at}"), "containerPort": 8080 + at}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080 + at}},
            "volumeMounts": [{"name": "settings", "mountPath": "/etc/settings"}]})
    });
    let containers: Vec<Value> = containers.collect();
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": random.u8(1..5),
        "selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}},
        "spec": {"serviceAccountName": "web", "containers": containers,
            "volumes": [{"name": "settings", "configMap": {"name": "settings"}}]}}}})
}

/// Changes one field that every way of comparing sees.
fn changed(object: &Value, random: &mut Rng) -> Value {
    let mut new = object.clone();
    match (object["kind"].as_str().unwrap_or_default(), random.u8(0..4)) {
        (_, 0) => new["metadata"]["labels"]["team"] = json!("green"),
        ("Deployment", 1) => new["spec"]["replicas"] = json!(9),
        ("Deployment", 2) => {
            let env = new["spec"]["template"]["spec"]["containers"][0]["env"].as_array_mut();
            drop(env.map(|env| env.remove(0)));
        }
        ("Deployment", _) => {
            new["spec"]["template"]["spec"]["containers"][0]["image"] =
                json!("registry.example.com/shop/web:2")
        }
        ("Service", _) => new["spec"]["ports"][0]["targetPort"] = json!("web"),
        ("ConfigMap", 1 | 2) => new["data"]["file-0.yaml"] = json!("key: other\n"),
        ("ConfigMap", _) => new["data"]["new"] = json!("value"),
        ("Role", _) => new["rules"][1]["verbs"] = json!(["get"]),
        (_, 1) => drop(new["spec"]["values"].as_object_mut().map(|values| values.remove("replicas"))),
        _ => new["spec"]["version"] = json!("1.2.4"),
    }
    new
}

fn add_defaults(object: &mut Value) {
    match object["kind"].as_str().unwrap_or_default() {
        "Deployment" => {
            let spec = &mut object["spec"];
            spec["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
            spec["revisionHistoryLimit"] = json!(10);
            spec["progressDeadlineSeconds"] = json!(600);
            let pod = &mut spec["template"]["spec"];
            pod["restartPolicy"] = json!("Always");
            pod["terminationGracePeriodSeconds"] = json!(30);
            pod["dnsPolicy"] = json!("ClusterFirst");
            pod["schedulerName"] = json!("default-scheduler");
            pod["securityContext"] = json!({});
            pod["serviceAccount"] = json!("web");
            pod["volumes"][0]["configMap"]["defaultMode"] = json!(420);
            for container in pod["containers"].as_array_mut().into_iter().flatten() {
                container["imagePullPolicy"] = json!("IfNotPresent");
                container["terminationMessagePath"] = json!("/dev/termination-log");
                container["terminationMessagePolicy"] = json!("File");
                container["ports"][0]["protocol"] = json!("TCP");
                let probe = &mut container["livenessProbe"];
                probe["httpGet"]["scheme"] = json!("HTTP");
                for (name, value) in [
                    ("timeoutSeconds", 1),
                    ("periodSeconds", 10),
                    ("successThreshold", 1),
                    ("failureThreshold", 3),
                ] {
                    probe[name] = json!(value);
                }
            }
        }
        "Service" => {
            let spec = &mut object["spec"];
            for (name, value) in [
                ("type", "ClusterIP"),
                ("sessionAffinity", "None"),
                ("clusterIP", "10.0.3.7"),
                ("ipFamilyPolicy", "SingleStack"),
                ("internalTrafficPolicy", "Cluster"),
            ] {
                spec[name] = json!(value);
            }
            spec["clusterIPs"] = json!(["10.0.3.7"]);
            spec["ipFamilies"] = json!(["IPv4"]);
            for port in spec["ports"].as_array_mut().into_iter().flatten() {
                port["protocol"] = json!("TCP");
            }
        }
        _ => {}
    }
}

fn status_of(object: &Value) -> Option<Value> {
    match object["kind"].as_str()? {
        "Deployment" => Some(
            json!({"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
            "conditions": [
                {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "Deployment has minimum availability.",
                    "lastUpdateTime": "2026-03-01T12:00:00Z", "lastTransitionTime": "2026-03-01T12:00:00Z"},
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "ReplicaSet has successfully progressed.",
                    "lastUpdateTime": "2026-03-01T12:00:00Z", "lastTransitionTime": "2026-03-01T12:00:00Z"}]}),
        ),
        "Service" => Some(json!({"loadBalancer": {}})),
        "Chart" => Some(
            json!({"observedGeneration": 3, "conditions": [{"type": "Ready", "status": "True", "reason": "Installed", "message": ""}]}),
        ),
        _ => None,
    }
}
