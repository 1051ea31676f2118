//! Readers of declarations: a file for each tool, which reads that tool's objects and nothing else.

pub(crate) mod argo;
mod bounds;
mod complaints;
pub(crate) mod config_sync;
pub(crate) mod controllers;
mod destination;
pub(crate) mod drift;
pub(crate) mod fields;
pub(crate) mod flux;
mod flux_source;
pub(crate) mod helm;
pub(crate) mod helm_storage;
pub(crate) mod kpt;
pub(crate) mod labels;
mod lacking;
pub(crate) mod late;
mod manifest;
pub(crate) mod porch;
mod release;
mod resource_group;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKeyRef, duration};
use taffrail_status::{Observed, Trust};

use crate::claims::{ClaimIndex, Claims};
use crate::declaration::{Declaration, Destination};
use crate::fleet::Fleet;
use crate::identity::Delivery;
use crate::names;
use crate::object_keys::{ObjectKeys, dedup};
use crate::scope::{Scope, ScopeError};

pub use argo::{argo_delivers, argo_names};
use bounds::{bound_claims, gather};
use complaints::{Complaints, Subject};
use labels::LabelGroups;
pub use labels::{AppLabel, AppLabels, InvalidAppLabel};
pub(crate) use lacking::Lacking;
use release::{ReadReleases, Release, ReleaseError};
use taffrail_object::ObjectKey;

/// The apps that all delivery tools of a fleet declare, and what is missing to read the rest.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    pub(crate) apps: Vec<Declaration>,
    /// Number of leading entries of `apps` that claim the objects they declare.
    pub(crate) delivered: usize,
    /// The errors in declarations, each with the index of the cluster that holds the declaration.
    pub(crate) errors: Vec<(usize, ScopeError)>,
    /// Objects whose body is needed and was not read, each with the index of its cluster.
    pub(crate) lacking: Lacking,
    /// Controllers that labelled objects name and that were not read, each with the index of its cluster.
    pub(crate) owners: BTreeSet<(usize, ObjectKey)>,
    /// Indices of the clusters into which HelmReleases deliver, whose labelled CustomResourceDefinitions are read.
    pub(crate) definitions: BTreeSet<usize>,
    /// Unread Secrets and ConfigMaps that hold addresses of target clusters, each with the index of its
    /// cluster.
    pub(crate) addresses: Lacking,
    /// Number of errors in the declarations of each namespace, to limit how many are reported.
    pub(crate) complaints: Complaints,
    /// The target clusters that each Argo CD knows, by name; Argo CDs by index of the cluster and namespace.
    pub(crate) argo_clusters: HashMap<(usize, String), BTreeMap<String, Destination>>,
    /// A cache of the destinations in kubeconfigs and ConfigMaps.
    pub(crate) addresses_read: destination::Addresses,
    /// A cache of the parsed Helm releases.
    pub(crate) read: ReadReleases,
}

impl Declarations {
    /// Reads the declarations of all clusters, strong claims before weak ones.
    pub(crate) fn of(fleet: &Fleet<'_>, labels: &AppLabels, trust: &Trust, now: Timestamp) -> Declarations {
        let (mut found, index) = Declarations::by_tools(fleet, trust, now);
        let mut owners = BTreeSet::new();
        let strong = Claims::new(found.claiming(), &index);
        let groups = |cluster| labels::declare(fleet, cluster, labels, &strong, &mut owners);
        let labelled: Vec<LabelGroups> = (0..fleet.members.len()).map(groups).collect();
        found.apps.extend(labelled.iter().flat_map(LabelGroups::declarations));
        found.owners = owners;
        found
    }

    /// Returns the apps that claim the objects they declare.
    pub(crate) fn claiming(&self) -> &[Declaration] {
        self.apps.get(..self.delivered).unwrap_or_default()
    }

    /// Reads the declarations of all tools, with the index of their claims.
    pub(crate) fn by_tools(fleet: &Fleet<'_>, trust: &Trust, now: Timestamp) -> (Declarations, ClaimIndex) {
        let mut found = Declarations::default();
        let argos: Vec<_> =
            (0..fleet.members.len()).map(|home| argo::Homes::of(fleet, home, trust)).collect();
        let mut releases = flux::releases::Releases::default();
        for cluster in 0..fleet.members.len() {
            flux::declare(fleet, cluster, now, &mut found, &mut releases);
        }
        for (cluster, homes) in argos.iter().enumerate() {
            argo::declare(fleet, cluster, homes, &mut found);
            config_sync::declare(fleet, cluster, &mut found);
            kpt::declare(fleet, cluster, &mut found);
        }
        bound_claims(&mut found, 0);
        for cluster in 0..fleet.members.len() {
            helm::declare(fleet, cluster, &releases, &mut found);
        }
        found.read = ReadReleases::default();
        let index = ClaimIndex::of(&found.apps);
        found.errors.extend(Claims::new(&found.apps, &index).overlaps(fleet));
        // A package only states a wish and claims nothing: the app that delivers it does.
        found.delivered = found.apps.len();
        porch::declare(fleet, &mut found);
        let delivered = found.delivered;
        bound_claims(&mut found, delivered);
        let more = found.complaints.finish();
        found.errors.extend(more);
        (found, index)
    }

