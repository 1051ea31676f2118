//! What changed before an app turned red: what is seen in its cluster, and the revisions that its tool says it applied.

use jiff::Timestamp;
use taffrail_status::Status;
use taffrail_status::assess::{self, Change, ChangeKind, nearest};

use crate::apps::{App, Resource};
use crate::delivery::{Applied, argo, flux, helm};
use crate::evidence::ClusterEvidence;
use crate::identity::{Delivery, ObjectKey};
use crate::objects::{Lookup, Objects};

/// How many changes are told.
const MOST: usize = 3;

/// What changed before `app` turned red, the nearest first; nothing where it is well, or where nothing is known.
///
/// Of an object that was taken for an app, `via` are the apps that deliver it.
pub fn changes(app: &App, via: &[&App], clusters: &[&dyn Objects]) -> Vec<Change> {
    let Some(speaker) = app.speaker.as_ref().filter(|speaker| speaker.status != Status::Current) else {
        return Vec::new();
    };
    let Some(turn) = turn(speaker) else { return Vec::new() };
    let is_declared = app.resources.iter().any(|resource| resource.key == speaker.key);
    let place = if is_declared { &app.app.target } else { &app.app.home };
    let cluster = |name: &str| clusters.iter().copied().find(|objects| objects.name() == name);
    let mut found = Vec::new();
    if let Some(objects) = cluster(place) {
        found.extend(assess::changes(&speaker.chain, turn, &ClusterEvidence::new(objects)));
    }
    for app in std::iter::once(app).chain(via.iter().copied()) {
        found.extend(cluster(&app.app.home).into_iter().flat_map(|home| revisions(app, home)));
    }
    let mut found = nearest(found, turn);
    found.truncate(MOST);
    found
}

/// Returns who wrote last what is wanted of an object that was asked for, well or not, the newest first; `object` is one
/// that was taken for an app.
pub fn last_changes(object: &App, clusters: &[&dyn Objects]) -> Vec<Change> {
    let [only] = object.resources.as_slice() else { return Vec::new() };
    let cluster = clusters.iter().copied().find(|cluster| cluster.name() == object.app.target);
    let Some((cluster, Lookup::Found(observed))) = cluster.map(|cluster| (cluster, cluster.get(&only.key)))
    else {
        return Vec::new();
    };
    assess::last_changes(&observed.object, &ClusterEvidence::new(cluster))
}

/// When an object turned red.
fn turn(speaker: &Resource) -> Option<Timestamp> {
    speaker.since.or_else(|| speaker.chain.iter().find_map(|link| link.since))
}

fn revisions(app: &App, home: &dyn Objects) -> Vec<Change> {
    let declaring = app.declaring.as_ref().and_then(|key| match home.get(key) {
        Lookup::Found(observed) => Some(observed),
        Lookup::Absent | Lookup::Unobserved(_) => None,
    });
    let (key, applied) = match (app.app.delivery, declaring) {
        (Delivery::FluxKustomization | Delivery::FluxHelmRelease, Some(observed)) => {
            (observed.key.clone(), flux::applied(home, &observed))
        }
        (Delivery::ArgoApplication, Some(observed)) => {
            (observed.key.clone(), argo::applied(&observed.object))
        }
        (Delivery::Helm, _) => {
            match helm::applied(&helm::Storage::of(home), &app.app.namespace, &app.app.name, &app.sync) {
                Some((key, applied)) => (key, vec![applied]),
                None => return Vec::new(),
            }
        }
        _ => return Vec::new(),
    };
    applied.into_iter().map(|applied| change(&key, applied)).collect()
}

fn change(key: &ObjectKey, applied: Applied) -> Change {
    let Applied { when, from, to, fields } = applied;
    let object = assess::ObjectName::new(&key.group, &key.kind, &key.namespace, &key.name);
    Change { from, to, fields, ..Change::new(when, ChangeKind::Revision, object) }
}
