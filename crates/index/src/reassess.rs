//! Reassessment: finds and assesses the objects whose status may have changed.
//!
//! An object whose status evidence may change *listens* to keys: of the objects it names, existing or not, of the users
//! of a claim, of events about it, of the scopes of the kinds it names. A change is announced under all keys to which
//! other objects may listen, and to the owners of the changed object. So exactly the objects whose assessment may have
//! changed are assessed again. An assessment that changes with time alone has a deadline.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rustc_hash::{FxHashMap, FxHashSet};
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey};
use taffrail_status::assess::{Assessment, Evidence, UNJUDGED, assess, claims, references};
use taffrail_status::{ClusterState as _, FIRST_STATUS_RULE, Status};

use super::contents::Contents;
use super::events::{About, Dropped, about};
use super::evidence::IndexEvidence;
use super::new_record::{self, FIRST_STATUS};
use super::pool::NONE;
use super::record::{Health, Judged, REMEMBERED, Record, flag, millis};
use super::scope::ScopeState;
use super::subscribe::Aspects;
use super::table::Seed;
use super::{Index, KindId};

/// Ages of an object at which the rules may change its assessment, though the object does not change.
const AFTER_CREATION: [SignedDuration; 3] =
    [SignedDuration::from_secs(15), FIRST_STATUS, SignedDuration::from_mins(10)];
/// Times after an event about an object at which the rules may change the object's assessment.
const AFTER_EVENT: [SignedDuration; 3] =
    [SignedDuration::from_mins(10), SignedDuration::from_mins(15), SignedDuration::from_mins(20)];
/// Times after the end of a container at which the rules may change the assessment of its Pod.
const AFTER_CRASH: [SignedDuration; 1] = [SignedDuration::from_mins(10)];
/// Times after a transition of a condition at which the rules may change the assessment of the object.
const AFTER_TRANSITION: [SignedDuration; 3] =
    [SignedDuration::from_mins(2), SignedDuration::from_mins(10), SignedDuration::from_mins(20)];

/// Time, in milliseconds, after which an object that was not judged because of its cost is judged again without a
/// change.
const UNJUDGED_FOR: i64 = 60_000;

/// Interval, in milliseconds, at which an object that waits for its first status is judged again.
const FIRST_STATUS_FOR: i64 = 15_000;

/// Number of objects built for evidence beyond which all of them are dropped to free memory, and built again when
/// needed.
const EVIDENCE_AT_ONCE: u32 = 10_000;

/// The objects to reassess, and the keys to which objects listen: when a change is announced under a key, the objects
/// that listen to it are reassessed.
#[derive(Debug, Default)]
pub(super) struct Reassessment {
    /// Slots of the objects that changed.
    changed: FxHashSet<u32>,
    /// Slots of the objects whose assessment may differ although they did not change.
    suspected: FxHashSet<u32>,
    announced: Vec<u128>,
    listeners: FxHashMap<u128, Listeners>,
    /// For each slot, the keys to which its object listens.
    heard: FxHashMap<u32, Box<[u128]>>,
    deadlines: BinaryHeap<Reverse<(i64, u32)>>,
    due: FxHashMap<u32, i64>,
    /// The latest time of a reassessment since the clock was last set back, in milliseconds.
    pub(super) newest: i64,
}

/// Returns the key of all objects of a kind in one namespace, or, if `namespace` is empty, in the whole cluster.
fn of_kind(seed: Seed, group: &str, kind: &str, namespace: &str) -> u128 {
    seed.words(&["of kind", group, kind, namespace])
}

fn in_namespace(seed: Seed, namespace: &str) -> u128 {
    seed.words(&["in namespace", namespace])
}

fn scope_of(seed: Seed, group: &str, kind: &str) -> u128 {
    seed.words(&["scope of", group, kind])
}

/// The slots of the objects that listen to a key. Most of the many keys have one listener.
#[derive(Debug)]
enum Listeners {
    One(u32),
    Many(Box<FxHashSet<u32>>),
}

