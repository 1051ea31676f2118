//! Inventories of delivery tools: the objects that a tool remembers to have applied, and the marks by which those are known.
//!
//! | tool | the inventory | the mark on its objects |
//! |---|---|---|
//! | Taffrail | the record of a set (a ConfigMap), with UIDs | the annotation `taffrail.dev/set` |
//! | Flux | `status.inventory` of a Kustomization or HelmRelease | labels of `*.toolkit.fluxcd.io` |
//! | kpt | `spec.resources` of a ResourceGroup | the annotation `config.k8s.io/owning-inventory` |
//! | cli-utils | the keys in the `data` of a ConfigMap | the annotation `config.k8s.io/owning-inventory` |
//! | Argo CD | `status.resources` of an Application | the tracking id, or the tracking label |
//! | Helm | the manifest of a release in its storage | annotations of `meta.helm.sh` |

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Tree, json};
use taffrail_object::json::Value;
use taffrail_object::{InventoryEntry, Object, ObjectKey, ObjectKeyRef, names, words};
use taffrail_status::Presence;

use crate::agreement::{Claimant, Mark};
use crate::delivery::argo::{self, claims_of};
use crate::delivery::helm_storage::{Storage, stored};
use crate::delivery::release::ReadReleases;
use crate::delivery::{flux, kpt, resource_group};
use crate::inventory_id;
use crate::objects::Objects;
use crate::sets::{INVENTORY_KEY, SetName, SetRecordError, read_inventory};

/// The label by which a ConfigMap is an inventory of cli-utils, and whose value a ResourceGroup of kpt has too.
const INVENTORY_LABEL: &str = "cli-utils.sigs.k8s.io/inventory-id";

/// The tool that keeps an inventory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InventoryTool {
    /// The record of a set.
    Taffrail,
    /// A Kustomization or HelmRelease.
    Flux,
    /// A ResourceGroup.
    Kpt,
    /// A ConfigMap of cli-utils.
    CliUtils,
    /// An Application.
    ArgoCd,
    /// A release in Helm's storage.
    Helm,
}

words! {
    InventoryTool { Taffrail, Flux, Kpt = "kpt", CliUtils = "cli-utils", ArgoCd = "Argo CD", Helm }
}

/// The objects that a delivery tool remembers to have applied, as one object of the cluster lists them.
#[derive(Debug, Clone)]
pub struct Inventory {
    /// The tool.
    pub tool: InventoryTool,
    /// The object that holds the inventory.
    pub key: ObjectKey,
    /// The objects, each once, without those whose names no object can have.
    pub entries: Vec<InventoryEntry>,
    claimant: Claimant,
}

