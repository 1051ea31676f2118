//! Default values of fields of built-in kinds, from `data/defaults.yaml` and computed ones.

use std::sync::OnceLock;

use serde_json::{Value, json};
use taffrail_object::yaml;

use crate::kinds::Resource;

/// Adds the default values to an object of a built-in kind: only of the fields that clients wait for or show.
pub(crate) fn default(resource: &Resource, object: &mut Value) {
    static DEFAULTS: OnceLock<Value> = OnceLock::new();
    let defaults =
        DEFAULTS.get_or_init(|| yaml::read(include_str!("data/defaults.yaml")).unwrap_or_default());
    let kind = resource.full_name();
    if kind == "customresourcedefinitions.apiextensions.k8s.io" {
        return crate::crd::default(object);
    }
    if kind == "jobs.batch" {
        job_selector(object);
    }
    let Some(defaults) = defaults.get(&*kind) else { return };
    if WITH_SPEC.contains(&&*kind) && object.get("spec").is_none() {
        return;
    }
    let spec = object.get_mut("spec");
    // Parallelism without completions means a work queue.
    if let Some(spec) = spec.filter(|spec| kind == "jobs.batch" && spec.get("parallelism").is_none()) {
        fill(spec, &json!({"completions": 1}));
    }
    fill(object, defaults);
    match &*kind {
        "namespaces" => {
            let name = object["metadata"]["name"].clone();
            if let Some(labels) = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
                labels.insert("kubernetes.io/metadata.name".to_owned(), name);
            }
        }
        "pods" => {
            let class = quality(&object["spec"]);
            fill(object, &json!({"status": {"qosClass": class}}));
        }
        "services" => service(object),
        _ => {}
    }
    let pod = match &*kind {
        "pods" => "/spec",
        "jobs.batch" => "/spec/template/spec",
        kind if kind.ends_with(".apps") => "/spec/template/spec",
        _ => return,
    };
    for list in ["containers", "initContainers"] {
        let containers = object.pointer_mut(&format!("{pod}/{list}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let image = container["image"].as_str().unwrap_or_default();
            let tag = image.rsplit('/').next().unwrap_or_default().split_once(':').map(|(_, tag)| tag);
            let policy = if matches!(tag, None | Some("latest")) { "Always" } else { "IfNotPresent" };
            fill(container, &json!({"imagePullPolicy": policy}));
        }
    }
}

/// Kinds whose objects have no defaults without a `spec`.
const WITH_SPEC: [&str; 7] = [
    "pods",
    "services",
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "cronjobs.batch",
];

/// Adds the members of `defaults` that `value` does not have, at all levels. The name of a default may end in `?` (fill
/// the member only if it exists), `[]` (fill each item of the list), `=` (add the whole member or nothing) or `@TYPE`
/// (fill the member if its `type` is that).
fn fill(value: &mut Value, defaults: &Value) {
    let (Some(members), Some(defaults)) = (value.as_object_mut(), defaults.as_object()) else { return };
    for (name, default) in defaults {
        if let Some(name) = name.strip_suffix('?') {
            members.get_mut(name).into_iter().for_each(|member| fill(member, default));
        } else if let Some(name) = name.strip_suffix("[]") {
            let items = members.get_mut(name).and_then(Value::as_array_mut);
            items.into_iter().flatten().for_each(|item| fill(item, default));
        } else if let Some((name, kind)) = name.split_once('@') {
            let member = members.get_mut(name).filter(|member| member["type"] == kind);
            member.into_iter().for_each(|member| fill(member, default));
        } else if let Some(name) = name.strip_suffix('=') {
            members.entry(name).or_insert_with(|| default.clone());
        } else if default.is_object() {
            fill(members.entry(name).or_insert_with(|| json!({})), default);
        } else {
            members.entry(name).or_insert_with(|| default.clone());
        }
    }
}

/// Gives a Job without a selector one of its own, and its Pods the labels for it, so that no other Job adopts them.
fn job_selector(object: &mut Value) {
    let (name, uid) = (object["metadata"]["name"].clone(), object["metadata"]["uid"].clone());
    let Some(spec) = object.get_mut("spec") else { return };
    let has_own = spec["manualSelector"] == true || spec.get("selector").is_some();
    if has_own || !spec["template"].is_object() || !uid.is_string() {
        return;
    }
    let labels = json!({
        "controller-uid": uid, "batch.kubernetes.io/controller-uid": uid,
        "job-name": name, "batch.kubernetes.io/job-name": name,
    });
    fill(&mut spec["template"], &json!({"metadata": {"labels": labels}}));
    fill(spec, &json!({"selector=": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}}));
}

/// Returns the quality-of-service class of a Pod by the requests and limits of its containers: `BestEffort`,
/// `Burstable` or `Guaranteed`.
fn quality(spec: &Value) -> &'static str {
    let containers = || spec["containers"].as_array().into_iter().flatten();
    let has = |container: &Value, kind: &str| {
        container["resources"][kind].as_object().is_some_and(|all| !all.is_empty())
    };
    if !containers().any(|container| has(container, "limits") || has(container, "requests")) {
        return "BestEffort";
    }
    let guaranteed = containers().all(|container| {
        let limits = &container["resources"]["limits"];
        let requests = &container["resources"]["requests"];
        limits["cpu"].is_string()
            && limits["memory"].is_string()
            && (requests.is_null() || requests == limits)
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}

fn service(object: &mut Value) {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let number = port["port"].clone();
        fill(port, &json!({"targetPort=": number}));
    }
    if spec["type"] != "ExternalName" && spec.get("clusterIP").is_none() {
        // Derived from the uid, so that it is the same in every run with the same seed.
        let sum = uid.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let address = format!("10.96.{}.{}", (sum >> 8) % 250 + 1, sum % 250 + 1);
        let addresses = json!({
            "clusterIPs=": [address], "clusterIP": address, "ipFamilies=": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        });
        fill(spec, &addresses);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_are_there_stay() {
        let resource =
            crate::kinds::builtin().iter().find(|it| it.full_name() == "deployments.apps").unwrap();
        let containers = json!([{"image": "a:1", "ports": [{"protocol": "UDP"}, {}]}]);
        let spec =
            json!({"strategy": {"type": "Recreate"}, "template": {"spec": {"containers": containers}}});
        let mut object = json!({"spec": spec});
        default(resource, &mut object);
        assert_eq!((&object["spec"]["replicas"], &object["status"]), (&json!(1), &json!({})));
        assert_eq!(object["spec"]["strategy"], json!({"type": "Recreate"}));
        let container = &object["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["imagePullPolicy"], "IfNotPresent");
        assert_eq!(container["ports"], json!([{"protocol": "UDP"}, {"protocol": "TCP"}]));
    }
}
