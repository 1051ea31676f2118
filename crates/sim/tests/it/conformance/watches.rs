//! Cases about watches and bookmarks.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::api::{Api, MERGE, PARTIAL, TABLE, labelled, map};

super::cases! { "watches":
    WatchAdded watch_sends_created_objects,
    WatchModified watch_sends_modified_objects,
    WatchDeleted watch_sends_the_last_state_of_deleted_objects,
    WatchAdded watch_from_a_list_version_misses_nothing,
    WatchFromNowTells watch_without_a_version_sends_existing_objects_first,
    WatchLeaving watch_sends_deleted_when_an_object_stops_matching,
    WatchEntering watch_sends_added_when_an_object_starts_matching,
    WatchNamespaced a_namespace_has_its_own_watch,
    WatchTimeout watch_ends_at_its_timeout,
    WatchTooOld what_is_forgotten_is_gone,
    MetadataOnly metadata_alone_can_be_watched,
    WatchColumnsOnce watched_table_sends_columns_once,
    Bookmarks bookmark_precedes_the_timeout,
    BookmarksOnRequest bookmarks_come_on_request_only,
    FieldSelectors one_object_can_be_watched,
}

async fn watch_sends_created_objects(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let version = api.get(&maps).await?.ok()?.version();
    let mut watch =
        api.watch(&format!("{maps}?watch=true&resourceVersion={version}&labelSelector=mine")).await?;
    ensure!(watch.headers["content-type"] == "application/json", "{:?}", watch.headers);
    let created = api.post(&maps, labelled("a", json!({"mine": "yes"}))).await?.ok()?;
    let told = watch.expect("ADDED", "a").await?;
    ensure!(told["kind"] == "ConfigMap" && told["apiVersion"] == "v1", "{told}");
    ensure!(told["metadata"]["resourceVersion"] == json!(created.version()), "{told}");
    Ok(())
}

async fn watch_sends_modified_objects(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let version = api.post(&maps, map("a")).await?.ok()?.version();
    let mut watch = api
        .watch(&format!("{maps}?watch=1&resourceVersion={version}&fieldSelector=metadata.name%3Da"))
        .await?;
    api.patch(&format!("{maps}/a"), MERGE, json!({"data": {"a": "2"}})).await?.ok()?;
    let told = watch.expect("MODIFIED", "a").await?;
    ensure!(told["data"]["a"] == "2", "{told}");
    Ok(())
}

async fn watch_sends_the_last_state_of_deleted_objects(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let version = api.post(&maps, map("a")).await?.ok()?.version();
    let mut watch = api
        .watch(&format!("{maps}?watch=1&resourceVersion={version}&fieldSelector=metadata.name%3Da"))
        .await?;
    api.delete(&format!("{maps}/a")).await?.ok()?;
    let told = watch.expect("DELETED", "a").await?;
    ensure!(told["data"]["a"] == "1", "{told}");
    let last: u64 = told["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse()?;
    ensure!(last > version.parse()?, "{last} {version}");
    Ok(())
}

async fn watch_from_a_list_version_misses_nothing(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let version = api.get(&maps).await?.ok()?.version();
    for name in ["a", "b", "c"] {
        api.post(&maps, labelled(name, json!({"mine": "yes"}))).await?.ok()?;
    }
    api.delete(&format!("{maps}/b")).await?.ok()?;
    let mut watch =
        api.watch(&format!("{maps}?watch=1&resourceVersion={version}&labelSelector=mine")).await?;
    for (kind, name) in [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c"), ("DELETED", "b")] {
        watch.expect(kind, name).await?;
    }
    Ok(())
}

async fn watch_without_a_version_sends_existing_objects_first(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    for name in ["b", "a"] {
        api.post(&maps, labelled(name, json!({"mine": "yes"}))).await?.ok()?;
    }
    for version in ["", "&resourceVersion=0"] {
        let mut watch = api.watch(&format!("{maps}?watch=1&labelSelector=mine{version}")).await?;
        watch.expect("ADDED", "a").await?;
        watch.expect("ADDED", "b").await?;
    }
    Ok(())
}

async fn watch_sends_deleted_when_an_object_stops_matching(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let version = api.post(&maps, labelled("a", json!({"color": "red"}))).await?.ok()?.version();
    let mut watch =
        api.watch(&format!("{maps}?watch=1&resourceVersion={version}&labelSelector=color%3Dred")).await?;
    api.patch(&format!("{maps}/a"), MERGE, json!({"metadata": {"labels": {"color": "blue"}}})).await?.ok()?;
    watch.expect("DELETED", "a").await?;
    Ok(())
}

async fn watch_sends_added_when_an_object_starts_matching(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let version = api.post(&maps, labelled("a", json!({"color": "red"}))).await?.ok()?.version();
    let mut watch =
        api.watch(&format!("{maps}?watch=1&resourceVersion={version}&labelSelector=color%3Dblue")).await?;
    api.patch(&format!("{maps}/a"), MERGE, json!({"metadata": {"labels": {"color": "blue"}}})).await?.ok()?;
    watch.expect("ADDED", "a").await?;
    Ok(())
}

async fn a_namespace_has_its_own_watch(api: &Api) -> Result<()> {
    let (one, other) = (api.maps().await?, api.maps().await?);
    let version = api.get(&one).await?.ok()?.version();
    let mut watch = api.watch(&format!("{one}?watch=1&resourceVersion={version}&labelSelector=mine")).await?;
    api.post(&other, labelled("other", json!({"mine": "yes"}))).await?.ok()?;
    api.post(&one, labelled("one", json!({"mine": "yes"}))).await?.ok()?;
    watch.expect("ADDED", "one").await?;
    Ok(())
}

async fn watch_ends_at_its_timeout(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let mut watch = api.watch(&format!("{maps}?watch=1&timeoutSeconds=1&labelSelector=none")).await?;
    ensure!(watch.next().await?.is_none(), "an event");
    Ok(())
}

async fn what_is_forgotten_is_gone(api: &Api) -> Result<()> {
    // The history of a kind begins with its definition.
    let widgets = api.widgets(|_| {}).await?;
    let mut watch =
        api.watch(&format!("{}?watch=1&resourceVersion=1&timeoutSeconds=2", widgets.path)).await?;
    let gone = watch.next().await?.context("no event")?;
    ensure!(gone["type"] == "ERROR", "{gone}");
    let status = &gone["object"];
    ensure!(status["kind"] == "Status" && status["code"] == 410 && status["reason"] == "Expired", "{status}");
    ensure!(
        status["message"].as_str().unwrap_or_default().starts_with("too old resource version: 1 ("),
        "{status}"
    );
    Ok(())
}

async fn metadata_alone_can_be_watched(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, labelled("a", json!({"mine": "yes"}))).await?.ok()?;
    let mut watch = api.watch_as(&format!("{maps}?watch=1&labelSelector=mine"), PARTIAL).await?;
    let told = watch.expect("ADDED", "a").await?;
    ensure!(told["kind"] == "PartialObjectMetadata" && told["apiVersion"] == "meta.k8s.io/v1", "{told}");
    ensure!(told.get("data").is_none(), "{told}");
    Ok(())
}

