//! The live objects of an inventory, and the facts about them that decide about their deletion.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use serde_json::{Map, Value};
use taffrail_apps::inventories::Inventory;
use taffrail_cluster::{ApiResource, Cluster, Discovery, ListRequest, ReadError};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{InventoryEntry, Object, ObjectKey, Projection};
use taffrail_plan::prune::{LiveContent, LiveEntry};

use super::AT_ONCE;

/// The number of objects of one kind and namespace from which on a list costs less than single reads.
const LIST_FROM: usize = 8;

/// The live object of an entry.
pub(crate) struct LiveFacts {
    /// The object; only a CustomResourceDefinition has more than metadata.
    pub(crate) object: Value,
    metadata: Map<String, Value>,
    has_mark: bool,
    claimed_by: Option<String>,
    pub(super) content: Option<LiveContent>,
}

impl LiveFacts {
    fn of(document: &OwnedDocument, key: &ObjectKey, inventory: &Inventory) -> Option<LiveFacts> {
        let object = document.root().to_tree().ok()?;
        let metadata = object.get("metadata").and_then(Value::as_object).cloned()?;
        let live = Object::new(document.root()).ok()?;
        let has_mark = inventory.has_mark(key.as_ref(), &live);
        let claimed_by = inventory.claimed_by(key.as_ref(), &live);
        Some(LiveFacts { object, metadata, has_mark, claimed_by, content: None })
    }

    pub(crate) fn entry(&self) -> LiveEntry<'_> {
        let LiveFacts { metadata, has_mark, claimed_by, content, .. } = self;
        LiveEntry { metadata, has_mark: *has_mark, claimed_by: claimed_by.clone(), content: content.clone() }
    }

    pub(crate) fn uid(&self) -> String {
        self.metadata.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

/// An entry, as it was looked up.
pub(crate) enum Looked {
    /// Its object, `None` if there is none.
    Known(Option<LiveFacts>),
    /// The API server may serve its kind, and discovery does not tell: nothing is known, for this reason.
    Unknown(String),
}

/// Looks up the live objects of entries, in their order.
///
/// # Errors
/// Returns an error if the API server does not let them be read.
pub(crate) async fn look_up(
    cluster: &Cluster,
    discovery: &Discovery,
    inventory: &Inventory,
    entries: &[InventoryEntry],
) -> Result<Vec<Looked>, ReadError> {
    let keys: Vec<&ObjectKey> = entries.iter().map(|entry| &entry.key).collect();
    let mut documents = documents(cluster, discovery, &keys).await?;
    let looked = entries.iter().map(|entry| {
        let key = &entry.key;
        if discovery.kind(&key.group, &key.kind).is_none()
            && let Some(broken) = discovery.broken().iter().find(|broken| broken.concerns(&key.group))
        {
            return Looked::Unknown(format!(
                "the kinds of {} could not be discovered: {}",
                broken.name, broken.reason
            ));
        }
        let document = documents.remove(key);
        Looked::Known(document.and_then(|document| LiveFacts::of(&document, key, inventory)))
    });
    Ok(looked.collect())
}

/// Returns the UIDs of the live objects with these keys.
///
/// # Errors
/// Returns an error if the API server does not let them be read.
pub(crate) async fn uids(
    cluster: &Cluster,
    discovery: &Discovery,
    keys: &[&ObjectKey],
) -> Result<BTreeSet<String>, ReadError> {
    let documents = documents(cluster, discovery, keys).await?;
    let uid = |document: &OwnedDocument| {
        let uid = document.root().at(&["metadata", "uid"]).and_then(|it| it.as_str())?;
        Some(uid.into_owned())
    };
    Ok(documents.values().filter_map(uid).collect())
}

/// Reads live objects: many of one kind and namespace by one list of metadata, others one by one.
async fn documents(
    cluster: &Cluster,
    discovery: &Discovery,
    keys: &[&ObjectKey],
) -> Result<BTreeMap<ObjectKey, OwnedDocument>, ReadError> {
    let mut groups: BTreeMap<(ApiResource, String), BTreeSet<ObjectKey>> = BTreeMap::new();
    for key in keys {
        let Some(kind) = discovery.kind(&key.group, &key.kind) else { continue };
        let place = (kind.preferred(), key.namespace.clone());
        groups.entry(place).or_default().insert((*key).clone());
    }
    let (mut found, mut single) = (BTreeMap::new(), Vec::new());
    let lists = groups.into_iter().map(|((resource, namespace), mut wanted)| async move {
        // What a definition defines is in its spec, which no list of metadata has.
        let is_listed = wanted.len() >= LIST_FROM && !is_definition(&resource);
        let mut seen = Vec::new();
        if is_listed {
            let request = ListRequest {
                namespace: Some(&*namespace).filter(|_| resource.namespaced),
                projection: Projection::Metadata,
                ..ListRequest::all(&resource)
            };
            let page = cluster.list_page(&request, None).await?;
            for document in page.objects {
                let Ok(object) = Object::new(document.root()) else { continue };
                let key = ObjectKey { name: object.name().into_owned(), ..key_in(&resource, &namespace) };
                if wanted.remove(&key) {
                    seen.push((key, document));
                }
            }
            // What is not on the first page of a long list may be on another one.
            if page.next.is_none() {
                wanted.clear();
            }
        }
        Ok::<_, ReadError>((seen, wanted.into_iter().map(|key| (resource.clone(), key)).collect::<Vec<_>>()))
    });
    let mut lists = futures::stream::iter(lists).buffer_unordered(AT_ONCE);
    while let Some(listed) = lists.next().await {
        let (seen, rest) = listed?;
        found.extend(seen);
        single.extend(rest);
    }
    let gets = single.into_iter().map(|(resource, key)| async move {
        let projection = if is_definition(&resource) { Projection::Full } else { Projection::Metadata };
        let namespace = Some(&*key.namespace).filter(|_| resource.namespaced);
        let document = cluster.get(&resource, namespace, &key.name, projection).await?;
        Ok::<_, ReadError>(document.map(|document| (key, document)))
    });
    let mut gets = futures::stream::iter(gets).buffer_unordered(AT_ONCE);
    while let Some(got) = gets.next().await {
        found.extend(got?);
    }
    Ok(found)
}

fn key_in(resource: &ApiResource, namespace: &str) -> ObjectKey {
    ObjectKey::new(&*resource.group, &*resource.kind, namespace, "")
}

fn is_definition(resource: &ApiResource) -> bool {
    resource.kind == "CustomResourceDefinition" && resource.group == "apiextensions.k8s.io"
}
