//! The state of everything that a hub has received from one source about one cluster.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use taffrail_apps::{ClusterId, Freshness, FreshnessState, SyncAttempt};

use super::cluster::ClusterReport;
use super::digest::{Buckets, is_in};
use super::half::{DeclaredHalf, Half, HalfBody, HalfId, HalfSide, NotLive, ObservedHalf};
use super::limits::Limited;
use super::liveness::{Liveness, before};
use super::{AppId, Content, Report, StreamPosition};
use crate::ErrorRow;

/// The maximum number of apps that are kept of those that a cluster declares itself, and the same number again of those
/// that other clusters declare for it, so that others cannot displace its own. Halves of further apps are refused and
/// counted.
pub const MAX_APPS: usize = 20_000;

/// The greatest size of all halves that a hub keeps of one source of a cluster, in bytes by [`Half::size`]; a half for
/// which there is no room is refused. 20,000 apps take about 20 MiB.
pub const MAX_BYTES: usize = 64 << 20;

/// The maximum number of failures that are kept of one cluster; the others are dropped.
const MAX_ERRORS: usize = 1_000;

/// Everything that one source has reported about one cluster.
#[derive(Debug)]
pub struct Received {
    cluster: ClusterId,
    position: StreamPosition,
    /// True once the source has sent a snapshot of all halves, or an equal digest; for a restored state from the start.
    is_whole: bool,
    /// True from a lost report, a snapshot part out of order, a reopened stream, a restored state or a digest that
    /// differs, until a snapshot of all halves or an equal digest.
    has_gap: bool,
    /// True from the restoration of a half without fingerprint until a snapshot of all halves: no digest says anything of
    /// such a half.
    is_restored: bool,
    /// About how many bytes the halves take, by [`Half::size`], those of a pending snapshot aside.
    bytes: usize,
    liveness: Liveness,
    apps: HashMap<Arc<AppId>, Halves>,
    /// The number of the apps that another cluster declares.
    guests: usize,
    buckets: Buckets,
    pending: Option<Pending>,
    facts: Arc<ClusterReport>,
    /// The moment at which `facts` were received.
    told: Duration,
    errors: Arc<[ErrorRow]>,
    /// The number of halves refused in the last complete snapshot, even one of a few buckets, and since.
    refused: usize,
    /// The number of halves of which something was cut or dropped in the last complete snapshot, even one of a few
    /// buckets, and since.
    cut: usize,
    guards: Guards,
}

/// The halves of an app that one source reported about one cluster; the other half of the row may come from another
/// cluster.
#[derive(Debug, Default)]
struct Halves {
    declared: Option<KeptHalf<DeclaredHalf>>,
    observed: Option<KeptHalf<ObservedHalf>>,
}

/// A half as a hub keeps it; clones share the contents.
#[derive(Debug, Clone)]
pub struct KeptHalf<T> {
    /// The contents.
    pub body: Arc<T>,
    /// The moment at which the hub received it.
    pub received: Duration,
    /// The [fingerprint](Half::fingerprint) that the source told with it; 0 if it is not known.
    pub fingerprint: u64,
}

/// The facts from which the freshness of a cluster, and of its halves, is computed for any moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vitals {
    liveness: Liveness,
    /// The freshness that the source reported for the cluster as a whole; `None` if it is live.
    own: Option<NotLive>,
    /// The moment at which the source reported `own`.
    told: Duration,
}

impl Vitals {
    /// Returns the time from the API server's last proof through this source to the moment `at`; `None` before the
    /// first proof.
    pub fn age(&self, at: Duration) -> Option<Duration> {
        self.liveness.age(at)
    }

    /// Returns the state at the moment `at` by the proofs of the API server alone, whatever freshness the source
    /// reports for the cluster.
    pub fn state(&self, at: Duration) -> FreshnessState {
        self.liveness.state(at)
    }