impl Listeners {
    fn insert(&mut self, slot: u32) {
        match self {
            Listeners::One(own) if *own == slot => {}
            Listeners::One(own) => {
                *self = Listeners::Many(Box::new(FxHashSet::from_iter([*own, slot])));
            }
            Listeners::Many(all) => {
                all.insert(slot);
            }
        }
    }

    /// Removes a listener; returns true if none is left. A sole listener is not removed: the caller then drops the
    /// set.
    fn remove(&mut self, slot: u32) -> bool {
        match self {
            Listeners::One(own) => *own == slot,
            Listeners::Many(all) => {
                all.remove(&slot);
                all.is_empty()
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (one, many) = match self {
            Listeners::One(slot) => (Some(*slot), None),
            Listeners::Many(all) => (None, Some(all.iter().copied())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

impl Reassessment {
    fn listening(&self, key: u128) -> impl Iterator<Item = u32> + '_ {
        self.listeners.get(&key).into_iter().flat_map(Listeners::iter)
    }

    /// Announces a change under `key`, for the next reassessment; returns false if `key` is `None`.
    pub(super) fn announced(&mut self, key: Option<u128>) -> bool {
        self.announced.extend(key);
        key.is_some()
    }

    pub(super) fn suspect_all(&mut self, slots: impl Iterator<Item = u32>) {
        self.suspected.extend(slots);
    }

    fn listen(&mut self, slot: u32, keys: Vec<u128>) {
        let heard = self.heard.get(&slot).map_or(&[][..], |keys| keys);
        if *heard == *keys {
            return;
        }
        self.stop_listening(slot);
        for key in &keys {
            self.listeners.entry(*key).or_insert(Listeners::One(slot)).insert(slot);
        }
        if !keys.is_empty() {
            self.heard.insert(slot, keys.into());
        }
    }

    fn stop_listening(&mut self, slot: u32) {
        for key in self.heard.remove(&slot).iter().flatten() {
            if let Entry::Occupied(mut listeners) = self.listeners.entry(*key)
                && listeners.get_mut().remove(slot)
            {
                listeners.remove();
            }
        }
    }

    fn set_deadline(&mut self, slot: u32, deadline: Option<i64>) {
        match deadline {
            None => drop(self.due.remove(&slot)),
            Some(at) if self.due.get(&slot) == Some(&at) => {}
            Some(at) => {
                self.due.insert(slot, at);
                self.deadlines.push(Reverse((at, slot)));
            }
        }
        // Deadlines that were put off stay in the heap until they pass, but not without bound.
        if self.deadlines.len() > 1_024 && self.deadlines.len() > 4 * self.due.len() {
            self.deadlines = self.due.iter().map(|(slot, at)| Reverse((*at, *slot))).collect();
        }
    }

    /// Removes and returns the slots of the objects whose deadline has passed at `now`, in milliseconds.
    fn take_due(&mut self, now: i64) -> Vec<u32> {
        let mut due = Vec::new();
        while let Some(Reverse((at, slot))) = self.deadlines.peek().copied() {
            if at > now {
                break;
            }
            self.deadlines.pop();
            if self.due.get(&slot) == Some(&at) {
                self.due.remove(&slot);
                due.push(slot);
            }
        }
        due
    }
}

impl Contents {
    fn is_plain(&self, slot: u32) -> bool {
        self.record(slot).is_none_or(|record| record.has(flag::PLAIN))
    }

    fn is_stale(&self, slot: u32) -> bool {
        self.object(slot).is_some_and(|object| object.scope().state == ScopeState::Stale)
    }

    /// Returns all keys under which a change of an object is announced, so that its listeners are reassessed.
    fn announcements(&self, record: &Record) -> Vec<u128> {
        let (group, kind, namespace, _) = self.name_of(record);
        let mut keys = vec![
            self.key_of(record).bits(),
            of_kind(self.seed, group, kind, ""),
            of_kind(self.seed, group, kind, namespace),
            in_namespace(self.seed, namespace),
        ];
        keys.extend(self.keys.get(record.keys).into_iter().flat_map(|keys| keys.iter()));
        keys
    }

    /// Returns the keys to which an object listens whose status evidence may change, sorted: those of its events, of
    /// the objects by which an assessment may judge it, and of the scopes of their kinds.
    fn hears(&self, object: &Object<'_>) -> Vec<u128> {
        let seed = self.seed;
        let (namespace, name) = (object.namespace(), object.name());
        let mut keys = vec![about(seed, object.kind(), &name)];
        let name_of = |name: &ObjectKey, keys: &mut Vec<u128>| {
            let ObjectKey { group, kind, namespace, name } = name;
            keys.push(new_record::named(seed, group, kind, namespace, name).bits());
            if !namespace.is_empty() {
                // Not every field says whether its target is cluster-scoped.
                keys.push(new_record::named(seed, group, kind, "", name).bits());
            }
            keys.push(scope_of(seed, group, kind));
        };
        let named: Vec<_> = references(object).into_iter().map(|reference| reference.to).collect();
        named.iter().for_each(|name| name_of(name, &mut keys));
        match (object.group(), object.kind()) {
            ("", "Pod") => {
                for claim in claims(object) {
                    name_of(&claim, &mut keys);
                    keys.push(new_record::users(seed, &claim.namespace, &claim.name));
                }
                let nominated = object.text(&["status", "nominatedNodeName"]);
                if !nominated.is_empty() {
                    keys.push(new_record::terminating_on(seed, &nominated));
                }
            }
            ("", "PersistentVolumeClaim") => {
                keys.push(new_record::users(seed, &namespace, &name));
                keys.push(of_kind(seed, "storage.k8s.io", "StorageClass", ""));
                keys.push(of_kind(seed, "snapshot.storage.k8s.io", "VolumeSnapshot", &namespace));
                keys.push(scope_of(seed, "", "Pod"));
            }
            ("apps" | "extensions", "Deployment") => {
                keys.push(of_kind(seed, "policy", "PodDisruptionBudget", &namespace));
                keys.push(scope_of(seed, "", "Pod"));
                keys.push(scope_of(seed, "apps", "ReplicaSet"));
            }
            ("apps" | "extensions", "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => {
                keys.push(scope_of(seed, "", "Pod"));
            }
            ("batch", "CronJob") => {
                keys.push(scope_of(seed, "", "Pod"));
                keys.push(scope_of(seed, "batch", "Job"));
            }
            ("", "Namespace") => keys.push(in_namespace(seed, &name)),
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                let (group, kind) = taffrail_status::assess::defined(object);
                keys.push(of_kind(seed, &group, &kind, ""));
            }
            ("apiregistration.k8s.io", "APIService") => {
                for home in named.iter().map(|name| &name.namespace) {
                    keys.push(of_kind(seed, "", "Pod", home));
                    keys.push(of_kind(seed, "", "Endpoints", home));
                    keys.push(of_kind(seed, "discovery.k8s.io", "EndpointSlice", home));
                }
            }
            (group, kind) if group.contains('.') => keys.push(new_record::definition(seed, group, kind)),
            _ => {}
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Returns the next time after `now`, in milliseconds, at which an object's assessment may change with time alone;
    /// `None` if it may not.
    fn deadline(&self, object: &Object<'_>, evidence: &IndexEvidence<'_>, now: i64) -> Option<i64> {
        let time = |value: Option<Value<'_>>| value?.as_str()?.parse::<Timestamp>().ok();
        let created = time(object.at(&["metadata", "creationTimestamp"]));
        let conditions = object.at(&["status", "conditions"]).and_then(Value::items).into_iter().flatten();
        let transitions = conditions.filter_map(|condition| time(condition.get("lastTransitionTime")));
        let events = evidence.events(object);
        let from = |start: Timestamp, after: &'static [SignedDuration]| {
            after.iter().filter_map(move |after| start.checked_add(*after).ok())
        };
        let all = created.into_iter().flat_map(|it| from(it, &AFTER_CREATION));
        let all = all.chain(transitions.flat_map(|it| from(it, &AFTER_TRANSITION)));
        let all =
            all.chain(events.iter().filter_map(|event| event.last).flat_map(|it| from(it, &AFTER_EVENT)));
        let all = all.chain(crashes(object).flat_map(|it| from(it, &AFTER_CRASH)));
        // Those that make room have until then.
        let nominated = object.text(&["status", "nominatedNodeName"]);
        let leaving = Some(nominated).filter(|node| !node.is_empty());
        let leaving = leaving.into_iter().flat_map(|node| evidence.terminating_on(&node).collect::<Vec<_>>());
        let all =
            all.chain(leaving.filter_map(|pod| time(pod.object.at(&["metadata", "deletionTimestamp"]))));
        // Some rules change at the very moment, others after it.
        all.flat_map(|at| [millis(at), millis(at).saturating_add(1)]).filter(|at| *at > now).min()
    }
}

/// Lists the times at which containers of a Pod ended, from their present and last states.
fn crashes(pod: &Object<'_>) -> impl Iterator<Item = Timestamp> {
    let lists = ["initContainerStatuses", "containerStatuses"].map(|key| pod.at(&["status", key]));
    let statuses = lists.into_iter().flatten().filter_map(Value::items).flatten();
    let states = statuses.flat_map(|status| ["state", "lastState"].map(|key| status.get(key)));
    states.flatten().filter_map(|state| state.at(&["terminated", "finishedAt"])?.as_str()?.parse().ok())
}

/// The result of assessing an object with evidence.
struct Assessed {
    slot: u32,
    /// The health by evidence; `None` if the object's own verdict stands.
    health: Option<Health>,
    status: Status,
    unwell_since: i64,
    /// The keys to which the object listens from now on; `None` to leave them unchanged.
    hears: Option<Vec<u128>>,
    deadline: Option<i64>,
}

impl Index {
    pub(super) fn note_changed(&mut self, slot: u32) {
        self.reassessment.changed.insert(slot);
    }

    /// Marks the owners of the object at a slot, and all that listen to the object, for reassessment, and cancels the
    /// object's own reassessment and deadline: it is about to be removed.
    pub(super) fn note_gone(&mut self, slot: u32) {
        let Some(record) = self.contents.record(slot) else { return };
        self.reassessment.announced.extend(self.contents.announcements(record));
        let parents: Vec<u32> = self.contents.parents_of(slot).collect();
        self.reassessment.suspected.extend(parents);
        self.reassessment.changed.remove(&slot);
        self.reassessment.suspected.remove(&slot);
        self.reassessment.stop_listening(slot);
        self.reassessment.set_deadline(slot, None);
    }

    /// Announces that an event about the object `told` was stored or removed, to the objects that listen to its events,
    /// and records the change for subscribers. `told` has no group: the objects of all groups with this kind and name
    /// count.
    pub(super) fn note_told(&mut self, told: &About) {
        let About { kind, namespace, name } = told;
        self.reassessment.announced.push(about(self.contents.seed, kind, name));
        let named = self.contents.kinds.iter().filter(|own| own.kind == *kind).map(|own| own.group.clone());
        let groups: Vec<String> = named.collect();
        for group in groups {
            let slot = self.contents.slot_of(&group, kind, namespace, name);
            if let Some(slot) = slot.or_else(|| self.contents.slot_of(&group, kind, "", name)) {
                self.touch(slot, Aspects::EVENTS);
            }
        }
    }

    /// Records for subscribers that an event was removed, if it stated the UID of its object.
    pub(super) fn note_dropped(&mut self, dropped: Option<Dropped>) {
        if let Some(slot) = dropped.and_then(|dropped| self.contents.slot_of_uid(dropped.uid)) {
            self.touch(slot, Aspects::EVENTS);
        }
    }

    pub(super) fn note_scope_changed(&mut self, kind: KindId) {
        if let Some(resource) = self.contents.resource(kind) {
            let key = scope_of(self.contents.seed, &resource.group, &resource.kind);
            self.reassessment.announced.push(key);
        }
    }

    /// Marks for reassessment those objects of a kind, in one namespace or in all with `None`, whose status evidence
    /// may change.
    pub(super) fn suspect(&mut self, kind: KindId, namespace: Option<&str>) {
        let objects = self.contents.of_kind(kind, namespace).map(|object| object.slot);
        self.reassessment.suspected.extend(objects.filter(|slot| !self.contents.is_plain(*slot)));
    }

    /// Returns the earliest time at which [`reassess`](Index::reassess) may have work although nothing changes;
    /// deadlines that were put off since count, too. `None` if there is no deadline and no event to expire.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let own = self.reassessment.deadlines.peek().map(|Reverse((at, _))| *at);
        let events = self.events.next_expiry();
        let next = own.into_iter().chain(events).min()?;
        Some(Timestamp::from_millisecond(next).unwrap_or(Timestamp::MAX))
    }

    /// Updates statuses after all changes so far and up to `now`: reassesses only the objects whose status may differ.
    /// Time alone does not change the status of an object in a [stale](ScopeState::Stale) scope.
    ///
    /// [`publish`](Index::publish) calls it, so that one batch contains a change and its consequences.
    pub fn reassess(&mut self, now: Timestamp) {
        let mut timely = self.reassessment.take_due(millis(now));
        timely.extend(self.notice_time(millis(now)));
        for dropped in self.events.expire(&mut self.contents.events, now) {
            self.note_dropped(Some(dropped));
            timely.extend(self.reassessment.listening(dropped.about));
        }
        // What nobody has confirmed yet stays as it was.
        timely.retain(|slot| !self.contents.is_stale(*slot));
        // Of what was told before now, some is another by now.
        let told: Vec<u32> =
            self.reassessment.changed.iter().copied().chain(timely.iter().copied()).collect();
        self.judge_again(&told, now);
        self.reassessment.suspected.extend(timely);
        if !self.contents.settings.assess {
            self.reassessment.announced.clear();
            self.reassessment.suspected.clear();
            for slot in std::mem::take(&mut self.reassessment.changed) {
                self.show_own(slot, now);
            }
            return;
        }
        let (affected, mut changed) = self.affected();
        self.costs.begin();
        self.judge_parents(&affected, now);
        let mut rest = &affected[..];
        while !rest.is_empty() {
            let evidence = IndexEvidence::new(&self.contents);
            let mut answers = Vec::new();
            let mut done = 0;
            for slot in rest {
                answers.extend(self.answer(&evidence, *slot, changed > 0, now));
                changed = changed.saturating_sub(1);
                done += 1;
                if evidence.len() > EVIDENCE_AT_ONCE {
                    break;
                }
            }
            rest = &rest[done..];
            answers.into_iter().for_each(|answer| self.show(answer, now));
        }
    }

    /// Computes listeners and deadlines for a reopened index, and keeps the saved statuses.
    pub(super) fn reassess_restored(&mut self, now: Timestamp) {
        let changed: Vec<u32> = std::mem::take(&mut self.reassessment.changed).into_iter().collect();
        self.reassessment.suspected.clear();
        self.reassessment.announced.clear();
        let unwell: Vec<u32> = changed.into_iter().filter(|slot| !self.contents.is_plain(*slot)).collect();
        if !self.contents.settings.assess {
            return;
        }
        for slots in unwell.chunks(EVIDENCE_AT_ONCE as usize) {
            let evidence = IndexEvidence::new(&self.contents);
            for slot in slots {
                let Some(object) = evidence.object(*slot) else { continue };
                self.reassessment.listen(*slot, self.contents.hears(&object));
                let deadline = self.contents.deadline(&object, &evidence, millis(now));
                self.reassessment.set_deadline(*slot, deadline);
            }
        }
    }

    /// Returns the slots of the objects whose assessment may have changed, first those that changed themselves, and the
    /// number of these.
    fn affected(&mut self) -> (Vec<u32>, usize) {
        let Reassessment { changed, suspected, announced, listeners, .. } = &mut self.reassessment;
        let contents = &self.contents;
        let mut met = std::mem::take(changed);
        let mut queue: Vec<u32> = met.iter().copied().collect();
        let own = queue.len();
        let mut add = |slot: u32, queue: &mut Vec<u32>| {
            if !contents.is_plain(slot) && met.insert(slot) {
                queue.push(slot);
            }
        };
        for slot in suspected.drain() {
            add(slot, &mut queue);
        }
        for key in announced.drain(..) {
            for listener in listeners.get(&key).into_iter().flat_map(Listeners::iter) {
                add(listener, &mut queue);
            }
        }
        let mut at = 0;
        while let Some(slot) = queue.get(at).copied() {
            at += 1;
            let Some(record) = contents.record(slot) else { continue };
            if !listeners.is_empty() {
                for key in contents.announcements(record) {
                    for listener in listeners.get(&key).into_iter().flat_map(Listeners::iter) {
                        add(listener, &mut queue);
                    }
                }
            }
            for parent in contents.parents_of(slot) {
                add(parent, &mut queue);
            }
        }
        (queue, own)
    }

    fn answer(
        &self,
        evidence: &IndexEvidence<'_>,
        slot: u32,
        has_changed: bool,
        now: Timestamp,
    ) -> Option<Assessed> {
        let record = self.contents.record(slot)?;
        let own = self.contents.verdict(record.verdict)?;
        if record.has(flag::PLAIN) {
            let (status, hears) = (own.status, Some(Vec::new()));
            return Some(Assessed {
                slot,
                health: None,
                status,
                unwell_since: i64::MIN,
                hears,
                deadline: None,
            });
        }
        let object = evidence.object(slot)?;
        let rules = self.contents.rules();
        let known = Evidence::from(evidence).at_cost(&self.costs);
        let assessment = assess(&object, known, &self.contents.active(&rules), now);
        let Assessment { object: name, verdict, since, chain, message, .. } = assessment;
        let cause = chain
            .into_iter()
            .rfind(|link| link.status != Status::Current)
            .map(|link| Arc::unwrap_or_clone(link).object);
        let cause = cause.filter(|cause| *cause != name);
        let status = verdict.status;
        let verdict_is_open = verdict.rule == UNJUDGED;
        let is_own = verdict == *own && message == own.message && cause.is_none();
        let health = (!is_own).then_some(Health { verdict: Judged(verdict), message, cause });
        // An object listens to what its content says: that of one that did not change says what it said.
        let is_known = !has_changed && self.reassessment.heard.contains_key(&slot);
        let hears = (!is_known).then(|| self.contents.hears(&object));
        let deadline = match verdict_is_open {
            true => Some(millis(now).saturating_add(UNJUDGED_FOR)),
            false => {
                // Rules do not say when they stop to wait for it.
                let first_status =
                    (own.rule == FIRST_STATUS_RULE).then(|| millis(now).saturating_add(FIRST_STATUS_FOR));
                first_status.into_iter().chain(self.contents.deadline(&object, evidence, millis(now))).min()
            }
        };
        Some(Assessed { slot, health, status, unwell_since: since.map_or(i64::MIN, millis), hears, deadline })
    }

    fn show_own(&mut self, slot: u32, now: Timestamp) {
        let record = self.contents.record(slot);
        let Some(own) = record.and_then(|record| self.contents.verdict(record.verdict)) else { return };
        let (status, hears) = (own.status, Some(Vec::new()));
        self.show(
            Assessed { slot, health: None, status, unwell_since: i64::MIN, hears, deadline: None },
            now,
        );
    }

    /// Stores the result of an assessment: the object's health and status, the keys to which it listens, and its
    /// deadline. A status that differs begins `now`, and the former one enters the history.
    fn show(&mut self, answer: Assessed, now: Timestamp) {
        let Assessed { slot, health, status, unwell_since, hears, deadline } = answer;
        if let Some(hears) = hears {
            self.reassessment.listen(slot, hears);
        }
        self.reassessment.set_deadline(slot, deadline);
        let health = match health {
            None => NONE,
            Some(health) => {
                let kept = &mut self.contents.healths;
                self.pools.healths.take(kept, &health, || Arc::new(health.clone())).0
            }
        };
        let Some(record) = self.contents.record(slot) else { return };
        let before = (record.health, record.status, record.unwell_since, record.bucket);
        if (health, status, unwell_since) != (before.0, before.1, before.2) {
            if (health, status) != (before.0, before.1) {
                self.touch(slot, Aspects::STATUS);
            }
            if let Some(Some(record)) = self.contents.records.get_mut(slot) {
                (record.health, record.unwell_since) = (health, unwell_since);
                if status != record.status {
                    let mut past = record.past.as_deref().copied().unwrap_or([None; REMEMBERED]);
                    past.rotate_right(1);
                    past[0] = Some((record.status, record.since));
                    record.past = Some(Arc::new(past));
                    (record.status, record.since) = (status, millis(now));
                }
            }
            if status != before.1 {
                self.contents.change_status(slot, before.3, before.1, status);
            }
        }
        self.pools.healths.drop_use(&mut self.contents.healths, before.0);
    }

    /// Judges again those objects in `due` whose verdict may change with time alone: Pods that the built-in rule
    /// judged, such as those that wait for the scheduler, and objects that wait for their first status; but none whose
    /// status no evidence changes. The extract has all that this reads of Pods; the others have a kept body.
    fn judge_again(&mut self, due: &[u32], now: Timestamp) {
        let is_waiting = |slot: &u32| {
            let record = self.contents.record(*slot);
            let verdict = record.and_then(|record| self.contents.verdict(record.verdict));
            // Of one that is plainly well by now the extract says too little, and time changes nothing.
            verdict.is_some_and(|verdict| matches!(&*verdict.rule, "builtin/Pod" | FIRST_STATUS_RULE))
                && !self.contents.is_plain(*slot)
        };
        let waiting: Vec<u32> = due.iter().copied().filter(is_waiting).collect();
        let changed = self.judge_all(&waiting, now);
        self.reassessment.changed.extend(changed);
    }

    /// Judges again those objects in `affected` whose rules read the objects that they own.
    fn judge_parents(&mut self, affected: &[u32], now: Timestamp) {
        let rules = &self.contents.settings.rules;
        let reads_children = |slot: &u32| {
            let name = self.contents.record(*slot).map(|record| self.contents.name_of(record));
            name.is_some_and(|(group, kind, ..)| rules.reads_children(group, kind))
        };
        let parents: Vec<u32> = affected.iter().copied().filter(reads_children).collect();
        self.judge_all(&parents, now);
    }

    /// Judges objects again by the fields that are kept of them, and stores the verdicts that changed. Returns the
    /// slots of these objects.
    fn judge_all(&mut self, slots: &[u32], now: Timestamp) -> Vec<u32> {
        let evidence = IndexEvidence::new(&self.contents);
        let rules = &*self.contents.settings.rules;
        let around = Evidence::from(&evidence).at_cost(&self.costs);
        let judged = slots.iter().filter_map(|slot| {
            let verdict = self.contents.verdict(self.contents.record(*slot)?.verdict)?;
            let again = around.judge(rules, &evidence.object(*slot)?, None, now);
            (again != *verdict).then_some((*slot, Judged(again)))
        });
        let judged: Vec<_> = judged.collect();
        let changed = judged.iter().map(|(slot, _)| *slot).collect();
        for (slot, judged) in judged {
            self.touch(slot, Aspects::STATUS);
            let kept = &mut self.contents.verdicts;
            let verdict = self.pools.verdicts.take(kept, &judged, || Arc::new(judged.clone())).0;
            if let Some(Some(record)) = self.contents.records.get_mut(slot) {
                let before = std::mem::replace(&mut record.verdict, verdict);
                self.pools.verdicts.drop_use(&mut self.contents.verdicts, before);
            }
        }
        changed
    }
}
