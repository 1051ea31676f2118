//! The CustomResourceDefinitions of the charts of HelmReleases.

use std::collections::HashMap;

use taffrail_object::ObjectKey;

use super::super::labels;
use crate::objects::Objects;

/// The CustomResourceDefinitions of one cluster, by namespace and name of the HelmRelease in their labels.
type ByRelease = HashMap<(String, String), Vec<ObjectKey>>;

/// A cache of the CustomResourceDefinitions of each cluster, by the index of the cluster.
#[derive(Debug, Default)]
pub(crate) struct Definitions(HashMap<usize, ByRelease>);

impl Definitions {
    /// Returns the CustomResourceDefinitions in a cluster that helm-controller labelled for the HelmRelease
    /// `namespace`/`name`.
    pub(super) fn of(
        &mut self,
        objects: &dyn Objects,
        cluster: usize,
        namespace: &str,
        name: &str,
    ) -> &[ObjectKey] {
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
            known
        };
        let known = self.0.entry(cluster).or_insert_with(read);
        known.get(&(namespace.to_owned(), name.to_owned())).map(Vec::as_slice).unwrap_or_default()
    }
}
