//! Applies the events of watched clusters to the fleet: connections, discoveries, watch events, polls.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use taffrail_apps::{
    Answer, Freshness, FreshnessState, Objects as _, Read, Sameness, Scope, ScopeError, Snapshot,
};
use taffrail_cluster::{Change, Connectivity, Reason, WatchEvent, WatchSettings, WatchState, Watcher};
use taffrail_object::{GroupKind, Object, ObjectKey, Projection};
use taffrail_status::ClusterState as _;
use tokio::time::Instant;

use super::holders::Holders;
use super::plan::get;
use super::{Connected, Event, FleetWatcher, FollowedScope, SecretFetch, bodies};
use crate::error::Failure;
use crate::look::{begun, take};

/// Interval between attempts to connect to a cluster that does not answer.
const RETRY: Duration = Duration::from_secs(3);

/// Time after which two clusters are compared again if the last comparison proved neither that they are one cluster nor
/// that they are two.
const COMPARE_AGAIN: Duration = Duration::from_mins(1);

/// The first pause before discovery is repeated for a newly defined kind, which the server serves a moment later; each
/// further pause is twice the one before.
const DISCOVERY_PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of repetitions of discovery for newly defined kinds; then it is repeated only at its regular
/// interval.
const MAX_REDISCOVERIES: u32 = 7;

impl FleetWatcher {
    pub(super) fn take(&mut self, event: Event) -> bool {
        match event {
            Event::Connected(number, outcome) => {
                let Some(at) = self.place_of(number) else { return false };
                self.connected(at, *outcome)
            }
            Event::Discovered(number, discovery) => {
                let Some(at) = self.place_of(number) else { return false };
                let following = &mut self.clusters[at];
                let coming = &mut following.coming;
                if std::mem::take(&mut coming.under_way) && coming.asked < MAX_REDISCOVERIES {
                    let pause = DISCOVERY_PAUSE * 2_u32.pow(coming.asked);
                    coming.asked += 1;
                    coming.due = Some(Instant::now() + pause);
                }
                if following.feeds.is_none() {
                    return false;
                }
                // Who could not say it now is asked again later.
                let Ok(discovery) = discovery else { return false };
                let kinds = following.take_discovery(discovery);
                if self.fleet.snapshots[at].id().is_none() {
                    self.fetch_identity(at);
                }
                let following = &mut self.clusters[at];
                // Those of many clusters are discovered all the time, and seldom differ.
                if following.is_light && self.fleet.snapshots[at].kinds() == Some(&kinds) {
                    return false;
                }
                self.fleet.snapshots[at].set_kinds(kinds);
                following.changed = true;
                true
            }
            Event::Compared { number, is_first, pairs } => {
                self.comparing -= usize::from(is_first);
                let mut changed = false;
                for (pair @ (place, before), found) in pairs {
                    let known = self.compared.get_mut(&pair).filter(|known| known.number == number);
                    let Some(known) = known else { continue };
                    if found == Sameness::Unproven {
                        known.again_at = Some(Instant::now() + COMPARE_AGAIN);
                        continue;
                    }
                    let places = self.place_of(place).zip(self.place_of(before));
                    let Some((place, before)) = places else { continue };
                    let name = self.fleet.snapshots[before].name().to_owned();
                    self.fleet.snapshots[place].set_same_as(name, found == Sameness::One);
                    self.clusters[place].may_name_others = true;
                    changed = true;
                }
                changed
            }
            Event::Got(number, read, outcome) => {
                let Some(at) = self.place_of(number) else { return false };
                let following = &mut self.clusters[at];
                let SecretFetch { is_loose, is_due, is_gone } =
                    following.fetching.remove(&*read).unwrap_or_default();
                // It was let go of meanwhile.
                if following.feeds.is_none() {
                    return false;
                }
                // What nothing waits for is planned for all together.
                following.changed |= !is_loose || following.loose_fetches() == 0;
                // One of its name that came since may be there by now.
                let is_outdated = is_gone || is_due && matches!(outcome, Ok(None));
                if !is_outdated {
                    let snapshot = &mut self.fleet.snapshots[at];
                    snapshot.retract_read(&read);
                    take(snapshot, &read, outcome);
                }
                if is_due {
                    self.fetch(at, *read);
                }
                !is_gone
            }
            Event::Polled(number, id, outcome) => {
                let Some(at) = self.place_of(number) else { return false };
                let following = &mut self.clusters[at];
                let Some(came) = following.again.take(id, &mut self.fleet.snapshots[at], outcome) else {
                    return false;
                };
                if let Some(followed) = following.scopes.get_mut(&id) {
                    followed.answered = true;
                }
                following.changed |= came.is_news;
                if came.goes_on {
                    self.read_again(at, id, false);
                }
                came.is_news
            }
        }
    }

