//! Readers of the apps that each delivery tool declares, a file for each tool, and of label groups; and what the
//! readers share.

pub(crate) mod argo;
mod bounds;
pub(crate) mod by_hand;
mod complaints;
pub(crate) mod config_sync;
pub(crate) mod controllers;
mod declared;
pub(crate) mod destination;
pub(crate) mod drift;
pub(crate) mod fields;
pub(crate) mod flux;
mod flux_source;
pub(crate) mod group_status;
pub(crate) mod helm;
pub(crate) mod helm_storage;
pub(crate) mod kpt;
pub(crate) mod labels;
mod lacking;
pub(crate) mod late;
mod manifest;
pub(crate) mod most_apps;
mod notes;
mod parts;
pub(crate) mod porch;
pub(crate) mod release;
pub(crate) mod resource_group;
mod syncs;
mod writers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef, duration, names};
use taffrail_status::{Observed, Trust};

use crate::checks::declared_checks;
use crate::claims::{ClaimIndex, Claims};
use crate::declaration::{Declaration, Destination};
use crate::fleet::Fleet;
use crate::identity::Delivery;
use crate::noting::keys_of;
use crate::object_keys::{ObjectKeys, dedup};
use crate::scope::{Scope, ScopeError};

pub use argo::{argo_delivers, argo_names};
use bounds::{bound_claims, gather};
use complaints::{Complaints, Subject};
use declared::{Declared, Declaring, Resolved};
use flux::releases::{ReleaseClaims, Releases};
use labels::LabelGroups;
pub use labels::{AppLabel, AppLabels, InvalidAppLabel};
pub(crate) use lacking::Lacking;
use most_apps::{AppNumbers, ExcessApps, MAX_APPS, Shares};
use notes::{Complaint, Notes};
pub(crate) use parts::{DeclaredPart, DeclaredParts};
pub use syncs::{MAX_SYNCS, SyncAttempt, SyncResult, syncs};
pub(crate) use writers::{author, by, writers, written};

/// The kinds (group, kind) of the objects that declare one app each, except a ResourceGroup of Config Sync, which
/// declares none. Those of the first list are read in all clusters before those of the second.
const DECLARING: [&[(&str, &str)]; 2] = [
    &[(flux::KUSTOMIZE, "Kustomization"), (flux::HELM, "HelmRelease")],
    &[
        (argo::GROUP, "Application"),
        (config_sync::GROUP, "RootSync"),
        (config_sync::GROUP, "RepoSync"),
        (resource_group::GROUP, resource_group::KIND),
    ],
];

/// The apps of a fleet, those that delivery tools declare and label groups; the errors in their declarations; and the
/// objects that are still to be read to complete them.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    pub(crate) apps: Vec<Arc<Declaration>>,
    /// Number of apps at the start of `apps` that tools declare, and that claim their objects; packages of Porch and
    /// label groups come after them.
    pub(crate) delivered: usize,
    /// The errors in declarations, the objects that several apps claim, and the limits that were exceeded, each with
    /// the index of the cluster that it is about.
    pub(crate) errors: Vec<(usize, ScopeError)>,
    /// Objects that are needed whole and were not read so, each with the index of its cluster.
    pub(crate) lacking: Lacking,
    /// Controllers that labelled objects name and that were not read, each with the index of its cluster.
    pub(crate) owners: BTreeSet<(usize, ObjectKey)>,
    /// Indices of the clusters in which the stored release of a HelmRelease was read for its objects: there its
    /// labelled CustomResourceDefinitions are read, too.
    pub(crate) definitions: BTreeSet<usize>,
    /// Unread Secrets and ConfigMaps that hold addresses of target clusters, each with the index of its
    /// cluster.
    pub(crate) addresses: Lacking,
    /// The numbers of apps, by namespace, that are not among `apps` because their cluster declares too many; by index
    /// of the cluster.
    pub(crate) unread: Vec<AppNumbers>,
    /// The number of apps that each cluster declares, by the index of the cluster: with those that are not read,
    /// without label groups.
    pub(crate) totals: Vec<usize>,
    /// The apps of `apps`, and the label groups, that are not shown because their cluster has too many. Empty unless
    /// made by [`Declarations::of`]: [`AppRows`](crate::AppRows) finds them itself.
    pub(crate) left_out: ExcessApps,
    /// Number of errors in the declarations of each namespace, to limit how many are reported.
    complaints: Complaints,
}

