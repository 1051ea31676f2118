//! The ids in the inventory of a Kustomization or HelmRelease, by which Flux remembers what it applied.
//!
//! An id is `<namespace>_<name>_<group>_<kind>`; the version stands beside it. Cluster-scoped objects have
//! no namespace and the core group no name: `_shop__Namespace`. Names of RBAC objects may hold `:`, which
//! is written `__`.

use taffrail_object::ObjectKey;

/// An inventory entry that is not the id of an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("inventory entry '{0}' is not <namespace>_<name>_<group>_<kind>")]
pub struct MalformedEntry(pub String);

/// Parses an inventory id; `__` in the name becomes `:`, whatever the kind.
///
/// ```
/// use taffrail_apps::inventory_id;
///
/// let key = inventory_id::parse("_system__controller__node_rbac.authorization.k8s.io_ClusterRole")?;
/// assert_eq!(key.to_string(), "rbac.authorization.k8s.io/ClusterRole//system:controller:node");
/// # Ok::<(), inventory_id::MalformedEntry>(())
/// ```
///
/// # Errors
/// When the id has too few fields, or an empty name or kind.
pub fn parse(id: &str) -> Result<ObjectKey, MalformedEntry> {
    // Names may hold `_`, the other fields do not: they are taken off from both ends.
    let fields = || {
        let (namespace, rest) = id.split_once('_')?;
        let (rest, kind) = rest.rsplit_once('_')?;
        let (name, group) = rest.rsplit_once('_')?;
        let named = !name.is_empty() && !kind.is_empty();
        named.then(|| ObjectKey::new(group, kind, namespace, name.replace("__", ":")))
    };
    fields().ok_or_else(|| MalformedEntry(id.to_owned()))
}

/// Returns the inventory id of an object, `<namespace>_<name>_<group>_<kind>`, with `__` for each `:` in the name of an
/// RBAC object.
pub fn format(key: &ObjectKey) -> String {
    let ObjectKey { group, kind, namespace, name } = key;
    let rbac = group == "rbac.authorization.k8s.io"
        && matches!(&**kind, "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding");
    if rbac {
        format!("{namespace}_{}_{group}_{kind}", name.replace(':', "__"))
    } else {
        format!("{namespace}_{name}_{group}_{kind}")
    }
}
