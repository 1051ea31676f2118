//! Cases about discovery, health and OpenAPI.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::json;

use crate::api::Api;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

super::cases! { "discovery":
    AggregatedCore core_in_one_answer,
    AggregatedGroups groups_in_one_answer,
    DiscoveryTag unchanged_discovery_is_not_sent_again,
    PlainCore versions_of_the_core_group,
    PlainGroups list_of_groups,
    PlainGroup one_group,
    PlainResources resources_of_a_version,
    PlainResources resources_of_the_core_group,
    ShortNames short_names,
    Categories categories,
    GroupOrder groups_in_order_of_preference,
    AggregatedGroups unsupported_forms_before_json_are_skipped,
    ServerVersion version_of_the_server,
    Health health_endpoints_answer_ok,
    VerboseHealth health_in_detail,
    RootPaths root_lists_paths,
    OpenApiIndex openapi_has_an_index,
    OpenApiDocuments openapi_describes_kinds_and_options,
    OpenApiFields openapi_describes_fields,
    OpenApiFields openapi_tells_the_types_of_lists,
    OpenApiV2 openapi_v2_defines_kinds,
    OpenApiV2 openapi_v2_in_protobuf,
    PodLogs discovery_shows_pod_logs,
}

async fn core_in_one_answer(api: &Api) -> Result<()> {
    let core = api.get_as("/api", &format!("{AGGREGATED},application/json")).await?.ok()?;
    core.is("/kind", "APIGroupDiscoveryList")?.is("/apiVersion", "apidiscovery.k8s.io/v2")?;
    ensure!(core.header("content-type") == AGGREGATED, "{}", core.header("content-type"));
    core.is("/items/0/versions/0/version", "v1")?.is("/items/0/versions/0/freshness", "Current")?;
    let pods = core.find("/items/0/versions/0/resources", "resource", "pods")?;
    ensure!(pods["scope"] == "Namespaced" && pods["responseKind"]["kind"] == "Pod", "{pods}");
    ensure!(pods["singularResource"] == "pod" && pods["shortNames"] == json!(["po"]), "{pods}");
    let nodes = core.find("/items/0/versions/0/resources", "resource", "nodes")?;
    ensure!(nodes["scope"] == "Cluster", "{nodes}");
    Ok(())
}

