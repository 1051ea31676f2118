//! Cases about creating and updating.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::json;

use crate::api::{Api, MERGE, deployment, map};

super::cases! { "writes":
    CreateStamps a_new_object_is_stamped,
    CreateRefusesTwice existing_name_conflicts,
    Protobuf a_body_in_protobuf_is_read,
    Protobuf special_types_in_protobuf_are_read,
    Protobuf invalid_protobuf_body_is_refused,
    NamespaceMustExist create_requires_the_namespace,
    NamespaceMatches create_refuses_another_namespace,
    NameRequired create_requires_a_name,
    NameChecked a_name_is_a_dns_name,
    GenerateName a_name_can_be_generated,
    RefuseOtherKind another_kind_is_refused,
    RefuseOtherKind another_version_is_refused,
    CreateRefusesVersion a_new_object_has_no_version,
    CreateDropsStatus a_new_object_has_no_status,
    DryRunCreate dry_run_create_stores_nothing,
    DryRunUpdate dry_run_update_changes_nothing,
    DryRunDelete dry_run_delete_deletes_nothing,
    DryRunChecked dry_run_accepts_only_all,
    UpdateConflicts an_outdated_version_conflicts,
    UpdateUid another_uid_conflicts,
    NameMatches update_cannot_rename_an_object,
    CreationTimeIsKept update_keeps_the_creation_time,
    SameStaysSame update_without_changes_keeps_the_version,
    MetadataChecked labels_are_checked,
    MetadataChecked finalizers_are_checked,
    GenerationStarts generation_begins_at_one,
    GenerationCounts generation_counts_changes_of_the_spec,
    GenerationIgnoresLabels generation_does_not_count_labels,
    GenerationCountsAnnotations generation_of_deployments_counts_annotations,
    BodyLimit a_body_has_a_limit,
    Warnings deprecated_version_causes_a_warning,
    Warnings finalizers_of_custom_resources_are_only_warned_about,
    MetadataOnly a_write_can_be_answered_with_metadata,
    NamespaceMatches update_refuses_another_namespace,
    TooLargeVersion future_resource_version_is_refused_with_retry_after,
    ImmutableFields fields_that_cannot_change_are_refused,
}

async fn a_new_object_is_stamped(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let mut sent = map("a");
    sent["metadata"]["uid"] = json!("11111111-1111-1111-1111-111111111111");
    sent["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    let created = api.post(&maps, sent).await?;
    created.code(201)?.is("/kind", "ConfigMap")?.is("/apiVersion", "v1")?.is("/data/a", "1")?;
    let uid = created.text_at("/metadata/uid");
    ensure!(uid.len() == 36 && !uid.starts_with("1111"), "{uid}");
    ensure!(created.text_at("/metadata/creationTimestamp").starts_with("20"), "{}", created.text);
    ensure!(!created.text_at("/metadata/creationTimestamp").starts_with("2001"), "{}", created.text);
    ensure!(created.version().parse::<u64>().is_ok(), "{}", created.text);
    api.get(&format!("{maps}/a")).await?.ok()?.is("/metadata/uid", uid)?;
    Ok(())
}

async fn existing_name_conflicts(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?;
    let refused = api.post(&maps, map("a")).await?;
    refused.fails(409, "AlreadyExists", "configmaps \"a\" already exists")?;
    refused.is("/details", json!({"name": "a", "kind": "configmaps"}))?;
    Ok(())
}

async fn create_requires_the_namespace(api: &Api) -> Result<()> {
    let refused = api.post("/api/v1/namespaces/nowhere/configmaps", map("a")).await?;
    refused.fails(404, "NotFound", "namespaces \"nowhere\" not found")?.is("/details/kind", "namespaces")?;
    Ok(())
}

async fn create_refuses_another_namespace(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let mut other = map("a");
    other["metadata"]["namespace"] = json!("default");
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    api.post(&maps, other).await?.fails(400, "BadRequest", message)?;
    Ok(())
}

async fn create_requires_a_name(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let refused = api.post(&maps, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})).await?;
    let message =
        "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required";
    refused.fails(422, "Invalid", message)?.is("/details/causes/0/field", "metadata.name")?;
    Ok(())
}

