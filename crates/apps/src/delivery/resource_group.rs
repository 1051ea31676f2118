//! The objects that a `ResourceGroup` lists, an inventory that kpt and Config Sync write.

use taffrail_object::ObjectKey;
use taffrail_object::json::Value;
use taffrail_status::Observed;

use super::notes::Notes;
use super::{declared_objects, entries, gather, text};
use crate::names;

pub(super) const GROUP: &str = "kpt.dev";
pub(super) const KIND: &str = "ResourceGroup";

/// Returns the objects that a ResourceGroup lists, and its subgroups, which are objects too. Malformed entries are left
/// out, and those of objects are reported in `notes`.
pub(super) fn objects(group: &Observed<'_>, home: usize, notes: &mut Notes) -> Vec<ObjectKey> {
    let list = |name| group.object.at(&["spec", name]);
    let resources = entries(list("resources"), home, group.key, notes);
    let objects = declared_objects(resources.enumerate(), home, group.key, notes);
    let subgroup = |entry: Value<'_>| Some((text(entry, &["namespace"])?, text(entry, &["name"])?));
    let subgroups = entries(list("subgroups"), home, group.key, notes).filter_map(subgroup);
    let subgroups = subgroups.map(|(namespace, name)| ObjectKey::new(GROUP, KIND, namespace, name));
    gather(objects.into_iter().chain(subgroups.filter(|key| names::check(key).is_ok())))
}
