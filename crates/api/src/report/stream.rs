//! The stream of reports about one cluster: which message is sent next, and when.

use std::collections::{BTreeSet, HashMap};
use std::hash::RandomState;
use std::sync::Arc;
use std::time::Duration;

use crate::ErrorRow;
use crate::report::{
    Buckets, ClusterReport, Content, Half, HalfBody, HalfChange, HalfId, HalfMark, HalfSide, LIVE, MAX_APPS,
    MAX_NAME, MAX_WINDOW, NotLive, Report, SourceMessage, StreamPosition, is_in,
};
use taffrail_apps::{ClusterId, FreshnessState};

use super::summary::{self, ClusterSummary};
use super::transition::{AppTransition, HalfNotes, HalfThen, Noted};

/// The time without another report after which a heartbeat is sent about a cluster: a third of the age up to which it is
/// live, this long for one without a window of its own.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// The interval of digests, two thirds of the age up to which the cluster is live, this long without a window of its own.
/// A hub that missed a report does not count new signs of life until the next digest, which comes before the cluster
/// would become stale.
pub(super) const DIGEST: Duration = Duration::from_secs(30);

/// The time for which changes are collected before they are reported, unless they make something worse.
pub(super) const COLLECTING: Duration = Duration::from_secs(1);

/// The time for which changes that affect only volatile parts of a half are collected before they are reported.
pub(super) const VOLATILE: Duration = Duration::from_secs(5);

/// The minimum interval of reporting facts about a cluster that differ only in the statistics of reading.
pub(super) const STATISTICS: Duration = Duration::from_secs(60);

/// The time after which the source repeats its request to open a stream, if the hub has not accepted it.
pub(super) const REOPEN: Duration = Duration::from_secs(5);

/// Maximum number of halves in one report; further ones go into the next report.
pub(super) const MAX_HALVES: usize = 256;

/// The length of the texts of halves in one report, in bytes, after which further halves go into the next one.
pub(super) const MAX_BYTES: usize = 48 * 1024;

/// Maximum number of failures that are reported of a cluster; the last one then says how many are not shown.
const MAX_ERRORS: usize = 1_000;

/// The reason of the error that apps were left out because a cluster has too many.
pub(super) const TOO_MANY: &str = "TooManyApps";

/// The reason of the error that parts of apps were shortened or left out because they are too long.
pub(super) const TOO_LONG: &str = "TooLong";

/// The stream of reports about one cluster.
#[derive(Debug)]
pub(super) struct Stream {
    cluster: ClusterId,
    link: StreamLink,
    /// True once the source has requested a stream from the hub, which may then know the cluster.
    is_asked: bool,
    halves: HashMap<Arc<HalfId>, HeldHalf>,
    /// The number of apps with a half: those of the cluster itself, and those that others declare for it.
    apps: [usize; 2],
    /// True if apps were left out because there are too many: of the cluster itself, and of those that others declare
    /// for it.
    is_full: [bool; 2],
    /// True if an app was left out because its name is too long.
    is_unnamable: bool,
    /// The number of halves that were shortened.
    cut: usize,
    /// The halves whose changes were not reported yet, sorted by the moment at which they are due.
    due: BTreeSet<(Duration, Arc<HalfId>)>,
    facts: Option<HeldFacts>,
    /// The digest of the halves as they were last reported, to compare with that of the hub.
    told: Buckets,
    snapshot: Option<RunningSnapshot>,
    /// The moment before which no changed half is reported, because evidence for it is being read.
    held_until: Duration,
    /// The moment of the last report.
    sent: Duration,
    digest_due: Duration,
    /// The moment at which the API server last proved itself; `None` before the first time.
    heard: Option<Duration>,
    /// The number of passes that have begun; each half has that of the pass in which it was last set.
    pass: u64,
    /// False while the hub has halves from an earlier run and the cluster was not read in this one; then no halves are
    /// sent.
    is_read: bool,
    /// The notes of transitions; `None` if none are taken.
    notes: Option<HalfNotes>,
}

