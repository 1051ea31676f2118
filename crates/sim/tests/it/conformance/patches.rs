//! Cases about merge, JSON and strategic merge patches.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::api::{Api, JSON, JSON_PATCH, MERGE, STRATEGIC, deployment, map};

super::cases! { "patches":
    MergeNullRemoves null_removes_in_a_merge_patch,
    UpdateConflicts a_patch_with_an_outdated_version_conflicts,
    JsonPatchTest failed_json_patch_test_fails_the_patch,
    JsonPatchMove values_move_and_are_copied,
    StrategicMergesLists containers_merge_by_name,
    StrategicMergesLists directives_delete_and_replace,
    NoStrategicForCustom custom_kinds_refuse_strategic_patches,
    PatchTypeChecked unknown_patch_type_is_refused,
    SameStaysSame a_patch_without_effect_is_no_change,
    NameMatches patch_cannot_rename_an_object,
    UidIsKept a_patch_keeps_the_uid,
    DryRunUpdate dry_run_patch_changes_nothing,
    GenerationCounts patch_of_the_spec_increases_the_generation,
}

async fn mapped(api: &Api) -> Result<String> {
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?;
    Ok(format!("{maps}/a"))
}

async fn null_removes_in_a_merge_patch(api: &Api) -> Result<()> {
    let path = mapped(api).await?;
    let patched = api.patch(&path, MERGE, json!({"data": {"a": null, "b": "2"}})).await?.ok()?;
    patched.is("/data", json!({"b": "2"}))?;
    api.patch(&format!("{path}x"), MERGE, json!({})).await?.fails(
        404,
        "NotFound",
        "configmaps \"ax\" not found",
    )?;
    let malformed = api.call(Method::PATCH, &path).body(MERGE, "{").send().await?;
    malformed.fails(400, "BadRequest", "error decoding patch: unexpected end of JSON input")?;
    Ok(())
}

async fn a_patch_with_an_outdated_version_conflicts(api: &Api) -> Result<()> {
    let path = mapped(api).await?;
    let patch = json!({"metadata": {"resourceVersion": "1"}, "data": {"a": "2"}});
    api.patch(&path, MERGE, patch).await?.fails(409, "Conflict", "the object has been modified")?;
    api.get(&path).await?.ok()?.is("/data/a", "1")?;
    Ok(())
}

async fn failed_json_patch_test_fails_the_patch(api: &Api) -> Result<()> {
    let path = mapped(api).await?;
    let patch = |value: &str| json!([{"op": "test", "path": "/data/a", "value": value}, {"op": "add", "path": "/data/b", "value": "2"}]);
    let refused = api.patch(&path, JSON_PATCH, patch("9")).await?;
    refused.fails(422, "Invalid", "the server rejected our request due to an error in our request")?;
    api.patch(&path, JSON_PATCH, patch("1")).await?.ok()?.is("/data/b", "2")?;
    let missing = api.patch(&path, JSON_PATCH, json!([{"op": "remove", "path": "/data/q"}])).await?;
    missing.fails(422, "Invalid", "")?;
    Ok(())
}

async fn values_move_and_are_copied(api: &Api) -> Result<()> {
    let path = mapped(api).await?;
    let patch = json!([
        {"op": "copy", "from": "/data/a", "path": "/data/b"}, {"op": "move", "from": "/data/a", "path": "/data/c"},
        {"op": "replace", "path": "/data/b", "value": "x"},
    ]);
    api.patch(&path, JSON_PATCH, patch).await?.ok()?.is("/data", json!({"b": "x", "c": "1"}))?;
    Ok(())
}

async fn deployed(api: &Api) -> Result<String> {
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", api.namespace().await?);
    let mut web = deployment("web");
    let containers = json!([
        {"name": "main", "image": "example.com/main:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {"name": "side", "image": "example.com/side:1"},
    ]);
    web["spec"]["template"]["spec"]["containers"] = containers;
    api.post(&path, web).await?.ok()?;
    Ok(format!("{path}/web"))
}

fn names(list: &Value) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    all.map(|item| item["name"].as_str().unwrap_or_default().to_owned()).collect()
}