async fn watched_table_sends_columns_once(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    for name in ["a", "b"] {
        api.post(&maps, labelled(name, json!({"mine": "yes"}))).await?.ok()?;
    }
    let mut watch = api.watch_as(&format!("{maps}?watch=1&labelSelector=mine"), TABLE).await?;
    let first = watch.next().await?.context("no event")?;
    ensure!(first["type"] == "ADDED" && first["object"]["kind"] == "Table", "{first}");
    ensure!(first["object"]["columnDefinitions"][0]["name"] == "Name", "{first}");
    ensure!(first["object"]["rows"][0]["cells"][0] == "a", "{first}");
    let second = watch.next().await?.context("no event")?;
    ensure!(second["object"]["columnDefinitions"].is_null(), "{second}");
    ensure!(second["object"]["rows"][0]["cells"][0] == "b", "{second}");
    Ok(())
}

async fn bookmark_precedes_the_timeout(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let version = api.get(&maps).await?.ok()?.version();
    let query = "allowWatchBookmarks=true&timeoutSeconds=3&labelSelector=none";
    let mut watch = api.watch(&format!("{maps}?watch=1&resourceVersion={version}&{query}")).await?;
    let events = watch.rest().await?;
    let bookmark = events.last().context("no bookmark")?;
    ensure!(bookmark["type"] == "BOOKMARK" && bookmark["object"]["kind"] == "ConfigMap", "{bookmark}");
    let told: u64 = bookmark["object"]["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse()?;
    ensure!(told >= version.parse()?, "{bookmark}");
    ensure!(bookmark["object"]["metadata"].get("name").is_none(), "{bookmark}");
    Ok(())
}

async fn bookmarks_come_on_request_only(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let version = api.get(&maps).await?.ok()?.version();
    let query = "timeoutSeconds=3&labelSelector=none";
    let mut watch = api.watch(&format!("{maps}?watch=1&resourceVersion={version}&{query}")).await?;
    let events = watch.rest().await?;
    ensure!(events.is_empty(), "{events:?}");
    Ok(())
}

async fn one_object_can_be_watched(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let version = api.get(&maps).await?.ok()?.version();
    let mut watch = api
        .watch(&format!("{maps}?watch=1&resourceVersion={version}&fieldSelector=metadata.name%3Db"))
        .await?;
    for name in ["a", "b"] {
        api.post(&maps, map(name)).await?.ok()?;
    }
    watch.expect("ADDED", "b").await?;
    Ok(())
}
