//! The objects that a `ResourceGroup` lists, an inventory that kpt and Config Sync write, and whose words its status is.

use std::collections::HashMap;

use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, names};
use taffrail_status::{Observed, Status};

use super::notes::Notes;
use super::{Condition, declared_objects, entries, gather, is_blank, text};
use crate::declaration::SaidHealth;

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

/// Returns the object that an entry of a ResourceGroup names, however malformed: `{group, kind, namespace, name}` of an
/// object, `{namespace, name}` of a subgroup, in its spec and in its status. A field that is missing is empty.
pub(crate) fn entry_key(entry: Value<'_>) -> ObjectKey {
    let [group, kind, namespace, name] = ["group", "kind", "namespace", "name"]
        .map(|field| entry.get(field).and_then(Value::as_str).unwrap_or_default().into_owned());
    ObjectKey { group, kind, namespace, name }
}

/// Returns the worst health that the controller of ResourceGroups says the objects of a group have; `None` if that
/// controller has not written the conditions that it alone writes, since nothing then keeps the statuses up to date.
pub(crate) fn said_health(group: &Object<'_>) -> Option<SaidHealth> {
    // What Taffrail's agent wrote repeats what it observed, and nobody keeps it up to date when the agent is gone.
    let (stalled, reconciling) = (Condition::find(group, "Stalled")?, reconciling(group)?);
    let number = |path: &[&str]| group.at(path).and_then(Value::as_i64);
    let (written, seen) = (number(&["metadata", "generation"]), number(&["status", "observedGeneration"]));
    let of_group = if stalled.is("True") {
        Some((Status::Failed, stalled))
    } else if !reconciling.is("False") || written.is_some() && seen != written {
        Some((Status::InProgress, reconciling))
    } else {
        None
    };
    let of_group = of_group.map(|(status, condition)| {
        let message = format!("the ResourceGroup is {}: {}", status.word(), condition.text("message"));
        SaidHealth { status, message, since: condition.since() }
    });
    let list = |path: &[&str; 2]| group.at(path).and_then(Value::items).into_iter().flatten();
    let told: HashMap<_, Value<'_>> = list(&["status", "resourceStatuses"])
        .chain(list(&["status", "subgroupStatuses"]))
        .map(|entry| (entry_key(entry), entry))
        .collect();
    let listed = list(&["spec", "resources"]).chain(list(&["spec", "subgroups"])).map(|entry| {
        let own = entry_key(entry);
        let word = told.get(&own).and_then(|entry| text(*entry, &["status"]));
        let status = word.as_deref().and_then(|word| word.parse().ok()).unwrap_or(Status::Unknown);
        (status, own)
    });
    let worst = listed.min_by_key(|(status, _)| *status).map(|(status, own)| {
        // Subgroups have no kind: they are all ResourceGroups.
        let kind = if own.kind.is_empty() { KIND } else { &own.kind };
        let message = format!("the ResourceGroup says that {kind} {} is {}", own.path(), status.word());
        SaidHealth { status, message, since: None }
    });
    let well = || SaidHealth {
        status: Status::Current,
        message: "the ResourceGroup lists no objects".to_owned(),
        since: None,
    };
    of_group.into_iter().chain(worst).min_by_key(|said| said.status).or_else(|| Some(well()))
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
