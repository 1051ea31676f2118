//! The objects that a `ResourceGroup` lists, an inventory that kpt and Config Sync write, and whose words its status is.

use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey};
use taffrail_status::Observed;

use super::notes::Notes;
use super::{Condition, declared_objects, entries, gather, is_blank, text};
use crate::names;

pub(crate) const GROUP: &str = "kpt.dev";
pub(crate) const KIND: &str = "ResourceGroup";

/// The end of the message of each condition that Taffrail's agent writes into a ResourceGroup. Any other client that
/// writes the condition writes a message of its own, so the mark goes with the words that it marks.
pub(crate) const OBSERVED_BY_AGENT: &str = " (observed by the Taffrail agent)";

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

/// Returns the condition `Reconciling` of a ResourceGroup; `None` if there is none, or if Taffrail's agent wrote it.
pub(super) fn reconciling<'a>(group: &Object<'a>) -> Option<Condition<'a>> {
    Condition::find(group, "Reconciling").filter(|condition| !is_of_agent(condition))
}

fn is_of_agent(condition: &Condition<'_>) -> bool {
    condition.text("message").ends_with(OBSERVED_BY_AGENT)
}

/// Returns the status of a ResourceGroup if it has one that kpt or a controller wrote. The status that Taffrail's agent
/// wrote repeats what Taffrail observed, so it is evidence of nothing; but once kpt tells what it did with the objects
/// (`actuation`), that counts, even if conditions of the agent are left beside it.
pub(crate) fn status_of_tool<'a>(group: &Object<'a>) -> Option<Value<'a>> {
    let status = group.section("status").filter(|status| !is_blank(*status))?;
    let mut entries = status.get("resourceStatuses").and_then(Value::items).into_iter().flatten();
    let is_agents = Condition::find(group, "Reconciling").is_some_and(|condition| is_of_agent(&condition));
    (!is_agents || entries.any(|entry| entry.get("actuation").is_some())).then_some(status)
}
