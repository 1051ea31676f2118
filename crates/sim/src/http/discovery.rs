//! Discovery: the API groups, versions and resources that the server serves.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use http::header;
use serde_json::{Value, json};

use super::{Answer, Asked};
use crate::behaviour::Behaviour;
use crate::error::{Answered, ApiError};
use crate::kinds::{Resource, SUBRESOURCE_VERBS, Version, group_version};
use crate::state::Inner;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// An API group with its versions, the preferred one first, and its resources.
struct Group {
    name: String,
    versions: Vec<String>,
    resources: Vec<Arc<Resource>>,
}

fn groups(inner: &Inner) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (_, resource) in inner.store().resources() {
        let hidden = resource.custom && !inner.does.on(Behaviour::CustomInDiscovery);
        if !resource.served || hidden {
            continue;
        }
        let at = match groups.iter().position(|group| *group.name == *resource.group) {
            Some(at) => at,
            None => {
                groups.push(Group {
                    name: resource.group.to_string(),
                    versions: Vec::new(),
                    resources: Vec::new(),
                });
                groups.len() - 1
            }
        };
        let Some(group) = groups.get_mut(at) else { continue };
        for version in &resource.versions {
            if !group.versions.iter().any(|known| *known == *version.name) {
                group.versions.push(version.name.to_string());
            }
        }
        group.resources.push(resource.clone());
    }
    // Custom groups come behind the built-in ones, sorted by name.
    let builtin =
        groups.iter().take_while(|group| group.resources.iter().any(|resource| !resource.custom)).count();
    if let Some(custom) = groups.get_mut(builtin..) {
        custom.sort_by(|one, other| one.name.cmp(&other.name));
    }
    for group in &mut groups {
        group.resources.sort_by(|one, other| one.plural.cmp(&other.plural));
    }
    if !inner.does.on(Behaviour::GroupOrder) {
        groups.reverse();
    }
    groups
}

/// Lists the resources of a group that a version has, each with its properties in that version.
fn in_version<'a>(group: &'a Group, version: &'a str) -> impl Iterator<Item = (&'a Resource, &'a Version)> {
    group.resources.iter().filter_map(move |resource| Some((&**resource, resource.version(version)?)))
}

pub(super) fn answer(
    inner: &Inner,
    asked: &Asked,
    group: Option<&str>,
    version: Option<&str>,
) -> Answered<Answer> {
    let groups = groups(inner);
    let does = &inner.does;
    match (group, version) {
        (Some(""), None) => {
            let (core, _): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.name.is_empty());
            if wants_aggregated(asked) && does.on(Behaviour::AggregatedCore) {
                return Ok(aggregated(inner, asked, &core));
            }
            if !does.on(Behaviour::PlainCore) {
                return Ok(Answer::not_found());
            }
            let host = asked.header(header::HOST);
            let addresses = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]);
            let answer =
                json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses});
            Ok(Answer::json(200, &answer))
        }
        (None, _) => {
            let others: Vec<Group> = groups.into_iter().filter(|group| !group.name.is_empty()).collect();
            if wants_aggregated(asked) && does.on(Behaviour::AggregatedGroups) {
                return Ok(aggregated(inner, asked, &others));
            }
            if !does.on(Behaviour::PlainGroups) {
                return Ok(Answer::not_found());
            }
            let groups: Vec<Value> = others.iter().map(described).collect();
            Ok(Answer::json(200, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})))
        }
        (Some(name), None) => {
            let Some(group) =
                groups.iter().find(|group| group.name == name).filter(|_| does.on(Behaviour::PlainGroup))
            else {
                return Ok(Answer::not_found());
            };
            let mut answer = described(group);
            answer["kind"] = json!("APIGroup");
            answer["apiVersion"] = json!("v1");
            Ok(Answer::json(200, &answer))
        }
        (Some(name), Some(version)) => {
            let group = groups.iter().find(|group| group.name == name);
            let Some(group) = group else { return Ok(Answer::not_found()) };
            if !group.versions.iter().any(|known| known == version) || !does.on(Behaviour::PlainResources) {
                return Err(ApiError::no_resource());
            }
            let resources: Vec<Value> = in_version(group, version)
                .flat_map(|(resource, version)| plain(inner, resource, version))
                .collect();
            Ok(Answer::json(
                200,
                &json!({
                    "kind": "APIResourceList", "apiVersion": "v1",
                    "groupVersion": group_version(name, version), "resources": resources,
                }),
            ))
        }
    }
}