/// The reason why an inventory cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InventoryError {
    /// There is no such object.
    #[error("{kind} {path} does not exist", kind = .0.kind, path = .0.path())]
    Absent(ObjectKey),
    /// The object was not read.
    #[error("{kind} {path} was not read: {why}", kind = .key.kind, path = .key.path())]
    Unread {
        /// The object.
        key: ObjectKey,
        /// The reason.
        why: String,
    },
    /// The object is not an inventory of a tool that Taffrail knows.
    #[error("{kind} {path} is not an inventory", kind = .0.kind, path = .0.path())]
    NotAnInventory(ObjectKey),
    /// The objects are in another cluster than the inventory.
    #[error("{kind} {path} delivers to another cluster", kind = .0.kind, path = .0.path())]
    Elsewhere(ObjectKey),
    /// The inventory is not the newest of its release.
    #[error("{kind} {path} is not the newest version of the release: that is {newest}", kind = .key.kind, path = .key.path())]
    NotNewest {
        /// The object.
        key: ObjectKey,
        /// The name of the object with the newest version.
        newest: String,
    },
    /// The tool has not written the inventory yet.
    #[error("{kind} {path} has no inventory yet", kind = .0.kind, path = .0.path())]
    Unwritten(ObjectKey),
    /// The inventory is damaged.
    #[error("the inventory of {kind} {path} cannot be used", kind = .key.kind, path = .key.path())]
    Damaged {
        /// The object.
        key: ObjectKey,
        /// The cause.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Inventory {
    /// Reads the inventory that the object `key` holds. For Argo CD the ConfigMap `argocd-cm` beside it counts, and for Helm the
    /// other versions of the release, of which metadata is enough.
    ///
    /// # Errors
    /// Returns an error if there is no such object, if it is not an inventory or a damaged one, or if the objects are in another
    /// cluster.
    pub fn read(objects: &dyn Objects, key: &ObjectKey) -> Result<Inventory, InventoryError> {
        let observed = match objects.get(key.as_ref()) {
            Presence::Present(observed) => observed,
            Presence::Absent => return Err(InventoryError::Absent(key.clone())),
            Presence::Unobserved(why) => {
                return Err(InventoryError::Unread { key: key.clone(), why: why.into_owned() });
            }
        };
        let object = &observed.object;
        let inventory = |tool, entries: Vec<InventoryEntry>, marks: Vec<Mark>| Inventory {
            tool,
            key: key.clone(),
            entries,
            claimant: Claimant::in_namespace(0, &key.namespace, marks),
        };
        let names_alone = |keys: BTreeSet<ObjectKey>| -> Vec<InventoryEntry> {
            let valid = keys.into_iter().filter(|key| names::check(key).is_ok());
            valid.map(|key| InventoryEntry { key, uid: None }).collect()
        };
        let id = object.text(&["metadata", "labels", INVENTORY_LABEL]);
        if let Some(set) = SetName::of_record(key) {
            let packed = object.at(&["binaryData", INVENTORY_KEY]).and_then(Value::as_str);
            let packed = packed.and_then(|text| STANDARD.decode(&*text).ok());
            let missing = || SetRecordError::Damaged { part: INVENTORY_KEY, cause: None };
            let entries = packed.ok_or_else(missing).and_then(|packed| read_inventory(&packed));
            let damaged =
                |cause: SetRecordError| InventoryError::Damaged { key: key.clone(), cause: Box::new(cause) };
            return Ok(Inventory { key: key.clone(), ..Inventory::of_set(&set, entries.map_err(damaged)?) });
        }
        match (&*key.group, &*key.kind) {
            (flux::KUSTOMIZE | flux::HELM, "Kustomization" | "HelmRelease") => {
                if object.at(&["spec", "kubeConfig"]).is_some_and(|it| !it.is_null()) {
                    return Err(InventoryError::Elsewhere(key.clone()));
                }
                if object.at(&["status", "inventory"]).is_none_or(Value::is_null) {
                    return Err(InventoryError::Unwritten(key.clone()));
                }
                let mark = match key.group == flux::KUSTOMIZE {
                    true => Mark::of_kustomization(&key.namespace, &key.name),
                    false => Mark::of_helm_release(&key.namespace, &key.name),
                };
                Ok(inventory(InventoryTool::Flux, names_alone(listed(object)), vec![mark]))
            }
            (resource_group::GROUP, resource_group::KIND) => {
                let marks = Mark::of_inventory(&kpt::inventory_id(object)).into_iter().collect();
                Ok(inventory(InventoryTool::Kpt, names_alone(listed(object)), marks))
            }
            ("", "ConfigMap") if !id.is_empty() => {
                let marks = Mark::of_inventory(&id).into_iter().collect();
                Ok(inventory(InventoryTool::CliUtils, names_alone(listed(object)), marks))
            }
            (argo::GROUP, "Application") => {
                if !argo::is_in_cluster(object) {
                    return Err(InventoryError::Elsewhere(key.clone()));
                }
                let marks = claims_of(objects, key.as_ref(), object);
                Ok(inventory(InventoryTool::ArgoCd, names_alone(listed(object)), marks))
            }
            ("", "ConfigMap" | "Secret") => {
                let Some((release, _)) = stored(&observed) else {
                    return Err(InventoryError::NotAnInventory(key.clone()));
                };
                let newest = Storage::of(objects).of_name(&key.namespace, release);
                if let Some(newest) = newest.filter(|newest| newest.name != key.name) {
                    return Err(InventoryError::NotNewest {
                        key: key.clone(),
                        newest: newest.name.to_owned(),
                    });
                }
                let (read, _) = ReadReleases::default().read(0, objects, key.as_ref(), None);
                let damaged = |cause| InventoryError::Damaged { key: key.clone(), cause: Box::new(cause) };
                let keys = read.map_err(damaged)?.declared().cloned().collect();
                let marks = vec![Mark::of_release(&key.namespace, release)];
                Ok(inventory(InventoryTool::Helm, names_alone(keys), marks))
            }
            _ => Err(InventoryError::NotAnInventory(key.clone())),
        }
    }

    /// Returns the inventory of a set, as its record lists it.
    pub fn of_set(set: &SetName, entries: Vec<InventoryEntry>) -> Inventory {
        Inventory {
            tool: InventoryTool::Taffrail,
            key: set.record_key(),
            entries,
            claimant: Claimant::in_namespace(0, &set.namespace, vec![Mark::of_set(set)]),
        }
    }

    /// Returns true if an object, of which metadata is enough, bears the mark of this inventory.
    pub fn has_mark(&self, key: ObjectKeyRef<'_>, object: &Object<'_>) -> bool {
        self.claimant.is_named(&Mark::all(key, object, &self.claimant.labels()))
    }

    /// Returns the app of another inventory whose mark an object bears, in words; `None` if there is none. Labels that users
    /// write as well claim nothing.
    pub fn claimed_by(&self, key: ObjectKeyRef<'_>, object: &Object<'_>) -> Option<String> {
        let marks = Mark::all(key, object, &[]);
        let has_own_helm_release = marks.iter().any(|mark| mark.is_of_helm_release() && self.is_own(mark));
        let is_foreign = |mark: &&Mark| {
            // The objects of a HelmRelease bear the mark of its release as well.
            let is_its_release = has_own_helm_release && mark.is_of_release();
            mark.is_written_by_tool() && !self.is_own(mark) && !is_its_release
        };
        marks.iter().find(is_foreign).map(Mark::to_string)
    }

    fn is_own(&self, mark: &Mark) -> bool {
        self.claimant.marks.contains(mark)
    }

    /// Returns the merge patch of the object that holds the inventory, after which it lists the entries for which `stays` is
    /// true; `None` for Flux' and Helm's, which those tools alone write, and for one that a status holds.
    pub fn patch(&self, stays: &dyn Fn(&ObjectKey) -> bool) -> Option<Tree> {
        let left: Vec<&ObjectKey> = self.entries.iter().map(|it| &it.key).filter(|key| stays(key)).collect();
        match self.tool {
            InventoryTool::Kpt => Some(json!({ "spec": resource_group_spec(left) })),
            InventoryTool::CliUtils => {
                let gone = self.entries.iter().map(|it| &it.key).filter(|key| !stays(key));
                let data: Map<String, Tree> =
                    gone.map(|key| (inventory_id::format(key), Tree::Null)).collect();
                Some(json!({ "data": data }))
            }
            InventoryTool::Taffrail | InventoryTool::Flux | InventoryTool::ArgoCd | InventoryTool::Helm => {
                None
            }
        }
    }
}

