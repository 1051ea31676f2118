//! The Helm release of a HelmRelease in the storage of its target cluster.

use std::sync::Arc;

use taffrail_object::{ObjectKey, ObjectKeyRef};
use taffrail_status::Trust;

use super::super::helm_storage::Storage;
use super::super::notes::{Notes, ReleaseErrors};
use super::super::{Declaration, dedup};
use super::releases::{ReleaseClaims, ReleaseName, ReleaseProof};
use crate::agreement::Mark;
use crate::fleet::Fleet;

/// The release that a HelmRelease declares.
#[derive(Debug)]
pub(in crate::delivery) struct DeclaredRelease {
    /// The names that the release has and had, the present one first.
    pub(super) names: Vec<ReleaseName>,
    /// The namespace whose storage holds the release.
    pub(super) storage_namespace: String,
    /// The namespace into which the objects are delivered.
    pub(super) delivered: String,
    /// True if the HelmRelease itself lists its objects, so that the release need not be read.
    pub(super) has_inventory: bool,
    /// The object that stores the newest version, by the status of the HelmRelease; `None` if the status names none.
    pub(super) latest: Option<ObjectKey>,
}

impl DeclaredRelease {
    /// Sets the marks of `app`, and reads its objects from the stored release unless its inventory lists them; returns
    /// the claim of `app` on that release. `None` if the target cluster was not queried: then only the marks are set.
    pub(in crate::delivery) fn resolve(
        self,
        fleet: &Fleet<'_>,
        trust: &Trust,
        app: &mut Declaration,
        notes: &mut Notes,
    ) -> Option<ReleaseClaims> {
        let cluster = app.cluster();
        let mark = Mark::of_helm_release(&app.namespace, &app.name);
        // An author of a HelmRelease chooses the name of the release and the namespace that it is delivered
        // into, so marks of Helm prove something only in the namespace of the HelmRelease itself.
        let is_own = self.delivered == app.namespace && cluster == Some(app.home);
        let of_helm = self.names.iter().filter(|_| is_own).map(|name| name.mark(&self.delivered));
        app.claimant.marks = of_helm.chain([mark.clone()]).collect();
        let cluster = cluster?;
        let is_beside = cluster == app.home && self.storage_namespace == app.namespace;
        let listed = || Arc::new(app.objects.iter().cloned().collect());
        let needed = (!is_beside).then(|| ReleaseProof {
            mark,
            delivered: self.delivered.clone(),
            own: app.namespace.clone(),
            listed: self.has_inventory.then(listed),
        });
        if !self.has_inventory {
            let is_own = cluster == app.home || fleet.trusts(app.home, trust);
            self.read_objects(fleet, cluster, is_own, app, notes);
        }
        let DeclaredRelease { names, storage_namespace: namespace, .. } = self;
        Some(ReleaseClaims { cluster, namespace, names, needed })
    }

    /// Gives `app` the objects and hooks of the stored release, with the CustomResourceDefinitions that are labelled
    /// for the HelmRelease, or makes its objects unreadable if the release cannot be read. If none is stored, `app`
    /// keeps no objects. If `is_own`, errors about the release are those of the cluster that stores it; else of the
    /// cluster that declares the app.
    fn read_objects(
        &self,
        fleet: &Fleet<'_>,
        cluster: usize,
        is_own: bool,
        app: &mut Declaration,
        notes: &mut Notes,
    ) {
        let Some(key) = self.stored(fleet.storage(cluster)) else { return };
        let of_claim = || ReleaseErrors::of_claim(app, fleet.objects(cluster).name());
        let of = if is_own { None } else { of_claim() };
        let of = of.unwrap_or_else(|| ReleaseErrors::of_storage(cluster, key.as_ref()));
        match notes.release(&app.namespace, fleet, cluster, key.as_ref(), Some(&self.delivered)) {
            Ok(release) => {
                notes.report_release(&of, &release.written.malformed);
                // They are not part of the release, but helm-controller labels those that it applies.
                let own = fleet.definitions.of(fleet.objects(cluster), cluster, &app.namespace, &app.name);
                app.objects = release.objects.clone();
                if !own.is_empty() {
                    let mut keys: Vec<_> = release.objects.iter().chain(&own).cloned().collect();
                    dedup(&mut keys);
                    app.objects = keys.into();
                }
                notes.definitions = Some(cluster);
                app.claimant.hooks = release.hooks.clone();
            }
            Err(error) => {
                let message = notes.unreadable(&of, key.as_ref(), &error);
                app.unreadable = Some((key, message));
            }
        }
    }

    /// Returns the key of the object that stores the newest version of the release: by the objects that were read,
    /// else by the status of the HelmRelease. `None` if neither shows one.
    fn stored(&self, storage: &Storage<'_>) -> Option<ObjectKey> {
        let namespace = &*self.storage_namespace;
        let newest = self.names.first().and_then(|name| match name {
            ReleaseName::Exact(name) => storage.of_name(namespace, name),
            ReleaseName::Shortened(start) => storage.newest(namespace, start, |own| name.is(own)),
        });
        // If only the status says that there is one, it was not read.
        newest.map(ObjectKeyRef::to_owned).or_else(|| self.latest.clone())
    }
}
