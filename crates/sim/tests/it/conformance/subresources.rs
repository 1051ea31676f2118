//! Cases about the subresources status and scale.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::api::{Api, MERGE, deployment};

super::cases! { "subresources":
    StatusSubresource status_is_written_through_its_subresource,
    StatusKeepsSpec status_update_keeps_the_spec,
    UpdateKeepsStatus update_keeps_the_status,
    GenerationCounts status_update_keeps_the_generation,
    GenerationCountsStatus without_status_subresource_status_changes_the_generation,
    StatusSubresource status_path_without_subresource_is_not_found,
    ScaleSubresource a_scale_is_read,
    ScaleSubresource a_scale_is_replaced,
    ScaleSubresource a_scale_is_patched,
    ScaleSubresource a_custom_kind_has_a_scale,
    UpdateConflicts a_status_with_an_outdated_version_conflicts,
}

async fn status_is_written_through_its_subresource(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let mut widget = api.post(&widgets.path, widgets.widget("a", json!({"size": 1}))).await?.ok()?.body;
    let path = format!("{}/a/status", widgets.path);
    widget["status"] = json!({"ready": true});
    api.put(&path, widget).await?.ok()?.is("/status/ready", true)?;
    api.get(&path).await?.ok()?.is("/status/ready", true)?.is("/kind", "Widget")?;
    api.patch(&path, MERGE, json!({"status": {"ready": false}})).await?.ok()?.is("/status/ready", false)?;
    Ok(())
}

async fn status_update_keeps_the_spec(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    api.post(&widgets.path, widgets.widget("a", json!({"size": 1}))).await?.ok()?;
    let patch = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"size": 9}, "status": {"ready": true}});
    let patched = api.patch(&format!("{}/a/status", widgets.path), MERGE, patch).await?.ok()?;
    patched.is("/spec/size", 1)?.is("/status/ready", true)?.is("/metadata/labels", json!(null))?;
    Ok(())
}

async fn update_keeps_the_status(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    api.post(&widgets.path, widgets.widget("a", json!({"size": 1}))).await?.ok()?;
    let one = format!("{}/a", widgets.path);
    api.patch(&format!("{one}/status"), MERGE, json!({"status": {"ready": true}})).await?.ok()?;
    let patched =
        api.patch(&one, MERGE, json!({"spec": {"size": 2}, "status": {"ready": false}})).await?.ok()?;
    patched.is("/spec/size", 2)?.is("/status/ready", true)?;
    Ok(())
}

async fn status_update_keeps_the_generation(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    api.post(&widgets.path, widgets.widget("a", json!({"size": 1}))).await?.ok()?;
    let one = format!("{}/a", widgets.path);
    api.patch(&format!("{one}/status"), MERGE, json!({"status": {"ready": true}}))
        .await?
        .ok()?
        .is("/metadata/generation", 1)?;
    api.patch(&one, MERGE, json!({"spec": {"size": 2}})).await?.ok()?.is("/metadata/generation", 2)?;
    Ok(())
}

fn without_subresources(crd: &mut Value) {
    crd["spec"]["versions"][0]["subresources"] = json!({});
}

async fn without_status_subresource_status_changes_the_generation(api: &Api) -> Result<()> {
    let widgets = api.widgets(without_subresources).await?;
    api.post(&widgets.path, widgets.widget("a", json!({"size": 1}))).await?.ok()?;
    let patched =
        api.patch(&format!("{}/a", widgets.path), MERGE, json!({"status": {"ready": true}})).await?.ok()?;
    patched.is("/status/ready", true)?.is("/metadata/generation", 2)?;
    Ok(())
}

