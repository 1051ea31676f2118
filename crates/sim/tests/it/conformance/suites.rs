//! Cases about what Kubernetes' and Flux' own tests of server-side apply found.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::managers::are;
use crate::api::{Api, MERGE, Reply};

/// The form of an apply.
const APPLY: &str = "application/apply-patch+yaml";

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

super::cases! { "suites":
    SameStaysSame an_update_without_defaults_is_no_change,
    SameStaysSame an_apply_with_null_metadata_is_no_change,
    ManagersReset an_empty_list_removes_the_managers,
    ManagedFields the_count_of_templates_belongs_to_the_creator,
    StoreLimit a_large_object_has_no_managers,
    StoreLimit an_apply_to_a_large_object_is_refused,
    ServerSideApply a_scale_is_applied,
    ApplyConflicts an_applied_scale_conflicts_with_the_parent,
    SecretTexts texts_of_a_secret_become_data,
    ImmutableFields parameters_of_a_storage_class_cannot_change,
    RequiredFields a_container_needs_an_image,
    RequiredFields a_service_needs_a_known_type,
    EscalationRefused a_binding_needs_its_role,
    EscalationRefused nobody_grants_what_they_lack,
    CustomDefaults a_new_default_is_in_stored_objects,
}

async fn apply(api: &Api, path: &str, manager: &str, config: Value) -> Result<Reply> {
    let separator = if path.contains('?') { '&' } else { '?' };
    api.patch(&format!("{path}{separator}fieldManager={manager}"), APPLY, config).await
}

async fn workloads(api: &Api, plural: &str) -> Result<String> {
    Ok(format!("/apis/apps/v1/namespaces/{}/{plural}", api.namespace().await?))
}

async fn an_update_without_defaults_is_no_change(api: &Api) -> Result<()> {
    // A claim in the place of storage that nothing provides, so that no controller writes meanwhile.
    let maps = api.maps().await?;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1"}});
    let first = api.post(&format!("{maps}?fieldManager=ann"), map.clone()).await?.ok()?;
    let again = api.put(&format!("{maps}/a?fieldManager=ann"), map).await?.ok()?;
    ensure!(first.version() == again.version(), "{}", again.body);
    let path = workloads(api, "statefulsets").await?;
    let mut set = crate::api::deployment("db");
    set["kind"] = json!("StatefulSet");
    set["spec"]["serviceName"] = json!("db");
    let first = api.post(&path, set.clone()).await?.ok()?;
    let again = api.put(&format!("{path}/db"), set).await?.ok()?;
    ensure!(first.at("/metadata/generation") == again.at("/metadata/generation"), "{}", again.body);
    Ok(())
}

async fn an_apply_with_null_metadata_is_no_change(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
        "metadata": {"name": "a", "creationTimestamp": null, "resourceVersion": null}});
    let first = apply(api, &path, "ann", config.clone()).await?.ok()?;
    let again = apply(api, &path, "ann", config).await?.ok()?;
    ensure!(first.version() == again.version(), "{}", again.body);
    Ok(())
}

async fn an_empty_list_removes_the_managers(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    let mut map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1"}});
    apply(api, &path, "ann", map.clone()).await?.ok()?;
    map["metadata"]["managedFields"] = json!([]);
    let reset = api.put(&path, map).await?.ok()?;
    ensure!(reset.at("/metadata/managedFields").is_null(), "{}", reset.body);
    Ok(())
}

async fn the_count_of_templates_belongs_to_the_creator(api: &Api) -> Result<()> {
    const COUNT: &str = "/metadata/annotations/deprecated.daemonset.template.generation";
    let path = workloads(api, "daemonsets").await?;
    let mut set = crate::api::deployment("agent");
    set["kind"] = json!("DaemonSet");
    set["spec"]["replicas"].take();
    // No node has the label, so there are no Pods.
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({"nobody": "has-it"});
    let created = api.post(&format!("{path}?fieldManager=ann"), set).await?.ok()?;
    created.is(COUNT, "1")?;
    let entries = created.at("/metadata/managedFields").as_array().cloned().unwrap_or_default();
    let owned = &entries.first().map(|entry| entry["fieldsV1"]["f:metadata"]["f:annotations"].clone());
    let wanted = json!({".": {}, "f:deprecated.daemonset.template.generation": {}});
    ensure!(owned.as_ref() == Some(&wanted), "{entries:?}");
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}});
    api.patch(&format!("{path}/agent"), MERGE, patch).await?.ok()?.is(COUNT, "2")?;
    let patch = json!({"metadata": {"annotations": null}});
    api.patch(&format!("{path}/agent"), MERGE, patch).await?.ok()?.is(COUNT, "2")?;
    Ok(())
}