    /// Parses a release of Helm's storage, with `delivered` as the namespace into which its HelmRelease
    /// delivers; see [`ReadReleases::read`].
    fn release(
        &mut self,
        fleet: &Fleet<'_>,
        cluster: usize,
        key: ObjectKeyRef<'_>,
        delivered: Option<&str>,
    ) -> Result<Arc<Release>, Arc<ReleaseError>> {
        self.release_for(key.namespace, fleet, cluster, key, delivered)
    }

    /// Parses a release for an app of the namespace `asker`; an unread body is recorded as needed by that
    /// namespace.
    fn release_for(
        &mut self,
        asker: &str,
        fleet: &Fleet<'_>,
        cluster: usize,
        key: ObjectKeyRef<'_>,
        delivered: Option<&str>,
    ) -> Result<Arc<Release>, Arc<ReleaseError>> {
        let release = self.read.read(cluster, fleet.objects(cluster), key, delivered);
        let error = release.as_ref().err().map(|error| &**error);
        if let Some(ReleaseError::MetadataOnly | ReleaseError::Unobserved(_)) = error {
            self.lacking.insert_for(asker, (cluster, key.to_owned()));
        }
        release
    }

    /// Returns the message about a release that cannot be read, and reports it as an error unless it was only
    /// not read yet.
    fn unreadable(&mut self, cluster: usize, key: ObjectKeyRef<'_>, error: &ReleaseError) -> String {
        let message = format!("Helm release {} cannot be read: {error}", key.path());
        if !matches!(error, ReleaseError::Unobserved(_) | ReleaseError::MetadataOnly) {
            self.complain(cluster, key, "Unreadable", &message);
        }
        message
    }

    fn report(&mut self, cluster: usize, error: ScopeError) {
        self.errors.push((cluster, error));
    }

    /// Reports an error about the object `key`, unless its namespace has reached the limit of errors.
    fn complain(&mut self, cluster: usize, key: ObjectKeyRef<'_>, reason: &str, message: &str) {
        if self.complaints.admit(cluster, key, Subject::Apps, 1) > 0 {
            let (scope, reason) = (Scope::Object(key.to_owned()), reason.to_owned());
            self.report(cluster, ScopeError { scope, reason, message: message.to_owned() });
        }
    }

    /// Reports the errors in a Helm release, unless its namespace has reached the limit of errors.
    fn report_release(&mut self, cluster: usize, key: ObjectKeyRef<'_>, malformed: &[ScopeError]) {
        if malformed.is_empty() {
            return;
        }
        let told = self.complaints.admit(cluster, key, Subject::Releases, malformed.len());
        self.errors.extend(malformed.iter().take(told).map(|error| (cluster, error.clone())));
    }
}

/// A revision that a tool applied, or tried to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Applied {
    /// The start of the operation.
    pub(crate) when: Timestamp,
    /// The revision that was applied before; `None` if it is unknown.
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    /// The names of other values that differ between the two revisions.
    pub(crate) fields: Vec<String>,
}

/// Converts revisions with their times to [`Applied`]s in order of time, each with the revision before; drops
/// repetitions.
fn one_after_another(mut applied: Vec<(Timestamp, String)>) -> Vec<Applied> {
    applied.sort();
    let mut before: Option<String> = None;
    let mut found = Vec::new();
    for (when, revision) in applied {
        if before.as_ref() != Some(&revision) {
            let from = before.replace(revision.clone());
            found.push(Applied { when, from, to: Some(revision), fields: Vec::new() });
        }
    }
    found
}

/// One item of `status.conditions`.
struct Condition<'a>(Value<'a>);