async fn a_name_is_a_dns_name(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    for bad in ["B_", "-a", "a-", "a..b", "a b"] {
        let refused = api.post(&maps, map(bad)).await?;
        let message = format!(
            "ConfigMap {bad:?} is invalid: metadata.name: Invalid value: {bad:?}: a lowercase RFC 1123 subdomain must consist of"
        );
        refused.fails(422, "Invalid", &message)?.is("/details/causes/0/reason", "FieldValueInvalid")?;
    }
    let refused = api.post("/api/v1/namespaces", json!({"metadata": {"name": "a.b"}})).await?;
    refused.fails(422, "Invalid", "metadata.name: Invalid value: \"a.b\": must not contain dots")?;
    let refused = api.post("/api/v1/namespaces", json!({"metadata": {"name": "a_b"}})).await?;
    refused.fails(422, "Invalid", "a lowercase RFC 1123 label must consist of")?;
    Ok(())
}

async fn a_name_can_be_generated(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let sent = json!({"metadata": {"generateName": "some-"}});
    let (one, other) = (api.post(&maps, sent.clone()).await?.ok()?, api.post(&maps, sent).await?.ok()?);
    let (one, other) = (one.text_at("/metadata/name"), other.text_at("/metadata/name"));
    ensure!(one.starts_with("some-") && one.len() == 10 && one != other, "{one} {other}");
    Ok(())
}

async fn another_kind_is_refused(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let refused =
        api.post(&maps, json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})).await?;
    refused.fails(400, "BadRequest", "Secret in version \"v1\" cannot be handled as a ConfigMap")?;
    Ok(())
}

async fn another_version_is_refused(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let refused =
        api.post(&maps, json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}})).await?;
    refused.fails(400, "BadRequest", "ConfigMap in version \"v2\" cannot be handled as a ConfigMap")?;
    Ok(())
}

async fn a_new_object_has_no_version(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let mut sent = map("a");
    sent["metadata"]["resourceVersion"] = json!("5");
    api.post(&maps, sent).await?.fails(
        500,
        "",
        "resourceVersion should not be set on objects to be created",
    )?;
    Ok(())
}

async fn a_new_object_has_no_status(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let mut widget = widgets.widget("a", json!({"size": 1}));
    widget["status"] = json!({"seen": true});
    api.post(&widgets.path, widget).await?.ok()?.is("/status", json!(null))?.is("/spec/size", 1)?;
    Ok(())
}

async fn dry_run_create_stores_nothing(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let dry = api.post(&format!("{maps}?dryRun=All"), map("a")).await?;
    dry.code(201)?.is("/metadata/name", "a")?.is("/metadata/resourceVersion", json!(null))?;
    api.get(&format!("{maps}/a")).await?.code(404)?;
    Ok(())
}

async fn dry_run_update_changes_nothing(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let version = api.post(&maps, map("a")).await?.ok()?.version();
    let mut other = map("a");
    other["data"]["a"] = json!("2");
    api.put(&format!("{maps}/a?dryRun=All"), other).await?.ok()?.is("/data/a", "2")?;
    api.get(&format!("{maps}/a"))
        .await?
        .ok()?
        .is("/data/a", "1")?
        .is("/metadata/resourceVersion", version)?;
    Ok(())
}

async fn dry_run_delete_deletes_nothing(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?;
    api.delete(&format!("{maps}/a?dryRun=All")).await?.ok()?;
    api.get(&format!("{maps}/a")).await?.ok()?;
    Ok(())
}

async fn dry_run_accepts_only_all(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let refused = api.post(&format!("{maps}?dryRun=Some"), map("a")).await?;
    let message = "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"";
    refused.fails(422, "Invalid", message)?;
    Ok(())
}

async fn an_outdated_version_conflicts(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let first = api.post(&maps, map("a")).await?.ok()?;
    let mut changed = first.body.clone();
    changed["data"]["a"] = json!("2");
    api.put(&format!("{maps}/a"), changed.clone()).await?.ok()?;
    changed["data"]["a"] = json!("3");
    let refused = api.put(&format!("{maps}/a"), changed.clone()).await?;
    let message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your \
                   changes to the latest version and try again";
    refused.fails(409, "Conflict", message)?.is("/details", json!({"name": "a", "kind": "configmaps"}))?;
    changed["metadata"]["resourceVersion"] = json!(null);
    api.put(&format!("{maps}/a"), changed).await?.ok()?.is("/data/a", "3")?;
    Ok(())
}