    fn connected(&mut self, at: usize, outcome: Result<Connected, Failure>) -> bool {
        let following = &mut self.clusters[at];
        following.connecting = false;
        let Connected { cluster, version, discovery } = match outcome {
            Ok(connected) => connected,
            Err(failure) => {
                // Where it is stays known, so that apps that others deliver there are found to be its own.
                self.fleet.snapshots[at] = following.lost(failure);
                if following.member.context.is_ok() {
                    self.connect(at, RETRY);
                }
                return true;
            }
        };
        let mut snapshot = begun(&following.member.name, &cluster, Timestamp::now());
        snapshot.set_labels(following.member.labels.clone());
        snapshot.set_light(following.is_light);
        if let Some(version) = version {
            snapshot.set_version(version);
        }
        if let Some(ahead) = cluster.clock_ahead() {
            snapshot.set_clock_ahead(ahead);
        }
        match discovery {
            Ok(discovery) => {
                snapshot.set_kinds(following.take_discovery(discovery));
            }
            Err(error) => {
                let Failure { reason, message } = Failure::new(error.reason(), &error, error.hint());
                snapshot.report(ScopeError { scope: Scope::Cluster, reason, message });
            }
        }
        self.fleet.snapshots[at] = snapshot;
        // What answers now may be another one.
        let number = self.clusters[at].number;
        self.compared.retain(|(one, other), _| *one != number && *other != number);
        for other in &mut self.fleet.snapshots {
            other.forget_same_as(&self.clusters[at].member.name);
        }
        let following = &mut self.clusters[at];
        let context = following.member.context.as_deref().ok().cloned();
        following.held = Some(cluster.hold());
        let mut settings = if following.is_light { WatchSettings::light() } else { WatchSettings::default() };
        settings.news = Arc::clone(&self.news);
        settings.lists = self.lists;
        settings.clock = self.clock.clone();
        let (feeds, inbox) = Watcher::start(cluster, context, settings);
        following.feeds = Some(feeds);
        following.discovered = Instant::now();
        (following.changed, following.may_name_others) = (true, true);
        (following.is_settled, following.was_settled) = (false, false);
        (following.stale, following.is_asked) = (None, false);
        following.inbox = Some(inbox);
        true
    }

