//! Cases about deleting: finalizers, preconditions, propagation, namespaces.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::api::{Api, MERGE, labelled, map};

super::cases! { "deletion":
    DeleteStatus deletion_returns_a_status,
    Finalizers a_finalizer_keeps_an_object,
    LastFinalizerRemoves object_is_removed_with_its_last_finalizer,
    NoNewFinalizers terminating_object_refuses_new_finalizers,
    DeletionUid deletion_checks_the_uid_precondition,
    DeletionVersion deletion_checks_the_version_precondition,
    PropagationChecked unknown_propagation_is_refused,
    Background dependents_are_deleted_in_the_background,
    Foreground an_owner_waits_for_its_dependents,
    Orphan dependents_can_be_orphaned,
    AbsentOwners object_with_missing_owner_is_deleted,
    SeveralOwners object_with_another_owner_stays,
    DeleteCollection a_collection_is_deleted,
    DeleteCollectionSelects deletecollection_honours_selectors,
    NamespaceEmpties namespace_is_deleted_with_its_objects,
    TerminatingRefuses terminating_namespace_refuses_new_objects,
    SystemNamespacesStay system_namespaces_cannot_be_deleted,
    Finalizers watch_sees_termination_and_deletion,
    UidIsKept recreated_object_has_a_new_uid,
}

async fn deletion_returns_a_status(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let uid = api.post(&maps, map("a")).await?.ok()?.text_at("/metadata/uid");
    let deleted = api.delete(&format!("{maps}/a")).await?;
    deleted.code(200)?.is("/kind", "Status")?.is("/status", "Success")?;
    deleted.is("/details", json!({"name": "a", "kind": "configmaps", "uid": uid}))?;
    api.delete(&format!("{maps}/a")).await?.fails(404, "NotFound", "configmaps \"a\" not found")?;
    Ok(())
}

fn held(name: &str) -> Value {
    let mut held = map(name);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    held
}

async fn a_finalizer_keeps_an_object(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, held("a")).await?.ok()?;
    let marked = api.delete(&format!("{maps}/a")).await?.ok()?;
    marked.is("/kind", "ConfigMap")?.is("/metadata/deletionGracePeriodSeconds", 0)?;
    ensure!(!marked.text_at("/metadata/deletionTimestamp").is_empty(), "{}", marked.text);
    let again = api.delete(&format!("{maps}/a")).await?.ok()?;
    ensure!(again.version() == marked.version(), "a second deletion is news");
    api.get(&format!("{maps}/a")).await?.ok()?;
    Ok(())
}

async fn object_is_removed_with_its_last_finalizer(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, held("a")).await?.ok()?;
    api.delete(&format!("{maps}/a")).await?.ok()?;
    let last =
        api.patch(&format!("{maps}/a"), MERGE, json!({"metadata": {"finalizers": null}})).await?.ok()?;
    last.is("/metadata/finalizers", json!(null))?.is("/kind", "ConfigMap")?;
    api.get(&format!("{maps}/a")).await?.code(404)?;
    Ok(())
}

async fn terminating_object_refuses_new_finalizers(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, held("a")).await?.ok()?;
    api.delete(&format!("{maps}/a")).await?.ok()?;
    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    let refused = api.patch(&format!("{maps}/a"), MERGE, more).await?;
    let message = "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
                   finalizers []string{\"example.com/more\"}";
    refused.fails(422, "Invalid", message)?;
    Ok(())
}

async fn deletion_checks_the_uid_precondition(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let uid = api.post(&maps, map("a")).await?.ok()?.text_at("/metadata/uid");
    let other = json!({"preconditions": {"uid": "11111111-1111-1111-1111-111111111111"}});
    let refused = api.delete_with(&format!("{maps}/a"), other).await?;
    let message = format!(
        "Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition \
         (11111111-1111-1111-1111-111111111111) does not match the UID in record ({uid}). The object might have been \
         deleted and then recreated"
    );
    refused.fails(409, "Conflict", &message)?;
    api.delete_with(&format!("{maps}/a"), json!({"preconditions": {"uid": uid}})).await?.ok()?;
    Ok(())
}

async fn deletion_checks_the_version_precondition(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?;
    let refused =
        api.delete_with(&format!("{maps}/a"), json!({"preconditions": {"resourceVersion": "1"}})).await?;
    refused.fails(
        409,
        "Conflict",
        "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record",
    )?;
    Ok(())
}