/// Returns true if the `Accept` header names aggregated discovery (v2) before plain JSON.
fn wants_aggregated(asked: &Asked) -> bool {
    for range in asked.header(header::ACCEPT).split(',') {
        let parts: Vec<&str> = range.split(';').map(str::trim).collect();
        match parts.as_slice() {
            ["application/json" | "*/*"] => return false,
            ["application/json", rest @ ..] => {
                let all = ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"];
                if all.iter().all(|part| rest.contains(part)) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

fn aggregated(inner: &Inner, asked: &Asked, groups: &[Group]) -> Answer {
    let items: Vec<Value> = groups
        .iter()
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> = in_version(group, version)
                        .map(|(resource, described)| discovered(inner, resource, described))
                        .collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    });
    let mut hasher = DefaultHasher::new();
    list.to_string().hash(&mut hasher);
    let tag = format!("\"{:016X}\"", hasher.finish());
    if !inner.does.on(Behaviour::DiscoveryTag) {
        return Answer::json(200, &list).of_type(AGGREGATED);
    }
    if asked.header(header::IF_NONE_MATCH) == tag {
        // Clients take the content type of their cached copy from this answer.
        return Answer::not_modified().of_type(AGGREGATED).header(header::ETAG, tag);
    }
    Answer::json(200, &list).of_type(AGGREGATED).header(header::ETAG, tag).header(header::VARY, "Accept")
}

fn discovered(inner: &Inner, resource: &Resource, version: &Version) -> Value {
    let kind =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    // Discovery leaves the group and version of a built-in kind empty, as they are those of the list.
    let own = match resource.custom {
        true => kind(&resource.group, &version.name, &resource.kind),
        false => kind("", "", &resource.kind),
    };
    let mut described = json!({
        "resource": &*resource.plural, "responseKind": own,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": &*resource.singular, "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        described["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() && inner.does.on(Behaviour::Categories) {
        described["categories"] = json!(resource.categories);
    }
    let mut subresources = Vec::new();
    if resource.is("", "pods") {
        let verbs = json!(["create"]);
        subresources.push(json!({
            "subresource": "eviction", "responseKind": kind("policy", "v1", "Eviction"), "verbs": verbs,
        }));
        if inner.does.on(Behaviour::PodLogs) {
            subresources.push(json!({
                "subresource": "log", "responseKind": kind("", "", "Pod"), "verbs": ["get"],
            }));
        }
    }
    if version.scale.is_some() {
        let scale = kind("autoscaling", "v1", "Scale");
        subresources.push(json!({"subresource": "scale", "responseKind": scale, "verbs": SUBRESOURCE_VERBS}));
    }
    if version.status {
        let own = described["responseKind"].clone();
        subresources.push(json!({"subresource": "status", "responseKind": own, "verbs": SUBRESOURCE_VERBS}));
    }
    if !subresources.is_empty() {
        described["subresources"] = json!(subresources);
    }
    described
}

fn described(group: &Group) -> Value {
    let version =
        |version: &String| json!({"groupVersion": group_version(&group.name, version), "version": version});
    let versions: Vec<Value> = group.versions.iter().map(version).collect();
    json!({"name": group.name, "versions": versions, "preferredVersion": versions.first()})
}

/// Lists the entries of a resource and its subresources in unaggregated discovery.
fn plain(inner: &Inner, resource: &Resource, version: &Version) -> Vec<Value> {
    let mut own = json!({
        "name": &*resource.plural, "singularName": &*resource.singular, "namespaced": resource.namespaced,
        "kind": &*resource.kind, "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() && inner.does.on(Behaviour::ShortNames) {
        own["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() && inner.does.on(Behaviour::Categories) {
        own["categories"] = json!(resource.categories);
    }
    let mut all = vec![own];
    let subresource = |name: &str| {
        json!({
            "name": format!("{}/{name}", resource.plural), "singularName": "", "namespaced": resource.namespaced,
            "kind": &*resource.kind, "verbs": SUBRESOURCE_VERBS,
        })
    };
    if resource.is("", "pods") {
        let mut eviction = subresource("eviction");
        (eviction["group"], eviction["version"]) = (json!("policy"), json!("v1"));
        (eviction["kind"], eviction["verbs"]) = (json!("Eviction"), json!(["create"]));
        all.push(eviction);
        if inner.does.on(Behaviour::PodLogs) {
            let mut log = subresource("log");
            log["verbs"] = json!(["get"]);
            all.push(log);
        }
    }
    if version.scale.is_some() {
        let mut scale = subresource("scale");
        (scale["group"], scale["version"], scale["kind"]) =
            (json!("autoscaling"), json!("v1"), json!("Scale"));
        all.push(scale);
    }
    if version.status {
        all.push(subresource("status"));
    }
    all
}

/// Returns the answer to `/`: an object whose `paths` are sorted.
pub(super) fn paths(inner: &Inner) -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned(), "/apis/".to_owned()];
    for group in groups(inner).iter().filter(|group| !group.name.is_empty()) {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(group.versions.iter().map(|version| format!("/apis/{}/{version}", group.name)));
    }
    paths.extend(
        ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"].map(str::to_owned),
    );
    paths.sort();
    json!({"paths": paths})
}

/// Lists the group and version pairs that the server serves.
pub(super) fn group_versions(inner: &Inner) -> Vec<(String, String)> {
    let all = groups(inner).into_iter().flat_map(|group| {
        let name = group.name;
        group.versions.into_iter().map(move |version| (name.clone(), version))
    });
    all.collect()
}

/// Lists the resources that a group serves in a version; empty if the group or the version is unknown.
pub(super) fn resources(inner: &Inner, group: &str, version: &str) -> Vec<Arc<Resource>> {
    let found = groups(inner).into_iter().find(|known| known.name == group);
    let all = found.map(|group| group.resources).unwrap_or_default();
    all.into_iter().filter(|resource| resource.version(version).is_some()).collect()
}
