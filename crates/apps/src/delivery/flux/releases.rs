//! The Helm releases that HelmReleases declare, which are therefore not apps of their own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use taffrail_object::{Object, ObjectKey};

use super::super::text;
use crate::agreement::Mark;

/// The name of a Helm release in storage, as its HelmRelease determines it; a long one is shortened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::delivery) enum ReleaseName {
    Exact(String),
    /// The start of a name longer than 53 characters: helm-controller keeps 40 characters and a dash, and
    /// adds 12 hex digits.
    Shortened(String),
}

impl ReleaseName {
    const MAX_LENGTH: usize = 53;
    const KEPT_LENGTH: usize = 40;

    pub(super) fn of(release: &Object<'_>) -> ReleaseName {
        if let Some(name) = text(release.root(), &["spec", "releaseName"]) {
            return ReleaseName::Exact(name);
        }
        let name = match text(release.root(), &["spec", "targetNamespace"]) {
            Some(namespace) => format!("{namespace}-{}", release.name()),
            None => release.name().into_owned(),
        };
        match name.get(..Self::KEPT_LENGTH) {
            Some(kept) if name.len() > Self::MAX_LENGTH => ReleaseName::Shortened(format!("{kept}-")),
            _ => ReleaseName::Exact(name),
        }
    }

    /// Returns the mark that Helm writes on the objects of the release in `namespace`.
    pub(super) fn mark(&self, namespace: &str) -> Mark {
        match self {
            ReleaseName::Exact(name) => Mark::of_release(namespace, name),
            ReleaseName::Shortened(kept) => Mark::of_cut_release(namespace, kept),
        }
    }

    pub(super) fn is(&self, name: &str) -> bool {
        match self {
            ReleaseName::Exact(own) => own == name,
            ReleaseName::Shortened(kept) => {
                let hex = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_hexdigit());
                name.len() == Self::MAX_LENGTH && name.strip_prefix(kept.as_str()).is_some_and(hex)
            }
        }
    }
}

/// The claim of a HelmRelease on a release in the storage of its target cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::delivery) struct ReleaseClaims {
    /// The index of the target cluster.
    pub(in crate::delivery) cluster: usize,
    /// The namespace whose storage holds the release.
    pub(super) namespace: String,
    /// The names that the release may have.
    pub(super) names: Vec<ReleaseName>,
    /// The proof that is required if the HelmRelease is in another namespace or cluster than the release; `None` if it
    /// is in the same one.
    pub(super) needed: Option<ReleaseProof>,
}

/// The stored releases of one cluster that HelmReleases declare, by namespace of the storage and name.
#[derive(Debug, Default)]
pub(crate) struct Releases<'c>(HashMap<&'c str, HashMap<&'c ReleaseName, Declarers<'c>>>);

/// The proof that a stored release belongs to a HelmRelease in another namespace or cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReleaseProof {
    /// The mark that helm-controller writes on the objects of the HelmRelease, which those of the release must
    /// carry.
    pub(crate) mark: Mark,
    /// The namespace into which the HelmRelease delivers.
    pub(crate) delivered: String,
    /// The namespace of the HelmRelease.
    pub(crate) own: String,
    /// The objects that the inventory of the HelmRelease lists; `None` if the HelmRelease has no inventory.
    pub(crate) listed: Option<Arc<HashSet<ObjectKey>>>,
}

/// The required proofs of HelmReleases in other namespaces or clusters than the release's storage, by their mark.
pub(crate) type Elsewhere<'c> = HashMap<&'c Mark, Vec<&'c ReleaseProof>>;

/// The HelmReleases that declare a release of one name, stored in one namespace.
#[derive(Debug, Default)]
struct Declarers<'c> {
    is_beside: bool,
    elsewhere: Elsewhere<'c>,
}

impl<'c> Releases<'c> {
    /// Collects the claims of HelmReleases on the storage of one cluster.
    pub(in crate::delivery) fn of_claims(claims: &'c [Arc<ReleaseClaims>]) -> Releases<'c> {
        let mut releases = Releases::default();
        for claims in claims {
            let of_namespace = releases.0.entry(&*claims.namespace).or_default();
            for name in &claims.names {
                let declarers = of_namespace.entry(name).or_default();
                match &claims.needed {
                    Some(needed) => declarers.elsewhere.entry(&needed.mark).or_default().push(needed),
                    None => declarers.is_beside = true,
                }
            }
        }
        releases
    }

    /// Returns the conditions of which one must be met for a stored release to belong to a HelmRelease; `None` if
    /// no HelmRelease declares the release, and an empty list if one in the same namespace does, which needs no
    /// proof.
    pub(crate) fn of(&self, namespace: &str, name: &str) -> Option<Vec<&Elsewhere<'c>>> {
        let names = self.0.get(namespace)?;
        let cut = name.get(..=ReleaseName::KEPT_LENGTH).map(|kept| ReleaseName::Shortened(kept.to_owned()));
        let own = [Some(ReleaseName::Exact(name.to_owned())), cut.filter(|cut| cut.is(name))];
        let claims: Vec<_> = own.iter().flatten().filter_map(|own| names.get(own)).collect();
        if claims.iter().any(|declarers| declarers.is_beside) {
            return Some(Vec::new());
        }
        (!claims.is_empty()).then(|| claims.into_iter().map(|declarers| &declarers.elsewhere).collect())
    }
}
