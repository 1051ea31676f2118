//! Cases about lists, pages and versions.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::api::{Api, MERGE, labelled, map};

super::cases! { "lists":
    ListKind a_list_has_its_kind,
    ItemsWithoutKind items_of_built_in_kinds_leave_their_kind_out,
    ListOrder items_come_in_the_order_of_their_names,
    NamespacedLists a_namespace_has_its_own_list,
    ListVersion a_list_has_a_version,
    ListOptionsChecked resource_version_match_requires_a_version,
    VersionChecked invalid_resource_version_is_refused,
    TooLargeVersion a_version_of_the_future_times_out,
    ExactVersion an_older_state_is_listed_exactly,
    ExactVersion limit_with_a_version_lists_exactly_that_version,
    Limit limit_truncates_a_list,
    Continue continue_token_returns_the_next_page,
    ConsistentPages pages_show_one_state,
    ConsistentPages pages_keep_what_was_deleted_meanwhile,
    RemainingItems remaining_items_are_counted,
    RemainingItems remaining_items_are_not_counted_with_a_selector,
    ContinueChecked a_bad_token_is_refused,
    ContinueAlone continue_token_excludes_a_version,
    Continue the_last_page_has_no_token,
    Limit a_full_page_says_that_there_may_be_more,
    Compression long_lists_are_compressed,
    ListOptionsChecked a_list_sends_no_initial_events,
}

async fn filled(api: &Api, names: &[&str]) -> Result<String> {
    let maps = api.maps().await?;
    for name in names {
        api.post(&maps, map(name)).await?.ok()?;
    }
    Ok(maps)
}

/// A selector that excludes the ConfigMap that every namespace of a real cluster gets.
const OWN: &str = "fieldSelector=metadata.name!%3Dkube-root-ca.crt";

async fn a_list_has_its_kind(api: &Api) -> Result<()> {
    let maps = filled(api, &["a"]).await?;
    api.get(&maps).await?.ok()?.is("/kind", "ConfigMapList")?.is("/apiVersion", "v1")?;
    let none = api.get("/apis/apps/v1/namespaces/kube-public/deployments").await?.ok()?;
    none.is("/kind", "DeploymentList")?.is("/apiVersion", "apps/v1")?.is("/items", json!([]))?;
    Ok(())
}

async fn items_of_built_in_kinds_leave_their_kind_out(api: &Api) -> Result<()> {
    let maps = filled(api, &["a"]).await?;
    let list = api.get(&format!("{maps}?{OWN}")).await?.ok()?;
    list.is("/items/0/kind", json!(null))?
        .is("/items/0/apiVersion", json!(null))?
        .is("/items/0/data/a", "1")?;
    Ok(())
}

async fn items_come_in_the_order_of_their_names(api: &Api) -> Result<()> {
    let maps = filled(api, &["c", "a", "b.x", "b"]).await?;
    let list = api.get(&format!("{maps}?{OWN}")).await?.ok()?;
    ensure!(list.names() == ["a", "b", "b.x", "c"], "{:?}", list.names());
    Ok(())
}

async fn a_namespace_has_its_own_list(api: &Api) -> Result<()> {
    let (one, other) = (filled(api, &["one"]).await?, filled(api, &["other"]).await?);
    ensure!(api.get(&format!("{one}?{OWN}")).await?.ok()?.names() == ["one"]);
    ensure!(api.get(&format!("{other}?{OWN}")).await?.ok()?.names() == ["other"]);
    let all = api.get("/api/v1/configmaps").await?.ok()?;
    ensure!(all.names().contains(&"one") && all.names().contains(&"other"));
    Ok(())
}

async fn a_list_has_a_version(api: &Api) -> Result<()> {
    let maps = filled(api, &["a"]).await?;
    let before: u64 = api.get(&maps).await?.ok()?.version().parse().context("no number")?;
    let created: u64 = api.post(&maps, map("b")).await?.ok()?.version().parse()?;
    let after: u64 = api.get(&maps).await?.ok()?.version().parse()?;
    ensure!(before < created && created <= after, "{before} {created} {after}");
    Ok(())
}

async fn resource_version_match_requires_a_version(api: &Api) -> Result<()> {
    let maps = filled(api, &[]).await?;
    let refused = api.get(&format!("{maps}?resourceVersionMatch=Exact")).await?;
    let message = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is \
                   forbidden unless resourceVersion is provided";
    refused.fails(422, "Invalid", message)?.is("/details/causes/0/reason", "FieldValueForbidden")?;
    let exact = api.get(&format!("{maps}?resourceVersion=0&resourceVersionMatch=Exact")).await?;
    exact.fails(422, "Invalid", "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")?;
    let unknown = api.get(&format!("{maps}?resourceVersion=5&resourceVersionMatch=Foo")).await?;
    unknown.fails(
        422,
        "Invalid",
        "Unsupported value: \"Foo\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
    )?;
    Ok(())
}