async fn another_uid_conflicts(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?;
    let mut other = map("a");
    other["metadata"]["uid"] = json!("11111111-1111-1111-1111-111111111111");
    let refused = api.put(&format!("{maps}/a"), other).await?;
    refused.fails(
        409,
        "Conflict",
        "Precondition failed: UID in precondition: 11111111-1111-1111-1111-111111111111",
    )?;
    Ok(())
}

async fn update_cannot_rename_an_object(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?;
    let refused = api.put(&format!("{maps}/a"), map("b")).await?;
    refused.fails(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)")?;
    api.put(&format!("{maps}/c"), map("c")).await?.fails(404, "NotFound", "configmaps \"c\" not found")?;
    Ok(())
}

async fn update_keeps_the_creation_time(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let created = api.post(&maps, map("a")).await?.ok()?.text_at("/metadata/creationTimestamp");
    let mut sent = map("a");
    sent["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    sent["data"]["a"] = json!("2");
    api.put(&format!("{maps}/a"), sent).await?.ok()?.is("/metadata/creationTimestamp", created)?;
    Ok(())
}

async fn update_without_changes_keeps_the_version(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let first = api.post(&maps, map("a")).await?.ok()?;
    let again = api.put(&format!("{maps}/a"), first.body.clone()).await?.ok()?;
    ensure!(first.version() == again.version(), "{} {}", first.version(), again.version());
    Ok(())
}

async fn labels_are_checked(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let mut sent = map("a");
    sent["metadata"]["labels"] = json!({"a": "b c"});
    let refused = api.post(&maps, sent).await?;
    refused.fails(
        422,
        "Invalid",
        "metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or consist of",
    )?;
    Ok(())
}

async fn finalizers_are_checked(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let mut sent = map("a");
    sent["metadata"]["finalizers"] = json!(["a"]);
    let refused = api.post(&maps, sent).await?;
    let message = "metadata.finalizers[0]: Invalid value: \"a\": name is neither a standard finalizer name nor is it fully qualified";
    refused.fails(422, "Invalid", message)?;
    Ok(())
}

async fn finalizers_of_custom_resources_are_only_warned_about(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let mut widget = widgets.widget("a", json!({"size": 1}));
    widget["metadata"]["finalizers"] = json!(["finalizers.example.com"]);
    let created = api.post(&widgets.path, widget).await?;
    created.code(201)?;
    let warning = r#"299 - "metadata.finalizers: \"finalizers.example.com\": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers""#;
    ensure!(created.header("warning") == warning, "{}", created.header("warning"));
    let mut widget = created.body.clone();
    widget["spec"]["size"] = json!(2);
    let updated = api.put(&format!("{}/a", widgets.path), widget).await?.ok()?;
    ensure!(updated.header("warning").is_empty(), "{}", updated.header("warning"));
    Ok(())
}

async fn generation_begins_at_one(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let mut widget = widgets.widget("a", json!({"size": 1}));
    widget["metadata"]["generation"] = json!(7);
    api.post(&widgets.path, widget).await?.ok()?.is("/metadata/generation", 1)?;
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?.is("/metadata/generation", json!(null))?;
    Ok(())
}

async fn generation_counts_changes_of_the_spec(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let mut widget = api.post(&widgets.path, widgets.widget("a", json!({"size": 1}))).await?.ok()?.body;
    widget["spec"]["size"] = json!(2);
    let changed = api.put(&format!("{}/a", widgets.path), widget).await?.ok()?;
    changed.is("/metadata/generation", 2)?;
    api.put(&format!("{}/a", widgets.path), changed.body.clone())
        .await?
        .ok()?
        .is("/metadata/generation", 2)?;
    Ok(())
}

async fn generation_does_not_count_labels(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let mut widget = api.post(&widgets.path, widgets.widget("a", json!({"size": 1}))).await?.ok()?.body;
    widget["metadata"]["labels"] = json!({"a": "b"});
    api.put(&format!("{}/a", widgets.path), widget).await?.ok()?.is("/metadata/generation", 1)?;
    Ok(())
}

async fn generation_of_deployments_counts_annotations(api: &Api) -> Result<()> {
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", api.namespace().await?);
    api.post(&path, crate::api::deployment("web")).await?.ok()?;
    let one = format!("{path}/web");
    let settled = || async { Ok(api.get(&one).await?.ok()?.at("/status/observedGeneration").is_i64()) };
    api.until("the Deployment is observed", settled).await?;
    let before = api.get(&one).await?.ok()?.at("/metadata/generation").as_i64();
    let patch = json!({"metadata": {"annotations": {"example.com/a": "b"}}});
    let after = api.patch(&one, crate::api::MERGE, patch).await?.ok()?.at("/metadata/generation").as_i64();
    ensure!(after > before, "{before:?} {after:?}");
    Ok(())
}

async fn a_body_has_a_limit(api: &Api) -> Result<()> {
    // The server closes the connection after it.
    let api = &api.apart();
    let maps = api.maps().await?;
    let mut large = map("a");
    large["data"]["a"] = json!("x".repeat(3_200_000));
    let refused = api.post(&maps, large).await?;
    refused.fails(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")?;
    Ok(())
}

async fn deprecated_version_causes_a_warning(api: &Api) -> Result<()> {
    let widgets = api.widgets(|crd| crd["spec"]["versions"][0]["deprecated"] = json!(true)).await?;
    let created = api.post(&widgets.path, widgets.widget("a", json!({}))).await?.ok()?;
    let want = format!("299 - \"{}/v1 Widget is deprecated\"", widgets.group);
    ensure!(created.header("warning") == want, "{:?}", created.headers);
    let read = api.get(&format!("{}/a", widgets.path)).await?.ok()?;
    ensure!(read.header("warning") == want, "{:?}", read.headers);
    Ok(())
}

async fn a_write_can_be_answered_with_metadata(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let call = api.call(Method::POST, &maps).header("accept", crate::api::PARTIAL).json(map("a"));
    call.send().await?.code(201)?.is("/kind", "PartialObjectMetadata")?.is("/data", json!(null))?;
    Ok(())
}

async fn update_refuses_another_namespace(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    api.post(&maps, map("a")).await?.ok()?;
    let mut other = map("a");
    other["metadata"]["namespace"] = json!("default");
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    api.put(&format!("{maps}/a"), other).await?.fails(400, "BadRequest", message)?;
    Ok(())
}

async fn future_resource_version_is_refused_with_retry_after(api: &Api) -> Result<()> {
    let refused =
        api.get("/api/v1/namespaces?resourceVersion=99999999&resourceVersionMatch=NotOlderThan").await?;
    refused.fails(504, "Timeout", "Too large resource version: 99999999")?;
    ensure!(refused.header("retry-after") == "1", "{:?}", refused.headers);
    Ok(())
}

/// Encodes a field of a Protobuf message that contains bytes.
fn part(number: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()][..], bytes].concat()
}

