//! Helm: releases in its storage, the Secrets `sh.helm.release.v1.<release>.v<version>`, or the ConfigMaps of that
//! name where `HELM_DRIVER=configmap` was set (Helm v3 and v4, `pkg/storage/driver/{secrets,cfgmaps,util}.go`).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use taffrail_status::json::{self, Parser, Value};

use super::flux::Releases;
use super::{Applied, Declaration, Declarations, Destination, dedup, manifest, text, time};
use crate::agreement::{Claimant, Mark};
use crate::fleet::Fleet;
use crate::identity::{AppKey, Delivery, ObjectKey};
use crate::names;
use crate::objects::{Body, Lookup, Objects, Observed, Scope, ScopeError, why_unread};
use crate::sync::{Source, Sync, SyncState};

const PREFIX: &str = "sh.helm.release.v1.";
const TYPE: &str = "helm.sh/release.v1";

/// How many hooks of a release are known, and how many objects of one.
const MOST_HOOKS: usize = 200;

/// How much of the manifests of hooks is read.
const MOST_HOOK_BYTES: usize = 1 << 20;

/// More than any release that fits into a Secret unpacks to, unless it was made for that.
const LARGEST: u64 = 32 << 20;

/// Longer than any manifest of which the release fits into a Secret.
const LONGEST_MANIFEST: usize = 8 << 20;

/// Chooses the ConfigMaps of Helm's storage; those of Secrets have a type as well.
pub(crate) const SELECTOR: &str = "owner=helm";

/// Why a release cannot be read from where it is stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReleaseError {
    #[error("it is not there")]
    Absent,
    #[error("{0}")]
    Unobserved(String),
    #[error("its body was not read")]
    MetadataOnly,
    #[error("it has no key 'release'")]
    NoRelease,
    #[error("its release is not base64")]
    NotBase64(#[source] base64::DecodeError),
    #[error("its release is cut or damaged")]
    NotGzip(#[source] std::io::Error),
    #[error("its release unpacks to more than {} MiB", LARGEST >> 20)]
    TooLarge,
    #[error("its release is not JSON: {0}")]
    NotJson(json::Error),
    #[error("its manifest is longer than {} MiB", LONGEST_MANIFEST >> 20)]
    LongManifest,
    #[error("its release has no {0}")]
    Incomplete(&'static str),
}

/// A release, as far as it matters here.
#[derive(Debug)]
pub(crate) struct Release {
    /// Where it delivers what names no namespace.
    namespace: String,
    version: i64,
    status: String,
    description: String,
    chart: String,
    chart_name: String,
    last_deployed: Option<jiff::Timestamp>,
    /// The objects of the manifest, each once; hooks are not among them.
    pub(crate) objects: Vec<ObjectKey>,
    /// The objects of its hooks, as far as their documents can be read.
    pub(crate) hooks: Vec<ObjectKey>,
    /// Documents of the manifest that declare no object.
    pub(crate) malformed: Vec<ScopeError>,
}

/// The key of the Secret that holds a version of a release.
pub(crate) fn storage_key(namespace: &str, release: &str, version: i64) -> ObjectKey {
    ObjectKey::new("", "Secret", namespace, format!("{PREFIX}{release}.v{version}"))
}

/// The release and version that a Secret or ConfigMap holds, if it is one of Helm's.
fn stored<'o>(observed: &Observed<'o>) -> Option<(&'o str, u64)> {
    let is_helms = match (observed.body, is_secret(observed.key)) {
        (Body::Whole, true) => observed.object.at(&["type"]).is_some_and(|value| value.is_str(TYPE)),
        // The type is not part of the metadata, and ConfigMaps have none.
        _ => observed.object.text(&["metadata", "labels", "owner"]) == "helm",
    };
    let (release, version) = observed.key.name.strip_prefix(PREFIX)?.rsplit_once(".v")?;
    is_helms.then_some((release, version.parse().ok()?))
}

fn is_secret(key: &ObjectKey) -> bool {
    key.kind == "Secret"
}

/// Helm's storage in one cluster: by namespace and release, what holds its versions, oldest first.
pub(crate) struct Storage<'o>(BTreeMap<(&'o str, &'o str), BTreeMap<u64, Observed<'o>>>);