    /// Returns the state of the cluster as a whole at the moment `at`: the less fresh one of [`Vitals::state`] and of
    /// the state that the source reports for the cluster.
    pub fn cluster_state(&self, at: Duration) -> FreshnessState {
        self.own.map_or(FreshnessState::Live, |own| own.state).max(self.state(at))
    }

    /// Returns the state of a half: `cluster`, the state of its cluster, unless that is live; else `own`, the state
    /// that the source reported for the half.
    pub fn state_of(cluster: FreshnessState, own: FreshnessState) -> FreshnessState {
        if cluster == FreshnessState::Live { own } else { cluster }
    }

    /// Returns the freshness of the cluster as a whole at the moment `at`, which the wall clock shows as `now`.
    pub fn freshness(&self, at: Duration, now: Timestamp) -> Freshness {
        self.freshness_of(None, Duration::ZERO, at, now)
    }

    /// Returns the freshness at the moment `at`, which the wall clock shows as `now`, of a half that was received at
    /// the moment `received`: that of the cluster unless the cluster is live, else `own`, which the source reported for
    /// the half (`None` if it is live).
    pub fn freshness_of(
        &self,
        own: Option<NotLive>,
        received: Duration,
        at: Duration,
        now: Timestamp,
    ) -> Freshness {
        let own_state = own.map_or(FreshnessState::Live, |own| own.state);
        Freshness {
            state: Vitals::state_of(self.cluster_state(at), own_state),
            observed_at: self.age_of(own, received, at).and_then(|age| before(now, age)),
        }
    }

    /// Returns the age at the moment `at` of the observation to which [`freshness_of`](Vitals::freshness_of) refers
    /// with the same arguments; `None` if there never was one.
    pub fn age_of(&self, own: Option<NotLive>, received: Duration, at: Duration) -> Option<Duration> {
        let aged = |not_live: NotLive, told: Duration| {
            not_live.age.map(|age| age.saturating_add(at.saturating_sub(told)))
        };
        let of_source = self.age(at);
        if self.cluster_state(at) == FreshnessState::Live {
            return own.map_or(of_source, |own| aged(own, received));
        }
        let state = self.state(at);
        let Some(told) = self.own else { return of_source };
        // A source that has never observed the cluster knows less than the hub, which knows of an earlier run.
        let earlier = of_source.filter(|_| state != FreshnessState::Live);
        let told = (told.state, aged(told, self.told).or(earlier));
        // The less fresh one decides; of equally fresh ones the older.
        told.max((state, of_source)).1
    }

    /// Returns the first moment after `at` at which the age of the last proof has passed the window of the source or
    /// [`LOST`](super::LOST), if no other report comes; `None` if it has passed both, or without a proof.
    pub fn next_change(&self, at: Duration) -> Option<Duration> {
        self.liveness.next_change(at)
    }
}

/// The outcome of the insertion of a half.
#[derive(Debug)]
enum Insertion {
    /// The half was refused, and counted.
    Refused,
    /// The half equals the one before, fingerprint included.
    Equal,
    /// The half of this app equals the one before, which had another fingerprint.
    Renewed(AppId),
    /// The half of this app is new or differs from the one before.
    Different(AppId),
}

/// A snapshot of which not all parts were received yet.
#[derive(Debug)]
struct Pending {
    buckets: u64,
    next: u32,
    halves: Vec<Half>,
    /// About how many bytes they take.
    bytes: usize,
    cut: usize,
    /// The number of halves that were refused: beyond the limit, or with too long a name.
    refused: usize,
}

/// The checks of the order and age of reports that are made. Tests disable them one by one to show that each is needed.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Guards {
    /// True to refuse reports of older epochs.
    pub epoch: bool,
    /// True to use the age in a report; false to take each report for a proof of the moment of its receipt.
    pub age: bool,
}

impl Default for Guards {
    fn default() -> Guards {
        Guards { epoch: true, age: true }
    }
}

