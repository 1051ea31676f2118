//! Apps that are Helm releases, found in Helm's storage.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use taffrail_object::{ObjectKey, ObjectKeyRef, names};
use taffrail_status::Observed;

use super::declared::Resolved;
use super::flux::releases::{Elsewhere, ReleaseProof, Releases};
use super::helm_storage::Storage;
use super::most_apps::{self, AppNumbers, Shares};
use super::notes::{Notes, ReleaseErrors};
use super::release::Release;
use super::{AppliedRevision, Declaration, Destination, ObjectKeys, time};
use crate::agreement::{Claimant, Mark};
use crate::fleet::Fleet;
use crate::identity::{AppKey, Delivery};
use crate::noting::metadata_of;
use crate::sync::{Source, Sync, SyncState};

/// Returns the apps of the releases in Helm's storage of the cluster with index `home`, without those that a
/// HelmRelease declares, whose newest version is uninstalled or whose name is too long. If `others`, the numbers of
/// other apps, is not `None`, the cluster may have too many apps: those beyond the share of their namespace are only
/// counted.
pub(super) fn declare(
    fleet: &Fleet<'_>,
    home: usize,
    releases: &Releases<'_>,
    others: Option<&AppNumbers>,
    notes: &mut Notes,
) -> Resolved {
    let mut apps = Vec::new();
    let mut unread = AppNumbers::new();
    // Those that are surely apps of their own; the others are read first.
    let is_counted = |namespace: &str, name: &str, versions: &BTreeMap<u64, Observed<'_>>| {
        let is_there = |newest: &Observed<'_>| status_label(newest) != "uninstalled";
        names::is_short(name)
            && versions.values().next_back().is_some_and(is_there)
            && releases.of(namespace, name).is_none()
    };
    let mut shares = others.map(|others| {
        let all = fleet.storage(home).releases.iter();
        let counted = all.filter(|((namespace, name), versions)| is_counted(namespace, name, versions));
        Shares::beside(others, counted.map(|((namespace, _), _)| *namespace))
    });
    for (&(namespace, name), versions) in &fleet.storage(home).releases {
        let Some((_, newest)) = versions.last_key_value() else { continue };
        if let Some(shares) = &mut shares
            && is_counted(namespace, name, versions)
            && !shares.take(namespace)
        {
            most_apps::count(&mut unread, namespace, 1);
            continue;
        }
        let is_of_helm_release = match releases.of(namespace, name) {
            Some(needed) if needed.is_empty() => true,
            Some(needed) => is_marked(fleet, home, newest.key, &needed, notes),
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
            never_reconciled: false,
            unreadable: None,
            sync,
            suspended: false,
            message,
            trouble: None,
            source: None,
            delivered_by: None,
            checks: Vec::new(),
            claimant: Claimant::in_namespace(
                home,
                newest.key.namespace,
                vec![Mark::of_release(newest.key.namespace, name)],
            ),
        };
        match notes.release(newest.key.namespace, fleet, home, newest.key, None) {
            Ok(release) if release.written.status == "uninstalled" => {}
            Ok(release) => {
                let deployed = match &*release.written.status {
                    "deployed" => None,
                    _ => versions
                        .values()
                        .rev()
                        .skip(1)
                        .find_map(|older| last_deployed(fleet, home, older, notes)),
                };
                let sync = sync(&release, deployed.as_deref());
                let well = sync.state == SyncState::Synced;
                let written = &release.written;
                let message = match well {
                    true => format!("{}, revision {}", written.chart, written.version),
                    false => written.description.clone(),
                };
                notes.report_release(&ReleaseErrors::of_storage(home, newest.key), &written.malformed);
                let own = app(release.namespace.clone(), release.objects.clone(), sync, message);
                apps.push(Declaration {
                    trouble: (!well).then(|| written.description.clone()),
                    source: Some(Source {
                        kind: "HelmChart".to_owned(),
                        namespace: None,
                        name: None,
                        url: None,
                        path: Some(written.chart_name.clone()),
                        reference: None,
                    }),
                    claimant: Claimant { hooks: release.hooks.clone(), ..own.claimant },
                    ..own
                });
            }
            Err(error) => {
                // Its label already shows that an older version will be needed: both can be read at once.
                if !was_deployed(newest) {
                    let older = versions.values().rev().skip(1).find(|older| was_deployed(older));
                    older.map(|older| notes.release(older.key.namespace, fleet, home, older.key, None));
                }
                let of = ReleaseErrors::of_storage(home, newest.key);
                let message = notes.unreadable(&of, newest.key, &error);
                apps.push(Declaration {
                    unreadable: Some((newest.key.to_owned(), message)),
                    ..app(namespace.to_owned(), ObjectKeys::default(), Sync::unknown(), String::new())
                });
            }
        }
    }
    Resolved { apps: apps.into_iter().map(Arc::new).collect(), releases: None, unread }
}