/// The state of a stream between the source and the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamLink {
    /// The stream is not open; at the moment `ask_at` the source requests it from the hub.
    Closed {
        ask_at: Duration,
    },
    Open(StreamPosition),
}

/// The present contents of a half, and the mark of the contents that were last reported.
#[derive(Debug)]
struct HeldHalf {
    /// The present contents and their mark; `None` if the half is gone and the hub must be told.
    now: Option<(HalfBody, HalfMark)>,
    /// True if the contents were shortened because they were too long.
    is_cut: bool,
    /// The moment to which the age in the contents refers.
    observed: Duration,
    told: Option<HalfMark>,
    /// The moment at which the difference is reported; `None` if there is none, or if the running snapshot reports it.
    due: Option<Duration>,
    /// True if the half is in a part of the running snapshot that was not sent yet.
    is_in_snapshot: bool,
    pass: u64,
}

/// The present facts about a cluster, and those that were last reported.
#[derive(Debug)]
struct HeldFacts {
    now: (ClusterReport, Vec<ErrorRow>),
    /// The moment to which the age in the facts refers.
    observed: Duration,
    told: Option<(ClusterReport, Vec<ErrorRow>)>,
    /// The moment at which facts were last reported.
    told_at: Duration,
    due: Option<Duration>,
}

/// A snapshot of which not all parts were sent yet.
#[derive(Debug)]
struct RunningSnapshot {
    buckets: u64,
    part: u32,
    /// The halves that were not sent, the next one last.
    left: Vec<Arc<HalfId>>,
    due: Duration,
}

/// The kinds of messages to send; of several that are due at one moment the first in this order is sent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DueMessage {
    Open,
    Facts,
    Part,
    Changes,
    Digest,
    Heartbeat,
}

impl Stream {
    /// Creates the stream about a cluster. Nothing is reported before [`Stream::set_facts`]. Transitions are noted if
    /// `is_noting`.
    pub(super) fn new(cluster: ClusterId, now: Duration, is_noting: bool) -> Stream {
        Stream {
            cluster,
            link: StreamLink::Closed { ask_at: now },
            is_asked: false,
            halves: HashMap::new(),
            apps: [0; 2],
            is_full: [false; 2],
            is_unnamable: false,
            cut: 0,
            due: BTreeSet::new(),
            facts: None,
            told: Buckets::default(),
            snapshot: None,
            held_until: Duration::ZERO,
            sent: now,
            digest_due: now,
            heard: None,
            pass: 0,
            is_read: true,
            notes: is_noting.then(HalfNotes::default),
        }
    }

    /// Removes and returns what was noted since the last call; the halves that are set until the first call after the
    /// cluster was read are no transitions.
    pub(super) fn take_noted(&mut self) -> Option<Noted> {
        let mut noted = self.notes.as_mut()?.take(self.is_read)?;
        if let Noted::Changed(changed) = &mut noted {
            changed.iter_mut().for_each(|transition| self.complete(transition));
        }
        Some(noted)
    }

    /// Adds the half that did not change to a transition: a hub that was ended before it saved the app does not know it.
    fn complete(&self, transition: &mut AppTransition) {
        let body = |side| {
            let held = self.halves.get(&HalfId { app: transition.app.clone(), side })?;
            held.now.as_ref().map(|(body, _)| body.state_alone())
        };
        if transition.declared.is_none()
            && let Some(HalfBody::Declared(half)) = body(HalfSide::Declared)
        {
            transition.declared = Some(HalfThen::Is(half));
        }
        if transition.observed.is_none()
            && let Some(HalfBody::Observed(half)) = body(HalfSide::Observed)
        {
            transition.observed = Some(HalfThen::Is(half));
        }
    }

