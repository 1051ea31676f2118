//! CustomResourceDefinitions: the resources that they define.

use std::sync::OnceLock;

use serde_json::{Value, json};
use taffrail_object::kinds::ALL_VERBS;

use crate::behaviour::{Behaviour, Behaviours};
use crate::error::Cause;
use crate::kinds::{Column, Resource, Scale, Version};
use crate::schema::Schema;

/// Builds the resource that a CustomResourceDefinition defines, with its served versions, preferred one first; `None`
/// if the definition lacks its group, kind, plural or versions.
pub(crate) fn resource(definition: &Value, does: &Behaviours) -> Option<Resource> {
    let spec = &definition["spec"];
    let names = accepted(definition);
    let texts = |value: &Value| -> Vec<String> { value.as_array().into_iter().flatten().map(text).collect() };
    let kind = names["kind"].as_str()?;
    let plural = names["plural"].as_str()?;
    let mut versions: Vec<&Value> =
        spec["versions"].as_array()?.iter().filter(|version| version["served"] != false).collect();
    versions.sort_by_key(|version| rank(version["name"].as_str().unwrap_or_default()));
    if !does.on(Behaviour::CustomVersions) {
        versions.truncate(1);
    }
    let established = definition["status"]["conditions"]
        .as_array()
        .is_some_and(|all| all.iter().any(|one| one["type"] == "Established" && one["status"] == "True"));
    Some(Resource {
        group: spec["group"].as_str()?.into(),
        kind: kind.into(),
        list_kind: names["listKind"].as_str().map_or_else(|| format!("{kind}List").into(), Into::into),
        plural: plural.into(),
        singular: names["singular"].as_str().map_or_else(|| kind.to_lowercase().into(), Into::into),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        verbs: ALL_VERBS.to_vec(),
        versions: versions.into_iter().map(|described| version(spec, described, does)).collect(),
        custom: true,
        served: established,
    })
}

fn accepted(definition: &Value) -> &Value {
    let accepted = &definition["status"]["acceptedNames"];
    if accepted["plural"].as_str().is_some_and(|plural| !plural.is_empty()) {
        accepted
    } else {
        &definition["spec"]["names"]
    }
}

fn version(spec: &Value, version: &Value, does: &Behaviours) -> Version {
    let name = version["name"].as_str().unwrap_or_default();
    let path = |value: &Value| -> Vec<String> {
        let text = value.as_str().unwrap_or_default();
        text.split('.').filter(|key| !key.is_empty()).map(str::to_owned).collect()
    };
    let scale = &version["subresources"]["scale"];
    let scale = scale.is_object().then(|| Scale {
        spec_replicas: path(&scale["specReplicasPath"]),
        status_replicas: path(&scale["statusReplicasPath"]),
        selector: scale.get("labelSelectorPath").map(path),
    });
    let column = |described: &Value| Column {
        name: text(&described["name"]),
        kind: text(&described["type"]),
        format: text(&described["format"]),
        description: text(&described["description"]),
        priority: described["priority"].as_i64().unwrap_or_default(),
        json_path: described["jsonPath"].as_str().and_then(|path| path.parse().ok()),
    };
    let own = version["additionalPrinterColumns"].as_array().filter(|columns| !columns.is_empty());
    let columns = match own {
        Some(columns) if does.on(Behaviour::CustomColumns) => {
            let mut all = crate::kinds::plain_columns();
            all.truncate(1);
            all.extend(columns.iter().map(column));
            all
        }
        _ => crate::kinds::plain_columns(),
    };
    let schema = version["schema"].get("openAPIV3Schema").cloned();
    let selectable = version["selectableFields"].as_array().into_iter().flatten();
    let selectable =
        selectable.map(|field| text(&field["jsonPath"]).trim_start_matches('.').to_owned()).collect();
    let deprecated = (version["deprecated"] == true).then(|| {
        version["deprecationWarning"].as_str().map_or_else(
            || format!("{}/{name} {} is deprecated", text(&spec["group"]), text(&spec["names"]["kind"])),
            str::to_owned,
        )
    });
    Version {
        name: name.into(),
        status: version["subresources"]["status"].is_object(),
        scale,
        columns,
        schema: schema.map(Schema::new),
        selectable,
        warning: deprecated,
        object_type: OnceLock::new(),
    }
}

/// Returns the sort key of a version, in the order of preference: `v2`, `v1`, `v1beta2`, `v1alpha1`, then others by
/// name.
fn rank(name: &str) -> (u8, i64, i64, String) {
    let parse = || {
        let rest = name.strip_prefix('v')?;
        let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let major: i64 = rest[..end].parse().ok()?;
        let (stage, minor) = match &rest[end..] {
            "" => return Some((0, -major, 0)),
            beta if beta.starts_with("beta") => (1, &beta[4..]),
            alpha if alpha.starts_with("alpha") => (2, &alpha[5..]),
            _ => return None,
        };
        Some((stage, -major, -minor.parse::<i64>().ok()?))
    };
    match parse() {
        Some((stage, major, minor)) => (stage, major, minor, String::new()),
        None => (3, 0, 0, name.to_owned()),
    }
}

/// Lists the errors in a CustomResourceDefinition; empty if it is valid.
pub(crate) fn faults(definition: &Value) -> Vec<Cause> {
    let spec = &definition["spec"];
    let mut causes = Vec::new();
    let wanted = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    if text(&definition["metadata"]["name"]) != wanted {
        causes.push(Cause::invalid(
            "metadata.name",
            &definition["metadata"]["name"],
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    for (field, value) in [("spec.group", &spec["group"]), ("spec.scope", &spec["scope"])] {
        if value.as_str().unwrap_or_default().is_empty() {
            causes.push(Cause::required(field, ""));
        }
    }
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(&spec["names"][name]).is_empty() {
            causes.push(Cause::required(format!("spec.names.{name}"), ""));
        }
    }
    let stored =
        spec["versions"].as_array().into_iter().flatten().filter(|version| version["storage"] == true);
    if stored.count() != 1 {
        let what = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &spec["versions"], what));
    }
    for (index, version) in spec["versions"].as_array().into_iter().flatten().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            causes.push(Cause::required(field, "schemas are required"));
        }
    }
    causes
}

/// Fills in the missing conversion (`None`), singular name and list kind of a CustomResourceDefinition.
pub(crate) fn default(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    let Some(names) = spec.get_mut("names").filter(|names| names.is_object()) else { return };
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    if !kind.is_empty() {
        if names["singular"].as_str().unwrap_or_default().is_empty() {
            names["singular"] = json!(kind.to_lowercase());
        }
        if names["listKind"].as_str().unwrap_or_default().is_empty() {
            names["listKind"] = json!(format!("{kind}List"));
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_sort_in_the_order_of_preference() {
        let mut names = ["v1beta1", "foo", "v1", "v2alpha1", "v10", "v1beta2", "v2"];
        names.sort_by_key(|name| super::rank(name));
        assert_eq!(names, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v2alpha1", "foo"]);
    }
}
