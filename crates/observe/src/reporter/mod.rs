//! Reports of watched clusters to a hub.
//!
//! [`Reporter`] turns the fleet of a [`FleetWatcher`] into [`Report`](taffrail_api::report::Report)s. Each cluster has
//! a stream of its own, whose epoch the hub gives.
//!
//! * `taffrail_api::report::ReportStreams` decides which message about which cluster is sent next, and when.
//! * `telling` passes the differences between one state of the fleet and the next to the streams.
//! * `inquiries` calls inquiries, which are functions that read the fleet, in the loop that watches the clusters.
//! * `groups` decides which statuses of ResourceGroups an agent writes, if it may write any, and `group_write` writes one.
//!
//! With [`Reporter::finding`] the loop that watches the clusters also adds those that Secrets name, before it compares
//! the fleet with its last state, and nowhere else.
//!
//! Two loops run at the same time: one watches the clusters, the other one sends. A slow hub delays only the second
//! one: meanwhile newer states replace those that were not sent.

mod group_write;
mod groups;
mod inquiries;
mod telling;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use groups::GroupStatusEvent;
use groups::{ChangedGroups, GroupStatuses};
use inquiries::Inquiries;
pub use inquiries::Inquiry;
use jiff::Timestamp;
use taffrail_api::report::{ClusterSummary, Noted, ReportStreams, SourceMessage, SourceReply};
use taffrail_apps::ClusterId;
use taffrail_cluster::{BootClock, Moment};
use telling::{FleetTeller, ReadProgress};
use tokio::sync::{Notify, mpsc};

use crate::follow::FleetWatcher;
use crate::found::FoundClusters;

/// Maximum time between two checks for changes: rows may change with time, and clusters may fall silent.
const TICK: Duration = Duration::from_secs(1);

/// Reports the clusters of a [`FleetWatcher`] to a hub, until the hub closes a channel.
pub struct Reporter {
    watcher: FleetWatcher,
    teller: FleetTeller,
    shared: Shared,
    inquiries: Inquiries,
    found: Option<FoundClusters>,
    groups: Option<GroupStatuses>,
    messages: mpsc::Sender<SourceMessage>,
    replies: mpsc::Receiver<SourceReply>,
}

/// The clusters of a reporter, whose present state can be asked for at any time.
#[derive(Debug, Clone)]
pub struct Reported {
    streams: Arc<Mutex<ReportStreams>>,
    clock: BootClock,
    begun: Moment,
}

impl Reported {
    /// Returns the states of all clusters.
    pub fn clusters(&self) -> Vec<ClusterSummary> {
        let now = self.clock.now().since(self.begun);
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).summaries(now)
    }
}

/// The state that both loops of a reporter share.
struct Shared {
    streams: Arc<Mutex<ReportStreams>>,
    /// Notified when there may be a message to send.
    news: Notify,
    clock: BootClock,
    begun: Moment,
    /// Takes the notes of transitions; `None` if none are taken.
    note: Option<Box<TakeNote>>,
}

/// Takes a note about a cluster at the moment at which it is made.
type TakeNote = dyn Fn(&ClusterId, Noted) + Send + Sync;

impl Reporter {
    /// Creates a reporter of the clusters of `watcher`, which sends `messages` to a hub, and gets its `replies`.
    ///
    /// Both channels may be short: a change for which there is no room is reported later, in the state that it has
    /// then.
    pub fn new(
        mut watcher: FleetWatcher,
        messages: mpsc::Sender<SourceMessage>,
        replies: mpsc::Receiver<SourceReply>,
    ) -> Reporter {
        watcher.leave_unread();
        let clock = watcher.clock().clone();
        let begun = clock.now();
        let shared = Shared { streams: Arc::default(), news: Notify::new(), clock, begun, note: None };
        let (teller, inquiries) = (FleetTeller::default(), Inquiries::default());
        Reporter { watcher, teller, shared, inquiries, found: None, groups: None, messages, replies }
    }

    /// Sets the search for clusters that Secrets of the watched ones name, to watch and report them too.
    #[must_use]
    pub fn finding(self, found: FoundClusters) -> Reporter {
        Reporter { found: Some(found), ..self }
    }

    /// Returns what tells the present state of the clusters, also while the reporter runs.
    pub fn reported(&self) -> Reported {
        let Shared { streams, clock, begun, .. } = &self.shared;
        Reported { streams: Arc::clone(streams), clock: clock.clone(), begun: *begun }
    }

    /// Has `note` take the transitions of apps as they happen, whether the hub takes reports or not.
    #[must_use]
    pub fn noting(mut self, note: impl Fn(&ClusterId, Noted) + Send + Sync + 'static) -> Reporter {
        self.shared.streams().note_transitions();
        self.shared.note = Some(Box::new(note));
        self
    }

    /// Sets the channel of inquiries, which are called with the fleet: at once if everything needed is read, else as
    /// soon as it is, but at the latest after 4 s, or after 1 s once all clusters were read.
    #[must_use]
    pub fn answering(self, inquiries: mpsc::Receiver<Inquiry>) -> Reporter {
        Reporter { inquiries: Inquiries::of(inquiries), ..self }
    }

    /// Sets the identities of clusters by name in an earlier run, under which they are reported until they report their
    /// own. The hub keeps its rows of such a cluster until the cluster was read.
    #[must_use]
    pub fn knowing(self, identities: HashMap<String, ClusterId>) -> Reporter {
        let mut teller = FleetTeller::knowing(identities);
        teller.groups = self.teller.groups;
        Reporter { teller, ..self }
    }

