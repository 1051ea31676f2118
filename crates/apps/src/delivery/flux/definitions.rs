//! The CustomResourceDefinitions of the charts of HelmReleases.

use std::collections::HashMap;
use std::sync::Arc;

use taffrail_object::ObjectKey;

use super::super::labels;
use crate::memo::Memo;
use crate::objects::Objects;

/// The CustomResourceDefinitions of one cluster, by namespace and name of the HelmRelease in their labels.
type ByRelease = HashMap<(String, String), Vec<ObjectKey>>;

/// A cache of the CustomResourceDefinitions of each cluster, by the index of the cluster.
#[derive(Debug, Default)]
pub(crate) struct Definitions(Memo<usize, Arc<ByRelease>>);

impl Definitions {
    /// Returns the CustomResourceDefinitions in a cluster that helm-controller labelled for the HelmRelease
    /// `namespace`/`name`.
    pub(super) fn of(
        &self,
        objects: &dyn Objects,
        cluster: usize,
        namespace: &str,
        name: &str,
    ) -> Vec<ObjectKey> {
        let read = || {
            let mut known = ByRelease::new();
            for found in objects.of_kind("apiextensions.k8s.io", "CustomResourceDefinition", None) {
                let label = |key| found.object.text(&["metadata", "labels", key]);
                let name = label(labels::HELM_RELEASE);
                if !name.is_empty() {
                    let namespace = label("helm.toolkit.fluxcd.io/namespace");
                    let own = known.entry((namespace.into_owned(), name.into_owned())).or_default();
                    own.push(found.key.to_owned());
                }
            }
            Arc::new(known)
        };
        let known = self.0.get(objects, cluster, read);
        known.get(&(namespace.to_owned(), name.to_owned())).cloned().unwrap_or_default()
    }
}