/// The changes that a report made to the state of a source, and the buckets to send again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consequences {
    /// The apps whose halves the report adds, replaces by different ones or removes; those of a snapshot come with its
    /// last part. A half that is not live differs from each earlier one: its age counts from its receipt. An app may
    /// stand twice.
    pub changed: Vec<AppId>,
    /// The apps of which a half came with the same contents and another fingerprint, as from a source that was started
    /// again.
    pub renewed: Vec<AppId>,
    /// The syncs in the declared halves of the report, an entry for each half that has any and was not refused at once.
    /// The syncs of a snapshot come with their part, even if the hub later drops the snapshot or refuses the half.
    pub syncs: Vec<ToldSyncs>,
    /// True if the report changed the facts about the cluster or its failures.
    pub is_cluster_changed: bool,
    /// The buckets of which the source must send a snapshot, because the digests differ; 0 for none.
    pub resend: u64,
}

/// The reason why a hub refused a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// The report belongs to a stream that a newer one of the same source has replaced.
    #[error("the hub refused a report of stream {found} of its source, which stream {accepted} has replaced")]
    OldEpoch {
        /// The epoch of the report.
        found: u64,
        /// The epoch of the stream that replaced its own.
        accepted: u64,
    },
    /// The report belongs to a stream that the hub never accepted.
    #[error(
        "the hub refused a report of stream {found} of its source, which it never accepted (the last one is {accepted})"
    )]
    UnknownEpoch {
        /// The epoch of the report.
        found: u64,
        /// The last epoch that the hub gave out.
        accepted: u64,
    },
    /// The hub has taken the report, or a later one, before.
    #[error(
        "the hub refused report {found} of a stream, which came late or twice: it has taken report {taken} before"
    )]
    Repeated {
        /// The number of the report in its stream.
        found: u64,
        /// The greatest number of a report that the hub has taken in this stream.
        taken: u64,
    },
    /// The report is about another cluster than its stream.
    #[error("the hub refused a report because it is about another cluster than its stream")]
    OtherCluster,
}

impl Received {
    /// Creates the state of a source that reports `cluster` in the stream `epoch`, before its first report.
    pub fn new(cluster: ClusterId, epoch: u64) -> Received {
        Received {
            cluster,
            position: StreamPosition { epoch, seq: 0 },
            is_whole: false,
            has_gap: false,
            is_restored: false,
            bytes: 0,
            liveness: Liveness::default(),
            apps: HashMap::new(),
            guests: 0,
            buckets: Buckets::default(),
            pending: None,
            facts: Arc::default(),
            told: Duration::ZERO,
            errors: Arc::default(),
            refused: 0,
            cut: 0,
            guards: Guards::default(),
        }
    }

    /// Creates the state of a source as an earlier run of the hub saved it; [`restore`](Received::restore) adds its
    /// halves. Reports prove nothing until the source sends a snapshot of all halves or an equal digest; `heard` is the
    /// moment at which the API server last answered the source, `None` if it never did.
    pub fn restored(
        cluster: ClusterId,
        epoch: u64,
        facts: ClusterReport,
        heard: Option<Duration>,
    ) -> Received {
        Received {
            is_whole: true,
            has_gap: true,
            liveness: Liveness::restored(heard),
            facts: Arc::new(facts),
            ..Received::new(cluster, epoch)
        }
    }

    /// Adds a half that an earlier run of the hub received at the moment `received` with this `fingerprint`; refuses and
    /// counts it as [`Received::take`] does. If the fingerprint is not known, no digest is equal before a snapshot of all
    /// halves.
    pub fn restore(&mut self, app: AppId, body: HalfBody, fingerprint: Option<u64>, received: Duration) {
        self.is_restored |= fingerprint.is_none();
        let mut half = Half { app, fingerprint: fingerprint.unwrap_or_default(), body };
        take_syncs(&mut half);
        self.insert(half, received);
    }

    /// Returns the state with these checks.
    #[doc(hidden)]
    pub fn with_guards(self, guards: Guards) -> Received {
        Received { guards, ..self }
    }