async fn invalid_resource_version_is_refused(api: &Api) -> Result<()> {
    let refused = api.get("/api/v1/configmaps?resourceVersion=abc").await?;
    let message = "invalid resource version: resourceVersion: Invalid value: \"abc\"";
    refused.fails(400, "BadRequest", message)?;
    Ok(())
}

async fn a_version_of_the_future_times_out(api: &Api) -> Result<()> {
    let refused = api.get("/api/v1/configmaps?resourceVersion=99999999").await?;
    refused.fails(504, "Timeout", "Too large resource version: 99999999, current: ")?;
    refused.is("/details/causes/0/reason", "ResourceVersionTooLarge")?.is("/details/retryAfterSeconds", 1)?;
    Ok(())
}

async fn an_older_state_is_listed_exactly(api: &Api) -> Result<()> {
    let maps = filled(api, &["a", "b"]).await?;
    let version = api.get(&maps).await?.ok()?.version();
    api.post(&maps, map("c")).await?.ok()?;
    api.patch(&format!("{maps}/a"), MERGE, json!({"data": {"a": "2"}})).await?.ok()?;
    api.delete(&format!("{maps}/b")).await?.ok()?;
    let old =
        api.get(&format!("{maps}?{OWN}&resourceVersion={version}&resourceVersionMatch=Exact")).await?.ok()?;
    ensure!(old.names() == ["a", "b"], "{:?}", old.names());
    old.is("/items/0/data/a", "1")?.is("/metadata/resourceVersion", version)?;
    Ok(())
}

async fn limit_with_a_version_lists_exactly_that_version(api: &Api) -> Result<()> {
    let maps = filled(api, &["a"]).await?;
    let version = api.get(&maps).await?.ok()?.version();
    api.post(&maps, map("b")).await?.ok()?;
    let newer = api.get(&format!("{maps}?{OWN}&resourceVersion={version}")).await?.ok()?;
    ensure!(newer.names() == ["a", "b"], "{:?}", newer.names());
    let same = api.get(&format!("{maps}?{OWN}&resourceVersion={version}&limit=10")).await?.ok()?;
    ensure!(same.names() == ["a"], "{:?}", same.names());
    Ok(())
}

async fn limit_truncates_a_list(api: &Api) -> Result<()> {
    let maps = filled(api, &["a", "b", "c"]).await?;
    let page = api.get(&format!("{maps}?limit=2")).await?.ok()?;
    ensure!(page.names() == ["a", "b"], "{:?}", page.names());
    ensure!(!page.text_at("/metadata/continue").is_empty(), "no token");
    Ok(())
}

async fn continue_token_returns_the_next_page(api: &Api) -> Result<()> {
    let maps = filled(api, &["a", "b", "c", "d"]).await?;
    let page = api.get(&format!("{maps}?limit=3&{OWN}")).await?.ok()?;
    let token = page.text_at("/metadata/continue");
    let next = api.get(&format!("{maps}?limit=3&{OWN}&continue={token}")).await?.ok()?;
    ensure!(next.names() == ["d"], "{:?}", next.names());
    Ok(())
}

async fn pages_show_one_state(api: &Api) -> Result<()> {
    let maps = filled(api, &["a", "b", "d"]).await?;
    let page = api.get(&format!("{maps}?limit=2&{OWN}")).await?.ok()?;
    api.post(&maps, map("c")).await?.ok()?;
    api.patch(&format!("{maps}/d"), MERGE, json!({"data": {"a": "2"}})).await?.ok()?;
    let token = page.text_at("/metadata/continue");
    let next = api.get(&format!("{maps}?limit=2&{OWN}&continue={token}")).await?.ok()?;
    ensure!(next.names() == ["d"], "{:?}", next.names());
    next.is("/items/0/data/a", "1")?.is("/metadata/resourceVersion", page.version())?;
    Ok(())
}

async fn pages_keep_what_was_deleted_meanwhile(api: &Api) -> Result<()> {
    let maps = filled(api, &["a", "b", "c"]).await?;
    let page = api.get(&format!("{maps}?limit=1&{OWN}")).await?.ok()?;
    api.delete(&format!("{maps}/b")).await?.ok()?;
    let token = page.text_at("/metadata/continue");
    let next = api.get(&format!("{maps}?{OWN}&continue={token}")).await?.ok()?;
    ensure!(next.names() == ["b", "c"], "{:?}", next.names());
    Ok(())
}