/// Returns true if a release belongs to one of the HelmReleases `needed`, which are in other namespaces:
/// helm-controller has marked its objects for it.
///
/// Marks in the HelmRelease's own namespace prove nothing about a release stored elsewhere: the author of the
/// one may mark the other. So an object outside of it must carry the mark, or the release must say itself
/// that it was installed there. And the HelmRelease must list each object, so that the row of the release
/// would show nothing that its own does not. False if none of the release's objects exists.
fn is_marked(
    fleet: &Fleet<'_>,
    home: usize,
    key: ObjectKeyRef<'_>,
    needed: &[&Elsewhere<'_>],
    notes: &mut Notes,
) -> bool {
    let objects = fleet.objects(home);
    let all = || needed.iter().flat_map(|needed| needed.values()).flatten().copied();
    let Some(first) = all().next() else { return false };
    let mut read =
        |needed: &ReleaseProof| notes.release(key.namespace, fleet, home, key, Some(&needed.delivered));
    let Ok(release) = read(first) else { return false };
    // Helm itself stores a release where it is installed: only helm-controller stores it elsewhere.
    let is_own_release = |release: &Release, needed: &ReleaseProof| {
        release.written.namespace.as_ref() == Some(&needed.own)
            && release.objects.iter().all(|key| key.namespace == needed.own)
    };
    let is_marked = |release: &Release, is_meant: &dyn Fn(&ReleaseProof) -> bool| {
        let carried: Vec<Observed<'_>> =
            release.objects.iter().filter_map(|key| metadata_of(objects, key).present()).collect();
        let Some((first, others)) = carried.split_first() else { return false };
        // A HelmRelease that the first object does not name is not named by all.
        let named = Mark::all(first.key, &first.object, &[]);
        let named = named.iter().flat_map(|mark| needed.iter().filter_map(move |needed| needed.get(mark)));
        named.flatten().copied().filter(|needed| is_meant(needed)).any(|needed| {
            let listed = needed.listed.as_ref();
            let is_own = |key: ObjectKeyRef<'_>| key.namespace == needed.own;
            others.iter().all(|it| Mark::all(it.key, &it.object, &[]).contains(&needed.mark))
                && listed.is_none_or(|listed| release.objects.iter().all(|key| listed.contains(key)))
                && (is_own_release(release, needed) || carried.iter().any(|it| !is_own(it.key)))
        })
    };
    // The release can be placed in two ways, whatever namespaces the HelmReleases deliver into.
    let says = release.written.namespace.clone();
    let is_there = |needed: &ReleaseProof| says.as_ref() == Some(&needed.delivered);
    let way = is_there(first);
    if is_marked(&release, &|needed| is_there(needed) == way) {
        return true;
    }
    let Some(other) = all().find(|needed| is_there(needed) != way) else { return false };
    read(other).is_ok_and(|release| is_marked(&release, &|needed| is_there(needed) != way))
}

/// Returns the newest stored version of a release as an applied revision, named with the chart in `sync.attempted`, and
/// the object that stores it; `None` if none is stored, or its time is not known.
pub(crate) fn applied(
    storage: &Storage<'_>,
    namespace: &str,
    release: &str,
    sync: &Sync,
) -> Option<(ObjectKey, AppliedRevision)> {
    let versions = storage.releases.get(&(namespace, release))?;
    let (newest, observed) = versions.last_key_value()?;
    let when = time(observed.object.at(&["metadata", "creationTimestamp"]))?;
    let chart = sync.attempted.as_ref().map(|chart| format!(", {chart}")).unwrap_or_default();
    let from = versions.keys().rev().nth(1).map(|version| format!("revision {version}"));
    let to = Some(format!("revision {newest}{chart}"));
    Some((observed.key.to_owned(), AppliedRevision { when, from, to, fields: Vec::new() }))
}

/// Returns the time at which the last operation on a Helm release began.
///
/// Helm stores the newest version at that time, or writes it again when it uninstalls the release. Returns `None` for
/// apps of other tools, and if no version is stored.
pub(crate) fn tried_at(app: &Declaration, fleet: &Fleet<'_>) -> Option<Timestamp> {
    if app.delivery != Delivery::Helm {
        return None;
    }
    let objects = fleet.objects(app.home);
    let (key, applied) = applied(fleet.storage(app.home), &app.namespace, &app.name, &app.sync)?;
    let label =
        objects.get(key.as_ref()).present()?.object.text(&["metadata", "labels", "modifiedAt"]).into_owned();
    let modified = label.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    Some(modified.map_or(applied.when, |modified| modified.max(applied.when)))
}

/// Returns the release that the object `older` stores, if it was deployed once; `None` otherwise, and if it cannot be
/// read.
fn last_deployed(
    fleet: &Fleet<'_>,
    home: usize,
    older: &Observed<'_>,
    notes: &mut Notes,
) -> Option<Arc<Release>> {
    if !was_deployed(older) {
        return None;
    }
    let release = notes.release(older.key.namespace, fleet, home, older.key, None).ok()?;
    matches!(&*release.written.status, "deployed" | "superseded").then_some(release)
}

/// Returns true if the labels of a stored version say that it is or was deployed.
fn was_deployed(version: &Observed<'_>) -> bool {
    matches!(&*status_label(version), "deployed" | "superseded")
}

/// Returns the status of a stored version by its label; empty if it has none.
fn status_label<'o>(version: &Observed<'o>) -> Cow<'o, str> {
    version.object.text(&["metadata", "labels", "status"])
}

fn sync(release: &Release, deployed: Option<&Release>) -> Sync {
    let written = &release.written;
    let state = match &*written.status {
        "deployed" => SyncState::Synced,
        "failed" => SyncState::Failed,
        "pending-install" | "pending-upgrade" | "pending-rollback" | "uninstalling" => SyncState::Syncing,
        _ => SyncState::Unknown,
    };
    let last = match state {
        SyncState::Synced => Some(release),
        _ => deployed,
    };
    Sync {
        state,
        desired: Some(written.chart.clone()),
        attempted: Some(written.chart.clone()),
        applied: last.map(|release| release.written.chart.clone()),
        last_success: last.and_then(|release| release.written.last_deployed),
    }
}