    /// Applies a watch event of the cluster with index `at`; returns true if the view may change.
    pub(super) fn deliver(&mut self, at: usize, delivery: WatchEvent) -> bool {
        let following = &mut self.clusters[at];
        // It was let go of, and this was under way.
        if following.feeds.is_none() {
            return false;
        }
        let snapshot = &mut self.fleet.snapshots[at];
        let coming = &mut following.coming;
        let delivery = match delivery {
            WatchEvent::State(id, state) if coming.scopes.contains(&id) => {
                let is_definitions = coming.scopes.first() == Some(&id);
                coming.is_blind = match state {
                    WatchState::Forbidden { .. } | WatchState::Absent if is_definitions => true,
                    WatchState::Live if is_definitions => false,
                    _ => coming.is_blind,
                };
                return false;
            }
            WatchEvent::Batch(batch) if coming.scopes.contains(&batch.scope()) => {
                let mut moved = false;
                batch.read(&mut self.parser, |change| {
                    moved |= matches!(change, Change::Upsert(_) | Change::Delete(_));
                });
                if moved {
                    coming.due = Some(Instant::now());
                    coming.asked = 0;
                    // What was there before may be there again.
                    following.feeds.iter().for_each(Watcher::try_now);
                }
                return moved;
            }
            delivery => delivery,
        };
        match delivery {
            WatchEvent::InitStarted(id) => {
                if let Some(followed) = following.scopes.get_mut(&id) {
                    followed.unseen = followed.keys.clone();
                    followed.malformed = Default::default();
                }
                false
            }
            WatchEvent::Connectivity(contact) => {
                self.has_moved = true;
                let now = Timestamp::now();
                match contact {
                    // Of what was live before, each scope says again how it is.
                    Connectivity::Stale { silent } => {
                        let heard = now.checked_sub(silent).unwrap_or(now);
                        following.is_asked = true;
                        following.stale.get_or_insert(heard);
                        following.doubt_live_scopes(heard);
                    }
                    Connectivity::Live | Connectivity::WentBack { .. } => {
                        if matches!(contact, Connectivity::WentBack { .. }) {
                            following.doubt_live_scopes(now);
                        }
                        if snapshot.freshness().state == FreshnessState::Lost {
                            snapshot.retract(&Scope::Cluster);
                        }
                        snapshot.set_freshness(Freshness::live(now));
                        following.is_asked = false;
                        // What answers now may be another cluster.
                        self.fetch_identity(at);
                    }
                    Connectivity::Lost { silent, reason, message } => {
                        let at = now.checked_sub(silent).ok();
                        following.doubt_live_scopes(at.unwrap_or(now));
                        snapshot.set_freshness(Freshness { state: FreshnessState::Lost, observed_at: at });
                        snapshot.retract(&Scope::Cluster);
                        let (scope, reason) = (Scope::Cluster, reason.to_owned());
                        snapshot.report(ScopeError { scope, reason, message });
                    }
                }
                true
            }
            WatchEvent::State(id, state) => {
                let Some(followed) = following.scopes.get_mut(&id) else { return false };
                match &state {
                    WatchState::CatchingUp if followed.answered => {
                        followed.behind.get_or_insert(self.clock.now());
                    }
                    WatchState::CatchingUp | WatchState::Broken { .. } => {}
                    // What was known of it before is no longer known to be so.
                    WatchState::Forbidden { .. } if !followed.keys.is_empty() => {
                        followed.stale.get_or_insert_with(Timestamp::now);
                        followed.behind = None;
                    }
                    _ => (followed.stale, followed.behind) = (None, None),
                }
                if followed.state.0 != state {
                    followed.state = (state.clone(), Timestamp::now());
                }
                if let WatchState::Forbidden { message } = &state
                    && let Some(key) = followed.key.clone()
                    && (self.asked.objects.contains(&key)
                        || following.more.contains(&key)
                        || following.elsewhere.contains(&key))
                {
                    // Who may not watch what was asked for by name may well be let read it.
                    if following.again.begin(id, &followed.read, key, message.clone()) {
                        self.read_again(at, id, true);
                    }
                    return false;
                }
                if followed.is_excess() && !matches!(state, WatchState::CatchingUp | WatchState::Live) {
                    followed.answered = true;
                    let read = followed.read.clone();
                    self.tell_homes(at, &read, state);
                    return true;
                }
                let answer = match state {
                    WatchState::CatchingUp => return false,
                    // Its list was complete before, and was answered then.
                    WatchState::Live if followed.answered => Answer::Objects(Vec::new()),
                    WatchState::Live => return false,
                    WatchState::Forbidden { message } => Answer::Forbidden { message },
                    WatchState::Absent => Answer::NotFound,
                    // What was known goes on to be shown while it is tried again.
                    WatchState::Broken { reason, message } if followed.answered => {
                        followed.broken.get_or_insert((self.clock.now(), reason, message));
                        return false;
                    }
                    WatchState::Broken { reason, message } => {
                        Answer::Failed { reason: reason.to_owned(), message }
                    }
                };
                followed.answered = true;
                followed.broken = None;
                following.changed = true;
                self.has_moved |= may_declare(&followed.kind);
                following.may_name_others |= may_declare(&followed.kind);
                let (read, is_foreign) = (followed.read.clone(), followed.is_foreign);
                if is_foreign {
                    following.note_homes(snapshot, &read);
                }
                snapshot.retract_read(&read);
                snapshot.answer(&read, answer);
                true
            }
            WatchEvent::Batch(batch) => {
                let id = batch.scope();
                // Beside it are the others, which may hold the same objects.
                let Some(mut followed) = following.scopes.remove(&id) else { return false };
                following.again.end(id);
                let projection = followed.read.projection;
                let is_beside = |other: &&FollowedScope| other.kind == followed.kind;
                let beside = Holders::of(following.scopes.values().filter(is_beside));
                let mut again: BTreeSet<Read> = BTreeSet::new();
                let values = &mut following.values;
                let (planned, fetching) = (&mut following.planned, &mut following.fetching);
                // Where one of its name comes again, that is another one.
                let mut forget =
                    |snapshot: &mut Snapshot, values: &mut HashMap<ObjectKey, Read>, key: &ObjectKey| {
                        bodies::remove(snapshot, key, projection, beside.held(key));
                        let Some(value) = values.remove(key) else { return };
                        planned.remove(&value);
                        snapshot.forget(key);
                        if let Some(fetch) = fetching.get_mut(&value) {
                            (fetch.is_gone, fetch.is_due) = (true, false);
                        }
                    };
                let mut changed = false;
                // Each node writes its status every five minutes, and a read follows only from its being ready or not.
                let is_ready = |node: &Object<'_>| node.condition_is("Ready", "True");
                let is_of_nodes = followed.kind.group.is_empty() && followed.kind.kind == "Node";
                let mut is_to_plan = !is_of_nodes;
                batch.read(&mut self.parser, |change| match change {
                    Change::Upsert(object) => {
                        let Ok(document) = followed.read.document(object.root()) else { return };
                        let read = &followed.read;
                        let key =
                            ObjectKey::new(&*read.group, &*read.kind, object.namespace(), object.name());
                        if is_of_nodes {
                            let known = snapshot.get(key.as_ref()).present();
                            is_to_plan |= known.map(|it| is_ready(&it.object)) != Some(is_ready(&object));
                        }
                        let secret = key.kind == "Secret" && key.group.is_empty();
                        let is_whole_beside = projection == Projection::Metadata && beside.bring_body(&key);
                        let brings_body = is_whole_beside || values.contains_key(&key);
                        if let Err(error) = snapshot.insert_followed(read, &key, document, brings_body) {
                            let message = format!("{error}, so it is left out: {} {}", key.kind, key.path());
                            changed |= followed.note(snapshot, message);
                        } else {
                            changed = true;
                            followed.unseen.remove(&key);
                            if secret {
                                again.extend(values.get(&key).cloned());
                            }
                            followed.keys.insert(snapshot.share(key.as_ref()));
                        }
                    }
                    Change::Delete(object) => {
                        let read = &followed.read;
                        let key =
                            ObjectKey::new(&*read.group, &*read.kind, object.namespace(), object.name());
                        forget(snapshot, values, &key);
                        followed.keys.remove(&key);
                        followed.unseen.remove(&key);
                        (changed, is_to_plan) = (true, true);
                    }
                    Change::Malformed(item) => {
                        let name = item.name.unwrap_or_else(|| format!("item {}", item.index));
                        let list = crate::read::resource(&followed.read).full_name();
                        let message = format!("{list} {name} is left out: {}", item.reason);
                        changed |= followed.note(snapshot, message);
                    }
                    Change::InitDone => {
                        for key in std::mem::take(&mut followed.unseen) {
                            forget(snapshot, values, &key);
                            followed.keys.remove(&key);
                        }
                        followed.answered = true;
                        (followed.broken, followed.stale) = (None, None);
                        snapshot.retract_read(&followed.read);
                        snapshot.answer(&followed.read, Answer::Objects(Vec::new()));
                        followed.report(snapshot);
                        (changed, is_to_plan) = (true, true);
                    }
                });
                let has_moved = changed && may_declare(&followed.kind);
                self.has_moved |= has_moved;
                following.may_name_others |= has_moved;
                following.scopes.insert(id, followed);
                following.changed |= changed && is_to_plan;
                if let Err(over) = following.charge(snapshot) {
                    self.let_go(at, &over);
                    self.has_moved = true;
                    return true;
                }
                for read in again {
                    self.fetch(at, read);
                }
                changed
            }
        }
    }

