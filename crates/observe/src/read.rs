//! One read of the plan, as requests to an API server.

use taffrail_apps::{Read, Target};
use taffrail_cluster::{ApiResource, Cluster, ListRequest, ReadError};
use taffrail_object::json::OwnedDocument;

/// The outcome of a read: objects and the defects of malformed ones, no object of that name, or a failure.
pub(crate) type Outcome = Result<Option<(Vec<OwnedDocument>, Vec<String>)>, ReadError>;

/// Returns the resource that a read is addressed to.
pub(crate) fn resource(read: &Read) -> ApiResource {
    ApiResource {
        group: read.group.clone(),
        version: read.version.clone(),
        kind: read.kind.clone(),
        plural: read.plural.clone(),
        namespaced: read.namespace.is_some(),
    }
}

/// Sends one read of the plan.
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
                format!("{name}: {}", item.reason)
            });
            (listing.objects, malformed.collect())
        }
    };
    Ok(Some(found))
}