    /// Returns the state of the cluster at the moment `now`; `None` before its facts are set.
    pub(super) fn summary(&self, now: Duration) -> Option<ClusterSummary> {
        let (facts, _) = &self.facts.as_ref()?.now;
        let heard = self.heard.map(|heard| now.saturating_sub(heard));
        let freshness = summary::freshness(heard, facts.not_live);
        let body = |id: &HalfId| self.halves.get(id).and_then(|held| held.now.as_ref()).map(|(body, _)| body);
        let (mut apps, mut problems) = (Vec::new(), 0);
        for (id, held) in &self.halves {
            let Some((HalfBody::Declared(declared), _)) = &held.now else { continue };
            if declared.target != self.cluster {
                continue;
            }
            let observed = match body(&other_half(id)) {
                Some(HalfBody::Observed(observed)) => Some(&**observed),
                _ => None,
            };
            let (status, has_problem) = summary::present(declared, observed, freshness);
            apps.push((declared.key.clone(), status));
            problems += usize::from(has_problem);
        }
        Some(ClusterSummary { name: facts.name.clone(), freshness, apps, problems })
    }

    /// Sets if the cluster was read in this run. While false, only facts and heartbeats are sent, no halves.
    pub(super) fn set_read(&mut self, is_read: bool) {
        self.is_read = is_read;
    }

    /// Begins a pass in which the caller sets all present halves; [`Stream::end_pass`] ends it.
    pub(super) fn begin_pass(&mut self) {
        self.pass += 1;
        (self.is_full, self.is_unnamable) = ([false; 2], false);
    }

    /// Removes the halves that were not set since [`Stream::begin_pass`].
    pub(super) fn end_pass(&mut self, now: Duration) {
        let is_old = |held: &&HeldHalf| held.pass != self.pass && held.now.is_some();
        let old: Vec<Arc<HalfId>> =
            self.halves.iter().filter(|(_, held)| is_old(held)).map(|(id, _)| id.clone()).collect();
        old.iter().for_each(|id| self.remove(id, now));
    }

    /// Sets the contents of a half at the moment `now`, and schedules the report: at once if something became worse,
    /// after 1 s, or after 5 s if only volatile parts changed. Leaves the half out beyond [`MAX_APPS`] apps or if the
    /// app's name is too long, and shortens parts that are too long.
    pub(super) fn set(&mut self, id: HalfId, mut body: HalfBody, key: &RandomState, now: Duration) {
        if !id.app.is_short() {
            self.is_unnamable = true;
            return;
        }
        let is_cut = body.limit();
        let mark = HalfMark::new(&id, &body, key);
        let is_known = self.halves.contains_key(&id);
        if !is_known && !self.has_other_half(&id) {
            let [own, guests] = &mut self.apps;
            let [is_full, is_full_of_guests] = &mut self.is_full;
            let is_own = id.app.home == self.cluster;
            let (apps, is_full) = if is_own { (own, is_full) } else { (guests, is_full_of_guests) };
            if *apps >= MAX_APPS {
                *is_full = true;
                return;
            }
            *apps += 1;
        }
        let id = Arc::new(id);
        let held = self.halves.entry(id.clone()).or_insert(HeldHalf {
            now: None,
            is_cut: false,
            observed: now,
            told: None,
            due: None,
            is_in_snapshot: false,
            pass: 0,
        });
        let pending = held.due.filter(|_| held.now.is_some());
        if let Some(notes) = &mut self.notes {
            notes.set(&id, held.now.as_ref(), &body, mark);
        }
        held.now = Some((body, mark));
        self.cut = self.cut + usize::from(is_cut) - usize::from(held.is_cut);
        held.is_cut = is_cut;
        (held.observed, held.pass) = (now, self.pass);
        let due = match mark.change(held.told.as_ref()) {
            _ if held.is_in_snapshot => None,
            None => None,
            Some(HalfChange::Worse) => Some(now),
            Some(HalfChange::Other) => Some(now + COLLECTING),
            Some(HalfChange::Volatile) => Some(now + VOLATILE),
        };
        // What waits already is not put off.
        self.schedule(&id, due.map(|due| pending.map_or(due, |pending| pending.min(due))));
    }