impl<'o> Storage<'o> {
    pub(crate) fn of(objects: &'o dyn Objects) -> Storage<'o> {
        let mut storage: BTreeMap<_, BTreeMap<u64, Observed<'o>>> = BTreeMap::new();
        for observed in objects.of_kind("", "ConfigMap").chain(objects.of_kind("", "Secret")) {
            if let Some((release, version)) = stored(&observed) {
                let key = (observed.key.namespace.as_str(), release);
                // Where both are there the Secret, which is what Helm uses unless told otherwise, comes last.
                storage.entry(key).or_default().insert(version, observed);
            }
        }
        Storage(storage)
    }

    /// What holds the newest version of a release in a namespace.
    pub(crate) fn newest(&self, namespace: &str, is_it: impl Fn(&str) -> bool) -> Option<&'o ObjectKey> {
        let found = self.0.iter().filter(|((own, release), _)| *own == namespace && is_it(release));
        let newest = found.filter_map(|(_, versions)| versions.last_key_value());
        newest.max_by_key(|(version, _)| **version).map(|(_, observed)| observed.key)
    }
}

/// Reads the release that a Secret or ConfigMap holds.
///
/// Whoever may write one can write any name and namespace into it, so the release is in the namespace that holds it, unless
/// what declares it delivers it into another one.
pub(crate) fn read(
    objects: &dyn Objects,
    key: &ObjectKey,
    delivered: Option<&str>,
) -> Result<Release, ReleaseError> {
    let observed = match objects.get(key) {
        Lookup::Found(observed) if observed.body == Body::Whole => observed,
        Lookup::Found(_) => {
            return Err(why_unread(objects, key).map_or(ReleaseError::MetadataOnly, ReleaseError::Unobserved));
        }
        Lookup::Absent => return Err(ReleaseError::Absent),
        Lookup::Unobserved(why) => return Err(ReleaseError::Unobserved(why)),
    };
    let data = text(observed.object.root(), &["data", "release"]).ok_or(ReleaseError::NoRelease)?;
    let payload = unpack(&data, is_secret(key))?;
    let mut parser = Parser::new();
    let document = parser.parse(&payload).map_err(ReleaseError::NotJson)?;
    let root = document.root();
    let field = |path: &[&str], name| text(root, path).ok_or(ReleaseError::Incomplete(name));

    let namespace = text(root, &["namespace"]).filter(|own| delivered == Some(own));
    let namespace = namespace.unwrap_or_else(|| key.namespace.clone());
    // A release may declare nothing, so an empty manifest is one.
    let manifest =
        root.get("manifest").and_then(Value::as_str).ok_or(ReleaseError::Incomplete("manifest"))?;
    if manifest.len() > LONGEST_MANIFEST {
        return Err(ReleaseError::LongManifest);
    }
    let read = manifest::read(&manifest);
    let place = |mut key: ObjectKey| {
        match objects.is_namespaced(&key.group, &key.kind) {
            // Some charts give a namespace to what can have none; the API ignores it.
            Some(false) => key.namespace.clear(),
            Some(true) if key.namespace.is_empty() => key.namespace.clone_from(&namespace),
            Some(true) => {}
            None if key.namespace.is_empty() => {
                let inside = ObjectKey { namespace: namespace.clone(), ..key.clone() };
                if !matches!(objects.get(&key), Lookup::Found(_)) {
                    key = inside;
                }
            }
            None => {}
        }
        key
    };
    let mut declared: Vec<ObjectKey> = read.declared.into_iter().map(place).collect();
    dedup(&mut declared);
    let mut hooks = Vec::new();
    let mut left = MOST_HOOK_BYTES;
    for hook in root.get("hooks").and_then(Value::items).into_iter().flatten().take(MOST_HOOKS) {
        let Some(text) = hook.get("manifest").and_then(Value::as_str) else { continue };
        let Some(less) = left.checked_sub(text.len()) else { break };
        left = less;
        hooks.extend(manifest::read(&text).declared.into_iter().map(place).take(MOST_HOOKS));
    }
    let malformed = |what: String| ScopeError {
        scope: Scope::Object(key.clone()),
        reason: "Malformed".to_owned(),
        message: format!("Helm release {}: {what}", key.path()),
    };
    let more = (read.more_bad > 0)
        .then(|| format!("{} more documents of the manifest declare no object", read.more_bad));
    let cut = read.is_cut.then(|| "of the objects of the manifest only the first 5000 are read".to_owned());
    let bad = read.bad.iter().map(ToString::to_string).chain(more).chain(cut);
    let chart_name = field(&["chart", "metadata", "name"], "chart name")?;
    Ok(Release {
        namespace,
        version: root.get("version").and_then(Value::as_i64).ok_or(ReleaseError::Incomplete("version"))?,
        status: field(&["info", "status"], "status")?,
        description: text(root, &["info", "description"]).unwrap_or_default(),
        chart: format!("{chart_name}-{}", field(&["chart", "metadata", "version"], "chart version")?),
        chart_name,
        last_deployed: time(root.at(&["info", "last_deployed"])),
        objects: declared,
        hooks,
        malformed: bad.map(malformed).collect(),
    })
}

