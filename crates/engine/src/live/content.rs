//! The objects that would go with a Namespace or a CustomResourceDefinition, though nobody asked for that.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use serde_json::Value;
use taffrail_apps::inventories::{Inventory, InventoryTool};
use taffrail_apps::sets::SET_MARK;
use taffrail_cluster::{ApiResource, Cluster, Discovery, ListRequest, ReadError, Reason};
use taffrail_object::json::{OwnedDocument, Value as Json};
use taffrail_object::{InventoryEntry, Object, ObjectKey, Projection};
use taffrail_plan::prune::LiveContent;

use super::AT_ONCE;
use super::facts::LiveFacts;
use crate::write::RUN_MARK;

/// The maximum number of pages of one kind that are counted.
const MAX_PAGES: usize = 4;

/// Kinds whose objects the cluster makes in each namespace, and which go with it.
const OF_CLUSTER: [(&str, &str); 5] = [
    ("", "Endpoints"),
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("coordination.k8s.io", "Lease"),
];

/// Counts what is in the Namespaces and of the kinds of the CustomResourceDefinitions among live objects. `leaving` are the UIDs
/// of the objects that the same run deletes.
pub(crate) async fn add(
    cluster: &Cluster,
    discovery: &Discovery,
    inventory: &Inventory,
    leaving: &BTreeSet<String>,
    live: impl Iterator<Item = (&InventoryEntry, &mut LiveFacts)>,
) {
    for (InventoryEntry { key, .. }, facts) in live {
        facts.content = match (&*key.group, &*key.kind) {
            ("", "Namespace") => {
                let counter = Counter { cluster, inventory, leaving, namespace: Some(&key.name) };
                counter.of_namespace(discovery).await
            }
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                let counter = Counter { cluster, inventory, leaving, namespace: None };
                match defined(&facts.object) {
                    Some(resource) => counter.of_kind(&resource).await,
                    // No version is served, so there is nothing to list.
                    None => None,
                }
            }
            _ => continue,
        };
    }
}

/// Returns the kind that a CustomResourceDefinition defines, in the first version that is served.
fn defined(definition: &Value) -> Option<ApiResource> {
    let spec = definition.get("spec")?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let is_served = |version: &&Value| version.get("served").and_then(Value::as_bool) == Some(true);
    let version = spec.get("versions")?.as_array()?.iter().find(is_served)?;
    Some(ApiResource {
        group: text(spec.get("group"))?,
        version: text(version.get("name"))?,
        kind: text(spec.pointer("/names/kind"))?,
        plural: text(spec.pointer("/names/plural"))?,
        namespaced: spec.get("scope").and_then(Value::as_str) == Some("Namespaced"),
    })
}

/// Counts objects that are not deleted for another reason.
struct Counter<'a> {
    cluster: &'a Cluster,
    inventory: &'a Inventory,
    leaving: &'a BTreeSet<String>,
    /// The Namespace whose content is counted; `None` for all objects of a kind.
    namespace: Option<&'a str>,
}

impl Counter<'_> {
    /// Returns what is in the namespace; `None` if that is not known.
    async fn of_namespace(&self, discovery: &Discovery) -> Option<LiveContent> {
        let is_measured = |group: &str| group == "metrics.k8s.io" || group.ends_with(".metrics.k8s.io");
        // Objects of kinds that are not known may exist.
        if discovery.broken().iter().any(|broken| !broken.group().is_some_and(is_measured)) {
            return None;
        }
        let kinds = discovery.resources().iter().filter(|kind| {
            kind.namespaced
                && kind.can_list()
                && !is_measured(&kind.group)
                && !OF_CLUSTER.contains(&(&*kind.group, &*kind.kind))
        });
        let lists = kinds.map(|kind| async move { self.of_kind(&kind.preferred()).await });
        let mut lists = futures::stream::iter(lists).buffered(AT_ONCE);
        let mut all = LiveContent::default();
        while let Some(content) = lists.next().await {
            let LiveContent { count, is_more, example } = content?;
            all.count += count;
            all.is_more |= is_more;
            all.example = all.example.or(example);
        }
        Some(all)
    }

    async fn of_kind(&self, resource: &ApiResource) -> Option<LiveContent> {
        let request = ListRequest {
            namespace: self.namespace,
            projection: Projection::Metadata,
            ..ListRequest::all(resource)
        };
        let mut content = LiveContent::default();
        let mut continued = None;
        for _ in 0..MAX_PAGES {
            let page = match self.cluster.list_page(&request, continued.as_deref()).await {
                Ok(page) => page,
                // Its definition was deleted meanwhile, or is not established yet.
                Err(error) if is_unserved(&error) => return Some(content),
                Err(_) => return None,
            };
            if !page.malformed.is_empty() {
                return None;
            }
            for document in page.objects {
                if let Some(key) = self.stays(resource, &document) {
                    content.count += 1;
                    content.example.get_or_insert(key);
                }
            }
            continued = page.next;
            if continued.is_none() {
                return Some(content);
            }
        }
        Some(LiveContent { is_more: true, ..content })
    }

    /// Returns the key of an object unless it is deleted for another reason.
    fn stays(&self, resource: &ApiResource, document: &OwnedDocument) -> Option<ObjectKey> {
        let object = Object::new(document.root()).ok()?;
        let uid = object.text(&["metadata", "uid"]);
        let namespace = object.namespace().into_owned();
        let key = ObjectKey::new(&*resource.group, &*resource.kind, namespace, object.name());
        let is_ending = object.at(&["metadata", "deletionTimestamp"]).is_some_and(|it| !it.is_null());
        let is_owned = object
            .at(&["metadata", "ownerReferences"])
            .and_then(Json::items)
            .is_some_and(|mut owners| owners.next().is_some());
        let goes = is_ending
            || self.leaving.contains(&*uid)
            || self.namespace.is_some() && (is_owned || is_of_namespace(&key, &object))
            || self.is_of_set(&key, &object);
        // What has no UID is computed at each request.
        (!goes && !uid.is_empty()).then_some(key)
    }

    /// Returns true for the record of the set, its kept manifests, and its hooks.
    fn is_of_set(&self, key: &ObjectKey, object: &Object<'_>) -> bool {
        let record = &self.inventory.key;
        if self.inventory.tool != InventoryTool::Taffrail {
            return key == record;
        }
        let is_beside = key.namespace == record.namespace && key.group.is_empty();
        let kept = key.name.strip_prefix(&*record.name).and_then(|rest| rest.strip_prefix("-v"));
        let is_kept = key.kind == "Secret"
            && kept.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'));
        let annotation = |name: &str| object.at(&["metadata", "annotations", name]);
        let is_hook = annotation(RUN_MARK).is_some()
            && annotation(SET_MARK).is_some()
            && self.inventory.has_mark(key.as_ref(), object);
        key == record || is_beside && is_kept || is_hook
    }
}

/// Returns true for an object that the cluster makes in each namespace.
fn is_of_namespace(key: &ObjectKey, object: &Object<'_>) -> bool {
    let token = ["metadata", "annotations", "kubernetes.io/service-account.name"];
    key.group.is_empty()
        && match (&*key.kind, &*key.name) {
            ("ConfigMap", "kube-root-ca.crt") | ("ServiceAccount", "default") => true,
            ("Secret", _) => object.at(&token).is_some_and(|it| it.is_str("default")),
            _ => false,
        }
}

fn is_unserved(error: &ReadError) -> bool {
    error.reason() == Reason::NotFound
}