async fn containers_merge_by_name(api: &Api) -> Result<()> {
    let path = deployed(api).await?;
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "example.com/side:2"}]}}}});
    let patched = api.patch(&path, STRATEGIC, patch).await?.ok()?;
    let containers = patched.at("/spec/template/spec/containers");
    let mut found = names(containers);
    found.sort();
    ensure!(found == ["main", "side"], "{found:?}");
    let side = containers.as_array().into_iter().flatten().find(|container| container["name"] == "side");
    ensure!(side.is_some_and(|side| side["image"] == "example.com/side:2"), "{containers}");
    Ok(())
}

async fn directives_delete_and_replace(api: &Api) -> Result<()> {
    let path = deployed(api).await?;
    let patch = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "main", "env": [{"name": "A", "$patch": "delete"}]}, {"name": "side", "$patch": "delete"},
    ]}}}});
    let patched = api.patch(&path, STRATEGIC, patch).await?.ok()?;
    let containers = patched.at("/spec/template/spec/containers");
    ensure!(names(containers) == ["main"], "{containers}");
    ensure!(names(&containers[0]["env"]) == ["B"], "{containers}");
    Ok(())
}

async fn custom_kinds_refuse_strategic_patches(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    api.post(&widgets.path, widgets.widget("a", json!({}))).await?.ok()?;
    let path = format!("{}/a", widgets.path);
    api.patch(&path, STRATEGIC, json!({"spec": {"size": 1}})).await?.fails(
        415,
        "UnsupportedMediaType",
        "",
    )?;
    api.patch(&path, MERGE, json!({"spec": {"size": 1}})).await?.ok()?.is("/spec/size", 1)?;
    Ok(())
}

async fn unknown_patch_type_is_refused(api: &Api) -> Result<()> {
    let path = mapped(api).await?;
    api.patch(&path, JSON, json!({"data": {"a": "2"}})).await?.fails(
        415,
        "UnsupportedMediaType",
        "415: Unsupported Media Type",
    )?;
    let sent = api.call(Method::POST, path.trim_end_matches("/a")).body("text/plain", "{}").send().await?;
    sent.fails(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include",
    )?;
    Ok(())
}

async fn a_patch_without_effect_is_no_change(api: &Api) -> Result<()> {
    let path = mapped(api).await?;
    let version = api.get(&path).await?.ok()?.version();
    api.patch(&path, MERGE, json!({"data": {"a": "1"}}))
        .await?
        .ok()?
        .is("/metadata/resourceVersion", version)?;
    Ok(())
}

async fn patch_cannot_rename_an_object(api: &Api) -> Result<()> {
    let path = mapped(api).await?;
    let refused = api.patch(&path, MERGE, json!({"metadata": {"name": "b"}})).await?;
    refused.fails(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)")?;
    Ok(())
}

async fn a_patch_keeps_the_uid(api: &Api) -> Result<()> {
    let path = mapped(api).await?;
    let refused = api.patch(&path, MERGE, json!({"metadata": {"uid": "x"}})).await?;
    refused.fails(422, "Invalid", "metadata.uid: Invalid value: \"x\": field is immutable")?;
    Ok(())
}

async fn dry_run_patch_changes_nothing(api: &Api) -> Result<()> {
    let path = mapped(api).await?;
    api.patch(&format!("{path}?dryRun=All"), MERGE, json!({"data": {"a": "2"}}))
        .await?
        .ok()?
        .is("/data/a", "2")?;
    api.get(&path).await?.ok()?.is("/data/a", "1")?;
    Ok(())
}

async fn patch_of_the_spec_increases_the_generation(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    api.post(&widgets.path, widgets.widget("a", json!({"size": 1}))).await?.ok()?;
    let patched =
        api.patch(&format!("{}/a", widgets.path), MERGE, json!({"spec": {"size": 2}})).await?.ok()?;
    patched.is("/metadata/generation", 2)?;
    Ok(())
}
