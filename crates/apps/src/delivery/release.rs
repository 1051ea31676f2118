//! Parser for Helm releases in storage, each parsed once per computation, with limits for each namespace.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Read as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use taffrail_object::json::{self, Parser, Value};
use taffrail_object::{ObjectKey, ObjectKeyRef, Projection};
use taffrail_status::Presence;

use super::bounds::MAX_OBJECTS;
use super::helm_storage::is_secret;
use super::{ObjectKeys, dedup, manifest, text, time};
use crate::memo::Memo;
use crate::objects::{Objects, why_unread};
use crate::scope::{Scope, ScopeError};

/// The maximum number of hooks of a release that are read, and of objects in one hook; those after them are ignored.
const MAX_HOOKS: usize = 200;

/// The maximum total size of the hooks' manifests that are read, in bytes; the hook that would exceed it and those
/// after it are ignored.
const MAX_HOOK_BYTES: usize = 1 << 20;

/// The maximum unpacked size of a release, in bytes; a larger one is refused. No honest release that fits into a Secret
/// reaches it.
const MAX_RELEASE_BYTES: usize = 32 << 20;

/// The maximum length of a manifest, in bytes; a release with a longer one is refused. No release that fits into a
/// Secret has one.
const MAX_MANIFEST_BYTES: usize = 8 << 20;

/// The ratio of unpacked to stored size up to which a release does not use up [`MAX_EXTRA_BYTES`]. Charts have a
/// ratio of three to ten.
const FREE_RATIO: usize = 16;

/// The number of bytes that all releases of one namespace may unpack to beyond [`FREE_RATIO`] times their stored size;
/// a release that would exceed it is refused.
const MAX_EXTRA_BYTES: usize = 64 << 20;

/// The number of bytes of manifests of all releases of one namespace that the slow YAML parser may read, beyond their
/// stored size; a release that would exceed it is refused. Most manifests hardly need that parser.
const MAX_EXTRA_YAML_BYTES: usize = 4 << 20;

