//! The parts of the read plan for signs that nodes and controllers are alive, with definitions of custom resources, and
//! for the controllers of the objects in the query.

use std::collections::BTreeSet;

use taffrail_object::json::{Kind, Value};
use taffrail_object::kinds::is_namespaced;
use taffrail_object::{GroupKind, ObjectKey, Projection};
use taffrail_status::{ClusterState as _, Presence};

use super::{Plan, Read, Target, body_of, list};
use crate::delivery::Declarations;
use crate::kinds::KindCatalog;
use crate::snapshot::Listed;

/// The label by which the workloads of Flux and Argo CD are selected.
const PART_OF: &str = "app.kubernetes.io/part-of";

/// The Deployments of delivery tools that do not carry [`PART_OF`], namespace and name. They are read if an app of
/// Config Sync or kpt was found.
const UNLABELLED: [(&str, &str); 2] = [
    ("config-management-system", "reconciler-manager"),
    ("resource-group-system", "resource-group-controller-manager"),
];

/// The maximum number of kinds whose definition is read to learn if the kind has a status; the definitions of further
/// kinds are not read.
const MAX_DEFINITIONS: usize = 20;

impl Plan<'_> {
    /// Plans the reads of Leases, of the workloads of delivery tools, and of the definitions of kinds without a status,
    /// if the query sets [`ReadQuery::liveness`](super::ReadQuery::liveness); else none.
    pub(super) fn liveness(&self, catalog: &KindCatalog, found: &Declarations) -> Vec<Read> {
        if !self.asked.liveness {
            return Vec::new();
        }
        let mut reads = Vec::new();
        let leases = GroupKind::new("coordination.k8s.io", "Lease");
        if let Some(served) = catalog.get(&leases).filter(|served| served.is_listable())
            && self.snapshot.listed(&leases, None, Projection::Full) == Listed::No
        {
            reads.push(list(served, None, None, Projection::Full));
        }
        for kind in ["Deployment", "StatefulSet"] {
            let kind = GroupKind::new("apps", kind);
            let Some(served) = catalog.get(&kind).filter(|served| served.is_listable()) else { continue };
            let all = format!("{PART_OF} in (flux,argocd)");
            // Objects of a label group were listed by another selector already.
            let others = self.asked.app_labels.beside(PART_OF, &all);
            let lists: Vec<Read> = [Some(all), others]
                .into_iter()
                .flatten()
                .map(|labels| list(served, None, Some(labels), Projection::Full))
                .collect();
            let was_made = |it: &Read| self.snapshot.was_selected(&kind, None, &it.target, Projection::Full);
            if lists.iter().any(was_made) {
                continue;
            }
            match self.snapshot.listed(&kind, None, Projection::Full) {
                Listed::No => reads.extend(lists.into_iter().next()),
                Listed::Selected => reads.extend(lists.into_iter().nth(1)),
                Listed::Done => {}
            }
        }
        for (namespace, name) in UNLABELLED {
            let key = ObjectKey::new("apps", "Deployment", namespace, name);
            let is_used = found
                .all()
                .any(|app| matches!(app.delivery, crate::Delivery::ConfigSync | crate::Delivery::Kpt));
            if is_used && self.lacks(&key, Projection::Full) {
                reads.extend(self.object(catalog, &key, Projection::Full));
            }
        }
        reads.extend(self.definitions(catalog, found));
        reads
    }

    /// Plans reads of the definitions of custom resources of which a declared object has no status, for at most
    /// [`MAX_DEFINITIONS`] kinds.
    fn definitions(&self, catalog: &KindCatalog, found: &Declarations) -> Vec<Read> {
        let objects = found.all().filter(|app| app.cluster().is_some()).flat_map(|app| &app.objects);
        let mute = objects.filter(|key| {
            is_namespaced(&key.group, &key.kind).is_none()
                && matches!(self.snapshot.get(key.as_ref()), Presence::Present(observed) if observed.object.at(&["status"]).is_none_or(is_empty))
        });
        let kinds: BTreeSet<GroupKind> = mute.map(ObjectKey::group_kind).collect();
        let definition = |kind: GroupKind| {
            let served = catalog.get(&kind)?;
            let name = format!("{}.{}", served.plural, served.group);
            let key = ObjectKey::new("apiextensions.k8s.io", "CustomResourceDefinition", "", name);
            self.lacks(&key, Projection::Full).then(|| self.object(catalog, &key, Projection::Full)).flatten()
        };
        kinds.into_iter().take(MAX_DEFINITIONS).filter_map(definition).collect()
    }

    /// Plans the reads of the controllers of `ReadQuery::objects`, one level per round up to the topmost, if
    /// [`ReadQuery::owners`](super::ReadQuery::owners) is set.
    pub(super) fn owners(&self, catalog: &KindCatalog) -> Vec<Read> {
        if !self.asked.owners {
            return Vec::new();
        }
        let mut reads = Vec::new();
        for key in &self.asked.objects {
            let above = crate::owners::controllers(self.snapshot, key);
            let unread = above.iter().find(|it| self.lacks(it, body_of(&it.group, &it.kind)));
            let read = unread.and_then(|above| self.object(catalog, above, Projection::Full));
            reads.extend(read.filter(|read| !reads.contains(read)));
        }
        debug_assert!(reads.iter().all(|read: &Read| matches!(read.target, Target::Object(_))));
        reads
    }
}

fn is_empty(status: Value<'_>) -> bool {
    match status.kind() {
        Kind::Null => true,
        Kind::Object => status.members().is_none_or(|mut members| members.next().is_none()),
        _ => false,
    }
}