impl Declarations {
    /// Reads the declarations of all clusters. Those of tools come before label groups, which take only objects that no
    /// tool claims. Of a cluster with too many apps, excess apps of tools lose their objects, and excess label groups
    /// are left out.
    pub(crate) fn of(fleet: &Fleet<'_>, labels: &AppLabels, trust: &Trust, now: Timestamp) -> Declarations {
        let (mut found, index) = Declarations::by_tools(fleet, trust, now, &mut DeclaredParts::default());
        let mut owners = BTreeSet::new();
        let strong = Claims::new(found.claiming(), &index);
        let groups = |cluster| labels::declare(fleet, cluster, labels, &strong, &mut owners);
        let labelled: Vec<LabelGroups> = (0..fleet.members.len()).map(groups).collect();
        let left_out = ExcessApps::of(&found, &labelled);
        for (_, app) in found.apps.iter_mut().enumerate().filter(|(place, _)| left_out.has_app(*place)) {
            // Nothing is read for what is not shown.
            let app = Arc::make_mut(app);
            (app.objects, app.claimant.hooks) = (ObjectKeys::default(), ObjectKeys::default());
        }
        let is_shown = |app: &Declaration| {
            left_out.is_empty() || !left_out.has_group(&(app.home, app.namespace.clone(), app.name.clone()))
        };
        let groups = labelled.iter().flat_map(LabelGroups::declarations).filter(is_shown);
        found.apps.extend(groups.map(Arc::new));
        found.errors.extend(left_out.errors.iter().cloned());
        (found.owners, found.left_out) = (owners, left_out);
        found
    }

    /// Makes the declarations of some apps that no object declares.
    pub(crate) fn of_apps(apps: impl Iterator<Item = Declaration>) -> Declarations {
        Declarations { apps: apps.map(Arc::new).collect(), ..Declarations::default() }
    }