async fn status_path_without_subresource_is_not_found(api: &Api) -> Result<()> {
    let widgets = api.widgets(without_subresources).await?;
    api.post(&widgets.path, widgets.widget("a", json!({"size": 1}))).await?.ok()?;
    let patched = api.patch(&format!("{}/a/status", widgets.path), MERGE, json!({"status": {}})).await?;
    let message = format!("widgets.{} \"a\" not found", widgets.group);
    patched.fails(404, "NotFound", &message)?;
    api.get("/api/v1/namespaces/default/configmaps/a/status").await?.fails(
        404,
        "NotFound",
        "the server could not find the requested resource",
    )?;
    let with = api.widgets(|_| {}).await?;
    api.post(&with.path, with.widget("a", json!({}))).await?.ok()?;
    api.get(&format!("{}/a/status", with.path)).await?.ok()?;
    Ok(())
}

async fn deployed(api: &Api) -> Result<String> {
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", api.namespace().await?);
    api.post(&path, deployment("web")).await?.ok()?;
    Ok(format!("{path}/web"))
}

async fn a_scale_is_read(api: &Api) -> Result<()> {
    let path = deployed(api).await?;
    let scale = api.get(&format!("{path}/scale")).await?.ok()?;
    scale.is("/kind", "Scale")?.is("/apiVersion", "autoscaling/v1")?.is("/metadata/name", "web")?;
    scale.is("/spec/replicas", json!(null)).or_else(|_| scale.is("/spec/replicas", 0))?;
    scale.is("/status/replicas", 0)?.is("/status/selector", "app=web")?;
    Ok(())
}

async fn a_scale_is_replaced(api: &Api) -> Result<()> {
    let path = deployed(api).await?;
    api.patch(&path, MERGE, json!({"spec": {"paused": true}})).await?.ok()?;
    let namespace = api.get(&path).await?.ok()?.text_at("/metadata/namespace");
    let scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "web", "namespace": namespace}, "spec": {"replicas": 3},
    });
    api.put(&format!("{path}/scale"), scale).await?.ok()?.is("/spec/replicas", 3)?;
    let changed = api.get(&path).await?.ok()?;
    changed.is("/spec/replicas", 3)?;
    ensure!(changed.at("/metadata/generation").as_i64() >= Some(3), "{}", changed.text);
    Ok(())
}

async fn a_scale_is_patched(api: &Api) -> Result<()> {
    let path = deployed(api).await?;
    let patched = api.patch(&format!("{path}/scale"), MERGE, json!({"spec": {"replicas": 2}})).await?.ok()?;
    patched.is("/spec/replicas", 2)?.is("/kind", "Scale")?;
    api.get(&path).await?.ok()?.is("/spec/replicas", 2)?;
    let refused = api.patch(&format!("{path}/scale"), MERGE, json!({"spec": {"replicas": -1}})).await?;
    refused.fails(422, "Invalid", "spec.replicas: Invalid value: -1: must be greater than or equal to 0")?;
    Ok(())
}

async fn a_custom_kind_has_a_scale(api: &Api) -> Result<()> {
    let widgets = api
        .widgets(|crd| {
            let scale =
                json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
            crd["spec"]["versions"][0]["subresources"]["scale"] = scale;
        })
        .await?;
    api.post(&widgets.path, widgets.widget("a", json!({"replicas": 1}))).await?.ok()?;
    let path = format!("{}/a/scale", widgets.path);
    api.get(&path).await?.ok()?.is("/spec/replicas", 1)?;
    api.patch(&path, MERGE, json!({"spec": {"replicas": 4}})).await?.ok()?.is("/spec/replicas", 4)?;
    api.get(&format!("{}/a", widgets.path))
        .await?
        .ok()?
        .is("/spec/replicas", 4)?
        .is("/metadata/generation", 2)?;
    Ok(())
}

async fn a_status_with_an_outdated_version_conflicts(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    api.post(&widgets.path, widgets.widget("a", json!({"size": 1}))).await?.ok()?;
    let path = format!("{}/a/status", widgets.path);
    let patch = json!({"metadata": {"resourceVersion": "1"}, "status": {"ready": true}});
    api.patch(&path, MERGE, patch).await?.fails(409, "Conflict", "the object has been modified")?;
    Ok(())
}
