//! The sources of Flux, each parsed once for all apps that name it. Only short texts are kept, because each app gets
//! a copy.

use std::sync::Arc;

use jiff::Timestamp;
use taffrail_object::json::Value;
use taffrail_object::{ObjectKey, names};
use taffrail_status::Presence;

use super::super::{flux_source, short, text, time};
use super::{is_source, reference, undescribed};
use crate::memo::Memo;
use crate::objects::Objects;
use crate::problem::Problem;
use crate::sync::Source;

/// The maximum length of a revision that is compared, in bytes; an artifact with a longer one counts as unknown. Flux's
/// own have a name that Git, OCI or SemVer limits, and a digest.
const MAX_REVISION_LENGTH: usize = 1024;

/// The artifact of a Flux source.
#[derive(Debug, Clone)]
pub(in crate::delivery) enum Artifact {
    Revision(String),
    /// The source exists but has not produced an artifact yet.
    Nothing,
    /// The artifact is not known; holds the reason, such as that the source does not exist.
    Unknown(String),
}

impl Artifact {
    pub(super) fn revision(&self) -> Option<String> {
        match self {
            Artifact::Revision(revision) => Some(revision.clone()),
            Artifact::Nothing | Artifact::Unknown(_) => None,
        }
    }
}

/// The source object, name and version of the chart that a HelmChart names.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) key: ObjectKey,
    pub(super) chart: Option<String>,
    pub(super) version: Option<String>,
}

/// The fields of a Flux source that apps show or compare.
#[derive(Debug)]
pub(in crate::delivery) struct KnownSource {
    pub(super) artifact: Artifact,
    pub(super) is_unobserved: bool,
    /// The time at which the source's artifact was last updated; `None` if it is not stated.
    pub(super) fetched: Option<Timestamp>,
    pub(super) origin: Option<Origin>,
    pub(in crate::delivery) url: Option<String>,
    reference: Option<String>,
    /// The branch that the source follows, `master` if it names none; `None` if it is pinned to a commit, tag, name or
    /// version range, or was not read.
    pub(in crate::delivery) branch: Option<String>,
}

impl KnownSource {
    fn unknown(why: String, is_unobserved: bool) -> KnownSource {
        KnownSource {
            artifact: Artifact::Unknown(why),
            is_unobserved,
            fetched: None,
            origin: None,
            url: None,
            reference: None,
            branch: None,
        }
    }

    fn read(objects: &dyn Objects, key: &ObjectKey) -> KnownSource {
        if !is_source(key) {
            let why = format!("{} {} is not a Flux source", key.group_kind(), key.path());
            return KnownSource::unknown(why, false);
        }
        let found = match objects.get(key.as_ref()) {
            Presence::Present(found) => found,
            Presence::Absent => {
                return KnownSource::unknown(format!("{} {} not found", key.kind, key.path()), false);
            }
            Presence::Unobserved(why) => {
                return KnownSource::unknown(
                    format!("{} {} cannot be read: {why}", key.kind, key.path()),
                    true,
                );
            }
        };
        let artifact = found.object.at(&["status", "artifact"]);
        let revision = artifact.and_then(|artifact| text(artifact, &["revision"]));
        let spec = found.object.at(&["spec"]);
        let told = |path: &[&str]| text(spec?, path);
        let follows = spec.and_then(|spec| spec.get("ref"));
        let named = |field: &str| text(follows?, &[field]);
        let is_pinned = ["commit", "name", "semver", "tag"].iter().any(|field| named(field).is_some());
        let url = told(&["url"]).or_else(|| {
            let (endpoint, bucket) = (told(&["endpoint"])?, told(&["bucketName"])?);
            Some(format!("{endpoint}/{bucket}"))
        });
        let origin = || {
            let from: Value<'_> = spec?.get("sourceRef")?;
            let origin = reference(from, &key.namespace).filter(|it| names::check(it).is_ok())?;
            let (chart, version) = (told(&["chart"]).map(short), told(&["version"]).map(short));
            Some(Origin { key: origin, chart, version })
        };
        KnownSource {
            artifact: match revision {
                Some(revision) if revision.len() > MAX_REVISION_LENGTH => Artifact::Unknown(format!(
                    "the revision of {} {} is longer than {MAX_REVISION_LENGTH} bytes",
                    key.kind,
                    key.path()
                )),
                Some(revision) => Artifact::Revision(revision),
                None => Artifact::Nothing,
            },
            is_unobserved: false,
            fetched: artifact.and_then(|artifact| time(artifact.get("lastUpdateTime"))),
            origin: if key.kind == "HelmChart" { origin() } else { None },
            url: url.map(short),
            reference: ["commit", "name", "digest", "semver", "tag", "branch"]
                .iter()
                .find_map(|field| named(field))
                .map(short),
            branch: (!is_pinned).then(|| short(named("branch").unwrap_or_else(|| "master".to_owned()))),
        }
    }

    /// Describes the source for the row of an app; `key` is its key.
    pub(super) fn describe(&self, key: &ObjectKey) -> Source {
        Source { url: self.url.clone(), reference: self.reference.clone(), ..undescribed(key) }
    }
}

/// A cache of Flux sources and of their problems, by index of the cluster and key.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    known: Memo<(usize, ObjectKey), Arc<KnownSource>>,
    problems: Memo<(Timestamp, usize, ObjectKey), Option<Problem>>,
}

impl Sources {
    /// Returns the source `key` of the cluster `home`, parsed at the first call.
    pub(in crate::delivery) fn read(
        &self,
        objects: &dyn Objects,
        home: usize,
        key: &ObjectKey,
    ) -> Arc<KnownSource> {
        self.known.get(objects, (home, key.clone()), || Arc::new(KnownSource::read(objects, key)))
    }

    /// Returns the problem of a source at `now`, as [`flux_source::problem`] finds it, from the cache if it was
    /// computed before; `None` if it has none.
    pub(super) fn problem(
        &self,
        objects: &dyn Objects,
        home: usize,
        key: &ObjectKey,
        now: Timestamp,
    ) -> Option<Problem> {
        self.problems.get(objects, (now, home, key.clone()), || flux_source::problem(objects, key, now))
    }
}