    /// Begins a new stream of the source and returns its epoch, the old one plus one. Keeps the halves; reports prove
    /// nothing until the source sends a snapshot of all halves or an equal digest.
    pub fn reopen(&mut self) -> u64 {
        self.position = StreamPosition { epoch: self.position.epoch + 1, seq: 0 };
        self.has_gap = true;
        self.pending = None;
        self.position.epoch
    }

    /// Applies a report that was received at the moment `at`, and returns its consequences. It counts as a proof that
    /// the API server answered only if it tells an age, and no report is missing since a snapshot of all halves or an
    /// equal digest.
    ///
    /// # Errors
    /// Fails if the report is about another cluster, belongs to another stream, or if it or a later one was applied
    /// before; then nothing changes.
    pub fn take(&mut self, report: Report, at: Duration) -> Result<Consequences, ReportError> {
        self.check(&report)?;
        let is_next = report.position.seq == self.position.seq + 1;
        self.position.seq = report.position.seq;
        if !is_next {
            self.has_gap = true;
            self.pending = None;
        }
        let outcome = self.content(report.content, at);
        if self.is_whole && !self.has_gap {
            let age = if self.guards.age { report.age } else { Some(Duration::ZERO) };
            // Without any proof the cluster was never there.
            age.into_iter().for_each(|age| self.liveness.prove(at, age));
        }
        Ok(outcome)
    }

    fn check(&self, report: &Report) -> Result<(), ReportError> {
        let StreamPosition { epoch, seq } = report.position;
        let accepted = self.position.epoch;
        if report.cluster != self.cluster {
            return Err(ReportError::OtherCluster);
        }
        if epoch < accepted && self.guards.epoch {
            return Err(ReportError::OldEpoch { found: epoch, accepted });
        }
        if epoch > accepted {
            return Err(ReportError::UnknownEpoch { found: epoch, accepted });
        }
        if seq <= self.position.seq {
            return Err(ReportError::Repeated { found: seq, taken: self.position.seq });
        }
        Ok(())
    }

    fn content(&mut self, content: Content, at: Duration) -> Consequences {
        let mut outcome = Consequences::default();
        match content {
            Content::Changes { changed, gone } => {
                for id in &gone {
                    self.remove(id);
                }
                outcome.changed = gone.into_iter().map(|id| id.app).collect();
                for mut half in changed {
                    self.cut += usize::from(half.body.limit());
                    let syncs = take_syncs(&mut half);
                    match self.insert(half, at) {
                        Insertion::Refused => continue,
                        Insertion::Equal => {}
                        Insertion::Renewed(app) => outcome.renewed.push(app),
                        Insertion::Different(app) => outcome.changed.push(app),
                    }
                    outcome.syncs.extend(syncs);
                }
            }
            Content::Snapshot { buckets, part, is_last, halves } => {
                self.snapshot(buckets, part, is_last, halves, at, &mut outcome);
            }
            Content::Cluster { mut facts, mut errors } => {
                errors.truncate(MAX_ERRORS);
                facts.limit();
                self.liveness.set_window(facts.live_window);
                errors.limit();
                outcome.is_cluster_changed = *self.facts != *facts || *self.errors != *errors;
                (self.facts, self.errors, self.told) = (Arc::from(facts), Arc::from(errors), at);
            }
            Content::Digest(digest) => {
                outcome.resend = match self.is_restored {
                    true => u64::MAX,
                    false => self.buckets.differing(&digest),
                };
                // What both sides hold alike is whole, whatever was lost.
                self.has_gap = outcome.resend != 0;
                self.is_whole |= outcome.resend == 0;
            }
            Content::Heartbeat => {}
        }
        outcome
    }

