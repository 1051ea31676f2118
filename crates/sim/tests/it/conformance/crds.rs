//! Cases about custom resources.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::api::{Api, MERGE, TABLE};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

super::cases! { "custom resources":
    CustomResources a_definition_is_established,
    CustomInDiscovery discovery_shows_the_new_kind,
    DefinitionRemovesKind deleted_definition_removes_its_kind,
    CustomVersions a_kind_has_several_versions,
    CustomVersions unserved_version_is_not_found,
    Pruning unknown_fields_are_dropped,
    WarnUnknownFields unknown_fields_cause_a_warning,
    StrictFields unknown_fields_can_be_refused,
    Validation types_are_checked,
    Validation bounds_are_checked,
    CustomDefaults defaults_are_filled_in,
    CustomColumns a_kind_has_its_own_columns,
    DefinitionChecked a_definition_is_named_after_its_kind,
    NameConflicts second_definition_of_a_kind_is_refused,
    CustomNeedsVersion a_custom_object_is_replaced_at_a_version,
    ItemsWithoutKind items_of_custom_kinds_have_their_kind,
    RefuseOtherKind custom_objects_are_of_their_kind,
    FieldSelectors a_kind_has_its_own_selectable_fields,
}

async fn a_definition_is_established(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let definition = api.get(&format!("{DEFINITIONS}/{}", widgets.name)).await?.ok()?;
    for kind in ["NamesAccepted", "Established"] {
        let condition = definition.find("/status/conditions", "type", kind)?;
        ensure!(condition["status"] == "True", "{condition}");
    }
    definition.is("/status/acceptedNames/kind", "Widget")?.is("/status/storedVersions", json!(["v1"]))?;
    let created = api.post(&widgets.path, widgets.widget("a", json!({"size": 1}))).await?;
    created.code(201)?.is("/kind", "Widget")?.is("/metadata/namespace", widgets.namespace.clone())?;
    Ok(())
}

async fn discovery_shows_the_new_kind(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let known = || async {
        let groups = api.get_as("/apis", AGGREGATED).await?.ok()?;
        Ok(groups.find("/items", "metadata.name", &widgets.group).is_ok())
    };
    api.until("discovery tells the group", known).await?;
    let groups = api.get_as("/apis", AGGREGATED).await?.ok()?;
    let resource = &groups.find("/items", "metadata.name", &widgets.group)?["versions"][0]["resources"][0];
    ensure!(resource["resource"] == "widgets" && resource["singularResource"] == "widget", "{resource}");
    ensure!(resource["shortNames"] == json!(["wd"]) && resource["scope"] == "Namespaced", "{resource}");
    let kind = json!({"group": widgets.group, "version": "v1", "kind": "Widget"});
    ensure!(resource["responseKind"] == kind, "{resource}");
    ensure!(resource["subresources"][0]["subresource"] == "status", "{resource}");
    Ok(())
}

async fn deleted_definition_removes_its_kind(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    api.post(&widgets.path, widgets.widget("a", json!({}))).await?.ok()?;
    api.delete(&format!("{DEFINITIONS}/{}", widgets.name)).await?.ok()?;
    api.until("the kind is gone", || async { Ok(api.get(&widgets.path).await?.code == 404) }).await?;
    Ok(())
}

fn second_version(crd: &mut Value) {
    let mut second = crd["spec"]["versions"][0].clone();
    (second["name"], second["storage"]) = (json!("v1beta1"), json!(false));
    let mut third = second.clone();
    (third["name"], third["served"]) = (json!("v1alpha1"), json!(false));
    if let Some(versions) = crd["spec"]["versions"].as_array_mut() {
        versions.extend([second, third]);
    }
}

async fn a_kind_has_several_versions(api: &Api) -> Result<()> {
    let widgets = api.widgets(second_version).await?;
    api.post(&widgets.path, widgets.widget("a", json!({"size": 1}))).await?.ok()?;
    let other = api.get(&format!("{}/a", widgets.path.replace("/v1/", "/v1beta1/"))).await?.ok()?;
    other.is("/apiVersion", format!("{}/v1beta1", widgets.group))?.is("/spec/size", 1)?;
    let known = || async {
        let group = api.get(&format!("/apis/{}", widgets.group)).await?;
        Ok(group.at("/versions").as_array().map(Vec::len) == Some(2))
    };
    api.until("discovery tells both versions", known).await?;
    let group = api.get(&format!("/apis/{}", widgets.group)).await?.ok()?;
    group.is("/preferredVersion/version", "v1")?;
    Ok(())
}