    /// Removes a half that no longer exists, and schedules the report of that within 1 s if the half was reported.
    pub(super) fn remove(&mut self, id: &HalfId, now: Duration) {
        let Some((id, held)) = self.halves.get_key_value(id) else { return };
        let id = id.clone();
        if held.now.is_some()
            && let Some(notes) = &mut self.notes
        {
            notes.remove(&id);
        }
        if held.told.is_some() {
            let due = Some(held.due.unwrap_or(now + COLLECTING).min(now + COLLECTING));
            self.schedule(&id, due);
            self.halves.entry(id).and_modify(|held| held.now = None);
        } else {
            self.drop_half(&id);
        }
    }

    /// Sets the facts about the cluster as a whole at the moment `now`, and puts failures before `errors` that tell
    /// which apps were left out or shortened.
    pub(super) fn set_facts(&mut self, facts: ClusterReport, mut errors: Vec<ErrorRow>, now: Duration) {
        let left_out = [
            (
                self.cut > 0,
                TOO_LONG,
                format!(
                    "Taffrail shortened {} reports about apps, because their texts or labels are too long or too many",
                    self.cut
                ),
            ),
            (
                self.is_unnamable,
                TOO_LONG,
                format!("apps with names longer than {MAX_NAME} bytes are not shown"),
            ),
            (
                self.is_full[1],
                TOO_MANY,
                format!(
                    "only {MAX_APPS} apps that other clusters declare for this one are shown, and there are more"
                ),
            ),
            (
                self.is_full[0],
                TOO_MANY,
                format!("only {MAX_APPS} apps of the cluster are shown, and it has more"),
            ),
        ];
        for (_, reason, message) in left_out.into_iter().filter(|(is_so, ..)| *is_so) {
            let (cluster, scope) = (facts.name.clone(), "cluster".to_owned());
            errors.insert(0, ErrorRow { cluster, scope, reason: reason.to_owned(), message });
        }
        let more = errors.len().saturating_sub(MAX_ERRORS);
        if more > 0 {
            errors.truncate(MAX_ERRORS - 1);
            let message = format!("{} more failures of this cluster are not shown", more + 1);
            let (cluster, scope) = (facts.name.clone(), "cluster".to_owned());
            errors.push(ErrorRow { cluster, scope, reason: "TooManyErrors".to_owned(), message });
        }
        let new = (facts, errors);
        let held = self.facts.get_or_insert_with(|| HeldFacts {
            now: new.clone(),
            observed: now,
            told: None,
            told_at: now,
            due: Some(now),
        });
        let due = held.told.as_ref().and_then(|told| held.due_of(told, &new, now));
        held.due = match &held.told {
            Some(_) => due.map(|due| held.due.map_or(due, |pending| pending.min(due))),
            None => held.due,
        };
        (held.now, held.observed) = (new, now);
    }

    /// Sets the moment of the API server's last sign of life. The caller must have set all changes up to that moment.
    pub(super) fn set_heard(&mut self, heard: Option<Duration>) {
        self.heard = heard;
    }

    /// Returns `interval`, which is for a cluster that is live for [`LIVE`], for the age up to which this one is live.
    fn scaled(&self, interval: Duration) -> Duration {
        let window = self.facts.as_ref().and_then(|facts| facts.now.0.live_window).unwrap_or(LIVE);
        let window = window.clamp(LIVE, MAX_WINDOW);
        let millis = interval.as_millis() * window.as_millis() / LIVE.as_millis();
        u64::try_from(millis).map_or(interval, Duration::from_millis)
    }

    /// Makes a heartbeat due at the moment `now`, unless another report is sent before.
    pub(super) fn beat(&mut self, now: Duration) {
        self.sent = now.saturating_sub(self.scaled(HEARTBEAT));
    }

    /// Delays reports of changed halves until the moment `until`, because evidence for them is being read.
    pub(super) fn hold(&mut self, until: Duration) {
        self.held_until = until;
    }

    /// Returns true if the hub may know the cluster, because the source has requested a stream for it.
    pub(super) fn is_known(&self) -> bool {
        self.is_asked
    }

    /// Returns true if apps were left out because of [`MAX_APPS`], and there are fewer apps now.
    pub(super) fn has_room(&self) -> bool {
        self.is_full.into_iter().zip(self.apps).any(|(is_full, apps)| is_full && apps < MAX_APPS)
    }

