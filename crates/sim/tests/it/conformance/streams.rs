//! Cases about streamed lists: lists that come as events and continue as watches.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::api::{Api, PARTIAL, labelled};

const STREAM: &str =
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

super::cases! { "streaming lists":
    StreamingLists streaming_list_sends_objects_before_the_bookmark,
    InitialEventsEnd initial_events_end_with_an_annotated_bookmark,
    WatchAdded streaming_list_continues_as_a_watch,
    ListOptionsChecked streaming_list_requires_a_version_match,
    LabelSelectors streaming_list_honours_selectors,
    MetadataOnly a_stream_of_metadata,
}

async fn filled(api: &Api) -> Result<String> {
    let maps = api.maps().await?;
    for name in ["a", "b"] {
        api.post(&maps, labelled(name, json!({"mine": "yes"}))).await?.ok()?;
    }
    Ok(maps)
}

async fn streaming_list_sends_objects_before_the_bookmark(api: &Api) -> Result<()> {
    let maps = filled(api).await?;
    let mut watch = api.watch(&format!("{maps}?{STREAM}&labelSelector=mine")).await?;
    watch.expect("ADDED", "a").await?;
    watch.expect("ADDED", "b").await?;
    let bookmark = watch.next().await?.context("no bookmark")?;
    ensure!(bookmark["type"] == "BOOKMARK" && bookmark["object"]["kind"] == "ConfigMap", "{bookmark}");
    Ok(())
}

async fn initial_events_end_with_an_annotated_bookmark(api: &Api) -> Result<()> {
    let maps = filled(api).await?;
    let version: u64 = api.get(&maps).await?.ok()?.version().parse()?;
    let mut watch = api.watch(&format!("{maps}?{STREAM}&labelSelector=none")).await?;
    let bookmark = watch.next().await?.context("no bookmark")?;
    let metadata = &bookmark["object"]["metadata"];
    ensure!(metadata["annotations"]["k8s.io/initial-events-end"] == "true", "{bookmark}");
    let told: u64 = metadata["resourceVersion"].as_str().unwrap_or_default().parse()?;
    ensure!(told >= version, "{bookmark}");
    Ok(())
}

async fn streaming_list_continues_as_a_watch(api: &Api) -> Result<()> {
    let maps = filled(api).await?;
    let mut watch = api.watch(&format!("{maps}?{STREAM}&labelSelector=mine")).await?;
    watch.expect("ADDED", "a").await?;
    watch.expect("ADDED", "b").await?;
    watch.next().await?.context("no bookmark")?;
    api.post(&maps, labelled("c", json!({"mine": "yes"}))).await?.ok()?;
    watch.expect("ADDED", "c").await?;
    Ok(())
}

async fn streaming_list_requires_a_version_match(api: &Api) -> Result<()> {
    let refused = api.get("/api/v1/configmaps?watch=1&sendInitialEvents=true&timeoutSeconds=1").await?;
    let message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
    refused.fails(422, "Invalid", message)?;
    let refused =
        api.get("/api/v1/configmaps?watch=1&resourceVersionMatch=NotOlderThan&timeoutSeconds=1").await?;
    let message = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
    refused.fails(422, "Invalid", message)?;
    Ok(())
}

async fn streaming_list_honours_selectors(api: &Api) -> Result<()> {
    let maps = filled(api).await?;
    api.post(&maps, labelled("aa", json!({"mine": "no"}))).await?.ok()?;
    let mut watch = api.watch(&format!("{maps}?{STREAM}&labelSelector=mine%3Dyes")).await?;
    watch.expect("ADDED", "a").await?;
    watch.expect("ADDED", "b").await?;
    Ok(())
}

async fn a_stream_of_metadata(api: &Api) -> Result<()> {
    let maps = filled(api).await?;
    let mut watch = api.watch_as(&format!("{maps}?{STREAM}&labelSelector=mine"), PARTIAL).await?;
    let told = watch.expect("ADDED", "a").await?;
    ensure!(told["kind"] == "PartialObjectMetadata", "{told}");
    watch.expect("ADDED", "b").await?;
    let bookmark = watch.next().await?.context("no bookmark")?;
    ensure!(bookmark["object"]["kind"] == "PartialObjectMetadata", "{bookmark}");
    ensure!(
        bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true",
        "{bookmark}"
    );
    Ok(())
}
