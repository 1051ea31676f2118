//! Cases about metadata, tables, and forms that are refused.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::json;

use crate::api::{Api, JSON, PARTIAL, PARTIALS, TABLE, deployment, map};

super::cases! { "representations":
    MetadataOnly metadata_of_one,
    MetadataOnly metadata_of_many,
    Tables a_list_as_a_table,
    Tables one_object_as_a_table,
    TableCells table_cells_match_kubectl,
    TableIncludesNone rows_without_objects,
    TableIncludesObject rows_with_whole_objects,
    NotAcceptable unknown_forms_are_refused,
    Tables first_supported_form_is_used,
}

async fn metadata_of_one(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?;
    let one = api.get_as(&format!("{maps}/a"), PARTIAL).await?.ok()?;
    one.is("/kind", "PartialObjectMetadata")?.is("/apiVersion", "meta.k8s.io/v1")?;
    one.is("/metadata/name", "a")?.is("/data", json!(null))?;
    Ok(())
}

async fn metadata_of_many(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?;
    let many = api.get_as(&maps, PARTIALS).await?.ok()?;
    many.is("/kind", "PartialObjectMetadataList")?.is("/items/0/kind", "PartialObjectMetadata")?;
    many.is("/items/0/data", json!(null))?;
    Ok(())
}

async fn a_list_as_a_table(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?;
    let table = api.get_as(&format!("{maps}?fieldSelector=metadata.name%3Da"), TABLE).await?.ok()?;
    table.is("/kind", "Table")?.is("/apiVersion", "meta.k8s.io/v1")?;
    let names: Vec<_> = table
        .at("/columnDefinitions")
        .as_array()
        .into_iter()
        .flatten()
        .map(|column| column["name"].clone())
        .collect();
    ensure!(names == ["Name", "Data", "Age"], "{names:?}");
    table.is("/columnDefinitions/0/format", "name")?.is("/columnDefinitions/0/priority", 0)?;
    table.is("/rows/0/cells/0", "a")?.is("/rows/0/object/kind", "PartialObjectMetadata")?;
    table.is("/rows/0/object/metadata/name", "a")?;
    Ok(())
}

async fn one_object_as_a_table(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?;
    let table = api.get_as(&format!("{maps}/a"), TABLE).await?.ok()?;
    table.is("/kind", "Table")?.is("/rows/0/cells/0", "a")?.is("/rows/1", json!(null))?;
    Ok(())
}

async fn table_cells_match_kubectl(api: &Api) -> Result<()> {
    let namespace = api.namespace().await?;
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    let mut two = map("a");
    two["data"] = json!({"a": "1", "b": "2"});
    api.post(&maps, two).await?.ok()?;
    api.get_as(&format!("{maps}/a"), TABLE).await?.ok()?.is("/rows/0/cells/1", 2)?;
    let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    api.post(&deployments, deployment("web")).await?.ok()?;
    let table = api.get_as(&format!("{deployments}/web"), TABLE).await?.ok()?;
    let cells = table.at("/rows/0/cells");
    ensure!(cells[1] == "0/0" && cells[2] == 0 && cells[3] == 0, "{cells}");
    ensure!(cells[5] == "main" && cells[6] == "example.com/main:1" && cells[7] == "app=web", "{cells}");
    let table = api.get_as(&format!("/api/v1/namespaces/{namespace}"), TABLE).await?.ok()?;
    table.is("/rows/0/cells/1", "Active")?;
    Ok(())
}

async fn rows_without_objects(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?;
    let table = api
        .get_as(&format!("{maps}?includeObject=None&fieldSelector=metadata.name%3Da"), TABLE)
        .await?
        .ok()?;
    table.is("/rows/0/cells/0", "a")?.is("/rows/0/object", json!(null))?;
    Ok(())
}

async fn rows_with_whole_objects(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?;
    let table = api
        .get_as(&format!("{maps}?includeObject=Object&fieldSelector=metadata.name%3Da"), TABLE)
        .await?
        .ok()?;
    table.is("/rows/0/object/kind", "ConfigMap")?.is("/rows/0/object/data/a", "1")?;
    Ok(())
}

async fn unknown_forms_are_refused(api: &Api) -> Result<()> {
    let refused = api.get_as("/api/v1/namespaces/default", "text/plain").await?;
    refused.fails(
        406,
        "NotAcceptable",
        "406: Not Acceptable\n\nAvailable representations: application/json",
    )?;
    Ok(())
}

async fn first_supported_form_is_used(api: &Api) -> Result<()> {
    let accept = format!("application/json;as=Table;v=v9;g=meta.k8s.io,{TABLE},{JSON}");
    api.get_as("/api/v1/namespaces/default", &accept).await?.ok()?.is("/kind", "Table")?;
    let call = api.call(Method::GET, "/api/v1/namespaces/default").header("accept", "*/*");
    call.send().await?.ok()?.is("/kind", "Namespace")?;
    Ok(())
}
