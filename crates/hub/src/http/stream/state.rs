//! The rows that a client of a stream has, and the frames that bring it up to date.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use axum::body::Bytes;
use taffrail_api::hub::{AnswerState, ClusterCounts, StreamCounts, StreamFrame, StreamPage, StreamRow};
use taffrail_api::report::{AppId, ClusterReport};
use taffrail_apps::FreshnessState;

use super::subscription::{SubscribedView, Subscription};
use crate::index::page_watch::{PageWatch, WatchedPair};
use crate::index::{AppFilter, FleetIndex, FleetView, ViewDifferences};

/// The greatest number of frames that a stream keeps for a client that reconnects; the earliest are dropped beyond
/// it.
const MAX_KEPT: usize = 16;

/// The greatest number of bytes of the frames that a stream keeps; the earliest frames are dropped beyond it.
const MAX_KEPT_BYTES: usize = 64 * 1024;

/// A stream: its subscriptions, and what its client has after the last frame.
#[derive(Debug)]
pub(crate) struct StreamState {
    /// The common beginning of the ids of this stream's frames: the run of the hub, and a random text for the stream.
    pub(crate) id: String,
    pub(crate) subscriptions: Vec<Subscription>,
    /// The number of the last frame; 0 before the first.
    sequence: u64,
    pages: Vec<SentPage>,
    /// The view of the last frame; `None` before the first one, and after a pause.
    pub(crate) seen: Option<Arc<FleetView>>,
    /// The last frames with their numbers, the earliest first.
    kept: VecDeque<(u64, Bytes)>,
}

/// A page as the client has it after the last frame.
#[derive(Debug, Default)]
struct SentPage {
    watch: Option<PageWatch>,
    rows: Vec<SentRow>,
    /// The greatest id given to a row so far.
    last: u64,
    apps: Option<StreamCounts>,
    clusters: Option<ClusterCounts>,
}

/// A row as the client has it after the last frame.
#[derive(Debug)]
struct SentRow {
    id: u64,
    pair: WatchedPair,
    facts: Option<Arc<ClusterReport>>,
}

impl StreamState {
    /// Makes a stream whose client has no rows yet.
    pub(crate) fn new(id: String, subscriptions: Vec<Subscription>) -> StreamState {
        let pages = subscriptions.iter().map(|_| SentPage::default()).collect();
        StreamState { id, subscriptions, sequence: 0, pages, seen: None, kept: VecDeque::new() }
    }

    /// Returns the frames after the one with the number `sequence`, the earliest first; `None` if not all of them are
    /// kept, or there is no frame of that number yet.
    pub(crate) fn after(&self, sequence: u64) -> Option<VecDeque<Bytes>> {
        let missed = self.kept.iter().filter(|(number, _)| *number > sequence);
        let frames: VecDeque<Bytes> = missed.map(|(_, frame)| frame.clone()).collect();
        let is_whole = sequence <= self.sequence && frames.len() as u64 == self.sequence - sequence;
        is_whole.then_some(frames)
    }

    /// Drops the view of the last frame and the page watches, to save memory while no client is connected.
    pub(crate) fn pause(&mut self) {
        self.seen = None;
        self.pages.iter_mut().for_each(|page| page.watch = None);
    }

    /// Returns the frame that brings the client from the last frame to `view`, and keeps it. `None` if nothing changed,
    /// except that there always is a first frame.
    pub(crate) fn frame(&mut self, index: &FleetIndex, view: Arc<FleetView>) -> Option<Bytes> {
        let old = self.seen.replace(Arc::clone(&view));
        // Without the differences of all publications since, rows may have changed in any way.
        let differences = old.as_ref().and_then(|old| index.differences(old, &view));
        let are_renamed = match (&differences, &old) {
            (Some(differences), _) => differences.iter().any(|it| it.are_renamed),
            (None, Some(old)) => view.is_renamed(old, &view.fleet().all_places()),
            (None, None) => false,
        };
        // What is told of a cluster that is not live follows its facts.
        let has_other_facts = differences.as_ref().is_none_or(|all| all.iter().any(|it| it.has_other_facts));
        let mut pages = Vec::new();
        for (subscription, page) in self.subscriptions.iter().zip(&mut self.pages) {
            let changed = match &subscription.view {
                SubscribedView::Clusters => page.clusters(&view),
                SubscribedView::Changes => {
                    let is_quiet = |it: &Arc<ViewDifferences>| {
                        it.changes.is_empty()
                            && it.places.is_empty()
                            && !it.are_renamed
                            && !it.has_other_facts
                    };
                    let is_same = differences.as_ref().is_some_and(|all| all.iter().all(is_quiet));
                    (!is_same).then(|| StreamPage {
                        version: Some(view.fleet().version()),
                        ..StreamPage::default()
                    })
                }
                SubscribedView::Apps { filter, sort, limit } => {
                    let is_changed = match (&mut page.watch, &old) {
                        (Some(watch), Some(old)) => watch.follow(old, &view, differences.as_deref()),
                        (watch, ..) => {
                            *watch = Some(PageWatch::new((**filter).clone(), *sort, *limit, &view));
                            true
                        }
                    };
                    if is_changed || has_other_facts { page.apps(&view, are_renamed) } else { None }
                }
            };
            pages.extend(changed.map(|changed| StreamPage { name: subscription.name.clone(), ..changed }));
        }
        if pages.is_empty() && self.sequence > 0 {
            return None;
        }
        let event = if self.sequence == 0 { "reset" } else { "frame" };
        self.sequence += 1;
        let frame = StreamFrame { as_of: view.moment().now, pages };
        let data = serde_json::to_string(&frame).unwrap_or_default();
        let text = format!("id: {}-{}\nevent: {event}\ndata: {data}\n\n", self.id, self.sequence);
        let frame = Bytes::from(text);
        self.keep(frame.clone());
        Some(frame)
    }