    /// Applies the hub's acceptance of a stream with this epoch: reports all facts again, and all halves, or if the hub
    /// was told of halves before, their digest, so that only those are sent again which the hub does not have. Does
    /// nothing if a stream of this or a later epoch is open.
    pub(super) fn accepted(&mut self, epoch: u64, now: Duration) {
        if matches!(self.link, StreamLink::Open(position) if position.epoch >= epoch) {
            return;
        }
        self.link = StreamLink::Open(StreamPosition { epoch, seq: 0 });
        (self.sent, self.digest_due) = (now, now + self.scaled(DIGEST));
        if let Some(facts) = &mut self.facts {
            (facts.told, facts.due) = (None, Some(now));
        }
        let is_resumed = self.snapshot.is_none() && self.halves.values().any(|held| held.told.is_some());
        match is_resumed {
            true => self.digest_due = now,
            false => self.begin_snapshot(u64::MAX, now),
        }
    }

    /// Begins to send the halves in these buckets again, if `epoch` is that of the open stream and no snapshot is
    /// running.
    pub(super) fn resend(&mut self, epoch: u64, buckets: u64, now: Duration) {
        let is_of = matches!(self.link, StreamLink::Open(position) if position.epoch == epoch);
        if is_of && buckets != 0 && self.snapshot.is_none() {
            self.begin_snapshot(buckets, now);
        }
    }

    /// Closes the stream if it has this epoch, and requests another one after 1 s.
    pub(super) fn refused(&mut self, epoch: u64, now: Duration) {
        if matches!(self.link, StreamLink::Open(position) if position.epoch == epoch) {
            self.link = StreamLink::Closed { ask_at: now + COLLECTING };
        }
    }

    /// Begins a snapshot: of the reported halves in `buckets`, or of all halves, also new ones, if `buckets` is
    /// `u64::MAX`.
    fn begin_snapshot(&mut self, buckets: u64, now: Duration) {
        let is_all = buckets == u64::MAX;
        let is_part =
            |held: &HeldHalf| is_all || held.told.is_some_and(|told| is_in(buckets, told.fingerprint));
        let mut left: Vec<Arc<HalfId>> =
            self.halves.iter().filter(|(_, held)| is_part(held)).map(|(id, _)| id.clone()).collect();
        left.sort_unstable_by(|one, other| other.cmp(one));
        for id in &left {
            self.schedule(id, None);
            let Some(held) = self.halves.get_mut(id) else { continue };
            held.told.take().iter().for_each(|told| self.told.toggle(told.fingerprint));
            held.is_in_snapshot = held.now.is_some();
            // The hub drops what is gone with the last part.
            if held.now.is_none() {
                self.drop_half(id);
            }
        }
        self.snapshot = Some(RunningSnapshot { buckets, part: 0, left, due: now });
    }