/// Wraps an object in Kubernetes' Protobuf envelope.
fn enveloped(api_version: &str, kind: &str, object: &[Vec<u8>]) -> Vec<u8> {
    let described = [part(1, api_version), part(2, kind)].concat();
    [b"k8s\0".to_vec(), part(1, described), part(2, object.concat())].concat()
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

async fn a_body_in_protobuf_is_read(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let labels = part(11, [part(1, "app"), part(2, "web")].concat());
    let data = |key: &str, value: &str| part(2, [part(1, key), part(2, value)].concat());
    let object = [part(1, [part(1, "a"), labels].concat()), data("empty", ""), data("k", "v")];
    let body = enveloped("v1", "ConfigMap", &object);
    let made = api.call(Method::POST, &maps).body(PROTOBUF, body).send().await?.ok()?;
    made.is("/data", json!({"empty": "", "k": "v"}))?.is("/metadata/labels", json!({"app": "web"}))?;
    Ok(())
}

async fn special_types_in_protobuf_are_read(api: &Api) -> Result<()> {
    let services = format!("/api/v1/namespaces/{}/services", api.namespace().await?);
    let http =
        [part(1, "http"), vec![0x18, 80], part(4, [&[0x08, 1][..], &part(3, "web")].concat())].concat();
    let other = [part(1, "other"), vec![0x18, 81], part(4, [0x08, 0, 0x10, 82])].concat();
    let object = [part(1, part(1, "a")), part(2, [part(1, http), part(1, other)].concat())];
    let body = enveloped("v1", "Service", &object);
    let made = api.call(Method::POST, &services).body(PROTOBUF, body).send().await?.ok()?;
    made.is("/spec/ports/0/targetPort", "web")?.is("/spec/ports/1/targetPort", 82)?;
    made.is("/spec/ports/0/port", 80)?;
    let claims = services.replace("/services", "/persistentvolumeclaims");
    let requests = part(2, [part(1, "storage"), part(2, part(1, "1Gi"))].concat());
    let object = [part(1, part(1, "a")), part(2, [part(1, "ReadWriteOnce"), part(2, requests)].concat())];
    let body = enveloped("v1", "PersistentVolumeClaim", &object);
    let made = api.call(Method::POST, &claims).body(PROTOBUF, body).send().await?.ok()?;
    made.is("/spec/resources/requests", json!({"storage": "1Gi"}))?;
    made.is("/spec/accessModes", json!(["ReadWriteOnce"]))?;
    Ok(())
}

async fn invalid_protobuf_body_is_refused(api: &Api) -> Result<()> {
    let maps = api.maps().await?;
    let good = enveloped("v1", "ConfigMap", &[part(1, part(1, "a"))]);
    for body in [b"{}".to_vec(), good[..good.len() - 2].to_vec()] {
        let refused = api.call(Method::POST, &maps).body(PROTOBUF, body).send().await?;
        ensure!(refused.code == 400, "{} {}", refused.code, refused.text);
    }
    api.call(Method::POST, &maps).body(PROTOBUF, good).send().await?.ok()?;
    Ok(())
}

async fn fields_that_cannot_change_are_refused(api: &Api) -> Result<()> {
    let namespace = api.namespace().await?;
    let apps = format!("/apis/apps/v1/namespaces/{namespace}");
    let core = format!("/api/v1/namespaces/{namespace}");
    let mut web = deployment("web");
    web["spec"]["replicas"] = json!(0);
    api.post(&format!("{apps}/deployments"), web.clone()).await?.ok()?;
    web["spec"]["selector"] = json!({"matchLabels": {"app": "other"}});
    web["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    let refused = api.put(&format!("{apps}/deployments/web"), web.clone()).await?;
    refused.fails(422, "Invalid", "field is immutable")?.is("/details/causes/0/field", "spec.selector")?;

    let mut set = web;
    set["kind"] = json!("StatefulSet");
    set["spec"]["serviceName"] = json!("web");
    api.post(&format!("{apps}/statefulsets"), set.clone()).await?.ok()?;
    set["spec"]["serviceName"] = json!("other");
    let why = "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
               'updateStrategy'";
    api.put(&format!("{apps}/statefulsets/web"), set).await?.fails(422, "Invalid", why)?;

    let fixed = json!({"metadata": {"name": "fixed"}, "immutable": true, "data": {"a": "1"}});
    api.post(&format!("{core}/configmaps"), fixed).await?.ok()?;
    let refused = api.patch(&format!("{core}/configmaps/fixed"), MERGE, json!({"data": {"a": "2"}})).await?;
    refused.fails(422, "Invalid", "data: Forbidden: field is immutable when `immutable` is set")?;

    let secret = json!({"metadata": {"name": "a"}, "type": "example.com/a"});
    api.post(&format!("{core}/secrets"), secret).await?.ok()?;
    let refused = api.patch(&format!("{core}/secrets/a"), MERGE, json!({"type": "example.com/b"})).await?;
    refused.fails(422, "Invalid", "type: Invalid value: \"example.com/b\": field is immutable")?;
    api.patch(&format!("{core}/secrets/a"), MERGE, json!({"data": {"a": "MQ=="}})).await?.ok()?;
    Ok(())
}
