//! The releases that HelmReleases declare, by the names that they have in Helm's storage.

use std::collections::HashMap;

use taffrail_object::{Object, ObjectKey};

use super::super::{helm, text};
use super::Definitions;
use crate::agreement::Mark;

/// The name of a release in Helm's storage, as far as a HelmRelease tells it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ReleaseName {
    Exact(String),
    /// helm-controller cuts what Helm would refuse: the first characters stay, a dash and 12 hex digits follow.
    Shortened(String),
}

impl ReleaseName {
    const LONGEST: usize = 53;
    const KEPT: usize = 40;

    pub(super) fn of(release: &Object<'_>) -> ReleaseName {
        if let Some(name) = text(release.root(), &["spec", "releaseName"]) {
            return ReleaseName::Exact(name);
        }
        let name = match text(release.root(), &["spec", "targetNamespace"]) {
            Some(namespace) => format!("{namespace}-{}", release.name()),
            None => release.name().into_owned(),
        };
        match name.get(..Self::KEPT) {
            Some(kept) if name.len() > Self::LONGEST => ReleaseName::Shortened(format!("{kept}-")),
            _ => ReleaseName::Exact(name),
        }
    }

    /// What Helm writes on the objects of the release.
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
                name.len() == Self::LONGEST && name.strip_prefix(kept.as_str()).is_some_and(hex)
            }
        }
    }
}

/// The releases in Helm's storage that HelmReleases declare: they are no apps of their own.
#[derive(Debug, Default)]
pub(crate) struct Releases {
    declared: HashMap<(usize, String), HashMap<ReleaseName, Declared>>,
    /// The newest version of those of which the start of the name is known, by cluster, namespace and that.
    cut: HashMap<(usize, String, String), Option<ObjectKey>>,
    pub(super) definitions: Definitions,
}

/// What is needed of HelmReleases in other namespaces than that of the release, by their marks.
pub(crate) type Elsewhere = HashMap<Mark, Vec<helm::Needed>>;

/// The HelmReleases that declare a release of one name.
#[derive(Debug, Default)]
struct Declared {
    is_beside: bool,
    elsewhere: Elsewhere,
}

impl Releases {
    /// Takes in a release that is stored in a namespace of a cluster, with what is needed where the HelmRelease is in
    /// another one.
    pub(super) fn add(
        &mut self,
        cluster: usize,
        namespace: &str,
        name: ReleaseName,
        needed: Option<helm::Needed>,
    ) {
        let declared =
            self.declared.entry((cluster, namespace.to_owned())).or_default().entry(name).or_default();
        match needed {
            Some(needed) => declared.elsewhere.entry(needed.mark.clone()).or_default().push(needed),
            None => declared.is_beside = true,
        }
    }

    /// Returns what holds the newest version of a release of which the start of the name is known; it is looked for once.
    pub(super) fn newest_cut(
        &mut self,
        cluster: usize,
        namespace: &str,
        start: &str,
        newest: impl FnOnce() -> Option<ObjectKey>,
    ) -> Option<ObjectKey> {
        let place = (cluster, namespace.to_owned(), start.to_owned());
        self.cut.entry(place).or_insert_with(newest).clone()
    }

    /// Nothing where no HelmRelease claims the release that is stored in a namespace of a cluster; else one of these
    /// is met if that is true, and nothing is needed where there is none.
    pub(crate) fn of(&self, cluster: usize, namespace: &str, name: &str) -> Option<Vec<&Elsewhere>> {
        let names = self.declared.get(&(cluster, namespace.to_owned()))?;
        let cut = name.get(..=ReleaseName::KEPT).map(|kept| ReleaseName::Shortened(kept.to_owned()));
        let own = [Some(ReleaseName::Exact(name.to_owned())), cut.filter(|cut| cut.is(name))];
        let claims: Vec<_> = own.iter().flatten().filter_map(|own| names.get(own)).collect();
        if claims.iter().any(|declared| declared.is_beside) {
            return Some(Vec::new());
        }
        (!claims.is_empty()).then(|| claims.into_iter().map(|declared| &declared.elsewhere).collect())
    }
}
