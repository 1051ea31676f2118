//! Events about the objects of an index, in limited numbers.
//!
//! Warnings are kept, and those Normal events that tell how long a wait may take: a node is being added, a claim
//! waits for its consumer, Pods are created again. Beyond the limits the oldest events are dropped.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use taffrail_object::Object;
use taffrail_status::assess::{Event, Regarding};

use super::chunked::{Chunked, Vacant};
use super::pool::{Pool, PoolValues};
use super::postings::Postings;
use super::record::{Uid, millis};
use super::table::{Seed, Table};
use super::wire::{Damaged, Reader, Writer};

/// Maximum number of events kept for an object; beyond it the oldest is dropped.
pub const EVENTS_OF_AN_OBJECT: usize = 8;
/// Maximum number of events kept for a cluster; beyond it the oldest are dropped, those without a time first.
pub const EVENTS_OF_A_CLUSTER: usize = 20_000;
/// Time for which an event is kept after it last occurred; an event without a time is kept until there are too many.
pub const EVENTS_KEPT_FOR: SignedDuration = SignedDuration::from_hours(1);

/// Reasons of the Normal events that are kept; those with other reasons are dropped. Warnings are kept whatever their
/// reason.
const TELLING: &[&str] = &[
    "Nominated",
    "TriggeredScaleUp",
    "NotTriggerScaleUp",
    "FailedScaleUp",
    "ScaleUpTimedOut",
    "WaitForFirstConsumer",
    "SuccessfulCreate",
];

/// An event as the index stores it: texts are slots of a pool.
#[derive(Debug, Clone)]
pub(super) struct StoredEvent {
    /// Hash of the event's own namespace and name.
    key: u128,
    /// Hash of the kind and name of the object that the event is about.
    about: u128,
    namespace: u32,
    uid: Uid,
    reason: u32,
    message: u32,
    count: i64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    warning: bool,
}

/// The events of a cluster, in the form that snapshots share.
#[derive(Debug, Clone, Default)]
pub(super) struct Events {
    told: Chunked<Option<StoredEvent>>,
    by_key: Table,
    by_object: Postings,
    texts: PoolValues<str>,
}

/// Data about the events that only the writer of the index needs.
#[derive(Debug)]
pub(super) struct EventsOwner {
    texts: Pool,
    vacant: Vacant,
    vacant_objects: Vacant,
    /// The slots of the events, ordered by the time of their last occurrence, in milliseconds; [`i64::MIN`] without a
    /// time.
    order: BTreeSet<(i64, u32)>,
}

pub(super) fn about(seed: Seed, kind: &str, name: &str) -> u128 {
    seed.words(&["event", kind, name])
}

fn key(seed: Seed, namespace: &str, name: &str) -> u128 {
    seed.words(&["event of", namespace, name])
}

/// The kind, namespace and name of the object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct About {
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// An event that was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dropped {
    /// Hash of the kind and name of the object that it was about.
    pub(super) about: u128,
    /// UID of that object; [`Uid::NONE`] if the event did not state it.
    pub(super) uid: Uid,
}

impl EventsOwner {
    pub(super) fn new(seed: Seed) -> EventsOwner {
        EventsOwner {
            texts: Pool::new(seed),
            vacant: Vacant::default(),
            vacant_objects: Vacant::default(),
            order: BTreeSet::new(),
        }
    }

    /// Stores an event, in place of its former version, if it is a warning or has one of the reasons in [`TELLING`],
    /// and last occurred at most [`EVENTS_KEPT_FOR`] ago; removes the former version of any other event. Returns the
    /// object that the event is about; `None` if `object` is not an event, or was not stored before and is not now.
    pub(super) fn apply(
        &mut self,
        events: &mut Events,
        seed: Seed,
        object: &Object<'_>,
        now: Timestamp,
    ) -> Option<About> {
        let (event, regarding) = Event::read(object)?;
        let own = key(seed, &object.namespace(), &object.name());
        let before = events.find(own);
        let is_telling = event.warning || TELLING.contains(&&*event.reason);
        let is_over = event.last.is_some_and(|last| now.duration_since(last) > EVENTS_KEPT_FOR);
        if !is_telling || is_over {
            self.drop(events, before?);
            return Some(about_of(&regarding));
        }
        if let Some(at) = before {
            self.drop(events, at);
        }
        self.keep(events, seed, own, &event, &regarding);
        Some(about_of(&regarding))
    }

