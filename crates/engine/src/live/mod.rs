//! What is read of the live objects of an inventory, before it is decided which of them are deleted.

mod content;
mod facts;

use taffrail_apps::inventories::Inventory;
use taffrail_cluster::{Cluster, Discovery};
use taffrail_object::InventoryEntry;

use crate::error::EngineError;

pub(crate) use content::add as add_content;
pub(crate) use facts::{LiveFacts, Looked, look_up, uids};

/// Maximum number of reads that are sent to one API server at one time.
const AT_ONCE: usize = 16;

/// Looks up the entries of an inventory that are not declared, with all facts that their deletion depends on but the content of
/// Namespaces and kinds.
pub(crate) async fn look_up_all(
    cluster: &Cluster,
    discovery: &Discovery,
    inventory: &Inventory,
    entries: &[InventoryEntry],
) -> Result<Vec<Looked>, EngineError> {
    look_up(cluster, discovery, inventory, entries)
        .await
        .map_err(|error| EngineError::unreadable(cluster, &error))
}