/// Returns a ConfigMap that fits into the store without the managers of an apply, but not with them.
fn large(name: &str) -> Value {
    let key = |number: usize| {
        format!("a-long-key-makes-the-managers-as-large-as-the-object-itself-which-is-{number}")
    };
    let data: Value =
        (0..9999).map(|number| (key(number), json!("a"))).collect::<serde_json::Map<_, _>>().into();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

async fn a_large_object_has_no_managers(api: &Api) -> Result<()> {
    let created = api.post(&api.maps().await?, large("a")).await?.ok()?;
    ensure!(created.at("/metadata/managedFields").is_null(), "an object without room for managers has some");
    Ok(())
}

async fn an_apply_to_a_large_object_is_refused(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, large("a")).await?.ok()?;
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let refused = apply(api, &format!("{maps}/a"), "ann", config).await?;
    ensure!(refused.code == 500, "{}", refused.code);
    ensure!(refused.text_at("/message").contains("etcdserver: request is too large"), "{}", refused.body);
    Ok(())
}

fn scale(replicas: u32) -> Value {
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": replicas}})
}

async fn a_scale_is_applied(api: &Api) -> Result<()> {
    let path = workloads(api, "deployments").await?;
    api.post(&path, crate::api::deployment("web")).await?.ok()?;
    let scaled = apply(api, &format!("{path}/web/scale?force=true"), "ann", scale(1)).await?.ok()?;
    scaled.is("/kind", "Scale")?.is("/spec/replicas", 1)?;
    let parent = api.get(&format!("{path}/web")).await?.ok()?;
    parent.is("/spec/replicas", 1)?;
    are(&parent, "ann", "scale", &json!({"f:spec": {"f:replicas": {}}}))?;
    Ok(())
}

async fn an_applied_scale_conflicts_with_the_parent(api: &Api) -> Result<()> {
    let path = workloads(api, "deployments").await?;
    apply(api, &format!("{path}/web"), "bob", crate::api::deployment("web")).await?.ok()?;
    let refused = apply(api, &format!("{path}/web/scale"), "ann", scale(3)).await?;
    let why = "Apply failed with 1 conflict: conflict with \"bob\": .spec.replicas";
    refused.fails(409, "Conflict", why)?;
    Ok(())
}

async fn texts_of_a_secret_become_data(api: &Api) -> Result<()> {
    let path = format!("/api/v1/namespaces/{}/secrets", api.namespace().await?);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "immutable": true, "stringData": {"key": "word"}});
    let created = api.post(&path, secret.clone()).await?.ok()?;
    created.is("/data/key", "d29yZA==")?;
    ensure!(created.at("/stringData").is_null(), "{}", created.body);
    apply(api, &format!("{path}/a"), "ann", secret).await?.ok()?;
    let patch = json!({"stringData": {"key": "other"}});
    let refused = api.patch(&format!("{path}/a"), MERGE, patch).await?;
    refused.fails(422, "Invalid", "data: Forbidden: field is immutable when `immutable` is set")?;
    Ok(())
}

async fn parameters_of_a_storage_class_cannot_change(api: &Api) -> Result<()> {
    let name = api.unique("class");
    // A namespace in the object counts for nothing.
    let class = json!({"metadata": {"name": name, "namespace": "any"}, "provisioner": "example.com/none", "parameters": {"a": "1"}});
    let created = api.post("/apis/storage.k8s.io/v1/storageclasses", class).await?.ok()?;
    ensure!(created.at("/metadata/namespace").is_null(), "{}", created.body);
    let patch = json!({"parameters": {"a": "2"}});
    let refused = api.patch(&format!("/apis/storage.k8s.io/v1/storageclasses/{name}"), MERGE, patch).await?;
    refused.fails(422, "Invalid", "parameters: Invalid value: {\"a\":\"2\"}: field is immutable")?;
    Ok(())
}

