//! Sends one read of the plan of reads to an API server.

use taffrail_apps::{Read, Target};
use taffrail_cluster::{ApiResource, Cluster, ListRequest, ReadError};
use taffrail_object::json::OwnedDocument;

/// The result of a read: the objects and messages about malformed ones; `None` if the named object does not exist;
/// or an error.
pub(crate) type Outcome = Result<Option<(Vec<OwnedDocument>, Vec<String>)>, ReadError>;

/// Returns the API resource that a read requests; it is namespaced only if the read is in one namespace.
pub(crate) fn resource(read: &Read) -> ApiResource {
    ApiResource {
        group: read.group.clone(),
        version: read.version.clone(),
        kind: read.kind.clone(),
        plural: read.plural.clone(),
        namespaced: read.namespace.is_some(),
    }
}

/// Sends one read of the plan to the server, and returns its result: `None` if it is of one object that does not exist.
pub(crate) async fn read_one(cluster: &Cluster, read: &Read) -> Outcome {
    let resource = resource(read);
    let found = match &read.target {
        Target::Object(name) => {
            match cluster.get(&resource, read.namespace.as_deref(), name, read.projection).await? {
                Some(document) => (vec![document], Vec::new()),
                None => return Ok(None),
            }
        }
        Target::List { labels, fields } => {
            let request = ListRequest {
                namespace: read.namespace.as_deref(),
                projection: read.projection,
                label_selector: labels.as_deref(),
                field_selector: fields.as_deref(),
                ..ListRequest::all(&resource)
            };
            let listing = cluster.list(&request).await?;
            let malformed = listing.malformed.iter().map(|item| {
                let name = item.name.clone().unwrap_or_else(|| format!("item {}", item.index));
                format!("{} {name} is left out: {}", resource.full_name(), item.reason)
            });
            (listing.objects, malformed.collect())
        }
    };
    Ok(Some(found))
}