    /// Iterates over the declared apps.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Declaration> {
        self.apps.iter().map(|app| &**app)
    }

    /// Returns the app at the index `place`; `None` if there is none.
    pub(crate) fn get(&self, place: usize) -> Option<&Declaration> {
        self.apps.get(place).map(|app| &**app)
    }

    /// Counts the apps that the cluster `home` declares, by namespace, with those that were not read.
    pub(crate) fn numbers(&self, home: usize) -> AppNumbers {
        let mut numbers = self.unread.get(home).cloned().unwrap_or_default();
        for app in self.apps.iter().filter(|app| app.home == home) {
            most_apps::count(&mut numbers, &app.namespace, 1);
        }
        numbers
    }

    /// Returns the apps that tools declare, without packages of Porch and label groups: those whose claims are
    /// compared.
    pub(crate) fn claiming(&self) -> &[Arc<Declaration>] {
        self.apps.get(..self.delivered).unwrap_or_default()
    }

    /// Reads the declarations of all tools that `parts` does not hold; returns all, with the index of their
    /// claims.
    pub(crate) fn by_tools(
        fleet: &Fleet<'_>,
        trust: &Trust,
        now: Timestamp,
        parts: &mut DeclaredParts,
    ) -> (Declarations, Arc<ClaimIndex>) {
        let mut found = Declarations::default();
        // The order in which releases use up the limits of their namespaces is that of this function.
        fleet.releases.clear();
        parts.begin();
        let clusters: Vec<_> = fleet.members.iter().map(|member| member.objects).enumerate().collect();
        let homes: Vec<_> =
            clusters.iter().map(|(home, objects)| parts.argo_homes(*objects, *home, trust)).collect();
        let mut releases: Vec<Vec<Arc<ReleaseClaims>>> = vec![Vec::new(); clusters.len()];
        let mut shares: Vec<Shares> =
            clusters.iter().map(|(_, objects)| Shares::of_declaring(*objects)).collect();
        found.unread = vec![AppNumbers::new(); clusters.len()];
        for kinds in DECLARING {
            for ((&(home, objects), homes), shares) in clusters.iter().zip(&homes).zip(&mut shares) {
                let mut controllers: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
                for observed in kinds.iter().flat_map(|(group, kind)| keys_of(objects, group, kind)) {
                    if !shares.take_for(objects, observed.key) {
                        found.leave_unread(home, observed.key.namespace, 1);
                        continue;
                    }
                    let place = found.apps.len();
                    let declaring = Declaring::of(fleet, home, homes, &observed, now);
                    let (resolved, mut notes) = read(&declaring, fleet, trust, parts, place);
                    if let Some(controller) = notes.controller.take() {
                        let named = controllers.entry(observed.key.namespace.to_owned()).or_default();
                        *named.entry(controller).or_default() += 1;
                    }
                    if let Some(claims) = &resolved.releases
                        && let Some(all) = releases.get_mut(claims.cluster)
                    {
                        all.push(claims.clone());
                    }
                    found.add(&resolved, notes);
                }
                if kinds.contains(&(argo::GROUP, "Application")) {
                    homes.all.error().into_iter().for_each(|error| found.report(home, error));
                    let unread = argo::unread(objects, homes, controllers);
                    found.lacking.extend(unread.into_iter().map(|key| (home, key)));
                }
            }
        }
        bound_claims(&mut found, 0);
        found.count_totals();
        for (&(home, objects), claims) in clusters.iter().zip(releases) {
            let own = found.totals.get(home).copied().unwrap_or_default();
            let number = own.saturating_add(fleet.storage(home).releases.len());
            let others = (number > MAX_APPS).then(|| found.numbers(home));
            let (resolved, notes) = parts.helm(objects, home, (claims, others), |(claims, others), notes| {
                helm::declare(fleet, home, &Releases::of_claims(claims), others.as_ref(), notes)
            });
            for (namespace, number) in &resolved.unread {
                found.leave_unread(home, namespace, *number);
            }
            found.add(&resolved, notes);
        }
        fleet.releases.clear();
        let index = parts.claims(&found.apps);
        found.errors.extend(Claims::new(&found.apps, &index).overlaps(fleet));
        // A package only states a wish and claims nothing: the app that delivers it does.
        found.delivered = found.apps.len();
        porch::declare(fleet, &mut found);
        let delivered = found.delivered;
        bound_claims(&mut found, delivered);
        found.count_totals();
        let more = found.complaints.finish();
        found.errors.extend(more);
        found.addresses = fleet.addresses.take_lacking();
        parts.finish();
        (found, index)
    }

    /// Reads the declaration of one object again, and replaces its app; returns the index of the app.
    ///
    /// Returns `None` if this may change more than that app, as it does if the object is gone or the fleet has packages
    /// of Porch: then all have to be put together again.
    pub(crate) fn redeclare(
        &mut self,
        fleet: &Fleet<'_>,
        trust: &Trust,
        now: Timestamp,
        parts: &mut DeclaredParts,
        (home, key): (usize, &ObjectKey),
    ) -> Option<usize> {
        let (before, place) = parts.take(home, key)?;
        // Packages say what the apps that deliver them say.
        let has_packages = self.apps.len() > self.delivered;
        let objects = fleet.objects(home);
        let observed = objects.get(key.as_ref()).present().filter(|_| !has_packages)?;
        let homes = parts.argo_homes(objects, home, trust);
        let declaring = Declaring::of(fleet, home, &homes, &observed, now);
        let (after, notes) = read(&declaring, fleet, trust, parts, place);
        let own = self.apps.get_mut(place)?;
        let ([old], [new]) = (&*before.apps, &*after.apps) else { return None };
        // An app whose claims were cut is not the one that its object declares.
        let is_local = notes.is_repeatable()
            && Arc::ptr_eq(own, old)
            && old.claims_as(new)
            && before.releases == after.releases;
        is_local.then(|| {
            parts.replace(place, new);
            own.clone_from(new);
            place
        })
    }

    /// Adds apps, and what was noted while they were read: of the errors only as many as may still be reported.
    fn add(&mut self, resolved: &Resolved, notes: Notes) {
        self.apps.extend(resolved.apps.iter().cloned());
        for Complaint { cluster, key, subject, errors } in notes.complaints {
            let told = self.complaints.admit(cluster, key.as_ref(), subject, errors.len());
            self.errors.extend(errors.into_iter().take(told).map(|error| (cluster, error)));
        }
        self.lacking.add(notes.lacking);
        self.definitions.extend(notes.definitions);
    }

    fn count_totals(&mut self) {
        let Declarations { apps, unread, totals, .. } = self;
        *totals = unread.iter().map(|numbers| numbers.values().sum()).collect();
        for app in apps.iter() {
            totals.get_mut(app.home).into_iter().for_each(|total| *total += 1);
        }
    }

    /// Counts apps of the cluster `home` that are not read.
    fn leave_unread(&mut self, home: usize, namespace: &str, number: usize) {
        if let Some(numbers) = self.unread.get_mut(home) {
            most_apps::count(numbers, namespace, number);
        }
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
}