async fn remaining_items_are_counted(api: &Api) -> Result<()> {
    let maps = filled(api, &["a", "b", "c"]).await?;
    // Waits until the namespace has its default objects.
    let root = format!("{maps}/kube-root-ca.crt");
    api.until("there is the root certificate", || async { Ok(api.get(&root).await?.code == 200) }).await?;
    api.get(&format!("{maps}?limit=1")).await?.ok()?.is("/metadata/remainingItemCount", 3)?;
    Ok(())
}

async fn remaining_items_are_not_counted_with_a_selector(api: &Api) -> Result<()> {
    let maps = filled(api, &["a", "b", "c"]).await?;
    let page = api.get(&format!("{maps}?limit=1&{OWN}")).await?.ok()?;
    page.is("/metadata/remainingItemCount", json!(null))?;
    let plain = api.get(&format!("{maps}?limit=1")).await?.ok()?;
    ensure!(plain.at("/metadata/remainingItemCount").as_i64() >= Some(2), "{}", plain.text);
    Ok(())
}

async fn a_bad_token_is_refused(api: &Api) -> Result<()> {
    let refused = api.get("/api/v1/configmaps?continue=zzz").await?;
    refused.fails(400, "BadRequest", "invalid continue token: continue key is not valid")?;
    Ok(())
}

async fn continue_token_excludes_a_version(api: &Api) -> Result<()> {
    let maps = filled(api, &["a", "b"]).await?;
    let page = api.get(&format!("{maps}?limit=1")).await?.ok()?;
    let (token, version) = (page.text_at("/metadata/continue"), page.version());
    let refused = api.get(&format!("{maps}?limit=1&continue={token}&resourceVersion={version}")).await?;
    refused.fails(400, "BadRequest", "specifying resource version is not allowed when using continue")?;
    Ok(())
}

async fn the_last_page_has_no_token(api: &Api) -> Result<()> {
    let maps = filled(api, &["a", "z"]).await?;
    let whole = api.get(&format!("{maps}?{OWN}&limit=2")).await?.ok()?;
    whole.is("/metadata/continue", json!(null))?;
    let page = api.get(&format!("{maps}?{OWN}&limit=1")).await?.ok()?;
    let token = page.text_at("/metadata/continue");
    let last = api.get(&format!("{maps}?{OWN}&limit=1&continue={token}")).await?.ok()?;
    ensure!(last.names() == ["z"], "{:?}", last.names());
    last.is("/metadata/continue", json!(null))?;
    Ok(())
}

async fn a_full_page_says_that_there_may_be_more(api: &Api) -> Result<()> {
    let maps = filled(api, &["a", "z"]).await?;
    api.post(&maps, labelled("b", json!({"mine": "yes"}))).await?.ok()?;
    let page = api.get(&format!("{maps}?limit=1&labelSelector=mine")).await?.ok()?;
    ensure!(page.names() == ["b"], "{:?}", page.names());
    let token = page.text_at("/metadata/continue");
    ensure!(!token.is_empty(), "no token");
    let rest = api.get(&format!("{maps}?limit=1&labelSelector=mine&continue={token}")).await?.ok()?;
    ensure!(rest.names().is_empty(), "{:?}", rest.names());
    rest.is("/metadata/continue", json!(null))?;
    // If only one object can match, there are no more.
    let one = api.get(&format!("{maps}?limit=1&fieldSelector=metadata.name%3Db")).await?.ok()?;
    ensure!(one.names() == ["b"], "{:?}", one.names());
    one.is("/metadata/continue", json!(null))?;
    Ok(())
}

async fn long_lists_are_compressed(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let mut large = map("large");
    large["data"]["a"] = json!("x".repeat(200_000));
    api.post(&maps, large).await?.ok()?;
    let call = api.call(http::Method::GET, &maps).header("accept-encoding", "gzip");
    let packed = call.send().await?.ok()?;
    ensure!(packed.header("content-encoding") == "gzip", "{:?}", packed.headers);
    ensure!(
        packed.bytes.starts_with(&[0x1f, 0x8b]) && packed.bytes.len() < 100_000,
        "{}",
        packed.bytes.len()
    );
    Ok(())
}

async fn a_list_sends_no_initial_events(api: &Api) -> Result<()> {
    let refused = api.get("/api/v1/configmaps?sendInitialEvents=true").await?;
    refused.fails(422, "Invalid", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list")?;
    Ok(())
}
