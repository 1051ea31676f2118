//! Drift: objects that are not what was synced, by who wrote them since.

use jiff::Timestamp;
use taffrail_status::Object;
use taffrail_status::json::Value;

use super::{text, time};
use crate::objects::Objects;
use crate::sync::ObjectSync;

/// The most objects of which the time is looked for.
const MANY: usize = 20;

/// Returns since when objects differ from what was synced at `synced`: the earliest of the writes that made them differ.
///
/// Returns nothing unless that is known of each of them.
pub(super) fn since(unsynced: &[ObjectSync], objects: &dyn Objects, synced: Timestamp) -> Option<Timestamp> {
    if unsynced.len() > MANY {
        return None;
    }
    let written = unsynced.iter().map(|it| {
        let observed = objects.get(&it.key).found()?;
        write_after(&observed.object, synced)
    });
    written.collect::<Option<Vec<_>>>()?.into_iter().min()
}

/// Returns the time of the only write of an object after `synced` that was not Argo CD's; of several one may have changed
/// nothing that is declared.
fn write_after(object: &Object<'_>, synced: Timestamp) -> Option<Timestamp> {
    let managers = object.at(&["metadata", "managedFields"]).and_then(Value::items)?;
    let later = managers.filter_map(|entry| {
        let is_of_status = entry.get("subresource").is_some_and(|it| it.is_str("status"));
        let is_argo = text(entry, &["manager"]).is_some_and(|manager| manager.starts_with("argocd"));
        time(entry.get("time")).filter(|at| *at > synced && !is_of_status && !is_argo)
    });
    let later: Vec<Timestamp> = later.take(2).collect();
    match later.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}