async fn unserved_version_is_not_found(api: &Api) -> Result<()> {
    let widgets = api.widgets(second_version).await?;
    api.get(&widgets.path.replace("/v1/", "/v1beta1/")).await?.ok()?;
    api.get(&widgets.path.replace("/v1/", "/v1alpha1/")).await?.code(404)?;
    Ok(())
}

async fn unknown_fields_are_dropped(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let mut widget = widgets.widget("a", json!({"size": 1, "nonsense": {"x": 1}}));
    widget["more"] = json!(1);
    let created = api.post(&widgets.path, widget).await?.ok()?;
    created.is("/spec/nonsense", json!(null))?.is("/more", json!(null))?.is("/spec/size", 1)?;
    let kept = json!({"status": {"any": {"thing": 1}}});
    let patched = api.patch(&format!("{}/a/status", widgets.path), MERGE, kept).await?.ok()?;
    patched.is("/status/any/thing", 1)?;
    Ok(())
}

async fn unknown_fields_cause_a_warning(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let widget = widgets.widget("a", json!({"nonsense": 1}));
    let created = api.post(&format!("{}?fieldValidation=Warn", widgets.path), widget).await?.ok()?;
    ensure!(
        created.header("warning") == "299 - \"unknown field \\\"spec.nonsense\\\"\"",
        "{:?}",
        created.headers
    );
    Ok(())
}

async fn unknown_fields_can_be_refused(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let widget = widgets.widget("a", json!({"nonsense": 1}));
    let refused = api.post(&format!("{}?fieldValidation=Strict", widgets.path), widget).await?;
    refused.fails(400, "BadRequest", "strict decoding error: unknown field \"spec.nonsense\"")?;
    Ok(())
}

async fn types_are_checked(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let refused = api.post(&widgets.path, widgets.widget("a", json!({"size": "large"}))).await?;
    let message = format!(
        "Widget.{} \"a\" is invalid: spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
        widgets.group
    );
    refused.fails(422, "Invalid", &message)?.is("/details/causes/0/field", "spec.size")?;
    Ok(())
}

async fn bounds_are_checked(api: &Api) -> Result<()> {
    let widgets = api
        .widgets(|crd| {
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] =
                json!(["size"])
        })
        .await?;
    let refused = api.post(&widgets.path, widgets.widget("a", json!({"size": -1}))).await?;
    refused.fails(
        422,
        "Invalid",
        "spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0",
    )?;
    let refused = api.post(&widgets.path, widgets.widget("a", json!({"size": 1, "color": "green"}))).await?;
    refused.fails(
        422,
        "Invalid",
        "spec.color: Unsupported value: \"green\": supported values: \"red\", \"blue\"",
    )?;
    let refused = api.post(&widgets.path, widgets.widget("a", json!({}))).await?;
    refused.fails(422, "Invalid", "spec.size: Required value")?;
    Ok(())
}

async fn defaults_are_filled_in(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    api.post(&widgets.path, widgets.widget("a", json!({"size": 1})))
        .await?
        .ok()?
        .is("/spec/shape", "round")?;
    Ok(())
}

