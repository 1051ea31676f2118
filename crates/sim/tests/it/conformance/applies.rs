//! Cases about server-side apply.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::managers::are;
use crate::api::{Api, MERGE, Reply};

/// The form of an apply.
const APPLY: &str = "application/apply-patch+yaml";

super::cases! { "applies":
    ApplyCreates apply_creates_an_object_and_owns_its_fields,
    ApplyCreates apply_with_a_uid_creates_nothing,
    ServerSideApply apply_removes_what_it_no_longer_wants,
    ServerSideApply the_same_apply_again_is_no_change,
    ServerSideApply equal_values_have_two_owners,
    ServerSideApply lists_are_merged_by_their_keys,
    ServerSideApply custom_kinds_state_the_types_of_their_lists,
    ServerSideApply apply_is_read_as_yaml,
    ServerSideApply apply_that_cannot_be_read_is_refused,
    ServerSideApply fields_that_the_schema_does_not_have_are_refused,
    ServerSideApply what_nobody_owns_belongs_to_the_time_before_the_first_apply,
    ApplyConflicts conflict_names_the_field_and_its_owner,
    ApplyConflicts several_conflicts_are_listed_by_owner,
    ApplyForce force_takes_fields_of_others,
    ApplyUpgrades kubectl_takes_what_its_client_side_apply_wrote,
    ResetFields apply_owns_no_status,
    ServerSideApply status_is_applied_by_itself,
    DryRunCreate dry_run_of_an_apply_creates_nothing,
    DryRunUpdate dry_run_of_an_apply_changes_nothing,
    UpdateConflicts apply_with_an_outdated_version_conflicts,
    UidIsKept apply_with_another_uid_is_refused,
    Authorization apply_that_creates_takes_the_right_to_create,
    ManagersReset one_empty_entry_removes_the_managers,
    ManagersCapped oldest_updates_are_merged,
    ManagerNameChecked long_names_of_managers_are_refused,
}

async fn apply(api: &Api, path: &str, manager: &str, config: Value) -> Result<Reply> {
    let separator = if path.contains('?') { '&' } else { '?' };
    api.patch(&format!("{path}{separator}fieldManager={manager}"), APPLY, config).await
}

fn map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

async fn apply_creates_an_object_and_owns_its_fields(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    let created = apply(api, &path, "ann", map(json!({"a": "1"}))).await?;
    ensure!(created.code == 201, "{}: {}", created.code, created.body);
    are(&created, "ann", "", &json!({"f:data": {"f:a": {}}}))?;
    let entry = &created.at("/metadata/managedFields")[0];
    ensure!(
        entry["operation"] == "Apply" && entry["apiVersion"] == "v1" && entry["time"].is_string(),
        "{entry}"
    );
    let again = apply(api, &path, "ann", map(json!({"a": "2"}))).await?;
    ensure!(again.code == 200, "{}: {}", again.code, again.body);
    again.is("/data/a", "2")?;
    Ok(())
}

async fn apply_with_a_uid_creates_nothing(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    let mut config = map(json!({}));
    config["metadata"]["uid"] = json!("1-2");
    let why = "uid mismatch: the provided object specified uid 1-2, and no existing object was found";
    apply(api, &path, "ann", config).await?.fails(409, "Conflict", why)?;
    ensure!(api.get(&path).await?.code == 404);
    apply(api, &path, "ann", map(json!({}))).await?.ok()?;
    Ok(())
}

async fn apply_removes_what_it_no_longer_wants(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    apply(api, &path, "ann", map(json!({"a": "1", "b": "1"}))).await?.ok()?;
    apply(api, &path, "bob", map(json!({"c": "1"}))).await?.ok()?;
    let applied = apply(api, &path, "ann", map(json!({"a": "1", "d": "1"}))).await?.ok()?;
    applied.is("/data", json!({"a": "1", "c": "1", "d": "1"}))?;
    are(&applied, "ann", "", &json!({"f:data": {"f:a": {}, "f:d": {}}}))?;
    are(&applied, "bob", "", &json!({"f:data": {"f:c": {}}}))?;
    Ok(())
}

async fn the_same_apply_again_is_no_change(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    let first = apply(api, &path, "ann", map(json!({"a": "1"}))).await?.ok()?;
    let again = apply(api, &path, "ann", map(json!({"a": "1"}))).await?.ok()?;
    ensure!(first.version() == again.version(), "{}", again.body);
    ensure!(first.at("/metadata/managedFields") == again.at("/metadata/managedFields"), "{}", again.body);
    Ok(())
}