/// Returns the app that an object declares, from `parts` or by reading the object; no app if it declares none. `place`
/// is the index that the app has among those of the fleet.
fn read(
    declaring: &Declaring<'_, '_>,
    fleet: &Fleet<'_>,
    trust: &Trust,
    parts: &mut DeclaredParts,
    place: usize,
) -> (Arc<Resolved>, Notes) {
    let Declaring { home, objects, observed, .. } = *declaring;
    parts.object(objects, (home, observed.key), place, |notes| {
        let app = declare(declaring, notes);
        app.map(|app| resolve(fleet, trust, app, notes)).unwrap_or_default()
    })
}

/// Returns the app that an object declares; `None` if it declares none.
///
/// Reads its own cluster alone, so that the result is the same in any fleet.
fn declare(declaring: &Declaring<'_, '_>, notes: &mut Notes) -> Option<Declared> {
    let mut declared = match declaring.observed.key.group {
        flux::KUSTOMIZE | flux::HELM => flux::declare(declaring, notes),
        argo::GROUP => argo::declare(declaring, notes),
        config_sync::GROUP => config_sync::declare(declaring, notes),
        _ => kpt::declare(declaring, notes)?,
    };
    declared.app.checks = declared_checks(&declaring.observed.object);
    Some(declared)
}

/// Finds the target cluster of a declared app in the fleet, and the objects that only that cluster knows. An app from
/// an untrusted home whose target is not that home loses its marks by label.
fn resolve(fleet: &Fleet<'_>, trust: &Trust, declared: Declared, notes: &mut Notes) -> Resolved {
    let Declared { mut app, target, release } = declared;
    app.destination = fleet.find(app.home, target);
    // Users write labels, too: in other clusters only those of a trusted home count as marks.
    if app.destination != Destination::Cluster(app.home) && !fleet.trusts(app.home, trust) {
        app.claimant.marks.retain(|mark| !mark.is_label());
    }
    let releases = release.and_then(|release| release.resolve(fleet, trust, &mut app, notes));
    Resolved { apps: vec![Arc::new(app)], releases: releases.map(Arc::new), ..Resolved::default() }
}

/// A revision that a delivery tool applied, or tried to apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppliedRevision {
    /// The start of the operation; if the tool does not record that, the time at which the operation ended or the
    /// revision was fetched.
    pub(crate) when: Timestamp,
    /// The revision that was applied before this one; `None` if it is unknown.
    pub(crate) from: Option<String>,
    /// The revision that was applied or tried; `None` if it is unknown.
    pub(crate) to: Option<String>,
    /// The names of what else differs from the revision before, such as the chart's values.
    pub(crate) fields: Vec<String>,
}