    /// Reports that the list of a kind in the cluster with index `at` failed, to the clusters whose apps name too many
    /// objects of the kind to read them one by one.
    fn tell_homes(&mut self, at: usize, read: &Read, state: WatchState) {
        let (reason, message) = match state {
            WatchState::Forbidden { message } => (Reason::Forbidden.as_str(), message),
            WatchState::Broken { reason, message } => (reason, message),
            _ => (Reason::NotFound.as_str(), "the server has no such kind".to_owned()),
        };
        let target = self.fleet.snapshots[at].name().to_owned();
        let kind = GroupKind::new(&*read.group, &*read.kind);
        let Some(homes) = self.clusters[at].foreign_over.get(&kind) else { return };
        let scope = Scope::Input(format!("{} in {target}", read.kind));
        let message = format!(
            "the apps of this cluster name more objects of kind {} in cluster {target} than Taffrail reads \
            one by one, and listing the kind there failed: {message}",
            read.kind
        );
        for snapshot in self.fleet.snapshots.iter_mut().filter(|it| homes.contains(it.name())) {
            snapshot.retract(&scope);
            let error =
                ScopeError { scope: scope.clone(), reason: reason.to_owned(), message: message.clone() };
            snapshot.report(error);
        }
    }

    /// Reads the identity of a cluster that is read lightly again: it is not watched there.
    fn fetch_identity(&mut self, at: usize) {
        let following = &self.clusters[at];
        let reads = following.values.values().filter(|_| following.is_light).cloned();
        reads.collect::<Vec<Read>>().into_iter().for_each(|read| self.fetch(at, read));
    }

