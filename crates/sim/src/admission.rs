//! Defaults that the server adds to objects, and checks before it stores them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::error::{Answered, Cause};
use crate::kinds::Resource;
use crate::target::Target;

/// The characters of generated names: no vowels, so that they form no words.
pub(crate) const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Lists the errors in an object's name.
pub(crate) fn name_faults(resource: &Resource, name: &Value) -> Vec<Cause> {
    let text = name.as_str().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |text: &str| {
        let bytes = text.as_bytes();
        !bytes.is_empty()
            && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
            && bytes.first().is_some_and(|byte| plain(*byte))
            && bytes.last().is_some_and(|byte| plain(*byte))
    };
    let mut causes = Vec::new();
    let mut refuse = |what: &str| causes.push(Cause::invalid("metadata.name", name, what));
    match (&*resource.group, &*resource.plural) {
        // Names of roles may contain colons.
        ("rbac.authorization.k8s.io", _) => {
            if text.contains('/') || text.contains('%') || text == "." || text == ".." {
                refuse("may not contain '/'");
            }
        }
        ("", "namespaces" | "services") => {
            if text.contains('.') {
                refuse("must not contain dots");
            } else if !label(text) {
                refuse(LABEL);
            } else if text.len() > 63 {
                refuse("must be no more than 63 characters");
            }
        }
        _ => {
            if text.len() > 253 {
                refuse("must be no more than 253 bytes");
            }
            if !text.split('.').all(label) {
                refuse(SUBDOMAIN);
            }
        }
    }
    causes
}

/// Removes nulls from metadata, and returns the first field that does not have the type that the code below relies on.
pub(crate) fn misshapen(metadata: &mut Value) -> Option<&'static str> {
    let members = metadata.as_object_mut()?;
    members.retain(|_, value| !value.is_null());
    let texts = |value: &Value| value.as_object().is_some_and(|all| all.values().all(Value::is_string));
    let objects = |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_object));
    let names = |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    let fits = |key: &str, value: &Value| match key {
        "labels" | "annotations" => texts(value),
        "ownerReferences" => objects(value),
        "finalizers" => names(value),
        _ => value.is_string(),
    };
    let parts = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
    ];
    parts.into_iter().find(|part| members.get(*part).is_some_and(|value| !fits(part, value)))
}

/// Finalizers that need no domain before them.
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

/// Lists the errors in an object's labels and finalizers. Only built-in kinds require a domain in the name of a
/// finalizer; for a custom resource the server accepts any qualified name and warns ([`finalizer_warnings`]).
pub(crate) fn metadata_faults(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for value in object["metadata"]["labels"].as_object().into_iter().flat_map(|labels| labels.values()) {
        let text = value.as_str().unwrap_or_default();
        let bytes = text.as_bytes();
        let ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
        let inside = bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
        if !inside || !ends(bytes.first()) || !ends(bytes.last()) {
            causes.push(Cause::invalid("metadata.labels", value, LABEL_VALUE));
        } else if bytes.len() > 63 {
            causes.push(Cause::invalid("metadata.labels", value, "must be no more than 63 bytes"));
        }
    }
    for (index, value) in object["metadata"]["finalizers"].as_array().into_iter().flatten().enumerate() {
        let text = value.as_str().unwrap_or_default();
        if !resource.custom && !text.contains('/') && !STANDARD_FINALIZERS.contains(&text) {
            let what = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(format!("metadata.finalizers[{index}]"), value, what));
        }
    }
    causes
}

/// Lists the warnings about finalizers that a write adds to a custom resource, sorted by name. `before` is the stored
/// object, or null.
pub(crate) fn finalizer_warnings(resource: &Resource, before: &Value, after: &Value) -> Vec<String> {
    if !resource.custom {
        return Vec::new();
    }
    let of = |object: &Value| -> BTreeSet<String> {
        let names = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let is_bare = |name: &&String| !name.contains('/') && !STANDARD_FINALIZERS.contains(&name.as_str());
    let (before, after) = (of(before), of(after));
    let added = after.difference(&before).filter(is_bare).map(|name| {
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts \
             with other finalizer writers"
        )
    });
    added.collect()
}

fn set(object: &mut Value, key: &str, default: Value) {
    if let Some(members) = object.as_object_mut() {
        members.entry(key.to_owned()).or_insert(default);
    }
}

/// Sets a member of a part of the object unless it is there; does nothing if the object lacks the part.
fn fill(object: &mut Value, part: &str, key: &str, default: Value) {
    if let Some(part) = object.get_mut(part) {
        set(part, key, default);
    }
}

