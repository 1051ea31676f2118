//! The endpoints of Services, in EndpointSlices and Endpoints.

use std::sync::Arc;

use serde_json::{Value, json};
use taffrail_object::LabelSelector;

use super::pods::{is_ending, is_finished, is_ready};
use super::{all, controller, create, is_scripted, text};
use crate::selector::is_selected;
use crate::state::Inner;

pub(super) fn reconcile(inner: &Arc<Inner>, namespace: &str) {
    const MANAGED: &str = "endpoints.kubernetes.io/managed-by";
    let services = all(inner, "", "services", namespace);
    for endpoints in all(inner, "", "endpoints", namespace) {
        let name = &endpoints["metadata"]["name"];
        let orphaned = services.iter().all(|service| service["metadata"]["name"] != *name);
        if orphaned
            && endpoints["metadata"]["labels"].get(MANAGED).is_some()
            && let Some(target) = inner.target("", "endpoints", namespace, &text(name))
        {
            inner.remove(&target);
        }
    }
    if services.iter().all(|service| service["spec"]["selector"].is_null()) {
        return;
    }
    let pods = all(inner, "", "pods", namespace);
    for service in
        services.iter().filter(|service| !service["spec"]["selector"].is_null() && !is_scripted(service))
    {
        write(inner, service, &pods);
    }
}

fn write(inner: &Inner, service: &Value, pods: &[Value]) {
    let (namespace, name) = (text(&service["metadata"]["namespace"]), text(&service["metadata"]["name"]));
    let selector = LabelSelector::of_labels(service.pointer("/spec/selector").map(Into::into));
    let mut endpoints = Vec::new();
    let (mut ready_addresses, mut other_addresses) = (Vec::new(), Vec::new());
    for pod in pods.iter().filter(|pod| is_selected(pod, &selector)) {
        let Some(ip) = pod["status"]["podIP"].as_str().filter(|_| !is_finished(pod)) else { continue };
        let (is_ready, terminating) = (is_ready(pod), is_ending(pod));
        let reference = json!({
            "kind": "Pod", "namespace": namespace, "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"],
        });
        let ready = is_ready && !terminating;
        endpoints.push(json!({
            "addresses": [ip], "nodeName": pod["spec"]["nodeName"], "targetRef": reference,
            "conditions": {"ready": ready, "serving": is_ready, "terminating": terminating},
        }));
        let address = json!({"ip": ip, "nodeName": pod["spec"]["nodeName"], "targetRef": reference});
        if ready { ready_addresses.push(address) } else { other_addresses.push(address) }
    }
    let ports: Vec<Value> = service["spec"]["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|port| {
            let number = port["targetPort"].as_i64().map_or_else(|| port["port"].clone(), |number| json!(number));
            json!({"name": port["name"].as_str().unwrap_or_default(), "port": number, "protocol": port["protocol"]})
        })
        .collect();
    create(
        inner,
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {
                "name": format!("{name}-sim"), "namespace": namespace,
                "labels": {
                    "kubernetes.io/service-name": name,
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                },
                "ownerReferences": controller("v1", "Service", service),
            },
            "endpoints": endpoints, "ports": ports,
        }),
    );
    let mut subset = json!({"ports": ports});
    for (key, addresses) in [("addresses", ready_addresses), ("notReadyAddresses", other_addresses)] {
        if !addresses.is_empty() {
            subset[key] = json!(addresses);
        }
    }
    let empty = subset.as_object().is_some_and(|subset| subset.len() == 1);
    create(
        inner,
        json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {
                "name": name, "namespace": namespace,
                "labels": {"endpoints.kubernetes.io/managed-by": "endpoint-controller"},
            },
            "subsets": if empty { json!([]) } else { json!([subset]) },
        }),
    );
}