async fn a_container_needs_an_image(api: &Api) -> Result<()> {
    let path = workloads(api, "deployments").await?;
    let mut deployment = crate::api::deployment("web");
    deployment["spec"]["template"]["spec"]["containers"] = json!([{"name": "main"}]);
    let refused = api.post(&path, deployment.clone()).await?;
    refused.fails(422, "Invalid", "spec.template.spec.containers[0].image: Required value")?;
    deployment["spec"]["template"]["spec"]["containers"] = json!([]);
    let refused = api.post(&path, deployment).await?;
    refused.fails(422, "Invalid", "spec.template.spec.containers: Required value")?;
    Ok(())
}

async fn a_service_needs_a_known_type(api: &Api) -> Result<()> {
    let path = format!("/api/v1/namespaces/{}/services", api.namespace().await?);
    let service = json!({"metadata": {"name": "a"}, "spec": {"type": "Other", "ports": [{"port": 80}]}});
    let why = "spec.type: Unsupported value: \"Other\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"";
    api.post(&path, service).await?.fails(422, "Invalid", why)?;
    Ok(())
}

/// Lets the reader write roles and bindings in a new namespace, and returns it.
async fn granted(api: &Api) -> Result<String> {
    let namespace = api.namespace().await?;
    let roles = format!("{RBAC}/namespaces/{namespace}");
    let rule = json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["create"]});
    api.post(&format!("{roles}/roles"), json!({"metadata": {"name": "granter"}, "rules": [rule]}))
        .await?
        .ok()?;
    let subject = json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "reader"});
    api.post(&format!("{roles}/rolebindings"), binding("granter", subject)).await?.ok()?;
    Ok(namespace)
}

fn binding(role: &str, subject: Value) -> Value {
    let reference = json!({"kind": "Role", "apiGroup": "rbac.authorization.k8s.io", "name": role});
    json!({"metadata": {"name": role}, "subjects": [subject], "roleRef": reference})
}

async fn a_binding_needs_its_role(api: &Api) -> Result<()> {
    let path = format!("{RBAC}/namespaces/{}/rolebindings", granted(api).await?);
    let subject = json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "x"});
    let why = "rolebindings.rbac.authorization.k8s.io \"absent\" not found";
    api.until("the role counts", || async {
        let call = api.call(Method::POST, &path).by_reader();
        let reply = call.json(binding("absent", subject.clone())).send().await?;
        if reply.code == 403 && reply.text_at("/message").contains("cannot create") {
            return Ok(false);
        }
        reply.fails(404, "NotFound", why)?;
        Ok(true)
    })
    .await
}

async fn nobody_grants_what_they_lack(api: &Api) -> Result<()> {
    let path = format!("{RBAC}/namespaces/{}/roles", granted(api).await?);
    let role = |resource: &str, verb: &str| {
        let rule = json!({"apiGroups": [if resource == "pods" { "" } else { "rbac.authorization.k8s.io" }], "resources": [resource], "verbs": [verb]});
        json!({"metadata": {"name": resource}, "rules": [rule]})
    };
    api.until("the role counts", || async {
        let call = api.call(Method::POST, &path).by_reader();
        let reply = call.json(role("pods", "get")).send().await?;
        if reply.code == 403 && reply.text_at("/message").contains("cannot create") {
            return Ok(false);
        }
        let why = "is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}";
        reply.fails(403, "Forbidden", why)?;
        Ok(true)
    })
    .await?;
    api.call(Method::POST, &path).by_reader().json(role("roles", "create")).send().await?.ok()?;
    Ok(())
}

async fn a_new_default_is_in_stored_objects(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    api.post(&widgets.path, widgets.widget("a", json!({"size": 1}))).await?.ok()?;
    let group = widgets.path.split('/').nth(2).unwrap_or_default();
    let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}");
    let new = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/hue",
        "value": {"type": "string", "default": "red"}}]);
    api.patch(&definition, crate::api::JSON_PATCH, new).await?.ok()?;
    let path = format!("{}/a", widgets.path);
    api.until("the default is there", || async { Ok(api.get(&path).await?.ok()?.at("/spec/hue") == "red") })
        .await
}