    /// Returns the moment at which the next message is due; `None` before the facts about the cluster are set.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.due_message().map(|(due, _)| due)
    }

    fn due_message(&self) -> Option<(Duration, DueMessage)> {
        let facts = self.facts.as_ref()?;
        match self.link {
            StreamLink::Closed { ask_at } => return Some((ask_at, DueMessage::Open)),
            StreamLink::Open(_) => {}
        }
        let changes = self.due.first().map(|(due, _)| (*due).max(self.held_until));
        let heartbeat = (self.sent + self.scaled(HEARTBEAT), DueMessage::Heartbeat);
        let tasks = match &self.snapshot {
            _ if !self.is_read => {
                [facts.due.map(|due| (due, DueMessage::Facts)), Some(heartbeat), None, None]
            }
            Some(snapshot) => [
                facts.due.map(|due| (due, DueMessage::Facts)),
                Some((snapshot.due, DueMessage::Part)),
                None,
                None,
            ],
            None => [
                facts.due.map(|due| (due, DueMessage::Facts)),
                changes.map(|due| (due, DueMessage::Changes)),
                Some((self.digest_due, DueMessage::Digest)),
                Some(heartbeat),
            ],
        };
        tasks.into_iter().flatten().min()
    }

    /// Returns the message that is due first, and counts it as sent; `None` if none is due at the moment `now`.
    pub(super) fn next_message(&mut self, now: Duration) -> Option<SourceMessage> {
        let (_, task) = self.due_message().filter(|(due, _)| *due <= now)?;
        let content = match task {
            DueMessage::Open => {
                (self.link, self.is_asked) = (StreamLink::Closed { ask_at: now + REOPEN }, true);
                return Some(SourceMessage::Open(self.cluster.clone()));
            }
            DueMessage::Facts => self.facts.as_mut()?.tell(now),
            DueMessage::Part => self.part(now)?,
            DueMessage::Changes => self.changes(now),
            DueMessage::Digest => {
                self.digest_due = now + self.scaled(DIGEST);
                Content::Digest(self.told.clone())
            }
            DueMessage::Heartbeat => Content::Heartbeat,
        };
        let StreamLink::Open(position) = &mut self.link else { return None };
        position.seq += 1;
        let position = *position;
        self.sent = now;
        Some(SourceMessage::Report(Box::new(Report {
            cluster: self.cluster.clone(),
            position,
            age: self.age(now),
            content,
        })))
    }

    /// Returns the age to report: the time since the API server's last sign of life, but at least the time by which the
    /// report of a change is overdue, because the hub has only the state before that change. `None` before the first
    /// sign of life.
    fn age(&self, now: Duration) -> Option<Duration> {
        let waits = self.due.first().map(|(due, _)| now.saturating_sub(*due)).unwrap_or_default();
        self.heard.map(|heard| now.saturating_sub(heard).max(waits))
    }

    fn part(&mut self, now: Duration) -> Option<Content> {
        let mut snapshot = self.snapshot.take()?;
        let (mut halves, mut bytes) = (Vec::new(), 0);
        while halves.len() < MAX_HALVES
            && bytes < MAX_BYTES
            && let Some(id) = snapshot.left.pop()
        {
            let Some(held) = self.halves.get_mut(&id).filter(|held| held.is_in_snapshot) else { continue };
            held.is_in_snapshot = false;
            let half = held.tell(&id, now);
            bytes += half.as_ref().map_or(0, Half::size);
            halves.extend(half);
            held.told.iter().for_each(|told| self.told.toggle(told.fingerprint));
        }
        let RunningSnapshot { buckets, part, .. } = snapshot;
        let is_last = snapshot.left.is_empty();
        if is_last {
            // After a part of the halves only a digest shows that all are known.
            self.digest_due = if buckets == u64::MAX { now + self.scaled(DIGEST) } else { now };
        } else {
            self.snapshot = Some(RunningSnapshot { part: part + 1, due: now, ..snapshot });
        }
        Some(Content::Snapshot { buckets, part, is_last, halves })
    }

    fn changes(&mut self, now: Duration) -> Content {
        let (mut changed, mut gone, mut bytes) = (Vec::new(), Vec::new(), 0);
        while changed.len() + gone.len() < MAX_HALVES
            && bytes < MAX_BYTES
            && let Some((due, _)) = self.due.first()
            && *due <= now
            && let Some((_, id)) = self.due.pop_first()
        {
            // A row of which only one half is new would be shown as it never was.
            let other = Arc::new(other_half(&id));
            if self.halves.get(&other).is_some_and(|other| other.due.is_some()) {
                self.schedule(&other, Some(now));
            }
            let Some(held) = self.halves.get_mut(&id) else { continue };
            held.due = None;
            held.told.iter().for_each(|told| self.told.toggle(told.fingerprint));
            match held.tell(&id, now) {
                Some(half) => {
                    self.told.toggle(half.fingerprint);
                    bytes += half.size();
                    changed.push(half);
                }
                None => {
                    self.drop_half(&id);
                    gone.push((*id).clone());
                }
            }
        }
        Content::Changes { changed, gone }
    }

    /// Sets the moment at which a half is reported; `None` to report it no more.
    fn schedule(&mut self, id: &Arc<HalfId>, due: Option<Duration>) {
        let Some(held) = self.halves.get_mut(id) else { return };
        if let Some(old) = std::mem::replace(&mut held.due, due) {
            self.due.remove(&(old, id.clone()));
        }
        if let Some(due) = due {
            self.due.insert((due, id.clone()));
        }
    }

    fn drop_half(&mut self, id: &HalfId) {
        let Some((id, held)) = self.halves.remove_entry(id) else { return };
        if let Some(due) = held.due {
            self.due.remove(&(due, id.clone()));
        }
        self.cut -= usize::from(held.is_cut);
        if !self.has_other_half(&id) {
            let [own, guests] = &mut self.apps;
            *(if id.app.home == self.cluster { own } else { guests }) -= 1;
        }
    }

    fn has_other_half(&self, id: &HalfId) -> bool {
        self.halves.contains_key(&other_half(id))
    }
}