    /// Applies part number `part` of a snapshot of `buckets`. Adds to `outcome` the apps whose halves it changed or
    /// renewed if it is the last part, and the syncs in this part. A part out of order, or of other buckets, drops the
    /// snapshot; further parts of it are ignored.
    fn snapshot(
        &mut self,
        buckets: u64,
        part: u32,
        is_last: bool,
        halves: Vec<Half>,
        at: Duration,
        outcome: &mut Consequences,
    ) {
        if part == 0 {
            self.pending =
                Some(Pending { buckets, next: 0, halves: Vec::new(), bytes: 0, cut: 0, refused: 0 });
        }
        let Some(pending) = &mut self.pending else { return };
        if pending.next != part || pending.buckets != buckets {
            self.pending = None;
            self.has_gap = true;
            return;
        }
        pending.next += 1;
        for mut half in halves {
            // Each own app may have two halves, and each of others has one.
            if pending.halves.len() >= 3 * MAX_APPS || !half.app.is_short() {
                pending.refused += 1;
                continue;
            }
            pending.cut += usize::from(half.body.limit());
            if pending.bytes + half.body.size() > MAX_BYTES {
                pending.refused += 1;
                continue;
            }
            pending.bytes += half.body.size();
            outcome.syncs.extend(take_syncs(&mut half));
            pending.halves.push(half);
        }
        if !is_last {
            return;
        }
        let Some(Pending { halves, cut, refused, .. }) = self.pending.take() else { return };
        // Those that go make room for those that come.
        let mut gone = self.in_buckets(buckets);
        let sent: HashSet<(&AppId, HalfSide)> =
            halves.iter().map(|half| (&half.app, half.body.side())).collect();
        gone.retain(|id| !sent.contains(&(&id.app, id.side)));
        gone.iter().for_each(|id| self.remove(id));
        outcome.changed.extend(gone.into_iter().map(|id| id.app));
        (self.refused, self.cut) = (refused, cut);
        for half in halves {
            match self.insert(half, at) {
                Insertion::Refused | Insertion::Equal => {}
                Insertion::Renewed(app) => outcome.renewed.push(app),
                Insertion::Different(app) => outcome.changed.push(app),
            }
        }
        if buckets == u64::MAX {
            (self.is_whole, self.has_gap, self.is_restored) = (true, false, false);
        }
    }

    /// Returns the identities of the halves whose fingerprints are in `buckets`, a set of 64 bits.
    fn in_buckets(&self, buckets: u64) -> Vec<HalfId> {
        let mut found = Vec::new();
        for (app, halves) in &self.apps {
            let sides = [
                (HalfSide::Declared, halves.declared.as_ref().map(|kept| kept.fingerprint)),
                (HalfSide::Observed, halves.observed.as_ref().map(|kept| kept.fingerprint)),
            ];
            let inside = sides.into_iter().filter(|(_, it)| it.is_some_and(|it| is_in(buckets, it)));
            found.extend(inside.map(|(side, _)| HalfId { app: AppId::clone(app), side }));
        }
        found
    }

    fn remove(&mut self, id: &HalfId) {
        let Some(halves) = self.apps.get_mut(&id.app) else { return };
        let (fingerprint, size) = match id.side {
            HalfSide::Declared => {
                let kept = halves.declared.take();
                (kept.as_ref().map(|kept| kept.fingerprint), kept.map_or(0, |kept| kept.body.size()))
            }
            HalfSide::Observed => {
                let kept = halves.observed.take();
                (kept.as_ref().map(|kept| kept.fingerprint), kept.map_or(0, |kept| kept.body.size()))
            }
        };
        self.bytes = self.bytes.saturating_sub(size);
        if halves.declared.is_none() && halves.observed.is_none() {
            self.apps.remove(&id.app);
            self.guests -= usize::from(id.app.home != self.cluster);
        }
        fingerprint.into_iter().for_each(|fingerprint| self.buckets.toggle(fingerprint));
    }