/// Adds the defaults that clients of the built-in kinds wait for or show.
pub(crate) fn default(resource: &Resource, object: &mut Value) {
    match (&*resource.group, &*resource.plural) {
        ("", "namespaces") => {
            set(object, "spec", json!({}));
            set(object, "status", json!({}));
            fill(object, "status", "phase", json!("Active"));
            let name = object["metadata"]["name"].clone();
            fill(object, "metadata", "labels", json!({}));
            if let Some(labels) = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
                labels.insert("kubernetes.io/metadata.name".to_owned(), name);
            }
        }
        ("", "pods") => {
            let Some(spec) = object.get_mut("spec") else { return };
            pod_spec(spec);
            set(object, "status", json!({}));
            fill(object, "status", "phase", json!("Pending"));
            let class = quality(&object["spec"]);
            fill(object, "status", "qosClass", json!(class));
        }
        ("", "secrets") => set(object, "type", json!("Opaque")),
        ("", "services") => service(object),
        ("", "persistentvolumeclaims") => {
            fill(object, "spec", "volumeMode", json!("Filesystem"));
            set(object, "status", json!({}));
            fill(object, "status", "phase", json!("Pending"));
        }
        ("", "persistentvolumes") => {
            fill(object, "spec", "volumeMode", json!("Filesystem"));
            fill(object, "spec", "persistentVolumeReclaimPolicy", json!("Retain"));
            set(object, "status", json!({}));
            fill(object, "status", "phase", json!("Available"));
        }
        ("apps", "deployments") => {
            let Some(spec) = object.get_mut("spec") else { return };
            set(spec, "replicas", json!(1));
            set(spec, "revisionHistoryLimit", json!(10));
            set(spec, "progressDeadlineSeconds", json!(600));
            set(spec, "strategy", json!({"type": "RollingUpdate"}));
            fill(spec, "strategy", "type", json!("RollingUpdate"));
            if spec["strategy"]["type"] == "RollingUpdate" {
                fill(spec, "strategy", "rollingUpdate", json!({}));
                if let Some(rolling) =
                    spec.get_mut("strategy").and_then(|strategy| strategy.get_mut("rollingUpdate"))
                {
                    set(rolling, "maxUnavailable", json!("25%"));
                    set(rolling, "maxSurge", json!("25%"));
                }
            }
            template(spec);
            set(object, "status", json!({}));
        }
        ("apps", "replicasets") => {
            fill(object, "spec", "replicas", json!(1));
            object.get_mut("spec").map(template);
            set(object, "status", json!({"replicas": 0}));
        }
        ("apps", "statefulsets") => {
            let Some(spec) = object.get_mut("spec") else { return };
            set(spec, "replicas", json!(1));
            set(spec, "revisionHistoryLimit", json!(10));
            set(spec, "podManagementPolicy", json!("OrderedReady"));
            strategy(spec, json!({"partition": 0}));
            template(spec);
            set(object, "status", json!({"replicas": 0, "availableReplicas": 0}));
        }
        ("apps", "daemonsets") => {
            let Some(spec) = object.get_mut("spec") else { return };
            set(spec, "revisionHistoryLimit", json!(10));
            strategy(spec, json!({"maxUnavailable": 1, "maxSurge": 0}));
            template(spec);
            let status = json!({
                "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0,
            });
            set(object, "status", status);
        }
        ("batch", "jobs") => {
            job_selector(object);
            let Some(spec) = object.get_mut("spec") else { return };
            // Parallelism without completions means a work queue.
            if spec.get("parallelism").is_none() {
                set(spec, "completions", json!(1));
            }
            set(spec, "parallelism", json!(1));
            set(spec, "podReplacementPolicy", json!("TerminatingOrFailed"));
            set(spec, "manualSelector", json!(false));
            set(spec, "backoffLimit", json!(6));
            set(spec, "completionMode", json!("NonIndexed"));
            set(spec, "suspend", json!(false));
            template(spec);
            set(object, "status", json!({}));
        }
        ("batch", "cronjobs") => {
            let Some(spec) = object.get_mut("spec") else { return };
            set(spec, "concurrencyPolicy", json!("Allow"));
            set(spec, "suspend", json!(false));
            set(spec, "successfulJobsHistoryLimit", json!(3));
            set(spec, "failedJobsHistoryLimit", json!(1));
            set(object, "status", json!({}));
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => crate::crd::default(object),
        ("autoscaling", "horizontalpodautoscalers") => {
            fill(object, "spec", "minReplicas", json!(1));
        }
        _ => {}
    }
}

/// Resets the status of a new object of a built-in kind, whatever its creator wrote.
pub(crate) fn fresh_status(resource: &Resource, object: &mut Value) {
    // Nodes keep theirs: kubelets create their Node with it.
    let keeps = matches!((&*resource.group, &*resource.plural), ("", "nodes"));
    let has_status = resource.versions.iter().any(|version| version.status);
    if has_status
        && !keeps
        && let Some(members) = object.as_object_mut()
    {
        members.remove("status");
    }
}