    /// Writes the statuses of the ResourceGroups of kpt in the cluster of this name, where nobody else does; `tell` is
    /// called when one is not written.
    #[must_use]
    pub fn writing_group_statuses(
        self,
        cluster: String,
        tell: impl Fn(GroupStatusEvent) + Send + Sync + 'static,
    ) -> Reporter {
        let mut teller = self.teller;
        teller.groups = Some(ChangedGroups::of(cluster.clone()));
        Reporter { teller, groups: Some(GroupStatuses::new(cluster, tell)), ..self }
    }

    /// Reports until the receiver of messages or the sender of replies is gone.
    pub async fn run(self) {
        let Reporter { mut watcher, mut teller, shared, mut inquiries, mut found, mut groups, .. } = self;
        let (messages, mut replies) = (self.messages, self.replies);
        tokio::select! {
            () = shared.follow(&mut watcher, &mut teller, &mut inquiries, &mut found, &mut groups) => {}
            () = shared.send(&messages, &mut replies) => {}
        }
    }
}

/// Waits for news about found clusters; never returns if none are searched.
async fn come(found: &mut Option<FoundClusters>) {
    match found {
        Some(found) => found.come().await,
        None => std::future::pending().await,
    }
}

/// Waits for the end of a write of a status; never returns if none runs.
async fn written(groups: &mut Option<GroupStatuses>) {
    match groups {
        Some(groups) => groups.come().await,
        None => std::future::pending().await,
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.clock.now().since(self.begun)
    }

    /// Locks the streams. The lock is held only while they are updated.
    fn streams(&self) -> MutexGuard<'_, ReportStreams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes changes of the clusters to the streams and calls inquiries, in a loop. Rests after each update for as
    /// long as the update took.
    async fn follow(
        &self,
        watcher: &mut FleetWatcher,
        teller: &mut FleetTeller,
        inquiries: &mut Inquiries,
        found: &mut Option<FoundClusters>,
        groups: &mut Option<GroupStatuses>,
    ) {
        let mut looked: Option<Timestamp> = None;
        // The moment until which nothing is looked at again, so that looking takes at most half of the time.
        let mut rested = Instant::now();
        loop {
            // Only here do clusters come and go: everything below counts on their order.
            if let Some(changes) = found.as_mut().and_then(|found| found.apply(watcher)) {
                teller.set_found(changes, &mut self.streams());
                looked = None;
            }
            // Whatever a server sent until now is known after the next look.
            let heard: Vec<Option<Duration>> = {
                let now = self.now();
                watcher.silent().map(|silent| Some(now.saturating_sub(silent?))).collect()
            };
            let is_news = match looked {
                None => true,
                Some(_) => {
                    let (rest, tick) =
                        (rested.saturating_duration_since(Instant::now()), inquiries.tick(TICK));
                    let next = async { watcher.rest(rest).await || watcher.next(tick).await };
                    tokio::select! {
                        is_news = next => is_news,
                        // What came meanwhile is looked at after the next rest.
                        () = inquiries.come() => false,
                        () = come(found) => false,
                        () = written(groups) => false,
                    }
                }
            };
            let stands = looked.is_some_and(|looked| watcher.rows_stand(looked, Timestamp::now()));
            if is_news || !stands || teller.owes_facts(self.now()) {
                let begun = Instant::now();
                looked = Some(Timestamp::now());
                self.update(watcher, teller).await;
                rested = Instant::now() + begun.elapsed();
            }
            if let Some(found) = found {
                found.search(watcher);
            }
            inquiries.answer(watcher);
            if let Some((groups, changed)) = groups.as_mut().zip(teller.groups.as_mut()) {
                groups.go_on(watcher, changed, self.now());
            }
            teller.hear(&heard, &mut self.streams());
            self.news.notify_one();
        }
    }

    async fn update(&self, watcher: &mut FleetWatcher, teller: &mut FleetTeller) {
        let planned: Vec<bool> = watcher.is_to_plan().collect();
        watcher.ask().await;
        let reading: Vec<ReadProgress> = (0..planned.len())
            .map(|at| match watcher.is_settled(at) {
                _ if watcher.is_connecting(at) => ReadProgress::Connecting,
                true => ReadProgress::Settled,
                false => ReadProgress::Unsettled,
            })
            .collect();
        let is_comparing = watcher.is_comparing();
        let fleet = watcher.fleet();
        let touched = teller.compare(fleet, &reading, is_comparing, &mut self.streams(), self.now());
        if let Some(note) = &self.note {
            let noted = self.streams().take_noted();
            noted.into_iter().for_each(|(cluster, noted)| note(&cluster, noted));
        }
        // What changed by time alone may want other evidence.
        let again = touched.into_iter().filter(|at| !planned.get(*at).copied().unwrap_or_default());
        again.for_each(|at| watcher.plan_again(at));
    }

    /// Sends messages when they are due and the channel has room; applies replies.
    async fn send(&self, messages: &mpsc::Sender<SourceMessage>, replies: &mut mpsc::Receiver<SourceReply>) {
        loop {
            let wait = {
                let now = self.now();
                self.streams().next_deadline().map(|due| due.saturating_sub(now))
            };
            let is_due = wait.is_some_and(|wait| wait.is_zero());
            tokio::select! {
                biased;
                reply = replies.recv() => match reply {
                    Some(reply) => self.streams().take(&reply, self.now()),
                    None => return,
                },
                permit = messages.reserve(), if is_due => {
                    let Ok(permit) = permit else { return };
                    // What is told is that of now, however long there was no room.
                    if let Some(message) = self.streams().next_message(self.now()) {
                        permit.send(message);
                    }
                }
                () = messages.closed(), if !is_due => return,
                () = self.news.notified(), if !is_due => {}
                () = tokio::time::sleep(wait.unwrap_or(TICK)), if !is_due => {}
            }
        }
    }
}