/// Returns the identity of the other half of the same app.
fn other_half(id: &HalfId) -> HalfId {
    let side = match id.side {
        HalfSide::Declared => HalfSide::Observed,
        HalfSide::Observed => HalfSide::Declared,
    };
    HalfId { app: id.app.clone(), side }
}

impl HeldHalf {
    /// Makes the half to report at the moment `now`, with its age then, and counts it as reported; `None` if it is
    /// gone.
    fn tell(&mut self, id: &HalfId, now: Duration) -> Option<Half> {
        self.told = self.now.as_ref().map(|(_, mark)| *mark);
        let (body, mark) = self.now.as_ref()?;
        let mut body = body.clone();
        let not_live = match &mut body {
            HalfBody::Declared(body) => &mut body.not_live,
            HalfBody::Observed(body) => &mut body.not_live,
        };
        *not_live = not_live.map(|it| aged(it, now.saturating_sub(self.observed)));
        Some(Half { app: id.app.clone(), fingerprint: mark.fingerprint, body })
    }
}

impl HeldFacts {
    /// Returns the moment at which the facts `new` are reported in place of `told`: at once if they are worse, after 1
    /// s, or up to a minute later if only statistics differ. `None` if there is nothing to report.
    fn due_of(
        &self,
        told: &(ClusterReport, Vec<ErrorRow>),
        new: &(ClusterReport, Vec<ErrorRow>),
        now: Duration,
    ) -> Option<Duration> {
        let (old, errors) = told;
        let rank = |facts: &ClusterReport| {
            let dark = facts.not_live.map_or(0, |it| 1 + u8::from(it.state == FreshnessState::Lost));
            [
                dark,
                facts.lost.is_some().into(),
                facts.blind.is_some().into(),
                facts.unverified.is_some().into(),
            ]
        };
        let is_worse = rank(&new.0).into_iter().zip(rank(old)).any(|(new, old)| new > old);
        // Without what changes all the time.
        let mut alike = new.0.clone();
        alike.not_live =
            alike.not_live.map(|it| NotLive { age: old.not_live.map_or(it.age, |it| it.age), ..it });
        if let (Some(own), Some(old)) = (&mut alike.reading, &old.reading) {
            own.take_statistics(old);
        }
        if is_worse {
            Some(now)
        } else if alike != *old || new.1 != *errors {
            Some(now + COLLECTING)
        } else if new.0.reading != old.reading {
            Some((self.told_at + STATISTICS).max(now))
        } else {
            None
        }
    }

    fn tell(&mut self, now: Duration) -> Content {
        (self.told, self.told_at, self.due) = (Some(self.now.clone()), now, None);
        let (mut facts, errors) = self.now.clone();
        facts.not_live = facts.not_live.map(|it| aged(it, now.saturating_sub(self.observed)));
        Content::Cluster { facts: Box::new(facts), errors }
    }
}

/// Adds the time `passed` to the age of a freshness.
fn aged(not_live: NotLive, passed: Duration) -> NotLive {
    NotLive { age: not_live.age.map(|age| age.saturating_add(passed)), ..not_live }
}
