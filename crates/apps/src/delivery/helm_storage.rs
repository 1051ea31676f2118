//! Helm's storage: the Secrets `sh.helm.release.v1.<release>.v<version>`, or the ConfigMaps of
//! that name where `HELM_DRIVER=configmap` was set (Helm v3 and v4,
//! `pkg/storage/driver/{secrets,cfgmaps,util}.go`).

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use taffrail_object::{ObjectKey, ObjectKeyRef, Projection};
use taffrail_status::Observed;

use crate::noting::ask_at_once;
use crate::objects::Objects;
use crate::questions::Question;

const PREFIX: &str = "sh.helm.release.v1.";
const TYPE: &str = "helm.sh/release.v1";

/// The label selector for the ConfigMaps of Helm's storage; its Secrets have a type as well.
pub(crate) const SELECTOR: &str = "owner=helm";

/// Returns the key of the Secret that holds a version of a release.
pub(crate) fn storage_key(namespace: &str, release: &str, version: i64) -> ObjectKey {
    ObjectKey::new("", "Secret", namespace, format!("{PREFIX}{release}.v{version}"))
}

/// Returns the release name and version that a Secret or ConfigMap stores; `None` if it is not part of Helm's
/// storage.
pub(crate) fn stored<'o>(observed: &Observed<'o>) -> Option<(&'o str, u64)> {
    let is_helms = match (observed.projection, is_secret(observed.key)) {
        (Projection::Full, true) => observed.object.at(&["type"]).is_some_and(|value| value.is_str(TYPE)),
        // The type is not part of the metadata, and ConfigMaps have none.
        _ => observed.object.text(&["metadata", "labels", "owner"]) == "helm",
    };
    let (release, version) = observed.key.name.strip_prefix(PREFIX)?.rsplit_once(".v")?;
    is_helms.then_some((release, version.parse().ok()?))
}

pub(super) fn is_secret(key: ObjectKeyRef<'_>) -> bool {
    key.kind == "Secret"
}

/// Helm's storage in one cluster.
pub(crate) struct Storage<'o> {
    /// The versions of each release, by namespace and release, oldest first.
    pub(super) releases: BTreeMap<(&'o str, &'o str), BTreeMap<u64, Observed<'o>>>,
    /// A cache of the results of [`Storage::newest`], by namespace and start of the name: many apps may have
    /// one.
    newest: RefCell<HashMap<(String, String), Option<ObjectKeyRef<'o>>>>,
}

impl<'o> Storage<'o> {
    pub(crate) fn of(objects: &'o dyn Objects) -> Storage<'o> {
        let mut storage: BTreeMap<_, BTreeMap<u64, Observed<'o>>> = BTreeMap::new();
        let mut read = || {
            let [maps, secrets] = ["ConfigMap", "Secret"].map(|kind| objects.of_kind_named("", kind, PREFIX));
            for observed in maps.chain(secrets) {
                if let Some((release, version)) = stored(&observed) {
                    let key = (observed.key.namespace, release);
                    // If both exist the Secret, which is Helm's default, comes last.
                    storage.entry(key).or_default().insert(version, observed);
                }
            }
        };
        ask_at_once(objects, &Question::Storage, &mut read);
        Storage { releases: storage, newest: RefCell::default() }
    }

    /// Returns the object that stores the newest version of a release; `None` if the release is not stored.
    pub(crate) fn of_name(&self, namespace: &str, name: &str) -> Option<ObjectKeyRef<'o>> {
        let (_, newest) = self.releases.get(&(namespace, name))?.last_key_value()?;
        Some(newest.key)
    }

    /// Returns the object with the highest version among the releases in `namespace` whose names begin with `start` and
    /// for which `is_it` is true; `None` if there is none. The result is cached: for the same `namespace` and `start`,
    /// `is_it` must be the same.
    pub(crate) fn newest(
        &self,
        namespace: &str,
        start: &str,
        is_it: impl Fn(&str) -> bool,
    ) -> Option<ObjectKeyRef<'o>> {
        let find = || {
            let found = self.releases.range((namespace, start)..);
            let found =
                found.take_while(|((own, release), _)| *own == namespace && release.starts_with(start));
            let found = found.filter(|((_, release), _)| is_it(release));
            let newest = found.filter_map(|(_, versions)| versions.last_key_value());
            newest.max_by_key(|(version, _)| **version).map(|(_, observed)| observed.key)
        };
        let place = (namespace.to_owned(), start.to_owned());
        *self.newest.borrow_mut().entry(place).or_insert_with(find)
    }
}