/// Adds the default update strategy of a StatefulSet or a DaemonSet.
fn strategy(spec: &mut Value, rolling: Value) {
    set(spec, "updateStrategy", json!({}));
    fill(spec, "updateStrategy", "type", json!("RollingUpdate"));
    if spec["updateStrategy"]["type"] == "RollingUpdate" {
        fill(spec, "updateStrategy", "rollingUpdate", json!({}));
        let parts = spec.get_mut("updateStrategy").and_then(|strategy| strategy.get_mut("rollingUpdate"));
        if let (Some(parts), Value::Object(defaults)) = (parts, rolling) {
            for (key, value) in defaults {
                set(parts, &key, value);
            }
        }
    }
}

/// Labels the Pods of a Job so that no other Job adopts them, unless the Job has a selector of its own.
fn job_selector(object: &mut Value) {
    let (name, uid) = (object["metadata"]["name"].clone(), object["metadata"]["uid"].clone());
    let Some(spec) = object.get_mut("spec") else { return };
    let has_own = spec["manualSelector"] == true || spec.get("selector").is_some();
    if has_own || !spec["template"].is_object() || !uid.is_string() {
        return;
    }
    fill(spec, "template", "metadata", json!({}));
    let Some(metadata) = spec.pointer_mut("/template/metadata").filter(|metadata| metadata.is_object())
    else {
        return;
    };
    set(metadata, "labels", json!({}));
    for prefix in ["", "batch.kubernetes.io/"] {
        fill(metadata, "labels", &format!("{prefix}controller-uid"), uid.clone());
        fill(metadata, "labels", &format!("{prefix}job-name"), name.clone());
    }
    set(spec, "selector", json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}));
}

fn template(spec: &mut Value) {
    if !spec["template"].is_object() {
        return;
    }
    fill(spec, "template", "metadata", json!({}));
    if let Some(spec) = spec.get_mut("template").and_then(|template| template.get_mut("spec")) {
        pod_spec(spec);
    }
}

fn pod_spec(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    set(spec, "restartPolicy", json!("Always"));
    set(spec, "terminationGracePeriodSeconds", json!(30));
    set(spec, "dnsPolicy", json!("ClusterFirst"));
    set(spec, "securityContext", json!({}));
    set(spec, "schedulerName", json!("default-scheduler"));
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            set(container, "resources", json!({}));
            set(container, "terminationMessagePath", json!("/dev/termination-log"));
            set(container, "terminationMessagePolicy", json!("File"));
            let image = container["image"].as_str().unwrap_or_default();
            let tag = image.rsplit('/').next().unwrap_or_default().split_once(':').map(|(_, tag)| tag);
            let policy = if matches!(tag, None | Some("latest")) { "Always" } else { "IfNotPresent" };
            set(container, "imagePullPolicy", json!(policy));
            let ports = container.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten() {
                set(port, "protocol", json!("TCP"));
            }
        }
    }
}

/// Returns the quality-of-service class of a Pod.
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
    let Some(spec) = object.get_mut("spec") else { return };
    if !spec.is_object() {
        return;
    }
    set(spec, "type", json!("ClusterIP"));
    set(spec, "sessionAffinity", json!("None"));
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        set(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        set(port, "targetPort", number);
    }
    if spec["type"] != "ExternalName" && spec.get("clusterIP").is_none() {
        // Derived from the uid, so that it is the same in every run with the same seed.
        let sum = uid.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let address = format!("10.96.{}.{}", (sum >> 8) % 250 + 1, sum % 250 + 1);
        set(spec, "clusterIPs", json!([address.clone()]));
        set(spec, "clusterIP", json!(address));
        set(spec, "ipFamilies", json!(["IPv4"]));
        set(spec, "ipFamilyPolicy", json!("SingleStack"));
        set(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    set(object, "status", json!({"loadBalancer": {}}));
}

/// Adds the finalizer by which a namespace stays until its objects are gone.
pub(crate) fn keep_by_kubernetes(resource: &Resource, object: &mut Value) {
    if resource.is("", "namespaces")
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.insert("finalizers".to_owned(), json!(["kubernetes"]));
    }
}

/// Returns true if neither a finalizer nor a grace period delays the deletion of an object.
pub(crate) fn is_free(resource: &Resource, object: &Value) -> bool {
    let none = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    none(&object["metadata"]["finalizers"])
        && object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
        && (!resource.is("", "namespaces") || none(&object["spec"]["finalizers"]))
}

/// Refuses new finalizers on an object that is being deleted.
pub(crate) fn check_finalizers(target: &Target, before: &Value, after: &Value) -> Answered<()> {
    let of = |object: &Value| object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let old = of(before);
    let new: Vec<String> =
        of(after).iter().filter(|name| !old.contains(name)).map(Value::to_string).collect();
    if new.is_empty() {
        return Ok(());
    }
    let what = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        new.join(", ")
    );
    Err(target.invalid(&target.name, vec![Cause::forbidden("metadata.finalizers", &what)]))
}