impl<'a> Condition<'a> {
    fn find(object: &Object<'a>, name: &str) -> Option<Condition<'a>> {
        object.condition(name).map(Condition)
    }

    fn text(&self, key: &str) -> String {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default().into_owned()
    }

    fn is(&self, status: &str) -> bool {
        self.0.get("status").is_some_and(|value| value.is_str(status))
    }

    fn since(&self) -> Option<Timestamp> {
        time(self.0.get("lastTransitionTime"))
    }
}

/// Parses a time as the API writes it.
pub(crate) fn time(value: Option<Value<'_>>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

/// Returns the string at a path of keys in a JSON value; `None` if it is missing or empty.
fn text(value: Value<'_>, path: &[&str]) -> Option<String> {
    value.at(path).and_then(Value::as_str).map(|text| text.into_owned()).filter(|text| !text.is_empty())
}

/// The maximum length of a text that is copied from one object to each of many apps or objects, in bytes.
const LONGEST_SHARED: usize = 1024;

/// Cuts a text from a cluster to [`LONGEST_SHARED`] bytes, because many apps or objects get a copy.
fn short(text: String) -> String {
    if text.len() <= LONGEST_SHARED {
        return text;
    }
    let end = text.floor_char_boundary(LONGEST_SHARED);
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// Returns true for a value without content, such as `{}` or zero values, with which tools in Go create their
/// objects.
fn is_blank(value: Value<'_>) -> bool {
    if let Some(mut members) = value.members() {
        return members.all(|(_, member)| is_blank(member));
    }
    value.is_null() || value.is_str("") || value.items().is_some_and(|mut items| items.next().is_none())
}

/// Returns the items of `list`, in which `declaring` names its objects, each with its index. Reports a value
/// that is not a list.
fn entries<'v>(
    list: Option<Value<'v>>,
    home: usize,
    declaring: ObjectKeyRef<'_>,
    found: &mut Declarations,
) -> impl Iterator<Item = Value<'v>> + use<'v> {
    let list = list.filter(|list| !list.is_null());
    if list.is_some_and(|list| list.items().is_none()) {
        let ObjectKeyRef { kind, .. } = declaring;
        let message = format!("{kind} {}: the field that lists its objects is not a list", declaring.path());
        found.complain(home, declaring, "Malformed", &message);
    }
    list.and_then(Value::items).into_iter().flatten()
}

/// The maximum number of malformed entries of one list, or of the Helm releases of one namespace, that are
/// reported one by one; see also [`Complaints`].
const MOST_MALFORMED: usize = 50;

/// A counter of malformed entries in the list of one declaring object.
struct Malformed<'d> {
    home: usize,
    declaring: ObjectKeyRef<'d>,
    number: usize,
}

impl<'d> Malformed<'d> {
    fn of(home: usize, declaring: ObjectKeyRef<'d>) -> Malformed<'d> {
        Malformed { home, declaring, number: 0 }
    }

    fn report(&self, what: &str, found: &mut Declarations) {
        let message = format!("{} {}: {what}", self.declaring.kind, self.declaring.path());
        found.complain(self.home, self.declaring, "Malformed", &message);
    }

    /// Reports an entry, unless there were many before.
    fn add(&mut self, what: String, found: &mut Declarations) {
        self.number += 1;
        if self.number <= MOST_MALFORMED {
            self.report(&what, found);
        }
    }

    /// Reports the number of further entries.
    fn finish(self, found: &mut Declarations) {
        let more = self.number.saturating_sub(MOST_MALFORMED);
        if more > 0 {
            self.report(&format!("{more} more entries of its objects name none"), found);
        }
    }
}

/// Converts entries `{group, kind, namespace, name}` to object keys, each once. Malformed entries are left
/// out and reported by their index.
fn declared_objects<'v>(
    entries: impl Iterator<Item = (usize, Value<'v>)>,
    home: usize,
    declaring: ObjectKeyRef<'_>,
    found: &mut Declarations,
) -> Vec<ObjectKey> {
    let mut bad = Malformed::of(home, declaring);
    let objects = gather(entries.filter_map(|(number, entry)| {
        let field = |name| text(entry, &[name]);
        let named = match (field("kind"), field("name")) {
            (Some(kind), Some(name)) => {
                let (group, namespace) =
                    (field("group").unwrap_or_default(), field("namespace").unwrap_or_default());
                let key = ObjectKey { group, kind, namespace, name };
                names::check(&key).map(|()| key).map_err(|error| format!("names no object: {error}"))
            }
            _ => Err("has no kind or name".to_owned()),
        };
        named.map_err(|why| bad.add(format!("entry {number} of its objects {why}"), found)).ok()
    }));
    bad.finish(found);
    objects
}

/// Returns the time at which the field at `path` was last written; `None` if managed fields do not tell.
pub(crate) fn written(object: &Object<'_>, path: &[&str]) -> Option<Timestamp> {
    last_write(object, path).map(|(when, _)| when)
}

/// Returns the field manager that last wrote the field at `path`, for messages: ` (by kubectl)`, or an empty
/// text.
pub(crate) fn by(object: &Object<'_>, path: &[&str]) -> String {
    let author = last_write(object, path).and_then(|(_, author)| author);
    author.map(|author| format!(" (by {})", short(author))).unwrap_or_default()
}

fn last_write(object: &Object<'_>, path: &[&str]) -> Option<(Timestamp, Option<String>)> {
    let fields: Vec<String> = path.iter().map(|key| format!("f:{key}")).collect();
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let managers = object.at(&["metadata", "managedFields"])?.items()?;
    let wrote = managers.filter(|entry| entry.get("fieldsV1").and_then(|it| it.at(&fields)).is_some());
    wrote.filter_map(|entry| Some((time(entry.get("time"))?, text(entry, &["manager"])))).max()
}

/// Returns the time at which an app was suspended; `None` if managed fields do not tell.
pub(crate) fn suspended_at(delivery: Delivery, declaring: &Observed<'_>) -> Option<Timestamp> {
    let path: &[&str] = match delivery {
        Delivery::ArgoApplication => &["spec", "syncPolicy"],
        _ => &["spec", "suspend"],
    };
    written(&declaring.object, path)
}

/// Parses a duration as Go writes it: `1h30m`, `10m0s`, `500ms`. Returns `None` for zero.
pub(crate) fn span(text: &str) -> Option<SignedDuration> {
    duration::parse(text).filter(SignedDuration::is_positive)
}