    /// Stores a half that has no syncs. Refuses and counts a half declared for another home, with too long a name, or of
    /// one app more than [`MAX_APPS`].
    fn insert(&mut self, half: Half, received: Duration) -> Insertion {
        let Half { app, fingerprint, body } = half;
        // Only the home declares. Others could else put apps into clusters that are none of theirs.
        let is_guest = app.home != self.cluster;
        let is_foreign = body.side() == HalfSide::Declared && is_guest;
        let alike = if is_guest { self.guests } else { self.apps.len() - self.guests };
        let is_new = !self.apps.contains_key(&app);
        let (old, new) = (self.size_of(&app, body.side()), body.size());
        let bytes = self.bytes.saturating_sub(old) + new;
        if is_foreign || !app.is_short() || (is_new && alike >= MAX_APPS) || (bytes > MAX_BYTES && new > old)
        {
            self.refused += 1;
            return Insertion::Refused;
        }
        self.bytes = bytes;
        self.guests += usize::from(is_new && is_guest);
        let app = Arc::new(app);
        let halves = self.apps.entry(Arc::clone(&app)).or_default();
        let (old, is_equal) = match body {
            HalfBody::Declared(body) => {
                let is_live = body.not_live.is_none();
                replace(&mut halves.declared, kept(body, fingerprint, received), is_live)
            }
            HalfBody::Observed(body) => {
                let is_live = body.not_live.is_none();
                replace(&mut halves.observed, kept(body, fingerprint, received), is_live)
            }
        };
        old.into_iter().chain([fingerprint]).for_each(|fingerprint| self.buckets.toggle(fingerprint));
        match is_equal {
            true if old == Some(fingerprint) => Insertion::Equal,
            true => Insertion::Renewed(AppId::clone(&app)),
            false => Insertion::Different(AppId::clone(&app)),
        }
    }

    /// Returns about how many bytes a half takes; 0 if the source did not report it.
    fn size_of(&self, app: &AppId, side: HalfSide) -> usize {
        match side {
            HalfSide::Declared => self.declared(app).map_or(0, |kept| kept.body.size()),
            HalfSide::Observed => self.observed(app).map_or(0, |kept| kept.body.size()),
        }
    }

    /// Returns the cluster that the source reports.
    pub fn cluster(&self) -> &ClusterId {
        &self.cluster
    }

    /// Returns the epoch of the present stream.
    pub fn epoch(&self) -> u64 {
        self.position.epoch
    }

    /// Returns the last reported facts about the cluster as a whole.
    pub fn facts(&self) -> &Arc<ClusterReport> {
        &self.facts
    }

    /// Returns the last reported failures: the scopes of the cluster that could not be read, and others.
    pub fn errors(&self) -> &Arc<[ErrorRow]> {
        &self.errors
    }

    /// Returns the number of halves refused in the last complete snapshot and since: beyond [`MAX_APPS`] apps or
    /// [`MAX_BYTES`], declared for another home, or with too long a name. While there are some, the digest of the source differs, so that it is
    /// not live.
    pub fn refused(&self) -> usize {
        self.refused
    }

    /// Returns the number of halves of which something was cut or dropped in the last complete snapshot and since.
    pub fn cut(&self) -> usize {
        self.cut
    }

    /// Returns true once the source has sent a snapshot of all halves, or an equal digest; for a restored state always.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Iterates over the apps of which the source reported a half, in no particular order.
    pub fn apps(&self) -> impl Iterator<Item = &AppId> {
        self.apps.keys().map(|app| &**app)
    }

    /// Iterates over the apps of which the source reported the declared half, in no particular order.
    pub fn declared_apps(&self) -> impl Iterator<Item = &AppId> {
        self.apps.iter().filter(|(_, halves)| halves.declared.is_some()).map(|(app, _)| &**app)
    }

    /// Returns the declared half of an app, with its identity as this state holds it, so that others can share it;
    /// `None` if the source did not report the half.
    pub fn declared_with_app(&self, app: &AppId) -> Option<(&Arc<AppId>, &KeptHalf<DeclaredHalf>)> {
        let (app, halves) = self.apps.get_key_value(app)?;
        Some((app, halves.declared.as_ref()?))
    }

