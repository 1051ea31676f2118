//! Cases about field managers, which record the writer of each field.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::api::{Api, JSON, MERGE, Reply};

super::cases! { "managers":
    ManagedFields creator_manages_all_fields_it_wrote,
    ManagedFields a_changed_field_has_another_manager,
    ManagedFields a_scale_has_a_manager_of_its_own,
    ManagedFields a_status_has_managers_of_its_own,
}

/// Returns `fieldsV1` of a manager for a subresource (empty for the object itself) in the answered object; null if the
/// manager has no entry.
fn fields<'r>(reply: &'r Reply, manager: &str, subresource: &str) -> &'r Value {
    let entries = reply.at("/metadata/managedFields").as_array();
    let found = entries.into_iter().flatten().find(|entry| {
        entry["manager"] == manager && entry["subresource"].as_str().unwrap_or_default() == subresource
    });
    found.map_or(&Value::Null, |entry| &entry["fieldsV1"])
}

/// Fails unless a manager owns exactly these fields.
pub(super) fn are(reply: &Reply, manager: &str, subresource: &str, wanted: &Value) -> Result<()> {
    let found = fields(reply, manager, subresource);
    ensure!(
        found == wanted,
        "{manager}: {found} is not {wanted}, in {}",
        reply.at("/metadata/managedFields")
    );
    Ok(())
}

async fn send(
    api: &Api,
    method: Method,
    path: &str,
    manager: &str,
    form: &'static str,
    body: Value,
) -> Result<Reply> {
    let call = api.call(method, path).header("user-agent", &format!("{manager}/v1.2.3 (linux/amd64)"));
    call.body(form, body.to_string()).send().await?.ok()
}

fn labels() -> Value {
    json!({".": {}, "f:app": {}})
}

async fn creator_manages_all_fields_it_wrote(api: &Api) -> Result<()> {
    let namespace = api.namespace().await?;
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{
                "name": "web", "image": "example.com/web:1", "args": ["--port", "80"], "ports": [{"containerPort": 80}],
                "env": [{"name": "A", "value": "b"}], "resources": {"requests": {"cpu": "1m"}},
            }]},
        }},
    });
    let created = send(api, Method::POST, &path, "creator", JSON, deployment).await?;
    let wanted = json!({
        "f:metadata": {"f:labels": labels()},
        "f:spec": {
            "f:progressDeadlineSeconds": {}, "f:replicas": {}, "f:revisionHistoryLimit": {}, "f:selector": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}, "f:type": {}},
            "f:template": {
                "f:metadata": {"f:labels": labels()},
                "f:spec": {
                    "f:containers": {r#"k:{"name":"web"}"#: {
                        ".": {}, "f:args": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {},
                        "f:env": {".": {}, r#"k:{"name":"A"}"#: {".": {}, "f:name": {}, "f:value": {}}},
                        "f:ports": {".": {}, r#"k:{"containerPort":80,"protocol":"TCP"}"#: {
                            ".": {}, "f:containerPort": {}, "f:protocol": {},
                        }},
                        "f:resources": {".": {}, "f:requests": {".": {}, "f:cpu": {}}},
                        "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {},
                    }},
                    "f:dnsPolicy": {}, "f:restartPolicy": {}, "f:schedulerName": {}, "f:securityContext": {},
                    "f:terminationGracePeriodSeconds": {},
                },
            },
        },
    });
    are(&created, "creator", "", &wanted)?;
    let entry = &created.at("/metadata/managedFields")[0];
    ensure!(
        entry["operation"] == "Update"
            && entry["apiVersion"] == "apps/v1"
            && entry["fieldsType"] == "FieldsV1",
        "{entry}"
    );
    ensure!(entry["time"].is_string(), "{entry}");
    Ok(())
}

async fn a_changed_field_has_another_manager(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1", "b": "1", "c": "1"}});
    send(api, Method::POST, &maps, "creator", JSON, map).await?;
    let one = format!("{maps}/a?fieldManager=changer");
    let patch = json!({"data": {"a": "2", "b": null, "c": "1", "d": "1"}});
    let changed = send(api, Method::PATCH, &one, "nobody", MERGE, patch).await?;
    are(&changed, "creator", "", &json!({"f:data": {".": {}, "f:c": {}}}))?;
    are(&changed, "changer", "", &json!({"f:data": {"f:a": {}, "f:d": {}}}))?;
    let same = send(api, Method::PATCH, &one, "nobody", MERGE, json!({"data": {"c": "1"}})).await?;
    ensure!(same.at("/metadata/managedFields") == changed.at("/metadata/managedFields"), "{}", same.body);
    // A manager without fields is no longer listed.
    let patch = json!({"data": {"c": null}});
    let changed = send(api, Method::PATCH, &one, "nobody", MERGE, patch).await?;
    are(&changed, "creator", "", &json!({"f:data": {}}))?;
    Ok(())
}

async fn a_scale_has_a_manager_of_its_own(api: &Api) -> Result<()> {
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", api.namespace().await?);
    let mut deployment = crate::api::deployment("web");
    deployment["spec"]["replicas"] = json!(0);
    send(api, Method::POST, &path, "creator", JSON, deployment).await?;
    let scale = format!("{path}/web/scale");
    send(api, Method::PATCH, &scale, "kubectl", MERGE, json!({"spec": {"replicas": 1}})).await?;
    let scaled = api.get(&format!("{path}/web")).await?.ok()?;
    are(&scaled, "kubectl", "scale", &json!({"f:spec": {"f:replicas": {}}}))?;
    // The API server loses the time on the way from the Scale object to its parent, however often it is scaled.
    send(api, Method::PATCH, &scale, "kubectl", MERGE, json!({"spec": {"replicas": 2}})).await?;
    for object in [&scaled, &api.get(&format!("{path}/web")).await?.ok()?] {
        let entries = object.at("/metadata/managedFields").as_array();
        let of_scale = entries.into_iter().flatten().find(|entry| entry["subresource"] == "scale");
        ensure!(of_scale.is_some_and(|entry| entry.get("time").is_none()), "{}", object.body);
    }
    ensure!(fields(&scaled, "creator", "")["f:spec"].get("f:replicas").is_none(), "{}", scaled.body);
    Ok(())
}

async fn a_status_has_managers_of_its_own(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let mut widget = widgets.widget("a", json!({"size": 1}));
    widget["metadata"]["finalizers"] = json!(["example.com/keep"]);
    let created = send(api, Method::POST, &widgets.path, "creator", JSON, widget).await?;
    let wanted = json!({
        "f:metadata": {"f:finalizers": {".": {}, r#"v:"example.com/keep""#: {}}},
        "f:spec": {".": {}, "f:shape": {}, "f:size": {}},
    });
    are(&created, "creator", "", &wanted)?;
    let status = format!("{}/a/status", widgets.path);
    let patch = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}], "of": {"a": 1}}});
    let changed = send(api, Method::PATCH, &status, "controller", MERGE, patch).await?;
    are(&changed, "creator", "", &wanted)?;
    let wanted = json!({"f:status": {".": {}, "f:conditions": {}, "f:of": {".": {}, "f:a": {}}}});
    are(&changed, "controller", "status", &wanted)?;
    Ok(())
}
