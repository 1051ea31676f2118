//! The changes before an app turned red: those seen in its cluster, and the revisions that its tool says it
//! applied.

use std::collections::HashMap;

use jiff::Timestamp;
use taffrail_object::ObjectKey;
use taffrail_status::assess::{self, Change, ChangeKind, Evidence, History, nearest};
use taffrail_status::{Presence, Status};

use crate::app::{App, Resource};
use crate::delivery::{AppliedRevision, argo, flux, helm};
use crate::fleet::Fleet;
use crate::identity::Delivery;
use crate::objects::Objects;

/// The maximum number of changes that an explanation shows; older ones are left out.
const MAX_CHANGES: usize = 3;

/// Returns the last changes in the hour before `app` became unhealthy (or in the second after), the latest first, at
/// most `MAX_CHANGES`; empty if it is well, or if no change or not the time of its failure is known.
///
/// Where `app` stands for a single object, `via` are the apps that deliver that object.
pub fn changes(app: &App, via: &[&App], clusters: &[&dyn Objects]) -> Vec<Change> {
    changes_of_each(&[(app, via)], clusters).pop().unwrap_or_default()
}

/// Returns the [`changes`] of each of several apps, each given with the apps that deliver it.
///
/// A cause that several of the apps share is examined once.
pub fn changes_of_each(apps: &[(&App, &[&App])], clusters: &[&dyn Objects]) -> Vec<Vec<Change>> {
    let fleet = Fleet::new(clusters);
    let histories = fleet.members.iter().map(|member| History::new(Evidence::of(member.objects))).collect();
    let mut places = HashMap::new();
    for (place, member) in fleet.members.iter().enumerate() {
        places.entry(member.objects.name()).or_insert(place);
    }
    let past = FleetHistory { fleet: &fleet, places, histories };
    apps.iter().map(|(app, via)| past.of(app, via)).collect()
}

/// The recorded changes of all clusters of a fleet, to find those that precede a failure.
struct FleetHistory<'p, 'a> {
    fleet: &'p Fleet<'a>,
    /// The index of each cluster in `histories`, by its name.
    places: HashMap<&'p str, usize>,
    /// The history of each cluster, in the order of the fleet.
    histories: Vec<History<'p>>,
}

impl FleetHistory<'_, '_> {
    fn of(&self, app: &App, via: &[&App]) -> Vec<Change> {
        let Some(speaker) = app.speaker.as_ref().filter(|speaker| speaker.status != Status::Current) else {
            return Vec::new();
        };
        let Some(turn) = turn(speaker) else { return Vec::new() };
        let is_declared = app.resources.iter().any(|resource| resource.key == speaker.key);
        let cluster = if is_declared { &app.app.target } else { &app.app.home };
        let mut found = Vec::new();
        if let Some(history) = self.places.get(&**cluster).and_then(|place| self.histories.get(*place)) {
            found.extend(history.before(&speaker.chain, turn, MAX_CHANGES));
        }
        for app in std::iter::once(app).chain(via.iter().copied()) {
            let home = self.places.get(&*app.app.home);
            found.extend(home.into_iter().flat_map(|home| revisions(app, self.fleet, *home)));
        }
        let mut found = nearest(found, turn);
        found.truncate(MAX_CHANGES);
        found
    }
}

/// Returns the last changes of an object, or of its top controller, by their field managers, at most five: those
/// without a time, then the newest. `object` is an app that stands for a single object; the result is empty for other
/// apps, and for an object that was not read.
pub fn last_changes(object: &App, clusters: &[&dyn Objects]) -> Vec<Change> {
    let [only] = object.resources.as_slice() else { return Vec::new() };
    let cluster = clusters.iter().copied().find(|cluster| cluster.name() == object.app.target);
    let Some((cluster, Presence::Present(observed))) =
        cluster.map(|cluster| (cluster, cluster.get(ObjectKey::as_ref(&only.key))))
    else {
        return Vec::new();
    };
    assess::last_changes(&observed.object, Evidence::of(cluster))
}

/// Returns the time at which `speaker`, the worst object of an app, became unhealthy; if unknown, that of the first
/// step of its cause chain with a time; `None` if none has one.
fn turn(speaker: &Resource) -> Option<Timestamp> {
    speaker.since.or_else(|| speaker.chain.iter().find_map(|link| link.since))
}

fn revisions(app: &App, fleet: &Fleet<'_>, place: usize) -> Vec<Change> {
    let home = fleet.objects(place);
    let declaring = app.declaring.as_ref().and_then(|key| match home.get(key.as_ref()) {
        Presence::Present(observed) => Some(observed),
        Presence::Absent | Presence::Unobserved(_) => None,
    });
    let (key, applied) = match (app.app.delivery, declaring) {
        (Delivery::FluxKustomization | Delivery::FluxHelmRelease, Some(observed)) => {
            (observed.key.to_owned(), flux::applied(fleet, place, &observed))
        }
        (Delivery::ArgoApplication, Some(observed)) => {
            (observed.key.to_owned(), argo::applied(&observed.object))
        }
        (Delivery::Helm, _) => {
            match helm::applied(fleet.storage(place), &app.app.namespace, &app.app.name, &app.sync) {
                Some((key, applied)) => (key, vec![applied]),
                None => return Vec::new(),
            }
        }
        _ => return Vec::new(),
    };
    applied.into_iter().map(|applied| change(&key, applied)).collect()
}

fn change(key: &ObjectKey, applied: AppliedRevision) -> Change {
    let AppliedRevision { when, from, to, fields } = applied;
    let object = taffrail_object::ObjectKey::new(&key.group, &key.kind, &key.namespace, &key.name);
    Change { from, to, fields, ..Change::new(when, ChangeKind::Revision, object) }
}