    fn keep(&mut self, frame: Bytes) {
        self.kept.push_back((self.sequence, frame));
        let size = |kept: &VecDeque<(u64, Bytes)>| kept.iter().map(|(_, frame)| frame.len()).sum::<usize>();
        while self.kept.len() > MAX_KEPT || size(&self.kept) > MAX_KEPT_BYTES {
            self.kept.pop_front();
        }
    }
}

impl SentPage {
    /// Returns the rows of a page of apps that are new or changed since the last frame, or all if `are_renamed`, and
    /// its order and counts if they changed; `None` if nothing did, or the page has no watch.
    fn apps(&mut self, view: &FleetView, are_renamed: bool) -> Option<StreamPage> {
        let watch = self.watch.as_ref()?;
        let counts = watch.counts();
        let apps = Some(StreamCounts { total: counts.total(), problems: watch.problems(), counts });
        let before: Vec<u64> = self.rows.iter().map(|row| row.id).collect();
        let mut known: HashMap<(usize, Arc<AppId>), SentRow> =
            self.rows.drain(..).map(|row| ((row.pair.place, row.pair.pair.app.clone()), row)).collect();
        let mut rows = Vec::new();
        for pair in watch.page() {
            let cluster = view.fleet().cluster(pair.place);
            let facts = cluster
                .and_then(|cluster| view.speaker(cluster))
                .map(|source| Arc::clone(&source.told.facts));
            let old = known.remove(&(pair.place, pair.pair.app.clone()));
            let is_same = |old: &&SentRow| {
                let is_told = match (&old.facts, &facts) {
                    (Some(old), Some(new)) => Arc::ptr_eq(old, new),
                    (old, new) => old.is_none() && new.is_none(),
                };
                // What is told of a cluster that is not live depends on what is known of it.
                let is_told = is_told || !pair.now.is_dark();
                Arc::ptr_eq(&old.pair.pair, &pair.pair) && old.pair.now == pair.now && is_told && !are_renamed
            };
            let is_same = old.as_ref().filter(is_same).is_some();
            let id = old.map_or_else(
                || {
                    self.last += 1;
                    self.last
                },
                |old| old.id,
            );
            if !is_same {
                rows.push(StreamRow { id, row: view.row(&pair.pair) });
            }
            self.rows.push(SentRow { id, pair: pair.clone(), facts });
        }
        let order: Vec<u64> = self.rows.iter().map(|row| row.id).collect();
        let order = (order != before || self.apps.is_none()).then_some(order);
        let is_counted = self.apps == apps;
        if rows.is_empty() && order.is_none() && is_counted {
            return None;
        }
        self.apps.clone_from(&apps);
        let apps = apps.filter(|_| !is_counted);
        Some(StreamPage { apps, order, rows, ..StreamPage::default() })
    }

    /// Returns the numbers of clusters by freshness, and the state of an answer about all of them; `None` if all are
    /// those of the last frame.
    fn clusters(&mut self, view: &FleetView) -> Option<StreamPage> {
        let state = view.coverage(&AppFilter::default()).state;
        let mut counts = ClusterCounts { live: 0, stale: 0, lost: 0, state: AnswerState::Complete };
        for (_, cluster) in view.fleet().all() {
            let source = view.speaker(cluster);
            *match source.map_or(FreshnessState::Lost, |source| view.freshness(source).state) {
                FreshnessState::Live => &mut counts.live,
                FreshnessState::Stale => &mut counts.stale,
                FreshnessState::Lost => &mut counts.lost,
            } += 1;
        }
        counts.state = state;
        let counts = Some(counts);
        if self.clusters == counts {
            return None;
        }
        self.clusters.clone_from(&counts);
        Some(StreamPage { clusters: counts, ..StreamPage::default() })
    }
}