/// What `release` holds: base64 of Helm around gzip, or plain JSON as Helm's first versions wrote; in a Secret base64
/// of the API around it.
fn unpack(data: &str, is_secret: bool) -> Result<Vec<u8>, ReleaseError> {
    let decode = |text: &[u8]| {
        let packed: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        BASE64.decode(packed).map_err(ReleaseError::NotBase64)
    };
    let packed = if is_secret { decode(data.as_bytes())? } else { data.as_bytes().to_vec() };
    let payload = decode(&packed)?;
    if !payload.starts_with(&[0x1f, 0x8b, 0x08]) {
        return Ok(payload);
    }
    let mut unpacked = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(payload.as_slice()).take(LARGEST + 1);
    reader.read_to_end(&mut unpacked).map_err(ReleaseError::NotGzip)?;
    if unpacked.len() as u64 > LARGEST {
        return Err(ReleaseError::TooLarge);
    }
    Ok(unpacked)
}

/// Reads the releases of one cluster that no HelmRelease declares.
pub(crate) fn declare(
    fleet: &Fleet<'_>,
    home: usize,
    storage: &Storage<'_>,
    releases: &Releases,
    found: &mut Declarations,
) {
    for (&(namespace, name), versions) in &storage.0 {
        let Some((_, newest)) = versions.last_key_value() else { continue };
        let is_of_helm_release = match releases.of(home, namespace, name) {
            Some(needed) if needed.is_empty() => true,
            Some(needed) => is_marked(fleet, home, newest.key, &needed, found),
            None => false,
        };
        if is_of_helm_release || !names::is_short(name) {
            continue;
        }
        let app = |namespace: String, objects, sync, message| Declaration {
            home,
            destination: Destination::Cluster(home),
            delivery: Delivery::Helm,
            key: AppKey::of(Delivery::Helm, &namespace, name, Some(&newest.object)),
            namespace,
            name: (*name).to_owned(),
            declaring: None,
            objects,
            unseen: false,
            unreadable: None,
            sync,
            suspended: false,
            message,
            trouble: None,
            source: None,
            via: None,
            claimant: Claimant::in_namespace(
                home,
                &newest.key.namespace,
                vec![Mark::of_release(&newest.key.namespace, name)],
            ),
        };
        match found.release(fleet, home, newest.key, None) {
            Ok(release) if release.status == "uninstalled" => {}
            Ok(release) => {
                let deployed = match &*release.status {
                    "deployed" => None,
                    _ => versions
                        .values()
                        .rev()
                        .skip(1)
                        .find_map(|older| last_deployed(fleet, home, older, found)),
                };
                let sync = sync(&release, deployed);
                let well = sync.state == SyncState::Synced;
                let message = match well {
                    true => format!("{}, revision {}", release.chart, release.version),
                    false => release.description.clone(),
                };
                found.report_release(home, newest.key, release.malformed);
                let own = app(release.namespace, release.objects, sync, message);
                found.apps.push(Declaration {
                    trouble: (!well).then_some(release.description),
                    source: Some(Source {
                        kind: "HelmChart".to_owned(),
                        namespace: None,
                        name: None,
                        url: None,
                        path: Some(release.chart_name),
                        reference: None,
                    }),
                    claimant: Claimant { hooks: release.hooks, ..own.claimant },
                    ..own
                });
            }
            Err(error) => {
                // Its label tells already that an older one will be asked for: both can be read at once.
                if !was_deployed(newest) {
                    let older = versions.values().rev().skip(1).find(|older| was_deployed(older));
                    older.map(|older| found.release(fleet, home, older.key, None));
                }
                let message = found.unreadable(home, newest.key, &error);
                found.apps.push(Declaration {
                    unreadable: Some((newest.key.clone(), message)),
                    ..app(namespace.to_owned(), Vec::new(), Sync::unknown(), String::new())
                });
            }
        }
    }
}

/// In how many namespaces the objects of a release are looked for that HelmReleases of others claim.
const MOST_DELIVERED: usize = 10;

/// What makes the release of another namespace that of a HelmRelease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Needed {
    /// What its objects carry.
    pub(crate) mark: Mark,
    /// The namespace into which it is delivered.
    pub(crate) delivered: String,
    /// Its own namespace.
    pub(crate) own: String,
    /// The objects that its inventory lists, where it has one.
    pub(crate) listed: Option<HashSet<ObjectKey>>,
}