async fn unknown_propagation_is_refused(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?;
    let refused = api.delete_with(&format!("{maps}/a"), json!({"propagationPolicy": "Sideways"})).await?;
    let message =
        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Sideways\"";
    refused.fails(422, "Invalid", message)?;
    Ok(())
}

/// Creates the ConfigMap `owner` and its dependent `child`, with a finalizer if `held_child`; returns the path of
/// ConfigMaps.
async fn family(api: &Api, held_child: bool) -> Result<String> {
    let maps = api.maps().await?;
    let owner = api.post(&maps, map("owner")).await?.ok()?;
    let mut child = if held_child { held("child") } else { map("child") };
    child["metadata"]["ownerReferences"] = json!([reference(&owner.body)]);
    api.post(&maps, child).await?.ok()?;
    Ok(maps)
}

fn reference(owner: &Value) -> Value {
    let metadata = &owner["metadata"];
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"],
        "blockOwnerDeletion": true,
    })
}

async fn gone(api: &Api, path: &str) -> Result<()> {
    api.until(&format!("{path} is gone"), || async { Ok(api.get(path).await?.code == 404) }).await
}

async fn dependents_are_deleted_in_the_background(api: &Api) -> Result<()> {
    let maps = family(api, false).await?;
    // The collector of a real cluster learns of a dependent a little later.
    let policy = json!({"propagationPolicy": "Background"});
    api.delete_with(&format!("{maps}/owner"), policy).await?.ok()?.is("/kind", "Status")?;
    gone(api, &format!("{maps}/child")).await
}

async fn an_owner_waits_for_its_dependents(api: &Api) -> Result<()> {
    let maps = family(api, true).await?;
    let policy = json!({"propagationPolicy": "Foreground"});
    let marked = api.delete_with(&format!("{maps}/owner"), policy).await?.ok()?;
    marked.is("/metadata/finalizers", json!(["foregroundDeletion"]))?;
    let child = format!("{maps}/child");
    let marked = || async { Ok(!api.get(&child).await?.text_at("/metadata/deletionTimestamp").is_empty()) };
    api.until("the dependent is to go", marked).await?;
    api.get(&format!("{maps}/owner")).await?.ok()?;
    api.patch(&child, MERGE, json!({"metadata": {"finalizers": null}})).await?.ok()?;
    gone(api, &format!("{maps}/owner")).await
}

async fn dependents_can_be_orphaned(api: &Api) -> Result<()> {
    let maps = family(api, false).await?;
    let policy = json!({"propagationPolicy": "Orphan"});
    let marked = api.delete_with(&format!("{maps}/owner"), policy).await?.ok()?;
    marked.is("/metadata/finalizers", json!(["orphan"]))?;
    gone(api, &format!("{maps}/owner")).await?;
    api.get(&format!("{maps}/child")).await?.ok()?.is("/metadata/ownerReferences", json!(null))?;
    Ok(())
}

async fn object_with_missing_owner_is_deleted(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let mut child = map("child");
    let owner = json!({"metadata": {"name": "nobody", "uid": "11111111-1111-1111-1111-111111111111"}});
    child["metadata"]["ownerReferences"] = json!([reference(&owner)]);
    api.post(&maps, child).await?.ok()?;
    gone(api, &format!("{maps}/child")).await
}

async fn object_with_another_owner_stays(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let (one, other) = (api.post(&maps, map("one")).await?.ok()?, api.post(&maps, map("other")).await?.ok()?);
    let mut child = map("child");
    child["metadata"]["ownerReferences"] = json!([reference(&one.body), reference(&other.body)]);
    api.post(&maps, child).await?.ok()?;
    api.delete(&format!("{maps}/one")).await?.ok()?;
    let path = format!("{maps}/child");
    let alone = || async {
        let child = api.get(&path).await?.ok()?;
        Ok(child.at("/metadata/ownerReferences").as_array().map(Vec::len) == Some(1))
    };
    api.until("one owner is left", alone).await?;
    api.get(&path).await?.ok()?.is("/metadata/ownerReferences/0/name", "other")?;
    Ok(())
}