    /// Removes the event `namespace`/`name`; `None` if it was not kept.
    pub(super) fn remove(
        &mut self,
        events: &mut Events,
        seed: Seed,
        namespace: &str,
        name: &str,
    ) -> Option<Dropped> {
        let at = events.find(key(seed, namespace, name))?;
        self.drop(events, at)
    }

    pub(super) fn keep(
        &mut self,
        events: &mut Events,
        seed: Seed,
        key: u128,
        event: &Event<'_>,
        regarding: &Regarding<'_>,
    ) {
        let about = about(seed, &regarding.kind, &regarding.name);
        let mut text = |text: &str| self.texts.take(&mut events.texts, text, || Arc::from(text)).0;
        let told = StoredEvent {
            key,
            about,
            namespace: text(&regarding.namespace),
            uid: Uid::new(&regarding.uid, seed),
            reason: text(&event.reason),
            message: text(&event.message),
            count: event.count,
            first: event.first,
            last: event.last,
            warning: event.warning,
        };
        self.put(events, told);
        let same: Vec<u32> = events.by_object.members(about).to_vec();
        let newest = events.by_object.members(about).last().and_then(|at| events.get(*at));
        let home = newest.map(|told| (told.namespace, told.uid));
        let of_object = same
            .into_iter()
            .filter(|at| events.get(*at).is_some_and(|told| Some((told.namespace, told.uid)) == home));
        let mut of_object: Vec<_> = of_object.collect();
        if of_object.len() > EVENTS_OF_AN_OBJECT {
            of_object.sort_by_key(|at| events.get(*at).and_then(|told| told.last));
            if let Some(oldest) = of_object.first() {
                self.drop(events, *oldest);
            }
        }
        while self.order.len() > EVENTS_OF_A_CLUSTER {
            let Some((_, oldest)) = self.order.first().copied() else { break };
            self.drop(events, oldest);
        }
    }

    fn put(&mut self, events: &mut Events, told: StoredEvent) {
        let (key, about) = (told.key, told.about);
        let last = told.last.map_or(i64::MIN, millis);
        let at = self.vacant.take(&mut events.told);
        if let Some(slot) = events.told.get_mut(at) {
            *slot = Some(told);
        }
        let values = &events.told;
        let rehash = |at| values.get(at).and_then(Option::as_ref).map_or(0, |told| told.key as u64);
        events.by_key.insert(key as u64, at, rehash);
        events.by_object.add(&mut self.vacant_objects, about, None, at);
        self.order.insert((last, at));
    }

    fn drop(&mut self, events: &mut Events, at: u32) -> Option<Dropped> {
        let key = events.get(at)?.key;
        let values = &events.told;
        let rehash = |at| values.get(at).and_then(Option::as_ref).map_or(0, |told| told.key as u64);
        events.by_key.remove(key as u64, at, rehash);
        let told = events.told.get_mut(at)?.take()?;
        events.by_object.remove(&mut self.vacant_objects, told.about, at);
        for text in [told.namespace, told.reason, told.message] {
            self.texts.drop_use(&mut events.texts, text);
        }
        self.order.remove(&(told.last.map_or(i64::MIN, millis), at));
        self.vacant.give(at);
        Some(Dropped { about: told.about, uid: told.uid })
    }

    /// Removes events that last occurred more than [`EVENTS_KEPT_FOR`] ago, but none without a time, and returns them.
    pub(super) fn expire(&mut self, events: &mut Events, now: Timestamp) -> Vec<Dropped> {
        let oldest = millis(now.saturating_sub(EVENTS_KEPT_FOR).unwrap_or(Timestamp::MIN));
        let mut dropped = Vec::new();
        // Those without a time stay until there are too many.
        while let Some((_, at)) = self.order.range((i64::MIN + 1, 0)..(oldest, 0)).next().copied() {
            dropped.extend(self.drop(events, at));
        }
        dropped
    }