/// Whether helm-controller marked the objects of a release for one of these HelmReleases, which are not in its namespace
/// and so could be anybody's.
///
/// What is in the namespace of the HelmRelease proves nothing of what is elsewhere: whoever writes the one may mark the other. And
/// the HelmRelease lists each object, so that the row of the release would tell nothing that its own does not. Of a release none
/// of whose objects is there nothing says so.
fn is_marked(
    fleet: &Fleet<'_>,
    home: usize,
    key: &ObjectKey,
    needed: &[Needed],
    found: &mut Declarations,
) -> bool {
    let delivered: BTreeSet<&str> = needed.iter().map(|needed| &*needed.delivered).collect();
    delivered.into_iter().take(MOST_DELIVERED).any(|delivered| {
        let Ok(release) = found.release(fleet, home, key, Some(delivered)) else { return false };
        let objects = fleet.objects(home);
        let is_met = |needed: &&Needed| {
            let listed = needed.listed.as_ref();
            let is_own = |key: &&ObjectKey| key.namespace == needed.own;
            let mut carried = release.objects.iter().filter_map(|key| objects.get(key).found()).peekable();
            carried.peek().is_some()
                && carried.all(|it| Mark::all(it.key, &it.object, &[]).contains(&needed.mark))
                && listed.is_none_or(|listed| release.objects.iter().all(|key| listed.contains(key)))
                && (release.objects.iter().all(|key| is_own(&key))
                    || release.objects.iter().any(|key| !is_own(&key) && objects.get(key).found().is_some()))
        };
        let mut needed = needed.iter().filter(|needed| needed.delivered == delivered);
        needed.any(|needed| is_met(&needed))
    })
}

/// The version of a release that Helm stored last, with what holds it.
pub(crate) fn applied(
    objects: &dyn Objects,
    namespace: &str,
    release: &str,
    sync: &Sync,
) -> Option<(ObjectKey, Applied)> {
    let storage = Storage::of(objects);
    let versions = storage.0.get(&(namespace, release))?;
    let (newest, observed) = versions.last_key_value()?;
    let when = time(observed.object.at(&["metadata", "creationTimestamp"]))?;
    let chart = sync.attempted.as_ref().map(|chart| format!(", {chart}")).unwrap_or_default();
    let from = versions.keys().rev().nth(1).map(|version| format!("revision {version}"));
    let to = Some(format!("revision {newest}{chart}"));
    Some((observed.key.clone(), Applied { when, from, to, fields: Vec::new() }))
}

/// Returns the time at which the last operation on a release began: Helm stores the newest version then, or writes it again
/// where it uninstalls that.
pub(crate) fn tried_at(app: &Declaration, objects: &dyn Objects) -> Option<Timestamp> {
    if app.delivery != Delivery::Helm {
        return None;
    }
    let (key, applied) = applied(objects, &app.namespace, &app.name, &app.sync)?;
    let label = objects.get(&key).found()?.object.text(&["metadata", "labels", "modifiedAt"]).into_owned();
    let modified = label.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    Some(modified.map_or(applied.when, |modified| modified.max(applied.when)))
}

/// An older version, if it is the one that was deployed last.
fn last_deployed(
    fleet: &Fleet<'_>,
    home: usize,
    older: &Observed<'_>,
    found: &mut Declarations,
) -> Option<Release> {
    if !was_deployed(older) {
        return None;
    }
    let release = found.release(fleet, home, older.key, None).ok()?;
    matches!(&*release.status, "deployed" | "superseded").then_some(release)
}

/// Whether the labels of a version say that it is or was deployed.
fn was_deployed(version: &Observed<'_>) -> bool {
    let label = version.object.text(&["metadata", "labels", "status"]);
    matches!(&*label, "deployed" | "superseded")
}

fn sync(release: &Release, deployed: Option<Release>) -> Sync {
    let state = match &*release.status {
        "deployed" => SyncState::Synced,
        "failed" => SyncState::Failed,
        "pending-install" | "pending-upgrade" | "pending-rollback" | "uninstalling" => SyncState::Syncing,
        _ => SyncState::Unknown,
    };
    let last = match state {
        SyncState::Synced => Some(release),
        _ => deployed.as_ref(),
    };
    Sync {
        state,
        desired: Some(release.chart.clone()),
        attempted: Some(release.chart.clone()),
        applied: last.map(|release| release.chart.clone()),
        last_success: last.and_then(|release| release.last_deployed),
    }
}