    /// Reads the whole of an object whose kind is watched only as metadata. If it changes during the read, reads it
    /// once more, however many changes there were.
    fn fetch(&mut self, at: usize, read: Read) {
        let one_request = self.one_request();
        let following = &mut self.clusters[at];
        let Some(feeds) = &following.feeds else { return };
        if let Some(fetch) = following.fetching.get_mut(&read) {
            fetch.is_due = true;
            return;
        }
        // What was read before is shown until then.
        let fetch = SecretFetch { is_loose: true, ..SecretFetch::default() };
        following.fetching.insert(read.clone(), fetch);
        self.events.push(get(following.number, feeds.cluster().with_timeout(one_request), read));
    }
}

/// Returns true if objects of a kind may determine which objects apps have in other clusters, and where: every kind of
/// a group that is not of Kubernetes itself, kinds that declare apps, kinds that these refer to, and those by which an
/// Argo CD is known.
fn may_declare(kind: &GroupKind) -> bool {
    let GroupKind { group, kind } = kind;
    match &**group {
        "" => matches!(&**kind, "Secret" | "ConfigMap" | "Namespace"),
        "apps" => matches!(&**kind, "Deployment" | "StatefulSet"),
        "batch" | "autoscaling" | "policy" | "extensions" => false,
        "rbac.authorization.k8s.io" | "apiextensions.k8s.io" => true,
        group => !group.ends_with(".k8s.io"),
    }
}
