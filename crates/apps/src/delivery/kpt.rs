//! Apps of kpt, declared by a `ResourceGroup`, which is the inventory of `kpt live apply`; Config Sync uses it as
//! well.

use std::collections::HashSet;

use sha1::{Digest as _, Sha1};
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef};
use taffrail_status::Observed;

use super::declared::{Declared, Declaring};
use super::destination::Target;
use super::notes::Notes;
use super::resource_group::{objects, reconciling, status_of_tool};
use super::{Declaration, Destination, config_sync, text};
use crate::agreement::{Claimant, Mark};
use crate::identity::{AppKey, Delivery};
use crate::sync::{Sync, SyncState};

/// Returns the app that a ResourceGroup declares; `None` for an inventory of Config Sync.
pub(super) fn declare(declaring: &Declaring<'_, '_>, notes: &mut Notes) -> Option<Declared> {
    let Declaring { home, objects, observed, .. } = *declaring;
    let is_own = !config_sync::owns(objects, observed.key);
    is_own.then(|| Declared {
        app: resource_group(home, observed, notes),
        target: Target::Home,
        release: None,
    })
}

/// Returns the inventory id of a ResourceGroup, which its objects carry as a mark; empty if it has none.
pub(crate) fn inventory_id(group: &Object<'_>) -> String {
    group.text(&["metadata", "labels", "cli-utils.sigs.k8s.io/inventory-id"]).into_owned()
}

/// Returns true for an id that `kpt live init` generates for a group: the SHA-1 of `<namespace>:<name>`, and
/// a time (`commands/live/init/cmdliveinit.go`, `generateID`).
fn is_generated(id: &str, group: ObjectKeyRef<'_>) -> bool {
    let Some((hash, _)) = id.split_once('-') else { return false };
    let own = Sha1::digest(format!("{}:{}", group.namespace, group.name));
    let digits = hash.as_bytes().chunks(2);
    digits.len() == own.len()
        && digits.zip(own).all(|(digits, byte)| digits == format!("{byte:02x}").as_bytes())
}

fn resource_group(home: usize, observed: &Observed<'_>, notes: &mut Notes) -> Declaration {
    let (key, object) = (observed.key, &observed.object);
    // Any author can give a group the id that objects elsewhere carry, if the group with that id was deleted
    // or is not shown. Only an id that is made of the group's own names cannot be another group's.
    let id = inventory_id(object);
    let is_own = |mark: &Mark| mark.is_bound_to(key.namespace) || is_generated(&id, key);
    let mark = Mark::of_inventory(&id).filter(is_own);
    let reconciling = reconciling(object);
    Declaration {
        home,
        destination: Destination::Cluster(home),
        delivery: Delivery::Kpt,
        namespace: key.namespace.to_owned(),
        name: key.name.to_owned(),
        key: AppKey::of(Delivery::Kpt, key.namespace, key.name, Some(object)),
        declaring: Some(key.to_owned()),
        // Without its controller a ResourceGroup never gets a status, or one of Taffrail's agent; its objects decide.
        never_reconciled: false,
        objects: objects(observed, home, notes).into(),
        unreadable: None,
        sync: sync(object),
        suspended: false,
        message: reconciling.map(|reconciling| reconciling.text("message")).unwrap_or_default(),
        trouble: trouble(object),
        source: None,
        delivered_by: None,
        checks: Vec::new(),
        claimant: Claimant::in_namespace(home, key.namespace, mark.into_iter().collect()),
    }
}

/// Returns the sync state by the per-object status of a ResourceGroup, in which `actuation` says if an object was
/// applied and `reconcile` if the change took effect: Syncing while that is of an older generation, else the first of
/// Failed, Syncing (pending) and OutOfSync (skipped) that any object shows. Unknown without a status, with one of
/// Taffrail's agent, or if it says nothing of an object.
fn sync(object: &Object<'_>) -> Sync {
    let status = status_of_tool(object);
    let statuses = || status.and_then(|status| status.get("resourceStatuses")?.items()).into_iter().flatten();
    let says = |wanted: &[&str]| {
        let is_wanted = |entry: Value<'_>| {
            let said =
                |key| entry.get(key).is_some_and(|value| wanted.iter().any(|wanted| value.is_str(wanted)));
            said("actuation") || said("reconcile")
        };
        statuses().any(is_wanted)
    };
    let name = |entry: Value<'_>| ["group", "kind", "namespace", "name"].map(|field| text(entry, &[field]));
    let told: HashSet<_> = statuses().map(name).collect();
    let resources = object.at(&["spec", "resources"]).and_then(Value::items).into_iter().flatten();
    let untold = resources.map(name).any(|resource| !told.contains(&resource));
    // Old controllers write the status of each object and nothing else.
    let silent = |entry: Value<'_>| entry.get("actuation").is_none();
    let number = |path: &[&str]| object.at(path).and_then(Value::as_i64);
    let (generation, observed) =
        (number(&["metadata", "generation"]), number(&["status", "observedGeneration"]));
    let state = if status.is_none() {
        SyncState::Unknown
    } else if generation.is_some() && observed.is_some() && generation != observed {
        SyncState::Syncing
    } else if says(&["Failed", "Timeout"]) {
        SyncState::Failed
    } else if says(&["Pending"]) {
        SyncState::Syncing
    } else if says(&["Skipped"]) {
        SyncState::OutOfSync
    } else if untold || statuses().any(silent) {
        SyncState::Unknown
    } else {
        SyncState::Synced
    };
    Sync { state, ..Sync::unknown() }
}

/// Returns the message about the first object that kpt could not apply, or that did not become ready; `None` if
/// there is none.
fn trouble(object: &Object<'_>) -> Option<String> {
    let mut statuses = object.at(&["status", "resourceStatuses"])?.items()?;
    statuses.find_map(|entry| {
        let field = |name| text(entry, &[name]);
        let failed = |what: &Option<String>| matches!(what.as_deref(), Some("Failed" | "Timeout"));
        let (actuation, reconcile) = (field("actuation"), field("reconcile"));
        let how = if failed(&actuation) {
            format!("{} {}", field("strategy").unwrap_or_else(|| "Apply".to_owned()), actuation?)
        } else if failed(&reconcile) {
            format!("reconcile {}", reconcile?)
        } else {
            return None;
        };
        let namespace = field("namespace").unwrap_or_default();
        let key = ObjectKey::new("", field("kind")?, namespace, field("name")?);
        Some(format!("kpt reports for {} {}: {how}", key.kind, key.path()))
    })
}