/// Sorts revisions by time, drops each that equals the one before it, and gives each of the others the one before it.
fn one_after_another(mut applied: Vec<(Timestamp, String)>) -> Vec<AppliedRevision> {
    applied.sort();
    let mut before: Option<String> = None;
    let mut found = Vec::new();
    for (when, revision) in applied {
        if before.as_ref() != Some(&revision) {
            let from = before.replace(revision.clone());
            found.push(AppliedRevision { when, from, to: Some(revision), fields: Vec::new() });
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

/// Parses a time as the Kubernetes API writes it; `None` if it is missing or invalid.
pub(crate) fn time(value: Option<Value<'_>>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

/// Returns the string at a path of keys in a JSON value; `None` if it is missing, empty or no string.
fn text(value: Value<'_>, path: &[&str]) -> Option<String> {
    value.at(path).and_then(Value::as_str).map(|text| text.into_owned()).filter(|text| !text.is_empty())
}

/// The length, in bytes, to which [`short`] cuts a text that is copied from one object to each of many apps or objects.
const LONGEST_SHARED: usize = 1024;

/// Cuts a text from a cluster after [`LONGEST_SHARED`] bytes and appends `…`, because many apps or objects get a copy.
/// A shorter text stays as it is.
fn short(text: String) -> String {
    if text.len() <= LONGEST_SHARED {
        return text;
    }
    let end = text.floor_char_boundary(LONGEST_SHARED);
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// The number of levels of objects in which [`is_blank`] looks for a value; an object with more levels counts as not
/// blank.
const MAX_BLANK_LEVELS: usize = 5;

/// Returns true for `null`, an empty string, an empty list, and an object without members or with only such values,
/// which Go programs write for unset fields.
///
/// Looks at [`MAX_BLANK_LEVELS`] levels only, each of which is read again for the next one; what is nested deeper is
/// not blank.
fn is_blank(value: Value<'_>) -> bool {
    is_blank_within(value, MAX_BLANK_LEVELS)
}

fn is_blank_within(value: Value<'_>, levels: usize) -> bool {
    if let Some(mut members) = value.members() {
        return members.all(|(_, member)| levels > 0 && is_blank_within(member, levels - 1));
    }
    value.is_null() || value.is_str("") || value.items().is_some_and(|mut items| items.next().is_none())
}

/// Returns the items of `list`, in which the object `declaring` names its objects; none if it is missing or `null`.
/// Reports any other value that is not a list, and then returns none.
fn entries<'v>(
    list: Option<Value<'v>>,
    home: usize,
    declaring: ObjectKeyRef<'_>,
    notes: &mut Notes,
) -> impl Iterator<Item = Value<'v>> + use<'v> {
    let list = list.filter(|list| !list.is_null());
    if list.is_some_and(|list| list.items().is_none()) {
        let ObjectKeyRef { kind, .. } = declaring;
        let message = format!("{kind} {}: the field that lists its objects is not a list", declaring.path());
        notes.complain(home, declaring, "Malformed", &message);
    }
    list.and_then(Value::items).into_iter().flatten()
}

/// The maximum number of malformed entries of one list, or of the Helm releases of one namespace, that are reported one
/// by one; the others are counted. See also [`Complaints`].
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

    fn report(&self, what: &str, notes: &mut Notes) {
        let message = format!("{} {}: {what}", self.declaring.kind, self.declaring.path());
        notes.complain(self.home, self.declaring, "Malformed", &message);
    }

    /// Reports a malformed entry with the reason `what`; once [`MOST_MALFORMED`] were reported, only counts it.
    fn add(&mut self, what: String, notes: &mut Notes) {
        self.number += 1;
        if self.number <= MOST_MALFORMED {
            self.report(&what, notes);
        }
    }

    /// Reports the number of malformed entries beyond those that were reported.
    fn finish(self, notes: &mut Notes) {
        let more = self.number.saturating_sub(MOST_MALFORMED);
        if more > 0 {
            self.report(&format!("{more} more entries of its object list are invalid"), notes);
        }
    }
}

/// Converts entries `{group, kind, namespace, name}` to object keys, each once, and stops as [`gather`] does. Malformed
/// entries are left out and reported by their index.
fn declared_objects<'v>(
    entries: impl Iterator<Item = (usize, Value<'v>)>,
    home: usize,
    declaring: ObjectKeyRef<'_>,
    notes: &mut Notes,
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
        named.map_err(|why| bad.add(format!("entry {number} of its object list {why}"), notes)).ok()
    }));
    bad.finish(notes);
    objects
}

/// Returns the path of the field that suspends an app of a delivery tool: `spec.syncPolicy` for Argo CD, else
/// `spec.suspend`.
pub(crate) fn suspending_field(delivery: Delivery) -> &'static [&'static str] {
    match delivery {
        Delivery::ArgoApplication => &["spec", "syncPolicy"],
        _ => &["spec", "suspend"],
    }
}

/// Returns the time of the last write to the field that suspends an app, whatever its value; `None` if managed fields
/// do not tell.
pub(crate) fn suspended_at(delivery: Delivery, declaring: &Observed<'_>) -> Option<Timestamp> {
    written(&declaring.object, suspending_field(delivery))
}

/// Returns the message of the tool of `delivery` that it cannot fetch the source that a declaring object names, or make
/// manifests from it; `None` if it does not say so in that object. Flux says it in the sources' own objects.
pub(crate) fn source_error(delivery: Delivery, declaring: &Object<'_>) -> Option<String> {
    match delivery {
        Delivery::ConfigSync => config_sync::source_error(declaring),
        Delivery::ArgoApplication => argo::source_error(declaring),
        _ => None,
    }
}

/// Parses a duration as Go writes it: `1h30m`, `10m0s`, `500ms`; `None` if it is invalid, zero or negative.
pub(crate) fn span(text: &str) -> Option<SignedDuration> {
    duration::parse(text).filter(SignedDuration::is_positive)
}