/// Returns the `spec` of a ResourceGroup that lists these objects.
pub fn resource_group_spec<'k>(keys: impl IntoIterator<Item = &'k ObjectKey>) -> Tree {
    let resources = keys.into_iter().map(|key| {
        let ObjectKey { group, kind, namespace, name } = key;
        json!({ "group": group, "kind": kind, "namespace": namespace, "name": name })
    });
    json!({ "resources": resources.collect::<Vec<_>>() })
}

/// Returns the `data` of a ConfigMap of cli-utils that lists these objects.
pub fn inventory_data<'k>(keys: impl IntoIterator<Item = &'k ObjectKey>) -> Tree {
    keys.into_iter().map(|key| (inventory_id::format(key), json!(""))).collect::<Map<_, _>>().into()
}

/// Returns the tracking id of Argo CD for an object of the Application called `app`, which has its namespace before an
/// underscore if it is not in that of Argo CD.
pub fn tracking_id(app: &str, key: &ObjectKey) -> String {
    let ObjectKey { group, kind, namespace, name } = key;
    format!("{app}:{group}/{kind}:{namespace}/{name}")
}

/// Returns the objects that an inventory object lists by their names: a ResourceGroup, the ConfigMap of cli-utils, a Flux object
/// or an Application, hooks left out. Leaves out malformed entries, and those without a kind or a name.
pub(crate) fn listed(inventory: &Object<'_>) -> BTreeSet<ObjectKey> {
    let items = |path: &[&str]| inventory.at(path).and_then(Value::items).into_iter().flatten();
    let resources = items(&["spec", "resources"]).map(resource_group::entry_key);
    let of_flux = items(&["status", "inventory", "entries"]).filter_map(|entry| {
        let id = entry.get("id").and_then(Value::as_str)?;
        inventory_id::parse(&id).ok()
    });
    let is_map = inventory.kind() == "ConfigMap" && inventory.group().is_empty();
    let data = inventory.at(&["data"]).filter(|_| is_map).and_then(Value::members).into_iter().flatten();
    let of_map = data.filter_map(|(id, _)| inventory_id::parse(&id).ok());
    let is_application = inventory.kind() == "Application" && inventory.group() == argo::GROUP;
    let of_argo = items(&["status", "resources"])
        .filter(|entry| is_application && entry.get("hook").and_then(Value::as_bool) != Some(true));
    let all = resources.chain(of_flux).chain(of_map).chain(of_argo.map(resource_group::entry_key));
    all.filter(|key| !key.kind.is_empty() && !key.name.is_empty()).collect()
}