    /// Returns the declared half of an app; `None` if the source did not report it.
    pub fn declared(&self, app: &AppId) -> Option<&KeptHalf<DeclaredHalf>> {
        self.apps.get(app)?.declared.as_ref()
    }

    /// Returns the observed half of an app; `None` if the source did not report it.
    pub fn observed(&self, app: &AppId) -> Option<&KeptHalf<ObservedHalf>> {
        self.apps.get(app)?.observed.as_ref()
    }

    /// Returns the facts from which the freshness is computed for any moment.
    pub fn vitals(&self) -> Vitals {
        Vitals { liveness: self.liveness.clone(), own: self.facts.not_live, told: self.told }
    }

    /// Returns the time from the API server's last proof through this source to the moment `at`; `None` before the
    /// first proof.
    pub fn age(&self, at: Duration) -> Option<Duration> {
        self.liveness.age(at)
    }

    /// Returns the state at the moment `at` by the proofs of the API server alone, whatever freshness the source
    /// reports for the cluster.
    pub fn state(&self, at: Duration) -> FreshnessState {
        self.liveness.state(at)
    }

    /// Returns the freshness of the cluster as a whole at the moment `at`, which the wall clock shows as `now`.
    pub fn freshness(&self, at: Duration, now: Timestamp) -> Freshness {
        self.vitals().freshness(at, now)
    }

    /// Returns the freshness of the half of `app` on `side` at the moment `at`, which the wall clock shows as `now`;
    /// `None` if the source reported no such half. It is that of the cluster unless the cluster is live, so that a
    /// source need not send all halves again when its cluster falls silent.
    pub fn freshness_of(
        &self,
        app: &AppId,
        side: HalfSide,
        at: Duration,
        now: Timestamp,
    ) -> Option<Freshness> {
        let (own, received) = match side {
            HalfSide::Declared => self.declared(app).map(|kept| (kept.body.not_live, kept.received)),
            HalfSide::Observed => self.observed(app).map(|kept| (kept.body.not_live, kept.received)),
        }?;
        Some(self.vitals().freshness_of(own, received, at, now))
    }

    /// Returns the first moment after `at` at which the age of the last proof has passed the window of the source or
    /// [`LOST`](super::LOST), if no other report comes; `None` if it has passed both, or without a proof.
    pub fn next_change(&self, at: Duration) -> Option<Duration> {
        self.liveness.next_change(at)
    }
}

/// An app, the cluster that holds its objects, and its syncs.
pub type ToldSyncs = (AppId, ClusterId, Vec<SyncAttempt>);

/// Removes the syncs from a half and returns them; `None` if it has none.
fn take_syncs(half: &mut Half) -> Option<ToldSyncs> {
    let HalfBody::Declared(body) = &mut half.body else { return None };
    let syncs = std::mem::take(&mut body.syncs);
    (!syncs.is_empty()).then(|| (half.app.clone(), body.target.clone(), syncs))
}

fn kept<T>(body: Box<T>, fingerprint: u64, received: Duration) -> KeptHalf<T> {
    KeptHalf { body: Arc::from(body), received, fingerprint }
}

/// Replaces a kept half, and returns the fingerprint of the old one, and whether the new one equals it and `is_live`. If
/// so, keeps the contents of the old one: a hub that restored its halves would else hold all twice until it has published
/// the new.
fn replace<T: PartialEq>(
    kept: &mut Option<KeptHalf<T>>,
    mut new: KeptHalf<T>,
    is_live: bool,
) -> (Option<u64>, bool) {
    let old = kept.take();
    let fingerprint = old.as_ref().map(|old| old.fingerprint);
    let equal = old.filter(|old| is_live && old.body == new.body);
    let is_equal = equal.is_some();
    if let Some(old) = equal {
        new.body = old.body;
    }
    *kept = Some(new);
    (fingerprint, is_equal)
}

#[cfg(test)]
mod tests;