async fn a_collection_is_deleted(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    for name in ["a", "b"] {
        api.post(&maps, labelled(name, json!({"mine": "yes"}))).await?.ok()?;
    }
    api.delete(&maps).await?.ok()?.is("/kind", "ConfigMapList")?;
    let left = api.get(&format!("{maps}?labelSelector=mine")).await?.ok()?;
    ensure!(left.names().is_empty(), "{:?}", left.names());
    Ok(())
}

async fn deletecollection_honours_selectors(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    for (name, color) in [("a", "red"), ("b", "blue")] {
        api.post(&maps, labelled(name, json!({"color": color}))).await?.ok()?;
    }
    api.delete(&format!("{maps}?labelSelector=color%3Dred")).await?.ok()?;
    let left = api.get(&format!("{maps}?labelSelector=color")).await?.ok()?;
    ensure!(left.names() == ["b"], "{:?}", left.names());
    Ok(())
}

async fn namespace_is_deleted_with_its_objects(api: &Api) -> Result<()> {
    let namespace = api.namespace().await?;
    let path = format!("/api/v1/namespaces/{namespace}");
    api.get(&path)
        .await?
        .ok()?
        .is("/status/phase", "Active")?
        .is("/spec/finalizers", json!(["kubernetes"]))?;
    let labels = api.get(&path).await?.ok()?;
    ensure!(
        labels.at("/metadata/labels")["kubernetes.io/metadata.name"] == json!(namespace),
        "{}",
        labels.text
    );
    api.post(&format!("{path}/configmaps"), map("a")).await?.ok()?;
    let marked = api.delete(&path).await?.ok()?;
    marked.is("/status/phase", "Terminating")?;
    gone(api, &path).await?;
    api.get(&format!("{path}/configmaps/a")).await?.code(404)?;
    Ok(())
}

async fn terminating_namespace_refuses_new_objects(api: &Api) -> Result<()> {
    let namespace = api.namespace().await?;
    let path = format!("/api/v1/namespaces/{namespace}");
    api.post(&format!("{path}/configmaps"), held("a")).await?.ok()?;
    api.delete(&path).await?.ok()?;
    let refused = api.post(&format!("{path}/configmaps"), map("b")).await?;
    let message = format!(
        "configmaps \"b\" is forbidden: unable to create new content in namespace {namespace} because it is being terminated"
    );
    refused.fails(403, "Forbidden", &message)?;
    api.patch(&format!("{path}/configmaps/a"), MERGE, json!({"metadata": {"finalizers": null}})).await?;
    Ok(())
}

async fn system_namespaces_cannot_be_deleted(api: &Api) -> Result<()> {
    // A dry run, so that a server that would delete it does not.
    let refused = api.delete("/api/v1/namespaces/default?dryRun=All").await?;
    refused.fails(
        403,
        "Forbidden",
        "namespaces \"default\" is forbidden: this namespace may not be deleted",
    )?;
    Ok(())
}

async fn watch_sees_termination_and_deletion(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let version = api.post(&maps, held("a")).await?.ok()?.version();
    let mut watch = api
        .watch(&format!("{maps}?watch=1&resourceVersion={version}&fieldSelector=metadata.name%3Da"))
        .await?;
    api.delete(&format!("{maps}/a")).await?.ok()?;
    let marked = watch.expect("MODIFIED", "a").await?;
    ensure!(marked["metadata"]["deletionTimestamp"].is_string(), "{marked}");
    api.patch(&format!("{maps}/a"), MERGE, json!({"metadata": {"finalizers": []}})).await?.ok()?;
    watch.expect("DELETED", "a").await?;
    Ok(())
}

async fn recreated_object_has_a_new_uid(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let first = api.post(&maps, map("a")).await?.ok()?;
    api.delete(&format!("{maps}/a")).await?.ok()?;
    let second = api.post(&maps, map("a")).await?.ok()?;
    ensure!(first.text_at("/metadata/uid") != second.text_at("/metadata/uid"), "{}", second.text);
    // A precondition with the first uid is refused.
    let stale = json!({"metadata": {"uid": first.at("/metadata/uid")}, "data": {"a": "2"}});
    let refused = api.patch(&format!("{maps}/a"), MERGE, stale).await?;
    ensure!(refused.code == 422 || refused.code == 409, "{}", refused.text);
    api.get(&format!("{maps}/a")).await?.ok()?.is("/data/a", "1")?;
    Ok(())
}