async fn groups_in_one_answer(api: &Api) -> Result<()> {
    let groups = api.get_as("/apis", AGGREGATED).await?.ok()?;
    let apps = groups.find("/items", "metadata.name", "apps")?;
    let resources = apps["versions"][0]["resources"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = resources.iter().filter_map(|resource| resource["resource"].as_str()).collect();
    ensure!(
        names == ["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"],
        "{names:?}"
    );
    let verbs = json!(["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]);
    ensure!(resources[2]["verbs"] == verbs, "{}", resources[2]);
    let subresources = resources[2]["subresources"].as_array().cloned().unwrap_or_default();
    let scale = subresources.iter().find(|subresource| subresource["subresource"] == "scale");
    let kind = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
    ensure!(scale.is_some_and(|scale| scale["responseKind"] == kind), "{subresources:?}");
    Ok(())
}

async fn unchanged_discovery_is_not_sent_again(api: &Api) -> Result<()> {
    let core = api.get_as("/api", AGGREGATED).await?.ok()?;
    let tag = core.header("etag").to_owned();
    ensure!(tag.starts_with('"') && tag.len() > 2, "no ETag: {tag:?}");
    let again = api.call(Method::GET, "/api").header("accept", AGGREGATED).header("if-none-match", &tag);
    let again = again.send().await?;
    again.code(304)?;
    ensure!(again.text.is_empty(), "{}", again.text);
    Ok(())
}

async fn versions_of_the_core_group(api: &Api) -> Result<()> {
    let core = api.get("/api").await?.ok()?;
    core.is("/kind", "APIVersions")?.is("/versions", json!(["v1"]))?;
    Ok(())
}

async fn list_of_groups(api: &Api) -> Result<()> {
    let groups = api.get("/apis").await?.ok()?;
    groups.is("/kind", "APIGroupList")?;
    let batch = groups.find("/groups", "name", "batch")?;
    ensure!(batch["preferredVersion"] == json!({"groupVersion": "batch/v1", "version": "v1"}), "{batch}");
    Ok(())
}

async fn one_group(api: &Api) -> Result<()> {
    let group = api.get("/apis/apps").await?.ok()?;
    group.is("/kind", "APIGroup")?.is("/name", "apps")?.is("/preferredVersion/groupVersion", "apps/v1")?;
    api.get("/apis/nothing.example.com").await?.code(404)?;
    Ok(())
}

async fn resources_of_a_version(api: &Api) -> Result<()> {
    let list = api.get("/apis/apps/v1").await?.ok()?;
    list.is("/kind", "APIResourceList")?.is("/groupVersion", "apps/v1")?;
    let deployments = list.find("/resources", "name", "deployments")?;
    ensure!(deployments["kind"] == "Deployment" && deployments["namespaced"] == true, "{deployments}");
    let status = list.find("/resources", "name", "deployments/status")?;
    ensure!(status["verbs"] == json!(["get", "patch", "update"]), "{status}");
    let scale = list.find("/resources", "name", "deployments/scale")?;
    ensure!(scale["kind"] == "Scale" && scale["group"] == "autoscaling", "{scale}");
    Ok(())
}

async fn resources_of_the_core_group(api: &Api) -> Result<()> {
    let list = api.get("/api/v1").await?.ok()?;
    list.is("/groupVersion", "v1")?;
    let namespaces = list.find("/resources", "name", "namespaces")?;
    ensure!(namespaces["namespaced"] == false && namespaces["singularName"] == "namespace", "{namespaces}");
    ensure!(!namespaces["verbs"].to_string().contains("deletecollection"), "{namespaces}");
    api.get("/apis/apps/v9").await?.fails(
        404,
        "NotFound",
        "the server could not find the requested resource",
    )?;
    Ok(())
}

async fn short_names(api: &Api) -> Result<()> {
    let list = api.get("/api/v1").await?.ok()?;
    ensure!(list.find("/resources", "name", "configmaps")?["shortNames"] == json!(["cm"]), "no short name");
    Ok(())
}

async fn categories(api: &Api) -> Result<()> {
    let list = api.get("/apis/apps/v1").await?.ok()?;
    ensure!(list.find("/resources", "name", "deployments")?["categories"] == json!(["all"]), "no category");
    Ok(())
}

async fn groups_in_order_of_preference(api: &Api) -> Result<()> {
    let groups = api.get("/apis").await?.ok()?;
    let names: Vec<&str> = groups
        .at("/groups")
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|group| group["name"].as_str())
        .collect();
    let at = |name: &str| names.iter().position(|known| *known == name);
    ensure!(at("apiregistration.k8s.io") == Some(0), "{names:?}");
    ensure!(at("apps") < at("batch") && at("batch") < at("coordination.k8s.io"), "{names:?}");
    Ok(())
}

async fn unsupported_forms_before_json_are_skipped(api: &Api) -> Result<()> {
    let future = "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList";
    let groups = api.get_as("/apis", &format!("{future},{AGGREGATED},application/json")).await?.ok()?;
    groups.is("/apiVersion", "apidiscovery.k8s.io/v2")?;
    api.get_as("/apis", &format!("{future},application/json")).await?.ok()?.is("/kind", "APIGroupList")?;
    Ok(())
}

async fn version_of_the_server(api: &Api) -> Result<()> {
    let version = api.get("/version").await?.ok()?;
    ensure!(version.text_at("/gitVersion").starts_with("v1."), "{}", version.text);
    version.is("/major", "1")?;
    Ok(())
}

async fn health_endpoints_answer_ok(api: &Api) -> Result<()> {
    for path in ["/healthz", "/livez", "/readyz"] {
        let health = api.get(path).await?.ok()?;
        ensure!(health.text == "ok", "{path}: {}", health.text);
    }
    Ok(())
}

async fn health_in_detail(api: &Api) -> Result<()> {
    let health = api.get("/readyz?verbose").await?.ok()?;
    ensure!(health.text.contains("[+]ping ok\n"), "{}", health.text);
    ensure!(health.text.ends_with("readyz check passed\n"), "{}", health.text);
    Ok(())
}

async fn root_lists_paths(api: &Api) -> Result<()> {
    let paths = api.get("/").await?.ok()?;
    let text = paths.at("/paths").to_string();
    ensure!(text.contains("\"/apis/apps/v1\"") && text.contains("\"/version\""), "{text}");
    Ok(())
}

async fn openapi_has_an_index(api: &Api) -> Result<()> {
    let index = api.get("/openapi/v3").await?.ok()?;
    let url = index.at("/paths")["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap_or_default().to_owned();
    ensure!(url.starts_with("/openapi/v3/apis/apps/v1?hash="), "{url}");
    api.get(&url).await?.ok()?.is("/openapi", "3.0.0")?;
    Ok(())
}

async fn openapi_describes_kinds_and_options(api: &Api) -> Result<()> {
    let document = api.get("/openapi/v3/apis/apps/v1").await?.ok()?;
    let patch = &document.at("/paths")["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    let kind = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    ensure!(patch["x-kubernetes-group-version-kind"] == kind, "{patch}");
    ensure!(patch["parameters"].to_string().contains("fieldValidation"), "{patch}");
    let schemas = document.at("/components/schemas").as_object().cloned().unwrap_or_default();
    let known = schemas.values().any(|schema| {
        schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| kinds.contains(&kind))
    });
    ensure!(known, "no schema of Deployment");
    Ok(())
}

async fn openapi_describes_fields(api: &Api) -> Result<()> {
    let apps = api.get("/openapi/v3/apis/apps/v1").await?.ok()?;
    let schemas = apps.at("/components/schemas");
    let spec = &schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"];
    ensure!(spec["replicas"]["type"] == "integer" && spec["paused"]["type"] == "boolean", "{spec}");
    let pod = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"];
    ensure!(pod["containers"]["type"] == "array" && pod["nodeSelector"]["type"] == "object", "{pod}");
    // Fields of embedded Go types are inlined.
    let volume = &schemas["io.k8s.api.core.v1.Volume"]["properties"];
    ensure!(volume["emptyDir"].is_object() && volume["name"].is_object(), "{volume}");
    Ok(())
}

async fn openapi_tells_the_types_of_lists(api: &Api) -> Result<()> {
    let core = api.get("/openapi/v3/api/v1").await?.ok()?;
    let schemas = core.at("/components/schemas");
    let pod = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"];
    let containers = &pod["containers"];
    ensure!(containers["x-kubernetes-list-type"] == "map", "{containers}");
    ensure!(containers["x-kubernetes-list-map-keys"] == json!(["name"]), "{containers}");
    ensure!(pod["nodeSelector"]["x-kubernetes-map-type"] == "atomic", "{pod}");
    let port = &schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"];
    ensure!(port["default"] == "TCP", "{port}");
    Ok(())
}

async fn openapi_v2_defines_kinds(api: &Api) -> Result<()> {
    let document = api.get_as("/openapi/v2", "application/json").await?.ok()?;
    document.is("/swagger", "2.0")?;
    let deployment = &document.at("/definitions")["io.k8s.api.apps.v1.Deployment"];
    let kind = json!([{"group": "apps", "kind": "Deployment", "version": "v1"}]);
    ensure!(deployment["x-kubernetes-group-version-kind"] == kind, "{deployment}");
    let reference = "#/definitions/io.k8s.api.apps.v1.DeploymentSpec";
    ensure!(deployment["properties"]["spec"]["$ref"] == reference, "{deployment}");
    ensure!(document.at("/definitions").get("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").is_some());
    Ok(())
}

async fn openapi_v2_in_protobuf(api: &Api) -> Result<()> {
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let document = api.get_as("/openapi/v2", accept).await?.ok()?;
    let found = document.header("content-type");
    ensure!(found == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", "{found}");
    ensure!(document.bytes.starts_with(b"\x0a\x032.0"), "{:?}", document.bytes.get(..8));
    let name = b"io.k8s.api.apps.v1.DeploymentSpec";
    ensure!(document.bytes.windows(name.len()).any(|window| window == name), "Deployments are not defined");
    Ok(())
}

async fn discovery_shows_pod_logs(api: &Api) -> Result<()> {
    let core = api.get("/api/v1").await?.ok()?;
    let log = core.find("/resources", "name", "pods/log")?;
    ensure!(log["kind"] == "Pod" && log["verbs"] == json!(["get"]), "{log}");
    Ok(())
}
