//! The kinds that declare apps.

use taffrail_object::GroupKind;

use super::read::{Read, Target};
use crate::delivery::porch;
use crate::identity::Delivery;
use crate::kinds::KindCatalog;

/// A kind that is read before discovery has answered: group, version, kind and plural.
pub(super) type Declaring = (&'static str, &'static str, &'static str, &'static str);

pub(super) const FLUX_SOURCES: &str = "source.toolkit.fluxcd.io";

/// The kinds that declare apps, and the sources of Flux, in the versions that are served most.
pub(super) const DECLARING: [Declaring; 12] = [
    ("argoproj.io", "v1alpha1", "Application", "applications"),
    ("configsync.gke.io", "v1beta1", "RepoSync", "reposyncs"),
    ("configsync.gke.io", "v1beta1", "RootSync", "rootsyncs"),
    ("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases"),
    ("kpt.dev", "v1alpha1", "ResourceGroup", "resourcegroups"),
    ("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations"),
    (FLUX_SOURCES, "v1", "Bucket", "buckets"),
    (FLUX_SOURCES, "v1", "ExternalArtifact", "externalartifacts"),
    (FLUX_SOURCES, "v1", "GitRepository", "gitrepositories"),
    (FLUX_SOURCES, "v1", "HelmChart", "helmcharts"),
    (FLUX_SOURCES, "v1", "HelmRepository", "helmrepositories"),
    (FLUX_SOURCES, "v1", "OCIRepository", "ocirepositories"),
];

/// The kinds of Porch that declare apps (packages) or are their sources (repositories), by group. They are read only
/// where discovery shows them, which is rare.
pub(super) const DECLARING_SELDOM: [(&str, &str); 2] = [(porch::GROUP, porch::KIND), porch::REPOSITORY];

/// Returns true for a list in all namespaces, without a selector, of one of the [`DECLARING`] kinds, if that kind was
/// already listed in single namespaces (`is_listed_in_some`): such a list goes beyond the namespace of the query.
///
/// If it is forbidden, that is not reported, and the user is shown the result without it.
pub(crate) fn is_widened(read: &Read, is_listed_in_some: bool) -> bool {
    let is_list =
        read.namespace.is_none() && matches!(read.target, Target::List { labels: None, fields: None });
    let declares = |declaring: &Declaring| declaring.0 == read.group && declaring.2 == read.kind;
    is_list && is_listed_in_some && DECLARING.iter().any(declares)
}

/// Returns true if objects of a kind declare apps or are sources of apps; false for Secret, although Helm stores
/// releases in Secrets.
pub(crate) fn is_declaring(group: &str, kind: &str) -> bool {
    DECLARING.iter().any(|declaring| declaring.0 == group && declaring.2 == kind)
        || DECLARING_SELDOM.contains(&(group, kind))
}

/// Returns the kinds of `catalog` that a plan with [`ReadQuery::declaring_only`] reads, and of the groups whose discovery
/// failed those that may have such kinds.
///
/// [`ReadQuery::declaring_only`]: crate::ReadQuery::declaring_only
pub fn declaring_kinds(catalog: &KindCatalog) -> KindCatalog {
    let kinds = catalog.iter().filter(|served| is_declaring(&served.group, &served.kind)).cloned();
    let is_declaring_group = |name: &str| {
        name == KindCatalog::ALL_GROUPS
            || DECLARING.iter().map(|declaring| declaring.0).chain([porch::GROUP]).any(|group| group == name)
    };
    let broken = catalog.broken_groups().filter(|(group, _)| is_declaring_group(group));
    KindCatalog::new(kinds, broken.map(|(group, reason)| (group.to_owned(), reason.to_owned())))
}

/// Returns true if apps may be missing when objects of this kind cannot be listed: the kind declares apps, or is
/// Secret, which stores Helm releases.
pub fn declares_apps(kind: &GroupKind) -> bool {
    let GroupKind { group, kind } = kind;
    let declares =
        |declaring: &Declaring| declaring.0 == group && declaring.2 == kind && declaring.0 != FLUX_SOURCES;
    DECLARING.iter().any(declares)
        || (group.is_empty() && kind == "Secret")
        || (group == porch::GROUP && kind == porch::KIND)
}

/// Returns true if a group has kinds that declare apps, other than the core group with Helm's Secrets.
pub(crate) fn is_declaring_group(group: &str) -> bool {
    group == porch::GROUP || DECLARING.iter().any(|declaring| declaring.0 == group && group != FLUX_SOURCES)
}

/// Returns true if objects of a kind may declare an app of `delivery`; for `None`, label groups and Taffrail's own
/// apps, if they may declare any app. For Helm only Secrets, not ConfigMaps.
pub(crate) fn may_declare(kind: &GroupKind, delivery: Option<Delivery>) -> bool {
    let is_its = match delivery {
        Some(Delivery::FluxKustomization) => kind.kind == "Kustomization",
        Some(Delivery::FluxHelmRelease) => kind.kind == "HelmRelease",
        Some(Delivery::ArgoApplication) => kind.kind == "Application",
        Some(Delivery::ConfigSync) => matches!(&*kind.kind, "RootSync" | "RepoSync"),
        Some(Delivery::Kpt) => kind.kind == "ResourceGroup",
        Some(Delivery::Porch) => kind.group == porch::GROUP,
        Some(Delivery::Helm) => kind.kind == "Secret",
        Some(Delivery::Label | Delivery::Taffrail) | None => true,
    };
    is_its && declares_apps(kind)
}