/// The reason why a release in Helm's storage cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReleaseError {
    #[error("the {0} that stores the release does not exist")]
    Absent(&'static str),
    #[error("{0}")]
    Unobserved(String),
    #[error("only the metadata of the object that stores the release was read")]
    MetadataOnly,
    #[error("the object that stores the release has no key 'release'")]
    NoRelease,
    #[error("the release data is not base64")]
    NotBase64(#[source] base64::DecodeError),
    #[error("the release data is truncated or damaged")]
    NotGzip(#[source] std::io::Error),
    #[error("the release unpacks to more than {} MiB", MAX_RELEASE_BYTES >> 20)]
    TooLarge,
    #[error("the releases of namespace {0} cost too much to read: {1}")]
    TooMuch(String, String),
    #[error("the release is not JSON: {0}")]
    NotJson(json::Error),
    #[error("the manifest of the release is longer than {} MiB", MAX_MANIFEST_BYTES >> 20)]
    LongManifest,
    #[error("the release has no {0}")]
    Incomplete(&'static str),
}

/// The parts of a stored Helm release from which an app is made.
#[derive(Debug)]
pub(crate) struct StoredRelease {
    /// The namespace that the release states as its own; `None` if it states none.
    pub(super) namespace: Option<String>,
    pub(super) version: i64,
    pub(super) status: String,
    pub(super) description: String,
    pub(super) chart: String,
    pub(super) chart_name: String,
    pub(super) last_deployed: Option<Timestamp>,
    /// The objects of the manifest, in its order.
    declared: Vec<ObjectKey>,
    /// The objects of the hooks whose documents can be parsed.
    hooks: Vec<ObjectKey>,
    /// The errors about documents of the manifest that declare no object, and about objects beyond [`MAX_OBJECTS`].
    pub(super) malformed: Vec<ScopeError>,
}

/// A parsed Helm release, whose namespaced objects are in the namespace that they name, or else in `namespace`.
#[derive(Debug)]
pub(crate) struct Release {
    /// The namespace of the objects in the manifest that do not name one.
    pub(super) namespace: String,
    pub(super) written: Arc<StoredRelease>,
    /// The objects of the manifest, each once; hooks are not included.
    pub(super) objects: ObjectKeys,
    /// The objects of the hooks whose documents can be parsed.
    pub(super) hooks: ObjectKeys,
}

/// The limits left for the releases of one namespace: bytes to unpack, and bytes to parse as YAML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UnpackBudget {
    unpacked: usize,
    yaml: usize,
}

impl UnpackBudget {
    const ALL: UnpackBudget = UnpackBudget { unpacked: MAX_EXTRA_BYTES, yaml: MAX_EXTRA_YAML_BYTES };
}

/// A release as it was parsed, with true if the limits of its namespace may have affected the result.
type Parsed = (Result<Arc<StoredRelease>, Arc<ReleaseError>>, bool);

/// A cache of the parsed releases of each cluster, by index of the cluster and key: several HelmReleases may
/// name one.
#[derive(Debug, Default)]
pub(crate) struct ReadReleases {
    written: Memo<(usize, ObjectKey), Parsed>,
    /// The releases in the namespace of their storage, or, where the last part of the key is true, in the one
    /// that they state.
    placed: Memo<(usize, ObjectKey, bool), Arc<Release>>,
    left: RefCell<HashMap<(usize, String), UnpackBudget>>,
}

impl ReadReleases {
    /// Returns the release that a Secret or ConfigMap of a cluster holds, parsed at the first call.
    ///
    /// Its author can write any name and namespace into it, so the release is placed in the namespace of its
    /// storage, unless it names `delivered`, the namespace that its HelmRelease delivers into. The second value
    /// is true if the limits of its namespace may have affected the result.
    pub(crate) fn read(
        &self,
        cluster: usize,
        objects: &dyn Objects,
        key: ObjectKeyRef<'_>,
        delivered: Option<&str>,
    ) -> (Result<Arc<Release>, Arc<ReleaseError>>, bool) {
        let parse = || {
            let mut all = self.left.borrow_mut();
            let left = all.entry((cluster, key.namespace.to_owned())).or_insert(UnpackBudget::ALL);
            let written = read(objects, key, left).map(Arc::new).map_err(Arc::new);
            (written, *left != UnpackBudget::ALL)
        };
        let (written, is_limited) = self.written.get(objects, (cluster, key.to_owned()), parse);
        let place = |written: Arc<StoredRelease>| {
            let own = written.namespace.as_deref().filter(|own| delivered == Some(own));
            let place = || Arc::new(Release::placed(objects, own.unwrap_or(key.namespace), &written));
            self.placed.get(objects, (cluster, key.to_owned(), own.is_some()), place)
        };
        (written.map(place), is_limited)
    }

    /// Drops the cached releases, and resets the limits of all namespaces.
    pub(super) fn clear(&self) {
        self.written.clear();
        self.placed.clear();
        self.left.take();
    }
}

impl Release {
    /// Returns the objects of the manifest.
    pub(crate) fn declared(&self) -> impl Iterator<Item = &ObjectKey> {
        self.objects.iter()
    }

    fn placed(objects: &dyn Objects, namespace: &str, written: &Arc<StoredRelease>) -> Release {
        let place = |key: &ObjectKey| {
            let mut key = key.clone();
            match objects.is_namespaced(&key.group, &key.kind) {
                // Some charts set a namespace on cluster-scoped objects; the API ignores it.
                Some(false) => key.namespace.clear(),
                Some(true) if key.namespace.is_empty() => namespace.clone_into(&mut key.namespace),
                Some(true) => {}
                None if key.namespace.is_empty() => {
                    let inside = ObjectKey { namespace: namespace.to_owned(), ..key.clone() };
                    if !matches!(objects.get(key.as_ref()), Presence::Present(_)) {
                        key = inside;
                    }
                }
                None => {}
            }
            key
        };
        let mut declared: Vec<ObjectKey> = written.declared.iter().map(place).collect();
        dedup(&mut declared);
        Release {
            namespace: namespace.to_owned(),
            written: written.clone(),
            objects: declared.into(),
            hooks: written.hooks.iter().map(place).collect(),
        }
    }
}

fn read(
    objects: &dyn Objects,
    key: ObjectKeyRef<'_>,
    left: &mut UnpackBudget,
) -> Result<StoredRelease, ReleaseError> {
    let observed = match objects.get(key) {
        Presence::Present(observed) if observed.projection == Projection::Full => observed,
        Presence::Present(_) => {
            return Err(why_unread(objects, key).map_or(ReleaseError::MetadataOnly, ReleaseError::Unobserved));
        }
        Presence::Absent => {
            return Err(ReleaseError::Absent(if is_secret(key) { "Secret" } else { "ConfigMap" }));
        }
        Presence::Unobserved(why) => return Err(ReleaseError::Unobserved(why.into_owned())),
    };
    let data = text(observed.object.root(), &["data", "release"]).ok_or(ReleaseError::NoRelease)?;
    let payload = decode(&data, is_secret(key))?;
    let stored = payload.len();
    let too_much = |what: String| ReleaseError::TooMuch(key.namespace.to_owned(), what);
    let payload = unpack(payload, &mut left.unpacked, too_much)?;
    let mut parser = Parser::new();
    let document = parser.parse(&payload).map_err(ReleaseError::NotJson)?;
    let root = document.root();
    let field = |path: &[&str], name| text(root, path).ok_or(ReleaseError::Incomplete(name));

    // A release may declare nothing, so an empty manifest is valid.
    let manifest =
        root.get("manifest").and_then(Value::as_str).ok_or(ReleaseError::Incomplete("manifest"))?;
    if manifest.len() > MAX_MANIFEST_BYTES {
        return Err(ReleaseError::LongManifest);
    }
    let mut yaml = left.yaml.saturating_add(stored);
    let mut read_manifest = |text: &str| {
        let read = manifest::read(text, &mut yaml);
        // As much as was stored is free; of the rest all that was begun counts.
        left.yaml = left.yaml.min(yaml);
        let why = || {
            format!(
                "their manifests need the slow YAML parser for more than {} MiB",
                MAX_EXTRA_YAML_BYTES >> 20
            )
        };
        read.map_err(|manifest::TooMuch| too_much(why()))
    };
    let read = read_manifest(&manifest)?;
    let mut hooks = Vec::new();
    let mut hook_bytes = MAX_HOOK_BYTES;
    for hook in root.get("hooks").and_then(Value::items).into_iter().flatten().take(MAX_HOOKS) {
        let Some(text) = hook.get("manifest").and_then(Value::as_str) else { continue };
        let Some(less) = hook_bytes.checked_sub(text.len()) else { break };
        hook_bytes = less;
        hooks.extend(read_manifest(&text)?.declared.into_iter().take(MAX_HOOKS));
        if hooks.len() > MAX_OBJECTS {
            break;
        }
    }
    let malformed = |what: String| ScopeError {
        scope: Scope::Object(key.to_owned()),
        reason: "Malformed".to_owned(),
        message: format!("Helm release {}: {what}", key.path()),
    };
    let more = (read.more_bad > 0)
        .then(|| format!("{} more documents of the manifest declare no object", read.more_bad));
    let cut = read.is_cut.then(|| format!("only the first {MAX_OBJECTS} objects of its manifest are read"));
    let bad = read.bad.iter().map(ToString::to_string).chain(more).chain(cut);
    let chart_name = field(&["chart", "metadata", "name"], "chart name")?;
    Ok(StoredRelease {
        namespace: text(root, &["namespace"]),
        version: root.get("version").and_then(Value::as_i64).ok_or(ReleaseError::Incomplete("version"))?,
        status: field(&["info", "status"], "status")?,
        description: text(root, &["info", "description"]).unwrap_or_default(),
        chart: format!("{chart_name}-{}", field(&["chart", "metadata", "version"], "chart version")?),
        chart_name,
        last_deployed: time(root.at(&["info", "last_deployed"])),
        declared: read.declared,
        hooks,
        malformed: bad.map(malformed).collect(),
    })
}

/// Decodes the field `release` of a Secret (`is_secret`) or ConfigMap to the JSON of a release: Helm's base64 around
/// gzip (or plain JSON, in Helm's first versions); in a Secret another base64 by the API.
fn decode(data: &str, is_secret: bool) -> Result<Vec<u8>, ReleaseError> {
    let decode = |text: &[u8]| {
        let packed: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        BASE64.decode(packed).map_err(ReleaseError::NotBase64)
    };
    let packed = if is_secret { decode(data.as_bytes())? } else { data.as_bytes().to_vec() };
    decode(&packed)
}

/// Unpacks gzip data, and returns other data unchanged. `left` is the number of bytes allowed beyond [`FREE_RATIO`]
/// times the packed size, and is reduced by those used; `too_much` makes the error if it does not suffice. More than
/// [`MAX_RELEASE_BYTES`] are refused in any case.
fn unpack(
    payload: Vec<u8>,
    left: &mut usize,
    too_much: impl Fn(String) -> ReleaseError,
) -> Result<Vec<u8>, ReleaseError> {
    if !payload.starts_with(&[0x1f, 0x8b, 0x08]) {
        return Ok(payload);
    }
    let honest = payload.len().saturating_mul(FREE_RATIO);
    let most = honest.saturating_add(*left).min(MAX_RELEASE_BYTES);
    let mut unpacked = Vec::new();
    let mut reader =
        flate2::read::GzDecoder::new(payload.as_slice()).take(u64::try_from(most + 1).unwrap_or(u64::MAX));
    let read = reader.read_to_end(&mut unpacked);
    *left = left.saturating_sub(unpacked.len().saturating_sub(honest));
    read.map_err(ReleaseError::NotGzip)?;
    match unpacked.len() > most {
        true if most == MAX_RELEASE_BYTES => Err(ReleaseError::TooLarge),
        true => Err(too_much(format!(
            "their unpacked size exceeds {FREE_RATIO} times their stored size by more than {} MiB",
            MAX_EXTRA_BYTES >> 20
        ))),
        false => Ok(unpacked),
    }
}