    /// Returns the time, in milliseconds, at which the next event becomes too old; `None` if no event has a time.
    pub(super) fn next_expiry(&self) -> Option<i64> {
        let (last, _) = self.order.range((i64::MIN + 1, 0)..).next()?;
        Some(last.saturating_add(EVENTS_KEPT_FOR.as_millis() as i64).saturating_add(1))
    }
}

fn about_of(regarding: &Regarding<'_>) -> About {
    About {
        kind: regarding.kind.clone().into_owned(),
        namespace: regarding.namespace.clone().into_owned(),
        name: regarding.name.clone().into_owned(),
    }
}

impl Events {
    fn get(&self, at: u32) -> Option<&StoredEvent> {
        self.told.get(at)?.as_ref()
    }

    fn find(&self, key: u128) -> Option<u32> {
        self.by_key.find(key as u64, |at| self.get(at).is_some_and(|told| told.key == key))
    }

    fn text(&self, at: u32) -> &str {
        self.texts.get(at).map_or("", |text| text)
    }

    /// Returns the number of stored events.
    pub(super) fn len(&self) -> usize {
        (0..self.told.len()).filter(|at| self.get(*at).is_some()).count()
    }

    /// Returns the events about an object. Leaves out those with another UID, which are about an earlier object of
    /// the same name, except for a Node; `uid` is [`Uid::NONE`] if it is unknown.
    pub(super) fn about<'s>(
        &'s self,
        seed: Seed,
        kind: &str,
        namespace: &str,
        name: &str,
        uid: Uid,
    ) -> Vec<Event<'s>> {
        let is_node = kind == "Node";
        let members = self.by_object.members(about(seed, kind, name)).iter().filter_map(|at| self.get(*at));
        // The kubelet writes the name of a Node where its UID belongs.
        let is_it = |told: &&StoredEvent| {
            let own = self.text(told.namespace);
            (own == namespace || namespace.is_empty() && Regarding::is_of_cluster(own))
                && (told.uid.is_none() || uid.is_none() || told.uid == uid || is_node)
        };
        members.filter(is_it).map(|told| self.read(told)).collect()
    }

    fn read<'s>(&'s self, told: &StoredEvent) -> Event<'s> {
        Event {
            warning: told.warning,
            reason: self.text(told.reason).into(),
            message: self.text(told.message).into(),
            count: told.count,
            first: told.first,
            last: told.last,
        }
    }

    /// Writes all events to a saved index.
    pub(super) fn write(&self, out: &mut Writer) {
        let told = (0..self.told.len()).filter_map(|at| self.get(at));
        out.list(told, |out, told| {
            [told.key, told.about, told.uid.bits()].into_iter().for_each(|bits| out.bits(bits));
            [told.namespace, told.reason, told.message]
                .into_iter()
                .for_each(|text| out.text(self.text(text)));
            out.signed(told.count);
            [told.first, told.last].into_iter().for_each(|time| out.time(time));
            out.byte(u8::from(told.warning));
        });
    }
}

impl EventsOwner {
    /// Reads the events of a saved index.
    pub(super) fn read(&mut self, events: &mut Events, input: &mut Reader<'_>) -> Result<(), Damaged> {
        for _ in 0..input.length()? {
            let [key, about, uid] = [input.bits()?, input.bits()?, input.bits()?];
            let texts = [input.text()?, input.text()?, input.text()?];
            let [namespace, reason, message] =
                texts.map(|text| self.texts.take(&mut events.texts, text, || Arc::from(text)).0);
            let count = input.signed()?;
            let (first, last) = (input.time()?, input.time()?);
            let (uid, warning) = (Uid::of_bits(uid), input.byte()? != 0);
            self.put(
                events,
                StoredEvent { key, about, namespace, uid, reason, message, count, first, last, warning },
            );
        }
        Ok(())
    }
}