async fn equal_values_have_two_owners(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    apply(api, &path, "ann", map(json!({"a": "1"}))).await?.ok()?;
    let both = apply(api, &path, "bob", map(json!({"a": "1"}))).await?.ok()?;
    are(&both, "ann", "", &json!({"f:data": {"f:a": {}}}))?;
    are(&both, "bob", "", &json!({"f:data": {"f:a": {}}}))?;
    // The object did not change by it, so the owner has no time.
    let entries = both.at("/metadata/managedFields").as_array().cloned().unwrap_or_default();
    let of_bob = entries.iter().find(|entry| entry["manager"] == "bob");
    ensure!(of_bob.is_some_and(|entry| entry.get("time").is_none()), "{entries:?}");
    // What one of them gives up stays, for the other one wants it.
    let left = apply(api, &path, "ann", map(json!({}))).await?.ok()?;
    left.is("/data", json!({"a": "1"}))?;
    let gone = apply(api, &path, "bob", map(json!({}))).await?.ok()?;
    ensure!(gone.at("/data/a").is_null(), "{}", gone.body);
    Ok(())
}

async fn lists_are_merged_by_their_keys(api: &Api) -> Result<()> {
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", api.namespace().await?);
    let mut config = crate::api::deployment("web");
    config["spec"]["replicas"] = json!(0);
    let containers = json!([{"name": "main", "image": "example.com/main:1", "args": ["a", "b"], "ports": [{"containerPort": 80}],
        "env": [{"name": "A", "value": "1"}]}]);
    config["spec"]["template"]["spec"] = json!({ "containers": containers });
    apply(api, &path, "ann", config.clone()).await?.ok()?;
    let side = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"team": "x"}},
        "spec": {"template": {"spec": {"containers": [
            {"name": "side", "image": "example.com/side:1"}, {"name": "main", "env": [{"name": "B", "value": "2"}]}]}}}});
    let merged = apply(api, &path, "bob", side).await?.ok()?;
    let containers = merged.at("/spec/template/spec/containers").as_array().cloned().unwrap_or_default();
    let names = |items: &Value| -> Vec<String> {
        let items = items.as_array().into_iter().flatten();
        items.map(|item| item["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let mut found = names(&json!(containers));
    found.sort();
    ensure!(found == ["main", "side"], "{}", merged.body);
    let main = containers.iter().find(|container| container["name"] == "main").cloned().unwrap_or_default();
    ensure!(names(&main["env"]) == ["A", "B"] && main["args"] == json!(["a", "b"]), "{main}");
    let wanted = json!({
        "f:metadata": {"f:labels": {"f:team": {}}},
        "f:spec": {"f:template": {"f:spec": {"f:containers": {
            r#"k:{"name":"main"}"#: {".": {}, "f:env": {r#"k:{"name":"B"}"#: {".": {}, "f:name": {}, "f:value": {}}}, "f:name": {}},
            r#"k:{"name":"side"}"#: {".": {}, "f:image": {}, "f:name": {}},
        }}}},
    });
    are(&merged, "bob", "", &wanted)?;
    // The protocol is a key with a default.
    let port = &fields_of(&merged, "ann")["f:spec"]["f:template"]["f:spec"]["f:containers"][r#"k:{"name":"main"}"#]
        ["f:ports"];
    ensure!(port.get(r#"k:{"containerPort":80,"protocol":"TCP"}"#).is_some(), "{port}");
    Ok(())
}

fn fields_of(reply: &Reply, manager: &str) -> Value {
    let entries = reply.at("/metadata/managedFields").as_array();
    let found = entries.into_iter().flatten().find(|entry| entry["manager"] == manager);
    found.map_or(Value::Null, |entry| entry["fieldsV1"].clone())
}

async fn custom_kinds_state_the_types_of_their_lists(api: &Api) -> Result<()> {
    let widgets = api
        .widgets(|definition| {
            let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let text = json!({"type": "string"});
            let properties = json!({
                "hosts": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
                "rules": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                    "items": {"type": "object", "required": ["id"], "properties": {"id": text, "to": text}}},
                "order": {"type": "array", "items": text},
                "whole": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
            });
            schema["properties"]["spec"]["properties"] = properties;
        })
        .await?;
    let path = format!("{}/a", widgets.path);
    let ann = json!({"hosts": ["a"], "rules": [{"id": "1", "to": "x"}], "order": ["1"], "whole": {"a": "1"}});
    apply(api, &path, "ann", widgets.widget("a", ann)).await?.ok()?;
    let bob = json!({"hosts": ["b"], "rules": [{"id": "2", "to": "y"}]});
    let merged = apply(api, &path, "bob", widgets.widget("a", bob)).await?.ok()?;
    merged.is("/spec/hosts", json!(["a", "b"]))?.is("/spec/order", json!(["1"]))?;
    merged.is("/spec/rules", json!([{"id": "1", "to": "x"}, {"id": "2", "to": "y"}]))?;
    are(
        &merged,
        "bob",
        "",
        &json!({"f:spec": {"f:hosts": {r#"v:"b""#: {}}, "f:rules": {r#"k:{"id":"2"}"#: {".": {}, "f:id": {}, "f:to": {}}}}}),
    )?;
    let order = json!({"order": ["1", "2"], "whole": {"b": "1"}});
    let refused = apply(api, &path, "bob", widgets.widget("a", order)).await?;
    refused.fails(409, "Conflict", "conflicts with \"ann\":\n- .spec.order\n- .spec.whole")?;
    Ok(())
}

async fn apply_is_read_as_yaml(api: &Api) -> Result<()> {
    let path = format!("{}/a?fieldManager=ann", api.maps().await?);
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: {a: \"1\"} # of ann\n";
    let call = api.call(Method::PATCH, &path).body(APPLY, text);
    call.send().await?.ok()?.is("/data/a", "1")?;
    Ok(())
}

async fn apply_that_cannot_be_read_is_refused(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    let refused = api.patch(&path, APPLY, map(json!({}))).await?;
    let why = "fieldManager: Required value: is required for apply patch";
    refused.fails(422, "Invalid", why)?;
    let broken = api.call(Method::PATCH, &format!("{path}?fieldManager=ann")).body(APPLY, "{").send().await?;
    broken.fails(400, "BadRequest", "error decoding YAML")?;
    let mut other = map(json!({}));
    other["kind"] = json!("Secret");
    let why = "invalid object type: /v1, Kind=Secret";
    apply(api, &path, "ann", other).await?.fails(400, "BadRequest", why)?;
    let mut managed = map(json!({}));
    managed["metadata"]["managedFields"] = json!([]);
    let why = "metadata.managedFields must be nil";
    apply(api, &path, "ann", managed).await?.fails(400, "BadRequest", why)?;
    let mut renamed = map(json!({}));
    renamed["metadata"]["name"] = json!("b");
    let why = "the name of the object (b) does not match the name on the URL (a)";
    apply(api, &path, "ann", renamed).await?.fails(400, "BadRequest", why)?;
    Ok(())
}

async fn fields_that_the_schema_does_not_have_are_refused(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    let mut config = map(json!({}));
    config["dat"] = json!({});
    let why = "failed to create typed patch object";
    let refused = apply(api, &path, "ann", config).await?;
    ensure!(refused.code == 500, "{}: {}", refused.code, refused.body);
    let message = refused.at("/message").as_str().unwrap_or_default().to_owned();
    ensure!(message.starts_with(why) && message.ends_with(".dat: field not declared in schema"), "{message}");
    ensure!(message.contains("/a; /v1, Kind=ConfigMap): "), "{message}");
    Ok(())
}

async fn what_nobody_owns_belongs_to_the_time_before_the_first_apply(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, map(json!({"a": "1", "b": "1"}))).await?.ok()?;
    let path = format!("{maps}/a");
    api.patch(&path, MERGE, json!({"metadata": {"managedFields": [{}]}})).await?.ok()?;
    let conflict = apply(api, &path, "ann", map(json!({"a": "2"}))).await?;
    conflict.fails(409, "Conflict", "conflict with \"before-first-apply\" using v1: .data.a")?;
    let applied = apply(api, &path, "ann", map(json!({"a": "1"}))).await?.ok()?;
    are(&applied, "before-first-apply", "", &json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}}))?;
    Ok(())
}

async fn conflict_names_the_field_and_its_owner(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    apply(api, &path, "ann", map(json!({"a": "1", "b": "1"}))).await?.ok()?;
    let refused = apply(api, &path, "bob", map(json!({"a": "2", "b": "1", "c": "1"}))).await?;
    let message = "Apply failed with 1 conflict: conflict with \"ann\": .data.a";
    refused.fails(409, "Conflict", message)?;
    let causes =
        json!([{"reason": "FieldManagerConflict", "message": "conflict with \"ann\"", "field": ".data.a"}]);
    refused.is("/message", message)?.is("/details/causes", causes)?;
    api.patch(&format!("{path}?fieldManager=changer"), MERGE, json!({"data": {"a": "3"}})).await?.ok()?;
    let refused = apply(api, &path, "ann", map(json!({"a": "1", "b": "1"}))).await?;
    refused.is("/message", "Apply failed with 1 conflict: conflict with \"changer\" using v1: .data.a")?;
    api.get(&path).await?.ok()?.is("/data", json!({"a": "3", "b": "1"}))?;
    Ok(())
}

async fn several_conflicts_are_listed_by_owner(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    apply(api, &path, "ann", map(json!({"a": "1", "b": "1"}))).await?.ok()?;
    api.patch(&format!("{path}?fieldManager=changer"), MERGE, json!({"data": {"c": "1"}})).await?.ok()?;
    let refused = apply(api, &path, "bob", map(json!({"a": "2", "b": "2", "c": "2"}))).await?;
    let message = "Apply failed with 3 conflicts: conflicts with \"ann\":\n- .data.a\n- .data.b\n\
                   conflicts with \"changer\" using v1:\n- .data.c";
    refused.is("/message", message)?;
    ensure!(refused.at("/details/causes").as_array().is_some_and(|all| all.len() == 3), "{}", refused.body);
    Ok(())
}

async fn force_takes_fields_of_others(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    apply(api, &path, "ann", map(json!({"a": "1", "b": "1"}))).await?.ok()?;
    let forced = apply(api, &format!("{path}?force=true"), "bob", map(json!({"a": "2"}))).await?.ok()?;
    forced.is("/data", json!({"a": "2", "b": "1"}))?;
    are(&forced, "ann", "", &json!({"f:data": {"f:b": {}}}))?;
    are(&forced, "bob", "", &json!({"f:data": {"f:a": {}}}))?;
    Ok(())
}

async fn kubectl_takes_what_its_client_side_apply_wrote(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let mut object = map(json!({"a": "1", "b": "1"}));
    let last = object.to_string();
    object["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": last});
    let call = api.call(Method::POST, &format!("{maps}?fieldManager=kubectl-client-side-apply"));
    call.json(object).send().await?.ok()?;
    let path = format!("{maps}/a");
    let refused = apply(api, &path, "ann", map(json!({"a": "2"}))).await?;
    refused.fails(409, "Conflict", "conflict with \"kubectl-client-side-apply\" using v1: .data.a")?;
    let applied = apply(api, &path, "kubectl", map(json!({"a": "2", "b": "1"}))).await?.ok()?;
    applied.is("/data/a", "2")?;
    let last = &applied.at("/metadata/annotations")["kubectl.kubernetes.io/last-applied-configuration"];
    let last: Value = serde_json::from_str(last.as_str().unwrap_or_default())?;
    ensure!(last["data"] == json!({"a": "2", "b": "1"}), "{last}");
    Ok(())
}

async fn apply_owns_no_status(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let path = format!("{}/a", widgets.path);
    let mut widget = widgets.widget("a", json!({"size": 1}));
    widget["status"] = json!({"phase": "Ready"});
    let applied = apply(api, &path, "ann", widget).await?.ok()?;
    are(&applied, "ann", "", &json!({"f:spec": {"f:size": {}}}))?;
    ensure!(applied.at("/status").is_null(), "{}", applied.body);
    Ok(())
}

async fn status_is_applied_by_itself(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let path = format!("{}/a", widgets.path);
    let status = format!("{path}/status");
    let mut widget = widgets.widget("a", json!({"size": 2}));
    widget["status"] = json!({"phase": "Ready"});
    apply(api, &status, "controller", widget.clone()).await?.fails(404, "NotFound", "")?;
    apply(api, &path, "ann", widgets.widget("a", json!({"size": 1}))).await?.ok()?;
    // The spec is not written by it, yet a conflict counts as one.
    let mut only = widget.clone();
    if let Some(members) = only.as_object_mut() {
        members.remove("spec");
    }
    let applied = apply(api, &status, "controller", only).await?.ok()?;
    applied.is("/status/phase", "Ready")?.is("/spec/size", 1)?;
    are(&applied, "controller", "status", &json!({"f:status": {"f:phase": {}}}))?;
    are(&applied, "ann", "", &json!({"f:spec": {"f:size": {}}}))?;
    Ok(())
}

async fn dry_run_of_an_apply_creates_nothing(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    let would = apply(api, &format!("{path}?dryRun=All"), "ann", map(json!({"a": "1"}))).await?;
    would.is("/data/a", "1")?;
    ensure!(api.get(&path).await?.code == 404);
    Ok(())
}

async fn dry_run_of_an_apply_changes_nothing(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    apply(api, &path, "ann", map(json!({"a": "1"}))).await?.ok()?;
    let would = apply(api, &format!("{path}?dryRun=All&force=true"), "bob", map(json!({"a": "2"}))).await?;
    would.ok()?.is("/data/a", "2")?;
    let stored = api.get(&path).await?.ok()?;
    stored.is("/data/a", "1")?;
    are(&stored, "ann", "", &json!({"f:data": {"f:a": {}}}))?;
    Ok(())
}

async fn apply_with_an_outdated_version_conflicts(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    let first = apply(api, &path, "ann", map(json!({"a": "1"}))).await?.ok()?;
    apply(api, &path, "ann", map(json!({"a": "2"}))).await?.ok()?;
    let mut config = map(json!({"a": "3"}));
    config["metadata"]["resourceVersion"] = json!(first.version());
    apply(api, &path, "ann", config).await?.fails(409, "Conflict", "the object has been modified")?;
    api.get(&path).await?.ok()?.is("/data/a", "2")?;
    Ok(())
}

async fn apply_with_another_uid_is_refused(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    apply(api, &path, "ann", map(json!({"a": "1"}))).await?.ok()?;
    let mut config = map(json!({"a": "3"}));
    config["metadata"]["uid"] = json!("1-2");
    let refused = apply(api, &path, "ann", config).await?;
    refused.fails(422, "Invalid", "metadata.uid: Invalid value: \"1-2\": field is immutable")?;
    Ok(())
}

async fn apply_that_creates_takes_the_right_to_create(api: &Api) -> Result<()> {
    let namespace = api.namespace().await?;
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/a");
    let roles = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    let role = json!({"metadata": {"name": "patcher"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}]});
    api.post(&format!("{roles}/roles"), role).await?.ok()?;
    let binding = json!({"metadata": {"name": "patcher"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "patcher"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}]});
    api.post(&format!("{roles}/rolebindings"), binding).await?.ok()?;
    let as_reader = |config: Value| {
        let call = api.call(Method::PATCH, &format!("{path}?fieldManager=ann")).by_reader();
        call.body(APPLY, config.to_string())
    };
    api.until("the role counts", || async {
        let refused = as_reader(map(json!({}))).send().await?;
        Ok(refused.at("/message").as_str().is_some_and(|it| it.contains("cannot create resource")))
    })
    .await?;
    apply(api, &path, "bob", map(json!({"b": "1"}))).await?.ok()?;
    as_reader(map(json!({"a": "1"}))).send().await?.ok()?;
    Ok(())
}

async fn one_empty_entry_removes_the_managers(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    apply(api, &path, "ann", map(json!({"a": "1"}))).await?.ok()?;
    let reset = api.patch(&path, MERGE, json!({"metadata": {"managedFields": [{}]}})).await?.ok()?;
    ensure!(reset.at("/metadata/managedFields").is_null(), "{}", reset.body);
    // Updates are not recorded until it is applied again.
    let changed = api.patch(&path, MERGE, json!({"data": {"a": "2"}})).await?.ok()?;
    ensure!(changed.at("/metadata/managedFields").is_null(), "{}", changed.body);
    Ok(())
}

async fn oldest_updates_are_merged(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let path = format!("{maps}/a");
    apply(api, &path, "ann", map(json!({"a": "1"}))).await?.ok()?;
    for number in 0..12 {
        let patch = json!({"data": {format!("k{number}"): "1"}});
        api.patch(&format!("{path}?fieldManager=m{number:02}"), MERGE, patch).await?.ok()?;
    }
    let object = api.get(&path).await?.ok()?;
    let entries = object.at("/metadata/managedFields").as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = entries.iter().filter_map(|entry| entry["manager"].as_str()).collect();
    ensure!(names.len() == 11 && names.contains(&"ann") && names.contains(&"ancient-changes"), "{names:?}");
    are(&object, "ancient-changes", "", &json!({"f:data": {"f:k0": {}, "f:k1": {}, "f:k2": {}}}))?;
    Ok(())
}

async fn long_names_of_managers_are_refused(api: &Api) -> Result<()> {
    let path = format!("{}/a", api.maps().await?);
    let refused = apply(api, &path, &"m".repeat(129), map(json!({}))).await?;
    refused.fails(422, "Invalid", "fieldManager: Too long: may not be more than 128 bytes")?;
    Ok(())
}