async fn a_kind_has_its_own_columns(api: &Api) -> Result<()> {
    let widgets = api
        .widgets(|crd| {
            crd["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
                {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
            ]);
        })
        .await?;
    api.post(&widgets.path, widgets.widget("a", json!({"size": 3}))).await?.ok()?;
    let conditions = json!({"status": {"conditions": [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True"}]}});
    api.patch(&format!("{}/a/status", widgets.path), MERGE, conditions).await?.ok()?;
    let table = api.get_as(&widgets.path, TABLE).await?.ok()?;
    table.is("/columnDefinitions/1/name", "Size")?.is("/columnDefinitions/1/type", "integer")?;
    table.is("/rows/0/cells", json!(["a", 3, "True"]))?;
    let plain = api.widgets(|_| {}).await?;
    let table = api.get_as(&plain.path, TABLE).await?.ok()?;
    table.is("/columnDefinitions/1/name", "Age")?;
    Ok(())
}

async fn a_definition_is_named_after_its_kind(api: &Api) -> Result<()> {
    let mut kept = Value::Null;
    let widgets = api.widgets(|crd| kept = crd.clone()).await?;
    let name = format!("gadgets.{}", widgets.group);
    kept["metadata"]["name"] = json!(name);
    let refused = api.post(DEFINITIONS, kept.clone()).await?;
    let message =
        format!("metadata.name: Invalid value: {name:?}: must be spec.names.plural+\".\"+spec.group");
    refused.fails(422, "Invalid", &message)?;
    Ok(())
}

async fn second_definition_of_a_kind_is_refused(api: &Api) -> Result<()> {
    let mut second = Value::Null;
    let widgets = api.widgets(|crd| second = crd.clone()).await?;
    let name = format!("gadgets.{}", widgets.group);
    second["metadata"]["name"] = json!(name);
    second["spec"]["names"] =
        json!({"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "GadgetList"});
    api.post(DEFINITIONS, second).await?.ok()?;
    let path = format!("{DEFINITIONS}/{name}");
    let told =
        || async { Ok(api.get(&path).await?.find("/status/conditions", "type", "NamesAccepted").is_ok()) };
    api.until("its names are judged", told).await?;
    let definition = api.get(&path).await?.ok()?;
    let condition = definition.find("/status/conditions", "type", "NamesAccepted")?;
    ensure!(condition["status"] == "False" && condition["reason"] == "KindConflict", "{condition}");
    ensure!(condition["message"] == "\"Widget\" is already in use", "{condition}");
    Ok(())
}

async fn a_custom_object_is_replaced_at_a_version(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    api.post(&widgets.path, widgets.widget("a", json!({"size": 1}))).await?.ok()?;
    let refused = api.put(&format!("{}/a", widgets.path), widgets.widget("a", json!({"size": 2}))).await?;
    refused.fails(
        422,
        "Invalid",
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update",
    )?;
    Ok(())
}

async fn items_of_custom_kinds_have_their_kind(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    api.post(&widgets.path, widgets.widget("a", json!({}))).await?.ok()?;
    let list = api.get(&widgets.path).await?.ok()?;
    list.is("/kind", "WidgetList")?.is("/items/0/kind", "Widget")?;
    list.is("/items/0/apiVersion", format!("{}/v1", widgets.group))?;
    let namespaces = api.get("/api/v1/namespaces?limit=1").await?.ok()?;
    namespaces.is("/items/0/kind", json!(null))?;
    Ok(())
}

async fn custom_objects_are_of_their_kind(api: &Api) -> Result<()> {
    let widgets = api.widgets(|_| {}).await?;
    let mut other = widgets.widget("a", json!({}));
    other["apiVersion"] = json!(format!("{}/v2", widgets.group));
    let refused = api.post(&widgets.path, other).await?;
    let message = format!(
        "the API version in the data ({0}/v2) does not match the expected API version ({0}/v1)",
        widgets.group
    );
    refused.fails(400, "BadRequest", &message)?;
    Ok(())
}

async fn a_kind_has_its_own_selectable_fields(api: &Api) -> Result<()> {
    let widgets = api
        .widgets(|crd| crd["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.color"}]))
        .await?;
    for (name, color) in [("a", "red"), ("b", "blue")] {
        api.post(&widgets.path, widgets.widget(name, json!({"color": color}))).await?.ok()?;
    }
    let list = api.get(&format!("{}?fieldSelector=spec.color%3Dblue", widgets.path)).await?.ok()?;
    ensure!(list.names() == ["b"], "{:?}", list.names());
    let call = api.call(Method::GET, &format!("{}?fieldSelector=spec.size%3D1", widgets.path));
    call.send().await?.fails(400, "BadRequest", "field label not supported: spec.size")?;
    Ok(())
}
