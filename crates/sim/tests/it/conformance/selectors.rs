//! Cases about label and field selectors.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::api::{Api, labelled, map};

super::cases! { "selectors":
    LabelSelectors labels_equal,
    LabelsNotEqual labels_differ,
    LabelsInSet labels_in_a_set,
    LabelsExist labels_exist,
    LabelsMissing labels_are_missing,
    LabelSelectors several_labels,
    RefuseBadLabelSelector a_bad_label_selector_is_refused,
    FieldSelectors a_name_is_a_field,
    FieldsNotEqual fields_differ,
    FieldSelectors a_type_is_a_field,
    FieldSelectors a_phase_is_a_field,
    RefuseUnknownField an_unknown_field_is_refused,
    FieldSelectors involved_object_is_a_selectable_field,
    LabelSelectors labels_and_fields_together,
}

async fn filled(api: &Api) -> Result<String> {
    let maps = api.maps().await?;
    for (name, labels) in [
        ("a", json!({"color": "red", "mine": "yes"})),
        ("b", json!({"color": "blue", "mine": "yes"})),
        ("c", json!({"mine": "yes"})),
    ] {
        api.post(&maps, labelled(name, labels)).await?.ok()?;
    }
    Ok(maps)
}

async fn found(api: &Api, maps: &str, selector: &str, want: &[&str]) -> Result<()> {
    let list = api.get(&format!("{maps}?labelSelector={selector}")).await?.ok()?;
    ensure!(list.names() == want, "{selector}: {:?}", list.names());
    Ok(())
}

async fn labels_equal(api: &Api) -> Result<()> {
    let maps = filled(api).await?;
    found(api, &maps, "color%3Dred", &["a"]).await?;
    found(api, &maps, "color%3D%3Dblue", &["b"]).await?;
    found(api, &maps, "color%3D", &[]).await
}

async fn labels_differ(api: &Api) -> Result<()> {
    let maps = filled(api).await?;
    found(api, &maps, "mine,color!%3Dred", &["b", "c"]).await
}

async fn labels_in_a_set(api: &Api) -> Result<()> {
    let maps = filled(api).await?;
    found(api, &maps, "color+in+(red,green)", &["a"]).await?;
    found(api, &maps, "mine,color+notin+(red,green)", &["b", "c"]).await
}

async fn labels_exist(api: &Api) -> Result<()> {
    let maps = filled(api).await?;
    found(api, &maps, "color", &["a", "b"]).await
}

async fn labels_are_missing(api: &Api) -> Result<()> {
    let maps = filled(api).await?;
    found(api, &maps, "mine,!color", &["c"]).await
}

async fn several_labels(api: &Api) -> Result<()> {
    let maps = filled(api).await?;
    found(api, &maps, "mine%3Dyes,color%3Dblue", &["b"]).await?;
    found(api, &maps, "mine%3Dno,color%3Dblue", &[]).await
}

async fn a_bad_label_selector_is_refused(api: &Api) -> Result<()> {
    let refused = api.get("/api/v1/configmaps?labelSelector=a%3D%3D%3Db").await?;
    refused.fails(400, "BadRequest", "unable to parse requirement: found '=', expected: identifier")?;
    Ok(())
}

async fn a_name_is_a_field(api: &Api) -> Result<()> {
    let maps = filled(api).await?;
    let list = api.get(&format!("{maps}?fieldSelector=metadata.name%3Db")).await?.ok()?;
    ensure!(list.names() == ["b"], "{:?}", list.names());
    let namespace = maps.split('/').nth(4).unwrap_or_default();
    let all = api
        .get(&format!("/api/v1/configmaps?fieldSelector=metadata.namespace%3D{namespace}&labelSelector=mine"))
        .await?
        .ok()?;
    ensure!(all.names() == ["a", "b", "c"], "{:?}", all.names());
    Ok(())
}

async fn fields_differ(api: &Api) -> Result<()> {
    let maps = filled(api).await?;
    let list = api.get(&format!("{maps}?labelSelector=mine&fieldSelector=metadata.name!%3Db")).await?.ok()?;
    ensure!(list.names() == ["a", "c"], "{:?}", list.names());
    Ok(())
}

async fn a_type_is_a_field(api: &Api) -> Result<()> {
    let secrets = format!("/api/v1/namespaces/{}/secrets", api.namespace().await?);
    for (name, kind) in [("a", "Opaque"), ("b", "example.com/own")] {
        api.post(&secrets, json!({"metadata": {"name": name}, "type": kind})).await?.ok()?;
    }
    let list = api.get(&format!("{secrets}?fieldSelector=type%3Dexample.com/own")).await?.ok()?;
    ensure!(list.names() == ["b"], "{:?}", list.names());
    Ok(())
}

async fn a_phase_is_a_field(api: &Api) -> Result<()> {
    let active = api.get("/api/v1/namespaces?fieldSelector=status.phase%3DActive").await?.ok()?;
    ensure!(active.names().contains(&"default"), "{:?}", active.names());
    let other = api.get("/api/v1/namespaces?fieldSelector=status.phase%3DNone").await?.ok()?;
    ensure!(other.names().is_empty(), "{:?}", other.names());
    Ok(())
}

async fn an_unknown_field_is_refused(api: &Api) -> Result<()> {
    let refused = api.get("/api/v1/pods?fieldSelector=spec.foo%3Db").await?;
    refused.fails(400, "BadRequest", "field label not supported: spec.foo")?;
    let refused = api.get("/api/v1/pods?fieldSelector=foo").await?;
    refused.fails(400, "BadRequest", "invalid selector: 'foo'; can't understand 'foo'")?;
    Ok(())
}

async fn involved_object_is_a_selectable_field(api: &Api) -> Result<()> {
    let namespace = api.namespace().await?;
    let events = format!("/api/v1/namespaces/{namespace}/events");
    for name in ["a", "b"] {
        let about = json!({"kind": "Pod", "apiVersion": "v1", "namespace": namespace, "name": name});
        let event =
            json!({"metadata": {"name": name}, "involvedObject": about, "reason": "Said", "type": "Normal"});
        api.post(&events, event).await?.ok()?;
    }
    let selector = "involvedObject.kind%3DPod,involvedObject.name%3Db";
    let list = api.get(&format!("{events}?fieldSelector={selector}")).await?.ok()?;
    ensure!(list.names() == ["b"], "{:?}", list.names());
    Ok(())
}

async fn labels_and_fields_together(api: &Api) -> Result<()> {
    let maps = filled(api).await?;
    api.post(&maps, map("d")).await?.ok()?;
    let list =
        api.get(&format!("{maps}?labelSelector=color%3Dred&fieldSelector=metadata.name%3Db")).await?.ok()?;
    ensure!(list.names().is_empty(), "{:?}", list.names());
    let list = api.get(&format!("{maps}?labelSelector=color&fieldSelector=metadata.name%3Db")).await?.ok()?;
    ensure!(list.names() == ["b"], "{:?}", list.names());
    Ok(())
}
